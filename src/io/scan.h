/* scan.h: words and numbers out of a text file, in sequence, with the line they are on.
 *
 * Words are separated by blanks; ends of lines are reported, as they mean something in the formats read with
 * it. The file passes through a buffer of fixed size, so its length and the length of its lines cost no
 * memory. A word has at most LT_SCAN_WORD_MAX characters: no number needs more.
 */
#ifndef LT_IO_SCAN_H
#define LT_IO_SCAN_H

#include "base/status.h"

#include <locale.h>

enum { LT_SCAN_WORD_MAX = 127 };

typedef enum lt_scan_kind {
    LT_SCAN_WORD,
    LT_SCAN_LINE, /* the end of a line */
    LT_SCAN_END   /* of the file; after a last line without its end, LT_SCAN_LINE comes first */
} lt_scan_kind;

typedef struct lt_scan lt_scan;

latent_status lt_scan_open(latent_context *ctx, const char *path, lt_scan **out);
/* The same from memory, which must outlive the scan. */
latent_status lt_scan_memory(latent_context *ctx, const void *bytes, size_t size, const char *origin,
                             lt_scan **out);
void lt_scan_close(lt_scan *scan);                    /* takes NULL */
const char *lt_scan_origin(const lt_scan *scan);      /* for messages */
unsigned long long lt_scan_line(const lt_scan *scan); /* of the latest word; counts from 1 */

/* The next word, 0-terminated, good until the next call. */
latent_status lt_scan_next(latent_context *ctx, lt_scan *scan, lt_scan_kind *kind, const char **word);

/* A word as a number; '.' is the decimal point in every locale. 0 when it is no number, not finite or has
 * something behind it. */
int lt_scan_number(const lt_scan *scan, const char *word, double *out);
/* A word as a whole number of 32 bits, also when written as 1.0 or +1. */
int lt_scan_integer(const lt_scan *scan, const char *word, int32_t *out);

/* Between the two, printf() writes '.' for the decimal point on this thread, whatever locale is set. */
typedef struct lt_plain_locale {
    locale_t plain, before;
} lt_plain_locale;
lt_plain_locale lt_plain_locale_begin(void);
void lt_plain_locale_end(lt_plain_locale *locale);

#endif
