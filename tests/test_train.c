/* test_train.c: the training loop on the reference backend: what it computes, what it tells, what it refuses.
 * Resuming has its own file.
 */
#include "train_fixture.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>

/* ---- What it computes ---------------------------------------------------------------------------- */

typedef struct seen {
    latent_train_event start, epochs[3], last; /* the first epochs and the last one */
    int count[4];                              /* by kind */
    int step_zero;
} seen;

static void watch(void *user, const latent_train_event *event) {
    seen *s = user;
    if (event->kind == LATENT_EVENT_START) {
        s->start = *event;
    }
    if (event->kind == LATENT_EVENT_EPOCH && s->count[LATENT_EVENT_EPOCH] < 3) {
        s->epochs[s->count[LATENT_EVENT_EPOCH]] = *event;
    }
    if (event->kind == LATENT_EVENT_EPOCH) {
        s->last = *event;
    }
    s->step_zero += event->kind == LATENT_EVENT_STEP && event->step == 0;
    s->count[event->kind]++;
}

static void two_runs_are_equal(void **state) {
    fixture *fx = *state;
    latent_train_options options = fixture_options(fx, NULL);
    float *a = fixture_train(fx, &options), *b = fixture_train(fx, &options);
    assert_same_params(fx, a, b);
    options.seed = 2; /* another start and another order */
    float *c = fixture_train(fx, &options);
    assert_memory_not_equal(a, c, fx->net->param_count * sizeof *a);
    free(a);
    free(b);
    free(c);
}

static void one_batch_is_learned(void **state) {
    fixture *fx = *state;
    seen s = {0};
    latent_train_options options = fixture_options(fx, NULL);
    options.recipe.epochs = 200;
    options.recipe.batch = 4;
    options.recipe.lr = 0.01;
    options.subset = 4;
    options.progress = watch;
    options.user = &s;
    free(fixture_train(fx, &options));
    assert_int_equal(s.count[LATENT_EVENT_EPOCH], 200);
    assert_true(s.epochs[0].loss > 0.2);
    assert_true(s.last.loss < 0.005);
}

/* With a rate of nothing the weights stay, so the epoch's loss must be the plain mean over all images,
 * though the last batch is short. */
static void last_batch_weighs_what_it_holds(void **state) {
    fixture *fx = *state;
    seen s = {0};
    latent_train_options options = fixture_options(fx, NULL);
    options.recipe.optimizer = LATENT_SGD;
    options.recipe.lr = 1e-40;
    options.recipe.epochs = 1;
    options.progress = watch;
    options.user = &s;
    latent_model *model = fixture_model(fx, 1);
    latent_evaluation evaluation;
    OK(fx, latent_model_evaluate(fx->ctx, model, fx->data, LATENT_TRAIN, &evaluation));
    OK(fx, latent_train(fx->ctx, model, fx->data, &options));
    assert_int_equal(s.epochs[0].steps, 3);
    assert_int_equal(s.epochs[0].images, FIXTURE_IMAGES);
    assert_true(fabs(s.epochs[0].loss - evaluation.loss) <= 1e-6 * evaluation.loss);
    latent_model_destroy(model);
}

static latent_status keep_steps(latent_context *ctx, lt_backend *backend, const lt_step *steps, int count) {
    for (int i = 0; i < count && tamper.step_count < 64; i++) {
        tamper.steps[tamper.step_count++] = steps[i];
    }
    return tamper.real->steps_begin(ctx, backend, steps, count);
}

/* Two epochs of ten images in batches of four. */
static void step_table_is_right(void **state) {
    fixture *fx = *state;
    latent_train_options options = fixture_options(fx, NULL);
    options.recipe.epochs = 2;
    options.recipe.schedule = LATENT_COSINE;
    latent_model *model = fixture_model(fx, 1);
    fixture_tamper(fx->ctx, model);
    tamper.type.steps_begin = keep_steps;
    OK(fx, latent_train(fx->ctx, model, fx->data, &options));
    model->backend->type = tamper.real;
    assert_int_equal(tamper.step_count, 6);
    const uint32_t first[] = {0, 4, 8}, n[] = {4, 4, 2};
    double beta1 = 1, beta2 = 1;
    for (int i = 0; i < 6; i++) {
        const lt_step *step = &tamper.steps[i];
        beta1 *= 0.9;
        beta2 *= 0.999;
        assert_int_equal(step->epoch, i / 3);
        assert_int_equal(step->first, first[i % 3]);
        assert_int_equal(step->n, n[i % 3]);
        assert_true(fabs(step->lr - 0.01 * (1 + cos(M_PI * i / 6)) / 2) < 1e-8);
        assert_true(fabs(step->correction1 - 1 / (1 - beta1)) < 1e-6 * step->correction1);
        assert_true(fabs(step->correction2 - 1 / sqrt(1 - beta2)) < 1e-6 * step->correction2);
    }
    latent_model_destroy(model);
}

static void subset_is_the_first_images(void **state) {
    fixture *fx = *state;
    latent_train_options options = fixture_options(fx, NULL);
    options.subset = 5;
    float *a = fixture_train(fx, &options);
    options.subset = 0;
    fx->data->count[LATENT_TRAIN] = 5;
    float *b = fixture_train(fx, &options);
    fx->data->count[LATENT_TRAIN] = FIXTURE_IMAGES;
    assert_same_params(fx, a, b);
    free(a);
    free(b);
}

static void batch_is_capped(void **state) {
    fixture *fx = *state;
    seen s = {0};
    latent_train_options options = fixture_options(fx, NULL);
    options.recipe.batch = 65536;
    options.progress = watch;
    options.user = &s;
    float *a = fixture_train(fx, &options);
    assert_int_equal(s.start.steps, 1);
    options.recipe.batch = FIXTURE_IMAGES;
    float *b = fixture_train(fx, &options);
    assert_same_params(fx, a, b);
    free(a);
    free(b);
}

/* After training the model computes with the new weights, though it computed with the old ones before. */
static void model_is_ready_afterwards(void **state) {
    fixture *fx = *state;
    latent_train_options options = fixture_options(fx, fx->run);
    latent_model *model = fixture_model(fx, 1), *loaded = NULL;
    latent_evaluation before, after, again;
    OK(fx, latent_model_evaluate(fx->ctx, model, fx->data, LATENT_TEST, &before));
    OK(fx, latent_train(fx->ctx, model, fx->data, &options));
    OK(fx, latent_model_evaluate(fx->ctx, model, fx->data, LATENT_TEST, &after));
    assert_true(after.loss < before.loss);
    latent_engine_options engine = {.backend = "ref"};
    OK(fx, latent_model_load(fx->ctx, fx->run, NULL, &engine, &loaded));
    OK(fx, latent_model_evaluate(fx->ctx, loaded, fx->data, LATENT_TEST, &again));
    assert_true(after.loss == again.loss);
    latent_model_destroy(model);
    latent_model_destroy(loaded);
}

/* ---- What it tells --------------------------------------------------------------------------------- */

static void events_tell_the_story(void **state) {
    fixture *fx = *state;
    seen s = {0};
    latent_train_options options = fixture_options(fx, fx->run);
    options.checkpoint_every = 2;
    options.progress = watch;
    options.user = &s;
    free(fixture_train(fx, &options));
    assert_int_equal(s.count[LATENT_EVENT_START], 1);
    assert_int_equal(s.count[LATENT_EVENT_EPOCH], 3);
    assert_int_equal(s.count[LATENT_EVENT_SAVED], 2); /* after epochs 2 and 3 */
    assert_int_equal(s.step_zero, 3);
    assert_int_equal(s.start.epoch, 1);
    assert_int_equal(s.start.epochs, 3);
    assert_int_equal(s.start.resumed_epoch, 0);
    for (int i = 0; i < 3; i++) {
        const latent_train_event *e = &s.epochs[i];
        assert_int_equal(e->epoch, i + 1);
        assert_int_equal(e->step, 3);
        assert_true(e->lr == 0.01);
        assert_true(e->loss > 0 && e->seconds > 0);
        assert_true(fabs(e->images_per_second * e->seconds - FIXTURE_IMAGES) < 1e-6);
        double parts = e->forward_seconds + e->backward_seconds + e->optimizer_seconds;
        assert_true(e->forward_seconds > 0 && e->backward_seconds > 0 && e->optimizer_seconds > 0);
        assert_true(parts <= e->seconds && parts > e->seconds / 2);
    }
}

static void memory_is_the_plans(void **state) {
    fixture *fx = *state;
    const struct {
        latent_optimizer optimizer;
        double momentum;
        int moments;
    } cases[] = {{LATENT_ADAM, 0.9, 2}, {LATENT_ADAMW, 0.9, 2}, {LATENT_SGD, 0.9, 1}, {LATENT_SGD, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        seen s = {0};
        latent_train_options options = fixture_options(fx, NULL);
        options.recipe.epochs = 1;
        options.recipe.optimizer = cases[i].optimizer;
        options.recipe.momentum = cases[i].momentum;
        options.progress = watch;
        options.user = &s;
        latent_model *model = fixture_model(fx, 1);
        lt_plan *plan = NULL;
        OK(fx, lt_plan_create(fx->ctx, model->net, model->backend, model->params, 4, 1, -1, &plan));
        OK(fx, latent_train(fx->ctx, model, fx->data, &options));
        const latent_memory_info *memory = &s.start.memory;
        uint64_t block = model->net->param_count * sizeof(float);
        assert_int_equal(memory->weights, block);
        assert_int_equal(memory->gradients, block);
        assert_int_equal(memory->optimizer, block * (uint64_t)cases[i].moments);
        assert_int_equal(memory->activations, plan->memory.activations);
        assert_int_equal(memory->masks, plan->memory.masks);
        assert_int_equal(memory->scratch, plan->memory.scratch);
        assert_true(memory->activations > 4 * LT_CIFAR_IMAGE * sizeof(float));
        lt_plan_destroy(plan);
        latent_model_destroy(model);
    }
}

/* ---- Numbers that are not finite -------------------------------------------------------------------- */

static void divergence_stops(void **state) {
    fixture *fx = *state;
    latent_train_options options = fixture_options(fx, fx->run);
    options.recipe.optimizer = LATENT_SGD;
    options.recipe.lr = 1e6;
    latent_model *model = fixture_model(fx, 1);
    latent_status status = latent_train(fx->ctx, model, fx->data, &options);
    assert_refused(fx, status, LATENT_ERROR_NUMERIC, ": the loss is not a finite number");
    assert_refused(fx, status, LATENT_ERROR_NUMERIC, "--lr");
    latent_model_destroy(model);
}

static latent_status poison_gradient(latent_context *ctx, lt_backend *backend,
                                     const lt_optimizer_call *call) {
    if (++tamper.count == tamper.at) {
        call->grads[1] = NAN;
    }
    return tamper.real->optimizer(ctx, backend, call);
}

/* Epoch 2, step 2: the checkpoint of epoch 1 stays, byte for byte. */
static void bad_gradient_keeps_the_checkpoint(void **state) {
    fixture *fx = *state;
    latent_train_options options = fixture_options(fx, fx->run);
    options.recipe.epochs = 1;
    free(fixture_train(fx, &options));
    options.recipe.epochs = 3;
    options.resume = 1;
    latent_model *model = fixture_model(fx, 1);
    fixture_tamper(fx->ctx, model);
    tamper.type.optimizer = poison_gradient;
    tamper.at = 2;
    latent_status status = latent_train(fx->ctx, model, fx->data, &options);
    model->backend->type = tamper.real;
    assert_refused(fx, status, LATENT_ERROR_NUMERIC, "epoch 2, step 2 of 3: the gradient is not a finite");
    assert_refused(fx, status, LATENT_ERROR_NUMERIC, "the mean loss of the epoch was 0.");
    assert_refused(fx, status, LATENT_ERROR_NUMERIC, "the last good checkpoint is kept");
    lt_run run;
    lt_checkpoint *checkpoint = NULL;
    OK(fx, lt_run_open(fx->ctx, fx->run, &run));
    OK(fx, lt_checkpoint_read(fx->ctx, &run, &checkpoint));
    assert_int_equal(checkpoint->state.epoch, 1);
    assert_int_equal(checkpoint->state.step, 0);
    lt_checkpoint_destroy(checkpoint);
    lt_run_close(&run);
    latent_model_destroy(model);
}

static latent_status overflow_weight(latent_context *ctx, lt_backend *backend,
                                     const lt_optimizer_call *call) {
    latent_status status = tamper.real->optimizer(ctx, backend, call);
    if (++tamper.count == tamper.at) {
        call->params[0] = INFINITY;
    }
    return status;
}

/* The very last step breaks a weight: no loss or gradient shows it, and still it is not saved. */
static void broken_weight_is_not_saved(void **state) {
    fixture *fx = *state;
    latent_train_options options = fixture_options(fx, fx->run);
    options.recipe.epochs = 1;
    latent_model *model = fixture_model(fx, 1);
    fixture_tamper(fx->ctx, model);
    tamper.type.optimizer = overflow_weight;
    tamper.at = 3;
    latent_status status = latent_train(fx->ctx, model, fx->data, &options);
    model->backend->type = tamper.real;
    assert_refused(fx, status, LATENT_ERROR_NUMERIC, "no longer a finite number");
    latent_model *loaded = NULL;
    latent_engine_options engine = {.backend = "ref"};
    OK(fx, latent_model_load(fx->ctx, fx->run, NULL, &engine, &loaded));
    float *params = fixture_params(fx, loaded);
    assert_true(isfinite(params[0]));
    free(params);
    latent_model_destroy(loaded);
    latent_model_destroy(model);
}

/* ---- What it refuses ------------------------------------------------------------------------------- */

static void refuse(fixture *fx, const latent_train_options *options, latent_status want, const char *part) {
    latent_model *model = fixture_model(fx, 1);
    seen s = {0};
    latent_train_options watched = *options;
    watched.progress = watch;
    watched.user = &s;
    assert_refused(fx, latent_train(fx->ctx, model, fx->data, &watched), want, part);
    assert_int_equal(s.count[LATENT_EVENT_START], 0); /* before anything began */
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
        TEST(two_runs_are_equal),
        TEST(one_batch_is_learned),
        TEST(last_batch_weighs_what_it_holds),
        TEST(step_table_is_right),
        TEST(subset_is_the_first_images),
        TEST(batch_is_capped),
        TEST(model_is_ready_afterwards),
        TEST(events_tell_the_story),
        TEST(memory_is_the_plans),
        TEST(divergence_stops),
        TEST(bad_gradient_keeps_the_checkpoint),
        TEST(broken_weight_is_not_saved),
        TEST(bad_recipes_are_refused),
        TEST(bad_arguments_are_refused),
        TEST(other_images_are_refused),
        TEST(unwritable_folders_are_refused),
        TEST(full_disk_keeps_the_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
