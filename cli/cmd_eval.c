/* cmd_eval.c: `latent eval`: how good a model is on a split of a data set: its loss and, with a support
 * vector machine on its features, how many images are recognized. What is found out about a run's test images
 * stays in the run folder, for the report.
 */
#include "cli.h"
#include "format.h"
#include "option_rows.h"
#include "record.h"
#include "score_job.h"
#include "table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const cli_option options[] = {
    CLI_ROW_DATA(.otherwise = CLI_DATA_OTHERWISE),
    CLI_ROW_SPLIT,
    {.name = "svm",
     .value = "FILE",
     .type = CLI_STRING,
     .otherwise = "svm/model.safetensors in the run folder, if there",
     .help = "support vector machine to score"},
    {.name = "features",
     .value = "DIR",
     .type = CLI_STRING,
     .otherwise = "features in the run folder",
     .help = "folder that 'latent features' wrote, for the SVM"},
    CLI_ROW_NET,
    {.name = "json", .type = CLI_FLAG, .help = "print the result as JSON"},
};

static const cli_group group = {"Options", options, sizeof options / sizeof *options};

typedef struct evaluator {
    cli_session *session;
    const cli_arguments *arguments;
    const char *path;
    int is_run;
    int own;   /* the data is what the run was trained on */
    int asked; /* for scores: --svm or --features was given */
    latent_split split;
    latent_engine_options engine;
    latent_model *model;
    latent_dataset *data;
    char *svm_path, *features; /* svm_path NULL: nothing to score */
    char *unscored;            /* why there are no scores, or NULL */
    cli_scores scores;
    cli_evaluation result;
} evaluator;

static void print_table(const cli_evaluation *e) {
    cli_table table = cli_table_new("ll");
    double seconds = e->loss.seconds;
    cli_table_cell(&table, "%s loss", e->split);
    cli_table_cell(&table, "%.8g", e->loss.loss);
    cli_table_cell(&table, "images");
    cli_table_cell(&table, "%s", cli_count((uint64_t)e->loss.count).s);
    cli_table_cell(&table, "time");
    cli_table_cell(&table, "%s", cli_duration(seconds).s);
    cli_table_cell(&table, "images/s");
    cli_table_cell(&table, "%s", cli_rate(seconds > 0 ? e->loss.count / seconds : NAN).s);
    if (e->scores) {
        cli_table_cell(&table, "%s accuracy", e->split);
        cli_table_cell(&table, "%.2f%%, %s of %s", 100 * e->scores->score.accuracy,
                       cli_count(e->scores->score.correct).s, cli_count(e->scores->score.count).s);
        cli_table_cell(&table, "macro F1");
        cli_table_cell(&table, "%.4f", e->scores->score.macro_f1);
        cli_table_cell(&table, "prediction");
        cli_table_cell(&table, "%s", cli_duration(e->scores->predict_seconds).s);
    }
    cli_table_print(&table, stdout, "");
    if (e->scores) {
        printf("\n");
        cli_scores_print(e->scores);
    }
}

/* Which SVM and which features, if any. */
static int settle_svm(evaluator *e) {
    const char *svm = cli_string(e->arguments, "svm"), *features = cli_string(e->arguments, "features");
    if (features && !svm && !e->is_run) {
        return cli_usage(e->arguments->command, "--features goes with --svm FILE: the machine to score");
    }
    if (svm && !features && !e->is_run) {
        return cli_usage(e->arguments->command, "--svm needs --features DIR: what it is to be scored on");
    }
    if (svm) {
        e->svm_path = strdup(svm);
        cli_need_memory(e->svm_path);
    } else if (e->is_run) {
        e->svm_path = cli_join(e->path, "svm/model.safetensors");
        if (access(e->svm_path, F_OK) != 0) {
            free(e->svm_path);
            e->svm_path = NULL;
        }
    }
    e->asked = svm || features;
    e->features = features ? strdup(features) : cli_join(e->path, "features");
    cli_need_memory(e->features);
    return CLI_OK;
}

/* Whether the set at hand is the one that the run was trained on: by its digest, by its path where the run is
 * too old to have one. A folder that says neither has what is not named otherwise. */
static int is_own(evaluator *e) {
    latent_context *ctx = e->session->ctx;
    latent_net *net = NULL;
    latent_train_options was;
    char digest[33], *folder = NULL, *here = realpath(e->result.data.path, NULL);
    int own = !cli_string(e->arguments, "data");
    if (latent_run_read_digest(ctx, e->path, digest) == LATENT_OK && digest[0]) {
        own = strcmp(digest, e->result.digest) == 0;
    } else if (latent_run_read(ctx, e->path, &net, &was, &folder) == LATENT_OK && folder) {
        own = here && strcmp(folder, here) == 0;
    }
    latent_net_destroy(net);
    latent_free(folder);
    free(here);
    return own;
}

/* Scores that were asked for and cannot be had are a failure; others are left out, with the reason. */
static int leave_out(evaluator *e, char *reason) {
    cli_need_memory(reason);
    e->unscored = reason;
    e->result.unscored = reason;
    if (e->asked) {
        return cli_fail(e->session, "%s", reason);
    }
    cli_note(e->session, "no accuracy: %s", reason);
    return CLI_OK;
}

static char *tell(const char *format, const char *a, const char *b) {
    char *text = NULL;
    cli_need_memory(asprintf(&text, format, a, b) < 0 ? NULL : text);
    return text;
}

/* Features of other weights would score another model, those of other images another set. */
static int check_features(evaluator *e) {
    latent_features_info info;
    char *record = cli_join(e->features, "features.json");
    int none = access(record, F_OK) != 0;
    free(record);
    if (none && !e->asked) {
        return leave_out(
            e, tell("%s holds no features; make them with 'latent features %s'", e->features, e->path));
    }
    int code = cli_status(e->session, latent_features_read(e->session->ctx, e->features, &info));
    if (code != CLI_OK) {
        return code;
    }
    if (strcmp(info.weights, e->result.weights) != 0) {
        return cli_fail(e->session,
                        "the features in %s were made from other weights than those of %s; make them again "
                        "with 'latent features' and train the SVM on them",
                        e->features, e->path);
    }
    if (info.format == LATENT_RAW) {
        return cli_fail(e->session, "the features in %s are in the raw format; an SVM reads --format npy",
                        e->features);
    }
    char *here = realpath(e->result.data.path, NULL), *there = realpath(info.data, NULL);
    int same = info.digest[0] ? strcmp(info.digest, e->result.digest) == 0
                              : here && there && strcmp(here, there) == 0; /* older features have a path */
    free(here);
    free(there);
    return same ? CLI_OK
                : leave_out(e, tell("the features in %s are not those of the images in %s; make those with "
                                    "'latent features --data DIR --out FEATURES' and name them with "
                                    "--features",
                                    e->features, e->result.data.path));
}

/* 'latent run' knows which features it trained its machine on. Others may be as good, but they are not what
 * that machine has seen. */
static void warn_of_other_rows(evaluator *e) {
    latent_journal *journal = NULL;
    latent_features_info info;
    if (!e->is_run || e->asked || latent_journal_open(e->session->ctx, e->path, &journal) != LATENT_OK) {
        return;
    }
    const char *changed = latent_journal_changed(journal, "features");
    int trained = latent_journal_find(journal, "svm") && !latent_journal_changed(journal, "svm");
    if (trained && changed && latent_features_read(e->session->ctx, e->features, &info) == LATENT_OK) {
        cli_fail(e->session,
                 "warning: %s/%s is not what the SVM was trained on: it was made anew since, in %s; 'latent "
                 "run' brings both together again",
                 e->path, changed, info.precision[0] ? info.precision : "a precision it does not say");
    }
    latent_journal_destroy(journal);
}

static int score(evaluator *e) {
    latent_svm *svm = NULL;
    int code = check_features(e);
    if (code != CLI_OK || e->unscored) {
        return code;
    }
    warn_of_other_rows(e);
    code = cli_status(e->session, latent_svm_load(e->session->ctx, e->svm_path, &e->engine, &svm));
    if (code == CLI_OK) {
        code = cli_scores_compute(e->session, svm, e->features, e->split, e->data, &e->scores);
        e->result.svm = e->svm_path;
        e->result.scores = &e->scores;
    }
    latent_svm_destroy(svm);
    return code;
}

/* eval.json and pictures.safetensors of a run: for the report, so that trouble with them is only told. */
static void keep(evaluator *e) {
    char *json = cli_join(e->path, "eval.json"), *pictures = cli_join(e->path, "pictures.safetensors");
    latent_dataset_info info;
    latent_dataset_get_info(e->data, &info);
    int whole = e->scores.count == (size_t)info.count[e->split];
    if (!e->own) {
        cli_note(e->session, "%s is not the data of the run, so nothing is kept in %s", info.path, e->path);
    } else if (e->unscored && access(json, F_OK) == 0) {
        cli_note(e->session, "%s is left as it is: it may have scores, and here are none", json);
    } else if (access(e->path, W_OK) != 0) {
        cli_note(e->session, "%s cannot be written to, so nothing is kept for the report", e->path);
    } else if (cli_record_save(e->session, json, cli_evaluation_fill, &e->result) == CLI_OK) {
        (void)cli_status(e->session, latent_pictures_write(e->session->ctx, e->model, e->data, e->split,
                                                           whole ? e->scores.predicted : NULL, pictures));
    }
    free(json);
    free(pictures);
}

static int evaluate(evaluator *e) {
    latent_dataset_get_info(e->data, &e->result.data);
    latent_dataset_digest(e->data, e->result.digest);
    e->own = e->is_run && is_own(e);
    e->result.set = e->data;
    e->result.model = e->path;
    e->result.engine = latent_model_engine(e->model);
    cli_note(e->session, "engine  %s", e->result.engine);
    cli_note(e->session, "data    %s%s", e->result.data.path, e->result.data.synthetic ? ", synthetic" : "");
    int code = cli_status(e->session, latent_model_digest(e->session->ctx, e->model, e->result.weights));
    if (code == CLI_OK) {
        code = cli_status(
            e->session, latent_model_evaluate(e->session->ctx, e->model, e->data, e->split, &e->result.loss));
    }
    if (code == CLI_OK && e->svm_path) {
        code = score(e);
    }
    return code;
}

static int run_eval(cli_session *session, const cli_arguments *arguments) {
    evaluator e = {.session = session, .arguments = arguments, .path = arguments->operands[0]};
    e.result.split = cli_string(arguments, "split");
    e.split = strcmp(e.result.split, "train") == 0 ? LATENT_TRAIN : LATENT_TEST;
    e.engine = cli_engine(arguments);
    e.is_run = cli_is_folder(e.path);
    int code = settle_svm(&e);
    if (code == CLI_OK) {
        code = cli_load_pair(session, arguments, e.path, &e.engine, &e.model, &e.data);
    }
    if (code == CLI_OK) {
        code = evaluate(&e);
    }
    if (code == CLI_OK && cli_flag(arguments, "json")) {
        cli_record_print(cli_evaluation_fill, &e.result);
    } else if (code == CLI_OK) {
        print_table(&e.result);
    }
    if (code == CLI_OK && e.is_run && e.split == LATENT_TEST) {
        keep(&e);
    }
    cli_scores_free(&e.scores);
    free(e.svm_path);
    free(e.features);
    free(e.unscored);
    latent_dataset_destroy(e.data);
    latent_model_destroy(e.model);
    return code;
}

const cli_command cli_command_eval = {
    .name = "eval",
    .summary = "score a model on a data set: loss, accuracy, confusion matrix",
    .operands = "RUN_OR_MODEL",
    .operands_min = 1,
    .operands_max = 1,
    .about =
        "RUN_OR_MODEL is a run folder or a .safetensors file. The loss is always computed. For a run that "
        "holds features of these images and a support vector machine, or with --svm and --features, the "
        "accuracy over all and by class, the confusion matrix and the macro F1 follow. The results of a "
        "run's own test images stay in its eval.json and pictures.safetensors, for 'latent report'; of "
        "other images nothing is kept.",
    .examples = "latent eval runs/mine\nlatent eval model.safetensors --data ./data --split train --json\n"
                "latent eval runs/mine --svm other.model --features runs/mine/features",
    .groups = {&group, &cli_engine_group, &cli_quiet_group},
    .run = run_eval,
};
