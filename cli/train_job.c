/* train_job.c: what `latent train` was asked to do. A new run takes the net's recipe and the flags; a resumed
 * one takes everything from the run, and --epochs may move its end. Nothing is written before the net, the
 * recipe and the data are known to be good.
 */
#include "train_job.h"
#include "option_rows.h"

#include "format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A number of the net file's `train` line. */
#define RECIPE_REAL(...)                                                                                     \
    { .value = "X", .type = CLI_REAL, .otherwise = "the net's", __VA_ARGS__ }

/* The recipe: what a net file's `train` line holds, then the seed and the subset. */
static const cli_option recipe_options[] = {
    {.name = "epochs",
     .letter = 'e',
     .value = "N",
     .type = CLI_INT,
     .min = 1,
     .max = 1000000,
     .otherwise = "the net's",
     .help = "passes over the images"},
    CLI_ROW_BATCH,
    {.name = "optimizer",
     .value = "NAME",
     .type = CLI_CHOICE,
     .choices = "sgd|adam|adamw",
     .otherwise = "the net's",
     .help = "how weights follow gradients"},
    {.name = "schedule",
     .value = "NAME",
     .type = CLI_CHOICE,
     .choices = "constant|cosine|onecycle",
     .otherwise = "the net's",
     .help = "how the learning rate runs"},
    RECIPE_REAL(.name = "lr", .min = 0, .max = 1e6, .open = CLI_ABOVE_MIN,
                .help = "learning rate; its peak for cosine and onecycle"),
    RECIPE_REAL(.name = "momentum", .min = 0, .max = 1, .open = CLI_BELOW_MAX,
                .help = "sgd: momentum; adam, adamw: beta1"),
    RECIPE_REAL(.name = "beta2", .min = 0, .max = 1, .open = CLI_BELOW_MAX,
                .help = "adam, adamw: decay of the squared gradient"),
    RECIPE_REAL(.name = "epsilon", .min = 0, .max = 1, .open = CLI_ABOVE_MIN,
                .help = "adam, adamw: added to the denominator"),
    RECIPE_REAL(.name = "weight-decay", .min = 0, .max = 1e6,
                .help = "pull of the weights towards 0; decoupled for adamw"),
    CLI_ROW_SEED(.letter = 's', .help = "decides the first weights and the order of the images"),
    CLI_ROW_SUBSET(.help = "train on the first N images, or on the first P percent"),
};

enum { RECIPE_COUNT = sizeof recipe_options / sizeof *recipe_options, RECIPE_KEYS = RECIPE_COUNT - 2 };

const cli_group cli_recipe_group = {"Recipe", recipe_options, RECIPE_COUNT};

/* "weight-decay" is the key weight_decay of a net file. */
int cli_recipe_apply(cli_session *session, const cli_arguments *arguments, latent_recipe *recipe) {
    for (int i = 0; i < RECIPE_KEYS; i++) {
        const cli_value *value = cli_get(arguments, recipe_options[i].name);
        char key[32];
        snprintf(key, sizeof key, "%s", recipe_options[i].name);
        for (char *c = key; *c; c++) {
            *c = *c == '-' ? '_' : *c;
        }
        if (value->given && latent_recipe_set(session->ctx, recipe, key, value->text) != LATENT_OK) {
            return cli_usage(arguments->command, "--%s: %s", recipe_options[i].name,
                             latent_context_message(session->ctx));
        }
    }
    return CLI_OK;
}

/* runs/<net>-<date>-<time>, with a number behind it when that is taken. */
static char *fresh_run_name(const latent_net *net) {
    latent_net_info info;
    latent_net_get_info(net, &info);
    char stamp[32];
    time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
    char *name = NULL;
    for (int n = 1;; n++) {
        int length = n == 1 ? asprintf(&name, "runs/%s-%s", info.name, stamp)
                            : asprintf(&name, "runs/%s-%s-%d", info.name, stamp, n);
        cli_need_memory(length < 0 ? NULL : name);
        if (access(name, F_OK) != 0) {
            return name;
        }
        free(name);
    }
}

static int settle_new(cli_session *session, const cli_arguments *arguments, cli_train_job *job) {
    const char *run = cli_string(arguments, "run"), *net = arguments->operands[0];
    int overwrite = cli_flag(arguments, "overwrite");
    if (overwrite && !run) {
        return cli_usage(arguments->command, "--overwrite needs --run DIR: the run to replace");
    }
    if (run && !overwrite && cli_folder_has_run(run)) {
        return cli_fail(session,
                        "%s already holds a run; continue it with --resume, replace it with --overwrite or "
                        "name another folder",
                        run);
    }
    int code = cli_status(session, latent_net_load(session->ctx, net ? net : "autoencoder", &job->net));
    if (code != CLI_OK) {
        return code;
    }
    latent_train_defaults(job->net, &job->options);
    job->options.seed = (uint64_t)cli_get(arguments, "seed")->integer;
    job->run = run ? strdup(run) : fresh_run_name(job->net);
    cli_need_memory(job->run);
    return cli_recipe_apply(session, arguments, &job->options.recipe);
}

/* The engine that the run had, where no flag asks for another: so that it ends in the same bits. */
static void resume_engine(const cli_arguments *arguments, cli_train_job *job) {
    const struct {
        const char *flag, *was;
        const char **now;
    } parts[] = {{"backend", job->recorded.backend, &job->engine.backend},
                 {"precision", job->recorded.precision, &job->engine.precision},
                 {"isa", job->recorded.isa, &job->engine.isa},
                 {"kernels", job->recorded.kernels, &job->engine.kernels}};
    if (cli_get(arguments, "backend")->given) {
        return; /* the rest belonged to the other backend */
    }
    for (int i = 0; i < 4; i++) {
        if (!cli_get(arguments, parts[i].flag)->given && *parts[i].was) {
            *parts[i].now = parts[i].was;
        }
    }
}

static int settle_resumed(cli_session *session, const cli_arguments *arguments, cli_train_job *job) {
    const char *run = cli_string(arguments, "run");
    if (!run) {
        return cli_usage(arguments->command, "--resume needs --run DIR: the run to continue");
    }
    if (cli_flag(arguments, "overwrite")) {
        return cli_usage(arguments->command,
                         "--resume continues a run and --overwrite replaces it: give one");
    }
    if (arguments->operands[0]) {
        return cli_usage(arguments->command, "--resume takes the net from the run; leave out '%s'",
                         arguments->operands[0]);
    }
    for (int i = 1; i < RECIPE_COUNT; i++) {
        if (cli_get(arguments, recipe_options[i].name)->given) {
            return cli_usage(
                arguments->command,
                "--resume takes the recipe from the run; leave out --%s (only --epochs may change)",
                recipe_options[i].name);
        }
    }
    job->run = strdup(run);
    cli_need_memory(job->run);
    int code = cli_status(session,
                          latent_run_read(session->ctx, run, &job->net, &job->options, &job->recorded_data));
    job->options.resume = 1;
    if (code == CLI_OK) {
        code = cli_status(session, latent_run_read_engine(session->ctx, run, &job->recorded));
        resume_engine(arguments, job);
    }
    return code == CLI_OK ? cli_recipe_apply(session, arguments, &job->options.recipe) : code;
}

int cli_subset(const cli_arguments *arguments, const latent_dataset *data, int *out) {
    const cli_value *subset = cli_get(arguments, "subset");
    latent_dataset_info info;
    latent_dataset_get_info(data, &info);
    int count = info.count[LATENT_TRAIN];
    if (!subset->given) {
        return CLI_OK;
    }
    if (subset->real > 0) {
        long images = lround(count * subset->real / 100);
        *out = images < 1 ? 1 : (int)images;
    } else if (subset->integer > count) {
        return cli_usage(arguments->command, "--subset %s: the data set has %s training images", subset->text,
                         cli_count((uint64_t)count).s);
    } else {
        *out = (int)subset->integer;
    }
    return CLI_OK;
}

int cli_train_settle(cli_session *session, const cli_arguments *arguments, cli_train_job *job) {
    memset(job, 0, sizeof *job);
    job->engine = cli_engine(arguments);
    int code = cli_flag(arguments, "resume") ? settle_resumed(session, arguments, job)
                                             : settle_new(session, arguments, job);
    if (code == CLI_OK) {
        code = cli_open_data(session, cli_string(arguments, "data"), job->recorded_data, &job->data);
    }
    if (code == CLI_OK) {
        code = cli_subset(arguments, job->data, &job->options.subset);
    }
    job->options.run = job->run;
    job->options.checkpoint_every = (int)cli_get(arguments, "checkpoint-every")->integer;
    return code;
}

void cli_train_free(cli_train_job *job) {
    latent_net_destroy(job->net);
    latent_dataset_destroy(job->data);
    latent_free(job->recorded_data);
    free(job->run);
}
