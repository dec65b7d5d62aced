/* resume.c: goes on with a training from its checkpoint, if what was asked is what it was started with. The
 * checkpoint alone is believed: whatever else is in the folder is written anew or cut to what it knows.
 */
#include "train/resume.h"

#include "train/metrics.h"

#include <string.h>

/* What decides the bits may not change between the two halves of a run. */
static latent_status check_same(const lt_trainer *t, const lt_run_config *was) {
    const latent_recipe *a = &was->recipe, *b = &t->options->recipe;
    const struct {
        const char *name;
        double was, is;
    } settings[] = {
        {"batch", a->batch, b->batch},          {"lr", a->lr, b->lr},
        {"momentum", a->momentum, b->momentum}, {"beta2", a->beta2, b->beta2},
        {"epsilon", a->epsilon, b->epsilon},    {"weight_decay", a->weight_decay, b->weight_decay},
        {"images", was->images, t->images}};
    const char *run = t->run.folder;
    if (a->optimizer != b->optimizer || a->schedule != b->schedule) {
        return lt_fail(t->ctx, LATENT_ERROR_ARGUMENT,
                       "%s: the run was started with %s and schedule %s, not %s and %s; a resumed run keeps "
                       "what it was started with",
                       run, latent_optimizer_name(a->optimizer), latent_schedule_name(a->schedule),
                       latent_optimizer_name(b->optimizer), latent_schedule_name(b->schedule));
    }
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        if (settings[i].was != settings[i].is) {
            return lt_fail(
                t->ctx, LATENT_ERROR_ARGUMENT,
                "%s: the run was started with %s %.12g, not %.12g; a resumed run keeps what it was "
                "started with",
                run, settings[i].name, settings[i].was, settings[i].is);
        }
    }
    if (was->seed != t->options->seed) {
        return lt_fail(t->ctx, LATENT_ERROR_ARGUMENT,
                       "%s: the run was started with seed %llu, not %llu; a resumed run keeps what it was "
                       "started with",
                       run, (unsigned long long)was->seed, (unsigned long long)t->options->seed);
    }
    return LATENT_OK;
}

/* Images of the same number in the same place need not be the same images. */
static latent_status check_contents(const lt_trainer *t, const lt_run_config *was,
                                    const latent_dataset *data) {
    char digest[33];
    latent_dataset_info info;
    latent_dataset_get_info(data, &info);
    latent_dataset_digest(data, digest);
    if (was->digest[0] && strcmp(was->digest, digest) != 0) {
        return lt_fail(t->ctx, LATENT_ERROR_ARGUMENT,
                       "%s: the run was started on other images or labels than %s has now (digest %s, not "
                       "%s); name the data that it was started on, or train anew",
                       t->run.folder, info.path ? info.path : "the data set", was->digest, digest);
    }
    return LATENT_OK;
}

static latent_status check_epochs(const lt_trainer *t, const lt_checkpoint *checkpoint) {
    const lt_train_state *state = &checkpoint->state;
    const latent_recipe *was = &checkpoint->config.recipe;
    int epochs = t->options->recipe.epochs, begun = state->epoch + (state->step > 0);
    if (state->step >= t->steps || begun > was->epochs) {
        return lt_fail(t->ctx, LATENT_ERROR_FORMAT,
                       "%s: it stands at epoch %d, step %d, which a run of %d epochs of %d steps has not",
                       checkpoint->path, state->epoch, state->step, was->epochs, t->steps);
    }
    if (epochs < begun) {
        return lt_fail(t->ctx, LATENT_ERROR_ARGUMENT,
                       "%s: %d epochs are fewer than the %d that the run has begun; ask for at least %d",
                       t->run.folder, epochs, begun, begun);
    }
    if (epochs != was->epochs && was->schedule != LATENT_CONSTANT) {
        return lt_fail(t->ctx, LATENT_ERROR_ARGUMENT,
                       "%s: the %s schedule is laid out over %d epochs, so the run cannot be resumed for %d; "
                       "resume it for %d, or train anew",
                       t->run.folder, latent_schedule_name(was->schedule), was->epochs, epochs, was->epochs);
    }
    return LATENT_OK;
}

static latent_status load_blocks(lt_trainer *t, const lt_checkpoint *checkpoint) {
    latent_status status = LATENT_OK;
    float *to[3] = {t->model->params, t->m, t->v};
    for (int part = LT_PART_WEIGHTS; part <= LT_PART_V; part++) {
        if (to[part]) {
            LT_TRY(lt_checkpoint_block(t->ctx, checkpoint, t->net, (lt_checkpoint_part)part, t->host));
            LT_TRY(
                t->type->upload(t->ctx, t->backend, to[part], t->host, t->net->param_count * sizeof(float)));
        }
    }
done:
    return status;
}

latent_status lt_trainer_resume(lt_trainer *t, const latent_dataset *data) {
    latent_status status = LATENT_OK;
    lt_checkpoint *checkpoint = NULL;
    LT_TRY(lt_checkpoint_read(t->ctx, &t->run, &checkpoint));
    LT_TRY(lt_checkpoint_match(t->ctx, checkpoint, t->net));
    LT_TRY(check_same(t, &checkpoint->config));
    LT_TRY(check_contents(t, &checkpoint->config, data));
    LT_TRY(check_epochs(t, checkpoint));
    LT_TRY(lt_trainer_take_memory(t, data));
    LT_TRY(load_blocks(t, checkpoint));
    t->state = checkpoint->state;
    t->resumed_epoch = t->state.epoch;
    if (strcmp(checkpoint->config.engine, t->backend->engine) != 0) {
        lt_log(t->ctx, LATENT_LOG_WARNING,
               "%s: begun on \"%s\", resumed on \"%s\": the last bits may differ from a run on one of them",
               t->run.folder, checkpoint->config.engine, t->backend->engine);
    }
    LT_TRY(lt_trainer_write_config(t, data));
    LT_TRY(lt_metrics_keep(t->ctx, t->run.metrics, t->state.epoch));
    LT_TRY(lt_trainer_save(t)); /* the model may be gone, or of another epoch than the checkpoint */
done:
    lt_checkpoint_destroy(checkpoint);
    return status;
}
