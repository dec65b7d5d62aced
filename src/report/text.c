/* text.c: a text that grows; escaping, base64 and numbers. */
#include "report/text.h"

#include "base/json_string.h"
#include "io/png.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for `more` bytes and a final 0. */
static int reserve(lt_text *t, size_t more) {
    if (t->failed) {
        return 0;
    }
    if (more >= t->capacity - t->length) {
        size_t wanted = t->capacity ? 2 * t->capacity : 1 << 16;
        while (wanted - t->length <= more) {
            wanted *= 2;
        }
        char *grown = realloc(t->s, wanted);
        if (!grown) {
            t->failed = 1;
            return 0;
        }
        t->s = grown;
        t->capacity = wanted;
    }
    return 1;
}

void lt_put_bytes(lt_text *t, const char *bytes, size_t count) {
    if (reserve(t, count)) {
        memcpy(t->s + t->length, bytes, count);
        t->length += count;
        t->s[t->length] = 0;
    }
}

void lt_put(lt_text *t, const char *markup) {
    lt_put_bytes(t, markup, strlen(markup));
}

void lt_putf(lt_text *t, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    if (length >= 0 && reserve(t, (size_t)length + 1)) {
        vsnprintf(t->s + t->length, (size_t)length + 1, format, again);
        t->length += (size_t)length;
    }
    va_end(again);
    va_end(arguments);
}

void lt_escape(lt_text *t, const char *text) {
    size_t left = strlen(text);
    while (left > 0) {
        int length = lt_utf8_length(text, left);
        unsigned char c = (unsigned char)*text;
        const char *as = c == '&'                                                           ? "&amp;"
                         : c == '<'                                                         ? "&lt;"
                         : c == '>'                                                         ? "&gt;"
                         : c == '"'                                                         ? "&quot;"
                         : c == '\''                                                        ? "&#39;"
                         : length == 0 || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7F ? "\xEF\xBF\xBD"
                                                                                            : NULL;
        length = length > 0 ? length : 1;
        if (as) {
            lt_put(t, as);
        } else {
            lt_put_bytes(t, text, (size_t)length);
        }
        text += length;
        left -= (size_t)length;
    }
}

/* Three bytes become four letters; what is missing at the end is marked with '='. */
void lt_base64(lt_text *t, const void *bytes, size_t count) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; i += 3) {
        size_t left = count - i;
        uint32_t group = (uint32_t)at[i] << 16;
        group |= left > 1 ? (uint32_t)at[i + 1] << 8 : 0;
        group |= left > 2 ? at[i + 2] : 0;
        char four[4] = {letters[group >> 18], letters[group >> 12 & 63],
                        left > 1 ? letters[group >> 6 & 63] : '=', left > 2 ? letters[group & 63] : '='};
        lt_put_bytes(t, four, 4);
    }
}

latent_status lt_put_image(latent_context *ctx, lt_text *t, const uint8_t *rgb, int width, int height,
                           const char *alt) {
    uint8_t *png = NULL;
    size_t bytes = 0;
    latent_status status = lt_png_encode(ctx, rgb, width, height, &png, &bytes);
    if (status == LATENT_OK) {
        lt_putf(t, "<img width=\"%d\" height=\"%d\" alt=\"", width, height);
        lt_escape(t, alt);
        lt_put(t, "\" src=\"data:image/png;base64,");
        lt_base64(t, png, bytes);
        lt_put(t, "\"/>");
    }
    free(png);
    return status;
}

latent_status lt_text_finish(latent_context *ctx, lt_text *t) {
    return t->failed ? lt_fail(ctx, LATENT_ERROR_MEMORY, "no memory for the report") : LATENT_OK;
}

const char *lt_show_count(char out[LT_SHORT], double n) {
    char digits[LT_SHORT];
    if (!isfinite(n) || fabs(n) >= 1e15) {
        snprintf(out, LT_SHORT, "%s", isfinite(n) ? "huge" : "–");
        return out;
    }
    int length = snprintf(digits, sizeof digits, "%.0f", n), at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && digits[i - 1] != '-' && (length - i) % 3 == 0) {
            out[at++] = ',';
        }
        out[at++] = digits[i];
    }
    out[at] = 0;
    return out;
}

const char *lt_show_seconds(char out[LT_SHORT], double seconds) {
    if (!isfinite(seconds) || seconds < 0 || seconds > 1e9) {
        snprintf(out, LT_SHORT, "–");
    } else if (seconds < 0.0995) {
        snprintf(out, LT_SHORT, "%.3g ms", 1e3 * seconds);
    } else if (seconds < 9.995) {
        snprintf(out, LT_SHORT, "%.2f s", seconds);
    } else if (seconds < 119.95) {
        snprintf(out, LT_SHORT, "%.1f s", seconds);
    } else {
        long whole = lround(seconds);
        if (whole < 7200) {
            snprintf(out, LT_SHORT, "%ld min %02ld s", whole / 60, whole % 60);
        } else {
            snprintf(out, LT_SHORT, "%ld h %02ld min", whole / 3600, whole / 60 % 60);
        }
    }
    return out;
}

const char *lt_show_number(char out[LT_SHORT], double value) {
    snprintf(out, LT_SHORT, isfinite(value) ? "%.4g" : "–", value);
    return out;
}
