/* safetensors.h: the weight file format of the PyTorch world.
 *
 * A little-endian uint64 (length of the header), a JSON header that names every tensor's type, shape and
 * byte range plus a string-to-string map "__metadata__", then the raw bytes. The reader treats the file as
 * hostile: lengths, ranges, overlaps, gaps, shapes and counts are checked before a byte is used.
 */
#ifndef LT_IO_SAFETENSORS_H
#define LT_IO_SAFETENSORS_H

#include "base/status.h"

enum { LT_ST_DIMS_MAX = 8 };

typedef enum lt_st_type {
    LT_ST_F32,
    LT_ST_F64,
    LT_ST_F16,
    LT_ST_BF16,
    LT_ST_I64,
    LT_ST_I32,
    LT_ST_U8
} lt_st_type;

const char *lt_st_type_name(lt_st_type type); /* "F32" */
unsigned lt_st_type_bytes(lt_st_type type);   /* of one element */

typedef struct lt_st_tensor {
    const char *name;
    lt_st_type type;
    int dims;
    uint64_t shape[LT_ST_DIMS_MAX];
    uint64_t count;   /* product of the shape */
    const void *data; /* little-endian, maybe unaligned */
} lt_st_tensor;

typedef struct lt_safetensors lt_safetensors;

latent_status lt_st_read(latent_context *ctx, const char *path, lt_safetensors **out);
/* The same from memory: `bytes` are copied nowhere and must outlive the object. */
latent_status lt_st_parse(latent_context *ctx, const void *bytes, size_t size, const char *origin,
                          lt_safetensors **out);
void lt_st_destroy(lt_safetensors *st);
int lt_st_count(const lt_safetensors *st);
const lt_st_tensor *lt_st_at(const lt_safetensors *st, int index);          /* in the order of the data */
const lt_st_tensor *lt_st_find(const lt_safetensors *st, const char *name); /* NULL when absent */
const char *lt_st_metadata(const lt_safetensors *st, const char *key);      /* NULL when absent */
/* Element `index` of any type as a double; exact but for I64 beyond 2^53. */
double lt_st_value(const lt_st_tensor *tensor, uint64_t index);

typedef struct lt_st_pair {
    const char *key, *value;
} lt_st_pair;

/* Writes atomically. Data starts on a multiple of 8 bytes, in the given order. */
latent_status lt_st_write(latent_context *ctx, const char *path, const lt_st_tensor *tensors, int count,
                          const lt_st_pair *metadata, int metadata_count);

#endif
