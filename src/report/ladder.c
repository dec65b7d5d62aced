/* ladder.c: the ladder of engines: how fast each trains, from `latent bench ladder`. */
#include "report/charts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* LEFT: half of the first tick's label, which stands under its line. */
enum { WIDTH = 720, ROW = 60, TOP = 8, AXIS = 34, RUNGS_MAX = 64, LEFT = 18, ROOM = 215 };

typedef struct rung {
    char name[96];
    const lt_json_node *node;
    double seconds, speedup; /* per epoch; over the slowest */
    int gpu;
} rung;

/* "cuda tiled", "cpu bf16", "ref" */
static void name_rung(rung *r) {
    const char *backend = lt_get_text(r->node, "backend"), *kernels = lt_get_text(r->node, "kernels");
    const char *precision = lt_get_text(r->node, "precision");
    int plain = !precision || strcmp(precision, "fp32") == 0;
    snprintf(r->name, sizeof r->name, "%.30s%s%.30s%s%.20s", backend ? backend : "?", kernels ? " " : "",
             kernels ? kernels : "", plain ? "" : " ", plain ? "" : precision);
    r->gpu = backend && strcmp(backend, "cuda") == 0;
}

static int collect(const lt_json_node *ladder, rung *rungs) {
    int count = 0;
    double slowest = 0;
    const lt_json_node *node = lt_get_list(ladder, "rungs");
    for (; node && count < RUNGS_MAX; node = node->next) {
        double seconds = lt_get_number(node, "epoch_seconds");
        if (isfinite(seconds) && seconds > 0) {
            rungs[count] = (rung){.node = node, .seconds = seconds};
            name_rung(&rungs[count++]);
            slowest = seconds > slowest ? seconds : slowest;
        }
    }
    for (int i = 0; i < count; i++) {
        rungs[i].speedup = slowest / rungs[i].seconds;
    }
    return count;
}

static const char *show_factor(char out[LT_SHORT], double factor) {
    snprintf(out, LT_SHORT, factor >= 99.5 ? "%.0f×" : factor >= 9.95 ? "%.1f×" : "%.2f×", factor);
    return out;
}

static void draw_rung(lt_text *t, const rung *r, int at, const lt_axis *axis) {
    char factor[LT_SHORT], seconds[LT_SHORT];
    double y = TOP + (double)at * ROW, width = lt_axis_at(axis, r->speedup) - axis->from;
    lt_putf(t, "<text class=\"rung\" x=\"%.0f\" y=\"%.0f\">", axis->from, y + 22);
    lt_escape(t, r->name);
    const char *what = lt_get_text(r->node, "what");
    if (what) {
        lt_put(t, "<tspan class=\"aside\" dx=\"10\">");
        lt_escape(t, what);
        lt_put(t, "</tspan>");
    }
    lt_putf(t,
            "</text><rect class=\"f%d\" x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"18\" rx=\"3\"/>"
            "<text class=\"value\" x=\"%.1f\" y=\"%.0f\">%s · %s</text>",
            r->gpu ? 2 : 0, axis->from, y + 30, width < 3 ? 3 : width,
            axis->from + (width < 3 ? 3 : width) + 8, y + 45, show_factor(factor, r->speedup),
            lt_show_seconds(seconds, r->seconds));
}

static void ladder_table(lt_text *t, const rung *rungs, int count) {
    char text[LT_SHORT];
    lt_put(t, "<details><summary>The numbers</summary><div class=\"scroll\"><table class=\"data\"><thead><tr>"
              "<th>engine</th><th>s/epoch</th><th>over the slowest</th><th>over cpu</th><th>step up</th>"
              "<th>images/s</th><th>of ceiling</th><th>measured on</th></tr></thead><tbody>");
    for (int i = 0; i < count; i++) {
        const lt_json_node *node = rungs[i].node;
        double gflops = lt_get_number(node, "gflops"), ceiling = lt_get_number(node, "ceiling_gflops");
        double over_cpu = lt_get_number(node, "speedup_over_cpu");
        lt_put(t, "<tr><th scope=\"row\">");
        lt_escape(t, rungs[i].name);
        lt_putf(t, "</th><td>%s</td>", lt_show_number(text, rungs[i].seconds));
        lt_putf(t, "<td>%s</td>", show_factor(text, rungs[i].speedup));
        lt_putf(t, "<td>%s</td>", over_cpu > 0 ? show_factor(text, over_cpu) : "–");
        lt_putf(t, "<td>%s</td>", i > 0 ? show_factor(text, rungs[i - 1].seconds / rungs[i].seconds) : "–");
        lt_putf(t, "<td>%s</td>", lt_show_count(text, lt_get_number(node, "images_per_second")));
        if (ceiling > 0 && gflops > 0) {
            lt_putf(t, "<td>%.0f%%</td>", 100 * gflops / ceiling);
        } else {
            lt_put(t, "<td>–</td>");
        }
        lt_putf(t, "<td>%s images%s</td></tr>", lt_show_count(text, lt_get_number(node, "measured_images")),
                lt_get_true(node, "extrapolated") ? ", extrapolated" : "");
    }
    lt_put(t, "</tbody></table></div></details>");
}

/* What it was measured on, and whether that is what the run was made of. */
static void put_subject(lt_text *t, const lt_report_run *run, const rung *rungs, int count) {
    const lt_json_node *ladder = run->part[LT_PART_LADDER];
    const char *net = lt_get_text(ladder, "net"), *own = lt_get_text(run->part[LT_PART_CONFIG], "net");
    double batch = lt_get_number(rungs[0].node, "batch");
    for (int i = 1; i < count; i++) { /* the batch of all of them, if they have one */
        batch = lt_get_number(rungs[i].node, "batch") == batch ? batch : NAN;
    }
    if (net) {
        lt_put(t, " Measured on the net <b>");
        lt_escape(t, net);
        lt_put(t, "</b>");
        if (batch > 0) {
            lt_putf(t, " at batch %.0f", batch);
        }
        lt_put(t, ".");
    }
    if (!lt_report_ladder_fits(run)) {
        lt_put(t, " <b class=\"no\">That is not the net of this run, ");
        lt_escape(t, own);
        lt_put(t, ": the figures are another training&#39;s.</b>");
    }
}

void lt_chart_ladder(lt_text *t, const lt_report_run *run) {
    const lt_json_node *ladder = run->part[LT_PART_LADDER];
    rung rungs[RUNGS_MAX];
    double ticks[LT_TICKS_MAX], best = 1;
    char text[LT_SHORT];
    int count = collect(ladder, rungs);
    for (int i = 0; i < count; i++) {
        best = rungs[i].speedup > best ? rungs[i].speedup : best;
    }
    if (count == 0) {
        return;
    }
    int height = TOP + count * ROW + AXIS;
    /* Lengths speak for themselves on a linear axis only if it begins at 0. */
    lt_axis axis = {best > 10 ? 1 : 0, best, best > 10, LEFT, WIDTH - ROOM};
    lt_putf(t,
            "<figure><svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Speedup of each "
            "engine over the slowest\">",
            WIDTH, height);
    int marks = lt_axis_ticks(&axis, 4, ticks);
    for (int i = 0; i < marks; i++) {
        double at = lt_axis_at(&axis, ticks[i]);
        lt_putf(t,
                "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>"
                "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">%.4g×</text>",
                at, at, TOP, height - AXIS, at, height - AXIS + 20, ticks[i]);
    }
    for (int i = 0; i < count; i++) {
        draw_rung(t, &rungs[i], i, &axis);
    }
    lt_putf(t,
            "</svg><figcaption>Speedup over the slowest engine%s, and seconds for an epoch of %s images. "
            "<span class=\"swatch b0\"></span> CPU <span class=\"swatch b2\"></span> GPU.",
            axis.logarithmic ? ", on a logarithmic scale that begins at 1×" : "",
            lt_show_count(text, lt_get_number(ladder, "epoch_images")));
    put_subject(t, run, rungs, count);
    lt_put(t, "</figcaption></figure>");
    ladder_table(t, rungs, count);
}
