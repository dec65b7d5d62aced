/* train_job.h: what `latent train` was asked to do, settled before anything is written. */
#ifndef CLI_TRAIN_JOB_H
#define CLI_TRAIN_JOB_H

#include "cli.h"

typedef struct cli_train_job {
    latent_net *net;
    latent_dataset *data;
    latent_train_options options;
    latent_engine_options engine;  /* as given; a resumed run's own where nothing was */
    latent_engine_record recorded; /* what `engine` may point into */
    char *recorded_data;           /* of a resumed run; latent_free */
    char *run;
} cli_train_job;

/* The rows of the recipe: --epochs first, then those that a resumed run does not take; all but the last two
 * (seed, subset) are keys of a net file's `train` line. */
extern const cli_group cli_recipe_group;

/* Puts the flags of the recipe, but for seed and subset, over `recipe`. Returns an exit code. */
int cli_recipe_apply(cli_session *session, const cli_arguments *arguments, latent_recipe *recipe);
/* How many training images --subset stands for; leaves *out alone without it. Returns an exit code. */
int cli_subset(const cli_arguments *arguments, const latent_dataset *data, int *out);
/* Net, recipe, data and the name of the run folder. Returns an exit code. */
int cli_train_settle(cli_session *session, const cli_arguments *arguments, cli_train_job *job);
void cli_train_free(cli_train_job *job);

#endif
