/* times.c: where the time of a training step goes. */
#include "times.h"

#include "record.h"
#include "table.h"

#include <stdlib.h>
#include <string.h>

cli_times *cli_times_new(void) {
    cli_times *times = calloc(1, sizeof *times);
    cli_need_memory(times);
    return times;
}

/* The names live as long as the measurement, so they are copied. */
void cli_times_keep(void *user, const latent_op_time *time) {
    cli_times *times = user;
    if (times->count < CLI_TIMES_MAX) {
        int i = times->count++;
        times->rows[i].time = *time;
        snprintf(times->rows[i].name, sizeof times->rows[i].name, "%s", time->name);
        snprintf(times->rows[i].kernel, sizeof times->rows[i].kernel, "%s", time->kernel ? time->kernel : "");
    }
}

static double total(const cli_times *times) {
    double sum = 0;
    for (int i = 0; i < times->count; i++) {
        sum += times->rows[i].time.parts ? 0 : times->rows[i].time.seconds;
    }
    return sum;
}

static double percent(double part, double whole) {
    return whole > 0 ? 100 * part / whole : 0;
}

static void print_ops(const cli_times *times, double ceiling_gflops) {
    static const char *const heads[] = {"op", "pass", "kernel", "ms/step", "share", "GFLOP/s", "of ceiling"};
    double all = total(times);
    int parts = 0; /* rows to come that are kernels of the op above */
    cli_table table = cli_table_new("lllrrrr");
    for (int i = 0; i < 7; i++) {
        cli_table_cell(&table, "%s", heads[i]);
    }
    cli_table_rule(&table);
    for (int i = 0; i < times->count; i++) {
        const latent_op_time *time = &times->rows[i].time;
        double gflops = 1e-9 * time->flops / time->seconds;
        int part = parts > 0;
        parts = part ? parts - 1 : time->parts;
        if (!(time->seconds > 0)) {
            continue;
        }
        cli_table_cell(&table, "%s", part ? "" : times->rows[i].name);
        cli_table_cell(&table, "%s", part ? "" : time->pass);
        cli_table_cell(&table, "%s%s", part ? "  " : "", times->rows[i].kernel);
        cli_table_cell(&table, "%.3f", 1e3 * time->seconds);
        cli_table_cell(&table, "%.1f%%", percent(time->seconds, all));
        if (time->flops > 0) {
            cli_table_cell(&table, "%.0f", gflops);
        } else {
            cli_table_cell(&table, "%s", "");
        }
        if (time->flops > 0 && ceiling_gflops > 0) {
            cli_table_cell(&table, "%.0f%%", percent(gflops, ceiling_gflops));
        } else {
            cli_table_cell(&table, "%s", "");
        }
    }
    cli_table_print(&table, stdout, "");
}

static void print_kinds(const cli_times *times) {
    double all = total(times);
    cli_table table = cli_table_new("lrr");
    for (int i = 0; i < times->count; i++) {
        const char *kind = times->rows[i].time.kind;
        double sum = 0;
        int first = !times->rows[i].time.parts;
        for (int j = 0; j < times->count; j++) {
            if (strcmp(times->rows[j].time.kind, kind) == 0 && !times->rows[j].time.parts) {
                first = first && j >= i;
                sum += times->rows[j].time.seconds;
            }
        }
        if (first && sum > 0) {
            cli_table_cell(&table, "%s", kind);
            cli_table_cell(&table, "%.3f ms", 1e3 * sum);
            cli_table_cell(&table, "%.1f%%", percent(sum, all));
        }
    }
    printf("\n");
    cli_table_print(&table, stdout, "");
}

void cli_times_print(const cli_times *times, double ceiling_gflops) {
    print_ops(times, ceiling_gflops);
    print_kinds(times);
}

void cli_times_json(cli_json *json, const char *key, const cli_times *times) {
    cli_json_open(json, key, '[');
    for (int i = 0; i < times->count; i++) {
        const latent_op_time *time = &times->rows[i].time;
        cli_json_open(json, NULL, '{');
        cli_json_string(json, "name", times->rows[i].name);
        cli_json_string(json, "pass", time->pass);
        cli_json_string(json, "kind", time->kind);
        cli_json_string(json, "kernel", times->rows[i].kernel);
        cli_json_number(json, "parts", time->parts);
        cli_json_number(json, "seconds", time->seconds);
        cli_json_number(json, "flops", time->flops);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

typedef struct profile {
    const char *engine;
    const cli_times *times;
} profile;

static void fill_profile(cli_json *json, void *user) {
    const profile *made = user;
    cli_json_string(json, "engine", made->engine);
    cli_times_json(json, "ops", made->times);
}

int cli_times_save(cli_session *session, const char *run, const char *engine, const cli_times *times) {
    profile made = {engine, times};
    char *path = cli_join(run, "profile.json");
    int code = cli_record_save(session, path, fill_profile, &made);
    free(path);
    return code;
}
