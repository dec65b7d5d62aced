/* section_time.c: where the time went: by stage, within the training step, by kernel. */
#include "report/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { KINDS_MAX = 32 };

/* Without a journal: what the parts of the run recorded about themselves. */
static void put_parts(lt_text *t, const lt_report_run *run) {
    const lt_json_node *eval = run->part[LT_PART_EVAL];
    double seconds[4] = {lt_report_train_seconds(run), lt_report_features_seconds(run),
                         lt_get_number(run->part[LT_PART_SVM], "seconds"), lt_get_number(eval, "seconds")};
    static const char *const names[4] = {"train", "features", "svm", "eval"};
    double longest = 0;
    char text[LT_SHORT];
    for (int i = 0; i < 4; i++) {
        longest = seconds[i] > longest ? seconds[i] : longest;
    }
    for (int i = 0; i < 4; i++) {
        if (isfinite(seconds[i])) {
            lt_bars_row(t, names[i], seconds[i] / longest, 0, lt_show_seconds(text, seconds[i]));
        }
    }
}

static void put_stages(lt_text *t, const lt_json_node *stages) {
    double longest = 0, total = 0;
    char text[LT_SHORT];
    for (const lt_json_node *node = stages; node; node = node->next) {
        double seconds = lt_get_number(node, "seconds");
        longest = seconds > longest ? seconds : longest;
        total += seconds > 0 ? seconds : 0;
    }
    for (const lt_json_node *node = stages; node; node = node->next) {
        const char *name = lt_get_text(node, "name");
        double seconds = lt_get_number(node, "seconds");
        lt_bars_row(t, name ? name : "?", longest > 0 ? seconds / longest : 0, 0,
                    lt_show_seconds(text, seconds));
    }
    lt_bars_row(t, "all of it", 0, 6, lt_show_seconds(text, total));
}

static void put_step(lt_text *t, const lt_report_run *run) {
    double parts[3] = {0}, sum = 0;
    static const char *const names[3] = {"forward", "backward", "optimizer"};
    char text[LT_SHORT];
    for (int i = 0; i < run->epoch_count; i++) {
        parts[0] += run->epochs[i].forward;
        parts[1] += run->epochs[i].backward;
        parts[2] += run->epochs[i].optimizer;
    }
    sum = parts[0] + parts[1] + parts[2];
    if (!(sum > 0)) {
        return;
    }
    lt_put(t, "<h3>Within the training</h3>");
    lt_bars_open(t, "pass", "time");
    for (int i = 0; i < 3; i++) {
        char value[2 * LT_SHORT];
        snprintf(value, sizeof value, "%s, %.0f%%", lt_show_seconds(text, parts[i]), 100 * parts[i] / sum);
        lt_bars_row(t, names[i], parts[i] / sum, 2, value);
    }
    lt_bars_close(t);
}

void lt_section_time(lt_text *t, lt_place place, const lt_report_run *run) {
    const lt_json_node *stages = lt_get_list(run->part[LT_PART_JOURNAL], "stages");
    lt_heading(t, place, "time", "Time by stage");
    lt_bars_open(t, "stage", "time");
    if (stages) {
        put_stages(t, stages);
    } else {
        put_parts(t, run);
    }
    lt_bars_close(t);
    if (stages) {
        lt_put(t, "<details><summary>What each stage did</summary><div class=\"scroll\"><table class=\"data "
                  "text\"><tbody>");
        for (const lt_json_node *node = stages; node; node = node->next) {
            const char *name = lt_get_text(node, "name"), *summary = lt_get_text(node, "summary");
            lt_put(t, "<tr><th scope=\"row\">");
            lt_escape(t, name ? name : "?");
            lt_put(t, "</th><td>");
            lt_escape(t, summary ? summary : "");
            lt_put(t, "</td></tr>");
        }
        lt_put(t, "</tbody></table></div></details>");
    }
    put_step(t, run);
}

typedef struct kind {
    const char *name;
    double seconds;
} kind;

/* Kinds of work in the order of their time. */
static int collect_kinds(const lt_json_node *ops, kind *kinds) {
    int count = 0;
    for (const lt_json_node *op = ops; op; op = op->next) {
        const char *name = lt_get_text(op, "kind");
        double seconds = lt_get_number(op, "parts") > 0 ? 0 : lt_get_number(op, "seconds");
        int at = 0;
        name = name ? name : "other";
        while (at < count && strcmp(kinds[at].name, name) != 0) {
            at++;
        }
        if (!(seconds > 0) || at == KINDS_MAX) {
            continue;
        }
        if (at == count) {
            kinds[count++] = (kind){name, 0};
        }
        kinds[at].seconds += seconds;
        for (; at > 0 && kinds[at].seconds > kinds[at - 1].seconds; at--) {
            kind other = kinds[at];
            kinds[at] = kinds[at - 1];
            kinds[at - 1] = other;
        }
    }
    return count;
}

static void kernel_table(lt_text *t, const lt_json_node *ops, double sum) {
    static const char *const keys[] = {"name", "pass", "kernel"};
    lt_put(t, "<details><summary>Op by op</summary><div class=\"scroll\"><table class=\"data\"><thead><tr>"
              "<th>op</th><th>pass</th><th>kernel</th><th>ms/step</th><th>share</th><th>GFLOP/s</th></tr>"
              "</thead><tbody>");
    double parts = 0; /* rows to come that are kernels of the op above */
    for (const lt_json_node *op = ops; op; op = op->next) {
        double seconds = lt_get_number(op, "seconds"), flops = lt_get_number(op, "flops");
        int part = parts > 0;
        parts = part ? parts - 1 : lt_get_number(op, "parts");
        if (!(seconds > 0)) {
            continue;
        }
        lt_put(t, "<tr>");
        for (int i = 0; i < 3; i++) {
            const char *value = part && i < 2 ? "" : lt_get_text(op, keys[i]);
            lt_put(t, i == 0 ? "<th scope=\"row\">" : "<td>");
            lt_put(t, part && i == 2 ? "– " : "");
            lt_escape(t, value ? value : "");
            lt_put(t, i == 0 ? "</th>" : "</td>");
        }
        lt_putf(t, "<td>%.4f</td><td>%.1f%%</td>", 1e3 * seconds, 100 * seconds / sum);
        lt_putf(t, flops > 0 && seconds > 0 ? "<td>%.0f</td></tr>" : "<td></td></tr>",
                1e-9 * flops / seconds);
    }
    lt_put(t, "</tbody></table></div></details>");
}

void lt_section_kernels(lt_text *t, lt_place place, const lt_report_run *run) {
    const lt_json_node *profile = run->part[LT_PART_PROFILE], *ops = lt_get_list(profile, "ops");
    const char *engine = lt_get_text(profile, "engine");
    kind kinds[KINDS_MAX];
    double sum = 0;
    int count = collect_kinds(ops, kinds);
    for (int i = 0; i < count; i++) {
        sum += kinds[i].seconds;
    }
    if (count == 0) {
        return;
    }
    lt_heading(t, place, "kernels", "Time by kind of work");
    lt_put(t, "<p class=\"sub\">Per training step, every op timed");
    if (engine) {
        lt_put(t, ", on ");
        lt_escape(t, engine);
    }
    lt_put(t, ".</p>");
    lt_bars_open(t, "work", "time");
    for (int i = 0; i < count; i++) {
        char text[LT_SHORT], value[2 * LT_SHORT];
        snprintf(value, sizeof value, "%s, %.1f%%", lt_show_seconds(text, kinds[i].seconds),
                 100 * kinds[i].seconds / sum);
        lt_bars_row(t, kinds[i].name, kinds[i].seconds / sum, 4, value);
    }
    lt_bars_close(t);
    kernel_table(t, ops, sum);
}
