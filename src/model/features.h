/* features.h: the files of a features folder. */
#ifndef LT_MODEL_FEATURES_H
#define LT_MODEL_FEATURES_H

#include "base/status.h"
#include "io/safetensors.h"

#define LT_FEATURES_EPSILON 1e-3 /* added to every deviation: a dead column must not be blown up */

/* The files of a folder. */
typedef struct lt_feature_paths {
    char *x[2], *labels[2]; /* by latent_split */
    char *scaling, *json;
} lt_feature_paths;

latent_status lt_feature_paths_make(latent_context *ctx, const char *folder, latent_feature_format format,
                                    lt_feature_paths *out);
void lt_feature_paths_free(lt_feature_paths *paths);
/* Removes what a killed extraction left half written: gigabytes that the new one may need. */
void lt_feature_files_sweep(latent_context *ctx, const char *folder);
/* Removes features.json, so that what is in the folder counts for nothing until the new one is there. */
latent_status lt_feature_files_begin(latent_context *ctx, const char *folder);
/* Removes the features of the other format, which are not those of `info`, and writes features.json. */
latent_status lt_feature_files_end(latent_context *ctx, const char *folder, const latent_features_info *info);

/* ---- scaling.c ---- */

/* scaling.safetensors; mean and deviation may be NULL: not standardized, the file is removed. `weights` is
 * the digest of the model. */
latent_status lt_scaling_write(latent_context *ctx, const char *path, size_t width, const float *mean,
                               const float *deviation, const latent_features_options *options,
                               const char *weights);
/* The path of the file that a file's or a folder's path means; to be freed. */
latent_status lt_scaling_find(latent_context *ctx, const char *path, char **out);
/* mean[width] and deviation[width] of a file that is of features made alike. */
latent_status lt_scaling_read(latent_context *ctx, const char *path, size_t width,
                              const latent_features_options *options, const char *weights, float *mean,
                              float *deviation);
latent_status lt_scaling_take(latent_context *ctx, const lt_safetensors *st, const char *origin, size_t width,
                              const latent_features_options *options, const char *weights, float *mean,
                              float *deviation);

#endif
