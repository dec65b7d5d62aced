/* engine.c: the options that several commands share: where and how to compute, and --quiet. Flags of a
 * backend that was not compiled in are read all the same; the library says what it lacks.
 */
#include "cli.h"
#include "option_rows.h"

static const cli_option engine_options[] = {
    {.name = "backend",
     .value = "NAME",
     .type = CLI_CHOICE,
     .choices = "auto|ref|cpu|cuda",
     .initial = "auto",
     .help = "what computes"},
    {.name = "precision",
     .value = "TYPE",
     .type = CLI_CHOICE,
     .choices = "fp32|bf16",
     .otherwise = "the backend's",
     .help = "arithmetic of the layers"},
    {.name = "isa",
     .value = "NAME",
     .type = CLI_CHOICE,
     .choices = "amx|avx512|avx2|plain",
     .otherwise = "the best here",
     .help = "cpu: instruction set"},
    CLI_ROW_THREADS,
    {.name = "kernels",
     .value = "NAME",
     .type = CLI_CHOICE,
     .choices = "basic|tiled|fused|gemm|cudnn|tensor",
     .otherwise = "the best here",
     .help = "cuda: kernel generation; tensor is bf16 and only goes forward"},
    CLI_ROW_DEVICE,
    {.name = "stream-data", .type = CLI_FLAG, .help = "cuda: keep the data set in host memory and stream it"},
};

const cli_group cli_engine_group = {"Engine", engine_options, sizeof engine_options / sizeof *engine_options};

static const cli_option quiet_options[] = {
    {.name = "quiet", .letter = 'q', .type = CLI_FLAG, .help = "print results and errors only"},
};

const cli_group cli_quiet_group = {"General", quiet_options, 1};

latent_engine_options cli_engine(const cli_arguments *arguments) {
    return (latent_engine_options){
        .backend = cli_string(arguments, "backend"),
        .precision = cli_string(arguments, "precision"),
        .isa = cli_string(arguments, "isa"),
        .kernels = cli_string(arguments, "kernels"),
        .threads = (int)cli_get(arguments, "threads")->integer,
        .device = (int)cli_get(arguments, "device")->integer,
        .stream_data = cli_flag(arguments, "stream-data"),
    };
}

latent_engine_options cli_host_engine(void) {
    return (latent_engine_options){.backend = "ref"};
}
