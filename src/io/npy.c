/* npy.c: the values of an .npy file, read in sequence and converted, or written.
 *
 * Values pass through a block of fixed size, so that reading costs no memory beyond the caller's array; those
 * that need no conversion go there at once, and many of them by all cores: a file that is in memory already
 * comes as fast as new memory can be had. The header is checked against the size of the file before anything
 * is allocated for it.
 */
#include "io/npy.h"

#include "base/file.h"
#include "base/parallel.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "values are copied as they lie in the file: this wants a little-endian machine"
#endif

enum {
    BLOCK = 8192,    /* values converted at a time */
    PIECE = 1 << 20, /* bytes: what is split among threads */
    WIDE = 1 << 24   /* bytes from which on it is */
};

struct lt_npy {
    FILE *file;
    char *path;
    lt_npy_info info;
    uint64_t at; /* values read so far */
};

static latent_status read_header(latent_context *ctx, lt_npy *npy) {
    latent_status status = LATENT_OK;
    struct stat info;
    char *bytes = NULL;
    size_t room = LT_NPY_HEADER_MAX + 12;
    if (fstat(fileno(npy->file), &info) != 0 || !S_ISREG(info.st_mode)) {
        return lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot read: it is not a regular file", npy->path);
    }
    LT_TRY(lt_alloc(ctx, room, "the header of an .npy file", (void **)&bytes));
    size_t have = fread(bytes, 1, room, npy->file);
    LT_TRY(lt_npy_parse(ctx, bytes, have, (uint64_t)info.st_size, npy->path, &npy->info));
    if (fseeko(npy->file, (off_t)npy->info.offset, SEEK_SET) != 0) {
        status = lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot read: %s", npy->path, strerror(errno));
    }
done:
    free(bytes);
    return status;
}

latent_status lt_npy_open(latent_context *ctx, const char *path, lt_npy **out) {
    latent_status status = LATENT_OK;
    lt_npy *npy = NULL;
    *out = NULL;
    LT_TRY(lt_calloc(ctx, 1, sizeof *npy, "an .npy file", (void **)&npy));
    LT_TRY(lt_strdup(ctx, path, &npy->path));
    npy->file = fopen(path, "rbe");
    if (!npy->file) {
        status = lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot read: %s", path, strerror(errno));
        goto done;
    }
    LT_TRY(read_header(ctx, npy));
    *out = npy;
    npy = NULL;
done:
    lt_npy_close(npy);
    return status;
}

void lt_npy_close(lt_npy *npy) {
    if (npy) {
        if (npy->file) {
            fclose(npy->file);
        }
        free(npy->path);
        free(npy);
    }
}

const lt_npy_info *lt_npy_get_info(const lt_npy *npy) {
    return &npy->info;
}

typedef struct wide_read {
    int fd;
    char *out;
    uint64_t offset, bytes;
    int error; /* of the latest failure, -1: the file is shorter; atomic */
} wide_read;

/* Pieces [first, last). */
static void read_pieces(void *user, size_t first, size_t last) {
    wide_read *r = user;
    uint64_t at = (uint64_t)first * PIECE, end = (uint64_t)last * PIECE;
    end = end < r->bytes ? end : r->bytes;
    while (at < end) {
        ssize_t n = pread(r->fd, r->out + at, (size_t)(end - at), (off_t)(r->offset + at));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            __atomic_store_n(&r->error, n < 0 ? errno : -1, __ATOMIC_RELAXED);
            return;
        }
        at += (uint64_t)n;
    }
}

/* Returns 0, -1 when the file is shorter, or an errno. Leaves the stream behind the last byte. */
static int read_bytes(lt_npy *npy, void *raw, uint64_t offset, uint64_t bytes) {
    wide_read r = {fileno(npy->file), raw, offset, bytes, 0};
    if (bytes < WIDE) {
        if (fread(raw, 1, bytes, npy->file) == bytes) {
            return 0;
        }
        return !ferror(npy->file) ? -1 : errno ? errno : EIO;
    }
    lt_parallel_ranges((size_t)((bytes + PIECE - 1) / PIECE), read_pieces, &r);
    if (!r.error && fseeko(npy->file, (off_t)(offset + bytes), SEEK_SET) != 0) {
        r.error = errno;
    }
    return r.error;
}

/* The next `count` values, raw. */
static latent_status read_block(latent_context *ctx, lt_npy *npy, void *raw, uint64_t count) {
    unsigned size = lt_npy_type_bytes(npy->info.type);
    if (count > npy->info.count - npy->at) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "%s: more values were asked for than its %llu", npy->path,
                       (unsigned long long)npy->info.count);
    }
    int error = read_bytes(npy, raw, npy->info.offset + npy->at * size, count * size);
    if (error) {
        return lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot read: %s", npy->path,
                       error > 0 ? strerror(error) : "the file became shorter while it was read");
    }
    npy->at += count;
    return LATENT_OK;
}

/* "row R, column C" of a value; 0-based, as NumPy counts. */
static latent_status bad_value(latent_context *ctx, const lt_npy *npy, uint64_t index, const char *what,
                               double value) {
    return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: row %llu, column %llu: %g %s", npy->path,
                   (unsigned long long)(index / npy->info.shape[1]),
                   (unsigned long long)(index % npy->info.shape[1]), value, what);
}

static double value_at(lt_npy_type type, const void *raw, size_t i) {
    switch (type) {
    case LT_NPY_F32:
        return ((const float *)raw)[i];
    case LT_NPY_F64:
        return ((const double *)raw)[i];
    case LT_NPY_I32:
        return ((const int32_t *)raw)[i];
    case LT_NPY_I64:
        return (double)((const int64_t *)raw)[i];
    case LT_NPY_U8:
        break;
    }
    return ((const uint8_t *)raw)[i];
}

latent_status lt_npy_floats(latent_context *ctx, lt_npy *npy, float *out, uint64_t count) {
    _Alignas(8) char raw[BLOCK * 8];
    if (npy->info.type == LT_NPY_F32) {
        return read_block(ctx, npy, out, count);
    }
    for (uint64_t done = 0; done < count;) {
        size_t part = count - done < BLOCK ? (size_t)(count - done) : BLOCK;
        uint64_t first = npy->at;
        latent_status status = read_block(ctx, npy, raw, part);
        if (status != LATENT_OK) {
            return status;
        }
        for (size_t i = 0; i < part; i++) {
            double value = value_at(npy->info.type, raw, i);
            out[done + i] = (float)value;
            if (isfinite(value) && !isfinite(out[done + i])) {
                return bad_value(ctx, npy, first + i, "is too large for float32", value);
            }
        }
        done += part;
    }
    return LATENT_OK;
}

latent_status lt_npy_integers(latent_context *ctx, lt_npy *npy, int32_t *out, uint64_t count) {
    _Alignas(8) char raw[BLOCK * 8];
    for (uint64_t done = 0; done < count;) {
        size_t part = count - done < BLOCK ? (size_t)(count - done) : BLOCK;
        uint64_t first = npy->at;
        latent_status status = read_block(ctx, npy, raw, part);
        if (status != LATENT_OK) {
            return status;
        }
        for (size_t i = 0; i < part; i++) {
            double value = value_at(npy->info.type, raw, i);
            if (!(value >= INT32_MIN && value <= INT32_MAX) || value != floor(value)) {
                return bad_value(ctx, npy, first + i, "is not a whole number of 32 bits", value);
            }
            out[done + i] = (int32_t)value;
        }
        done += part;
    }
    return LATENT_OK;
}

/* ---- writing ---- */

struct lt_npy_writer {
    lt_writer *file;
    char *path;
    uint64_t count, left;
};

/* Fills `header`; the values start on a multiple of 64 bytes, as NumPy's do. Returns the bytes it takes. */
static size_t make_header(char header[192], const char *descr, uint64_t rows, uint64_t columns) {
    char shape[64];
    snprintf(shape, sizeof shape, columns ? "(%llu, %llu)" : "(%llu,)", (unsigned long long)rows,
             (unsigned long long)columns);
    int length = snprintf(header + 10, 192 - 10, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                          descr, shape);
    size_t total = ((size_t)(10 + length + 1) + 63) / 64 * 64;
    memset(header + 10 + length, ' ', total - 11 - (size_t)length);
    header[total - 1] = '\n';
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)((total - 10) & 0xFF);
    header[9] = (char)((total - 10) >> 8);
    return total;
}

latent_status lt_npy_write_bytes(latent_context *ctx, const char *path, const uint8_t *values,
                                 uint64_t count) {
    latent_status status = LATENT_OK;
    lt_writer *file = NULL;
    char header[192];
    size_t total = make_header(header, "|u1", count, 0);
    LT_TRY(lt_writer_open(ctx, path, &file));
    LT_TRY(lt_writer_put(ctx, file, header, total));
    LT_TRY(lt_writer_put(ctx, file, values, count));
    status = lt_writer_commit(ctx, file);
    file = NULL;
done:
    lt_writer_abort(file);
    return status;
}

latent_status lt_npy_create(latent_context *ctx, const char *path, uint64_t rows, uint64_t columns,
                            lt_npy_writer **out) {
    latent_status status = LATENT_OK;
    lt_npy_writer *writer = NULL;
    char header[192];
    *out = NULL;
    LT_TRY(lt_calloc(ctx, 1, sizeof *writer, "an .npy file", (void **)&writer));
    LT_TRY(lt_strdup(ctx, path, &writer->path));
    if (__builtin_mul_overflow(rows, columns ? columns : 1, &writer->count) ||
        writer->count > UINT64_MAX / sizeof(float)) {
        status = lt_fail(ctx, LATENT_ERROR_ARGUMENT, "%s: %llu x %llu values are too many for a file", path,
                         (unsigned long long)rows, (unsigned long long)columns);
        goto done;
    }
    writer->left = writer->count;
    size_t total = make_header(header, "<f4", rows, columns);
    LT_TRY(lt_writer_open(ctx, path, &writer->file));
    LT_TRY(lt_writer_put(ctx, writer->file, header, total));
    *out = writer;
    writer = NULL;
done:
    lt_npy_abort(writer);
    return status;
}

latent_status lt_npy_put(latent_context *ctx, lt_npy_writer *writer, const float *values, uint64_t count) {
    if (count > writer->left) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "%s: more values were written than its shape has",
                       writer->path);
    }
    writer->left -= count;
    return lt_writer_put(ctx, writer->file, values, count * sizeof *values);
}

latent_status lt_npy_sync(latent_context *ctx, lt_npy_writer *writer) {
    return lt_writer_sync(ctx, writer->file);
}

latent_status lt_npy_commit(latent_context *ctx, lt_npy_writer *writer) {
    latent_status status = LATENT_OK;
    if (writer->left > 0) {
        status = lt_fail(ctx, LATENT_ERROR_ARGUMENT, "%s: %llu of its %llu values were not written",
                         writer->path, (unsigned long long)writer->left, (unsigned long long)writer->count);
    } else {
        status = lt_writer_commit(ctx, writer->file);
        writer->file = NULL;
    }
    lt_npy_abort(writer);
    return status;
}

void lt_npy_abort(lt_npy_writer *writer) {
    if (writer) {
        lt_writer_abort(writer->file);
        free(writer->path);
        free(writer);
    }
}
