/* svm.h: the inside of a support vector machine: a training set made ready, the model, and what its files
 * share. The path of a training: set.c sorts and checks, train.c makes the kernel matrix and solves,
 * platt.c fits probabilities, model.c keeps what is needed to predict.
 */
#ifndef LT_SVM_SVM_H
#define LT_SVM_SVM_H

#include "backend/backend.h"

/* ---- engine.c: who computes ---- */

typedef struct lt_svm_engine {
    lt_backend *backend;
    const lt_svm_ops *ops;
} lt_svm_engine;

/* Opens a backend; one that has no machines of its own and no host memory is replaced by a host backend. */
latent_status lt_svm_engine_open(latent_context *ctx, const latent_engine_options *options,
                                 lt_svm_engine *out);
/* After an entry said LATENT_ERROR_UNSUPPORTED: logs its sentence and opens a host backend instead. Fails
 * with that sentence when the engine was the host's already. */
latent_status lt_svm_engine_to_host(latent_context *ctx, const latent_engine_options *options,
                                    lt_svm_engine *engine);
void lt_svm_engine_close(lt_svm_engine *engine);

/* ---- rows.c: passes over rows, and their copy in the backend's memory ---- */

/* 1 when all are finite. */
int lt_svm_finite(const float *x, size_t count);
/* The same for x[n][d]; 0: the place of the first that is not. */
int lt_svm_rows_finite(const float *x, size_t n, size_t d, size_t *row, size_t *column);
/* Column means of x[n][d], summed in fp64 in the order of the rows; 0 without rows. */
latent_status lt_svm_means(latent_context *ctx, const float *x, size_t n, size_t d, float *mean);
/* out[count][d] = rows order[0], order[1] ...; in host memory. */
void lt_svm_rows_gather(const lt_svm_rows *rows, const uint32_t *order, size_t count, float *out);
/* Copies rows of the host, at least one, to a backend whose memory is not the host's, so that no pass over
 * them has to: *out is the copy, and *copy its memory. Where there is no need for it or no room, *out are the
 * rows as they are and *copy is NULL. limit: bytes that the kernel matrix may take; 0: any. */
latent_status lt_svm_rows_upload(latent_context *ctx, lt_backend *backend, const lt_svm_rows *rows,
                                 uint64_t limit, lt_svm_rows *out, void **copy);

/* ---- set.c: a training set made ready ---- */

typedef struct lt_svm_set {
    lt_svm_rows rows;    /* as the caller has them */
    lt_svm_rows there;   /* as the backend is given them: the same, or its copy */
    lt_backend *backend; /* of the copy */
    void *copy;          /* the backend's memory, or NULL */
    int classes, pairs;
    int32_t *labels; /* [classes], in class order */
    uint32_t *begin; /* [classes+1] first sorted row of a class */
    uint32_t *order; /* [n] sorted row -> row; within a class as they came */
    double *weight;  /* [classes] factor of C */
    float *mean;     /* [d] */
    double variance;
    double *gamma; /* [pairs] */
} lt_svm_set;

/* Checks options and data; every mistake is a sentence. */
latent_status lt_svm_options_check(latent_context *ctx, const latent_svm_options *options);
latent_status lt_svm_set_make(latent_context *ctx, const lt_svm_engine *engine, const lt_svm_rows *rows,
                              const int32_t *labels, const latent_svm_options *options, lt_svm_set *out);
void lt_svm_set_free(lt_svm_set *set);
/* The backend's copy of the rows is needed no more. */
void lt_svm_set_release(lt_svm_set *set);
/* Stratified folds of the sorted rows, counted randomness; fold[n]. */
void lt_svm_folds(const lt_svm_set *set, int folds, uint64_t seed, uint8_t *fold);

/* The place of pair (a, b), a < b. */
static inline int lt_svm_pair_index(int classes, int a, int b) {
    return a * (2 * classes - a - 1) / 2 + b - a - 1;
}
/* The inverse. */
void lt_svm_pair_classes(int classes, int pair, int *a, int *b);
/* The problem of a pair. `first` is its place in the flat arrays. */
lt_svm_problem lt_svm_problem_make(const lt_svm_set *set, int pair, double c, int fold, size_t first);
size_t lt_svm_problem_rows(const lt_svm_problem *problem);
/* 1 when both classes have rows outside the fold. */
int lt_svm_problem_whole(const lt_svm_problem *problem, const uint8_t *fold);

/* The kernel matrix of a set, for gamma of its first pair. */
latent_status lt_svm_matrix_make(latent_context *ctx, const lt_svm_engine *engine, const lt_svm_set *set,
                                 const latent_svm_options *options, int keep_distances, lt_svm_matrix **out);
uint64_t lt_svm_iterations_max(const latent_svm_options *options, size_t n);
/* Progress of the library's caller as the backend calls it. */
typedef struct lt_svm_reporter {
    const latent_svm_options *options;
    latent_svm_stage stage;
    uint64_t memory;
    uint64_t before, total; /* problems of earlier calls; of all calls (0: as the call says) */
} lt_svm_reporter;
void lt_svm_report_progress(void *reporter, uint64_t done, uint64_t total);

/* ---- model.c ---- */

struct latent_svm {
    lt_svm_engine engine;
    latent_engine_options engine_options; /* backend name and numbers only: for a fall back to the host */
    lt_svm_machine *machine;              /* NULL: made at the first prediction */
    latent_svm_kernel kernel;
    latent_svm_precision precision;
    latent_svm_vote vote;
    int classes, pairs;
    int gamma_per_pair;
    int open_width; /* the file did not say d: what the vectors do not reach is 0 */
    size_t d, support;
    int32_t *labels;             /* [classes] */
    uint64_t *supports;          /* [classes] */
    float *vectors;              /* [support][d], class by class */
    struct lt_safetensors *file; /* the file that the vectors lie in, or NULL: their memory is their own */
    double *coefficients; /* [classes-1][support], LIBSVM's layout: for a vector of class a, row b-1 holds its
                             part in pair (a, b) and row b its part in pair (b, a) */
    double *rho;          /* [pairs] */
    double *gamma;        /* [pairs] */
    double *prob_a, *prob_b; /* [pairs], or NULL */
    latent_svm_pair *pair;   /* [pairs], or NULL: it came from a file */
};

/* A model with room for these numbers, all zero, but without vectors. */
latent_status lt_svm_model_make(latent_context *ctx, int classes, size_t support, size_t d, int probability,
                                latent_svm **out);
/* Room for the vectors, all zero. */
latent_status lt_svm_vectors_make(latent_context *ctx, latent_svm *svm);
void lt_svm_vectors_free(latent_svm *svm);
/* The classes' first vectors: [classes+1]. */
latent_status lt_svm_model_begins(latent_context *ctx, const latent_svm *svm, size_t **out);
/* Checks a model that came from a file: finite numbers, distinct labels, counts that add up. */
latent_status lt_svm_model_check(latent_context *ctx, const char *origin, const latent_svm *svm);

/* ---- predict.c ---- */

/* The machine that predicts, on this engine. Its vectors are the model's own, or, for RBF with order
 * [support], these rows of the training set: the bits are the same. */
latent_status lt_svm_machine_make(latent_context *ctx, const latent_svm *svm, const lt_svm_engine *engine,
                                  const lt_svm_rows *rows, const uint32_t *order, lt_svm_machine **out);
/* The winning class of one row's decision values; pairs with valid[pair] == 0 have no vote (NULL: all have).
 * scratch[2*classes]. */
int lt_svm_vote(int classes, latent_svm_vote rule, const double *decision, const uint8_t *valid,
                double *scratch);

/* ---- platt.c ---- */

/* Fits P(y = +1 | f) = 1 / (1 + exp(a f + b)) to decision values by Newton's method. */
void lt_platt_fit(size_t n, const double *decision, const double *y, double *a, double *b);
double lt_platt(double decision, double a, double b);
/* Class probabilities from those of the pairs: pairwise[i*k + j] = P(i | i or j). out[k]; scratch of k*k. */
void lt_platt_couple(int k, const double *pairwise, double *scratch, double *out);

/* ---- model_text.c, model_file.c ---- */
latent_status lt_svm_text_write(latent_context *ctx, const latent_svm *svm, const char *path);
latent_status lt_svm_text_read(latent_context *ctx, const char *path, latent_svm **out);
latent_status lt_svm_file_write(latent_context *ctx, const latent_svm *svm, const char *path);
latent_status lt_svm_file_read(latent_context *ctx, const char *path, latent_svm **out);
/* The same from memory. */
latent_status lt_svm_text_parse(latent_context *ctx, const void *bytes, size_t size, const char *origin,
                                latent_svm **out);
latent_status lt_svm_file_parse(latent_context *ctx, const void *bytes, size_t size, const char *origin,
                                latent_svm **out);

/* ---- train.c ---- */

/* What a training holds on the way. */
typedef struct lt_svm_training {
    latent_context *ctx;
    const lt_svm_engine *engine;
    const latent_svm_options *options;
    lt_svm_set set;
    lt_svm_matrix *matrix;
    lt_svm_matrix_info info;
    lt_svm_problem *problems;   /* [pairs] */
    lt_svm_solution *solutions; /* [pairs] */
    double *alpha;              /* flat */
    double *prob_a, *prob_b;    /* [pairs], or NULL */
    size_t places;              /* of the flat array */
    double prepare_seconds, solve_seconds, probability_seconds;
} lt_svm_training;

/* build.c: the model out of the solved problems. */
latent_status lt_svm_model_build(const lt_svm_training *training, latent_svm **out);

/* Rows in host or backend memory, on an engine that is open; the model takes the engine over when it returns
 * LATENT_OK, else it stays the caller's. */
latent_status lt_svm_train(latent_context *ctx, lt_svm_engine *engine, const lt_svm_rows *rows,
                           const int32_t *labels, const latent_svm_options *options,
                           const latent_engine_options *engine_options, latent_svm **out,
                           latent_svm_report *report);

#endif
