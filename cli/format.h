/* format.h: numbers as a person reads them.
 *
 * Each function returns its text by value, so that it is used inside a printf call without a buffer of the
 * caller's: printf("%s", cli_bytes(n).s). The text lives to the end of that full expression.
 */
#ifndef CLI_FORMAT_H
#define CLI_FORMAT_H

#include <stdint.h>

typedef struct cli_text {
    char s[64];
} cli_text;

cli_text cli_count(uint64_t n);                /* 751,875 */
cli_text cli_bytes(uint64_t n);                /* 3.01 MB: powers of 1000, as disks and networks count */
cli_text cli_big(uint64_t n);                  /* 1.23 G: multiply-adds */
cli_text cli_duration(double seconds);         /* 0.42 s, 12.3 s, 3 min 05 s, 2 h 10 min */
cli_text cli_eta(double seconds);              /* 0:07, 12:30, 1:02:03: time left, to the second */
cli_text cli_rate(double per_second);          /* 12,345 or 3.2 */
cli_text cli_shape(const int hwc[3]);          /* 8x8x128 */
cli_text cli_dims(const int *shape, int dims); /* [256, 3, 3, 3] */

/* The display width of UTF-8 text: its code points. */
int cli_width(const char *text);

#endif
