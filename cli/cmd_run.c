/* cmd_run.c: `latent run`: the whole way from images to a report in one command.
 *
 * The stages are data, train, features, svm, eval and report. Each is recorded in the run's journal with
 * everything that decides its output; one whose record still says the same, and whose output is there, is
 * skipped. So the same command finishes what was interrupted, and a changed flag redoes what depends on it.
 */
#include "feature_job.h"
#include "format.h"
#include "option_rows.h"
#include "pipeline.h"
#include "record.h"
#include "svm_job.h"
#include "table.h"
#include "train_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const cli_option options[] = {
    CLI_ROW_DATA(.otherwise = "$LATENT_DATA, ./data, $XDG_CACHE_HOME/latent, else a synthetic set"),
    {.name = "run",
     .letter = 'r',
     .value = "DIR",
     .type = CLI_STRING,
     .otherwise = "runs/NET",
     .help = "run folder, new or to be finished"},
    {.name = "synthetic", .type = CLI_FLAG, .help = "take a synthetic set, made in the run folder"},
    {.name = "synthetic-train",
     .value = "N",
     .type = CLI_INT,
     .min = 10,
     .max = 1000000,
     .initial = "5000",
     .help = "training images of the synthetic set"},
    {.name = "synthetic-test",
     .value = "N",
     .type = CLI_INT,
     .min = 10,
     .max = 1000000,
     .initial = "1000",
     .help = "test images of the synthetic set"},
    {.name = "until",
     .value = "STAGE",
     .type = CLI_CHOICE,
     .choices = "data|train|features|svm|eval|report",
     .initial = "report",
     .help = "stop after this stage"},
    {.name = "overwrite", .type = CLI_FLAG, .help = "do every stage again, whatever is there"},
    CLI_ROW_LADDER(.help = "what 'latent bench ladder' measured, for the report"),
    {.name = "json", .type = CLI_FLAG, .help = "print the summary as JSON"},
};

static const cli_group group = {"Options", options, sizeof options / sizeof *options};

static const cli_option svm_options[] = {
    CLI_ROW_C,
    CLI_ROW_GAMMA,
    CLI_ROW_KERNEL,
    CLI_ROW_TOLERANCE,
};

static const cli_group svm_group = {"Support vector machine", svm_options,
                                    sizeof svm_options / sizeof *svm_options};

static int settle_svm(const cli_arguments *arguments, latent_svm_options *out) {
    latent_svm_defaults(out);
    out->kernel = cli_svm_kernel(arguments);
    out->tolerance = cli_get(arguments, "tolerance")->real;
    return cli_svm_point(arguments, out);
}

/* Net, recipe, features and SVM: everything that can be wrong before anything is written. */
static int settle(cli_pipeline *p) {
    const cli_arguments *arguments = p->arguments;
    const char *name = arguments->operands[0] ? arguments->operands[0] : "autoencoder";
    const char *run = cli_string(arguments, "run");
    latent_net_info info;
    if (cli_string(arguments, "data") && cli_flag(arguments, "synthetic")) {
        return cli_usage(arguments->command, "--data names a set and --synthetic makes one: give one");
    }
    int code = cli_status(p->session, latent_net_load(p->session->ctx, name, &p->net));
    if (code != CLI_OK) {
        return code;
    }
    latent_net_get_info(p->net, &info);
    if (!info.latent[0]) {
        return cli_fail(p->session,
                        "the net '%s' has no latent line, so it has no features; add one after the op whose "
                        "output they are",
                        info.name);
    }
    p->run = run ? strdup(run) : cli_join("runs", info.name);
    cli_need_memory(p->run);
    p->engine = cli_engine(arguments);
    latent_train_defaults(p->net, &p->train);
    p->train.seed = (uint64_t)cli_get(arguments, "seed")->integer;
    code = cli_recipe_apply(p->session, arguments, &p->train.recipe);
    if (code == CLI_OK) {
        code = cli_features_settle(arguments, &p->features);
    }
    return code == CLI_OK ? settle_svm(arguments, &p->svm) : code;
}

/* The run folder with its parents. */
static int make_folder(cli_session *session, const char *path) {
    char *part = strdup(path);
    cli_need_memory(part);
    for (char *at = part + 1;; at++) {
        if (*at == '/' || !*at) {
            char was = *at;
            *at = 0;
            if (mkdir(part, 0777) != 0 && !cli_is_folder(part)) {
                int code = cli_fail(session, "%s: cannot create the folder %s", path, part);
                free(part);
                return code;
            }
            *at = was;
            if (!was) {
                break;
            }
        }
    }
    free(part);
    return CLI_OK;
}

/* A training that somebody made by hand is not thrown away for a stage that it was not made for. */
static int check_folder(cli_pipeline *p) {
    int foreign = cli_folder_has_run(p->run) && !cli_pipeline_has(p, "run.json");
    if (foreign && !cli_flag(p->arguments, "overwrite")) {
        return cli_fail(p->session,
                        "%s holds a run that 'latent run' did not make; name another folder with --run, or "
                        "replace it with --overwrite",
                        p->run);
    }
    return CLI_OK;
}

static int begin(cli_pipeline *p) {
    int code = check_folder(p);
    if (code == CLI_OK) {
        code = make_folder(p->session, p->run);
    }
    if (code == CLI_OK) {
        code = cli_status(p->session, latent_journal_open(p->session->ctx, p->run, &p->journal));
    }
    if (code == CLI_OK) {
        double began = cli_clock();
        code = cli_stage_data(p);
        p->data_seconds = cli_clock() - began;
    }
    if (code == CLI_OK) {
        code = cli_subset(p->arguments, p->data, &p->train.subset);
        p->features.subset = p->train.subset;
    }
    if (code == CLI_OK) {
        char *machine = cli_machine();
        char *command = cli_command_line(p->arguments, p->run,
                                         cli_string(p->arguments, "data") ? p->data_info.path : NULL);
        code = cli_status(p->session, latent_journal_describe(p->session->ctx, p->journal, command, machine));
        free(machine);
        free(command);
    }
    return code;
}

static void show_skipped(cli_pipeline *p, int index, const latent_stage *record) {
    cli_note(p->session, "%s[%d/%d] %-8s%s  up to date%s%s", cli_color(&p->session->progress, CLI_DIM),
             index + 1, CLI_STAGES, cli_stages[index].name, cli_color(&p->session->progress, CLI_RESET),
             *record->summary ? ": " : "", record->summary);
}

/* Skips the stage or does it. */
static int run_stage(cli_pipeline *p, int index) {
    const cli_stage *stage = &cli_stages[index];
    char summary[CLI_SUMMARY_MAX] = "";
    int code = CLI_OK;
    char *inputs = stage->inputs(p, &code);
    if (!inputs) {
        return code;
    }
    const latent_stage *record = latent_journal_find(p->journal, stage->name);
    int fresh = record && strcmp(record->inputs, inputs) == 0 && !cli_flag(p->arguments, "overwrite") &&
                stage->there(p);
    if (fresh) {
        show_skipped(p, index, record);
    } else {
        cli_note(p->session, "%s[%d/%d] %-8s%s  %s", cli_color(&p->session->progress, CLI_BOLD), index + 1,
                 CLI_STAGES, stage->name, cli_color(&p->session->progress, CLI_RESET), stage->doing);
        latent_stage gone = {.name = stage->name}, made = {.name = stage->name, .inputs = inputs};
        double began = cli_clock();
        code = cli_status(p->session, latent_journal_record(p->session->ctx, p->journal, &gone));
        if (code == CLI_OK) {
            code = stage->work(p, summary);
        }
        if (code == CLI_OK) {
            made.summary = summary;
            made.seconds = cli_clock() - began + (index == 0 ? p->data_seconds : 0);
            p->worked++;
            code = cli_status(p->session, latent_journal_record(p->session->ctx, p->journal, &made));
            cli_note(p->session, "      %-8s  %s: %s", stage->name, cli_duration(made.seconds).s, summary);
        }
    }
    free(inputs);
    return code;
}

static int run_stages(cli_pipeline *p) {
    const char *until = cli_string(p->arguments, "until");
    int code = CLI_OK;
    for (int i = 0; i < CLI_STAGES && code == CLI_OK; i++) {
        code = run_stage(p, i);
        if (strcmp(cli_stages[i].name, until) == 0) {
            break;
        }
        if (code == CLI_OK && cli_interrupted()) {
            code = cli_fail(p->session, "interrupted after the stage %s", cli_stages[i].name);
            code = CLI_INTERRUPTED;
        }
    }
    return code;
}

typedef struct ending {
    const cli_pipeline *p;
    const char *report;
    const latent_target *targets;
} ending;

static const char *verdict(int met) {
    return met < 0 ? "not measured" : met ? "yes" : "no";
}

static void fill_ending(cli_json *json, void *user) {
    const ending *e = user;
    cli_json_string(json, "run", e->p->run);
    cli_json_string(json, "report", e->report);
    cli_json_string(json, "data", e->p->data_info.path);
    cli_json_boolean(json, "synthetic", e->p->data_info.synthetic);
    cli_json_integer(json, "stages_done_now", (uint64_t)e->p->worked);
    cli_json_open(json, "stages", '[');
    for (int i = 0; i < CLI_STAGES; i++) {
        const latent_stage *stage = latent_journal_find(e->p->journal, cli_stages[i].name);
        if (stage) {
            cli_json_open(json, NULL, '{');
            cli_json_string(json, "name", stage->name);
            cli_json_number(json, "seconds", stage->seconds);
            cli_json_string(json, "summary", stage->summary);
            cli_json_close(json, '}');
        }
    }
    cli_json_close(json, ']');
    cli_json_open(json, "targets", '[');
    for (int i = 0; i < LATENT_TARGETS; i++) {
        cli_json_open(json, NULL, '{');
        cli_json_string(json, "name", e->targets[i].name);
        cli_json_string(json, "goal", e->targets[i].goal);
        cli_json_string(json, "measured", e->targets[i].measured);
        cli_json_string(json, "reached", verdict(e->targets[i].met));
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void print_ending(const ending *e) {
    cli_table table = cli_table_new("lrl");
    for (int i = 0; i < CLI_STAGES; i++) {
        const latent_stage *stage = latent_journal_find(e->p->journal, cli_stages[i].name);
        if (stage) {
            cli_table_cell(&table, "%s", stage->name);
            cli_table_cell(&table, "%s", cli_duration(stage->seconds).s);
            cli_table_cell(&table, "%s", stage->summary);
        }
    }
    cli_table_print(&table, stdout, "");
    printf("\n");
    table = cli_table_new("llll");
    static const char *const heads[] = {"target", "wanted", "measured", "reached"};
    for (int i = 0; i < 4; i++) {
        cli_table_cell(&table, "%s", heads[i]);
    }
    cli_table_rule(&table);
    for (int i = 0; i < LATENT_TARGETS; i++) {
        cli_table_cell(&table, "%s", e->targets[i].name);
        cli_table_cell(&table, "%s", e->targets[i].goal);
        cli_table_cell(&table, "%s", e->targets[i].measured);
        cli_table_cell(&table, "%s", verdict(e->targets[i].met));
    }
    cli_table_print(&table, stdout, "");
}

static int end(cli_pipeline *p) {
    latent_target targets[LATENT_TARGETS];
    char *path = cli_join(p->run, "report.html");
    int written = cli_pipeline_has(p, "report.html") && latent_journal_find(p->journal, "report");
    ending e = {p, written ? path : NULL, targets};
    /* Stopped early, there may be nothing to look at yet. */
    int code = cli_folder_has_run(p->run)
                   ? cli_status(p->session, latent_run_targets(p->session->ctx, p->run,
                                                               cli_string(p->arguments, "ladder"), targets))
                   : CLI_INTERRUPTED;
    if (code == CLI_INTERRUPTED) {
        code = CLI_OK;
    } else if (code == CLI_OK && cli_flag(p->arguments, "json")) {
        cli_record_print(fill_ending, &e);
    } else if (code == CLI_OK) {
        print_ending(&e);
        if (written) {
            printf("\nreport  %s\n", path);
        }
    }
    free(path);
    return code;
}

static int run_run(cli_session *session, const cli_arguments *arguments) {
    cli_pipeline p = {.session = session, .arguments = arguments};
    int code = settle(&p);
    if (code == CLI_OK) {
        code = begin(&p);
    }
    if (code == CLI_OK) {
        code = run_stages(&p);
    }
    if (code == CLI_INTERRUPTED) {
        cli_note(session, "what is complete is kept; the same command goes on from here");
    }
    if (code == CLI_OK) {
        code = end(&p);
    }
    cli_pipeline_free(&p);
    return code;
}

const cli_command cli_command_run = {
    .name = "run",
    .summary = "the whole way: train, features, SVM, scores, report",
    .operands = "[NET]",
    .operands_max = 1,
    .about = "Trains the autoencoder without labels, writes the features of all images, trains a support "
             "vector machine on them, scores it on the test images and writes a report. NET is a preset or a "
             "net file with a latent line; without one it is the preset autoencoder. Without a data set at "
             "hand a synthetic one is made.\nA stage whose output is there and up to date is skipped; the "
             "same command again finishes what was interrupted, and a changed flag redoes what depends on "
             "it. With --subset the SVM, too, sees only the first images.\n--raw-features is the published "
             "recipe: the encoder's output as it is.",
    .examples = "latent run\nlatent run --data ./data --run runs/full --epochs 20\n"
                "latent run --synthetic --subset 1000 --epochs 2 --run runs/try\n"
                "latent run --run runs/full --raw-features",
    .groups = {&group, &cli_recipe_group, &cli_features_group, &svm_group, &cli_engine_group,
               &cli_quiet_group},
    .run = run_run,
};
