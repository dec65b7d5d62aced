/* progress.h: what a person sees while the program works, on stderr: a bar on a terminal, plain lines
 * elsewhere, nothing under --quiet.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

typedef struct cli_progress {
    int quiet;
    int terminal; /* stderr is one that can redraw a line */
    int color;    /* terminal, and NO_COLOR is not set */
    int unicode;
    int drawn;     /* a bar is on the screen */
    double latest; /* when something was last shown, seconds on the monotonic clock */
} cli_progress;

void cli_progress_begin(cli_progress *progress);
/* Seconds on a clock that never goes back. */
double cli_clock(void);
/* Draws "left [bar] NN% right", at most ten times a second unless `fraction` is 1. Off a terminal it does
 * nothing. */
void cli_progress_bar(cli_progress *progress, double fraction, const char *left, const char *right);
/* Wipes the bar, so that something else can be printed. */
void cli_progress_clear(cli_progress *progress);
/* 1 off a terminal when `seconds` have passed since the last line: time for a plain line. */
int cli_progress_due(cli_progress *progress, double seconds);
/* Prints a whole line in place of the bar. */
void cli_progress_line(cli_progress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Escape sequences, or "" where colour is not wanted. */
const char *cli_color(const cli_progress *progress, const char *sequence);

#define CLI_BOLD  "\033[1m"
#define CLI_DIM   "\033[2m"
#define CLI_GREEN "\033[32m"
#define CLI_RED   "\033[31m"
#define CLI_RESET "\033[0m"

#endif
