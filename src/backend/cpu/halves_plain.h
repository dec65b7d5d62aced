/* halves_plain.h: 32 bf16 numbers at a time, as bits: packing moves and masks them, and never calculates. */
#ifndef LT_BACKEND_CPU_HALVES_PLAIN_H
#define LT_BACKEND_CPU_HALVES_PLAIN_H

#include "backend/cpu/lanes_plain.h"

typedef struct halves {
    uint16_t at[32];
} halves;
typedef struct pairs {
    uint32_t at[16];
} pairs;

static inline halves halves_zero(void) {
    return (halves){{0}};
}
static inline halves halves_load(const uint16_t *p, int n) {
    halves v = halves_zero();
    memcpy(v.at, p, (size_t)(n < 32 ? n : 32) * sizeof *p);
    return v;
}
static inline void halves_store_part(uint16_t *p, halves v, int n) {
    memcpy(p, v.at, (size_t)(n < 32 ? n : 32) * sizeof *p);
}
static inline void halves_store(uint16_t *p, halves v) {
    halves_store_part(p, v, 32);
}
/* n floats, rounded */
static inline halves halves_round(const float *p, int n) {
    halves v = halves_zero();
    for (int i = 0; i < 32 && i < n; i++) {
        v.at[i] = lt_cpu_bf16(p[i]);
    }
    return v;
}
/* v where y > 0, else 0: the positive numbers are the bits 1 to 0x7F80, infinity. */
static inline halves halves_where_positive(halves y, halves v) {
    for (int i = 0; i < 32; i++) {
        v.at[i] = y.at[i] >= 1 && y.at[i] <= 0x7F80 ? v.at[i] : 0;
    }
    return v;
}
/* v where the code, a byte each, is `code`, else 0 */
static inline halves halves_where_code(const uint8_t *codes_at, int n, int code, halves v) {
    for (int i = 0; i < 32 && i < n; i++) {
        v.at[i] = codes_at[i] == code ? v.at[i] : 0;
    }
    return v;
}
/* Lanes (a, b) as pairs: of the first 16 lanes, and of the last. */
static inline void halves_zip(halves a, halves b, pairs *low, pairs *high) {
    for (int i = 0; i < 16; i++) {
        low->at[i] = (uint32_t)b.at[i] << 16 | a.at[i];
        high->at[i] = (uint32_t)b.at[16 + i] << 16 | a.at[16 + i];
    }
}
static inline void pairs_store(uint32_t *p, pairs v) {
    memcpy(p, v.at, sizeof v.at);
}
/* LANES pairs, the numbers of each added. */
static inline vec vec_pair_sum(const uint32_t *p) {
    codes first, second;
    for (int i = 0; i < LANES; i++) {
        first[i] = (int32_t)(p[i] << 16);
        second[i] = (int32_t)(p[i] & 0xFFFF0000);
    }
    return (vec)first + (vec)second;
}
static inline void transpose_16x16(const uint32_t *from, uint32_t *to) {
    for (int i = 0; i < 16; i++) {
        for (int j = 0; j < 16; j++) {
            to[16 * j + i] = from[16 * i + j];
        }
    }
}

#endif
