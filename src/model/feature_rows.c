/* feature_rows.c: what is done to the rows of features between the encoder and the file.
 *
 * All of it is independent by row, or by column for the statistics, and is spread over the cores that way:
 * every number is computed by one thread in one order, so the bits are always the same.
 */
#include "model/features.h"

#include "base/parallel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

latent_status lt_columns_create(latent_context *ctx, size_t width, lt_columns *out) {
    latent_status status = LATENT_OK;
    memset(out, 0, sizeof *out);
    out->width = width;
    LT_TRY(lt_calloc(ctx, width, sizeof *out->mean, "column means", (void **)&out->mean));
    LT_TRY(lt_calloc(ctx, width, sizeof *out->m2, "column deviations", (void **)&out->m2));
done:
    if (status != LATENT_OK) {
        lt_columns_free(out);
    }
    return status;
}

void lt_columns_free(lt_columns *columns) {
    free(columns->mean);
    free(columns->m2);
    memset(columns, 0, sizeof *columns);
}

typedef struct columns_job {
    lt_columns *columns;
    const float *x;
    size_t rows;
} columns_job;

/* Welford: d = x - mean; mean += d/n; m2 += d * (x - mean). */
static void add_columns(void *user, size_t first, size_t last) {
    const columns_job *job = user;
    double *mean = job->columns->mean, *m2 = job->columns->m2;
    for (size_t row = 0; row < job->rows; row++) {
        const float *x = job->x + row * job->columns->width;
        double share = 1.0 / (double)(job->columns->rows + row + 1);
        for (size_t i = first; i < last; i++) {
            double distance = (double)x[i] - mean[i];
            mean[i] += distance * share;
            m2[i] += distance * ((double)x[i] - mean[i]);
        }
    }
}

void lt_columns_add(lt_columns *columns, const float *x, size_t rows) {
    columns_job job = {columns, x, rows};
    lt_parallel_ranges(columns->width, add_columns, &job);
    columns->rows += rows;
}

void lt_columns_finish(const lt_columns *columns, float *mean, float *deviation) {
    double freedom = columns->rows > 1 ? (double)(columns->rows - 1) : 1;
    for (size_t i = 0; i < columns->width; i++) {
        mean[i] = (float)columns->mean[i];
        deviation[i] = (float)sqrt(columns->m2[i] / freedom);
    }
}

void lt_mirror_images(const uint8_t *images, int count, int h, int w, int c, uint8_t *out) {
    size_t pixel = (size_t)c, row = (size_t)w * pixel;
    for (size_t y = 0; y < (size_t)count * (size_t)h; y++) {
        for (size_t x = 0; x < (size_t)w; x++) {
            memcpy(out + y * row + x * pixel, images + y * row + ((size_t)w - 1 - x) * pixel, pixel);
        }
    }
}

typedef struct gather_job {
    const float *a, *b;
    float *x;
    size_t pixels, channels;
} gather_job;

static void gather_rows(void *user, size_t first, size_t last) {
    const gather_job *job = user;
    size_t pixels = job->pixels, channels = job->channels, width = pixels * channels;
    for (size_t row = first; row < last; row++) {
        const float *a = job->a + row * width, *b = job->b ? job->b + row * width : NULL;
        float *x = job->x + row * width;
        for (size_t c = 0; c < channels; c++) {
            for (size_t p = 0; p < pixels; p++) {
                x[c * pixels + p] = b ? a[p * channels + c] + b[p * channels + c] : a[p * channels + c];
            }
        }
    }
}

void lt_rows_gather(const float *a, const float *b, size_t count, size_t pixels, size_t channels, float *x) {
    gather_job job = {a, b, x, pixels, channels};
    lt_parallel_ranges(count, gather_rows, &job);
}

typedef struct finish_job {
    float *x;
    size_t width, rows;
    const float *mean, *deviation;
    int l2;
    unsigned char *bad; /* [rows] */
} finish_job;

static void finish_rows(void *user, size_t first, size_t last) {
    const finish_job *job = user;
    for (size_t row = first; row < last; row++) {
        float *x = job->x + row * job->width;
        double squares = 0;
        for (size_t i = 0; i < job->width; i++) {
            if (job->mean) {
                x[i] = (x[i] - job->mean[i]) / (job->deviation[i] + (float)LT_FEATURES_EPSILON);
            }
            squares += (double)x[i] * x[i];
        }
        job->bad[row] = isfinite(squares) ? 0 : 1;
        if (job->l2 && squares > 0) {
            double length = sqrt(squares); /* beyond float when the features are huge */
            for (size_t i = 0; i < job->width; i++) {
                x[i] = (float)(x[i] / length);
            }
        }
    }
}

/* Rows come in chunks, so the marks fit on the stack a piece at a time. */
size_t lt_rows_finish(float *x, size_t rows, size_t width, const float *mean, const float *deviation,
                      int l2) {
    enum { PIECE = 4096 };
    unsigned char bad[PIECE];
    for (size_t first = 0; first < rows; first += PIECE) {
        size_t count = rows - first < PIECE ? rows - first : PIECE;
        finish_job job = {x + first * width, width, count, mean, deviation, l2, bad};
        lt_parallel_ranges(count, finish_rows, &job);
        const unsigned char *found = memchr(bad, 1, count);
        if (found) {
            return first + (size_t)(found - bad);
        }
    }
    return rows;
}
