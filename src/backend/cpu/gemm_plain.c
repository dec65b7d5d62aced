/* gemm_plain.c: the matrix product's block for plain C. */
#include "backend/cpu/lanes_plain.h"

#define GEMM lt_cpu_gemm_plain
#include "backend/cpu/gemm_body.h"
