/* problems.c: pairs of classes as binary problems of the seam, and progress on its way to the caller. */
#include "svm/svm.h"

void lt_svm_pair_classes(int classes, int pair, int *a, int *b) {
    *a = 0;
    while (pair >= classes - 1 - *a) {
        pair -= classes - 1 - *a;
        (*a)++;
    }
    *b = *a + 1 + pair;
}

lt_svm_problem lt_svm_problem_make(const lt_svm_set *set, int pair, double c, int fold, size_t first) {
    int a, b;
    lt_svm_pair_classes(set->classes, pair, &a, &b);
    return (lt_svm_problem){.begin = {set->begin[a], set->begin[b]},
                            .end = {set->begin[a + 1], set->begin[b + 1]},
                            .c = {c * set->weight[a], c * set->weight[b]},
                            .fold = fold,
                            .first = first};
}

size_t lt_svm_problem_rows(const lt_svm_problem *p) {
    return (size_t)(p->end[0] - p->begin[0]) + (p->end[1] - p->begin[1]);
}

int lt_svm_problem_whole(const lt_svm_problem *p, const uint8_t *fold) {
    for (int k = 0; k < 2; k++) {
        uint32_t i = p->begin[k];
        while (i < p->end[k] && fold[i] == (uint8_t)p->fold) {
            i++;
        }
        if (i == p->end[k]) {
            return 0;
        }
    }
    return 1;
}

uint64_t lt_svm_iterations_max(const latent_svm_options *options, size_t n) {
    uint64_t most = 100 * (uint64_t)n;
    most = most > 10000000 ? most : 10000000;
    return options->iterations_max ? options->iterations_max : most;
}

void lt_svm_report_progress(void *user, uint64_t done, uint64_t total) {
    const lt_svm_reporter *r = user;
    if (r->options->progress) {
        r->options->progress(r->options->user, r->stage, r->before + done, r->total ? r->total : total,
                             r->memory);
    }
}

latent_status lt_svm_matrix_make(latent_context *ctx, const lt_svm_engine *engine, const lt_svm_set *set,
                                 const latent_svm_options *options, int keep_distances, lt_svm_matrix **out) {
    uint64_t whole = (uint64_t)set->rows.n * set->rows.n * sizeof(float) * (keep_distances ? 2 : 1);
    uint64_t memory = options->cache_bytes && options->cache_bytes < whole ? options->cache_bytes : whole;
    lt_svm_reporter reporter = {options, LATENT_SVM_MATRIX, memory, 0, 0};
    lt_svm_matrix_call call = {
        .rows = set->there,
        .order = set->order,
        .mean = set->mean,
        .kernel = options->kernel == LATENT_SVM_LINEAR ? LT_SVM_LINEAR : LT_SVM_RBF,
        .gamma = set->gamma[0],
        .precision = options->precision == LATENT_SVM_FAST   ? LT_SVM_FAST
                     : options->precision == LATENT_SVM_FP32 ? LT_SVM_FP32
                                                             : LT_SVM_STRICT,
        .keep_distances = keep_distances,
        .bytes_limit = options->cache_bytes,
        .progress = {lt_svm_report_progress, &reporter},
    };
    return engine->ops->matrix_create(ctx, engine->backend, &call, out);
}
