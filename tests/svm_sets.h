/* svm_sets.h: random training sets for the tests of support vector machines: clusters that overlap, with
 * unequal classes, rows that appear twice, and rows that appear with two labels.
 */
#ifndef SVM_SETS_H
#define SVM_SETS_H

#include "base/rng.h"
#include "svm/svm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* These tests are about the host's solver, also on a machine with a GPU: the best backend that lives in host
 * memory. */
static inline const char *svm_host_name(void) {
    char detail[160];
    for (int i = 0; lt_backend_at(i); i++) {
        const lt_backend_type *type = lt_backend_at(i);
        if (type->host_memory && type->probe(detail, sizeof detail)) {
            return type->name;
        }
    }
    return "ref";
}

#define SVM_HOST (&(latent_engine_options){.backend = svm_host_name()})

typedef struct svm_set {
    size_t n, d;
    float *x;
    int32_t *labels;
    uint64_t seed, drawn;
} svm_set;

static inline double svm_uniform(svm_set *s) {
    return lt_uniform(lt_philox(s->seed, LT_RNG_TEST, 7, s->drawn++).v[0]);
}

static inline double svm_normal(svm_set *s) {
    double u = svm_uniform(s), v = svm_uniform(s);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

typedef struct svm_recipe {
    size_t n, d;
    int classes;
    int unbalanced;    /* class c has about half the rows of class c-1 */
    int duplicates;    /* every seventh row is an earlier one again */
    int contradictory; /* ... with another label */
    int relu;          /* no value below 0, about half of them 0 */
    double overlap;    /* spread of a cluster over the distance of the clusters */
    uint64_t seed;
} svm_recipe;

/* Labels are 3, 1, 4, 1+10 ... in an order that is neither sorted nor the classes' own. */
static inline int32_t svm_label(int c) {
    return (int32_t)(c * 7 % 10) - 2;
}

static inline int svm_pick(svm_set *s, const svm_recipe *r) {
    if (!r->unbalanced) {
        return (int)(svm_uniform(s) * r->classes);
    }
    int c = 0;
    while (c + 1 < r->classes && svm_uniform(s) > 0.5) {
        c++;
    }
    return c;
}

static inline svm_set svm_make(const svm_recipe *r) {
    svm_set s = {.n = r->n, .d = r->d, .seed = r->seed};
    float *centers = malloc((size_t)r->classes * r->d * sizeof *centers);
    s.x = malloc(r->n * r->d * sizeof *s.x);
    s.labels = malloc(r->n * sizeof *s.labels);
    for (size_t i = 0; i < (size_t)r->classes * r->d; i++) {
        centers[i] = (float)svm_normal(&s);
    }
    for (size_t i = 0; i < r->n; i++) {
        /* The first rows see to it that every class is there. */
        int c = i < (size_t)r->classes ? (int)i : svm_pick(&s, r);
        s.labels[i] = svm_label(c);
        for (size_t k = 0; k < r->d; k++) {
            float value = centers[(size_t)c * r->d + k] + (float)(r->overlap * svm_normal(&s));
            s.x[i * r->d + k] = r->relu && value < 0 ? 0 : value;
        }
        if (i >= 7 && i % 7 == 0 && (r->duplicates || r->contradictory)) {
            size_t from = (size_t)(svm_uniform(&s) * (double)i);
            memcpy(s.x + i * r->d, s.x + from * r->d, r->d * sizeof *s.x);
            s.labels[i] = r->contradictory ? svm_label((c + 1) % r->classes) : s.labels[from];
        }
    }
    free(centers);
    return s;
}

static inline void svm_drop(svm_set *s) {
    free(s->x);
    free(s->labels);
    memset(s, 0, sizeof *s);
}

#endif
