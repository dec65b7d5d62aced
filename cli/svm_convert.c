/* svm_convert.c: `latent svm convert`: features between NumPy's arrays and LIBSVM's sparse text. */
#include "format.h"
#include "svm_job.h"

#include <string.h>

static const cli_option options[] = {
    {.name = "format",
     .value = "NAME",
     .type = CLI_CHOICE,
     .choices = "libsvm|npy",
     .otherwise = "npy for OUT.npy, else libsvm",
     .help = "what to write: sparse text with labels, or an array without"},
};

static const cli_group group = {"Options", options, sizeof options / sizeof *options};

static int run(cli_session *session, const cli_arguments *arguments) {
    const char *out = arguments->operands[1], *format = cli_string(arguments, "format");
    size_t length = strlen(out);
    int npy = format ? strcmp(format, "npy") == 0 : length > 4 && strcmp(out + length - 4, ".npy") == 0;
    cli_svm_input input = {0};
    int code = cli_svm_read(session, arguments, arguments->operands[0], LATENT_TRAIN, !npy, NULL, &input);
    if (code == CLI_OK) {
        code = cli_status(session, latent_rows_write(session->ctx, out, input.x, input.n, input.d,
                                                     npy ? NULL : input.labels));
    }
    if (code == CLI_OK && npy && input.rows.labels && !cli_get(arguments, "columns")->given) {
        cli_note(
            session,
            "%s reaches up to column %s; sparse text does not say how wide its rows are: with --columns N "
            "they have N",
            input.path, cli_count(input.d).s);
    }
    if (code == CLI_OK) {
        printf("wrote %s: %s rows of %s features%s\n", out, cli_count(input.n).s, cli_count(input.d).s,
               npy ? "" : " with their labels");
    }
    cli_svm_input_free(&input);
    return code;
}

const cli_command cli_command_svm_convert = {
    .name = "svm convert",
    .summary = "turn features into LIBSVM's sparse text, or back",
    .operands = "FEATURES OUT",
    .operands_min = 2,
    .operands_max = 2,
    .about =
        "FEATURES is an .npy array, LIBSVM's sparse text, or a folder that 'latent features' made. Text "
        "holds a label for each row; an array has none. Text leaves zeros out, so it does not say how wide "
        "rows are: --columns does.",
    .examples = "latent svm convert runs/mine/features train.txt\nlatent svm convert train.txt train.npy "
                "--columns 8192",
    .groups = {&group, &cli_svm_input_group, &cli_quiet_group},
    .run = run,
};
