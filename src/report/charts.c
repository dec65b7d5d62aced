/* charts.c: axes, the loss curve, bars.
 *
 * Drawings are 720 units wide and scale with the page; on a phone the style makes their letters larger, so
 * margins leave room for that.
 */
#include "report/charts.h"

#include <math.h>
#include <stdio.h>

enum { WIDTH = 720, LOSS_HEIGHT = 340, LEFT = 84, RIGHT = 16, TOP = 14, BOTTOM = 52, POINTS_MAX = 400 };

double lt_axis_at(const lt_axis *axis, double value) {
    double share = axis->logarithmic ? log(value / axis->min) / log(axis->max / axis->min)
                                     : (value - axis->min) / (axis->max - axis->min);
    return axis->from + share * (axis->to - axis->from);
}

static double round_step(double raw) {
    double power = pow(10, floor(log10(raw))), lead = raw / power;
    return power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

static int log_ticks(const lt_axis *axis, int wanted, double out[LT_TICKS_MAX]) {
    /* Powers of ten alone where there are many, else 1, 2 and 5 of each. */
    int decades = (int)ceil(log10(axis->max / axis->min)), count = 0;
    static const double leads[] = {1, 2, 5};
    int stride = decades >= wanted ? (decades + wanted - 1) / wanted : 1;
    for (int e = (int)floor(log10(axis->min)); e <= (int)ceil(log10(axis->max)); e += stride) {
        for (int k = 0; k < (decades >= 3 ? 1 : 3); k++) {
            double value = leads[k] * pow(10, e);
            if (value >= axis->min * 0.9999 && value <= axis->max * 1.0001 && count < LT_TICKS_MAX) {
                out[count++] = value;
            }
        }
    }
    return count;
}

int lt_axis_ticks(const lt_axis *axis, int wanted, double out[LT_TICKS_MAX]) {
    if (axis->logarithmic) {
        return log_ticks(axis, wanted, out);
    }
    double step = round_step((axis->max - axis->min) / wanted);
    int count = 0;
    for (double k = ceil(axis->min / step - 1e-9); count < LT_TICKS_MAX; k++) {
        if (k * step > axis->max + 1e-9 * step) {
            break;
        }
        out[count++] = k == 0 ? 0 : k * step; /* never -0 */
    }
    return count;
}

lt_axis lt_axis_over(double low, double high, double from, double to) {
    lt_axis axis = {low, high, low > 0 && high / low > 10, from, to};
    if (!(high > low)) { /* one value, or none */
        double pad = low != 0 && isfinite(low) ? fabs(low) * 0.1 : 1;
        low = isfinite(low) ? low : 0;
        return (lt_axis){low - pad, low + pad, 0, from, to};
    }
    if (axis.logarithmic) {
        axis.min /= 1.1;
        axis.max *= 1.1;
    } else {
        double step = round_step((high - low) / 5);
        axis.min = floor(low / step) * step;
        axis.max = ceil(high / step) * step;
    }
    if (!(axis.max > axis.min)) { /* closer together than numbers go */
        axis = (lt_axis){low - 1, low + 1, 0, from, to};
    }
    return axis;
}

static void draw_ticks(lt_text *t, const lt_axis *x, const lt_axis *y) {
    double ticks[LT_TICKS_MAX];
    int count = lt_axis_ticks(y, 5, ticks);
    for (int i = 0; i < count; i++) {
        double at = lt_axis_at(y, ticks[i]);
        lt_putf(t,
                "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                "<text class=\"tick\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%.4g</text>",
                LEFT, WIDTH - RIGHT, at, at, LEFT - 8, at + 5, ticks[i]);
    }
    count = lt_axis_ticks(x, 8, ticks);
    for (int i = 0; i < count; i++) {
        if (ticks[i] == floor(ticks[i])) {
            lt_putf(t, "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">%.0f</text>",
                    lt_axis_at(x, ticks[i]), LOSS_HEIGHT - BOTTOM + 22, ticks[i]);
        }
    }
    lt_putf(t, "<text class=\"label\" text-anchor=\"end\" x=\"%d\" y=\"%d\">epoch</text>", WIDTH - RIGHT,
            LOSS_HEIGHT - 6);
}

static int usable(const lt_report_epoch *epoch) {
    return isfinite(epoch->loss) && fabs(epoch->loss) < 1e12;
}

/* A line through the epochs of a run, with a dot for each where there are few. */
static void draw_losses(lt_text *t, const lt_report_run *run, int colour, const lt_axis *x,
                        const lt_axis *y) {
    int stride = run->epoch_count / POINTS_MAX + 1;
    char number[LT_SHORT];
    lt_putf(t, "<polyline class=\"line l%d\" points=\"", colour);
    for (int i = 0; i < run->epoch_count; i++) {
        const lt_report_epoch *epoch = &run->epochs[i];
        if (usable(epoch) && (i % stride == 0 || i == run->epoch_count - 1)) {
            lt_putf(t, "%.1f,%.1f ", lt_axis_at(x, epoch->epoch), lt_axis_at(y, epoch->loss));
        }
    }
    lt_put(t, "\"/>");
    for (int i = 0; i < run->epoch_count && run->epoch_count <= 50; i++) {
        const lt_report_epoch *epoch = &run->epochs[i];
        if (usable(epoch)) {
            lt_putf(t, "<circle class=\"dot d%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"><title>", colour,
                    lt_axis_at(x, epoch->epoch), lt_axis_at(y, epoch->loss));
            lt_putf(t, "epoch %d: %s</title></circle>", epoch->epoch, lt_show_number(number, epoch->loss));
        }
    }
}

static void legend(lt_text *t, const lt_report_run *runs, int count) {
    lt_put(t, "<p class=\"legend\">");
    for (int i = 0; i < count; i++) {
        lt_putf(t, "<span><i class=\"swatch b%d\"></i>", i % 8);
        lt_escape(t, runs[i].name);
        lt_put(t, "</span> ");
    }
    lt_put(t, "</p>");
}

/* Some hundred rows at most: evenly chosen, the first and the last among them. */
static void loss_table(lt_text *t, const lt_report_run *runs, int count, int last) {
    enum { ROWS = 200 };
    int stride = last > ROWS ? (last + ROWS - 1) / ROWS : 1;
    char number[LT_SHORT];
    lt_putf(t,
            "<details><summary>The numbers%s</summary><div class=\"scroll\"><table class=\"data\"><thead>"
            "<tr><th>epoch</th>",
            stride > 1 ? ", a part of them" : "");
    for (int r = 0; r < count; r++) {
        lt_put(t, "<th>");
        lt_escape(t, count > 1 ? runs[r].name : "loss");
        lt_put(t, count > 1 ? "</th>" : "</th><th>seconds</th><th>images/s</th>");
    }
    lt_put(t, "</tr></thead><tbody>");
    for (int e = 0; e < last; e += e + stride < last || e == last - 1 ? stride : last - 1 - e) {
        lt_putf(t, "<tr><th scope=\"row\">%d</th>", e + 1);
        for (int r = 0; r < count; r++) {
            const lt_report_epoch *epoch = e < runs[r].epoch_count ? &runs[r].epochs[e] : NULL;
            lt_putf(t, "<td>%s</td>", lt_show_number(number, epoch ? epoch->loss : NAN));
            if (count == 1) {
                lt_putf(t, "<td>%s</td>", lt_show_number(number, epoch ? epoch->seconds : NAN));
                lt_putf(t, "<td>%s</td>", lt_show_count(number, epoch ? epoch->images_per_second : NAN));
            }
        }
        lt_put(t, "</tr>");
    }
    lt_put(t, "</tbody></table></div></details>");
}

void lt_chart_losses(lt_text *t, const lt_report_run *runs, int count) {
    double low = INFINITY, high = -INFINITY;
    int last = 0, rows = 0;
    for (int r = 0; r < count; r++) {
        rows = runs[r].epoch_count > rows ? runs[r].epoch_count : rows;
        for (int i = 0; i < runs[r].epoch_count; i++) {
            const lt_report_epoch *epoch = &runs[r].epochs[i];
            last = epoch->epoch > last ? epoch->epoch : last;
            if (usable(epoch)) {
                low = epoch->loss < low ? epoch->loss : low;
                high = epoch->loss > high ? epoch->loss : high;
            }
        }
    }
    lt_axis x = {1, last > 1 ? last : 2, 0, LEFT + 6, WIDTH - RIGHT - 6};
    lt_axis y = lt_axis_over(low, high, LOSS_HEIGHT - BOTTOM, TOP);
    if (count > 1) {
        legend(t, runs, count);
    }
    lt_putf(t,
            "<figure><svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Loss by epoch\">",
            WIDTH, LOSS_HEIGHT);
    draw_ticks(t, &x, &y);
    for (int r = 0; r < count; r++) {
        draw_losses(t, &runs[r], r % 8, &x, &y);
    }
    lt_putf(t, "</svg><figcaption>Mean loss of each epoch%s.</figcaption></figure>",
            y.logarithmic ? ", on a logarithmic scale" : "");
    loss_table(t, runs, count, rows);
}

void lt_bars_open(lt_text *t, const char *name, const char *value) {
    lt_put(t, "<table class=\"bars\"><thead><tr><th>");
    lt_escape(t, name);
    lt_put(t, "</th><th></th><th>");
    lt_escape(t, value);
    lt_put(t, "</th></tr></thead><tbody>");
}

void lt_bars_row(lt_text *t, const char *name, double share, int colour, const char *value) {
    share = share > 0 ? share : 0; /* NaN as well */
    lt_put(t, "<tr><th scope=\"row\">");
    lt_escape(t, name);
    lt_putf(t, "</th><td><div class=\"bar b%d\" style=\"width:%.2f%%\"></div></td><td>", colour % 8,
            100 * (share < 1 ? share : 1));
    lt_escape(t, value);
    lt_put(t, "</td></tr>");
}

void lt_bars_close(lt_text *t) {
    lt_put(t, "</tbody></table>");
}
