/* tensor_mma.cuh: 128x128 results on tensor cores, and the way of their operands through shared memory.
 *
 * A slice of an operand is 128 rows of 32 bf16. A row's four pieces of 16 bytes are permuted so that the
 * eight rows that ldmatrix reads at once lie in different banks. Four warps take 64x64 results each, with the
 * instruction m16n8k16. Needs sm_80.
 */
#ifndef LT_BACKEND_CUDA_TENSOR_MMA_CUH
#define LT_BACKEND_CUDA_TENSOR_MMA_CUH

#include "backend/cuda/tensor.h"

#include <cuda_bf16.h>

enum { TILE = LT_TENSOR_TILE, SLICE = LT_TENSOR_SLICE, THREADS = 128 };
enum { ROW_BYTES = SLICE * 2, TILE_BYTES = TILE * ROW_BYTES, PIECES = ROW_BYTES / 16 };
enum { LOADS = TILE * PIECES / THREADS }; /* pieces of an operand's slice that a thread brings in */

typedef __nv_bfloat16 bf16;

__device__ static inline bf16 narrow(float x) {
    return __float2bfloat16_rn(x);
}
__device__ static inline bf16 narrow(bf16 x) {
    return x;
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

/* ---- The instructions -------------------------------------------------------------------------- */

/* 16 bytes to shared memory; zeros, and nothing is read, where they are not there. */
__device__ static inline void copy_16(uint32_t to, const void *from, bool there) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0)
                 : "memory");
}
__device__ static inline void copies_end_group(void) {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
/* Until at most `LEFT` groups are under way. */
template <int LEFT> __device__ static inline void copies_wait(void) {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

__device__ static inline void load_matrices(uint32_t to[4], uint32_t from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

__device__ static inline void multiply_add(float sums[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* A NaN stays one. */
__device__ static inline float larger(float a, float b) {
    float c;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
}

/* ---- Products ---------------------------------------------------------------------------------- */

/* Where piece `piece` of row `row` of a slice lies. */
__device__ static inline uint32_t piece_at(int row, int piece) {
    return (uint32_t)(row * ROW_BYTES + (piece ^ (row >> 1 & 3)) * 16);
}

/* A warp's 64x64 sums: [16 rows][8 columns] results of four numbers a thread. */
struct sums {
    float of[4][8][4];
};

/* What a warp multiplies at once: 64 rows and 64 columns, 16 deep. */
struct factors {
    uint32_t left[4][4], right[4][4];
};

/* Half `k`, 0 or 1, of a slice. */
__device__ static inline void load_factors(uint32_t a, uint32_t b, int k, factors &to) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int row = warp % 2 * 64 + lane % 16, column = warp / 2 * 64 + lane / 16 * 8 + lane % 8;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        load_matrices(to.left[i], a + piece_at(row + 16 * i, 2 * k + lane / 16));
        load_matrices(to.right[i], b + piece_at(column + 16 * i, 2 * k + lane / 8 % 2));
    }
}

__device__ static inline void multiply(const factors &f, sums &acc) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            multiply_add(acc.of[i][2 * j], f.left[i], f.right[j][0], f.right[j][1]);
            multiply_add(acc.of[i][2 * j + 1], f.left[i], f.right[j][2], f.right[j][3]);
        }
    }
}
#endif

#endif
