/* smo.h: the two-variable solver of one binary problem whose kernel lies packed in memory. See smo.c. */
#ifndef LT_SVM_SMO_H
#define LT_SVM_SMO_H

#include "backend/svm.h"

enum { LT_SMO_LANES = 8 };

static inline size_t lt_smo_padded(size_t n) {
    return (n + LT_SMO_LANES - 1) / LT_SMO_LANES * LT_SMO_LANES;
}

/* All arrays are on multiples of 64 bytes and have lt_smo_padded(n) places; the solver fills the places past
 * n itself, but for those of the kernel, which must be finite. */
typedef struct lt_smo {
    size_t n;
    float *k;         /* [n][stride], symmetric */
    size_t stride;    /* floats, a multiple of LT_SMO_LANES, >= padded n */
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
