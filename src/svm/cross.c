/* cross.c: cross-validation and the grid over C and gamma.
 *
 * All folds of all pairs are masks on one kernel matrix and are solved in one call. A point of the grid with
 * the same gamma and a larger C starts from the alphas of the one before, which stay feasible when the box
 * grows; another gamma is one pass over the squared distances.
 */
#include "svm/svm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FOLDS_MAX = 255, SUMS_MAX = 1 << 27 /* doubles at a time */ };

typedef struct cross {
    latent_context *ctx;
    lt_svm_engine engine;
    const latent_svm_options *options;
    lt_svm_set set;
    lt_svm_matrix *matrix;
    int folds;
    uint8_t *fold;              /* [n], of sorted rows */
    int count;                  /* pairs * folds */
    lt_svm_problem *problems;   /* [count], fold by fold */
    uint8_t *whole;             /* [count] 0: a class would be empty, so the pair has no say in that fold */
    lt_svm_solution *solutions; /* [count] */
    double *alpha;              /* flat */
    double *decisions;          /* [n][pairs] of sorted rows */
    double *sums, *scratch;
} cross;

static void cross_free(cross *c) {
    if (c->matrix) {
        c->engine.ops->matrix_free(c->engine.backend, c->matrix);
    }
    lt_svm_set_free(&c->set);
    free(c->fold);
    free(c->problems);
    free(c->whole);
    free(c->solutions);
    free(c->alpha);
    free(c->decisions);
    free(c->sums);
    free(c->scratch);
    lt_svm_engine engine = c->engine;
    memset(c, 0, sizeof *c);
    c->engine = engine;
}

static latent_status check_folds(latent_context *ctx, int folds, size_t n) {
    if (folds < 2 || folds > FOLDS_MAX || (size_t)folds > n) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "%d folds over %zu rows; from 2 to %d can be made, and no more than there are rows",
                       folds, n, FOLDS_MAX);
    }
    return LATENT_OK;
}

/* Everything but the matrix. */
static latent_status cross_make(cross *c, const lt_svm_rows *rows, const int32_t *labels) {
    latent_status status = LATENT_OK;
    size_t places = 0;
    LT_TRY(lt_svm_set_make(c->ctx, &c->engine, rows, labels, c->options, &c->set));
    size_t n = rows->n, pairs = (size_t)c->set.pairs;
    c->count = c->set.pairs * c->folds;
    LT_TRY(lt_calloc(c->ctx, n, 1, "folds", (void **)&c->fold));
    LT_TRY(lt_calloc(c->ctx, (size_t)c->count, sizeof *c->problems, "problems", (void **)&c->problems));
    LT_TRY(lt_calloc(c->ctx, (size_t)c->count, 1, "problems", (void **)&c->whole));
    LT_TRY(lt_calloc(c->ctx, (size_t)c->count, sizeof *c->solutions, "problems", (void **)&c->solutions));
    LT_TRY(lt_calloc(c->ctx, n, pairs * sizeof *c->decisions, "decision values", (void **)&c->decisions));
    LT_TRY(lt_calloc(c->ctx, 2 * (size_t)c->set.classes, sizeof *c->scratch, "votes", (void **)&c->scratch));
    lt_svm_folds(&c->set, c->folds, c->options->seed, c->fold);
    for (int i = 0; i < c->count; i++) {
        c->problems[i] = lt_svm_problem_make(&c->set, i % c->set.pairs, 1, i / c->set.pairs, places);
        c->whole[i] = (uint8_t)lt_svm_problem_whole(&c->problems[i], c->fold);
        c->problems[i].fold = c->whole[i] ? c->problems[i].fold : -1;
        places += lt_svm_problem_rows(&c->problems[i]);
    }
    LT_TRY(lt_calloc(c->ctx, places, sizeof *c->alpha, "alphas", (void **)&c->alpha));
done:
    return status;
}

/* Decision values of every row by the problems that did not see it. */
static latent_status decide(cross *c) {
    latent_status status = LATENT_OK;
    size_t n = c->set.rows.n, pairs = (size_t)c->set.pairs;
    int batch = SUMS_MAX / n > 0 ? (int)(SUMS_MAX / n) : 1;
    batch = batch < c->count ? batch : c->count;
    if (!c->sums) {
        LT_TRY(lt_calloc(c->ctx, (size_t)batch, n * sizeof *c->sums, "decision values", (void **)&c->sums));
    }
    for (int first = 0; first < c->count; first += batch) {
        int count = batch < c->count - first ? batch : c->count - first;
        lt_svm_sums_call call = {c->problems + first, count, c->alpha, c->fold, c->sums};
        LT_TRY(c->engine.ops->sums(c->ctx, c->engine.backend, c->matrix, &call));
        for (int p = 0; p < count; p++) {
            int fold = (first + p) / c->set.pairs, pair = (first + p) % c->set.pairs;
            for (size_t i = 0; c->whole[first + p] && i < n; i++) {
                if (c->fold[i] == (uint8_t)fold) {
                    c->decisions[i * pairs + (size_t)pair] =
                        c->sums[(size_t)p * n + i] - c->solutions[first + p].rho;
                }
            }
        }
    }
done:
    return status;
}

/* One point: solves, decides, votes. predictions are in the rows' own order, or NULL. */
static latent_status cross_point(cross *c, double value, int warm, int32_t *predictions, double *accuracy,
                                 uint64_t *iterations) {
    latent_status status = LATENT_OK;
    size_t right = 0, n = c->set.rows.n;
    lt_svm_reporter reporter = {c->options, LATENT_SVM_SOLVE, 0, 0, 0};
    for (int i = 0; i < c->count; i++) {
        lt_svm_problem p = lt_svm_problem_make(&c->set, i % c->set.pairs, value, 0, 0);
        memcpy(c->problems[i].c, p.c, sizeof p.c);
    }
    lt_svm_solve_call call = {
        .problems = c->problems,
        .count = c->count,
        .fold = c->fold,
        .tolerance = c->options->tolerance,
        .iterations_max = lt_svm_iterations_max(c->options, n),
        .warm = warm,
        .alpha = c->alpha,
        .solutions = c->solutions,
        .shrinking = c->options->shrinking != 0,
        .progress = {lt_svm_report_progress, &reporter},
    };
    LT_TRY(c->engine.ops->solve(c->ctx, c->engine.backend, c->matrix, &call));
    LT_TRY(decide(c));
    for (int k = 0; k < c->set.classes; k++) {
        for (uint32_t i = c->set.begin[k]; i < c->set.begin[k + 1]; i++) {
            int said = lt_svm_vote(c->set.classes, c->options->vote, c->decisions + i * (size_t)c->set.pairs,
                                   c->whole + (size_t)c->fold[i] * (size_t)c->set.pairs, c->scratch);
            right += said == k;
            if (predictions) {
                predictions[c->set.order[i]] = c->set.labels[said];
            }
        }
    }
    *accuracy = (double)right / (double)n;
    *iterations = 0;
    for (int i = 0; i < c->count; i++) {
        *iterations += c->solutions[i].iterations;
    }
done:
    return status;
}

typedef struct grid {
    const double *cs, *gammas;
    int c_count, gamma_count;
    latent_svm_point_fn each;
    void *user;
    latent_svm_point *points;
    int32_t *predictions;
} grid;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* The place of the smallest C above `above`; -1: none. */
static int next_c(const grid *g, double above) {
    int best = -1;
    for (int i = 0; i < g->c_count; i++) {
        if (g->cs[i] > above && (best < 0 || g->cs[i] < g->cs[best])) {
            best = i;
        }
    }
    return best;
}

static latent_status run_gamma(cross *c, const grid *g, int place, double gamma) {
    latent_status status = LATENT_OK;
    int warm = 0;
    for (int i = next_c(g, 0); i >= 0; i = next_c(g, g->cs[i]), warm = 1) {
        latent_svm_point *point = &g->points[place * g->c_count + i];
        double begun = now();
        point->c = g->cs[i];
        point->gamma = gamma;
        LT_TRY(cross_point(c, point->c, warm, g->predictions, &point->accuracy, &point->iterations));
        point->seconds = now() - begun;
        if (g->each) {
            g->each(g->user, point);
        }
    }
    /* A C that was given twice was computed once. */
    for (int i = 0; i < g->c_count; i++) {
        for (int j = 0; j < g->c_count; j++) {
            latent_svm_point *points = &g->points[place * g->c_count];
            if (points[i].c == 0 && g->cs[j] == g->cs[i] && points[j].c != 0) {
                points[i] = points[j];
            }
        }
    }
done:
    return status;
}

static latent_status run_grid(cross *c, const lt_svm_rows *rows, const int32_t *labels, const grid *g) {
    latent_status status = LATENT_OK;
    int places = g->gamma_count > 0 ? g->gamma_count : 1;
    LT_TRY(cross_make(c, rows, labels));
    for (int i = 0; i < c->set.pairs && g->gamma_count > 0; i++) {
        c->set.gamma[i] = g->gammas[0];
    }
    LT_TRY(lt_svm_matrix_make(c->ctx, &c->engine, &c->set, c->options, places > 1, &c->matrix));
    lt_svm_set_release(&c->set);
    for (int i = 0; i < places; i++) {
        double gamma = g->gamma_count > 0 ? g->gammas[i] : c->set.gamma[0];
        if (i > 0) {
            LT_TRY(c->engine.ops->matrix_gamma(c->ctx, c->engine.backend, c->matrix, gamma));
        }
        LT_TRY(run_gamma(c, g, i, c->options->kernel == LATENT_SVM_LINEAR ? 0 : gamma));
    }
done:
    return status;
}

static latent_status run_anywhere(latent_context *ctx, const lt_svm_rows *rows, const int32_t *labels,
                                  const latent_svm_options *options, int folds,
                                  const latent_engine_options *engine, const grid *g) {
    latent_status status = LATENT_OK;
    cross c = {.ctx = ctx, .options = options, .folds = folds};
    LT_TRY(lt_svm_options_check(ctx, options));
    LT_TRY(check_folds(ctx, folds, rows->n));
    if (options->gamma_per_pair) {
        status = lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                         "cross-validation and the grid use one gamma for all pairs, not one per pair");
        goto done;
    }
    LT_TRY(lt_svm_engine_open(ctx, engine, &c.engine));
    status = run_grid(&c, rows, labels, g);
    if (status == LATENT_ERROR_UNSUPPORTED) {
        cross_free(&c);
        LT_TRY(lt_svm_engine_to_host(ctx, engine, &c.engine));
        c.ctx = ctx;
        c.options = options;
        c.folds = folds;
        status = run_grid(&c, rows, labels, g);
    }
done:
    cross_free(&c);
    lt_svm_engine_close(&c.engine);
    return status;
}

latent_status latent_svm_cross_validate(latent_context *ctx, const float *x, size_t n, size_t d,
                                        const int32_t *labels, const latent_svm_options *options, int folds,
                                        const latent_engine_options *engine, int32_t *predictions,
                                        double *accuracy) {
    lt_svm_rows rows = {.x = x, .n = n, .d = d, .stride = d};
    latent_svm_point point = {0};
    grid g = {.cs = &options->c, .c_count = 1, .points = &point, .predictions = predictions};
    latent_status status = run_anywhere(ctx, &rows, labels, options, folds, engine, &g);
    *accuracy = point.accuracy;
    return status;
}

static int better(const latent_svm_point *a, const latent_svm_point *b) {
    if (a->accuracy != b->accuracy) {
        return a->accuracy > b->accuracy;
    }
    return a->c != b->c ? a->c < b->c : a->gamma < b->gamma;
}

static latent_status check_list(latent_context *ctx, const char *what, const double *values, int count) {
    for (int i = 0; i < count; i++) {
        if (!(values[i] > 0) || !isfinite(values[i])) {
            return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "%s is %g; it must be a number above 0", what,
                           values[i]);
        }
    }
    return LATENT_OK;
}

latent_status latent_svm_grid(latent_context *ctx, const float *x, size_t n, size_t d, const int32_t *labels,
                              const latent_svm_options *options, int folds, const double *cs, int c_count,
                              const double *gammas, int gamma_count, const latent_engine_options *engine,
                              latent_svm_point_fn each, void *user, latent_svm_point *points, int *best) {
    latent_status status = LATENT_OK;
    lt_svm_rows rows = {.x = x, .n = n, .d = d, .stride = d};
    grid g = {cs, gammas, c_count, gamma_count, each, user, points, NULL};
    int total = c_count * (gamma_count > 0 ? gamma_count : 1);
    latent_svm_options first = *options;
    *best = 0;
    if (c_count < 1 || gamma_count < 0 || (gamma_count > 0 && options->kernel == LATENT_SVM_LINEAR)) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "a grid needs at least one C, and gammas only for the RBF kernel");
    }
    LT_TRY(check_list(ctx, "C", cs, c_count));
    LT_TRY(check_list(ctx, "gamma", gammas, gamma_count));
    memset(points, 0, (size_t)total * sizeof *points);
    first.c = cs[0];
    if (gamma_count > 0) {
        first.gamma_rule = LATENT_GAMMA_VALUE;
        first.gamma = gammas[0];
    }
    LT_TRY(run_anywhere(ctx, &rows, labels, &first, folds, engine, &g));
    for (int i = 1; i < total; i++) {
        *best = better(&points[i], &points[*best]) ? i : *best;
    }
done:
    return status;
}
