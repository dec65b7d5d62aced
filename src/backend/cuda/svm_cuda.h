/* svm_cuda.h: support vector machines on the device, as their host files share them.
 *
 * Rows become operands (svm_rows.c), operands become products (svm_product.c), products the kernel matrix
 * (svm_matrix.c), on which all binary problems are solved at once (svm_solve.c). A matrix that does not fit
 * the card is made anew for each pair of classes that is asked for; the rows stay.
 */
#ifndef LT_BACKEND_CUDA_SVM_CUDA_H
#define LT_BACKEND_CUDA_SVM_CUDA_H

#include "backend/cuda/cuda.h"
#include "backend/cuda/svm_kernels.h"

extern const lt_svm_ops lt_cuda_svm_ops;

/* ---- svm_rows.c ---- */

double lt_cuda_seconds(void);
/* lt_cuda_alloc of count * size bytes; a product that overflows is out of memory too. */
latent_status lt_cuda_room(latent_context *ctx, lt_cuda *cuda, size_t count, size_t size, void *out);

/* Rows [first, first+count) in device memory. */
typedef struct lt_cuda_piece {
    const float *x;
    size_t first, count;
} lt_cuda_piece;
typedef latent_status (*lt_cuda_piece_fn)(latent_context *ctx, lt_cuda *cuda, const lt_cuda_piece *piece,
                                          void *user);
/* Hands all rows to `each`, in order: at once when they are on the device, else piece after piece, the first
 * row of each a multiple of LT_CUDA_CHUNK. Adds the time of the copies to *upload_seconds. */
latent_status lt_cuda_pieces(latent_context *ctx, lt_cuda *cuda, const lt_svm_rows *rows,
                             lt_cuda_piece_fn each, void *user, double *upload_seconds);
/* Bytes that lt_cuda_pieces takes on the device meanwhile. */
size_t lt_cuda_pieces_bytes(const lt_svm_rows *rows);

latent_status lt_cuda_statistics(latent_context *ctx, lt_backend *backend, const lt_svm_rows *rows,
                                 float *mean, lt_svm_statistics *out);

/* ---- svm_product.c ---- */

/* Room for n rows of d features. */
latent_status lt_cuda_operand_create(latent_context *ctx, lt_cuda *cuda, lt_svm_precision precision, size_t n,
                                     size_t d, lt_cuda_operand *out);
void lt_cuda_operand_free(lt_cuda *cuda, lt_cuda_operand *operand);
uint64_t lt_cuda_operand_bytes(lt_svm_precision precision, size_t n, size_t d);
/* Converts rows, less the mean (host [d], or NULL). order: host; operand row i is row order[i]; NULL: row i.
 */
latent_status lt_cuda_operand_fill(latent_context *ctx, lt_cuda *cuda, const lt_svm_rows *rows,
                                   const uint32_t *order, const float *mean, lt_cuda_operand *operand,
                                   double *upload_seconds);
/* For every row its place in `order`, on the device; *rows_out are the rows up to the last one wanted. With
 * order NULL: NULL and the rows as they are. */
latent_status lt_cuda_places(latent_context *ctx, lt_cuda *cuda, const lt_svm_rows *rows,
                             const uint32_t *order, lt_svm_rows *rows_out, uint32_t **out);
/* Opens cuBLAS; LATENT_ERROR_UNSUPPORTED where there is none. */
latent_status lt_cuda_products_open(latent_context *ctx, lt_cuda *cuda);
/* out[i][j] = a[first_a + i] . b[first_b + j] as they are stored, `row` floats from row to row. */
latent_status lt_cuda_product(latent_context *ctx, lt_cuda *cuda, const lt_cuda_operand *a, size_t first_a,
                              size_t m, const lt_cuda_operand *b, size_t first_b, size_t n, float *out,
                              size_t row);

/* ---- svm_matrix.c ---- */

typedef struct lt_cuda_matrix {
    lt_svm_kernel kernel;
    double gamma;
    size_t n, d;
    lt_cuda_operand x; /* values NULL: not needed any more */
    double *norm;      /* [n] squared lengths */
    float *k;          /* [n][row], or NULL: made for each pair of classes */
    float *distance;   /* [n][row], or NULL */
    size_t row;
    uint64_t limit; /* bytes that a matrix may take; 0: what is free */
    uint64_t bytes;
    double seconds, upload_seconds;
} lt_cuda_matrix;

/* The kernel matrix of one or two ranges of rows, in that order: k [side][row], norm [side]. */
typedef struct lt_cuda_part {
    size_t begin[2], end[2];
    int ranges;
    size_t side, row;
    float *k, *distance; /* distance may be NULL */
    double *unit, *norm;
} lt_cuda_part;
latent_status lt_cuda_part_fill(latent_context *ctx, lt_cuda *cuda, const lt_cuda_matrix *matrix,
                                const lt_cuda_part *part, const lt_svm_progress *progress);
/* Room for the rows of a problem, and their kernel matrix. Where it does not fit: a sentence, and
 * LATENT_ERROR_UNSUPPORTED. */
latent_status lt_cuda_part_create(latent_context *ctx, lt_cuda *cuda, const lt_cuda_matrix *matrix,
                                  const lt_svm_problem *problem, lt_cuda_part *out);
void lt_cuda_part_free(lt_cuda *cuda, lt_cuda_part *part);

/* ---- svm_solve.c, svm_solver.c, svm_sums.c, svm_machine.c ---- */

/* Some of a call's problems with the matrix that they are solved on. */
typedef struct lt_cuda_group {
    const lt_svm_problem *problems; /* host: all of the call */
    const uint32_t *which;          /* host [count] */
    int count;
    lt_cuda_part matrix; /* k, row, norm */
    int own;             /* 1: the matrix is that of the problems' rows alone, counted from 0 */
    const uint8_t *fold; /* host [rows of the call's matrix] or NULL */
    lt_svm_kernel kernel;
    int done, total; /* problems of the call solved before, and in all */
} lt_cuda_group;
latent_status lt_cuda_group_solve(latent_context *ctx, lt_cuda *cuda, const lt_cuda_group *group,
                                  const lt_svm_solve_call *call);
/* The device's description of the group's problems; first counts from 0. Returns the places they take. */
size_t lt_cuda_group_table(const lt_cuda_group *group, lt_cuda_problem *table);
/* The indices of problems, those of the same rows side by side. */
latent_status lt_cuda_group_sort(latent_context *ctx, const lt_svm_problem *problems, int count,
                                 uint32_t **out);
int lt_cuda_same_rows(const lt_svm_problem *a, const lt_svm_problem *b);

latent_status lt_cuda_solve(latent_context *ctx, lt_backend *backend, lt_svm_matrix *matrix,
                            const lt_svm_solve_call *call);
latent_status lt_cuda_sums(latent_context *ctx, lt_backend *backend, lt_svm_matrix *matrix,
                           const lt_svm_sums_call *call);
latent_status lt_cuda_machine_create(latent_context *ctx, lt_backend *backend,
                                     const lt_svm_machine_call *call, lt_svm_machine **out);
latent_status lt_cuda_machine_decide(latent_context *ctx, lt_backend *backend, lt_svm_machine *machine,
                                     const lt_svm_rows *rows, double *decisions);
void lt_cuda_machine_free(lt_backend *backend, lt_svm_machine *machine);

#endif
