/* lanes_avx512.h: vectors of 16 floats for the bodies (see kernel_body.h). */
#ifndef LT_BACKEND_CPU_LANES_AVX512_H
#define LT_BACKEND_CPU_LANES_AVX512_H

#include <immintrin.h>
#include <stdint.h>

enum { LANES = 16, TILE_ROWS = 8, TILE_VECS = 3 };

typedef __m512 vec;
typedef __m512i codes; /* a small number per lane */

static inline vec vec_zero(void) {
    return _mm512_setzero_ps();
}
static inline vec vec_set(float value) {
    return _mm512_set1_ps(value);
}
static inline vec vec_load(const float *p) {
    return _mm512_loadu_ps(p);
}
static inline void vec_store(float *p, vec v) {
    _mm512_storeu_ps(p, v);
}
static inline vec vec_fma(vec a, vec b, vec c) {
    return _mm512_fmadd_ps(a, b, c);
}
static inline __mmask16 first_lanes(int n) {
    return n >= LANES ? 0xFFFF : (__mmask16)((1u << n) - 1);
}
static inline vec vec_load_part(const float *p, int n) {
    return _mm512_maskz_loadu_ps(first_lanes(n), p);
}
static inline void vec_store_part(float *p, vec v, int n) {
    _mm512_mask_storeu_ps(p, first_lanes(n), v);
}
/* max(v, 0); a NaN stays one */
static inline vec vec_relu(vec v) {
    return _mm512_max_ps(_mm512_setzero_ps(), v);
}
/* v where y > 0, else 0 */
static inline vec vec_where_positive(vec y, vec v) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(y, _mm512_setzero_ps(), _CMP_GT_OQ), v);
}
static inline codes codes_load(const uint8_t *p, int n) {
    return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(first_lanes(n), p));
}
static inline void codes_store(uint8_t *p, codes at, int n) {
    if (n >= LANES) { /* much faster than storing under a mask */
        _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8(at));
    } else {
        _mm512_mask_cvtepi32_storeu_epi8(p, first_lanes(n), at);
    }
}
static inline codes codes_set(int value) {
    return _mm512_set1_epi32(value);
}
/* v where the code is `code`, else 0 */
static inline vec vec_where_code(codes at, int code, vec v) {
    return _mm512_maskz_mov_ps(_mm512_cmpeq_epi32_mask(at, _mm512_set1_epi32(code)), v);
}
/* The first maximum, or the first NaN: `value` takes over where it is larger. */
static inline void vec_maximum(vec *best, codes *at, vec value, int code) {
    __mmask16 take =
        _mm512_cmp_ps_mask(*best, *best, _CMP_ORD_Q) & _mm512_cmp_ps_mask(value, *best, _CMP_NLE_UQ);
    *best = _mm512_mask_mov_ps(*best, take, value);
    *at = _mm512_mask_mov_epi32(*at, take, _mm512_set1_epi32(code));
}
/* `code` where v <= 0 */
static inline codes codes_where_dead(codes at, vec v, int code) {
    return _mm512_mask_mov_epi32(at, _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_LE_OQ),
                                 _mm512_set1_epi32(code));
}

/* ---- bf16 -------------------------------------------------------------------------------------- */

/* The upper halves are v rounded to bf16, ties to even; a NaN stays one. */
static inline codes vec_round(vec v) {
    __m512i bits = _mm512_castps_si512(v);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7FFF));
    __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
}
static inline vec vec_load_bf16(const uint16_t *p, int n) {
    __m256i half = n >= LANES ? _mm256_loadu_si256((const __m256i *)(const void *)p)
                              : _mm256_maskz_loadu_epi16(first_lanes(n), p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}
static inline void vec_store_bf16(uint16_t *p, vec v, int n) {
    __m512i high = _mm512_srli_epi32(vec_round(v), 16);
    if (n >= LANES) {
        _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16(high));
    } else {
        _mm512_mask_cvtepi32_storeu_epi16(p, first_lanes(n), high);
    }
}
/* Lanes (a, b) as pairs of bf16; `exact`: they are bf16 numbers already. */
static inline void vec_store_pairs(uint32_t *p, vec a, vec b, int exact) {
    __m512i low = exact ? _mm512_castps_si512(a) : vec_round(a);
    __m512i high = exact ? _mm512_castps_si512(b) : vec_round(b);
    _mm512_storeu_si512(p, _mm512_mask_blend_epi16(0xAAAAAAAA, _mm512_srli_epi32(low, 16), high));
}
#endif
