/* scaling.c: scaling.safetensors: mean and deviation of the columns by which features were standardized.
 *
 * A classifier that was trained on standardized features understands others only if they are standardized by
 * the same numbers. So the file is read again for new images, and says what it belongs to: the weights, and
 * what else was done to the features. A file that does not fit is refused, as one that is broken is.
 */
#include "model/features.h"

#include "base/file.h"
#include "io/safetensors.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FORMAT_NAME "latent-scaling 1"
#define FILE_NAME   "scaling.safetensors"

/* The metadata of a scaling: pairs of key and value. */
enum { FLIP, L2, EPSILON, WEIGHTS, FACTS };

typedef struct facts {
    char epsilon[32];
    lt_st_pair pairs[FACTS];
} facts;

static void facts_make(const latent_features_options *options, const char *weights, facts *out) {
    snprintf(out->epsilon, sizeof out->epsilon, "%g", LT_FEATURES_EPSILON);
    out->pairs[FLIP] = (lt_st_pair){"flip", options->flip ? "1" : "0"};
    out->pairs[L2] = (lt_st_pair){"l2", options->l2 ? "1" : "0"};
    out->pairs[EPSILON] = (lt_st_pair){"epsilon", out->epsilon};
    out->pairs[WEIGHTS] = (lt_st_pair){"weights", weights};
}

latent_status lt_scaling_write(latent_context *ctx, const char *path, size_t width, const float *mean,
                               const float *deviation, const latent_features_options *options,
                               const char *weights) {
    if (!mean) {
        return unlink(path) == 0 || errno == ENOENT
                   ? LATENT_OK
                   : lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot remove: %s", path, strerror(errno));
    }
    lt_st_tensor tensors[] = {
        {.name = "mean", .type = LT_ST_F32, .dims = 1, .shape = {width}, .count = width, .data = mean},
        {.name = "deviation",
         .type = LT_ST_F32,
         .dims = 1,
         .shape = {width},
         .count = width,
         .data = deviation}};
    facts own;
    facts_make(options, weights, &own);
    lt_st_pair metadata[1 + FACTS] = {{"format", FORMAT_NAME}};
    memcpy(metadata + 1, own.pairs, sizeof own.pairs);
    return lt_st_write(ctx, path, tensors, 2, metadata, 1 + FACTS);
}

/* What the features were that the file is of, and what they are to be now, must be the same. */
static latent_status check_facts(latent_context *ctx, const lt_safetensors *st, const char *origin,
                                 const latent_features_options *options, const char *weights) {
    static const char *const wrong[FACTS][2] = {
        {"features without the mirrored image, but it is to be added here", /* is "0", must be "1" */
         "features to which the mirrored image was added, but it is to be left out here"},
        {"rows that were not brought to length 1, but they are to be here",
         "rows that were brought to length 1, but they are not to be here"},
        {"deviations to which another number is added", "deviations to which another number is added"},
        {"features of other weights than this model's", "features of other weights than this model's"}};
    const char *format = lt_st_metadata(st, "format");
    facts wanted;
    if (!format || strcmp(format, FORMAT_NAME) != 0) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: not a scaling of features; 'latent features' writes one as " FILE_NAME
                       " where it standardizes",
                       origin);
    }
    facts_make(options, weights, &wanted);
    for (int i = 0; i < FACTS; i++) {
        const char *found = lt_st_metadata(st, wanted.pairs[i].key);
        if (!found && i == WEIGHTS) { /* older files do not say */
            continue;
        }
        if (!found || strcmp(found, wanted.pairs[i].value) != 0) {
            return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "%s: it is of %s; both must be made alike", origin,
                           wrong[i][found && strcmp(found, "1") == 0]);
        }
    }
    return LATENT_OK;
}

static latent_status take(latent_context *ctx, const lt_safetensors *st, const char *origin, const char *name,
                          size_t width, double least, float *out) {
    const lt_st_tensor *tensor = lt_st_find(st, name);
    if (!tensor || tensor->type != LT_ST_F32 || tensor->dims != 1) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: it has no list of F32 numbers named \"%s\"", origin,
                       name);
    }
    if (tensor->count != width) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: \"%s\" has %llu numbers, but the features of this model have %zu columns", origin,
                       name, (unsigned long long)tensor->count, width);
    }
    memcpy(out, tensor->data, width * sizeof *out);
    for (size_t i = 0; i < width; i++) {
        if (!isfinite(out[i]) || out[i] < least) {
            return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: \"%s\" of column %zu is %g; it must be %s", origin,
                           name, i, (double)out[i],
                           isfinite(least) ? "a finite number, not below 0" : "a finite number");
        }
    }
    return LATENT_OK;
}

latent_status lt_scaling_take(latent_context *ctx, const lt_safetensors *st, const char *origin, size_t width,
                              const latent_features_options *options, const char *weights, float *mean,
                              float *deviation) {
    latent_status status = LATENT_OK;
    LT_TRY(check_facts(ctx, st, origin, options, weights));
    LT_TRY(take(ctx, st, origin, "mean", width, -INFINITY, mean));
    LT_TRY(take(ctx, st, origin, "deviation", width, 0, deviation));
done:
    return status;
}

latent_status lt_scaling_find(latent_context *ctx, const char *path, char **out) {
    latent_status status = LATENT_OK;
    if (!lt_folder_exists(path)) {
        return lt_strdup(ctx, path, out);
    }
    LT_TRY(lt_path_join(ctx, path, FILE_NAME, out));
    if (!lt_file_exists(*out)) {
        status =
            lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                    "%s: no " FILE_NAME " in it; give a folder of features that were standardized", path);
    }
done:
    if (status != LATENT_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}

latent_status lt_scaling_read(latent_context *ctx, const char *path, size_t width,
                              const latent_features_options *options, const char *weights, float *mean,
                              float *deviation) {
    lt_safetensors *st = NULL;
    latent_status status = lt_st_read(ctx, path, &st);
    if (status == LATENT_OK) {
        status = lt_scaling_take(ctx, st, path, width, options, weights, mean, deviation);
    }
    lt_st_destroy(st);
    return status;
}
