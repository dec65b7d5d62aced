/* fused_tile.cuh: the inner loop of the generation `fused`: 128 x BN outputs a block, 8 x 8 a thread.
 *
 * What it improves on tiled.cuh:
 *   - Each number fetched from shared memory serves 8 products instead of 4: two 16-byte loads of each
 *     factor feed 64 multiply-adds, so the arithmetic units and not shared memory set the pace.
 *   - Two strips in shared memory. While one is multiplied, the next is on its way from global memory into
 *     registers; it is stored into the other strip when the multiplying is done: one barrier a strip, and
 *     the latency of memory is hidden by 512 multiply-adds.
 *   - What is loaded may be changed on its way from register to shared memory. That is where relu's and
 *     the pool's way back happen (fused_loaders.cuh), so their tensors are never written out.
 * What it costs: 128 registers a thread, so 16 warps a multiprocessor at most, and tiles so large that a
 * small layer has too few of them: then the sum is split over blocks and a second kernel adds the pieces.
 *
 * Eight warps, four down and two across; a warp's 32 threads, four down and eight across, each with rows
 * r, r+16 and columns c, c+32 by four. A warp's load of the left factor is four addresses, of the right one
 * eight in a row: no bank conflicts. Four rows of a thread are consecutive, which makes them one pool window
 * where the rows are ordered so.
 */
#ifndef LT_BACKEND_CUDA_FUSED_TILE_CUH
#define LT_BACKEND_CUDA_FUSED_TILE_CUH

#include "backend/cuda/fused.h"
#include "backend/cuda/kernels.h"

enum { FUSED_THREADS = 256, FUSED_DEPTH = LT_FUSED_STRIP, FUSED_BM = LT_FUSED_BM };

/* Rows of the strips, padded so that stores down a column hit different banks. */
enum { FUSED_A_STRIDE = FUSED_BM + 4 };

template <int BN> struct fused_memory {
    float a[2][FUSED_DEPTH][FUSED_A_STRIDE];
    float b[2][FUSED_DEPTH][BN + 4];
};

template <int BN> struct fused_sums {
    static constexpr int COLUMNS = BN / 16; /* of a thread: 8 or 4 */
    float at[8][COLUMNS];
};

/* The thread's first row and column in the tile. Its rows are row + {0..3, 16..19}, its columns
 * column + {0..3} and, in a tile of 128, + {32..35}. */
__device__ static inline int fused_row() {
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    return warp / 2 * 32 + lane / 8 * 4;
}
template <int BN> __device__ static inline int fused_column() {
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    return warp % 2 * (BN / 2) + lane % 8 * 4;
}

/* One strip: sums += a^T b. */
template <int BN>
__device__ static inline void fused_strip(const float (*__restrict__ a)[FUSED_A_STRIDE],
                                          const float (*__restrict__ b)[BN + 4], fused_sums<BN> &sums) {
    constexpr int COLUMNS = fused_sums<BN>::COLUMNS;
    int row = fused_row(), column = fused_column<BN>();
#pragma unroll
    for (int d = 0; d < FUSED_DEPTH; d++) {
        float left[8], right[COLUMNS];
        *(float4 *)left = *(const float4 *)&a[d][row];
        *(float4 *)(left + 4) = *(const float4 *)&a[d][row + 16];
        *(float4 *)right = *(const float4 *)&b[d][column];
        if (BN == 128) {
            *(float4 *)(right + COLUMNS - 4) = *(const float4 *)&b[d][column + 32];
        }
#pragma unroll
        for (int i = 0; i < 8; i++) {
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                sums.at[i][j] = fmaf(left[i], right[j], sums.at[i][j]);
            }
        }
    }
}

/* All strips. The loader is asked to fetch() them in order into its registers, and to store() what it
 * holds; `each` sees every strip of the left factor once it is there. */
template <int BN, class Loader, class Each>
__device__ static inline void fused_multiply(fused_memory<BN> &memory, Loader &loader, int strips,
                                             fused_sums<BN> &sums, Each each) {
    loader.fetch();
    loader.store(memory.a[0], memory.b[0]);
    __syncthreads();
    for (int strip = 0; strip < strips; strip++) {
        int now = strip & 1, next = now ^ 1;
        bool more = strip + 1 < strips;
        if (more) {
            loader.fetch();
        }
        fused_strip<BN>(memory.a[now], memory.b[now], sums);
        each(memory.a[now]);
        if (more) {
            loader.store(memory.a[next], memory.b[next]);
        }
        __syncthreads();
    }
}

#endif
