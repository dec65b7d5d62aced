/* score_job.c: predicts the rows of a split, counts what is right. */
#include "score_job.h"

#include "feature_job.h"
#include "format.h"
#include "table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void allocate(cli_scores *out, const latent_dataset *data, size_t count) {
    latent_dataset_info info;
    latent_dataset_get_info(data, &info);
    size_t classes = (size_t)info.classes;
    out->classes = info.classes;
    out->count = count;
    out->names = calloc(classes, sizeof *out->names);
    out->confusion = calloc(classes * classes, sizeof *out->confusion);
    out->each = calloc(classes, sizeof *out->each);
    out->predicted = calloc(count + 1, sizeof *out->predicted);
    cli_need_memory(out->names && out->confusion && out->each ? out->predicted : NULL);
    for (int k = 0; k < info.classes; k++) {
        out->names[k] = latent_dataset_class_name(data, k);
    }
}

int cli_scores_compute(cli_session *session, latent_svm *svm, const char *features, latent_split split,
                       const latent_dataset *data, cli_scores *out) {
    latent_rows rows = {0};
    latent_svm_info info;
    double began = cli_clock();
    latent_svm_get_info(svm, &info);
    snprintf(out->engine, sizeof out->engine, "%s", info.engine ? info.engine : "");
    int code = cli_features_read(session, features, split, info.d, &rows, &out->truth);
    if (code == CLI_OK) {
        allocate(out, data, rows.n);
        out->read_seconds = cli_clock() - began;
        began = cli_clock();
        code = cli_status(session, latent_svm_predict(session->ctx, svm, rows.x, rows.n, rows.d,
                                                      out->predicted, NULL, NULL));
        out->predict_seconds = cli_clock() - began;
    }
    if (code == CLI_OK) {
        code =
            cli_status(session, latent_score_compute(session->ctx, out->truth, out->predicted, (int)rows.n,
                                                     out->classes, out->confusion, out->each, &out->score));
    }
    latent_rows_free(&rows);
    return code;
}

void cli_scores_free(cli_scores *scores) {
    free(scores->names);
    free(scores->confusion);
    free(scores->each);
    latent_free(scores->truth);
    free(scores->predicted);
    memset(scores, 0, sizeof *scores);
}

void cli_scores_json(cli_json *json, const cli_scores *scores) {
    cli_json_string(json, "engine", scores->engine);
    cli_json_number(json, "accuracy", scores->score.accuracy);
    cli_json_number(json, "macro_f1", scores->score.macro_f1);
    cli_json_integer(json, "correct", scores->score.correct);
    cli_json_integer(json, "count", scores->score.count);
    cli_json_number(json, "read_seconds", scores->read_seconds);
    cli_json_number(json, "predict_seconds", scores->predict_seconds);
    cli_json_open(json, "per_class", '[');
    for (int k = 0; k < scores->classes; k++) {
        cli_json_open(json, NULL, '{');
        cli_json_string(json, "name", scores->names[k]);
        cli_json_integer(json, "count", scores->each[k].count);
        cli_json_integer(json, "correct", scores->each[k].correct);
        cli_json_number(json, "accuracy", scores->each[k].accuracy);
        cli_json_number(json, "precision", scores->each[k].precision);
        cli_json_number(json, "f1", scores->each[k].f1);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    cli_json_open(json, "confusion", '[');
    for (int i = 0; i < scores->classes; i++) {
        int row[256];
        for (int j = 0; j < scores->classes && j < 256; j++) {
            row[j] = (int)scores->confusion[i * scores->classes + j];
        }
        cli_json_ints(json, NULL, row, scores->classes < 256 ? scores->classes : 256);
    }
    cli_json_close(json, ']');
}

/* The first letters of a class: what fits over a column of counts. */
static void column_head(cli_table *table, const char *name) {
    cli_table_cell(table, "%.5s", name);
}

void cli_scores_print(const cli_scores *scores) {
    cli_table table = cli_table_new("lrrrrr");
    static const char *const heads[] = {"class", "images", "right", "accuracy", "precision", "F1"};
    for (int i = 0; i < 6; i++) {
        cli_table_cell(&table, "%s", heads[i]);
    }
    cli_table_rule(&table);
    for (int k = 0; k < scores->classes; k++) {
        const latent_class_score *s = &scores->each[k];
        cli_table_cell(&table, "%s", scores->names[k]);
        cli_table_cell(&table, "%s", cli_count(s->count).s);
        cli_table_cell(&table, "%s", cli_count(s->correct).s);
        cli_table_cell(&table, "%.2f%%", 100 * s->accuracy);
        cli_table_cell(&table, "%.2f%%", 100 * s->precision);
        cli_table_cell(&table, "%.4f", s->f1);
    }
    cli_table_print(&table, stdout, "");
    char columns[64] = "l";
    memset(columns + 1, 'r', 62);
    columns[scores->classes < 62 ? scores->classes + 1 : 63] = 0;
    if (scores->classes < 62) {
        printf("\nrows: what it is, columns: what it was taken for\n");
        table = cli_table_new(columns);
        cli_table_cell(&table, "%s", "");
        for (int k = 0; k < scores->classes; k++) {
            column_head(&table, scores->names[k]);
        }
        for (int i = 0; i < scores->classes; i++) {
            cli_table_cell(&table, "%s", scores->names[i]);
            for (int j = 0; j < scores->classes; j++) {
                cli_table_cell(&table, "%llu",
                               (unsigned long long)scores->confusion[i * scores->classes + j]);
            }
        }
        cli_table_print(&table, stdout, "");
    }
}

void cli_evaluation_fill(cli_json *json, void *user) {
    const cli_evaluation *e = user;
    cli_json_string(json, "model", e->model);
    cli_json_string(json, "split", e->split);
    cli_json_string(json, "engine", e->engine);
    cli_json_string(json, "weights", e->weights);
    cli_json_string(json, "data", e->data.path);
    cli_json_string(json, "data_digest", e->digest);
    cli_json_boolean(json, "synthetic", e->data.synthetic);
    cli_json_number(json, "loss", e->loss.loss);
    cli_json_integer(json, "images", (uint64_t)e->loss.count);
    cli_json_number(json, "seconds", e->loss.seconds);
    cli_json_number(json, "images_per_second", e->loss.seconds > 0 ? e->loss.count / e->loss.seconds : NAN);
    cli_json_open(json, "classes", '[');
    for (int k = 0; k < e->data.classes; k++) {
        cli_json_string(json, NULL, latent_dataset_class_name(e->set, k));
    }
    cli_json_close(json, ']');
    if (e->unscored) {
        cli_json_string(json, "unscored", e->unscored);
    }
    if (e->scores) {
        cli_json_open(json, "svm", '{');
        cli_json_string(json, "model", e->svm);
        cli_scores_json(json, e->scores);
        cli_json_close(json, '}');
    }
}
