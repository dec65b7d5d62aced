/* run.h: a run folder: what a training was started with and the names of the files it writes. */
#ifndef LT_TRAIN_RUN_H
#define LT_TRAIN_RUN_H

#include "base/status.h"

typedef struct lt_run {
    char *folder, *config, *metrics, *checkpoint, *model; /* paths */
    int lock;                                             /* of the folder; 0: none */
} lt_run;

latent_status lt_run_open(latent_context *ctx, const char *folder, lt_run *out);
void lt_run_close(lt_run *run);
/* Keeps other processes from training in the same folder until lt_run_close. */
latent_status lt_run_lock(latent_context *ctx, lt_run *run);
/* Removes what a killed process left half written. */
void lt_run_sweep(const lt_run *run);

/* Everything that decides the bits of a training, and the engine for a person to read. */
typedef struct lt_run_config {
    char *net_name, *net_text;
    latent_recipe recipe;
    uint64_t seed;
    int subset;      /* as asked for; 0: all */
    int images;      /* that makes this many */
    char *data;      /* folder, or NULL */
    char digest[33]; /* of its contents; "": an older run does not say */
    char *engine;
    latent_engine_record asked;
} lt_run_config;

void lt_run_config_free(lt_run_config *config);
/* The text of config.json, to be freed; a checkpoint holds it too. */
latent_status lt_run_config_write(latent_context *ctx, const lt_run_config *config, char **text);
/* `origin` names the text in messages. */
latent_status lt_run_config_read(latent_context *ctx, const char *text, size_t length, const char *origin,
                                 lt_run_config *out);

#endif
