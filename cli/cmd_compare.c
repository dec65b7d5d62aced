/* cmd_compare.c: `latent compare`: the weights of two runs or files, tensor by tensor. The exit code is the
 * verdict: 0 within the tolerance, 3 beyond it, 1 when the two cannot be compared.
 */
#include "cli.h"
#include "format.h"
#include "json.h"
#include "table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const cli_option options[] = {
    {.name = "tolerance",
     .letter = 't',
     .value = "ABS",
     .type = CLI_REAL,
     .min = 0,
     .max = 1e300,
     .initial = "0",
     .help = "largest absolute difference that is let pass"},
    {.name = "relative",
     .value = "REL",
     .type = CLI_REAL,
     .min = 0,
     .max = 1e300,
     .initial = "0",
     .help = "let pass REL times the larger of two values on top of that"},
    {.name = "json", .type = CLI_FLAG, .help = "print the result as JSON"},
};

static const cli_group group = {"Options", options, sizeof options / sizeof *options};

/* A row per tensor, as a table or as JSON; kept back until all tensors could be compared. */
typedef struct listing {
    cli_table table;
    cli_json json;
    char *text; /* of json */
    size_t length;
    int as_json;
    int tensors;
    uint64_t values, beyond;
} listing;

static void add_row(cli_table *table, const latent_difference *d) {
    cli_table_cell(table, "%s", d->name);
    cli_table_cell(table, "%s", cli_dims(d->shape, d->dims).s);
    cli_table_cell(table, "%s", cli_count(d->count).s);
    cli_table_cell(table, "%.3g", d->max_abs);
    cli_table_cell(table, "%.3g", d->max_rel);
    cli_table_cell(table, "%s", cli_count(d->beyond).s);
    if (d->first >= 0) {
        cli_table_cell(table, "[%" PRId64 "] %.9g, %.9g", d->first, d->a, d->b);
    } else {
        cli_table_cell(table, "-");
    }
}

static void add_json(cli_json *json, const latent_difference *d) {
    cli_json_open(json, NULL, '{');
    cli_json_string(json, "name", d->name);
    cli_json_ints(json, "shape", d->shape, d->dims);
    cli_json_integer(json, "count", d->count);
    cli_json_number(json, "max_abs", d->max_abs);
    cli_json_number(json, "max_rel", d->max_rel);
    cli_json_integer(json, "beyond", d->beyond);
    if (d->first >= 0) {
        cli_json_integer(json, "first", (uint64_t)d->first);
        cli_json_number(json, "a", d->a);
        cli_json_number(json, "b", d->b);
    } else {
        cli_json_string(json, "first", NULL);
    }
    cli_json_close(json, '}');
}

static void on_difference(void *user, const latent_difference *difference) {
    listing *view = user;
    view->tensors++;
    view->values += difference->count;
    view->beyond += difference->beyond;
    if (view->as_json) {
        add_json(&view->json, difference);
    } else {
        add_row(&view->table, difference);
    }
}

static void begin(listing *view, const cli_arguments *arguments) {
    static const char *const titles[] = {"tensor",  "shape",  "values",     "max abs",
                                         "max rel", "beyond", "first: a, b"};
    view->as_json = cli_flag(arguments, "json");
    view->table = cli_table_new("lrrrrrl");
    if (view->as_json) {
        view->json.out = open_memstream(&view->text, &view->length);
        cli_need_memory(view->json.out);
        cli_json_open(&view->json, NULL, '{');
        cli_json_string(&view->json, "a", arguments->operands[0]);
        cli_json_string(&view->json, "b", arguments->operands[1]);
        cli_json_number(&view->json, "tolerance", cli_get(arguments, "tolerance")->real);
        cli_json_number(&view->json, "relative", cli_get(arguments, "relative")->real);
        cli_json_open(&view->json, "tensors", '[');
        return;
    }
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        cli_table_cell(&view->table, "%s", titles[i]);
    }
    cli_table_rule(&view->table);
}

static void print_verdict(const listing *view, int beyond) {
    if (beyond == 0) {
        printf("equal within the tolerance: %d tensors, %s values\n", view->tensors,
               cli_count(view->values).s);
    } else {
        printf("different: %d of %d tensors, %s of %s values beyond the tolerance\n", beyond, view->tensors,
               cli_count(view->beyond).s, cli_count(view->values).s);
    }
}

static int run_compare(cli_session *session, const cli_arguments *arguments) {
    listing view = {0};
    int beyond = 0;
    begin(&view, arguments);
    latent_status status = latent_compare(
        session->ctx, arguments->operands[0], arguments->operands[1], cli_get(arguments, "tolerance")->real,
        cli_get(arguments, "relative")->real, on_difference, &view, &beyond);
    if (view.as_json) {
        cli_json_close(&view.json, ']');
        cli_json_boolean(&view.json, "equal", beyond == 0);
        cli_json_close(&view.json, '}');
        fclose(view.json.out);
    }
    if (status == LATENT_OK && view.as_json) {
        fputs(view.text, stdout);
    } else if (status == LATENT_OK) {
        if (!session->quiet) {
            cli_table_print(&view.table, stdout, "");
        }
        print_verdict(&view, beyond);
    }
    free(view.text);
    cli_table_free(&view.table);
    return status != LATENT_OK ? cli_status(session, status) : beyond > 0 ? CLI_DIFFERENT : CLI_OK;
}

const cli_command cli_command_compare = {
    .name = "compare",
    .summary = "compare the weights of two runs or model files",
    .operands = "A B",
    .operands_min = 2,
    .operands_max = 2,
    .about =
        "A and B are run folders or .safetensors files. Two values a and b lie beyond the tolerance when "
        "|a-b| > ABS + REL*max(|a|,|b|) or one of them is not a number. The exit code is 0 when none does "
        "and "
        "3 when one does. --quiet prints the verdict alone.",
    .examples =
        "latent compare runs/one runs/two\nlatent compare a.safetensors b.safetensors --tolerance 1e-6",
    .groups = {&group, &cli_quiet_group},
    .run = run_compare,
};
