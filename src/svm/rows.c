/* rows.c: passes over feature rows in host memory, and the one copy of them that a backend with a memory of
 * its own is given.
 *
 * A set is gigabytes, and what the host does to it is bound by memory: rows are taken in the order in which
 * they lie, and large sets by all cores. A column's sum is added up by one thread in the order of the rows,
 * so the number of threads never changes a bit.
 */
#include "svm/svm.h"

#include "base/parallel.h"

#include <stdlib.h>
#include <string.h>

enum { WORTH_THREADS = 1 << 20 }; /* values: 4 MiB */

static void spread(size_t values, size_t items, void (*fn)(void *user, size_t first, size_t last),
                   void *user) {
    if (values < WORTH_THREADS) {
        fn(user, 0, items);
    } else {
        lt_parallel_ranges(items, fn, user);
    }
}

int lt_svm_finite(const float *x, size_t count) {
    const uint32_t exponent = 0x7F800000; /* all ones: infinite, or no number */
    uint32_t bad = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bad |= (bits & exponent) == exponent;
    }
    return !bad;
}

typedef struct scan {
    const float *x;
    size_t d;
    size_t bad; /* the first bad row found so far; atomic */
} scan;

static void scan_rows(void *user, size_t first, size_t last) {
    scan *s = user;
    size_t row = first, known = __atomic_load_n(&s->bad, __ATOMIC_RELAXED);
    while (row < last && lt_svm_finite(s->x + row * s->d, s->d)) {
        row++;
    }
    while (row < last && row < known &&
           !__atomic_compare_exchange_n(&s->bad, &known, row, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

int lt_svm_rows_finite(const float *x, size_t n, size_t d, size_t *row, size_t *column) {
    scan s = {x, d, n};
    spread(n * d, n, scan_rows, &s);
    *row = s.bad;
    for (*column = 0; s.bad < n && lt_svm_finite(x + s.bad * d + *column, 1); (*column)++) {
    }
    return s.bad == n;
}

typedef struct mean_job {
    const float *x;
    size_t n, d;
    double *sums; /* [d] */
} mean_job;

static void sum_columns(void *user, size_t first, size_t last) {
    const mean_job *job = user;
    for (size_t i = 0; i < job->n; i++) {
        const float *x = job->x + i * job->d;
        for (size_t c = first; c < last; c++) {
            job->sums[c] += (double)x[c];
        }
    }
}

latent_status lt_svm_means(latent_context *ctx, const float *x, size_t n, size_t d, float *mean) {
    mean_job job = {.x = x, .n = n, .d = d};
    latent_status status = lt_calloc(ctx, d, sizeof *job.sums, "column sums", (void **)&job.sums);
    if (status != LATENT_OK) {
        return status;
    }
    spread(n * d, d, sum_columns, &job);
    for (size_t c = 0; c < d; c++) {
        mean[c] = n > 0 ? (float)(job.sums[c] / (double)n) : 0;
    }
    free(job.sums);
    return LATENT_OK;
}

typedef struct gather_job {
    const lt_svm_rows *rows;
    const uint32_t *order;
    float *out;
} gather_job;

static void gather_rows(void *user, size_t first, size_t last) {
    const gather_job *job = user;
    const lt_svm_rows *rows = job->rows;
    for (size_t i = first; i < last; i++) {
        memcpy(job->out + i * rows->d, rows->x + job->order[i] * rows->stride, rows->d * sizeof(float));
    }
}

void lt_svm_rows_gather(const lt_svm_rows *rows, const uint32_t *order, size_t count, float *out) {
    gather_job job = {rows, order, out};
    spread(count * rows->d, count, gather_rows, &job);
}

/* ---- to the backend ---- */

/* 1 when all that may follow in the backend's memory fits beside the copy: the rows as factors of products
 * (twice their size at most), the matrix and its distances, and what the solver and libraries take. So a set
 * that could be trained without the copy can be trained with it. */
static int has_room(lt_backend *backend, size_t n, uint64_t copy, uint64_t limit) {
    const uint64_t rest = (uint64_t)512 << 20;
    uint64_t matrix = 2 * (uint64_t)n * n, needed; /* n is an int32; in floats */
    if (!backend->type->memory_free) {
        return 1;
    }
    matrix = matrix > UINT64_MAX / 8 ? UINT64_MAX / 2 : matrix * sizeof(float);
    matrix = limit && limit < matrix ? limit : matrix;
    return !__builtin_mul_overflow(copy, 3, &needed) && !__builtin_add_overflow(needed, matrix, &needed) &&
           !__builtin_add_overflow(needed, rest, &needed) && needed <= backend->type->memory_free(backend);
}

latent_status lt_svm_rows_upload(latent_context *ctx, lt_backend *backend, const lt_svm_rows *rows,
                                 uint64_t limit, lt_svm_rows *out, void **copy) {
    enum { PIECE = 1 << 28 }; /* bytes between two looks at ctx->interrupted */
    latent_status status = LATENT_OK;
    size_t bytes = ((rows->n - 1) * rows->stride + rows->d) * sizeof(float);
    *out = *rows;
    *copy = NULL;
    if (rows->on_backend || backend->type->host_memory || !has_room(backend, rows->n, bytes, limit)) {
        return LATENT_OK;
    }
    status = backend->type->alloc(ctx, backend, bytes, copy);
    if (status != LATENT_OK) {
        *copy = NULL;
        if (status == LATENT_ERROR_MEMORY) { /* piece by piece, for every pass */
            ctx->message[0] = 0;
            status = LATENT_OK;
        }
        return status;
    }
    for (size_t at = 0; at < bytes; at += PIECE) {
        size_t part = bytes - at < PIECE ? bytes - at : PIECE;
        LT_TRY(backend->type->upload(ctx, backend, (char *)*copy + at, (const char *)rows->x + at, part));
        if (ctx->interrupted) {
            status = lt_fail(ctx, LATENT_INTERRUPTED, "interrupted while the features were copied");
            goto done;
        }
    }
    out->x = *copy;
    out->on_backend = 1;
done:
    if (status != LATENT_OK) {
        backend->type->free(backend, *copy);
        *copy = NULL;
    }
    return status;
}
