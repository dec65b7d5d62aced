/* help.c: the help text of a command, made from the same tables that parse its command line. */
#include "cli.h"
#include "format.h"

#include <stdio.h>
#include <string.h>

enum { HELP_WIDTH = 96, HELP_INDENT = 28 };

/* Prints words up to a new line, wrapped at HELP_WIDTH; `at` is the column where the text begins, `indent`
 * that of further lines. Returns where it stopped. */
static const char *wrap(const char *text, int at, int indent) {
    int begin = 1;
    while (*text && *text != '\n') {
        int length = (int)strcspn(text, " \n");
        if (!begin && at + 1 + length > HELP_WIDTH) {
            printf("\n%*s", indent, "");
            at = indent;
        } else if (!begin) {
            putchar(' ');
            at++;
        }
        printf("%.*s", length, text);
        at += length;
        begin = 0;
        text += length;
        text += strspn(text, " ");
    }
    putchar('\n');
    return *text ? text + 1 : text;
}

/* The help of a row: its sentence, its choices, its default. */
static void describe(const cli_option *option, char *out, size_t size) {
    size_t at = (size_t)snprintf(out, size, "%s", option->help);
    if (option->choices) {
        at += (size_t)snprintf(out + at, size - at, ": ");
        for (const char *c = option->choices; *c && at + 3 < size; c++) {
            at += (size_t)snprintf(out + at, size - at, *c == '|' ? ", " : "%c", *c);
        }
    }
    const char *fallback = option->initial ? option->initial : option->otherwise;
    if (fallback && at < size) {
        snprintf(out + at, size - at, " (default: %s)", fallback);
    }
}

static void print_option(const cli_option *option) {
    char left[64] = "", text[640];
    int length = option->letter ? snprintf(left, sizeof left, "  -%c, ", option->letter)
                                : snprintf(left, sizeof left, "      ");
    length += snprintf(left + length, sizeof left - (size_t)length, "--%s%s%s", option->name,
                       option->value ? " " : "", option->value ? option->value : "");
    describe(option, text, sizeof text);
    if (length > HELP_INDENT - 2) {
        printf("%s\n%*s", left, HELP_INDENT, "");
    } else {
        printf("%-*s", HELP_INDENT, left);
    }
    wrap(text, HELP_INDENT, HELP_INDENT);
}

static void print_lines(const char *title, const char *lines) {
    printf("\n%s:\n", title);
    while (*lines) {
        int length = (int)strcspn(lines, "\n");
        printf("  %.*s\n", length, lines);
        lines += length + (lines[length] == '\n');
    }
}

void cli_help(const cli_command *command) {
    static const cli_option help = {.name = "help", .letter = 'h', .help = "print this text"};
    printf("latent %s: %s\n\nUsage: latent %s %s%s\n", command->name, command->summary, command->name,
           command->operands, command->subcommands ? "" : " [options]");
    if (command->about) {
        putchar('\n');
        for (const char *text = command->about; *text;) {
            text = wrap(text, 0, 0);
        }
    }
    if (command->subcommands) {
        printf("\nCommands:\n");
        for (int i = 0; command->subcommands[i]; i++) {
            printf("  %-*s%s\n", 16, command->subcommands[i]->name, command->subcommands[i]->summary);
        }
    }
    for (int g = 0; g < CLI_GROUPS_MAX && command->groups[g]; g++) {
        printf("\n%s:\n", command->groups[g]->title);
        for (int i = 0; i < command->groups[g]->count; i++) {
            print_option(&command->groups[g]->options[i]);
        }
    }
    printf("%s", command->groups[0] ? "" : "\nOptions:\n");
    print_option(&help);
    if (command->examples) {
        print_lines("Examples", command->examples);
    }
}
