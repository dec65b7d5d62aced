/* loss.cu: loss = mean of (y - t)^2 over the batch, dy = 2 (y - t) / count.
 *
 * Two stages in a fixed order: every block adds up its share in a tree, one block then adds the blocks'
 * sums. The number of blocks depends on the size alone, so any device gives the same bits. A thread adds
 * its few values in float, the trees are double: the sum of a million squares keeps its digits.
 */
#include "backend/cuda/kernels.h"
#include "backend/cuda/reduce.cuh"

#include <cuda_bf16.h>

__device__ static inline void put(float value, float *to) {
    *to = value;
}
__device__ static inline void put(float value, __nv_bfloat16 *to) {
    *to = __float2bfloat16_rn(value);
}

/* y and dy are float or bf16. */
template <typename T>
__global__ static void loss_partials(const T *y, const float *target, T *dy, size_t count, float scale,
                                     double *partials) {
    __shared__ double sums[LT_LOSS_THREADS];
    float sum = 0;
    size_t step = (size_t)gridDim.x * LT_LOSS_THREADS;
    for (size_t i = (size_t)blockIdx.x * LT_LOSS_THREADS + threadIdx.x; i < count; i += step) {
        float difference = (float)y[i] - target[i];
        sum += difference * difference;
        if (dy) {
            put(scale * difference, dy + i);
        }
    }
    double total = lt_block_sum<LT_LOSS_THREADS>(sum, sums);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = total;
    }
}

__global__ static void loss_finish(const lt_cuda_state *state, const double *partials, int partial_count,
                                   double count) {
    __shared__ double sums[LT_LOSS_THREADS];
    double sum = 0;
    for (int i = threadIdx.x; i < partial_count; i += LT_LOSS_THREADS) {
        sum += partials[i];
    }
    double total = lt_block_sum<LT_LOSS_THREADS>(sum, sums);
    if (threadIdx.x == 0) {
        state->losses[state->cursor] = (float)(total / count);
    }
}

extern "C" void lt_launch_loss(cudaStream_t stream, lt_dtype type, const void *y, const float *target,
                               void *dy, size_t count, double *partials) {
    float scale = (float)(2.0 / (double)count);
    int blocks = lt_loss_blocks(count);
    if (type == LT_BF16) {
        loss_partials<<<blocks, LT_LOSS_THREADS, 0, stream>>>((const __nv_bfloat16 *)y, target,
                                                              (__nv_bfloat16 *)dy, count, scale, partials);
    } else {
        loss_partials<<<blocks, LT_LOSS_THREADS, 0, stream>>>((const float *)y, target, (float *)dy, count,
                                                              scale, partials);
    }
}

extern "C" void lt_launch_loss_finish(cudaStream_t stream, const lt_cuda_state *state, const double *partials,
                                      int partial_count, size_t count) {
    loss_finish<<<1, LT_LOSS_THREADS, 0, stream>>>(state, partials, partial_count, (double)count);
}
