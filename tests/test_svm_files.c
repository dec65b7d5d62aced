/* test_svm_files.c: models and rows as files: what is written comes back as it was, what is wrong is named.
 */
#include "scratch.h"

#include "io/libsvm_text.h"
#include "svm_sets.h"

static latent_svm *train(scratch *s, const svm_recipe *recipe, const latent_svm_options *options,
                         svm_set *set) {
    latent_svm *svm = NULL;
    *set = svm_make(recipe);
    assert_int_equal(
        latent_svm_train(s->ctx, set->x, set->n, set->d, set->labels, options, SVM_HOST, &svm, NULL),
        LATENT_OK);
    return svm;
}

static void assert_same(const latent_svm *a, const latent_svm *b) {
    size_t pairs = (size_t)a->pairs, classes = (size_t)a->classes;
    assert_int_equal(a->kernel, b->kernel);
    assert_int_equal(a->classes, b->classes);
    assert_int_equal(a->support, b->support);
    assert_int_equal(a->d, b->d);
    assert_memory_equal(a->labels, b->labels, classes * sizeof *a->labels);
    assert_memory_equal(a->supports, b->supports, classes * sizeof *a->supports);
    assert_memory_equal(a->vectors, b->vectors, a->support * a->d * sizeof *a->vectors);
    assert_memory_equal(a->coefficients, b->coefficients, (classes - 1) * a->support * sizeof(double));
    assert_memory_equal(a->rho, b->rho, pairs * sizeof(double));
    if (a->kernel == LATENT_SVM_RBF) {
        assert_memory_equal(a->gamma, b->gamma, pairs * sizeof(double));
    }
    assert_int_equal(a->prob_a != NULL, b->prob_a != NULL);
    if (a->prob_a) {
        assert_memory_equal(a->prob_a, b->prob_a, pairs * sizeof(double));
        assert_memory_equal(a->prob_b, b->prob_b, pairs * sizeof(double));
    }
}

static void test_round_trips(void **state) {
    scratch *s = *state;
    for (int i = 0; i < 4; i++) {
        svm_recipe recipe = {.n = 120, .d = 7, .classes = 2 + i, .overlap = 0.8, .relu = i & 1, .seed = 5};
        svm_set set;
        latent_svm_options options;
        latent_svm *back = NULL;
        latent_svm_defaults(&options);
        options.probability = i == 2;
        options.kernel = i == 3 ? LATENT_SVM_LINEAR : LATENT_SVM_RBF;
        options.vote = i == 1 ? LATENT_VOTE_CONFIDENCE : LATENT_VOTE_LIBSVM;
        latent_svm *svm = train(s, &recipe, &options, &set);
        for (int format = 0; format < 2; format++) {
            const char *path = scratch_path(s, "model");
            assert_int_equal(latent_svm_save(s->ctx, svm, path, (latent_svm_format)format), LATENT_OK);
            assert_int_equal(latent_svm_load(s->ctx, path, SVM_HOST, &back), LATENT_OK);
            assert_same(svm, back);
            assert_int_equal(back->vote, format == LATENT_SVM_TEXT ? LATENT_VOTE_LIBSVM : options.vote);
            latent_svm_destroy(back);
        }
        latent_svm_destroy(svm);
        svm_drop(&set);
    }
}

/* A header of any length: the vectors then lie on no multiple of four bytes, or the model keeps the file. */
static void test_any_alignment(void **state) {
    scratch *s = *state;
    svm_recipe recipe = {.n = 60, .d = 5, .classes = 3, .overlap = 0.8, .seed = 5};
    svm_set set;
    latent_svm_options options;
    char *bytes = NULL;
    size_t size = 0;
    latent_svm_defaults(&options);
    latent_svm *svm = train(s, &recipe, &options, &set), *back = NULL;
    const char *path = scratch_path(s, "model");
    assert_int_equal(latent_svm_save(s->ctx, svm, path, LATENT_SVM_SAFETENSORS), LATENT_OK);
    assert_int_equal(lt_file_read(s->ctx, path, 1 << 20, &bytes, &size), LATENT_OK);
    for (uint64_t spaces = 0; spaces < 5; spaces++) {
        uint64_t header;
        char *longer = calloc(1, size + spaces);
        memcpy(&header, bytes, sizeof header);
        memcpy(longer, bytes, 8 + header);
        memset(longer + 8 + header, ' ', spaces);
        memcpy(longer + 8 + header + spaces, bytes + 8 + header, size - 8 - header);
        header += spaces;
        memcpy(longer, &header, sizeof header);
        path = scratch_file(s, "longer", longer, size + spaces);
        assert_int_equal(latent_svm_load(s->ctx, path, SVM_HOST, &back), LATENT_OK);
        assert_int_equal(back->file != NULL, spaces % 4 == 0);
        assert_same(svm, back);
        latent_svm_destroy(back);
        assert_int_equal(lt_svm_file_parse(s->ctx, longer, size + spaces, "bytes", &back), LATENT_OK);
        assert_null(back->file); /* the bytes are not its own */
        free(longer);
        assert_same(svm, back);
        latent_svm_destroy(back);
    }
    free(bytes);
    latent_svm_destroy(svm);
    svm_drop(&set);
}

static void test_gamma_per_pair(void **state) {
    scratch *s = *state;
    svm_recipe recipe = {.n = 150, .d = 5, .classes = 3, .unbalanced = 1, .overlap = 0.9, .seed = 6};
    svm_set set;
    latent_svm_options options;
    latent_svm *back = NULL;
    latent_svm_defaults(&options);
    options.gamma_per_pair = 1;
    latent_svm *svm = train(s, &recipe, &options, &set);
    assert_true(svm->gamma[0] != svm->gamma[1]);
    assert_fails(s->ctx, latent_svm_save(s->ctx, svm, scratch_path(s, "m"), LATENT_SVM_TEXT),
                 LATENT_ERROR_ARGUMENT, "one per pair");
    const char *path = scratch_path(s, "m");
    assert_int_equal(latent_svm_save(s->ctx, svm, path, LATENT_SVM_SAFETENSORS), LATENT_OK);
    assert_int_equal(latent_svm_load(s->ctx, path, SVM_HOST, &back), LATENT_OK);
    assert_same(svm, back);
    assert_int_equal(back->gamma_per_pair, 1);
    double *a = malloc(set.n * 3 * sizeof *a), *b = malloc(set.n * 3 * sizeof *b);
    assert_int_equal(latent_svm_predict(s->ctx, svm, set.x, set.n, set.d, NULL, a, NULL), LATENT_OK);
    assert_int_equal(latent_svm_predict(s->ctx, back, set.x, set.n, set.d, NULL, b, NULL), LATENT_OK);
    assert_memory_equal(a, b, set.n * 3 * sizeof *a);
    /* Each pair's decision values by hand, with its own gamma. */
    for (int p = 0; p < 3; p++) {
        int first, second;
        double sum = -svm->rho[p];
        size_t at = 0;
        lt_svm_pair_classes(3, p, &first, &second);
        for (int c = 0; c < 3; c++) {
            for (size_t v = at; v < at + svm->supports[c]; v++) {
                double squared = 0, coefficient = 0;
                for (size_t k = 0; k < set.d; k++) {
                    double difference = (double)svm->vectors[v * set.d + k] - (double)set.x[k];
                    squared += difference * difference;
                }
                coefficient = c == first    ? svm->coefficients[(size_t)(second - 1) * svm->support + v]
                              : c == second ? svm->coefficients[(size_t)first * svm->support + v]
                                            : 0;
                sum += coefficient * exp(-svm->gamma[p] * squared);
            }
            at += svm->supports[c];
        }
        assert_true(fabs(sum - a[p]) < 1e-5);
    }
    free(a);
    free(b);
    latent_svm_destroy(svm);
    latent_svm_destroy(back);
    svm_drop(&set);
}

static const char good_model[] =
    "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.25\n"
    "label 1 -1\nnr_sv 1 1\nSV\n1 1:0.5 3:2\n-1 2:1\n";

static void test_text_model(void **state) {
    scratch *s = *state;
    latent_svm *svm = NULL;
    const char *path = scratch_file(s, "m", good_model, sizeof good_model - 1);
    const float x[8] = {0.5f, 0, 2, 0, 0, 1, 0, 9};
    double decisions[2];
    int32_t labels[2];
    assert_int_equal(latent_svm_load(s->ctx, path, SVM_HOST, &svm), LATENT_OK);
    latent_svm_info info;
    latent_svm_get_info(svm, &info);
    assert_int_equal(info.d, 3);
    assert_int_equal(info.open_width, 1);
    assert_int_equal(latent_svm_predict(s->ctx, svm, x, 1, 3, labels, decisions, NULL), LATENT_OK);
    /* The first vector itself: exp(0) - exp(-0.5 * 5.25) - 0.25 */
    assert_true(fabs(decisions[0] - (1 - exp(-2.625) - 0.25)) < 1e-6);
    assert_int_equal(labels[0], 1);
    /* Rows may be wider than the vectors reach: the rest of a vector is 0. */
    assert_int_equal(latent_svm_predict(s->ctx, svm, x, 2, 4, labels, decisions, NULL), LATENT_OK);
    assert_true(fabs(decisions[0] - (1 - exp(-2.625) - 0.25)) < 1e-6);
    assert_true(fabs(decisions[1] - (-0.25)) < 1e-6);
    assert_fails(s->ctx, latent_svm_predict(s->ctx, svm, x, 2, 2, labels, NULL, NULL), LATENT_ERROR_ARGUMENT,
                 "the rows have 2 features, but the model was trained on at least 4");
    latent_svm_destroy(svm);
}

/* One replacement in a good file makes each bad one. */
static void test_bad_text_models(void **state) {
    scratch *s = *state;
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"c_svc", "epsilon_svr", "not a classifier"},
        {"rbf", "polynomial", "rbf and linear can"},
        {"gamma 0.5\n", "", "lacks the key 'gamma'"},
        {"gamma 0.5", "gamma -1", "gamma is -1"},
        {"gamma 0.5", "gamma nan", "finite number"},
        {"gamma 0.5", "gamma 0.5 2", "too many values"},
        {"gamma 0.5", "gamma", "too few values"},
        {"gamma 0.5\n", "gamma 0.5\ngamma 0.5\n", "is there twice"},
        {"nr_class 2", "nr_class 1", "from 2 to 4096"},
        {"nr_class 2", "nr_class 1000000000", "from 2 to 4096"},
        {"nr_class 2\n", "", "comes before nr_class"},
        {"total_sv 2", "total_sv 3", "cut short"},
        {"total_sv 2", "total_sv 1", "after the last support vector"},
        {"total_sv 2", "total_sv 99999999999", "total_sv"},
        {"rho 0.25", "rho", "too few"},
        {"label 1 -1", "label 1 1", "two classes"},
        {"label 1 -1", "label 1 1.5", "whole number"},
        {"nr_sv 1 1", "nr_sv 2 1", "do not add up"},
        {"nr_sv 1 1", "nr_sv 1", "too few"},
        {"nr_sv 1 1\n", "nr_sv 1 1\nprobA 1\n", "lacks the key 'probB'"},
        {"nr_sv 1 1\n", "nr_sv 1 1\nhello 1\n", "not a key"},
        {"nr_sv 1 1\n", "\nnr_sv 1 1\n", "line is empty"},
        {"\nSV\n", "\n", "not a key"},
        {"1:0.5 3:2", "3:2 1:0.5", "indices must rise"},
        {"1:0.5 3:2", "3:2 3:2", "indices must rise"},
        {"1:0.5 3:2", "0:0.5 3:2", "index from 1"},
        {"1:0.5 3:2", "1:0.5 2000000000:2", "out of proportion"},
        {"1:0.5 3:2", "1:1e39", "32 bits"},
        {"1:0.5 3:2", "1:x", "32 bits"},
        {"1:0.5 3:2", "one", "index:value"},
        {"-1 2:1", "inf 2:1", "not a coefficient"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        latent_svm *svm = NULL;
        const char *at = strstr(good_model, cases[i].from);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good_model), good_model, cases[i].to,
                 at + strlen(cases[i].from));
        const char *path = scratch_file(s, "bad", text, strlen(text));
        assert_fails(s->ctx, latent_svm_load(s->ctx, path, SVM_HOST, &svm), LATENT_ERROR_FORMAT,
                     cases[i].says);
        assert_null(svm);
    }
}

/* Cut at every byte: an error; what is left of the last line may be a line by itself, up to there. */
static void test_cut_models(void **state) {
    scratch *s = *state;
    latent_svm *svm = NULL;
    for (size_t bytes = 0; bytes + 5 < sizeof good_model - 1; bytes++) {
        const char *path = scratch_file(s, "cut", good_model, bytes);
        assert_int_equal(latent_svm_load(s->ctx, path, SVM_HOST, &svm), LATENT_ERROR_FORMAT);
        assert_null(svm);
    }
    assert_fails(s->ctx, latent_svm_load(s->ctx, scratch_path(s, "none"), SVM_HOST, &svm), LATENT_ERROR_IO,
                 "none");
    svm_recipe recipe = {.n = 40, .d = 3, .classes = 2, .overlap = 0.8, .seed = 5};
    svm_set set;
    latent_svm_options options;
    latent_svm_defaults(&options);
    svm = train(s, &recipe, &options, &set);
    const char *path = scratch_path(s, "whole");
    assert_int_equal(latent_svm_save(s->ctx, svm, path, LATENT_SVM_SAFETENSORS), LATENT_OK);
    latent_svm_destroy(svm);
    svm_drop(&set);
    char *data = NULL;
    size_t size = 0;
    assert_int_equal(lt_file_read(s->ctx, path, 1 << 20, &data, &size), LATENT_OK);
    for (size_t bytes = 0; bytes < size; bytes += bytes < 64 ? 1 : 61) {
        assert_int_not_equal(lt_svm_file_parse(s->ctx, data, bytes, "cut", &svm), LATENT_OK);
        assert_null(svm);
    }
    /* Another word of the same length in the header: each is noticed. */
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"latent svm", "latent svn", "not a model"},         {"\"vectors\"", "\"vectorz\"", "\"vectors\""},
        {"\"labels\"", "\"labelz\"", "\"labels\""},          {"\"rho\"", "\"rhq\"", "\"rho\" is missing"},
        {"\"kernel\":\"rbf\"", "\"kernel\":\"rbg\"", "rbf"}, {"\"libsvm\"", "\"libsvn\"", "vote"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *copy = malloc(size);
        memcpy(copy, data, size);
        char *at = memmem(copy, size, cases[i].from, strlen(cases[i].from));
        assert_non_null(at);
        memcpy(at, cases[i].to, strlen(cases[i].to));
        assert_fails(s->ctx, lt_svm_file_parse(s->ctx, copy, size, "bad", &svm), LATENT_ERROR_FORMAT,
                     cases[i].says);
        free(copy);
    }
    free(data);
}

/* ---- sparse text ---- */

static latent_status read_text(scratch *s, const char *text, size_t columns, latent_rows *out) {
    return latent_rows_read(s->ctx, scratch_file(s, "rows.txt", text, strlen(text)), columns, out);
}

static void test_sparse_rows(void **state) {
    scratch *s = *state;
    latent_rows rows;
    assert_int_equal(read_text(s, "+1 1:0.5 4:-2e-3\n-1\r\n3.0 2:7 \t 3:1e-45", 0, &rows), LATENT_OK);
    assert_int_equal(rows.n, 3);
    assert_int_equal(rows.d, 4);
    const float expected[12] = {0.5f, 0, 0, -2e-3f, 0, 0, 0, 0, 0, 7, 1e-45f, 0};
    assert_memory_equal(rows.x, expected, sizeof expected);
    assert_int_equal(rows.labels[0], 1);
    assert_int_equal(rows.labels[1], -1);
    assert_int_equal(rows.labels[2], 3);
    latent_rows_free(&rows);
    assert_int_equal(read_text(s, "1 1:1\n", 6, &rows), LATENT_OK);
    assert_int_equal(rows.d, 6);
    latent_rows_free(&rows);
    /* What is written reads back to the same bits. */
    svm_recipe recipe = {.n = 50, .d = 9, .classes = 3, .relu = 1, .overlap = 1, .seed = 9};
    svm_set set = svm_make(&recipe);
    set.x[set.d - 1] = 1; /* the last column is not empty */
    const char *path = scratch_path(s, "out.txt");
    assert_int_equal(latent_rows_write(s->ctx, path, set.x, set.n, set.d, set.labels), LATENT_OK);
    assert_int_equal(latent_rows_read(s->ctx, path, 0, &rows), LATENT_OK);
    assert_int_equal(rows.n, set.n);
    assert_int_equal(rows.d, set.d);
    assert_memory_equal(rows.x, set.x, set.n * set.d * sizeof *set.x);
    assert_memory_equal(rows.labels, set.labels, set.n * sizeof *set.labels);
    latent_rows_free(&rows);
    path = scratch_path(s, "out.npy");
    assert_int_equal(latent_rows_write(s->ctx, path, set.x, set.n, set.d, NULL), LATENT_OK);
    assert_int_equal(latent_rows_read(s->ctx, path, set.d, &rows), LATENT_OK);
    assert_memory_equal(rows.x, set.x, set.n * set.d * sizeof *set.x);
    assert_null(rows.labels);
    latent_rows_free(&rows);
    assert_fails(s->ctx, latent_rows_read(s->ctx, path, 4, &rows), LATENT_ERROR_FORMAT, "9 features, but 4");
    svm_drop(&set);
}

/* A request to stop ends a long file at its next row, and nothing half-written is left. */
static void test_interrupted(void **state) {
    scratch *s = *state;
    const float x[] = {1, 0, 2, 0};
    const int32_t labels[] = {1, 2};
    latent_rows rows;
    const char *text = scratch_file(s, "x.txt", "1 1:1\n2 1:2\n", 12), *out = scratch_path(s, "out");
    latent_context_interrupt(s->ctx);
    assert_fails(s->ctx, latent_rows_write(s->ctx, out, x, 2, 2, labels), LATENT_INTERRUPTED,
                 "out was not written");
    assert_fails(s->ctx, latent_rows_write(s->ctx, out, x, 2, 2, NULL), LATENT_INTERRUPTED,
                 "out was not written");
    assert_fails(s->ctx, latent_rows_read(s->ctx, text, 0, &rows), LATENT_INTERRUPTED, "x.txt was read");
    assert_int_equal(scratch_entries(s->folder), 1);
}

static void test_bad_rows(void **state) {
    scratch *s = *state;
    static const struct {
        const char *text;
        size_t columns;
        const char *says;
    } cases[] = {
        {"", 0, "no rows"},
        {"1\n2\n", 0, "has a value"},
        {"1 1:1\n\n2 1:1\n", 0, "line 2 is empty"},
        {"x 1:1\n", 0, "label 'x'"},
        {"1.5 1:1\n", 0, "label '1.5'"},
        {"99999999999 1:1\n", 0, "label '99999999999'"},
        {"1 2:1 1:1\n", 0, "line 1: index 1 comes after index 2"},
        {"1 1:1\n1 2:1 2:1\n", 0, "line 2: index 2 comes after index 2"},
        {"1 0:1\n", 0, "index from 1"},
        {"1 -1:1\n", 0, "index from 1"},
        {"1 4294967297:1\n", 0, "index from 1"},
        {"1 1\n", 0, "index:value"},
        {"1 1:\n", 0, "finite number"},
        {"1 1:nan\n", 0, "finite number"},
        {"1 1:1e39\n", 0, "finite number"},
        {"1 1:1 # note\n", 0, "'#'"},
        {"1 7:1\n", 6, "index 7"},
        {"1 2147483647:1\n", 0, "out of proportion"},
        {"1 1:\001\n", 0, "no text"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        latent_rows rows;
        assert_fails(s->ctx, read_text(s, cases[i].text, cases[i].columns, &rows), LATENT_ERROR_FORMAT,
                     cases[i].says);
        assert_null(rows.x);
    }
    char text[400];
    memset(text, '1', sizeof text);
    latent_rows rows;
    assert_fails(s->ctx, latent_rows_read(s->ctx, scratch_file(s, "long", text, sizeof text), 0, &rows),
                 LATENT_ERROR_FORMAT, "too long");
}

static void test_labels(void **state) {
    scratch *s = *state;
    int32_t *labels = NULL;
    size_t n = 0;
    assert_int_equal(latent_labels_read(s->ctx, scratch_file(s, "l", "3\n\n -1 \n7", 9), &labels, &n),
                     LATENT_OK);
    assert_int_equal(n, 3);
    assert_int_equal(labels[1], -1);
    latent_free(labels);
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "no labels"}, {"1 2\n", "second word"}, {"1\ncat\n", "line 2: 'cat'"}, {"1.5\n", "'1.5'"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = scratch_file(s, "bad", cases[i].text, strlen(cases[i].text));
        assert_fails(s->ctx, latent_labels_read(s->ctx, path, &labels, &n), LATENT_ERROR_FORMAT,
                     cases[i].says);
        assert_null(labels);
    }
}

/* Numbers near the limits of the quick conversion: the same double as strtod gives. */
static void test_numbers(void **state) {
    scratch *s = *state;
    static const char *const words[] = {"0",
                                        "-0.0",
                                        "123456789012345",
                                        "1234567890123456789",
                                        "0.1",
                                        "1e22",
                                        "1e23",
                                        "9.007199254740993e15",
                                        "4.9e-324",
                                        "1e-400",
                                        ".5",
                                        "5.",
                                        "+7e+2",
                                        "1e0000001",
                                        "0.000001234567890123"};
    lt_scan *scan = NULL;
    double value;
    assert_int_equal(lt_scan_memory(s->ctx, "", 0, "x", &scan), LATENT_OK);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        double expected = strtod(words[i], NULL);
        assert_int_equal(lt_scan_number(scan, words[i], &value), 1);
        assert_memory_equal(&value, &expected, sizeof value);
    }
    static const char *const wrong[] = {"", "-", ".", "e5", "1e", "1x", "inf", "nan", "1e999", "1,5", "--1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(lt_scan_number(scan, wrong[i], &value), 0);
    }
    lt_scan_close(scan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_round_trips), SCRATCH_TEST(test_any_alignment),   SCRATCH_TEST(test_gamma_per_pair),
        SCRATCH_TEST(test_text_model),  SCRATCH_TEST(test_bad_text_models), SCRATCH_TEST(test_cut_models),
        SCRATCH_TEST(test_sparse_rows), SCRATCH_TEST(test_bad_rows),        SCRATCH_TEST(test_labels),
        SCRATCH_TEST(test_numbers),     SCRATCH_TEST(test_interrupted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
