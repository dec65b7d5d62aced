/* test_resume.c: a run that was stopped, wherever and however, ends in the bits of one that never was. */
#include "train_fixture.h"

#include <signal.h>
#include <sys/wait.h>

static void interrupt_after_first(void *user, const latent_train_event *event) {
    if (event->kind == LATENT_EVENT_EPOCH && event->epoch == 1) {
        latent_context_interrupt(user);
    }
}

/* The numbers of the "epoch" keys in metrics.jsonl, as text: "1 2 3 ". */
static void assert_epochs(const fixture *fx, const char *want) {
    size_t bytes = 0;
    char *text = fixture_file(fx, fx->run, "metrics.jsonl", &bytes);
    char have[1024] = "";
    for (char *line = text; *line;) {
        char *end = strchr(line, '\n');
        assert_non_null(end);
        int epoch = 0;
        assert_int_equal(sscanf(line, "{\"epoch\":%d,", &epoch), 1);
        size_t used = strlen(have);
        snprintf(have + used, sizeof have - used, "%d ", epoch);
        line = end + 1;
    }
    assert_string_equal(have, want);
    free(text);
}

static void between_epochs(void **state) {
    fixture *fx = *state;
    latent_train_options options = fixture_options(fx, NULL);
    float *straight = fixture_train(fx, &options);
    options.run = fx->run;
    options.checkpoint_every = 0;
    options.progress = interrupt_after_first;
    options.user = fx->ctx;
    latent_model *model = fixture_model(fx, 1);
    assert_refused(fx, latent_train(fx->ctx, model, fx->data, &options), LATENT_INTERRUPTED,
                   "stopped after 0 of 3 steps of epoch 2 and saved; --resume");
    latent_model_destroy(model);
    assert_epochs(fx, "1 ");
    options.progress = NULL;
    options.resume = 1;
    options.recipe.epochs = 3;
    model = fixture_model(fx, 99); /* its own weights do not matter */
    OK(fx, latent_train(fx->ctx, model, fx->data, &options));
    float *resumed = fixture_params(fx, model);
    assert_same_params(fx, straight, resumed);
    assert_epochs(fx, "1 2 3 ");
    latent_model_destroy(model);
    free(straight);
    free(resumed);
}

/* Losses of the epochs, as they stand in metrics.jsonl. */
static void read_losses(const fixture *fx, const char *run, double out[3]) {
    size_t bytes = 0;
    char *text = fixture_file(fx, run, "metrics.jsonl", &bytes), *at = text;
    for (int i = 0; i < 3; i++) {
        at = strstr(at, "\"loss\":");
        assert_non_null(at);
        out[i] = strtod(at + 7, &at);
    }
    free(text);
}

/* Stops after every single step of the run, with every optimizer and schedule. */
static void after_any_step(void **state) {
    fixture *fx = *state;
    const struct {
        latent_optimizer optimizer;
        latent_schedule schedule;
        double momentum, decay;
    } cases[] = {{LATENT_ADAM, LATENT_CONSTANT, 0.9, 0},
                 {LATENT_SGD, LATENT_ONECYCLE, 0.9, 1e-4},
                 {LATENT_SGD, LATENT_CONSTANT, 0, 0},
                 {LATENT_ADAMW, LATENT_COSINE, 0.9, 1e-2}};
    for (int i = 0; i < 4; i++) {
        latent_train_options options = fixture_options(fx, fx->other);
        options.recipe.optimizer = cases[i].optimizer;
        options.recipe.schedule = cases[i].schedule;
        options.recipe.momentum = cases[i].momentum;
        options.recipe.weight_decay = cases[i].decay;
        float *straight = fixture_train(fx, &options);
        options.run = fx->run;
        for (int step = 1; step < 9; step++) {
            latent_model *model = fixture_model(fx, 1);
            fixture_tamper(fx->ctx, model);
            tamper.type.step_next = step_next_interrupts;
            tamper.at = step;
            options.resume = 0;
            latent_status status = latent_train(fx->ctx, model, fx->data, &options);
            model->backend->type = tamper.real;
            assert_refused(fx, status, LATENT_INTERRUPTED, "--resume continues");
            options.resume = 1;
            OK(fx, latent_train(fx->ctx, model, fx->data, &options));
            float *resumed = fixture_params(fx, model);
            assert_same_params(fx, straight, resumed);
            free(resumed);
            latent_model_destroy(model);
            double a[3], b[3];
            read_losses(fx, fx->run, a);
            read_losses(fx, fx->other, b);
            assert_memory_equal(a, b, sizeof a);
            assert_epochs(fx, "1 2 3 ");
        }
        size_t bytes[2];
        char *files[2] = {fixture_file(fx, fx->run, "model.safetensors", &bytes[0]),
                          fixture_file(fx, fx->other, "model.safetensors", &bytes[1])};
        assert_int_equal(bytes[0], bytes[1]);
        assert_memory_equal(files[0], files[1], bytes[0]);
        free(files[0]);
        free(files[1]);
        free(straight);
    }
}

static void without_a_folder(void **state) {
    fixture *fx = *state;
    latent_train_options options = fixture_options(fx, NULL);
    latent_model *model = fixture_model(fx, 1);
    latent_context_interrupt(fx->ctx);
    assert_refused(fx, latent_train(fx->ctx, model, fx->data, &options), LATENT_INTERRUPTED,
                   "stopped after 0 of 3 steps of epoch 1; nothing was saved");
    OK(fx, latent_train(fx->ctx, model, fx->data, &options)); /* an interruption is answered once */
    latent_model_destroy(model);
}

/* Three epochs, then two more: the same as five. */
static void for_more_epochs(void **state) {
    fixture *fx = *state;
    latent_train_options options = fixture_options(fx, fx->run);
    free(fixture_train(fx, &options));
    options.recipe.epochs = 5;
    options.resume = 1;
    float *resumed = fixture_train(fx, &options);
    assert_epochs(fx, "1 2 3 4 5 ");
    options.resume = 0;
    options.run = NULL;
    float *straight = fixture_train(fx, &options);
    assert_same_params(fx, straight, resumed);
    free(straight);
    free(resumed);
}

static void of_a_complete_run(void **state) {
    fixture *fx = *state;
    latent_train_options options = fixture_options(fx, fx->run);
    float *straight = fixture_train(fx, &options);
    options.resume = 1;
    float *resumed = fixture_train(fx, &options);
    assert_same_params(fx, straight, resumed);
    assert_epochs(fx, "1 2 3 ");
    free(straight);
    free(resumed);
}

/* A complete run whose model is gone, or no model any more, gets it back. */
static void restores_the_model(void **state) {
    fixture *fx = *state;
    latent_train_options options = fixture_options(fx, fx->run);
    free(fixture_train(fx, &options));
    size_t bytes[2];
    char *was = fixture_file(fx, fx->run, "model.safetensors", &bytes[0]);
    options.resume = 1;
    for (int i = 0; i < 2; i++) {
        if (i == 0) {
            assert_int_equal(unlink(fixture_path(fx->run, "model.safetensors")), 0);
        } else {
            assert_int_equal(truncate(fixture_path(fx->run, "model.safetensors"), 100), 0);
        }
        free(fixture_train(fx, &options));
        char *is = fixture_file(fx, fx->run, "model.safetensors", &bytes[1]);
        assert_int_equal(bytes[0], bytes[1]);
        assert_memory_equal(was, is, bytes[0]);
        free(is);
    }
    free(was);
}

/* As a crash leaves them: lines the checkpoint does not know, and half a line. */
static void metrics_are_mended(void **state) {
    fixture *fx = *state;
    latent_train_options options = fixture_options(fx, fx->run);
    options.recipe.epochs = 2;
    free(fixture_train(fx, &options));
    static const char extra[] =
        "{\"epoch\":3,\"loss\":9}\nnonsense\n{\"epoch\":2,\"loss\":9}\n{\"epoch\":4,\"lo";
    OK(fx, lt_file_append(fx->ctx, fixture_path(fx->run, "metrics.jsonl"), extra, strlen(extra)));
    OK(fx, lt_file_write(fx->ctx, fixture_path(fx->run, "checkpoint.safetensors.tmp.12345"), "x", 1));
    options.recipe.epochs = 3;
    options.resume = 1;
    free(fixture_train(fx, &options));
    assert_epochs(fx, "1 2 3 ");
    assert_false(lt_file_exists(fixture_path(fx->run, "checkpoint.safetensors.tmp.12345")));
    options.resume = 0; /* a new run in the folder of an old one begins anew */
    options.recipe.epochs = 1;
    free(fixture_train(fx, &options));
    assert_epochs(fx, "1 ");
}

/* What a metrics line says. */
static void metrics_say_everything(void **state) {
    fixture *fx = *state;
    latent_train_options options = fixture_options(fx, fx->run);
    options.recipe.epochs = 1;
    free(fixture_train(fx, &options));
    size_t bytes = 0;
    char *text = fixture_file(fx, fx->run, "metrics.jsonl", &bytes);
    const char *const keys[] = {"epoch",
                                "loss",
                                "lr",
                                "seconds",
                                "images_per_second",
                                "forward_seconds",
                                "backward_seconds",
                                "optimizer_seconds",
                                "time"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char quoted[64];
        snprintf(quoted, sizeof quoted, "\"%s\":", keys[i]);
        assert_non_null(strstr(text, quoted));
    }
    assert_non_null(strstr(text, "\"lr\":0.01,"));
    free(text);
}

/* ---- What is refused ----------------------------------------------------------------------------- */

static void refuse(fixture *fx, const latent_train_options *options, latent_status want, const char *part) {
    latent_model *model = fixture_model(fx, 1);
    assert_refused(fx, latent_train(fx->ctx, model, fx->data, options), want, part);
    latent_model_destroy(model);
}

static void nothing_to_resume(void **state) {
    fixture *fx = *state;
    latent_train_options options = fixture_options(fx, fx->run);
    options.resume = 1;
    refuse(fx, &options, LATENT_ERROR_ARGUMENT, "run: no checkpoint to resume; start");
    assert_false(lt_folder_exists(fx->run));
}

static void changed_settings(void **state) {
    fixture *fx = *state;
    latent_train_options first = fixture_options(fx, fx->run);
    first.recipe.schedule = LATENT_COSINE;
    free(fixture_train(fx, &first));
    first.resume = 1;
    latent_train_options options = first;
    options.recipe.lr = 0.5;
    refuse(fx, &options, LATENT_ERROR_ARGUMENT, "started with lr 0.01, not 0.5");
    options = first;
    options.recipe.batch = 5;
    refuse(fx, &options, LATENT_ERROR_ARGUMENT, "started with batch 4, not 5");
    options = first;
    options.seed = 3;
    refuse(fx, &options, LATENT_ERROR_ARGUMENT, "started with seed 1, not 3");
    options = first;
    options.subset = 7;
    refuse(fx, &options, LATENT_ERROR_ARGUMENT, "started with images 10, not 7");
    options = first;
    options.recipe.optimizer = LATENT_SGD;
    refuse(fx, &options, LATENT_ERROR_ARGUMENT, "started with adam and schedule cosine, not sgd");
    options = first;
    options.recipe.epochs = 4;
    refuse(fx, &options, LATENT_ERROR_ARGUMENT, "the cosine schedule is laid out over 3 epochs");
    options.recipe.epochs = 2;
    refuse(fx, &options, LATENT_ERROR_ARGUMENT, "2 epochs are fewer than the 3");
}

/* The same path and as many images, but not the same: refused. A run that does not say goes on. */
static void changed_contents(void **state) {
    fixture *fx = *state;
    latent_train_options options = fixture_options(fx, fx->run);
    free(fixture_train(fx, &options));
    char digest[33], was[33];
    latent_dataset_digest(fx->data, was);
    OK(fx, latent_run_read_digest(fx->ctx, fx->run, digest));
    assert_string_equal(digest, was);
    options.resume = 1;
    uint8_t *const places[] = {fx->data->images[0], fx->data->labels[0], fx->data->images[1] + 77};
    for (int i = 0; i < 3; i++) {
        *places[i] ^= 1;
        refuse(fx, &options, LATENT_ERROR_ARGUMENT, "started on other images or labels than /tmp has now");
        *places[i] ^= 1;
    }
    free(fixture_train(fx, &options));
    /* As an older version wrote it: the checkpoint is written again with a config that lacks the digest. */
    lt_run run;
    lt_checkpoint *checkpoint = NULL;
    char *text = NULL;
    OK(fx, lt_run_open(fx->ctx, fx->run, &run));
    OK(fx, lt_checkpoint_read(fx->ctx, &run, &checkpoint));
    checkpoint->config.digest[0] = 0;
    OK(fx, lt_run_config_write(fx->ctx, &checkpoint->config, &text));
    assert_null(strstr(text, "digest"));
    float *blocks = calloc(3 * fx->net->param_count, sizeof *blocks);
    for (int part = 0; part < 3; part++) {
        OK(fx, lt_checkpoint_block(fx->ctx, checkpoint, fx->net, (lt_checkpoint_part)part,
                                   blocks + (size_t)part * fx->net->param_count));
    }
    OK(fx, lt_checkpoint_write(fx->ctx, &run, fx->net, text, &checkpoint->state, blocks,
                               blocks + fx->net->param_count, blocks + 2 * fx->net->param_count));
    free(blocks);
    free(text);
    lt_checkpoint_destroy(checkpoint);
    lt_run_close(&run);
    *places[0] ^= 1;
    OK(fx, latent_run_read_digest(fx->ctx, fx->run, digest));
    assert_string_equal(digest, "");
    free(fixture_train(fx, &options));
}

static void another_net(void **state) {
    fixture *fx = *state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"input 32x32x3\nconv down 5 3x3 relu pool2\nconv up 3 3x3 up2\nloss mse\n",
         "its tensor down.weight is 4x3x3x3, this net wants 5x3x3x3"},
        {"input 32x32x3\nconv first 4 3x3 relu pool2\nconv up 3 3x3 up2\nloss mse\n",
         "it has no tensor first.weight"},
        {"input 32x32x3\nconv up 3 3x3\nloss mse\n", "its tensor up.weight is 3x4x3x3"},
        {"input 32x32x3\nconv down 4 3x3 relu pool2\nconv up 3 3x3 nobias up2\nloss mse\n",
         "this net has no tensor up.bias"},
        {"input 32x32x3\nconv down 4 3x3 pool2\nconv up 3 3x3 up2\nloss mse\n",
         "it has conv down (3x3, relu, pool2) where this net has conv down (3x3, pool2)"},
    };
    latent_train_options options = fixture_options(fx, fx->run);
    free(fixture_train(fx, &options));
    options.resume = 1;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        latent_net_destroy(fx->net);
        OK(fx, latent_net_parse(fx->ctx, cases[i].text, strlen(cases[i].text), "changed", &fx->net));
        refuse(fx, &options, LATENT_ERROR_ARGUMENT, "checkpoint of another net (tiny)");
        refuse(fx, &options, LATENT_ERROR_ARGUMENT, cases[i].part);
    }
    latent_net_destroy(fx->net); /* the same net, written otherwise */
    static const char same[] = "# mine\ninput   32x32x3\nconv down 4 3x3 pool2 relu\n"
                               "conv up 3 3x3 up2\nlatent\nloss mse\n";
    OK(fx, latent_net_parse(fx->ctx, same, strlen(same), "same", &fx->net));
    free(fixture_train(fx, &options));
}

/* ---- kill -9 --------------------------------------------------------------------------------------- */

/* Trains in a child that starts or resumes; killed after `wait` microseconds unless it ends before. */
static int train_and_kill(const fixture *fx, const latent_train_options *options, useconds_t wait) {
    pid_t child = fork();
    if (child == 0) {
        latent_engine_options engine = {.backend = "ref"};
        latent_model *model = NULL;
        latent_status status = latent_model_create(fx->ctx, fx->net, &engine, options->seed, &model);
        if (status == LATENT_OK) {
            status = latent_train(fx->ctx, model, fx->data, options);
        }
        _exit(status == LATENT_OK ? 0 : 1);
    }
    assert_true(child > 0);
    usleep(wait);
    kill(child, SIGKILL);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0); /* killed or done, never refused */
    return WIFEXITED(status);
}

static void killed_at_any_moment(void **state) {
    fixture *fx = *state;
    latent_train_options options = fixture_options(fx, NULL);
    options.recipe.epochs = 200;
    options.recipe.batch = 5;
    float *straight = fixture_train(fx, &options);
    options.run = fx->run;
    int kills = 0, done = 0;
    for (int i = 0; kills < 20 && !done; i++) {
        options.resume = lt_file_exists(fixture_path(fx->run, "checkpoint.safetensors"));
        useconds_t wait = 2000 + lt_philox(11, LT_RNG_TEST, 0, (uint64_t)i).v[0] % 30000;
        done = train_and_kill(fx, &options, wait);
        kills += !done;
        if (options.resume) { /* there was one before; there must be a whole one now */
            lt_run run;
            lt_checkpoint *checkpoint = NULL;
            OK(fx, lt_run_open(fx->ctx, fx->run, &run));
            OK(fx, lt_checkpoint_read(fx->ctx, &run, &checkpoint));
            lt_checkpoint_destroy(checkpoint);
            lt_run_close(&run);
        }
    }
    assert_true(kills >= 5);
    options.resume = lt_file_exists(fixture_path(fx->run, "checkpoint.safetensors"));
    float *resumed = fixture_train(fx, &options);
    assert_same_params(fx, straight, resumed);
    char want[1024] = "";
    for (int i = 1; i <= 200; i++) {
        size_t used = strlen(want);
        snprintf(want + used, sizeof want - used, "%d ", i);
    }
    assert_epochs(fx, want);
    free(straight);
    free(resumed);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_open, fixture_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(killed_at_any_moment), TEST(between_epochs),
        TEST(after_any_step),       TEST(without_a_folder),
        TEST(for_more_epochs),      TEST(of_a_complete_run),
        TEST(metrics_are_mended),   TEST(metrics_say_everything),
        TEST(nothing_to_resume),    TEST(changed_settings),
        TEST(another_net),          TEST(restores_the_model),
        TEST(changed_contents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
