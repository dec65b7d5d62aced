/* page.c: the report as one HTML file.
 *
 * It loads nothing, runs no script and is well-formed XML, so that a reader, a printer and a parser get all
 * of it. A report of several runs begins with them side by side, then has the sections of each.
 */
#include "report/page.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

void lt_heading(lt_text *t, lt_place place, const char *anchor, const char *title) {
    lt_putf(t, "<h%d id=\"%s-%d\">%s</h%d>", place.level, anchor, place.run + 1, title, place.level);
}

static void put_head(lt_text *t, const lt_report_run *runs, int count) {
    lt_put(t, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
              "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>"
              "<meta name=\"generator\" content=\"latent " LATENT_VERSION "\"/><title>");
    for (int r = 0; r < count; r++) {
        lt_put(t, r ? ", " : "");
        lt_escape(t, runs[r].name);
    }
    lt_put(t, " – latent report</title><style>\n");
    lt_put(t, lt_page_style);
    lt_put(t, "</style></head>\n<body><header><p class=\"sub\">latent report</p><h1>");
    for (int r = 0; r < count; r++) {
        lt_put(t, r ? " · " : "");
        lt_escape(t, runs[r].name);
    }
    lt_put(t, "</h1>");
}

/* What was done, in a sentence. */
static void put_lead(lt_text *t, const lt_report_run *run) {
    char images[LT_SHORT];
    const lt_json_node *config = run->part[LT_PART_CONFIG], *eval = run->part[LT_PART_EVAL];
    const char *net = lt_get_text(config, "net"), *engine = lt_get_text(config, "engine");
    lt_put(t, "<p class=\"sub\">");
    if (net && run->epoch_count > 0) {
        lt_put(t, "The net <b>");
        lt_escape(t, net);
        lt_putf(t, "</b>, trained without labels for %d epoch%s on %s%s images", run->epoch_count,
                run->epoch_count == 1 ? "" : "s", lt_show_count(images, lt_get_number(config, "images")),
                lt_get_true(eval, "synthetic") ? " synthetic" : "");
        if (engine) {
            lt_put(t, " by ");
            lt_escape(t, engine);
        }
        lt_put(t, run->classes > 0 ? "; a support vector machine on its features tells the classes apart."
                                   : ".");
    }
    lt_put(t, "</p>");
}

static void put_nav(lt_text *t, const lt_report_run *run) {
    const struct {
        const char *anchor, *title;
        int shown;
    } items[] = {{"targets", "Targets", 1},
                 {"loss", "Loss", run->epoch_count > 0},
                 {"reconstructions", "Reconstructions", run->pictures.count > 0},
                 {"classes", "Classes", run->classes > 0},
                 {"confusion", "Confusion", run->classes > 0},
                 {"time", "Time", 1},
                 {"kernels", "Kernels", run->part[LT_PART_PROFILE] != NULL},
                 {"ladder", "Ladder", lt_get_list(run->part[LT_PART_LADDER], "rungs") != NULL},
                 {"reproduce", "Reproduce", 1}};
    lt_put(t, "<nav>");
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        if (items[i].shown) {
            lt_putf(t, "<a href=\"#%s-1\">%s</a>", items[i].anchor, items[i].title);
        }
    }
    lt_put(t, "</nav>");
}

static latent_status put_run(latent_context *ctx, lt_text *t, const lt_report_run *run, lt_place place) {
    latent_status status = LATENT_OK;
    lt_section_cards(t, run);
    lt_section_targets(t, place, run);
    if (run->epoch_count > 0) {
        lt_heading(t, place, "loss", "Loss");
        lt_chart_losses(t, run, 1);
    }
    LT_TRY(lt_section_samples(ctx, t, place, run));
    lt_section_classes(t, place, run);
    lt_section_confusion(t, place, run);
    LT_TRY(lt_section_pairs(ctx, t, run));
    lt_section_time(t, place, run);
    lt_section_kernels(t, place, run);
done:
    return status;
}

/* The ladder is about the program more than about a run, so it is shown once: the first run's that has one.
 */
static void put_ladder(lt_text *t, const lt_report_run *runs, int count) {
    for (int r = 0; r < count; r++) {
        if (lt_get_list(runs[r].part[LT_PART_LADDER], "rungs")) {
            lt_put(t, "<h2 id=\"ladder-1\">The ladder of engines</h2>");
            lt_chart_ladder(t, &runs[r]);
            return;
        }
    }
}

static latent_status put_body(latent_context *ctx, lt_text *t, const lt_report_run *runs, int count) {
    latent_status status = LATENT_OK;
    char stamp[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    if (count == 1) {
        put_lead(t, &runs[0]);
        put_nav(t, &runs[0]);
        lt_put(t, "</header><main>");
        LT_TRY(put_run(ctx, t, &runs[0], (lt_place){2, 0}));
        put_ladder(t, runs, 1);
        lt_section_reproduce(t, (lt_place){2, 0}, &runs[0]);
    } else {
        lt_put(t, "</header><main>");
        lt_section_compare(t, runs, count);
        put_ladder(t, runs, count);
        for (int r = 0; r < count; r++) {
            lt_putf(t, "<section class=\"run\"><h2 id=\"run-%d\"><i class=\"swatch b%d\"></i>", r + 1, r % 8);
            lt_escape(t, runs[r].name);
            lt_put(t, "</h2>");
            put_lead(t, &runs[r]);
            LT_TRY(put_run(ctx, t, &runs[r], (lt_place){3, r}));
            lt_section_reproduce(t, (lt_place){3, r}, &runs[r]);
            lt_put(t, "</section>");
        }
    }
    if (gmtime_r(&now, &utc)) {
        strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M UTC", &utc);
    }
    lt_putf(t, "</main><footer>Written by latent " LATENT_VERSION " on %s.</footer></body></html>\n", stamp);
done:
    return status;
}

latent_status latent_report_write(latent_context *ctx, const char *const *runs, int count, const char *ladder,
                                  const char *path) {
    latent_status status = LATENT_OK;
    lt_report_run loaded[LT_REPORT_RUNS_MAX];
    lt_text t = {0};
    int have = 0;
    if (count < 1 || count > LT_REPORT_RUNS_MAX) {
        status = lt_fail(ctx, LATENT_ERROR_ARGUMENT, "a report shows 1 to %d runs, not %d",
                         LT_REPORT_RUNS_MAX, count);
        goto done;
    }
    for (; have < count; have++) {
        LT_TRY(lt_report_load(ctx, runs[have], have == 0 ? ladder : NULL, &loaded[have]));
    }
    lt_report_name(loaded, count);
    put_head(&t, loaded, count);
    LT_TRY(put_body(ctx, &t, loaded, count));
    LT_TRY(lt_text_finish(ctx, &t));
    LT_TRY(lt_file_write(ctx, path, t.s, t.length));
done:
    while (have > 0) {
        lt_report_free(&loaded[--have]);
    }
    free(t.s);
    return status;
}
