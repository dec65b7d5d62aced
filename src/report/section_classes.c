/* section_classes.c: how well each class is recognized, and what it is taken for. */
#include "report/page.h"

#include <stdio.h>

static void class_table(lt_text *t, const lt_report_run *run) {
    char buffer[24];
    lt_put(t, "<details><summary>The numbers</summary><div class=\"scroll\"><table class=\"data\"><thead><tr>"
              "<th>class</th><th>images</th><th>right</th><th>accuracy</th><th>precision</th><th>F1</th>"
              "</tr></thead><tbody>");
    for (int k = 0; k < run->classes; k++) {
        const latent_class_score *s = &run->scores[k];
        lt_put(t, "<tr><th scope=\"row\">");
        lt_escape(t, lt_report_class(run, k, buffer));
        lt_putf(t, "</th><td>%llu</td><td>%llu</td><td>%.2f%%</td><td>%.2f%%</td><td>%.4f</td></tr>",
                (unsigned long long)s->count, (unsigned long long)s->correct, 100 * s->accuracy,
                100 * s->precision, s->f1);
    }
    lt_put(t, "</tbody></table></div></details>");
}

void lt_section_classes(lt_text *t, lt_place place, const lt_report_run *run) {
    char buffer[24], text[LT_SHORT];
    if (run->classes == 0) {
        return;
    }
    lt_heading(t, place, "classes", "Accuracy by class");
    lt_bars_open(t, "class", "accuracy");
    for (int k = 0; k < run->classes; k++) {
        snprintf(text, sizeof text, "%.1f%%", 100 * run->scores[k].accuracy);
        lt_bars_row(t, lt_report_class(run, k, buffer), run->scores[k].accuracy, 0, text);
    }
    lt_bars_close(t);
    class_table(t, run);
}

/* A cell's shade: the share of its row for right answers; for wrong ones relative to the worst of all, so
 * that they can be seen beside a strong diagonal. */
static void put_cell(lt_text *t, const lt_report_run *run, int i, int j, double worst) {
    uint64_t count = run->confusion[(size_t)i * (size_t)run->classes + (size_t)j];
    double share = run->scores[i].count > 0 ? (double)count / (double)run->scores[i].count : 0;
    double shade = i == j ? share : worst > 0 ? 0.9 * share / worst : 0;
    if (count == 0) {
        lt_put(t, "<td></td>");
    } else {
        lt_putf(t, "<td class=\"%s%s\" style=\"--a:%.2f\">%llu</td>", i == j ? "hit" : "miss",
                shade > 0.78 ? " strong" : "", shade, (unsigned long long)count);
    }
}

void lt_section_confusion(lt_text *t, lt_place place, const lt_report_run *run) {
    char buffer[24];
    double worst = 0;
    if (run->classes == 0) {
        return;
    }
    for (int i = 0; i < run->classes; i++) {
        for (int j = 0; j < run->classes; j++) {
            uint64_t count = run->confusion[(size_t)i * (size_t)run->classes + (size_t)j];
            double share = run->scores[i].count > 0 ? (double)count / (double)run->scores[i].count : 0;
            worst = i != j && share > worst ? share : worst;
        }
    }
    lt_heading(t, place, "confusion", "Confusion matrix");
    lt_put(t, "<p class=\"sub\">Rows are what an image shows, columns what it was taken for. "
              "<span class=\"swatch b0\"></span>right <span class=\"swatch b1\"></span>wrong</p>"
              "<div class=\"scroll\"><table class=\"matrix\"><colgroup>");
    for (int j = 0; j <= run->classes; j++) {
        lt_put(t, "<col/>");
    }
    lt_put(t, "</colgroup><thead><tr><th></th>");
    for (int j = 0; j < run->classes; j++) {
        lt_put(t, "<th scope=\"col\"><div>");
        lt_escape(t, lt_report_class(run, j, buffer));
        lt_put(t, "</div></th>");
    }
    lt_put(t, "</tr></thead><tbody>");
    for (int i = 0; i < run->classes; i++) {
        lt_put(t, "<tr><th scope=\"row\">");
        lt_escape(t, lt_report_class(run, i, buffer));
        lt_put(t, "</th>");
        for (int j = 0; j < run->classes; j++) {
            put_cell(t, run, i, j, worst);
        }
        lt_put(t, "</tr>");
    }
    lt_put(t, "</tbody></table></div>");
}
