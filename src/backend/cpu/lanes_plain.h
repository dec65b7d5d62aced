/* lanes_plain.h: vectors of 4 floats for the bodies (see kernel_body.h), in what gcc and clang compile for
 * any processor. Multiply and add round separately here. */
#ifndef LT_BACKEND_CPU_LANES_PLAIN_H
#define LT_BACKEND_CPU_LANES_PLAIN_H

#include "backend/cpu/cpu.h"

#include <stdint.h>
#include <string.h>

enum { LANES = 4, TILE_ROWS = 4, TILE_VECS = 3 };

typedef float vec __attribute__((vector_size(16)));
typedef int32_t codes __attribute__((vector_size(16))); /* a small number per lane */

static inline vec vec_set(float value) {
    return (vec){value, value, value, value};
}
static inline vec vec_zero(void) {
    return vec_set(0);
}
static inline vec vec_load(const float *p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline void vec_store(float *p, vec v) {
    memcpy(p, &v, sizeof v);
}
static inline vec vec_fma(vec a, vec b, vec c) {
    return a * b + c;
}
static inline vec vec_load_part(const float *p, int n) {
    float lanes[LANES] = {0};
    for (int i = 0; i < LANES && i < n; i++) {
        lanes[i] = p[i];
    }
    return vec_load(lanes);
}
static inline void vec_store_part(float *p, vec v, int n) {
    float lanes[LANES];
    vec_store(lanes, v);
    for (int i = 0; i < LANES && i < n; i++) {
        p[i] = lanes[i];
    }
}
/* v where the lane of `where` is all ones, else 0 */
static inline vec vec_where(codes where, vec v) {
    return (vec)((codes)v & where);
}
/* max(v, 0); a NaN stays one */
static inline vec vec_relu(vec v) {
    return vec_where(~(v < vec_zero()), v);
}
/* v where y > 0, else 0 */
static inline vec vec_where_positive(vec y, vec v) {
    return vec_where(y > vec_zero(), v);
}
static inline codes codes_set(int value) {
    return (codes){value, value, value, value};
}
static inline codes codes_load(const uint8_t *p, int n) {
    codes at = codes_set(0);
    for (int i = 0; i < LANES && i < n; i++) {
        at[i] = p[i];
    }
    return at;
}
static inline void codes_store(uint8_t *p, codes at, int n) {
    for (int i = 0; i < LANES && i < n; i++) {
        p[i] = (uint8_t)at[i];
    }
}
/* v where the code is `code`, else 0 */
static inline vec vec_where_code(codes at, int code, vec v) {
    return vec_where(at == codes_set(code), v);
}
/* The first maximum, or the first NaN: `value` takes over where it is larger. */
static inline void vec_maximum(vec *best, codes *at, vec value, int code) {
    codes take = (*best == *best) & ~(value <= *best);
    *best = (vec)(((codes)value & take) | ((codes)*best & ~take));
    *at = (codes_set(code) & take) | (*at & ~take);
}
/* `code` where v <= 0 */
static inline codes codes_where_dead(codes at, vec v, int code) {
    codes take = v <= vec_zero();
    return (codes_set(code) & take) | (at & ~take);
}

/* ---- bf16 -------------------------------------------------------------------------------------- */

static inline vec vec_load_bf16(const uint16_t *p, int n) {
    codes bits = codes_set(0);
    for (int i = 0; i < LANES && i < n; i++) {
        bits[i] = (int32_t)((uint32_t)p[i] << 16);
    }
    return (vec)bits;
}
static inline void vec_store_bf16(uint16_t *p, vec v, int n) {
    for (int i = 0; i < LANES && i < n; i++) {
        p[i] = lt_cpu_bf16(v[i]);
    }
}
/* Lanes (a, b) as pairs of bf16; `exact`: they are bf16 numbers already, and rounding changes nothing. */
static inline void vec_store_pairs(uint32_t *p, vec a, vec b, int exact) {
    (void)exact;
    for (int i = 0; i < LANES; i++) {
        p[i] = (uint32_t)lt_cpu_bf16(b[i]) << 16 | lt_cpu_bf16(a[i]);
    }
}

#endif
