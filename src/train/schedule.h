/* schedule.h: the learning rate of every step of a training. */
#ifndef LT_TRAIN_SCHEDULE_H
#define LT_TRAIN_SCHEDULE_H

#include "latent.h"

/* The rate of step `step` (from 0) of `total` steps in the whole training. A pure function of its arguments,
 * so that a resumed run sees the rates of one that never stopped. */
double lt_schedule_lr(latent_schedule schedule, double peak, uint64_t step, uint64_t total);

#endif
