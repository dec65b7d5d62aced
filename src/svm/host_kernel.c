/* host_kernel.c: the loops over kernel values: exp(), rows times coefficients, dot products.
 *
 * Each loop is written once and compiled for three instruction sets. No sum is reordered and no product is
 * fused with a sum, so all three give the same bits.
 *
 * exp(x) for x <= 0: with k = round(x / ln 2) and r = x - k ln 2, |r| <= 0.35, it is 2^k times a polynomial
 * of degree 6 in r (Cephes); ln 2 is taken off in two parts so that r loses no bits. Below -87 it is 0, and
 * so it is for what overflowed on the way (infinity times 0).
 */
#include "svm/host.h"

#include <float.h>
#include <string.h>

#define ALWAYS static inline __attribute__((always_inline))

ALWAYS void exp_body(size_t count, float scale, const float *from, float *to) {
    for (size_t t = 0; t < count; t++) {
        float x = scale * from[t], kept = x >= -87.0f ? x : -87.0f; /* not a number: as far away */
        float shifted = kept * 1.44269504f + 12582912.0f;           /* 1.5 * 2^23: the fraction rounds away */
        float k = shifted - 12582912.0f;
        float r = kept - k * 0.693359375f;
        r = r + k * 2.12194440e-4f;
        float p = 1.9875691500e-4f;
        p = p * r + 1.3981999507e-3f;
        p = p * r + 8.3334519073e-3f;
        p = p * r + 4.1665795894e-2f;
        p = p * r + 1.6666665459e-1f;
        p = p * r + 5.0000001201e-1f;
        p = p * (r * r) + r;
        p = p + 1.0f;
        int32_t bits = ((int32_t)k + 127) * 8388608;
        float power;
        memcpy(&power, &bits, sizeof power);
        to[t] = x >= -87.0f ? p * power : 0.0f;
    }
}

ALWAYS void distance_body(size_t count, float norm, const float *norms, const float *products, float *to) {
    for (size_t t = 0; t < count; t++) {
        double squared = (double)norm + (double)norms[t] - 2.0 * (double)products[t];
        to[t] = squared > 0.0 ? (float)squared : 0.0f;
    }
}

ALWAYS void subtract_body(double *f, size_t count, const float *const *rows, const double *scale, size_t r) {
    for (; r >= 4; r -= 4, rows += 4, scale += 4) {
        const float *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
        double p = scale[0], q = scale[1], u = scale[2], v = scale[3];
        for (size_t t = 0; t < count; t++) {
            double sum = f[t];
            sum -= p * (double)a[t];
            sum -= q * (double)b[t];
            sum -= u * (double)c[t];
            sum -= v * (double)d[t];
            f[t] = sum;
        }
    }
    for (; r > 0; r--, rows++, scale++) {
        const float *a = rows[0];
        double p = scale[0];
        for (size_t t = 0; t < count; t++) {
            f[t] -= p * (double)a[t];
        }
    }
}

ALWAYS double dot_body(const float *a, const double *b, size_t count) {
    double sums[16] = {0}, total = 0;
    size_t t = 0;
    for (; t + 16 <= count; t += 16) {
        for (int lane = 0; lane < 16; lane++) {
            sums[lane] += (double)a[t + (size_t)lane] * b[t + (size_t)lane];
        }
    }
    for (int lane = 0; t < count; t++, lane++) {
        sums[lane] += (double)a[t] * b[t];
    }
    for (int lane = 0; lane < 16; lane++) {
        total += sums[lane];
    }
    return total;
}

/* The three versions of each loop and the choice among them. */
#if defined(__x86_64__)
enum { PLAIN, AVX2, AVX512 };
static int level(void) {
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        return AVX512;
    }
    return __builtin_cpu_supports("avx2") ? AVX2 : PLAIN;
}
#define WIDE   __attribute__((target("avx512f,avx512dq,avx512vl")))
#define MIDDLE __attribute__((target("avx2")))
#define VERSIONS(type, name, parameters, arguments)                                                          \
    WIDE static type name##_avx512 parameters {                                                              \
        return name##_body arguments;                                                                        \
    }                                                                                                        \
    MIDDLE static type name##_avx2 parameters {                                                              \
        return name##_body arguments;                                                                        \
    }                                                                                                        \
    static type name##_best parameters {                                                                     \
        switch (level()) {                                                                                   \
        case AVX512:                                                                                         \
            return name##_avx512 arguments;                                                                  \
        case AVX2:                                                                                           \
            return name##_avx2 arguments;                                                                    \
        }                                                                                                    \
        return name##_body arguments;                                                                        \
    }
#else
#define VERSIONS(type, name, parameters, arguments)                                                          \
    static type name##_best parameters {                                                                     \
        return name##_body arguments;                                                                        \
    }
#endif

VERSIONS(void, exp, (size_t count, float scale, const float *from, float *to), (count, scale, from, to))
VERSIONS(void, distance, (size_t count, float norm, const float *norms, const float *products, float *to),
         (count, norm, norms, products, to))
VERSIONS(void, subtract, (double *f, size_t count, const float *const *rows, const double *scale, size_t r),
         (f, count, rows, scale, r))
VERSIONS(double, dot, (const float *a, const double *b, size_t count), (a, b, count))

void lt_squared_distances(size_t count, float norm, const float *norms, const float *products, float *out) {
    distance_best(count, norm, norms, products, out);
}

void lt_kernel_from_distances(double gamma, size_t count, const float *distance, float *k) {
    /* Infinity times a distance of 0 would be no number. */
    float scale = gamma < (double)FLT_MAX ? (float)-gamma : -FLT_MAX;
    exp_best(count, scale, distance, k);
}

void lt_kernel_from_products(const lt_host_matrix *matrix, size_t i, size_t first, size_t count,
                             const float *products, float *distance, float *k) {
    if (matrix->kernel == LT_SVM_LINEAR) {
        memmove(k, products, count * sizeof *k);
        return;
    }
    float *squared = distance ? distance : k;
    distance_best(count, matrix->norm[i], matrix->norm + first, products, squared);
    lt_kernel_from_distances(matrix->gamma, count, squared, k);
}

void lt_subtract_rows(double *f, size_t count, const float *const *rows, const double *scale, size_t r) {
    subtract_best(f, count, rows, scale, r);
}

double lt_dot(const float *a, const double *b, size_t count) {
    return dot_best(a, b, count);
}
