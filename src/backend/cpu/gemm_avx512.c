/* gemm_avx512.c: the matrix product's block for AVX-512. */
#include "backend/cpu/lanes_avx512.h"

#define GEMM lt_cpu_gemm_avx512
#include "backend/cpu/gemm_body.h"
