/* cmd_report.c: `latent report`: what is known about one run, or several, as a page to look at. */
#include "cli.h"
#include "option_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cli_option options[] = {
    {.name = "out",
     .letter = 'o',
     .value = "FILE.html",
     .type = CLI_STRING,
     .otherwise = "report.html in the run folder; with several runs, here",
     .help = "page to write"},
    CLI_ROW_LADDER(.help = "what 'latent bench ladder' measured"),
};

static const cli_group group = {"Options", options, sizeof options / sizeof *options};

static int run_report(cli_session *session, const cli_arguments *arguments) {
    const char *out = cli_string(arguments, "out");
    int several = arguments->operand_count > 1;
    char *path = out ? strdup(out) : cli_join(several ? "." : arguments->operands[0], "report.html");
    cli_need_memory(path);
    int code =
        cli_status(session, latent_report_write(session->ctx, arguments->operands, arguments->operand_count,
                                                cli_string(arguments, "ladder"), path));
    if (code == CLI_OK) {
        printf("report  %s\n", path);
    }
    free(path);
    return code;
}

const cli_command cli_command_report = {
    .name = "report",
    .summary = "write a page about a run, or several side by side",
    .operands = "RUN...",
    .operands_min = 1,
    .operands_max = 8,
    .about = "RUN... are up to 8 run folders.\nOne HTML file that loads nothing and needs no script: figures "
             "against the targets, the loss "
             "curve, reconstructions, accuracy by class, the confusion matrix with the pairs confused most, "
             "the time of each stage and kernel, the ladder of engines, the hardware and the command to make "
             "it again. It shows what the run folder holds: 'latent eval RUN' adds scores and pictures, "
             "'latent train --profile' the time of kernels, 'latent bench ladder --out RUN/ladder.json' the "
             "ladder.",
    .examples = "latent report runs/mine\nlatent report runs/a runs/b --out compare.html",
    .groups = {&group, &cli_quiet_group},
    .run = run_report,
};
