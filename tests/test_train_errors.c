/* test_train_errors.c: what a training refuses, each with a sentence and before the first step. */
#include "train_fixture.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>

static void begins(void *user, const latent_train_event *event) {
    (void)event;
    ++*(int *)user;
}

static void refuse(fixture *fx, const latent_train_options *options, latent_status want, const char *part) {
    latent_model *model = fixture_model(fx, 1);
    int begun = 0;
    latent_train_options watched = *options;
    watched.progress = begins;
    watched.user = &begun;
    assert_refused(fx, latent_train(fx->ctx, model, fx->data, &watched), want, part);
    assert_int_equal(begun, 0);
    latent_model_destroy(model);
}

static void bad_recipes_are_refused(void **state) {
    fixture *fx = *state;
    const struct {
        size_t offset;
        double value;
        const char *part;
    } reals[] = {
        {offsetof(latent_recipe, lr), -0.1, "lr -0.1"},
        {offsetof(latent_recipe, lr), 0, "lr 0"},
        {offsetof(latent_recipe, lr), NAN, "lr"},
        {offsetof(latent_recipe, lr), INFINITY, "lr inf"},
        {offsetof(latent_recipe, lr), 1e-60, "above 0 in fp32"},
        {offsetof(latent_recipe, momentum), 1, "momentum 1"},
        {offsetof(latent_recipe, momentum), -0.1, "momentum -0.1"},
        {offsetof(latent_recipe, momentum), 0.999999999999, "below 1 in fp32"},
        {offsetof(latent_recipe, beta2), 1, "beta2 1"},
        {offsetof(latent_recipe, beta2), NAN, "beta2"},
        {offsetof(latent_recipe, beta2), 0.999999999999, "below 1 in fp32"},
        {offsetof(latent_recipe, epsilon), 0, "epsilon 0"},
        {offsetof(latent_recipe, epsilon), 1e-60, "above 0 in fp32"},
        {offsetof(latent_recipe, weight_decay), -1, "weight_decay -1"},
    };
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) {
        latent_train_options options = fixture_options(fx, fx->run);
        *(double *)((char *)&options.recipe + reals[i].offset) = reals[i].value;
        refuse(fx, &options, LATENT_ERROR_ARGUMENT, reals[i].part);
    }
    latent_train_options options = fixture_options(fx, fx->run);
    options.recipe.batch = 0;
    refuse(fx, &options, LATENT_ERROR_ARGUMENT, "batch 0");
    options = fixture_options(fx, fx->run);
    options.recipe.epochs = 0;
    refuse(fx, &options, LATENT_ERROR_ARGUMENT, "epochs 0");
    options = fixture_options(fx, fx->run);
    options.recipe.optimizer = (latent_optimizer)7;
    refuse(fx, &options, LATENT_ERROR_ARGUMENT, "optimizer 7");
    assert_false(lt_folder_exists(fx->run)); /* nothing was written */
}

static void bad_arguments_are_refused(void **state) {
    fixture *fx = *state;
    latent_train_options options = fixture_options(fx, NULL);
    options.subset = FIXTURE_IMAGES + 1;
    refuse(fx, &options, LATENT_ERROR_ARGUMENT, "subset 11 of /tmp: it has 10 training images");
    options.subset = -1;
    refuse(fx, &options, LATENT_ERROR_ARGUMENT, "subset -1");
    options = fixture_options(fx, NULL);
    options.checkpoint_every = -1;
    refuse(fx, &options, LATENT_ERROR_ARGUMENT, "a checkpoint every -1 epochs");
    options = fixture_options(fx, NULL);
    options.resume = 1;
    refuse(fx, &options, LATENT_ERROR_ARGUMENT, "nothing to resume: no run folder");
    fx->data->count[LATENT_TRAIN] = 0;
    options = fixture_options(fx, NULL);
    refuse(fx, &options, LATENT_ERROR_ARGUMENT, "no training images");
    fx->data->count[LATENT_TRAIN] = FIXTURE_IMAGES;
    assert_refused(fx, latent_train(fx->ctx, NULL, fx->data, &options), LATENT_ERROR_ARGUMENT,
                   "wants a model");
}

static void other_images_are_refused(void **state) {
    fixture *fx = *state;
    static const char text[] = "input 16x16x3\nconv a 3 3x3\nloss mse\n";
    latent_net_destroy(fx->net);
    OK(fx, latent_net_parse(fx->ctx, text, strlen(text), "small", &fx->net));
    latent_train_options options = fixture_options(fx, NULL);
    refuse(fx, &options, LATENT_ERROR_ARGUMENT, "32x32x3");
    refuse(fx, &options, LATENT_ERROR_ARGUMENT, "16x16x3");
}

static void unwritable_folders_are_refused(void **state) {
    fixture *fx = *state;
    OK(fx, lt_file_write(fx->ctx, fx->run, "x", 1));
    char inside[128];
    snprintf(inside, sizeof inside, "%s/run", fx->run); /* below a file */
    latent_train_options options = fixture_options(fx, inside);
    refuse(fx, &options, LATENT_ERROR_IO, "cannot create the folder");
    options.run = fx->run;
    refuse(fx, &options, LATENT_ERROR_IO, fx->run);
    options.run = "/proc/latent-run"; /* not even root creates a folder there */
    refuse(fx, &options, LATENT_ERROR_IO, "/proc/latent-run");
    options.run = "";
    refuse(fx, &options, LATENT_ERROR_ARGUMENT, "path is empty");
}

/* A disk that is full when the epoch's checkpoint is due: the call fails, the older checkpoint is whole. */
static void fill_disk(void *user, const latent_train_event *event) {
    (void)user;
    if (event->kind == LATENT_EVENT_EPOCH) {
        struct rlimit limit = {600, RLIM_INFINITY};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
}

static void full_disk_keeps_the_checkpoint(void **state) {
    fixture *fx = *state;
    struct rlimit before;
    latent_train_options options = fixture_options(fx, fx->run);
    options.progress = fill_disk;
    latent_model *model = fixture_model(fx, 1);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    latent_status status = latent_train(fx->ctx, model, fx->data, &options);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_refused(fx, status, LATENT_ERROR_IO, "cannot write");
    options.progress = NULL;
    options.resume = 1;
    OK(fx, latent_train(fx->ctx, model, fx->data, &options)); /* there is room again */
    float *resumed = fixture_params(fx, model);
    options.resume = 0;
    options.run = NULL;
    float *straight = fixture_train(fx, &options);
    assert_same_params(fx, resumed, straight);
    free(resumed);
    free(straight);
    latent_model_destroy(model);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_open, fixture_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(bad_recipes_are_refused),        TEST(bad_arguments_are_refused),
        TEST(other_images_are_refused),       TEST(unwritable_folders_are_refused),
        TEST(full_disk_keeps_the_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
