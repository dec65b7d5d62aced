/* test_features.c: the encoder over a data set: order, mirror images, mean and deviation, length, files. */
#include "train_fixture.h"

#include "backend/host.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "model/features.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { WIDTH = 16 * 16 * 4 };

static latent_features_options no_steps(void) {
    latent_features_options options;
    latent_features_defaults(&options);
    options.flip = options.standardize = options.l2 = 0;
    return options;
}

/* All rows of a split, read back with the reader of .npy files. */
static float *read_rows(const fixture *fx, const char *folder, const char *name, int rows, int width) {
    lt_npy *npy = NULL;
    float *x = malloc((size_t)rows * (size_t)width * sizeof *x);
    OK(fx, lt_npy_open(fx->ctx, fixture_path(folder, name), &npy));
    const lt_npy_info *info = lt_npy_get_info(npy);
    assert_int_equal(info->type, LT_NPY_F32);
    assert_int_equal(info->dims, 2);
    assert_int_equal(info->shape[0], rows);
    assert_int_equal(info->shape[1], width);
    OK(fx, lt_npy_floats(fx->ctx, npy, x, (uint64_t)rows * (uint64_t)width));
    lt_npy_close(npy);
    return x;
}

static latent_features_info extract(const fixture *fx, latent_model *model,
                                    const latent_features_options *options, const char *folder) {
    latent_features_info info;
    OK(fx, latent_features_extract(fx->ctx, model, fx->data, options, folder, &info));
    return info;
}

/* A 1x1 conv that only reorders channels: feature [k][y][x] of an image is channel 2-k of its pixel (y, x)
 * over 255, without any arithmetic. */
static void test_order_by_hand(void **state) {
    fixture *fx = *state;
    static const char text[] = "input 32x32x3\nconv pick 3 1x1\nlatent\nconv up 3 3x3\nloss mse\n"
                               "train epochs 1 batch 4 optimizer sgd lr 1e-2\n";
    const float pick[9] = {0, 0, 1, 0, 1, 0, 1, 0, 0}, zero[3] = {0};
    latent_engine_options engine = {.backend = "ref"};
    latent_net *net = NULL;
    latent_model *model = NULL;
    OK(fx, latent_net_parse(fx->ctx, text, sizeof text - 1, "pick", &net));
    OK(fx, latent_model_create(fx->ctx, net, &engine, 1, &model));
    OK(fx, latent_model_write_tensor(fx->ctx, model, 0, pick));
    OK(fx, latent_model_write_tensor(fx->ctx, model, 1, zero));
    latent_features_options options = no_steps();
    latent_features_info info = extract(fx, model, &options, fx->run);
    assert_int_equal(info.width, 3072);
    float *x = read_rows(fx, fx->run, "train.npy", FIXTURE_IMAGES, 3072);
    for (int i = 0; i < FIXTURE_IMAGES; i++) {
        const uint8_t *image = fx->data->images[LATENT_TRAIN] + (size_t)i * LT_CIFAR_IMAGE;
        for (int k = 0; k < 3; k++) {
            for (int p = 0; p < 1024; p++) {
                float wanted = (float)image[p * 3 + 2 - k] * (1.0f / 255.0f);
                assert_float_equal(x[i * 3072 + k * 1024 + p], wanted, 1e-7);
            }
        }
    }
    free(x);
    latent_model_destroy(model);
    latent_net_destroy(net);
}

/* Without any step the rows are those of latent_model_encode, and the labels those of the data. */
static void test_rows_and_labels(void **state) {
    fixture *fx = *state;
    latent_model *model = fixture_model(fx, 1);
    latent_features_options options = no_steps();
    float *wanted = malloc(FIXTURE_IMAGES * WIDTH * sizeof *wanted);
    for (int i = 0; i < FIXTURE_IMAGES; i++) {
        fx->data->labels[LATENT_TEST][i] = (uint8_t)(9 - i);
    }
    latent_features_info info = extract(fx, model, &options, fx->run), again;
    OK(fx, latent_model_encode(fx->ctx, model, fx->data->images[LATENT_TEST], FIXTURE_IMAGES, wanted));
    float *x = read_rows(fx, fx->run, "test.npy", FIXTURE_IMAGES, WIDTH);
    assert_memory_equal(x, wanted, FIXTURE_IMAGES * WIDTH * sizeof *x);
    int32_t labels[FIXTURE_IMAGES];
    lt_npy *npy = NULL;
    OK(fx, lt_npy_open(fx->ctx, fixture_path(fx->run, "test_labels.npy"), &npy));
    assert_int_equal(lt_npy_get_info(npy)->type, LT_NPY_U8);
    assert_int_equal(lt_npy_get_info(npy)->count, FIXTURE_IMAGES);
    OK(fx, lt_npy_integers(fx->ctx, npy, labels, FIXTURE_IMAGES));
    lt_npy_close(npy);
    for (int i = 0; i < FIXTURE_IMAGES; i++) {
        assert_int_equal(labels[i], 9 - i);
    }
    OK(fx, latent_features_read(fx->ctx, fx->run, &again));
    assert_memory_equal(&again, &info, sizeof info);
    assert_int_equal(strlen(info.weights), 32);
    assert_false(lt_file_exists(fixture_path(fx->run, "scaling.safetensors")));
    free(x);
    free(wanted);
    latent_model_destroy(model);
}

/* The mirror image is made here, pixel by pixel. */
static void test_flip(void **state) {
    fixture *fx = *state;
    latent_model *model = fixture_model(fx, 1);
    latent_features_options options = no_steps();
    size_t bytes = FIXTURE_IMAGES * WIDTH * sizeof(float);
    float *a = malloc(bytes), *b = malloc(bytes);
    uint8_t *mirrored = malloc(FIXTURE_IMAGES * LT_CIFAR_IMAGE);
    for (int i = 0; i < FIXTURE_IMAGES * LT_CIFAR_IMAGE; i++) {
        int c = i % 3, x = i / 3 % 32, row = i / 96;
        mirrored[i] = fx->data->images[LATENT_TRAIN][row * 96 + (31 - x) * 3 + c];
    }
    OK(fx, latent_model_encode(fx->ctx, model, fx->data->images[LATENT_TRAIN], FIXTURE_IMAGES, a));
    OK(fx, latent_model_encode(fx->ctx, model, mirrored, FIXTURE_IMAGES, b));
    options.flip = 1;
    extract(fx, model, &options, fx->run);
    float *x = read_rows(fx, fx->run, "train.npy", FIXTURE_IMAGES, WIDTH);
    int different = 0;
    for (int i = 0; i < FIXTURE_IMAGES * WIDTH; i++) {
        assert_true(x[i] == a[i] + b[i]);
        different += a[i] != b[i];
    }
    assert_true(different > WIDTH); /* the images are not symmetric, so the test can tell */
    free(x);
    free(a);
    free(b);
    free(mirrored);
    latent_model_destroy(model);
}

/* Mean and deviation in two plain passes over the training rows; the test rows use the same. */
static void test_standardize(void **state) {
    fixture *fx = *state;
    latent_model *model = fixture_model(fx, 1);
    latent_features_options options = no_steps();
    extract(fx, model, &options, fx->run);
    options.standardize = 1;
    extract(fx, model, &options, fx->other);
    float *train = read_rows(fx, fx->run, "train.npy", FIXTURE_IMAGES, WIDTH);
    float *test = read_rows(fx, fx->run, "test.npy", FIXTURE_IMAGES, WIDTH);
    float *train_out = read_rows(fx, fx->other, "train.npy", FIXTURE_IMAGES, WIDTH);
    float *test_out = read_rows(fx, fx->other, "test.npy", FIXTURE_IMAGES, WIDTH);
    lt_safetensors *scaling = NULL;
    OK(fx, lt_st_read(fx->ctx, fixture_path(fx->other, "scaling.safetensors"), &scaling));
    for (int column = 0; column < WIDTH; column++) {
        double mean = 0, squares = 0;
        for (int i = 0; i < FIXTURE_IMAGES; i++) {
            mean += (double)train[i * WIDTH + column] / FIXTURE_IMAGES;
        }
        for (int i = 0; i < FIXTURE_IMAGES; i++) {
            squares += pow((double)train[i * WIDTH + column] - mean, 2);
        }
        double deviation = sqrt(squares / (FIXTURE_IMAGES - 1));
        assert_float_equal(lt_st_value(lt_st_find(scaling, "mean"), (uint64_t)column), mean, 1e-6);
        assert_float_equal(lt_st_value(lt_st_find(scaling, "deviation"), (uint64_t)column), deviation, 1e-6);
        for (int i = 0; i < FIXTURE_IMAGES; i++) {
            int at = i * WIDTH + column;
            assert_float_equal(train_out[at], (train[at] - mean) / (deviation + 1e-3), 1e-4);
            assert_float_equal(test_out[at], (test[at] - mean) / (deviation + 1e-3), 1e-4);
        }
    }
    assert_string_equal(lt_st_metadata(scaling, "epsilon"), "0.001");
    lt_st_destroy(scaling);
    free(train);
    free(test);
    free(train_out);
    free(test_out);
    latent_model_destroy(model);
}

/* A device that is none: the reference, said to have memory of its own, and counting what goes back and
 * forth. */
static struct {
    lt_backend_type type;
    int downloads;
    uint64_t free;
} device;

static latent_status device_download(latent_context *ctx, lt_backend *backend, void *to, const void *from,
                                     size_t bytes) {
    device.downloads++;
    return lt_host_copy(ctx, backend, to, from, bytes);
}

static uint64_t device_free(lt_backend *backend) {
    (void)backend;
    return device.free;
}

/* Rows that come over from a device, kept there or computed twice for want of room: the same bits. */
static void test_device_rows(void **state) {
    fixture *fx = *state;
    latent_model *model = fixture_model(fx, 1);
    latent_features_options options;
    latent_features_defaults(&options);
    latent_features_info host = extract(fx, model, &options, fx->run), there;
    float *wanted[2], *x;
    static const char *const names[2] = {"train.npy", "test.npy"};
    for (int i = 0; i < 2; i++) {
        wanted[i] = read_rows(fx, fx->run, names[i], FIXTURE_IMAGES, WIDTH);
    }
    const lt_backend_type *real = model->backend->type;
    device.type = *real;
    device.type.host_memory = 0;
    device.type.download = device_download;
    device.type.memory_free = device_free;
    for (int kept = 0; kept <= 1; kept++) {
        device.free = kept ? (uint64_t)1 << 40 : 1000;
        device.downloads = 0;
        model->backend->type = &device.type;
        there = extract(fx, model, &options, fx->other);
        model->backend->type = real;
        assert_true(device.downloads >= 3); /* the statistics, and a chunk of either split */
        assert_string_equal(there.weights, host.weights);
        for (int i = 0; i < 2; i++) {
            x = read_rows(fx, fx->other, names[i], FIXTURE_IMAGES, WIDTH);
            assert_memory_equal(x, wanted[i], FIXTURE_IMAGES * WIDTH * sizeof *x);
            free(x);
        }
    }
    free(wanted[0]);
    free(wanted[1]);
    latent_model_destroy(model);
}

/* All steps, with the training rows in memory and computed twice, in both formats: the same bits. */
static void test_memory_and_formats(void **state) {
    fixture *fx = *state;
    latent_model *model = fixture_model(fx, 1);
    latent_features_options options;
    latent_features_defaults(&options);
    assert_true(options.flip && options.standardize && options.l2);
    extract(fx, model, &options, fx->run);
    options.memory = 1;
    options.format = LATENT_RAW;
    latent_features_info info = extract(fx, model, &options, fx->other);
    size_t bytes = 0, raw_bytes = 0, data = FIXTURE_IMAGES * WIDTH * sizeof(float);
    for (int split = 0; split < 2; split++) {
        char *npy = fixture_file(fx, fx->run, split ? "test.npy" : "train.npy", &bytes);
        char *raw = fixture_file(fx, fx->other, split ? "test.f32" : "train.f32", &raw_bytes);
        assert_int_equal(raw_bytes, data);
        assert_memory_equal(npy + bytes - data, raw, data);
        free(npy);
        free(raw);
    }
    char *labels = fixture_file(fx, fx->other, "train_labels.u8", &bytes);
    assert_int_equal(bytes, FIXTURE_IMAGES);
    free(labels);
    /* The other format, written to the same folder, takes the old files away. */
    options.format = LATENT_NPY;
    extract(fx, model, &options, fx->other);
    assert_false(lt_file_exists(fixture_path(fx->other, "train.f32")));
    assert_true(lt_file_exists(fixture_path(fx->other, "train.npy")));
    OK(fx, latent_features_read(fx->ctx, fx->other, &info));
    float *x = read_rows(fx, fx->other, "train.npy", FIXTURE_IMAGES, WIDTH);
    for (int i = 0; i < FIXTURE_IMAGES; i++) {
        double squares = 0;
        for (int k = 0; k < WIDTH; k++) {
            squares += pow((double)x[i * WIDTH + k], 2);
        }
        assert_float_equal(squares, 1, 1e-5);
    }
    free(x);
    latent_model_destroy(model);
}

/* More images than go through at once: chunks follow each other in order, whatever is written meanwhile. */
static void test_several_chunks(void **state) {
    fixture *fx = *state;
    enum { IMAGES = 2100 };
    latent_model *model = fixture_model(fx, 1);
    latent_features_options options = no_steps();
    latent_features_info info;
    latent_dataset *data = fixture_data(IMAGES);
    float *wanted = malloc((size_t)IMAGES * WIDTH * sizeof *wanted);
    OK(fx, latent_features_extract(fx->ctx, model, data, &options, fx->run, &info));
    for (int split = 0; split < 2; split++) {
        OK(fx, latent_model_encode(fx->ctx, model, data->images[split], IMAGES, wanted));
        float *x = read_rows(fx, fx->run, split ? "test.npy" : "train.npy", IMAGES, WIDTH);
        assert_memory_equal(x, wanted, (size_t)IMAGES * WIDTH * sizeof *x);
        free(x);
    }
    free(wanted);
    options.standardize = options.l2 = 1;
    OK(fx, latent_features_extract(fx->ctx, model, data, &options, fx->run, &info));
    options.memory = 1;
    OK(fx, latent_features_extract(fx->ctx, model, data, &options, fx->other, &info));
    size_t a_bytes = 0, b_bytes = 0;
    char *a = fixture_file(fx, fx->run, "train.npy", &a_bytes);
    char *b = fixture_file(fx, fx->other, "train.npy", &b_bytes);
    assert_int_equal(a_bytes, b_bytes);
    assert_memory_equal(a, b, a_bytes);
    free(a);
    free(b);
    latent_dataset_destroy(data);
    latent_model_destroy(model);
}

static int entries(const char *folder) {
    char command[200], text[16] = "";
    snprintf(command, sizeof command, "ls -A %s | wc -l", folder);
    FILE *pipe = popen(command, "r");
    assert_non_null(fgets(text, sizeof text, pipe));
    pclose(pipe);
    return atoi(text);
}

/* The disk fills up in the middle of a file: the old features are all there, and nothing else. */
static void test_disk_full(void **state) {
    fixture *fx = *state;
    latent_model *model = fixture_model(fx, 1);
    latent_features_options options = no_steps();
    latent_features_info info, old = extract(fx, model, &options, fx->run);
    int files = entries(fx->run);
    struct rlimit limit, small;
    getrlimit(RLIMIT_FSIZE, &limit);
    small = limit;
    small.rlim_cur = 20000; /* half of a feature file */
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    options.l2 = 1;
    latent_status status = latent_features_extract(fx->ctx, model, fx->data, &options, fx->run, &info);
    latent_status fresh = latent_features_extract(fx->ctx, model, fx->data, &options, fx->other, &info);
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_refused(fx, status, LATENT_ERROR_IO, "cannot write");
    assert_int_equal(fresh, LATENT_ERROR_IO);
    assert_int_equal(entries(fx->run), files);
    assert_int_equal(entries(fx->other), 0);
    OK(fx, latent_features_read(fx->ctx, fx->run, &info));
    assert_memory_equal(&info, &old, sizeof info);
    latent_model_destroy(model);
}

static void stop(void *user, latent_split split, int done, int total) {
    assert_true(done > 0 && done <= total);
    if (split == LATENT_TEST) {
        latent_context_interrupt(user);
    }
}

static void test_interrupted(void **state) {
    fixture *fx = *state;
    latent_model *model = fixture_model(fx, 1);
    latent_features_options options = no_steps();
    latent_features_info info;
    options.progress = stop;
    options.user = fx->ctx;
    assert_int_equal(latent_features_extract(fx->ctx, model, fx->data, &options, fx->run, &info),
                     LATENT_INTERRUPTED);
    assert_int_equal(entries(fx->run), 0);
    latent_model_destroy(model);
}

/* A subset takes the first training images; the weights' digest follows the weights. */
static void test_subset_and_digest(void **state) {
    fixture *fx = *state;
    latent_model *model = fixture_model(fx, 1), *same = fixture_model(fx, 1);
    latent_features_options options = no_steps();
    options.subset = 3;
    latent_features_info info = extract(fx, model, &options, fx->run);
    assert_int_equal(info.count[LATENT_TRAIN], 3);
    assert_int_equal(info.count[LATENT_TEST], FIXTURE_IMAGES);
    free(read_rows(fx, fx->run, "train.npy", 3, WIDTH));
    char digest[33];
    OK(fx, latent_model_digest(fx->ctx, same, digest));
    assert_string_equal(digest, info.weights);
    const float bias[4] = {0, 0, 0, 1e-3f};
    OK(fx, latent_model_write_tensor(fx->ctx, same, 1, bias));
    OK(fx, latent_model_digest(fx->ctx, same, digest));
    assert_string_not_equal(digest, info.weights);
    /* What they were made from and how is read back; older records do not say. */
    latent_features_info read;
    latent_dataset_digest(fx->data, digest);
    OK(fx, latent_features_read(fx->ctx, fx->run, &read));
    assert_string_equal(read.digest, digest);
    assert_string_equal(read.precision, "fp32");
    size_t bytes = 0;
    char *text = NULL;
    OK(fx, lt_file_read(fx->ctx, fixture_path(fx->run, "features.json"), 1 << 16, &text, &bytes));
    strstr(text, "data_digest")[0] = strstr(text, "precision")[0] = 'x';
    OK(fx, lt_file_write(fx->ctx, fixture_path(fx->run, "features.json"), text, bytes));
    OK(fx, latent_features_read(fx->ctx, fx->run, &read));
    assert_string_equal(read.digest, "");
    assert_string_equal(read.precision, "");
    free(text);
    latent_model_destroy(model);
    latent_model_destroy(same);
}

static void test_refusals(void **state) {
    fixture *fx = *state;
    latent_model *model = fixture_model(fx, 1);
    latent_features_options options = no_steps();
    latent_features_info info;
    options.subset = FIXTURE_IMAGES + 1;
    assert_refused(fx, latent_features_extract(fx->ctx, model, fx->data, &options, fx->run, &info),
                   LATENT_ERROR_ARGUMENT, "a subset of 11 images");
    options.subset = 0;
    const float bias[4] = {0, NAN, 0, 0};
    OK(fx, latent_model_write_tensor(fx->ctx, model, 1, bias));
    assert_refused(fx, latent_features_extract(fx->ctx, model, fx->data, &options, fx->run, &info),
                   LATENT_ERROR_NUMERIC, "training image 0 has features that are not finite");
    assert_int_equal(entries(fx->run), 0);
    /* Only images 3 and 7 are not black: it is 3 that is named, also where a mean of all rows is taken. */
    const float none[4] = {0};
    float huge[4 * 3 * 3 * 3];
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        huge[i] = 3e38f;
    }
    OK(fx, latent_model_write_tensor(fx->ctx, model, 0, huge));
    OK(fx, latent_model_write_tensor(fx->ctx, model, 1, none));
    memset(fx->data->images[LATENT_TRAIN], 0, FIXTURE_IMAGES * LT_CIFAR_IMAGE);
    memset(fx->data->images[LATENT_TRAIN] + 3 * LT_CIFAR_IMAGE, 255, LT_CIFAR_IMAGE);
    memset(fx->data->images[LATENT_TRAIN] + 7 * LT_CIFAR_IMAGE, 255, LT_CIFAR_IMAGE);
    for (int all = 0; all <= 1; all++) {
        options.flip = options.standardize = options.l2 = all;
        assert_refused(fx, latent_features_extract(fx->ctx, model, fx->data, &options, fx->run, &info),
                       LATENT_ERROR_NUMERIC, "training image 3 has features that are not finite");
        assert_int_equal(entries(fx->run), 0);
    }
    latent_model_destroy(model);
}

/* A killed extraction leaves its files under their temporary names, in either format; the next removes them.
 */
static void test_leftovers(void **state) {
    fixture *fx = *state;
    latent_model *model = fixture_model(fx, 1);
    latent_features_options options = no_steps();
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    OK(fx, lt_folder_create(fx->ctx, fx->run));
    static const char *const names[] = {"train.npy", "test.npy", "train.f32", "test_labels.u8"};
    char left[4][256], mine[256];
    snprintf(mine, sizeof mine, "%s/notes.tmp.%ld", fx->run, (long)child);
    OK(fx, lt_file_write(fx->ctx, mine, "x", 1));
    for (int i = 0; i < 4; i++) {
        snprintf(left[i], sizeof left[i], "%s/%s.tmp.%ld", fx->run, names[i], (long)child);
        OK(fx, lt_file_write(fx->ctx, left[i], "x", 1));
    }
    extract(fx, model, &options, fx->run);
    for (int i = 0; i < 4; i++) {
        assert_false(lt_file_exists(left[i]));
    }
    assert_true(lt_file_exists(mine));
    latent_model_destroy(model);
}

static void write_record(const fixture *fx, const char *text) {
    OK(fx, lt_file_write(fx->ctx, fixture_path(fx->run, "features.json"), text, strlen(text)));
}

/* features.json may say anything. */
static void test_hostile_record(void **state) {
    fixture *fx = *state;
    latent_model *model = fixture_model(fx, 1);
    latent_features_options options = no_steps();
    latent_features_info info;
    extract(fx, model, &options, fx->run);
    assert_int_equal(truncate(fixture_path(fx->run, "test.npy"), 1000), 0);
    assert_refused(fx, latent_features_read(fx->ctx, fx->run, &info), LATENT_ERROR_FORMAT,
                   "test.npy: 1000 bytes, but features.json beside it says");
    unlink(fixture_path(fx->run, "test.npy"));
    assert_refused(fx, latent_features_read(fx->ctx, fx->run, &info), LATENT_ERROR_IO, "test.npy");
    write_record(fx, "[]");
    assert_refused(fx, latent_features_read(fx->ctx, fx->run, &info), LATENT_ERROR_FORMAT, "\"format\"");
    write_record(fx, "{\"format\": \"latent-features 1\", \"train\": -4}");
    assert_refused(fx, latent_features_read(fx->ctx, fx->run, &info), LATENT_ERROR_FORMAT,
                   "not a whole record");
    write_record(fx, "{\"format\": ");
    assert_int_equal(latent_features_read(fx->ctx, fx->run, &info), LATENT_ERROR_FORMAT);
    latent_model_destroy(model);
}

#define FIXTURE_TEST(function) cmocka_unit_test_setup_teardown(function, fixture_open, fixture_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_order_by_hand),     FIXTURE_TEST(test_device_rows),
        FIXTURE_TEST(test_rows_and_labels),   FIXTURE_TEST(test_flip),
        FIXTURE_TEST(test_standardize),       FIXTURE_TEST(test_memory_and_formats),
        FIXTURE_TEST(test_disk_full),         FIXTURE_TEST(test_interrupted),
        FIXTURE_TEST(test_subset_and_digest), FIXTURE_TEST(test_several_chunks),
        FIXTURE_TEST(test_refusals),          FIXTURE_TEST(test_hostile_record),
        FIXTURE_TEST(test_leftovers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
