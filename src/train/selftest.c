/* selftest.c: proves an engine against the reference on the training step itself.
 *
 * Both start from the same weights, take the same plain SGD steps on the same images, and then every tensor
 * is compared. SGD, because its step is linear in the gradient: an error of the gradient arrives in the
 * weight as lr times that error, and can be bounded.
 *
 * The bound. A sum of K products in fp32, in any order, is off by at most 8 sqrt(K) 2^-24 S, S the sum of
 * the products' magnitudes (the factor 8 makes the statistical sqrt(K) safe). A weight's gradient is such a
 * sum over n OH OW products x dz, so S comes from the same pass over |x| and |dz|. x and dz themselves carry
 * the relative errors of the layers before and after; to first order these add up, so with
 * R = sum over all sums on the way of 8 sqrt(K) 2^-24, a gradient is off by at most R S, and a weight after
 * T steps by lr R times the sum of the steps' S, plus the rounding of the weight itself, T |w| 2^-24.
 */
#include "model/weights.h"
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 5, BATCH = 3, EPOCH_IMAGES = 10000, EPOCH_BATCH = 32, EVERY = 10 };

static const double LOSS_TOLERANCE = 1e-3; /* relative */
static const double CALM =
    0.1; /* of the recipe's rate: at the full one Adam's first steps amplify rounding */
static const double WEIGHT_LR = 1e-3; /* large enough to move every weight, small enough to stay calm */

typedef struct side { /* one of the two engines */
    latent_model *model;
    latent_train_options train;
    lt_trainer trainer;
    int open;
} side;

typedef struct selftest {
    latent_context *ctx;
    const latent_net *net;
    const latent_selftest_options *options;
    latent_selftest_fn each;
    void *user;
    int failed;
} selftest;

static void tell(selftest *s, const latent_selftest_row *row) {
    s->failed += !row->good;
    if (s->each) {
        s->each(s->user, row);
    }
}

static void close_side(side *one) {
    if (one->open) {
        lt_trainer_close(&one->trainer);
    }
    latent_model_destroy(one->model);
    memset(one, 0, sizeof *one);
}

/* A trainer on `engine` with the weights in `params`. */
static latent_status open_side(selftest *s, const latent_engine_options *engine, const latent_dataset *data,
                               const latent_recipe *recipe, const float *params, side *out) {
    latent_status status = LATENT_OK;
    LT_TRY(latent_model_create(s->ctx, s->net, engine, s->options->seed, &out->model));
    LT_TRY(lt_model_upload(s->ctx, out->model, params));
    latent_train_defaults(s->net, &out->train);
    out->train.recipe = *recipe;
    out->train.seed = s->options->seed;
    LT_TRY(lt_trainer_open(s->ctx, out->model, data, &out->train, &out->trainer));
    out->open = 1;
    LT_TRY(lt_trainer_begin_epoch(&out->trainer));
done:
    return status;
}

static latent_status take_steps(side *one, int count) {
    latent_status status = LATENT_OK;
    for (int i = 0; status == LATENT_OK && i < count; i++) {
        status = lt_trainer_step(&one->trainer);
    }
    return status;
}

/* ---- The bound ----------------------------------------------------------------------------------- */

/* R of the note above. */
static double relative_error(const latent_net *net, int batch) {
    double sum = 0;
    for (int i = 0; i < net->op_count; i++) {
        const lt_conv *conv = &net->ops[i].conv;
        if (net->ops[i].kind == LT_OP_CONV) {
            double taps = (double)conv->R * conv->S;
            sum += sqrt(taps * conv->C) + sqrt(taps * conv->K) + sqrt((double)batch * conv->OH * conv->OW);
        }
    }
    return 8 * sum * ldexp(1, -24);
}

static void magnitudes(float *out, const float *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        out[i] = fabsf(values[i]);
    }
}

/* S of every parameter: the reference's own backward pass over |x| and |dy|. Its memory is the host's. */
static latent_status sum_magnitudes(selftest *s, side *ref, float *sums) {
    lt_plan *plan = ref->trainer.plan;
    const latent_net *net = s->net;
    latent_status status = LATENT_OK;
    size_t largest = 0;
    float *x = NULL, *dy = NULL;
    for (int i = 0; i < net->op_count; i++) {
        size_t count = (size_t)plan->batch * lt_shape_count(net->ops[i].out);
        largest = count > largest ? count : largest;
    }
    LT_TRY(lt_alloc(s->ctx, largest * sizeof *x, "the bound", (void **)&x));
    LT_TRY(lt_alloc(s->ctx, largest * sizeof *dy, "the bound", (void **)&dy));
    for (int i = plan->last; i > 0; i--) {
        const lt_op *op = &net->ops[i];
        if (op->kind != LT_OP_CONV) {
            continue;
        }
        /* dy of op i is still there: the backward pass of op i comes before its memory is used again. */
        const lt_node *node = &plan->nodes[i], *before = &plan->nodes[op->input];
        size_t images = (size_t)plan->batch;
        magnitudes(x, before->y, images * lt_shape_count(op->in));
        magnitudes(dy, node->dy, images * lt_shape_count(op->out));
        lt_conv_call call = {.conv = &op->conv,
                             .n = plan->batch,
                             .x_type = LT_F32,
                             .x = x,
                             .w = plan->params + op->weight,
                             .y = node->y,
                             .mask = node->mask,
                             .persist = node->persist,
                             .scratch = plan->scratch,
                             .dy = dy,
                             .dw = sums + op->weight,
                             .db = op->bias_count ? sums + op->bias : NULL};
        LT_TRY(ref->trainer.type->conv_backward(s->ctx, ref->trainer.backend, &call));
        call = (lt_conv_call){.conv = &op->conv,
                              .n = plan->batch,
                              .x_type = LT_F32,
                              .x = before->y,
                              .w = plan->params + op->weight,
                              .y = node->y,
                              .mask = node->mask,
                              .persist = node->persist,
                              .scratch = plan->scratch,
                              .dy = node->dy,
                              .dx = before->dy,
                              .dw = plan->grads + op->weight,
                              .db = op->bias_count ? plan->grads + op->bias : NULL};
        LT_TRY(ref->trainer.type->conv_backward(s->ctx, ref->trainer.backend, &call));
    }
done:
    free(x);
    free(dy);
    return status;
}

/* The next step's forward pass and the sums on the way back, added up, without changing a weight. */
static latent_status add_sums(selftest *s, side *ref, float *sums) {
    lt_trainer *t = &ref->trainer;
    latent_status status = LATENT_OK;
    lt_gather_call gather = {.data = t->data,
                             .n = t->batch,
                             .limit = t->images,
                             .shuffle = 1,
                             .seed = s->options->seed,
                             .scale = 1.0f / 255,
                             .x = t->plan->nodes[0].y};
    LT_TRY(t->type->gather(s->ctx, t->backend, &gather));
    LT_TRY(lt_exec_forward(s->ctx, t->plan, t->batch));
    LT_TRY(sum_magnitudes(s, ref, sums));
    LT_TRY(t->type->zero(s->ctx, t->backend, t->plan->grads, s->net->param_count * sizeof(float)));
done:
    return status;
}

/* ---- Part one: weights ---------------------------------------------------------------------------- */

static void compare_tensors(selftest *s, const float *sums, const float *a, const float *b) {
    double relative = relative_error(s->net, s->options->batch), steps = s->options->steps;
    for (int i = 0; i < lt_net_slot_count(s->net); i++) {
        lt_model_slot slot;
        lt_net_slot(s->net, i, &slot);
        latent_selftest_row row = {
            .part = "weights", .name = slot.name, .step = s->options->steps, .good = 1};
        for (size_t j = slot.offset; j < slot.offset + slot.count; j++) {
            double difference = fabs((double)a[j] - b[j]);
            double bound = WEIGHT_LR * relative * sums[j] + steps * fabs(a[j]) * ldexp(1, -24);
            row.good = row.good && difference <= bound; /* false for a NaN */
            row.difference = difference <= row.difference ? row.difference : difference;
            row.bound = bound > row.bound ? bound : row.bound;
        }
        tell(s, &row);
    }
}

static latent_status compare_weights(selftest *s, const latent_engine_options *engine, const float *params) {
    const latent_engine_options ref_engine = {.backend = "ref"};
    latent_recipe recipe = s->net->recipe;
    latent_status status = LATENT_OK;
    latent_dataset *data = NULL;
    side ref = {0}, tested = {0};
    float *sums = NULL, *a = NULL, *b = NULL;
    size_t count = s->net->param_count;
    recipe.optimizer = LATENT_SGD;
    recipe.schedule = LATENT_CONSTANT;
    recipe.momentum = 0;
    recipe.weight_decay = 0;
    recipe.lr = WEIGHT_LR;
    recipe.batch = s->options->batch;
    LT_TRY(lt_calloc(s->ctx, count, sizeof *sums, "the bound", (void **)&sums));
    LT_TRY(lt_alloc(s->ctx, count * sizeof *a, "weights", (void **)&a));
    LT_TRY(lt_alloc(s->ctx, count * sizeof *b, "weights", (void **)&b));
    LT_TRY(lt_trainer_noise(s->ctx, s->net, s->options->batch * s->options->steps, s->options->seed, &data));
    LT_TRY(open_side(s, &ref_engine, data, &recipe, params, &ref));
    LT_TRY(open_side(s, engine, data, &recipe, params, &tested));
    for (int i = 0; i < s->options->steps; i++) {
        LT_TRY(add_sums(s, &ref, sums));
        LT_TRY(take_steps(&ref, 1));
    }
    LT_TRY(take_steps(&tested, s->options->steps));
    LT_TRY(lt_model_download(s->ctx, ref.model, a));
    LT_TRY(lt_model_download(s->ctx, tested.model, b));
    compare_tensors(s, sums, a, b);
done:
    close_side(&ref);
    close_side(&tested);
    latent_dataset_destroy(data);
    free(sums);
    free(a);
    free(b);
    return status;
}

/* ---- Part two: the losses of an epoch -------------------------------------------------------------- */

static int can_run(const char *name) {
    latent_backend_info info;
    for (int i = 0; latent_backend_get_info(i, &info); i++) {
        if (strcmp(info.name, name) == 0) {
            return info.available;
        }
    }
    return 0;
}

static latent_status compare_losses(selftest *s, const latent_engine_options *engine, const float *params) {
    latent_engine_options other_engine = {.backend = "cpu"};
    latent_recipe recipe = s->net->recipe;
    latent_status status = LATENT_OK;
    latent_dataset *data = NULL;
    side other = {0}, tested = {0};
    recipe.schedule = LATENT_CONSTANT;
    recipe.batch = s->options->epoch_batch;
    recipe.lr *= CALM;
    LT_TRY(lt_trainer_noise(s->ctx, s->net, s->options->epoch_images, s->options->seed + 1, &data));
    LT_TRY(open_side(s, engine, data, &recipe, params, &tested));
    int is_cpu = strcmp(tested.trainer.type->name, "cpu") == 0;
    other_engine.backend = is_cpu || !can_run("cpu") ? "ref" : "cpu";
    LT_TRY(open_side(s, &other_engine, data, &recipe, params, &other));
    for (int step = 0; step < tested.trainer.steps && !s->ctx->interrupted;) {
        int count =
            tested.trainer.steps - step < s->options->every ? tested.trainer.steps - step : s->options->every;
        float a = 0, b = 0;
        int bad = -1;
        LT_TRY(take_steps(&other, count));
        LT_TRY(take_steps(&tested, count));
        step += count;
        LT_TRY(other.trainer.type->losses_read(s->ctx, other.trainer.backend, step - 1, 1, &a, &bad));
        LT_TRY(tested.trainer.type->losses_read(s->ctx, tested.trainer.backend, step - 1, 1, &b, &bad));
        latent_selftest_row row = {
            .part = "loss", .name = other_engine.backend, .step = step, .bound = LOSS_TOLERANCE};
        row.difference = fabs((double)a - b) / fabs((double)a);
        row.good = row.difference <= row.bound;
        tell(s, &row);
    }
    if (s->ctx->interrupted) {
        status = lt_fail(s->ctx, LATENT_INTERRUPTED, "interrupted; the rows so far stand");
    }
done:
    close_side(&other);
    close_side(&tested);
    latent_dataset_destroy(data);
    return status;
}

void latent_selftest_defaults(latent_selftest_options *out) {
    memset(out, 0, sizeof *out);
    out->steps = STEPS;
    out->batch = BATCH;
    out->epoch_images = EPOCH_IMAGES;
    out->epoch_batch = EPOCH_BATCH;
    out->every = EVERY;
    out->seed = 1;
}

latent_status latent_selftest(latent_context *ctx, const latent_net *net, const latent_engine_options *engine,
                              const latent_selftest_options *options, latent_selftest_fn each, void *user,
                              int *failed) {
    selftest s = {.ctx = ctx, .net = net, .options = options, .each = each, .user = user};
    latent_status status = LATENT_OK;
    float *params = NULL;
    *failed = 0;
    if (options->steps < 1 || options->batch < 1 || options->epoch_images < 0 || options->every < 1 ||
        (options->epoch_images > 0 && options->epoch_batch < 1)) {
        return lt_fail(
            ctx, LATENT_ERROR_ARGUMENT,
            "a selftest wants at least one step, one image a batch and one batch between two losses");
    }
    LT_TRY(lt_calloc(ctx, net->param_count, sizeof *params, "weights", (void **)&params));
    lt_net_init(net, options->seed, params);
    if (options->weights) { /* through the file, as somebody else would load them */
        lt_weights weights = {0};
        LT_TRY(lt_weights_write(ctx, options->weights, net, params));
        LT_TRY(lt_weights_open(ctx, options->weights, &weights));
        status = lt_weights_place(ctx, &weights, net, params);
        lt_weights_close(&weights);
        LT_TRY(status);
    }
    LT_TRY(compare_weights(&s, engine, params));
    if (options->epoch_images > 0) {
        LT_TRY(compare_losses(&s, engine, params));
    }
done:
    *failed = s.failed;
    free(params);
    return status;
}
