/* table.c: aligned tables. All cells are kept as text until the table is printed, because a column is as
 * wide as its widest cell. Widths count code points, so that a name outside ASCII does not bend a column.
 */
#include "table.h"

#include "cli.h"
#include "format.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

cli_table cli_table_new(const char *columns) {
    return (cli_table){.columns = columns};
}

static void append(cli_table *table, char *cell) {
    if (table->count == table->capacity) {
        table->capacity = table->capacity ? 2 * table->capacity : 64;
        table->cells = realloc(table->cells, (size_t)table->capacity * sizeof *table->cells);
        cli_need_memory(table->cells);
    }
    table->cells[table->count++] = cell;
}

void cli_table_cell(cli_table *table, const char *format, ...) {
    char *cell = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&cell, format, arguments);
    va_end(arguments);
    cli_need_memory(length < 0 ? NULL : cell);
    append(table, cell);
}

void cli_table_rule(cli_table *table) {
    for (size_t i = 0; i < strlen(table->columns); i++) {
        append(table, NULL);
    }
}

static void repeat(FILE *out, char c, int times) {
    for (int i = 0; i < times; i++) {
        fputc(c, out);
    }
}

static void print_row(const cli_table *table, char *const *row, const int *widths, int columns, FILE *out) {
    while (columns > 1 && row[columns - 1] && !*row[columns - 1]) {
        columns--; /* no blanks at the end of a line */
    }
    for (int c = 0; c < columns; c++) {
        int gap = widths[c] - (row[c] ? cli_width(row[c]) : 0);
        if (!row[c]) {
            /* The rule runs through the gap between columns as well. */
            repeat(out, '-', widths[c] + (c + 1 < columns ? 2 : 0));
            continue;
        }
        if (table->columns[c] == 'r') {
            repeat(out, ' ', gap);
        }
        fputs(row[c], out);
        if (c + 1 < columns) {
            repeat(out, ' ', 2 + (table->columns[c] == 'l' ? gap : 0));
        }
    }
    fputc('\n', out);
}

void cli_table_print(cli_table *table, FILE *out, const char *indent) {
    int columns = (int)strlen(table->columns);
    int *widths = calloc((size_t)columns, sizeof *widths);
    cli_need_memory(widths);
    for (int i = 0; i < table->count; i++) {
        int width = table->cells[i] ? cli_width(table->cells[i]) : 0;
        if (width > widths[i % columns]) {
            widths[i % columns] = width;
        }
    }
    for (int i = 0; i + columns <= table->count; i += columns) {
        fputs(indent, out);
        print_row(table, table->cells + i, widths, columns, out);
    }
    free(widths);
    cli_table_free(table);
}

void cli_table_free(cli_table *table) {
    for (int i = 0; i < table->count; i++) {
        free(table->cells[i]);
    }
    free(table->cells);
    *table = cli_table_new(table->columns);
}
