/* npy.h: NumPy's array file, for features and labels.
 *
 * Magic "\x93NUMPY", a version, the length of a header, the header (a Python dict with the keys descr,
 * fortran_order and shape), then the raw values. Read here: versions 1 and 2, little-endian float32,
 * float64, int32, int64 and uint8, C order, one or two dimensions. Values are read in sequence, so that an
 * array larger than memory can pass through; the header's shape must match the file's size exactly. Written:
 * float32 and uint8, version 1, atomically.
 */
#ifndef LT_IO_NPY_H
#define LT_IO_NPY_H

#include "base/status.h"

typedef enum lt_npy_type { LT_NPY_F32, LT_NPY_F64, LT_NPY_I32, LT_NPY_I64, LT_NPY_U8 } lt_npy_type;

typedef struct lt_npy_info {
    lt_npy_type type;
    int dims;          /* 1 or 2 */
    uint64_t shape[2]; /* shape[1] is 1 for one dimension */
    uint64_t count;    /* values in all */
    uint64_t offset;   /* of the first value in the file */
} lt_npy_info;

const char *lt_npy_type_name(lt_npy_type type); /* "float32" */
unsigned lt_npy_type_bytes(lt_npy_type type);

enum { LT_NPY_HEADER_MAX = 65536 };

/* Reads the header out of the file's first `have` bytes (all of it, or at least LT_NPY_HEADER_MAX + 12).
 * `size` is the whole file's. */
latent_status lt_npy_parse(latent_context *ctx, const void *bytes, size_t have, uint64_t size,
                           const char *origin, lt_npy_info *out);
/* 1 when the bytes begin like an .npy file. */
int lt_npy_is(const void *bytes, size_t have);

typedef struct lt_npy lt_npy; /* an open file and the place in it */

latent_status lt_npy_open(latent_context *ctx, const char *path, lt_npy **out);
const lt_npy_info *lt_npy_get_info(const lt_npy *npy);
/* The next `count` values. As floats: float64 is rounded, and a number beyond float32 is an error. As whole
 * numbers: a fraction or a number beyond int32 is an error. */
latent_status lt_npy_floats(latent_context *ctx, lt_npy *npy, float *out, uint64_t count);
latent_status lt_npy_integers(latent_context *ctx, lt_npy *npy, int32_t *out, uint64_t count);
void lt_npy_close(lt_npy *npy); /* takes NULL */

typedef struct lt_npy_writer lt_npy_writer;

/* float32; columns = 0 makes a one-dimensional array. */
latent_status lt_npy_create(latent_context *ctx, const char *path, uint64_t rows, uint64_t columns,
                            lt_npy_writer **out);
latent_status lt_npy_put(latent_context *ctx, lt_npy_writer *writer, const float *values, uint64_t count);
/* As lt_writer_sync. */
latent_status lt_npy_sync(latent_context *ctx, lt_npy_writer *writer);
/* Fails when fewer values came than the shape has. Frees the writer either way. */
latent_status lt_npy_commit(latent_context *ctx, lt_npy_writer *writer);
void lt_npy_abort(lt_npy_writer *writer); /* takes NULL; the old file stays */

/* A one-dimensional array of uint8, at once. */
latent_status lt_npy_write_bytes(latent_context *ctx, const char *path, const uint8_t *values,
                                 uint64_t count);

#endif
