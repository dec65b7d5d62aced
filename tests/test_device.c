/* test_device.c: GPUs that are absent, unknown, too old, busy or full, each simulated: the linker puts the
 * functions below in place of the CUDA runtime's (--wrap), so the sentences are tested on any machine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backend/backend.h"

#ifdef LATENT_HAVE_CUDA
#include <cuda_runtime_api.h>

/* What the machine is like. */
static struct {
    cudaError_t count_error;
    int count, driver, major;
    cudaError_t use_error, code_error;
} machine;

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

static cudaError_t describe(struct cudaDeviceProp *out) {
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "Some GPU");
    out->major = machine.major;
    out->minor = 1;
    return cudaSuccess;
}

/* The name changed with CUDA 12 and back with 13. */
cudaError_t fake_properties(struct cudaDeviceProp *out, int device) __asm__("__wrap_cudaGetDeviceProperties");
cudaError_t fake_properties(struct cudaDeviceProp *out, int device) {
    (void)device;
    return describe(out);
}
cudaError_t fake_properties_2(struct cudaDeviceProp *out,
                              int device) __asm__("__wrap_cudaGetDeviceProperties_v2");
cudaError_t fake_properties_2(struct cudaDeviceProp *out, int device) {
    (void)device;
    return describe(out);
}

cudaError_t fake_set(int device) __asm__("__wrap_cudaSetDevice");
cudaError_t fake_set(int device) {
    (void)device;
    return cudaSuccess;
}

cudaError_t fake_free(void *memory) __asm__("__wrap_cudaFree");
cudaError_t fake_free(void *memory) {
    (void)memory;
    return machine.use_error;
}

cudaError_t fake_code(void) __asm__("__wrap_lt_cuda_code_check");
cudaError_t fake_code(void) {
    return machine.code_error;
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

static const latent_engine_options plain = {0};

static void test_absent(void **state) {
    (void)state;
    memset(&machine, 0, sizeof machine);
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
    memset(&machine, 0, sizeof machine);
    machine.count = 2;
    machine.major = 9;
    latent_engine_options third = {.device = 2};
    refuse(third, LATENT_ERROR_ARGUMENT, "device 2 does not exist: this machine has 2 (0 to 1)");
}

static void test_too_old(void **state) {
    (void)state;
    memset(&machine, 0, sizeof machine);
    machine.count = 1;
    machine.major = 6;
    refuse(plain, LATENT_ERROR_UNSUPPORTED,
           "cannot run here: Some GPU has compute capability 6.1; this build needs 7.5 or newer");
    expect_absent("compute capability 6.1");
    machine.count = 2; /* perhaps the other one is newer: asked for by number */
    refuse((latent_engine_options){.device = 1}, LATENT_ERROR_UNSUPPORTED,
           "device 1: Some GPU has compute capability 6.1");
    machine.count = 1;
    machine.major = 9;
    machine.code_error = cudaErrorNoKernelImageForDevice;
    refuse(plain, LATENT_ERROR_UNSUPPORTED,
           "device 0 (Some GPU, sm_91): this build holds no code for it; configure with "
           "-DLATENT_CUDA_ARCHS=91");
}

static void test_busy(void **state) {
    (void)state;
    memset(&machine, 0, sizeof machine);
    machine.count = 1;
    machine.major = 9;
    machine.use_error = cudaErrorDevicesUnavailable;
    refuse(plain, LATENT_ERROR_DEVICE, "device 0 (Some GPU) cannot be used: ");
    refuse(plain, LATENT_ERROR_DEVICE, "(cudaErrorDevicesUnavailable)");
    machine.use_error = cudaErrorMemoryAllocation;
    refuse(plain, LATENT_ERROR_MEMORY, "has not even the memory to start: another program uses it up");
}

/* What is asked of the engine is checked before the device is touched: this one would refuse. */
static void test_precisions(void **state) {
    (void)state;
    memset(&machine, 0, sizeof machine);
    machine.count = 1;
    machine.major = 9;
    machine.use_error = cudaErrorDevicesUnavailable;
    refuse((latent_engine_options){.kernels = "fused", .precision = "bf16"}, LATENT_ERROR_UNSUPPORTED,
           "the kernels 'fused' of the backend 'cuda' compute in fp32 only, not in bf16");
    refuse((latent_engine_options){.kernels = "tensor", .precision = "fp32"}, LATENT_ERROR_UNSUPPORTED,
           "the kernels 'tensor' of the backend 'cuda' compute in bf16 only, not in fp32");
    refuse((latent_engine_options){.precision = "fp8"}, LATENT_ERROR_ARGUMENT, "there is no precision 'fp8'");
    refuse((latent_engine_options){.isa = "avx2"}, LATENT_ERROR_UNSUPPORTED, "no choice of instruction set");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_absent), cmocka_unit_test(test_wrong_number), cmocka_unit_test(test_too_old),
        cmocka_unit_test(test_busy),   cmocka_unit_test(test_precisions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else
int main(void) {
    fprintf(stderr, "skipped: this build has no backend 'cuda'\n");
    return 77;
}
#endif
