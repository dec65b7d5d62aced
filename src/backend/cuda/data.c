/* data.c: the data set, resident on the device or streamed from the host batch by batch.
 *
 * Resident (the rule): all images are in device memory and one kernel looks up the epoch's order itself;
 * nothing crosses the bus in a step. Streamed (asked for, or the set does not fit): the host looks up the
 * order, packs a batch into pinned memory and copies it on a second stream into one of two slots, by the
 * step's parity, while the step before computes. Four events keep the peace:
 *     copied[slot]    the copy is done: the kernel may read the slot, the host may refill its staging
 *     consumed[slot]  the gather kernel is done: the next copy into the slot may begin
 */
#include "backend/cuda/cuda.h"

#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

typedef struct slot {
    uint8_t *host; /* pinned */
    uint8_t *device;
    cudaEvent_t copied, consumed;
    int step, table; /* what is in it; step -1: nothing */
    int limit, shuffle;
    uint64_t seed;
} slot;

struct lt_backend_data {
    const uint8_t *images; /* the caller's */
    int count;
    size_t image_bytes;
    uint8_t *resident; /* in device memory; NULL: streamed */
    slot slots[2];
    size_t room;     /* images that a slot holds */
    uint8_t **table; /* the slots' places, in device memory: a launch need not know them */
};

/* ---- Load -------------------------------------------------------------------------------------- */

static void free_slots(lt_backend *backend, lt_backend_data *data) {
    for (int i = 0; i < 2; i++) {
        (void)cudaFreeHost(data->slots[i].host);
        lt_cuda_free(backend, data->slots[i].device);
        data->slots[i].host = data->slots[i].device = NULL;
    }
    data->room = 0;
}

void lt_cuda_data_free(lt_backend *backend, lt_backend_data *data) {
    lt_cuda *cuda = (lt_cuda *)backend;
    if (!data) {
        return;
    }
    (void)cudaStreamSynchronize(cuda->copies);
    (void)cudaStreamSynchronize(cuda->stream);
    for (int i = 0; i < 2; i++) {
        if (data->slots[i].copied) {
            (void)cudaEventDestroy(data->slots[i].copied);
        }
        if (data->slots[i].consumed) {
            (void)cudaEventDestroy(data->slots[i].consumed);
        }
    }
    free_slots(backend, data);
    lt_cuda_free(backend, data->table);
    lt_cuda_free(backend, data->resident);
    free(data);
}

uint64_t lt_cuda_data_bytes(const lt_backend_data *data) {
    return data->resident ? (uint64_t)data->count * data->image_bytes : 2 * data->room * data->image_bytes;
}

int lt_cuda_data_streams(const lt_backend_data *data) {
    return !data->resident;
}

/* A set may take three quarters of what is free: the plan needs the rest. */
static int fits(lt_cuda *cuda, size_t bytes) {
    return bytes <= lt_cuda_memory_free(&cuda->base) / 4 * 3;
}

static latent_status make_streamed(latent_context *ctx, lt_cuda *cuda, lt_backend_data *data) {
    latent_status status = LATENT_OK;
    for (int i = 0; i < 2; i++) {
        data->slots[i].step = -1;
        LT_CUDA(cudaEventCreateWithFlags(&data->slots[i].copied, cudaEventDisableTiming));
        LT_CUDA(cudaEventCreateWithFlags(&data->slots[i].consumed, cudaEventDisableTiming));
    }
    LT_TRY(lt_cuda_alloc(ctx, &cuda->base, 2 * sizeof(uint8_t *), (void **)&data->table));
done:
    return status;
}

latent_status lt_cuda_data_load(latent_context *ctx, lt_backend *backend, const uint8_t *images, int count,
                                size_t image_bytes, lt_backend_data **out) {
    lt_cuda *cuda = (lt_cuda *)backend;
    latent_status status = LATENT_OK;
    lt_backend_data *data = NULL;
    size_t bytes = (size_t)count * image_bytes;
    *out = NULL;
    LT_TRY(lt_cuda_device_use(ctx, cuda));
    LT_TRY(lt_calloc(ctx, 1, sizeof *data, "a data set", (void **)&data));
    data->images = images;
    data->count = count;
    data->image_bytes = image_bytes;
    int streamed = cuda->stream_data;
    if (!streamed && !fits(cuda, bytes)) {
        lt_log(ctx, LATENT_LOG_INFO,
               "the data set's %.0f MiB do not fit beside the net on device %d: they are streamed from the "
               "host",
               (double)bytes / (1 << 20), cuda->device);
        streamed = 1;
    }
    if (streamed) {
        LT_TRY(make_streamed(ctx, cuda, data));
    } else {
        LT_TRY(lt_cuda_alloc(ctx, backend, bytes, (void **)&data->resident));
        LT_TRY(lt_cuda_upload(ctx, backend, data->resident, images, bytes));
    }
    *out = data;
    data = NULL;
done:
    lt_cuda_data_free(backend, data);
    return status;
}

/* ---- Stream ------------------------------------------------------------------------------------ */

/* Slots for batches of n images. Rare: the first batch, and when a larger one comes. */
static latent_status make_room(latent_context *ctx, lt_cuda *cuda, lt_backend_data *data, size_t n) {
    latent_status status = LATENT_OK;
    uint8_t *places[2] = {NULL, NULL};
    if (n <= data->room) {
        return LATENT_OK;
    }
    LT_CUDA(cudaStreamSynchronize(cuda->copies));
    LT_CUDA(cudaStreamSynchronize(cuda->stream));
    free_slots(&cuda->base, data);
    for (int i = 0; i < 2; i++) {
        data->slots[i].step = -1;
        LT_CUDA(cudaMallocHost((void **)&data->slots[i].host, n * data->image_bytes));
        LT_TRY(lt_cuda_alloc(ctx, &cuda->base, n * data->image_bytes, (void **)&data->slots[i].device));
        places[i] = data->slots[i].device;
    }
    LT_TRY(lt_cuda_upload(ctx, &cuda->base, data->table, places, sizeof places));
    data->room = n;
done:
    return status;
}

/* Starts the copy of the step's batch into its slot, unless that was done ahead. */
static latent_status stage(latent_context *ctx, lt_cuda *cuda, lt_backend_data *data,
                           const lt_gather_call *call, int step) {
    latent_status status = LATENT_OK;
    const lt_step *record = &cuda->host_steps[step];
    slot *to = &data->slots[step & 1];
    if (to->step == step && to->table == cuda->table && to->limit == call->limit &&
        to->shuffle == call->shuffle && to->seed == call->seed) {
        return LATENT_OK;
    }
    LT_TRY(make_room(ctx, cuda, data, record->n));
    LT_CUDA(cudaEventSynchronize(to->copied));
    for (uint32_t i = 0; i < record->n; i++) {
        uint32_t at = record->first + i;
        if (call->shuffle) {
            at = lt_permute(call->seed, record->epoch, (uint32_t)call->limit, at);
        }
        memcpy(to->host + i * data->image_bytes, data->images + at * data->image_bytes, data->image_bytes);
    }
    LT_CUDA(cudaStreamWaitEvent(cuda->copies, to->consumed, 0));
    LT_CUDA(cudaMemcpyAsync(to->device, to->host, record->n * data->image_bytes, cudaMemcpyHostToDevice,
                            cuda->copies));
    LT_CUDA(cudaEventRecord(to->copied, cuda->copies));
    to->step = step;
    to->table = cuda->table;
    to->limit = call->limit;
    to->shuffle = call->shuffle;
    to->seed = call->seed;
done:
    return status;
}

static int inside(const lt_step *record, const lt_gather_call *call) {
    return (uint64_t)record->first + record->n <= (uint64_t)call->limit;
}

static latent_status check(latent_context *ctx, const lt_cuda *cuda, const lt_gather_call *call) {
    latent_status status = lt_cuda_step_check(ctx, cuda);
    if (status != LATENT_OK) {
        return status;
    }
    const lt_step *record = &cuda->host_steps[cuda->cursor];
    if (call->n < 0 || (uint32_t)call->n != record->n) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "gather of %d images at a step of %u", call->n, record->n);
    }
    if (call->limit < 0 || call->limit > call->data->count || !inside(record, call)) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "gather of images %u to %llu from the first %d of a data set that has %d",
                       record->first, (unsigned long long)record->first + record->n, call->limit,
                       call->data->count);
    }
    return LATENT_OK;
}

latent_status lt_cuda_gather(latent_context *ctx, lt_backend *backend, const lt_gather_call *call) {
    lt_cuda *cuda = (lt_cuda *)backend;
    latent_status status = LATENT_OK;
    lt_backend_data *data = (lt_backend_data *)call->data; /* streaming remembers what is where */
    int step = cuda->cursor;
    lt_gather_source source = {data->resident, (const uint8_t *const *)data->table};
    lt_cuda_range_begin(cuda, "gather", "");
    LT_TRY(check(ctx, cuda, call));
    if (call->n == 0) {
        goto done;
    }
    if (!data->resident) {
        if (cuda->capturing) {
            status =
                lt_fail(ctx, LATENT_ERROR_UNSUPPORTED,
                        "a gather of streamed images cannot be part of a graph: the host packs each batch");
            goto done;
        }
        LT_TRY(stage(ctx, cuda, data, call, step));
        LT_CUDA(cudaStreamWaitEvent(cuda->stream, data->slots[step & 1].copied, 0));
    }
    lt_launch_gather(cuda->stream, cuda->state, source, (int)data->image_bytes, call);
    LT_LAUNCHED("gather");
    if (!data->resident) {
        LT_CUDA(cudaEventRecord(data->slots[step & 1].consumed, cuda->stream));
        if (step + 1 < cuda->step_count && inside(&cuda->host_steps[step + 1], call)) {
            LT_TRY(stage(ctx, cuda, data, call, step + 1));
        }
    }
done:
    lt_cuda_range_end(cuda);
    return status;
}
