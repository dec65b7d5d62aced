/* rows.c: feature and label files by their first bytes: .npy, or text. */
#include "base/file.h"
#include "base/json.h"
#include "io/libsvm_text.h"
#include "io/npy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static latent_status is_npy(latent_context *ctx, const char *path, int *out) {
    char head[6];
    FILE *file = fopen(path, "rbe");
    if (!file) {
        return lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot read: %s", path, strerror(errno));
    }
    size_t have = fread(head, 1, sizeof head, file);
    fclose(file);
    *out = lt_npy_is(head, have);
    return LATENT_OK;
}

static latent_status read_npy(latent_context *ctx, const char *path, size_t columns, latent_rows *out) {
    latent_status status = LATENT_OK;
    lt_npy *npy = NULL;
    LT_TRY(lt_npy_open(ctx, path, &npy));
    const lt_npy_info *info = lt_npy_get_info(npy);
    if (info->dims != 2) {
        status = lt_fail(ctx, LATENT_ERROR_FORMAT,
                         "%s: the array has one dimension; features are rows and columns", path);
        goto done;
    }
    if (info->count == 0) {
        status = lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: the array of %llu rows and %llu columns is empty",
                         path, (unsigned long long)info->shape[0], (unsigned long long)info->shape[1]);
        goto done;
    }
    if (columns && info->shape[1] != columns) {
        status = lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: its rows have %llu features, but %zu are needed%s",
                         path, (unsigned long long)info->shape[1], columns,
                         info->shape[1] > columns
                             ? ""
                             : "; where it was made from sparse text, the last columns may have been all 0 "
                               "there: make it again with the full number of columns");
        goto done;
    }
    out->n = (size_t)info->shape[0];
    out->d = (size_t)info->shape[1];
    LT_TRY(lt_alloc(ctx, (size_t)info->count * sizeof(float), "the features", (void **)&out->x));
    LT_TRY(lt_npy_floats(ctx, npy, out->x, info->count));
done:
    lt_npy_close(npy);
    return status;
}

latent_status latent_rows_read(latent_context *ctx, const char *path, size_t columns, latent_rows *out) {
    latent_status status = LATENT_OK;
    lt_scan *scan = NULL;
    int npy = 0;
    memset(out, 0, sizeof *out);
    LT_TRY(is_npy(ctx, path, &npy));
    if (npy) {
        LT_TRY(read_npy(ctx, path, columns, out));
    } else {
        LT_TRY(lt_scan_open(ctx, path, &scan));
        LT_TRY(lt_libsvm_read(ctx, scan, columns, 0, out));
    }
done:
    lt_scan_close(scan);
    if (status != LATENT_OK) {
        latent_rows_free(out);
    }
    return status;
}

void latent_rows_free(latent_rows *rows) {
    free(rows->x);
    free(rows->labels);
    memset(rows, 0, sizeof *rows);
}

latent_status latent_rows_write(latent_context *ctx, const char *path, const float *x, size_t n, size_t d,
                                const int32_t *labels) {
    latent_status status = LATENT_OK;
    lt_npy_writer *writer = NULL;
    if (labels) {
        return lt_libsvm_write(ctx, path, x, n, d, labels);
    }
    LT_TRY(lt_npy_create(ctx, path, n, d, &writer));
    for (size_t i = 0; i < n; i++) {
        if (ctx->interrupted) {
            status = lt_fail(ctx, LATENT_INTERRUPTED, "interrupted; %s was not written", path);
            goto done;
        }
        LT_TRY(lt_npy_put(ctx, writer, x + i * d, d));
    }
    status = lt_npy_commit(ctx, writer);
    writer = NULL;
done:
    lt_npy_abort(writer);
    return status;
}

static latent_status read_labels_npy(latent_context *ctx, const char *path, int32_t **labels, size_t *n) {
    latent_status status = LATENT_OK;
    lt_npy *npy = NULL;
    LT_TRY(lt_npy_open(ctx, path, &npy));
    const lt_npy_info *info = lt_npy_get_info(npy);
    if (info->dims == 2 && info->shape[1] != 1) {
        status = lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: the array has %llu columns; labels have one", path,
                         (unsigned long long)info->shape[1]);
        goto done;
    }
    *n = (size_t)info->count;
    LT_TRY(lt_alloc(ctx, *n * sizeof **labels, "labels", (void **)labels));
    LT_TRY(lt_npy_integers(ctx, npy, *labels, info->count));
done:
    lt_npy_close(npy);
    return status;
}

/* One whole number a line. */
static latent_status read_labels_text(latent_context *ctx, const char *path, int32_t **labels, size_t *n) {
    latent_status status = LATENT_OK;
    lt_scan *scan = NULL;
    size_t room = 0;
    LT_TRY(lt_scan_open(ctx, path, &scan));
    for (int on_line = 0;;) {
        lt_scan_kind kind;
        const char *word;
        char excerpt[LT_EXCERPT_MAX];
        LT_TRY(lt_scan_next(ctx, scan, &kind, &word));
        if (kind == LT_SCAN_END) {
            break;
        }
        if (kind == LT_SCAN_LINE) {
            on_line = 0;
            continue;
        }
        if (*n == room) {
            room = room ? 2 * room : 1024;
            int32_t *grown = realloc(*labels, room * sizeof *grown);
            if (!grown) {
                status = lt_fail(ctx, LATENT_ERROR_MEMORY, "%s: no memory for its labels", path);
                goto done;
            }
            *labels = grown;
        }
        if (on_line || !lt_scan_integer(scan, word, &(*labels)[*n])) {
            status = lt_fail(ctx, LATENT_ERROR_FORMAT,
                             "%s: line %llu: '%s' is %s; labels are one whole number a line", path,
                             lt_scan_line(scan), lt_excerpt(word, excerpt),
                             on_line ? "a second word" : "not a whole number");
            goto done;
        }
        on_line = 1;
        (*n)++;
    }
done:
    lt_scan_close(scan);
    return status;
}

latent_status latent_labels_read(latent_context *ctx, const char *path, int32_t **labels, size_t *n) {
    latent_status status = LATENT_OK;
    int npy = 0;
    *labels = NULL;
    *n = 0;
    LT_TRY(is_npy(ctx, path, &npy));
    LT_TRY(npy ? read_labels_npy(ctx, path, labels, n) : read_labels_text(ctx, path, labels, n));
    if (*n == 0) {
        status = lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: it has no labels", path);
    }
done:
    if (status != LATENT_OK) {
        free(*labels);
        *labels = NULL;
        *n = 0;
    }
    return status;
}
