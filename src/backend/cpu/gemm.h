/* gemm.h: the inside of the matrix product: what one instruction set supplies. See gemm.c. */
#ifndef LT_BACKEND_CPU_GEMM_H
#define LT_BACKEND_CPU_GEMM_H

#include <stddef.h>

enum {
    LT_GEMM_DEPTH = 384,   /* of k at a time: a register tile's operands stay in the L1 cache */
    LT_GEMM_COLUMNS = 480, /* of C in one task: their packed part of B stays in the L2 cache */
    LT_GEMM_ROWS = 512     /* of C in one task, at most */
};

typedef struct lt_cpu_gemm {
    int rows, columns; /* of a register tile */
    /* C[m][n] = A B^T, or with `add` C += A B^T, for n and k up to LT_GEMM_*. packed: k floats for each row
     * of a tile and each column of B, rounded up to whole tiles. */
    void (*block)(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb,
                  float *c, size_t ldc, int add, float *packed);
} lt_cpu_gemm;

extern const lt_cpu_gemm lt_cpu_gemm_plain, lt_cpu_gemm_avx2, lt_cpu_gemm_avx512;

#endif
