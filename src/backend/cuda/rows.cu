/* rows.cu: rows of features, between the encoder and the file (see backend/rows.h).
 *
 * Sums over a row are taken by one block in a fixed order; a column's statistics by one thread, row after
 * row, with every operation rounded by itself: the host's order and the host's bits.
 */
#include "backend/cuda/kernels.h"
#include "backend/cuda/reduce.cuh"

#include <cuda_bf16.h>

enum { TILE = 32, TILE_ROWS = 8, COLUMN_THREADS = 32, AHEAD = 32, FINISH_THREADS = 256 };

__device__ static inline float widen(float x) {
    return x;
}
__device__ static inline float widen(__nv_bfloat16 x) {
    return __bfloat162float(x);
}

/* Tiles of 32 pixels by 32 channels of an image change sides in shared memory. */
template <typename T>
__global__ static void gather_rows(const T *x, int pixels, int channels, int add, float *rows) {
    __shared__ float tile[TILE][TILE + 1];
    size_t image = (size_t)blockIdx.z * pixels * channels;
    int pixel = blockIdx.x * TILE, channel = blockIdx.y * TILE;
    for (int i = threadIdx.y; i < TILE; i += TILE_ROWS) {
        int p = pixel + i, c = channel + threadIdx.x;
        if (p < pixels && c < channels) {
            tile[i][threadIdx.x] = widen(x[image + (size_t)p * channels + c]);
        }
    }
    __syncthreads();
    for (int i = threadIdx.y; i < TILE; i += TILE_ROWS) {
        int p = pixel + threadIdx.x, c = channel + i;
        if (p < pixels && c < channels) {
            float *to = rows + image + (size_t)c * pixels + p;
            *to = add ? *to + tile[threadIdx.x][i] : tile[threadIdx.x][i];
        }
    }
}

extern "C" void lt_launch_rows_gather(cudaStream_t stream, lt_dtype type, const lt_rows_gather_call *call) {
    dim3 grid((unsigned)((call->pixels + TILE - 1) / TILE), (unsigned)((call->channels + TILE - 1) / TILE),
              (unsigned)call->n);
    dim3 block(TILE, TILE_ROWS);
    int pixels = (int)call->pixels, channels = (int)call->channels;
    if (type == LT_BF16) {
        gather_rows<<<grid, block, 0, stream>>>((const __nv_bfloat16 *)call->x, pixels, channels, call->add,
                                                call->rows);
    } else {
        gather_rows<<<grid, block, 0, stream>>>((const float *)call->x, pixels, channels, call->add,
                                                call->rows);
    }
}

/* A thread per column. Rows are fetched AHEAD at a time: nothing else hides the way to memory here. Every
 * column wants the same quotients, so that each lane divides once for all. */
__global__ static void add_columns(const float *rows, size_t n, size_t width, uint64_t before, double *means,
                                   double *m2s) {
    size_t column = (size_t)blockIdx.x * COLUMN_THREADS + threadIdx.x;
    bool there = column < width;
    double mean = there ? means[column] : 0, m2 = there ? m2s[column] : 0;
    for (size_t first = 0; first < n; first += AHEAD) {
        float x[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            x[i] = there && first + i < n ? rows[(first + i) * width + column] : 0;
        }
        double mine = 1.0 / (double)(before + first + threadIdx.x + 1);
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            double share = __shfl_sync(~0u, mine, i);
            if (first + i < n) {
                double distance = __dsub_rn(x[i], mean);
                mean = __dadd_rn(mean, __dmul_rn(distance, share));
                m2 = __dadd_rn(m2, __dmul_rn(distance, __dsub_rn(x[i], mean)));
            }
        }
    }
    if (there) {
        means[column] = mean;
        m2s[column] = m2;
    }
}

extern "C" void lt_launch_rows_columns(cudaStream_t stream, const lt_rows_columns_call *call) {
    unsigned blocks = (unsigned)((call->width + COLUMN_THREADS - 1) / COLUMN_THREADS);
    add_columns<<<blocks, COLUMN_THREADS, 0, stream>>>(call->rows, call->n, call->width, call->before,
                                                       call->mean, call->m2);
}

/* A block per row. */
__global__ static void finish_rows(lt_rows_finish_call call, unsigned long long *bad) {
    __shared__ double sums[FINISH_THREADS];
    float *x = call.rows + (size_t)blockIdx.x * call.width;
    double squares = 0;
    for (size_t i = threadIdx.x; i < call.width; i += FINISH_THREADS) {
        float value = x[i];
        if (call.mean) {
            value = __fdiv_rn(value - call.mean[i], call.deviation[i] + call.epsilon);
            x[i] = value;
        }
        squares = __dadd_rn(squares, __dmul_rn(value, value));
    }
    squares = lt_block_sum<FINISH_THREADS>(squares, sums);
    if (threadIdx.x == 0 && !isfinite(squares)) {
        atomicMin(bad, (unsigned long long)blockIdx.x);
    }
    if (call.l2 && squares > 0) {
        double length = sqrt(squares);
        for (size_t i = threadIdx.x; i < call.width; i += FINISH_THREADS) {
            x[i] = (float)(x[i] / length);
        }
    }
}

extern "C" void lt_launch_rows_finish(cudaStream_t stream, const lt_rows_finish_call *call,
                                      unsigned long long *bad) {
    finish_rows<<<(unsigned)call->n, FINISH_THREADS, 0, stream>>>(*call, bad);
}
