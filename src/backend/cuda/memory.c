/* memory.c: device memory, and copies in the order of the stream.
 *
 * A plan asks for a few large blocks and carves them itself, so there is no pool here: each block is one
 * cudaMalloc. Running out is told in numbers, and memory_free lets the plan say which batch would fit.
 */
#include "backend/cuda/cuda.h"

static double mebibytes(size_t bytes) {
    return (double)bytes / (1 << 20);
}

latent_status lt_cuda_alloc(latent_context *ctx, lt_backend *backend, size_t bytes, void **out) {
    lt_cuda *cuda = (lt_cuda *)backend;
    latent_status status = LATENT_OK;
    *out = NULL;
    LT_TRY(lt_cuda_device_use(ctx, cuda));
    cudaError_t error = cudaMalloc(out, bytes ? bytes : 1);
    if (error == cudaErrorMemoryAllocation) {
        size_t free_bytes = 0, total = 0;
        (void)cudaGetLastError();
        *out = NULL;
        (void)cudaMemGetInfo(&free_bytes, &total);
        status =
            lt_fail(ctx, LATENT_ERROR_MEMORY,
                    "device %d (%s) is out of memory: %.1f MiB are needed in one piece, %.1f of its %.1f "
                    "MiB are free",
                    cuda->device, cuda->name, mebibytes(bytes), mebibytes(free_bytes), mebibytes(total));
        goto done;
    }
    LT_CUDA(error);
done:
    return status;
}

void lt_cuda_free(lt_backend *backend, void *memory) {
    (void)backend;
    if (memory) {
        (void)cudaFree(memory); /* waits for whatever still uses it */
        (void)cudaGetLastError();
    }
}

/* A little is kept back: cudaMalloc rounds up, and the libraries take some for themselves. */
uint64_t lt_cuda_memory_free(lt_backend *backend) {
    const size_t kept = (size_t)64 << 20;
    size_t free_bytes = 0, total = 0;
    (void)backend;
    if (cudaMemGetInfo(&free_bytes, &total) != cudaSuccess) {
        (void)cudaGetLastError();
    }
    return free_bytes > kept ? free_bytes - kept : 0;
}

latent_status lt_cuda_zero(latent_context *ctx, lt_backend *backend, void *memory, size_t bytes) {
    lt_cuda *cuda = (lt_cuda *)backend;
    latent_status status = LATENT_OK;
    if (bytes) {
        LT_CUDA(cudaMemsetAsync(memory, 0, bytes, cuda->stream));
    }
done:
    return status;
}

latent_status lt_cuda_upload(latent_context *ctx, lt_backend *backend, void *to, const void *from,
                             size_t bytes) {
    lt_cuda *cuda = (lt_cuda *)backend;
    latent_status status = LATENT_OK;
    LT_TRY(lt_cuda_device_use(ctx, cuda));
    if (bytes) {
        LT_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, cuda->stream));
    }
    LT_CUDA(cudaStreamSynchronize(cuda->stream));
done:
    return status;
}

latent_status lt_cuda_download(latent_context *ctx, lt_backend *backend, void *to, const void *from,
                               size_t bytes) {
    lt_cuda *cuda = (lt_cuda *)backend;
    latent_status status = LATENT_OK;
    LT_TRY(lt_cuda_device_use(ctx, cuda));
    if (bytes) {
        LT_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, cuda->stream));
    }
    LT_CUDA(cudaStreamSynchronize(cuda->stream));
done:
    return status;
}

latent_status lt_cuda_synchronize(latent_context *ctx, lt_backend *backend) {
    lt_cuda *cuda = (lt_cuda *)backend;
    latent_status status = LATENT_OK;
    LT_CUDA(cudaStreamSynchronize(cuda->stream));
done:
    return status;
}
