/* scan.c: see scan.h. Decimal numbers of up to 15 digits and small exponents are converted exactly by one
 * division or multiplication (both operands are exact in a double, so the result is correctly rounded); the
 * rest goes to strtod_l() in the C locale.
 */
#include "io/scan.h"

#include "base/json.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER = 1 << 16 };

struct lt_scan {
    FILE *file; /* or NULL: memory */
    char *origin;
    locale_t locale;
    const char *at, *end; /* what is left of the buffer or the memory */
    unsigned long long line, next_line;
    int inside; /* something was seen since the last end of a line */
    char word[LT_SCAN_WORD_MAX + 1];
    char buffer[BUFFER];
};

static latent_status make(latent_context *ctx, const char *origin, lt_scan **out) {
    latent_status status = LATENT_OK;
    lt_scan *scan = NULL;
    *out = NULL;
    LT_TRY(lt_calloc(ctx, 1, sizeof *scan, "a text file", (void **)&scan));
    LT_TRY(lt_strdup(ctx, origin, &scan->origin));
    scan->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    scan->line = scan->next_line = 1;
    if (!scan->locale) {
        status = lt_fail(ctx, LATENT_ERROR_MEMORY, "no memory for a locale");
        goto done;
    }
    *out = scan;
    scan = NULL;
done:
    lt_scan_close(scan);
    return status;
}

latent_status lt_scan_open(latent_context *ctx, const char *path, lt_scan **out) {
    latent_status status = make(ctx, path, out);
    if (status == LATENT_OK) {
        (*out)->file = fopen(path, "rbe");
        if (!(*out)->file) {
            status = lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot read: %s", path, strerror(errno));
            lt_scan_close(*out);
            *out = NULL;
        }
    }
    return status;
}

latent_status lt_scan_memory(latent_context *ctx, const void *bytes, size_t size, const char *origin,
                             lt_scan **out) {
    latent_status status = make(ctx, origin, out);
    if (status == LATENT_OK) {
        (*out)->at = bytes;
        (*out)->end = (const char *)bytes + size;
    }
    return status;
}

void lt_scan_close(lt_scan *scan) {
    if (scan) {
        if (scan->file) {
            fclose(scan->file);
        }
        if (scan->locale) {
            freelocale(scan->locale);
        }
        free(scan->origin);
        free(scan);
    }
}

const char *lt_scan_origin(const lt_scan *scan) {
    return scan->origin;
}

unsigned long long lt_scan_line(const lt_scan *scan) {
    return scan->line;
}

/* 1 when there is a byte at `at`; 0 at the end. */
static int more(lt_scan *scan) {
    if (scan->at == scan->end && scan->file) {
        size_t got = fread(scan->buffer, 1, BUFFER, scan->file);
        scan->at = scan->buffer;
        scan->end = scan->buffer + got;
    }
    return scan->at < scan->end;
}

static int is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

latent_status lt_scan_next(latent_context *ctx, lt_scan *scan, lt_scan_kind *kind, const char **word) {
    size_t length = 0;
    *word = scan->word;
    scan->line = scan->next_line;
    while (more(scan) && is_blank(*scan->at)) {
        scan->at++;
    }
    if (!more(scan)) {
        if (scan->file && ferror(scan->file)) {
            return lt_fail(ctx, LATENT_ERROR_IO, "%s: cannot read: %s", scan->origin, strerror(errno));
        }
        *kind = scan->inside ? LT_SCAN_LINE : LT_SCAN_END;
        scan->inside = 0;
        return LATENT_OK;
    }
    if (*scan->at == '\n') {
        scan->at++;
        scan->next_line++;
        scan->inside = 0;
        *kind = LT_SCAN_LINE;
        return LATENT_OK;
    }
    while (more(scan) && !is_blank(*scan->at) && *scan->at != '\n') {
        if (length == LT_SCAN_WORD_MAX || (unsigned char)*scan->at < ' ') {
            char excerpt[LT_EXCERPT_MAX];
            scan->word[length] = 0;
            return lt_fail(ctx, LATENT_ERROR_FORMAT,
                           "%s: line %llu: '%s' %s; words and numbers are expected here", scan->origin,
                           scan->line, lt_excerpt(scan->word, excerpt),
                           length == LT_SCAN_WORD_MAX ? "goes on for too long"
                                                      : "is followed by a byte that is no text");
        }
        scan->word[length++] = *scan->at++;
    }
    scan->word[length] = 0;
    scan->inside = 1;
    *kind = LT_SCAN_WORD;
    return LATENT_OK;
}

/* Plain decimals: sign, digits, point, digits, exponent. 0: leave it to strtod. */
static int quick_number(const char *word, double *out) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *c = word + (*word == '-' || *word == '+');
    uint64_t digits = 0;
    int seen = 0, exponent = 0, point = 0;
    for (; isdigit((unsigned char)*c) || (*c == '.' && !point); c++) {
        if (*c == '.') {
            point = 1;
            continue;
        }
        digits = digits * 10 + (uint64_t)(*c - '0');
        exponent -= point;
        if (++seen > 15) {
            return 0;
        }
    }
    if (seen > 0 && (*c == 'e' || *c == 'E')) {
        int negative = c[1] == '-', value = 0;
        c += 1 + (c[1] == '-' || c[1] == '+');
        if (!isdigit((unsigned char)*c)) {
            return 0;
        }
        for (; isdigit((unsigned char)*c) && value < 1000; c++) {
            value = value * 10 + (*c - '0');
        }
        exponent += negative ? -value : value;
    }
    if (seen == 0 || *c || exponent < -22 || exponent > 22) {
        return 0;
    }
    *out = exponent < 0 ? (double)digits / powers[-exponent] : (double)digits * powers[exponent];
    *out = *word == '-' ? -*out : *out;
    return 1;
}

int lt_scan_number(const lt_scan *scan, const char *word, double *out) {
    char *end = NULL;
    if (quick_number(word, out)) {
        return 1;
    }
    *out = strtod_l(word, &end, scan->locale);
    return end != word && *end == 0 && isfinite(*out);
}

int lt_scan_integer(const lt_scan *scan, const char *word, int32_t *out) {
    double value;
    if (!lt_scan_number(scan, word, &value) || !(value >= INT32_MIN && value <= INT32_MAX) ||
        value != floor(value)) {
        return 0;
    }
    *out = (int32_t)value;
    return 1;
}

lt_plain_locale lt_plain_locale_begin(void) {
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    lt_plain_locale locale = {plain, uselocale(plain)};
    return locale;
}

void lt_plain_locale_end(lt_plain_locale *locale) {
    uselocale(locale->before);
    if (locale->plain) {
        freelocale(locale->plain);
    }
}
