/* features.h: the pieces of feature extraction: what is done to rows, and the files of a features folder. */
#ifndef LT_MODEL_FEATURES_H
#define LT_MODEL_FEATURES_H

#include "base/status.h"

#define LT_FEATURES_EPSILON 1e-3 /* added to every deviation: a dead column must not be blown up */

/* Column statistics, gathered row by row in data order, so that the bits do not depend on chunks or threads:
 * after n rows, mean is theirs and m2 the sum of the squared distances from it (Welford). */
typedef struct lt_columns {
    size_t width, rows;
    double *mean, *m2; /* [width] */
} lt_columns;

latent_status lt_columns_create(latent_context *ctx, size_t width, lt_columns *out);
void lt_columns_free(lt_columns *columns);
void lt_columns_add(lt_columns *columns, const float *x, size_t rows);
/* float mean[width] and deviation[width] (over rows - 1; 0 for a single row). */
void lt_columns_finish(const lt_columns *columns, float *mean, float *deviation);

/* images[count][h][w][c] with every row of pixels from right to left. */
void lt_mirror_images(const uint8_t *images, int count, int h, int w, int c, uint8_t *out);
/* x[count][c][pixels] = a[count][pixels][c], plus b unless it is NULL. */
void lt_rows_gather(const float *a, const float *b, size_t count, size_t pixels, size_t channels, float *x);
/* In place: (x - mean) / (deviation + epsilon) unless mean is NULL, then to length 1 if `l2` (a row of zeros
 * stays). Returns the first row that holds a number that is not finite, or `rows`. */
size_t lt_rows_finish(float *x, size_t rows, size_t width, const float *mean, const float *deviation, int l2);

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
