/* svm_predict.c: `latent svm predict`. */
#include "format.h"
#include "record.h"
#include "svm_job.h"
#include "table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const cli_option options[] = {
    {.name = "out",
     .letter = 'o',
     .value = "FILE",
     .type = CLI_STRING,
     .otherwise = "no file",
     .help = "write a label a line; /dev/stdout prints them"},
    {.name = "probability",
     .type = CLI_FLAG,
     .help =
         "write the probability of each class beside the label, in the layout of svm-predict -b 1; the label "
         "stays that of the votes, where svm-predict gives the most probable class"},
    {.name = "decisions",
     .type = CLI_FLAG,
     .help = "write the decision value of each pair of classes beside the label"},
    {.name = "json", .type = CLI_FLAG, .help = "print the result as JSON"},
};

static const cli_group group = {"Options", options, sizeof options / sizeof *options};

typedef struct outcome {
    const char *model;
    latent_svm_info info;
    const cli_svm_input *input;
    int32_t *labels;
    double *values; /* probabilities or decisions, or NULL */
    size_t width;   /* of values */
    int probability;
    size_t right;
    double read_seconds, predict_seconds;
} outcome;

static double accuracy(const outcome *o) {
    return o->input->labels ? (double)o->right / (double)o->input->n : NAN;
}

static void fill(cli_json *json, void *user) {
    const outcome *o = user;
    cli_json_string(json, "model", o->model);
    cli_json_string(json, "engine", o->info.engine);
    cli_json_integer(json, "rows", o->input->n);
    cli_json_number(json, "accuracy", accuracy(o));
    if (o->input->labels) {
        cli_json_integer(json, "correct", o->right);
    }
    cli_json_number(json, "read_seconds", o->read_seconds);
    cli_json_number(json, "predict_seconds", o->predict_seconds);
}

/* Beside labels on stdout it would be taken for one of them. */
static void print(const outcome *o, const char *out) {
    cli_table table = cli_table_new("ll");
    if (o->input->labels) {
        cli_table_cell(&table, "accuracy");
        cli_table_cell(&table, "%.2f%% (%s of %s)", 100 * accuracy(o), cli_count(o->right).s,
                       cli_count(o->input->n).s);
    }
    cli_table_cell(&table, "rows");
    cli_table_cell(&table, "%s", cli_count(o->input->n).s);
    if (out) {
        cli_table_cell(&table, "predictions");
        cli_table_cell(&table, "%s", out);
    }
    cli_table_cell(&table, "time");
    cli_table_cell(&table, "%s", cli_duration(o->predict_seconds).s);
    cli_table_print(&table, out && cli_is_stdout(out) ? stderr : stdout, "");
}

static void put_lines(FILE *out, void *user) {
    const outcome *o = user;
    if (o->probability) {
        fputs("labels", out);
        for (int c = 0; c < o->info.classes; c++) {
            fprintf(out, " %d", o->info.labels[c]);
        }
        fputc('\n', out);
    }
    for (size_t i = 0; i < o->input->n; i++) {
        fprintf(out, "%d", o->labels[i]);
        for (size_t c = 0; c < o->width; c++) {
            fprintf(out, " %.9g", o->values[i * o->width + c]);
        }
        fputc('\n', out);
    }
}

static int predict(cli_session *session, const cli_arguments *arguments, latent_svm *svm, outcome *o) {
    const cli_svm_input *input = o->input;
    int decisions = cli_flag(arguments, "decisions");
    o->probability = cli_flag(arguments, "probability");
    o->width = o->probability ? (size_t)o->info.classes : decisions ? (size_t)o->info.pairs : 0;
    o->labels = malloc((input->n + 1) * sizeof *o->labels);
    o->values = o->width ? malloc(input->n * o->width * sizeof *o->values) : NULL;
    if (!o->labels || (o->width && !o->values)) {
        return cli_fail(session, "no memory for the values of %zu rows", input->n);
    }
    double begun = cli_clock();
    int code =
        cli_svm_status(session, input,
                       latent_svm_predict(session->ctx, svm, input->x, input->n, input->d, o->labels,
                                          decisions ? o->values : NULL, o->probability ? o->values : NULL));
    o->predict_seconds = cli_clock() - begun;
    for (size_t i = 0; code == CLI_OK && input->labels && i < input->n; i++) {
        o->right += o->labels[i] == input->labels[i];
    }
    return code;
}

/* Options that contradict each other, and a file that could not be written. */
static int check(cli_session *session, const cli_arguments *arguments) {
    const char *out = cli_string(arguments, "out");
    if (cli_flag(arguments, "probability") && cli_flag(arguments, "decisions")) {
        return cli_usage(arguments->command, "--probability and --decisions go beside the labels: give one");
    }
    if ((cli_flag(arguments, "probability") || cli_flag(arguments, "decisions")) && !out) {
        return cli_usage(arguments->command, "--probability and --decisions go into a file: give --out FILE");
    }
    if (out && cli_flag(arguments, "json") && cli_is_stdout(out)) {
        return cli_usage(arguments->command, "--json and --out %s would both be printed: name a file", out);
    }
    return out ? cli_file_check(session, out) : CLI_OK;
}

static int run(cli_session *session, const cli_arguments *arguments) {
    const char *out = cli_string(arguments, "out");
    latent_engine_options engine = cli_engine(arguments);
    latent_svm *svm = NULL;
    cli_svm_input input = {0};
    outcome o = {.model = arguments->operands[0], .input = &input};
    double begun = cli_clock();
    int code = check(session, arguments);
    if (code == CLI_OK) {
        code = cli_status(session, latent_svm_load(session->ctx, o.model, &engine, &svm));
    }
    if (code == CLI_OK) {
        latent_svm_get_info(svm, &o.info);
        cli_note(session, "engine  %s", o.info.engine);
        code = cli_svm_read(session, arguments, arguments->operands[1], LATENT_TEST, out == NULL, &o.info,
                            &input);
    }
    o.read_seconds = cli_clock() - begun;
    if (code == CLI_OK) {
        code = predict(session, arguments, svm, &o);
    }
    if (code == CLI_OK && out) {
        code = cli_file_save(session, out, put_lines, &o);
    }
    if (code == CLI_OK && cli_flag(arguments, "json")) {
        cli_record_print(fill, &o);
    } else if (code == CLI_OK) {
        print(&o, out);
    }
    free(o.labels);
    free(o.values);
    cli_svm_input_free(&input);
    latent_svm_destroy(svm);
    return code;
}

const cli_command cli_command_svm_predict = {
    .name = "svm predict",
    .summary = "predict the labels of features",
    .operands = "MODEL FEATURES",
    .operands_min = 2,
    .operands_max = 2,
    .about = "MODEL is a file of 'latent svm train' or of LIBSVM's svm-train. FEATURES is an .npy array, "
             "LIBSVM's sparse text, or a folder that 'latent features' made. Where labels are known the "
             "accuracy is printed; 'latent eval' has the confusion matrix.",
    .examples = "latent svm predict svm.model runs/mine/features\n"
                "latent svm predict my.model x.npy --out predicted.txt",
    .groups = {&group, &cli_svm_input_group, &cli_engine_group, &cli_quiet_group},
    .run = run,
};
