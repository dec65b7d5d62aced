/* charts.h: pictures of numbers, as inline SVG. Colours come from the page's style, so that they follow its
 * light or dark theme; each chart has a table of the same numbers folded away below it.
 */
#ifndef LT_REPORT_CHARTS_H
#define LT_REPORT_CHARTS_H

#include "report/load.h"
#include "report/text.h"

/* An axis from `from` to `to` in the drawing's units. */
typedef struct lt_axis {
    double min, max;
    int logarithmic;
    double from, to;
} lt_axis;

enum { LT_TICKS_MAX = 16 };

double lt_axis_at(const lt_axis *axis, double value);
/* Round numbers on the axis, about `wanted` of them: 1, 2 or 5 times a power of ten. Returns how many. */
int lt_axis_ticks(const lt_axis *axis, int wanted, double out[LT_TICKS_MAX]);
/* An axis over values from `low` to `high`, widened so that something can be seen. */
lt_axis lt_axis_over(double low, double high, double from, double to);

/* The losses of all runs in one chart. */
void lt_chart_losses(lt_text *t, const lt_report_run *runs, int count);
/* Speedup of every rung of the run's ladder over its slowest, with seconds per epoch. */
void lt_chart_ladder(lt_text *t, const lt_report_run *run);

/* A table whose rows carry a bar: open, rows, close. `share` is from 0 to 1; `colour` is 0 to 7. */
void lt_bars_open(lt_text *t, const char *name, const char *value);
void lt_bars_row(lt_text *t, const char *name, double share, int colour, const char *value);
void lt_bars_close(lt_text *t);

#endif
