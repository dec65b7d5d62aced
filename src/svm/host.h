/* host.h: support vector machines in host memory: the table lt_svm_ops on a backend's gemm_nt and parallel.
 *
 * The kernel matrix is whole when it fits into the cache; its problems are then solved side by side, one to
 * a thread. When it does not fit, tiles of rows are computed by matrix products as a problem asks for them
 * and kept as long as there is room; problems then follow one another, and the products use all threads.
 * Either way a kernel value has the same bits, so what fits where decides the time and not the result.
 */
#ifndef LT_SVM_HOST_H
#define LT_SVM_HOST_H

#include "backend/backend.h"
#include "svm/smo.h"

/* The table; `backend` must have host memory and gemm_nt. */
extern const lt_svm_ops lt_svm_host_ops;

enum {
    LT_TILE = 1024,    /* columns of a tile */
    LT_BLOCK = 512,    /* rows of one matrix product */
    LT_DIRECT = 2048,  /* rows up to which a problem's kernel is packed: 16 MiB */
    LT_WORKING = 2048, /* rows of a working set, where the cache has room for them */
    LT_WORKING_MIN = 16,
    LT_SPLIT = 1 << 18 /* kernel values from which on a loop over them is split among threads */
};

typedef struct lt_tiles lt_tiles;

typedef struct lt_host_matrix {
    lt_backend *backend;
    lt_svm_kernel kernel;
    double gamma;
    size_t n, d;
    float *x; /* [n][stride] centered and in order; NULL once a whole matrix needs it no more */
    size_t stride;
    float *norm;     /* [n] squared lengths, by the same products */
    float *k;        /* [n][row], or NULL: tiles */
    float *distance; /* [n][row] squared distances, or NULL */
    size_t row;
    lt_tiles *tiles;
    uint64_t bytes;
    double seconds;
} lt_host_matrix;

/* ---- host_tiles.c ---- */

/* Room for as many tiles as `bytes` hold; fails when that is not even a small working set. */
latent_status lt_tiles_create(latent_context *ctx, const lt_host_matrix *matrix, uint64_t bytes,
                              lt_tiles **out);
void lt_tiles_destroy(lt_tiles *tiles);
void lt_tiles_clear(lt_tiles *tiles); /* another gamma: nothing in it is right any more */
uint64_t lt_tiles_bytes(const lt_tiles *tiles);

/* The columns of a problem: two ranges. */
typedef struct lt_columns {
    size_t begin[2], end[2];
} lt_columns;

/* How many rows can be at hand at once; SIZE_MAX for a whole matrix. */
size_t lt_matrix_rows_max(const lt_host_matrix *matrix, const lt_columns *columns);
/* Puts these rows at hand, at least over these columns, until the next call. Not for use by several threads
 * unless the matrix is whole: then it does nothing. */
latent_status lt_matrix_need(latent_context *ctx, lt_host_matrix *matrix, const uint32_t *rows, size_t count,
                             const lt_columns *columns);
/* K[row][column] and how many values follow it in memory. */
const float *lt_matrix_at(const lt_host_matrix *matrix, size_t row, size_t column, size_t *run);

/* ---- host_kernel.c ---- */

/* Products to kernel values of row i against columns [first, first+count), in place or not; `distance` gets
 * the squared distances unless it is NULL. */
void lt_kernel_from_products(const lt_host_matrix *matrix, size_t i, size_t first, size_t count,
                             const float *products, float *distance, float *k);
/* max(0, norm + norms - 2 products) */
void lt_squared_distances(size_t count, float norm, const float *norms, const float *products, float *out);
void lt_kernel_from_distances(double gamma, size_t count, const float *distance, float *k);
/* f[t] -= sum over r of scale[r] * rows[r][t], added up in order of r. */
void lt_subtract_rows(double *f, size_t count, const float *const *rows, const double *scale, size_t r);
/* sum of a[t] * b[t], in a fixed order. */
double lt_dot(const float *a, const double *b, size_t count);

/* ---- host_solve.c and its two ways ---- */

/* One problem being solved: flat position t is matrix row lt_view_row(t). Arrays have lt_smo_padded places.
 */
typedef struct lt_view {
    const lt_svm_problem *problem;
    lt_columns columns;
    size_t n; /* rows of both classes, left-out ones included */
    size_t n0;
    double *y, *bound, *beta, *f; /* [n]; bound is 0 for rows that are left out */
} lt_view;

static inline uint32_t lt_view_row(const lt_view *view, size_t t) {
    return (uint32_t)(t < view->n0 ? view->columns.begin[0] + t : view->columns.begin[1] + t - view->n0);
}

/* What one thread needs to solve any of the problems. */
typedef struct lt_workspace {
    void *memory;
    lt_view view;
    lt_smo smo, spare;      /* the problem as the steps see it; spare: what shrinking leaves */
    float *packed;          /* [room][padded room + LT_SMO_LANES] smo's kernel, when it is packed */
    size_t room;            /* rows of a packed problem */
    uint32_t *positions;    /* [padded n] the problem's rows, as flat positions; or as rows of the matrix */
    uint32_t *order;        /* [2 * padded n] */
    double *scale;          /* [LT_WORKING] */
    const float **pointers; /* [LT_WORKING] */
    uint8_t *chosen;        /* [n] 1: in the working set */
} lt_workspace;

/* Everything that the problems of one call share. */
typedef struct lt_solver {
    latent_context *ctx;
    lt_host_matrix *matrix;
    const lt_svm_solve_call *call;
    lt_workspace *works; /* one per thread */
    int split;           /* 1: problems come one at a time, so their loops may use all threads */
} lt_solver;

/* Steps with shrinking: rows that rest at a bound, beyond the reach of the others, are left out until the
 * rest is solved; then their f is computed afresh and all are checked. `spare` has room for `room` rows;
 * `kept` has 2n places. */
lt_svm_outcome lt_smo_shrink(lt_smo *smo, lt_smo *spare, size_t room, uint32_t *kept,
                             const volatile int *interrupted);
/* sum over j of K[i][j] beta[j], afresh. */
double lt_smo_sum(const lt_smo *smo, size_t i);

/* Both start from view's beta and f and leave the solution there, with iterations, gap and outcome in *out.
 */
latent_status lt_solve_direct(const lt_solver *solver, lt_workspace *work, uint64_t cap,
                              lt_svm_solution *out);
latent_status lt_solve_in_place(const lt_solver *solver, lt_workspace *work, uint64_t cap,
                                lt_svm_solution *out);
latent_status lt_solve_working(const lt_solver *solver, lt_workspace *work, uint64_t cap,
                               lt_svm_solution *out);
/* f = y - K beta, afresh, of the rows at these flat positions. */
latent_status lt_view_refresh(const lt_solver *solver, lt_view *view, const uint32_t *positions,
                              size_t count);

/* ---- host_machine.c, host_sums.c ---- */
latent_status lt_host_sums(latent_context *ctx, lt_backend *backend, lt_svm_matrix *matrix,
                           const lt_svm_sums_call *call);
latent_status lt_host_machine_create(latent_context *ctx, lt_backend *backend,
                                     const lt_svm_machine_call *call, lt_svm_machine **out);
latent_status lt_host_machine_decide(latent_context *ctx, lt_backend *backend, lt_svm_machine *machine,
                                     const lt_svm_rows *rows, double *decisions);
void lt_host_machine_free(lt_backend *backend, lt_svm_machine *machine);
latent_status lt_host_solve(latent_context *ctx, lt_backend *backend, lt_svm_matrix *matrix,
                            const lt_svm_solve_call *call);
latent_status lt_host_statistics(latent_context *ctx, lt_backend *backend, const lt_svm_rows *rows,
                                 float *mean, lt_svm_statistics *out);

/* ---- host_memory.c ---- */
double lt_seconds(void);
/* Zeroed memory on a multiple of 64 bytes; free(). `out` is the address of a pointer. */
latent_status lt_aligned(latent_context *ctx, size_t count, size_t size, const char *what, void *out);
/* The same, not zeroed. */
latent_status lt_aligned_raw(latent_context *ctx, size_t count, size_t size, const char *what, void *out);
/* Bytes that this process could still take without pushing others out; 0: not known. */
uint64_t lt_memory_available(void);
/* Tasks on the backend's threads, or one after another. */
void lt_parallel(lt_backend *backend, int count, void (*run)(void *arg, int task, int thread), void *arg);
/* The same; one after another unless `split`: for work too small to be worth waking the threads. */
void lt_parallel_if(lt_backend *backend, int split, int count, void (*run)(void *arg, int task, int thread),
                    void *arg);
int lt_threads(const lt_backend *backend);
/* Floats from row to row that suit the caches. */
size_t lt_row_stride(size_t d);
/* Copies rows, in order, less the mean, into [n][stride] with zeros behind the last column. */
void lt_center_rows(lt_backend *backend, const lt_svm_rows *rows, const uint32_t *order, const float *mean,
                    float *out, size_t stride);
/* norm[i] = |x[i]|^2, by the backend's own products. Fails when one is not finite. */
latent_status lt_norms(latent_context *ctx, lt_backend *backend, const float *x, size_t n, size_t d,
                       size_t stride, const uint32_t *order, float *norm);

#endif
