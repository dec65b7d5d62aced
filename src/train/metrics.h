/* metrics.h: metrics.jsonl, one JSON object a line, one line per complete epoch. */
#ifndef LT_TRAIN_METRICS_H
#define LT_TRAIN_METRICS_H

#include "base/status.h"

typedef struct lt_epoch_metrics {
    int epoch; /* from 1 */
    double loss, lr, seconds, images_per_second;
    double forward, backward, optimizer; /* seconds */
} lt_epoch_metrics;

latent_status lt_metrics_append(latent_context *ctx, const char *path, const lt_epoch_metrics *metrics);
/* Leaves the lines of epochs 1 to `epochs` only, each once. A missing file is fine. */
latent_status lt_metrics_keep(latent_context *ctx, const char *path, int epochs);

#endif
