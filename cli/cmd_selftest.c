/* cmd_selftest.c: `latent selftest`: is this engine right on this machine? */
#include "cli.h"
#include "json.h"
#include "option_rows.h"
#include "table.h"

#include <string.h>

static const cli_option options[] = {
    {.name = "steps",
     .value = "N",
     .type = CLI_INT,
     .min = 1,
     .max = 1000,
     .initial = "5",
     .help = "training steps before the weights are compared"},
    {.name = "batch",
     .letter = 'b',
     .value = "N",
     .type = CLI_INT,
     .min = 1,
     .max = 4096,
     .initial = "3",
     .help = "images per step there"},
    {.name = "images",
     .value = "N",
     .type = CLI_INT,
     .min = 0,
     .max = 1000000,
     .initial = "10000",
     .help = "images of the epoch whose losses are compared; 0 leaves it out"},
    CLI_ROW_SEED(.help = "of weights and images"),
    {.name = "weights",
     .value = "FILE",
     .type = CLI_STRING,
     .otherwise = "no file",
     .help = "write the weights that both load to this safetensors file, and load them from there"},
    {.name = "json", .type = CLI_FLAG, .help = "print the result as JSON"},
};

static const cli_group group = {"Options", options, sizeof options / sizeof *options};

typedef struct view {
    cli_table table;
    cli_json *json; /* NULL: a table */
    int rows;       /* in the table, below its head */
    int losses;
    const char *other; /* the backend that the losses are compared with */
    double worst;      /* relative difference of the losses */
} view;

static void put_row(view *v, const latent_selftest_row *row, int is_loss) {
    static const char *const heads[] = {"tensor", "difference", "bound", ""};
    for (int i = 0; i < 4 && v->rows == 0; i++) {
        cli_table_cell(&v->table, "%s", heads[i]);
    }
    if (v->rows++ == 0) {
        cli_table_rule(&v->table);
    }
    if (is_loss) {
        cli_table_cell(&v->table, "loss at batch %d", row->step);
    } else {
        cli_table_cell(&v->table, "%s", row->name);
    }
    cli_table_cell(&v->table, "%.3g", row->difference);
    cli_table_cell(&v->table, "%.3g", row->bound);
    cli_table_cell(&v->table, "%s", row->good ? "ok" : "BEYOND");
}

static void show(void *user, const latent_selftest_row *row) {
    view *v = user;
    int is_loss = strcmp(row->part, "loss") == 0;
    v->losses += is_loss;
    v->other = is_loss ? row->name : v->other;
    v->worst = is_loss && !(row->difference <= v->worst) ? row->difference : v->worst;
    if (v->json) {
        cli_json_open(v->json, NULL, '{');
        cli_json_string(v->json, "part", row->part);
        cli_json_string(v->json, "name", row->name);
        cli_json_integer(v->json, "step", (uint64_t)row->step);
        cli_json_number(v->json, "difference", row->difference);
        cli_json_number(v->json, "bound", row->bound);
        cli_json_boolean(v->json, "good", row->good);
        cli_json_close(v->json, '}');
    } else if (!is_loss || !row->good) {
        put_row(v, row, is_loss);
    }
}

static int run_selftest(cli_session *session, const cli_arguments *arguments) {
    const char *name = arguments->operands[0] ? arguments->operands[0] : "autoencoder";
    latent_engine_options engine = cli_engine(arguments);
    latent_selftest_options test;
    latent_net *net = NULL;
    cli_json json = {.out = stdout};
    view v = {.table = cli_table_new("lrrl"), .json = cli_flag(arguments, "json") ? &json : NULL};
    int failed = 0;
    latent_selftest_defaults(&test);
    test.steps = (int)cli_get(arguments, "steps")->integer;
    test.batch = (int)cli_get(arguments, "batch")->integer;
    test.epoch_images = (int)cli_get(arguments, "images")->integer;
    test.seed = (uint64_t)cli_get(arguments, "seed")->integer;
    test.weights = cli_string(arguments, "weights");
    int code = cli_status(session, latent_net_load(session->ctx, name, &net));
    if (code != CLI_OK) {
        return code;
    }
    if (v.json) {
        cli_json_open(&json, NULL, '{');
        cli_json_string(&json, "net", name);
        cli_json_string(&json, "backend", engine.backend);
        cli_json_open(&json, "rows", '[');
    }
    latent_status status = latent_selftest(session->ctx, net, &engine, &test, show, &v, &failed);
    if (v.json) {
        cli_json_close(&json, ']');
        cli_json_boolean(&json, "good", status == LATENT_OK && failed == 0);
        cli_json_close(&json, '}');
        cli_table_free(&v.table);
    } else {
        cli_table_print(&v.table, stdout, "");
        if (v.losses) {
            printf(
                "\nlosses of an epoch, %d compared with the backend '%s': largest relative difference %.3g\n",
                v.losses, v.other, v.worst);
        }
        if (status == LATENT_OK) {
            printf("\n%s\n", failed ? "NOT the same computation as the reference"
                                    : "the same computation as the reference");
        }
    }
    latent_net_destroy(net);
    code = cli_status(session, status);
    return code == CLI_OK && failed ? CLI_DIFFERENT : code;
}

const cli_command cli_command_selftest = {
    .name = "selftest",
    .summary = "prove an engine against the reference",
    .operands = "[NET]",
    .operands_max = 1,
    .about = "Loads the same random weights into the reference and into the chosen engine, takes a few "
             "training steps with both and compares every tensor with a bound derived from fp32 arithmetic. "
             "Then trains an epoch at batch 32 beside the fastest other host backend and compares the loss "
             "every ten batches.\nExit code 3 when a difference lies beyond its bound.",
    .examples =
        "latent selftest --backend cuda --kernels tiled\nlatent selftest --backend cpu --isa avx2 --images 0",
    .groups = {&group, &cli_engine_group, &cli_quiet_group},
    .run = run_selftest,
};
