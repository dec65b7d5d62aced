/* locate.c: data sets, runs and models by the names that people give them. The program reads the environment
 * here; the library never does.
 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *cli_join(const char *folder, const char *name) {
    char *path = NULL;
    size_t length = strlen(folder);
    int written = asprintf(&path, "%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/", name);
    cli_need_memory(written < 0 ? NULL : path);
    return path;
}

int cli_is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static int has_any(const char *folder, const char *const *names) {
    int found = 0;
    for (int i = 0; names[i] && !found; i++) {
        char *path = cli_join(folder, names[i]);
        found = access(path, F_OK) == 0;
        free(path);
    }
    return found;
}

int cli_folder_has_data(const char *folder) {
    static const char *const names[] = {"data_batch_1.bin", "test_batch.bin",
                                        "cifar-10-batches-bin/data_batch_1.bin",
                                        "cifar-10-batches-bin/test_batch.bin", NULL};
    return has_any(folder, names);
}

int cli_folder_has_run(const char *folder) {
    static const char *const names[] = {"config.json", "metrics.jsonl", "checkpoint.safetensors",
                                        "model.safetensors", NULL};
    return has_any(folder, names);
}

/* The user's cache folder for this program, or NULL. */
static char *cache_folder(void) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && *cache) {
        return cli_join(cache, "latent");
    }
    return home && *home ? cli_join(home, ".cache/latent") : NULL;
}

static int none_found(cli_session *session, const char *recorded, const char *cache) {
    return cli_fail(session,
                    "no data set found. Looked at %s%s$LATENT_DATA (not set), ./data%s%s.\n"
                    "  latent data synth ./data     makes a synthetic set\n"
                    "  latent data download ./data  fetches CIFAR-10\n"
                    "or name a folder that has one with --data DIR.",
                    recorded ? recorded : "", recorded ? " (the run's), " : "", cache ? " and " : "",
                    cache ? cache : "");
}

char *cli_find_data(const char *given, const char *recorded) {
    const char *named = getenv("LATENT_DATA");
    char *cache = cache_folder(), *found = NULL;
    const char *folder = NULL;
    if (given) {
        folder = given;
    } else if (recorded && cli_folder_has_data(recorded)) {
        folder = recorded;
    } else if (named && *named) {
        folder = named; /* a name that someone set is taken at its word */
    } else if (cli_folder_has_data("./data")) {
        folder = "./data";
    } else if (cache && cli_folder_has_data(cache)) {
        folder = cache;
    }
    if (folder) {
        found = strdup(folder);
        cli_need_memory(found);
    }
    free(cache);
    return found;
}

int cli_open_data(cli_session *session, const char *given, const char *recorded, latent_dataset **out) {
    const char *named = getenv("LATENT_DATA");
    char *folder = cli_find_data(given, recorded), *cache = cache_folder();
    int code = folder ? cli_status(session, latent_dataset_open(session->ctx, folder, out))
                      : none_found(session, recorded, cache);
    if (code != CLI_OK && folder && !given && named && strcmp(folder, named) == 0) {
        cli_note(session, "(that folder comes from $LATENT_DATA)");
    }
    free(folder);
    free(cache);
    return code;
}

int cli_load_model(cli_session *session, const char *path, const char *net_name,
                   const latent_engine_options *engine, latent_model **out, char **data_folder) {
    latent_net *net = NULL, *run_net = NULL;
    latent_status status = LATENT_OK;
    if (data_folder) {
        *data_folder = NULL;
        if (cli_is_folder(path)) {
            /* A folder with a model and no checkpoint is enough here; then nothing names the data. */
            latent_train_options options;
            (void)latent_run_read(session->ctx, path, &run_net, &options, data_folder);
        }
    }
    if (status == LATENT_OK && net_name) {
        status = latent_net_load(session->ctx, net_name, &net);
    }
    if (status == LATENT_OK) {
        status = latent_model_load(session->ctx, path, net, engine, out);
    }
    latent_net_destroy(run_net);
    latent_net_destroy(net);
    return cli_status(session, status);
}

int cli_load_pair(cli_session *session, const cli_arguments *arguments, const char *path,
                  const latent_engine_options *engine, latent_model **model, latent_dataset **data) {
    char *recorded = NULL;
    int code = cli_load_model(session, path, cli_string(arguments, "net"), engine, model, &recorded);
    if (code == CLI_OK) {
        code = cli_open_data(session, cli_string(arguments, "data"), recorded, data);
    }
    latent_free(recorded);
    return code;
}
