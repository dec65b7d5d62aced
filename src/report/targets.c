/* targets.c: a run against what the system is meant to reach. A figure that was measured under other
 * conditions than the target's (fewer images, another data set) is shown with what is different, and decides
 * nothing.
 */
#include "report/page.h"

#include "base/file.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LADDER_MAX = 16 << 20 };

enum { IMAGES = 50000, EPOCHS = 20, ALL_IMAGES = 60000, TEST_IMAGES = 10000 };

static void start(latent_target *target, const char *name, const char *goal) {
    memset(target, 0, sizeof *target);
    target->name = name;
    target->met = -1;
    target->reached = "not measured";
    snprintf(target->goal, sizeof target->goal, "%s", goal);
    snprintf(target->measured, sizeof target->measured, "not measured");
}

static void decide(latent_target *target, int met) {
    target->met = met;
    target->reached = met ? "yes" : "no";
}

/* Measured, but not what the target speaks of. */
__attribute__((format(printf, 2, 3))) static void leave_open(latent_target *target, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(target->reason, sizeof target->reason, format, arguments);
    va_end(arguments);
    target->reached = "not comparable";
}

static void training(const lt_report_run *run, latent_target *target) {
    char seconds_text[LT_SHORT], images_text[LT_SHORT];
    double seconds = lt_report_train_seconds(run),
           images = lt_get_number(run->part[LT_PART_CONFIG], "images");
    start(target, "training", "under 10 minutes (20 epochs, 50,000 images)");
    if (!isfinite(seconds)) {
        return;
    }
    snprintf(target->measured, sizeof target->measured, "%s: %d epoch%s of %s images",
             lt_show_seconds(seconds_text, seconds), run->epoch_count, run->epoch_count == 1 ? "" : "s",
             lt_show_count(images_text, images));
    if (!isfinite(images)) {
        leave_open(target, "the number of images is not known");
    } else if (images < IMAGES) {
        leave_open(target, "%s of 50,000 images", lt_show_count(images_text, images));
    } else if (run->epoch_count < EPOCHS) {
        leave_open(target, "%d of %d epochs", run->epoch_count, EPOCHS);
    } else {
        decide(target, seconds < 600);
    }
}

static void features(const lt_report_run *run, latent_target *target) {
    char seconds_text[LT_SHORT], images_text[LT_SHORT];
    const lt_json_node *record = run->part[LT_PART_FEATURES], *stage = lt_report_stage(run, "features");
    double images = lt_get_number(record, "train") + lt_get_number(record, "test");
    int whole = stage && !lt_get_true(stage, "unfinished");
    double seconds = whole ? lt_get_number(stage, "seconds") : lt_report_features_seconds(run);
    start(target, "features", "60,000 images under 20 s");
    if (!isfinite(seconds) || !isfinite(images)) {
        return;
    }
    snprintf(target->measured, sizeof target->measured, "%s: %s images",
             lt_show_seconds(seconds_text, seconds), lt_show_count(images_text, images));
    if (images < ALL_IMAGES) {
        leave_open(target, "%s of 60,000 images", lt_show_count(images_text, images));
    } else {
        decide(target, seconds < 20);
    }
}

/* The fewest images that any part of the way to the scores has seen; NaN when none says. */
static double images_learnt(const lt_report_run *run) {
    const double counts[] = {lt_get_number(run->part[LT_PART_CONFIG], "images"),
                             lt_get_number(run->part[LT_PART_FEATURES], "train"),
                             lt_get_number(run->part[LT_PART_SVM], "rows")};
    double fewest = NAN;
    for (int i = 0; i < 3; i++) {
        fewest = fmin(fewest, counts[i]); /* of a number and NaN the number */
    }
    return fewest;
}

static void accuracy(const lt_report_run *run, latent_target *target) {
    char images_text[LT_SHORT];
    const lt_json_node *eval = run->part[LT_PART_EVAL];
    const char *split = lt_get_text(eval, "split");
    int synthetic = lt_get_true(eval, "synthetic"), test = split && strcmp(split, "test") == 0;
    start(target, "accuracy", "at least 60–65% on the 10,000 test images");
    if (run->classes == 0) {
        return;
    }
    snprintf(target->measured, sizeof target->measured, "%.2f%% of %s %s%s images", 100 * run->score.accuracy,
             lt_show_count(images_text, (double)run->score.count), synthetic ? "synthetic " : "",
             test ? "test" : "training");
    double learnt = images_learnt(run);
    if (synthetic || !test) {
        leave_open(target, "%s", synthetic ? "synthetic images" : "training images");
    } else if (run->score.count < TEST_IMAGES) {
        leave_open(target, "%s of 10,000 test images", lt_show_count(images_text, (double)run->score.count));
    } else if (!isfinite(learnt)) {
        leave_open(target, "the number of training images is not known");
    } else if (learnt < IMAGES) {
        leave_open(target, "%s of 50,000 training images", lt_show_count(images_text, learnt));
    } else {
        decide(target, run->score.accuracy >= 0.60);
    }
}

/* The baseline is the cpu backend where it was measured, else the reference. */
static void speedup(const lt_report_run *run, latent_target *target) {
    double cpu = NAN, ref = NAN, gpu = NAN;
    start(target, "GPU", "over 20 times the CPU baseline");
    for (const lt_json_node *node = lt_get_list(run->part[LT_PART_LADDER], "rungs"); node;
         node = node->next) {
        const char *backend = lt_get_text(node, "backend");
        double seconds = lt_get_number(node, "epoch_seconds");
        double *of = !backend                       ? NULL
                     : strcmp(backend, "cuda") == 0 ? &gpu
                     : strcmp(backend, "cpu") == 0  ? &cpu
                     : strcmp(backend, "ref") == 0  ? &ref
                                                    : NULL;
        /* The first rung of the CPU is the baseline, as in the ladder itself; of the GPU the best counts. */
        if (of && seconds > 0 && (isnan(*of) || (of == &gpu && seconds < *of))) {
            *of = seconds;
        }
    }
    double base = cpu > 0 ? cpu : ref;
    if (gpu > 0 && base > 0) {
        snprintf(target->measured, sizeof target->measured,
                 "%.1f times the %s backend (%.3g s against %.3g s "
                 "per epoch)",
                 base / gpu, cpu > 0 ? "cpu" : "ref", gpu, base);
        if (lt_report_ladder_fits(run)) {
            decide(target, base / gpu > 20);
        } else {
            leave_open(target, "the ladder is of the net '%.60s'",
                       lt_get_text(run->part[LT_PART_LADDER], "net"));
        }
    }
}

void lt_targets(const lt_report_run *run, latent_target out[LATENT_TARGETS]) {
    training(run, &out[0]);
    features(run, &out[1]);
    accuracy(run, &out[2]);
    speedup(run, &out[3]);
}

latent_status latent_run_targets(latent_context *ctx, const char *run, const char *ladder,
                                 latent_target out[LATENT_TARGETS]) {
    lt_report_run loaded;
    latent_status status = lt_report_load(ctx, run, ladder, &loaded);
    if (status == LATENT_OK) {
        lt_targets(&loaded, out);
        lt_report_free(&loaded);
    }
    return status;
}

latent_status latent_ladder_check(latent_context *ctx, const char *path) {
    latent_status status = LATENT_OK;
    char *text = NULL;
    size_t bytes = 0;
    lt_json *json = NULL;
    LT_TRY(lt_file_read(ctx, path, LADDER_MAX, &text, &bytes));
    LT_TRY(lt_json_parse(ctx, text, bytes, path, &json));
    const lt_json_node *rungs = lt_json_get(lt_json_root(json), "rungs");
    if (!rungs || rungs->kind != LT_JSON_ARRAY) {
        status = lt_fail(ctx, LATENT_ERROR_FORMAT,
                         "%s: no list under \"rungs\"; a ladder is what 'latent bench ladder' writes", path);
    }
done:
    lt_json_destroy(json);
    free(text);
    return status;
}
