/* svm_bench.h: a backend's table of support vector machines (backend/svm.h) on a workbench: classes of rows
 * in host or backend memory, their kernel matrix, all pairs of classes as problems. For tests of the table
 * itself.
 */
#ifndef SVM_BENCH_H
#define SVM_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "svm/host.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bench {
    latent_context *ctx;
    lt_backend *backend;
    const lt_svm_ops *ops;
    size_t n, d, stride;
    float *x; /* host [n][stride] as the rows came */
    lt_svm_rows rows;
    void *there;     /* backend memory, or NULL */
    uint32_t *order; /* sorted row -> row */
    float *mean;
    int classes, pairs;
    uint32_t *begin; /* [classes+1] */
    lt_svm_kernel kernel;
    double gamma;
    lt_svm_precision precision;
} bench;

#define BENCH_OK(b, call)                                                                                    \
    do {                                                                                                     \
        if ((call) != LATENT_OK) {                                                                           \
            fail_msg("%s: %s", #call, latent_context_message((b)->ctx));                                     \
        }                                                                                                    \
    } while (0)

typedef struct bench_recipe {
    size_t n, d;
    int classes;
    double apart; /* distance of the classes' centers over their spread */
    int whole;    /* features are small whole numbers */
    int device;   /* the rows lie in backend memory */
    int wide;     /* rows are followed by numbers that are not features */
    int one_row;  /* class 0 has one row only */
    lt_svm_kernel kernel;
    lt_svm_precision precision;
} bench_recipe;

static inline double bench_normal(uint64_t seed, uint64_t i) {
    lt_random r = lt_philox(seed, LT_RNG_TEST, 11, i);
    return sqrt(-2 * log(lt_uniform(r.v[0]))) * cos(6.283185307179586 * lt_uniform(r.v[1]));
}

static inline int bench_class(const bench_recipe *r, size_t i) {
    if (r->one_row) {
        return i == 3 ? 0 : 1 + (int)(lt_philox(5, LT_RNG_TEST, 12, i).v[0] % (uint32_t)(r->classes - 1));
    }
    return i < (size_t)r->classes ? (int)i
                                  : (int)(lt_philox(5, LT_RNG_TEST, 12, i).v[0] % (uint32_t)r->classes);
}

/* Rows in random order of classes, sorted by `order`. */
static inline void bench_rows(bench *b, const bench_recipe *r) {
    uint32_t at = 0;
    for (size_t i = 0; i < b->n * b->stride; i++) {
        b->x[i] = 1e30f;
    }
    for (size_t i = 0; i < b->n; i++) {
        int c = bench_class(r, i);
        for (size_t k = 0; k < b->d; k++) {
            double value = r->apart * bench_normal(100 + (uint64_t)c, k) + bench_normal(1, i * b->d + k);
            b->x[i * b->stride + k] = r->whole ? (float)(int)(3 * value) : (float)fmax(value, -0.5);
        }
    }
    for (int c = 0; c < b->classes; c++) {
        b->begin[c] = at;
        for (size_t i = 0; i < b->n; i++) {
            if (bench_class(r, i) == c) {
                b->order[at++] = (uint32_t)i;
            }
        }
    }
    b->begin[b->classes] = at;
}

static inline bench bench_make(latent_context *ctx, const char *name, const bench_recipe *r) {
    latent_engine_options options = {.backend = name};
    bench b = {.ctx = ctx, .n = r->n, .d = r->d, .stride = r->d + (r->wide ? 5 : 0), .classes = r->classes};
    lt_svm_statistics statistics;
    BENCH_OK(&b, lt_backend_open(ctx, &options, &b.backend));
    b.ops = b.backend->type->svm ? b.backend->type->svm : &lt_svm_host_ops;
    b.pairs = b.classes * (b.classes - 1) / 2;
    b.kernel = r->kernel;
    b.precision = r->precision;
    b.x = malloc(b.n * b.stride * sizeof(float));
    b.order = malloc(b.n * sizeof *b.order);
    b.begin = calloc((size_t)b.classes + 1, sizeof *b.begin);
    b.mean = calloc(b.d, sizeof *b.mean);
    bench_rows(&b, r);
    b.rows = (lt_svm_rows){.x = b.x, .n = b.n, .d = b.d, .stride = b.stride};
    if (r->device) {
        size_t bytes = b.n * b.stride * sizeof(float);
        BENCH_OK(&b, b.backend->type->alloc(ctx, b.backend, bytes, &b.there));
        BENCH_OK(&b, b.backend->type->upload(ctx, b.backend, b.there, b.x, bytes));
        b.rows.x = b.there;
        b.rows.on_backend = 1;
    }
    BENCH_OK(&b, b.ops->statistics(ctx, b.backend, &b.rows, b.mean, &statistics));
    assert_true(statistics.finite);
    b.gamma = 1 / ((double)b.d * statistics.variance);
    if (r->whole) { /* whole numbers stay whole */
        memset(b.mean, 0, b.d * sizeof *b.mean);
    }
    return b;
}

static inline void bench_free(bench *b) {
    if (b->there) {
        b->backend->type->free(b->backend, b->there);
    }
    lt_backend_close(b->backend);
    free(b->x);
    free(b->order);
    free(b->begin);
    free(b->mean);
    memset(b, 0, sizeof *b);
}

static inline lt_svm_matrix *bench_matrix(const bench *b, int keep, uint64_t limit) {
    lt_svm_matrix *matrix = NULL;
    lt_svm_matrix_call call = {.rows = b->rows,
                               .order = b->order,
                               .mean = b->mean,
                               .kernel = b->kernel,
                               .gamma = b->gamma,
                               .precision = b->precision,
                               .keep_distances = keep,
                               .bytes_limit = limit};
    BENCH_OK(b, b->ops->matrix_create(b->ctx, b->backend, &call, &matrix));
    return matrix;
}

/* The kernel of two sorted rows, in fp64 from the features as they came. Linear: centered. */
static inline double bench_kernel(const bench *b, size_t i, size_t j) {
    const float *p = b->x + b->order[i] * b->stride, *q = b->x + b->order[j] * b->stride;
    double sum = 0;
    for (size_t k = 0; k < b->d; k++) {
        double u = (double)p[k] - b->mean[k], v = (double)q[k] - b->mean[k];
        sum += b->kernel == LT_SVM_RBF ? (u - v) * (u - v) : u * v;
    }
    return b->kernel == LT_SVM_RBF ? exp(-b->gamma * sum) : sum;
}

/* How far a kernel value may be off. A product of k numbers in fp32 errs by 8 sqrt(k) 2^-24 S, tensor cores,
 * which cut instead of rounding, by four times that; S = sum |a b|. Factors of 22 bits (strict) and 11 bits
 * (fast) err by 2^-20 S and 2^-9 S. A squared distance is three products. */
static inline double bench_bound(const bench *b, size_t i, size_t j, double k) {
    const float *p = b->x + b->order[i] * b->stride, *q = b->x + b->order[j] * b->stride;
    double s[3] = {0, 0, 0}, fp32 = 8 * sqrt(3.0 * (double)b->d) * ldexp(1, -22);
    double factors = b->precision == LT_SVM_FAST ? ldexp(1, -9) : ldexp(1, -20);
    for (size_t c = 0; c < b->d; c++) {
        double u = fabs((double)p[c] - b->mean[c]), v = fabs((double)q[c] - b->mean[c]);
        s[0] += u * u;
        s[1] += v * v;
        s[2] += u * v;
    }
    if (b->kernel == LT_SVM_LINEAR) {
        return (fp32 + factors) * s[2] + 1e-30;
    }
    return b->gamma * (fp32 + factors) * (s[0] + s[1] + 2 * s[2]) * (k + 1e-6) + ldexp(1, -21) * (k + 1e-30);
}

/* All pairs of classes; `folds` > 0: each without each fold. */
static inline lt_svm_problem *bench_problems(const bench *b, double c, int folds, int *count,
                                             size_t *places) {
    int each = folds > 0 ? folds : 1;
    lt_svm_problem *problems = calloc((size_t)(b->pairs * each), sizeof *problems);
    *count = 0;
    *places = 0;
    for (int f = 0; f < each; f++) {
        for (int p = 0; p < b->classes; p++) {
            for (int q = p + 1; q < b->classes; q++) {
                lt_svm_problem *out = &problems[(*count)++];
                *out = (lt_svm_problem){.begin = {b->begin[p], b->begin[q]},
                                        .end = {b->begin[p + 1], b->begin[q + 1]},
                                        .c = {c, c * (1 + 0.25 * p)},
                                        .fold = folds > 0 ? f : -1,
                                        .first = *places};
                *places += (out->end[0] - out->begin[0]) + (out->end[1] - out->begin[1]);
            }
        }
    }
    return problems;
}

static inline uint32_t bench_row(const lt_svm_problem *p, size_t t) {
    size_t n0 = p->end[0] - p->begin[0];
    return (uint32_t)(t < n0 ? p->begin[0] + t : p->begin[1] + t - n0);
}

static inline size_t bench_size(const lt_svm_problem *p) {
    return (size_t)(p->end[0] - p->begin[0]) + (p->end[1] - p->begin[1]);
}

/* ---- A test program over backends ---- */

static const char *bench_backend; /* the one under test */
static int bench_small;           /* `--small`: few rows and steps, for tools that slow kernels down */

static inline latent_context *bench_context(void) {
    latent_context *ctx = NULL;
    assert_int_equal(latent_context_create(&ctx), LATENT_OK);
    return ctx;
}

/* Runs the tests on the backends of the host, or with --backend NAME on that one; 77 when it cannot run here.
 */
static inline int bench_main(int argc, char **argv, const struct CMUnitTest *tests, size_t count) {
    bench_small = argc > 1 && strcmp(argv[argc - 1], "--small") == 0;
    argc -= bench_small;
    const char *only = argc == 3 && strcmp(argv[1], "--backend") == 0 ? argv[2] : NULL;
    latent_backend_info info;
    int failed = 0, ran = 0;
    if (argc != 1 && !only) {
        fprintf(stderr, "usage: %s [--backend NAME] [--small]\n", argv[0]);
        return 2;
    }
    for (int i = 0; latent_backend_get_info(i, &info); i++) {
        const lt_backend_type *type = lt_backend_at(i);
        int wanted = only ? strcmp(only, type->name) == 0 : type->host_memory && type->gemm_nt;
        if (wanted && info.available) {
            bench_backend = type->name;
            failed += _cmocka_run_group_tests(type->name, tests, count, NULL, NULL);
            ran++;
        }
    }
    if (ran == 0) {
        fprintf(stderr, "skipped: no backend that was asked for can run here\n");
        return 77;
    }
    return failed;
}

#endif
