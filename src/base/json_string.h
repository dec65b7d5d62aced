/* json_string.h: the inside of JSON strings, shared by the reader and the writer. */
#ifndef LT_BASE_JSON_STRING_H
#define LT_BASE_JSON_STRING_H

#include <stddef.h>

typedef struct lt_json_cursor {
    const char *text;
    size_t length, at; /* the text and the place in it */
    char *out;         /* room for as many bytes as the string has in the text */
    size_t used;       /* bytes written to out */
} lt_json_cursor;

/* Unescapes the string whose opening quote is at `at`, with a final 0. Returns NULL and leaves `at` after
 * the closing quote, or returns what is wrong at `at`. */
const char *lt_json_unescape(lt_json_cursor *cursor);

/* Bytes of the valid UTF-8 character at `at`, of which `left` bytes may be read; 0 when there is none. */
int lt_utf8_length(const char *at, size_t left);

#endif
