/* reduce.cuh: the sum of one value per thread of a block, always in the same order. */
#ifndef LT_BACKEND_CUDA_REDUCE_CUH
#define LT_BACKEND_CUDA_REDUCE_CUH

/* Every thread calls it; thread 0 gets the sum. `sums` is shared memory for one double per thread. */
template <int THREADS> __device__ static inline double lt_block_sum(double value, double *sums) {
    sums[threadIdx.x] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if ((int)threadIdx.x < half) {
            sums[threadIdx.x] += sums[threadIdx.x + half];
        }
        __syncthreads();
    }
    return sums[0];
}

#endif
