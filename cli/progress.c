/* progress.c: the bar. It owns one line of the terminal, draws it from the left edge again and again, and
 * gives it back before anything else is printed. The bar takes what the texts to its left and right leave of
 * the width; a narrow terminal loses the bar first, then the end of the text, and never wraps.
 */
#include "progress.h"

#include "format.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { BAR_MIN = 8, BAR_MAX = 40, LINE_MAX_BYTES = 1024 };

static int says_utf8(void) {
    const char *names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);
        if (value && *value) {
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
        }
    }
    return 0;
}

void cli_progress_begin(cli_progress *progress) {
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    memset(progress, 0, sizeof *progress);
    progress->terminal = isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
    progress->color = progress->terminal && !(no_color && *no_color);
    progress->unicode = says_utf8();
    progress->latest = cli_clock();
}

double cli_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

const char *cli_color(const cli_progress *progress, const char *sequence) {
    return progress->color ? sequence : "";
}

static int terminal_width(void) {
    struct winsize size = {0};
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    return 80;
}

/* Appends as many code points of `text` as `room` columns hold; returns the columns left. */
static int append_text(char *line, size_t *at, const char *text, int room) {
    for (; *text && *at + 8 < LINE_MAX_BYTES; text++) {
        if (((unsigned char)*text & 0xC0) != 0x80) {
            if (room == 0) {
                break;
            }
            room--;
        }
        line[(*at)++] = *text;
    }
    line[*at] = 0;
    return room;
}

static void append_bar(const cli_progress *progress, char *line, size_t *at, double fraction, int width) {
    const char *full = progress->unicode ? "\u2501" : "=", *rest = progress->unicode ? "\u2500" : "-";
    int filled = (int)(fraction * width + 0.5);
    const char *parts[] = {cli_color(progress, CLI_GREEN), cli_color(progress, CLI_RESET CLI_DIM),
                           cli_color(progress, CLI_RESET)};
    *at += (size_t)snprintf(line + *at, LINE_MAX_BYTES - *at, "%s", parts[0]);
    for (int i = 0; i < width; i++) {
        const char *piece = i < filled ? full : rest;
        *at += (size_t)snprintf(line + *at, LINE_MAX_BYTES - *at, "%s%s", i == filled ? parts[1] : "", piece);
    }
    *at += (size_t)snprintf(line + *at, LINE_MAX_BYTES - *at, "%s", parts[2]);
}

void cli_progress_bar(cli_progress *progress, double fraction, const char *left, const char *right) {
    double now = cli_clock();
    if (progress->quiet || !progress->terminal ||
        (progress->drawn && fraction < 1 && now - progress->latest < 0.1)) {
        return;
    }
    progress->latest = now;
    fraction = fraction < 0 ? 0 : fraction > 1 ? 1 : fraction;
    char line[LINE_MAX_BYTES] = "", percent[16];
    size_t at = 0;
    snprintf(percent, sizeof percent, " %3d%%  ", (int)(100 * fraction));
    /* The last column stays free: some terminals wrap when it is written. */
    int room = terminal_width() - 1;
    int bar = room - cli_width(left) - 1 - cli_width(percent) - cli_width(right);
    room = append_text(line, &at, left, room);
    if (bar >= BAR_MIN) {
        bar = bar > BAR_MAX ? BAR_MAX : bar;
        room = append_text(line, &at, " ", room) - bar;
        append_bar(progress, line, &at, fraction, bar);
    }
    room = append_text(line, &at, percent, room);
    append_text(line, &at, right, room);
    fprintf(stderr, "\r%s\033[K", line);
    fflush(stderr);
    progress->drawn = 1;
}

void cli_progress_clear(cli_progress *progress) {
    if (progress->drawn) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
        progress->drawn = 0;
    }
}

int cli_progress_due(cli_progress *progress, double seconds) {
    return !progress->quiet && !progress->terminal && cli_clock() - progress->latest >= seconds;
}

void cli_progress_line(cli_progress *progress, const char *format, ...) {
    if (progress->quiet) {
        return;
    }
    cli_progress_clear(progress);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    progress->latest = cli_clock();
}
