/* test_checkpoint.c: checkpoint.safetensors and config.json as files: what stands in them, that it reads back
 * exactly, and that damage is noticed.
 */
#include "train_fixture.h"

#include "io/safetensors.h"

static const lt_train_state standing = {.epoch = 2,
                                        .step = 1,
                                        .loss_sum = 0.1234567890123456789,
                                        .seconds = 1.0 / 3,
                                        .forward = 0.1,
                                        .backward = 0.2,
                                        .optimizer = 1e-300};

/* A block whose values tell where they stand; the gaps stay zero. */
static float *numbered(const latent_net *net, float begin) {
    float *block = calloc(net->param_count, sizeof *block);
    for (int i = 0; i < lt_net_slot_count(net); i++) {
        lt_model_slot slot;
        lt_net_slot(net, i, &slot);
        for (size_t j = 0; j < slot.count; j++) {
            block[slot.offset + j] = begin + (float)(slot.offset + j);
        }
    }
    return block;
}

static char *config_text(const fixture *fx) {
    lt_run_config config = {.net_name = fx->net->name,
                            .net_text = fx->net->text,
                            .recipe = fx->net->recipe,
                            .seed = UINT64_MAX,
                            .subset = 7,
                            .images = 7,
                            .data = "/some/\"where\"",
                            .engine = "ref, fp32"};
    char *text = NULL;
    config.recipe.lr = 0.1 + 0.2; /* 0.30000000000000004 */
    OK(fx, lt_run_config_write(fx->ctx, &config, &text));
    return text;
}

static void write_one(const fixture *fx, lt_run *run, int moments) {
    float *blocks[3] = {numbered(fx->net, 1), numbered(fx->net, 10000), numbered(fx->net, 20000)};
    char *config = config_text(fx);
    OK(fx, lt_folder_create(fx->ctx, fx->run));
    OK(fx, lt_run_open(fx->ctx, fx->run, run));
    OK(fx, lt_checkpoint_write(fx->ctx, run, fx->net, config, &standing, blocks[0],
                               moments > 0 ? blocks[1] : NULL, moments > 1 ? blocks[2] : NULL));
    for (int i = 0; i < 3; i++) {
        free(blocks[i]);
    }
    free(config);
}

static void reads_back_exactly(void **state) {
    fixture *fx = *state;
    lt_run run;
    write_one(fx, &run, 2);
    lt_checkpoint *checkpoint = NULL;
    OK(fx, lt_checkpoint_read(fx->ctx, &run, &checkpoint));
    assert_memory_equal(&checkpoint->state, &standing, sizeof standing);
    assert_true(checkpoint->config.seed == UINT64_MAX);
    assert_int_equal(checkpoint->config.subset, 7);
    assert_string_equal(checkpoint->config.data, "/some/\"where\"");
    assert_string_equal(checkpoint->config.net_text, FIXTURE_NET);
    assert_true(checkpoint->config.recipe.lr == 0.1 + 0.2);
    assert_int_equal(checkpoint->config.recipe.epochs, 3);
    OK(fx, lt_checkpoint_match(fx->ctx, checkpoint, fx->net));
    const float begin[3] = {1, 10000, 20000};
    for (int part = 0; part < 3; part++) {
        float *want = numbered(fx->net, begin[part]), *have = malloc(fx->net->param_count * sizeof *have);
        memset(have, 0x55, fx->net->param_count * sizeof *have);
        OK(fx, lt_checkpoint_block(fx->ctx, checkpoint, fx->net, (lt_checkpoint_part)part, have));
        assert_same_params(fx, want, have);
        free(want);
        free(have);
    }
    lt_checkpoint_destroy(checkpoint);
    lt_run_close(&run);
}

/* As PyTorch sees the file: names, OIHW, everything F32. */
static void speaks_pytorch(void **state) {
    fixture *fx = *state;
    lt_run run;
    write_one(fx, &run, 2);
    static const char *const names[] = {"down.weight",
                                        "down.bias",
                                        "up.weight",
                                        "up.bias",
                                        "optimizer.m.down.weight",
                                        "optimizer.m.down.bias",
                                        "optimizer.m.up.weight",
                                        "optimizer.m.up.bias",
                                        "optimizer.v.down.weight",
                                        "optimizer.v.down.bias",
                                        "optimizer.v.up.weight",
                                        "optimizer.v.up.bias"};
    lt_safetensors *file = NULL;
    OK(fx, lt_st_read(fx->ctx, run.checkpoint, &file));
    assert_int_equal(lt_st_count(file), 12);
    for (int i = 0; i < 12; i++) {
        assert_string_equal(lt_st_at(file, i)->name, names[i]);
        assert_int_equal(lt_st_at(file, i)->type, LT_ST_F32);
    }
    const lt_st_tensor *weight = lt_st_find(file, "optimizer.v.up.weight");
    const uint64_t shape[] = {3, 4, 3, 3};
    assert_int_equal(weight->dims, 4);
    assert_memory_equal(weight->shape, shape, sizeof shape);
    lt_model_slot slot;
    lt_net_slot(fx->net, 2, &slot);
    for (int o = 0; o < 3; o++) {
        for (int i = 0; i < 4; i++) {
            for (int tap = 0; tap < 9; tap++) { /* OIHW in the file, OHWI in the block */
                double want = 20000 + (double)slot.offset + (o * 9 + tap) * 4 + i;
                assert_true(lt_st_value(weight, (uint64_t)((o * 4 + i) * 9 + tap)) == want);
            }
        }
    }
    assert_string_equal(lt_st_metadata(file, "format"), "latent-checkpoint 1");
    assert_string_equal(lt_st_metadata(file, "net"), FIXTURE_NET);
    lt_st_destroy(file);
    lt_run_close(&run);
}

static void moments_may_be_absent(void **state) {
    fixture *fx = *state;
    lt_run run;
    lt_checkpoint *checkpoint = NULL;
    write_one(fx, &run, 0);
    OK(fx, lt_checkpoint_read(fx->ctx, &run, &checkpoint));
    assert_int_equal(lt_st_count(checkpoint->file), 4);
    float *block = malloc(fx->net->param_count * sizeof *block);
    assert_refused(fx, lt_checkpoint_block(fx->ctx, checkpoint, fx->net, LT_PART_M, block),
                   LATENT_ERROR_ARGUMENT, "no tensor optimizer.m.down.weight");
    free(block);
    lt_checkpoint_destroy(checkpoint);
    lt_run_close(&run);
}

/* Flipped bits and cuts all over the file: none may be taken for a checkpoint. The spaces that pad the header
 * mean nothing, so a change there that stays JSON is harmless and may pass. */
static void damage_is_noticed(void **state) {
    fixture *fx = *state;
    lt_run run;
    write_one(fx, &run, 1);
    size_t bytes = 0;
    char *good = fixture_file(fx, fx->run, "checkpoint.safetensors", &bytes);
    char *bad = malloc(bytes);
    size_t stride = 37; /* coprime to 8, so that all bits have their turn */
    for (size_t at = 0; at < bytes * 8; at += stride) {
        lt_checkpoint *checkpoint = NULL;
        memcpy(bad, good, bytes);
        bad[at / 8] = (char)(bad[at / 8] ^ (1 << at % 8));
        OK(fx, lt_file_write(fx->ctx, run.checkpoint, bad, bytes));
        if (lt_checkpoint_read(fx->ctx, &run, &checkpoint) == LATENT_OK) {
            assert_int_equal(good[at / 8], ' ');
            assert_memory_equal(&checkpoint->state, &standing, sizeof standing);
        }
        lt_checkpoint_destroy(checkpoint);
    }
    for (size_t length = 0; length < bytes; length += 101) {
        lt_checkpoint *checkpoint = NULL;
        OK(fx, lt_file_write(fx->ctx, run.checkpoint, good, length));
        latent_status status = lt_checkpoint_read(fx->ctx, &run, &checkpoint);
        assert_refused(fx, status, LATENT_ERROR_FORMAT, "checkpoint.safetensors");
    }
    free(good);
    free(bad);
    lt_run_close(&run);
}

static void flipped_weight_says_so(void **state) {
    fixture *fx = *state;
    latent_train_options options = fixture_options(fx, fx->run);
    options.recipe.epochs = 1;
    free(fixture_train(fx, &options));
    size_t bytes = 0;
    char *data = fixture_file(fx, fx->run, "checkpoint.safetensors", &bytes);
    data[bytes - 5] ^= 1;
    OK(fx, lt_file_write(fx->ctx, fixture_path(fx->run, "checkpoint.safetensors"), data, bytes));
    options.resume = 1;
    latent_model *model = fixture_model(fx, 1);
    assert_refused(fx, latent_train(fx->ctx, model, fx->data, &options), LATENT_ERROR_FORMAT,
                   "do not match its checksum; the checkpoint is damaged");
    free(data);
    data = fixture_file(fx, fx->run, "model.safetensors", &bytes); /* weights are not a checkpoint */
    OK(fx, lt_file_write(fx->ctx, fixture_path(fx->run, "checkpoint.safetensors"), data, bytes));
    assert_refused(fx, latent_train(fx->ctx, model, fx->data, &options), LATENT_ERROR_FORMAT,
                   "its metadata must say format \"latent-checkpoint 1\"");
    free(data);
    latent_model_destroy(model);
}

/* ---- The run ------------------------------------------------------------------------------------- */

static void run_reads_back(void **state) {
    fixture *fx = *state;
    latent_train_options options = fixture_options(fx, fx->run), back;
    options.recipe.epochs = 1;
    options.recipe.weight_decay = 1e-5;
    options.seed = 12345678901234567890u;
    options.subset = 6;
    free(fixture_train(fx, &options));
    for (int round = 0; round < 2; round++) { /* from the checkpoint, then from config.json alone */
        latent_net *net = NULL;
        char *folder = NULL;
        OK(fx, latent_run_read(fx->ctx, fx->run, &net, &back, &folder));
        latent_net_info info;
        latent_net_get_info(net, &info);
        assert_string_equal(info.name, "tiny");
        assert_string_equal(info.text, FIXTURE_NET);
        assert_string_equal(folder, "/tmp");
        assert_memory_equal(&back.recipe, &options.recipe, sizeof back.recipe);
        assert_true(back.seed == options.seed);
        assert_int_equal(back.subset, 6);
        assert_null(back.run);
        latent_net_destroy(net);
        latent_free(folder);
        remove(fixture_path(fx->run, "checkpoint.safetensors"));
    }
}

static void bad_runs_are_refused(void **state) {
    fixture *fx = *state;
    latent_net *net = NULL;
    char *folder = NULL;
    latent_train_options back;
    assert_refused(fx, latent_run_read(fx->ctx, fx->run, &net, &back, &folder), LATENT_ERROR_ARGUMENT,
                   "run: no checkpoint to resume");
    OK(fx, lt_folder_create(fx->ctx, fx->run));
    char *good = config_text(fx);
    static const struct {
        const char *old, *new, *part;
    } cases[] = {
        {"latent-run 1", "latent-run 9", "\"format\" must be \"latent-run 1\""},
        {"\"seed\":", "\"seed\":-", "\"seed\" must be a whole number"},
        {"\"lr\":", "\"lr\":-", "lr '-0.30000000000000004' cannot be used"},
        {"\"batch\"", "\"botch\"", "the recipe does not say \"batch\""},
        {"\"subset\":7", "\"subset\":7.5", "\"subset\" must be a whole number"},
        {"\"net_text\"", "\"net_next\"", "no text under \"net_text\""},
        {"input 32x32x3", "input 32x32", "tiny:1"},
        {"{", "[", "config.json"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *at = strstr(good, cases[i].old), *bad = malloc(strlen(good) + 64);
        assert_non_null(at);
        sprintf(bad, "%.*s%s%s", (int)(at - good), good, cases[i].new, at + strlen(cases[i].old));
        OK(fx, lt_file_write(fx->ctx, fixture_path(fx->run, "config.json"), bad, strlen(bad)));
        latent_status status = latent_run_read(fx->ctx, fx->run, &net, &back, &folder);
        assert_true(status == LATENT_ERROR_FORMAT);
        assert_refused(fx, status, LATENT_ERROR_FORMAT, cases[i].part);
        assert_null(net);
        assert_null(folder);
        free(bad);
    }
    free(good);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_open, fixture_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(reads_back_exactly),   TEST(speaks_pytorch),         TEST(moments_may_be_absent),
        TEST(damage_is_noticed),    TEST(flipped_weight_says_so), TEST(run_reads_back),
        TEST(bad_runs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
