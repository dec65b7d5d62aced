/* predict.c: decision values to votes, labels and probabilities. */
#include "svm/svm.h"

#include <stdlib.h>
#include <string.h>

/* Dense coefficients [pairs][support] out of LIBSVM's layout, for the backend's one big product. */
static latent_status spread(latent_context *ctx, const latent_svm *svm, double **out) {
    latent_status status = LATENT_OK;
    size_t *begin = NULL;
    LT_TRY(lt_svm_model_begins(ctx, svm, &begin));
    LT_TRY(lt_calloc(ctx, (size_t)svm->pairs * svm->support, sizeof **out, "coefficients", (void **)out));
    for (int p = 0; p < svm->pairs; p++) {
        int a, b;
        lt_svm_pair_classes(svm->classes, p, &a, &b);
        double *to = *out + (size_t)p * svm->support;
        memcpy(to + begin[a], svm->coefficients + (size_t)(b - 1) * svm->support + begin[a],
               (begin[a + 1] - begin[a]) * sizeof *to);
        memcpy(to + begin[b], svm->coefficients + (size_t)a * svm->support + begin[b],
               (begin[b + 1] - begin[b]) * sizeof *to);
    }
done:
    free(begin);
    return status;
}

latent_status lt_svm_machine_make(latent_context *ctx, const latent_svm *svm, const lt_svm_engine *engine,
                                  const lt_svm_rows *rows, const uint32_t *order, lt_svm_machine **out) {
    latent_status status = LATENT_OK;
    double *coefficients = NULL;
    float *mean = NULL;
    *out = NULL;
    LT_TRY(spread(ctx, svm, &coefficients));
    LT_TRY(lt_alloc(ctx, svm->d * sizeof *mean, "the mean", (void **)&mean));
    /* Any shift serves; the mean of the vectors makes the numbers small. It is theirs alone, wherever they
     * lie, so that a model out of a file predicts what it predicted before. */
    LT_TRY(lt_svm_means(ctx, svm->vectors, svm->support, svm->d, mean));
    lt_svm_machine_call call = {
        .vectors = {.x = svm->vectors, .n = svm->support, .d = svm->d, .stride = svm->d},
        .order = order,
        .mean = mean,
        .kernel = svm->kernel == LATENT_SVM_LINEAR ? LT_SVM_LINEAR : LT_SVM_RBF,
        .gamma = svm->gamma,
        .precision = svm->precision == LATENT_SVM_FAST   ? LT_SVM_FAST
                     : svm->precision == LATENT_SVM_FP32 ? LT_SVM_FP32
                                                         : LT_SVM_STRICT,
        .problems = svm->pairs,
        .coefficients = coefficients,
        .rho = svm->rho,
    };
    if (order) {
        call.vectors = *rows;
        call.vectors.n = svm->support;
    }
    LT_TRY(engine->ops->machine_create(ctx, engine->backend, &call, out));
done:
    free(coefficients);
    free(mean);
    return status;
}

static latent_status make_machine(latent_context *ctx, latent_svm *svm) {
    latent_status status = lt_svm_machine_make(ctx, svm, &svm->engine, NULL, NULL, &svm->machine);
    if (status == LATENT_ERROR_UNSUPPORTED) {
        LT_TRY(lt_svm_engine_to_host(ctx, &svm->engine_options, &svm->engine));
        LT_TRY(lt_svm_machine_make(ctx, svm, &svm->engine, NULL, NULL, &svm->machine));
    }
done:
    return status;
}

int lt_svm_vote(int classes, latent_svm_vote rule, const double *decision, const uint8_t *valid,
                double *scratch) {
    double *votes = scratch, *sums = scratch + classes;
    int best = 0, pair = 0;
    memset(scratch, 0, 2 * (size_t)classes * sizeof *scratch);
    for (int a = 0; a < classes; a++) {
        for (int b = a + 1; b < classes; b++, pair++) {
            if (!valid || valid[pair]) {
                votes[decision[pair] > 0 ? a : b] += 1;
                sums[a] += decision[pair];
                sums[b] -= decision[pair];
            }
        }
    }
    for (int c = 1; c < classes; c++) {
        int better = votes[c] > votes[best] ||
                     (rule == LATENT_VOTE_CONFIDENCE && votes[c] == votes[best] && sums[c] > sums[best]);
        best = better ? c : best;
    }
    return best;
}

static void probabilities_of(const latent_svm *svm, const double *decision, double *pairwise, double *scratch,
                             double *out) {
    int k = svm->classes, pair = 0;
    for (int a = 0; a < k; a++) {
        for (int b = a + 1; b < k; b++, pair++) {
            double p = lt_platt(decision[pair], svm->prob_a[pair], svm->prob_b[pair]);
            p = p < 1e-7 ? 1e-7 : p > 1 - 1e-7 ? 1 - 1e-7 : p;
            pairwise[a * k + b] = p;
            pairwise[b * k + a] = 1 - p;
        }
    }
    lt_platt_couple(k, pairwise, scratch, out);
}

/* Rows wider than the vectors of a file that did not say how wide they are: the rest of a vector is 0. */
static latent_status widen(latent_context *ctx, latent_svm *svm, size_t d) {
    float *wide = NULL;
    latent_status status =
        lt_calloc(ctx, svm->support, d * sizeof *wide, "the support vectors", (void **)&wide);
    if (status != LATENT_OK) {
        return status;
    }
    for (size_t i = 0; i < svm->support; i++) {
        memcpy(wide + i * d, svm->vectors + i * svm->d, svm->d * sizeof *wide);
    }
    lt_svm_vectors_free(svm);
    svm->vectors = wide;
    svm->d = d;
    if (svm->machine) {
        svm->engine.ops->machine_free(svm->engine.backend, svm->machine);
        svm->machine = NULL;
    }
    return LATENT_OK;
}

static latent_status check_rows(latent_context *ctx, const latent_svm *svm, const float *x, size_t n,
                                size_t d, int probabilities) {
    size_t row, column;
    if (d < svm->d || (d > svm->d && !svm->open_width)) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "the rows have %zu features, but the model was trained on %s%zu", d,
                       svm->open_width ? "at least " : "", svm->d);
    }
    if (probabilities && !svm->prob_a) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "the model has no probabilities: they are fitted when it is trained with probability");
    }
    if (!lt_svm_rows_finite(x, n, d, &row, &column)) {
        return lt_fail(ctx, LATENT_ERROR_NUMERIC,
                       "row %zu, column %zu of the features is not a finite number; all must be", row,
                       column);
    }
    return LATENT_OK;
}

latent_status latent_svm_predict(latent_context *ctx, latent_svm *svm, const float *x, size_t n, size_t d,
                                 int32_t *labels, double *decisions, double *probabilities) {
    latent_status status = LATENT_OK;
    size_t k = (size_t)svm->classes, pairs = (size_t)svm->pairs;
    double *own = NULL, *scratch = NULL;
    LT_TRY(check_rows(ctx, svm, x, n, d, probabilities != NULL));
    if (d > svm->d) {
        LT_TRY(widen(ctx, svm, d));
    }
    if (!svm->machine) {
        LT_TRY(make_machine(ctx, svm));
    }
    if (!decisions) {
        LT_TRY(lt_calloc(ctx, n, pairs * sizeof *own, "decision values", (void **)&own));
        decisions = own;
    }
    LT_TRY(lt_alloc(ctx, (2 * k * k + 2 * k) * sizeof *scratch, "votes", (void **)&scratch));
    lt_svm_rows rows = {.x = x, .n = n, .d = d, .stride = d};
    LT_TRY(svm->engine.ops->machine_decide(ctx, svm->engine.backend, svm->machine, &rows, decisions));
    for (size_t i = 0; i < n; i++) {
        if (labels) {
            labels[i] =
                svm->labels[lt_svm_vote(svm->classes, svm->vote, decisions + i * pairs, NULL, scratch)];
        }
        if (probabilities) {
            probabilities_of(svm, decisions + i * pairs, scratch, scratch + k * k, probabilities + i * k);
        }
    }
done:
    free(own);
    free(scratch);
    return status;
}
