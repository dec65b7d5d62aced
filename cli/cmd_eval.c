/* cmd_eval.c: `latent eval`: the loss of a model over a split of a data set. */
#include "cli.h"
#include "format.h"
#include "json.h"
#include "table.h"

#include <math.h>
#include <string.h>

static const cli_option options[] = {
    {.name = "data",
     .letter = 'd',
     .value = "DIR",
     .type = CLI_STRING,
     .otherwise = CLI_DATA_OTHERWISE,
     .help = "data set"},
    {.name = "split",
     .value = "NAME",
     .type = CLI_CHOICE,
     .choices = "train|test",
     .initial = "test",
     .help = "which images"},
    {.name = "net",
     .value = "NET",
     .type = CLI_STRING,
     .otherwise = "what the file says",
     .help = "preset or net file of a weight file that does not name its own"},
    {.name = "json", .type = CLI_FLAG, .help = "print the result as JSON"},
};

static const cli_group group = {"Options", options, sizeof options / sizeof *options};

static double rate(const latent_evaluation *result) {
    return result->seconds > 0 ? result->count / result->seconds : NAN;
}

static void print_json(const char *path, const char *split, const latent_model *model,
                       const latent_evaluation *result) {
    cli_json json = {.out = stdout};
    cli_json_open(&json, NULL, '{');
    cli_json_string(&json, "model", path);
    cli_json_string(&json, "split", split);
    cli_json_string(&json, "engine", latent_model_engine(model));
    cli_json_number(&json, "loss", result->loss);
    cli_json_integer(&json, "images", (uint64_t)result->count);
    cli_json_number(&json, "seconds", result->seconds);
    cli_json_number(&json, "images_per_second", rate(result));
    cli_json_close(&json, '}');
}

static void print_table(const char *split, const latent_evaluation *result) {
    cli_table table = cli_table_new("ll");
    cli_table_cell(&table, "%s loss", split);
    cli_table_cell(&table, "%.8g", result->loss);
    cli_table_cell(&table, "images");
    cli_table_cell(&table, "%s", cli_count((uint64_t)result->count).s);
    cli_table_cell(&table, "time");
    cli_table_cell(&table, "%s", cli_duration(result->seconds).s);
    cli_table_cell(&table, "images/s");
    cli_table_cell(&table, "%s", cli_rate(rate(result)).s);
    cli_table_print(&table, stdout, "");
}

static int run_eval(cli_session *session, const cli_arguments *arguments) {
    const char *path = arguments->operands[0], *split = cli_string(arguments, "split");
    latent_engine_options engine = cli_engine(arguments);
    latent_model *model = NULL;
    latent_dataset *data = NULL;
    latent_evaluation result = {0};
    char *recorded = NULL;
    int code = cli_load_model(session, path, cli_string(arguments, "net"), &engine, &model, &recorded);
    if (code == CLI_OK) {
        code = cli_open_data(session, cli_string(arguments, "data"), recorded, &data);
    }
    if (code == CLI_OK) {
        latent_dataset_info info;
        latent_dataset_get_info(data, &info);
        cli_note(session, "engine  %s", latent_model_engine(model));
        cli_note(session, "data    %s%s", info.path, info.synthetic ? ", synthetic" : "");
        latent_split which = strcmp(split, "train") == 0 ? LATENT_TRAIN : LATENT_TEST;
        code = cli_status(session, latent_model_evaluate(session->ctx, model, data, which, &result));
    }
    if (code == CLI_OK && cli_flag(arguments, "json")) {
        print_json(path, split, model, &result);
    } else if (code == CLI_OK) {
        print_table(split, &result);
    }
    latent_free(recorded);
    latent_dataset_destroy(data);
    latent_model_destroy(model);
    return code;
}

const cli_command cli_command_eval = {
    .name = "eval",
    .summary = "compute the loss of a model on a data set",
    .operands = "RUN_OR_MODEL",
    .operands_min = 1,
    .operands_max = 1,
    .about = "RUN_OR_MODEL is a run folder or a .safetensors file.",
    .examples = "latent eval runs/mine\nlatent eval model.safetensors --data ./data --split train --json",
    .groups = {&group, &cli_engine_group, &cli_quiet_group},
    .run = run_eval,
};
