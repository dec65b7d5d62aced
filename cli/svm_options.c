/* svm_options.c: the options of `latent svm train` and `latent svm grid`, some of which `latent run`
 * has, too.
 */
#include "option_rows.h"
#include "svm_job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const cli_option problem_options[] = {
    CLI_ROW_KERNEL,
    {.name = "weight",
     .value = "LABEL=W,..",
     .type = CLI_STRING,
     .otherwise = "1 for all",
     .help = "factors of C for classes: 3=2.5,7=0.5; with --balanced the two are multiplied"},
    {.name = "balanced",
     .type = CLI_FLAG,
     .help = "weight every class by one over its share of the rows, times its --weight"},
    {.name = "vote",
     .value = "RULE",
     .type = CLI_CHOICE,
     .choices = "libsvm|confidence",
     .initial = "libsvm",
     .help = "who wins a tie of votes: the first class, or the larger sum of decision values"},
    CLI_ROW_SEED(.help = "seed of the folds"),
};

const cli_group cli_svm_problem_group = {"Problem", problem_options,
                                         sizeof problem_options / sizeof *problem_options};

static const cli_option solver_options[] = {
    CLI_ROW_TOLERANCE,
    {.name = "max-iterations",
     .value = "N",
     .type = CLI_INT,
     .min = 0,
     .max = CLI_WHOLE_MAX,
     .initial = "0",
     .help = "per pair; 0 is the larger of 10,000,000 and 100 times the rows"},
    {.name = "cache",
     .value = "SIZE",
     .type = CLI_STRING,
     .otherwise = "half of the free memory",
     .help = "memory for the kernel matrix: 500M, 8G"},
    {.name = "products",
     .value = "TYPE",
     .type = CLI_CHOICE,
     .choices = "strict|fast|fp32",
     .initial = "strict",
     .help = "cuda: precision of the products that make the kernel matrix; elsewhere they are fp32"},
    {.name = "no-shrinking", .type = CLI_FLAG, .help = "never leave rows out while the others are solved"},
};

const cli_group cli_svm_solver_group = {"Solver", solver_options,
                                        sizeof solver_options / sizeof *solver_options};

/* "500M": bytes, powers of 1000. */
static int read_bytes(const char *text, uint64_t *out) {
    static const char units[] = "KMGT";
    char number[32];
    size_t length = strlen(text);
    const char *unit = length > 1 ? strchr(units, text[length - 1] & ~0x20) : NULL;
    double value = 0, scale = 1;
    if (length == 0 || length >= sizeof number) {
        return 0;
    }
    if (unit && *unit) {
        length--;
        for (const char *u = units; u <= unit; u++) {
            scale *= 1000;
        }
    }
    memcpy(number, text, length);
    number[length] = 0;
    if (!cli_read_real(number, &value) || !(value > 0) || value * scale > 1e18) {
        return 0;
    }
    *out = (uint64_t)(value * scale);
    return 1;
}

/* "3=2.5,7=0.5" */
static int read_weights(const cli_arguments *arguments, const char *text, cli_svm_setting *out) {
    char *copy = strdup(text), *rest = copy, *word;
    size_t room = strlen(text) / 2 + 1;
    int code = CLI_OK;
    out->weights = calloc(room, sizeof *out->weights);
    cli_need_memory(copy && out->weights ? copy : NULL);
    while (code == CLI_OK && (word = strsep(&rest, ",")) != NULL) {
        char *equals = strchr(word, '=');
        double label = 0, weight = 0;
        if (equals) {
            *equals = 0;
        }
        if (!equals || !cli_read_real(word, &label) || label != floor(label) || fabs(label) > INT32_MAX ||
            !cli_read_real(equals + 1, &weight) || !(weight > 0)) {
            code = cli_usage(arguments->command,
                             "--weight %s: it takes labels and numbers above 0, such as 3=2.5,7=0.5", text);
        } else {
            out->weights[out->options.weight_count++] = (latent_svm_weight){(int32_t)label, weight};
        }
    }
    out->options.weights = out->weights;
    free(copy);
    return code;
}

latent_svm_kernel cli_svm_kernel(const cli_arguments *arguments) {
    return strcmp(cli_string(arguments, "kernel"), "rbf") == 0 ? LATENT_SVM_RBF : LATENT_SVM_LINEAR;
}

int cli_svm_check_gamma(const cli_arguments *arguments) {
    if (cli_svm_kernel(arguments) == LATENT_SVM_LINEAR && cli_get(arguments, "gamma")->given) {
        return cli_usage(arguments->command, "--gamma: the linear kernel has none; leave it out");
    }
    return CLI_OK;
}

int cli_svm_point(const cli_arguments *arguments, latent_svm_options *out) {
    const char *gamma = cli_string(arguments, "gamma");
    int code = cli_svm_check_gamma(arguments);
    if (code != CLI_OK) {
        return code;
    }
    out->c = cli_get(arguments, "c")->real;
    if (strcmp(gamma, "scale") == 0 || strcmp(gamma, "auto") == 0) {
        out->gamma_rule = *gamma == 's' ? LATENT_GAMMA_SCALE : LATENT_GAMMA_AUTO;
        return CLI_OK;
    }
    out->gamma_rule = LATENT_GAMMA_VALUE;
    if (!cli_read_real(gamma, &out->gamma) || !(out->gamma > 0)) {
        return cli_usage(arguments->command, "--gamma %s: it takes scale, auto or a number above 0", gamma);
    }
    return CLI_OK;
}

/* --products is the GPU's: what else computes would pass over it in silence. */
static void warn_products(cli_session *session, const cli_arguments *arguments) {
    const char *name = cli_string(arguments, "backend");
    latent_backend_info info;
    for (int i = 0; (!name || strcmp(name, "auto") == 0) && latent_backend_get_info(i, &info); i++) {
        name = info.available ? info.name : name;
    }
    if (name && strcmp(name, "cuda") != 0) {
        cli_note(session, "--products %s changes nothing here: the backend '%s' multiplies in fp32",
                 cli_string(arguments, "products"), name);
    }
}

int cli_svm_settle(cli_session *session, const cli_arguments *arguments, cli_svm_setting *out) {
    latent_svm_options *o = &out->options;
    const char *cache = cli_string(arguments, "cache"), *weight = cli_string(arguments, "weight");
    const char *products = cli_string(arguments, "products");
    latent_svm_defaults(o);
    o->kernel = cli_svm_kernel(arguments);
    o->balanced = cli_flag(arguments, "balanced");
    o->vote =
        strcmp(cli_string(arguments, "vote"), "libsvm") == 0 ? LATENT_VOTE_LIBSVM : LATENT_VOTE_CONFIDENCE;
    o->seed = (uint64_t)cli_get(arguments, "seed")->integer;
    o->tolerance = cli_get(arguments, "tolerance")->real;
    o->iterations_max = (uint64_t)cli_get(arguments, "max-iterations")->integer;
    o->precision = *products == 's'     ? LATENT_SVM_STRICT
                   : products[1] == 'a' ? LATENT_SVM_FAST
                                        : LATENT_SVM_FP32;
    o->shrinking = !cli_flag(arguments, "no-shrinking");
    if (o->precision == LATENT_SVM_FAST) {
        warn_products(session, arguments);
    }
    o->progress = cli_svm_progress;
    o->user = session;
    if (cache && !read_bytes(cache, &o->cache_bytes)) {
        return cli_usage(arguments->command, "--cache %s: it takes a size such as 500M or 8G", cache);
    }
    return weight ? read_weights(arguments, weight, out) : CLI_OK;
}

void cli_svm_setting_free(cli_svm_setting *setting) {
    free(setting->weights);
    memset(setting, 0, sizeof *setting);
}
