/* text.h: a text that grows, and the ways in which things get into a page.
 *
 * lt_put and lt_putf take markup that this program wrote; everything that comes from a file, a path or a
 * class name goes through lt_escape. A failed allocation is remembered and reported once, at the end.
 */
#ifndef LT_REPORT_TEXT_H
#define LT_REPORT_TEXT_H

#include "base/status.h"

typedef struct lt_text { /* zero it first; free(s) last */
    char *s;
    size_t length, capacity;
    int failed;
} lt_text;

void lt_put(lt_text *t, const char *markup);
void lt_put_bytes(lt_text *t, const char *bytes, size_t count);
void lt_putf(lt_text *t, const char *format, ...) LT_PRINTF(2, 3);
/* Safe between tags and inside attribute values in double quotes. Bytes that are no UTF-8 and characters
 * that a page may not hold become U+FFFD. */
void lt_escape(lt_text *t, const char *text);
void lt_base64(lt_text *t, const void *bytes, size_t count);
/* An <img> with the pixels inside; rgb is [height][width][3]. `alt` is escaped. */
latent_status lt_put_image(latent_context *ctx, lt_text *t, const uint8_t *rgb, int width, int height,
                           const char *alt);
latent_status lt_text_finish(latent_context *ctx, lt_text *t);

/* Numbers as a person reads them, in a buffer of the caller's. */
enum { LT_SHORT = 48 };
const char *lt_show_count(char out[LT_SHORT], double n);         /* 50,000 */
const char *lt_show_seconds(char out[LT_SHORT], double seconds); /* 12 ms, 0.42 s, 3 min 05 s, 2 h 10 min */
const char *lt_show_number(char out[LT_SHORT], double value);    /* four significant digits */

#endif
