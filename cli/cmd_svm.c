/* cmd_svm.c: `latent svm`: support vector machines on features. Each of its commands has a file of its own.
 */
#include "svm_job.h"

static const cli_command *const subcommands[] = {&cli_command_svm_train, &cli_command_svm_predict,
                                                 &cli_command_svm_grid, &cli_command_svm_convert, NULL};

const cli_command cli_command_svm = {
    .name = "svm",
    .summary = "train and use support vector machines on features",
    .operands = "COMMAND",
    .examples = "latent svm train runs/mine/features\nlatent svm predict svm.model runs/mine/features\n"
                "latent svm grid runs/mine/features",
    .subcommands = subcommands,
};
