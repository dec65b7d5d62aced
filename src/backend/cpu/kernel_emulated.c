/* kernel_emulated.c: the bf16 loops with tiles in plain C, for tests on any processor. */
#include "backend/cpu/halves_plain.h"
#include "backend/cpu/tiles_emulated.h"

#define KERNELS lt_cpu_kernels_emulated
#define NAME    "amx-emulated"
#include "backend/cpu/bf16_body.h"
