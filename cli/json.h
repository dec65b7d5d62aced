/* json.h: writes JSON to a stream. Objects and arrays are opened and closed; commas come by themselves.
 * `key` is NULL inside an array and at the top.
 */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdint.h>
#include <stdio.h>

typedef struct cli_json {
    FILE *out;
    int line; /* 1: all on one line, for files of one object a line */
    int depth;
    unsigned filled; /* bit d: something was written at depth d */
} cli_json;

void cli_json_open(cli_json *json, const char *key, char bracket);        /* '{' or '[' */
void cli_json_close(cli_json *json, char bracket);                        /* '}' or ']' */
void cli_json_string(cli_json *json, const char *key, const char *value); /* NULL: null */
void cli_json_number(cli_json *json, const char *key, double value);      /* not finite: null */
void cli_json_integer(cli_json *json, const char *key, uint64_t value);
void cli_json_boolean(cli_json *json, const char *key, int value);
void cli_json_ints(cli_json *json, const char *key, const int *values, int count);

#endif
