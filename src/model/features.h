/* features.h: the files of a features folder. */
#ifndef LT_MODEL_FEATURES_H
#define LT_MODEL_FEATURES_H

#include "base/status.h"

#define LT_FEATURES_EPSILON 1e-3 /* added to every deviation: a dead column must not be blown up */

/* The files of a folder. */
typedef struct lt_feature_paths {
    char *x[2], *labels[2]; /* by latent_split */
    char *scaling, *json;
} lt_feature_paths;

latent_status lt_feature_paths_make(latent_context *ctx, const char *folder, latent_feature_format format,
                                    lt_feature_paths *out);
void lt_feature_paths_free(lt_feature_paths *paths);
/* Removes features.json, so that what is in the folder counts for nothing until the new one is there. */
latent_status lt_feature_files_begin(latent_context *ctx, const char *folder);
/* Removes the features of the other format, which are not those of `info`, and writes features.json. */
latent_status lt_feature_files_end(latent_context *ctx, const char *folder, const latent_features_info *info);
/* scaling.safetensors; mean and deviation may be NULL: not standardized, the file is removed. */
latent_status lt_scaling_write(latent_context *ctx, const char *path, size_t width, const float *mean,
                               const float *deviation, const latent_features_options *options);

#endif
