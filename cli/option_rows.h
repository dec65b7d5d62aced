/* option_rows.h: the options that mean the same in every command that has them.
 *
 * Each is written here once, with its letter, range, default and words, and a command's table names it among
 * its own rows. What a command says for itself goes into the parentheses:
 * CLI_ROW_DATA(.otherwise = "images of noise"). An option that shares a name only has its row at its command.
 */
#ifndef CLI_OPTION_ROWS_H
#define CLI_OPTION_ROWS_H

#include "options.h"

/* ---- data sets and models ---- */

/* Where cli_open_data looks without --data. */
#define CLI_DATA_OTHERWISE "the run's, $LATENT_DATA, ./data, $XDG_CACHE_HOME/latent"

/* Takes `otherwise`. */
#define CLI_ROW_DATA(...)                                                                                    \
    { .name = "data", .letter = 'd', .value = "DIR", .type = CLI_STRING, .help = "data set", __VA_ARGS__ }

#define CLI_ROW_SPLIT                                                                                        \
    {                                                                                                        \
        .name = "split", .value = "NAME", .type = CLI_CHOICE, .choices = "train|test", .initial = "test",    \
        .help = "which images"                                                                               \
    }

/* Takes `help`. */
#define CLI_ROW_SUBSET(...)                                                                                  \
    { .name = "subset", .value = "N|P%", .type = CLI_SUBSET, .otherwise = "all", __VA_ARGS__ }

#define CLI_ROW_NET                                                                                          \
    {                                                                                                        \
        .name = "net", .value = "NET", .type = CLI_STRING, .otherwise = "what the file says",                \
        .help = "preset or net file of a weight file that does not name its own"                             \
    }

/* Takes `help`. */
#define CLI_ROW_LADDER(...)                                                                                  \
    {                                                                                                        \
        .name = "ladder", .value = "FILE.json", .type = CLI_STRING,                                          \
        .otherwise = "ladder.json in the run folder, if there", __VA_ARGS__                                  \
    }

/* ---- training and its measurement ---- */

#define CLI_ROW_BATCH                                                                                        \
    {                                                                                                        \
        .name = "batch", .letter = 'b', .value = "N", .type = CLI_INT, .min = 1, .max = 65536,               \
        .otherwise = "the net's", .help = "images per step"                                                  \
    }

/* Takes `help`, maybe `letter`. */
#define CLI_ROW_SEED(...)                                                                                    \
    {                                                                                                        \
        .name = "seed", .value = "N", .type = CLI_INT, .min = 0, .max = CLI_WHOLE_MAX, .initial = "1",       \
        __VA_ARGS__                                                                                          \
    }

/* Takes `help`. */
#define CLI_ROW_SECONDS(...)                                                                                 \
    {                                                                                                        \
        .name = "seconds", .value = "S", .type = CLI_REAL, .min = 0, .max = 3600, .open = CLI_ABOVE_MIN,     \
        .initial = "5", __VA_ARGS__                                                                          \
    }

/* ---- the engine ---- */

#define CLI_ROW_THREADS                                                                                      \
    {                                                                                                        \
        .name = "threads", .value = "N", .type = CLI_INT, .min = 0, .max = 4096, .initial = "0",             \
        .help = "cpu: threads; 0 takes the cores this process may use"                                       \
    }

#define CLI_ROW_DEVICE                                                                                       \
    {                                                                                                        \
        .name = "device", .value = "N", .type = CLI_INT, .min = 0, .max = 1023, .initial = "0",              \
        .help = "cuda: device number"                                                                        \
    }

/* ---- support vector machines ---- */

#define CLI_ROW_C                                                                                            \
    {                                                                                                        \
        .name = "c", .letter = 'C', .value = "X", .type = CLI_REAL, .min = 0, .max = 1e9,                    \
        .open = CLI_ABOVE_MIN, .initial = "10", .help = "price of an error"                                  \
    }

#define CLI_ROW_GAMMA                                                                                        \
    {                                                                                                        \
        .name = "gamma", .value = "G", .type = CLI_STRING, .initial = "scale",                               \
        .help = "width of the RBF kernel: scale, auto or a number above 0"                                   \
    }

#define CLI_ROW_KERNEL                                                                                       \
    {                                                                                                        \
        .name = "kernel", .value = "NAME", .type = CLI_CHOICE, .choices = "rbf|linear", .initial = "rbf",    \
        .help = "kernel"                                                                                     \
    }

#define CLI_ROW_TOLERANCE                                                                                    \
    {                                                                                                        \
        .name = "tolerance", .value = "X", .type = CLI_REAL, .min = 0, .max = 1, .open = CLI_ABOVE_MIN,      \
        .initial = "1e-3", .help = "optimality gap at which a pair is solved"                                \
    }

#endif
