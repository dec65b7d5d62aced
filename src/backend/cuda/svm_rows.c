/* svm_rows.c: feature rows on their way to the device, and their statistics.
 *
 * Rows that are on the device already are used where they are. Rows of the host come through one buffer of a
 * few hundred megabytes, piece after piece, so that a set larger than the card can be trained on.
 */
#include "backend/cuda/svm_cuda.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const size_t piece_bytes = (size_t)256 << 20;

double lt_cuda_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

latent_status lt_cuda_room(latent_context *ctx, lt_cuda *cuda, size_t count, size_t size, void *out) {
    size_t bytes = 0;
    void *memory = NULL;
    latent_status status = LATENT_OK;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        bytes = SIZE_MAX / 2; /* refused below, in numbers */
    }
    status = lt_cuda_alloc(ctx, &cuda->base, bytes, &memory);
    memcpy(out, &memory, sizeof memory);
    return status;
}

static size_t piece_rows(const lt_svm_rows *rows) {
    size_t row_bytes = rows->stride * sizeof(float), count = piece_bytes / (row_bytes ? row_bytes : 1);
    count = count / LT_CUDA_CHUNK * LT_CUDA_CHUNK;
    count = count ? count : LT_CUDA_CHUNK;
    return count < rows->n ? count : rows->n;
}

size_t lt_cuda_pieces_bytes(const lt_svm_rows *rows) {
    return rows->on_backend ? 0 : piece_rows(rows) * rows->stride * sizeof(float);
}

latent_status lt_cuda_pieces(latent_context *ctx, lt_cuda *cuda, const lt_svm_rows *rows,
                             lt_cuda_piece_fn each, void *user, double *upload_seconds) {
    latent_status status = LATENT_OK;
    float *buffer = NULL;
    if (rows->on_backend) {
        lt_cuda_piece all = {rows->x, 0, rows->n};
        return rows->n ? each(ctx, cuda, &all, user) : LATENT_OK;
    }
    size_t step = piece_rows(rows);
    LT_TRY(lt_cuda_room(ctx, cuda, step, rows->stride * sizeof(float), &buffer));
    for (size_t first = 0; first < rows->n; first += step) {
        lt_cuda_piece piece = {buffer, first, step < rows->n - first ? step : rows->n - first};
        double begun = lt_cuda_seconds();
        LT_TRY(lt_cuda_upload(ctx, &cuda->base, buffer, rows->x + first * rows->stride,
                              ((piece.count - 1) * rows->stride + rows->d) * sizeof(float)));
        *upload_seconds += lt_cuda_seconds() - begun;
        LT_TRY(each(ctx, cuda, &piece, user));
        if (ctx->interrupted) {
            status = lt_fail(ctx, LATENT_INTERRUPTED, "interrupted after %zu of %zu rows",
                             first + piece.count, rows->n);
            goto done;
        }
    }
done:
    lt_cuda_free(&cuda->base, buffer);
    return status;
}

/* ---- Statistics -------------------------------------------------------------------------------- */

typedef struct statistics {
    const lt_svm_rows *rows;
    size_t chunks, slices;
    double *sums;    /* [chunks][d] */
    double *total;   /* [d] */
    double *squares; /* [chunks][slices] */
    unsigned long long *bad;
    double center;
} statistics;

static latent_status sum_piece(latent_context *ctx, lt_cuda *cuda, const lt_cuda_piece *piece, void *user) {
    const statistics *s = user;
    latent_status status = LATENT_OK;
    lt_launch_svm_column_sums(cuda->stream, piece->x, piece->first, piece->count, s->rows->d, s->rows->stride,
                              s->sums + piece->first / LT_CUDA_CHUNK * s->rows->d, s->bad);
    LT_LAUNCHED("svm_column_sums");
done:
    return status;
}

static latent_status square_piece(latent_context *ctx, lt_cuda *cuda, const lt_cuda_piece *piece,
                                  void *user) {
    const statistics *s = user;
    latent_status status = LATENT_OK;
    lt_launch_svm_squares(cuda->stream, piece->x, piece->count, s->rows->d, s->rows->stride, s->center,
                          s->squares + piece->first / LT_CUDA_CHUNK * s->slices);
    LT_LAUNCHED("svm_squares");
done:
    return status;
}

/* Means of the columns, and whether all is finite. */
static latent_status first_pass(latent_context *ctx, lt_cuda *cuda, statistics *s, float *mean,
                                lt_svm_statistics *out) {
    latent_status status = LATENT_OK;
    unsigned long long bad = ~0ull;
    size_t d = s->rows->d;
    double *total = NULL, sum = 0, upload = 0;
    LT_TRY(lt_alloc(ctx, d * sizeof *total, "column sums", (void **)&total));
    LT_TRY(lt_cuda_upload(ctx, &cuda->base, s->bad, &bad, sizeof bad));
    LT_TRY(lt_cuda_pieces(ctx, cuda, s->rows, sum_piece, s, &upload));
    lt_launch_svm_column_totals(cuda->stream, s->sums, s->chunks, d, s->total);
    LT_LAUNCHED("svm_column_totals");
    LT_TRY(lt_cuda_download(ctx, &cuda->base, total, s->total, d * sizeof *total));
    LT_TRY(lt_cuda_download(ctx, &cuda->base, &bad, s->bad, sizeof bad));
    out->finite = bad == ~0ull;
    out->bad = out->finite ? 0 : (size_t)bad;
    for (size_t c = 0; c < d; c++) {
        mean[c] = (float)(total[c] / (double)s->rows->n);
        sum += total[c];
    }
    s->center = sum / ((double)s->rows->n * (double)d);
done:
    free(total);
    return status;
}

static latent_status second_pass(latent_context *ctx, lt_cuda *cuda, statistics *s, lt_svm_statistics *out) {
    latent_status status = LATENT_OK;
    size_t parts = s->chunks * s->slices;
    double *squares = NULL, sum = 0, upload = 0;
    LT_TRY(lt_alloc(ctx, parts * sizeof *squares, "sums", (void **)&squares));
    LT_TRY(lt_cuda_pieces(ctx, cuda, s->rows, square_piece, s, &upload));
    LT_TRY(lt_cuda_download(ctx, &cuda->base, squares, s->squares, parts * sizeof *squares));
    for (size_t i = 0; i < parts; i++) {
        sum += squares[i];
    }
    out->variance = sum / ((double)s->rows->n * (double)s->rows->d);
done:
    free(squares);
    return status;
}

latent_status lt_cuda_statistics(latent_context *ctx, lt_backend *backend, const lt_svm_rows *rows,
                                 float *mean, lt_svm_statistics *out) {
    lt_cuda *cuda = (lt_cuda *)backend;
    latent_status status = LATENT_OK;
    statistics s = {.rows = rows,
                    .chunks = (rows->n + LT_CUDA_CHUNK - 1) / LT_CUDA_CHUNK,
                    .slices = (rows->d + LT_CUDA_SLICE - 1) / LT_CUDA_SLICE};
    memset(out, 0, sizeof *out);
    LT_TRY(lt_cuda_device_use(ctx, cuda));
    LT_TRY(lt_cuda_room(ctx, cuda, s.chunks, rows->d * sizeof(double), &s.sums));
    LT_TRY(lt_cuda_room(ctx, cuda, rows->d, sizeof(double), &s.total));
    LT_TRY(lt_cuda_room(ctx, cuda, s.chunks, s.slices * sizeof(double), &s.squares));
    LT_TRY(lt_cuda_room(ctx, cuda, 1, sizeof *s.bad, &s.bad));
    LT_TRY(first_pass(ctx, cuda, &s, mean, out));
    LT_TRY(second_pass(ctx, cuda, &s, out));
done:
    lt_cuda_free(backend, s.sums);
    lt_cuda_free(backend, s.total);
    lt_cuda_free(backend, s.squares);
    lt_cuda_free(backend, s.bad);
    return status;
}
