/* trainer.h: a training in progress: what setup.c makes ready and train.c drives. */
#ifndef LT_TRAIN_TRAINER_H
#define LT_TRAIN_TRAINER_H

#include "data/dataset.h"
#include "model/model.h"
#include "train/checkpoint.h"

typedef struct lt_trainer {
    latent_context *ctx;
    latent_model *model;
    const latent_net *net;
    lt_backend *backend;
    const lt_backend_type *type;
    const latent_train_options *options;

    int images, batch, steps; /* per epoch, of a full step, per epoch */
    lt_plan *plan;
    lt_backend_data *data;
    float *m, *v; /* [b] NULL where the optimizer keeps none */
    latent_memory_info memory;

    lt_train_state state; /* counts the steps whose losses were read */
    int resumed_epoch;

    int keeps; /* a run folder was asked for */
    lt_run run;
    char *config; /* the text of config.json */
    float *host;  /* three blocks, for checkpoints */
    int saved;    /* what is on disk is the state */

    /* The epoch in flight. The backend's step table begins at step `table_first` of the epoch. */
    lt_step *table;
    float *losses;
    double *slots;   /* seconds per profile slot, of the epoch or of its first step */
    double *profile; /* the same, as last read: of the whole training where a profile was asked for */
    int profiled_steps;
    double profiled_images;
    int table_first;
    int issued;             /* steps of the epoch handed to the backend */
    double began, reported; /* clock */
} lt_trainer;

/* setup.c */
latent_status lt_trainer_open(latent_context *ctx, latent_model *model, const latent_dataset *data,
                              const latent_train_options *options, lt_trainer *out);
void lt_trainer_close(lt_trainer *t);
/* Images of noise that fit the net's input. */
latent_status lt_trainer_noise(latent_context *ctx, const latent_net *net, int count, uint64_t seed,
                               latent_dataset **out);
/* Writes model.safetensors and checkpoint.safetensors at t->state. */
latent_status lt_trainer_save(lt_trainer *t);

/* train.c: the two halves of an epoch that bench.c drives as well. */
/* Hands the backend the table of steps from state.step to the end of epoch state.epoch. */
latent_status lt_trainer_begin_epoch(lt_trainer *t);
/* Hands over the next step of the table. */
latent_status lt_trainer_step(lt_trainer *t);

/* profile.c */
/* Arithmetic of one image's training step. */
double lt_net_flops(const latent_net *net);
/* Calls `each` for every op and pass, and for the rest, with slots summed over `steps` steps of `images`
 * images in all. */
void lt_trainer_tell_times(const lt_trainer *t, const double *slots, int steps, double images,
                           latent_op_time_fn each, void *user);

#endif
