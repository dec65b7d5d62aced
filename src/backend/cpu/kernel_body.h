/* kernel_body.h: all fp32 loops of the backend, written once and compiled once per instruction set.
 *
 * The including file has brought a lanes_*.h: a vector type of LANES floats (16 is a multiple of it) and a
 * dozen operations. It defines KERNELS, the name of the table, and NAME, what a person calls it.
 */
#ifndef LT_BACKEND_CPU_KERNEL_BODY_H
#define LT_BACKEND_CPU_KERNEL_BODY_H

#include "backend/cpu/cpu.h"

#include "backend/cpu/body_common.h"

#include <string.h>

/* Values as fp32 tensors hold them; `left` channels remain from `at` on. */
static inline vec value_load(const lt_cpu_source *s, const void *from, size_t at, int left) {
    (void)s;
    const float *p = (const float *)from + at;
    return left >= LANES ? vec_load(p) : vec_load_part(p, left);
}
static inline float value_at(const lt_cpu_source *s, const void *from, size_t at) {
    (void)s;
    return ((const float *)from)[at];
}
static inline vec result_load(const lt_cpu_result *r, size_t at, int left) {
    const float *p = (const float *)r->data + at;
    return left >= LANES ? vec_load(p) : vec_load_part(p, left);
}
static inline void result_store(const lt_cpu_result *r, size_t at, vec value, int left) {
    float *p = (float *)r->data + at;
    if (left >= LANES) {
        vec_store(p, value);
    } else {
        vec_store_part(p, value, left);
    }
}

#include "backend/cpu/body_fetch.h"
/* after body_fetch.h */
#include "backend/cpu/body_cells.h"
#include "backend/cpu/body_finish.h"
#include "backend/cpu/body_gemm.h"
#include "backend/cpu/body_lowered.h"
#include "backend/cpu/body_pack.h"
#include "backend/cpu/body_reduce.h"
/* after body_pack.h and body_lowered.h */
#include "backend/cpu/body_left.h"
#include "backend/cpu/body_weights.h"

const lt_cpu_kernels KERNELS = {
    .name = NAME,
    .block = 16,
    .group = 2, /* 128 cells: three blocks of them stay in the L1 cache */
    .sums_bytes = 288 << 10,
    .activation = LT_F32,
    .pack = pack,
    .pack_weights = pack_weights,
    .multiply = multiply,
    .finish = finish,
    .pack_left = pack_left,
    .pack_right = pack,
    .correlate = correlate,
    .reduce = reduce,
    .shift = shift,
    .spin = spin,
};

#endif
