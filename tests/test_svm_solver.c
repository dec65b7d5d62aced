/* test_svm_solver.c: what must not depend on how the work is done: threads, cache, shrinking, warm starts,
 * folds as masks. And the small parts by hand: matrix products, votes, sigmoids, coupling.
 */
#include "scratch.h"

#include "svm/host.h"
#include "svm_sets.h"

static latent_svm *train_on(scratch *s, const svm_set *set, const latent_svm_options *options,
                            const char *backend, int threads, latent_svm_report *report) {
    latent_engine_options engine = *SVM_HOST;
    latent_svm *svm = NULL;
    engine.backend = backend ? backend : engine.backend;
    engine.threads = threads;
    assert_int_equal(
        latent_svm_train(s->ctx, set->x, set->n, set->d, set->labels, options, &engine, &svm, report),
        LATENT_OK);
    return svm;
}

static void assert_same_bits(const latent_svm *a, const latent_svm *b) {
    size_t pairs = (size_t)a->pairs;
    assert_int_equal(a->support, b->support);
    assert_memory_equal(a->vectors, b->vectors, a->support * a->d * sizeof *a->vectors);
    assert_memory_equal(a->coefficients, b->coefficients,
                        (size_t)(a->classes - 1) * a->support * sizeof(double));
    assert_memory_equal(a->rho, b->rho, pairs * sizeof(double));
    if (a->prob_a) {
        assert_memory_equal(a->prob_a, b->prob_a, pairs * sizeof(double));
        assert_memory_equal(a->prob_b, b->prob_b, pairs * sizeof(double));
    }
}

static int has_cpu(void) {
    latent_backend_info info;
    for (int i = 0; latent_backend_get_info(i, &info); i++) {
        if (strcmp(info.name, "cpu") == 0 && info.available) {
            return 1;
        }
    }
    return 0;
}

/* ---- the same bits ---- */

static void test_threads(void **state) {
    scratch *s = *state;
    if (!has_cpu()) {
        skip();
    }
    const svm_recipe recipes[] = {
        {.n = 500, .d = 40, .classes = 5, .overlap = 1, .relu = 1, .seed = 1},
        {.n = 2300, .d = 10, .classes = 2, .overlap = 1, .seed = 2},
    };
    /* Packed kernels, rows of a whole matrix, and working sets out of a cache. */
    for (int i = 0; i < 3; i++) {
        svm_set set = svm_make(&recipes[i > 0]);
        latent_svm_options options;
        latent_svm_report report;
        latent_svm_defaults(&options);
        options.c = 10;
        options.probability = i == 0;
        options.cache_bytes = i == 2 ? 10000000 : 0;
        latent_svm *first = train_on(s, &set, &options, "cpu", 1, &report);
        for (int threads = 1; threads <= 3; threads++) {
            latent_svm *again = train_on(s, &set, &options, "cpu", threads, &report);
            assert_same_bits(first, again);
            size_t values = set.n * (size_t)first->pairs;
            double *a = malloc(values * sizeof *a), *b = malloc(values * sizeof *b);
            assert_int_equal(latent_svm_predict(s->ctx, first, set.x, set.n, set.d, NULL, a, NULL),
                             LATENT_OK);
            assert_int_equal(latent_svm_predict(s->ctx, again, set.x, set.n, set.d, NULL, b, NULL),
                             LATENT_OK);
            assert_memory_equal(a, b, values * sizeof *a);
            free(a);
            free(b);
            latent_svm_destroy(again);
        }
        latent_svm_destroy(first);
        svm_drop(&set);
    }
}

/* A cache for part of the matrix: kernel values are the same, and so is everything made of them. */
static void test_tiles(void **state) {
    scratch *s = *state;
    svm_recipe recipe = {.n = 1500, .d = 6, .classes = 3, .unbalanced = 1, .overlap = 1, .seed = 3};
    svm_set set = svm_make(&recipe);
    latent_svm_options options;
    latent_svm_report report;
    latent_svm_defaults(&options);
    options.c = 5;
    options.probability = 1;
    latent_svm *whole = train_on(s, &set, &options, NULL, 0, &report);
    assert_int_equal(report.resident, 1);
    const uint64_t caches[] = {140000, 1000000, 7000000};
    for (int i = 0; i < 3; i++) {
        options.cache_bytes = caches[i];
        latent_svm *tiled = train_on(s, &set, &options, NULL, 0, &report);
        assert_int_equal(report.resident, 0);
        assert_true(report.memory <= caches[i]);
        assert_same_bits(whole, tiled);
        latent_svm_destroy(tiled);
    }
    latent_svm_destroy(whole);
    svm_drop(&set);
}

/* The two-level way with working sets that a small cache cuts down: another path to the same optimum. */
static void test_small_working_sets(void **state) {
    scratch *s = *state;
    svm_recipe recipe = {.n = 2500, .d = 4, .classes = 2, .overlap = 1, .seed = 4};
    svm_set set = svm_make(&recipe);
    latent_svm_options options;
    latent_svm_report whole, tiled;
    latent_svm_defaults(&options);
    options.c = 2;
    options.tolerance = 1e-4;
    latent_svm_destroy(train_on(s, &set, &options, NULL, 0, &whole));
    options.cache_bytes = 300000;
    latent_svm_destroy(train_on(s, &set, &options, NULL, 0, &tiled));
    assert_int_equal(tiled.resident, 0);
    assert_int_equal(tiled.unconverged, 0);
    assert_true(fabs(whole.objective - tiled.objective) < 1e-6 * fabs(whole.objective));
    svm_drop(&set);
}

/* A large C and many steps: rows are dropped and come back; the optimum is the same. */
static void test_shrinking(void **state) {
    scratch *s = *state;
    svm_recipe recipe = {.n = 900, .d = 3, .classes = 2, .overlap = 1.3, .seed = 5};
    svm_set set = svm_make(&recipe);
    latent_svm_options options;
    latent_svm_report with, without;
    latent_svm_defaults(&options);
    options.c = 100;
    options.tolerance = 1e-5;
    latent_svm_destroy(train_on(s, &set, &options, NULL, 0, &with));
    options.shrinking = 0;
    latent_svm_destroy(train_on(s, &set, &options, NULL, 0, &without));
    assert_true(with.iterations > 5000); /* shrinking had its chances */
    assert_int_equal(with.unconverged, 0);
    assert_true(fabs(with.objective - without.objective) < 1e-7 * fabs(without.objective));
    svm_drop(&set);
}

/* ---- folds and the grid ---- */

/* Cross-validation by masks against training on the other folds' rows. */
static void test_cross_validation(void **state) {
    scratch *s = *state;
    svm_recipe recipe = {.n = 300, .d = 5, .classes = 4, .overlap = 0.9, .seed = 6};
    svm_set set = svm_make(&recipe);
    latent_svm_options options;
    lt_svm_engine engine;
    lt_svm_set prepared;
    lt_svm_rows rows = {.x = set.x, .n = set.n, .d = set.d, .stride = set.d};
    int32_t predictions[300], again[300], said[300];
    uint8_t fold[300];
    double accuracy, second;
    latent_svm_defaults(&options);
    options.gamma_rule = LATENT_GAMMA_VALUE;
    options.gamma = 0.2;
    options.tolerance = 1e-5;
    assert_int_equal(latent_svm_cross_validate(s->ctx, set.x, set.n, set.d, set.labels, &options, 4, SVM_HOST,
                                               predictions, &accuracy),
                     LATENT_OK);
    assert_int_equal(latent_svm_cross_validate(s->ctx, set.x, set.n, set.d, set.labels, &options, 4, SVM_HOST,
                                               again, &second),
                     LATENT_OK);
    assert_memory_equal(predictions, again, sizeof again);
    assert_int_equal(lt_svm_engine_open(s->ctx, SVM_HOST, &engine), LATENT_OK);
    assert_int_equal(lt_svm_set_make(s->ctx, &engine, &rows, set.labels, &options, &prepared), LATENT_OK);
    lt_svm_folds(&prepared, 4, options.seed, fold);
    size_t right = 0, different = 0, sizes[4] = {0};
    for (int k = 0; k < 4; k++) {
        svm_set part = svm_make(&recipe);
        latent_svm *svm = NULL;
        part.n = 0;
        for (uint32_t i = 0; i < set.n; i++) {
            if (fold[i] != k) {
                memcpy(part.x + part.n * set.d, set.x + prepared.order[i] * set.d, set.d * sizeof(float));
                part.labels[part.n++] = set.labels[prepared.order[i]];
            }
        }
        assert_int_equal(
            latent_svm_train(s->ctx, part.x, part.n, part.d, part.labels, &options, SVM_HOST, &svm, NULL),
            LATENT_OK);
        assert_int_equal(latent_svm_predict(s->ctx, svm, set.x, set.n, set.d, said, NULL, NULL), LATENT_OK);
        for (uint32_t i = 0; i < set.n; i++) {
            uint32_t row = prepared.order[i];
            if (fold[i] == k) {
                sizes[k]++;
                right += predictions[row] == set.labels[row];
                different += said[row] != predictions[row];
            }
        }
        latent_svm_destroy(svm);
        svm_drop(&part);
    }
    assert_true(accuracy == (double)right / (double)set.n && accuracy > 0.5);
    assert_int_equal(different, 0);
    for (int k = 0; k < 4; k++) {
        assert_true(sizes[k] >= 70 && sizes[k] <= 80);
    }
    lt_svm_set_free(&prepared);
    lt_svm_engine_close(&engine);
    svm_drop(&set);
}

static void count_point(void *user, const latent_svm_point *point) {
    assert_true(point->c > 0 && point->gamma > 0);
    (*(int *)user)++;
}

/* Each point of the grid against a cross-validation of its own. */
static void test_grid(void **state) {
    scratch *s = *state;
    svm_recipe recipe = {.n = 240, .d = 4, .classes = 3, .overlap = 1, .seed = 7};
    svm_set set = svm_make(&recipe);
    const double cs[] = {10, 0.1, 1}, gammas[] = {0.05, 0.5};
    latent_svm_point points[6];
    latent_svm_options options;
    int best = -1, called = 0;
    latent_svm_defaults(&options);
    options.tolerance = 1e-4;
    assert_int_equal(latent_svm_grid(s->ctx, set.x, set.n, set.d, set.labels, &options, 5, cs, 3, gammas, 2,
                                     SVM_HOST, count_point, &called, points, &best),
                     LATENT_OK);
    assert_int_equal(called, 6);
    for (int i = 0; i < 6; i++) {
        double accuracy;
        options.c = cs[i % 3];
        options.gamma_rule = LATENT_GAMMA_VALUE;
        options.gamma = gammas[i / 3];
        assert_true(points[i].c == options.c && points[i].gamma == options.gamma);
        assert_int_equal(latent_svm_cross_validate(s->ctx, set.x, set.n, set.d, set.labels, &options, 5,
                                                   SVM_HOST, NULL, &accuracy),
                         LATENT_OK);
        assert_true(points[i].accuracy == accuracy);
        assert_true(points[i].accuracy <= points[best].accuracy);
    }
    /* Tiles instead of a matrix and its distances: the same table. */
    latent_svm_point tiled[6];
    int place = -1;
    options.cache_bytes = 100000;
    options.gamma_rule = LATENT_GAMMA_SCALE;
    assert_int_equal(latent_svm_grid(s->ctx, set.x, set.n, set.d, set.labels, &options, 5, cs, 3, gammas, 2,
                                     SVM_HOST, NULL, NULL, tiled, &place),
                     LATENT_OK);
    assert_int_equal(place, best);
    for (int i = 0; i < 6; i++) {
        assert_true(tiled[i].accuracy == points[i].accuracy);
    }
    svm_drop(&set);
}

/* A larger C from the solution of a smaller one: the same optimum in fewer steps. */
static void test_warm_start(void **state) {
    scratch *s = *state;
    svm_recipe recipe = {.n = 400, .d = 4, .classes = 2, .overlap = 1.2, .seed = 8};
    svm_set set = svm_make(&recipe);
    latent_svm_options options;
    lt_svm_engine engine;
    lt_svm_set prepared;
    lt_svm_matrix *matrix = NULL;
    lt_svm_rows rows = {.x = set.x, .n = set.n, .d = set.d, .stride = set.d};
    double *alpha = calloc(set.n, sizeof *alpha), *cold = calloc(set.n, sizeof *cold);
    lt_svm_solution solutions[3];
    latent_svm_defaults(&options);
    assert_int_equal(lt_svm_engine_open(s->ctx, SVM_HOST, &engine), LATENT_OK);
    assert_int_equal(lt_svm_set_make(s->ctx, &engine, &rows, set.labels, &options, &prepared), LATENT_OK);
    assert_int_equal(lt_svm_matrix_make(s->ctx, &engine, &prepared, &options, 0, &matrix), LATENT_OK);
    lt_svm_problem small = lt_svm_problem_make(&prepared, 0, 5, -1, 0);
    lt_svm_problem large = lt_svm_problem_make(&prepared, 0, 10, -1, 0);
    lt_svm_solve_call call = {.problems = &small,
                              .count = 1,
                              .tolerance = 1e-5,
                              .iterations_max = 1000000,
                              .alpha = alpha,
                              .solutions = &solutions[0]};
    assert_int_equal(engine.ops->solve(s->ctx, engine.backend, matrix, &call), LATENT_OK);
    call.problems = &large;
    call.warm = 1;
    call.solutions = &solutions[1];
    assert_int_equal(engine.ops->solve(s->ctx, engine.backend, matrix, &call), LATENT_OK);
    call.warm = 0;
    call.alpha = cold;
    call.solutions = &solutions[2];
    assert_int_equal(engine.ops->solve(s->ctx, engine.backend, matrix, &call), LATENT_OK);
    assert_true(fabs(solutions[1].objective - solutions[2].objective) < 1e-8 * fabs(solutions[2].objective));
    assert_true(solutions[1].iterations < solutions[2].iterations);
    assert_true(solutions[1].outcome == LT_SVM_SOLVED && solutions[1].gap < 1e-5);
    engine.ops->matrix_free(engine.backend, matrix);
    lt_svm_set_free(&prepared);
    lt_svm_engine_close(&engine);
    free(alpha);
    free(cold);
    svm_drop(&set);
}

/* ---- small parts ---- */

static void test_votes(void **state) {
    (void)state;
    double scratch_values[6];
    /* Pairs (0,1) (0,2) (1,2). A circle: one vote each. */
    const double circle[] = {0.5, -3, 1}, plain[] = {-1, 1, 2}, zero[] = {0, 0, 0};
    assert_int_equal(lt_svm_vote(3, LATENT_VOTE_LIBSVM, circle, NULL, scratch_values), 0);
    assert_int_equal(lt_svm_vote(3, LATENT_VOTE_CONFIDENCE, circle, NULL, scratch_values), 2);
    assert_int_equal(lt_svm_vote(3, LATENT_VOTE_LIBSVM, plain, NULL, scratch_values), 1);
    assert_int_equal(lt_svm_vote(3, LATENT_VOTE_LIBSVM, zero, NULL, scratch_values),
                     2); /* 0 is not above 0 */
    const uint8_t valid[] = {1, 0, 1};
    assert_int_equal(lt_svm_vote(3, LATENT_VOTE_LIBSVM, circle, valid, scratch_values), 0);
    for (int k = 2; k < 7; k++) {
        for (int p = 0; p < k * (k - 1) / 2; p++) {
            int a, b;
            lt_svm_pair_classes(k, p, &a, &b);
            assert_true(a < b && b < k);
            assert_int_equal(lt_svm_pair_index(k, a, b), p);
        }
    }
}

/* At the fitted a and b the likelihood's gradient is 0, computed here by central differences. */
static double platt_loss(size_t n, const double *f, const double *y, double a, double b) {
    double sum = 0, positive = 0, negative = 0;
    for (size_t i = 0; i < n; i++) {
        *(y[i] > 0 ? &positive : &negative) += 1;
    }
    for (size_t i = 0; i < n; i++) {
        double t = y[i] > 0 ? (positive + 1) / (positive + 2) : 1 / (negative + 2);
        double p = 1 / (1 + exp(a * f[i] + b));
        sum -= t * log(p) + (1 - t) * log(1 - p);
    }
    return sum;
}

static void test_platt(void **state) {
    (void)state;
    double f[200], y[200], a, b;
    svm_set draw = {.seed = 11};
    for (int i = 0; i < 200; i++) {
        y[i] = i % 3 ? 1 : -1;
        f[i] = y[i] + 1.5 * svm_normal(&draw);
    }
    lt_platt_fit(200, f, y, &a, &b);
    double h = 1e-5;
    assert_true(fabs(platt_loss(200, f, y, a + h, b) - platt_loss(200, f, y, a - h, b)) / (2 * h) < 1e-4);
    assert_true(fabs(platt_loss(200, f, y, a, b + h) - platt_loss(200, f, y, a, b - h)) / (2 * h) < 1e-4);
    assert_true(a < 0);
    /* Far out nothing overflows. */
    assert_true(lt_platt(1e6, -1, 0) == 1 && lt_platt(-1e6, -1, 0) == 0 && lt_platt(0, -1, 0) == 0.5);
    /* All decisions alike: the prior. */
    for (int i = 0; i < 200; i++) {
        f[i] = 0.25;
    }
    lt_platt_fit(200, f, y, &a, &b);
    assert_true(fabs(lt_platt(0.25, a, b) - 133.0 / 200) < 0.02);
}

static void test_coupling(void **state) {
    (void)state;
    double r[9], q[9], p[3];
    const double truth[3] = {0.6, 0.3, 0.1};
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            r[i * 3 + j] = truth[i] / (truth[i] + truth[j]);
        }
    }
    lt_platt_couple(3, r, q, p);
    for (int i = 0; i < 3; i++) {
        assert_true(fabs(p[i] - truth[i]) < 5e-3); /* consistent pairs have one answer */
    }
    const double two[4] = {0, 0.8, 0.2, 0};
    lt_platt_couple(2, two, q, p);
    assert_true(p[0] == 0.8 && fabs(p[1] - 0.2) < 1e-15);
}

/* ---- the matrix product of every host backend ---- */

static void multiply(scratch *s, lt_backend *backend, size_t m, size_t n, size_t k, int whole_numbers) {
    size_t lda = k + 3, ldb = k + 5, ldc = n + 7;
    svm_set draw = {.seed = m * 1000003 + n * 1009 + k};
    float *a = malloc(m * lda * sizeof *a), *b = malloc(n * ldb * sizeof *b),
          *c = malloc(m * ldc * sizeof *c);
    for (size_t i = 0; i < m * lda; i++) {
        a[i] = whole_numbers ? (float)(int)(svm_uniform(&draw) * 17 - 8) : (float)svm_normal(&draw);
    }
    for (size_t i = 0; i < n * ldb; i++) {
        b[i] = whole_numbers ? (float)(int)(svm_uniform(&draw) * 17 - 8) : (float)svm_normal(&draw);
    }
    for (size_t i = 0; i < m * ldc; i++) {
        c[i] = 12345;
    }
    assert_int_equal(backend->type->gemm_nt(s->ctx, backend, m, n, k, a, lda, b, ldb, c, ldc), LATENT_OK);
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < ldc; j++) {
            double sum = 0, size = 0;
            if (j >= n) {
                assert_true(c[i * ldc + j] == 12345);
                continue;
            }
            for (size_t l = 0; l < k; l++) {
                sum += (double)a[i * lda + l] * b[j * ldb + l];
                size += fabs((double)a[i * lda + l] * b[j * ldb + l]);
            }
            double bound = whole_numbers ? 0 : 8 * sqrt((double)k) * 0x1p-24 * size;
            assert_true(fabs(c[i * ldc + j] - sum) <= bound);
        }
    }
    /* One element by itself has the bits that it has among the others. */
    if (m > 0 && n > 0) {
        float one = 0;
        size_t i = m - 1, j = n / 2;
        assert_int_equal(
            backend->type->gemm_nt(s->ctx, backend, 1, 1, k, a + i * lda, lda, b + j * ldb, ldb, &one, 1),
            LATENT_OK);
        assert_memory_equal(&one, &c[i * ldc + j], sizeof one);
        /* ... and with the two rows exchanged. */
        assert_int_equal(
            backend->type->gemm_nt(s->ctx, backend, 1, 1, k, b + j * ldb, ldb, a + i * lda, lda, &one, 1),
            LATENT_OK);
        assert_memory_equal(&one, &c[i * ldc + j], sizeof one);
    }
    free(a);
    free(b);
    free(c);
}

static void test_gemm(void **state) {
    scratch *s = *state;
    static const char *const isas[] = {NULL, "plain", "avx2", "avx512"};
    static const size_t shapes[][3] = {{1, 1, 1},   {7, 13, 5},    {8, 48, 16},  {9, 49, 385},
                                       {65, 3, 40}, {130, 481, 9}, {3, 3, 1200}, {16, 16, 0}};
    for (int i = 0; i < 5; i++) {
        latent_engine_options engine = {.backend = i == 4 ? "ref" : "cpu", .isa = i == 4 ? NULL : isas[i]};
        lt_backend *backend = NULL;
        if (lt_backend_open(s->ctx, &engine, &backend) != LATENT_OK) {
            continue; /* not on this machine */
        }
        for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
            multiply(s, backend, shapes[k][0], shapes[k][1], shapes[k][2], 0);
            multiply(s, backend, shapes[k][0], shapes[k][1], shapes[k][2], 1);
        }
        lt_backend_close(backend);
    }
}

static void test_exponential(void **state) {
    (void)state;
    float from[4000], to[4000];
    for (int i = 0; i < 4000; i++) {
        from[i] = 0.025f * (float)i;
    }
    lt_kernel_from_distances(1, 4000, from, to);
    assert_true(to[0] == 1.0f);
    for (int i = 0; i < 4000; i++) {
        double expected = exp(-(double)from[i]);
        assert_true(from[i] > 87 ? to[i] == 0 : fabs(to[i] - expected) <= 3 * 0x1p-24 * expected);
    }
}

/* What a hostile model can bring about: a gamma beyond float, distances that overflowed. */
static void test_exponential_extremes(void **state) {
    (void)state;
    const double gammas[] = {1e300, 1, 1e-300};
    const float from[] = {0, 1e-3f, HUGE_VALF, NAN};
    const float expected[3][4] = {{1, 0, 0, 0}, {1, 0.9990005f, 0, 0}, {1, 1, 0, 0}};
    for (int g = 0; g < 3; g++) {
        float to[4];
        lt_kernel_from_distances(gammas[g], 4, from, to);
        for (int i = 0; i < 4; i++) {
            assert_true(fabsf(to[i] - expected[g][i]) <= 1e-6f);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_threads),
        SCRATCH_TEST(test_tiles),
        SCRATCH_TEST(test_small_working_sets),
        SCRATCH_TEST(test_shrinking),
        SCRATCH_TEST(test_cross_validation),
        SCRATCH_TEST(test_grid),
        SCRATCH_TEST(test_warm_start),
        SCRATCH_TEST(test_votes),
        SCRATCH_TEST(test_platt),
        SCRATCH_TEST(test_coupling),
        SCRATCH_TEST(test_gemm),
        SCRATCH_TEST(test_exponential),
        SCRATCH_TEST(test_exponential_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
