/* model_file.c: the model as a safetensors file: exact, compact, read by anything that reads safetensors.
 *
 * Tensors: vectors F32 [support, d], class by class; coefficients F64 [classes-1, support] in LIBSVM's
 * layout; rho F64 [pairs]; gamma F64 [1], or [pairs] where pairs differ; labels I32 [classes]; supports I64
 * [classes]; and with probabilities prob_a and prob_b F64 [pairs]. Metadata: format, version, kernel, vote,
 * precision. Whatever a file says is checked against everything else that it says.
 */
#include "svm/svm.h"

#include "base/json.h"
#include "io/safetensors.h"

#include <math.h>
#include <string.h>

enum { CLASSES_MAX = 4096, TENSORS = 8, METADATA = 5 };

static const char *const kernels[] = {[LATENT_SVM_RBF] = "rbf", [LATENT_SVM_LINEAR] = "linear"};
static const char *const votes[] = {[LATENT_VOTE_LIBSVM] = "libsvm", [LATENT_VOTE_CONFIDENCE] = "confidence"};
static const char *const precisions[] = {
    [LATENT_SVM_STRICT] = "strict", [LATENT_SVM_FAST] = "fast", [LATENT_SVM_FP32] = "fp32"};

static lt_st_tensor tensor(const char *name, lt_st_type type, uint64_t rows, uint64_t columns,
                           const void *data) {
    lt_st_tensor t = {.name = name, .type = type, .dims = columns ? 2 : 1, .shape = {rows, columns}};
    t.count = rows * (columns ? columns : 1);
    t.data = data;
    return t;
}

latent_status lt_svm_file_write(latent_context *ctx, const latent_svm *svm, const char *path) {
    uint64_t k = (uint64_t)svm->classes, pairs = (uint64_t)svm->pairs;
    int count = 0;
    lt_st_tensor tensors[TENSORS];
    tensors[count++] = tensor("vectors", LT_ST_F32, svm->support, svm->d, svm->vectors);
    tensors[count++] = tensor("coefficients", LT_ST_F64, k - 1, svm->support, svm->coefficients);
    tensors[count++] = tensor("rho", LT_ST_F64, pairs, 0, svm->rho);
    tensors[count++] = tensor("gamma", LT_ST_F64, svm->gamma_per_pair ? pairs : 1, 0, svm->gamma);
    tensors[count++] = tensor("supports", LT_ST_I64, k, 0, svm->supports);
    if (svm->prob_a) {
        tensors[count++] = tensor("prob_a", LT_ST_F64, pairs, 0, svm->prob_a);
        tensors[count++] = tensor("prob_b", LT_ST_F64, pairs, 0, svm->prob_b);
    }
    tensors[count++] = tensor("labels", LT_ST_I32, k, 0, svm->labels);
    lt_st_pair metadata[METADATA] = {
        {"format", "latent svm"},
        {"version", "1"},
        {"kernel", kernels[svm->kernel]},
        {"vote", votes[svm->vote]},
        {"precision", precisions[svm->precision]},
    };
    return lt_st_write(ctx, path, tensors, count, metadata, METADATA);
}

/* The place of a metadata word in a list of what it may be. */
static latent_status choice(latent_context *ctx, const lt_safetensors *st, const char *origin,
                            const char *key, const char *const *words, int count, int *out) {
    const char *value = lt_st_metadata(st, key);
    char excerpt[LT_EXCERPT_MAX];
    for (*out = 0; value && *out < count; (*out)++) {
        if (strcmp(value, words[*out]) == 0) {
            return LATENT_OK;
        }
    }
    return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: the metadata \"%s\" is \"%s\"; it can be %s or %s", origin,
                   key, value ? lt_excerpt(value, excerpt) : "missing", words[0], words[1]);
}

/* A tensor of this name, type and shape (columns 0: one dimension). */
static latent_status find(latent_context *ctx, const lt_safetensors *st, const char *origin, const char *name,
                          lt_st_type type, uint64_t rows, uint64_t columns, const lt_st_tensor **out) {
    const lt_st_tensor *t = *out = lt_st_find(st, name);
    if (!t) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: the tensor \"%s\" is missing", origin, name);
    }
    if (t->type != type || t->dims != (columns ? 2 : 1) || t->shape[0] != rows ||
        (columns && t->shape[1] != columns)) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: the tensor \"%s\" does not fit the others: %s of %llu x %llu is needed", origin,
                       name, lt_st_type_name(type), (unsigned long long)rows,
                       (unsigned long long)(columns ? columns : 1));
    }
    return LATENT_OK;
}

/* How many classes, vectors and features: from the two tensors that say so. */
static latent_status find_sizes(latent_context *ctx, const lt_safetensors *st, const char *origin,
                                uint64_t *classes, uint64_t *support, uint64_t *d) {
    const char *format = lt_st_metadata(st, "format"), *version = lt_st_metadata(st, "version");
    const lt_st_tensor *labels = lt_st_find(st, "labels"), *vectors = lt_st_find(st, "vectors");
    if (!format || strcmp(format, "latent svm") != 0 || !version || strcmp(version, "1") != 0) {
        return lt_fail(
            ctx, LATENT_ERROR_FORMAT,
            "%s: not a model of support vectors: the metadata \"format\" must be \"latent svm\" and "
            "\"version\" \"1\"",
            origin);
    }
    if (!labels || labels->dims != 1 || labels->shape[0] < 2 || labels->shape[0] > CLASSES_MAX) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: the tensor \"labels\" must be a list of 2 to %d class labels", origin,
                       CLASSES_MAX);
    }
    if (!vectors || vectors->dims != 2 || vectors->count == 0 || vectors->shape[0] > INT32_MAX) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: the tensor \"vectors\" must be a matrix, a support vector a row", origin);
    }
    *classes = labels->shape[0];
    *support = vectors->shape[0];
    *d = vectors->shape[1];
    return LATENT_OK;
}

/* They are nearly all of the file. When the file is the model's to keep (*own) and they lie on whole floats
 * in its memory, they stay there; else they are copied. */
static latent_status take_vectors(latent_context *ctx, const lt_st_tensor *t, lt_safetensors **own,
                                  latent_svm *svm) {
    if (*own && (uintptr_t)t->data % _Alignof(float) == 0) {
        svm->vectors = (float *)t->data;
        svm->file = *own;
        *own = NULL;
        return LATENT_OK;
    }
    latent_status status = lt_svm_vectors_make(ctx, svm);
    if (status == LATENT_OK) {
        memcpy(svm->vectors, t->data, t->count * sizeof(float));
    }
    return status;
}

static latent_status fill(latent_context *ctx, const lt_safetensors *st, const char *origin,
                          lt_safetensors **own, latent_svm *svm) {
    latent_status status = LATENT_OK;
    const lt_st_tensor *t, *vectors;
    uint64_t k = (uint64_t)svm->classes, pairs = (uint64_t)svm->pairs;
    LT_TRY(find(ctx, st, origin, "vectors", LT_ST_F32, svm->support, svm->d, &vectors));
    LT_TRY(find(ctx, st, origin, "coefficients", LT_ST_F64, k - 1, svm->support, &t));
    memcpy(svm->coefficients, t->data, t->count * sizeof(double));
    LT_TRY(find(ctx, st, origin, "rho", LT_ST_F64, pairs, 0, &t));
    memcpy(svm->rho, t->data, t->count * sizeof(double));
    LT_TRY(find(ctx, st, origin, "labels", LT_ST_I32, k, 0, &t));
    memcpy(svm->labels, t->data, t->count * sizeof(int32_t));
    LT_TRY(find(ctx, st, origin, "supports", LT_ST_I64, k, 0, &t));
    memcpy(svm->supports, t->data, t->count * sizeof(uint64_t));
    t = lt_st_find(st, "gamma");
    svm->gamma_per_pair = t && t->count > 1;
    LT_TRY(find(ctx, st, origin, "gamma", LT_ST_F64, svm->gamma_per_pair ? pairs : 1, 0, &t));
    for (uint64_t p = 0; p < pairs; p++) {
        svm->gamma[p] = lt_st_value(t, svm->gamma_per_pair ? p : 0);
    }
    if (svm->prob_a) {
        LT_TRY(find(ctx, st, origin, "prob_a", LT_ST_F64, pairs, 0, &t));
        memcpy(svm->prob_a, t->data, t->count * sizeof(double));
        LT_TRY(find(ctx, st, origin, "prob_b", LT_ST_F64, pairs, 0, &t));
        memcpy(svm->prob_b, t->data, t->count * sizeof(double));
    }
    LT_TRY(take_vectors(ctx, vectors, own, svm));
done:
    return status;
}

/* *own is st, or NULL when its bytes are the caller's; it becomes NULL when the model keeps it. */
static latent_status from_tensors(latent_context *ctx, const lt_safetensors *st, const char *origin,
                                  lt_safetensors **own, latent_svm **out) {
    latent_status status = LATENT_OK;
    latent_svm *svm = NULL;
    uint64_t classes = 0, support = 0, d = 0;
    int kernel = 0, vote = 0, precision = 0;
    LT_TRY(find_sizes(ctx, st, origin, &classes, &support, &d));
    LT_TRY(choice(ctx, st, origin, "kernel", kernels, 2, &kernel));
    LT_TRY(choice(ctx, st, origin, "vote", votes, 2, &vote));
    LT_TRY(choice(ctx, st, origin, "precision", precisions, 3, &precision));
    /* The coefficients must be there before room is made for them. */
    const lt_st_tensor *t;
    LT_TRY(find(ctx, st, origin, "coefficients", LT_ST_F64, classes - 1, support, &t));
    LT_TRY(find(ctx, st, origin, "rho", LT_ST_F64, classes * (classes - 1) / 2, 0, &t));
    LT_TRY(lt_svm_model_make(ctx, (int)classes, (size_t)support, (size_t)d, lt_st_find(st, "prob_a") != NULL,
                             &svm));
    svm->kernel = (latent_svm_kernel)kernel;
    svm->vote = (latent_svm_vote)vote;
    svm->precision = (latent_svm_precision)precision;
    LT_TRY(fill(ctx, st, origin, own, svm));
    LT_TRY(lt_svm_model_check(ctx, origin, svm));
    *out = svm;
    svm = NULL;
done:
    latent_svm_destroy(svm);
    return status;
}

latent_status lt_svm_file_parse(latent_context *ctx, const void *bytes, size_t size, const char *origin,
                                latent_svm **out) {
    lt_safetensors *st = NULL, *none = NULL;
    *out = NULL;
    latent_status status = lt_st_parse(ctx, bytes, size, origin, &st);
    if (status == LATENT_OK) {
        status = from_tensors(ctx, st, origin, &none, out);
    }
    lt_st_destroy(st);
    return status;
}

latent_status lt_svm_file_read(latent_context *ctx, const char *path, latent_svm **out) {
    lt_safetensors *st = NULL;
    *out = NULL;
    latent_status status = lt_st_read(ctx, path, &st);
    if (status == LATENT_OK) {
        status = from_tensors(ctx, st, path, &st, out);
    }
    lt_st_destroy(st);
    return status;
}
