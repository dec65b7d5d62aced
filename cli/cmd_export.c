/* cmd_export.c: `latent export` and `latent import`: weights between our model files and the formats of
 * others. Nothing is computed, so the host backend holds the weights on the way.
 */
#include "cli.h"
#include "format.h"
#include "option_rows.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define FORMAT_ROW                                                                                           \
    {                                                                                                        \
        .name = "format", .letter = 'f', .value = "NAME", .type = CLI_CHOICE,                                \
        .choices = "safetensors|ae2024",                                                                     \
        .otherwise = "by the ending: .safetensors, or .bin, .ae2024, .weights", .help = "format of FILE"     \
    }

static const cli_option export_options[] = {
    FORMAT_ROW,
    CLI_ROW_NET,
};

static const cli_option import_options[] = {
    {.name = "out",
     .letter = 'o',
     .value = "MODEL.safetensors",
     .type = CLI_STRING,
     .help = "model file to write; required"},
    {.name = "net",
     .value = "NET",
     .type = CLI_STRING,
     .initial = "autoencoder",
     .help = "preset or net file that the weights belong to"},
    FORMAT_ROW,
};

static const cli_group export_group = {"Options", export_options,
                                       sizeof export_options / sizeof *export_options};
static const cli_group import_group = {"Options", import_options,
                                       sizeof import_options / sizeof *import_options};

/* --format, or what the file's ending says. Returns an exit code. */
static int find_format(const cli_arguments *arguments, const char *path, latent_weight_format *out) {
    static const struct {
        const char *ending;
        latent_weight_format format;
    } endings[] = {{".safetensors", LATENT_SAFETENSORS},
                   {".bin", LATENT_AE2024},
                   {".ae2024", LATENT_AE2024},
                   {".weights", LATENT_AE2024}};
    const char *name = cli_string(arguments, "format");
    if (name) {
        *out = strcmp(name, "ae2024") == 0 ? LATENT_AE2024 : LATENT_SAFETENSORS;
        return CLI_OK;
    }
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t length = strlen(path), tail = strlen(endings[i].ending);
        if (length > tail && strcasecmp(path + length - tail, endings[i].ending) == 0) {
            *out = endings[i].format;
            return CLI_OK;
        }
    }
    return cli_usage(arguments->command,
                     "the ending of %s does not tell its format; say --format safetensors or --format ae2024",
                     path);
}

static void say_written(const char *path, latent_model *model) {
    latent_net_info info;
    latent_net_get_info(latent_model_net(model), &info);
    printf("wrote %s: %s, %s parameters in %d tensors\n", path, info.name, cli_count(info.parameters).s,
           latent_model_tensor_count(model));
}

static int run_export(cli_session *session, const cli_arguments *arguments) {
    const char *from = arguments->operands[0], *to = arguments->operands[1];
    latent_engine_options engine = cli_host_engine();
    latent_weight_format format = LATENT_SAFETENSORS;
    latent_model *model = NULL;
    int code = find_format(arguments, to, &format);
    if (code == CLI_OK) {
        code = cli_load_model(session, from, cli_string(arguments, "net"), &engine, &model, NULL);
    }
    if (code == CLI_OK) {
        code = cli_status(session, latent_model_export(session->ctx, model, to, format));
    }
    if (code == CLI_OK) {
        say_written(to, model);
    }
    latent_model_destroy(model);
    return code;
}

static int run_import(cli_session *session, const cli_arguments *arguments) {
    const char *from = arguments->operands[0], *to = cli_string(arguments, "out");
    latent_engine_options engine = cli_host_engine();
    latent_weight_format format = LATENT_SAFETENSORS;
    latent_net *net = NULL;
    latent_model *model = NULL;
    latent_status status = LATENT_OK;
    if (!to) {
        return cli_usage(arguments->command,
                         "--out is missing: --out MODEL.safetensors names the file to write");
    }
    int code = find_format(arguments, from, &format);
    if (code != CLI_OK) {
        return code;
    }
    status = latent_net_load(session->ctx, cli_string(arguments, "net"), &net);
    if (status == LATENT_OK) {
        status = latent_model_create(session->ctx, net, &engine, 1, &model);
    }
    if (status == LATENT_OK) {
        status = latent_model_import(session->ctx, model, from, format);
    }
    if (status == LATENT_OK) {
        status = latent_model_export(session->ctx, model, to, LATENT_SAFETENSORS);
    }
    if (status == LATENT_OK) {
        say_written(to, model);
    }
    latent_model_destroy(model);
    latent_net_destroy(net);
    return cli_status(session, status);
}

const cli_command cli_command_export = {
    .name = "export",
    .summary = "write the weights of a model in another format",
    .operands = "RUN_OR_MODEL FILE",
    .operands_min = 2,
    .operands_max = 2,
    .about =
        "safetensors loads into a PyTorch module with the same names. ae2024 is the plain file of the "
        "autoencoder's five convolutions: the magic number 0xAE2024, a version, then float32 weights and "
        "biases.",
    .examples = "latent export runs/mine weights.bin\nlatent export runs/mine weights.safetensors",
    .groups = {&export_group},
    .run = run_export,
};

const cli_command cli_command_import = {
    .name = "import",
    .summary = "make a model file from weights in another format",
    .operands = "FILE",
    .operands_min = 1,
    .operands_max = 1,
    .about = "The model file names its net, so that the other commands take it without --net.",
    .examples = "latent import weights.bin --out model.safetensors\n"
                "latent import weights.safetensors --net my.net --out model.safetensors",
    .groups = {&import_group},
    .run = run_import,
};
