/* suggest.c: the word that was probably meant.
 *
 * Damerau-Levenshtein distance in its restricted form: insert, delete or replace a character, or swap two
 * neighbours, each costs 1; no part is edited twice. Upper and lower case count as the same, since wrong
 * case is the commonest mistake. Three rows of the table suffice.
 */
#include "latent.h"

#include <ctype.h>
#include <string.h>

enum { LENGTH_MAX = 128 };

static size_t min(size_t a, size_t b) {
    return a < b ? a : b;
}

static int same(char a, char b) {
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Both words have at most LENGTH_MAX characters. */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length) {
    size_t rows[3][LENGTH_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_length; j++) {
        last[j] = j;
    }
    for (size_t i = 1; i <= a_length; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            row[j] = min(min(last[j], row[j - 1]) + 1, last[j - 1] + !same(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1])) {
                row[j] = min(row[j], before[j - 2] + 1);
            }
        }
        size_t *oldest = before;
        before = last;
        last = row;
        row = oldest;
    }
    return last[b_length];
}

const char *latent_suggest(const char *word, const char *const *candidates, size_t count) {
    const char *nearest = NULL;
    size_t length = strlen(word);
    size_t limit = length / 3 > 2 ? length / 3 : 2;
    if (length > LENGTH_MAX) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        size_t other = strlen(candidates[i]);
        if (other > LENGTH_MAX) {
            continue;
        }
        size_t d = distance(word, length, candidates[i], other);
        /* A distance as long as the longer word means that not one character is shared. */
        if (d <= limit && d < (length > other ? length : other)) {
            nearest = candidates[i];
            if (d == 0) {
                break;
            }
            limit = d - 1; /* the next one must be nearer: of equals the first wins */
        }
    }
    return nearest;
}
