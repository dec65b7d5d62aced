/* set.c: a training set made ready: checked, its classes found and sorted, weights, gamma and folds.
 *
 * Classes are numbered as their labels are first seen, with LIBSVM's exception for -1 and +1. Rows are sorted
 * by class, in the order in which they came within a class, so that every pair of classes is two ranges.
 */
#include "svm/svm.h"

#include "base/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static latent_status check_number(latent_context *ctx, const char *what, double value) {
    return value > 0 && isfinite(value)
               ? LATENT_OK
               : lt_fail(ctx, LATENT_ERROR_ARGUMENT, "%s is %g; it must be a number above 0", what, value);
}

latent_status lt_svm_options_check(latent_context *ctx, const latent_svm_options *o) {
    latent_status status = LATENT_OK;
    LT_TRY(check_number(ctx, "C", o->c));
    LT_TRY(check_number(ctx, "the tolerance", o->tolerance));
    if (o->kernel == LATENT_SVM_RBF && o->gamma_rule == LATENT_GAMMA_VALUE) {
        LT_TRY(check_number(ctx, "gamma", o->gamma));
    }
    if (o->gamma_per_pair && (o->kernel != LATENT_SVM_RBF || o->gamma_rule != LATENT_GAMMA_SCALE)) {
        status = lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                         "a gamma per pair needs the RBF kernel and gamma by scale: it is the scale of each "
                         "pair's own rows");
        goto done;
    }
    for (int i = 0; i < o->weight_count; i++) {
        char what[64];
        for (int j = 0; j < i; j++) {
            if (o->weights[j].label == o->weights[i].label) {
                status = lt_fail(ctx, LATENT_ERROR_ARGUMENT, "the weight of class %d is given twice",
                                 o->weights[i].label);
                goto done;
            }
        }
        snprintf(what, sizeof what, "the weight of class %d", o->weights[i].label);
        LT_TRY(check_number(ctx, what, o->weights[i].weight));
    }
done:
    return status;
}

typedef struct labelled {
    int32_t label;
    uint32_t first; /* row where it is first seen; then the class */
} labelled;

static int by_label(const void *a, const void *b) {
    const labelled *x = a, *y = b;
    return x->label != y->label ? (x->label > y->label) - (x->label < y->label)
                                : (x->first > y->first) - (x->first < y->first);
}

static int by_first(const void *a, const void *b) {
    const labelled *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* The distinct labels in class order, and each row's class into `order` for the moment. */
static latent_status find_classes(latent_context *ctx, const int32_t *labels, lt_svm_set *set) {
    latent_status status = LATENT_OK;
    size_t n = set->rows.n, distinct = 0;
    labelled *all = NULL;
    LT_TRY(lt_alloc(ctx, n * sizeof *all, "labels", (void **)&all));
    for (size_t i = 0; i < n; i++) {
        all[i] = (labelled){labels[i], (uint32_t)i};
    }
    qsort(all, n, sizeof *all, by_label);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || all[i].label != all[i - 1].label) {
            all[distinct++] = all[i];
        }
    }
    qsort(all, distinct, sizeof *all, by_first);
    if (distinct == 2 && all[0].label == -1 && all[1].label == 1) {
        all[0].label = 1;
        all[1].label = -1;
    }
    if (distinct < 2) {
        status = lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                         "all %zu rows have the label %d; a classifier needs at least two classes", n,
                         all[0].label);
        goto done;
    }
    if (distinct > 4096) {
        status =
            lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                    "the labels have %zu different values; at most 4096 classes can be told apart", distinct);
        goto done;
    }
    set->classes = (int)distinct;
    set->pairs = set->classes * (set->classes - 1) / 2;
    LT_TRY(lt_alloc(ctx, distinct * sizeof *set->labels, "labels", (void **)&set->labels));
    for (size_t c = 0; c < distinct; c++) {
        set->labels[c] = all[c].label;
        all[c].first = (uint32_t)c;
    }
    qsort(all, distinct, sizeof *all, by_label);
    for (size_t i = 0; i < n; i++) {
        size_t low = 0, high = distinct - 1;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (all[middle].label < labels[i]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        set->order[i] = all[low].first;
    }
done:
    free(all);
    return status;
}

/* Counting sort: `order` comes as the class of each row and leaves as the sorted rows. */
static latent_status sort_rows(latent_context *ctx, lt_svm_set *set) {
    latent_status status = LATENT_OK;
    size_t n = set->rows.n;
    uint32_t *class_of = NULL, *next = NULL;
    LT_TRY(lt_alloc(ctx, n * sizeof *class_of, "classes", (void **)&class_of));
    LT_TRY(lt_calloc(ctx, (size_t)set->classes + 1, sizeof *next, "classes", (void **)&next));
    LT_TRY(lt_calloc(ctx, (size_t)set->classes + 1, sizeof *next, "classes", (void **)&set->begin));
    memcpy(class_of, set->order, n * sizeof *class_of);
    for (size_t i = 0; i < n; i++) {
        set->begin[class_of[i] + 1]++;
    }
    for (int c = 0; c < set->classes; c++) {
        set->begin[c + 1] += set->begin[c];
        next[c] = set->begin[c];
    }
    for (size_t i = 0; i < n; i++) {
        set->order[next[class_of[i]]++] = (uint32_t)i;
    }
done:
    free(class_of);
    free(next);
    return status;
}

static latent_status set_weights(latent_context *ctx, const latent_svm_options *o, lt_svm_set *set) {
    latent_status status =
        lt_alloc(ctx, (size_t)set->classes * sizeof(double), "class weights", (void **)&set->weight);
    for (int c = 0; status == LATENT_OK && c < set->classes; c++) {
        double rows = set->begin[c + 1] - set->begin[c];
        set->weight[c] = o->balanced ? (double)set->rows.n / (set->classes * rows) : 1;
    }
    for (int i = 0; status == LATENT_OK && i < o->weight_count; i++) {
        int c = 0;
        while (c < set->classes && set->labels[c] != o->weights[i].label) {
            c++;
        }
        if (c == set->classes) {
            return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                           "a weight is given for class %d, but no row has that label", o->weights[i].label);
        }
        set->weight[c] *= o->weights[i].weight;
    }
    return status;
}

/* Variance of the rows of two classes; in host memory. */
static double pair_variance(const lt_svm_set *set, int a, int b) {
    const int classes[2] = {a, b};
    double sum = 0, squares = 0, count = 0;
    for (int pass = 0; pass < 2; pass++) {
        double mean = count > 0 ? sum / count : 0;
        for (int k = 0; k < 2; k++) {
            for (uint32_t i = set->begin[classes[k]]; i < set->begin[classes[k] + 1]; i++) {
                const float *x = set->rows.x + set->order[i] * set->rows.stride;
                double row = 0;
                for (size_t c = 0; c < set->rows.d; c++) {
                    row += pass == 0 ? (double)x[c] : (x[c] - mean) * (x[c] - mean);
                }
                *(pass == 0 ? &sum : &squares) += row;
                count += pass == 0 ? (double)set->rows.d : 0;
            }
        }
    }
    return squares / count;
}

static latent_status set_gamma(latent_context *ctx, const latent_svm_options *o, lt_svm_set *set) {
    latent_status status = lt_calloc(ctx, (size_t)set->pairs, sizeof(double), "gammas", (void **)&set->gamma);
    for (int p = 0; status == LATENT_OK && p < set->pairs; p++) {
        double variance = set->variance;
        if (o->gamma_per_pair) {
            int a, b;
            lt_svm_pair_classes(set->classes, p, &a, &b);
            variance = pair_variance(set, a, b);
        }
        set->gamma[p] = o->gamma_rule == LATENT_GAMMA_VALUE  ? o->gamma
                        : o->gamma_rule == LATENT_GAMMA_AUTO ? 1 / (double)set->rows.d
                                                             : 1 / ((double)set->rows.d * variance);
        if (o->kernel == LATENT_SVM_RBF && !(isfinite(set->gamma[p]) && set->gamma[p] > 0)) {
            status = lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                             "gamma by scale is 1 / (columns * variance), and the variance of these features "
                             "is %g: they are constant; give gamma as a number, or other features",
                             variance);
        }
    }
    return status;
}

static latent_status check_shape(latent_context *ctx, const lt_svm_rows *rows) {
    size_t values = 0;
    if (rows->n == 0 || rows->d == 0) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "the features have %zu rows and %zu columns; at least one of each is needed", rows->n,
                       rows->d);
    }
    if (rows->n > INT32_MAX || __builtin_mul_overflow(rows->n, rows->stride * sizeof(float), &values)) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "%zu rows of %zu features are too many; at most 2147483647 rows can be trained on",
                       rows->n, rows->d);
    }
    return LATENT_OK;
}

latent_status lt_svm_set_make(latent_context *ctx, const lt_svm_engine *engine, const lt_svm_rows *rows,
                              const int32_t *labels, const latent_svm_options *options, lt_svm_set *out) {
    latent_status status = LATENT_OK;
    lt_svm_statistics statistics = {0};
    memset(out, 0, sizeof *out);
    out->rows = out->there = *rows;
    out->backend = engine->backend;
    LT_TRY(lt_svm_options_check(ctx, options));
    LT_TRY(check_shape(ctx, rows));
    if (options->gamma_per_pair && rows->on_backend) {
        status = lt_fail(ctx, LATENT_ERROR_UNSUPPORTED, "a gamma per pair needs features in host memory");
        goto done;
    }
    LT_TRY(lt_alloc(ctx, rows->n * sizeof *out->order, "row numbers", (void **)&out->order));
    LT_TRY(find_classes(ctx, labels, out));
    LT_TRY(sort_rows(ctx, out));
    LT_TRY(set_weights(ctx, options, out));
    LT_TRY(lt_alloc(ctx, rows->d * sizeof *out->mean, "the mean", (void **)&out->mean));
    LT_TRY(lt_svm_rows_upload(ctx, engine->backend, rows, options->cache_bytes, &out->there, &out->copy));
    LT_TRY(engine->ops->statistics(ctx, engine->backend, &out->there, out->mean, &statistics));
    if (!statistics.finite) {
        status = lt_fail(ctx, LATENT_ERROR_NUMERIC,
                         "row %zu, column %zu of the features is not a finite number; all must be",
                         statistics.bad / rows->d, statistics.bad % rows->d);
        goto done;
    }
    out->variance = statistics.variance;
    LT_TRY(set_gamma(ctx, options, out));
done:
    if (status != LATENT_OK) {
        lt_svm_set_free(out);
    }
    return status;
}

void lt_svm_set_release(lt_svm_set *set) {
    if (set->copy) {
        set->backend->type->free(set->backend, set->copy);
        set->copy = NULL;
        set->there = set->rows;
    }
}

void lt_svm_set_free(lt_svm_set *set) {
    lt_svm_set_release(set);
    free(set->labels);
    free(set->begin);
    free(set->order);
    free(set->weight);
    free(set->mean);
    free(set->gamma);
    memset(set, 0, sizeof *set);
}

void lt_svm_folds(const lt_svm_set *set, int folds, uint64_t seed, uint8_t *fold) {
    for (int c = 0; c < set->classes; c++) {
        uint32_t rows = set->begin[c + 1] - set->begin[c];
        for (uint32_t i = 0; i < rows; i++) {
            /* Classes start at different folds, so that the folds stay equal in size. */
            uint32_t at = lt_permute(seed, (uint32_t)c, rows, i);
            fold[set->begin[c] + at] = (uint8_t)((i + (uint32_t)c) % (uint32_t)folds);
        }
    }
}
