/* svm_kernels.h: the launchers of the kernels for support vector machines, and what they share with the host.
 *
 * As in kernels.h: a launcher launches on the stream and returns, the host follows it with LT_LAUNCHED,
 * pointers are device memory unless they are said to be the host's. The subset that C and C++ share.
 */
#ifndef LT_BACKEND_CUDA_SVM_KERNELS_H
#define LT_BACKEND_CUDA_SVM_KERNELS_H

#include "backend/svm.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Rows: svm_rows.cu -------------------------------------------------------------------------- */

/* Rows that take part in matrix products. Each is its features, less a mean, times a power of two of its own
 * that puts the largest between 2^14 and 2^15, followed by zeros up to `width`. It is stored as
 *   strict   fp16, four parts: hi, lo, hi, hi with hi + lo the value. A product of the last three parts of
 *            one row with the first three of another is lo*hi + hi*lo + hi*hi: one matrix product with three
 *            times the columns, small terms first, from one copy of the rows.
 *   fast     fp16, one part
 *   fp32     fp32, one part */
typedef struct lt_cuda_operand {
    lt_svm_precision precision;
    size_t n;
    size_t width; /* columns of a part, a multiple of LT_CUDA_WIDTH */
    size_t row;   /* numbers from row to row */
    void *values;
    double *unit; /* [n] a stored number times this is a feature */
} lt_cuda_operand;

enum { LT_CUDA_WIDTH = 64 };
#define LT_CUDA_NOWHERE 0xFFFFFFFFu

typedef struct lt_cuda_convert {
    const float *x; /* row 0 of the piece */
    size_t count, d, stride;
    size_t first;          /* number of the piece's row 0 */
    const uint32_t *place; /* row r of all becomes row place[r], LT_CUDA_NOWHERE: none; NULL: row r */
    const float *mean;     /* [d] or NULL */
    lt_cuda_operand to;
} lt_cuda_convert;
void lt_launch_svm_convert(cudaStream_t stream, const lt_cuda_convert *convert);
/* norm[i] = squared length of row i as it is stored, in features' units, fp64. */
void lt_launch_svm_lengths(cudaStream_t stream, const lt_cuda_operand *rows, size_t count, double *norm);

/* Rows in chunks of LT_CUDA_CHUNK: sums[chunk][d] of the columns; bad: the smallest flat index of a value
 * that is not finite, if smaller than what is there. */
enum { LT_CUDA_CHUNK = 256, LT_CUDA_SLICE = 1024 };
void lt_launch_svm_column_sums(cudaStream_t stream, const float *x, size_t first, size_t count, size_t d,
                               size_t stride, double *sums, unsigned long long *bad);
/* total[c] = sum of sums[.][c] */
void lt_launch_svm_column_totals(cudaStream_t stream, const double *sums, size_t chunks, size_t d,
                                 double *total);
/* squares[chunk][slice] = sum of (x - center)^2 over the chunk's rows and LT_CUDA_SLICE columns. */
void lt_launch_svm_squares(cudaStream_t stream, const float *x, size_t count, size_t d, size_t stride,
                           double center, double *squares);

/* ---- The kernel matrix: svm_matrix.cu ------------------------------------------------------------- */

/* Matrix products of operands on their way to kernel values; units and squared lengths of the rows (a) and
 * columns (b) go with them. */
typedef struct lt_cuda_block {
    lt_svm_kernel kernel;
    double gamma;
    size_t m, n, row; /* [m][n], `row` floats from row to row */
    const double *unit_a, *unit_b;
    const double *norm_a, *norm_b;
} lt_cuda_block;

/* norm[i] = k[i][i] * unit[i]^2: squared lengths as the products have them. */
void lt_launch_svm_diagonal(cudaStream_t stream, const float *k, size_t row, size_t n, const double *unit,
                            double *norm);
/* m = n, a = b: products on and above the diagonal become kernel values on both sides of it. `distance` gets
 * the squared distances, both sides too, or is NULL. */
void lt_launch_svm_symmetric(cudaStream_t stream, const lt_cuda_block *block, float *k, float *distance);
/* K = exp(-gamma * distance), 1 on the diagonal. */
void lt_launch_svm_gamma(cudaStream_t stream, const lt_cuda_block *block, const float *distance, float *k);
/* A rectangle of products to kernel values in place, or with `distances` (RBF) to squared distances. Column
 * row + same is the row itself; LT_CUDA_NO_ROW: no row is a column. */
#define LT_CUDA_NO_ROW INT64_MIN
void lt_launch_svm_rectangle(cudaStream_t stream, const lt_cuda_block *block, int distances, int64_t same,
                             float *k);

/* ---- Solving: svm_smo.cu, svm_large.cu ------------------------------------------------------------ */

enum { LT_CUDA_RUNNING = -1 }; /* an outcome, until there is one */

/* A binary problem on the device. Flat position t < n0 is row begin[0] + t of the matrix and has y = +1; the
 * others are rows begin[1] + t - n0 and have y = -1. */
typedef struct lt_cuda_problem {
    uint32_t begin[2];
    uint32_t n0, n;
    uint64_t first; /* place in beta and f */
    double c[2];
    int fold;
    int outcome; /* of lt_svm_outcome, or LT_CUDA_RUNNING */
    uint64_t iterations;
    double gap, objective, rho;
} lt_cuda_problem;

/* What all problems of a call share. */
typedef struct lt_cuda_solver {
    const float *k;
    size_t row;
    const double *diagonal; /* linear; NULL: 1 everywhere */
    const uint8_t *fold;    /* of rows, or NULL */
    lt_cuda_problem *problems;
    const uint32_t *active; /* the problems to work on */
    int count;              /* of them */
    double *beta, *f;       /* y*alpha and y - K beta, flat */
    double tolerance;
    uint64_t iterations_max; /* of a problem */
    uint64_t budget;         /* steps of this launch */
} lt_cuda_solver;

/* The largest problem that svm_smo.cu holds in registers. */
enum { LT_CUDA_SMO_THREADS = 512, LT_CUDA_SMO_SLOTS = 24 };
enum { LT_CUDA_SMO_ROWS = LT_CUDA_SMO_THREADS * LT_CUDA_SMO_SLOTS };
/* Steps on the active problems, none larger than `rows` <= LT_CUDA_SMO_ROWS. `shared` is what a block may
 * have of shared memory. Problems that ended have their outcome, iterations and gap set. */
cudaError_t lt_launch_svm_smo(cudaStream_t stream, const lt_cuda_solver *solver, uint32_t rows,
                              size_t shared);
/* The same for problems of any size, with all state in device memory. */
void lt_launch_svm_large(cudaStream_t stream, const lt_cuda_solver *solver);

/* ---- K times coefficients: svm_sums.cu ------------------------------------------------------------- */

/* f = y - K beta of all rows of all problems [0, count) of the table. */
void lt_launch_svm_gradients(cudaStream_t stream, const lt_cuda_solver *solver, int count, uint32_t rows_max);
/* gap, objective and rho of problems [0, count) from f and beta. */
void lt_launch_svm_measure(cudaStream_t stream, const lt_cuda_solver *solver, int count);
/* sums[p][r] = sum over problem p of beta * K[r] for the wanted rows r: rows[wanted[w]] to
 * rows[wanted[w+1]-1], with w the problem's fold, or 0 where it has none. */
void lt_launch_svm_sums(cudaStream_t stream, const lt_cuda_solver *solver, int count, const uint32_t *rows,
                        const uint32_t *wanted, uint32_t most, size_t sums_row, double *sums);

/* Decision values from kernel values, or from squared distances where problems have gammas of their own.
 * The vectors are cut into stretches of LT_CUDA_STRETCH; problem p uses those listed from begin[p] on. */
enum { LT_CUDA_STRETCH = 256 };
typedef struct lt_cuda_decisions {
    const float *k; /* [m][row] */
    size_t m, n, row;
    const double *gamma; /* [problems] when k holds distances, else NULL */
    int problems;
    const double *coefficients; /* [problems][padded to stretches] */
    const uint32_t *stretches, *begin;
    const double *rho;
    double *out; /* [m][problems] */
} lt_cuda_decisions;
void lt_launch_svm_decisions(cudaStream_t stream, const lt_cuda_decisions *decisions);

/* w[p][c] += sum over the piece's rows r of coefficients[p][place[r]] * x[r][c]; see lt_cuda_convert. */
void lt_launch_svm_normals(cudaStream_t stream, const lt_cuda_convert *piece, const double *coefficients,
                           size_t coefficient_row, int problems, double *w);
/* out[i][p] = w[p] . x[i] - rho[p] */
void lt_launch_svm_linear(cudaStream_t stream, const float *x, size_t m, size_t d, size_t stride,
                          const double *w, const double *rho, int problems, double *out);

#ifdef __cplusplus
}
#endif
#endif
