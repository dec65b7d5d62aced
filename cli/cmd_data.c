/* cmd_data.c: `latent data`: looks at a data set, makes the synthetic one, fetches the official one. */
#include "cli.h"
#include "format.h"
#include "json.h"
#include "option_rows.h"
#include "table.h"

#include <stdio.h>
#include <string.h>

enum { CLASSES_MAX = 256 }; /* a label is a byte */

static const cli_option info_options[] = {
    {.name = "json", .type = CLI_FLAG, .help = "print as JSON"},
};
static const cli_option synth_options[] = {
    {.name = "train",
     .value = "N",
     .type = CLI_INT,
     .min = 1,
     .max = 1048576,
     .initial = "50000",
     .help = "training images"},
    {.name = "test",
     .value = "N",
     .type = CLI_INT,
     .min = 1,
     .max = 1048576,
     .initial = "10000",
     .help = "test images"},
    CLI_ROW_SEED(.letter = 's', .help = "same seed and counts, same bytes"),
};
static const cli_option download_options[] = {
    {.name = "url",
     .value = "URL",
     .type = CLI_STRING,
     .otherwise = "the official address",
     .help = "fetch the archive from a mirror"},
    {.name = "from",
     .value = "FILE",
     .type = CLI_STRING,
     .help = "unpack this archive instead of a transfer"},
    {.name = "md5",
     .value = "HEX",
     .type = CLI_STRING,
     .otherwise = "the official archive's",
     .help = "MD5 that the archive must have"},
    {.name = "size",
     .value = "BYTES",
     .type = CLI_INT,
     .min = 1,
     .max = CLI_WHOLE_MAX,
     .otherwise = "the official archive's",
     .help = "size that the archive must have"},
};

static const cli_group info_group = {"Options", info_options, 1};
static const cli_group synth_group = {"Options", synth_options, sizeof synth_options / sizeof *synth_options};
static const cli_group download_group = {"Options", download_options,
                                         sizeof download_options / sizeof *download_options};

typedef struct class_counts {
    latent_dataset_info info;
    uint64_t bytes; /* of the images */
    uint64_t per_class[2][CLASSES_MAX];
} class_counts;

static void count_classes(const latent_dataset *data, class_counts *out) {
    memset(out, 0, sizeof *out);
    latent_dataset_get_info(data, &out->info);
    for (int split = 0; split < 2; split++) {
        const uint8_t *labels = latent_dataset_labels(data, (latent_split)split);
        for (int i = 0; i < out->info.count[split]; i++) {
            out->per_class[split][labels[i]]++;
        }
    }
    out->bytes = ((uint64_t)out->info.count[0] + (uint64_t)out->info.count[1]) * (uint64_t)out->info.height *
                 (uint64_t)out->info.width * (uint64_t)out->info.channels;
}

static void print_json(const latent_dataset *data, const class_counts *census) {
    const latent_dataset_info *info = &census->info;
    int shape[3] = {info->height, info->width, info->channels};
    cli_json json = {.out = stdout};
    cli_json_open(&json, NULL, '{');
    cli_json_string(&json, "path", info->path);
    cli_json_boolean(&json, "synthetic", info->synthetic);
    cli_json_ints(&json, "image", shape, 3);
    cli_json_integer(&json, "train", (uint64_t)info->count[LATENT_TRAIN]);
    cli_json_integer(&json, "test", (uint64_t)info->count[LATENT_TEST]);
    cli_json_integer(&json, "bytes", census->bytes);
    cli_json_open(&json, "classes", '[');
    for (int i = 0; i < info->classes; i++) {
        cli_json_open(&json, NULL, '{');
        cli_json_string(&json, "name", latent_dataset_class_name(data, i));
        cli_json_integer(&json, "train", census->per_class[LATENT_TRAIN][i]);
        cli_json_integer(&json, "test", census->per_class[LATENT_TEST][i]);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
}

static void print_text(const latent_dataset *data, const class_counts *census) {
    const latent_dataset_info *info = &census->info;
    int shape[3] = {info->height, info->width, info->channels};
    printf("%s: %s images of %s, %s, %s\n\n", info->path,
           cli_count((uint64_t)info->count[0] + (uint64_t)info->count[1]).s, cli_shape(shape).s,
           cli_bytes(census->bytes).s, info->synthetic ? "synthetic" : "not synthetic");
    cli_table table = cli_table_new("rlrr");
    const char *titles[] = {"label", "class", "train", "test"};
    for (int i = 0; i < 4; i++) {
        cli_table_cell(&table, "%s", titles[i]);
    }
    cli_table_rule(&table);
    for (int i = 0; i < info->classes; i++) {
        cli_table_cell(&table, "%d", i);
        cli_table_cell(&table, "%s", latent_dataset_class_name(data, i));
        cli_table_cell(&table, "%s", cli_count(census->per_class[LATENT_TRAIN][i]).s);
        cli_table_cell(&table, "%s", cli_count(census->per_class[LATENT_TEST][i]).s);
    }
    cli_table_rule(&table);
    cli_table_cell(&table, "%s", "");
    cli_table_cell(&table, "total");
    cli_table_cell(&table, "%s", cli_count((uint64_t)info->count[LATENT_TRAIN]).s);
    cli_table_cell(&table, "%s", cli_count((uint64_t)info->count[LATENT_TEST]).s);
    cli_table_print(&table, stdout, "");
}

static int run_data_info(cli_session *session, const cli_arguments *arguments) {
    latent_dataset *data = NULL;
    class_counts census;
    int code = cli_open_data(session, arguments->operands[0], NULL, &data);
    if (code != CLI_OK) {
        return code;
    }
    count_classes(data, &census);
    if (cli_flag(arguments, "json")) {
        print_json(data, &census);
    } else {
        print_text(data, &census);
    }
    latent_dataset_destroy(data);
    return CLI_OK;
}

static int run_data_synth(cli_session *session, const cli_arguments *arguments) {
    const char *folder = arguments->operands[0];
    int train = (int)cli_get(arguments, "train")->integer, test = (int)cli_get(arguments, "test")->integer;
    uint64_t seed = (uint64_t)cli_get(arguments, "seed")->integer;
    cli_note(session, "drawing %s images", cli_count((uint64_t)train + (uint64_t)test).s);
    int code = cli_status(session, latent_dataset_synthesize(session->ctx, folder, train, test, seed));
    if (code == CLI_OK) {
        printf("wrote %s: %s training and %s test images, synthetic, seed %llu\n", folder,
               cli_count((uint64_t)train).s, cli_count((uint64_t)test).s, (unsigned long long)seed);
    }
    return code;
}

typedef struct transfer_state {
    cli_session *session;
    double began;
    uint64_t first; /* bytes that an earlier call had fetched */
    int begun;
} transfer_state;

static void on_transfer(void *user, uint64_t done, uint64_t total) {
    transfer_state *transfer = user;
    cli_progress *progress = &transfer->session->progress;
    double now = cli_clock();
    if (!transfer->begun) {
        transfer->begun = 1;
        transfer->began = now;
        transfer->first = done;
    }
    double seconds = now - transfer->began,
           fresh = done > transfer->first ? (double)(done - transfer->first) : 0;
    double pace = seconds > 0 ? fresh / seconds : 0;
    double left = pace > 0 && total > done ? (double)(total - done) / pace : -1;
    double fraction = total > 0 ? (double)done / (double)total : 0;
    char text[320];
    snprintf(text, sizeof text, "%s of %s  %s/s  ETA %s", cli_bytes(done).s, total ? cli_bytes(total).s : "?",
             cli_bytes((uint64_t)pace).s, cli_eta(left).s);
    if (cli_progress_due(progress, 10)) {
        cli_progress_line(progress, "fetched %s", text);
    } else {
        cli_progress_bar(progress, fraction, "fetching", text);
    }
}

static int run_data_download(cli_session *session, const cli_arguments *arguments) {
    const char *folder = arguments->operands[0] ? arguments->operands[0] : "./data";
    transfer_state transfer = {.session = session};
    const cli_value *size = cli_get(arguments, "size");
    if (cli_string(arguments, "from") && cli_string(arguments, "url")) {
        return cli_usage(arguments->command, "--from reads a local archive and --url fetches one: give one");
    }
    latent_download_options options = {.url = cli_string(arguments, "url"),
                                       .from = cli_string(arguments, "from"),
                                       .md5 = cli_string(arguments, "md5"),
                                       .size = size->given ? (uint64_t)size->integer : 0,
                                       .progress = on_transfer,
                                       .user = &transfer};
    latent_status status = latent_dataset_download(session->ctx, folder, &options);
    cli_progress_clear(&session->progress);
    if (status == LATENT_OK) {
        printf("CIFAR-10 is in %s/cifar-10-batches-bin; look at it with: latent data info %s\n", folder,
               folder);
    }
    return cli_status(session, status);
}

static const cli_command info_command = {
    .name = "data info",
    .summary = "count the images and classes of a data set",
    .operands = "[DIR]",
    .operands_max = 1,
    .about =
        "DIR holds data_batch_*.bin and test_batch.bin, or a folder cifar-10-batches-bin that does. Without "
        "it: $LATENT_DATA, ./data, then $XDG_CACHE_HOME/latent.",
    .examples = "latent data info ./data",
    .groups = {&info_group},
    .run = run_data_info,
};

static const cli_command synth_command = {
    .name = "data synth",
    .summary = "make a synthetic data set",
    .operands = "DIR",
    .operands_min = 1,
    .operands_max = 1,
    .about = "Draws ten classes of textured shapes and writes them in the layout of CIFAR-10. An older "
             "synthetic set in DIR is replaced; any other data set is left alone.",
    .examples = "latent data synth ./data\nlatent data synth /tmp/small --train 1000 --test 200",
    .groups = {&synth_group, &cli_quiet_group},
    .run = run_data_synth,
};

static const cli_command download_command = {
    .name = "data download",
    .summary = "fetch CIFAR-10",
    .operands = "[DIR]",
    .operands_max = 1,
    .about =
        "Fetches the official archive (170 MB), checks its size and MD5 and unpacks it into "
        "DIR/cifar-10-batches-bin; DIR is ./data by default. A broken transfer goes on where it stopped when "
        "the command is given again.",
    .examples = "latent data download\nlatent data download ./data --from cifar-10-binary.tar.gz",
    .groups = {&download_group, &cli_quiet_group},
    .run = run_data_download,
};

static const cli_command *const subcommands[] = {&info_command, &synth_command, &download_command, NULL};

const cli_command cli_command_data = {
    .name = "data",
    .summary = "look at, make or fetch a data set",
    .operands = "COMMAND",
    .examples = "latent data synth ./data\nlatent data download\nlatent data info ./data",
    .subcommands = subcommands,
};
