/* steps.c: the step table and the losses in device memory, and the host's shadow of the cursor.
 *
 * lt_cuda_state never moves, the tables it points at may: kernels, also those of a graph captured long ago,
 * go through it and so always see the table of today. A captured step_next moves the shadow cursor when the
 * graph is launched, not when it is recorded. What a step has done is also written to the host's own memory,
 * so that a look at the losses disturbs nothing.
 */
#include "backend/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

static latent_status grow(latent_context *ctx, lt_cuda *cuda, int count) {
    latent_status status = LATENT_OK;
    size_t room = (size_t)count;
    void *steps = NULL, *losses = NULL, *host = NULL, *shown = NULL, *state = cuda->state;
    if (!state) {
        LT_TRY(lt_cuda_alloc(ctx, &cuda->base, sizeof(lt_cuda_state), &state));
        cuda->state = state;
    }
    if (cuda->host_steps && count <= cuda->capacity) {
        goto done;
    }
    LT_TRY(lt_cuda_alloc(ctx, &cuda->base, room * sizeof(lt_step), &steps));
    LT_TRY(lt_cuda_alloc(ctx, &cuda->base, room * sizeof(float), &losses));
    LT_TRY(lt_calloc(ctx, room, sizeof(lt_step), "the step table", &host));
    LT_CUDA(cudaMallocHost(&shown, sizeof(lt_cuda_shown) + room * sizeof(float)));
    LT_CUDA(cudaStreamSynchronize(cuda->stream)); /* nobody reads the old ones any more */
    lt_cuda_free(&cuda->base, cuda->steps);
    lt_cuda_free(&cuda->base, cuda->losses);
    free(cuda->host_steps);
    (void)cudaFreeHost(cuda->shown);
    cuda->steps = steps;
    cuda->losses = losses;
    cuda->host_steps = host;
    cuda->shown = shown;
    cuda->capacity = count;
    steps = losses = host = shown = NULL;
done:
    (void)cudaFreeHost(shown);
    lt_cuda_free(&cuda->base, steps);
    lt_cuda_free(&cuda->base, losses);
    free(host);
    return status;
}

latent_status lt_cuda_steps_begin(latent_context *ctx, lt_backend *backend, const lt_step *steps, int count) {
    lt_cuda *cuda = (lt_cuda *)backend;
    latent_status status = LATENT_OK;
    if (count < 0) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "a table of %d steps", count);
    }
    LT_TRY(lt_cuda_device_use(ctx, cuda));
    LT_TRY(grow(ctx, cuda, count));
    lt_cuda_state state = {.steps = cuda->steps,
                           .losses = cuda->losses,
                           .cursor = 0,
                           .bad_step = LT_NO_BAD_STEP,
                           .shown = cuda->shown};
    size_t bytes = (size_t)count * sizeof(lt_step);
    if (count) {
        memcpy(cuda->host_steps, steps, bytes);
        LT_TRY(lt_cuda_upload(ctx, backend, cuda->steps, steps, bytes));
        LT_TRY(lt_cuda_zero(ctx, backend, cuda->losses, (size_t)count * sizeof(float)));
    }
    LT_TRY(lt_cuda_upload(ctx, backend, cuda->state, &state, sizeof state));
    cuda->shown->steps = 0; /* the device is idle: an upload waits */
    cuda->shown->bad_step = LT_NO_BAD_STEP;
    cuda->step_count = count;
    cuda->cursor = 0;
    cuda->table++;
done:
    return status;
}

latent_status lt_cuda_step_check(latent_context *ctx, const lt_cuda *cuda) {
    if (cuda->cursor >= cuda->step_count) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "step %d of a table of %d steps", cuda->cursor,
                       cuda->step_count);
    }
    return LATENT_OK;
}

latent_status lt_cuda_step_next(latent_context *ctx, lt_backend *backend) {
    lt_cuda *cuda = (lt_cuda *)backend;
    latent_status status = LATENT_OK;
    LT_TRY(lt_cuda_step_check(ctx, cuda));
    lt_launch_step_next(cuda->stream, cuda->state);
    LT_LAUNCHED("step_next");
    if (cuda->capturing) {
        cuda->captured_steps++;
    } else {
        cuda->cursor++;
    }
done:
    return status;
}

latent_status lt_cuda_losses_read(latent_context *ctx, lt_backend *backend, int first, int count, float *out,
                                  int *bad_step) {
    lt_cuda *cuda = (lt_cuda *)backend;
    latent_status status = LATENT_OK;
    lt_cuda_state state;
    if (first < 0 || count < 0 || count > cuda->step_count - first) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "losses %d to %lld of a table of %d steps", first,
                       (long long)first + count, cuda->step_count);
    }
    *bad_step = -1;
    if (!cuda->state) {
        return LATENT_OK; /* no table yet, so nothing was asked for */
    }
    if (count) {
        LT_TRY(lt_cuda_download(ctx, backend, out, cuda->losses + first, (size_t)count * sizeof(float)));
    }
    LT_TRY(lt_cuda_download(ctx, backend, &state, cuda->state, sizeof state));
    *bad_step = state.bad_step == LT_NO_BAD_STEP ? -1 : state.bad_step;
done:
    return status;
}

latent_status lt_cuda_losses_poll(latent_context *ctx, lt_backend *backend, int first, float *out, int *count,
                                  int *bad_step) {
    lt_cuda *cuda = (lt_cuda *)backend;
    latent_status status = LATENT_OK;
    cudaError_t state = cudaStreamQuery(cuda->stream); /* a kernel that failed would never be done */
    *count = 0;
    *bad_step = -1;
    (void)cudaGetLastError(); /* "not ready" is remembered as an error */
    LT_CUDA(state == cudaErrorNotReady ? cudaSuccess : state);
    if (cuda->shown) {
        int done = __atomic_load_n(&cuda->shown->steps, __ATOMIC_ACQUIRE);
        *count = done > first ? done - first : 0;
        memcpy(out, cuda->shown->losses + first, (size_t)*count * sizeof(float));
        *bad_step = cuda->shown->bad_step == LT_NO_BAD_STEP ? -1 : cuda->shown->bad_step;
    }
done:
    return status;
}

void lt_cuda_steps_close(lt_cuda *cuda) {
    lt_cuda_free(&cuda->base, cuda->state);
    lt_cuda_free(&cuda->base, cuda->steps);
    lt_cuda_free(&cuda->base, cuda->losses);
    (void)cudaFreeHost(cuda->shown);
    free(cuda->host_steps);
}
