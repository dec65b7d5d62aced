/* test_svm_golden.c: the answers of scikit-learn, which has a LIBSVM of its own in float64, on two small sets
 * (tools/make_svm_golden.py). Runs everywhere, also where LIBSVM is not installed.
 */
#include "scratch.h"

#include "io/safetensors.h"
#include "svm_sets.h"

#include <math.h>

static void against_golden(scratch *s, const char *path, const latent_svm_options *options) {
    lt_safetensors *st = NULL;
    latent_svm *svm = NULL;
    latent_svm_info info;
    assert_int_equal(lt_st_read(s->ctx, path, &st), LATENT_OK);
    const lt_st_tensor *x = lt_st_find(st, "x"), *y = lt_st_find(st, "y"), *test = lt_st_find(st, "test");
    const lt_st_tensor *objective = lt_st_find(st, "objective"), *rho = lt_st_find(st, "rho");
    const lt_st_tensor *wanted = lt_st_find(st, "decisions"), *said = lt_st_find(st, "labels");
    assert_true(x && y && test && objective && rho && wanted && said);
    size_t n = x->shape[0], d = x->shape[1], m = test->shape[0], pairs = objective->count;
    assert_int_equal(latent_svm_train(s->ctx, x->data, n, d, y->data, options, SVM_HOST, &svm, NULL),
                     LATENT_OK);
    latent_svm_get_info(svm, &info);
    assert_int_equal(info.pairs, pairs);
    if (options->kernel == LATENT_SVM_RBF) {
        assert_true(fabs(info.gamma - lt_st_value(lt_st_find(st, "gamma"), 0)) < 1e-7 * info.gamma);
    }
    for (size_t p = 0; p < pairs; p++) {
        latent_svm_pair pair;
        assert_int_equal(latent_svm_get_pair(svm, (int)p, &pair), 1);
        assert_true(fabs(pair.objective - lt_st_value(objective, p)) <= 1e-6 * fabs(pair.objective));
        assert_true(fabs(info.rho[p] - lt_st_value(rho, p)) < 5 * options->tolerance);
    }
    double *decisions = malloc(m * pairs * sizeof *decisions);
    int32_t *labels = malloc(m * sizeof *labels);
    assert_int_equal(latent_svm_predict(s->ctx, svm, test->data, m, d, labels, decisions, NULL), LATENT_OK);
    for (size_t i = 0; i < m; i++) {
        int near = 0;
        for (size_t p = 0; p < pairs; p++) {
            double golden = lt_st_value(wanted, i * pairs + p);
            /* A row's length in the kernel's space is 1, or its own for the linear kernel: below 10 here. */
            double scale = options->kernel == LATENT_SVM_RBF ? 1 : 10;
            assert_true(fabs(decisions[i * pairs + p] - golden) < 5 * options->tolerance * scale);
            near |= fabs(golden) < 5 * options->tolerance * scale;
        }
        assert_true(near || labels[i] == (int32_t)lt_st_value(said, i));
    }
    free(decisions);
    free(labels);
    latent_svm_destroy(svm);
    lt_st_destroy(st);
}

static void test_rbf(void **state) {
    latent_svm_options options;
    latent_svm_defaults(&options);
    options.c = 10;
    options.tolerance = 1e-4;
    against_golden(*state, TEST_FILES "/golden/svm_rbf.safetensors", &options);
}

static void test_linear_with_weights(void **state) {
    const latent_svm_weight weights[] = {{1, 4}, {3, 0.5}};
    latent_svm_options options;
    latent_svm_defaults(&options);
    options.kernel = LATENT_SVM_LINEAR;
    options.c = 0.5;
    options.weights = weights;
    options.weight_count = 2;
    options.tolerance = 1e-4;
    against_golden(*state, TEST_FILES "/golden/svm_linear.safetensors", &options);
}

int main(void) {
    const struct CMUnitTest tests[] = {SCRATCH_TEST(test_rbf), SCRATCH_TEST(test_linear_with_weights)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
