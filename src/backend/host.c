/* host.c: the parts of a backend that are the same for every one on the host (see host.h).
 *
 * Work is done when a call returns, so synchronize has nothing to wait for. The step table and the losses
 * are arrays with a cursor; time is the monotonic clock read at every mark.
 */
#include "backend/host.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct lt_backend_data {
    const uint8_t *images; /* [count][image_bytes], the caller's */
    int count;
    size_t image_bytes;
};

latent_status lt_host_check_options(latent_context *ctx, const lt_backend_type *type,
                                    const latent_engine_options *options) {
    if (options->kernels) {
        return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED,
                       "the backend '%s' has no kernel generations ('%s' was asked for, --kernels); the "
                       "backend 'cuda' has",
                       type->name, options->kernels);
    }
    if (options->device) {
        return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED,
                       "the backend '%s' runs on the host and has no devices (%d was asked for, --device); "
                       "the backend 'cuda' has",
                       type->name, options->device);
    }
    if (options->stream_data) {
        return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED,
                       "the backend '%s' computes where the data set lies and has nothing to stream "
                       "(--stream-data); the backend 'cuda' has",
                       type->name);
    }
    return LATENT_OK;
}

void lt_host_init(lt_host *host, const lt_backend_type *type) {
    host->base.type = type;
    host->base.activation = LT_F32;
    host->bad_step = -1;
}

void lt_host_release(lt_host *host) {
    free(host->steps);
    free(host->losses);
    free(host->seconds);
    host->steps = NULL;
    host->losses = NULL;
    host->seconds = NULL;
}

/* ---- Memory ------------------------------------------------------------------------------------ */

latent_status lt_host_alloc(latent_context *ctx, lt_backend *backend, size_t bytes, void **out) {
    (void)backend;
    *out = NULL;
    size_t whole = (bytes + LT_ALIGN - 1) / LT_ALIGN * LT_ALIGN; /* aligned_alloc wants a multiple */
    if (whole >= bytes) {
        *out = aligned_alloc(LT_ALIGN, whole ? whole : LT_ALIGN);
    }
    return *out ? LATENT_OK : lt_fail(ctx, LATENT_ERROR_MEMORY, "no memory for a block of %zu bytes", bytes);
}

void lt_host_free(lt_backend *backend, void *memory) {
    (void)backend;
    free(memory);
}

latent_status lt_host_zero(latent_context *ctx, lt_backend *backend, void *memory, size_t bytes) {
    (void)ctx;
    (void)backend;
    if (bytes) {
        memset(memory, 0, bytes);
    }
    return LATENT_OK;
}

latent_status lt_host_copy(latent_context *ctx, lt_backend *backend, void *to, const void *from,
                           size_t bytes) {
    (void)ctx;
    (void)backend;
    if (bytes) {
        memcpy(to, from, bytes);
    }
    return LATENT_OK;
}

latent_status lt_host_synchronize(latent_context *ctx, lt_backend *backend) {
    (void)ctx;
    (void)backend;
    return LATENT_OK;
}

/* ---- Data -------------------------------------------------------------------------------------- */

latent_status lt_host_data_load(latent_context *ctx, lt_backend *backend, const uint8_t *images, int count,
                                size_t image_bytes, lt_backend_data **out) {
    (void)backend;
    void *memory = NULL;
    latent_status status = lt_calloc(ctx, 1, sizeof **out, "a data set", &memory);
    *out = memory;
    if (status == LATENT_OK) {
        (*out)->images = images;
        (*out)->count = count;
        (*out)->image_bytes = image_bytes;
    }
    return status;
}

void lt_host_data_free(lt_backend *backend, lt_backend_data *data) {
    (void)backend;
    free(data);
}

uint64_t lt_host_data_bytes(const lt_backend_data *data) {
    (void)data;
    return 0; /* nothing is copied */
}

latent_status lt_host_gather_check(latent_context *ctx, const lt_host *host, const lt_gather_call *call) {
    const lt_step *step = NULL;
    latent_status status = lt_host_step(ctx, host, &step);
    if (status != LATENT_OK) {
        return status;
    }
    if (call->n < 0 || (uint32_t)call->n != step->n) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "gather of %d images at a step of %u", call->n, step->n);
    }
    if (call->limit < 0 || call->limit > call->data->count ||
        (uint64_t)step->first + step->n > (uint64_t)call->limit) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "gather of images %u to %llu from the first %d of a data set that has %d", step->first,
                       (unsigned long long)step->first + step->n, call->limit, call->data->count);
    }
    return LATENT_OK;
}

static void gather_mirrored(const lt_gather_call *call, const uint8_t *image, size_t bytes, float *x) {
    size_t channels = (size_t)call->channels, row = (size_t)call->width * channels;
    for (size_t begin = 0; begin < bytes; begin += row) {
        for (size_t j = 0; j < row; j++) {
            size_t pixel = row - channels - j / channels * channels;
            x[begin + j] = (float)image[begin + pixel + j % channels] * call->scale + call->shift;
        }
    }
}

void lt_host_gather_range(const lt_host *host, const lt_gather_call *call, int begin, int end) {
    const lt_step *step = &host->steps[host->cursor];
    size_t bytes = call->data->image_bytes;
    for (int i = begin; i < end; i++) {
        uint32_t at = step->first + (uint32_t)i;
        if (call->shuffle) {
            at = lt_permute(call->seed, step->epoch, (uint32_t)call->limit, at);
        }
        const uint8_t *image = call->data->images + at * bytes;
        float *x = call->x + (size_t)i * bytes;
        if (call->mirror) {
            gather_mirrored(call, image, bytes, x);
            continue;
        }
        for (size_t j = 0; j < bytes; j++) {
            x[j] = (float)image[j] * call->scale + call->shift;
        }
    }
}

/* ---- Optimizer --------------------------------------------------------------------------------- */

static int sgd_range(const lt_optimizer_call *call, float lr, size_t begin, size_t end) {
    float *p = call->params, *m = call->m;
    int finite = 1;
    for (size_t i = begin; i < end; i++) {
        float g = call->grads[i];
        finite &= isfinite(g) != 0;
        g += call->decay * p[i];
        if (call->momentum != 0) {
            m[i] = call->momentum * m[i] + g;
            g = m[i];
        }
        p[i] -= lr * g;
        call->grads[i] = 0;
    }
    return finite;
}

static int adam_range(const lt_optimizer_call *call, const lt_step *step, size_t begin, size_t end) {
    float *p = call->params, *m = call->m, *v = call->v;
    float beta1 = call->momentum, beta2 = call->beta2, lr = step->lr;
    float coupled = call->kind == LATENT_ADAM ? call->decay : 0;
    float decoupled = call->kind == LATENT_ADAMW ? lr * call->decay : 0;
    int finite = 1;
    for (size_t i = begin; i < end; i++) {
        float g = call->grads[i];
        finite &= isfinite(g) != 0;
        p[i] -= decoupled * p[i];
        g += coupled * p[i];
        m[i] = beta1 * m[i] + (1 - beta1) * g;
        v[i] = beta2 * v[i] + (1 - beta2) * g * g;
        p[i] -= lr * (m[i] * step->correction1) / (sqrtf(v[i]) * step->correction2 + call->epsilon);
        call->grads[i] = 0;
    }
    return finite;
}

int lt_host_optimizer_range(const lt_optimizer_call *call, const lt_step *step, size_t begin, size_t end) {
    return call->kind == LATENT_SGD ? sgd_range(call, step->lr, begin, end)
                                    : adam_range(call, step, begin, end);
}

void lt_host_mark_bad(lt_host *host) {
    if (host->bad_step < 0) {
        host->bad_step = host->cursor;
    }
}

/* ---- Steps and losses -------------------------------------------------------------------------- */

latent_status lt_host_step(latent_context *ctx, const lt_host *host, const lt_step **out) {
    if (host->cursor >= host->step_count) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "step %d of a table of %d steps", host->cursor,
                       host->step_count);
    }
    *out = &host->steps[host->cursor];
    return LATENT_OK;
}

latent_status lt_host_set_loss(latent_context *ctx, lt_host *host, float loss) {
    const lt_step *step = NULL;
    latent_status status = lt_host_step(ctx, host, &step);
    if (status == LATENT_OK) {
        host->losses[host->cursor] = loss;
    }
    return status;
}

latent_status lt_host_steps_begin(latent_context *ctx, lt_backend *backend, const lt_step *steps, int count) {
    lt_host *host = (lt_host *)backend;
    latent_status status = LATENT_OK;
    void *table = NULL, *losses = NULL;
    if (count < 0) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "a table of %d steps", count);
    }
    LT_TRY(lt_calloc(ctx, (size_t)count, sizeof(lt_step), "the step table", &table));
    LT_TRY(lt_calloc(ctx, (size_t)count, sizeof(float), "the losses", &losses));
    if (count) {
        memcpy(table, steps, (size_t)count * sizeof(lt_step));
    }
    free(host->steps);
    free(host->losses);
    host->steps = table;
    host->losses = losses;
    host->step_count = count;
    host->cursor = 0;
    host->bad_step = -1;
    table = losses = NULL;
done:
    free(table);
    free(losses);
    return status;
}

latent_status lt_host_step_next(latent_context *ctx, lt_backend *backend) {
    lt_host *host = (lt_host *)backend;
    const lt_step *step = NULL;
    latent_status status = lt_host_step(ctx, host, &step);
    if (status == LATENT_OK) {
        host->cursor++;
    }
    return status;
}

latent_status lt_host_losses_read(latent_context *ctx, lt_backend *backend, int first, int count, float *out,
                                  int *bad_step) {
    lt_host *host = (lt_host *)backend;
    if (first < 0 || count < 0 || count > host->step_count - first) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "losses %d to %lld of a table of %d steps", first,
                       (long long)first + count, host->step_count);
    }
    if (count) {
        memcpy(out, host->losses + first, (size_t)count * sizeof(float));
    }
    *bad_step = host->bad_step;
    return LATENT_OK;
}

/* ---- Time -------------------------------------------------------------------------------------- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

latent_status lt_host_profile_start(latent_context *ctx, lt_backend *backend, int slots) {
    lt_host *host = (lt_host *)backend;
    void *seconds = NULL;
    if (slots < 0) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "a profile of %d slots", slots);
    }
    host->booking = 0;
    if (slots == 0) {
        return LATENT_OK;
    }
    latent_status status = lt_calloc(ctx, (size_t)slots, sizeof(double), "the profile", &seconds);
    if (status == LATENT_OK) {
        free(host->seconds);
        host->seconds = seconds;
        host->slots = slots;
        host->booking = 1;
        host->marked = now();
    }
    return status;
}

void lt_host_mark(lt_backend *backend, int slot) {
    lt_host *host = (lt_host *)backend;
    if (!host->booking) {
        return;
    }
    double time = now();
    if (slot >= 0 && slot < host->slots) {
        host->seconds[slot] += time - host->marked;
    }
    host->marked = time;
}

latent_status lt_host_profile_read(latent_context *ctx, lt_backend *backend, double *seconds, int slots) {
    lt_host *host = (lt_host *)backend;
    (void)ctx;
    for (int i = 0; i < slots; i++) {
        seconds[i] = i < host->slots ? host->seconds[i] : 0;
    }
    return LATENT_OK;
}
