/* features.c: the encoder over a whole data set, into files.
 *
 * Images go through in chunks: the encoder (twice where the mirrored image is added), from NHWC to rows of
 * CHW, then the mean, the deviation and the length, all in the backend's memory; then the file. Standardizing
 * needs the mean of all training rows before the first can be written, so they wait in memory if they fit in
 * what is allowed, and are computed a second time if not; both ways give the same bits. With a scaling that
 * is given, rows need not wait. A chunk is written while the next one is computed. Both feature files are
 * complete under their temporary names before either takes its place.
 */
#include "model/features.h"

#include "base/hash.h"
#include "model/extraction.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void latent_features_defaults(latent_features_options *out) {
    *out = (latent_features_options){.flip = 1, .standardize = 1, .l2 = 1};
}

static void report(lt_extraction *e, int split, int images) {
    e->done += images;
    if (e->options->progress) {
        e->options->progress(e->options->user, (latent_split)split, e->done, e->total);
    }
}

/* Time since *began, which begins anew. */
static double lap(double *began) {
    double before = *began;
    *began = now();
    return *began - before;
}

/* Rows [first, first + n) of a split as the encoder gives them, mirror image included. */
static latent_status encode_chunk(lt_extraction *e, int split, int first, int n, float *rows) {
    const lt_backend_type *type = e->backend->type;
    latent_status status = LATENT_OK;
    lt_backend_data *data = NULL;
    size_t image = (size_t)e->set.height * (size_t)e->set.width * (size_t)e->set.channels;
    const uint8_t *images = latent_dataset_images(e->data, (latent_split)split) + (size_t)first * image;
    double began = now();
    LT_TRY(type->data_load(e->ctx, e->backend, images, n, image, &data));
    e->info->copy_seconds += lap(&began);
    LT_TRY(lt_model_encode_rows(e->ctx, e->model, data, n, e->options->flip, rows));
    LT_TRY(type->synchronize(e->ctx, e->backend));
    e->info->compute_seconds += lap(&began);
    report(e, split, n);
    if (e->ctx->interrupted) {
        status = lt_fail(e->ctx, LATENT_INTERRUPTED, "interrupted; no features were written");
    }
done:
    type->data_free(e->backend, data);
    return status;
}

static int chunk_size(const lt_extraction *e, int split, int first) {
    return e->count[split] - first < e->chunk ? e->count[split] - first : e->chunk;
}

/* From sums of squared distances to deviations, and both to where rows are scaled. */
static latent_status set_scaling(lt_extraction *e, const double *columns) {
    const lt_backend_type *type = e->backend->type;
    latent_status status = LATENT_OK;
    double *sums = NULL, freedom = e->count[LATENT_TRAIN] > 1 ? e->count[LATENT_TRAIN] - 1 : 1;
    size_t bytes = e->width * sizeof *e->mean;
    LT_TRY(lt_alloc(e->ctx, 2 * e->width * sizeof *sums, "column statistics", (void **)&sums));
    LT_TRY(lt_alloc(e->ctx, bytes, "column means", (void **)&e->mean));
    LT_TRY(lt_alloc(e->ctx, bytes, "column deviations", (void **)&e->deviation));
    LT_TRY(type->download(e->ctx, e->backend, sums, columns, 2 * e->width * sizeof *sums));
    for (size_t i = 0; i < e->width; i++) {
        if (!isfinite(sums[i])) { /* nor is some row: as it came, the second pass finds it */
            goto done;
        }
        e->mean[i] = (float)sums[i];
        e->deviation[i] = (float)sqrt(sums[e->width + i] / freedom);
    }
    LT_TRY(lt_extraction_scale(e));
done:
    free(sums);
    return status;
}

/* The first pass: mean and deviation of the training rows, which stay in `kept` if there is one. */
static latent_status measure(lt_extraction *e) {
    const lt_backend_type *type = e->backend->type;
    latent_status status = LATENT_OK;
    double *columns = NULL; /* [b] means, then sums of squared distances */
    size_t bytes = 2 * e->width * sizeof *columns;
    LT_TRY(type->alloc(e->ctx, e->backend, bytes, (void **)&columns));
    LT_TRY(type->zero(e->ctx, e->backend, columns, bytes));
    for (int first = 0; first < e->count[LATENT_TRAIN]; first += e->chunk) {
        int n = chunk_size(e, LATENT_TRAIN, first);
        float *rows = e->kept ? e->kept + (size_t)first * e->width : e->rows[0];
        LT_TRY(encode_chunk(e, LATENT_TRAIN, first, n, rows));
        double began = now();
        lt_rows_columns_call call = {rows, (size_t)n, e->width, (uint64_t)first, columns, columns + e->width};
        LT_TRY(type->rows->columns(e->ctx, e->backend, &call));
        LT_TRY(type->synchronize(e->ctx, e->backend));
        e->info->compute_seconds += lap(&began);
    }
    LT_TRY(set_scaling(e, columns));
done:
    if (columns) {
        type->free(e->backend, columns);
    }
    return status;
}

/* The thread that writes a chunk. Its failures go to a context of its own until it is joined. */
static void *write_chunk(void *user) {
    lt_extraction *e = user;
    lt_chunk *c = &e->writing;
    c->status = e->npy[c->split]
                    ? lt_npy_put(&e->writer, e->npy[c->split], c->rows, c->n * e->width)
                    : lt_writer_put(&e->writer, e->raw[c->split], c->rows, c->n * e->width * sizeof *c->rows);
    return NULL;
}

/* Waits until the chunk before is written. */
static latent_status finish_writing(lt_extraction *e) {
    double began = now();
    if (e->writing.started) {
        pthread_join(e->writing.thread, NULL);
    }
    e->info->write_seconds += now() - began;
    latent_status status = e->writing.status;
    memset(&e->writing, 0, sizeof e->writing);
    return status == LATENT_OK ? status : lt_fail(e->ctx, status, "%s", e->writer.message);
}

static latent_status start_writing(lt_extraction *e, int split, const float *rows, size_t n) {
    latent_status status = finish_writing(e);
    if (status == LATENT_OK) {
        e->writing = (lt_chunk){.split = split, .rows = rows, .n = n};
        e->writing.started = pthread_create(&e->writing.thread, NULL, write_chunk, e) == 0;
        if (!e->writing.started) {
            write_chunk(e);
        }
    }
    return status;
}

static latent_status finish_chunk(lt_extraction *e, int split, int first, size_t n, float *rows) {
    lt_rows_finish_call call = {.rows = rows,
                                .n = n,
                                .width = e->width,
                                .mean = e->scaling,
                                .deviation = e->scaling ? e->scaling + e->width : NULL,
                                .epsilon = (float)LT_FEATURES_EPSILON,
                                .l2 = e->options->l2};
    size_t bad = n;
    double began = now();
    latent_status status = e->backend->type->rows->finish(e->ctx, e->backend, &call, &bad);
    e->info->compute_seconds += lap(&began);
    if (status == LATENT_OK && bad < n) {
        return lt_fail(e->ctx, LATENT_ERROR_NUMERIC,
                       "%s image %zu has features that are not finite numbers; the weights of the model are "
                       "of no use",
                       split == LATENT_TRAIN ? "training" : "test", (size_t)first + bad);
    }
    return status;
}

static latent_status write_split(lt_extraction *e, int split) {
    latent_status status = LATENT_OK;
    const float *kept = split == LATENT_TRAIN ? e->kept : NULL;
    for (int first = 0, turn = 0; first < e->count[split]; first += e->chunk, turn = !turn) {
        int n = chunk_size(e, split, first);
        float *rows = kept ? e->kept + (size_t)first * e->width : e->rows[turn];
        if (!kept) {
            LT_TRY(encode_chunk(e, split, first, n, rows));
        }
        LT_TRY(finish_chunk(e, split, first, (size_t)n, rows));
        if (e->host[turn]) {
            double began = now();
            LT_TRY(e->backend->type->download(e->ctx, e->backend, e->host[turn], rows,
                                              (size_t)n * e->width * sizeof *rows));
            e->info->copy_seconds += lap(&began);
            rows = e->host[turn];
        }
        LT_TRY(start_writing(e, split, rows, (size_t)n));
        if (e->ctx->interrupted) {
            status = lt_fail(e->ctx, LATENT_INTERRUPTED, "interrupted; no features were written");
            goto done;
        }
    }
    LT_TRY(finish_writing(e));
done:
    return status;
}

static latent_status open_files(lt_extraction *e, const lt_feature_paths *paths) {
    latent_status status = LATENT_OK;
    for (int split = 0; split < 2; split++) {
        if (e->options->format == LATENT_RAW) {
            LT_TRY(lt_writer_open(e->ctx, paths->x[split], &e->raw[split]));
        } else {
            LT_TRY(
                lt_npy_create(e->ctx, paths->x[split], (uint64_t)e->count[split], e->width, &e->npy[split]));
        }
    }
done:
    return status;
}

/* Both files are on the disk before the folder changes: a full disk leaves the old features as they were. */
static latent_status sync_files(lt_extraction *e) {
    latent_status status = LATENT_OK;
    double began = now();
    for (int split = 0; split < 2; split++) {
        LT_TRY(e->npy[split] ? lt_npy_sync(e->ctx, e->npy[split]) : lt_writer_sync(e->ctx, e->raw[split]));
    }
    e->info->write_seconds += now() - began;
done:
    return status;
}

static latent_status place_files(lt_extraction *e, const char *folder, const lt_feature_paths *paths) {
    latent_status status = LATENT_OK;
    double began = now();
    LT_TRY(lt_feature_files_begin(e->ctx, folder));
    for (int split = 0; split < 2; split++) {
        lt_npy_writer *npy = e->npy[split];
        lt_writer *raw = e->raw[split];
        const uint8_t *labels = latent_dataset_labels(e->data, (latent_split)split);
        e->npy[split] = NULL; /* a commit frees it, whatever comes of it */
        e->raw[split] = NULL;
        LT_TRY(npy ? lt_npy_commit(e->ctx, npy) : lt_writer_commit(e->ctx, raw));
        LT_TRY(e->options->format == LATENT_RAW
                   ? lt_file_write(e->ctx, paths->labels[split], labels, (size_t)e->count[split])
                   : lt_npy_write_bytes(e->ctx, paths->labels[split], labels, (uint64_t)e->count[split]));
    }
    LT_TRY(lt_scaling_write(e->ctx, paths->scaling, e->width, e->mean, e->deviation, e->options,
                            e->info->weights));
    e->info->write_seconds += now() - began;
    LT_TRY(lt_feature_files_end(e->ctx, folder, e->info));
done:
    return status;
}

latent_status latent_features_extract(latent_context *ctx, latent_model *model, const latent_dataset *data,
                                      const latent_features_options *options, const char *folder,
                                      latent_features_info *out) {
    latent_status status = LATENT_OK;
    lt_feature_paths paths = {0};
    lt_extraction e = {
        .ctx = ctx, .model = model, .backend = model->backend, .options = options, .data = data, .info = out};
    memset(out, 0, sizeof *out);
    latent_dataset_get_info(data, &e.set);
    LT_TRY(lt_extraction_check(&e));
    LT_TRY(lt_extraction_prepare(&e));
    LT_TRY(lt_feature_paths_make(ctx, folder, options->format, &paths));
    if (options->scaling) {
        LT_TRY(lt_extraction_take_scaling(&e, paths.scaling));
    }
    LT_TRY(lt_folder_create(ctx, folder));
    lt_feature_files_sweep(ctx, folder);
    LT_TRY(lt_extraction_check_space(&e, folder));
    LT_TRY(open_files(&e, &paths));
    if (options->standardize && !options->scaling) {
        LT_TRY(measure(&e));
    }
    LT_TRY(write_split(&e, LATENT_TRAIN));
    LT_TRY(write_split(&e, LATENT_TEST));
    LT_TRY(sync_files(&e));
    LT_TRY(place_files(&e, folder, &paths));
done:
    lt_extraction_release(&e);
    lt_feature_paths_free(&paths);
    return status;
}

latent_status latent_model_digest(latent_context *ctx, latent_model *model, char out[33]) {
    latent_status status = LATENT_OK;
    float *values = NULL;
    lt_md5 md5;
    lt_md5_init(&md5);
    for (int i = 0; i < latent_model_tensor_count(model); i++) {
        latent_tensor_info info;
        latent_model_get_tensor(model, i, &info);
        free(values);
        values = NULL;
        LT_TRY(lt_alloc(ctx, info.count * sizeof *values, "a tensor", (void **)&values));
        LT_TRY(latent_model_read_tensor(ctx, model, i, values));
        lt_md5_update(&md5, values, info.count * sizeof *values);
    }
    lt_md5_final(&md5, out);
done:
    free(values);
    return status;
}
