/* safetensors.c: reading.
 *
 * The header is parsed as JSON and stays alive: names and metadata point into it. Every tensor is then
 * checked by itself (type, shape, size of its byte range), and all together: sorted by their place, the
 * ranges must tile the data exactly. So a byte belongs to one tensor, and no byte is hidden.
 */
#include "io/safetensors.h"

#include "base/file.h"
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensors are used as they lie in the file: this wants a little-endian machine"
#endif

/* The format's own limit for the header; ours for what is read into memory before a look at the header. */
#define HEADER_MAX ((uint64_t)100000000)
#define UNSEEN_MAX ((size_t)1 << 32)

struct lt_safetensors {
    char *bytes; /* the file, when this object read it */
    lt_json *header;
    const lt_json_node *metadata; /* or NULL */
    lt_st_tensor *tensors;        /* in the order of the data */
    const lt_st_tensor **by_name; /* sorted */
    int count;
};

typedef struct range {
    uint64_t begin, end;
    lt_st_tensor tensor;
} range;

static const struct {
    const char *name;
    unsigned bytes;
} types[] = {
    [LT_ST_F32] = {"F32", 4}, [LT_ST_F64] = {"F64", 8}, [LT_ST_F16] = {"F16", 2}, [LT_ST_BF16] = {"BF16", 2},
    [LT_ST_I64] = {"I64", 8}, [LT_ST_I32] = {"I32", 4}, [LT_ST_U8] = {"U8", 1}};

const char *lt_st_type_name(lt_st_type type) {
    return types[type].name;
}

unsigned lt_st_type_bytes(lt_st_type type) {
    return types[type].bytes;
}

static latent_status bad_tensor(latent_context *ctx, const char *origin, const char *name, const char *what) {
    char excerpt[LT_EXCERPT_MAX];
    return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: tensor \"%s\": %s", origin, lt_excerpt(name, excerpt),
                   what);
}

static latent_status parse_type(latent_context *ctx, const char *origin, const lt_json_node *node,
                                lt_st_type *out) {
    char name[LT_EXCERPT_MAX], found[LT_EXCERPT_MAX];
    const lt_json_node *type = lt_json_get(node, "dtype");
    if (!type || type->kind != LT_JSON_STRING) {
        return bad_tensor(ctx, origin, node->key, "\"dtype\" is missing or no string");
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(type->string, types[i].name) == 0) {
            *out = (lt_st_type)i;
            return LATENT_OK;
        }
    }
    return lt_fail(ctx, LATENT_ERROR_FORMAT,
                   "%s: tensor \"%s\": unknown dtype \"%s\"; known are F32, F64, F16, BF16, I64, I32 and U8",
                   origin, lt_excerpt(node->key, name), lt_excerpt(type->string, found));
}

/* Also computes the number of elements; *bytes is their size. */
static latent_status parse_shape(latent_context *ctx, const char *origin, const lt_json_node *node,
                                 lt_st_tensor *tensor, uint64_t *bytes) {
    const lt_json_node *shape = lt_json_get(node, "shape");
    if (!shape || shape->kind != LT_JSON_ARRAY) {
        return bad_tensor(ctx, origin, node->key, "\"shape\" is missing or no array");
    }
    if (shape->children > LT_ST_DIMS_MAX) {
        return bad_tensor(ctx, origin, node->key, "\"shape\" has more than 8 dimensions");
    }
    tensor->count = 1;
    for (const lt_json_node *dim = shape->child; dim; dim = dim->next) {
        uint64_t size = 0;
        if (!lt_json_u64(dim, &size)) {
            return bad_tensor(ctx, origin, node->key, "\"shape\" must hold whole numbers from 0");
        }
        tensor->shape[tensor->dims++] = size;
        if (__builtin_mul_overflow(tensor->count, size, &tensor->count)) {
            return bad_tensor(ctx, origin, node->key, "the product of \"shape\" does not fit 64 bits");
        }
    }
    if (__builtin_mul_overflow(tensor->count, (uint64_t)types[tensor->type].bytes, bytes)) {
        return bad_tensor(ctx, origin, node->key, "its size in bytes does not fit 64 bits");
    }
    return LATENT_OK;
}

static latent_status parse_offsets(latent_context *ctx, const char *origin, const lt_json_node *node,
                                   uint64_t bytes, uint64_t data_bytes, range *out) {
    char excerpt[LT_EXCERPT_MAX];
    const lt_json_node *offsets = lt_json_get(node, "data_offsets");
    if (!offsets || offsets->kind != LT_JSON_ARRAY || offsets->children != 2 ||
        !lt_json_u64(offsets->child, &out->begin) || !lt_json_u64(offsets->child->next, &out->end)) {
        return bad_tensor(ctx, origin, node->key,
                          "\"data_offsets\" must be an array of two whole numbers from 0");
    }
    if (out->begin > out->end || out->end > data_bytes) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: tensor \"%s\": bytes %llu to %llu are not within the %llu bytes of data", origin,
                       lt_excerpt(node->key, excerpt), (unsigned long long)out->begin,
                       (unsigned long long)out->end, (unsigned long long)data_bytes);
    }
    if (out->end - out->begin != bytes) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: tensor \"%s\": has %llu bytes of data, but its dtype and shape want %llu", origin,
                       lt_excerpt(node->key, excerpt), (unsigned long long)(out->end - out->begin),
                       (unsigned long long)bytes);
    }
    return LATENT_OK;
}

static latent_status parse_tensor(latent_context *ctx, const char *origin, const lt_json_node *node,
                                  const unsigned char *data, uint64_t data_bytes, range *out) {
    latent_status status = LATENT_OK;
    uint64_t bytes = 0;
    *out = (range){.tensor = {.name = node->key}};
    if (node->kind != LT_JSON_OBJECT) {
        return bad_tensor(ctx, origin, node->key, "its entry in the header must be an object");
    }
    LT_TRY(parse_type(ctx, origin, node, &out->tensor.type));
    LT_TRY(parse_shape(ctx, origin, node, &out->tensor, &bytes));
    LT_TRY(parse_offsets(ctx, origin, node, bytes, data_bytes, out));
    out->tensor.data = data + out->begin;
done:
    return status;
}

static latent_status check_metadata(latent_context *ctx, const char *origin, const lt_json_node *metadata) {
    char excerpt[LT_EXCERPT_MAX];
    if (metadata->kind != LT_JSON_OBJECT) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: \"__metadata__\" must be an object of strings", origin);
    }
    for (const lt_json_node *node = metadata->child; node; node = node->next) {
        if (node->kind != LT_JSON_STRING) {
            return lt_fail(ctx, LATENT_ERROR_FORMAT,
                           "%s: \"__metadata__\": the value of \"%s\" must be a string", origin,
                           lt_excerpt(node->key, excerpt));
        }
    }
    return LATENT_OK;
}

/* Empty tensors share their place with the tensor that begins there; they come first. */
static int by_place(const void *a, const void *b) {
    const range *x = a, *y = b;
    if (x->begin != y->begin) {
        return x->begin < y->begin ? -1 : 1;
    }
    return (x->end > y->end) - (x->end < y->end);
}

static latent_status check_tiling(latent_context *ctx, const char *origin, const range *ranges, int count,
                                  uint64_t data_bytes) {
    char excerpt[LT_EXCERPT_MAX];
    uint64_t at = 0;
    for (int i = 0; i < count; i++) {
        if (ranges[i].begin != at) {
            return lt_fail(
                ctx, LATENT_ERROR_FORMAT,
                "%s: tensor \"%s\": begins at byte %llu of the data and %s byte %llu, where the tensor "
                "before it ends",
                origin, lt_excerpt(ranges[i].tensor.name, excerpt), (unsigned long long)ranges[i].begin,
                ranges[i].begin < at ? "overlaps the bytes up to" : "leaves a gap from",
                (unsigned long long)at);
        }
        at = ranges[i].end;
    }
    if (at != data_bytes) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: the tensors end at byte %llu of the data, but the file has %llu bytes of data",
                       origin, (unsigned long long)at, (unsigned long long)data_bytes);
    }
    return LATENT_OK;
}

static int by_name(const void *a, const void *b) {
    const lt_st_tensor *x = *(const lt_st_tensor *const *)a, *y = *(const lt_st_tensor *const *)b;
    return strcmp(x->name, y->name);
}

static latent_status index_tensors(latent_context *ctx, lt_safetensors *st, const range *ranges) {
    latent_status status = LATENT_OK;
    size_t count = (size_t)st->count;
    LT_TRY(lt_calloc(ctx, count, sizeof *st->tensors, "tensors", (void **)&st->tensors));
    LT_TRY(lt_calloc(ctx, count, sizeof *st->by_name, "tensor names", (void **)&st->by_name));
    for (size_t i = 0; i < count; i++) {
        st->tensors[i] = ranges[i].tensor;
        st->by_name[i] = &st->tensors[i];
    }
    qsort(st->by_name, count, sizeof *st->by_name, by_name);
done:
    return status;
}

/* Checks the frame of the file and parses its header. */
static latent_status parse_header(latent_context *ctx, const unsigned char *bytes, size_t size,
                                  const char *origin, lt_json **out, uint64_t *header_bytes) {
    if (size < 8) {
        return lt_fail(
            ctx, LATENT_ERROR_FORMAT,
            "%s: %zu bytes are too few for a safetensors file: it begins with 8 bytes that give the "
            "length of its header",
            origin, size);
    }
    memcpy(header_bytes, bytes, 8);
    if (*header_bytes > HEADER_MAX) {
        return lt_fail(
            ctx, LATENT_ERROR_FORMAT,
            "%s: the header would have %llu bytes, more than the %llu a safetensors file may have; it "
            "is probably another kind of file",
            origin, (unsigned long long)*header_bytes, (unsigned long long)HEADER_MAX);
    }
    if (*header_bytes > size - 8) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: the file ends at byte %zu, within its header of %llu bytes: it is cut short",
                       origin, size, (unsigned long long)*header_bytes);
    }
    /* Messages count bytes within the header, so they say "FILE: header: byte 12". */
    latent_status status = LATENT_OK;
    char *label = NULL;
    size_t label_size = strlen(origin) + sizeof ": header";
    LT_TRY(lt_alloc(ctx, label_size, "a name", (void **)&label));
    snprintf(label, label_size, "%s: header", origin);
    LT_TRY(lt_json_parse(ctx, (const char *)bytes + 8, (size_t)*header_bytes, label, out));
    if (lt_json_root(*out)->kind != LT_JSON_OBJECT) {
        status = lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: must be a JSON object", label);
    }
done:
    free(label);
    return status;
}

latent_status lt_st_parse(latent_context *ctx, const void *bytes, size_t size, const char *origin,
                          lt_safetensors **out) {
    latent_status status = LATENT_OK;
    lt_safetensors *st = NULL;
    range *ranges = NULL;
    uint64_t header_bytes = 0;
    *out = NULL;
    LT_TRY(lt_calloc(ctx, 1, sizeof *st, "a safetensors file", (void **)&st));
    LT_TRY(parse_header(ctx, bytes, size, origin, &st->header, &header_bytes));
    const unsigned char *data = (const unsigned char *)bytes + 8 + header_bytes;
    uint64_t data_bytes = size - 8 - header_bytes;
    const lt_json_node *root = lt_json_root(st->header);
    LT_TRY(lt_calloc(ctx, (size_t)root->children, sizeof *ranges, "tensors", (void **)&ranges));
    for (const lt_json_node *node = root->child; node; node = node->next) {
        if (strcmp(node->key, "__metadata__") == 0) {
            LT_TRY(check_metadata(ctx, origin, node));
            st->metadata = node;
        } else {
            LT_TRY(parse_tensor(ctx, origin, node, data, data_bytes, &ranges[st->count]));
            st->count++;
        }
    }
    qsort(ranges, (size_t)st->count, sizeof *ranges, by_place);
    LT_TRY(check_tiling(ctx, origin, ranges, st->count, data_bytes));
    LT_TRY(index_tensors(ctx, st, ranges));
    *out = st;
    st = NULL;
done:
    free(ranges);
    lt_st_destroy(st);
    return status;
}

/* How much may be read: a large file must first have a header that accounts for every byte of it. */
static latent_status reading_limit(latent_context *ctx, const char *path, size_t *limit) {
    latent_status status = LATENT_OK;
    struct stat info;
    unsigned char *head = NULL;
    uint64_t header_bytes = 0;
    lt_safetensors *st = NULL;
    FILE *file = NULL;
    *limit = UNSEEN_MAX;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) || (uint64_t)info.st_size <= UNSEEN_MAX ||
        !(file = fopen(path, "rbe"))) {
        goto done; /* the reader will tell what is wrong */
    }
    if (fread(&header_bytes, 1, 8, file) != 8 || header_bytes > HEADER_MAX) {
        header_bytes = 0; /* and the parser what is wrong with the first bytes */
    }
    rewind(file);
    LT_TRY(lt_calloc(ctx, 1, 8 + (size_t)header_bytes, "a header", (void **)&head));
    if (fread(head, 1, 8 + (size_t)header_bytes, file) != 8 + header_bytes) {
        status = lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot read its header: %m", path);
        goto done;
    }
    LT_TRY(lt_st_parse(ctx, head, (size_t)info.st_size, path, &st)); /* it looks at the header alone */
    *limit = (size_t)info.st_size;
done:
    if (file) {
        fclose(file);
    }
    lt_st_destroy(st);
    free(head);
    return status;
}

latent_status lt_st_read(latent_context *ctx, const char *path, lt_safetensors **out) {
    latent_status status = LATENT_OK;
    char *bytes = NULL;
    size_t size = 0, limit = 0;
    *out = NULL;
    LT_TRY(reading_limit(ctx, path, &limit));
    LT_TRY(lt_file_read(ctx, path, limit, &bytes, &size));
    LT_TRY(lt_st_parse(ctx, bytes, size, path, out));
    (*out)->bytes = bytes;
    bytes = NULL;
done:
    free(bytes);
    return status;
}

void lt_st_destroy(lt_safetensors *st) {
    if (st) {
        lt_json_destroy(st->header);
        free(st->bytes);
        free(st->tensors);
        free(st->by_name);
        free(st);
    }
}

int lt_st_count(const lt_safetensors *st) {
    return st->count;
}

const lt_st_tensor *lt_st_at(const lt_safetensors *st, int index) {
    return &st->tensors[index];
}

const lt_st_tensor *lt_st_find(const lt_safetensors *st, const char *name) {
    lt_st_tensor wanted = {.name = name};
    const lt_st_tensor *key = &wanted;
    const lt_st_tensor **found = bsearch(&key, st->by_name, (size_t)st->count, sizeof *st->by_name, by_name);
    return found ? *found : NULL;
}

const char *lt_st_metadata(const lt_safetensors *st, const char *key) {
    const lt_json_node *node = lt_json_get(st->metadata, key);
    return node ? node->string : NULL;
}
