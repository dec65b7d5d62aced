/* ceiling.c: what this GPU can do at best, measured: fp32 multiply-adds from registers, and a copy much
 * larger than its cache. The best of a few tries: a ceiling is not an average.
 */
#include "backend/cuda/cuda.h"

enum { TRIES = 5, ROUNDS = 4096, BLOCKS_PER_PROCESSOR = 32 };

static const size_t copy_bytes = (size_t)1 << 30;

typedef struct stopwatch {
    cudaEvent_t begin, end;
} stopwatch;

static latent_status measure_flops(latent_context *ctx, lt_cuda *cuda, const stopwatch *watch, double *best) {
    latent_status status = LATENT_OK;
    int processors = 0;
    void *out = NULL;
    LT_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, cuda->device));
    int blocks = processors * BLOCKS_PER_PROCESSOR;
    LT_TRY(lt_cuda_alloc(ctx, &cuda->base, lt_multiply_add_values(blocks) * sizeof(float), &out));
    for (int i = 0; i <= TRIES; i++) { /* the first one warms up */
        float milliseconds = 0;
        LT_CUDA(cudaEventRecord(watch->begin, cuda->stream));
        double flops = lt_launch_multiply_add(cuda->stream, blocks, ROUNDS, out);
        LT_LAUNCHED("multiply_add");
        LT_CUDA(cudaEventRecord(watch->end, cuda->stream));
        LT_CUDA(cudaEventSynchronize(watch->end));
        LT_CUDA(cudaEventElapsedTime(&milliseconds, watch->begin, watch->end));
        double rate = milliseconds > 0 ? flops / (1e-3 * (double)milliseconds) : 0;
        *best = i > 0 && rate > *best ? rate : *best;
    }
done:
    lt_cuda_free(&cuda->base, out);
    return status;
}

static latent_status measure_bytes(latent_context *ctx, lt_cuda *cuda, const stopwatch *watch, double *best) {
    latent_status status = LATENT_OK;
    void *from = NULL, *to = NULL;
    size_t bytes = copy_bytes;
    while (2 * bytes > lt_cuda_memory_free(&cuda->base) && bytes > 1 << 20) {
        bytes /= 2;
    }
    LT_TRY(lt_cuda_alloc(ctx, &cuda->base, bytes, &from));
    LT_TRY(lt_cuda_alloc(ctx, &cuda->base, bytes, &to));
    LT_TRY(lt_cuda_zero(ctx, &cuda->base, from, bytes));
    for (int i = 0; i <= TRIES; i++) {
        float milliseconds = 0;
        LT_CUDA(cudaEventRecord(watch->begin, cuda->stream));
        LT_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, cuda->stream));
        LT_CUDA(cudaEventRecord(watch->end, cuda->stream));
        LT_CUDA(cudaEventSynchronize(watch->end));
        LT_CUDA(cudaEventElapsedTime(&milliseconds, watch->begin, watch->end));
        double rate = milliseconds > 0 ? 2.0 * (double)bytes / (1e-3 * (double)milliseconds) : 0;
        *best = i > 0 && rate > *best ? rate : *best;
    }
done:
    lt_cuda_free(&cuda->base, from);
    lt_cuda_free(&cuda->base, to);
    return status;
}

latent_status lt_cuda_ceiling(latent_context *ctx, lt_backend *backend, lt_ceiling *out) {
    lt_cuda *cuda = (lt_cuda *)backend;
    latent_status status = LATENT_OK;
    stopwatch watch = {NULL, NULL};
    *out = (lt_ceiling){0, 0};
    LT_TRY(lt_cuda_device_use(ctx, cuda));
    LT_CUDA(cudaEventCreate(&watch.begin));
    LT_CUDA(cudaEventCreate(&watch.end));
    LT_TRY(measure_flops(ctx, cuda, &watch, &out->flops));
    LT_TRY(measure_bytes(ctx, cuda, &watch, &out->bytes));
done:
    if (watch.begin) {
        (void)cudaEventDestroy(watch.begin);
    }
    if (watch.end) {
        (void)cudaEventDestroy(watch.end);
    }
    return status;
}
