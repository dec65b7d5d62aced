/* smo.c: LIBSVM's two-variable step with second-order selection (Fan, Chen, Lin 2005), written so that the
 * class of a row disappears from the loops.
 *
 * The dual of one binary problem is: minimize a'Qa/2 - sum(a), Q[i][j] = y[i] y[j] K[i][j], 0 <= a <= C,
 * y'a = 0. With b = y*a, which lies in [0, C] for y = +1 and in [-C, 0] for y = -1, it reads
 *     maximize  W(b) = y'b - b'Kb/2   subject to  low <= b <= high,  sum(b) = 0,
 * and its gradient is f = y - Kb. Moving d from b[j] to b[i] changes W by
 *     d (f[i] - f[j]) - d^2/2 (K[i][i] + K[j][j] - 2 K[i][j]),
 * so b is optimal when no i that may rise (b < high) has a larger f than a j that may fall (b > low). The
 * gap, max f over those that may rise minus min f over those that may fall, is LIBSVM's stopping quantity:
 * its -y G is f. A step takes i with the largest f that may rise, then the j for which the unclipped gain
 * (f[i] - f[j])^2 / (K[i][i] + K[j][j] - 2 K[i][j]) is largest, moves by the quotient, clipped to the box,
 * and updates f with rows i and j of K.
 *
 * Each step reads memory twice: one pass updates f and finds the next i, one finds j. What may rise or fall
 * is kept as a term added to f, 0 or an infinity, so the passes have no branches. Maxima do not depend on the
 * order in which they are taken, equal ones go to the lowest row, and nothing else is reduced: the bits are
 * the same for every vector width, which lets one body serve all instruction sets.
 */
#include "svm/smo.h"

#include <math.h>

typedef double vec __attribute__((vector_size(8 * LT_SMO_LANES)));
typedef float half __attribute__((vector_size(4 * LT_SMO_LANES), aligned(4)));
typedef int64_t mask __attribute__((vector_size(8 * LT_SMO_LANES)));

/* How vectors are passed differs between instruction sets; here they never are: all is inlined. */
#pragma GCC diagnostic ignored "-Wpsabi"

#define ALWAYS static inline __attribute__((always_inline))

static const double tiny = 1e-12; /* stands for a curvature that is not positive, as in LIBSVM */

/* Lane by lane a or b: C has no ?: for vectors that both compilers know. */
#define SELECT(m, a, b) ((vec)(((m) & (mask)(a)) | (~(m) & (mask)(b))))

ALWAYS vec splat(double value) {
    vec v = {0};
    return v + value;
}

ALWAYS vec widen(const float *from) {
    return __builtin_convertvector(*(const half *)from, vec);
}

/* The best of the lanes; equal ones to the lowest row. `block` says in which vector a lane found its value.
 */
ALWAYS size_t best_lane(const vec *best, const mask *block, double *value) {
    size_t row = 0;
    *value = -INFINITY;
    for (int lane = 0; lane < LT_SMO_LANES; lane++) {
        size_t candidate = (size_t)(*block)[lane] * LT_SMO_LANES + (size_t)lane;
        if ((*best)[lane] > *value || ((*best)[lane] == *value && candidate < row)) {
            *value = (*best)[lane];
            row = candidate;
        }
    }
    return row;
}

/* What a pass over the positions has found so far, lane by lane. */
typedef struct search {
    vec best, low;
    mask block, now;
} search;

/* f -= step * (K[i] - K[j]) over positions [from, to), whose columns begin at ki and kj; and the largest f
 * that may rise. */
ALWAYS void update_run(const lt_smo *s, size_t from, size_t to, const float *ki, const float *kj, double step,
                       search *found) {
    vec by = splat(step), best = found->best;
    mask block = found->block, now = found->now;
    for (size_t t = from; t < to; t += LT_SMO_LANES, ki += LT_SMO_LANES, kj += LT_SMO_LANES, now += 1) {
        vec f = *(vec *)(s->f + t) - by * (widen(ki) - widen(kj));
        *(vec *)(s->f + t) = f;
        f += *(const vec *)(s->may_rise + t);
        mask better = f > best;
        best = SELECT(better, f, best);
        block = (better & now) | (~better & block);
    }
    found->best = best;
    found->block = block;
    found->now = now;
}

/* The next i, and its f. */
ALWAYS size_t update_and_find(const lt_smo *s, size_t i, size_t j, double step, double *rise) {
    const float *ki = lt_smo_row(s, i), *kj = lt_smo_row(s, j);
    size_t first = s->part < s->n ? s->part : s->n;
    search found = {.best = splat(-INFINITY)};
    update_run(s, 0, first, ki + s->begin[0], kj + s->begin[0], step, &found);
    update_run(s, first, s->n, ki + s->begin[1], kj + s->begin[1], step, &found);
    return best_lane(&found.best, &found.block, rise);
}

/* The largest gain with i over positions [from, to), and the smallest f that may fall. */
ALWAYS void partner_run(const lt_smo *s, size_t from, size_t to, const float *ki, double fi, double kii,
                        search *found) {
    vec best = found->best, low = found->low, f_i = splat(fi), k_ii = splat(kii), least = splat(tiny);
    mask block = found->block, now = found->now;
    for (size_t t = from; t < to; t += LT_SMO_LANES, ki += LT_SMO_LANES, now += 1) {
        vec f = *(const vec *)(s->f + t) + *(const vec *)(s->may_fall + t);
        low = SELECT(f < low, f, low);
        vec difference = f_i - f;
        vec curvature = k_ii + *(const vec *)(s->diagonal + t) - 2.0 * widen(ki);
        curvature = SELECT(curvature > 0.0, curvature, least);
        vec value = difference * difference / curvature;
        mask better = (difference > 0.0) & (value > best);
        best = SELECT(better, value, best);
        block = (better & now) | (~better & block);
    }
    found->best = best;
    found->low = low;
    found->block = block;
    found->now = now;
}

/* The j of the largest gain with i, its gain (negative: there is none), and the smallest f that may fall. */
ALWAYS size_t find_partner(const lt_smo *s, size_t i, double *gain, double *fall) {
    const float *ki = lt_smo_row(s, i);
    size_t first = s->part < s->n ? s->part : s->n;
    search found = {.best = splat(-1), .low = splat(INFINITY)};
    partner_run(s, 0, first, ki + s->begin[0], s->f[i], s->diagonal[i], &found);
    partner_run(s, first, s->n, ki + s->begin[1], s->f[i], s->diagonal[i], &found);
    *fall = INFINITY;
    for (int lane = 0; lane < LT_SMO_LANES; lane++) {
        *fall = found.low[lane] < *fall ? found.low[lane] : *fall;
    }
    return best_lane(&found.best, &found.block, gain);
}

static void set_limits(const lt_smo *s, size_t i) {
    double high = s->y[i] > 0 ? s->bound[i] : 0, low = s->y[i] > 0 ? 0 : -s->bound[i];
    s->may_rise[i] = s->beta[i] < high ? 0 : -INFINITY;
    s->may_fall[i] = s->beta[i] > low ? 0 : INFINITY;
}

/* How far to move from j to i; a row that reaches its bound is put exactly there. 0: nothing would change. */
static double take_step(const lt_smo *s, size_t i, size_t j) {
    double curvature = s->diagonal[i] + s->diagonal[j] - 2.0 * (double)lt_smo_row(s, i)[lt_smo_column(s, j)];
    double step = (s->f[i] - s->f[j]) / (curvature > 0 ? curvature : tiny);
    double high = s->y[i] > 0 ? s->bound[i] : 0, low = s->y[j] > 0 ? 0 : -s->bound[j];
    double to_high = high - s->beta[i], to_low = s->beta[j] - low;
    step = step < to_high ? step : to_high;
    step = step < to_low ? step : to_low;
    double bi = step == to_high ? high : s->beta[i] + step, bj = step == to_low ? low : s->beta[j] - step;
    if (!(step > 0) || (bi == s->beta[i] && bj == s->beta[j])) {
        return 0;
    }
    s->beta[i] = bi;
    s->beta[j] = bj;
    set_limits(s, i);
    set_limits(s, j);
    return step;
}

ALWAYS lt_svm_outcome run(lt_smo *s) {
    double rise, fall, gain, step = 0;
    size_t i = 0, j = 0;
    for (s->iterations = 0;; s->iterations++) {
        size_t next = update_and_find(s, i, j, step, &rise);
        i = next;
        if (rise == -INFINITY) {
            s->gap = -INFINITY; /* nothing may rise: there is nothing to do */
            return LT_SVM_SOLVED;
        }
        j = find_partner(s, i, &gain, &fall);
        s->gap = rise - fall;
        if (s->gap < s->tolerance || gain < 0) {
            return LT_SVM_SOLVED;
        }
        if (s->iterations >= s->iterations_max) {
            return LT_SVM_CAPPED;
        }
        step = take_step(s, i, j);
        if (step == 0) {
            return LT_SVM_STALLED;
        }
    }
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512dq,avx512vl"))) static lt_svm_outcome run_avx512(lt_smo *s) {
    return run(s);
}

__attribute__((target("avx2"))) static lt_svm_outcome run_avx2(lt_smo *s) {
    return run(s);
}
#endif

lt_svm_outcome lt_smo_run(lt_smo *s) {
    for (size_t i = 0; i < s->n; i++) {
        s->diagonal[i] = lt_smo_row(s, i)[lt_smo_column(s, i)];
        set_limits(s, i);
    }
    for (size_t i = s->n; i < lt_smo_padded(s->n); i++) {
        s->f[i] = 0;
        s->diagonal[i] = 1;
        s->may_rise[i] = -INFINITY;
        s->may_fall[i] = INFINITY;
    }
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        return run_avx512(s);
    }
    if (__builtin_cpu_supports("avx2")) {
        return run_avx2(s);
    }
#endif
    return run(s);
}

void lt_smo_extremes(size_t n, const double *y, const double *bound, const double *beta, const double *f,
                     double *rise, double *fall) {
    *rise = -INFINITY;
    *fall = INFINITY;
    for (size_t i = 0; i < n; i++) {
        double high = y[i] > 0 ? bound[i] : 0, low = y[i] > 0 ? 0 : -bound[i];
        *rise = beta[i] < high && f[i] > *rise ? f[i] : *rise;
        *fall = beta[i] > low && f[i] < *fall ? f[i] : *fall;
    }
}

double lt_smo_rho(size_t n, const double *y, const double *bound, const double *beta, const double *f) {
    double sum = 0, rise, fall;
    size_t free = 0;
    for (size_t i = 0; i < n; i++) {
        double alpha = y[i] * beta[i];
        if (alpha > 0 && alpha < bound[i]) {
            sum += f[i];
            free++;
        }
    }
    if (free > 0) {
        return -sum / (double)free;
    }
    lt_smo_extremes(n, y, bound, beta, f, &rise, &fall);
    if (!isfinite(rise) || !isfinite(fall)) {
        return isfinite(rise) ? -rise : isfinite(fall) ? -fall : 0;
    }
    return -(rise + fall) / 2;
}

double lt_smo_objective(size_t n, const double *y, const double *beta, const double *f) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += beta[i] * (f[i] + y[i]);
    }
    return -sum / 2;
}
