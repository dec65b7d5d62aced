/* train.c: from rows and labels to a model.
 *
 * One kernel matrix serves all pairs of classes, and the folds from which probabilities are fitted are masks
 * on it. Only where every pair has a gamma of its own are the pairs solved one after another, each after one
 * pass over the squared distances.
 */
#include "svm/svm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PLATT_FOLDS = 5 };

/* The solver stops a little under the tolerance asked for: kernel values are fp32, and the gap that anyone
 * computes from the model in fp64 should be under it as well. */
static const double margin = 0.98;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void training_free(lt_svm_training *t) {
    if (t->matrix) {
        t->engine->ops->matrix_free(t->engine->backend, t->matrix);
    }
    lt_svm_set_free(&t->set);
    free(t->problems);
    free(t->solutions);
    free(t->alpha);
    free(t->prob_a);
    free(t->prob_b);
}

static latent_status make_problems(lt_svm_training *t) {
    latent_status status = LATENT_OK;
    size_t pairs = (size_t)t->set.pairs;
    LT_TRY(lt_calloc(t->ctx, pairs, sizeof *t->problems, "problems", (void **)&t->problems));
    LT_TRY(lt_calloc(t->ctx, pairs, sizeof *t->solutions, "problems", (void **)&t->solutions));
    for (int p = 0; p < t->set.pairs; p++) {
        t->problems[p] = lt_svm_problem_make(&t->set, p, t->options->c, -1, t->places);
        t->places += lt_svm_problem_rows(&t->problems[p]);
    }
    LT_TRY(lt_calloc(t->ctx, t->places, sizeof *t->alpha, "alphas", (void **)&t->alpha));
    if (t->options->probability) {
        LT_TRY(lt_calloc(t->ctx, pairs, sizeof(double), "probabilities", (void **)&t->prob_a));
        LT_TRY(lt_calloc(t->ctx, pairs, sizeof(double), "probabilities", (void **)&t->prob_b));
    }
done:
    return status;
}

/* Pairs [first, last), all with the matrix as it is. */
static latent_status solve_pairs(lt_svm_training *t, int first, int last) {
    double begun = now();
    lt_svm_reporter reporter = {t->options, LATENT_SVM_SOLVE, t->info.bytes, (uint64_t)first,
                                (uint64_t)t->set.pairs * (t->options->probability ? 1 + PLATT_FOLDS : 1)};
    reporter.before *= t->options->probability ? 1 + PLATT_FOLDS : 1;
    lt_svm_solve_call call = {
        .problems = t->problems + first,
        .count = last - first,
        .tolerance = margin * t->options->tolerance,
        .iterations_max = lt_svm_iterations_max(t->options, t->set.rows.n),
        .alpha = t->alpha,
        .solutions = t->solutions + first,
        .shrinking = t->options->shrinking != 0,
        .progress = {lt_svm_report_progress, &reporter},
    };
    latent_status status = t->engine->ops->solve(t->ctx, t->engine->backend, t->matrix, &call);
    t->solve_seconds += now() - begun;
    return status;
}

/* A class is wholly in the fold: the other one, when it has rows left, is the answer to everything. */
static double only_class(const lt_svm_problem *p, const uint8_t *fold, uint8_t left_out) {
    size_t left[2] = {0, 0};
    for (int k = 0; k < 2; k++) {
        for (uint32_t r = p->begin[k]; r < p->end[k]; r++) {
            left[k] += fold[r] != left_out;
        }
    }
    return left[0] > 0 ? 1 : left[1] > 0 ? -1 : 0;
}

/* Decision values of a pair's rows, each by the problem that did not see its fold; then the sigmoid. */
static void fit_pair(lt_svm_training *t, int pair, const uint8_t *fold, const lt_svm_problem *problems,
                     const lt_svm_solution *solutions, const double *gradient, double *decision, double *y) {
    const lt_svm_problem *whole = &t->problems[pair];
    size_t n0 = whole->end[0] - whole->begin[0], n = lt_svm_problem_rows(whole);
    for (size_t i = 0; i < n; i++) {
        size_t row = i < n0 ? whole->begin[0] + i : whole->begin[1] + i - n0;
        const lt_svm_problem *p = &problems[fold[row]];
        y[i] = i < n0 ? 1 : -1;
        if (p->fold >= 0) {
            /* G = y * sum - 1 */
            decision[i] = y[i] * (gradient[p->first + i] + 1) - solutions[fold[row]].rho;
        } else {
            decision[i] = only_class(whole, fold, fold[row]);
        }
    }
    lt_platt_fit(n, decision, y, &t->prob_a[pair], &t->prob_b[pair]);
}

static latent_status fit_probabilities(lt_svm_training *t, int first, int last) {
    latent_status status = LATENT_OK;
    int count = (last - first) * PLATT_FOLDS;
    double begun = now(), *alpha = NULL, *gradient = NULL, *decision = NULL;
    uint8_t *fold = NULL;
    lt_svm_problem *problems = NULL;
    lt_svm_solution *solutions = NULL;
    size_t places = 0, n = t->set.rows.n;
    lt_svm_reporter reporter = {t->options, LATENT_SVM_SOLVE, t->info.bytes, 0,
                                (uint64_t)t->set.pairs * (1 + PLATT_FOLDS)};
    reporter.before = (uint64_t)first * (1 + PLATT_FOLDS) + (uint64_t)(last - first);
    LT_TRY(lt_calloc(t->ctx, n, 1, "folds", (void **)&fold));
    LT_TRY(lt_calloc(t->ctx, (size_t)count, sizeof *problems, "problems", (void **)&problems));
    LT_TRY(lt_calloc(t->ctx, (size_t)count, sizeof *solutions, "problems", (void **)&solutions));
    lt_svm_folds(&t->set, PLATT_FOLDS, t->options->seed, fold);
    for (int i = 0; i < count; i++) {
        problems[i] =
            lt_svm_problem_make(&t->set, first + i / PLATT_FOLDS, t->options->c, i % PLATT_FOLDS, places);
        /* Without the fold one class would be empty: solved as it is, and not used. */
        problems[i].fold = lt_svm_problem_whole(&problems[i], fold) ? problems[i].fold : -1;
        places += lt_svm_problem_rows(&problems[i]);
    }
    LT_TRY(lt_calloc(t->ctx, places, sizeof *alpha, "alphas", (void **)&alpha));
    LT_TRY(lt_calloc(t->ctx, places, sizeof *gradient, "gradients", (void **)&gradient));
    LT_TRY(lt_calloc(t->ctx, 2 * n, sizeof *decision, "decision values", (void **)&decision));
    lt_svm_solve_call call = {
        .problems = problems,
        .count = count,
        .fold = fold,
        .tolerance = margin * t->options->tolerance,
        .iterations_max = lt_svm_iterations_max(t->options, n),
        .alpha = alpha,
        .gradient = gradient,
        .solutions = solutions,
        .shrinking = t->options->shrinking != 0,
        .progress = {lt_svm_report_progress, &reporter},
    };
    LT_TRY(t->engine->ops->solve(t->ctx, t->engine->backend, t->matrix, &call));
    for (int p = first; p < last; p++) {
        size_t at = (size_t)(p - first) * PLATT_FOLDS;
        fit_pair(t, p, fold, problems + at, solutions + at, gradient, decision, decision + n);
    }
done:
    t->probability_seconds += now() - begun;
    free(alpha);
    free(gradient);
    free(decision);
    free(fold);
    free(problems);
    free(solutions);
    return status;
}

static latent_status solve_all(lt_svm_training *t) {
    latent_status status = LATENT_OK;
    int step = t->options->gamma_per_pair ? 1 : t->set.pairs;
    LT_TRY(
        lt_svm_matrix_make(t->ctx, t->engine, &t->set, t->options, t->options->gamma_per_pair, &t->matrix));
    t->engine->ops->matrix_get_info(t->matrix, &t->info);
    for (int first = 0; first < t->set.pairs; first += step) {
        if (first > 0) {
            LT_TRY(t->engine->ops->matrix_gamma(t->ctx, t->engine->backend, t->matrix, t->set.gamma[first]));
        }
        LT_TRY(solve_pairs(t, first, first + step));
        if (t->options->probability) {
            LT_TRY(fit_probabilities(t, first, first + step));
        }
    }
done:
    return status;
}

static void fill_report(const lt_svm_training *t, const latent_svm *svm, double seconds,
                        latent_svm_report *report) {
    memset(report, 0, sizeof *report);
    snprintf(report->engine, sizeof report->engine, "%s", t->engine->backend->engine);
    report->n = t->set.rows.n;
    report->d = t->set.rows.d;
    report->classes = svm->classes;
    report->pairs = svm->pairs;
    report->gamma = svm->kernel == LATENT_SVM_RBF ? svm->gamma[0] : 0;
    report->support = svm->support;
    report->memory = t->info.bytes;
    report->resident = t->info.resident;
    report->seconds = seconds;
    report->prepare_seconds = t->prepare_seconds;
    report->matrix_seconds = t->info.seconds;
    report->solve_seconds = t->solve_seconds;
    report->probability_seconds = t->probability_seconds;
    for (int p = 0; p < svm->pairs; p++) {
        report->iterations += svm->pair[p].iterations;
        report->objective += svm->pair[p].objective;
        report->unconverged += !svm->pair[p].converged;
        report->gap = p == 0 || svm->pair[p].gap > report->gap ? svm->pair[p].gap : report->gap;
    }
}

/* One attempt on one engine. */
static latent_status train_on(latent_context *ctx, const lt_svm_engine *engine, const lt_svm_rows *rows,
                              const int32_t *labels, const latent_svm_options *options, latent_svm **out,
                              latent_svm_report *report) {
    latent_status status = LATENT_OK;
    lt_svm_training t = {.ctx = ctx, .engine = engine, .options = options};
    double begun = now();
    LT_TRY(lt_svm_set_make(ctx, engine, rows, labels, options, &t.set));
    LT_TRY(make_problems(&t));
    t.prepare_seconds = now() - begun;
    LT_TRY(solve_all(&t));
    engine->ops->matrix_free(engine->backend, t.matrix); /* its memory may be the machine's */
    t.matrix = NULL;
    LT_TRY(lt_svm_model_build(&t, out));
    if (report) {
        fill_report(&t, *out, now() - begun, report);
    }
done:
    training_free(&t);
    return status;
}

latent_status lt_svm_train(latent_context *ctx, lt_svm_engine *engine, const lt_svm_rows *rows,
                           const int32_t *labels, const latent_svm_options *options,
                           const latent_engine_options *engine_options, latent_svm **out,
                           latent_svm_report *report) {
    *out = NULL;
    latent_status status = train_on(ctx, engine, rows, labels, options, out, report);
    if (status == LATENT_ERROR_UNSUPPORTED && !rows->on_backend &&
        lt_svm_engine_to_host(ctx, engine_options, engine) == LATENT_OK) {
        status = train_on(ctx, engine, rows, labels, options, out, report);
    }
    if (status == LATENT_OK) {
        (*out)->engine = *engine;
        (*out)->engine_options.threads = engine_options ? engine_options->threads : 0;
        memset(engine, 0, sizeof *engine);
    }
    return status;
}

latent_status latent_svm_train(latent_context *ctx, const float *x, size_t n, size_t d, const int32_t *labels,
                               const latent_svm_options *options, const latent_engine_options *engine,
                               latent_svm **out, latent_svm_report *report) {
    latent_status status = LATENT_OK;
    lt_svm_engine opened = {0};
    lt_svm_rows rows = {.x = x, .n = n, .d = d, .stride = d};
    *out = NULL;
    LT_TRY(lt_svm_options_check(ctx, options));
    LT_TRY(lt_svm_engine_open(ctx, engine, &opened));
    LT_TRY(lt_svm_train(ctx, &opened, &rows, labels, options, engine, out, report));
done:
    lt_svm_engine_close(&opened);
    return status;
}
