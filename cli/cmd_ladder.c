/* cmd_ladder.c: `latent bench ladder`: the same training on every engine, from the plainest to the fastest.
 *
 * Each rung trains the same net on the same images at the same batch from the same seed. A rung that needs
 * longer than its share of time is measured on part of an epoch; its row says on how many images. A rung that
 * cannot be climbed here is left out with its reason, and what was measured is kept whatever comes after it.
 */
#include "cli.h"
#include "format.h"
#include "option_rows.h"
#include "record.h"
#include "table.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const cli_option options[] = {
    CLI_ROW_BATCH,
    CLI_ROW_SECONDS(.help = "time for each rung"),
    CLI_ROW_SEED(.help = "of weights and order"),
    CLI_ROW_DATA(.otherwise = "images of noise"),
    CLI_ROW_THREADS,
    CLI_ROW_DEVICE,
    {.name = "out",
     .letter = 'o',
     .value = "FILE",
     .type = CLI_STRING,
     .initial = "ladder.json",
     .help = "write the table to this file, for the report"},
    {.name = "json", .type = CLI_FLAG, .help = "print the table as JSON"},
};

static const cli_group group = {"Options", options, sizeof options / sizeof *options};

typedef struct rung {
    const char *backend, *kernels, *precision; /* NULL: the backend's default */
    const char *what;
    int measured; /* 0: cannot run here */
    latent_bench_result result;
    double epoch_seconds;
    int images; /* that it was measured on */
} rung;

static const rung all_rungs[] = {
    {.backend = "ref", .what = "plain loops, one thread"},
    {.backend = "cpu", .what = "packed micro-kernels, all cores"},
    {.backend = "cpu", .precision = "bf16", .what = "the same in bf16"},
    {.backend = "cuda", .kernels = "basic", .what = "one thread per output"},
    {.backend = "cuda", .kernels = "tiled", .what = "shared-memory tiles, register blocks"},
    {.backend = "cuda", .kernels = "fused", .what = "pool, upsample, loss fused"},
    {.backend = "cuda", .kernels = "gemm", .what = "im2col + cuBLAS"},
    {.backend = "cuda", .kernels = "cudnn", .what = "cuDNN"},
};

enum { RUNGS = sizeof all_rungs / sizeof *all_rungs };

/* The engine of a rung: options that its backend does not have stay out. */
static latent_engine_options engine_of(const rung *r, const cli_arguments *arguments) {
    return (latent_engine_options){
        .backend = r->backend,
        .kernels = r->kernels,
        .precision = r->precision,
        .threads = strcmp(r->backend, "cpu") ? 0 : (int)cli_get(arguments, "threads")->integer,
        .device = strcmp(r->backend, "cuda") ? 0 : (int)cli_get(arguments, "device")->integer};
}

/* A device that was asked for and cannot be is told before the first rung, which takes longest. One that is
 * busy now may be free by then. */
static int check_device(cli_session *session, const cli_arguments *arguments, const latent_net *net) {
    latent_engine_options engine = {.backend = "cuda", .device = (int)cli_get(arguments, "device")->integer};
    latent_model *model = NULL;
    if (engine.device == 0) {
        return CLI_OK;
    }
    latent_status status = latent_model_create(session->ctx, net, &engine, 1, &model);
    latent_model_destroy(model);
    return status == LATENT_ERROR_DEVICE || status == LATENT_ERROR_MEMORY ? CLI_OK
                                                                          : cli_status(session, status);
}

/* What keeps one engine from running and says nothing about the others. */
static int only_here(latent_status status) {
    return status == LATENT_ERROR_UNSUPPORTED || status == LATENT_ERROR_DEVICE ||
           status == LATENT_ERROR_MEMORY;
}

static double ratio(double a, double b) {
    return b > 0 ? a / b : 0;
}

/* Trains on one engine. An engine that cannot run here now leaves the rung unmeasured and says why. */
static int climb(cli_session *session, const cli_arguments *arguments, const latent_net *net,
                 const latent_dataset *data, int epoch_images, rung *r) {
    latent_engine_options engine = engine_of(r, arguments);
    latent_bench_options bench = {.batch = (int)cli_get(arguments, "batch")->integer,
                                  .seconds = cli_get(arguments, "seconds")->real,
                                  .seed = (uint64_t)cli_get(arguments, "seed")->integer,
                                  .data = data};
    cli_note(session, "measuring %s %s", r->backend,
             r->kernels     ? r->kernels
             : r->precision ? r->precision
                            : "");
    latent_status status = latent_bench_train(session->ctx, net, &engine, &bench, &r->result);
    if (only_here(status)) {
        cli_note(session, "  left out: %s", latent_context_message(session->ctx));
        return CLI_OK;
    }
    if (status != LATENT_OK) {
        return cli_status(session, status);
    }
    r->measured = 1;
    r->images = r->result.steps * r->result.batch;
    r->epoch_seconds = epoch_images / r->result.images_per_second;
    if (cli_interrupted()) { /* the rung stands on the steps that it had */
        cli_fail(session, "interrupted");
        return CLI_INTERRUPTED;
    }
    return CLI_OK;
}

static const rung *find(const rung *rungs, const char *backend) {
    for (int i = 0; i < RUNGS; i++) {
        if (rungs[i].measured && strcmp(rungs[i].backend, backend) == 0) {
            return &rungs[i];
        }
    }
    return NULL;
}

typedef struct ladder {
    const char *net;
    int epoch_images;
    const rung *rungs;
} ladder;

static void fill(cli_json *json, void *user) {
    const ladder *l = user;
    const rung *ref = find(l->rungs, "ref"), *cpu = find(l->rungs, "cpu"), *before = NULL;
    cli_json_string(json, "bench", "ladder");
    cli_json_string(json, "version", latent_version());
    cli_json_string(json, "net", l->net);
    cli_json_integer(json, "epoch_images", (uint64_t)l->epoch_images);
    cli_json_open(json, "rungs", '[');
    for (int i = 0; i < RUNGS; i++) {
        const rung *r = &l->rungs[i];
        if (!r->measured) {
            continue;
        }
        cli_json_open(json, NULL, '{');
        cli_json_string(json, "backend", r->backend);
        cli_json_string(json, "kernels", r->kernels);
        cli_json_string(json, "precision", r->precision ? r->precision : "fp32");
        cli_json_string(json, "what", r->what);
        cli_json_string(json, "engine", r->result.engine);
        cli_json_integer(json, "batch", (uint64_t)r->result.batch);
        cli_json_number(json, "epoch_seconds", r->epoch_seconds);
        cli_json_number(json, "images_per_second", r->result.images_per_second);
        cli_json_integer(json, "measured_images", (uint64_t)r->images);
        cli_json_boolean(json, "extrapolated", r->images < l->epoch_images);
        cli_json_number(json, "speedup_over_ref", ref ? ratio(ref->epoch_seconds, r->epoch_seconds) : 0);
        cli_json_number(json, "speedup_over_cpu", cpu ? ratio(cpu->epoch_seconds, r->epoch_seconds) : 0);
        cli_json_number(json, "speedup_over_previous",
                        before ? ratio(before->epoch_seconds, r->epoch_seconds) : 1);
        cli_json_number(json, "gflops", r->result.gflops);
        cli_json_number(json, "ceiling_gflops", r->result.ceiling_gflops);
        cli_json_close(json, '}');
        before = r;
    }
    cli_json_close(json, ']');
}

static void print_table(int epoch_images, const rung *rungs) {
    static const char *const heads[] = {"rung",    "",         "s/epoch",    "over ref",   "over cpu",
                                        "step up", "images/s", "of ceiling", "measured on"};
    const rung *ref = find(rungs, "ref"), *cpu = find(rungs, "cpu"), *before = NULL;
    cli_table table = cli_table_new("llrrrrrrl");
    for (int i = 0; i < 9; i++) {
        cli_table_cell(&table, "%s", heads[i]);
    }
    cli_table_rule(&table);
    for (int i = 0; i < RUNGS; i++) {
        const rung *r = &rungs[i];
        if (!r->measured) {
            continue;
        }
        cli_table_cell(&table, "%s%s%s", r->backend, r->kernels || r->precision ? " " : "",
                       r->kernels     ? r->kernels
                       : r->precision ? r->precision
                                      : "");
        cli_table_cell(&table, "%s", r->what);
        cli_table_cell(&table, "%.3f", r->epoch_seconds);
        cli_table_cell(&table, ref ? "%.1fx" : "-", ratio(ref ? ref->epoch_seconds : 0, r->epoch_seconds));
        cli_table_cell(&table, cpu ? "%.2fx" : "-", ratio(cpu ? cpu->epoch_seconds : 0, r->epoch_seconds));
        cli_table_cell(&table, before ? "%.2fx" : "-",
                       ratio(before ? before->epoch_seconds : 0, r->epoch_seconds));
        cli_table_cell(&table, "%s", cli_rate(r->result.images_per_second).s);
        cli_table_cell(&table, r->result.ceiling_gflops > 0 ? "%.0f%%" : "-",
                       100 * ratio(r->result.gflops, r->result.ceiling_gflops));
        cli_table_cell(&table, r->images < epoch_images ? "%s images, extrapolated" : "%s images",
                       cli_count((uint64_t)r->images).s);
        before = r;
    }
    cli_table_print(&table, stdout, "");
}

/* Prints and saves what was measured, all of it or as far as it came; but a ladder that broke off does not
 * take the place of an older one. */
static int show(cli_session *session, const cli_arguments *arguments, ladder *measured, int whole) {
    const char *out = cli_string(arguments, "out");
    int count = 0;
    for (int i = 0; i < RUNGS; i++) {
        count += measured->rungs[i].measured;
    }
    if (count == 0) {
        return cli_fail(session, "no rung was measured; nothing is written to %s", out);
    }
    if (cli_is_stdout(out)) {
        return cli_record_save(session, out, fill, measured);
    }
    if (cli_flag(arguments, "json")) {
        cli_record_print(fill, measured);
    } else {
        print_table(measured->epoch_images, measured->rungs);
    }
    if (!whole && access(out, F_OK) == 0) {
        cli_note(session, "%s is left as it is: this ladder is not whole", out);
        return CLI_OK;
    }
    int code = cli_record_save(session, out, fill, measured);
    if (code == CLI_OK) {
        cli_note(session, "written to %s", out);
    }
    return code;
}

static int run_ladder(cli_session *session, const cli_arguments *arguments) {
    const char *name = arguments->operands[0] ? arguments->operands[0] : "autoencoder";
    const char *folder = cli_string(arguments, "data");
    latent_net *net = NULL;
    latent_dataset *data = NULL;
    rung *rungs = malloc(sizeof all_rungs);
    cli_need_memory(rungs);
    memcpy(rungs, all_rungs, sizeof all_rungs);
    int epoch_images = 50000;
    int code = cli_status(session, latent_net_load(session->ctx, name, &net));
    if (code == CLI_OK && folder) {
        code = cli_open_data(session, folder, NULL, &data);
    }
    if (code == CLI_OK && data) {
        latent_dataset_info info;
        latent_dataset_get_info(data, &info);
        epoch_images = info.count[LATENT_TRAIN];
    }
    code = code == CLI_OK ? cli_file_check(session, cli_string(arguments, "out")) : code;
    code = code == CLI_OK ? check_device(session, arguments, net) : code;
    if (code == CLI_OK) {
        for (int i = 0; i < RUNGS && code == CLI_OK; i++) {
            code = climb(session, arguments, net, data, epoch_images, &rungs[i]);
        }
        int shown = show(session, arguments, &(ladder){name, epoch_images, rungs}, code == CLI_OK);
        code = code == CLI_OK ? shown : code;
    }
    latent_dataset_destroy(data);
    latent_net_destroy(net);
    free(rungs);
    return code;
}

const cli_command cli_command_bench_ladder = {
    .name = "bench ladder",
    .summary = "measure the same training on every engine",
    .operands = "[NET]",
    .operands_max = 1,
    .about = "Trains NET (default: autoencoder) on every engine that this program has and this machine can "
             "run: the reference, the cpu backend and each generation of GPU kernels, on the same images, "
             "batch and seed. A rung that would take longer than its time is measured on part of an epoch of "
             "50,000 images (or of --data) and extrapolated; the table says so.",
    .examples =
        "latent bench ladder\nlatent bench ladder --data ./data --seconds 20 --out runs/mine/ladder.json",
    .groups = {&group, &cli_quiet_group},
    .run = run_ladder,
};
