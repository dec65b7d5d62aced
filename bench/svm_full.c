/* svm_full.c: the support vector machine at full size: 50,000 rows of 8,192 ReLU-like features in ten classes
 * that overlap, trained and asked about 10,000 more, on any backend, at every precision.
 *
 * The features are counted randomness, the same numbers everywhere: a row is a point around its class's
 * center in 48 dimensions, seen through 8,192 random half spaces. The rows lie in the backend's memory before
 * the clock starts. Each stage is timed and repeated; the bits of all repeats must agree.
 */
#include "base/parallel.h"
#include "base/rng.h"
#include "svm/host.h"
#include "svm/svm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LATENTS = 48, STAGES = 5, REPEATS_MAX = 16 };
static const char *const stage_names[STAGES] = {"statistics", "matrix", "solve", "machine", "predict"};
static const char *const precision_names[] = {"strict", "fast", "fp32"};

typedef struct arguments {
    size_t n, d, test;
    int classes, repeats;
    double c, tolerance, apart;
    const char *backend;
    int whole;
} arguments;

typedef struct job {
    arguments a;
    latent_context *ctx;
    lt_svm_engine engine;
    float *x; /* host [n + test][d] */
    int32_t *labels;
    lt_svm_rows train, test;
    void *memory;
} job;

/* What one precision gave. */
typedef struct result {
    double seconds[STAGES][REPEATS_MAX];
    double *alpha, *decisions;
    int32_t *predicted;
    size_t places, support, kept; /* kept: rows that support any pair */
    uint64_t iterations, longest;
    double gap, objective, accuracy;
    int unsolved, same, resident;
    double upload;
} result;

static void must(latent_context *ctx, latent_status status) {
    if (status != LATENT_OK) {
        fprintf(stderr, "svm_full: %s\n", latent_context_message(ctx));
        exit(1);
    }
}

static void *room(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory) {
        fprintf(stderr, "svm_full: no memory for %zu x %zu bytes\n", count, size);
        exit(1);
    }
    return memory;
}

/* ---- Features ---------------------------------------------------------------------------------- */

/* About normal, spread 1: the sum of four bytes. No logarithm: the same bits everywhere, and fast. */
static float normal(uint32_t bits) {
    int sum = (int)(bits & 255) + (int)(bits >> 8 & 255) + (int)(bits >> 16 & 255) + (int)(bits >> 24);
    return (float)(sum - 510) / 147.8f;
}

static void draw(uint64_t seed, uint64_t first, float *out, int count) {
    for (int i = 0; i < count; i += 4) {
        lt_random r = lt_philox(seed, LT_RNG_TEST, 21, first + (uint64_t)i);
        for (int k = 0; k < 4; k++) {
            out[i + k] = normal(r.v[k]);
        }
    }
}

static void make_row(const arguments *a, const float *eyes, size_t i, float *x, int32_t *label) {
    float at[LATENTS], center[LATENTS];
    int c = (int)(lt_philox(3, LT_RNG_TEST, 20, i).v[0] % (uint32_t)a->classes);
    *label = i < (size_t)a->classes ? (int32_t)i : c;
    draw(1, (uint64_t)*label * LATENTS, center, LATENTS);
    draw(2, (uint64_t)i * LATENTS, at, LATENTS);
    for (int k = 0; k < LATENTS; k++) {
        /* The dimensions shrink, as those of natural features do. */
        at[k] = (at[k] + (float)a->apart * center[k]) / (float)(1 + k / 6);
    }
    for (size_t f = 0; f < a->d; f++) {
        x[f] = -0.5f;
    }
    for (int k = 0; k < LATENTS; k++) { /* by features inside: the sums' order stays, and it is fast */
        const float *eye = eyes + (size_t)k * a->d;
        for (size_t f = 0; f < a->d; f++) {
            x[f] += eye[f] * at[k];
        }
    }
    for (size_t f = 0; f < a->d; f++) {
        x[f] = x[f] > 0 ? x[f] : 0;
    }
}

typedef struct making {
    job *j;
    const float *eyes;
} making;

static void make_rows(void *user, size_t first, size_t last) {
    const making *all = user;
    const arguments *a = &all->j->a;
    for (size_t i = first; i < last; i++) {
        make_row(a, all->eyes, i, all->j->x + i * a->d, &all->j->labels[i]);
    }
}

static void make_features(job *j) {
    const arguments *a = &j->a;
    size_t rows = a->n + a->test;
    float *eyes = room(a->d * LATENTS, sizeof *eyes);
    j->x = malloc(rows * a->d * sizeof *j->x);
    j->labels = room(rows, sizeof *j->labels);
    if (!j->x) {
        must(j->ctx, lt_fail(j->ctx, LATENT_ERROR_MEMORY, "no memory for %zu rows", rows));
    }
    for (size_t f = 0; f < a->d; f++) {
        float eye[LATENTS];
        draw(4, f * LATENTS, eye, LATENTS);
        for (int k = 0; k < LATENTS; k++) {
            eyes[(size_t)k * a->d + f] = eye[k];
        }
    }
    making all = {j, eyes};
    lt_parallel_ranges(rows, make_rows, &all);
    free(eyes);
}

/* ---- The stages -------------------------------------------------------------------------------- */

static void finish(job *j, double *clock, double *out) {
    must(j->ctx, j->engine.backend->type->synchronize(j->ctx, j->engine.backend));
    double now = lt_seconds();
    *out = now - *clock;
    *clock = now;
}

/* place[row] = 1 for every sorted row with an alpha above 0 in any pair. */
static void mark_support(const lt_svm_set *set, const lt_svm_problem *problems, const double *alpha,
                         uint32_t *place) {
    for (int p = 0; p < set->pairs; p++) {
        size_t at = problems[p].first;
        for (int k = 0; k < 2; k++) {
            for (uint32_t row = problems[p].begin[k]; row < problems[p].end[k]; row++, at++) {
                place[row] |= alpha[at] > 0;
            }
        }
    }
}

static void read_solutions(const job *j, const lt_svm_set *set, const lt_svm_problem *problems,
                           const lt_svm_solution *solutions, result *r) {
    uint32_t *kept = room(j->a.n, sizeof *kept);
    mark_support(set, problems, r->alpha, kept);
    r->iterations = r->longest = 0;
    r->unsolved = 0;
    r->support = r->kept = 0;
    r->gap = -INFINITY;
    r->objective = 0;
    for (int p = 0; p < set->pairs; p++) {
        const lt_svm_problem *q = &problems[p];
        size_t at = q->first;
        r->iterations += solutions[p].iterations;
        r->longest = solutions[p].iterations > r->longest ? solutions[p].iterations : r->longest;
        r->gap = solutions[p].gap > r->gap ? solutions[p].gap : r->gap;
        r->objective += solutions[p].objective;
        r->unsolved += solutions[p].outcome != LT_SVM_SOLVED;
        for (int k = 0; k < 2; k++) {
            for (uint32_t row = q->begin[k]; row < q->end[k]; row++, at++) {
                r->support += r->alpha[at] > 0;
            }
        }
    }
    for (size_t i = 0; i < j->a.n; i++) {
        r->kept += kept[i];
    }
    free(kept);
}

/* Vectors and coefficients of the model, straight from the sorted rows in backend memory. */
static void predict(job *j, const lt_svm_set *set, const lt_svm_problem *problems,
                    const lt_svm_solution *solutions, lt_svm_precision precision, result *r, double *clock,
                    double seconds[2]) {
    size_t pairs = (size_t)set->pairs, vectors = 0;
    uint32_t *place = room(j->a.n, sizeof *place), *order = room(j->a.n, sizeof *order);
    double *rho = room(pairs, sizeof *rho), *gamma = room(pairs, sizeof *gamma);
    mark_support(set, problems, r->alpha, place);
    for (size_t p = 0; p < pairs; p++) {
        rho[p] = solutions[p].rho;
        gamma[p] = set->gamma[p];
    }
    for (size_t i = 0; i < j->a.n; i++) {
        if (place[i]) {
            order[vectors] = set->order[i];
            place[i] = (uint32_t)vectors++;
        }
    }
    double *coefficients = room(pairs * vectors, sizeof *coefficients);
    for (size_t p = 0; p < pairs; p++) {
        size_t at = problems[p].first;
        for (int k = 0; k < 2; k++) {
            for (uint32_t row = problems[p].begin[k]; row < problems[p].end[k]; row++, at++) {
                if (r->alpha[at] > 0) {
                    coefficients[p * vectors + place[row]] = k ? -r->alpha[at] : r->alpha[at];
                }
            }
        }
    }
    lt_svm_machine_call call = {.vectors = j->train,
                                .order = order,
                                .mean = set->mean,
                                .kernel = LT_SVM_RBF,
                                .gamma = gamma,
                                .precision = precision,
                                .problems = set->pairs,
                                .coefficients = coefficients,
                                .rho = rho};
    lt_svm_machine *machine = NULL;
    call.vectors.n = vectors;
    *clock = lt_seconds();
    must(j->ctx, j->engine.ops->machine_create(j->ctx, j->engine.backend, &call, &machine));
    finish(j, clock, &seconds[0]);
    must(j->ctx, j->engine.ops->machine_decide(j->ctx, j->engine.backend, machine, &j->test, r->decisions));
    double *votes = room(2 * (size_t)set->classes, sizeof *votes);
    for (size_t i = 0; i < j->a.test; i++) {
        r->predicted[i] =
            set->labels[lt_svm_vote(set->classes, LATENT_VOTE_LIBSVM, r->decisions + i * pairs, NULL, votes)];
    }
    finish(j, clock, &seconds[1]);
    j->engine.ops->machine_free(j->engine.backend, machine);
    free(votes);
    free(coefficients);
    free(place);
    free(order);
    free(rho);
    free(gamma);
}

static void once(job *j, lt_svm_precision precision, int repeat, result *r) {
    latent_svm_options options;
    lt_svm_set set;
    lt_svm_matrix *matrix = NULL;
    lt_svm_matrix_info info;
    size_t places = 0;
    latent_svm_defaults(&options);
    options.c = j->a.c;
    options.tolerance = j->a.tolerance;
    options.precision = (latent_svm_precision)precision;
    double clock = lt_seconds(), seconds[STAGES];
    must(j->ctx, lt_svm_set_make(j->ctx, &j->engine, &j->train, j->labels, &options, &set));
    finish(j, &clock, &seconds[0]);
    must(j->ctx, lt_svm_matrix_make(j->ctx, &j->engine, &set, &options, 0, &matrix));
    finish(j, &clock, &seconds[1]);
    j->engine.ops->matrix_get_info(matrix, &info);
    lt_svm_problem *problems = room((size_t)set.pairs, sizeof *problems);
    lt_svm_solution *solutions = room((size_t)set.pairs, sizeof *solutions);
    for (int p = 0; p < set.pairs; p++) {
        problems[p] = lt_svm_problem_make(&set, p, options.c, -1, places);
        places += lt_svm_problem_rows(&problems[p]);
    }
    result now = {.alpha = room(places, sizeof(double)),
                  .decisions = room(j->a.test * (size_t)set.pairs, sizeof(double)),
                  .predicted = room(j->a.test, sizeof(int32_t)),
                  .places = places,
                  .resident = info.resident,
                  .upload = info.upload_seconds};
    lt_svm_solve_call call = {.problems = problems,
                              .count = set.pairs,
                              .tolerance = options.tolerance,
                              .iterations_max = lt_svm_iterations_max(&options, j->a.n),
                              .alpha = now.alpha,
                              .solutions = solutions};
    clock = lt_seconds();
    must(j->ctx, j->engine.ops->solve(j->ctx, j->engine.backend, matrix, &call));
    finish(j, &clock, &seconds[2]);
    j->engine.ops->matrix_free(j->engine.backend, matrix);
    read_solutions(j, &set, problems, solutions, &now);
    predict(j, &set, problems, solutions, precision, &now, &clock, seconds + 3);
    for (size_t i = 0; i < j->a.test; i++) {
        now.accuracy += (now.predicted[i] == j->labels[j->a.n + i]) / (double)j->a.test;
    }
    now.same = repeat == 0 ||
               (r->same && memcmp(r->alpha, now.alpha, places * sizeof(double)) == 0 &&
                memcmp(r->decisions, now.decisions, j->a.test * (size_t)set.pairs * sizeof(double)) == 0);
    memcpy(now.seconds, r->seconds, sizeof now.seconds);
    for (int s = 0; s < STAGES; s++) {
        now.seconds[s][repeat] = seconds[s];
    }
    free(r->alpha);
    free(r->decisions);
    free(r->predicted);
    *r = now;
    free(problems);
    free(solutions);
    lt_svm_set_free(&set);
}

/* ---- Report ------------------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The first is the warm-up, where there are more. */
static double median(const double *seconds, int repeats) {
    double sorted[REPEATS_MAX];
    int skipped = repeats > 1;
    memcpy(sorted, seconds + skipped, (size_t)(repeats - skipped) * sizeof *sorted);
    qsort(sorted, (size_t)(repeats - skipped), sizeof *sorted, by_value);
    return sorted[(repeats - skipped) / 2];
}

static void print_result(const job *j, int precision, const result *r) {
    double train = 0, first = 0;
    printf("%-7s", precision_names[precision]);
    for (int s = 0; s < STAGES; s++) {
        printf("  %s %.4f", stage_names[s], median(r->seconds[s], j->a.repeats));
        train += s < 3 ? median(r->seconds[s], j->a.repeats) : 0;
        first += r->seconds[s][0];
    }
    printf(
        "\n        train %.4f s (statistics, matrix, solve); first time, all stages, %.4f s; upload %.4f s\n",
        train, first, r->upload);
    printf("        iterations %llu, longest %llu, gap %.3g, objective %.9g, unsolved %d\n",
           (unsigned long long)r->iterations, (unsigned long long)r->longest, r->gap, r->objective,
           r->unsolved);
    printf("        vectors %zu (%zu over all pairs), accuracy %.2f%%, %s, same bits over %d runs: %s\n",
           r->kept, r->support, 100 * r->accuracy, r->resident ? "whole matrix" : "matrix in parts",
           j->a.repeats, r->same ? "yes" : "NO");
    fflush(stdout);
}

static void print_flips(const job *j, const result *results, int pairs) {
    for (int p = 1; p < 3; p++) {
        size_t flips = 0, count = j->a.test * (size_t)pairs;
        double worst = 0, sum = 0;
        for (size_t i = 0; i < j->a.test; i++) {
            flips += results[0].predicted[i] != results[p].predicted[i];
        }
        for (size_t i = 0; i < count; i++) {
            double away = fabs(results[0].decisions[i] - results[p].decisions[i]);
            worst = away > worst ? away : worst;
            sum += away;
        }
        printf(
            "strict against %s: %zu labels of %zu differ; decision values by %.2g at most, %.2g on average\n",
            precision_names[p], flips, j->a.test, worst, sum / (double)count);
    }
}

/* The way of the library: from rows to a model that owns its vectors, and labels. */
static void run_whole(job *j) {
    latent_svm_options options;
    latent_svm_report report;
    latent_svm *svm = NULL;
    latent_svm_defaults(&options);
    options.c = j->a.c;
    options.tolerance = j->a.tolerance;
    int32_t *labels = room(j->a.test, sizeof *labels);
    double begun = lt_seconds();
    must(j->ctx, lt_svm_train(j->ctx, &j->engine, &j->train, j->labels, &options, NULL, &svm, &report));
    double trained = lt_seconds();
    printf("library: train %.4f s (prepare %.4f, matrix %.4f, solve %.4f)", trained - begun,
           report.prepare_seconds, report.matrix_seconds, report.solve_seconds);
    for (int i = 0; i < 2; i++) {
        begun = lt_seconds();
        must(j->ctx,
             latent_svm_predict(j->ctx, svm, j->x + j->a.n * j->a.d, j->a.test, j->a.d, labels, NULL, NULL));
        printf(", predict %.4f s", lt_seconds() - begun);
    }
    printf(" (rows to predict from host memory)\n");
    free(labels);
    svm->engine.backend->type->free(svm->engine.backend, j->memory);
    latent_svm_destroy(svm); /* and the engine with it */
}

/* ---- Arguments --------------------------------------------------------------------------------- */

static int usage(const char *name) {
    fprintf(stderr,
            "usage: %s [--backend NAME] [--n ROWS] [--d FEATURES] [--test ROWS] [--classes N] [--c C]\n"
            "       [--tolerance T] [--apart X] [--repeats N] [--whole 0|1]\n",
            name);
    return 2;
}

static int parse(int argc, char **argv, arguments *a) {
    *a = (arguments){.n = 50000,
                     .d = 8192,
                     .test = 10000,
                     .classes = 10,
                     .repeats = 6,
                     .c = 10,
                     .tolerance = 1e-3,
                     .apart = 0.35,
                     .backend = "cuda",
                     .whole = 1};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (strcmp(name, "--backend") == 0) {
            a->backend = value;
        } else if (strcmp(name, "--n") == 0) {
            a->n = strtoull(value, NULL, 10);
        } else if (strcmp(name, "--d") == 0) {
            a->d = strtoull(value, NULL, 10);
        } else if (strcmp(name, "--test") == 0) {
            a->test = strtoull(value, NULL, 10);
        } else if (strcmp(name, "--classes") == 0) {
            a->classes = atoi(value);
        } else if (strcmp(name, "--c") == 0) {
            a->c = atof(value);
        } else if (strcmp(name, "--tolerance") == 0) {
            a->tolerance = atof(value);
        } else if (strcmp(name, "--apart") == 0) {
            a->apart = atof(value);
        } else if (strcmp(name, "--repeats") == 0) {
            a->repeats = atoi(value);
        } else if (strcmp(name, "--whole") == 0) {
            a->whole = atoi(value);
        } else {
            return 0;
        }
    }
    return argc % 2 == 1 && a->n > (size_t)a->classes && a->classes >= 2 && a->d > 0 && a->test > 0 &&
           a->repeats > 0 && a->repeats <= REPEATS_MAX;
}

int main(int argc, char **argv) {
    job j = {0};
    result results[3] = {0};
    int same = 1;
    if (!parse(argc, argv, &j.a)) {
        return usage(argv[0]);
    }
    must(NULL, latent_context_create(&j.ctx));
    latent_engine_options options = {.backend = j.a.backend};
    must(j.ctx, lt_svm_engine_open(j.ctx, &options, &j.engine));
    const lt_backend_type *type = j.engine.backend->type;
    double clock = lt_seconds(), made, uploaded;
    make_features(&j);
    finish(&j, &clock, &made);
    size_t bytes = (j.a.n + j.a.test) * j.a.d * sizeof(float);
    must(j.ctx, type->alloc(j.ctx, j.engine.backend, bytes, &j.memory));
    must(j.ctx, type->upload(j.ctx, j.engine.backend, j.memory, j.x, bytes));
    finish(&j, &clock, &uploaded);
    const float *there = j.memory;
    j.train = (lt_svm_rows){.x = there, .on_backend = 1, .n = j.a.n, .d = j.a.d, .stride = j.a.d};
    j.test = j.train;
    j.test.x = there + j.a.n * j.a.d;
    j.test.n = j.a.test;
    printf("%s\n%zu rows of %zu features, %d classes, C %g, tolerance %g; %zu rows to predict\n",
           j.engine.backend->engine, j.a.n, j.a.d, j.a.classes, j.a.c, j.a.tolerance, j.a.test);
    printf(
        "features made in %.2f s, uploaded in %.3f s (%.1f GB); seconds are medians after the first of %d\n",
        made, uploaded, (double)bytes / 1e9, j.a.repeats);
    for (int p = 0; p < 3; p++) {
        for (int repeat = 0; repeat < j.a.repeats; repeat++) {
            once(&j, (lt_svm_precision)p, repeat, &results[p]);
        }
        print_result(&j, p, &results[p]);
        same = same && results[p].same && results[p].unsolved == 0;
    }
    print_flips(&j, results, j.a.classes * (j.a.classes - 1) / 2);
    lt_backend *backend = j.engine.backend;
    if (j.a.whole) {
        run_whole(&j);
    } else {
        type->free(backend, j.memory);
        lt_svm_engine_close(&j.engine);
    }
    for (int p = 0; p < 3; p++) {
        free(results[p].alpha);
        free(results[p].decisions);
        free(results[p].predicted);
    }
    free(j.x);
    free(j.labels);
    latent_context_destroy(j.ctx);
    return same ? 0 : 1;
}
