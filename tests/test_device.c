/* test_device.c: GPUs that are absent, unknown, too old, busy or full, each simulated: the linker puts the
 * functions below in place of the CUDA runtime's (--wrap), so the sentences are tested on any machine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/model.h"
#include "train/trainer.h"

#ifdef LATENT_HAVE_CUDA
#include <cuda_runtime_api.h>

/* What the machine is like. */
static struct {
    cudaError_t count_error;
    int count, driver, major[2];
    cudaError_t use_error, code_error;
    size_t memory, used;
} machine;

/* One that works. */
static void reset(void) {
    memset(&machine, 0, sizeof machine);
    machine.count = 1;
    machine.major[0] = machine.major[1] = 9;
}

cudaError_t fake_count(int *count) __asm__("__wrap_cudaGetDeviceCount");
cudaError_t fake_count(int *count) {
    *count = machine.count;
    return machine.count_error;
}

cudaError_t fake_driver(int *version) __asm__("__wrap_cudaDriverGetVersion");
cudaError_t fake_driver(int *version) {
    *version = machine.driver;
    return cudaSuccess;
}

static cudaError_t describe(struct cudaDeviceProp *out, int device) {
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "Some GPU");
    out->major = machine.major[device];
    out->minor = 1;
    return cudaSuccess;
}

/* The name changed with CUDA 12 and back with 13. */
cudaError_t fake_properties(struct cudaDeviceProp *out, int device) __asm__("__wrap_cudaGetDeviceProperties");
cudaError_t fake_properties(struct cudaDeviceProp *out, int device) {
    return describe(out, device);
}
cudaError_t fake_properties_2(struct cudaDeviceProp *out,
                              int device) __asm__("__wrap_cudaGetDeviceProperties_v2");
cudaError_t fake_properties_2(struct cudaDeviceProp *out, int device) {
    return describe(out, device);
}

cudaError_t fake_set(int device) __asm__("__wrap_cudaSetDevice");
cudaError_t fake_set(int device) {
    (void)device;
    return cudaSuccess;
}

cudaError_t fake_free(void *memory) __asm__("__wrap_cudaFree");
cudaError_t fake_free(void *memory) {
    size_t *block = memory;
    if (block) {
        block -= LT_ALIGN / sizeof *block;
        machine.used -= *block;
        free(block);
    }
    return machine.use_error;
}

/* The device's memory is the host's here; in front of a block stands its size. */
cudaError_t fake_malloc(void **out, size_t bytes) __asm__("__wrap_cudaMalloc");
cudaError_t fake_malloc(void **out, size_t bytes) {
    if (bytes > machine.memory - machine.used) {
        return cudaErrorMemoryAllocation;
    }
    size_t *block = aligned_alloc(LT_ALIGN, (bytes / LT_ALIGN + 2) * LT_ALIGN);
    assert_non_null(block);
    *block = bytes;
    machine.used += bytes;
    *out = block + LT_ALIGN / sizeof *block;
    return cudaSuccess;
}

cudaError_t fake_info(size_t *free_bytes, size_t *total) __asm__("__wrap_cudaMemGetInfo");
cudaError_t fake_info(size_t *free_bytes, size_t *total) {
    *free_bytes = machine.memory - machine.used;
    *total = machine.memory;
    return cudaSuccess;
}

cudaError_t fake_copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                      cudaStream_t stream) __asm__("__wrap_cudaMemcpyAsync");
cudaError_t fake_copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                      cudaStream_t stream) {
    (void)kind;
    (void)stream;
    memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t fake_set_bytes(void *to, int value, size_t bytes,
                           cudaStream_t stream) __asm__("__wrap_cudaMemsetAsync");
cudaError_t fake_set_bytes(void *to, int value, size_t bytes, cudaStream_t stream) {
    (void)stream;
    memset(to, value, bytes);
    return cudaSuccess;
}

cudaError_t fake_stream(cudaStream_t *out, unsigned flags) __asm__("__wrap_cudaStreamCreateWithFlags");
cudaError_t fake_stream(cudaStream_t *out, unsigned flags) {
    (void)flags;
    *out = (cudaStream_t)&machine; /* nobody looks into it */
    return cudaSuccess;
}

cudaError_t fake_wait(cudaStream_t stream) __asm__("__wrap_cudaStreamSynchronize");
cudaError_t fake_wait(cudaStream_t stream) {
    (void)stream;
    return cudaSuccess;
}

cudaError_t fake_stream_end(cudaStream_t stream) __asm__("__wrap_cudaStreamDestroy");
cudaError_t fake_stream_end(cudaStream_t stream) {
    (void)stream;
    return cudaSuccess;
}

cudaError_t fake_code(void) __asm__("__wrap_lt_cuda_code_check");
cudaError_t fake_code(void) {
    return machine.code_error;
}

cudaError_t fake_last(void) __asm__("__wrap_cudaGetLastError");
cudaError_t fake_last(void) {
    return cudaSuccess;
}

/* The kernel that makes a plan of the generation `basic` ready. */
void fake_transpose(cudaStream_t stream, int K, int taps, const float *w,
                    float *wt) __asm__("__wrap_lt_launch_basic_transpose");
void fake_transpose(cudaStream_t stream, int K, int taps, const float *w, float *wt) {
    (void)stream, (void)K, (void)taps, (void)w, (void)wt;
}

static void refuse(latent_engine_options options, latent_status want, const char *words) {
    latent_context *ctx = NULL;
    lt_backend *backend = NULL;
    options.backend = "cuda";
    assert_int_equal(latent_context_create(&ctx), LATENT_OK);
    latent_status status = lt_backend_open(ctx, &options, &backend);
    if (status != want || !strstr(latent_context_message(ctx), words)) {
        fail_msg("status %d, '%s'; wanted status %d and '%s'", status, latent_context_message(ctx), want,
                 words);
    }
    assert_null(backend);
    latent_context_destroy(ctx);
}

/* `auto` goes on without a word, `latent info` tells why. */
static void expect_absent(const char *words) {
    latent_context *ctx = NULL;
    lt_backend *backend = NULL;
    latent_backend_info info;
    int found = 0;
    for (int i = 0; latent_backend_get_info(i, &info); i++) {
        if (strcmp(info.name, "cuda") == 0) {
            found = !info.available && strstr(info.detail, words);
        }
    }
    assert_true(found);
    assert_int_equal(latent_context_create(&ctx), LATENT_OK);
    assert_int_equal(lt_backend_open(ctx, NULL, &backend), LATENT_OK);
    assert_string_not_equal(backend->type->name, "cuda");
    lt_backend_close(backend);
    latent_context_destroy(ctx);
}

static void keep_warning(void *user, latent_log_level level, const char *message) {
    if (level == LATENT_LOG_WARNING) {
        snprintf(user, 512, "%s", message);
    }
}

/* `auto` computes on the host and says why; what asks for the GPU fails with the same sentence. */
static void expect_host(latent_status want, const char *words) {
    latent_context *ctx = NULL;
    lt_backend *backend = NULL;
    char warning[512] = "";
    assert_int_equal(latent_context_create(&ctx), LATENT_OK);
    latent_context_set_log(ctx, keep_warning, warning);
    assert_int_equal(lt_backend_open(ctx, NULL, &backend), LATENT_OK);
    assert_true(backend->type->host_memory);
    assert_non_null(strstr(warning, "going on without the backend 'cuda': "));
    assert_non_null(strstr(warning, words));
    assert_string_equal(latent_context_message(ctx), "");
    lt_backend_close(backend);
    const latent_engine_options gpu[] = {
        {.backend = "cuda"}, {.kernels = "basic"}, {.backend = "auto", .stream_data = 1}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(lt_backend_open(ctx, &gpu[i], &backend), want);
        assert_null(backend);
        assert_non_null(strstr(latent_context_message(ctx), words));
    }
    latent_context_destroy(ctx);
}

static const latent_engine_options plain = {0};

static void test_absent(void **state) {
    (void)state;
    reset();
    machine.count = 0;
    machine.count_error = cudaErrorInsufficientDriver;
    refuse(plain, LATENT_ERROR_UNSUPPORTED, "cannot run here: no NVIDIA driver is installed");
    expect_absent("no NVIDIA driver");
    machine.driver = 11040;
    refuse(plain, LATENT_ERROR_UNSUPPORTED, "the NVIDIA driver supports CUDA 11.4, older than this build's");
    machine.count_error = cudaErrorNoDevice;
    refuse(plain, LATENT_ERROR_UNSUPPORTED, "no NVIDIA GPU is visible (is CUDA_VISIBLE_DEVICES set?)");
    machine.count_error = cudaErrorSystemNotReady;
    refuse(plain, LATENT_ERROR_UNSUPPORTED, "(cudaErrorSystemNotReady)");
    expect_absent("cudaErrorSystemNotReady");
}

static void test_wrong_number(void **state) {
    (void)state;
    reset();
    machine.count = 2;
    latent_engine_options third = {.device = 2};
    refuse(third, LATENT_ERROR_ARGUMENT, "device 2 does not exist: this machine has 2 (0 to 1)");
}

static void test_too_old(void **state) {
    (void)state;
    reset();
    machine.major[0] = 6;
    refuse(plain, LATENT_ERROR_UNSUPPORTED,
           "cannot run here: Some GPU has compute capability 6.1; this build needs 7.5 or newer");
    expect_absent("compute capability 6.1");
    machine.count = 2; /* the other one is newer: asked for by number */
    expect_host(LATENT_ERROR_UNSUPPORTED, "device 0: Some GPU has compute capability 6.1");
    latent_context *ctx = NULL;
    lt_backend *backend = NULL;
    assert_int_equal(latent_context_create(&ctx), LATENT_OK);
    assert_int_equal(lt_backend_open(ctx, &(latent_engine_options){.device = 1}, &backend), LATENT_OK);
    assert_string_equal(backend->type->name, "cuda");
    lt_backend_close(backend);
    latent_context_destroy(ctx);
    machine.major[0] = 9;
    machine.major[1] = 6;
    refuse((latent_engine_options){.device = 1}, LATENT_ERROR_UNSUPPORTED,
           "device 1: Some GPU has compute capability 6.1");
}

static void test_no_code(void **state) {
    (void)state;
    reset();
    machine.code_error = cudaErrorNoKernelImageForDevice;
    refuse(plain, LATENT_ERROR_UNSUPPORTED,
           "device 0 (Some GPU, sm_91): this build holds no code for it; configure with "
           "-DLATENT_CUDA_ARCHS=91");
    expect_host(LATENT_ERROR_UNSUPPORTED, "this build holds no code for it");
}

static void test_busy(void **state) {
    (void)state;
    reset();
    machine.use_error = cudaErrorDevicesUnavailable;
    expect_host(LATENT_ERROR_DEVICE, "(cudaErrorDevicesUnavailable)");
    refuse(plain, LATENT_ERROR_DEVICE, "device 0 (Some GPU) cannot be used: ");
    refuse(plain, LATENT_ERROR_DEVICE, "(cudaErrorDevicesUnavailable)");
    machine.use_error = cudaErrorMemoryAllocation;
    refuse(plain, LATENT_ERROR_MEMORY, "has not even the memory to start: another program uses it up");
}

/* What is asked of the engine is checked before the device is touched: this one would refuse. */
static void test_precisions(void **state) {
    (void)state;
    reset();
    machine.use_error = cudaErrorDevicesUnavailable;
    refuse((latent_engine_options){.kernels = "fused", .precision = "bf16"}, LATENT_ERROR_UNSUPPORTED,
           "the kernels 'fused' of the backend 'cuda' compute in fp32 only, not in bf16");
    refuse((latent_engine_options){.kernels = "tensor", .precision = "fp32"}, LATENT_ERROR_UNSUPPORTED,
           "the kernels 'tensor' of the backend 'cuda' compute in bf16 only, not in fp32");
    refuse((latent_engine_options){.precision = "fp8"}, LATENT_ERROR_ARGUMENT, "there is no precision 'fp8'");
    refuse((latent_engine_options){.isa = "avx2"}, LATENT_ERROR_UNSUPPORTED, "no choice of instruction set");
}

/* ---- A full device ----------------------------------------------------------------------------- */

/* 9.4 million parameters in an image of 8x8: gradients and moments are larger than what memory_free keeps
 * back, so a batch that was found without them would run out again. */
static const char wide[] = "input 8x8x512\nconv enc 1024 3x3 relu\nlatent\nconv dec 512 3x3\nloss mse\n";

enum { MEBIBYTE = 1 << 20, KEPT = 64 * MEBIBYTE };

static const latent_engine_options basic = {.backend = "cuda", .kernels = "basic"};

#define OK(ctx, call)                                                                                        \
    do {                                                                                                     \
        if ((call) != LATENT_OK) {                                                                           \
            fail_msg("%s: %s", #call, latent_context_message(ctx));                                          \
        }                                                                                                    \
    } while (0)

static void says(latent_context *ctx, const char *words) {
    if (!strstr(latent_context_message(ctx), words)) {
        fail_msg("'%s' does not say '%s'", latent_context_message(ctx), words);
    }
}

/* Everything that a training of that batch takes fits, and nearly nothing more does. */
static void expect_fits(latent_context *ctx, const latent_net *net, lt_backend *backend, int batch) {
    lt_plan *plan = NULL;
    void *moments[2], *slots[2];
    size_t params = net->param_count * sizeof(float), images = (size_t)batch * 8 * 8 * 512;
    OK(ctx, lt_plan_create(ctx, net, backend, NULL, batch, 1, -1, &plan));
    for (int i = 0; i < 2; i++) {
        OK(ctx, backend->type->alloc(ctx, backend, params, &moments[i]));
        OK(ctx, backend->type->alloc(ctx, backend, images, &slots[i]));
    }
    size_t left = machine.memory - machine.used;
    assert_true(left >= KEPT);
    assert_true(left - KEPT < (machine.used - 3 * params) / (size_t)batch + MEBIBYTE);
    for (int i = 0; i < 2; i++) {
        backend->type->free(backend, moments[i]);
        backend->type->free(backend, slots[i]);
    }
    lt_plan_destroy(plan);
}

/* A device of so much memory, with nothing on it yet, and a net for it. */
static void open_wide(size_t mebibytes, latent_context **ctx, latent_net **net) {
    reset();
    machine.memory = mebibytes * MEBIBYTE;
    assert_int_equal(latent_context_create(ctx), LATENT_OK);
    OK(*ctx, latent_net_parse(*ctx, wide, strlen(wide), "wide.net", net));
}

static void test_full_training(void **state) {
    (void)state;
    latent_context *ctx = NULL;
    latent_net *net = NULL;
    lt_backend *backend = NULL;
    lt_plan *plan = NULL;
    int batch = 0, flag = 0;
    open_wide(1000, &ctx, &net);
    OK(ctx, lt_backend_open(ctx, &basic, &backend));
    size_t before = machine.used;
    assert_int_equal(lt_plan_create(ctx, net, backend, NULL, 4096, 1, -1, &plan), LATENT_ERROR_MEMORY);
    assert_null(plan);
    assert_int_equal(machine.used, before);
    says(ctx, "device 0 (Some GPU) is out of memory: ");
    says(ctx, " MiB are needed in one piece, ");
    says(ctx, " of its 1000.0 MiB are free; batch ");
    const char *answer = strstr(latent_context_message(ctx), "; batch ");
    assert_int_equal(sscanf(answer, "; batch %d would fit (--batch %d)", &batch, &flag), 2);
    assert_int_equal(batch, flag);
    assert_true(batch > 1 && batch < 4096);
    expect_fits(ctx, net, backend, batch);
    /* The block alone fits, the gradients do not: the same sentence, and nothing stays behind. */
    OK(ctx, lt_plan_create(ctx, net, backend, NULL, batch, 1, -1, &plan));
    machine.memory = machine.used - MEBIBYTE;
    lt_plan_destroy(plan);
    assert_int_equal(lt_plan_create(ctx, net, backend, NULL, batch, 1, -1, &plan), LATENT_ERROR_MEMORY);
    says(ctx, "36.0 MiB are needed in one piece, ");
    says(ctx, " would fit (--batch ");
    machine.memory = KEPT;
    assert_int_equal(lt_plan_create(ctx, net, backend, NULL, batch, 1, -1, &plan), LATENT_ERROR_MEMORY);
    says(ctx, "; not even batch 1 would fit");
    assert_int_equal(machine.used, before);
    lt_backend_close(backend);
    latent_net_destroy(net);
    latent_context_destroy(ctx);
}

/* What comes after the plan does not fit: the moments, here. */
static void test_full_moments(void **state) {
    (void)state;
    latent_context *ctx = NULL;
    latent_net *net = NULL;
    latent_model *model = NULL;
    latent_dataset *data = NULL;
    latent_train_options options;
    lt_trainer t;
    open_wide(4000, &ctx, &net);
    OK(ctx, latent_model_create(ctx, net, &basic, 1, &model));
    OK(ctx, lt_trainer_noise(ctx, net, 8, 1, &data));
    latent_train_defaults(net, &options);
    options.recipe.batch = 8;
    options.recipe.optimizer = LATENT_ADAM;
    size_t before = machine.used;
    OK(ctx, lt_trainer_open(ctx, model, data, &options, &t));
    size_t all = machine.used;
    lt_trainer_close(&t);
    assert_int_equal(machine.used, before);
    machine.memory = all - MEBIBYTE;
    assert_int_equal(lt_trainer_open(ctx, model, data, &options, &t), LATENT_ERROR_MEMORY);
    says(ctx, "is out of memory: ");
    says(ctx, "; a smaller batch leaves more (--batch, now 8)");
    lt_trainer_close(&t);
    assert_int_equal(machine.used, before);
    latent_dataset_destroy(data);
    latent_model_destroy(model);
    latent_net_destroy(net);
    latent_context_destroy(ctx);
}

/* Inference has no --batch: it takes fewer images at a time, and says so when not one fits. */
static void test_full_inference(void **state) {
    (void)state;
    latent_context *ctx = NULL;
    latent_net *net = NULL;
    latent_model *model = NULL;
    open_wide(1000, &ctx, &net);
    OK(ctx, latent_model_create(ctx, net, &basic, 1, &model));
    machine.memory = machine.used + 20 * MEBIBYTE;
    OK(ctx, lt_model_encode_ready(ctx, model));
    assert_string_equal(latent_context_message(ctx), "");
    assert_true(model->encode->batch >= 1 && model->encode->batch < lt_encode_batch(model->backend));
    lt_plan_destroy(model->encode);
    model->encode = NULL;
    model->encode_ready = 0;
    machine.memory = machine.used + 1000;
    assert_int_equal(lt_model_encode_ready(ctx, model), LATENT_ERROR_MEMORY);
    says(ctx, "; not even one image fits");
    assert_null(strstr(latent_context_message(ctx), "--batch"));
    assert_null(model->encode);
    latent_model_destroy(model);
    assert_int_equal(machine.used, 0);
    latent_net_destroy(net);
    latent_context_destroy(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_absent),         cmocka_unit_test(test_wrong_number),
        cmocka_unit_test(test_too_old),        cmocka_unit_test(test_no_code),
        cmocka_unit_test(test_busy),           cmocka_unit_test(test_precisions),
        cmocka_unit_test(test_full_training),  cmocka_unit_test(test_full_moments),
        cmocka_unit_test(test_full_inference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else
int main(void) {
    fprintf(stderr, "skipped: this build has no backend 'cuda'\n");
    return 77;
}
#endif
