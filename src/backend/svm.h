/* svm.h: what a backend may supply to train and use support vector machines.
 *
 * One kernel matrix serves all binary problems: rows are sorted by class, so a problem (two classes, maybe
 * with one fold left out) is two ranges of rows of it. The backend makes the matrix, solves all problems on
 * it at once, and computes decision values; gamma, folds, votes, probabilities, files and the model are the
 * host's (src/svm), and so is a path through the host's memory for backends that leave `svm` NULL.
 *
 * The rules of backend.h hold: one stream of calls, the same bits every time, a sentence for a failure.
 * An entry that returns LATENT_ERROR_UNSUPPORTED (a matrix that this backend cannot hold, say) sends the
 * work to the host with its sentence as a log line. Long entries look at ctx->interrupted now and then and
 * return LATENT_INTERRUPTED.
 */
#ifndef LT_BACKEND_SVM_H
#define LT_BACKEND_SVM_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lt_backend;

typedef enum lt_svm_kernel {
    LT_SVM_RBF,   /* exp(-gamma * |a-b|^2) */
    LT_SVM_LINEAR /* a . b */
} lt_svm_kernel;

/* Of the products that make the kernel; what is stored is fp32 always. */
typedef enum lt_svm_precision {
    LT_SVM_STRICT, /* labels as with fp32: e.g. a pair of 16-bit numbers, three products */
    LT_SVM_FAST,   /* one pass of 16-bit products */
    LT_SVM_FP32    /* plain fp32 */
} lt_svm_precision;

/* Feature rows: row i begins at x + i*stride. */
typedef struct lt_svm_rows {
    const float *x;
    int on_backend; /* 1: x is [b] memory of the backend that is called; 0: host memory */
    size_t n, d;
    size_t stride; /* floats, >= d */
} lt_svm_rows;

/* Called now and then, on the calling thread, where the work is long enough; `call` may be NULL. */
typedef struct lt_svm_progress {
    void (*call)(void *user, uint64_t done, uint64_t total);
    void *user;
} lt_svm_progress;

typedef struct lt_svm_statistics {
    double variance; /* of all n*d values around their one mean, as gamma = scale wants it */
    size_t bad;      /* flat index (row*d + column) of the first value that is not finite */
    int finite;      /* 1: all values are; `bad` is then meaningless */
} lt_svm_statistics;

/* ---- The kernel matrix ---- */

typedef struct lt_svm_matrix lt_svm_matrix; /* the backend's own */

typedef struct lt_svm_matrix_call {
    lt_svm_rows rows;
    const uint32_t *order; /* host [rows.n]: row i of the matrix is row order[i] of `rows`; NULL: row i */
    const float *mean;     /* host [d]: subtracted from every row before the products; NULL: nothing is */
    lt_svm_kernel kernel;
    double gamma; /* RBF */
    lt_svm_precision precision;
    int keep_distances;   /* RBF: matrix_gamma() will be called */
    uint64_t bytes_limit; /* of backend memory for matrix and distances; 0: what is free */
    lt_svm_progress progress;
} lt_svm_matrix_call;

typedef struct lt_svm_matrix_info {
    uint64_t bytes;        /* of backend memory that the matrix takes */
    int resident;          /* 1: whole; 0: rows are computed when they are needed */
    double seconds;        /* upload and products */
    double upload_seconds; /* of these: rows of the host on their way to the backend */
} lt_svm_matrix_info;

/* ---- Binary problems ---- */

/* Minimize f(a) = a'Qa/2 - sum(a), Q[i][j] = y[i] y[j] K[i][j], 0 <= a[i] <= c, y'a = 0. The rows of
 * class 0 have y = +1 and bound c[0], those of class 1 have y = -1 and bound c[1]. The flat arrays hold the
 * problem's values from `first` on: the rows begin[0]..end[0], then begin[1]..end[1]; rows of the fold that
 * is left out have their places too. */
typedef struct lt_svm_problem {
    uint32_t begin[2], end[2];
    double c[2];
    int fold;     /* rows with fold[row] == this are left out: their a is 0 and stays 0; -1: none is */
    size_t first; /* place in the flat arrays alpha and gradient */
} lt_svm_problem;

typedef enum lt_svm_outcome {
    LT_SVM_SOLVED, /* the gap is under the tolerance */
    LT_SVM_CAPPED, /* the iteration cap was reached first */
    LT_SVM_STALLED /* no step changes anything any more, within the precision of the arithmetic */
} lt_svm_outcome;

typedef struct lt_svm_solution {
    /* With G = Qa - 1: gap = max{-y G : a may move up along y} - min{-y G : it may move down}, as in
     * LIBSVM, from gradients that were computed afresh at the end. */
    double gap;
    double objective; /* f(a) */
    /* Decision value of x: sum over j of y[j] a[j] K(x, x[j]) - rho. rho is the mean of y*G over the free
     * rows (0 < a < c), else the middle of what the bounded ones allow. */
    double rho;
    uint64_t iterations;
    lt_svm_outcome outcome;
} lt_svm_solution;

typedef struct lt_svm_solve_call {
    const lt_svm_problem *problems; /* host */
    int count;
    const uint8_t *fold; /* host [rows]; NULL when no problem leaves a fold out */
    double tolerance;    /* stop when gap < tolerance */
    uint64_t iterations_max;
    int warm;                   /* 1: alpha holds feasible starting values; 0: start from zero */
    double *alpha;              /* host, flat: in when warm, out always */
    double *gradient;           /* host, flat, out: fresh G, also of left-out rows; NULL: not wanted */
    lt_svm_solution *solutions; /* host [count], out */
    int shrinking;              /* 1: rows that rest at a bound may be left out for a while */
    lt_svm_progress progress;   /* in problems solved */
} lt_svm_solve_call;

/* sums[p][i] = sum over j in problem p of y[j] alpha[j] K[i][j], for every row i of the matrix: decision
 * values before rho, for cross-validation (rows that were left out) and for probabilities. */
typedef struct lt_svm_sums_call {
    const lt_svm_problem *problems; /* host */
    int count;
    const double *alpha; /* host, flat */
    const uint8_t *fold; /* host [rows]: only sums of rows with fold[i] == the problem's fold are wanted, the
                            others may be left undefined; NULL: all are wanted */
    double *sums;        /* host [count][rows], out */
} lt_svm_sums_call;

/* ---- Decision values of new rows ---- */

typedef struct lt_svm_machine lt_svm_machine; /* support vectors and coefficients, resident */

typedef struct lt_svm_machine_call {
    lt_svm_rows vectors;   /* every support vector once */
    const uint32_t *order; /* host [vectors.n]: vector i is row order[i] of `vectors`, whose n counts vectors,
                              not rows: for rows that are on the backend; NULL: row i */
    const float *mean;     /* host [d]: subtracted from the vectors and from the new rows; NULL: nothing is */
    lt_svm_kernel kernel;
    const double *gamma; /* RBF: host [problems]; mostly all the same number */
    lt_svm_precision precision;
    int problems;
    const double *coefficients; /* host [problems][vectors.n]: y*alpha, 0 where a vector is not used */
    const double *rho;          /* host [problems] */
} lt_svm_machine_call;

typedef struct lt_svm_ops {
    latent_status (*statistics)(latent_context *ctx, struct lt_backend *backend, const lt_svm_rows *rows,
                                float *mean, /* host [d], out: column means, summed in fp64 */
                                lt_svm_statistics *out);

    latent_status (*matrix_create)(latent_context *ctx, struct lt_backend *backend,
                                   const lt_svm_matrix_call *call, lt_svm_matrix **out);
    /* Makes the matrix anew for another gamma, from the distances that were kept. */
    latent_status (*matrix_gamma)(latent_context *ctx, struct lt_backend *backend, lt_svm_matrix *matrix,
                                  double gamma);
    void (*matrix_get_info)(const lt_svm_matrix *matrix, lt_svm_matrix_info *out);
    void (*matrix_free)(struct lt_backend *backend, lt_svm_matrix *matrix); /* takes NULL */

    latent_status (*solve)(latent_context *ctx, struct lt_backend *backend, lt_svm_matrix *matrix,
                           const lt_svm_solve_call *call);
    latent_status (*sums)(latent_context *ctx, struct lt_backend *backend, lt_svm_matrix *matrix,
                          const lt_svm_sums_call *call);

    latent_status (*machine_create)(latent_context *ctx, struct lt_backend *backend,
                                    const lt_svm_machine_call *call, lt_svm_machine **out);
    /* decisions: host [rows->n][problems], out. Batches are the backend's affair. */
    latent_status (*machine_decide)(latent_context *ctx, struct lt_backend *backend, lt_svm_machine *machine,
                                    const lt_svm_rows *rows, double *decisions);
    void (*machine_free)(struct lt_backend *backend, lt_svm_machine *machine); /* takes NULL */
} lt_svm_ops;

#ifdef __cplusplus
}
#endif
#endif
