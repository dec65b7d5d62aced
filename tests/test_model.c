/* test_model.c: models: weights through files, inference against the definition, comparing. */
#include "backend/ref/ref.h"
#include "base/file.h"
#include "data/dataset.h"
#include "io/ae2024.h"
#include "io/safetensors.h"
#include "model/model.h"
#include "scratch_folder.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char small[] = "input 6x4x3\nconv enc 5 3x3 relu pool2\nlatent\nconv dec 3 3x3 up2\nloss mse\n";

static latent_context *ctx;
static char folder[40];
static const latent_engine_options ref = {.backend = "ref"};

#define OK(call)                                                                                             \
    do {                                                                                                     \
        if ((call) != LATENT_OK) {                                                                           \
            fail_msg("%s: %s", #call, latent_context_message(ctx));                                          \
        }                                                                                                    \
    } while (0)

static void assert_message(const char *part) {
    if (!strstr(latent_context_message(ctx), part)) {
        fail_msg("wanted '%s' in: %s", part, latent_context_message(ctx));
    }
}

static const char *in_folder(const char *name) {
    static char path[4][128];
    static int next;
    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
    return path[next];
}

static latent_model *create(const char *text, uint64_t seed) {
    latent_net *net = NULL;
    latent_model *model = NULL;
    OK(latent_net_parse(ctx, text, strlen(text), "small.net", &net));
    OK(latent_model_create(ctx, net, &ref, seed, &model));
    latent_net_destroy(net);
    return model;
}

static void test_tensor_order(void **state) {
    (void)state;
    latent_model *model = create(small, 1);
    assert_int_equal(latent_model_tensor_count(model), 4);
    latent_tensor_info info;
    latent_model_get_tensor(model, 0, &info);
    assert_string_equal(info.name, "enc.weight");
    assert_int_equal(info.dims, 4);
    assert_int_equal(info.shape[0], 5);
    assert_int_equal(info.shape[1], 3);
    assert_int_equal(info.shape[3], 3);
    float values[5 * 3 * 9], back[5 * 3 * 9];
    for (int i = 0; i < 135; i++) {
        values[i] = (float)i;
    }
    OK(latent_model_write_tensor(ctx, model, 0, values));
    OK(latent_model_read_tensor(ctx, model, 0, back));
    assert_memory_equal(values, back, sizeof values);
    /* OIHW [o=2][i=1][h=0][w=2] = 2*27 + 9 + 2 stands at OHWI [2][0][2][1] = 2*27 + 6 + 1. */
    float block[1024];
    OK(lt_model_download(ctx, model, block));
    assert_true(block[2 * 27 + 6 + 1] == (float)(2 * 27 + 9 + 2));
    latent_model_destroy(model);
}

/* ---- Memory that is short ------------------------------------------------------------------------ */

/* The reference's table, but no block may be larger than this. */
static size_t largest;

static latent_status short_alloc(latent_context *c, lt_backend *backend, size_t bytes, void **out) {
    *out = NULL;
    return bytes > largest ? lt_fail(c, LATENT_ERROR_MEMORY, "%zu bytes are too many", bytes)
                           : lt_backend_ref.alloc(c, backend, bytes, out);
}

/* The same results from batches of 25 images as from batches of 100. */
static void test_short_memory(void **state) {
    (void)state;
    enum { COUNT = LT_INFER_BATCH + 3, IMAGE = 72, CODE = 30 };
    lt_backend_type short_type = lt_backend_ref;
    uint8_t images[COUNT * IMAGE];
    static float output[2][COUNT * IMAGE], code[2][COUNT * CODE];
    latent_evaluation evaluation[2];
    latent_dataset *data = NULL;
    lt_plan *plan = NULL;
    latent_model *models[2] = {create(small, 3), create(small, 3)};
    for (int i = 0; i < COUNT * IMAGE; i++) {
        images[i] = (uint8_t)(i * 37 + i / 11);
    }
    short_type.alloc = short_alloc;
    models[1]->backend->type = &short_type;
    largest = SIZE_MAX;
    OK(lt_plan_create(ctx, models[1]->net, models[1]->backend, models[1]->params, 30, 0, -1, &plan));
    largest = plan->memory.activations + plan->memory.scratch; /* what 30 images need */
    lt_plan_destroy(plan);
    OK(lt_dataset_noise(ctx, COUNT, (const int[3]){6, 4, 3}, 1, &data));
    for (int i = 0; i < 2; i++) {
        OK(latent_model_reconstruct(ctx, models[i], images, COUNT, output[i]));
        OK(latent_model_encode(ctx, models[i], images, COUNT, code[i]));
        OK(latent_model_evaluate(ctx, models[i], data, LATENT_TRAIN, &evaluation[i]));
    }
    latent_dataset_destroy(data);
    assert_int_equal(models[0]->infer->batch, LT_INFER_BATCH);
    assert_int_equal(models[1]->infer->batch, LT_INFER_BATCH / 4);
    assert_memory_equal(output[0], output[1], sizeof output[0]);
    assert_memory_equal(code[0], code[1], sizeof code[0]);
    assert_true(fabs(evaluation[0].loss - evaluation[1].loss) < 1e-6 * evaluation[0].loss);
    lt_plan_destroy(models[1]->infer);
    models[1]->infer = NULL;
    models[1]->infer_ready = 0;
    largest = 100;
    assert_int_equal(latent_model_reconstruct(ctx, models[1], images, COUNT, output[1]), LATENT_ERROR_MEMORY);
    assert_message("bytes are too many; not even one image fits");
    latent_model_destroy(models[0]);
    latent_model_destroy(models[1]);
}

/* The two convs one after another by the reference's own functions, in double. */
static void expected_output(latent_model *model, const uint8_t *image, double *latent, double *output) {
    float block[1024];
    double params[1024], x[72];
    double scratch[8192];
    uint8_t mask[3 * 2 * 5];
    const latent_net *net = latent_model_net(model);
    OK(lt_model_download(ctx, model, block));
    for (size_t i = 0; i < net->param_count; i++) {
        params[i] = block[i];
    }
    for (int i = 0; i < 72; i++) {
        x[i] = (double)((float)image[i] * (1.0f / 255.0f));
    }
    const lt_op *enc = &net->ops[1], *dec = &net->ops[2];
    assert_true(lt_ref_conv_scratch(&enc->conv) <= 8192 && lt_ref_conv_scratch(&dec->conv) <= 8192);
    lt_ref_conv_forward_f64(&enc->conv, 1, x, params + enc->weight, params + enc->bias, latent, mask,
                            scratch);
    lt_ref_conv_forward_f64(&dec->conv, 1, latent, params + dec->weight, params + dec->bias, output, NULL,
                            scratch);
}

static void test_inference(void **state) {
    (void)state;
    enum { COUNT = 2 * LT_INFER_BATCH + 3 };
    latent_model *model = create(small, 3);
    uint8_t *images = malloc(COUNT * 72);
    float *output = malloc(sizeof(float) * COUNT * 72), *code = malloc(sizeof(float) * COUNT * 30);
    for (int i = 0; i < COUNT * 72; i++) {
        images[i] = (uint8_t)(i * 37 + i / 11);
    }
    OK(latent_model_reconstruct(ctx, model, images, COUNT, output));
    OK(latent_model_encode(ctx, model, images, COUNT, code));
    const int probes[] = {0, 99, 100, COUNT - 1};
    for (int p = 0; p < 4; p++) {
        double latent[30], want[72];
        expected_output(model, images + probes[p] * 72, latent, want);
        for (int i = 0; i < 72; i++) {
            assert_true(fabs(output[probes[p] * 72 + i] - want[i]) < 1e-5);
        }
        for (int c = 0; c < 5; c++) { /* features are CHW, the latent tensor HWC */
            for (int pixel = 0; pixel < 6; pixel++) {
                assert_true(fabs(code[probes[p] * 30 + c * 6 + pixel] - latent[pixel * 5 + c]) < 1e-5);
            }
        }
    }
    /* New weights are seen at once. */
    float zeros[5 * 27] = {0};
    OK(latent_model_write_tensor(ctx, model, 0, zeros));
    OK(latent_model_encode(ctx, model, images, 1, code));
    assert_true(code[0] == 0.0f && code[29] == 0.0f);
    assert_int_equal(latent_model_encode(ctx, model, images, 0, code), LATENT_ERROR_ARGUMENT);
    free(images);
    free(output);
    free(code);
    latent_model_destroy(model);
    model = create("input 4x4x3\nconv a 3 3x3\nloss mse\n", 1);
    assert_int_equal(latent_model_encode(ctx, model, (const uint8_t *)small, 1, zeros),
                     LATENT_ERROR_ARGUMENT);
    assert_message("no latent line");
    latent_model_destroy(model);
}

static void test_files(void **state) {
    (void)state;
    latent_model *model = create(small, 5), *back = NULL;
    OK(latent_model_export(ctx, model, in_folder("a.safetensors"), LATENT_SAFETENSORS));
    OK(latent_model_load(ctx, in_folder("a.safetensors"), NULL, &ref, &back));
    float a[1024], b[1024];
    OK(lt_model_download(ctx, model, a));
    OK(lt_model_download(ctx, back, b));
    assert_memory_equal(a, b, latent_model_net(model)->param_count * sizeof(float));
    assert_string_equal(latent_model_net(back)->text, small);
    latent_model_destroy(back);

    /* Of another net: the first tensor that does not fit is named. */
    static const char other[] = "input 6x4x3\nconv enc 4 3x3 relu pool2\nconv dec 3 3x3 up2\nloss mse\n";
    static const char fewer[] = "input 6x4x3\nconv enc 5 3x3 relu pool2\nconv end 3 3x3 up2\nloss mse\n";
    latent_net *net = NULL;
    OK(latent_net_parse(ctx, other, strlen(other), "other.net", &net));
    assert_int_equal(latent_model_load(ctx, in_folder("a.safetensors"), net, &ref, &back),
                     LATENT_ERROR_FORMAT);
    assert_message("tensor 'enc.weight' is 5x3x3x3, but the net 'other' wants 4x3x3x3");
    latent_net_destroy(net);
    OK(latent_net_parse(ctx, fewer, strlen(fewer), "fewer.net", &net));
    assert_int_equal(latent_model_load(ctx, in_folder("a.safetensors"), net, &ref, &back),
                     LATENT_ERROR_FORMAT);
    assert_message("tensor 'end.weight' of the net 'fewer' is missing");
    latent_net_destroy(net);
    assert_int_equal(latent_model_export(ctx, model, in_folder("a.bin"), LATENT_AE2024),
                     LATENT_ERROR_UNSUPPORTED);
    assert_message("'small' is another");
    assert_int_equal(latent_model_load(ctx, folder, NULL, &ref, &back), LATENT_ERROR_IO);
    assert_message("no run here");
    latent_model_destroy(model);
}

static void test_ae2024(void **state) {
    (void)state;
    latent_net *net = NULL;
    latent_model *model = NULL, *back = NULL;
    OK(latent_net_load(ctx, "autoencoder", &net));
    OK(latent_model_create(ctx, net, &ref, 9, &model));
    OK(latent_model_create(ctx, net, &ref, 10, &back));
    OK(latent_model_export(ctx, model, in_folder("w.bin"), LATENT_AE2024));
    char *bytes = NULL;
    size_t size = 0;
    OK(lt_file_read(ctx, in_folder("w.bin"), 1 << 22, &bytes, &size));
    assert_int_equal(size, LT_AE2024_BYTES);
    /* The second float of the file is enc_conv1.weight[0][0][0][1]. */
    float *weight = malloc(sizeof(float) * 256 * 27), second;
    OK(latent_model_read_tensor(ctx, model, 0, weight));
    memcpy(&second, bytes + 12, sizeof second);
    assert_true(second == weight[1]);
    OK(latent_model_import(ctx, back, in_folder("w.bin"), LATENT_AE2024));
    OK(latent_model_export(ctx, back, in_folder("w.safetensors"), LATENT_SAFETENSORS));
    int beyond = -1;
    OK(latent_compare(ctx, in_folder("w.bin"), in_folder("w.safetensors"), 0, 0, NULL, NULL, &beyond));
    assert_int_equal(beyond, 0);
    assert_int_equal(latent_model_import(ctx, back, in_folder("w.safetensors"), LATENT_AE2024),
                     LATENT_ERROR_FORMAT);
    free(bytes);
    free(weight);
    latent_model_destroy(model);
    latent_model_destroy(back);
    latent_net_destroy(net);
}

static void keep(void *user, const latent_difference *difference) {
    if (strcmp(difference->name, "dec.weight") == 0) {
        *(latent_difference *)user = *difference;
    }
}

static void test_compare(void **state) {
    (void)state;
    latent_model *model = create(small, 5);
    float values[3 * 5 * 9];
    latent_difference found = {0};
    int beyond = 0;
    OK(latent_model_export(ctx, model, in_folder("a.safetensors"), LATENT_SAFETENSORS));
    OK(latent_model_read_tensor(ctx, model, 2, values));
    float was = values[7];
    values[7] = was + 0.5f;
    values[100] += 1e-4f;
    OK(latent_model_write_tensor(ctx, model, 2, values));
    OK(latent_model_export(ctx, model, in_folder("b.safetensors"), LATENT_SAFETENSORS));
    const char *a = in_folder("a.safetensors"), *b = in_folder("b.safetensors");
    OK(latent_compare(ctx, a, b, 0, 0, keep, &found, &beyond));
    assert_int_equal(beyond, 1);
    assert_int_equal(found.beyond, 2);
    assert_int_equal(found.first, 7);
    assert_true(found.a == was && found.b == values[7]);
    assert_true(fabs(found.max_abs - 0.5) < 1e-6);
    OK(latent_compare(ctx, a, b, 1e-2, 0, keep, &found, &beyond));
    assert_int_equal(found.beyond, 1);
    OK(latent_compare(ctx, a, b, 0.6, 0, keep, &found, &beyond));
    assert_int_equal(beyond, 0);
    assert_int_equal(found.first, -1);
    values[7] = NAN;
    OK(latent_model_write_tensor(ctx, model, 2, values));
    OK(latent_model_export(ctx, model, b, LATENT_SAFETENSORS));
    OK(latent_compare(ctx, a, b, 1e30, 0, keep, &found, &beyond));
    assert_int_equal(beyond, 1);
    assert_true(isnan(found.max_abs));
    latent_model_destroy(model);

    model = create("input 6x4x3\nconv enc 5 3x3 relu pool2\nconv dec 3 3x3 up2 nobias\nloss mse\n", 5);
    OK(latent_model_export(ctx, model, b, LATENT_SAFETENSORS));
    assert_int_equal(latent_compare(ctx, a, b, 0, 0, NULL, NULL, &beyond), LATENT_ERROR_FORMAT);
    assert_message("no tensor 'dec.bias'");
    assert_int_equal(latent_compare(ctx, a, b, -1, 0, NULL, NULL, &beyond), LATENT_ERROR_ARGUMENT);
    assert_int_equal(latent_compare(ctx, a, "/nonexistent", 0, 0, NULL, NULL, &beyond), LATENT_ERROR_IO);
    latent_model_destroy(model);
}

static void test_dataset(void **state) {
    (void)state;
    latent_dataset *data = NULL;
    latent_evaluation evaluation;
    static const char net[] =
        "input 32x32x3\nconv enc 4 3x3 relu pool2\nlatent\nconv dec 3 3x3 up2\nloss mse\n";
    latent_model *model = create(net, 5);
    OK(latent_dataset_synthesize(ctx, in_folder("data"), 20, 120, 1));
    OK(latent_dataset_open(ctx, in_folder("data"), &data));
    OK(latent_model_evaluate(ctx, model, data, LATENT_TEST, &evaluation));
    assert_int_equal(evaluation.count, 120);
    /* The same from the reconstructions themselves. */
    float *output = malloc(sizeof(float) * 120 * 3072);
    const uint8_t *images = latent_dataset_images(data, LATENT_TEST);
    OK(latent_model_reconstruct(ctx, model, images, 120, output));
    double sum = 0;
    for (int i = 0; i < 120 * 3072; i++) {
        double d = output[i] - (float)images[i] / 255.0f;
        sum += d * d;
    }
    assert_true(fabs(sum / (120 * 3072) / evaluation.loss - 1) < 1e-5);
    OK(latent_model_picture(ctx, model, data, LATENT_TEST, in_folder("p.png"), &evaluation));
    assert_int_equal(evaluation.count, 10);
    assert_true(evaluation.loss > 0);
    char *bytes = NULL;
    size_t size = 0;
    OK(lt_file_read(ctx, in_folder("p.png"), 1 << 22, &bytes, &size));
    assert_memory_equal(bytes, "\x89PNG", 4);
    free(bytes);
    free(output);
    latent_model_destroy(model);
    model = create(small, 5);
    assert_int_equal(latent_model_evaluate(ctx, model, data, LATENT_TEST, &evaluation),
                     LATENT_ERROR_ARGUMENT);
    assert_message("takes images of 6x4x3");
    latent_model_destroy(model);
    latent_dataset_destroy(data);
}

static int setup(void **state) {
    (void)state;
    return scratch_folder_make(folder) != 0 || latent_context_create(&ctx) != LATENT_OK;
}

static int teardown(void **state) {
    (void)state;
    latent_context_destroy(ctx);
    return scratch_folder_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensor_order), cmocka_unit_test(test_inference),
        cmocka_unit_test(test_short_memory), cmocka_unit_test(test_files),
        cmocka_unit_test(test_ae2024),       cmocka_unit_test(test_compare),
        cmocka_unit_test(test_dataset),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
