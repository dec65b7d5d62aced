/* train.c: the ONE training loop, for every net, backend and recipe.
 *
 * An epoch is a table of steps that the backend gets at once: which images, which rate. The loop then hands
 * over step after step, some ahead of what is done, and never waits for the backend to be idle within an
 * epoch. A training stands still only between two steps; there its whole state is (epochs, steps, sums,
 * blocks), and a checkpoint of that continues to the same bits: order and rates are functions of epoch and
 * step.
 *
 * The loss of an epoch is sum(loss_i * n_i) / images over its steps in order, in double.
 */
#include "train/metrics.h"
#include "train/schedule.h"
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { AHEAD = 64 }; /* steps handed over and not done: enough to keep a GPU busy while this sleeps */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Images of the epoch's first `steps` steps. */
static int images_of(const lt_trainer *t, int steps) {
    return steps < t->steps ? steps * t->batch : t->images;
}

static double rate_of(const lt_trainer *t, int epoch, int step) {
    const latent_recipe *recipe = &t->options->recipe;
    uint64_t steps = (uint64_t)t->steps;
    return lt_schedule_lr(recipe->schedule, recipe->lr, (uint64_t)epoch * steps + (uint64_t)step,
                          (uint64_t)recipe->epochs * steps);
}

/* ---- Telling ----------------------------------------------------------------------------------- */

static latent_train_event event(const lt_trainer *t, latent_event_kind kind) {
    const lt_train_state *state = &t->state;
    latent_train_event e;
    memset(&e, 0, sizeof e);
    int epochs = t->options->recipe.epochs, done = images_of(t, state->step);
    e.kind = kind;
    e.epoch = state->epoch < epochs ? state->epoch + 1 : epochs;
    e.epochs = epochs;
    e.step = state->step;
    e.steps = t->steps;
    e.images = t->images;
    e.resumed_epoch = t->resumed_epoch;
    e.loss = done ? state->loss_sum / done : 0;
    e.lr = rate_of(t, e.epoch - 1, state->step ? state->step - 1 : 0);
    e.seconds = state->seconds;
    e.images_per_second = state->seconds > 0 ? done / state->seconds : 0;
    e.memory = t->memory;
    return e;
}

static void tell(const lt_trainer *t, const latent_train_event *e) {
    if (t->options->progress) {
        t->options->progress(t->options->user, e);
    }
}

static latent_status save(lt_trainer *t, const latent_train_event *at) {
    latent_status status = lt_trainer_save(t);
    if (status == LATENT_OK) {
        latent_train_event e = *at;
        e.kind = LATENT_EVENT_SAVED;
        tell(t, &e);
    }
    return status;
}

/* ---- An epoch ---------------------------------------------------------------------------------- */

latent_status lt_trainer_begin_epoch(lt_trainer *t) {
    const latent_recipe *recipe = &t->options->recipe;
    latent_status status = LATENT_OK;
    int epoch = t->state.epoch, count = t->steps - t->state.step;
    t->table_first = t->issued = t->state.step;
    for (int i = 0; i < count; i++) {
        int step = t->table_first + i;
        double nth = (double)epoch * t->steps + step + 1; /* Adam counts from 1 */
        lt_step *record = &t->table[i];
        record->epoch = (uint32_t)epoch;
        record->first = (uint32_t)images_of(t, step);
        record->n = (uint32_t)images_of(t, step + 1) - record->first;
        record->lr = (float)rate_of(t, epoch, step);
        record->correction1 = (float)(1 / (1 - pow(recipe->momentum, nth)));
        record->correction2 = (float)(1 / sqrt(1 - pow(recipe->beta2, nth)));
    }
    LT_TRY(t->type->steps_begin(t->ctx, t->backend, t->table, count));
    t->reported = now();
    t->began = t->reported - t->state.seconds;
done:
    return status;
}

latent_status lt_trainer_step(lt_trainer *t) {
    const latent_recipe *recipe = &t->options->recipe;
    lt_gather_call gather = {.data = t->data,
                             .n = (int)t->table[t->issued - t->table_first].n,
                             .limit = t->images,
                             .shuffle = 1,
                             .seed = t->options->seed,
                             .scale = 1.0f / 255,
                             .shift = 0,
                             .x = t->plan->nodes[0].y};
    lt_optimizer_call optimizer = {.kind = recipe->optimizer,
                                   .momentum = (float)recipe->momentum,
                                   .beta2 = (float)recipe->beta2,
                                   .epsilon = (float)recipe->epsilon,
                                   .decay = (float)recipe->weight_decay,
                                   .params = t->model->params,
                                   .grads = t->plan->grads,
                                   .m = t->m,
                                   .v = t->v,
                                   .count = t->net->param_count};
    t->saved = 0;
    latent_status status = lt_exec_train_step(t->ctx, t->plan, &gather, &optimizer);
    t->issued += status == LATENT_OK;
    return status;
}

static latent_status not_finite(lt_trainer *t, const char *what) {
    const lt_train_state *state = &t->state;
    char before[64] = "";
    if (state->step) {
        snprintf(before, sizeof before, "; the mean loss of the epoch was %.6g until then",
                 state->loss_sum / images_of(t, state->step));
    }
    return lt_fail(
        t->ctx, LATENT_ERROR_NUMERIC,
        "epoch %d, step %d of %d: the %s is not a finite number%s. Try a lower learning rate (--lr, now "
        "%g)%s",
        state->epoch + 1, state->step + 1, t->steps, what, before, t->options->recipe.lr,
        t->keeps ? "; the last good checkpoint is kept" : "");
}

/* Adds up the losses of the steps that are done, up to the first that is not finite. `wait`: of all that were
 * handed over. */
static latent_status collect(lt_trainer *t, int wait) {
    lt_train_state *state = &t->state;
    int first = state->step, count = t->issued - first, bad = -1, at0 = first - t->table_first;
    latent_status status = wait || !t->type->losses_poll
                               ? t->type->losses_read(t->ctx, t->backend, at0, count, t->losses, &bad)
                               : t->type->losses_poll(t->ctx, t->backend, at0, t->losses, &count, &bad);
    if (status != LATENT_OK) {
        return status;
    }
    for (int i = 0; i < count; i++) {
        int at = at0 + i;
        if (!isfinite(t->losses[i])) {
            return not_finite(t, "loss");
        }
        if (at == bad) {
            return not_finite(t, "gradient");
        }
        state->loss_sum += (double)t->losses[i] * t->table[at].n;
        state->step++;
    }
    state->seconds = now() - t->began;
    return LATENT_OK;
}

static int slot_count(const lt_trainer *t) {
    return LT_SLOT_OPS + 2 * t->net->op_count;
}

/* Inside a graph the ops cannot be timed one by one. There the first step is launched plainly and timed, and
 * its shares stand for the epoch; the bits are those of the graph. A profile that was asked for times every
 * step of the training, from its first epoch on. */
static latent_status begin_times(lt_trainer *t) {
    latent_status status = LATENT_OK;
    if (t->options->profile && t->profiled_steps > 0) {
        t->type->mark(t->backend, LT_SLOT_NOWHERE); /* the time between two epochs is no op's */
        return LATENT_OK;
    }
    t->plan->eager = t->options->profile || t->type->graph_begin;
    LT_TRY(t->type->profile_start(t->ctx, t->backend, slot_count(t)));
    if (t->type->graph_begin && !t->options->profile) {
        LT_TRY(lt_trainer_step(t));
        LT_TRY(t->type->profile_start(t->ctx, t->backend, 0));
        t->plan->eager = 0;
    }
done:
    return status;
}

/* Books the time of the steps since begin_times, which took `seconds`. */
static latent_status book_times(lt_trainer *t, double seconds) {
    double sum = 0, forward = 0, backward = 0;
    latent_status status = t->type->profile_read(t->ctx, t->backend, t->slots, slot_count(t));
    if (status != LATENT_OK) {
        return status;
    }
    for (int i = 0; i < slot_count(t); i++) {
        double all = t->slots[i]; /* of all epochs, if it is a profile */
        t->slots[i] -= t->options->profile ? t->profile[i] : 0;
        t->profile[i] = all;
        sum += t->slots[i];
    }
    int sampled = t->type->graph_begin && !t->options->profile;
    double scale = !sampled ? 1 : sum > 0 ? seconds / sum : 0;
    forward = t->slots[LT_SLOT_GATHER] + t->slots[LT_SLOT_LOSS];
    for (int i = 0; i < t->net->op_count; i++) {
        forward += t->slots[lt_slot(i, LT_FORWARD)];
        backward += t->slots[lt_slot(i, LT_BACKWARD)];
    }
    t->state.forward += scale * forward;
    t->state.backward += scale * backward;
    t->state.optimizer += scale * (t->slots[LT_SLOT_OPTIMIZER] + t->slots[LT_SLOT_PREPARE]);
    return LATENT_OK;
}

static latent_status end_epoch(lt_trainer *t) {
    latent_status status = LATENT_OK;
    latent_train_event e = event(t, LATENT_EVENT_EPOCH);
    int every = t->options->checkpoint_every;
    e.forward_seconds = t->state.forward;
    e.backward_seconds = t->state.backward;
    e.optimizer_seconds = t->state.optimizer;
    if (t->keeps) {
        lt_epoch_metrics metrics = {.epoch = e.epoch,
                                    .loss = e.loss,
                                    .lr = e.lr,
                                    .seconds = e.seconds,
                                    .images_per_second = e.images_per_second,
                                    .forward = e.forward_seconds,
                                    .backward = e.backward_seconds,
                                    .optimizer = e.optimizer_seconds};
        LT_TRY(lt_metrics_append(t->ctx, t->run.metrics, &metrics));
    }
    t->state = (lt_train_state){.epoch = e.epoch};
    tell(t, &e);
    if (t->keeps && ((every && e.epoch % every == 0) || e.epoch == e.epochs || t->ctx->interrupted)) {
        LT_TRY(save(t, &e));
    }
done:
    return status;
}

/* Tells how far the training is, ten times a second, and sleeps while more than `ahead` steps are not done:
 * so an interruption is answered soon, and the backend always has work. */
static latent_status keep_pace(lt_trainer *t, int ahead) {
    const struct timespec nap = {.tv_nsec = 100000};
    latent_status status = LATENT_OK;
    for (;;) {
        int far = t->type->losses_poll && t->issued - t->state.step > ahead;
        int due = now() - t->reported >= 0.1;
        if (far || due) {
            LT_TRY(collect(t, 0));
        }
        if (due && t->state.step < t->steps) {
            latent_train_event e = event(t, LATENT_EVENT_STEP);
            tell(t, &e);
            t->reported = now();
        }
        if (!far || t->issued - t->state.step <= ahead || t->ctx->interrupted) {
            break;
        }
        nanosleep(&nap, NULL);
    }
done:
    return status;
}

/* Leaves early, between two steps, when the context was interrupted. */
static latent_status run_epoch(lt_trainer *t) {
    latent_status status = LATENT_OK;
    LT_TRY(lt_trainer_begin_epoch(t));
    double before = t->state.seconds;
    int first = t->issued;
    LT_TRY(begin_times(t));
    latent_train_event e = event(t, LATENT_EVENT_STEP);
    tell(t, &e);
    while (t->issued < t->steps && !t->ctx->interrupted) {
        LT_TRY(lt_trainer_step(t));
        LT_TRY(keep_pace(t, AHEAD));
    }
    LT_TRY(keep_pace(t, 0));
    LT_TRY(collect(t, 1));
    LT_TRY(book_times(t, t->state.seconds - before));
    t->profiled_steps += t->issued - first;
    t->profiled_images += images_of(t, t->issued) - images_of(t, first);
    if (t->state.step == t->steps) {
        LT_TRY(end_epoch(t));
    }
done:
    return status;
}

/* The interruption is answered here, once. */
static latent_status stop(lt_trainer *t) {
    latent_status status = LATENT_OK;
    latent_train_event e = event(t, LATENT_EVENT_SAVED);
    t->ctx->interrupted = 0;
    if (!t->keeps) {
        return lt_fail(
            t->ctx, LATENT_INTERRUPTED,
            "stopped after %d of %d steps of epoch %d; nothing was saved, because there is no run folder",
            t->state.step, t->steps, e.epoch);
    }
    if (!t->saved) {
        LT_TRY(save(t, &e));
    }
    status = lt_fail(t->ctx, LATENT_INTERRUPTED,
                     "%s: stopped after %d of %d steps of epoch %d and saved; --resume continues from there",
                     t->run.folder, t->state.step, t->steps, e.epoch);
done:
    return status;
}

void latent_train_defaults(const latent_net *net, latent_train_options *out) {
    memset(out, 0, sizeof *out);
    out->recipe = net->recipe;
    out->seed = 1;
    out->checkpoint_every = 1;
}

latent_status latent_train(latent_context *ctx, latent_model *model, const latent_dataset *data,
                           const latent_train_options *options) {
    latent_status status = LATENT_OK;
    lt_trainer t;
    LT_TRY(lt_trainer_open(ctx, model, data, options, &t));
    latent_train_event e = event(&t, LATENT_EVENT_START);
    tell(&t, &e);
    while (t.state.epoch < options->recipe.epochs) {
        if (ctx->interrupted) {
            status = stop(&t);
            goto done;
        }
        LT_TRY(run_epoch(&t));
    }
    if (options->profile && t.profiled_steps > 0) {
        lt_trainer_tell_times(&t, t.profile, t.profiled_steps, t.profiled_images, options->profile,
                              options->profile_user);
    }
done:
    lt_trainer_close(&t);
    if (model) {
        lt_model_touch(model);
    }
    return status;
}
