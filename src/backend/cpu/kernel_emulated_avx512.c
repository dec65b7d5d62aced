/* kernel_emulated_avx512.c: the bf16 loops as AMX runs them, vectors included, with tiles in plain C. */
#include "backend/cpu/halves_avx512.h"
#include "backend/cpu/tiles_emulated.h"

#define KERNELS lt_cpu_kernels_emulated_avx512
#define NAME    "amx-emulated"
#include "backend/cpu/bf16_body.h"
