/* bf16_body.h: all bf16 loops of the backend, written once: for AMX, and with emulated tiles for tests.
 *
 * The including file has brought a halves_*.h and a tiles_*.h; it defines KERNELS and NAME.
 */
#ifndef LT_BACKEND_CPU_BF16_BODY_H
#define LT_BACKEND_CPU_BF16_BODY_H

#include "backend/cpu/cpu.h"

#include "backend/cpu/body_common.h"

#include <string.h>

/* Values of either type; `left` channels remain from `at` on. A first layer reads fp32. */
static inline vec value_load(const lt_cpu_source *s, const void *from, size_t at, int left) {
    if (s->type == LT_BF16) {
        return vec_load_bf16((const uint16_t *)from + at, left);
    }
    return vec_load_part((const float *)from + at, left);
}
static inline float value_at(const lt_cpu_source *s, const void *from, size_t at) {
    if (s->type == LT_F32) {
        return ((const float *)from)[at];
    }
    union {
        uint32_t u;
        float f;
    } bits = {(uint32_t)((const uint16_t *)from)[at] << 16};
    return bits.f;
}
static inline vec result_load(const lt_cpu_result *r, size_t at, int left) {
    if (r->type == LT_BF16) {
        return vec_load_bf16((const uint16_t *)r->data + at, left);
    }
    return vec_load_part((const float *)r->data + at, left);
}
static inline void result_store(const lt_cpu_result *r, size_t at, vec value, int left) {
    if (r->type == LT_BF16) {
        vec_store_bf16((uint16_t *)r->data + at, value, left);
    } else {
        vec_store_part((float *)r->data + at, value, left);
    }
}

#include "backend/cpu/body_fetch.h"
/* after body_fetch.h */
#include "backend/cpu/body_bf16_fetch.h"
#include "backend/cpu/body_cells.h"
#include "backend/cpu/body_finish.h"
#include "backend/cpu/body_lowered.h"
#include "backend/cpu/body_reduce.h"
/* after body_bf16_fetch.h and body_lowered.h */
#include "backend/cpu/body_bf16_cells.h"
#include "backend/cpu/body_bf16_gemm.h"
/* after all of them */
#include "backend/cpu/body_bf16_pack.h"
#include "backend/cpu/body_bf16_weights.h"

const lt_cpu_kernels KERNELS = {
    .name = NAME,
    .block = 32,
    .group = 8, /* loading and storing sums costs as much as four products */
    .sums_bytes = 768 << 10,
    .activation = LT_BF16,
    .pack = pack,
    .pack_weights = pack_weights,
    .multiply = multiply,
    .finish = finish,
    .pack_left = pack_left,
    .pack_right = pack_right,
    .correlate = correlate,
    .reduce = reduce,
    .shift = shift,
    .spin = spin,
};

#endif
