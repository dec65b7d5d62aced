/* svm_train.c: `latent svm train`. */
#include "format.h"
#include "option_rows.h"
#include "record.h"
#include "svm_job.h"
#include "table.h"

#include <string.h>

static const cli_option options[] = {
    {.name = "out",
     .letter = 'o',
     .value = "FILE",
     .type = CLI_STRING,
     .initial = "svm.model",
     .help = "model file to write"},
    {.name = "format",
     .value = "NAME",
     .type = CLI_CHOICE,
     .choices = "safetensors|libsvm",
     .initial = "safetensors",
     .help = "libsvm: the text that svm-predict reads, several times larger"},
    CLI_ROW_C,
    CLI_ROW_GAMMA,
    {.name = "gamma-per-pair", .type = CLI_FLAG, .help = "scale from the rows of each pair, as cuML does"},
    {.name = "probability", .type = CLI_FLAG, .help = "also fit probabilities, by five folds"},
    {.name = "folds",
     .value = "N",
     .type = CLI_INT,
     .min = 0,
     .max = 255,
     .initial = "0",
     .help = "cross-validate with N folds first and print the accuracy"},
    {.name = "json", .type = CLI_FLAG, .help = "print the result as JSON"},
};

static const cli_group group = {"Options", options, sizeof options / sizeof *options};

typedef struct outcome {
    const cli_arguments *arguments;
    const cli_svm_setting *setting;
    const latent_svm *svm;
    latent_svm_report report;
    int folds;
    double accuracy;
} outcome;

static void fill(cli_json *json, void *user) {
    const outcome *o = user;
    const latent_svm_report *r = &o->report;
    cli_json_string(json, "model", cli_string(o->arguments, "out"));
    cli_json_string(json, "engine", r->engine);
    cli_svm_setting_json(json, &o->setting->options, r);
    cli_json_integer(json, "rows", r->n);
    cli_json_integer(json, "columns", r->d);
    cli_svm_report_json(json, r);
    cli_json_number(json, "probability_seconds", r->probability_seconds);
    cli_json_boolean(json, "resident", r->resident);
    if (o->folds > 0) {
        cli_json_integer(json, "folds", (uint64_t)o->folds);
        cli_json_number(json, "cross_validation_accuracy", o->accuracy);
    }
    cli_json_open(json, "pairs", '[');
    for (int p = 0; p < r->pairs; p++) {
        latent_svm_pair pair;
        latent_svm_get_pair(o->svm, p, &pair);
        cli_json_open(json, NULL, '{');
        cli_json_number(json, "first", pair.first);
        cli_json_number(json, "second", pair.second);
        cli_json_integer(json, "rows", pair.rows);
        cli_json_integer(json, "iterations", pair.iterations);
        cli_json_integer(json, "support", pair.support);
        cli_json_integer(json, "bounded", pair.bounded);
        cli_json_number(json, "objective", pair.objective);
        cli_json_number(json, "gap", pair.gap);
        cli_json_number(json, "rho", pair.rho);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void print(const outcome *o) {
    const latent_svm_report *r = &o->report;
    cli_table table = cli_table_new("ll");
    cli_table_cell(&table, "model");
    cli_table_cell(&table, "%s", cli_string(o->arguments, "out"));
    cli_table_cell(&table, "rows");
    cli_table_cell(&table, "%s of %s features, %d classes", cli_count(r->n).s, cli_count(r->d).s, r->classes);
    if (o->folds > 0) {
        cli_table_cell(&table, "cross-validation");
        cli_table_cell(&table, "%.2f%% over %d folds", 100 * o->accuracy, o->folds);
    }
    if (o->setting->options.kernel == LATENT_SVM_RBF) {
        cli_table_cell(&table, "gamma");
        cli_table_cell(&table, "%.6g", r->gamma);
    }
    cli_table_cell(&table, "support vectors");
    cli_table_cell(&table, "%s", cli_count(r->support).s);
    cli_table_cell(&table, "steps");
    cli_table_cell(&table, "%s over %d pairs", cli_count(r->iterations).s, r->pairs);
    cli_table_cell(&table, "largest gap");
    cli_table_cell(&table, "%.3g", r->gap);
    cli_table_cell(&table, "kernel matrix");
    cli_table_cell(&table, "%s, %s", cli_bytes(r->memory).s, r->resident ? "whole" : "in tiles");
    cli_table_cell(&table, "time");
    cli_table_cell(&table, "%s: matrix %s, solver %s", cli_duration(r->seconds).s,
                   cli_duration(r->matrix_seconds).s, cli_duration(r->solve_seconds).s);
    cli_table_print(&table, stdout, "");
}

static int work(cli_session *session, const cli_arguments *arguments, const cli_svm_setting *setting,
                const cli_svm_input *input) {
    latent_engine_options engine = cli_engine(arguments);
    const char *path = cli_string(arguments, "out");
    latent_svm_format format =
        strcmp(cli_string(arguments, "format"), "libsvm") == 0 ? LATENT_SVM_TEXT : LATENT_SVM_SAFETENSORS;
    outcome o = {.arguments = arguments, .setting = setting};
    latent_svm *svm = NULL;
    latent_status status = LATENT_OK;
    o.folds = (int)cli_get(arguments, "folds")->integer;
    if (o.folds > 0) {
        status = latent_svm_cross_validate(session->ctx, input->x, input->n, input->d, input->labels,
                                           &setting->options, o.folds, &engine, NULL, &o.accuracy);
    }
    if (status == LATENT_OK) {
        status = latent_svm_train(session->ctx, input->x, input->n, input->d, input->labels,
                                  &setting->options, &engine, &svm, &o.report);
    }
    cli_progress_clear(&session->progress);
    if (status == LATENT_OK) {
        o.svm = svm;
        cli_note(session, "engine  %s", o.report.engine);
        cli_svm_warn(session, &o.report);
        status = latent_svm_save(session->ctx, svm, path, format);
    }
    int code = cli_svm_status(session, input, status);
    if (code == CLI_OK && cli_flag(arguments, "json")) {
        cli_record_print(fill, &o);
    } else if (code == CLI_OK) {
        print(&o);
    }
    latent_svm_destroy(svm);
    return code;
}

/* What would come to nothing after the training is said before it. */
static int check(cli_session *session, const cli_arguments *arguments) {
    int text = strcmp(cli_string(arguments, "format"), "libsvm") == 0;
    if (text && cli_flag(arguments, "gamma-per-pair")) {
        return cli_usage(arguments->command, "--gamma-per-pair --format libsvm: LIBSVM's model file has one "
                                             "gamma; leave out one of the two");
    }
    if (text && strcmp(cli_string(arguments, "vote"), "libsvm") != 0) {
        return cli_usage(arguments->command,
                         "--vote %s --format libsvm: LIBSVM's model file has no place "
                         "for another vote; leave out one of the two",
                         cli_string(arguments, "vote"));
    }
    return cli_status(session, latent_file_check(session->ctx, cli_string(arguments, "out")));
}

static int run(cli_session *session, const cli_arguments *arguments) {
    cli_svm_setting setting = {0};
    cli_svm_input input = {0};
    int code = cli_svm_settle(session, arguments, &setting);
    if (code == CLI_OK) {
        code = cli_svm_point(arguments, &setting.options);
    }
    if (code == CLI_OK) {
        code = check(session, arguments);
    }
    setting.options.probability = cli_flag(arguments, "probability");
    setting.options.gamma_per_pair = cli_flag(arguments, "gamma-per-pair");
    if (code == CLI_OK && cli_get(arguments, "folds")->integer == 1) {
        code = cli_usage(arguments->command, "--folds 1: it takes 0 for none, or from 2 to 255");
    }
    if (code == CLI_OK) {
        code = cli_svm_read(session, arguments, arguments->operands[0], LATENT_TRAIN, 1, NULL, &input);
    }
    if (code == CLI_OK) {
        code = work(session, arguments, &setting, &input);
    }
    cli_svm_input_free(&input);
    cli_svm_setting_free(&setting);
    return code;
}

const cli_command cli_command_svm_train = {
    .name = "svm train",
    .summary = "train a support vector machine on features",
    .operands = "FEATURES",
    .operands_min = 1,
    .operands_max = 1,
    .about = "FEATURES is an .npy array with a row for each image, LIBSVM's sparse text, or a folder that "
             "'latent features' made.\nThe classifier is LIBSVM's C-SVC, one against one. The kernel matrix "
             "is computed once for all pairs of classes; when it is larger than --cache, rows of it are kept "
             "as long as there is room and computed again when they are needed.",
    .examples = "latent svm train runs/mine/features\n"
                "latent svm train x.npy --labels y.npy -C 10 --out my.model\n"
                "latent svm train x.txt --format libsvm --probability",
    .groups = {&group, &cli_svm_input_group, &cli_svm_problem_group, &cli_svm_solver_group, &cli_engine_group,
               &cli_quiet_group},
    .run = run,
};
