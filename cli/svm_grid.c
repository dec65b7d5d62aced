/* svm_grid.c: `latent svm grid`: cross-validation over C and gamma. */
#include "format.h"
#include "record.h"
#include "svm_job.h"
#include "table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS_MAX = 64 }; /* of a list */

static const cli_option options[] = {
    {.name = "c",
     .letter = 'C',
     .value = "LIST",
     .type = CLI_STRING,
     .initial = "1,10,100",
     .help = "prices of an error to try"},
    {.name = "gamma",
     .value = "LIST",
     .type = CLI_STRING,
     .initial = "scale/4,scale,scale*4",
     .help = "gammas to try: numbers, or scale and auto, also with a factor"},
    {.name = "folds",
     .value = "N",
     .type = CLI_INT,
     .min = 2,
     .max = 255,
     .initial = "5",
     .help = "folds of the cross-validation"},
    {.name = "json", .type = CLI_FLAG, .help = "print the result as JSON"},
};

static const cli_group group = {"Options", options, sizeof options / sizeof *options};

typedef struct list {
    double values[POINTS_MAX];
    int count;
} list;

static int read_positive(const char *text, double *out) {
    return cli_read_real(text, out) && *out > 0;
}

/* "0.5", and for gammas "scale", "auto", "scale*2", "auto/3". */
static int read_entry(const char *word, const double *scale, double columns, double *out) {
    double base = 0, factor = 1;
    size_t length = 0;
    if (read_positive(word, out)) {
        return 1;
    }
    if (scale && strncmp(word, "scale", 5) == 0) {
        base = *scale;
        length = 5;
    } else if (scale && strncmp(word, "auto", 4) == 0) {
        base = 1 / columns;
        length = 4;
    }
    if (length == 0 || (word[length] && ((word[length] != '*' && word[length] != '/') ||
                                         !read_positive(word + length + 1, &factor)))) {
        return 0;
    }
    *out = word[length] == '/' ? base / factor : base * factor;
    return isfinite(*out) && *out > 0;
}

static int read_list(const cli_arguments *arguments, const char *option, const double *scale, double columns,
                     list *out) {
    const char *text = cli_string(arguments, option);
    char *copy = strdup(text), *rest = copy, *word;
    int code = CLI_OK;
    cli_need_memory(copy);
    while (code == CLI_OK && (word = strsep(&rest, ",")) != NULL) {
        if (out->count == POINTS_MAX) {
            code = cli_usage(arguments->command, "--%s: a list has at most %d numbers", option, POINTS_MAX);
        } else if (!read_entry(word, scale, columns, &out->values[out->count++])) {
            code = cli_usage(arguments->command, "--%s: '%s' is not %s", option, word,
                             scale ? "a number above 0, scale or auto, maybe with *2 or /2 behind it"
                                   : "a number above 0");
        }
    }
    free(copy);
    return code;
}

/* 1 / (columns * variance of all values), as gamma by scale is defined. */
static double scale_of(const cli_svm_input *input) {
    double sum = 0, squares = 0, count = (double)input->n * (double)input->d;
    for (size_t i = 0; i < input->n * input->d; i++) {
        sum += input->x[i];
    }
    for (size_t i = 0; i < input->n * input->d; i++) {
        squares += (input->x[i] - sum / count) * (input->x[i] - sum / count);
    }
    return 1 / ((double)input->d * squares / count);
}

typedef struct outcome {
    cli_session *session;
    latent_svm_kernel kernel;
    latent_svm_point points[POINTS_MAX * POINTS_MAX];
    int count, best, done, folds;
    double seconds;
} outcome;

static void on_point(void *user, const latent_svm_point *point) {
    outcome *o = user;
    o->done++;
    if (o->kernel == LATENT_SVM_RBF) {
        cli_progress_line(&o->session->progress, "%d/%d  C %g  gamma %.4g  %.2f%%  %s", o->done, o->count,
                          point->c, point->gamma, 100 * point->accuracy, cli_duration(point->seconds).s);
    } else {
        cli_progress_line(&o->session->progress, "%d/%d  C %g  %.2f%%  %s", o->done, o->count, point->c,
                          100 * point->accuracy, cli_duration(point->seconds).s);
    }
}

static void fill_point(cli_json *json, const outcome *o, const latent_svm_point *point) {
    cli_json_number(json, "c", point->c);
    if (o->kernel == LATENT_SVM_RBF) {
        cli_json_number(json, "gamma", point->gamma);
    }
    cli_json_number(json, "accuracy", point->accuracy);
}

static void fill(cli_json *json, void *user) {
    const outcome *o = user;
    cli_json_integer(json, "folds", (uint64_t)o->folds);
    cli_json_number(json, "seconds", o->seconds);
    cli_json_open(json, "best", '{');
    fill_point(json, o, &o->points[o->best]);
    cli_json_close(json, '}');
    cli_json_open(json, "points", '[');
    for (int i = 0; i < o->count; i++) {
        cli_json_open(json, NULL, '{');
        fill_point(json, o, &o->points[i]);
        cli_json_integer(json, "iterations", o->points[i].iterations);
        cli_json_number(json, "seconds", o->points[i].seconds);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void print(const outcome *o) {
    cli_table table = cli_table_new("rrrrl");
    cli_table_cell(&table, "C");
    cli_table_cell(&table, "gamma");
    cli_table_cell(&table, "accuracy");
    cli_table_cell(&table, "time");
    cli_table_cell(&table, "%s", "");
    for (int i = 0; i < o->count; i++) {
        const latent_svm_point *p = &o->points[i];
        cli_table_cell(&table, "%g", p->c);
        cli_table_cell(&table, o->kernel == LATENT_SVM_RBF ? "%.6g" : "-", p->gamma);
        cli_table_cell(&table, "%.2f%%", 100 * p->accuracy);
        cli_table_cell(&table, "%s", cli_duration(p->seconds).s);
        cli_table_cell(&table, "%s", i == o->best ? "best" : "");
    }
    cli_table_print(&table, stdout, "");
}

static int work(cli_session *session, const cli_arguments *arguments, const cli_svm_setting *setting,
                const cli_svm_input *input, outcome *o) {
    latent_engine_options engine = cli_engine(arguments);
    list cs = {0}, gammas = {0};
    double scale = 0, begun = cli_clock();
    int code = read_list(arguments, "c", NULL, 0, &cs);
    if (code == CLI_OK && o->kernel == LATENT_SVM_RBF) {
        scale = scale_of(input);
        code = read_list(arguments, "gamma", &scale, (double)input->d, &gammas);
    }
    if (code == CLI_OK) {
        o->count = cs.count * (gammas.count > 0 ? gammas.count : 1);
        code = cli_svm_status(session, input,
                              latent_svm_grid(session->ctx, input->x, input->n, input->d, input->labels,
                                              &setting->options, o->folds, cs.values, cs.count, gammas.values,
                                              gammas.count, &engine, on_point, o, o->points, &o->best));
        cli_progress_clear(&session->progress);
    }
    o->seconds = cli_clock() - begun;
    return code;
}

static int run(cli_session *session, const cli_arguments *arguments) {
    cli_svm_setting setting = {0};
    cli_svm_input input = {0};
    outcome *o = calloc(1, sizeof *o);
    cli_need_memory(o);
    int code = cli_svm_settle(session, arguments, &setting);
    o->session = session;
    o->kernel = setting.options.kernel;
    o->folds = (int)cli_get(arguments, "folds")->integer;
    if (code == CLI_OK) {
        code = cli_svm_check_gamma(arguments);
    }
    if (code == CLI_OK) {
        code = cli_svm_read(session, arguments, arguments->operands[0], LATENT_TRAIN, 1, NULL, &input);
    }
    if (code == CLI_OK) {
        code = work(session, arguments, &setting, &input, o);
    }
    if (code == CLI_OK && cli_flag(arguments, "json")) {
        cli_record_print(fill, o);
    } else if (code == CLI_OK) {
        print(o);
    }
    free(o);
    cli_svm_input_free(&input);
    cli_svm_setting_free(&setting);
    return code;
}

const cli_command cli_command_svm_grid = {
    .name = "svm grid",
    .summary = "find C and gamma by cross-validation",
    .operands = "FEATURES",
    .operands_min = 1,
    .operands_max = 1,
    .about = "Cross-validates every C with every gamma on the training features. Distances are computed once "
             "and the kernel matrix once for each gamma; each C starts from the solution of the one below.",
    .examples = "latent svm grid runs/mine/features\n"
                "latent svm grid x.npy --labels y.npy -C 0.1,1,10 --gamma scale/2,scale,scale*2 --json",
    .groups = {&group, &cli_svm_input_group, &cli_svm_problem_group, &cli_svm_solver_group, &cli_engine_group,
               &cli_quiet_group},
    .run = run,
};
