/* bench.c: how fast training is, measured on the training loop's own step.
 *
 * A bench is a short training on images of noise (or a data set): warm-up, then timed blocks of steps with a
 * wait after each, then a few steps launched one by one for the time of every op.
 */
#include "train/trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM_UP = 3, NOISE_IMAGES = 4096, BLOCKS_MAX = 1000, PROFILED = 5, GRAPH_BLOCK = 16 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* `count` steps, into the next epoch where one ends (its short last batch is left out), then a wait. */
static latent_status run_steps(lt_trainer *t, int count) {
    latent_status status = LATENT_OK;
    for (int i = 0; i < count; i++) {
        if (t->issued == t->images / t->batch) {
            t->state.epoch++;
            LT_TRY(lt_trainer_begin_epoch(t));
        }
        LT_TRY(lt_trainer_step(t));
    }
    LT_TRY(t->type->synchronize(t->ctx, t->backend));
done:
    return status;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static latent_status time_steps(lt_trainer *t, const latent_bench_options *options,
                                latent_bench_result *out) {
    latent_status status = LATENT_OK;
    double *blocks = NULL;
    int count = 0, block = t->type->graph_begin ? GRAPH_BLOCK : 1;
    double limit = options->seconds > 0 ? options->seconds : 5;
    LT_TRY(lt_alloc(t->ctx, BLOCKS_MAX * sizeof *blocks, "timings", (void **)&blocks));
    LT_TRY(run_steps(t, WARM_UP));
    double start = now();
    while (count < BLOCKS_MAX && !t->ctx->interrupted) {
        int more = options->steps > 0 ? count * block < options->steps : count < 3 || now() - start < limit;
        if (!more) {
            break;
        }
        double began = now();
        LT_TRY(run_steps(t, block));
        blocks[count++] = (now() - began) / block;
    }
    if (count == 0) {
        status = lt_fail(t->ctx, LATENT_INTERRUPTED, "interrupted before the first timed step");
        goto done;
    }
    qsort(blocks, (size_t)count, sizeof *blocks, by_value);
    out->steps = count * block;
    out->step_seconds = blocks[count / 2];
    out->best_seconds = blocks[0];
done:
    free(blocks);
    return status;
}

/* The loss of the step before the cursor. */
static latent_status last_loss(lt_trainer *t, double *out) {
    float loss = 0;
    int bad = -1;
    latent_status status =
        t->type->losses_read(t->ctx, t->backend, t->issued - t->table_first - 1, 1, &loss, &bad);
    *out = loss;
    return status;
}

static latent_status time_ops(lt_trainer *t, const latent_bench_options *options) {
    latent_status status = LATENT_OK;
    int slots = LT_SLOT_OPS + 2 * t->net->op_count;
    t->plan->eager = 1;
    LT_TRY(run_steps(t, 1));
    LT_TRY(t->type->profile_start(t->ctx, t->backend, slots));
    LT_TRY(run_steps(t, PROFILED));
    LT_TRY(t->type->profile_read(t->ctx, t->backend, t->slots, slots));
    lt_trainer_tell_times(t, t->slots, PROFILED, (double)PROFILED * t->batch, options->each, options->user);
done:
    t->plan->eager = 0;
    return status;
}

static latent_status measure(lt_trainer *t, const latent_bench_options *options, latent_bench_result *out) {
    latent_status status = LATENT_OK;
    LT_TRY(lt_trainer_begin_epoch(t));
    LT_TRY(time_steps(t, options, out));
    LT_TRY(last_loss(t, &out->loss));
    out->batch = t->batch;
    out->images_per_second = t->batch / out->step_seconds;
    out->flops = lt_net_flops(t->net);
    out->gflops = 1e-9 * out->flops * out->images_per_second;
    out->memory = t->memory;
    snprintf(out->engine, sizeof out->engine, "%s", t->backend->engine);
    if (options->each) {
        LT_TRY(time_ops(t, options));
    }
    if (t->type->ceiling) {
        lt_ceiling ceiling = {0, 0};
        LT_TRY(t->type->ceiling(t->ctx, t->backend, &ceiling));
        out->ceiling_gflops = 1e-9 * ceiling.flops;
        out->ceiling_gbytes = 1e-9 * ceiling.bytes;
    }
done:
    return status;
}

latent_status latent_bench_train(latent_context *ctx, const latent_net *net,
                                 const latent_engine_options *engine, const latent_bench_options *options,
                                 latent_bench_result *out) {
    latent_status status = LATENT_OK;
    latent_model *model = NULL;
    lt_trainer t;
    latent_train_options train;
    latent_dataset *own = NULL;
    memset(&t, 0, sizeof t);
    memset(out, 0, sizeof *out);
    latent_train_defaults(net, &train);
    train.seed = options->seed;
    train.recipe.batch = options->batch ? options->batch : train.recipe.batch;
    if (!options->data) {
        int count = train.recipe.batch > NOISE_IMAGES ? train.recipe.batch : NOISE_IMAGES;
        LT_TRY(lt_trainer_noise(ctx, net, count, options->seed, &own));
    }
    LT_TRY(latent_model_create(ctx, net, engine, options->seed, &model));
    LT_TRY(lt_trainer_open(ctx, model, own ? own : options->data, &train, &t));
    LT_TRY(measure(&t, options, out));
done:
    lt_trainer_close(&t);
    latent_model_destroy(model);
    latent_dataset_destroy(own);
    return status;
}
