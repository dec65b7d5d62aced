/* test_backend.c: choosing a backend by name, what `ref` refuses, and what the host's step table checks. */
#include "op_run.h"

#include "backend/ref/ref.h"

static void refuse(latent_context *ctx, latent_engine_options options, latent_status want,
                   const char *words) {
    lt_backend *backend = NULL;
    assert_int_equal(lt_backend_open(ctx, &options, &backend), want);
    assert_null(backend);
    if (!strstr(latent_context_message(ctx), words)) {
        fail_msg("'%s' does not say '%s'", latent_context_message(ctx), words);
    }
}

static void test_names(void **state) {
    (void)state;
    latent_context *ctx = NULL;
    assert_int_equal(latent_context_create(&ctx), LATENT_OK);
    refuse(ctx, (latent_engine_options){.backend = "reff"}, LATENT_ERROR_ARGUMENT, "did you mean 'ref'?");
    refuse(ctx, (latent_engine_options){.backend = "quantum"}, LATENT_ERROR_ARGUMENT,
           "no backend 'quantum'; this");
    if (!backend_available("cuda")) {
        latent_engine_options gpu[] = {
            {.backend = "cuda"}, {.kernels = "basic"}, {.stream_data = 1}, {.device = 3}};
        for (int i = 0; i < 4; i++) { /* what the GPU alone has asks for it, and its reason is told */
            refuse(ctx, gpu[i], LATENT_ERROR_UNSUPPORTED, "the backend 'cuda' ");
        }
    }
    latent_context_destroy(ctx);
}

static void test_ref_refuses(void **state) {
    (void)state;
    latent_context *ctx = NULL;
    assert_int_equal(latent_context_create(&ctx), LATENT_OK);
    latent_status want = LATENT_ERROR_UNSUPPORTED;
    refuse(ctx, (latent_engine_options){.backend = "ref", .precision = "bf16"}, want,
           "fp32 only, not in 'bf16'");
    refuse(ctx, (latent_engine_options){.backend = "ref", .isa = "avx2"}, want, "instruction set ('avx2'");
    refuse(ctx, (latent_engine_options){.backend = "ref", .kernels = "tiled"}, want, "generations ('tiled'");
    refuse(ctx, (latent_engine_options){.backend = "ref", .threads = 4}, want, "one thread, not on 4");
    refuse(ctx, (latent_engine_options){.backend = "ref", .device = 3}, want, "no devices (3 was asked for");
    refuse(ctx, (latent_engine_options){.backend = "ref", .stream_data = 1}, want,
           "nothing to stream (--stream-data)");
    lt_backend *backend = NULL;
    latent_engine_options fine = {.backend = "ref", .precision = "fp32", .threads = 1};
    assert_int_equal(lt_backend_open(ctx, &fine, &backend), LATENT_OK);
    assert_string_equal(backend->engine, "ref, fp32, 1 thread");
    lt_backend_close(backend);
    latent_context_destroy(ctx);
}

static void test_auto(void **state) {
    (void)state;
    latent_context *ctx = NULL;
    assert_int_equal(latent_context_create(&ctx), LATENT_OK);
    const char *first = NULL;
    latent_backend_info info;
    int count = 0;
    for (; latent_backend_get_info(count, &info); count++) {
        assert_string_equal(info.name, lt_backend_at(count)->name);
        assert_true(strlen(info.summary) > 0 && strlen(info.detail) > 0);
        first = first || !info.available ? first : info.name;
    }
    assert_null(lt_backend_at(count));
    assert_null(lt_backend_at(-1));
    latent_engine_options named = {.backend = "auto"};
    for (int i = 0; i < 2; i++) {
        lt_backend *backend = NULL;
        assert_int_equal(lt_backend_open(ctx, i ? &named : NULL, &backend), LATENT_OK);
        assert_string_equal(backend->type->name, first);
        lt_backend_close(backend);
    }
    lt_backend_close(NULL);
    latent_context_destroy(ctx);
}

/* Asking for more than there is fails with a sentence, and the backend works on. */
static void test_table_ends(void **state) {
    (void)state;
    rig r;
    rig_open(&r, &variants[0], 0);
    static const uint8_t images[6] = {1, 2, 3, 4, 5, 6};
    float x[6], losses[2];
    int bad = 0;
    lt_step steps[2] = {{.n = 2}, {.first = 2, .n = 2}};
    lt_backend_data *data = NULL;
    RIG_OK(&r, r.type->data_load(r.ctx, r.backend, images, 3, 2, &data));
    assert_int_equal(r.type->data_bytes(data), 0);
    lt_gather_call call = {.data = data, .n = 2, .limit = 3, .scale = 1, .x = x};
    assert_int_equal(r.type->gather(r.ctx, r.backend, &call), LATENT_ERROR_ARGUMENT); /* no table yet */
    RIG_OK(&r, r.type->steps_begin(r.ctx, r.backend, steps, 2));
    RIG_OK(&r, r.type->gather(r.ctx, r.backend, &call));
    call.limit = 4; /* of 3 images */
    assert_int_equal(r.type->gather(r.ctx, r.backend, &call), LATENT_ERROR_ARGUMENT);
    call.limit = 3;
    call.n = 1; /* the step says 2 */
    assert_int_equal(r.type->gather(r.ctx, r.backend, &call), LATENT_ERROR_ARGUMENT);
    call.n = 2;
    RIG_OK(&r, r.type->step_next(r.ctx, r.backend)); /* images 2 and 3 of 3 */
    assert_int_equal(r.type->gather(r.ctx, r.backend, &call), LATENT_ERROR_ARGUMENT);
    RIG_OK(&r, r.type->step_next(r.ctx, r.backend));
    assert_int_equal(r.type->step_next(r.ctx, r.backend), LATENT_ERROR_ARGUMENT);
    assert_non_null(strstr(latent_context_message(r.ctx), "step 2 of a table of 2 steps"));
    assert_int_equal(r.type->losses_read(r.ctx, r.backend, 1, 2, losses, &bad), LATENT_ERROR_ARGUMENT);
    RIG_OK(&r, r.type->losses_read(r.ctx, r.backend, 0, 2, losses, &bad));
    r.type->data_free(r.backend, data);
    rig_close(&r);
}

/* AddressSanitizer would stop the program where malloc returns NULL. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1";
}

static void test_memory(void **state) {
    (void)state;
    rig r;
    rig_open(&r, &variants[0], 0);
    void *memory = NULL;
    for (size_t bytes = 0; bytes < 1000; bytes += 111) {
        RIG_OK(&r, r.type->alloc(r.ctx, r.backend, bytes, &memory));
        assert_int_equal((uintptr_t)memory % LT_ALIGN, 0);
        r.type->free(r.backend, memory);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(r.type->alloc(r.ctx, r.backend, SIZE_MAX - (i ? 4096 : 0), &memory),
                         LATENT_ERROR_MEMORY);
        assert_non_null(strstr(latent_context_message(r.ctx), "no memory for a block of"));
    }
    r.type->free(r.backend, NULL);
    rig_close(&r);
}

static void test_unknown_op(void **state) {
    (void)state;
    rig r;
    rig_open(&r, &variants[0], 0);
    lt_op op = {.kind = LT_OP_CONV, .name = "swirl"};
    assert_string_equal(r.type->op_variant(r.ctx, r.backend, &op, LT_FORWARD), "reference");
    op.kind = (lt_op_kind)999;
    assert_null(r.type->op_variant(r.ctx, r.backend, &op, LT_FORWARD));
    assert_non_null(strstr(latent_context_message(r.ctx), "does not know the op 'swirl'"));
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names),  cmocka_unit_test(test_ref_refuses),
                                       cmocka_unit_test(test_auto),   cmocka_unit_test(test_table_ends),
                                       cmocka_unit_test(test_memory), cmocka_unit_test(test_unknown_op)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
