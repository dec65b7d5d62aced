/* cmd_profile.c: `latent profile`: which kernel ran each op on this engine, and what it took. */
#include "cli.h"
#include "json.h"
#include "option_rows.h"
#include "times.h"

#include <stdlib.h>

static const cli_option options[] = {
    CLI_ROW_BATCH,
    {.name = "json", .type = CLI_FLAG, .help = "print the table as JSON"},
};

static const cli_group group = {"Options", options, sizeof options / sizeof *options};

static int run_profile(cli_session *session, const cli_arguments *arguments) {
    const char *name = arguments->operands[0] ? arguments->operands[0] : "autoencoder";
    latent_engine_options engine = cli_engine(arguments);
    latent_net *net = NULL;
    latent_bench_result result;
    cli_times *times = cli_times_new();
    latent_bench_options bench = {
        .batch = (int)cli_get(arguments, "batch")->integer,
        .steps = 1,
        .seed = 1,
        .each = cli_times_keep,
        .user = times,
    };
    int code = cli_status(session, latent_net_load(session->ctx, name, &net));
    if (code == CLI_OK) {
        code = cli_status(session, latent_bench_train(session->ctx, net, &engine, &bench, &result));
    }
    if (code == CLI_OK && cli_flag(arguments, "json")) {
        cli_json json = {.out = stdout};
        cli_json_open(&json, NULL, '{');
        cli_json_string(&json, "net", name);
        cli_json_string(&json, "engine", result.engine);
        cli_json_integer(&json, "batch", (uint64_t)result.batch);
        cli_times_json(&json, "ops", times);
        cli_json_close(&json, '}');
    } else if (code == CLI_OK) {
        printf("%s on %s, batch %d\n\n", name, result.engine, result.batch);
        cli_times_print(times, result.ceiling_gflops);
    }
    latent_net_destroy(net);
    free(times);
    return code;
}

const cli_command cli_command_profile = {
    .name = "profile",
    .summary = "show which kernel runs each op, and what it takes",
    .operands = "[NET]",
    .operands_max = 1,
    .about = "Trains NET (default: autoencoder) for a few steps on images of noise, with every op timed, and "
             "prints which kernel of the engine ran each op and pass, its time and its share. On a GPU the "
             "kernels within an op are timed one by one. `latent train --profile` prints the same for a "
             "whole training.",
    .examples =
        "latent profile --backend cuda --kernels basic\nlatent profile --backend cpu --isa avx2 --batch 16",
    .groups = {&group, &cli_engine_group, &cli_quiet_group},
    .run = run_profile,
};
