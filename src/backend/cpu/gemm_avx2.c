/* gemm_avx2.c: the matrix product's block for AVX2. */
#include "backend/cpu/lanes_avx2.h"

#define GEMM lt_cpu_gemm_avx2
#include "backend/cpu/gemm_body.h"
