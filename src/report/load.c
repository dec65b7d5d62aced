/* load.c: reads a run folder for the report. Every file in it is taken as hostile: counts are bounded,
 * shapes are compared, labels are looked up only after they were checked.
 */
#include "report/load.h"

#include "base/file.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_MAX = 16 << 20, METRICS_MAX = 256 << 20, EPOCHS_MAX = 1000000, SIDE_MAX = 256 };

const char *lt_get_text(const lt_json_node *object, const char *key) {
    const lt_json_node *node = object ? lt_json_get(object, key) : NULL;
    return node && node->kind == LT_JSON_STRING ? node->string : NULL;
}

double lt_get_number(const lt_json_node *object, const char *key) {
    const lt_json_node *node = object ? lt_json_get(object, key) : NULL;
    return node && node->kind == LT_JSON_NUMBER ? node->number : NAN;
}

int lt_get_true(const lt_json_node *object, const char *key) {
    const lt_json_node *node = object ? lt_json_get(object, key) : NULL;
    return node && (node->kind == LT_JSON_TRUE || (node->kind == LT_JSON_NUMBER && node->number != 0));
}

const lt_json_node *lt_get_list(const lt_json_node *object, const char *key) {
    const lt_json_node *node = object ? lt_json_get(object, key) : NULL;
    return node && node->kind == LT_JSON_ARRAY ? node->child : NULL;
}

static latent_status load_json(latent_context *ctx, const char *folder, const char *name, lt_json **json,
                               const lt_json_node **root) {
    latent_status status = LATENT_OK;
    char *path = NULL, *text = NULL;
    size_t bytes = 0;
    if (folder) {
        LT_TRY(lt_path_join(ctx, folder, name, &path));
        if (!lt_file_exists(path)) {
            goto done;
        }
    } else {
        LT_TRY(lt_strdup(ctx, name, &path));
    }
    LT_TRY(lt_file_read(ctx, path, JSON_MAX, &text, &bytes));
    LT_TRY(lt_json_parse(ctx, text, bytes, path, json));
    *root = lt_json_root(*json);
    if ((*root)->kind != LT_JSON_OBJECT) {
        status = lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: it must hold a JSON object", path);
    }
done:
    free(path);
    free(text);
    return status;
}

/* One line of metrics.jsonl. */
static latent_status take_epoch(latent_context *ctx, lt_report_run *run, const char *path, const char *line,
                                size_t length) {
    latent_status status = LATENT_OK;
    lt_json *json = NULL;
    uint64_t epoch = 0;
    LT_TRY(lt_json_parse(ctx, line, length, path, &json));
    const lt_json_node *root = lt_json_root(json);
    if (!lt_json_u64(lt_json_get(root, "epoch"), &epoch) || epoch < 1 || epoch > EPOCHS_MAX) {
        status = lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: line %d has no \"epoch\" from 1 to %d", path,
                         run->epoch_count + 1, EPOCHS_MAX);
        goto done;
    }
    run->epochs[run->epoch_count++] =
        (lt_report_epoch){.epoch = (int)epoch,
                          .loss = lt_get_number(root, "loss"),
                          .seconds = lt_get_number(root, "seconds"),
                          .images_per_second = lt_get_number(root, "images_per_second"),
                          .forward = lt_get_number(root, "forward_seconds"),
                          .backward = lt_get_number(root, "backward_seconds"),
                          .optimizer = lt_get_number(root, "optimizer_seconds")};
done:
    lt_json_destroy(json);
    return status;
}

static latent_status load_metrics(latent_context *ctx, lt_report_run *run) {
    latent_status status = LATENT_OK;
    char *path = NULL, *text = NULL;
    size_t bytes = 0, lines = 0;
    LT_TRY(lt_path_join(ctx, run->folder, "metrics.jsonl", &path));
    if (!lt_file_exists(path)) {
        goto done;
    }
    LT_TRY(lt_file_read(ctx, path, METRICS_MAX, &text, &bytes));
    for (size_t i = 0; i < bytes; i++) {
        lines += text[i] == '\n';
    }
    if (lines > EPOCHS_MAX) {
        status = lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: more than %d lines", path, EPOCHS_MAX);
        goto done;
    }
    LT_TRY(lt_calloc(ctx, lines + 1, sizeof *run->epochs, "epochs", (void **)&run->epochs));
    for (char *at = text, *end; (end = memchr(at, '\n', bytes - (size_t)(at - text))); at = end + 1) {
        LT_TRY(take_epoch(ctx, run, path, at, (size_t)(end - at))); /* half a line at the end is left out */
    }
done:
    free(path);
    free(text);
    return status;
}

static latent_status bad_eval(latent_context *ctx, const lt_report_run *run, const char *what) {
    return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s/eval.json: %s; write it again with 'latent eval %s'",
                   run->folder, what, run->folder);
}

/* Class names and, where an SVM was scored, the confusion matrix. */
static latent_status load_scores(latent_context *ctx, lt_report_run *run) {
    latent_status status = LATENT_OK;
    const lt_json_node *eval = run->part[LT_PART_EVAL], *svm = eval ? lt_json_get(eval, "svm") : NULL;
    int names = 0;
    for (const lt_json_node *node = lt_get_list(eval, "classes"); node; node = node->next) {
        if (node->kind != LT_JSON_STRING || names == LT_REPORT_CLASSES_MAX) {
            return bad_eval(ctx, run, "\"classes\" must be up to 64 names");
        }
        run->class_names[names++] = node->string;
    }
    const lt_json_node *row = lt_get_list(svm, "confusion");
    if (!row || names == 0) {
        return LATENT_OK;
    }
    LT_TRY(lt_calloc(ctx, (size_t)names * (size_t)names, sizeof *run->confusion, "a confusion matrix",
                     (void **)&run->confusion));
    for (int i = 0; i < names; i++, row = row->next) {
        if (!row || row->kind != LT_JSON_ARRAY || row->children != names) {
            return bad_eval(ctx, run, "\"confusion\" must have a row and a column for each class");
        }
        const lt_json_node *cell = row->child;
        for (int j = 0; j < names; j++, cell = cell->next) {
            uint64_t value = 0;
            if (!lt_json_u64(cell, &value) || value > 1u << 30) {
                return bad_eval(ctx, run, "\"confusion\" must hold whole numbers");
            }
            run->confusion[(size_t)i * (size_t)names + (size_t)j] = value;
        }
    }
    run->classes = names;
    lt_score_from_confusion(run->confusion, names, run->scores, &run->score);
done:
    return status;
}

/* The tensor as bytes when it has the shape [n][h][w][3], or [n] for labels; NULL otherwise. */
static const uint8_t *take_tensor(const lt_safetensors *file, const char *name, uint64_t n, uint64_t h,
                                  uint64_t w) {
    const lt_st_tensor *t = lt_st_find(file, name);
    if (!t || t->type != LT_ST_U8 || t->shape[0] != n) {
        return NULL;
    }
    int image = t->dims == 4 && t->shape[1] == h && t->shape[2] == w && t->shape[3] == 3;
    return (h == 0 && t->dims == 1) || (h > 0 && image) ? t->data : NULL;
}

static latent_status load_pictures(latent_context *ctx, lt_report_run *run) {
    latent_status status = LATENT_OK;
    lt_report_pictures *p = &run->pictures;
    char *path = NULL;
    LT_TRY(lt_path_join(ctx, run->folder, "pictures.safetensors", &path));
    if (!lt_file_exists(path)) {
        goto done;
    }
    LT_TRY(lt_st_read(ctx, path, &run->file));
    const lt_st_tensor *first = lt_st_find(run->file, "original"), *taken = lt_st_find(run->file, "confused");
    int fine = first && first->dims == 4 && first->shape[0] <= 1024 && first->shape[1] >= 1 &&
               first->shape[1] <= SIDE_MAX && first->shape[2] >= 1 && first->shape[2] <= SIDE_MAX;
    if (fine) {
        uint64_t n = first->shape[0], h = first->shape[1], w = first->shape[2];
        p->count = (int)n;
        p->height = (int)h;
        p->width = (int)w;
        p->original = take_tensor(run->file, "original", n, h, w);
        p->output = take_tensor(run->file, "output", n, h, w);
        p->label = take_tensor(run->file, "label", n, 0, 0);
        fine = p->original && p->output && p->label;
        if (fine && taken && taken->shape[0] <= 1024) {
            uint64_t m = taken->shape[0];
            p->confused = (int)m;
            p->taken = take_tensor(run->file, "confused", m, h, w);
            p->truth = take_tensor(run->file, "truth", m, 0, 0);
            p->predicted = take_tensor(run->file, "predicted", m, 0, 0);
            fine = p->taken && p->truth && p->predicted;
        }
    }
    if (!fine) {
        status = lt_fail(ctx, LATENT_ERROR_FORMAT,
                         "%s: not the pictures of a run; write them again with 'latent eval %s'", path,
                         run->folder);
    }
done:
    free(path);
    return status;
}

/* A ladder.json that holds none would be shown as nothing at all. */
static latent_status check_ladder(latent_context *ctx, const lt_json_node *ladder, const char *place) {
    const lt_json_node *rung = lt_get_list(ladder, "rungs");
    while (rung && !(lt_get_number(rung, "epoch_seconds") > 0)) {
        rung = rung->next;
    }
    return !ladder || rung
               ? LATENT_OK
               : lt_fail(ctx, LATENT_ERROR_FORMAT,
                         "%s: the ladder has no \"rungs\" with \"epoch_seconds\" above 0; 'latent "
                         "bench ladder --out FILE' writes one",
                         place);
}

latent_status lt_report_load(latent_context *ctx, const char *folder, const char *ladder,
                             lt_report_run *out) {
    static const char *const names[LT_PARTS] = {
        "config.json", "features/features.json", "svm/svm.json", "eval.json",
        "run.json",    "profile.json",           "ladder.json"};
    latent_status status = LATENT_OK;
    memset(out, 0, sizeof *out);
    LT_TRY(lt_strdup(ctx, folder, &out->folder));
    size_t length = strlen(out->folder);
    while (length > 1 && out->folder[length - 1] == '/') {
        out->folder[--length] = 0;
    }
    const char *slash = strrchr(out->folder, '/');
    out->name = slash && slash[1] ? slash + 1 : out->folder;
    for (int i = 0; i < LT_PARTS; i++) {
        int given = i == LT_PART_LADDER && ladder;
        LT_TRY(
            load_json(ctx, given ? NULL : folder, given ? ladder : names[i], &out->json[i], &out->part[i]));
    }
    LT_TRY(check_ladder(ctx, out->part[LT_PART_LADDER], ladder ? ladder : folder));
    LT_TRY(load_metrics(ctx, out));
    LT_TRY(load_scores(ctx, out));
    LT_TRY(load_pictures(ctx, out));
    if (!out->part[LT_PART_CONFIG] && !out->epochs && !out->part[LT_PART_EVAL]) {
        status = lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                         "%s: %s; name a folder that 'latent run' or 'latent train' wrote", folder,
                         lt_folder_exists(folder) ? "no config.json, metrics.jsonl or eval.json in it"
                                                  : "no such folder");
        goto done;
    }
done:
    if (status != LATENT_OK) {
        lt_report_free(out);
    }
    return status;
}

void lt_report_free(lt_report_run *run) {
    for (int i = 0; i < LT_PARTS; i++) {
        lt_json_destroy(run->json[i]);
    }
    lt_st_destroy(run->file);
    free(run->folder);
    free(run->epochs);
    free(run->confusion);
    memset(run, 0, sizeof *run);
}

double lt_report_train_seconds(const lt_report_run *run) {
    double sum = run->epoch_count > 0 ? 0 : NAN;
    for (int i = 0; i < run->epoch_count; i++) {
        sum += run->epochs[i].seconds;
    }
    return sum;
}

double lt_report_features_seconds(const lt_report_run *run) {
    const lt_json_node *record = run->part[LT_PART_FEATURES];
    double copies = lt_get_number(record, "copy_seconds"); /* older records do not have it */
    return lt_get_number(record, "compute_seconds") + lt_get_number(record, "write_seconds") +
           (isfinite(copies) ? copies : 0);
}

double lt_report_last_loss(const lt_report_run *run) {
    return run->epoch_count > 0 ? run->epochs[run->epoch_count - 1].loss : NAN;
}

const lt_json_node *lt_report_stage(const lt_report_run *run, const char *name) {
    const lt_json_node *node = lt_get_list(run->part[LT_PART_JOURNAL], "stages");
    for (; node; node = node->next) {
        const char *found = lt_get_text(node, "name");
        if (found && strcmp(found, name) == 0) {
            return node;
        }
    }
    return NULL;
}

const char *lt_report_class(const lt_report_run *run, int label, char buffer[24]) {
    if (label >= 0 && label < LT_REPORT_CLASSES_MAX && run->class_names[label]) {
        return run->class_names[label];
    }
    snprintf(buffer, 24, "class %d", label);
    return buffer;
}
