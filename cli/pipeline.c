/* pipeline.c: the table of stages and what they share. */
#include "pipeline.h"

#include "format.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *data_inputs(cli_pipeline *p, int *code) {
    *code = CLI_OK;
    return cli_print("%s; %d training and %d test images", p->data_info.path,
                     p->data_info.count[LATENT_TRAIN], p->data_info.count[LATENT_TEST]);
}

/* The set was found or made before the first stage: the others cannot say what they want without it. */
static int data_there(cli_pipeline *p) {
    return p->data != NULL;
}

static int data_work(cli_pipeline *p, char summary[CLI_SUMMARY_MAX]) {
    snprintf(summary, CLI_SUMMARY_MAX, "%s, %s training and %s test images",
             p->data_info.synthetic ? "synthetic" : "found",
             cli_count((uint64_t)p->data_info.count[LATENT_TRAIN]).s,
             cli_count((uint64_t)p->data_info.count[LATENT_TEST]).s);
    return CLI_OK;
}

const cli_stage cli_stages[CLI_STAGES] = {
    {"data", "the data set", data_inputs, data_there, data_work},
    {"train", "training the autoencoder", cli_train_inputs, cli_train_there, cli_train_work},
    {"features", "encoding all images", cli_features_inputs, cli_features_there, cli_features_work},
    {"svm", "training the support vector machine", cli_svm_inputs, cli_svm_there, cli_svm_work},
    {"eval", "scoring the test images", cli_eval_inputs, cli_eval_there, cli_eval_work},
    {"report", "writing the report", cli_report_inputs, cli_report_there, cli_report_work},
};

int cli_pipeline_model(cli_pipeline *p) {
    return p->model ? CLI_OK
                    : cli_status(p->session,
                                 latent_model_load(p->session->ctx, p->run, NULL, &p->engine, &p->model));
}

int cli_pipeline_has(const cli_pipeline *p, const char *name) {
    char *path = cli_join(p->run, name);
    int there = access(path, R_OK) == 0;
    free(path);
    return there;
}

char *cli_print(const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    cli_need_memory(length < 0 ? NULL : text);
    return text;
}

void cli_pipeline_free(cli_pipeline *p) {
    latent_svm_destroy(p->machine);
    latent_model_destroy(p->model);
    latent_dataset_destroy(p->data);
    latent_journal_destroy(p->journal);
    latent_net_destroy(p->net);
    free(p->run);
}
