/* shrink.c: rows that rest at a bound are left out while the others are solved.
 *
 * A row that may only fall and whose f lies above everything that may rise, or may only rise and lies below
 * everything that may fall, takes part in no step until the others have moved past it. Every thousand steps
 * such rows are dropped and the rest is packed anew, kernel and all, so that a step costs what the rest has.
 * When the rest is solved, f of the dropped rows is computed afresh from all beta, and the whole problem is
 * looked at again: the answer is that of the whole.
 */
#include "svm/host.h"

#include <math.h>
#include <string.h>

enum { STEPS = 1000 };

/* Lists the rows worth keeping; returns how many. */
static size_t list_kept(const lt_smo *s, uint32_t *kept) {
    double rise, fall;
    size_t count = 0;
    lt_smo_extremes(s->n, s->y, s->bound, s->beta, s->f, &rise, &fall);
    for (size_t i = 0; i < s->n; i++) {
        int rises = s->may_rise[i] == 0, falls = s->may_fall[i] == 0;
        if ((rises && falls) || (rises && s->f[i] >= fall) || (falls && s->f[i] <= rise)) {
            kept[count++] = (uint32_t)i;
        }
    }
    return count;
}

/* Packs positions kept[0..count) of `from` into `to`, which may be `from` itself: places only move down. */
static void pack(const lt_smo *from, lt_smo *to, const uint32_t *kept, size_t count) {
    for (size_t a = 0; a < count; a++) {
        const float *source = lt_smo_row(from, kept[a]);
        float *target = to->k + a * to->stride;
        for (size_t b = 0; b < count; b++) {
            target[b] = source[lt_smo_column(from, kept[b])];
        }
        for (size_t b = count; b < lt_smo_padded(count); b++) {
            target[b] = 0;
        }
        to->y[a] = from->y[kept[a]];
        to->bound[a] = from->bound[kept[a]];
        to->beta[a] = from->beta[kept[a]];
        to->f[a] = from->f[kept[a]];
    }
    to->n = count;
}

/* beta and f of the rest, back to their rows of the whole problem. */
static void write_back(lt_smo *s, const lt_smo *spare, const uint32_t *places) {
    for (size_t a = 0; a < spare->n; a++) {
        s->beta[places[a]] = spare->beta[a];
        s->f[places[a]] = spare->f[a];
    }
}

/* Solves what was kept, dropping more on the way. places[a] is the row of the whole problem. */
static lt_svm_outcome solve_rest(lt_smo *s, lt_smo *spare, uint32_t *places, uint32_t *kept, uint64_t cap,
                                 uint64_t *used, const volatile int *interrupted) {
    for (;;) {
        spare->iterations_max = cap - *used < STEPS ? cap - *used : STEPS;
        lt_svm_outcome outcome = lt_smo_run(spare);
        *used += spare->iterations;
        if (outcome != LT_SVM_CAPPED || *used >= cap || *interrupted) {
            return outcome;
        }
        size_t count = list_kept(spare, kept);
        if (count * 10 < spare->n * 9) {
            write_back(s, spare, places);
            pack(spare, spare, kept, count);
            for (size_t a = 0; a < count; a++) {
                places[a] = places[kept[a]];
            }
        }
    }
}

double lt_smo_sum(const lt_smo *s, size_t i) {
    const float *k = lt_smo_row(s, i);
    size_t first = s->part < s->n ? s->part : s->n;
    return lt_dot(k + s->begin[0], s->beta, first) + lt_dot(k + s->begin[1], s->beta + first, s->n - first);
}

/* f of the rows that were dropped: those that are not among the last ones solved. */
static void reconstruct(lt_smo *s, const uint32_t *places, size_t count) {
    size_t next = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (next < count && places[next] == i) {
            next++;
        } else {
            s->f[i] = s->y[i] - lt_smo_sum(s, i);
        }
    }
}

lt_svm_outcome lt_smo_shrink(lt_smo *s, lt_smo *spare, size_t room, uint32_t *kept,
                             const volatile int *interrupted) {
    uint64_t cap = s->iterations_max, used = 0;
    uint32_t *places = kept + s->n;
    lt_svm_outcome outcome;
    for (;;) {
        s->iterations_max = cap - used < STEPS ? cap - used : STEPS;
        outcome = lt_smo_run(s);
        used += s->iterations;
        if (outcome != LT_SVM_CAPPED || used >= cap || *interrupted) {
            break;
        }
        size_t count = list_kept(s, kept);
        if (count < 2 || count > room || count * 10 >= s->n * 9) {
            continue;
        }
        memcpy(places, kept, count * sizeof *places);
        spare->row = NULL;
        spare->begin[0] = spare->begin[1] = 0;
        spare->part = spare->stride = lt_smo_padded(count) + LT_SMO_LANES;
        spare->tolerance = s->tolerance;
        pack(s, spare, kept, count);
        solve_rest(s, spare, places, kept, cap, &used, interrupted);
        write_back(s, spare, places);
        reconstruct(s, places, spare->n);
    }
    s->iterations_max = cap;
    s->iterations = used;
    return outcome;
}
