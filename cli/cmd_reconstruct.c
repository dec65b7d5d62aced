/* cmd_reconstruct.c: `latent reconstruct`: a picture of what a model makes of one image per class. */
#include "cli.h"
#include "format.h"
#include "option_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cli_option options[] = {
    {.name = "out",
     .letter = 'o',
     .value = "FILE.png",
     .type = CLI_STRING,
     .otherwise = "reconstruction.png in the run folder, or here",
     .help = "picture to write"},
    CLI_ROW_DATA(.otherwise = CLI_DATA_OTHERWISE),
    CLI_ROW_SPLIT,
    CLI_ROW_NET,
};

static const cli_group group = {"Options", options, sizeof options / sizeof *options};

static int run_reconstruct(cli_session *session, const cli_arguments *arguments) {
    const char *path = arguments->operands[0], *out = cli_string(arguments, "out");
    latent_engine_options engine = cli_engine(arguments);
    latent_model *model = NULL;
    latent_dataset *data = NULL;
    latent_evaluation result = {0};
    char *picture = out ? strdup(out) : cli_join(cli_is_folder(path) ? path : ".", "reconstruction.png");
    cli_need_memory(picture);
    int code = cli_load_pair(session, arguments, path, &engine, &model, &data);
    if (code == CLI_OK) {
        latent_split split =
            strcmp(cli_string(arguments, "split"), "train") == 0 ? LATENT_TRAIN : LATENT_TEST;
        cli_note(session, "engine  %s", latent_model_engine(model));
        code = cli_status(session, latent_model_picture(session->ctx, model, data, split, picture, &result));
    }
    if (code == CLI_OK) {
        printf("picture             %s\n", picture);
        printf("mean squared error  %.8g over %s images\n", result.loss, cli_count((uint64_t)result.count).s);
    }
    free(picture);
    latent_dataset_destroy(data);
    latent_model_destroy(model);
    return code;
}

const cli_command cli_command_reconstruct = {
    .name = "reconstruct",
    .summary = "write a picture of originals and reconstructions",
    .operands = "RUN_OR_MODEL",
    .operands_min = 1,
    .operands_max = 1,
    .about =
        "The PNG has a column per class and three rows: the original, the reconstruction and three times "
        "their difference. RUN_OR_MODEL is a run folder or a .safetensors file.",
    .examples =
        "latent reconstruct runs/mine\nlatent reconstruct model.safetensors --out picture.png --data ./data",
    .groups = {&group, &cli_engine_group, &cli_quiet_group},
    .run = run_reconstruct,
};
