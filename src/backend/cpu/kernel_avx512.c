/* kernel_avx512.c: the fp32 loops for AVX-512. */
#include "backend/cpu/lanes_avx512.h"

#define KERNELS lt_cpu_kernels_avx512
#define NAME    "avx512"
#include "backend/cpu/kernel_body.h"
