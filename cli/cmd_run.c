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
#include "svm_job.h"
#include "train_job.h"

#include <errno.h>
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

/* The size of a synthetic set means nothing where another set is taken. */
static int check_synthetic(const cli_arguments *arguments) {
    int sized = cli_get(arguments, "synthetic-train")->given || cli_get(arguments, "synthetic-test")->given;
    char *found = sized && !cli_flag(arguments, "synthetic")
                      ? cli_find_data(cli_string(arguments, "data"), NULL)
                      : NULL;
    int code = found
                   ? cli_usage(arguments->command,
                               "--synthetic-train and --synthetic-test are sizes of a set that is made, and "
                               "%s is taken: give --synthetic instead of it, or leave them out",
                               found)
                   : CLI_OK;
    free(found);
    return code;
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
    int code = check_synthetic(arguments);
    if (code != CLI_OK) {
        return code;
    }
    code = cli_status(p->session, latent_net_load(p->session->ctx, name, &p->net));
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
    p->overwrite = cli_flag(arguments, "overwrite");
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
            int error = mkdir(part, 0777) != 0 ? errno : 0;
            if (error && !cli_is_folder(part)) {
                int code = cli_fail(session, "%s: cannot create the folder %s: %s", path, part,
                                    error == EEXIST ? "a file has that name" : strerror(error));
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
    if (foreign && !p->overwrite) {
        return cli_fail(p->session,
                        "%s holds a run that 'latent run' did not make; name another folder with --run, or "
                        "replace it with --overwrite",
                        p->run);
    }
    return CLI_OK;
}

/* A ladder that cannot be shown is told of before hours are spent. */
static int check_ladder(cli_pipeline *p) {
    const char *ladder = cli_string(p->arguments, "ladder");
    return ladder ? cli_status(p->session, latent_ladder_check(p->session->ctx, ladder)) : CLI_OK;
}

static int open_journal(cli_pipeline *p) {
    if (p->overwrite) {
        return cli_status(p->session, latent_journal_create(p->session->ctx, p->run, &p->journal));
    }
    int code = cli_status(p->session, latent_journal_open(p->session->ctx, p->run, &p->journal));
    if (code != CLI_OK) {
        cli_fail(p->session, "the same command with --overwrite does every stage again and replaces it");
    }
    return code;
}

static int settle_data(cli_pipeline *p) {
    latent_dataset_get_info(p->data, &p->data_info);
    latent_dataset_digest(p->data, p->digest);
    int code = cli_subset(p->arguments, p->data, &p->train.subset);
    p->features.subset = p->train.subset;
    return code;
}

/* What can be refused is refused before the folder is made; a synthetic set goes into it. */
static int begin(cli_pipeline *p) {
    double began = cli_clock();
    int (*const steps[])(cli_pipeline *) = {check_folder, check_ladder, open_journal, cli_data_open};
    int code = CLI_OK;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && code == CLI_OK; i++) {
        code = steps[i](p);
    }
    if (code == CLI_OK && p->data) {
        code = settle_data(p);
    }
    if (code == CLI_OK) {
        code = make_folder(p->session, p->run);
    }
    if (code == CLI_OK && !p->data) {
        code = cli_data_make(p);
        if (code == CLI_OK) {
            code = settle_data(p);
        }
    }
    p->data_seconds = cli_clock() - began;
    if (code == CLI_OK) {
        char *machine = cli_machine();
        char *command = cli_command_line(p->arguments, p->run, p->made ? NULL : p->data_info.path);
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

/* 1 when the stage was completed from the same inputs and its files are as it left them. */
static int is_fresh(cli_pipeline *p, const cli_stage *stage, const char *inputs) {
    const latent_stage *record = latent_journal_find(p->journal, stage->name);
    if (p->overwrite || !record || strcmp(record->inputs, inputs) != 0) {
        return 0;
    }
    const char *changed = latent_journal_changed(p->journal, stage->name);
    if (changed) {
        cli_note(p->session, "%s/%s is not what the stage %s left there, so that is done again", p->run,
                 changed, stage->name);
    }
    return !changed && stage->there(p);
}

/* The stage is on record as begun, or not at all, while it works: whatever ends it, it is not taken for
 * complete. What it has taken so far counts where it goes on from there. */
static int do_stage(cli_pipeline *p, const cli_stage *stage, const char *inputs, double before) {
    char summary[CLI_SUMMARY_MAX] = "";
    latent_stage record = {.name = stage->name, .inputs = stage->continues ? inputs : NULL, .unfinished = 1};
    const latent_stage *old = latent_journal_find(p->journal, stage->name);
    snprintf(p->summary, sizeof p->summary, "%s", old ? old->summary : "");
    int code = stage->ready ? stage->ready(p) : CLI_OK;
    if (code != CLI_OK) {
        return code;
    }
    p->goes_on = stage->continues && !p->overwrite && stage->continues(p);
    record.seconds = before + (p->goes_on ? latent_journal_spent(p->journal, stage->name) : 0);
    double began = cli_clock(), earlier = record.seconds;
    code = cli_status(p->session, latent_journal_record(p->session->ctx, p->journal, &record));
    if (code == CLI_OK) {
        code = stage->work(p, summary);
    }
    record.seconds = earlier + cli_clock() - began;
    if (code == CLI_OK) {
        record.inputs = inputs;
        record.summary = summary;
        record.files = stage->files;
        record.unfinished = 0;
        p->worked++;
        code = cli_status(p->session, latent_journal_record(p->session->ctx, p->journal, &record));
        if (code == CLI_OK) {
            cli_note(p->session, "      %-8s  %s: %s", stage->name, cli_duration(record.seconds).s, summary);
        }
    } else if (stage->continues) {
        (void)latent_journal_record(p->session->ctx, p->journal, &record); /* of two troubles, the first */
    }
    return code;
}

/* Skips the stage or does it. */
static int run_stage(cli_pipeline *p, int index) {
    const cli_stage *stage = &cli_stages[index];
    int code = CLI_OK;
    char *inputs = stage->inputs(p, &code);
    if (!inputs) {
        return code;
    }
    if (is_fresh(p, stage, inputs)) {
        show_skipped(p, index, latent_journal_find(p->journal, stage->name));
    } else {
        cli_note(p->session, "%s[%d/%d] %-8s%s  %s", cli_color(&p->session->progress, CLI_BOLD), index + 1,
                 CLI_STAGES, stage->name, cli_color(&p->session->progress, CLI_RESET), stage->doing);
        code = do_stage(p, stage, inputs, index == 0 ? p->data_seconds : 0);
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
        cli_note(session, "what is complete is kept; the same command%s goes on from here",
                 p.overwrite ? " without --overwrite" : "");
    }
    if (code == CLI_OK) {
        code = cli_run_summary(&p);
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
