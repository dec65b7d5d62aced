/* test_train.c: the training loop: what it computes, what it tells, and that it stops at numbers that are not
 * finite. Resuming and refusals have their own files.
 */
#include "train_fixture.h"

#include <math.h>

/* ---- What it computes ---------------------------------------------------------------------------- */

typedef struct seen {
    latent_train_event start, epochs[10], last; /* the first epochs and the last one */
    int count[4];                               /* by kind */
    int step_zero;
} seen;

static void watch(void *user, const latent_train_event *event) {
    seen *s = user;
    if (event->kind == LATENT_EVENT_START) {
        s->start = *event;
    }
    if (event->kind == LATENT_EVENT_EPOCH && s->count[LATENT_EVENT_EPOCH] < 10) {
        s->epochs[s->count[LATENT_EVENT_EPOCH]] = *event;
    }
    if (event->kind == LATENT_EVENT_EPOCH) {
        s->last = *event;
    }
    s->step_zero += event->kind == LATENT_EVENT_STEP && event->step == 0;
    s->count[event->kind]++;
}

/* Ten steps on one batch of eight images, from PyTorch's weights. */
static void follow(fixture *fx, const lt_safetensors *golden, const char *backend,
                   latent_optimizer optimizer) {
    static const char *const keys[] = {"lr", "momentum", "weight_decay", "beta2", "epsilon"};
    const char *name = latent_optimizer_name(optimizer);
    seen s = {0};
    latent_train_options options = fixture_options(fx, NULL);
    options.recipe.epochs = 10;
    options.recipe.batch = 8;
    options.recipe.optimizer = optimizer;
    options.progress = watch;
    options.user = &s;
    for (int i = 0; i < (optimizer == LATENT_SGD ? 3 : 5); i++) {
        char key[32];
        snprintf(key, sizeof key, "%s_%s", keys[i], name);
        OK(fx, latent_recipe_set(fx->ctx, &options.recipe, keys[i], lt_st_metadata(golden, key)));
    }
    latent_engine_options engine = {.backend = backend, .precision = "fp32"};
    latent_model *model = NULL;
    OK(fx, latent_model_create(fx->ctx, fx->net, &engine, 1, &model));
    for (int i = 0; i < latent_model_tensor_count(model); i++) {
        latent_tensor_info info;
        latent_model_get_tensor(model, i, &info);
        const lt_st_tensor *tensor = lt_st_find(golden, info.name);
        assert_non_null(tensor);
        assert_int_equal(tensor->count, info.count);
        OK(fx, latent_model_write_tensor(fx->ctx, model, i, tensor->data));
    }
    OK(fx, latent_train(fx->ctx, model, fx->data, &options));
    char losses[32];
    snprintf(losses, sizeof losses, "losses_%s", name);
    const lt_st_tensor *want = lt_st_find(golden, losses);
    assert_int_equal(want->count, 10);
    for (int i = 0; i < 10; i++) {
        double loss = lt_st_value(want, (uint64_t)i);
        if (!(fabs(s.epochs[i].loss - loss) <= 1e-5 * loss)) {
            fail_msg("%s, %s, step %d: loss %.9g, PyTorch has %.9g", backend, name, i + 1, s.epochs[i].loss,
                     loss);
        }
    }
    latent_model_destroy(model);
}

static void ten_steps_are_pytorchs(void **state) {
    fixture *fx = *state;
    lt_safetensors *golden = NULL;
    OK(fx, lt_st_read(fx->ctx, TEST_FILES "/golden/trajectory.safetensors", &golden));
    const char *text = lt_st_metadata(golden, "net");
    const lt_st_tensor *images = lt_st_find(golden, "images");
    latent_net_destroy(fx->net);
    OK(fx, latent_net_parse(fx->ctx, text, strlen(text), "golden", &fx->net));
    assert_int_equal(images->count, 8 * LT_CIFAR_IMAGE);
    memcpy(fx->data->images[LATENT_TRAIN], images->data, images->count);
    fx->data->count[LATENT_TRAIN] = 8;
    latent_backend_info backend;
    for (int i = 0; latent_backend_get_info(i, &backend); i++) {
        for (int optimizer = LATENT_SGD; backend.available && optimizer <= LATENT_ADAMW; optimizer++) {
            follow(fx, golden, backend.name, (latent_optimizer)optimizer);
        }
    }
    lt_st_destroy(golden);
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
        assert_true(parts <= e->seconds);
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

#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_open, fixture_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(ten_steps_are_pytorchs),
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
