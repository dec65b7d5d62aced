/* options.h: one table of options per command parses, documents and defaults.
 *
 * An option is a row; rows come in groups, so that commands share them (the engine's, --quiet). The help
 * text, the checks, the default values and the words in error messages all come from the row.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdint.h>

typedef enum cli_type { CLI_FLAG, CLI_INT, CLI_REAL, CLI_CHOICE, CLI_STRING, CLI_SUBSET } cli_type;

#define CLI_WHOLE_MAX 9007199254740992.0 /* 2^53: doubles hold every whole number up to it */

enum { CLI_ABOVE_MIN = 1, CLI_BELOW_MAX = 2 }; /* the bound itself is not allowed */

typedef struct cli_option {
    const char *name;  /* "epochs": --epochs */
    char letter;       /* 'e': -e; 0: none */
    const char *value; /* "N": what help calls the value */
    cli_type type;
    const char *initial;   /* the default, parsed like a given value; NULL: none */
    const char *otherwise; /* without `initial`: what happens instead, for the help text */
    const char *choices;   /* CLI_CHOICE: "sgd|adam|adamw" */
    double min, max;       /* CLI_INT (up to CLI_WHOLE_MAX) and CLI_REAL */
    int open;              /* CLI_ABOVE_MIN, CLI_BELOW_MAX */
    const char *help;
} cli_option;

typedef struct cli_group {
    const char *title; /* "Engine" */
    const cli_option *options;
    int count;
} cli_group;

typedef struct cli_value {
    const cli_option *option;
    int given;        /* on the command line */
    const char *text; /* as written; NULL: neither given nor defaulted */
    int64_t integer;  /* CLI_INT, CLI_FLAG (0 or 1), CLI_SUBSET as a count */
    double real;      /* CLI_REAL, CLI_SUBSET as percent (0: it is a count) */
} cli_value;

enum { CLI_VALUES_MAX = 64, CLI_OPERANDS_MAX = 8 };

typedef struct cli_arguments {
    const struct cli_command *command;
    cli_value values[CLI_VALUES_MAX];
    int count;
    const char *operands[CLI_OPERANDS_MAX]; /* NULL past the last one */
    int operand_count;
} cli_arguments;

/* Fills `out` from the words after the command's name. Prints a sentence and returns 0 on a mistake. */
int cli_parse(const struct cli_command *command, int argc, char **argv, cli_arguments *out);

/* The value of an option of this command; asking for one that is not in its table is a bug. */
const cli_value *cli_get(const cli_arguments *arguments, const char *name);
const char *cli_string(const cli_arguments *arguments, const char *name); /* NULL: not given, no default */
int cli_flag(const cli_arguments *arguments, const char *name);

/* A finite number and nothing else, as CLI_REAL takes it; 0 when it is none. */
int cli_read_real(const char *text, double *out);

/* The help text of one command: what `latent help X` and `latent X --help` print. */
void cli_help(const struct cli_command *command);

#endif
