/* cli.h: what the commands of the program share. The program uses latent.h and nothing else of the
 * library. Names across its files begin with cli_, apart from the library's lt_.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "latent.h"
#include "options.h"
#include "progress.h"

enum {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,     /* the command line is wrong */
    CLI_DIFFERENT = 3, /* compare: beyond the tolerance */
    CLI_INTERRUPTED = 130
};

typedef struct cli_session {
    latent_context *ctx;
    cli_progress progress;
    int quiet;
} cli_session;

enum { CLI_GROUPS_MAX = 8 };

typedef struct cli_command {
    const char *name;     /* "train", "data synth" */
    const char *summary;  /* one line */
    const char *operands; /* "[NET]", for the usage line */
    int operands_min, operands_max;
    const char *about;    /* paragraphs for the help text, separated by new lines; wrapped when printed */
    const char *examples; /* one a line */
    const cli_group *groups[CLI_GROUPS_MAX];      /* ends with NULL when there are fewer */
    const struct cli_command *const *subcommands; /* ends with NULL; such a command only dispatches */
    int (*run)(cli_session *session, const cli_arguments *arguments);
} cli_command;

extern const cli_command cli_command_train, cli_command_eval, cli_command_reconstruct, cli_command_compare,
    cli_command_export, cli_command_import, cli_command_info, cli_command_data, cli_command_bench,
    cli_command_selftest, cli_command_bench_ladder, cli_command_profile, cli_command_features,
    cli_command_report, cli_command_run, cli_command_svm;

/* ---- session.c: messages, signals, the end of the program ---- */

/* Makes the context, takes over the signals. Returns an exit code. */
int cli_session_begin(cli_session *session);
void cli_session_end(cli_session *session);
/* Prints the library's sentence when `status` is a failure; returns the exit code. */
int cli_status(cli_session *session, latent_status status);
/* "latent: sentence" on stderr. Returns CLI_FAILED. */
int cli_fail(cli_session *session, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "latent train: sentence" and where to read more. Returns CLI_USAGE. `command` may be NULL. */
int cli_usage(const cli_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* 1 when a signal asked the program to stop: for work between two calls of the library. */
int cli_interrupted(void);
/* A line for a person on stderr, unless --quiet. */
void cli_note(cli_session *session, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Ends the program with a sentence when an allocation of a few bytes failed. */
void cli_need_memory(const void *memory);

/* ---- engine.c: the options that several commands share ---- */

extern const cli_group cli_engine_group; /* where and how to compute */
extern const cli_group cli_quiet_group;  /* --quiet */
latent_engine_options cli_engine(const cli_arguments *arguments);
/* The engine of commands that only move weights: no GPU is started for them. */
latent_engine_options cli_host_engine(void);

/* ---- locate.c: data sets, runs and models by the names that people give them ---- */

/* Opens the data set: `given` (--data) if not NULL, else `recorded` (a run's own) if it is still there, else
 * the first of $LATENT_DATA, ./data and the cache folder that holds one. Returns an exit code. */
int cli_open_data(cli_session *session, const char *given, const char *recorded, latent_dataset **out);
/* The folder that cli_open_data would open, to be freed; NULL when there is none. */
char *cli_find_data(const char *given, const char *recorded);
/* 1 when the folder, or cifar-10-batches-bin in it, holds batch files. */
int cli_folder_has_data(const char *folder);
/* 1 when the folder holds files of a run. */
int cli_folder_has_run(const char *folder);
int cli_is_folder(const char *path);
/* "folder/name"; free it. */
char *cli_join(const char *folder, const char *name);
/* Loads the model at `path`; `net_name` may be NULL when the file names its net. For a run folder
 * *data_folder gets the data it was trained on (latent_free), else NULL; it may be NULL. */
int cli_load_model(cli_session *session, const char *path, const char *net_name,
                   const latent_engine_options *engine, latent_model **out, char **data_folder);
/* The model at `path`, by --net where that is needed, and the data set that goes with it: --data, the one
 * that the run was trained on, or one that is at hand. Returns an exit code. */
int cli_load_pair(cli_session *session, const cli_arguments *arguments, const char *path,
                  const latent_engine_options *engine, latent_model **model, latent_dataset **data);

#endif
