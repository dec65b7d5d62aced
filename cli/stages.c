/* stages.c: the training and the features of `latent run`.
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
#include <unistd.h>

/* ---- train ---- */

char *cli_train_inputs(cli_pipeline *p, int *code) {
    latent_net_info net;
    const latent_recipe *r = &p->train.recipe;
    *code = CLI_OK;
    latent_net_get_info(p->net, &net);
    return cli_print("data %s; subset %d; epochs %d; batch %d; %s; %s; lr %.17g; "
                     "momentum %.17g; beta2 %.17g; epsilon %.17g; weight decay %.17g; seed %llu; net %s:\n%s",
                     p->digest, p->train.subset, r->epochs, r->batch, latent_optimizer_name(r->optimizer),
                     latent_schedule_name(r->schedule), r->lr, r->momentum, r->beta2, r->epsilon,
                     r->weight_decay, (unsigned long long)p->train.seed, net.name, net.text);
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

/* A run that is too old to know its data by a digest knows the path. */
static int same_data(cli_pipeline *p, const char *folder) {
    char digest[33];
    if (latent_run_read_digest(p->session->ctx, p->run, digest) != LATENT_OK) {
        return 0;
    }
    return digest[0] ? strcmp(digest, p->digest) == 0 : folder && strcmp(folder, p->data_info.path) == 0;
}

/* All but the number of epochs must be the same. What was killed before its first checkpoint begins anew. */
int cli_train_continues(cli_pipeline *p) {
    latent_net *net = NULL;
    latent_train_options was;
    latent_net_info a, b;
    char *data = NULL;
    if (!cli_pipeline_has(p, "checkpoint.safetensors") ||
        latent_run_read(p->session->ctx, p->run, &net, &was, &data) != LATENT_OK) {
        return 0;
    }
    latent_net_get_info(net, &a);
    latent_net_get_info(p->net, &b);
    latent_recipe x = was.recipe, y = p->train.recipe;
    int longer = y.epochs == x.epochs || (y.epochs > x.epochs && x.schedule == LATENT_CONSTANT);
    int same = strcmp(a.text, b.text) == 0 && was.seed == p->train.seed && was.subset == p->train.subset &&
               same_data(p, data) && x.batch == y.batch && x.optimizer == y.optimizer &&
               x.schedule == y.schedule && x.lr == y.lr && x.momentum == y.momentum && x.beta2 == y.beta2 &&
               x.epsilon == y.epsilon && x.weight_decay == y.weight_decay;
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
    char *old = cli_join(p->run, "profile.json"); /* it may be of another engine */
    (void)unlink(old);
    free(old);
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

/* The engine is proven by a model on it. */
int cli_train_ready(cli_pipeline *p) {
    latent_model_destroy(p->model);
    p->model = NULL;
    p->weights[0] = 0;
    return cli_status(p->session,
                      latent_model_create(p->session->ctx, p->net, &p->engine, p->train.seed, &p->model));
}

/* Losses of epochs that were trained before cannot be had again from the checkpoint. */
static void check_metrics(cli_pipeline *p) {
    char *path = cli_join(p->run, "metrics.jsonl");
    FILE *file = fopen(path, "r");
    int lines = 0;
    for (int c; file && (c = getc(file)) != EOF;) {
        lines += c == '\n';
    }
    if (file) {
        fclose(file);
    }
    if (lines < p->train.recipe.epochs) {
        cli_note(p->session,
                 "%s has %d of %d epochs, and so has the report; the same command with --overwrite trains "
                 "anew and restores it",
                 path, lines, p->train.recipe.epochs);
    }
    free(path);
}

static void summarize_training(cli_pipeline *p, const cli_train_view *view, char out[CLI_SUMMARY_MAX]) {
    if (p->goes_on && view->trained == 0 && *p->summary) { /* only files were restored */
        memcpy(out, p->summary, CLI_SUMMARY_MAX);
        return;
    }
    int epochs = p->train.recipe.epochs;
    int length = snprintf(out, CLI_SUMMARY_MAX, "%d epoch%s", epochs, epochs == 1 ? "" : "s");
    if (isfinite(view->loss)) {
        length += snprintf(out + length, CLI_SUMMARY_MAX - (size_t)length, ", loss %.6f", view->loss);
    }
    if (view->seconds > 0) {
        snprintf(out + length, CLI_SUMMARY_MAX - (size_t)length, ", %s images/s",
                 cli_rate((double)view->trained / view->seconds).s);
    }
}

/* The library's sentence ends with the flag of `latent train`, which this command has no need of. */
static int say_stopped(cli_pipeline *p) {
    const char *message = latent_context_message(p->session->ctx), *flag = strstr(message, "; --resume");
    cli_fail(p->session, "interrupted: %.*s", flag ? (int)(flag - message) : (int)strlen(message), message);
    return CLI_INTERRUPTED;
}

int cli_train_work(cli_pipeline *p, char summary[CLI_SUMMARY_MAX]) {
    cli_train_view view = cli_train_view_new(p->session);
    latent_train_options options = p->train;
    options.run = p->run;
    options.resume = p->goes_on;
    options.progress = cli_train_view_event;
    options.user = &view;
    cli_note(p->session, "engine  %s", latent_model_engine(p->model));
    latent_status status = latent_train(p->session->ctx, p->model, p->data, &options);
    int code = status == LATENT_INTERRUPTED ? say_stopped(p) : cli_status(p->session, status);
    cli_progress_clear(&p->session->progress);
    if (code == CLI_OK) {
        check_metrics(p);
        code = measure_profile(p);
    }
    if (code == CLI_OK) {
        summarize_training(p, &view, summary);
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
                           p->weights, p->digest,
                           p->features.subset ? p->features.subset : p->data_info.count[LATENT_TRAIN],
                           p->features.flip, p->features.standardize, p->features.l2)
               : NULL;
}

/* The record beside the features is asked: they may be of another making than the journal's. */
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
               strcmp(info.digest, p->digest) == 0;
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
