/* test_cpu.c: opening the backend `cpu`: what its options mean, what it says when it cannot, and that the
 * autoencoder's ops take the forms they are meant to take. What it computes is test_ops_parity.c's. */
#ifndef LATENT_HAVE_CPU
int main(void) {
    return 77; /* not an x86-64 build */
}
#else
#include "backend/cpu/cpu.h"
#include "net/net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
/* after the headers that cmocka wants first */
#include <cmocka.h>

static latent_context *context(void) {
    latent_context *ctx = NULL;
    assert_int_equal(latent_context_create(&ctx), LATENT_OK);
    return ctx;
}

static lt_backend *opened(latent_context *ctx, const latent_engine_options *options) {
    lt_backend *backend = NULL;
    if (lt_backend_open(ctx, options, &backend) != LATENT_OK) {
        fail_msg("%s", latent_context_message(ctx));
    }
    return backend;
}

static void refused(latent_engine_options options, latent_status status, const char *words) {
    latent_context *ctx = context();
    lt_backend *backend = NULL;
    options.backend = "cpu";
    assert_int_equal(lt_backend_open(ctx, &options, &backend), status);
    assert_null(backend);
    if (!strstr(latent_context_message(ctx), words)) {
        fail_msg("\"%s\" does not say \"%s\"", latent_context_message(ctx), words);
    }
    latent_context_destroy(ctx);
}

static void test_refusals(void **state) {
    (void)state;
    refused((latent_engine_options){.isa = "avx521"}, LATENT_ERROR_ARGUMENT, "did you mean 'avx512'?");
    refused((latent_engine_options){.isa = "neon"}, LATENT_ERROR_ARGUMENT, "amx, avx512, avx2 and plain");
    refused((latent_engine_options){.precision = "fp23"}, LATENT_ERROR_ARGUMENT, "did you mean 'fp32'?");
    refused((latent_engine_options){.precision = "bf16", .isa = "avx2"}, LATENT_ERROR_UNSUPPORTED,
            lt_cpu_isa_best() >= LT_CPU_ISA_AVX2 ? "bf16 needs AMX" : "does not have");
    refused((latent_engine_options){.threads = -1}, LATENT_ERROR_ARGUMENT, "-1 threads cannot be used");
    refused((latent_engine_options){.threads = 1 << 20}, LATENT_ERROR_ARGUMENT, "1 to 1024");
    refused((latent_engine_options){.kernels = "tiled"}, LATENT_ERROR_UNSUPPORTED, "no kernel generations");
    refused((latent_engine_options){.device = 3}, LATENT_ERROR_UNSUPPORTED, "no devices (3 was asked for");
    refused((latent_engine_options){.stream_data = 1}, LATENT_ERROR_UNSUPPORTED, "nothing to stream");
    if (lt_cpu_isa_best() < LT_CPU_ISA_AMX) {
        refused((latent_engine_options){.isa = "amx"}, LATENT_ERROR_UNSUPPORTED, "its best is");
        refused((latent_engine_options){.precision = "bf16"}, LATENT_ERROR_UNSUPPORTED,
                "which this processor does not have; use --precision fp32");
    }
}

static void test_engine(void **state) {
    (void)state;
    latent_context *ctx = context();
    latent_engine_options options = {.backend = "cpu", .isa = "plain", .threads = 1};
    lt_backend *backend = opened(ctx, &options);
    assert_string_equal(backend->engine, "cpu, plain, fp32, 1 thread");
    assert_int_equal(backend->activation, LT_F32);
    lt_backend_close(backend);
    options = (latent_engine_options){.backend = "cpu", .isa = "amx-emulated", .precision = "bf16"};
    backend = opened(ctx, &options);
    assert_int_equal(backend->activation, LT_BF16);
    lt_backend_close(backend);
    latent_context_destroy(ctx);
}

static void count_task(void *arg, int task, int thread) {
    int *counts = arg;
    assert_true(thread >= 0 && thread < 3);
    __atomic_fetch_add(&counts[task], 1, __ATOMIC_RELAXED);
}

/* Every task is run once, however many there are. */
static void test_parallel(void **state) {
    (void)state;
    lt_cpu cpu = {.threads = 3, .pool = lt_cpu_pool_create(2)};
    int counts[100] = {0};
    assert_true(lt_cpu_cores() >= 1);
    for (int count = 0; count <= 100; count += 25) {
        memset(counts, 0, sizeof counts);
        lt_cpu_parallel(&cpu, count, count_task, counts);
        for (int i = 0; i < 100; i++) {
            assert_int_equal(counts[i], i < count);
        }
    }
    lt_cpu_pool_destroy(cpu.pool);
}

static void test_forms(void **state) {
    static const char *const forward[] = {"flat", "winograd", "winograd", "upsample", "columns"};
    (void)state;
    latent_context *ctx = context();
    latent_net *net = NULL;
    assert_int_equal(latent_net_load(ctx, "autoencoder", &net), LATENT_OK);
    latent_engine_options options = {.backend = "cpu"};
    lt_backend *backend = opened(ctx, &options);
    for (int i = 1; i <= 5; i++) {
        assert_string_equal(backend->type->op_variant(ctx, backend, &net->ops[i], LT_FORWARD),
                            forward[i - 1]);
        assert_int_equal(backend->type->fuses_loss(backend, &net->ops[i]), i == 5);
    }
    lt_backend_close(backend);
    latent_net_destroy(net);
    latent_context_destroy(ctx);
}

static void test_ceiling(void **state) {
    (void)state;
    latent_context *ctx = context();
    latent_engine_options options = {.backend = "cpu", .precision = "fp32", .threads = 1};
    lt_backend *backend = opened(ctx, &options);
    lt_ceiling ceiling = {0, 0};
    assert_int_equal(backend->type->ceiling(ctx, backend, &ceiling), LATENT_OK);
    /* No core does more than two multiply-adds of 16 numbers a cycle, nor 6 GHz. */
    assert_true(ceiling.flops > 1e8 && ceiling.flops < 2 * 2 * 16 * 6e9);
    assert_true(ceiling.bytes > 1e7 && ceiling.bytes < 1e13);
    lt_backend_close(backend);
    latent_context_destroy(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refusals), cmocka_unit_test(test_engine),
                                       cmocka_unit_test(test_parallel), cmocka_unit_test(test_forms),
                                       cmocka_unit_test(test_ceiling)};
    return cmocka_run_group_tests_name("cpu", tests, NULL, NULL);
}
#endif
