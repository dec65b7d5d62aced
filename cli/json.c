/* json.c: writes JSON to a stream, indented by two, for --json. Numbers keep all their digits: a program
 * reads them. Bytes that are not UTF-8 (file names may hold any) become U+FFFD, so that what we print is
 * always JSON.
 */
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* The length of the well-formed UTF-8 sequence at `s`, or 0. */
static int utf8_length(const unsigned char *s) {
    static const struct {
        unsigned char first, last, second_min, second_max;
        int length;
    } forms[] = {{0x00, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
                 {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
                 {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (s[0] < forms[i].first || s[0] > forms[i].last) {
            continue;
        }
        for (int k = 1; k < forms[i].length; k++) {
            unsigned char min = k == 1 ? forms[i].second_min : 0x80,
                          max = k == 1 ? forms[i].second_max : 0xBF;
            if (s[k] < min || s[k] > max) {
                return 0;
            }
        }
        return forms[i].length;
    }
    return 0;
}

static void quoted(FILE *out, const char *text) {
    fputc('"', out);
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        int length = utf8_length(s);
        if (length == 0) {
            fputs("\\ufffd", out);
            length = 1;
        } else if (*s == '"' || *s == '\\') {
            fprintf(out, "\\%c", *s);
        } else if (*s < 0x20) {
            fprintf(out, "\\u%04x", *s);
        } else {
            fwrite(s, 1, (size_t)length, out);
        }
        s += length;
    }
    fputc('"', out);
}

static void new_line(cli_json *json) {
    if (!json->line) {
        fprintf(json->out, "\n%*s", 2 * json->depth, "");
    }
}

/* What comes before every value: the comma, the new line, the key. */
static void lead(cli_json *json, const char *key) {
    if (json->filled & 1u << json->depth) {
        fputc(',', json->out);
    }
    json->filled |= 1u << json->depth;
    if (json->depth > 0) {
        new_line(json);
    }
    if (key) {
        quoted(json->out, key);
        fputs(": ", json->out);
    }
}

void cli_json_open(cli_json *json, const char *key, char bracket) {
    lead(json, key);
    fputc(bracket, json->out);
    json->depth++;
    json->filled &= ~(1u << json->depth);
}

void cli_json_close(cli_json *json, char bracket) {
    int filled = (json->filled & 1u << json->depth) != 0;
    json->depth--;
    if (filled) {
        new_line(json);
    }
    fputc(bracket, json->out);
    if (json->depth == 0) {
        fputc('\n', json->out);
    }
}

void cli_json_string(cli_json *json, const char *key, const char *value) {
    lead(json, key);
    if (value) {
        quoted(json->out, value);
    } else {
        fputs("null", json->out);
    }
}

void cli_json_number(cli_json *json, const char *key, double value) {
    lead(json, key);
    char text[40] = "null";
    /* The shortest form that reads back the same. */
    for (int digits = 15; isfinite(value) && digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    fputs(text, json->out);
}

void cli_json_integer(cli_json *json, const char *key, uint64_t value) {
    lead(json, key);
    fprintf(json->out, "%" PRIu64, value);
}

void cli_json_boolean(cli_json *json, const char *key, int value) {
    lead(json, key);
    fputs(value ? "true" : "false", json->out);
}

void cli_json_ints(cli_json *json, const char *key, const int *values, int count) {
    lead(json, key);
    fputc('[', json->out);
    for (int i = 0; i < count; i++) {
        fprintf(json->out, "%s%d", i ? ", " : "", values[i]);
    }
    fputc(']', json->out);
}
