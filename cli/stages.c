/* stages.c: the first stages of `latent run`: the data set, the training, the features.
 *
 * A stage says what decides its output as text. The training's own record is the run folder's config: where
 * it differs from what is wanted in nothing but the number of epochs, the training goes on from its
 * checkpoint; otherwise it begins anew.
 */
#include "feature_job.h"
#include "format.h"
#include "pipeline.h"
#include "times.h"
#include "train_view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- data ---- */

/* The synthetic set of the run folder; the same arguments give the same bytes. */
static int make_synthetic(cli_pipeline *p, const char *folder) {
    int train = (int)cli_get(p->arguments, "synthetic-train")->integer;
    int test = (int)cli_get(p->arguments, "synthetic-test")->integer;
    cli_note(p->session, "making a synthetic set of %s training and %s test images in %s",
             cli_count((uint64_t)train).s, cli_count((uint64_t)test).s, folder);
    return cli_status(p->session, latent_dataset_synthesize(p->session->ctx, folder, train, test, 1));
}

/* Whether the set in the folder is the one that the options ask for. */
static int synthetic_fits(cli_pipeline *p) {
    latent_dataset_get_info(p->data, &p->data_info);
    return p->data_info.synthetic &&
           p->data_info.count[LATENT_TRAIN] == cli_get(p->arguments, "synthetic-train")->integer &&
           p->data_info.count[LATENT_TEST] == cli_get(p->arguments, "synthetic-test")->integer;
}

/* Under its absolute path, so that the run finds its data from any folder. */
static int open_absolute(cli_pipeline *p, const char *folder) {
    char *path = realpath(folder, NULL);
    int code = cli_status(p->session, latent_dataset_open(p->session->ctx, path ? path : folder, &p->data));
    free(path);
    return code;
}

static int open_synthetic(cli_pipeline *p) {
    char *folder = cli_join(p->run, "data");
    int code = CLI_OK;
    if (cli_folder_has_data(folder)) {
        code = open_absolute(p, folder);
        if (code == CLI_OK && !synthetic_fits(p)) {
            latent_dataset_destroy(p->data);
            p->data = NULL;
        }
    }
    if (code == CLI_OK && !p->data) {
        code = make_synthetic(p, folder);
        if (code == CLI_OK) {
            code = open_absolute(p, folder);
        }
    }
    free(folder);
    return code;
}

int cli_stage_data(cli_pipeline *p) {
    int synthetic = cli_flag(p->arguments, "synthetic"), code = CLI_OK;
    char *folder = synthetic ? NULL : cli_find_data(cli_string(p->arguments, "data"), NULL);
    if (folder) {
        code = open_absolute(p, folder);
    } else {
        if (!synthetic) {
            cli_note(p->session, "no data set at hand, so a synthetic one is made ('latent data download "
                                 "./data' fetches CIFAR-10)");
        }
        code = open_synthetic(p);
    }
    if (code == CLI_OK) {
        latent_dataset_get_info(p->data, &p->data_info);
    }
    free(folder);
    return code;
}

/* ---- train ---- */

char *cli_train_inputs(cli_pipeline *p, int *code) {
    latent_net_info net;
    const latent_recipe *r = &p->train.recipe;
    *code = CLI_OK;
    latent_net_get_info(p->net, &net);
    return cli_print("data %s, %d training images; subset %d; epochs %d; batch %d; %s; %s; lr %.17g; "
                     "momentum %.17g; beta2 %.17g; epsilon %.17g; weight decay %.17g; seed %llu; net %s:\n%s",
                     p->data_info.path, p->data_info.count[LATENT_TRAIN], p->train.subset, r->epochs,
                     r->batch, latent_optimizer_name(r->optimizer), latent_schedule_name(r->schedule), r->lr,
                     r->momentum, r->beta2, r->epsilon, r->weight_decay, (unsigned long long)p->train.seed,
                     net.name, net.text);
}

/* An engine that was asked for by name must be the one that the run was trained on. */
static int engine_fits(cli_pipeline *p) {
    latent_engine_record record;
    if (latent_run_read_engine(p->session->ctx, p->run, &record) != LATENT_OK) {
        return 0;
    }
    const struct {
        const char *name, *recorded;
    } parts[] = {{"backend", record.backend},
                 {"precision", record.precision},
                 {"isa", record.isa},
                 {"kernels", record.kernels}};
    for (int i = 0; i < 4; i++) {
        const cli_value *value = cli_get(p->arguments, parts[i].name);
        if (value->given && strcmp(value->text, "auto") != 0 && strcmp(value->text, parts[i].recorded) != 0) {
            return 0;
        }
    }
    return 1;
}

int cli_train_there(cli_pipeline *p) {
    return cli_pipeline_has(p, "model.safetensors") && cli_pipeline_has(p, "checkpoint.safetensors") &&
           engine_fits(p);
}

/* 1 when the run in the folder can go on to what is wanted: all but the epochs are the same. */
static int can_resume(cli_pipeline *p) {
    latent_net *net = NULL;
    latent_train_options was;
    latent_net_info a, b;
    char *data = NULL;
    if (latent_run_read(p->session->ctx, p->run, &net, &was, &data) != LATENT_OK) {
        return 0;
    }
    latent_net_get_info(net, &a);
    latent_net_get_info(p->net, &b);
    latent_recipe x = was.recipe, y = p->train.recipe;
    int longer = y.epochs == x.epochs || (y.epochs > x.epochs && x.schedule == LATENT_CONSTANT);
    int same = strcmp(a.text, b.text) == 0 && was.seed == p->train.seed && was.subset == p->train.subset &&
               data && strcmp(data, p->data_info.path) == 0 && x.batch == y.batch &&
               x.optimizer == y.optimizer && x.schedule == y.schedule && x.lr == y.lr &&
               x.momentum == y.momentum && x.beta2 == y.beta2 && x.epsilon == y.epsilon &&
               x.weight_decay == y.weight_decay;
    latent_net_destroy(net);
    latent_free(data);
    return same && longer && engine_fits(p);
}

/* A few steps with every op timed, for the report: apart from the training, which it would slow down. What
 * fails here fails nothing else. */
static int measure_profile(cli_pipeline *p) {
    cli_times *times = cli_times_new();
    latent_bench_result result;
    latent_bench_options bench = {.batch = p->train.recipe.batch,
                                  .steps = 1,
                                  .data = p->data,
                                  .seed = 1,
                                  .each = cli_times_keep,
                                  .user = times};
    latent_status status = latent_bench_train(p->session->ctx, p->net, &p->engine, &bench, &result);
    int code = status == LATENT_INTERRUPTED ? cli_status(p->session, status) : CLI_OK;
    if (status == LATENT_OK && times->count > 0) {
        code = cli_times_save(p->session, p->run, result.engine, times);
    } else if (code == CLI_OK) {
        cli_note(p->session, "no time by op for the report: %s", latent_context_message(p->session->ctx));
    }
    free(times);
    return code;
}

int cli_train_work(cli_pipeline *p, char summary[CLI_SUMMARY_MAX]) {
    cli_train_view view = cli_train_view_new(p->session);
    latent_train_options options = p->train;
    options.run = p->run;
    options.resume = cli_folder_has_run(p->run) && can_resume(p);
    options.progress = cli_train_view_event;
    options.user = &view;
    latent_model_destroy(p->model);
    p->model = NULL;
    int code = cli_status(p->session,
                          latent_model_create(p->session->ctx, p->net, &p->engine, p->train.seed, &p->model));
    if (code == CLI_OK) {
        cli_note(p->session, "engine  %s", latent_model_engine(p->model));
        code = cli_status(p->session, latent_train(p->session->ctx, p->model, p->data, &options));
        cli_progress_clear(&p->session->progress);
    }
    if (code == CLI_OK) {
        code = measure_profile(p);
    }
    if (code == CLI_OK) {
        int length = snprintf(summary, CLI_SUMMARY_MAX, "%d epochs", p->train.recipe.epochs);
        if (isfinite(view.loss)) {
            length += snprintf(summary + length, CLI_SUMMARY_MAX - (size_t)length, ", loss %.6f", view.loss);
        }
        if (view.seconds > 0) {
            snprintf(summary + length, CLI_SUMMARY_MAX - (size_t)length, ", %s images/s",
                     cli_rate((double)view.trained / view.seconds).s);
        }
    }
    return code;
}

/* ---- features ---- */

/* The weights are read by the plain backend: enough to know them by. */
static int digest(cli_pipeline *p) {
    latent_engine_options host = cli_host_engine();
    latent_model *model = NULL;
    if (p->weights[0]) {
        return CLI_OK;
    }
    latent_status status = LATENT_OK;
    if (!p->model) {
        status = latent_model_load(p->session->ctx, p->run, NULL, &host, &model);
    }
    if (status == LATENT_OK) {
        status = latent_model_digest(p->session->ctx, p->model ? p->model : model, p->weights);
    }
    latent_model_destroy(model);
    return cli_status(p->session, status);
}

char *cli_features_inputs(cli_pipeline *p, int *code) {
    *code = digest(p);
    return *code == CLI_OK
               ? cli_print("weights %s; data %s; %d training images; flip %d; standardize %d; l2 %d",
                           p->weights, p->data_info.path,
                           p->features.subset ? p->features.subset : p->data_info.count[LATENT_TRAIN],
                           p->features.flip, p->features.standardize, p->features.l2)
               : NULL;
}

/* The record beside the features is asked, so that those of 'latent features' count as well. */
int cli_features_there(cli_pipeline *p) {
    latent_features_info info;
    char *folder = cli_join(p->run, "features");
    int train = p->features.subset ? p->features.subset : p->data_info.count[LATENT_TRAIN];
    int fits = cli_pipeline_has(p, "features/features.json") &&
               latent_features_read(p->session->ctx, folder, &info) == LATENT_OK &&
               strcmp(info.weights, p->weights) == 0 && info.format == LATENT_NPY &&
               info.flip == p->features.flip && info.standardize == p->features.standardize &&
               info.l2 == p->features.l2 && info.count[LATENT_TRAIN] == train &&
               info.count[LATENT_TEST] == p->data_info.count[LATENT_TEST] &&
               strcmp(info.data, p->data_info.path) == 0;
    free(folder);
    return fits;
}

int cli_features_work(cli_pipeline *p, char summary[CLI_SUMMARY_MAX]) {
    latent_features_info info;
    latent_features_options options = p->features;
    char *folder = cli_join(p->run, "features"), text[96];
    options.progress = cli_features_progress;
    options.user = p->session;
    int code = cli_pipeline_model(p);
    if (code == CLI_OK) {
        code = cli_status(
            p->session, latent_features_extract(p->session->ctx, p->model, p->data, &options, folder, &info));
        cli_progress_clear(&p->session->progress);
    }
    if (code == CLI_OK) {
        snprintf(summary, CLI_SUMMARY_MAX, "%s images, %s",
                 cli_count((uint64_t)info.count[0] + (uint64_t)info.count[1]).s,
                 cli_features_text(&info, text, sizeof text));
    }
    free(folder);
    return code;
}
