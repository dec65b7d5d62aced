/* checkpoint.h: everything that continues a training to the same bits, in one file. */
#ifndef LT_TRAIN_CHECKPOINT_H
#define LT_TRAIN_CHECKPOINT_H

#include "io/safetensors.h"
#include "model/model.h"
#include "train/run.h"

/* Where a training stands: between two steps. */
typedef struct lt_train_state {
    int epoch;                           /* complete epochs */
    int step;                            /* steps done in the epoch after those; less than an epoch has */
    double loss_sum;                     /* of those steps: sum of loss * images */
    double seconds;                      /* they took */
    double forward, backward, optimizer; /* of which */
} lt_train_state;

typedef struct lt_checkpoint {
    const char *path; /* the run's; must outlive the checkpoint */
    lt_safetensors *file;
    lt_run_config config;
    lt_train_state state;
} lt_checkpoint;

/* Blocks of net->param_count floats on the host, in the net's own layout; m and v may be NULL. `config` is
 * the text of config.json. */
latent_status lt_checkpoint_write(latent_context *ctx, const lt_run *run, const latent_net *net,
                                  const char *config, const lt_train_state *state, const float *params,
                                  const float *m, const float *v);

/* Checks the file against its own checksum and its config and state against their ranges. */
latent_status lt_checkpoint_read(latent_context *ctx, const lt_run *run, lt_checkpoint **out);
void lt_checkpoint_destroy(lt_checkpoint *checkpoint);

/* LATENT_OK when the checkpoint is of this net: tensors of the same names and shapes, the same ops. The
 * sentence names the first that differs. */
latent_status lt_checkpoint_match(latent_context *ctx, const lt_checkpoint *checkpoint,
                                  const latent_net *net);

/* The tensor `name`, which must have the slot's shape. */
latent_status lt_checkpoint_tensor(latent_context *ctx, const lt_checkpoint *checkpoint,
                                   const lt_model_slot *slot, const char *name, const lt_st_tensor **out);

/* Fills a block; gaps become zero. `part` is one of the three. */
typedef enum lt_checkpoint_part { LT_PART_WEIGHTS, LT_PART_M, LT_PART_V } lt_checkpoint_part;
latent_status lt_checkpoint_block(latent_context *ctx, const lt_checkpoint *checkpoint, const latent_net *net,
                                  lt_checkpoint_part part, float *block);

#endif
