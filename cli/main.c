/* main.c: `latent`: finds the command, parses its options, runs it. Results go to stdout, progress and
 * messages to stderr; the exit code is 0 fine, 1 failed, 2 wrong usage, 3 compare beyond the tolerance,
 * 130 interrupted.
 */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const cli_command *const commands[] = {
    &cli_command_run,     &cli_command_train,  &cli_command_features,    &cli_command_svm,
    &cli_command_eval,    &cli_command_report, &cli_command_reconstruct, &cli_command_compare,
    &cli_command_export,  &cli_command_import, &cli_command_bench,       &cli_command_selftest,
    &cli_command_profile, &cli_command_data,   &cli_command_info,        NULL,
};

/* The last word of a command's name: what is typed after the words before it. */
static const char *word_of(const cli_command *command) {
    const char *space = strrchr(command->name, ' ');
    return space ? space + 1 : command->name;
}

static void print_overview(FILE *out) {
    fprintf(out,
            "latent %s: learn from small images, on a CPU or a GPU\n\nUsage: latent COMMAND [options]\n\n"
            "Commands:\n",
            latent_version());
    for (int i = 0; commands[i]; i++) {
        fprintf(out, "  %-14s%s\n", commands[i]->name, commands[i]->summary);
    }
    fprintf(out, "  %-14s%s\n", "help", "explain a command: latent help train");
    fputs("\n  -h, --help    print this text, or that of a command\n"
          "  -V, --version print the version\n"
          "\nExamples:\n"
          "  latent data synth ./data\n"
          "  latent train --subset 2% --epochs 2 --run runs/first\n"
          "  latent eval runs/first\n"
          "  latent reconstruct runs/first\n"
          "\nExit codes: 0 fine, 1 failed, 2 wrong usage, 3 compare found a difference, 130 interrupted\n",
          out);
}

/* The command of that name in a list that ends with NULL; says so, with the nearest, when there is none. */
static const cli_command *find_command(const cli_command *const *list, const cli_command *parent,
                                       const char *word) {
    const char *names[32] = {"help", "--help", "--version"};
    size_t count = parent ? 0 : 3;
    for (int i = 0; list[i]; i++) {
        if (strcmp(word_of(list[i]), word) == 0) {
            return list[i];
        }
        names[count++] = word_of(list[i]);
    }
    const char *kind = word[0] == '-' ? "option" : "command";
    const char *near = latent_suggest(word, names, count);
    if (near) {
        cli_usage(parent, "unknown %s '%s'; did you mean '%s'?", kind, word, near);
    } else {
        cli_usage(parent, "unknown %s '%s'", kind, word);
    }
    return NULL;
}

static int wants_help(const char *word) {
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* `latent help [COMMAND [SUBCOMMAND]]` */
static int run_help(int argc, char **argv) {
    const cli_command *command = NULL;
    const cli_command *const *list = commands;
    for (int i = 0; i < argc; i++) {
        if (!list) {
            return cli_usage(command, "'%s' is one word too many", argv[i]);
        }
        command = find_command(list, command, argv[i]);
        if (!command) {
            return CLI_USAGE;
        }
        list = command->subcommands;
    }
    if (command) {
        cli_help(command);
    } else {
        print_overview(stdout);
    }
    return CLI_OK;
}

static int run_command(const cli_command *command, int argc, char **argv) {
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (wants_help(argv[i])) {
            cli_help(command);
            return CLI_OK;
        }
    }
    cli_arguments arguments;
    cli_session session;
    if (!cli_parse(command, argc, argv, &arguments)) {
        return CLI_USAGE;
    }
    int code = cli_session_begin(&session);
    if (code == CLI_OK) {
        for (int i = 0; i < arguments.count; i++) {
            if (strcmp(arguments.values[i].option->name, "quiet") == 0) {
                session.quiet = arguments.values[i].given;
            }
        }
        session.progress.quiet = session.quiet;
        code = command->run(&session, &arguments);
        cli_session_end(&session);
    }
    return code;
}

static int dispatch(int argc, char **argv) {
    if (argc < 2) {
        print_overview(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("latent %s\n", latent_version());
        return CLI_OK;
    }
    if (wants_help(argv[1])) {
        print_overview(stdout);
        return CLI_OK;
    }
    if (strcmp(argv[1], "help") == 0) {
        return run_help(argc - 2, argv + 2);
    }
    const cli_command *command = find_command(commands, NULL, argv[1]);
    int used = 2;
    while (command && command->subcommands) {
        if (used == argc) {
            return cli_usage(command, "it needs one of its commands, such as 'latent %s'",
                             command->subcommands[0]->name);
        }
        if (wants_help(argv[used])) {
            cli_help(command);
            return CLI_OK;
        }
        command = find_command(command->subcommands, command, argv[used++]);
    }
    return command ? run_command(command, argc - used, argv + used) : CLI_USAGE;
}

int main(int argc, char **argv) {
    int code = dispatch(argc, argv);
    /* A result that did not reach its file is a failure. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "latent: standard output: %s\n", strerror(errno));
        return code == CLI_OK ? CLI_FAILED : code;
    }
    return code;
}
