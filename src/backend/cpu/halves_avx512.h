/* halves_avx512.h: 32 bf16 numbers at a time, as bits: packing moves and masks them, and never calculates. */
#ifndef LT_BACKEND_CPU_HALVES_AVX512_H
#define LT_BACKEND_CPU_HALVES_AVX512_H

#include "backend/cpu/lanes_avx512.h"

typedef __m512i halves; /* 32 bf16 numbers */
typedef __m512i pairs;  /* 16 pairs of them */

static inline __mmask32 first_halves(int n) {
    return n >= 32 ? 0xFFFFFFFF : (__mmask32)((1u << n) - 1);
}
static inline halves halves_zero(void) {
    return _mm512_setzero_si512();
}
static inline halves halves_load(const uint16_t *p, int n) {
    return n >= 32 ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi16(first_halves(n), p);
}
static inline void halves_store(uint16_t *p, halves v) {
    _mm512_storeu_si512(p, v);
}
static inline void halves_store_part(uint16_t *p, halves v, int n) {
    _mm512_mask_storeu_epi16(p, first_halves(n), v);
}
/* n floats, rounded */
static inline halves halves_round(const float *p, int n) {
    __m256i low = _mm512_cvtepi32_epi16(_mm512_srli_epi32(vec_round(vec_load_part(p, n)), 16));
    if (n <= 16) {
        return _mm512_zextsi256_si512(low);
    }
    __m256i high = _mm512_cvtepi32_epi16(_mm512_srli_epi32(vec_round(vec_load_part(p + 16, n - 16)), 16));
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
/* v where y > 0, else 0: the positive numbers are the bits 1 to 0x7F80, infinity. */
static inline halves halves_where_positive(halves y, halves v) {
    __m512i from_0 = _mm512_sub_epi16(y, _mm512_set1_epi16(1));
    return _mm512_maskz_mov_epi16(_mm512_cmplt_epu16_mask(from_0, _mm512_set1_epi16(0x7F80)), v);
}
/* v where the code, a byte each, is `code`, else 0 */
static inline halves halves_where_code(const uint8_t *codes_at, int n, int code, halves v) {
    __m256i at = _mm256_maskz_loadu_epi8(first_halves(n), codes_at);
    return _mm512_maskz_mov_epi16(_mm256_cmpeq_epi8_mask(at, _mm256_set1_epi8((char)code)), v);
}
/* Lanes (a, b) as pairs: of the first 16 lanes, and of the last. */
static inline void halves_zip(halves a, halves b, pairs *low, pairs *high) {
    const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7); /* unpacking works by quarters */
    a = _mm512_permutexvar_epi64(order, a);
    b = _mm512_permutexvar_epi64(order, b);
    *low = _mm512_unpacklo_epi16(a, b);
    *high = _mm512_unpackhi_epi16(a, b);
}
static inline void pairs_store(uint32_t *p, pairs v) {
    _mm512_storeu_si512(p, v);
}
/* LANES pairs, the numbers of each added. */
static inline vec vec_pair_sum(const uint32_t *p) {
    __m512i both = _mm512_loadu_si512(p);
    __m512i second = _mm512_and_si512(both, _mm512_set1_epi32((int)0xFFFF0000));
    return _mm512_castsi512_ps(_mm512_slli_epi32(both, 16)) + _mm512_castsi512_ps(second);
}
static inline void transpose_16x16(const uint32_t *from, uint32_t *to) {
    __m512i r[16], t[16];
    for (int i = 0; i < 16; i++) {
        r[i] = _mm512_loadu_si512(from + 16 * i);
    }
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int i = 0; i < 4; i++) { /* quarters: r[4g + i] has columns i, 4+i, 8+i, 12+i of rows 4g .. 4g+3 */
        t[i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0x88);
        t[4 + i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0xDD);
        t[8 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0x88);
        t[12 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0xDD);
    }
    for (int i = 0; i < 4; i++) {
        _mm512_storeu_si512(to + 16 * i, _mm512_shuffle_i32x4(t[i], t[8 + i], 0x88));
        _mm512_storeu_si512(to + 16 * (4 + i), _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0x88));
        _mm512_storeu_si512(to + 16 * (8 + i), _mm512_shuffle_i32x4(t[i], t[8 + i], 0xDD));
        _mm512_storeu_si512(to + 16 * (12 + i), _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0xDD));
    }
}

#endif
