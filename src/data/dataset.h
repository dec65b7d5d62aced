/* dataset.h: a data set in host memory: uint8 images in NHWC, one label each. */
#ifndef LT_DATA_DATASET_H
#define LT_DATA_DATASET_H

#include "base/status.h"

enum {
    LT_CIFAR_SIDE = 32,
    LT_CIFAR_CHANNELS = 3,
    LT_CIFAR_IMAGE = 3072,
    LT_CIFAR_RECORD = 3073,
    LT_CIFAR_CLASSES = 10
};

struct latent_dataset {
    char *path; /* the folder that holds the files */
    char *names[LT_CIFAR_CLASSES];
    int synthetic;
    int count[2];       /* by latent_split */
    int shape[3];       /* height, width, channels; all 0: 32x32x3 */
    uint8_t *images[2]; /* [count][height][width][channels] */
    uint8_t *labels[2];
};

/* Converts `count` records (label, then 3 planes of 32x32) to NHWC; checks every label. `origin` names the
 * file in messages. The piece of the reader that is fuzzed. */
latent_status lt_cifar_parse(latent_context *ctx, const uint8_t *bytes, size_t size, const char *origin,
                             uint8_t *images, uint8_t *labels);

/* `count` training images of noise, without a path. */
latent_status lt_dataset_noise(latent_context *ctx, int count, const int shape[3], uint64_t seed,
                               latent_dataset **out);

#define LT_CIFAR_FOLDER       "cifar-10-batches-bin" /* what the official archive unpacks to */
#define LT_CIFAR_META         "batches.meta.txt"
#define LT_CIFAR_TEST         "test_batch.bin"
#define LT_SYNTHETIC_MARKER   "synthetic.txt"
#define LT_SYNTHETIC_SENTENCE "A synthetic data set made by latent."

/* The most images a split may have: what is read stays around 3 GiB whatever a folder claims. */
enum { LT_CIFAR_COUNT_MAX = 1 << 20, LT_CIFAR_PATH = 4096 };

/* Reads all batch files of data->path into the zeroed images, labels and counts. */
latent_status lt_cifar_read(latent_context *ctx, latent_dataset *data);
/* 1 when there is such a regular file; its path is written. A path that does not fit is no file. */
int lt_cifar_has_file(const char *folder, const char *name, char path[LT_CIFAR_PATH]);
/* 1 when the folder itself holds a batch file, whole or not. */
int lt_cifar_has_batches(const char *folder);
/* 1 when the folder itself carries the marker of a synthetic set. */
int lt_cifar_is_synthetic(const char *folder);

#endif
