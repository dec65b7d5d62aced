/* test_svm_errors.c: every mistake that a caller of the support vector machines can make has its sentence,
 * and what is merely odd (one row to a class, identical rows, constant columns) works.
 */
#include "scratch.h"

#include "svm_sets.h"

#include <sys/resource.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED
#endif
#endif

typedef struct fixture {
    svm_set set;
    latent_svm_options options;
    latent_svm *svm;
} fixture;

static fixture begin(void) {
    svm_recipe recipe = {.n = 40, .d = 4, .classes = 3, .overlap = 0.8, .seed = 3};
    fixture f = {.set = svm_make(&recipe)};
    latent_svm_defaults(&f.options);
    return f;
}

static latent_status train(scratch *s, fixture *f) {
    f->svm = NULL;
    return latent_svm_train(s->ctx, f->set.x, f->set.n, f->set.d, f->set.labels, &f->options, SVM_HOST,
                            &f->svm, NULL);
}

static void end(fixture *f) {
    latent_svm_destroy(f->svm);
    svm_drop(&f->set);
}

static void test_bad_numbers(void **state) {
    scratch *s = *state;
    fixture f = begin();
    const double wrong[] = {0, -1, NAN, INFINITY};
    for (size_t i = 0; i < 4; i++) {
        f.options.c = wrong[i];
        assert_fails(s->ctx, train(s, &f), LATENT_ERROR_ARGUMENT, "C is ");
        assert_null(f.svm);
        f.options.c = 1;
        f.options.tolerance = wrong[i];
        assert_fails(s->ctx, train(s, &f), LATENT_ERROR_ARGUMENT, "the tolerance is ");
        f.options.tolerance = 1e-3;
        f.options.gamma_rule = LATENT_GAMMA_VALUE;
        f.options.gamma = wrong[i];
        assert_fails(s->ctx, train(s, &f), LATENT_ERROR_ARGUMENT, "gamma is ");
        f.options.gamma_rule = LATENT_GAMMA_SCALE;
        latent_svm_weight weight = {f.set.labels[0], wrong[i]};
        f.options.weights = &weight;
        f.options.weight_count = 1;
        assert_fails(s->ctx, train(s, &f), LATENT_ERROR_ARGUMENT, "the weight of class");
        f.options.weight_count = 0;
    }
    latent_svm_weight unknown = {12345, 1}, twice[2] = {{f.set.labels[0], 1}, {f.set.labels[0], 2}};
    f.options.weights = &unknown;
    f.options.weight_count = 1;
    assert_fails(s->ctx, train(s, &f), LATENT_ERROR_ARGUMENT, "class 12345, but no row has that label");
    f.options.weights = twice;
    f.options.weight_count = 2;
    assert_fails(s->ctx, train(s, &f), LATENT_ERROR_ARGUMENT, "given twice");
    f.options.weight_count = 0;
    f.options.gamma_per_pair = 1;
    f.options.kernel = LATENT_SVM_LINEAR;
    assert_fails(s->ctx, train(s, &f), LATENT_ERROR_ARGUMENT, "a gamma per pair needs the RBF kernel");
    end(&f);
}

static void test_bad_features(void **state) {
    scratch *s = *state;
    fixture f = begin();
    float kept = f.set.x[4 * 7 + 2];
    const float wrong[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        f.set.x[4 * 7 + 2] = wrong[i];
        assert_fails(s->ctx, train(s, &f), LATENT_ERROR_NUMERIC, "row 7, column 2 of the features is not");
    }
    f.set.x[4 * 7 + 2] = 1e30f; /* finite, but its square is not */
    assert_fails(s->ctx, train(s, &f), LATENT_ERROR_NUMERIC, "too long for fp32");
    f.set.x[4 * 7 + 2] = kept;
    size_t n = f.set.n, d = f.set.d;
    f.set.n = 0;
    assert_fails(s->ctx, train(s, &f), LATENT_ERROR_ARGUMENT, "0 rows");
    f.set.n = n;
    f.set.d = 0;
    assert_fails(s->ctx, train(s, &f), LATENT_ERROR_ARGUMENT, "0 columns");
    f.set.d = d;
    f.set.n = (size_t)1 << 40;
    assert_fails(s->ctx, train(s, &f), LATENT_ERROR_ARGUMENT, "too many");
    f.set.n = n;
    end(&f);
}

static void test_bad_labels(void **state) {
    scratch *s = *state;
    fixture f = begin();
    for (size_t i = 0; i < f.set.n; i++) {
        f.set.labels[i] = 5;
    }
    assert_fails(s->ctx, train(s, &f), LATENT_ERROR_ARGUMENT, "all 40 rows have the label 5");
    end(&f);
    size_t n = 5000;
    float *x = calloc(n, sizeof *x);
    int32_t *labels = malloc(n * sizeof *labels);
    latent_svm *svm = NULL;
    latent_svm_options options;
    latent_svm_defaults(&options);
    for (size_t i = 0; i < n; i++) {
        labels[i] = (int32_t)i;
    }
    assert_fails(s->ctx, latent_svm_train(s->ctx, x, n, 1, labels, &options, SVM_HOST, &svm, NULL),
                 LATENT_ERROR_ARGUMENT, "5000 different values");
    free(x);
    free(labels);
}

static void test_constant_features(void **state) {
    scratch *s = *state;
    fixture f = begin();
    for (size_t i = 0; i < f.set.n; i++) {
        f.set.x[i * 4 + 1] = 3; /* one constant column is fine */
    }
    assert_int_equal(train(s, &f), LATENT_OK);
    latent_svm_destroy(f.svm);
    for (size_t i = 0; i < f.set.n * 4; i++) {
        f.set.x[i] = 3;
    }
    assert_fails(s->ctx, train(s, &f), LATENT_ERROR_ARGUMENT, "they are constant");
    /* With a gamma given it is a problem like any other: the larger class wins everywhere. */
    f.options.gamma_rule = LATENT_GAMMA_VALUE;
    f.options.gamma = 1;
    assert_int_equal(train(s, &f), LATENT_OK);
    end(&f);
}

static void test_odd_sets(void **state) {
    scratch *s = *state;
    const float x[] = {0, 1, 1, 0, 1, 1};
    const int32_t labels[] = {1, 2, 3}, two[] = {1, 1, 2};
    latent_svm_options options;
    latent_svm *svm = NULL;
    int32_t said[3];
    latent_svm_defaults(&options);
    options.c = 100;
    options.probability = 1;
    /* One row to a class. */
    assert_int_equal(latent_svm_train(s->ctx, x, 3, 2, labels, &options, SVM_HOST, &svm, NULL), LATENT_OK);
    assert_int_equal(latent_svm_predict(s->ctx, svm, x, 3, 2, said, NULL, NULL), LATENT_OK);
    assert_memory_equal(said, labels, sizeof said);
    latent_svm_destroy(svm);
    /* Identical rows of two classes. */
    const float same[] = {1, 2, 1, 2, 1, 2};
    options.gamma_rule = LATENT_GAMMA_VALUE;
    options.gamma = 0.5;
    assert_int_equal(latent_svm_train(s->ctx, same, 3, 2, two, &options, SVM_HOST, &svm, NULL), LATENT_OK);
    assert_int_equal(latent_svm_predict(s->ctx, svm, same, 3, 2, said, NULL, NULL), LATENT_OK);
    latent_svm_destroy(svm);
}

static void test_cap_and_cache(void **state) {
    scratch *s = *state;
    fixture f = begin();
    latent_svm_report report;
    f.options.iterations_max = 2;
    assert_int_equal(latent_svm_train(s->ctx, f.set.x, f.set.n, f.set.d, f.set.labels, &f.options, SVM_HOST,
                                      &f.svm, &report),
                     LATENT_OK);
    assert_int_equal(report.unconverged, 3);
    assert_true(report.gap > f.options.tolerance);
    assert_true(report.iterations <= 6);
    latent_svm_destroy(f.svm);
    f.options.iterations_max = 0;
    f.options.cache_bytes = 100;
    assert_fails(s->ctx, train(s, &f), LATENT_ERROR_ARGUMENT, "a cache of 100 bytes is too small");
    end(&f);
}

static void test_predict_and_folds(void **state) {
    scratch *s = *state;
    fixture f = begin();
    int32_t labels[40];
    double values[120], accuracy;
    assert_int_equal(train(s, &f), LATENT_OK);
    assert_fails(s->ctx, latent_svm_predict(s->ctx, f.svm, f.set.x, 20, 3, labels, NULL, NULL),
                 LATENT_ERROR_ARGUMENT, "the rows have 3 features, but the model was trained on 4");
    assert_fails(s->ctx, latent_svm_predict(s->ctx, f.svm, f.set.x, 20, 5, labels, NULL, NULL),
                 LATENT_ERROR_ARGUMENT, "5 features");
    assert_fails(s->ctx, latent_svm_predict(s->ctx, f.svm, f.set.x, 20, 4, labels, NULL, values),
                 LATENT_ERROR_ARGUMENT, "no probabilities");
    f.set.x[4 * 3 + 1] = NAN;
    assert_fails(s->ctx, latent_svm_predict(s->ctx, f.svm, f.set.x, 20, 4, labels, NULL, NULL),
                 LATENT_ERROR_NUMERIC, "row 3, column 1");
    f.set.x[4 * 3 + 1] = 0;
    assert_int_equal(latent_svm_predict(s->ctx, f.svm, f.set.x, 0, 4, labels, NULL, NULL), LATENT_OK);
    const int folds[] = {-1, 0, 1, 41, 256};
    for (size_t i = 0; i < 5; i++) {
        assert_fails(s->ctx,
                     latent_svm_cross_validate(s->ctx, f.set.x, f.set.n, f.set.d, f.set.labels, &f.options,
                                               folds[i], NULL, NULL, &accuracy),
                     LATENT_ERROR_ARGUMENT, "folds over 40 rows");
    }
    f.options.gamma_per_pair = 1;
    assert_fails(s->ctx,
                 latent_svm_cross_validate(s->ctx, f.set.x, f.set.n, f.set.d, f.set.labels, &f.options, 5,
                                           NULL, NULL, &accuracy),
                 LATENT_ERROR_ARGUMENT, "one gamma for all pairs");
    f.options.gamma_per_pair = 0;
    latent_svm_point points[4];
    int best;
    const double good[] = {1, 2}, bad[] = {1, 0};
    assert_fails(s->ctx,
                 latent_svm_grid(s->ctx, f.set.x, f.set.n, f.set.d, f.set.labels, &f.options, 5, bad, 2, good,
                                 2, NULL, NULL, NULL, points, &best),
                 LATENT_ERROR_ARGUMENT, "C is 0");
    assert_fails(s->ctx,
                 latent_svm_grid(s->ctx, f.set.x, f.set.n, f.set.d, f.set.labels, &f.options, 5, good, 2, bad,
                                 2, NULL, NULL, NULL, points, &best),
                 LATENT_ERROR_ARGUMENT, "gamma is 0");
    assert_fails(s->ctx,
                 latent_svm_grid(s->ctx, f.set.x, f.set.n, f.set.d, f.set.labels, &f.options, 5, good, 0,
                                 good, 2, NULL, NULL, NULL, points, &best),
                 LATENT_ERROR_ARGUMENT, "at least one C");
    end(&f);
}

static void test_engines(void **state) {
    scratch *s = *state;
    fixture f = begin();
    latent_engine_options engine = {.backend = "abacus"};
    latent_svm *svm = NULL;
    assert_fails(
        s->ctx,
        latent_svm_train(s->ctx, f.set.x, f.set.n, f.set.d, f.set.labels, &f.options, &engine, &svm, NULL),
        LATENT_ERROR_ARGUMENT, "no backend 'abacus'");
    /* No GPU here, or not in this build: a sentence. With one, it trains. */
    engine.backend = "cuda";
    latent_status status =
        latent_svm_train(s->ctx, f.set.x, f.set.n, f.set.d, f.set.labels, &f.options, &engine, &svm, NULL);
    assert_true(status == LATENT_OK || status == LATENT_ERROR_UNSUPPORTED);
    if (status != LATENT_OK) {
        assert_says(s->ctx, "cuda");
    }
    latent_svm_destroy(svm);
    end(&f);
}

/* A kernel matrix of 6.4 GB where a gigabyte is to be had. */
static void test_no_memory(void **state) {
#ifdef SANITIZED
    (void)state;
    skip(); /* the sanitizer's own memory counts as well */
#else
    scratch *s = *state;
    size_t n = 40000;
    float *x = malloc(n * sizeof *x);
    int32_t *labels = malloc(n * sizeof *labels);
    latent_svm_options options;
    latent_svm *svm = NULL;
    struct rlimit before, tight;
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_true(file && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    latent_svm_defaults(&options);
    options.cache_bytes = (uint64_t)1 << 40;
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)(i % 7);
        labels[i] = (int32_t)(i % 2);
    }
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    tight = before;
    tight.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)1 << 30);
    assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
    latent_status status = latent_svm_train(s->ctx, x, n, 1, labels, &options, SVM_HOST, &svm, NULL);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(status, LATENT_ERROR_MEMORY);
    assert_says(s->ctx, "no memory for the kernel matrix");
    free(x);
    free(labels);
#endif
}

static void stop(void *user, latent_svm_stage stage, uint64_t done, uint64_t total, uint64_t memory) {
    (void)stage, (void)done, (void)total, (void)memory;
    latent_context_interrupt(user);
}

static void test_interrupted(void **state) {
    scratch *s = *state;
    fixture f = begin();
    f.options.progress = stop;
    f.options.user = s->ctx;
    assert_fails(s->ctx, train(s, &f), LATENT_INTERRUPTED, "interrupted");
    assert_null(f.svm);
    s->ctx->interrupted = 0;
    f.options.progress = NULL;
    assert_int_equal(train(s, &f), LATENT_OK);
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_bad_numbers),       SCRATCH_TEST(test_bad_features),
        SCRATCH_TEST(test_bad_labels),        SCRATCH_TEST(test_constant_features),
        SCRATCH_TEST(test_odd_sets),          SCRATCH_TEST(test_cap_and_cache),
        SCRATCH_TEST(test_predict_and_folds), SCRATCH_TEST(test_engines),
        SCRATCH_TEST(test_interrupted),       SCRATCH_TEST(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
