/* test_scaling.c: features of new images, standardized by the mean and deviation of others: the same bits
 * where the images are the same, in one pass; and every file that is no such scaling, or not the right one.
 */
#include "train_fixture.h"

#include "io/safetensors.h"
#include "model/features.h"

#include <math.h>

enum { WIDTH = 16 * 16 * 4 };

static latent_features_options all_steps(const char *scaling) {
    latent_features_options options;
    latent_features_defaults(&options);
    options.scaling = scaling;
    return options;
}

static latent_status extract(const fixture *fx, latent_model *model, const latent_features_options *options,
                             const char *folder) {
    latent_features_info info;
    return latent_features_extract(fx->ctx, model, fx->data, options, folder, &info);
}

static int same_file(const fixture *fx, const char *name) {
    size_t bytes[2];
    char *a = fixture_file(fx, fx->run, name, &bytes[0]), *b = fixture_file(fx, fx->other, name, &bytes[1]);
    int same = bytes[0] == bytes[1] && memcmp(a, b, bytes[0]) == 0;
    free(a);
    free(b);
    return same;
}

static void keep_total(void *user, latent_split split, int done, int total) {
    (void)split, (void)done;
    *(int *)user = total;
}

static void test_same_numbers(void **state) {
    fixture *fx = *state;
    latent_model *model = fixture_model(fx, 1);
    latent_features_options own = all_steps(NULL), given = all_steps(fx->run);
    latent_features_info info, again;
    int total = 0;
    OK(fx, extract(fx, model, &own, fx->run));
    /* The same images: the same bits, though no row may wait and none is computed twice. */
    given.memory = 1;
    given.progress = keep_total;
    given.user = &total;
    OK(fx, latent_features_extract(fx->ctx, model, fx->data, &given, fx->other, &info));
    assert_int_equal(total, 2 * FIXTURE_IMAGES);
    assert_true(same_file(fx, "train.npy"));
    assert_true(same_file(fx, "test.npy"));
    assert_true(same_file(fx, "scaling.safetensors"));
    assert_string_equal(info.scaling, fixture_path(fx->run, "scaling.safetensors"));
    OK(fx, latent_features_read(fx->ctx, fx->other, &again));
    assert_memory_equal(&again, &info, sizeof info);
    /* Other training images have another mean. It moves the test rows, unless the scaling is given. */
    for (int i = 0; i < FIXTURE_IMAGES * LT_CIFAR_IMAGE; i++) {
        fx->data->images[LATENT_TRAIN][i] = (uint8_t)(255 - fx->data->images[LATENT_TRAIN][i] / 2);
    }
    OK(fx, extract(fx, model, &own, fx->other));
    assert_false(same_file(fx, "test.npy"));
    given.scaling = fixture_path(fx->run, "scaling.safetensors"); /* the file itself will do as well */
    OK(fx, extract(fx, model, &given, fx->other));
    assert_true(same_file(fx, "test.npy"));
    assert_false(same_file(fx, "train.npy"));
    latent_model_destroy(model);
}

/* A scaling of features that were made in another way, or by another model, is none for these. */
static void test_not_alike(void **state) {
    fixture *fx = *state;
    latent_model *model = fixture_model(fx, 1), *other = fixture_model(fx, 2);
    latent_features_options own = all_steps(NULL), given = all_steps(fx->run);
    OK(fx, extract(fx, model, &own, fx->run));
    given.flip = 0;
    assert_refused(
        fx, extract(fx, model, &given, fx->other), LATENT_ERROR_ARGUMENT,
        "scaling.safetensors: it is of features to which the mirrored image was added, but it is to "
        "be left out here");
    given.flip = 1;
    given.l2 = 0;
    assert_refused(fx, extract(fx, model, &given, fx->other), LATENT_ERROR_ARGUMENT,
                   "rows that were brought to length 1");
    given.l2 = 1;
    assert_refused(fx, extract(fx, other, &given, fx->other), LATENT_ERROR_ARGUMENT,
                   "features of other weights than this model's");
    given.standardize = 0;
    assert_refused(fx, extract(fx, model, &given, fx->other), LATENT_ERROR_ARGUMENT,
                   "not to be standardized");
    given.standardize = 1;
    assert_refused(fx, extract(fx, model, &given, fx->run), LATENT_ERROR_ARGUMENT,
                   "write the new ones to another folder");
    given.scaling = fx->folder;
    assert_refused(fx, extract(fx, model, &given, fx->other), LATENT_ERROR_ARGUMENT,
                   "no scaling.safetensors in it");
    given.scaling = fixture_path(fx->folder, "none");
    assert_refused(fx, extract(fx, model, &given, fx->other), LATENT_ERROR_IO, "none: cannot read");
    assert_false(lt_folder_exists(fx->other)); /* refused before anything was written */
    latent_features_info info;
    OK(fx, latent_features_read(fx->ctx, fx->run, &info)); /* the old ones are whole */
    latent_model_destroy(model);
    latent_model_destroy(other);
}

static latent_status take(const fixture *fx, const lt_st_tensor *tensors, int count, const char *format) {
    const lt_st_pair metadata[] = {{"format", format}, {"flip", "1"}, {"l2", "1"}, {"epsilon", "0.001"}};
    const char *path = fixture_path(fx->folder, "given");
    latent_features_options options = all_steps(NULL);
    float mean[4], deviation[4];
    OK(fx, lt_st_write(fx->ctx, path, tensors, count, metadata, 4));
    return lt_scaling_read(fx->ctx, path, 4, &options, "", mean, deviation);
}

static void test_wrong_contents(void **state) {
    fixture *fx = *state;
    static const char format[] = "latent-scaling 1";
    float mean[4] = {0, 1, -2, 3}, deviation[4] = {0, 1, 2, 3};
    const double wide[4] = {0};
    lt_st_tensor t[2] = {
        {.name = "mean", .type = LT_ST_F32, .dims = 1, .shape = {4}, .count = 4, .data = mean},
        {.name = "deviation", .type = LT_ST_F32, .dims = 1, .shape = {4}, .count = 4, .data = deviation}};
    OK(fx, take(fx, t, 2, format));
    assert_refused(fx, take(fx, t, 2, "pt"), LATENT_ERROR_FORMAT, "given: not a scaling of features");
    assert_refused(fx, take(fx, t, 1, format), LATENT_ERROR_FORMAT, "numbers named \"deviation\"");
    mean[2] = NAN;
    assert_refused(fx, take(fx, t, 2, format), LATENT_ERROR_FORMAT,
                   "\"mean\" of column 2 is nan; it must be a finite number");
    mean[2] = -2;
    deviation[3] = INFINITY;
    assert_refused(fx, take(fx, t, 2, format), LATENT_ERROR_FORMAT, "\"deviation\" of column 3 is inf");
    deviation[3] = -1;
    assert_refused(fx, take(fx, t, 2, format), LATENT_ERROR_FORMAT, "not below 0");
    deviation[3] = 3;
    t[1].shape[0] = t[1].count = 3;
    assert_refused(fx, take(fx, t, 2, format), LATENT_ERROR_FORMAT,
                   "\"deviation\" has 3 numbers, but the features of this model have 4 columns");
    t[1] = (lt_st_tensor){
        .name = "deviation", .type = LT_ST_F64, .dims = 1, .shape = {4}, .count = 4, .data = wide};
    assert_refused(fx, take(fx, t, 2, format), LATENT_ERROR_FORMAT, "no list of F32 numbers");
}

/* Cut anywhere, or with any byte of its head changed, a file is refused or still gives finite numbers. */
static void test_hostile_bytes(void **state) {
    fixture *fx = *state;
    latent_features_options options = all_steps(NULL);
    latent_model *model = fixture_model(fx, 1);
    float *mean = malloc(2 * WIDTH * sizeof *mean);
    char weights[33];
    size_t bytes = 0;
    OK(fx, latent_model_digest(fx->ctx, model, weights));
    OK(fx, extract(fx, model, &options, fx->run));
    char *whole = fixture_file(fx, fx->run, "scaling.safetensors", &bytes);
    for (size_t i = 0; i < 600; i++) {
        lt_safetensors *st = NULL;
        size_t length = i % 2 ? bytes : i < 500 ? i : bytes * (i - 500) / 100;
        char *copy = malloc(bytes);
        memcpy(copy, whole, bytes);
        copy[i % 2 ? i / 2 : 0] ^= i % 2 ? (char)(1 << i % 7) : 0;
        latent_status status = lt_st_parse(fx->ctx, copy, length, "given", &st);
        if (status == LATENT_OK) {
            status = lt_scaling_take(fx->ctx, st, "given", WIDTH, &options, weights, mean, mean + WIDTH);
        }
        for (int k = 0; status == LATENT_OK && k < 2 * WIDTH; k++) {
            assert_true(isfinite(mean[k]));
        }
        assert_true(status == LATENT_OK || strstr(latent_context_message(fx->ctx), "given"));
        assert_true(i % 2 || status != LATENT_OK);
        lt_st_destroy(st);
        free(copy);
    }
    free(whole);
    free(mean);
    latent_model_destroy(model);
}

#define FIXTURE_TEST(function) cmocka_unit_test_setup_teardown(function, fixture_open, fixture_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_same_numbers),
        FIXTURE_TEST(test_not_alike),
        FIXTURE_TEST(test_wrong_contents),
        FIXTURE_TEST(test_hostile_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
