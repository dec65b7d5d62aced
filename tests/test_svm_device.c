/* test_svm_device.c: the way of feature rows to a backend with a memory of its own, and passes over rows in
 * host memory: what is sent is sent once, what is taken is given back, whatever fails on the way; and a model
 * predicts the same bits fresh, loaded, and on the host.
 */
#include "scratch.h"

#include "svm_device.h"

typedef struct fixture {
    svm_set set;
    latent_svm_options options;
    lt_svm_rows rows; /* of the set, padded to a stride of their own */
    float *wide;
    device d;
    lt_svm_engine engine;
} fixture;

static fixture *begin(scratch *s, const svm_recipe *recipe) {
    fixture *f = calloc(1, sizeof *f);
    f->set = svm_make(recipe);
    latent_svm_defaults(&f->options);
    f->options.c = 3;
    size_t stride = f->set.d + 3;
    f->wide = malloc(f->set.n * stride * sizeof *f->wide);
    for (size_t i = 0; i < f->set.n * stride; i++) {
        f->wide[i] = i % stride < f->set.d ? f->set.x[i / stride * f->set.d + i % stride] : NAN;
    }
    f->rows = (lt_svm_rows){.x = f->wide, .n = f->set.n, .d = f->set.d, .stride = stride};
    f->engine = device_make(s->ctx, &f->d);
    return f;
}

static void end(fixture *f) {
    lt_svm_engine_close(&f->engine);
    assert_int_equal(f->d.live, 0);
    assert_int_equal(f->d.closed, 1);
    svm_drop(&f->set);
    free(f->wide);
    free(f);
}

static latent_status train(scratch *s, fixture *f, latent_svm **out) {
    return lt_svm_train(s->ctx, &f->engine, &f->rows, f->set.labels, &f->options, SVM_HOST, out, NULL);
}

static size_t row_bytes(const fixture *f) {
    return ((f->rows.n - 1) * f->rows.stride + f->rows.d) * sizeof(float);
}

static latent_svm *train_on_host(scratch *s, const fixture *f) {
    latent_svm *svm = NULL;
    assert_int_equal(latent_svm_train(s->ctx, f->set.x, f->set.n, f->set.d, f->set.labels, &f->options,
                                      SVM_HOST, &svm, NULL),
                     LATENT_OK);
    return svm;
}

/* Labels and decision values of all rows, and probabilities where there are some. */
static void assert_predicts_same(scratch *s, const fixture *f, latent_svm *a, latent_svm *b) {
    size_t n = f->set.n, pairs = (size_t)a->pairs, classes = (size_t)a->classes;
    int32_t *labels[2];
    double *decisions[2], *probabilities[2];
    for (int i = 0; i < 2; i++) {
        labels[i] = malloc(n * sizeof *labels[i]);
        decisions[i] = malloc(n * pairs * sizeof **decisions);
        probabilities[i] = calloc(n * classes, sizeof **probabilities);
        assert_int_equal(latent_svm_predict(s->ctx, i ? b : a, f->set.x, n, f->set.d, labels[i], decisions[i],
                                            a->prob_a ? probabilities[i] : NULL),
                         LATENT_OK);
    }
    assert_memory_equal(labels[0], labels[1], n * sizeof *labels[0]);
    assert_memory_equal(decisions[0], decisions[1], n * pairs * sizeof **decisions);
    assert_memory_equal(probabilities[0], probabilities[1], n * classes * sizeof **probabilities);
    for (int i = 0; i < 2; i++) {
        free(labels[i]);
        free(decisions[i]);
        free(probabilities[i]);
    }
}

static void assert_same_model(const latent_svm *a, const latent_svm *b) {
    assert_int_equal(a->support, b->support);
    assert_memory_equal(a->vectors, b->vectors, a->support * a->d * sizeof *a->vectors);
    assert_memory_equal(a->coefficients, b->coefficients,
                        (size_t)(a->classes - 1) * a->support * sizeof *a->coefficients);
    assert_memory_equal(a->rho, b->rho, (size_t)a->pairs * sizeof *a->rho);
    assert_memory_equal(a->gamma, b->gamma, (size_t)a->pairs * sizeof *a->gamma);
}

/* From a file, on a device of its own: the vectors go over once, however often it predicts. */
static void check_loaded(scratch *s, const fixture *f, latent_svm *svm) {
    device *d = calloc(1, sizeof *d);
    latent_svm *loaded = NULL;
    const char *path = scratch_path(s, "model");
    assert_int_equal(latent_svm_save(s->ctx, svm, path, LATENT_SVM_SAFETENSORS), LATENT_OK);
    assert_int_equal(latent_svm_load(s->ctx, path, SVM_HOST, &loaded), LATENT_OK);
    assert_same_model(svm, loaded);
    lt_svm_engine_close(&loaded->engine);
    loaded->engine = device_make(s->ctx, d);
    assert_null(loaded->machine);
    assert_predicts_same(s, f, svm, loaded);
    assert_predicts_same(s, f, svm, loaded);
    assert_int_equal(d->from_host, 1);
    latent_svm_destroy(loaded);
    assert_int_equal(d->closed, 1);
    free(d);
}

static void test_sent_once(void **state) {
    scratch *s = *state;
    for (int i = 0; i < 5; i++) {
        svm_recipe recipe = {.n = 150, .d = 9, .classes = 2 + i, .overlap = 0.9, .relu = i & 1, .seed = 8};
        fixture *f = begin(s, &recipe);
        latent_svm *svm = NULL, *host;
        f->options.kernel = i == 1 ? LATENT_SVM_LINEAR : LATENT_SVM_RBF;
        f->options.probability = i == 2;
        f->options.gamma_per_pair = i == 3;
        assert_int_equal(train(s, f, &svm), LATENT_OK);
        assert_int_equal(f->d.uploaded, row_bytes(f));
        assert_int_equal(f->d.from_host, 0);
        assert_int_equal(f->d.live, 0);
        /* A sum over vectors in another order would have other bits. */
        assert_int_equal(svm->machine != NULL, f->options.kernel == LATENT_SVM_RBF);
        host = train_on_host(s, f);
        assert_same_model(svm, host);
        assert_predicts_same(s, f, svm, host);
        assert_int_equal(f->d.from_host, f->options.kernel == LATENT_SVM_LINEAR);
        check_loaded(s, f, svm);
        latent_svm_destroy(svm);
        latent_svm_destroy(host);
        end(f);
    }
}

/* No memory for the copy, or too little beside it: every pass takes the rows from the host, as it always can.
 */
static void test_no_room(void **state) {
    scratch *s = *state;
    svm_recipe recipe = {.n = 90, .d = 5, .classes = 3, .overlap = 0.9, .seed = 4};
    for (int i = 0; i < 3; i++) {
        fixture *f = begin(s, &recipe);
        latent_svm *svm = NULL, *host;
        uint64_t rest = (uint64_t)512 << 20, matrix = 2 * 90 * 90 * sizeof(float);
        f->d.no_memory = i == 0;
        f->options.cache_bytes = i == 2 ? 40000 : 0;
        f->d.memory =
            i == 0 ? UINT64_MAX : 3 * row_bytes(f) + (i == 1 ? matrix : f->options.cache_bytes) + rest - 1;
        assert_int_equal(train(s, f, &svm), LATENT_OK);
        assert_int_equal(f->d.uploaded, 0);
        assert_int_equal(f->d.from_host, 2); /* statistics and matrix */
        assert_null(svm->machine);
        host = train_on_host(s, f);
        assert_same_model(svm, host);
        assert_predicts_same(s, f, svm, host);
        assert_int_equal(f->d.from_host, 3);
        latent_svm_destroy(svm);
        latent_svm_destroy(host);
        end(f);
    }
    /* A byte more is enough. */
    fixture *f = begin(s, &recipe);
    latent_svm *svm = NULL;
    f->d.memory = 3 * row_bytes(f) + 2 * 90 * 90 * sizeof(float) + ((uint64_t)512 << 20);
    assert_int_equal(train(s, f, &svm), LATENT_OK);
    assert_int_equal(f->d.uploaded, row_bytes(f));
    latent_svm_destroy(svm);
    end(f);
}

/* The matrix or the machine does not fit the device: the host goes on, and nothing stays behind. */
static void test_host_takes_over(void **state) {
    scratch *s = *state;
    svm_recipe recipe = {.n = 90, .d = 5, .classes = 3, .overlap = 0.9, .seed = 4};
    for (int machine = 0; machine < 2; machine++) {
        fixture *f = begin(s, &recipe);
        latent_svm *svm = NULL, *host;
        f->d.no_matrix = !machine;
        f->d.no_machine = machine;
        assert_int_equal(train(s, f, &svm), LATENT_OK);
        assert_int_equal(f->d.closed, !machine);
        assert_null(svm->machine);
        host = train_on_host(s, f);
        assert_same_model(svm, host);
        assert_predicts_same(s, f, svm, host);
        assert_int_equal(f->d.closed, 1);
        assert_ptr_equal(svm->engine.ops, &lt_svm_host_ops);
        latent_svm_destroy(svm);
        latent_svm_destroy(host);
        end(f);
    }
}

static void test_failures(void **state) {
    scratch *s = *state;
    svm_recipe recipe = {.n = 90, .d = 5, .classes = 3, .overlap = 0.9, .seed = 4};
    fixture *f = begin(s, &recipe);
    latent_svm *svm = NULL;
    f->d.no_upload = 1;
    assert_fails(s->ctx, train(s, f, &svm), LATENT_ERROR_DEVICE, "fell off the bus");
    assert_int_equal(f->d.live, 0);
    f->d.no_upload = 0;
    f->d.interrupt = 1;
    assert_fails(s->ctx, train(s, f, &svm), LATENT_INTERRUPTED, "interrupted while the features were copied");
    assert_int_equal(f->d.live, 0);
    f->d.interrupt = s->ctx->interrupted = 0;
    f->wide[41 * f->rows.stride + 2] = -INFINITY;
    f->wide[41 * f->rows.stride + 4] = NAN;
    f->wide[60 * f->rows.stride] = NAN;
    assert_fails(s->ctx, train(s, f, &svm), LATENT_ERROR_NUMERIC,
                 "row 41, column 2 of the features is not a finite number");
    assert_int_equal(f->d.live, 0);
    assert_null(svm);
    end(f);
}

/* Rows that the caller has on the device: nothing is sent, the vectors come back. */
static void test_rows_there(void **state) {
    scratch *s = *state;
    svm_recipe recipe = {.n = 90, .d = 5, .classes = 3, .overlap = 0.9, .seed = 4};
    fixture *f = begin(s, &recipe);
    lt_backend *backend = f->engine.backend;
    latent_svm *svm = NULL, *host;
    void *there = NULL;
    assert_int_equal(device_alloc(s->ctx, backend, row_bytes(f), &there), LATENT_OK);
    assert_int_equal(device_upload(s->ctx, backend, there, f->wide, row_bytes(f)), LATENT_OK);
    f->rows.x = there;
    f->rows.on_backend = 1;
    assert_int_equal(train(s, f, &svm), LATENT_OK);
    assert_int_equal(f->d.uploaded, row_bytes(f));
    assert_int_equal(f->d.from_host, 0);
    assert_int_equal(f->d.live, 1);
    assert_non_null(svm->machine);
    device_free(backend, there);
    host = train_on_host(s, f);
    assert_same_model(svm, host);
    assert_predicts_same(s, f, svm, host);
    latent_svm_destroy(svm);
    latent_svm_destroy(host);
    end(f);
}

/* What cross-validation does: the copy goes as soon as the matrix is made. */
static void test_release(void **state) {
    scratch *s = *state;
    svm_recipe recipe = {.n = 60, .d = 5, .classes = 2, .overlap = 0.9, .seed = 4};
    fixture *f = begin(s, &recipe);
    lt_svm_set set;
    lt_svm_matrix *matrix = NULL;
    assert_int_equal(lt_svm_set_make(s->ctx, &f->engine, &f->rows, f->set.labels, &f->options, &set),
                     LATENT_OK);
    assert_int_equal(f->d.live, 1);
    assert_ptr_equal(set.rows.x, f->wide);
    assert_true(set.there.on_backend);
    assert_int_equal(lt_svm_matrix_make(s->ctx, &f->engine, &set, &f->options, 0, &matrix), LATENT_OK);
    lt_svm_set_release(&set);
    assert_int_equal(f->d.live, 0);
    assert_ptr_equal(set.there.x, f->wide);
    assert_false(set.there.on_backend);
    f->d.ops.matrix_free(f->engine.backend, matrix);
    lt_svm_set_free(&set);
    end(f);
}

/* ---- passes over rows of the host ---- */

/* Sizes below and above what is worth threads; odd ones, so that vectors have tails. */
static void test_passes(void **state) {
    scratch *s = *state;
    static const size_t sizes[][2] = {{1, 1}, {7, 3}, {1500, 701}, {3, 400001}, {1100003, 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t n = sizes[i][0], d = sizes[i][1], row, column;
        float *x = malloc(n * d * sizeof *x), *mean = malloc(d * sizeof *mean);
        static const float kept[] = {3.402823466e38f, -3.402823466e38f, 1e-45f, -0.0f, 0.1f};
        for (size_t k = 0; k < n * d; k++) {
            x[k] = k % 97 < 5 ? kept[k % 97] : (float)(k * 2654435761u % 1000003) / 1000.0f;
        }
        assert_true(lt_svm_rows_finite(x, n, d, &row, &column));
        assert_int_equal(lt_svm_means(s->ctx, x, n, d, mean), LATENT_OK);
        for (size_t c = 0; c < d; c += d / 50 + 1) {
            double sum = 0;
            for (size_t r = 0; r < n; r++) {
                sum += (double)x[r * d + c];
            }
            assert_true(mean[c] == (float)(sum / (double)n));
        }
        /* Wherever the first bad one is, with others behind it. */
        static const float bad[] = {NAN, INFINITY, -INFINITY};
        for (size_t k = 0; k < 9; k++) {
            size_t at = (n * d - 1) * k / 8, behind = at + (n * d - 1 - at) / 2;
            float was = x[at], other = x[behind];
            x[behind] = NAN;
            x[at] = bad[k % 3];
            assert_false(lt_svm_rows_finite(x, n, d, &row, &column));
            assert_int_equal(row * d + column, at);
            assert_true(column < d);
            x[behind] = other;
            x[at] = was;
        }
        free(x);
        free(mean);
    }
    float none = 1;
    assert_int_equal(lt_svm_means(s->ctx, NULL, 0, 1, &none), LATENT_OK);
    assert_true(none == 0);
}

static void test_gather(void **state) {
    (void)state;
    size_t n = 900, d = 1500, count = 800;
    float *x = malloc(n * (d + 2) * sizeof *x), *out = malloc(count * d * sizeof *out);
    uint32_t *order = malloc(count * sizeof *order);
    for (size_t i = 0; i < n * (d + 2); i++) {
        x[i] = (float)i;
    }
    for (size_t i = 0; i < count; i++) {
        order[i] = (uint32_t)(i * 7919 % n);
    }
    lt_svm_rows rows = {.x = x, .n = n, .d = d, .stride = d + 2};
    lt_svm_rows_gather(&rows, order, count, out);
    for (size_t i = 0; i < count; i++) {
        assert_memory_equal(out + i * d, x + order[i] * (d + 2), d * sizeof *x);
    }
    free(x);
    free(out);
    free(order);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_sent_once), SCRATCH_TEST(test_no_room),    SCRATCH_TEST(test_host_takes_over),
        SCRATCH_TEST(test_failures),  SCRATCH_TEST(test_rows_there), SCRATCH_TEST(test_release),
        SCRATCH_TEST(test_passes),    SCRATCH_TEST(test_gather),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
