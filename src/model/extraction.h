/* extraction.h: what an extraction of features knows: the settings, the memory, the files, the chunk that is
 * being written. extraction.c makes it ready and releases it, features.c does the work.
 */
#ifndef LT_MODEL_EXTRACTION_H
#define LT_MODEL_EXTRACTION_H

#include "base/file.h"
#include "io/npy.h"
#include "model/model.h"

#include <pthread.h>

typedef struct lt_chunk { /* that is being written */
    int split;
    const float *rows;
    size_t n;
    latent_status status;
    pthread_t thread;
    int started;
} lt_chunk;

typedef struct lt_extraction {
    latent_context *ctx;
    latent_model *model;
    lt_backend *backend; /* the model's */
    const latent_features_options *options;
    const latent_dataset *data;
    latent_dataset_info set;
    size_t width; /* of the latent */
    int count[2];
    int chunk;               /* images */
    float *rows[2];          /* [b] a chunk to be computed while the other is written */
    float *host[2];          /* the chunks on the host, where the backend's memory is elsewhere */
    float *kept;             /* [b] all training rows, or NULL */
    float *mean, *deviation; /* NULL: not standardized */
    float *scaling;          /* [b] both of them */
    lt_npy_writer *npy[2];
    lt_writer *raw[2];
    lt_chunk writing;
    latent_context writer; /* the writing thread's */
    int done, total;       /* images, for the progress; both passes count */
    latent_features_info *info;
} lt_extraction;

/* Refuses what cannot be done: a net without a latent line, images that do not fit it. */
latent_status lt_extraction_check(lt_extraction *e);
/* Takes the memory and makes the encoder's plan. */
latent_status lt_extraction_prepare(lt_extraction *e);
/* mean and deviation, in the backend's memory. */
latent_status lt_extraction_scale(lt_extraction *e);
/* The scaling of the options instead of one that is measured; `own` is the file that will be written. */
latent_status lt_extraction_take_scaling(lt_extraction *e, const char *own);
/* Then refuses a disk that cannot hold the files. */
latent_status lt_extraction_check_space(const lt_extraction *e, const char *folder);
/* Waits for the writing thread, drops files that are not in place, frees the memory. */
void lt_extraction_release(lt_extraction *e);

#endif
