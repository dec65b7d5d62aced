/* train_view.c: shows a training while it runs: the memory table at the start, a bar (or now and then a plain
 * line) within an epoch, a line per epoch that stays. All of it goes to stderr and nothing under --quiet.
 */
#include "train_view.h"

#include "format.h"
#include "table.h"

#include <math.h>
#include <string.h>

/* Off a terminal, an epoch that takes long says that it is alive this often. */
static const double plain_interval = 30;

cli_train_view cli_train_view_new(cli_session *session) {
    cli_train_view view;
    memset(&view, 0, sizeof view);
    view.session = session;
    view.loss = NAN;
    return view;
}

static void show_memory(const latent_memory_info *memory) {
    const struct {
        const char *name;
        uint64_t bytes;
    } rows[] = {{"weights", memory->weights},     {"gradients", memory->gradients},
                {"optimizer", memory->optimizer}, {"activations", memory->activations},
                {"masks", memory->masks},         {"scratch", memory->scratch},
                {"data", memory->data},           {"checkpoints", memory->checkpoints}};
    cli_table table = cli_table_new("lr");
    uint64_t total = 0;
    cli_table_cell(&table, "memory");
    cli_table_cell(&table, " ");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cli_table_cell(&table, "  %s", rows[i].name);
        cli_table_cell(&table, "%s", cli_bytes(rows[i].bytes).s);
        total += rows[i].bytes;
    }
    cli_table_cell(&table, "  total");
    cli_table_cell(&table, "%s", cli_bytes(total).s);
    cli_table_print(&table, stderr, "");
}

static void on_start(cli_train_view *view, const latent_train_event *event) {
    view->resumed_epoch = event->resumed_epoch;
    view->epochs_done = event->resumed_epoch;
    view->images = event->images;
    view->start = event->resumed_epoch + (double)event->step / event->steps;
    view->began = cli_clock();
    if (view->session->quiet) {
        return;
    }
    show_memory(&event->memory);
    if (event->step > 0) {
        cli_note(view->session, "resumed in epoch %d of %d, after step %d of %d", event->epoch, event->epochs,
                 event->step, event->steps);
    } else if (event->resumed_epoch > 0) {
        cli_note(view->session, "resumed after epoch %d of %d", event->resumed_epoch, event->epochs);
    }
}

/* Seconds to the end of the run, from the pace of this call so far. */
static double remaining(const cli_train_view *view, const latent_train_event *event) {
    double at = event->epoch - 1 + (double)event->step / event->steps;
    double done = at - view->start;
    return done > 0 ? (cli_clock() - view->began) / done * (event->epochs - at) : NAN;
}

static void on_step(cli_train_view *view, const latent_train_event *event) {
    cli_progress *progress = &view->session->progress;
    double fraction = event->steps > 0 ? (double)event->step / event->steps : 0;
    char left[64], right[320] = "";
    if (event->step == 0) {
        snprintf(left, sizeof left, "epoch %d/%d", event->epoch, event->epochs);
        cli_progress_bar(progress, 0, left, right);
        return;
    }
    if (cli_progress_due(progress, plain_interval)) {
        cli_progress_line(progress, "epoch %d/%d  step %d/%d  loss %.6f  %s images/s  ETA %s", event->epoch,
                          event->epochs, event->step, event->steps, event->loss,
                          cli_rate(event->images_per_second).s, cli_eta(remaining(view, event)).s);
        return;
    }
    snprintf(left, sizeof left, "epoch %d/%d", event->epoch, event->epochs);
    snprintf(right, sizeof right, "loss %.6f  %s images/s  ETA %s", event->loss,
             cli_rate(event->images_per_second).s, cli_eta(remaining(view, event)).s);
    cli_progress_bar(progress, fraction, left, right);
}

static void on_epoch(cli_train_view *view, const latent_train_event *event) {
    cli_progress *progress = &view->session->progress;
    int digits = snprintf(NULL, 0, "%d", event->epochs);
    view->loss = event->loss;
    view->epochs_done = event->epoch;
    view->trained += (uint64_t)event->images;
    view->seconds += event->seconds;
    cli_progress_line(progress,
                      "%sepoch %*d/%d%s  loss %.6f  lr %.3g  %s images/s  %s  %s(forward %s, backward %s, "
                      "optimizer %s)%s",
                      cli_color(progress, CLI_BOLD), digits, event->epoch, event->epochs,
                      cli_color(progress, CLI_RESET), event->loss, event->lr,
                      cli_rate(event->images_per_second).s, cli_duration(event->seconds).s,
                      cli_color(progress, CLI_DIM), cli_duration(event->forward_seconds).s,
                      cli_duration(event->backward_seconds).s, cli_duration(event->optimizer_seconds).s,
                      cli_color(progress, CLI_RESET));
}

void cli_train_view_event(void *user, const latent_train_event *event) {
    cli_train_view *view = user;
    switch (event->kind) {
    case LATENT_EVENT_START:
        on_start(view, event);
        break;
    case LATENT_EVENT_STEP:
        on_step(view, event);
        break;
    case LATENT_EVENT_EPOCH:
        on_epoch(view, event);
        break;
    case LATENT_EVENT_SAVED:
        view->saved++;
        break;
    }
}
