/* test_svm_oracle.c: LIBSVM itself, linked in, as the judge of our solver, our decisions and our model files.
 *
 * On random sets of 2 to 10 classes with C from 0.01 to 1000: dual objectives within 1e-6 relative, biases
 * and decision values within five tolerances, labels the same wherever no decision value is within five
 * tolerances of 0 (those rows are counted and must be few); gap and objective recomputed in fp64 from the
 * model that was saved; and each program's model read by the other.
 */
#include "scratch.h"

#include "svm_sets.h"

#include <libsvm/svm.h>

typedef struct oracle {
    struct svm_node *nodes;
    struct svm_node **rows;
    double *labels;
    struct svm_problem problem;
    struct svm_parameter parameter;
    struct svm_model *model;
} oracle;

static void silence(const char *text) {
    (void)text;
}

static void oracle_rows(oracle *o, const float *x, size_t n, size_t d) {
    o->nodes = malloc(n * (d + 1) * sizeof *o->nodes);
    o->rows = malloc(n * sizeof *o->rows);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        o->rows[i] = o->nodes + at;
        for (size_t c = 0; c < d; c++) {
            if (x[i * d + c] != 0) {
                o->nodes[at].index = (int)c + 1;
                o->nodes[at++].value = x[i * d + c];
            }
        }
        o->nodes[at++].index = -1;
    }
}

static void oracle_free(oracle *o) {
    if (o->model) {
        svm_free_and_destroy_model(&o->model);
    }
    free(o->nodes);
    free(o->rows);
    free(o->labels);
}

static void oracle_train(oracle *o, const svm_set *s, const latent_svm_options *options, double gamma) {
    memset(o, 0, sizeof *o);
    svm_set_print_string_function(silence);
    oracle_rows(o, s->x, s->n, s->d);
    o->labels = malloc(s->n * sizeof *o->labels);
    for (size_t i = 0; i < s->n; i++) {
        o->labels[i] = s->labels[i];
    }
    o->problem = (struct svm_problem){(int)s->n, o->labels, o->rows};
    o->parameter = (struct svm_parameter){.svm_type = C_SVC,
                                          .kernel_type = options->kernel == LATENT_SVM_RBF ? RBF : LINEAR,
                                          .gamma = gamma,
                                          .cache_size = 200,
                                          .eps = options->tolerance,
                                          .C = options->c,
                                          .shrinking = 1,
                                          .probability = options->probability};
    int labels[16];
    double weights[16];
    for (int i = 0; i < options->weight_count; i++) {
        labels[i] = options->weights[i].label;
        weights[i] = options->weights[i].weight;
    }
    o->parameter.nr_weight = options->weight_count;
    o->parameter.weight_label = labels;
    o->parameter.weight = weights;
    assert_null(svm_check_parameter(&o->problem, &o->parameter));
    o->model = svm_train(&o->problem, &o->parameter);
    o->model->param.nr_weight = 0;
    o->model->param.weight_label = NULL;
    o->model->param.weight = NULL;
}

/* ---- the fp64 judge: objective and gap of a pair, from the rows and coefficients of a model ---- */

typedef struct judged {
    double objective, gap;
} judged;

static double kernel64(const latent_svm_info *info, const float *a, const float *b) {
    double dot = 0, squared = 0;
    for (size_t c = 0; c < info->d; c++) {
        double difference = (double)a[c] - (double)b[c];
        dot += (double)a[c] * (double)b[c];
        squared += difference * difference;
    }
    return info->kernel == LATENT_SVM_RBF ? exp(-info->gamma * squared) : dot;
}

/* alpha[n] of the rows of the two classes in training order; everything else in fp64 from the data. */
static judged judge(const svm_set *s, const latent_svm_info *info, int32_t first, int32_t second,
                    const double *alpha, double c0, double c1) {
    double rise = -INFINITY, fall = INFINITY, objective = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->labels[i] != first && s->labels[i] != second) {
            continue;
        }
        double y = s->labels[i] == first ? 1 : -1, sum = 0, c = y > 0 ? c0 : c1;
        for (size_t j = 0; j < s->n; j++) {
            if (alpha[j] > 0) {
                sum += (s->labels[j] == first ? 1 : -1) * alpha[j] *
                       kernel64(info, s->x + i * s->d, s->x + j * s->d);
            }
        }
        double f = y - sum;
        objective += alpha[i] * (y * sum / 2 - 1);
        rise = ((y > 0 ? alpha[i] < c : alpha[i] > 0) && f > rise) ? f : rise;
        fall = ((y > 0 ? alpha[i] > 0 : alpha[i] < c) && f < fall) ? f : fall;
    }
    return (judged){objective, rise - fall};
}

/* alpha of a pair in training order, out of a saved and loaded model: its vectors are matched to rows. */
static void alphas_of_saved(const svm_set *s, const latent_svm *svm, int a, int b, double *alpha) {
    size_t begin = 0;
    uint8_t *used = calloc(s->n, 1);
    memset(alpha, 0, s->n * sizeof *alpha);
    for (int c = 0; c < svm->classes; c++) {
        for (size_t v = begin; v < begin + svm->supports[c]; v++) {
            size_t i = 0;
            while (i < s->n &&
                   (used[i] || s->labels[i] != svm->labels[c] ||
                    memcmp(s->x + i * s->d, svm->vectors + v * s->d, s->d * sizeof(float)) != 0)) {
                i++;
            }
            assert_true(i < s->n);
            used[i] = 1;
            if (c == a) {
                alpha[i] = svm->coefficients[(size_t)(b - 1) * svm->support + v];
            } else if (c == b) {
                alpha[i] = -svm->coefficients[(size_t)a * svm->support + v];
            }
        }
        begin += svm->supports[c];
    }
    free(used);
}

static double weight_of(const latent_svm_options *options, int32_t label) {
    for (int i = 0; i < options->weight_count; i++) {
        if (options->weights[i].label == label) {
            return options->weights[i].weight;
        }
    }
    return 1;
}

static void alphas_of_oracle(const oracle *o, size_t n, int a, int b, double *alpha) {
    const struct svm_model *m = o->model;
    int at = 0;
    memset(alpha, 0, n * sizeof *alpha);
    for (int c = 0; c < m->nr_class; c++) {
        for (int v = at; v < at + m->nSV[c]; v++) {
            if (c == a) {
                alpha[m->sv_indices[v] - 1] = m->sv_coef[b - 1][v];
            } else if (c == b) {
                alpha[m->sv_indices[v] - 1] = -m->sv_coef[a][v];
            }
        }
        at += m->nSV[c];
    }
}

/* Each pair: objective against LIBSVM's, both recomputed in fp64; the gap of what was saved. */
static void compare_pairs(const svm_set *s, const latent_svm_options *options, const latent_svm *saved,
                          const latent_svm *trained, const oracle *o) {
    latent_svm_info info;
    double *alpha = malloc(s->n * sizeof *alpha);
    int pair = 0;
    latent_svm_get_info(saved, &info);
    for (int a = 0; a < info.classes; a++) {
        for (int b = a + 1; b < info.classes; b++, pair++) {
            double c0 = options->c * weight_of(options, info.labels[a]);
            double c1 = options->c * weight_of(options, info.labels[b]);
            latent_svm_pair reported;
            assert_int_equal(latent_svm_get_pair(trained, pair, &reported), 1);
            assert_int_equal(reported.converged, 1);
            alphas_of_saved(s, saved, a, b, alpha);
            judged ours = judge(s, &info, info.labels[a], info.labels[b], alpha, c0, c1);
            double total = 0;
            for (size_t i = 0; i < s->n; i++) {
                total += alpha[i];
            }
            alphas_of_oracle(o, s->n, a, b, alpha);
            judged theirs = judge(s, &info, info.labels[a], info.labels[b], alpha, c0, c1);
            /* A kernel value in fp32 is off by at most 4 roundings, which moves each f by as much per alpha.
             */
            double slack = 2 * 4 * 0x1p-24 * total;
            if (!(fabs(ours.objective - theirs.objective) <= 1e-6 * fabs(theirs.objective)) ||
                !(ours.gap < options->tolerance + slack) ||
                !(fabs(reported.objective - ours.objective) <= slack * total)) {
                fail_msg("pair %d: objective %.12g, LIBSVM's %.12g, reported %.12g; gap %g, LIBSVM's %g, "
                         "reported %g",
                         pair, ours.objective, theirs.objective, reported.objective, ours.gap, theirs.gap,
                         reported.gap);
            }
        }
    }
    free(alpha);
}

/* Decision values and labels of both on new rows. Returns how many rows are near ties. */
static size_t compare_decisions(scratch *s, const svm_set *test, const latent_svm_options *options,
                                latent_svm *svm, const oracle *o) {
    latent_svm_info info;
    latent_svm_get_info(svm, &info);
    size_t pairs = (size_t)info.pairs, ties = 0;
    double *decisions = malloc(test->n * pairs * sizeof *decisions);
    double *theirs = malloc(pairs * sizeof *theirs);
    int32_t *labels = malloc(test->n * sizeof *labels);
    oracle rows = {0};
    oracle_rows(&rows, test->x, test->n, test->d);
    assert_int_equal(latent_svm_predict(s->ctx, svm, test->x, test->n, test->d, labels, decisions, NULL),
                     LATENT_OK);
    for (int c = 0; c < info.classes; c++) {
        assert_int_equal(info.labels[c], o->model->label[c]);
    }
    for (size_t i = 0; i < test->n; i++) {
        int near = 0;
        double label = svm_predict_values(o->model, rows.rows[i], theirs);
        /* f is linear in the kernel's space; with RBF every row has length 1 there. */
        double length = fmax(1, sqrt(kernel64(&info, test->x + i * test->d, test->x + i * test->d)));
        for (size_t p = 0; p < pairs; p++) {
            double ours = decisions[i * pairs + p];
            if (!(fabs(ours - theirs[p]) <= 5 * options->tolerance * length)) {
                fail_msg("row %zu, pair %zu: decision %.9g, LIBSVM's %.9g", i, p, ours, theirs[p]);
            }
            near |= fabs(theirs[p]) < 5 * options->tolerance * length;
        }
        ties += (size_t)near;
        if (!near && labels[i] != (int32_t)label) {
            fail_msg("row %zu: label %d, LIBSVM's %g", i, labels[i], label);
        }
    }
    for (size_t p = 0; p < pairs; p++) {
        assert_true(fabs(info.rho[p] - o->model->rho[p]) <= 5 * options->tolerance);
    }
    oracle_free(&rows);
    free(decisions);
    free(theirs);
    free(labels);
    return ties;
}

/* Our text through LIBSVM's reader and predictor; LIBSVM's through ours. */
static void exchange_models(scratch *s, const svm_set *test, const latent_svm_options *options,
                            latent_svm *svm, oracle *o) {
    const char *ours = scratch_path(s, "ours.model"), *theirs = scratch_path(s, "theirs.model");
    int32_t *labels = malloc(test->n * sizeof *labels);
    latent_svm *read = NULL;
    oracle rows = {0};
    double values[64];
    latent_svm_info info;
    latent_svm_get_info(svm, &info);
    oracle_rows(&rows, test->x, test->n, test->d);
    assert_int_equal(latent_svm_save(s->ctx, svm, ours, LATENT_SVM_TEXT), LATENT_OK);
    struct svm_model *loaded = svm_load_model(ours);
    assert_non_null(loaded);
    assert_int_equal(svm_save_model(theirs, o->model), 0);
    assert_int_equal(latent_svm_load(s->ctx, theirs, SVM_HOST, &read), LATENT_OK);
    assert_int_equal(latent_svm_predict(s->ctx, svm, test->x, test->n, test->d, labels, NULL, NULL),
                     LATENT_OK);
    for (size_t i = 0; i < test->n; i++) {
        double label = svm_predict_values(loaded, rows.rows[i], values);
        int near = 0;
        for (int p = 0; p < info.pairs; p++) {
            near |= fabs(values[p]) < options->tolerance / 10;
        }
        assert_true(near || labels[i] == (int32_t)label);
    }
    assert_int_equal(latent_svm_predict(s->ctx, read, test->x, test->n, test->d, labels, NULL, NULL),
                     LATENT_OK);
    for (size_t i = 0; i < test->n; i++) {
        double label = svm_predict_values(o->model, rows.rows[i], values);
        int near = 0;
        for (int p = 0; p < info.pairs; p++) {
            near |= fabs(values[p]) < options->tolerance / 10;
        }
        assert_true(near || labels[i] == (int32_t)label);
    }
    svm_free_and_destroy_model(&loaded);
    latent_svm_destroy(read);
    oracle_free(&rows);
    free(labels);
}

/* Solutions of a tight tolerance: objectives and gaps. */
static void solve_against_libsvm(scratch *s, const svm_set *train, const latent_svm_options *options) {
    latent_svm_options tight = *options;
    latent_svm *svm = NULL, *saved = NULL;
    latent_svm_report report;
    oracle o;
    tight.tolerance = 1e-4;
    assert_int_equal(latent_svm_train(s->ctx, train->x, train->n, train->d, train->labels, &tight, SVM_HOST,
                                      &svm, &report),
                     LATENT_OK);
    const char *path = scratch_path(s, "tight.safetensors");
    assert_int_equal(latent_svm_save(s->ctx, svm, path, LATENT_SVM_SAFETENSORS), LATENT_OK);
    assert_int_equal(latent_svm_load(s->ctx, path, SVM_HOST, &saved), LATENT_OK);
    oracle_train(&o, train, &tight, report.gamma);
    compare_pairs(train, &tight, saved, svm, &o);
    oracle_free(&o);
    latent_svm_destroy(svm);
    latent_svm_destroy(saved);
}

static void against_libsvm(scratch *s, const svm_recipe *recipe, const latent_svm_options *options) {
    svm_set train = svm_make(recipe);
    svm_recipe other = *recipe;
    other.n = recipe->n / 2 + 10;
    other.seed = recipe->seed; /* the same clusters: they are drawn first */
    svm_set test = svm_make(&other);
    latent_svm *svm = NULL, *saved = NULL;
    latent_svm_report report;
    latent_svm_info info;
    oracle o;
    assert_int_equal(
        latent_svm_train(s->ctx, train.x, train.n, train.d, train.labels, options, SVM_HOST, &svm, &report),
        LATENT_OK);
    const char *path = scratch_path(s, "model.safetensors");
    assert_int_equal(latent_svm_save(s->ctx, svm, path, LATENT_SVM_SAFETENSORS), LATENT_OK);
    assert_int_equal(latent_svm_load(s->ctx, path, SVM_HOST, &saved), LATENT_OK);
    latent_svm_get_info(saved, &info);
    oracle_train(&o, &train, options, report.gamma);
    solve_against_libsvm(s, &train, options);
    size_t ties = compare_decisions(s, &test, options, saved, &o);
    /* A decision value lies within 0.005 of 0 for few rows: fewer than one in twenty per pair. */
    assert_true(ties <= 2 + test.n * (size_t)info.pairs / 20);
    exchange_models(s, &test, options, saved, &o);
    oracle_free(&o);
    latent_svm_destroy(svm);
    latent_svm_destroy(saved);
    svm_drop(&train);
    svm_drop(&test);
}

static void test_small_sets(void **state) {
    static const double cs[] = {0.01, 1, 30, 1000};
    uint64_t seed = 1;
    for (int classes = 2; classes <= 10; classes += 4) {
        for (size_t c = 0; c < sizeof cs / sizeof *cs; c++) {
            svm_recipe recipe = {.n = 200, .d = 12, .classes = classes, .overlap = 0.8, .seed = seed++};
            latent_svm_options options;
            latent_svm_defaults(&options);
            options.c = cs[c];
            against_libsvm(*state, &recipe, &options);
        }
    }
}

static void test_hard_sets(void **state) {
    static const svm_recipe recipes[] = {
        {.n = 300, .d = 5, .classes = 3, .unbalanced = 1, .overlap = 1, .seed = 50},
        {.n = 300, .d = 6, .classes = 4, .duplicates = 1, .overlap = 0.7, .seed = 51},
        {.n = 300, .d = 4, .classes = 2, .contradictory = 1, .overlap = 1, .seed = 52},
        {.n = 250, .d = 60, .classes = 10, .relu = 1, .overlap = 1.2, .seed = 53},
        {.n = 60, .d = 1, .classes = 2, .overlap = 0.5, .seed = 54},
    };
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        for (double c = 0.1; c < 200; c *= 30) {
            latent_svm_options options;
            latent_svm_defaults(&options);
            options.c = c;
            against_libsvm(*state, &recipes[i], &options);
        }
    }
}

/* More rows to a pair than are packed: on the matrix as it lies, and with working sets out of a cache. */
static void test_large_set(void **state) {
    svm_recipe recipe = {.n = 2600, .d = 8, .classes = 2, .overlap = 1.0, .seed = 60};
    for (double c = 0.5; c < 100; c *= 10) {
        latent_svm_options options;
        latent_svm_defaults(&options);
        options.c = c;
        against_libsvm(*state, &recipe, &options);
        options.cache_bytes = 10000000;
        against_libsvm(*state, &recipe, &options);
    }
}

static void test_weights_and_linear(void **state) {
    svm_recipe recipe = {.n = 240, .d = 9, .classes = 3, .unbalanced = 1, .overlap = 0.9, .seed = 70};
    const latent_svm_weight weights[] = {{svm_label(0), 0.25}, {svm_label(2), 8}};
    latent_svm_options options;
    latent_svm_defaults(&options);
    options.weights = weights;
    options.weight_count = 2;
    options.c = 3;
    against_libsvm(*state, &recipe, &options);
    options.kernel = LATENT_SVM_LINEAR;
    options.c = 0.5;
    against_libsvm(*state, &recipe, &options);
}

/* LIBSVM's probability model through us: the same columns, to the precision of its coupling. */
static void test_probabilities(void **state) {
    scratch *s = *state;
    svm_recipe recipe = {.n = 300, .d = 6, .classes = 3, .overlap = 1, .seed = 80};
    svm_set set = svm_make(&recipe);
    latent_svm_options options;
    latent_svm *svm = NULL, *read = NULL;
    oracle o, rows = {0};
    const char *path = scratch_path(s, "p.model"), *ours = scratch_path(s, "q.model");
    double *p = malloc(set.n * 3 * sizeof *p), *q = malloc(set.n * 3 * sizeof *q), theirs[3], far = 0;
    latent_svm_defaults(&options);
    options.probability = 1;
    options.c = 2;
    srand(1);
    oracle_train(&o, &set, &options, 0.1);
    assert_int_equal(svm_save_model(path, o.model), 0);
    assert_int_equal(latent_svm_load(s->ctx, path, SVM_HOST, &read), LATENT_OK);
    assert_int_equal(latent_svm_predict(s->ctx, read, set.x, set.n, set.d, NULL, NULL, p), LATENT_OK);
    options.gamma_rule = LATENT_GAMMA_VALUE;
    options.gamma = 0.1;
    assert_int_equal(
        latent_svm_train(s->ctx, set.x, set.n, set.d, set.labels, &options, SVM_HOST, &svm, NULL), LATENT_OK);
    assert_int_equal(latent_svm_predict(s->ctx, svm, set.x, set.n, set.d, NULL, NULL, q), LATENT_OK);
    assert_int_equal(latent_svm_save(s->ctx, svm, ours, LATENT_SVM_TEXT), LATENT_OK);
    struct svm_model *loaded = svm_load_model(ours);
    assert_non_null(loaded);
    assert_int_equal(svm_check_probability_model(loaded), 1);
    oracle_rows(&rows, set.x, set.n, set.d);
    for (size_t i = 0; i < set.n; i++) {
        svm_predict_probability(o.model, rows.rows[i], theirs);
        for (int c = 0; c < 3; c++) {
            assert_true(fabs(p[i * 3 + (size_t)c] - theirs[c]) < 2e-3);
            far = fmax(far, fabs(q[i * 3 + (size_t)c] - theirs[c]));
        }
        assert_true(fabs(q[i * 3] + q[i * 3 + 1] + q[i * 3 + 2] - 1) < 1e-9);
        svm_predict_probability(loaded, rows.rows[i], theirs);
        for (int c = 0; c < 3; c++) {
            assert_true(fabs(q[i * 3 + (size_t)c] - theirs[c]) < 2e-3);
        }
    }
    /* The folds differ, so the fits do; both estimate the same probabilities. */
    assert_true(far < 0.15);
    svm_free_and_destroy_model(&loaded);
    oracle_free(&o);
    oracle_free(&rows);
    latent_svm_destroy(svm);
    latent_svm_destroy(read);
    svm_drop(&set);
    free(p);
    free(q);
}

/* Labels -1 and +1: LIBSVM puts +1 first whatever came first. */
static void test_minus_and_plus(void **state) {
    scratch *s = *state;
    const float x[] = {0, 0.1f, 1, 1.2f, 0.2f, 0.9f};
    const int32_t labels[] = {-1, -1, 1, 1, -1, 1};
    svm_set set = {.n = 6, .d = 1, .x = (float *)x, .labels = (int32_t *)labels};
    latent_svm_options options;
    latent_svm *svm = NULL;
    latent_svm_info info;
    oracle o;
    latent_svm_defaults(&options);
    assert_int_equal(latent_svm_train(s->ctx, x, 6, 1, labels, &options, SVM_HOST, &svm, NULL), LATENT_OK);
    latent_svm_get_info(svm, &info);
    oracle_train(&o, &set, &options, info.gamma);
    assert_int_equal(info.labels[0], 1);
    assert_int_equal(o.model->label[0], 1);
    assert_true(fabs(info.rho[0] - o.model->rho[0]) < 5e-3);
    oracle_free(&o);
    latent_svm_destroy(svm);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_small_sets),    SCRATCH_TEST(test_hard_sets),
        SCRATCH_TEST(test_large_set),     SCRATCH_TEST(test_weights_and_linear),
        SCRATCH_TEST(test_probabilities), SCRATCH_TEST(test_minus_and_plus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
