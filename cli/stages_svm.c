/* stages_svm.c: the last stages of `latent run`: the support vector machine, its scores, the report. */
#include "feature_job.h"
#include "format.h"
#include "pipeline.h"
#include "record.h"
#include "svm_job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- svm ---- */

/* The features themselves count, whoever made them and on whatever engine. */
char *cli_svm_inputs(cli_pipeline *p, int *code) {
    char *features = cli_features_inputs(p, code), *folder = cli_join(p->run, "features"), *text = NULL;
    static const char *const rules[] = {"scale", "auto", "number"};
    latent_features_info info = {0};
    char rows[33];
    if (features) {
        /* What is wrong with them is said by whoever reads them. */
        (void)latent_features_read(p->session->ctx, folder, &info);
        cli_pipeline_fingerprint(p, "features/train.npy", rows);
        text = cli_print("%s; %s rows %s; kernel %s; C %.17g; gamma %s %.17g; tolerance %.17g", features,
                         info.precision, rows, cli_svm_kernel_name(p->svm.kernel), p->svm.c,
                         rules[p->svm.gamma_rule], p->svm.gamma, p->svm.tolerance);
    }
    free(folder);
    free(features);
    return text;
}

int cli_svm_there(cli_pipeline *p) {
    return cli_pipeline_has(p, "svm/model.safetensors");
}

typedef struct trained {
    const latent_svm_options *options;
    const latent_svm_report *report;
    double read_seconds, save_seconds;
} trained;

static void fill_svm(cli_json *json, void *user) {
    const trained *t = user;
    cli_svm_setting_json(json, t->options, t->report);
    cli_json_string(json, "engine", t->report->engine);
    cli_json_integer(json, "rows", t->report->n);
    cli_json_integer(json, "width", t->report->d);
    cli_svm_report_json(json, t->report);
    cli_json_number(json, "read_seconds", t->read_seconds);
    cli_json_number(json, "save_seconds", t->save_seconds);
}

static int make_folder(cli_pipeline *p, const char *name) {
    char *folder = cli_join(p->run, name);
    int code = mkdir(folder, 0777) == 0 || errno == EEXIST
                   ? CLI_OK
                   : cli_fail(p->session, "%s: cannot create the folder: %s", folder, strerror(errno));
    free(folder);
    return code;
}

static int save_machine(cli_pipeline *p, const latent_svm_report *report, double read_seconds) {
    char *model = cli_join(p->run, "svm/model.safetensors"), *json = cli_join(p->run, "svm/svm.json");
    double began = cli_clock();
    int code = make_folder(p, "svm");
    if (code == CLI_OK) {
        code = cli_status(p->session,
                          latent_svm_save(p->session->ctx, p->machine, model, LATENT_SVM_SAFETENSORS));
    }
    if (code == CLI_OK) {
        trained record = {&p->svm, report, read_seconds, cli_clock() - began};
        code = cli_record_save(p->session, json, fill_svm, &record);
    }
    free(model);
    free(json);
    return code;
}

int cli_svm_work(cli_pipeline *p, char summary[CLI_SUMMARY_MAX]) {
    latent_rows rows = {0};
    int32_t *labels = NULL;
    latent_svm_report report;
    latent_svm_options options = p->svm;
    char *features = cli_join(p->run, "features");
    double began = cli_clock();
    options.progress = cli_svm_progress;
    options.user = p->session;
    latent_svm_destroy(p->machine);
    p->machine = NULL;
    int code = cli_features_read(p->session, features, LATENT_TRAIN, 0, &rows, &labels);
    double read_seconds = cli_clock() - began;
    if (code == CLI_OK) {
        code = cli_status(p->session, latent_svm_train(p->session->ctx, rows.x, rows.n, rows.d, labels,
                                                       &options, &p->engine, &p->machine, &report));
        cli_progress_clear(&p->session->progress);
    }
    if (code == CLI_OK) {
        cli_svm_warn(p->session, &report);
        code = save_machine(p, &report, read_seconds);
    }
    if (code == CLI_OK) {
        snprintf(summary, CLI_SUMMARY_MAX, "%s, C %g, gamma %.4g, %s support vectors of %s rows",
                 cli_svm_kernel_name(p->svm.kernel), p->svm.c, report.gamma, cli_count(report.support).s,
                 cli_count(rows.n).s);
    }
    latent_rows_free(&rows);
    latent_free(labels);
    free(features);
    return code;
}

/* ---- eval ---- */

char *cli_eval_inputs(cli_pipeline *p, int *code) {
    char *machine = cli_svm_inputs(p, code), *text = NULL, model[33], rows[33];
    if (machine) {
        cli_pipeline_fingerprint(p, "svm/model.safetensors", model);
        cli_pipeline_fingerprint(p, "features/test.npy", rows);
        text = cli_print("%s; machine %s; %d test images, rows %s", machine, model,
                         p->data_info.count[LATENT_TEST], rows);
    }
    free(machine);
    return text;
}

int cli_eval_there(cli_pipeline *p) {
    return cli_pipeline_has(p, "eval.json") && cli_pipeline_has(p, "pictures.safetensors");
}

static int load_machine(cli_pipeline *p) {
    if (p->machine) {
        return CLI_OK;
    }
    char *path = cli_join(p->run, "svm/model.safetensors");
    int code = cli_status(p->session, latent_svm_load(p->session->ctx, path, &p->engine, &p->machine));
    free(path);
    return code;
}

static int keep_scores(cli_pipeline *p, cli_evaluation *evaluation, const cli_scores *scores) {
    char *json = cli_join(p->run, "eval.json"), *pictures = cli_join(p->run, "pictures.safetensors"),
         *model = cli_join(p->run, "svm/model.safetensors");
    evaluation->svm = model;
    int code = cli_record_save(p->session, json, cli_evaluation_fill, evaluation);
    if (code == CLI_OK) {
        code = cli_status(p->session, latent_pictures_write(p->session->ctx, p->model, p->data, LATENT_TEST,
                                                            scores->predicted, pictures));
    }
    free(json);
    free(pictures);
    free(model);
    return code;
}

int cli_eval_work(cli_pipeline *p, char summary[CLI_SUMMARY_MAX]) {
    cli_scores scores = {0};
    cli_evaluation evaluation = {.model = p->run, .split = "test", .set = p->data, .data = p->data_info};
    char *features = cli_join(p->run, "features");
    int code = cli_pipeline_model(p);
    if (code == CLI_OK) {
        code = load_machine(p);
    }
    if (code == CLI_OK) {
        evaluation.engine = latent_model_engine(p->model);
        memcpy(evaluation.weights, p->weights, sizeof evaluation.weights);
        memcpy(evaluation.digest, p->digest, sizeof evaluation.digest);
        code = cli_status(p->session, latent_model_evaluate(p->session->ctx, p->model, p->data, LATENT_TEST,
                                                            &evaluation.loss));
    }
    if (code == CLI_OK) {
        code = cli_scores_compute(p->session, p->machine, features, LATENT_TEST, p->data, &scores);
        evaluation.scores = &scores;
    }
    if (code == CLI_OK) {
        code = keep_scores(p, &evaluation, &scores);
    }
    if (code == CLI_OK) {
        snprintf(summary, CLI_SUMMARY_MAX, "accuracy %.2f%%, macro F1 %.4f, test loss %.6f",
                 100 * scores.score.accuracy, scores.score.macro_f1, evaluation.loss.loss);
    }
    cli_scores_free(&scores);
    free(features);
    return code;
}

/* ---- report ---- */

/* The page is cheap and shows everything: any stage that worked, and a ladder that is new, make it anew. */
char *cli_report_inputs(cli_pipeline *p, int *code) {
    char *eval = cli_eval_inputs(p, code), *own = cli_join(p->run, "ladder.json"), *text = NULL, file[33];
    const char *ladder = cli_string(p->arguments, "ladder");
    if (eval) {
        (void)latent_file_fingerprint(p->session->ctx, ladder ? ladder : own, file); /* "": there is none */
        text = cli_print("%s; ladder %s %s", eval, ladder ? ladder : "the run's own", file);
    }
    free(own);
    free(eval);
    return text;
}

int cli_report_there(cli_pipeline *p) {
    return p->worked == 0 && cli_pipeline_has(p, "report.html");
}

int cli_report_work(cli_pipeline *p, char summary[CLI_SUMMARY_MAX]) {
    char *path = cli_join(p->run, "report.html");
    const char *runs[] = {p->run};
    int code = cli_status(
        p->session, latent_report_write(p->session->ctx, runs, 1, cli_string(p->arguments, "ladder"), path));
    snprintf(summary, CLI_SUMMARY_MAX, "%s", path);
    free(path);
    return code;
}
