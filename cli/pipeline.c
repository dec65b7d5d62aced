/* pipeline.c: the table of stages and what they share. */
#include "pipeline.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILES(...) ((const char *const[]){__VA_ARGS__, NULL})

const cli_stage cli_stages[CLI_STAGES] = {
    {"data", "the data set", cli_data_inputs, cli_data_there, NULL, NULL, cli_data_work, NULL},
    {"train", "training the autoencoder", cli_train_inputs, cli_train_there, cli_train_ready,
     cli_train_continues, cli_train_work,
     FILES("config.json", "metrics.jsonl", "checkpoint.safetensors", "model.safetensors", "profile.json")},
    {"features", "encoding all images", cli_features_inputs, cli_features_there, cli_pipeline_model, NULL,
     cli_features_work,
     FILES("features/train.npy", "features/test.npy", "features/train_labels.npy", "features/test_labels.npy",
           "features/scaling.safetensors")},
    {"svm", "training the support vector machine", cli_svm_inputs, cli_svm_there, cli_pipeline_model, NULL,
     cli_svm_work, FILES("svm/model.safetensors", "svm/svm.json")},
    {"eval", "scoring the test images", cli_eval_inputs, cli_eval_there, cli_pipeline_model, NULL,
     cli_eval_work, FILES("eval.json", "pictures.safetensors")},
    {"report", "writing the report", cli_report_inputs, cli_report_there, NULL, NULL, cli_report_work,
     FILES("report.html")},
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

void cli_pipeline_fingerprint(const cli_pipeline *p, const char *name, char out[33]) {
    char *path = cli_join(p->run, name);
    (void)latent_file_fingerprint(p->session->ctx, path, out);
    free(path);
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
