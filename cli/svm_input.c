/* svm_input.c: features and labels for `latent svm`, from wherever they lie. */
#include "feature_job.h"
#include "option_rows.h"
#include "svm_job.h"

#include <stdlib.h>
#include <string.h>

static const cli_option options[] = {
    {.name = "labels",
     .letter = 'l',
     .value = "FILE",
     .type = CLI_STRING,
     .otherwise = "those of the text or the folder",
     .help = "labels: an .npy array, or one whole number a line"},
    {.name = "data",
     .letter = 'd',
     .value = "DIR",
     .type = CLI_STRING,
     .otherwise = "none",
     .help = "take the labels of this data set"},
    {.name = "split",
     .value = "NAME",
     .type = CLI_CHOICE,
     .choices = "train|test",
     .otherwise = "train to train, test to predict",
     .help = "which rows of a folder, which labels of a data set"},
    CLI_ROW_SUBSET(.help = "only the first N rows, or the first P percent"),
    {.name = "columns",
     .value = "N",
     .type = CLI_INT,
     .min = 1,
     .max = 1 << 30,
     .otherwise = "as many as there are, or as the model has",
     .help = "width of the rows: sparse text does not say it where the last columns are all 0"},
};

const cli_group cli_svm_input_group = {"Input", options, sizeof options / sizeof *options};

void cli_svm_input_free(cli_svm_input *input) {
    free(input->path);
    free(input->labels_path);
    latent_rows_free(&input->rows);
    latent_free(input->own_labels);
    memset(input, 0, sizeof *input);
}

/* The labels of a data set's split. */
static int read_set(cli_session *session, const char *folder, latent_split split, cli_svm_input *out,
                    size_t *count) {
    latent_dataset *data = NULL;
    latent_dataset_info info;
    int code = cli_open_data(session, folder, NULL, &data);
    if (code == CLI_OK) {
        latent_dataset_get_info(data, &info);
        const uint8_t *labels = latent_dataset_labels(data, split);
        *count = (size_t)info.count[split];
        out->own_labels = malloc((*count + 1) * sizeof *out->own_labels);
        cli_need_memory(out->own_labels);
        for (size_t i = 0; i < *count; i++) {
            out->own_labels[i] = labels[i];
        }
    }
    latent_dataset_destroy(data);
    return code;
}

/* --labels, --data, or the file that 'latent features' put beside the features. */
static int read_labels(cli_session *session, const cli_arguments *arguments, const char *folder,
                       latent_split split, cli_svm_input *out) {
    const char *file = cli_string(arguments, "labels"), *set = cli_string(arguments, "data");
    char *beside = NULL;
    size_t count = 0;
    int code = CLI_OK;
    if (file && set) {
        return cli_usage(arguments->command, "--labels names a file and --data a set of labels: give one");
    }
    if (folder && !file && !set) {
        code = cli_status(session, latent_features_path(session->ctx, folder, split, 1, LATENT_NPY, &beside));
        file = beside;
    }
    if (code == CLI_OK && file) {
        code = cli_status(session, latent_labels_read(session->ctx, file, &out->own_labels, &count));
    } else if (code == CLI_OK && set) {
        code = read_set(session, set, split, out, &count);
    }
    if (code == CLI_OK && out->own_labels && count != out->rows.n) {
        code = cli_fail(session, "%s: %zu labels for the %zu rows of %s; there must be one for each",
                        file ? file : set, count, out->rows.n, out->path);
    }
    if (out->own_labels) {
        out->labels_path = strdup(file ? file : set);
        cli_need_memory(out->labels_path);
    }
    latent_free(beside);
    return code;
}

static int read_rows(cli_session *session, size_t given, const latent_svm_info *model, cli_svm_input *out) {
    size_t columns = given ? given : model && !model->open_width ? model->d : 0;
    int code = cli_status(session, latent_rows_read(session->ctx, out->path, columns, &out->rows));
    /* LIBSVM's text says only how far its values reach; sparse rows that reach less far are filled up. */
    if (code == CLI_OK && !given && model && out->rows.d < model->d) {
        latent_rows_free(&out->rows);
        code = cli_status(session, latent_rows_read(session->ctx, out->path, model->d, &out->rows));
    }
    return code;
}

int cli_svm_read(cli_session *session, const cli_arguments *arguments, const char *operand,
                 latent_split split, int needs_labels, const latent_svm_info *model, cli_svm_input *out) {
    const char *named = cli_string(arguments, "split");
    const cli_value *subset = cli_get(arguments, "subset");
    const char *folder = cli_is_folder(operand) ? operand : NULL;
    char *path = NULL;
    int code = CLI_OK;
    split = !named ? split : strcmp(named, "train") == 0 ? LATENT_TRAIN : LATENT_TEST;
    if (folder) {
        code = cli_features_file(session, folder, split, &path);
    }
    if (code == CLI_OK) {
        out->path = strdup(path ? path : operand);
        cli_need_memory(out->path);
        code = read_rows(session, (size_t)cli_get(arguments, "columns")->integer, model, out);
    }
    latent_free(path);
    if (code == CLI_OK) {
        code = read_labels(session, arguments, folder, split, out);
    }
    out->labels = out->own_labels ? out->own_labels : out->rows.labels;
    if (code == CLI_OK && needs_labels && !out->labels) {
        code = cli_usage(arguments->command, "%s has no labels: give --labels FILE or --data DIR", out->path);
    }
    out->x = out->rows.x;
    out->n = out->rows.n;
    out->d = out->rows.d;
    if (code == CLI_OK && subset->given) {
        size_t wanted =
            subset->real > 0 ? (size_t)(subset->real / 100 * (double)out->n + 0.5) : (size_t)subset->integer;
        out->n = wanted < 1 ? 1 : wanted < out->n ? wanted : out->n;
    }
    return code;
}

int cli_svm_status(cli_session *session, const cli_svm_input *input, latent_status status) {
    if (status != LATENT_ERROR_NUMERIC && status != LATENT_ERROR_ARGUMENT) {
        return cli_status(session, status);
    }
    const char *labels = input->labels_path;
    cli_fail(session, "%s%s%s: %s", input->path, labels ? " with the labels of " : "", labels ? labels : "",
             latent_context_message(session->ctx));
    return status == LATENT_ERROR_ARGUMENT ? CLI_USAGE : CLI_FAILED;
}
