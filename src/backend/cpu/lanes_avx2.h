/* lanes_avx2.h: vectors of 8 floats for the bodies (see kernel_body.h). */
#ifndef LT_BACKEND_CPU_LANES_AVX2_H
#define LT_BACKEND_CPU_LANES_AVX2_H

#include <immintrin.h>
#include <stdint.h>

enum { LANES = 8, TILE_ROWS = 4, TILE_VECS = 3 };

typedef __m256 vec;
typedef __m256i codes; /* a small number per lane */

static inline vec vec_zero(void) {
    return _mm256_setzero_ps();
}
static inline vec vec_set(float value) {
    return _mm256_set1_ps(value);
}
static inline vec vec_load(const float *p) {
    return _mm256_loadu_ps(p);
}
static inline void vec_store(float *p, vec v) {
    _mm256_storeu_ps(p, v);
}
static inline vec vec_fma(vec a, vec b, vec c) {
    return _mm256_fmadd_ps(a, b, c);
}
static inline __m256i first_lanes(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline vec vec_load_part(const float *p, int n) {
    return _mm256_maskload_ps(p, first_lanes(n));
}
static inline void vec_store_part(float *p, vec v, int n) {
    _mm256_maskstore_ps(p, first_lanes(n), v);
}
/* max(v, 0); a NaN stays one */
static inline vec vec_relu(vec v) {
    return _mm256_max_ps(_mm256_setzero_ps(), v);
}
/* v where y > 0, else 0 */
static inline vec vec_where_positive(vec y, vec v) {
    return _mm256_and_ps(_mm256_cmp_ps(y, _mm256_setzero_ps(), _CMP_GT_OQ), v);
}
static inline codes codes_load(const uint8_t *p, int n) {
    uint8_t bytes[LANES] = {0};
    for (int i = 0; i < LANES && i < n; i++) {
        bytes[i] = p[i];
    }
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)bytes));
}
static inline void codes_store(uint8_t *p, codes at, int n) {
    int32_t values[LANES];
    _mm256_storeu_si256((__m256i *)(void *)values, at);
    for (int i = 0; i < LANES && i < n; i++) {
        p[i] = (uint8_t)values[i];
    }
}
static inline codes codes_set(int value) {
    return _mm256_set1_epi32(value);
}
/* v where the code is `code`, else 0 */
static inline vec vec_where_code(codes at, int code, vec v) {
    return _mm256_and_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(at, _mm256_set1_epi32(code))), v);
}
static inline codes codes_select(codes at, vec take, int code) {
    return _mm256_castps_si256(
        _mm256_blendv_ps(_mm256_castsi256_ps(at), _mm256_castsi256_ps(_mm256_set1_epi32(code)), take));
}
/* The first maximum, or the first NaN: `value` takes over where it is larger. */
static inline void vec_maximum(vec *best, codes *at, vec value, int code) {
    vec take =
        _mm256_and_ps(_mm256_cmp_ps(*best, *best, _CMP_ORD_Q), _mm256_cmp_ps(value, *best, _CMP_NLE_UQ));
    *best = _mm256_blendv_ps(*best, value, take);
    *at = codes_select(*at, take, code);
}
/* `code` where v <= 0 */
static inline codes codes_where_dead(codes at, vec v, int code) {
    return codes_select(at, _mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_LE_OQ), code);
}

#endif
