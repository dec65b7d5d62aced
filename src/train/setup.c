/* setup.c: makes a training ready: checks what was asked, takes memory, opens the run or has it resumed.
 *
 * All that can be refused is refused here, before the first step. The order of writes is the run's safety:
 * config.json, then model.safetensors, then checkpoint.safetensors, each atomically; the checkpoint is the
 * truth, and it goes last because it promises the others.
 */
#include "train/resume.h"

#include "base/file.h"
#include "model/weights.h"
#include "net/recipe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- What was asked ---------------------------------------------------------------------------- */

static latent_status check_recipe(latent_context *ctx, const latent_recipe *recipe) {
    latent_status status = lt_recipe_check(ctx, recipe);
    if (status != LATENT_OK) {
        return status;
    }
    /* The step computes in fp32, where a value close to its limit rounds onto it. */
    if ((float)recipe->momentum >= 1 || (float)recipe->beta2 >= 1) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "momentum %.17g and beta2 %.17g must stay below 1 in fp32: at most 0.9999999",
                       recipe->momentum, recipe->beta2);
    }
    if ((float)recipe->epsilon <= 0 || (float)recipe->lr <= 0) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "lr %g and epsilon %g must stay above 0 in fp32: at least 1e-45", recipe->lr,
                       recipe->epsilon);
    }
    return LATENT_OK;
}

static latent_status check_data(latent_context *ctx, const latent_net *net, const latent_dataset *data,
                                int subset) {
    latent_status status = lt_model_check_data(ctx, net, data);
    if (status != LATENT_OK) {
        return status;
    }
    latent_dataset_info info;
    latent_dataset_get_info(data, &info);
    const char *path = info.path ? info.path : "the data set";
    if (info.count[LATENT_TRAIN] < 1) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "%s: no training images", path);
    }
    if (subset < 0 || subset > info.count[LATENT_TRAIN]) {
        return lt_fail(
            ctx, LATENT_ERROR_ARGUMENT,
            "subset %d of %s: it has %d training images; the subset must be from 1 to that, or 0 for all",
            subset, path, info.count[LATENT_TRAIN]);
    }
    return LATENT_OK;
}

static latent_status check(latent_context *ctx, const latent_model *model, const latent_dataset *data,
                           const latent_train_options *options) {
    if (!model || !data || !options) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "training wants a model, a data set and options");
    }
    if (options->checkpoint_every < 0) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "a checkpoint every %d epochs: it must be a number of epochs, or 0 for one at the end",
                       options->checkpoint_every);
    }
    if (options->resume && !options->run) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "nothing to resume: no run folder was named");
    }
    latent_status status = check_recipe(ctx, &options->recipe);
    return status == LATENT_OK ? check_data(ctx, model->net, data, options->subset) : status;
}

/* ---- Memory ------------------------------------------------------------------------------------ */

static latent_status moment(lt_trainer *t, float **out) {
    size_t bytes = t->net->param_count * sizeof(float);
    latent_status status = t->type->alloc(t->ctx, t->backend, bytes, (void **)out);
    if (status == LATENT_OK) {
        t->memory.optimizer += bytes;
        status = t->type->zero(t->ctx, t->backend, *out, bytes);
    }
    return status;
}

/* What the data set holds on the host: where the backend computes there, that is the memory it takes. */
static uint64_t host_bytes(const latent_dataset *data) {
    latent_dataset_info info;
    latent_dataset_get_info(data, &info);
    uint64_t image =
        (uint64_t)info.height * (uint64_t)info.width * (uint64_t)info.channels + 1; /* and its label */
    return ((uint64_t)info.count[LATENT_TRAIN] + (uint64_t)info.count[LATENT_TEST]) * image;
}

latent_status lt_trainer_take_memory(lt_trainer *t, const latent_dataset *data) {
    const latent_recipe *recipe = &t->options->recipe;
    latent_status status = LATENT_OK;
    size_t steps = (size_t)t->steps, slots = LT_SLOT_OPS + 2 * (size_t)t->net->op_count;
    LT_TRY(lt_plan_create(t->ctx, t->net, t->backend, t->model->params, t->batch, 1, -1, &t->plan));
    t->memory = t->plan->memory;
    t->memory.weights = t->net->param_count * sizeof(float);
    t->memory.optimizer = 0;
    if (recipe->optimizer != LATENT_SGD || recipe->momentum > 0) {
        LT_TRY(moment(t, &t->m));
    }
    if (recipe->optimizer != LATENT_SGD) {
        LT_TRY(moment(t, &t->v));
    }
    LT_TRY(t->type->data_load(t->ctx, t->backend, latent_dataset_images(data, LATENT_TRAIN), t->images,
                              lt_shape_count(t->net->ops[0].out), &t->data));
    t->memory.data = t->type->host_memory ? host_bytes(data) : t->type->data_bytes(t->data);
    LT_TRY(lt_calloc(t->ctx, steps, sizeof *t->table, "the step table", (void **)&t->table));
    LT_TRY(lt_calloc(t->ctx, steps, sizeof *t->losses, "the losses", (void **)&t->losses));
    LT_TRY(lt_calloc(t->ctx, slots, sizeof *t->slots, "the profile", (void **)&t->slots));
    LT_TRY(lt_calloc(t->ctx, slots, sizeof *t->profile, "the profile", (void **)&t->profile));
    if (t->keeps) {
        LT_TRY(lt_calloc(t->ctx, 3 * t->net->param_count, sizeof *t->host, "checkpoints", (void **)&t->host));
        /* Fetched here, and once more in the order of the file. */
        t->memory.checkpoints = 2 * (t->memory.weights + t->memory.optimizer);
    }
done:
    if (status == LATENT_ERROR_MEMORY && t->plan) { /* the plan fitted, and said nothing of batches */
        status = lt_fail(t->ctx, status, "%s; a smaller batch leaves more (--batch, now %d)", t->ctx->message,
                         t->batch);
    }
    return status;
}

/* ---- The run ----------------------------------------------------------------------------------- */

latent_status lt_trainer_write_config(lt_trainer *t, const latent_dataset *data) {
    latent_status status = LATENT_OK;
    latent_dataset_info info;
    latent_dataset_get_info(data, &info);
    char *path = info.path ? realpath(info.path, NULL) : NULL; /* a resume may come from elsewhere */
    lt_run_config config = {.net_name = t->net->name,
                            .net_text = t->net->text,
                            .recipe = t->options->recipe,
                            .seed = t->options->seed,
                            .subset = t->options->subset,
                            .images = t->images,
                            .data = path,
                            .engine = t->backend->engine,
                            .asked = t->model->asked};
    latent_dataset_digest(data, config.digest);
    LT_TRY(lt_run_config_write(t->ctx, &config, &t->config));
    lt_run_sweep(&t->run);
    LT_TRY(lt_file_write(t->ctx, t->run.config, t->config, strlen(t->config)));
done:
    free(path);
    return status;
}

static int all_finite(const float *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) {
            return 0;
        }
    }
    return 1;
}

latent_status lt_trainer_save(lt_trainer *t) {
    size_t count = t->net->param_count, bytes = count * sizeof(float);
    float *blocks[3] = {t->host, t->m ? t->host + count : NULL, t->v ? t->host + 2 * count : NULL};
    const float *from[3] = {t->model->params, t->m, t->v};
    latent_status status = LATENT_OK;
    for (int i = 0; i < 3; i++) {
        if (!blocks[i]) {
            continue;
        }
        LT_TRY(t->type->download(t->ctx, t->backend, blocks[i], from[i], bytes));
        /* The last step's gradients were finite, but what it made of them may not be. */
        if (!all_finite(blocks[i], count)) {
            status =
                lt_fail(t->ctx, LATENT_ERROR_NUMERIC,
                        "after epoch %d, step %d of %d: a weight or a moment of the optimizer is no longer "
                        "a finite number; try a lower learning rate (--lr, now %g)",
                        t->state.epoch, t->state.step, t->steps, t->options->recipe.lr);
            goto done;
        }
    }
    LT_TRY(lt_weights_write(t->ctx, t->run.model, t->net, blocks[0]));
    LT_TRY(
        lt_checkpoint_write(t->ctx, &t->run, t->net, t->config, &t->state, blocks[0], blocks[1], blocks[2]));
    t->saved = 1;
done:
    return status;
}

/* ---- Opening ----------------------------------------------------------------------------------- */

/* A folder that holds an older run becomes this one's, with the first checkpoint: from then on there always
 * is one to resume. */
static latent_status start(lt_trainer *t, const latent_dataset *data) {
    latent_status status = LATENT_OK;
    LT_TRY(lt_trainer_take_memory(t, data));
    if (!t->keeps) {
        goto done;
    }
    if (lt_file_exists(t->run.checkpoint)) {
        lt_log(t->ctx, LATENT_LOG_WARNING, "%s: holds an older run, which this one replaces", t->run.folder);
    }
    LT_TRY(lt_trainer_write_config(t, data));
    LT_TRY(lt_trainer_save(t));
    LT_TRY(lt_file_write(t->ctx, t->run.metrics, "", 0));
done:
    return status;
}

latent_status lt_trainer_open(latent_context *ctx, latent_model *model, const latent_dataset *data,
                              const latent_train_options *options, lt_trainer *out) {
    latent_status status = LATENT_OK;
    lt_trainer *t = out;
    memset(t, 0, sizeof *t);
    LT_TRY(check(ctx, model, data, options));
    t->ctx = ctx;
    t->model = model;
    t->net = model->net;
    t->backend = model->backend;
    t->type = model->backend->type;
    t->options = options;
    latent_dataset_info info;
    latent_dataset_get_info(data, &info);
    t->images = options->subset ? options->subset : info.count[LATENT_TRAIN];
    t->batch = options->recipe.batch < t->images ? options->recipe.batch : t->images;
    t->steps = (t->images - 1) / t->batch + 1;
    t->keeps = options->run != NULL;
    if (t->keeps) {
        LT_TRY(lt_run_open(ctx, options->run, &t->run));
        if (!options->resume) {
            LT_TRY(lt_folder_create(ctx, t->run.folder));
        }
        LT_TRY(lt_run_lock(ctx, &t->run));
    }
    LT_TRY(options->resume ? lt_trainer_resume(t, data) : start(t, data));
    LT_TRY(lt_exec_prepare(ctx, t->plan));
done:
    if (status != LATENT_OK) {
        lt_trainer_close(t);
    }
    return status;
}

void lt_trainer_close(lt_trainer *t) {
    if (t->type) {
        if (t->data) {
            t->type->data_free(t->backend, t->data);
        }
        t->type->free(t->backend, t->m);
        t->type->free(t->backend, t->v);
        lt_plan_destroy(t->plan);
    }
    lt_run_close(&t->run);
    free(t->config);
    free(t->host);
    free(t->table);
    free(t->losses);
    free(t->slots);
    free(t->profile);
    memset(t, 0, sizeof *t);
}

latent_status lt_trainer_noise(latent_context *ctx, const latent_net *net, int count, uint64_t seed,
                               latent_dataset **out) {
    lt_shape in = net->ops[0].out;
    const int shape[3] = {in.h, in.w, in.c};
    return lt_dataset_noise(ctx, count, shape, seed, out);
}
