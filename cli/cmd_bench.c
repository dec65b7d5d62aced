/* cmd_bench.c: `latent bench train`: how fast training is here, op by op, and beside it what the machine
 * could do. Every result is also a line of JSON in a file, so that figures of many runs can be compared.
 */
#include "cli.h"
#include "format.h"
#include "json.h"
#include "option_rows.h"
#include "times.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const cli_option options[] = {
    CLI_ROW_BATCH,
    CLI_ROW_SECONDS(.help = "how long to measure"),
    CLI_ROW_SEED(.help = "of weights and images"),
    {.name = "out",
     .letter = 'o',
     .value = "FILE",
     .type = CLI_STRING,
     .initial = "bench.jsonl",
     .help = "append the result to this file, a line of JSON each"},
    {.name = "json", .type = CLI_FLAG, .help = "print the result as JSON"},
};

static const cli_group group = {"Options", options, sizeof options / sizeof *options};

typedef struct bench {
    cli_times *times;
    latent_bench_result result;
} bench;

static double percent(double part, double whole) {
    return whole > 0 ? 100 * part / whole : 0;
}

static void write_json(FILE *out, int line, const char *net, const bench *b) {
    const latent_bench_result *r = &b->result;
    cli_json json = {.out = out, .line = line};
    char stamp[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    cli_json_open(&json, NULL, '{');
    cli_json_string(&json, "bench", "train");
    cli_json_string(&json, "time", stamp);
    cli_json_string(&json, "version", latent_version());
    cli_json_string(&json, "net", net);
    cli_json_string(&json, "engine", r->engine);
    cli_json_integer(&json, "batch", (uint64_t)r->batch);
    cli_json_integer(&json, "steps", (uint64_t)r->steps);
    cli_json_number(&json, "step_seconds", r->step_seconds);
    cli_json_number(&json, "best_step_seconds", r->best_seconds);
    cli_json_number(&json, "images_per_second", r->images_per_second);
    cli_json_number(&json, "gflops", r->gflops);
    cli_json_number(&json, "ceiling_gflops", r->ceiling_gflops);
    cli_json_number(&json, "ceiling_gbytes", r->ceiling_gbytes);
    cli_times_json(&json, "ops", b->times);
    cli_json_close(&json, '}');
}

static void print_result(const char *net, const bench *b) {
    const latent_bench_result *r = &b->result;
    cli_times_print(b->times, r->ceiling_gflops);
    printf("\n%s, %s, batch %d\n", net, r->engine, r->batch);
    printf("images/s  %s   (median of %d steps, %.3f ms each; best %.3f ms)\n",
           cli_rate(r->images_per_second).s, r->steps, 1e3 * r->step_seconds, 1e3 * r->best_seconds);
    printf("GFLOP/s   %.0f", r->gflops);
    if (r->ceiling_gflops > 0) {
        printf(", %.0f%% of this machine's %.0f (multiply-adds in registers); it copies %.1f GB/s",
               percent(r->gflops, r->ceiling_gflops), r->ceiling_gflops, r->ceiling_gbytes);
    }
    printf("\n");
}

/* Appends a line. The figures are on the screen already, so a failure loses nothing but is told. */
static int append(cli_session *session, const char *path, const char *net, const bench *b) {
    FILE *out = fopen(path, "a");
    if (!out) {
        return cli_fail(session, "%s: cannot append the result: %s; choose another file with --out", path,
                        strerror(errno));
    }
    write_json(out, 1, net, b);
    int failed = ferror(out);
    failed = fclose(out) != 0 || failed;
    if (failed) {
        return cli_fail(session, "%s: cannot append the result: %s", path, strerror(errno));
    }
    cli_note(session, "appended to %s", path);
    return CLI_OK;
}

static int run_bench_train(cli_session *session, const cli_arguments *arguments) {
    const char *name = arguments->operands[0] ? arguments->operands[0] : "autoencoder";
    latent_engine_options engine = cli_engine(arguments);
    latent_net *net = NULL;
    bench b = {.times = cli_times_new()};
    latent_bench_options bench_options = {
        .batch = (int)cli_get(arguments, "batch")->integer,
        .seconds = cli_get(arguments, "seconds")->real,
        .seed = (uint64_t)cli_get(arguments, "seed")->integer,
        .each = cli_times_keep,
        .user = b.times,
    };
    int code = cli_status(session, latent_net_load(session->ctx, name, &net));
    if (code == CLI_OK) {
        code = cli_status(session, latent_bench_train(session->ctx, net, &engine, &bench_options, &b.result));
    }
    if (code == CLI_OK) {
        if (cli_flag(arguments, "json")) {
            write_json(stdout, 0, name, &b);
        } else {
            print_result(name, &b);
        }
        code = append(session, cli_string(arguments, "out"), name, &b);
    }
    latent_net_destroy(net);
    free(b.times);
    return code;
}

static const cli_command bench_train = {
    .name = "bench train",
    .summary = "measure training, op by op",
    .operands = "[NET]",
    .operands_max = 1,
    .about = "Trains NET (default: autoencoder) on images of noise for a few seconds and prints images per "
             "second, GFLOP/s, the share of each op, and what the machine reaches in a loop of multiply-adds "
             "and in a memory copy.\nAn upsample followed by a 3x3 convolution counts as the 4x4 transposed "
             "convolution that it equals: 16 products in place of 36.",
    .examples = "latent bench train\nlatent bench train --backend cpu --threads 2 --seconds 10\nlatent bench "
                "train my.net --batch 256 --json",
    .groups = {&group, &cli_engine_group, &cli_quiet_group},
    .run = run_bench_train,
};

static const cli_command *const subcommands[] = {&bench_train, &cli_command_bench_ladder, NULL};

const cli_command cli_command_bench = {
    .name = "bench",
    .summary = "measure speed",
    .about = "Measures how fast this machine computes.",
    .subcommands = subcommands,
};
