/* cmd_info.c: `latent info`: this build (backends, presets), or the layers of a net, a run or a model in the
 * spirit of Keras' summary.
 */
#include "cli.h"
#include "format.h"
#include "json.h"
#include "table.h"

#include <stdio.h>
#include <string.h>

static const cli_option options[] = {
    {.name = "batch",
     .letter = 'b',
     .value = "N",
     .type = CLI_INT,
     .min = 1,
     .max = 65536,
     .otherwise = "the recipe's",
     .help = "batch for which activation memory is counted"},
    {.name = "json", .type = CLI_FLAG, .help = "print as JSON"},
};

static const cli_group group = {"Options", options, sizeof options / sizeof *options};

static void build_json(cli_session *session) {
    cli_json json = {.out = stdout};
    latent_backend_info backend;
    cli_json_open(&json, NULL, '{');
    cli_json_string(&json, "version", latent_version());
    cli_json_open(&json, "backends", '[');
    for (int i = 0; latent_backend_get_info(i, &backend); i++) {
        cli_json_open(&json, NULL, '{');
        cli_json_string(&json, "name", backend.name);
        cli_json_string(&json, "summary", backend.summary);
        cli_json_boolean(&json, "available", backend.available);
        cli_json_string(&json, "detail", backend.detail);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_open(&json, "presets", '[');
    for (int i = 0; latent_preset_name(i); i++) {
        latent_net *net = NULL;
        latent_net_info info;
        if (cli_status(session, latent_net_load(session->ctx, latent_preset_name(i), &net)) == CLI_OK) {
            latent_net_get_info(net, &info);
            cli_json_open(&json, NULL, '{');
            cli_json_string(&json, "name", latent_preset_name(i));
            cli_json_integer(&json, "parameters", info.parameters);
            cli_json_close(&json, '}');
        }
        latent_net_destroy(net);
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
}

static int build_text(cli_session *session) {
    latent_backend_info backend;
    printf("latent %s\n\nBackends, best first\n", latent_version());
    cli_table table = cli_table_new("lll");
    for (int i = 0; latent_backend_get_info(i, &backend); i++) {
        cli_table_cell(&table, "%s", backend.name);
        cli_table_cell(&table, "%s", backend.available ? "available" : "not here");
        cli_table_cell(&table, "%s%s%s%s", backend.summary, backend.detail[0] ? " (" : "", backend.detail,
                       backend.detail[0] ? ")" : "");
    }
    cli_table_print(&table, stdout, "  ");
    printf("\nPresets\n");
    table = cli_table_new("lrll");
    int code = CLI_OK;
    for (int i = 0; latent_preset_name(i) && code == CLI_OK; i++) {
        latent_net *net = NULL;
        latent_net_info info;
        code = cli_status(session, latent_net_load(session->ctx, latent_preset_name(i), &net));
        if (code == CLI_OK) {
            latent_net_get_info(net, &info);
            cli_table_cell(&table, "%s", latent_preset_name(i));
            cli_table_cell(&table, "%s parameters", cli_count(info.parameters).s);
            cli_table_cell(&table, "input %s", cli_shape(info.input).s);
            cli_table_cell(&table, info.latent[0] ? "latent %s" : "%s",
                           info.latent[0] ? cli_shape(info.latent).s : "-");
        }
        latent_net_destroy(net);
    }
    cli_table_print(&table, stdout, "  ");
    return code;
}

/* Per image, over all layers. */
static uint64_t activation_bytes(const latent_net *net) {
    uint64_t total = 0;
    for (int i = 0; i < latent_net_layer_count(net); i++) {
        latent_layer_info layer;
        latent_net_get_layer(net, i, &layer);
        total += layer.activation_bytes;
    }
    return total;
}

static void net_json(const latent_net *net, int batch) {
    latent_net_info info;
    latent_net_get_info(net, &info);
    cli_json json = {.out = stdout};
    cli_json_open(&json, NULL, '{');
    cli_json_string(&json, "name", info.name);
    cli_json_integer(&json, "parameters", info.parameters);
    cli_json_integer(&json, "multiply_adds", info.macs);
    cli_json_integer(&json, "batch", (uint64_t)batch);
    cli_json_integer(&json, "activation_bytes", (uint64_t)batch * activation_bytes(net));
    cli_json_ints(&json, "input", info.input, 3);
    cli_json_ints(&json, "latent", info.latent, info.latent[0] ? 3 : 0);
    cli_json_open(&json, "layers", '[');
    for (int i = 0; i < latent_net_layer_count(net); i++) {
        latent_layer_info layer;
        latent_net_get_layer(net, i, &layer);
        cli_json_open(&json, NULL, '{');
        cli_json_string(&json, "name", layer.name);
        cli_json_string(&json, "kind", layer.kind);
        cli_json_string(&json, "description", layer.description);
        cli_json_ints(&json, "output", layer.output, 3);
        cli_json_integer(&json, "parameters", layer.parameters);
        cli_json_integer(&json, "multiply_adds", layer.macs);
        cli_json_integer(&json, "activation_bytes", (uint64_t)batch * layer.activation_bytes);
        cli_json_boolean(&json, "latent", layer.latent);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
}

static void layer_row(cli_table *table, const latent_layer_info *layer, int batch) {
    int values = layer->output[0] * layer->output[1] * layer->output[2];
    cli_table_cell(table, "%s", layer->name);
    cli_table_cell(table, "%s", layer->kind);
    cli_table_cell(table, "%s", layer->description);
    cli_table_cell(table, "%s", cli_shape(layer->output).s);
    cli_table_cell(table, "%s", cli_count(layer->parameters).s);
    cli_table_cell(table, "%s", cli_count(layer->macs).s);
    cli_table_cell(table, "%s", cli_bytes((uint64_t)batch * layer->activation_bytes).s);
    if (layer->latent) {
        cli_table_cell(table, "<- latent, %s features", cli_count((uint64_t)values).s);
    } else {
        cli_table_cell(table, "%s", "");
    }
}

static void net_text(const latent_net *net, const latent_recipe *recipe, int batch) {
    static const char *const titles[] = {"layer", "kind", "details", "output", "parameters", "multiply-adds"};
    latent_net_info info;
    latent_net_get_info(net, &info);
    cli_table table = cli_table_new("llllrrrl");
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        cli_table_cell(&table, "%s", titles[i]);
    }
    cli_table_cell(&table, "batch of %d", batch);
    cli_table_cell(&table, "%s", "");
    cli_table_rule(&table);
    for (int i = 0; i < latent_net_layer_count(net); i++) {
        latent_layer_info layer;
        latent_net_get_layer(net, i, &layer);
        layer_row(&table, &layer, batch);
    }
    cli_table_rule(&table);
    const char *blank = "";
    cli_table_cell(&table, "total");
    for (int i = 0; i < 3; i++) {
        cli_table_cell(&table, "%s", blank);
    }
    cli_table_cell(&table, "%s", cli_count(info.parameters).s);
    cli_table_cell(&table, "%s", cli_count(info.macs).s);
    cli_table_cell(&table, "%s", cli_bytes((uint64_t)batch * activation_bytes(net)).s);
    cli_table_cell(&table, "%s", blank);
    printf("%s\n\n", info.name);
    cli_table_print(&table, stdout, "");
    printf("\nmultiply-adds: one image, forward; batch of %d: activations in fp32\n", batch);
    printf("weights %s; recipe: %d epoch%s, batch %d, %s, %s, lr %g\n", cli_bytes(4 * info.parameters).s,
           recipe->epochs, recipe->epochs == 1 ? "" : "s", recipe->batch,
           latent_optimizer_name(recipe->optimizer), latent_schedule_name(recipe->schedule), recipe->lr);
}

static int ends_with(const char *text, const char *ending) {
    size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && strcmp(text + length - tail, ending) == 0;
}

static void show_net(const cli_arguments *arguments, const latent_net *net, const latent_recipe *recipe) {
    const cli_value *batch = cli_get(arguments, "batch");
    int images = batch->given ? (int)batch->integer : recipe->batch;
    if (cli_flag(arguments, "json")) {
        net_json(net, images);
    } else {
        net_text(net, recipe, images);
    }
}

static int show_operand(cli_session *session, const cli_arguments *arguments, const char *what) {
    latent_engine_options engine = cli_host_engine();
    latent_train_options train;
    latent_net_info info;
    latent_net *net = NULL;
    latent_model *model = NULL;
    char *data_folder = NULL;
    int run = cli_is_folder(what);
    latent_status status = LATENT_OK;
    if (run) {
        status = latent_run_read(session->ctx, what, &net, &train, &data_folder);
    } else if (ends_with(what, ".safetensors")) {
        status = latent_model_load(session->ctx, what, NULL, &engine, &model);
    } else {
        status = latent_net_load(session->ctx, what, &net);
    }
    if (status == LATENT_OK) {
        const latent_net *shown = model ? latent_model_net(model) : net;
        latent_net_get_info(shown, &info);
        show_net(arguments, shown, run ? &train.recipe : &info.recipe);
    }
    latent_free(data_folder);
    latent_model_destroy(model);
    latent_net_destroy(net);
    return cli_status(session, status);
}

static int run_info(cli_session *session, const cli_arguments *arguments) {
    const char *what = arguments->operands[0];
    if (!what && cli_get(arguments, "batch")->given) {
        return cli_usage(arguments->command, "--batch needs a net, a run or a model to look at");
    }
    if (!what && cli_flag(arguments, "json")) {
        build_json(session);
        return CLI_OK;
    }
    if (!what) {
        return build_text(session);
    }
    return show_operand(session, arguments, what);
}

const cli_command cli_command_info = {
    .name = "info",
    .summary = "show this build, or the layers of a net",
    .operands = "[NET|RUN|MODEL]",
    .operands_max = 1,
    .about =
        "Without an operand: the version, the backends and the presets. NET is a preset or a net file, RUN a "
        "run folder, MODEL a .safetensors file.",
    .examples = "latent info\nlatent info autoencoder --batch 256\nlatent info runs/mine --json",
    .groups = {&group},
    .run = run_info,
};
