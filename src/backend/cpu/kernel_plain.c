/* kernel_plain.c: the fp32 loops for any processor. */
#include "backend/cpu/lanes_plain.h"

#define KERNELS lt_cpu_kernels_plain
#define NAME    "plain"
#include "backend/cpu/kernel_body.h"
