/* libsvm_text.c: sparse text to dense rows and back.
 *
 * The values are gathered first, 8 bytes for each, so what is allocated is bounded by what the file really
 * holds; the dense rows are made when their size is known and found reasonable. A single line with the index
 * 2000000000 costs nothing but a sentence.
 */
#include "io/libsvm_text.h"

#include "base/file.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DENSE_FREE ((uint64_t)1 << 30) /* bytes that need no justification */
enum { DENSE_FACTOR = 256 };           /* dense bytes for each byte of values, beyond that */

/* "index:value" of a word. */
static latent_status parse_pair(latent_context *ctx, lt_scan *scan, const char *word, uint32_t *index,
                                float *value) {
    char excerpt[LT_EXCERPT_MAX];
    const char *c = word;
    uint64_t number = 0;
    double parsed = 0;
    for (; *c >= '0' && *c <= '9' && number <= INT32_MAX; c++) {
        number = number * 10 + (uint64_t)(*c - '0');
    }
    if (c == word || *c != ':' || number < 1 || number > INT32_MAX) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: line %llu: '%s' is not index:value with an index from 1 to 2147483647",
                       lt_scan_origin(scan), lt_scan_line(scan), lt_excerpt(word, excerpt));
    }
    if (!lt_scan_number(scan, c + 1, &parsed) || !isfinite((float)parsed)) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: line %llu: the value in '%s' is not a finite number of 32 bits",
                       lt_scan_origin(scan), lt_scan_line(scan), lt_excerpt(word, excerpt));
    }
    *index = (uint32_t)number;
    *value = (float)parsed;
    return LATENT_OK;
}

latent_status lt_libsvm_row(latent_context *ctx, lt_scan *scan, lt_libsvm_put put, void *user,
                            uint32_t *largest) {
    uint32_t last = 0, index = 0;
    float value = 0;
    for (;;) {
        lt_scan_kind kind;
        const char *word;
        latent_status status = lt_scan_next(ctx, scan, &kind, &word);
        if (status != LATENT_OK || kind != LT_SCAN_WORD) {
            return status;
        }
        status = parse_pair(ctx, scan, word, &index, &value);
        if (status != LATENT_OK) {
            return status;
        }
        if (index <= last) {
            return lt_fail(ctx, LATENT_ERROR_FORMAT,
                           "%s: line %llu: index %u comes after index %u; indices must rise and appear once",
                           lt_scan_origin(scan), lt_scan_line(scan), index, last);
        }
        last = index;
        *largest = index > *largest ? index : *largest;
        if (!put(user, index, value)) {
            return lt_fail(ctx, LATENT_ERROR_MEMORY, "%s: line %llu: no memory for its values",
                           lt_scan_origin(scan), lt_scan_line(scan));
        }
    }
}

typedef struct entry {
    uint32_t index;
    float value;
} entry;

typedef struct gathered {
    entry *entries;
    size_t count, room;
    size_t *ends; /* [rows] entries up to and with the row's */
    int32_t *labels;
    size_t rows, rows_room;
    uint32_t largest;
} gathered;

static int put_entry(void *user, uint32_t index, float value) {
    gathered *g = user;
    if (g->count == g->room) {
        size_t room = g->room ? 2 * g->room : 1024;
        entry *grown = room <= SIZE_MAX / sizeof *grown ? realloc(g->entries, room * sizeof *grown) : NULL;
        if (!grown) {
            return 0;
        }
        g->entries = grown;
        g->room = room;
    }
    g->entries[g->count++] = (entry){index, value};
    return 1;
}

static int put_row(gathered *g, int32_t label) {
    if (g->rows == g->rows_room) {
        size_t room = g->rows_room ? 2 * g->rows_room : 256;
        size_t *ends = realloc(g->ends, room * sizeof *ends);
        g->ends = ends ? ends : g->ends;
        int32_t *labels = realloc(g->labels, room * sizeof *labels);
        g->labels = labels ? labels : g->labels;
        if (!ends || !labels) {
            return 0;
        }
        g->rows_room = room;
    }
    g->labels[g->rows++] = label;
    return 1;
}

static latent_status gather(latent_context *ctx, lt_scan *scan, gathered *g) {
    for (;;) {
        lt_scan_kind kind;
        const char *word;
        char excerpt[LT_EXCERPT_MAX];
        int32_t label = 0;
        latent_status status = lt_scan_next(ctx, scan, &kind, &word);
        if (status != LATENT_OK || kind == LT_SCAN_END) {
            return status;
        }
        if (ctx->interrupted) {
            return lt_fail(ctx, LATENT_INTERRUPTED, "interrupted while %s was read", lt_scan_origin(scan));
        }
        if (kind == LT_SCAN_LINE) {
            return lt_fail(ctx, LATENT_ERROR_FORMAT,
                           "%s: line %llu is empty; each line is a label and its index:value words",
                           lt_scan_origin(scan), lt_scan_line(scan));
        }
        if (!lt_scan_integer(scan, word, &label)) {
            return lt_fail(ctx, LATENT_ERROR_FORMAT,
                           "%s: line %llu: the label '%s' is not a whole number of 32 bits",
                           lt_scan_origin(scan), lt_scan_line(scan), lt_excerpt(word, excerpt));
        }
        if (!put_row(g, label)) {
            return lt_fail(ctx, LATENT_ERROR_MEMORY, "%s: no memory for its rows", lt_scan_origin(scan));
        }
        status = lt_libsvm_row(ctx, scan, put_entry, g, &g->largest);
        if (status != LATENT_OK) {
            return status;
        }
        g->ends[g->rows - 1] = g->count;
    }
}

/* The width of the dense rows, when they are not out of proportion. */
static latent_status choose_width(latent_context *ctx, const lt_scan *scan, const gathered *g, size_t columns,
                                  uint64_t limit, size_t *width) {
    uint64_t dense = 0, earned = (uint64_t)g->count * sizeof(entry) * DENSE_FACTOR;
    *width = columns ? columns : g->largest;
    if (g->rows == 0) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: it has no rows", lt_scan_origin(scan));
    }
    if (columns && g->largest > columns) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: it has the index %u, but rows have %zu features here",
                       lt_scan_origin(scan), g->largest, columns);
    }
    if (*width == 0) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: none of its %zu rows has a value", lt_scan_origin(scan),
                       g->rows);
    }
    limit = limit ? limit : earned > DENSE_FREE ? earned : DENSE_FREE;
    if (__builtin_mul_overflow((uint64_t)g->rows * sizeof(float), (uint64_t)*width, &dense) ||
        dense > limit) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: its %zu rows reach up to index %zu with %zu values in all; features are kept "
                       "dense here, and that would be out of proportion",
                       lt_scan_origin(scan), g->rows, *width, g->count);
    }
    return LATENT_OK;
}

latent_status lt_libsvm_read(latent_context *ctx, lt_scan *scan, size_t columns, uint64_t limit,
                             latent_rows *out) {
    latent_status status = LATENT_OK;
    gathered g = {0};
    size_t width = 0, at = 0;
    memset(out, 0, sizeof *out);
    LT_TRY(gather(ctx, scan, &g));
    LT_TRY(choose_width(ctx, scan, &g, columns, limit, &width));
    LT_TRY(lt_calloc(ctx, g.rows, width * sizeof(float), "dense rows", (void **)&out->x));
    for (size_t row = 0; row < g.rows; row++) {
        for (; at < g.ends[row]; at++) {
            out->x[row * width + g.entries[at].index - 1] = g.entries[at].value;
        }
    }
    out->n = g.rows;
    out->d = width;
    out->labels = g.labels;
    g.labels = NULL;
done:
    free(g.entries);
    free(g.ends);
    free(g.labels);
    return status;
}

latent_status lt_libsvm_write(latent_context *ctx, const char *path, const float *x, size_t n, size_t d,
                              const int32_t *labels) {
    latent_status status = LATENT_OK;
    lt_writer *writer = NULL;
    char text[64];
    lt_plain_locale locale = lt_plain_locale_begin();
    LT_TRY(lt_writer_open(ctx, path, &writer));
    for (size_t i = 0; i < n; i++) {
        if (ctx->interrupted) {
            status = lt_fail(ctx, LATENT_INTERRUPTED, "interrupted; %s was not written", path);
            goto done;
        }
        int length = snprintf(text, sizeof text, "%d", labels[i]);
        LT_TRY(lt_writer_put(ctx, writer, text, (size_t)length));
        for (size_t c = 0; c < d; c++) {
            float value = x[i * d + c];
            if (value != 0) {
                /* Nine digits bring a float back exactly. */
                length = snprintf(text, sizeof text, " %zu:%.9g", c + 1, (double)value);
                LT_TRY(lt_writer_put(ctx, writer, text, (size_t)length));
            }
        }
        LT_TRY(lt_writer_put(ctx, writer, "\n", 1));
    }
    status = lt_writer_commit(ctx, writer);
    writer = NULL;
done:
    lt_writer_abort(writer);
    lt_plain_locale_end(&locale);
    return status;
}
