/* load.h: a run folder as the report sees it. Whatever is missing is simply not shown; a file that is there
 * but broken is an error that names it.
 */
#ifndef LT_REPORT_LOAD_H
#define LT_REPORT_LOAD_H

#include "base/json.h"
#include "io/safetensors.h"

enum { LT_REPORT_CLASSES_MAX = 64, LT_REPORT_RUNS_MAX = 8 };

typedef enum lt_report_part { /* JSON files of a run */
                              LT_PART_CONFIG,
                              LT_PART_FEATURES,
                              LT_PART_SVM,
                              LT_PART_EVAL,
                              LT_PART_JOURNAL,
                              LT_PART_PROFILE,
                              LT_PART_LADDER,
                              LT_PARTS
} lt_report_part;

typedef struct lt_report_epoch {
    int epoch;
    double loss, seconds, images_per_second, forward, backward, optimizer; /* NaN: not recorded */
} lt_report_epoch;

/* Images out of pictures.safetensors: RGB, all of one size. */
typedef struct lt_report_pictures {
    int width, height;
    int count, confused;
    const uint8_t *original, *output, *label;
    const uint8_t *taken, *truth, *predicted;
} lt_report_pictures;

typedef struct lt_report_run {
    char *folder;
    const char *name; /* the end of the folder: its last part, or more where runs would share it */
    lt_json *json[LT_PARTS];
    const lt_json_node *part[LT_PARTS]; /* the root of each, or NULL */

    lt_report_epoch *epochs;
    int epoch_count;

    int classes; /* 0: no scores */
    const char *class_names[LT_REPORT_CLASSES_MAX];
    uint64_t *confusion; /* [classes][classes], rows are the truth */
    latent_class_score scores[LT_REPORT_CLASSES_MAX];
    latent_score score;

    lt_safetensors *file;
    lt_report_pictures pictures;
} lt_report_run;

/* `ladder` is the path of a ladder.json, or NULL: the run's own. */
latent_status lt_report_load(latent_context *ctx, const char *folder, const char *ladder, lt_report_run *out);
void lt_report_free(lt_report_run *run); /* what it points to */

/* Values of an object; the object may be NULL. Text that is not there is NULL, a number NaN. */
const char *lt_get_text(const lt_json_node *object, const char *key);
double lt_get_number(const lt_json_node *object, const char *key);
int lt_get_true(const lt_json_node *object, const char *key);
/* The first element of the array under `key`, or NULL. */
const lt_json_node *lt_get_list(const lt_json_node *object, const char *key);

/* Seconds of all epochs; NaN without any. */
double lt_report_train_seconds(const lt_report_run *run);
double lt_report_features_seconds(const lt_report_run *run); /* without the reading of the data */
double lt_report_last_loss(const lt_report_run *run);
/* The stage of that name in the journal, or NULL. */
const lt_json_node *lt_report_stage(const lt_report_run *run, const char *name);
/* The name of a class; "class 12" in `buffer` when it has none. */
const char *lt_report_class(const lt_report_run *run, int label, char buffer[24]);

/* names.c: names of runs that are shown together: as short as they can be told apart by. */
void lt_report_name(lt_report_run *runs, int count);
/* 1: the ladder was measured on the net of the run, or does not say on which. */
int lt_report_ladder_fits(const lt_report_run *run);

/* score.c: classes[k] and the whole from a confusion matrix. */
void lt_score_from_confusion(const uint64_t *confusion, int classes, latent_class_score *each,
                             latent_score *out);

#endif
