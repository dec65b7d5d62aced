/* model.c: the model as an object: made, asked, saved and loaded, destroyed. It owns all it points to. */
#include "svm/svm.h"

#include "base/file.h"
#include "io/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void latent_svm_defaults(latent_svm_options *out) {
    memset(out, 0, sizeof *out);
    out->kernel = LATENT_SVM_RBF;
    out->c = 1;
    out->gamma_rule = LATENT_GAMMA_SCALE;
    out->tolerance = 1e-3;
    out->shrinking = 1;
    out->seed = 1;
}

latent_status lt_svm_model_make(latent_context *ctx, int classes, size_t support, size_t d, int probability,
                                latent_svm **out) {
    latent_status status = LATENT_OK;
    latent_svm *svm = NULL;
    size_t k = (size_t)classes, pairs = k * (k - 1) / 2;
    *out = NULL;
    LT_TRY(lt_calloc(ctx, 1, sizeof *svm, "the model", (void **)&svm));
    svm->classes = classes;
    svm->pairs = (int)pairs;
    svm->support = support;
    svm->d = d;
    LT_TRY(lt_calloc(ctx, k, sizeof *svm->labels, "labels", (void **)&svm->labels));
    LT_TRY(lt_calloc(ctx, k, sizeof *svm->supports, "vector counts", (void **)&svm->supports));
    LT_TRY(lt_calloc(ctx, (k - 1) * support, sizeof *svm->coefficients, "coefficients",
                     (void **)&svm->coefficients));
    LT_TRY(lt_calloc(ctx, pairs, sizeof *svm->rho, "thresholds", (void **)&svm->rho));
    LT_TRY(lt_calloc(ctx, pairs, sizeof *svm->gamma, "gammas", (void **)&svm->gamma));
    if (probability) {
        LT_TRY(lt_calloc(ctx, pairs, sizeof *svm->prob_a, "probabilities", (void **)&svm->prob_a));
        LT_TRY(lt_calloc(ctx, pairs, sizeof *svm->prob_b, "probabilities", (void **)&svm->prob_b));
    }
    *out = svm;
    svm = NULL;
done:
    latent_svm_destroy(svm);
    return status;
}

latent_status lt_svm_vectors_make(latent_context *ctx, latent_svm *svm) {
    size_t values = 0;
    if (__builtin_mul_overflow(svm->support, svm->d, &values)) {
        return lt_fail(ctx, LATENT_ERROR_MEMORY, "no memory for %zu support vectors of %zu numbers",
                       svm->support, svm->d);
    }
    return lt_calloc(ctx, values, sizeof *svm->vectors, "the support vectors", (void **)&svm->vectors);
}

void lt_svm_vectors_free(latent_svm *svm) {
    if (svm->file) {
        lt_st_destroy(svm->file);
    } else {
        free(svm->vectors);
    }
    svm->vectors = NULL;
    svm->file = NULL;
}

void latent_svm_destroy(latent_svm *svm) {
    if (svm) {
        if (svm->machine) {
            svm->engine.ops->machine_free(svm->engine.backend, svm->machine);
        }
        lt_svm_engine_close(&svm->engine);
        free(svm->labels);
        free(svm->supports);
        lt_svm_vectors_free(svm);
        free(svm->coefficients);
        free(svm->rho);
        free(svm->gamma);
        free(svm->prob_a);
        free(svm->prob_b);
        free(svm->pair);
        free(svm);
    }
}

void latent_svm_get_info(const latent_svm *svm, latent_svm_info *out) {
    *out = (latent_svm_info){
        .kernel = svm->kernel,
        .gamma = svm->gamma[0],
        .gamma_per_pair = svm->gamma_per_pair,
        .classes = svm->classes,
        .pairs = svm->pairs,
        .labels = svm->labels,
        .d = svm->d,
        .open_width = svm->open_width,
        .support = svm->support,
        .supports = svm->supports,
        .rho = svm->rho,
        .probability = svm->prob_a != NULL,
        .vote = svm->vote,
        .engine = svm->engine.backend ? svm->engine.backend->engine : "",
    };
}

int latent_svm_get_pair(const latent_svm *svm, int pair, latent_svm_pair *out) {
    memset(out, 0, sizeof *out);
    if (!svm->pair || pair < 0 || pair >= svm->pairs) {
        return 0;
    }
    *out = svm->pair[pair];
    return 1;
}

latent_status lt_svm_model_begins(latent_context *ctx, const latent_svm *svm, size_t **out) {
    latent_status status =
        lt_calloc(ctx, (size_t)svm->classes + 1, sizeof **out, "vector counts", (void **)out);
    for (int c = 0; status == LATENT_OK && c < svm->classes; c++) {
        (*out)[c + 1] = (*out)[c] + svm->supports[c];
    }
    return status;
}

static latent_status check_finite(latent_context *ctx, const char *origin, const char *what,
                                  const double *values, size_t count) {
    for (size_t i = 0; values && i < count; i++) {
        if (!isfinite(values[i])) {
            return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: number %zu of the %s is not finite", origin, i + 1,
                           what);
        }
    }
    return LATENT_OK;
}

latent_status lt_svm_model_check(latent_context *ctx, const char *origin, const latent_svm *svm) {
    latent_status status = LATENT_OK;
    size_t sum = 0, pairs = (size_t)svm->pairs, row, column;
    for (int c = 0; c < svm->classes; c++) {
        if (svm->supports[c] > svm->support || __builtin_add_overflow(sum, svm->supports[c], &sum)) {
            sum = SIZE_MAX;
        }
        for (int other = 0; other < c; other++) {
            if (svm->labels[other] == svm->labels[c]) {
                return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: the label %d belongs to two classes", origin,
                               svm->labels[c]);
            }
        }
    }
    if (sum != svm->support) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: the vectors of the classes do not add up to the %zu in all", origin,
                       svm->support);
    }
    LT_TRY(check_finite(ctx, origin, "thresholds", svm->rho, pairs));
    LT_TRY(check_finite(ctx, origin, "probability slopes", svm->prob_a, pairs));
    LT_TRY(check_finite(ctx, origin, "probability offsets", svm->prob_b, pairs));
    LT_TRY(check_finite(ctx, origin, "coefficients", svm->coefficients,
                        (size_t)(svm->classes - 1) * svm->support));
    for (size_t p = 0; svm->kernel == LATENT_SVM_RBF && p < pairs; p++) {
        if (!(svm->gamma[p] > 0) || !isfinite(svm->gamma[p])) {
            status = lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: gamma is %g; it must be a number above 0", origin,
                             svm->gamma[p]);
            goto done;
        }
    }
    if (!lt_svm_rows_finite(svm->vectors, svm->support, svm->d, &row, &column)) {
        status =
            lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: number %zu of support vector %zu is not a finite float",
                    origin, column + 1, row + 1);
    }
done:
    return status;
}

latent_status latent_svm_save(latent_context *ctx, const latent_svm *svm, const char *path,
                              latent_svm_format format) {
    return format == LATENT_SVM_TEXT ? lt_svm_text_write(ctx, svm, path) : lt_svm_file_write(ctx, svm, path);
}

/* LIBSVM's models begin with a word; the length in front of a safetensors header has zero bytes. */
static latent_status looks_like_text(latent_context *ctx, const char *path, int *out) {
    char head[8] = {0};
    FILE *file = fopen(path, "rbe");
    if (!file) {
        return lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot read: %m", path);
    }
    size_t have = fread(head, 1, sizeof head, file);
    fclose(file);
    *out = have < sizeof head || memchr(head, 0, sizeof head) == NULL;
    return LATENT_OK;
}

latent_status latent_svm_load(latent_context *ctx, const char *path, const latent_engine_options *engine,
                              latent_svm **out) {
    latent_status status = LATENT_OK;
    latent_svm *svm = NULL;
    int text = 0;
    *out = NULL;
    LT_TRY(looks_like_text(ctx, path, &text));
    LT_TRY(text ? lt_svm_text_read(ctx, path, &svm) : lt_svm_file_read(ctx, path, &svm));
    LT_TRY(lt_svm_engine_open(ctx, engine, &svm->engine));
    svm->engine_options.threads = engine ? engine->threads : 0;
    *out = svm;
    svm = NULL;
done:
    latent_svm_destroy(svm);
    return status;
}
