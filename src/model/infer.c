/* infer.c: what a trained model is used for: reconstructing, encoding, evaluating.
 *
 * All three push images through a plan in batches. The images are handed to the backend
 * once; each batch is gathered there, computed, and its result fetched. How many images a batch has is in no
 * result but the last digits of a mean, so where memory is short it is fewer.
 */
#include "model/model.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What to do with a batch's result: n images from index `first` on. */
typedef latent_status (*batch_fn)(latent_context *ctx, latent_model *model, lt_plan *plan, int first, int n,
                                  void *user);

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int batch_of(const latent_model *model, int encode) {
    return encode ? lt_encode_batch(model->backend) : LT_INFER_BATCH;
}

/* A plan for the usual batch, or for the half, the quarter... of it that fits. */
static latent_status make_plan(latent_context *ctx, latent_model *model, int encode, lt_plan **out) {
    int wanted = batch_of(model, encode), batch = wanted;
    latent_status status = LATENT_OK;
    for (;;) {
        status = lt_plan_create(ctx, model->net, model->backend, model->params, batch, 0,
                                encode ? model->net->latent : -1, out);
        if (status != LATENT_ERROR_MEMORY || batch == 1) {
            break;
        }
        batch /= 2;
    }
    if (status == LATENT_ERROR_MEMORY) {
        return lt_fail(ctx, status, "%s; not even one image fits", ctx->message);
    }
    if (status == LATENT_OK && batch < wanted) {
        ctx->message[0] = 0; /* nothing has failed */
        lt_log(ctx, LATENT_LOG_INFO, "memory is short: %d images at a time instead of %d", batch, wanted);
    }
    return status;
}

static latent_status ready_plan(latent_context *ctx, latent_model *model, int encode, lt_plan **out) {
    lt_plan **plan = encode ? &model->encode : &model->infer;
    int *ready = encode ? &model->encode_ready : &model->infer_ready;
    latent_status status = LATENT_OK;
    if (!*plan) {
        LT_TRY(make_plan(ctx, model, encode, plan));
    }
    if (!*ready) {
        LT_TRY(lt_exec_prepare(ctx, *plan));
        *ready = 1;
    }
    *out = *plan;
done:
    return status;
}

static latent_status fill_steps(latent_context *ctx, latent_model *model, int count, int batch) {
    latent_status status = LATENT_OK;
    int steps = (count + batch - 1) / batch;
    lt_step *table = NULL;
    LT_TRY(lt_calloc(ctx, (size_t)steps, sizeof *table, "the step table", (void **)&table));
    for (int i = 0; i < steps; i++) {
        int first = i * batch;
        table[i].first = (uint32_t)first;
        table[i].n = (uint32_t)(count - first < batch ? count - first : batch);
    }
    LT_TRY(model->backend->type->steps_begin(ctx, model->backend, table, steps));
done:
    free(table);
    return status;
}

/* Runs `count` images through the net, or its encoder, and calls `each` after every batch. */
static latent_status for_batches(latent_context *ctx, latent_model *model, int encode, const uint8_t *images,
                                 int count, batch_fn each, void *user) {
    const lt_backend_type *type = model->backend->type;
    latent_status status = LATENT_OK;
    lt_backend_data *data = NULL;
    lt_plan *plan = NULL;
    LT_TRY(ready_plan(ctx, model, encode, &plan));
    LT_TRY(
        type->data_load(ctx, model->backend, images, count, lt_shape_count(model->net->ops[0].out), &data));
    int batch = plan->batch;
    LT_TRY(fill_steps(ctx, model, count, batch));
    for (int first = 0; first < count; first += batch) {
        int n = count - first < batch ? count - first : batch;
        lt_gather_call gather = {
            .data = data, .n = n, .limit = count, .scale = 1.0f / 255.0f, .x = plan->nodes[0].y};
        LT_TRY(type->gather(ctx, model->backend, &gather));
        LT_TRY(lt_exec_forward(ctx, plan, n));
        if (each) {
            LT_TRY(each(ctx, model, plan, first, n, user));
        }
        LT_TRY(type->step_next(ctx, model->backend));
        if (ctx->interrupted) {
            status = lt_fail(ctx, LATENT_INTERRUPTED, "interrupted after %d of %d images", first + n, count);
            goto done;
        }
    }
done:
    type->data_free(model->backend, data);
    return status;
}

/* Fetches n outputs of an op as floats. */
static latent_status fetch(latent_context *ctx, latent_model *model, const lt_plan *plan, int op, int n,
                           float *out) {
    const lt_node *node = &plan->nodes[op];
    size_t count = (size_t)n * lt_shape_count(plan->net->ops[op].out);
    size_t bytes = count * lt_dtype_size(node->type);
    latent_status status = model->backend->type->download(ctx, model->backend, out, node->y, bytes);
    if (status == LATENT_OK && node->type == LT_BF16) { /* widen in place, from the end */
        const uint16_t *half = (const uint16_t *)(const void *)out;
        for (size_t i = count; i-- > 0;) {
            uint32_t bits = (uint32_t)half[i] << 16;
            memcpy(&out[i], &bits, sizeof bits);
        }
    }
    return status;
}

static latent_status check_count(latent_context *ctx, int count) {
    if (count < 1) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "%d images cannot be computed; give at least one", count);
    }
    return LATENT_OK;
}

static latent_status keep_output(latent_context *ctx, latent_model *model, lt_plan *plan, int first, int n,
                                 void *user) {
    int op = plan->net->ops[plan->last].input;
    return fetch(ctx, model, plan, op, n,
                 (float *)user + (size_t)first * lt_shape_count(plan->net->ops[op].out));
}

latent_status latent_model_reconstruct(latent_context *ctx, latent_model *model, const uint8_t *images,
                                       int count, float *out) {
    latent_status status = check_count(ctx, count);
    return status == LATENT_OK ? for_batches(ctx, model, 0, images, count, keep_output, out) : status;
}

typedef struct encoder {
    float *batch; /* NHWC */
    float *out;   /* [count][C][H][W] */
} encoder;

static latent_status keep_latent(latent_context *ctx, latent_model *model, lt_plan *plan, int first, int n,
                                 void *user) {
    encoder *e = user;
    lt_shape shape = plan->net->ops[plan->last].out;
    size_t pixels = (size_t)shape.h * (size_t)shape.w, channels = (size_t)shape.c;
    latent_status status = fetch(ctx, model, plan, plan->last, n, e->batch);
    for (int i = 0; status == LATENT_OK && i < n; i++) {
        const float *from = e->batch + (size_t)i * pixels * channels;
        float *to = e->out + (size_t)(first + i) * pixels * channels;
        for (size_t c = 0; c < channels; c++) {
            for (size_t p = 0; p < pixels; p++) {
                to[c * pixels + p] = from[p * channels + c];
            }
        }
    }
    return status;
}

static latent_status check_encode(latent_context *ctx, const latent_model *model, int count) {
    if (model->net->latent < 0) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "the net '%s' has no latent line, so there is nothing to encode to; add one after "
                       "the op whose output are the features",
                       model->net->name);
    }
    return check_count(ctx, count);
}

/* One batch through the encoder, into rows. */
static latent_status encode_batch(latent_context *ctx, latent_model *model, lt_plan *plan,
                                  const lt_gather_call *gather, float *rows) {
    lt_shape shape = plan->net->ops[plan->last].out;
    lt_rows_gather_call call = {.n = (size_t)gather->n,
                                .pixels = (size_t)shape.h * (size_t)shape.w,
                                .channels = (size_t)shape.c,
                                .x = plan->nodes[plan->last].y,
                                .rows = rows,
                                .add = gather->mirror};
    latent_status status = LATENT_OK;
    LT_TRY(model->backend->type->gather(ctx, model->backend, gather));
    LT_TRY(lt_exec_forward(ctx, plan, gather->n));
    LT_TRY(model->backend->type->rows->gather(ctx, model->backend, &call));
done:
    return status;
}

latent_status lt_model_encode_ready(latent_context *ctx, latent_model *model) {
    latent_status status = LATENT_OK;
    lt_plan *plan = NULL;
    LT_TRY(check_encode(ctx, model, 1));
    LT_TRY(ready_plan(ctx, model, 1, &plan));
    LT_TRY(model->backend->type->synchronize(ctx, model->backend));
done:
    return status;
}

latent_status lt_model_encode_rows(latent_context *ctx, latent_model *model, const lt_backend_data *data,
                                   int count, int flip, float *rows) {
    latent_status status = LATENT_OK;
    lt_plan *plan = NULL;
    lt_shape in = model->net->ops[0].out;
    LT_TRY(check_encode(ctx, model, count));
    LT_TRY(ready_plan(ctx, model, 1, &plan));
    int batch = plan->batch;
    LT_TRY(fill_steps(ctx, model, count, batch));
    size_t width = lt_shape_count(plan->net->ops[plan->last].out);
    for (int first = 0; first < count; first += batch) {
        int n = count - first < batch ? count - first : batch;
        lt_gather_call gather = {.data = data,
                                 .n = n,
                                 .limit = count,
                                 .scale = 1.0f / 255.0f,
                                 .width = in.w,
                                 .channels = in.c,
                                 .x = plan->nodes[0].y};
        for (gather.mirror = 0; gather.mirror <= (flip != 0); gather.mirror++) {
            LT_TRY(encode_batch(ctx, model, plan, &gather, rows + (size_t)first * width));
            if (ctx->interrupted) {
                status = lt_fail(ctx, LATENT_INTERRUPTED, "interrupted; no features were written");
                goto done;
            }
        }
        LT_TRY(model->backend->type->step_next(ctx, model->backend));
    }
done:
    return status;
}

latent_status latent_model_encode(latent_context *ctx, latent_model *model, const uint8_t *images, int count,
                                  float *out) {
    latent_status status = LATENT_OK;
    encoder e = {NULL, out};
    LT_TRY(check_encode(ctx, model, count));
    size_t values = (size_t)batch_of(model, 1) * lt_shape_count(model->net->ops[model->net->latent].out);
    LT_TRY(lt_alloc(ctx, values * sizeof *e.batch, "a batch of features", (void **)&e.batch));
    LT_TRY(for_batches(ctx, model, 1, images, count, keep_latent, &e));
done:
    free(e.batch);
    return status;
}

/* The mean of the losses of the plan's batches, each weighted by its images. */
static latent_status mean_loss(latent_context *ctx, latent_model *model, int count, double *out) {
    latent_status status = LATENT_OK;
    int batch = model->infer->batch, steps = (count + batch - 1) / batch, bad = -1;
    float *losses = NULL;
    double sum = 0;
    LT_TRY(lt_alloc(ctx, (size_t)steps * sizeof *losses, "losses", (void **)&losses));
    LT_TRY(model->backend->type->losses_read(ctx, model->backend, 0, steps, losses, &bad));
    for (int i = 0; i < steps; i++) {
        int first = i * batch;
        int n = count - first < batch ? count - first : batch;
        sum += (double)losses[i] * n;
    }
    *out = sum / count;
done:
    free(losses);
    return status;
}

latent_status lt_model_check_data(latent_context *ctx, const latent_net *net, const latent_dataset *data) {
    latent_dataset_info info;
    latent_dataset_get_info(data, &info);
    lt_shape in = net->ops[0].out;
    if (in.h != info.height || in.w != info.width || in.c != info.channels) {
        return lt_fail(
            ctx, LATENT_ERROR_ARGUMENT,
            "the net '%s' takes images of %dx%dx%d, but those in %s are %dx%dx%d; change its input line",
            net->name, in.h, in.w, in.c, info.path, info.height, info.width, info.channels);
    }
    return LATENT_OK;
}

latent_status latent_model_evaluate(latent_context *ctx, latent_model *model, const latent_dataset *data,
                                    latent_split split, latent_evaluation *out) {
    latent_status status = LATENT_OK;
    latent_dataset_info info;
    memset(out, 0, sizeof *out);
    latent_dataset_get_info(data, &info);
    int count = info.count[split];
    LT_TRY(lt_model_check_data(ctx, model->net, data));
    if (count < 1) {
        status = lt_fail(ctx, LATENT_ERROR_ARGUMENT, "%s: no %s images to evaluate", info.path,
                         split == LATENT_TEST ? "test" : "training");
        goto done;
    }
    double start = now();
    LT_TRY(for_batches(ctx, model, 0, latent_dataset_images(data, split), count, NULL, NULL));
    LT_TRY(mean_loss(ctx, model, count, &out->loss));
    out->count = count;
    out->seconds = now() - start;
done:
    return status;
}
