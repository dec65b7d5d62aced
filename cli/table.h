/* table.h: aligned tables. Cells are printed into the table in reading order; the widths come at the end. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdio.h>

typedef struct cli_table {
    const char *columns; /* one letter a column: 'l' left, 'r' right */
    char **cells;        /* in reading order; NULL: a rule across the table */
    int count, capacity;
} cli_table;

cli_table cli_table_new(const char *columns);
void cli_table_cell(cli_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A rule; only between rows. It takes the place of a whole row. */
void cli_table_rule(cli_table *table);
void cli_table_free(cli_table *table);
/* Prints the table and frees it. */
void cli_table_print(cli_table *table, FILE *out, const char *indent);

#endif
