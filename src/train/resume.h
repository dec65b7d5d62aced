/* resume.h: the pieces of a training's beginning that setup.c and resume.c share. */
#ifndef LT_TRAIN_RESUME_H
#define LT_TRAIN_RESUME_H

#include "train/trainer.h"

/* setup.c */
/* The plan, the moments, the images and everything else that a step needs. */
latent_status lt_trainer_take_memory(lt_trainer *t, const latent_dataset *data);
/* t->config and config.json. */
latent_status lt_trainer_write_config(lt_trainer *t, const latent_dataset *data);

/* resume.c */
/* Refuses what differs from the run's start, then takes memory, loads the checkpoint and mends the other
 * files of the folder. */
latent_status lt_trainer_resume(lt_trainer *t, const latent_dataset *data);

#endif
