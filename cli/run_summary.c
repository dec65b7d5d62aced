/* run_summary.c: the end of `latent run`: its stages and its targets, as tables or as JSON. Stopped early, it
 * tells of what there is.
 */
#include "format.h"
#include "pipeline.h"
#include "record.h"
#include "table.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct ending {
    const cli_pipeline *p;
    const char *report;           /* or NULL */
    const latent_target *targets; /* or NULL */
} ending;

static void fill_stages(cli_json *json, const cli_pipeline *p) {
    cli_json_open(json, "stages", '[');
    for (int i = 0; i < CLI_STAGES; i++) {
        const latent_stage *stage = latent_journal_find(p->journal, cli_stages[i].name);
        if (stage) {
            cli_json_open(json, NULL, '{');
            cli_json_string(json, "name", stage->name);
            cli_json_number(json, "seconds", stage->seconds);
            cli_json_string(json, "summary", stage->summary);
            cli_json_close(json, '}');
        }
    }
    cli_json_close(json, ']');
}

static void fill_ending(cli_json *json, void *user) {
    const ending *e = user;
    cli_json_string(json, "run", e->p->run);
    cli_json_string(json, "report", e->report);
    cli_json_string(json, "data", e->p->data_info.path);
    cli_json_boolean(json, "synthetic", e->p->data_info.synthetic);
    cli_json_integer(json, "stages_done_now", (uint64_t)e->p->worked);
    fill_stages(json, e->p);
    cli_json_open(json, "targets", '[');
    for (int i = 0; e->targets && i < LATENT_TARGETS; i++) {
        cli_json_open(json, NULL, '{');
        cli_json_string(json, "name", e->targets[i].name);
        cli_json_string(json, "goal", e->targets[i].goal);
        cli_json_string(json, "measured", e->targets[i].measured);
        cli_json_string(json, "reached", e->targets[i].reached);
        cli_json_string(json, "reason", *e->targets[i].reason ? e->targets[i].reason : NULL);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void print_targets(const latent_target *targets) {
    cli_table table = cli_table_new("llll");
    static const char *const heads[] = {"target", "wanted", "measured", "reached"};
    for (int i = 0; i < 4; i++) {
        cli_table_cell(&table, "%s", heads[i]);
    }
    cli_table_rule(&table);
    for (int i = 0; i < LATENT_TARGETS; i++) {
        cli_table_cell(&table, "%s", targets[i].name);
        cli_table_cell(&table, "%s", targets[i].goal);
        cli_table_cell(&table, "%s", targets[i].measured);
        cli_table_cell(&table, "%s%s%s", targets[i].reached, *targets[i].reason ? ": " : "",
                       targets[i].reason);
    }
    printf("\n");
    cli_table_print(&table, stdout, "");
}

static void print_ending(const ending *e) {
    cli_table table = cli_table_new("lrl");
    for (int i = 0; i < CLI_STAGES; i++) {
        const latent_stage *stage = latent_journal_find(e->p->journal, cli_stages[i].name);
        if (stage) {
            cli_table_cell(&table, "%s", stage->name);
            cli_table_cell(&table, "%s", cli_duration(stage->seconds).s);
            cli_table_cell(&table, "%s", stage->summary);
        }
    }
    cli_table_print(&table, stdout, "");
    if (e->targets) {
        print_targets(e->targets);
    }
    if (e->report) {
        printf("\nreport  %s\n", e->report);
    }
}

int cli_run_summary(cli_pipeline *p) {
    latent_target targets[LATENT_TARGETS];
    char *path = cli_join(p->run, "report.html");
    int written = cli_pipeline_has(p, "report.html") && latent_journal_find(p->journal, "report");
    int begun = cli_folder_has_run(p->run), code = CLI_OK;
    ending e = {p, written ? path : NULL, begun ? targets : NULL};
    if (begun) {
        code = cli_status(p->session, latent_run_targets(p->session->ctx, p->run,
                                                         cli_string(p->arguments, "ladder"), targets));
    }
    if (code == CLI_OK && cli_flag(p->arguments, "json")) {
        cli_record_print(fill_ending, &e);
    } else if (code == CLI_OK) {
        print_ending(&e);
    }
    free(path);
    return code;
}
