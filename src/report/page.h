/* page.h: the sections of the report. Each writes its own heading, and nothing at all when the run has
 * nothing to show for it.
 */
#ifndef LT_REPORT_PAGE_H
#define LT_REPORT_PAGE_H

#include "report/charts.h"
#include "report/load.h"
#include "report/text.h"

extern const char *const lt_page_style;

/* A heading of level 2 in a report of one run, of level 3 below the runs of a report of several. The name
 * of the section is also its anchor, with the run's number. */
typedef struct lt_place {
    int level, run;
} lt_place;
void lt_heading(lt_text *t, lt_place place, const char *anchor, const char *title);

/* section_summary.c */
void lt_section_cards(lt_text *t, const lt_report_run *run);
void lt_section_targets(lt_text *t, lt_place place, const lt_report_run *run);
void lt_section_reproduce(lt_text *t, lt_place place, const lt_report_run *run);
/* section_pictures.c */
latent_status lt_section_samples(latent_context *ctx, lt_text *t, lt_place place, const lt_report_run *run);
latent_status lt_section_pairs(latent_context *ctx, lt_text *t, const lt_report_run *run);
/* section_classes.c */
void lt_section_classes(lt_text *t, lt_place place, const lt_report_run *run);
void lt_section_confusion(lt_text *t, lt_place place, const lt_report_run *run);
/* section_time.c */
void lt_section_time(lt_text *t, lt_place place, const lt_report_run *run);
void lt_section_kernels(lt_text *t, lt_place place, const lt_report_run *run);
/* section_compare.c: several runs side by side. */
void lt_section_compare(lt_text *t, const lt_report_run *runs, int count);

/* targets.c */
void lt_targets(const lt_report_run *run, latent_target out[LATENT_TARGETS]);

#endif
