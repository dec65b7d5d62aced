/* dataset.h: a data set in host memory: uint8 images in NHWC, one label each. */
#ifndef LT_DATA_DATASET_H
#define LT_DATA_DATASET_H

#include "base/status.h"

enum { LT_CIFAR_SIDE = 32, LT_CIFAR_CHANNELS = 3, LT_CIFAR_IMAGE = 3072, LT_CIFAR_RECORD = 3073, LT_CIFAR_CLASSES = 10 };

struct latent_dataset {
    char *path;        /* the folder that holds the files */
    char *names[LT_CIFAR_CLASSES];
    int synthetic;
    int count[2];      /* by latent_split */
    uint8_t *images[2]; /* [count][32][32][3] */
    uint8_t *labels[2];
};

/* Converts `count` records (label, then 3 planes of 32x32) to NHWC; checks every label. `origin` names the
 * file in messages. The piece of the reader that is fuzzed. */
latent_status lt_cifar_parse(latent_context *ctx, const uint8_t *bytes, size_t size, const char *origin,
                             uint8_t *images, uint8_t *labels);

#endif
