/* npy_header.c: the header of an .npy file.
 *
 * It is a Python dict literal. Only the subset that NumPy writes is accepted: the three keys once each in
 * any order, strings in single or double quotes without escapes, True or False, a tuple of one or two
 * whole numbers. Nothing in it is believed before it agrees with the size of the file.
 */
#include "io/npy.h"

#include <string.h>

enum { PREFIX = 8, WORD_MAX = 32 };

static const char magic[] = "\x93NUMPY";

static const struct {
    const char *descr, *name;
    unsigned bytes;
} types[] = {
    [LT_NPY_F32] = {"<f4", "float32", 4}, [LT_NPY_F64] = {"<f8", "float64", 8},
    [LT_NPY_I32] = {"<i4", "int32", 4},   [LT_NPY_I64] = {"<i8", "int64", 8},
    [LT_NPY_U8] = {"|u1", "uint8", 1},
};

enum { TYPES = sizeof types / sizeof types[0] };

const char *lt_npy_type_name(lt_npy_type type) {
    return types[type].name;
}

unsigned lt_npy_type_bytes(lt_npy_type type) {
    return types[type].bytes;
}

int lt_npy_is(const void *bytes, size_t have) {
    return have >= 6 && memcmp(bytes, magic, 6) == 0;
}

typedef struct cursor {
    latent_context *ctx;
    const char *origin;
    const char *at, *end;
    const char *start; /* of the file */
} cursor;

static latent_status wrong(const cursor *c, const char *expected) {
    return lt_fail(c->ctx, LATENT_ERROR_FORMAT, "%s: byte %zu of the .npy header: %s is expected here",
                   c->origin, (size_t)(c->at - c->start), expected);
}

static void skip_blanks(cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r')) {
        c->at++;
    }
}

/* Takes the character when it comes next. */
static int take(cursor *c, char wanted) {
    skip_blanks(c);
    if (c->at < c->end && *c->at == wanted) {
        c->at++;
        return 1;
    }
    return 0;
}

static latent_status take_string(cursor *c, char word[WORD_MAX]) {
    skip_blanks(c);
    char quote = c->at < c->end ? *c->at : 0;
    size_t length = 0;
    if (quote != '\'' && quote != '"') {
        return wrong(c, "a string in quotes");
    }
    for (c->at++; c->at < c->end && *c->at != quote; c->at++) {
        if (length + 1 >= WORD_MAX || *c->at < ' ' || *c->at > '~' || *c->at == '\\') {
            return wrong(c, "a short plain word");
        }
        word[length++] = *c->at;
    }
    word[length] = 0;
    return take(c, quote) ? LATENT_OK : wrong(c, "the end of a string");
}

static latent_status take_number(cursor *c, uint64_t *out) {
    skip_blanks(c);
    *out = 0;
    if (c->at >= c->end || *c->at < '0' || *c->at > '9') {
        return wrong(c, "a whole number");
    }
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        if (__builtin_mul_overflow(*out, (uint64_t)10, out) ||
            __builtin_add_overflow(*out, (uint64_t)(*c->at - '0'), out)) {
            return wrong(c, "a number below 2^64");
        }
    }
    return LATENT_OK;
}

static latent_status take_descr(cursor *c, lt_npy_info *info) {
    char word[WORD_MAX];
    latent_status status = take_string(c, word);
    if (status != LATENT_OK) {
        return status;
    }
    for (int i = 0; i < (int)TYPES; i++) {
        /* A single byte has no byte order. */
        if (strcmp(word, types[i].descr) == 0 ||
            (i == LT_NPY_U8 && strcmp(word + (word[0] != 0), "u1") == 0)) {
            info->type = (lt_npy_type)i;
            return LATENT_OK;
        }
    }
    return lt_fail(c->ctx, LATENT_ERROR_FORMAT,
                   "%s: the array's type is '%s'; little-endian float32, float64, int32, int64 and uint8 can "
                   "be read ('<f4', '<f8', '<i4', '<i8', '|u1')",
                   c->origin, word);
}

static latent_status take_order(cursor *c) {
    skip_blanks(c);
    size_t left = (size_t)(c->end - c->at);
    if (left >= 5 && memcmp(c->at, "False", 5) == 0) {
        c->at += 5;
        return LATENT_OK;
    }
    if (left >= 4 && memcmp(c->at, "True", 4) == 0) {
        return lt_fail(c->ctx, LATENT_ERROR_FORMAT,
                       "%s: the array is in Fortran order; save it with numpy.ascontiguousarray()",
                       c->origin);
    }
    return wrong(c, "True or False");
}

static latent_status take_shape(cursor *c, lt_npy_info *info) {
    if (!take(c, '(')) {
        return wrong(c, "a shape in parentheses");
    }
    info->dims = 0;
    info->shape[1] = 1;
    while (!take(c, ')')) {
        uint64_t size = 0;
        latent_status status = take_number(c, &size);
        if (status != LATENT_OK) {
            return status;
        }
        if (info->dims < 2) {
            info->shape[info->dims] = size;
        }
        info->dims += info->dims < 3;
        if (!take(c, ',') && !(c->at < c->end && *c->at == ')')) {
            return wrong(c, "a comma or the end of the shape");
        }
    }
    if (info->dims < 1 || info->dims > 2) {
        return lt_fail(c->ctx, LATENT_ERROR_FORMAT, "%s: the array has %s; one with 1 or 2 is needed",
                       c->origin, info->dims == 0 ? "no dimensions" : "more than 2 dimensions");
    }
    return LATENT_OK;
}

enum { DESCR = 1, ORDER = 2, SHAPE = 4, ALL = 7 };

static latent_status take_entry(cursor *c, unsigned *seen, lt_npy_info *info) {
    char word[WORD_MAX];
    latent_status status = take_string(c, word);
    if (status != LATENT_OK) {
        return status;
    }
    unsigned key = strcmp(word, "descr") == 0           ? DESCR
                   : strcmp(word, "fortran_order") == 0 ? ORDER
                   : strcmp(word, "shape") == 0         ? SHAPE
                                                        : 0;
    if (!key || (*seen & key)) {
        return lt_fail(c->ctx, LATENT_ERROR_FORMAT,
                       "%s: the .npy header %s the key '%s'; it has descr, fortran_order and shape once each",
                       c->origin, key ? "repeats" : "has", word);
    }
    *seen |= key;
    if (!take(c, ':')) {
        return wrong(c, "a colon");
    }
    return key == DESCR ? take_descr(c, info) : key == ORDER ? take_order(c) : take_shape(c, info);
}

static latent_status take_dict(cursor *c, lt_npy_info *info) {
    unsigned seen = 0;
    if (!take(c, '{')) {
        return wrong(c, "{");
    }
    while (!take(c, '}')) {
        latent_status status = take_entry(c, &seen, info);
        if (status != LATENT_OK) {
            return status;
        }
        if (!take(c, ',') && !(c->at < c->end && *c->at == '}')) {
            return wrong(c, "a comma or }");
        }
    }
    if (seen != ALL) {
        return lt_fail(c->ctx, LATENT_ERROR_FORMAT, "%s: the .npy header lacks the key '%s'", c->origin,
                       !(seen & DESCR)   ? "descr"
                       : !(seen & ORDER) ? "fortran_order"
                                         : "shape");
    }
    skip_blanks(c);
    return c->at == c->end ? LATENT_OK : wrong(c, "the end of the header");
}

/* Where the header begins and how long it is, from the first bytes. */
static latent_status frame(latent_context *ctx, const unsigned char *b, size_t have, const char *origin,
                           size_t *begin, size_t *length) {
    if (!lt_npy_is(b, have) || have < PREFIX + 2) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: not an .npy file, or cut short: one begins with \\x93NUMPY, a version and the "
                       "length of its header",
                       origin);
    }
    int version = b[6];
    if (version != 1 && version != 2) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: byte 6: .npy version %d.%d; versions 1 and 2 can be read", origin, version, b[7]);
    }
    *begin = version == 1 ? PREFIX + 2 : PREFIX + 4;
    if (have < *begin) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: cut short in the .npy header", origin);
    }
    *length = (size_t)b[8] | (size_t)b[9] << 8;
    if (version == 2) {
        *length |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    }
    if (*length > LT_NPY_HEADER_MAX) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: byte 8: the .npy header claims %zu bytes; at most %d are read", origin, *length,
                       LT_NPY_HEADER_MAX);
    }
    if (have - *begin < *length) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: cut short: the .npy header claims %zu bytes and only %zu follow", origin, *length,
                       have - *begin);
    }
    return LATENT_OK;
}

latent_status lt_npy_parse(latent_context *ctx, const void *bytes, size_t have, uint64_t size,
                           const char *origin, lt_npy_info *out) {
    latent_status status = LATENT_OK;
    size_t begin = 0, length = 0;
    uint64_t wanted = 0;
    memset(out, 0, sizeof *out);
    LT_TRY(frame(ctx, bytes, have, origin, &begin, &length));
    cursor c = {ctx, origin, (const char *)bytes + begin, (const char *)bytes + begin + length, bytes};
    LT_TRY(take_dict(&c, out));
    out->offset = begin + length;
    int fits = !__builtin_mul_overflow(out->shape[0], out->shape[1], &out->count) &&
               !__builtin_mul_overflow(out->count, (uint64_t)types[out->type].bytes, &wanted) &&
               !__builtin_add_overflow(wanted, out->offset, &wanted);
    if (!fits || wanted != size) {
        status = lt_fail(ctx, LATENT_ERROR_FORMAT,
                         "%s: the shape (%llu, %llu) of %s does not fit a file of %llu bytes, which is %s",
                         origin, (unsigned long long)out->shape[0], (unsigned long long)out->shape[1],
                         types[out->type].name, (unsigned long long)size,
                         !fits || wanted > size ? "cut short" : "too long");
    }
done:
    return status;
}
