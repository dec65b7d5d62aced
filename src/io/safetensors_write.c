/* safetensors_write.c: writing.
 *
 * The header is padded with spaces, as the format allows, so that the data starts on a multiple of 8
 * bytes. It goes through the reader's JSON parser before it is written: a file with a name twice would be
 * refused by every reader, so it is refused here.
 */
#include "io/safetensors.h"

#include "base/file.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensors are written as they lie in memory: this wants a little-endian machine"
#endif

#define HEADER_MAX ((uint64_t)100000000)

/* The size of a tensor in bytes, or a sentence about why it cannot be written. */
static latent_status tensor_bytes(latent_context *ctx, const char *path, const lt_st_tensor *tensor,
                                  uint64_t *out) {
    uint64_t count = 1;
    int fits = tensor->dims >= 0 && tensor->dims <= LT_ST_DIMS_MAX;
    for (int i = 0; fits && i < tensor->dims; i++) {
        fits = !__builtin_mul_overflow(count, tensor->shape[i], &count);
    }
    fits = fits && !__builtin_mul_overflow(count, (uint64_t)lt_st_type_bytes(tensor->type), out);
    if (!fits || count != tensor->count || strcmp(tensor->name, "__metadata__") == 0) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "%s: cannot write the tensor \"%s\": its name, shape and count do not make a tensor",
                       path, tensor->name);
    }
    return LATENT_OK;
}

static void put_metadata(lt_json_writer *w, const lt_st_pair *metadata, int count) {
    if (count == 0) {
        return;
    }
    lt_json_key(w, "__metadata__");
    lt_json_begin_object(w);
    for (int i = 0; i < count; i++) {
        lt_json_key(w, metadata[i].key);
        lt_json_string(w, metadata[i].value);
    }
    lt_json_end_object(w);
}

static void put_tensor(lt_json_writer *w, const lt_st_tensor *tensor, uint64_t begin, uint64_t end) {
    lt_json_key(w, tensor->name);
    lt_json_begin_object(w);
    lt_json_key(w, "dtype");
    lt_json_string(w, lt_st_type_name(tensor->type));
    lt_json_key(w, "shape");
    lt_json_begin_array(w);
    for (int i = 0; i < tensor->dims; i++) {
        lt_json_unsigned(w, tensor->shape[i]);
    }
    lt_json_end_array(w);
    lt_json_key(w, "data_offsets");
    lt_json_begin_array(w);
    lt_json_unsigned(w, begin);
    lt_json_unsigned(w, end);
    lt_json_end_array(w);
    lt_json_end_object(w);
}

/* The JSON text of the header in w->text; to be freed whatever the status. */
static latent_status make_header(latent_context *ctx, const char *path, const lt_st_tensor *tensors,
                                 int count, const lt_st_pair *metadata, int metadata_count,
                                 lt_json_writer *w) {
    latent_status status = LATENT_OK;
    lt_json *check = NULL;
    uint64_t at = 0;
    lt_json_begin_object(w);
    put_metadata(w, metadata, metadata_count);
    for (int i = 0; i < count; i++) {
        uint64_t bytes = 0, end = 0;
        LT_TRY(tensor_bytes(ctx, path, &tensors[i], &bytes));
        if (__builtin_add_overflow(at, bytes, &end)) {
            status =
                lt_fail(ctx, LATENT_ERROR_ARGUMENT, "%s: cannot write: the tensors do not fit a file", path);
            goto done;
        }
        put_tensor(w, &tensors[i], at, end);
        at = end;
    }
    lt_json_end_object(w);
    LT_TRY(lt_json_finish(ctx, w));
    if (w->length > HEADER_MAX - 8) {
        status = lt_fail(ctx, LATENT_ERROR_ARGUMENT, "%s: cannot write: the header would pass 100 MB", path);
        goto done;
    }
    LT_TRY(lt_json_parse(ctx, w->text, w->length, path, &check));
done:
    lt_json_destroy(check);
    return status;
}

latent_status lt_st_write(latent_context *ctx, const char *path, const lt_st_tensor *tensors, int count,
                          const lt_st_pair *metadata, int metadata_count) {
    latent_status status = LATENT_OK;
    lt_json_writer header = {0};
    lt_writer *file = NULL;
    LT_TRY(make_header(ctx, path, tensors, count, metadata, metadata_count, &header));
    size_t padding = (8 - header.length % 8) % 8;
    uint64_t length = header.length + padding;
    LT_TRY(lt_writer_open(ctx, path, &file));
    LT_TRY(lt_writer_put(ctx, file, &length, sizeof length));
    LT_TRY(lt_writer_put(ctx, file, header.text, header.length));
    LT_TRY(lt_writer_put(ctx, file, "        ", padding));
    for (int i = 0; i < count; i++) {
        uint64_t bytes = tensors[i].count * lt_st_type_bytes(tensors[i].type);
        LT_TRY(lt_writer_put(ctx, file, tensors[i].data, (size_t)bytes));
    }
    lt_writer *complete = file;
    file = NULL; /* commit frees it either way */
    LT_TRY(lt_writer_commit(ctx, complete));
done:
    lt_writer_abort(file);
    free(header.text);
    return status;
}
