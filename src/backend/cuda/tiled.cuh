/* tiled.cuh: the product of two tiles in shared memory, as all kernels of the generation `tiled` use it.
 *
 * A convolution and both its gradients are sums over a long index (taps and channels, or pixels): matrix
 * products whose factors are looked up instead of stored. A block of 256 threads computes BM x BN outputs
 * and walks the sum DEPTH terms at a time: it loads a strip of each factor into shared memory once, and
 * every number there is used BN or BM times. Each thread keeps TM x TN outputs in registers, so that a
 * number fetched from shared memory is used TN or TM times more. Against `basic`, where each number is
 * used once per fetch, that is 64 times less traffic from the caches.
 *
 * Two shapes: 64 x 64 outputs for ordinary convs, and 256 x 4 (or 4 x 256) where one side has few channels,
 * as the last layer's three: there a square tile would compute mostly padding.
 */
#ifndef LT_BACKEND_CUDA_TILED_CUH
#define LT_BACKEND_CUDA_TILED_CUH

#include "backend/cuda/kernels.h"

enum { TILED_THREADS = 256, TILED_DEPTH = 16 };

template <int BM_, int BN_, int TM_, int TN_> struct tile_shape {
    static constexpr int BM = BM_, BN = BN_, TM = TM_, TN = TN_;
    static constexpr int COLUMNS = BN / TN; /* threads side by side */
    static_assert((BM / TM) * (BN / TN) == TILED_THREADS, "every thread has a block of outputs");
};
typedef tile_shape<64, 64, 4, 4> square_tile;
typedef tile_shape<256, 4, 4, 1> tall_tile;
typedef tile_shape<4, 256, 4, 1> wide_tile;

/* Rows padded by four floats: 16-byte aligned, and a column of the tile is spread over the banks. */
template <class T> struct tile_memory {
    float a[TILED_DEPTH][T::BM + 4];
    float b[TILED_DEPTH][T::BN + 4];
};

/* sums[i][j] += a[.][row + i] * b[.][column + j] over the strip. */
template <class T>
__device__ static inline void tile_multiply(const tile_memory<T> &tile, float sums[T::TM][T::TN]) {
    int row = (int)threadIdx.x / T::COLUMNS * T::TM, column = (int)threadIdx.x % T::COLUMNS * T::TN;
#pragma unroll
    for (int d = 0; d < TILED_DEPTH; d++) {
        float a[T::TM], b[T::TN];
        *(float4 *)a = *(const float4 *)&tile.a[d][row]; /* TM is 4 in every shape */
        if (T::TN == 4) {
            *(float4 *)b = *(const float4 *)&tile.b[d][column];
        } else {
            b[0] = tile.b[d][column];
        }
#pragma unroll
        for (int i = 0; i < T::TM; i++) {
#pragma unroll
            for (int j = 0; j < T::TN; j++) {
                sums[i][j] += a[i] * b[j];
            }
        }
    }
}

/* Four consecutive numbers; those at and past `room` are 0. 16 bytes at once where the address allows. */
__device__ static inline float4 load_four(const float *from, int room, bool aligned) {
    if (aligned && room >= 4) {
        return *(const float4 *)from;
    }
    float4 four = make_float4(0, 0, 0, 0);
    four.x = room > 0 ? from[0] : 0;
    four.y = room > 1 ? from[1] : 0;
    four.z = room > 2 ? from[2] : 0;
    four.w = room > 3 ? from[3] : 0;
    return four;
}

/* Four numbers at a multiple of 4 of a row that has `length`, a multiple of 4; 0 past its end, or where there
 * is no row. */
__device__ static inline float4 quad_or_zero(const float *row, int at, int length) {
    return row && at < length ? *(const float4 *)(row + at) : make_float4(0, 0, 0, 0);
}

/* Four terms of the sum for one row or column: down a column of the strip. */
__device__ static inline void store_down(float *to, int stride, float4 four) {
    to[0] = four.x;
    to[stride] = four.y;
    to[2 * stride] = four.z;
    to[3 * stride] = four.w;
}

#endif
