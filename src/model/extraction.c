/* extraction.c: an extraction of features made ready, and released (see extraction.h). */
#include "model/extraction.h"

#include "model/features.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* Refuses at once what the disk cannot hold: both sets of files exist together for a moment. */
latent_status lt_extraction_check_space(const lt_extraction *e, const char *folder) {
    struct statvfs disk;
    uint64_t rows = (uint64_t)e->count[0] + (uint64_t)e->count[1];
    uint64_t wanted = rows * e->width * sizeof(float);
    if (statvfs(folder, &disk) != 0 || disk.f_frsize == 0) {
        return LATENT_OK; /* then the write will tell */
    }
    uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (left < wanted) {
        return lt_fail(e->ctx, LATENT_ERROR_IO,
                       "%s: the features need %" PRIu64 " MB and the disk has %" PRIu64
                       " MB left; make room, choose another folder or take fewer images",
                       folder, wanted / 1000000 + 1, left / 1000000);
    }
    return LATENT_OK;
}

latent_status lt_extraction_check(lt_extraction *e) {
    latent_context *ctx = e->ctx;
    const latent_features_options *options = e->options;
    if (e->model->net->latent < 0) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "the net '%s' has no latent line, so it has no features; add one after the op whose "
                       "output they are",
                       e->model->net->name);
    }
    if (options->subset < 0 || options->subset > e->set.count[LATENT_TRAIN]) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "a subset of %d images: %s has %d training images",
                       options->subset, e->set.path, e->set.count[LATENT_TRAIN]);
    }
    if (options->scaling && !options->standardize) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "%s: a scaling is given, but the features are not to be standardized; leave out one",
                       options->scaling);
    }
    if (e->set.count[LATENT_TRAIN] < 1) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "%s: no training images to encode", e->set.path);
    }
    return lt_model_check_data(ctx, e->model->net, e->data);
}

/* Up to ten batches, in about 256 MB at most. */
static int chunk_images(const lt_extraction *e) {
    size_t batch = (size_t)lt_encode_batch(e->backend), bytes = batch * e->width * sizeof(float);
    size_t batches = ((size_t)256 << 20) / bytes;
    return (int)(batch * (batches < 1 ? 1 : batches > 10 ? 10 : batches));
}

/* Room for all training rows, if it is allowed and there; without it the encoder runs twice. */
static void keep_training_rows(lt_extraction *e) {
    const lt_backend_type *type = e->backend->type;
    uint64_t all = (uint64_t)e->count[0] * e->width * sizeof(float);
    uint64_t allowed = e->options->memory ? e->options->memory : (uint64_t)4 << 30;
    if (type->memory_free && allowed > type->memory_free(e->backend) / 2) { /* the plan wants the rest */
        allowed = type->memory_free(e->backend) / 2;
    }
    if (e->options->standardize && !e->options->scaling && all <= allowed &&
        type->alloc(e->ctx, e->backend, (size_t)all, (void **)&e->kept) != LATENT_OK) {
        e->ctx->message[0] = 0; /* nothing has failed */
    }
}

latent_status lt_extraction_prepare(lt_extraction *e) {
    latent_status status = LATENT_OK;
    const lt_backend_type *type = e->backend->type;
    e->width = lt_shape_count(e->model->net->ops[e->model->net->latent].out);
    e->count[0] = e->options->subset ? e->options->subset : e->set.count[LATENT_TRAIN];
    e->count[1] = e->set.count[LATENT_TEST];
    e->chunk = chunk_images(e);
    size_t bytes = (size_t)e->chunk * e->width * sizeof(float);
    for (int i = 0; i < 2; i++) {
        LT_TRY(type->alloc(e->ctx, e->backend, bytes, (void **)&e->rows[i]));
        if (!type->host_memory) {
            LT_TRY(lt_alloc(e->ctx, bytes, "a chunk of features", (void **)&e->host[i]));
        }
    }
    LT_TRY(lt_model_encode_ready(e->ctx, e->model)); /* before rows are kept: it takes its memory first */
    keep_training_rows(e);
    e->total = e->count[0] + e->count[1];
    e->total += e->options->standardize && !e->options->scaling && !e->kept ? e->count[0] : 0;
    *e->info = (latent_features_info){.count = {e->count[0], e->count[1]},
                                      .width = (int)e->width,
                                      .flip = e->options->flip,
                                      .standardize = e->options->standardize,
                                      .l2 = e->options->l2,
                                      .format = e->options->format};
    if (strlen(e->set.path) >= sizeof e->info->data) {
        status = lt_fail(e->ctx, LATENT_ERROR_ARGUMENT, "%s: the path is longer than %zu bytes", e->set.path,
                         sizeof e->info->data - 1);
        goto done;
    }
    strcpy(e->info->data, e->set.path);
    strcpy(e->info->precision, e->backend->activation == LT_BF16 ? "bf16" : "fp32");
    latent_dataset_digest(e->data, e->info->digest);
    LT_TRY(latent_model_digest(e->ctx, e->model, e->info->weights));
done:
    return status;
}

latent_status lt_extraction_scale(lt_extraction *e) {
    const lt_backend_type *type = e->backend->type;
    latent_status status = LATENT_OK;
    size_t bytes = e->width * sizeof *e->mean;
    LT_TRY(type->alloc(e->ctx, e->backend, 2 * bytes, (void **)&e->scaling));
    LT_TRY(type->upload(e->ctx, e->backend, e->scaling, e->mean, bytes));
    LT_TRY(type->upload(e->ctx, e->backend, e->scaling + e->width, e->deviation, bytes));
done:
    return status;
}

latent_status lt_extraction_take_scaling(lt_extraction *e, const char *own) {
    latent_status status = LATENT_OK;
    struct stat given, there;
    char *path = NULL;
    size_t bytes = e->width * sizeof *e->mean;
    LT_TRY(lt_scaling_find(e->ctx, e->options->scaling, &path));
    if (stat(path, &given) == 0 && stat(own, &there) == 0 && given.st_dev == there.st_dev &&
        given.st_ino == there.st_ino) {
        status =
            lt_fail(e->ctx, LATENT_ERROR_ARGUMENT,
                    "%s: the scaling lies in the folder that is to be written, among the features that it "
                    "is of; write the new ones to another folder",
                    path);
        goto done;
    }
    if (snprintf(e->info->scaling, sizeof e->info->scaling, "%s", path) >= (int)sizeof e->info->scaling) {
        status = lt_fail(e->ctx, LATENT_ERROR_ARGUMENT, "%s: the path is longer than %zu bytes", path,
                         sizeof e->info->scaling - 1);
        goto done;
    }
    LT_TRY(lt_alloc(e->ctx, bytes, "column means", (void **)&e->mean));
    LT_TRY(lt_alloc(e->ctx, bytes, "column deviations", (void **)&e->deviation));
    LT_TRY(lt_scaling_read(e->ctx, path, e->width, e->options, e->info->weights, e->mean, e->deviation));
    LT_TRY(lt_extraction_scale(e));
done:
    free(path);
    return status;
}

void lt_extraction_release(lt_extraction *e) {
    if (e->writing.started) { /* something else failed meanwhile */
        pthread_join(e->writing.thread, NULL);
    }
    for (int split = 0; split < 2; split++) {
        lt_npy_abort(e->npy[split]);
        lt_writer_abort(e->raw[split]);
    }
    float *const blocks[] = {e->rows[0], e->rows[1], e->kept, e->scaling};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        if (blocks[i]) {
            e->backend->type->free(e->backend, blocks[i]);
        }
    }
    free(e->host[0]);
    free(e->host[1]);
    free(e->mean);
    free(e->deviation);
}
