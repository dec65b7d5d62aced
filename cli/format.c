/* format.c: numbers as a person reads them: thousands separators, bytes, durations. Three significant
 * digits are enough to compare two runs by eye; exact values belong to --json.
 */
#include "format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

cli_text cli_count(uint64_t n) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, n);
    cli_text text = {""};
    int at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            text.s[at++] = ',';
        }
        text.s[at++] = digits[i];
    }
    text.s[at] = 0;
    return text;
}

/* Three significant digits and a unit per factor of 1000. */
static cli_text scaled(uint64_t n, const char *const *units, int count) {
    cli_text text = {""};
    double value = (double)n;
    int unit = 0;
    while (value >= 999.5 && unit + 1 < count) {
        value /= 1000;
        unit++;
    }
    int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    snprintf(text.s, sizeof text.s, "%.*f%s%s", decimals, value, units[unit][0] ? " " : "", units[unit]);
    return text;
}

cli_text cli_bytes(uint64_t n) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    return scaled(n, units, 7);
}

cli_text cli_big(uint64_t n) {
    static const char *const units[] = {"", "k", "M", "G", "T", "P", "E"};
    return scaled(n, units, 7);
}

cli_text cli_duration(double seconds) {
    cli_text text = {""};
    if (!(seconds >= 0) || seconds > 1e9) {
        snprintf(text.s, sizeof text.s, "-");
    } else if (seconds < 9.995) {
        snprintf(text.s, sizeof text.s, "%.2f s", seconds);
    } else if (seconds < 59.95) {
        snprintf(text.s, sizeof text.s, "%.1f s", seconds);
    } else {
        long whole = lround(seconds);
        if (whole < 3600) {
            snprintf(text.s, sizeof text.s, "%ld min %02ld s", whole / 60, whole % 60);
        } else {
            snprintf(text.s, sizeof text.s, "%ld h %02ld min", whole / 3600, whole / 60 % 60);
        }
    }
    return text;
}

cli_text cli_eta(double seconds) {
    cli_text text = {"-"};
    if (seconds >= 0 && seconds < 1e9) {
        long whole = lround(ceil(seconds)), hours = whole / 3600, minutes = whole / 60 % 60;
        if (hours > 0) {
            snprintf(text.s, sizeof text.s, "%ld:%02ld:%02ld", hours, minutes, whole % 60);
        } else {
            snprintf(text.s, sizeof text.s, "%ld:%02ld", minutes, whole % 60);
        }
    }
    return text;
}

cli_text cli_rate(double per_second) {
    cli_text text = {""};
    if (!(per_second >= 0) || per_second > 1e15) {
        snprintf(text.s, sizeof text.s, "-");
    } else if (per_second < 99.95) {
        snprintf(text.s, sizeof text.s, "%.1f", per_second);
    } else {
        text = cli_count((uint64_t)llround(per_second));
    }
    return text;
}

cli_text cli_shape(const int hwc[3]) {
    cli_text text = {""};
    snprintf(text.s, sizeof text.s, "%dx%dx%d", hwc[0], hwc[1], hwc[2]);
    return text;
}

cli_text cli_dims(const int *shape, int dims) {
    cli_text text = {"["};
    size_t at = 1;
    for (int i = 0; i < dims && i < 4; i++) {
        at += (size_t)snprintf(text.s + at, sizeof text.s - at, "%s%d", i ? ", " : "", shape[i]);
    }
    snprintf(text.s + at, sizeof text.s - at, "]");
    return text;
}

int cli_width(const char *text) {
    int width = 0;
    for (; *text; text++) {
        width += ((unsigned char)*text & 0xC0) != 0x80;
    }
    return width;
}
