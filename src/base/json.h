/* json.h: a small JSON reader and writer.
 *
 * The reader builds a tree of nodes in one array and treats its text as hostile: depth, size and number
 * syntax are checked, and an error names the byte. The writer appends to a growing string; it puts the
 * commas itself.
 */
#ifndef LT_BASE_JSON_H
#define LT_BASE_JSON_H

#include "base/status.h"

enum { LT_JSON_DEPTH_MAX = 64 }; /* of nested arrays and objects, read or written */

typedef enum lt_json_kind {
    LT_JSON_NULL,
    LT_JSON_FALSE,
    LT_JSON_TRUE,
    LT_JSON_NUMBER,
    LT_JSON_STRING,
    LT_JSON_ARRAY,
    LT_JSON_OBJECT
} lt_json_kind;

typedef struct lt_json lt_json; /* a document */

typedef struct lt_json_node {
    lt_json_kind kind;
    const char *key;    /* within an object; else NULL. Unescaped, 0-terminated */
    const char *string; /* LT_JSON_STRING: unescaped, 0-terminated; holds no 0 byte inside */
    double number;
    const char *number_text; /* LT_JSON_NUMBER: as written, 0-terminated, for exact integers */
    const struct lt_json_node *child, *next; /* first child; next sibling */
    int children;
} lt_json_node;

/* `origin` names the text in messages. Duplicate keys in an object are an error. */
latent_status lt_json_parse(latent_context *ctx, const char *text, size_t length, const char *origin,
                            lt_json **out);
void lt_json_destroy(lt_json *json);
const lt_json_node *lt_json_root(const lt_json *json);
/* NULL when the key is absent or the node is no object. */
const lt_json_node *lt_json_get(const lt_json_node *object, const char *key);
/* 1 when the node is a whole number in [0, 2^64), written without fraction or exponent. */
int lt_json_u64(const lt_json_node *node, uint64_t *out);

typedef struct lt_json_writer { /* zero it first; free(text) last */
    char *text;
    size_t length, capacity;
    int failed; /* out of memory at some point: lt_json_finish reports it */
    int depth;
    int comma[LT_JSON_DEPTH_MAX + 1]; /* a value was written at this depth */
    int after_key;
} lt_json_writer;

void lt_json_begin_object(lt_json_writer *w);
void lt_json_end_object(lt_json_writer *w);
void lt_json_begin_array(lt_json_writer *w);
void lt_json_end_array(lt_json_writer *w);
void lt_json_key(lt_json_writer *w, const char *key);
void lt_json_string(lt_json_writer *w, const char *value);
/* The shortest form that reads back the same; null when not finite. */
void lt_json_number(lt_json_writer *w, double value);
void lt_json_integer(lt_json_writer *w, int64_t value);
void lt_json_unsigned(lt_json_writer *w, uint64_t value);
void lt_json_bool(lt_json_writer *w, int value);
latent_status lt_json_finish(latent_context *ctx, lt_json_writer *w); /* LATENT_OK, or out of memory */

enum { LT_EXCERPT_MAX = 80 };
/* A name out of a file, fit for a message: control characters as '?', a long one cut with "...". */
const char *lt_excerpt(const char *text, char out[LT_EXCERPT_MAX]);

#endif
