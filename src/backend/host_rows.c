/* host_rows.c: rows of features on the host (see rows.h).
 *
 * All of it is independent by row, or by column for the statistics, and is spread over the cores that way:
 * every number is computed by one thread in one order, so the bits are always the same.
 */
#include "backend/host.h"
#include "base/parallel.h"

#include <math.h>
#include <string.h>

static float value(const void *x, lt_dtype type, size_t at) {
    if (type == LT_F32) {
        return ((const float *)x)[at];
    }
    uint32_t bits = (uint32_t)((const uint16_t *)x)[at] << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

typedef struct gather_job {
    const lt_rows_gather_call *call;
    lt_dtype type;
} gather_job;

static void gather_rows(void *user, size_t first, size_t last) {
    const gather_job *job = user;
    const lt_rows_gather_call *call = job->call;
    size_t pixels = call->pixels, channels = call->channels, width = pixels * channels;
    for (size_t row = first; row < last; row++) {
        float *to = call->rows + row * width;
        for (size_t c = 0; c < channels; c++) {
            for (size_t p = 0; p < pixels; p++) {
                float x = value(call->x, job->type, row * width + p * channels + c);
                to[c * pixels + p] = call->add ? to[c * pixels + p] + x : x;
            }
        }
    }
}

static latent_status gather(latent_context *ctx, lt_backend *backend, const lt_rows_gather_call *call) {
    gather_job job = {call, backend->activation};
    (void)ctx;
    lt_parallel_ranges(call->n, gather_rows, &job);
    return LATENT_OK;
}

static void add_columns(void *user, size_t first, size_t last) {
    const lt_rows_columns_call *call = user;
    for (size_t row = 0; row < call->n; row++) {
        const float *x = call->rows + row * call->width;
        double share = 1.0 / (double)(call->before + row + 1);
        for (size_t i = first; i < last; i++) {
            double distance = (double)x[i] - call->mean[i];
            call->mean[i] += distance * share;
            call->m2[i] += distance * ((double)x[i] - call->mean[i]);
        }
    }
}

static latent_status columns(latent_context *ctx, lt_backend *backend, const lt_rows_columns_call *call) {
    lt_rows_columns_call job = *call;
    (void)ctx;
    (void)backend;
    lt_parallel_ranges(call->width, add_columns, &job);
    return LATENT_OK;
}

enum { PIECE = 4096 };

typedef struct finish_job {
    const lt_rows_finish_call *call;
    size_t first;
    unsigned char bad[PIECE];
} finish_job;

static void finish_rows(void *user, size_t first, size_t last) {
    finish_job *job = user;
    const lt_rows_finish_call *call = job->call;
    for (size_t row = first; row < last; row++) {
        float *x = call->rows + (job->first + row) * call->width;
        double squares = 0;
        for (size_t i = 0; i < call->width; i++) {
            if (call->mean) {
                x[i] = (x[i] - call->mean[i]) / (call->deviation[i] + call->epsilon);
            }
            squares += (double)x[i] * x[i];
        }
        job->bad[row] = isfinite(squares) ? 0 : 1;
        if (call->l2 && squares > 0) {
            double length = sqrt(squares); /* beyond float when the features are huge */
            for (size_t i = 0; i < call->width; i++) {
                x[i] = (float)(x[i] / length);
            }
        }
    }
}

/* The marks of bad rows fit on the stack a piece at a time. */
static latent_status finish(latent_context *ctx, lt_backend *backend, const lt_rows_finish_call *call,
                            size_t *bad) {
    finish_job job = {.call = call};
    (void)ctx;
    (void)backend;
    *bad = call->n;
    for (; job.first < call->n && *bad == call->n; job.first += PIECE) {
        size_t count = call->n - job.first < PIECE ? call->n - job.first : PIECE;
        lt_parallel_ranges(count, finish_rows, &job);
        const unsigned char *found = memchr(job.bad, 1, count);
        *bad = found ? job.first + (size_t)(found - job.bad) : call->n;
    }
    return LATENT_OK;
}

const lt_rows_ops lt_host_rows_ops = {.gather = gather, .columns = columns, .finish = finish};
