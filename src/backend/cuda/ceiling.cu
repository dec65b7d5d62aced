/* ceiling.cu: a multiply-add loop that touches nothing but registers: what the arithmetic alone can do.
 *
 * Eight independent chains a thread hide the latency of each; 2048 threads a multiprocessor hide the rest.
 */
#include "backend/cuda/kernels.h"

enum { THREADS = 256, CHAINS = 8 };

__global__ static void multiply_add(int rounds, float a, float b, float *out) {
    float chain[CHAINS];
    for (int i = 0; i < CHAINS; i++) {
        chain[i] = (float)(threadIdx.x + i);
    }
#pragma unroll 4
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < CHAINS; i++) {
            chain[i] = fmaf(chain[i], a, b);
        }
    }
    float sum = 0;
    for (int i = 0; i < CHAINS; i++) {
        sum += chain[i];
    }
    out[blockIdx.x * THREADS + threadIdx.x] = sum; /* so that the loop has a purpose */
}

extern "C" double lt_launch_multiply_add(cudaStream_t stream, int blocks, int rounds, float *out) {
    multiply_add<<<blocks, THREADS, 0, stream>>>(rounds, 0.999f, 0.5f, out);
    return 2.0 * CHAINS * THREADS * (double)blocks * rounds;
}

extern "C" size_t lt_multiply_add_values(int blocks) {
    return (size_t)blocks * THREADS;
}
