/* section_compare.c: several runs side by side: figures, losses in one chart, differences by class. */
#include "report/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef enum row_kind {
    ACCURACY,
    MACRO_F1,
    LOSS,
    TEST_LOSS,
    EPOCHS,
    IMAGES,
    TRAINING,
    RATE,
    ENGINE,
    NET,
    FEATURES,
    SVM,
    ROWS
} row_kind;

/* "8,192: flip, standardize, l2" */
static void show_features(char *out, size_t size, const lt_json_node *features) {
    static const char *const steps[] = {"flip", "standardize", "l2"};
    char count[LT_SHORT];
    int length = 0, done = 0;
    if (!features) {
        return;
    }
    length = snprintf(out, size, "%s:", lt_show_count(count, lt_get_number(features, "width")));
    for (int i = 0; i < 3 && length > 0 && (size_t)length < size; i++) {
        if (lt_get_true(features, steps[i])) {
            length += snprintf(out + length, size - (size_t)length, "%s %s", done++ ? "," : "", steps[i]);
        }
    }
    if (!done && length > 0 && (size_t)length < size) {
        snprintf(out + length, size - (size_t)length, " raw");
    }
}

/* "rbf, C 10, gamma 0.00122" */
static void show_svm(char *out, size_t size, const lt_json_node *svm) {
    const char *kernel = lt_get_text(svm, "kernel");
    double gamma = lt_get_number(svm, "gamma");
    int length = kernel ? snprintf(out, size, "%.20s, C %g", kernel, lt_get_number(svm, "c")) : 0;
    if (length > 0 && (size_t)length < size && gamma > 0) {
        snprintf(out + length, size - (size_t)length, ", gamma %.4g", gamma);
    }
}

static void show_test_loss(char *out, size_t size, const lt_json_node *eval) {
    const char *split = lt_get_text(eval, "split");
    char number[LT_SHORT];
    snprintf(out, size, "%s%s", lt_show_number(number, lt_get_number(eval, "loss")),
             split && strcmp(split, "train") == 0 ? " (on training images)" : "");
}

static void put_value(lt_text *t, const lt_report_run *run, row_kind row) {
    char text[128] = "–";
    const lt_json_node *config = run->part[LT_PART_CONFIG];
    const char *words = NULL;
    switch (row) {
    case ACCURACY:
        snprintf(text, sizeof text, run->classes > 0 ? "%.2f%%" : "–", 100 * run->score.accuracy);
        break;
    case MACRO_F1:
        snprintf(text, sizeof text, run->classes > 0 ? "%.4f" : "–", run->score.macro_f1);
        break;
    case LOSS:
        lt_show_number(text, lt_report_last_loss(run));
        break;
    case TEST_LOSS:
        show_test_loss(text, sizeof text, run->part[LT_PART_EVAL]);
        break;
    case EPOCHS:
        lt_show_count(text, run->epoch_count);
        break;
    case IMAGES:
        lt_show_count(text, lt_get_number(config, "images"));
        break;
    case TRAINING:
        lt_show_seconds(text, lt_report_train_seconds(run));
        break;
    case RATE:
        lt_show_count(text, run->epoch_count > 0 ? run->epochs[run->epoch_count - 1].images_per_second : NAN);
        break;
    case ENGINE:
        words = lt_get_text(config, "engine");
        break;
    case NET:
        words = lt_get_text(config, "net");
        break;
    case FEATURES:
        show_features(text, sizeof text, run->part[LT_PART_FEATURES]);
        break;
    case SVM:
        show_svm(text, sizeof text, run->part[LT_PART_SVM]);
        break;
    case ROWS:
        break;
    }
    lt_escape(t, words ? words : text);
}

static void head_row(lt_text *t, const char *corner, const lt_report_run *runs, int count) {
    lt_putf(t, "<div class=\"scroll\"><table class=\"data\"><thead><tr><th>%s</th>", corner);
    for (int r = 0; r < count; r++) {
        lt_putf(t, "<th><i class=\"swatch b%d\"></i>", r % 8);
        lt_escape(t, runs[r].name);
        lt_put(t, "</th>");
    }
    lt_put(t, "</tr></thead><tbody>");
}

static void figures(lt_text *t, const lt_report_run *runs, int count) {
    static const char *const names[ROWS] = {"accuracy",
                                            "macro F1",
                                            "training loss, last epoch",
                                            "test loss",
                                            "epochs",
                                            "training images",
                                            "training time",
                                            "images/s in training",
                                            "engine",
                                            "net",
                                            "features",
                                            "SVM"};
    head_row(t, "", runs, count);
    for (int row = 0; row < ROWS; row++) {
        lt_putf(t, "<tr><th scope=\"row\">%s</th>", names[row]);
        for (int r = 0; r < count; r++) {
            lt_put(t, "<td>");
            put_value(t, &runs[r], (row_kind)row);
            lt_put(t, "</td>");
        }
        lt_put(t, "</tr>");
    }
    lt_put(t, "</tbody></table></div>");
}

/* The class of that name in a run, or -1: runs may have been made on different data. */
static int find_class(const lt_report_run *run, const char *name) {
    for (int k = 0; k < run->classes; k++) {
        if (strcmp(run->class_names[k], name) == 0) {
            return k;
        }
    }
    return -1;
}

static void difference_cell(lt_text *t, double value, double base, int first) {
    if (isnan(value)) {
        lt_put(t, "<td>–</td>");
    } else if (first || isnan(base)) {
        lt_putf(t, "<td>%.1f%%</td>", 100 * value);
    } else {
        double points = 100 * (value - base);
        lt_putf(t, "<td>%.1f%% <span class=\"%s\">%+.1f</span></td>", 100 * value,
                points > 0.05    ? "yes"
                : points < -0.05 ? "no"
                                 : "open",
                points);
    }
}

static void differences(lt_text *t, const lt_report_run *runs, int count) {
    const lt_report_run *base = &runs[0];
    lt_put(t, "<h3 id=\"differences\">Accuracy by class, and the difference to the first run</h3>");
    head_row(t, "class", runs, count);
    for (int k = 0; k < base->classes; k++) {
        lt_put(t, "<tr><th scope=\"row\">");
        lt_escape(t, base->class_names[k]);
        lt_put(t, "</th>");
        for (int r = 0; r < count; r++) {
            int own = find_class(&runs[r], base->class_names[k]);
            difference_cell(t, own < 0 ? NAN : runs[r].scores[own].accuracy, base->scores[k].accuracy,
                            r == 0);
        }
        lt_put(t, "</tr>");
    }
    lt_put(t, "<tr><th scope=\"row\">all</th>");
    for (int r = 0; r < count; r++) {
        difference_cell(t, runs[r].classes > 0 ? runs[r].score.accuracy : NAN, base->score.accuracy, r == 0);
    }
    lt_put(t, "</tr></tbody></table></div><p class=\"note\">Differences are in percentage points.</p>");
}

void lt_section_compare(lt_text *t, const lt_report_run *runs, int count) {
    int scored = 0, trained = 0;
    for (int r = 0; r < count; r++) {
        scored += runs[r].classes > 0;
        trained += runs[r].epoch_count > 0;
    }
    lt_put(t, "<h2 id=\"compare\">Side by side</h2>");
    figures(t, runs, count);
    if (trained > 0) {
        lt_put(t, "<h3 id=\"losses\">Losses</h3>");
        lt_chart_losses(t, runs, count);
    }
    if (scored > 1 && runs[0].classes > 0) {
        differences(t, runs, count);
    }
}
