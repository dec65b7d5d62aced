/* cmd_features.c: `latent features`: what a model's encoder makes of a data set, as files. */
#include "cli.h"
#include "feature_job.h"
#include "format.h"
#include "option_rows.h"
#include "record.h"
#include "table.h"
#include "train_job.h"

#include <stdlib.h>
#include <string.h>

static const cli_option options[] = {
    CLI_ROW_DATA(.otherwise = CLI_DATA_OTHERWISE),
    {.name = "out",
     .letter = 'o',
     .value = "DIR",
     .type = CLI_STRING,
     .otherwise = "features in the run folder, or here",
     .help = "folder to write"},
    {.name = "format",
     .value = "NAME",
     .type = CLI_CHOICE,
     .choices = "npy|raw",
     .initial = "npy",
     .help = "files: NumPy arrays, or plain float32"},
    {.name = "scaling",
     .value = "PATH",
     .type = CLI_STRING,
     .otherwise = "the mean and deviation of the training images",
     .help = "standardize by the stored mean and deviation: a scaling.safetensors, or a folder of features"},
    CLI_ROW_SUBSET(.help = "only the first N training images, or the first P percent"),
    CLI_ROW_NET,
    {.name = "json", .type = CLI_FLAG, .help = "print the summary as JSON"},
};

static const cli_group group = {"Options", options, sizeof options / sizeof *options};

typedef struct outcome {
    const char *folder, *engine;
    latent_features_info info;
    double read_seconds, seconds;
} outcome;

static void fill(cli_json *json, void *user) {
    const outcome *o = user;
    cli_json_string(json, "features", o->folder);
    cli_json_string(json, "format", o->info.format == LATENT_RAW ? "raw" : "npy");
    cli_json_string(json, "engine", o->engine);
    cli_json_string(json, "weights", o->info.weights);
    cli_json_string(json, "data", o->info.data);
    cli_json_integer(json, "train", (uint64_t)o->info.count[LATENT_TRAIN]);
    cli_json_integer(json, "test", (uint64_t)o->info.count[LATENT_TEST]);
    cli_json_integer(json, "width", (uint64_t)o->info.width);
    cli_json_boolean(json, "flip", o->info.flip);
    cli_json_boolean(json, "standardize", o->info.standardize);
    cli_json_boolean(json, "l2", o->info.l2);
    cli_json_string(json, "scaling", o->info.scaling[0] ? o->info.scaling : NULL);
    cli_json_number(json, "read_seconds", o->read_seconds);
    cli_json_number(json, "compute_seconds", o->info.compute_seconds);
    cli_json_number(json, "copy_seconds", o->info.copy_seconds);
    cli_json_number(json, "write_seconds", o->info.write_seconds);
    cli_json_number(json, "seconds", o->seconds);
}

static void print(const outcome *o) {
    char text[96];
    cli_table table = cli_table_new("ll");
    cli_table_cell(&table, "folder");
    cli_table_cell(&table, "%s", o->folder);
    cli_table_cell(&table, "images");
    cli_table_cell(&table, "%s training, %s test", cli_count((uint64_t)o->info.count[LATENT_TRAIN]).s,
                   cli_count((uint64_t)o->info.count[LATENT_TEST]).s);
    cli_table_cell(&table, "rows");
    cli_table_cell(&table, "%s", cli_features_text(&o->info, text, sizeof text));
    if (o->info.scaling[0]) {
        cli_table_cell(&table, "scaling");
        cli_table_cell(&table, "%s", o->info.scaling);
    }
    cli_table_cell(&table, "time");
    cli_table_cell(&table, "%s: read %s, compute %s, copy %s, write %s", cli_duration(o->seconds).s,
                   cli_duration(o->read_seconds).s, cli_duration(o->info.compute_seconds).s,
                   cli_duration(o->info.copy_seconds).s, cli_duration(o->info.write_seconds).s);
    cli_table_print(&table, stdout, "");
}

static int run_features(cli_session *session, const cli_arguments *arguments) {
    const char *path = arguments->operands[0], *given = cli_string(arguments, "out");
    latent_engine_options engine = cli_engine(arguments);
    latent_features_options wanted;
    latent_model *model = NULL;
    latent_dataset *data = NULL;
    outcome o = {0};
    char *folder = given ? strdup(given) : cli_join(cli_is_folder(path) ? path : ".", "features");
    cli_need_memory(folder);
    double began = cli_clock();
    int code = cli_features_settle(arguments, &wanted);
    wanted.scaling = cli_string(arguments, "scaling");
    if (code == CLI_OK && wanted.scaling && !wanted.standardize) {
        code =
            cli_usage(arguments->command, "--scaling is what to standardize by, and these features are not "
                                          "to be standardized: leave out one");
    }
    if (code == CLI_OK) {
        code = cli_load_pair(session, arguments, path, &engine, &model, &data);
    }
    if (code == CLI_OK) {
        code = cli_subset(arguments, data, &wanted.subset);
    }
    if (code == CLI_OK) {
        o.read_seconds = cli_clock() - began;
        o.folder = folder;
        o.engine = latent_model_engine(model);
        cli_note(session, "engine  %s", o.engine);
        wanted.format = strcmp(cli_string(arguments, "format"), "raw") == 0 ? LATENT_RAW : LATENT_NPY;
        wanted.progress = cli_features_progress;
        wanted.user = session;
        code =
            cli_status(session, latent_features_extract(session->ctx, model, data, &wanted, folder, &o.info));
        cli_progress_clear(&session->progress);
        o.seconds = cli_clock() - began;
    }
    if (code == CLI_OK && cli_flag(arguments, "json")) {
        cli_record_print(fill, &o);
    } else if (code == CLI_OK) {
        print(&o);
    }
    free(folder);
    latent_dataset_destroy(data);
    latent_model_destroy(model);
    return code;
}

const cli_command cli_command_features = {
    .name = "features",
    .summary = "write the features that a model's encoder gives",
    .operands = "RUN_OR_MODEL",
    .operands_min = 1,
    .operands_max = 1,
    .about =
        "Runs the encoder, up to the net's latent line, over both splits of a data set and writes train.npy "
        "and test.npy: float32, a row per image in the order of the data, channels outermost (CHW), as "
        "PyTorch flattens them. train_labels.npy and test_labels.npy hold the labels, scaling.safetensors "
        "the mean and deviation of the training rows.\nThe steps are done in the order flip, standardize, "
        "l2. Memory stays bounded: rows go through in chunks; training rows that must wait for their mean "
        "are kept up to 4 GiB and computed twice beyond.\nA classifier that was trained on standardized "
        "features understands new images only if these are standardized by the same numbers: that is what "
        "--scaling is for.",
    .examples = "latent features runs/mine\nlatent features model.safetensors --raw-features --format raw "
                "--out features\n"
                "latent features runs/mine --data new --scaling runs/mine/features --out new/features\n"
                "latent svm predict runs/mine/svm/model.safetensors new/features",
    .groups = {&group, &cli_features_group, &cli_engine_group, &cli_quiet_group},
    .run = run_features,
};
