/* kernel_amx.c: the bf16 loops for AMX. */
#include "backend/cpu/halves_avx512.h"
#include "backend/cpu/tiles_amx.h"

#define KERNELS lt_cpu_kernels_amx
#define NAME    "amx"
#include "backend/cpu/bf16_body.h"
