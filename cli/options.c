/* options.c: reads a command line by a command's tables.
 *
 * Every mistake is one sentence that names the flag and says what would be right. `--name value`,
 * `--name=value`, `-x value` and `-xvalue` are the same; `--` ends the options. Defaults go through the same
 * reader as given values, so a default that its own row would refuse cannot exist (it is an assert).
 */
#include "options.h"

#include "cli.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = CLI_VALUES_MAX + 1, WHY_MAX = 512 };

/* "sgd, adam or adamw" from "sgd|adam|adamw". */
static void list_choices(const char *choices, char *out, size_t size) {
    size_t at = 0;
    for (const char *word = choices; *word && at < size;) {
        size_t length = strcspn(word, "|");
        const char *glue = word == choices ? "" : word[length] ? ", " : " or ";
        at += (size_t)snprintf(out + at, size - at, "%s%.*s", glue, (int)length, word);
        word += length + (word[length] == '|');
    }
}

static int read_choice(const cli_option *option, const char *text, char *why) {
    char copy[256], list[256];
    const char *words[32];
    size_t count = 0;
    snprintf(copy, sizeof copy, "%s", option->choices);
    char *rest = copy;
    for (char *word; count < 32 && (word = strsep(&rest, "|"));) {
        if (strcmp(word, text) == 0) {
            return 1;
        }
        words[count++] = word;
    }
    list_choices(option->choices, list, sizeof list);
    const char *near = latent_suggest(text, words, count);
    if (near) {
        snprintf(why, WHY_MAX, "did you mean %s? It takes %s", near, list);
    } else {
        snprintf(why, WHY_MAX, "it takes %s", list);
    }
    return 0;
}

/* "a whole number from 1 to 1000", "a number above 0 and below 1". */
static void say_range(const cli_option *option, char *why) {
    if (option->type == CLI_INT) {
        snprintf(why, WHY_MAX, "it takes a whole number from %.0f to %.0f", option->min, option->max);
    } else if (option->open) {
        snprintf(why, WHY_MAX, "it takes a number %s %.15g and %s %.15g",
                 option->open & CLI_ABOVE_MIN ? "above" : "of at least", option->min,
                 option->open & CLI_BELOW_MAX ? "below" : "at most", option->max);
    } else {
        snprintf(why, WHY_MAX, "it takes a number from %.15g to %.15g", option->min, option->max);
    }
}

static int in_range(const cli_option *option, double value) {
    return (option->open & CLI_ABOVE_MIN ? value > option->min : value >= option->min) &&
           (option->open & CLI_BELOW_MAX ? value < option->max : value <= option->max);
}

/* Decimal digits with an optional sign, nothing else: strtoll alone would also take " 0x1f". */
static int read_integer(const char *text, int64_t *out) {
    const char *digits = text + (*text == '-' || *text == '+');
    if (!*digits || digits[strspn(digits, "0123456789")]) {
        return 0;
    }
    errno = 0;
    *out = strtoll(text, NULL, 10);
    return errno == 0;
}

int cli_read_real(const char *text, double *out) {
    char *end = NULL;
    if (!*text || text[strspn(text, "+-.0123456789eE")]) {
        return 0;
    }
    *out = strtod(text, &end);
    return *end == 0 && isfinite(*out);
}

static int read_subset(const char *text, cli_value *value, char *why) {
    size_t length = strlen(text);
    int64_t count = 0;
    double percent = 0;
    if (length > 1 && length < 32 && text[length - 1] == '%') {
        char number[32];
        memcpy(number, text, length - 1);
        number[length - 1] = 0;
        if (cli_read_real(number, &percent) && percent > 0 && percent <= 100) {
            value->real = percent;
            value->integer = 0;
            return 1;
        }
    } else if (read_integer(text, &count) && count >= 1 && count <= INT32_MAX) {
        value->real = 0;
        value->integer = count;
        return 1;
    }
    snprintf(why, WHY_MAX,
             "it takes a count of at least 1, such as 1000, or a share up to 100%%, such as 2%%");
    return 0;
}

/* Reads `text` into the value; on a mistake says in `why` what would be right. */
static int read_value(cli_value *value, const char *text, char *why) {
    const cli_option *option = value->option;
    value->text = text;
    switch (option->type) {
    case CLI_FLAG:
        value->integer = 1;
        return 1;
    case CLI_STRING:
        snprintf(why, WHY_MAX, "it takes %s, which must not be empty", option->value);
        return *text != 0;
    case CLI_CHOICE:
        return read_choice(option, text, why);
    case CLI_SUBSET:
        return read_subset(text, value, why);
    case CLI_INT:
        say_range(option, why);
        return read_integer(text, &value->integer) && value->integer >= (int64_t)option->min &&
               value->integer <= (int64_t)option->max;
    case CLI_REAL:
        say_range(option, why);
        return cli_read_real(text, &value->real) && in_range(option, value->real);
    }
    return 0;
}

static void fill_defaults(const cli_command *command, cli_arguments *out) {
    memset(out, 0, sizeof *out);
    out->command = command;
    for (int g = 0; g < CLI_GROUPS_MAX && command->groups[g]; g++) {
        for (int i = 0; i < command->groups[g]->count; i++) {
            const cli_option *option = &command->groups[g]->options[i];
            assert(out->count < CLI_VALUES_MAX);
            cli_value *value = &out->values[out->count++];
            value->option = option;
            if (option->initial) {
                char why[WHY_MAX];
                int fine = read_value(value, option->initial, why);
                assert(fine);
                (void)fine;
            }
        }
    }
}

static cli_value *find(cli_arguments *arguments, const char *name, size_t length) {
    for (int i = 0; i < arguments->count; i++) {
        const char *candidate = arguments->values[i].option->name;
        if (strlen(candidate) == length && memcmp(candidate, name, length) == 0) {
            return &arguments->values[i];
        }
    }
    return NULL;
}

static int unknown_option(const cli_arguments *arguments, const char *word) {
    const char *names[NAMES_MAX] = {"help"};
    size_t count = 1;
    for (int i = 0; i < arguments->count; i++) {
        names[count++] = arguments->values[i].option->name;
    }
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word[1] == '-' ? word + 2 : "");
    const char *near = *name ? latent_suggest(name, names, count) : NULL;
    if (near) {
        cli_usage(arguments->command, "unknown option --%s; did you mean --%s?", name, near);
    } else {
        cli_usage(arguments->command, "unknown option %s", word);
    }
    return 0;
}

/* Which option is `word`, and is its value part of the word? NULL: unknown. */
static cli_value *match(cli_arguments *arguments, const char *word, const char **value) {
    *value = NULL;
    if (word[1] == '-') {
        size_t length = strcspn(word + 2, "=");
        if (word[2 + length] == '=') {
            *value = word + 2 + length + 1;
        }
        return find(arguments, word + 2, length);
    }
    for (int i = 0; i < arguments->count; i++) {
        const cli_option *option = arguments->values[i].option;
        if (option->letter == word[1] && (word[2] == 0 || option->type != CLI_FLAG)) {
            *value = word[2] ? word + 2 : NULL;
            return &arguments->values[i];
        }
    }
    return NULL;
}

/* Takes the option at argv[*at] and its value; moves *at past what it used up. */
static int take_option(cli_arguments *out, int argc, char **argv, int *at) {
    const cli_command *command = out->command;
    const char *word = argv[*at], *text = NULL;
    cli_value *value = match(out, word, &text);
    if (!value) {
        return unknown_option(out, word);
    }
    const cli_option *option = value->option;
    if (option->type == CLI_FLAG && text) {
        cli_usage(command, "--%s takes no value; leave out %s", option->name, text - 1);
        return 0;
    }
    if (option->type != CLI_FLAG && !text) {
        if (*at + 1 >= argc) {
            cli_usage(command, "--%s needs a value: --%s %s", option->name, option->name, option->value);
            return 0;
        }
        text = argv[++*at];
        if (strncmp(text, "--", 2) == 0) {
            cli_usage(command, "--%s needs a value before %s: --%s %s", option->name, text, option->name,
                      option->value);
            return 0;
        }
    }
    char why[WHY_MAX] = "";
    value->given = 1;
    if (!read_value(value, text ? text : "", why)) {
        cli_usage(command, "--%s %s: %s", option->name, *text ? text : "''", why);
        return 0;
    }
    return 1;
}

int cli_parse(const cli_command *command, int argc, char **argv, cli_arguments *out) {
    fill_defaults(command, out);
    int options = 1;
    for (int at = 0; at < argc; at++) {
        const char *word = argv[at];
        if (options && strcmp(word, "--") == 0) {
            options = 0;
        } else if (options && word[0] == '-' && word[1]) {
            if (!take_option(out, argc, argv, &at)) {
                return 0;
            }
        } else if (out->operand_count == command->operands_max) {
            if (command->operands_max > 1) {
                cli_usage(command, "'%s' is one word too many; it takes at most %d: %s", word,
                          command->operands_max, command->operands);
            } else {
                cli_usage(command, "'%s' is one word too many; it takes %s", word,
                          command->operands_max == 0 ? "options only" : command->operands);
            }
            return 0;
        } else if (!*word) {
            cli_usage(command, "an empty word where %s should be", command->operands);
            return 0;
        } else {
            out->operands[out->operand_count++] = word;
        }
    }
    if (out->operand_count < command->operands_min) {
        cli_usage(command, "it takes %s; %s", command->operands,
                  out->operand_count ? "one of them is missing" : "nothing was given");
        return 0;
    }
    return 1;
}

const cli_value *cli_get(const cli_arguments *arguments, const char *name) {
    for (int i = 0; i < arguments->count; i++) {
        if (strcmp(arguments->values[i].option->name, name) == 0) {
            return &arguments->values[i];
        }
    }
    assert(!"an option that is not in the command's table");
    abort();
}

const char *cli_string(const cli_arguments *arguments, const char *name) {
    return cli_get(arguments, name)->text;
}

int cli_flag(const cli_arguments *arguments, const char *name) {
    return cli_get(arguments, name)->integer != 0;
}
