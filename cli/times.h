/* times.h: where the time of a training step goes: collects the library's rows, prints them. */
#ifndef CLI_TIMES_H
#define CLI_TIMES_H

#include "cli.h"
#include "json.h"

enum { CLI_TIMES_MAX = 2048 };

typedef struct cli_times { /* from cli_times_new; free() */
    struct {
        latent_op_time time;
        char name[72], kernel[72];
    } rows[CLI_TIMES_MAX];
    int count;
} cli_times;

cli_times *cli_times_new(void);
/* A latent_op_time_fn; user is the cli_times. */
void cli_times_keep(void *user, const latent_op_time *time);
/* Op by op; `ceiling_gflops` 0: not known. Then the shares of the kinds of work. */
void cli_times_print(const cli_times *times, double ceiling_gflops);
/* An array of objects under `key`. */
void cli_times_json(cli_json *json, const char *key, const cli_times *times);
/* profile.json of a run, for the report. Returns an exit code. */
int cli_times_save(cli_session *session, const char *run, const char *engine, const cli_times *times);

#endif
