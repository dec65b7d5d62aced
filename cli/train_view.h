/* train_view.h: shows a training while it runs. */
#ifndef CLI_TRAIN_VIEW_H
#define CLI_TRAIN_VIEW_H

#include "cli.h"

typedef struct cli_train_view {
    cli_session *session;
    double start;    /* where this call began, in epochs */
    double began;    /* and when */
    double loss;     /* of the latest complete epoch; NaN: none in this call */
    int epochs_done; /* complete, earlier ones of a resumed run included */
    int resumed_epoch;
    int images;       /* per epoch */
    uint64_t trained; /* images in this call */
    double seconds;   /* in complete epochs of this call */
    int saved;        /* checkpoints written in this call */
} cli_train_view;

cli_train_view cli_train_view_new(cli_session *session);
/* A latent_train_fn; `user` is the view. */
void cli_train_view_event(void *user, const latent_train_event *event);

#endif
