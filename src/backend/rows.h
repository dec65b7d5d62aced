/* rows.h: what a backend does to rows of features, between the encoder and the file.
 *
 * The rows stay in the backend's memory until all of it is done, so that a GPU hands over finished rows and
 * nothing else. The rules of backend.h hold; `columns` gives the same bits on every backend.
 */
#ifndef LT_BACKEND_ROWS_H
#define LT_BACKEND_ROWS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lt_backend;

/* rows[n][channels][pixels] = x[n][pixels][channels], or += with `add`. */
typedef struct lt_rows_gather_call {
    size_t n, pixels, channels;
    const void *x; /* [b] of the backend's activation type */
    float *rows;   /* [b] */
    int add;
} lt_rows_gather_call;

/* Column statistics, row by row in their order (Welford): after r rows, mean is theirs and m2 the sum of the
 * squared distances from it. d = x - mean; mean += d * (1/r); m2 += d * (x - mean), each operation rounded
 * to double by itself. */
typedef struct lt_rows_columns_call {
    const float *rows; /* [b] [n][width] */
    size_t n, width;
    uint64_t before;   /* rows that were counted already */
    double *mean, *m2; /* [b] [width], zero at first */
} lt_rows_columns_call;

/* In place: (x - mean) / (deviation + epsilon) unless mean is NULL, then to length 1 if `l2` (a row of zeros
 * stays). */
typedef struct lt_rows_finish_call {
    float *rows; /* [b] [n][width] */
    size_t n, width;
    const float *mean, *deviation; /* [b] [width] */
    float epsilon;
    int l2;
} lt_rows_finish_call;

typedef struct lt_rows_ops {
    latent_status (*gather)(latent_context *ctx, struct lt_backend *backend, const lt_rows_gather_call *call);
    latent_status (*columns)(latent_context *ctx, struct lt_backend *backend,
                             const lt_rows_columns_call *call);
    /* Waits; *bad is the first row that holds a number that is not finite, or n. */
    latent_status (*finish)(latent_context *ctx, struct lt_backend *backend, const lt_rows_finish_call *call,
                            size_t *bad);
} lt_rows_ops;

#ifdef __cplusplus
}
#endif
#endif
