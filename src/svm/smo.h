/* smo.h: the two-variable solver of one binary problem whose kernel is at hand. See smo.c. */
#ifndef LT_SVM_SMO_H
#define LT_SVM_SMO_H

#include "backend/svm.h"

enum { LT_SMO_LANES = 8 };

static inline size_t lt_smo_padded(size_t n) {
    return (n + LT_SMO_LANES - 1) / LT_SMO_LANES * LT_SMO_LANES;
}

/* The kernel is a matrix of rows; position i of the problem is row[i] of it (NULL: row i). Its columns are
 * one or two runs: positions [0, part) lie from column begin[0] on, positions [part, n) from begin[1]. `part`
 * is a multiple of LT_SMO_LANES, or at least n for a single run. Behind a run's last column there must be
 * readable, finite floats up to a whole vector; positions that fill up the first run are rows with bound 0.
 * The arrays are on multiples of 64 bytes and have lt_smo_padded(n) places; those past n the solver fills
 * itself. */
typedef struct lt_smo {
    size_t n;
    float *k;
    size_t stride; /* floats from row to row */
    const uint32_t *row;
    size_t begin[2], part;
    double *y;        /* +1 or -1 */
    double *bound;    /* C of the row */
    double *beta;     /* y * alpha: start values in, solution out */
    double *f;        /* y - K beta: of the start values in, of the solution out */
    double *may_rise; /* scratch */
    double *may_fall; /* scratch */
    double *diagonal; /* scratch */
    double tolerance;
    uint64_t iterations_max;
    uint64_t iterations; /* out: steps made by this call */
    double gap;          /* out */
} lt_smo;

/* K at two positions. */
static inline const float *lt_smo_row(const lt_smo *s, size_t i) {
    return s->k + (s->row ? s->row[i] : i) * s->stride;
}

static inline size_t lt_smo_column(const lt_smo *s, size_t j) {
    return j < s->part ? s->begin[0] + j : s->begin[1] + (j - s->part);
}

/* Steps until gap < tolerance, the cap, or no step changes anything. */
lt_svm_outcome lt_smo_run(lt_smo *smo);

/* The same quantities of any problem, by plain loops: the largest f that may rise, the smallest that may
 * fall; -inf and +inf when there is none. */
void lt_smo_extremes(size_t n, const double *y, const double *bound, const double *beta, const double *f,
                     double *rise, double *fall);
/* rho, from the rows between their bounds; without one, the middle between the extremes. */
double lt_smo_rho(size_t n, const double *y, const double *bound, const double *beta, const double *f);
/* a'Qa/2 - sum(a) = -sum of beta*(f + y)/2. */
double lt_smo_objective(size_t n, const double *y, const double *beta, const double *f);

#endif
