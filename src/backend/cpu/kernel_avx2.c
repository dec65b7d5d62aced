/* kernel_avx2.c: the fp32 loops for AVX2 and FMA. */
#include "backend/cpu/lanes_avx2.h"

#define KERNELS lt_cpu_kernels_avx2
#define NAME    "avx2"
#include "backend/cpu/kernel_body.h"
