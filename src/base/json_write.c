/* json_write.c: JSON text, piece by piece, into a growing string.
 *
 * Whatever strings are given, the text is valid JSON: bytes that are not UTF-8 (a file name may hold
 * such) become U+FFFD. Running out of memory is remembered and reported once, by lt_json_finish().
 */
#include "base/json.h"

#include "base/json_string.h"

#include <assert.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(lt_json_writer *w, const char *text, size_t bytes) {
    if (w->failed) {
        return;
    }
    if (w->capacity - w->length <= bytes) {
        size_t larger = (w->length + bytes) * 2 + 64;
        char *grown = larger > bytes ? realloc(w->text, larger) : NULL;
        if (!grown) {
            w->failed = 1;
            return;
        }
        w->text = grown;
        w->capacity = larger;
    }
    memcpy(w->text + w->length, text, bytes);
    w->length += bytes;
    w->text[w->length] = 0;
}

/* Before every value and key: the comma, unless a key has just been written or this is the first. */
static void separate(lt_json_writer *w) {
    if (w->after_key) {
        w->after_key = 0;
        return;
    }
    if (w->comma[w->depth]) {
        put(w, ",", 1);
    }
    w->comma[w->depth] = 1;
}

static void put_value(lt_json_writer *w, const char *text) {
    separate(w);
    put(w, text, strlen(text));
}

static void begin(lt_json_writer *w, const char *bracket) {
    put_value(w, bracket);
    w->depth++;
    assert(w->depth <= LT_JSON_DEPTH_MAX);
    w->comma[w->depth] = 0;
}

static void end(lt_json_writer *w, const char *bracket) {
    assert(w->depth > 0 && !w->after_key);
    w->depth--;
    put(w, bracket, 1);
}

void lt_json_begin_object(lt_json_writer *w) {
    begin(w, "{");
}
void lt_json_end_object(lt_json_writer *w) {
    end(w, "}");
}
void lt_json_begin_array(lt_json_writer *w) {
    begin(w, "[");
}
void lt_json_end_array(lt_json_writer *w) {
    end(w, "]");
}

static void put_quoted(lt_json_writer *w, const char *text) {
    size_t left = strlen(text);
    put(w, "\"", 1);
    while (left > 0) {
        unsigned char c = (unsigned char)*text;
        int n = lt_utf8_length(text, left);
        if (n == 0) {
            put(w, "\xEF\xBF\xBD", 3);
            n = 1;
        } else if (c == '"' || c == '\\') {
            char escaped[2] = {'\\', (char)c};
            put(w, escaped, 2);
        } else if (c == '\n') {
            put(w, "\\n", 2);
        } else if (c < 0x20 || c == 0x7F) {
            char escaped[8];
            snprintf(escaped, sizeof escaped, "\\u%04x", c);
            put(w, escaped, 6);
        } else {
            put(w, text, (size_t)n);
        }
        text += n;
        left -= (size_t)n;
    }
    put(w, "\"", 1);
}

void lt_json_key(lt_json_writer *w, const char *key) {
    assert(w->depth > 0 && !w->after_key);
    separate(w);
    put_quoted(w, key);
    put(w, ":", 1);
    w->after_key = 1;
}

void lt_json_string(lt_json_writer *w, const char *value) {
    if (!value) {
        put_value(w, "null");
        return;
    }
    separate(w);
    put_quoted(w, value);
}

void lt_json_number(lt_json_writer *w, double value) {
    char text[40];
    if (!isfinite(value)) {
        put_value(w, "null");
        return;
    }
    /* printf() and strtod() must use '.', whatever locale the program has set. */
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = uselocale(plain);
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    uselocale(before);
    if (plain) {
        freelocale(plain);
    }
    put_value(w, text);
}

void lt_json_integer(lt_json_writer *w, int64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    put_value(w, text);
}

void lt_json_unsigned(lt_json_writer *w, uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    put_value(w, text);
}

void lt_json_bool(lt_json_writer *w, int value) {
    put_value(w, value ? "true" : "false");
}

latent_status lt_json_finish(latent_context *ctx, lt_json_writer *w) {
    assert(w->depth == 0 && !w->after_key);
    if (w->failed) {
        return lt_fail(ctx, LATENT_ERROR_MEMORY, "no memory for a JSON text of more than %zu bytes",
                       w->length);
    }
    return LATENT_OK;
}
