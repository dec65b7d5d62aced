/* cmd_train.c: `latent train`: settles the job, makes the model, hands over to the library's one training
 * loop and reports. Progress goes to stderr, the summary to stdout.
 */
#include "cli.h"
#include "format.h"
#include "json.h"
#include "option_rows.h"
#include "table.h"
#include "times.h"
#include "train_job.h"
#include "train_view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const cli_option run_options[] = {
    CLI_ROW_DATA(.otherwise = CLI_DATA_OTHERWISE),
    {.name = "run",
     .letter = 'r',
     .value = "DIR",
     .type = CLI_STRING,
     .otherwise = "runs/NET-DATE-TIME",
     .help = "run folder to write"},
    {.name = "resume", .type = CLI_FLAG, .help = "continue the run in --run from its checkpoint"},
    {.name = "overwrite", .type = CLI_FLAG, .help = "replace the run in --run"},
    {.name = "checkpoint-every",
     .value = "N",
     .type = CLI_INT,
     .min = 0,
     .max = 1000000,
     .initial = "1",
     .help = "epochs between checkpoints; 0: only at the end and when interrupted"},
    {.name = "profile",
     .type = CLI_FLAG,
     .help = "time every op (slower), print the shares and write RUN/profile.json"},
    {.name = "json", .type = CLI_FLAG, .help = "print the summary as JSON"},
};

static const cli_group run_group = {"Options", run_options, sizeof run_options / sizeof *run_options};

static void introduce(cli_session *session, const cli_train_job *job, const latent_model *model) {
    latent_net_info net;
    latent_dataset_info data;
    latent_net_get_info(job->net, &net);
    latent_dataset_get_info(job->data, &data);
    const latent_recipe *recipe = &job->options.recipe;
    int images = job->options.subset ? job->options.subset : data.count[LATENT_TRAIN];
    cli_note(session, "net     %s, %s parameters", net.name, cli_count(net.parameters).s);
    cli_note(session, "engine  %s", latent_model_engine(model));
    cli_note(session, "data    %s, %s of %s training images%s", data.path, cli_count((uint64_t)images).s,
             cli_count((uint64_t)data.count[LATENT_TRAIN]).s, data.synthetic ? ", synthetic" : "");
    cli_note(session, "recipe  %d epoch%s, batch %d, %s, lr %g, %s, seed %llu", recipe->epochs,
             recipe->epochs == 1 ? "" : "s", recipe->batch, latent_optimizer_name(recipe->optimizer),
             recipe->lr, latent_schedule_name(recipe->schedule), (unsigned long long)job->options.seed);
    cli_note(session, "run     %s", job->run);
}

static void report_json(const cli_train_job *job, const cli_train_view *view, const latent_model *model,
                        double seconds, latent_status status) {
    latent_net_info net;
    latent_net_get_info(job->net, &net);
    cli_json json = {.out = stdout};
    cli_json_open(&json, NULL, '{');
    cli_json_string(&json, "run", job->run);
    cli_json_string(&json, "net", net.name);
    cli_json_string(&json, "engine", latent_model_engine(model));
    cli_json_integer(&json, "parameters", net.parameters);
    cli_json_integer(&json, "images", (uint64_t)view->images);
    cli_json_integer(&json, "epochs", (uint64_t)job->options.recipe.epochs);
    cli_json_integer(&json, "epochs_done", (uint64_t)view->epochs_done);
    cli_json_integer(&json, "resumed_epoch", (uint64_t)view->resumed_epoch);
    cli_json_number(&json, "loss", view->loss);
    cli_json_number(&json, "seconds", seconds);
    cli_json_number(&json, "images_per_second",
                    view->seconds > 0 ? (double)view->trained / view->seconds : NAN);
    cli_json_boolean(&json, "interrupted", status == LATENT_INTERRUPTED);
    cli_json_close(&json, '}');
}

static void report(const cli_train_job *job, const cli_train_view *view, double seconds) {
    cli_table table = cli_table_new("ll");
    cli_table_cell(&table, "run");
    cli_table_cell(&table, "%s", job->run);
    cli_table_cell(&table, "epochs");
    cli_table_cell(&table, "%d of %d", view->epochs_done, job->options.recipe.epochs);
    if (isfinite(view->loss)) {
        cli_table_cell(&table, "loss");
        cli_table_cell(&table, "%.8g", view->loss);
    }
    cli_table_cell(&table, "time");
    cli_table_cell(&table, "%s", cli_duration(seconds).s);
    cli_table_print(&table, stdout, "");
}

/* A picture of the run that --overwrite replaces would pass for one of the new run. */
static void remove_old_picture(const char *run) {
    char *path = cli_join(run, "reconstruction.png");
    unlink(path);
    free(path);
}

static int run_train(cli_session *session, const cli_arguments *arguments) {
    cli_train_job job;
    latent_model *model = NULL;
    cli_train_view view = cli_train_view_new(session);
    cli_times *times = cli_flag(arguments, "profile") ? cli_times_new() : NULL;
    int code = cli_train_settle(session, arguments, &job);
    latent_engine_options engine = job.engine;
    if (code == CLI_OK) {
        code = cli_status(session,
                          latent_model_create(session->ctx, job.net, &engine, job.options.seed, &model));
    }
    if (code == CLI_OK) {
        double began = cli_clock();
        introduce(session, &job, model);
        if (cli_flag(arguments, "overwrite")) {
            remove_old_picture(job.run);
        }
        job.options.progress = cli_train_view_event;
        job.options.user = &view;
        job.options.profile = times ? cli_times_keep : NULL;
        job.options.profile_user = times;
        latent_status status = latent_train(session->ctx, model, job.data, &job.options);
        cli_progress_clear(&session->progress);
        if (status == LATENT_OK || status == LATENT_INTERRUPTED) {
            if (cli_flag(arguments, "json")) {
                report_json(&job, &view, model, cli_clock() - began, status);
            } else {
                report(&job, &view, cli_clock() - began);
            }
        }
        if (status == LATENT_OK && view.resumed_epoch >= job.options.recipe.epochs) {
            cli_note(session, "the run was complete already; --epochs N with a larger N trains it further");
        }
        code = cli_status(session, status);
        if (times && status == LATENT_OK) {
            if (!cli_flag(arguments, "json")) {
                printf("\n");
                cli_times_print(times, 0);
            }
            code = cli_times_save(session, job.run, latent_model_engine(model), times);
        }
        if (status == LATENT_INTERRUPTED) {
            cli_note(session, "continue with: latent train --resume --run %s", job.run);
        }
    }
    free(times);
    latent_model_destroy(model);
    cli_train_free(&job);
    return code;
}

const cli_command cli_command_train = {
    .name = "train",
    .summary = "train a net and write a run folder",
    .operands = "[NET]",
    .operands_max = 1,
    .about =
        "NET is a preset (see 'latent info') or the path of a net file; without one it is the preset "
        "autoencoder. The run folder gets config.json, metrics.jsonl, checkpoint.safetensors and "
        "model.safetensors.\nCtrl-C writes a checkpoint and ends with exit code 130; --resume goes on from "
        "there and ends in the same bits as a run that never stopped.",
    .examples = "latent train --data ./data --epochs 5 --subset 2%\n"
                "latent train my.net --run runs/mine --optimizer sgd --lr 0.05 --schedule cosine\n"
                "latent train --resume --run runs/mine --epochs 40",
    .groups = {&run_group, &cli_recipe_group, &cli_engine_group, &cli_quiet_group},
    .run = run_train,
};
