/* run.c: a run folder.
 *
 *     config.json              what the run was started with, for people and programs
 *     metrics.jsonl            a line per epoch
 *     checkpoint.safetensors   everything that continues the run, its own copy of the config included
 *     model.safetensors        the weights alone
 *
 * The checkpoint is the truth: a run is resumed from it alone, so a crash between two files cannot leave a
 * mix of two runs.
 */
#include "train/run.h"

#include "base/file.h"
#include "base/json.h"
#include "net/net.h"
#include "train/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { CONFIG_MAX = 16 << 20 };

latent_status lt_run_open(latent_context *ctx, const char *folder, lt_run *out) {
    latent_status status = LATENT_OK;
    memset(out, 0, sizeof *out);
    LT_TRY(lt_strdup(ctx, folder, &out->folder));
    LT_TRY(lt_path_join(ctx, folder, "config.json", &out->config));
    LT_TRY(lt_path_join(ctx, folder, "metrics.jsonl", &out->metrics));
    LT_TRY(lt_path_join(ctx, folder, "checkpoint.safetensors", &out->checkpoint));
    LT_TRY(lt_path_join(ctx, folder, "model.safetensors", &out->model));
done:
    if (status != LATENT_OK) {
        lt_run_close(out);
    }
    return status;
}

/* The lock is the system's own on the open folder: it needs no file and ends with the process, whatever ends
 * that. A file system without such locks goes without. */
latent_status lt_run_lock(latent_context *ctx, lt_run *run) {
    int folder = open(run->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        return LATENT_OK; /* whatever is wrong with it is told by what needs it first */
    }
    if (flock(folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(folder);
        return lt_fail(
            ctx, LATENT_ERROR_IO,
            "%s: another process is training in this folder; wait for it, or choose another folder "
            "with --run",
            run->folder);
    }
    run->lock = folder;
    return LATENT_OK;
}

void lt_run_close(lt_run *run) {
    if (run->lock > 0) {
        close(run->lock);
    }
    free(run->folder);
    free(run->config);
    free(run->metrics);
    free(run->checkpoint);
    free(run->model);
    memset(run, 0, sizeof *run);
}

void lt_run_sweep(const lt_run *run) {
    const char *const paths[] = {run->config, run->metrics, run->checkpoint, run->model};
    size_t folder = strlen(run->config) - strlen("config.json");
    DIR *entries = opendir(run->folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        for (int i = 0; i < 4; i++) {
            /* base/file.h writes NAME under NAME.tmp.PID until it is whole. */
            const char *name = paths[i] + folder;
            size_t length = strlen(name);
            if (strncmp(entry->d_name, name, length) == 0 &&
                strncmp(entry->d_name + length, ".tmp.", 5) == 0) {
                unlinkat(dirfd(entries), entry->d_name, 0);
            }
        }
    }
    if (entries) {
        closedir(entries);
    }
}

void lt_run_config_free(lt_run_config *config) {
    free(config->net_name);
    free(config->net_text);
    free(config->data);
    free(config->engine);
    memset(config, 0, sizeof *config);
}

static void put_string(lt_json_writer *w, const char *key, const char *value) {
    lt_json_key(w, key);
    lt_json_string(w, value);
}

static void put_integer(lt_json_writer *w, const char *key, int64_t value) {
    lt_json_key(w, key);
    lt_json_integer(w, value);
}

static void put_number(lt_json_writer *w, const char *key, double value) {
    lt_json_key(w, key);
    lt_json_number(w, value);
}

/* The keys are those of latent_recipe_set, which reads them back. */
static void put_recipe(lt_json_writer *w, const latent_recipe *recipe) {
    lt_json_begin_object(w);
    put_integer(w, "epochs", recipe->epochs);
    put_integer(w, "batch", recipe->batch);
    put_string(w, "optimizer", latent_optimizer_name(recipe->optimizer));
    put_string(w, "schedule", latent_schedule_name(recipe->schedule));
    put_number(w, "lr", recipe->lr);
    put_number(w, "momentum", recipe->momentum);
    put_number(w, "beta2", recipe->beta2);
    put_number(w, "epsilon", recipe->epsilon);
    put_number(w, "weight_decay", recipe->weight_decay);
    lt_json_end_object(w);
}

latent_status lt_run_config_write(latent_context *ctx, const lt_run_config *config, char **text) {
    lt_json_writer w;
    memset(&w, 0, sizeof w);
    lt_json_begin_object(&w);
    put_string(&w, "format", "latent-run 1");
    put_string(&w, "version", LATENT_VERSION);
    put_string(&w, "net", config->net_name);
    put_string(&w, "net_text", config->net_text);
    lt_json_key(&w, "recipe");
    put_recipe(&w, &config->recipe);
    lt_json_key(&w, "seed");
    lt_json_unsigned(&w, config->seed);
    put_integer(&w, "subset", config->subset);
    put_integer(&w, "images", config->images);
    if (config->data) {
        put_string(&w, "data", config->data);
    }
    if (config->digest[0]) {
        put_string(&w, "data_digest", config->digest);
    }
    put_string(&w, "engine", config->engine);
    lt_json_key(&w, "asked");
    lt_json_begin_object(&w);
    put_string(&w, "backend", config->asked.backend);
    put_string(&w, "precision", config->asked.precision);
    put_string(&w, "isa", config->asked.isa);
    put_string(&w, "kernels", config->asked.kernels);
    lt_json_end_object(&w);
    lt_json_end_object(&w);
    latent_status status = lt_json_finish(ctx, &w);
    if (status != LATENT_OK) {
        free(w.text);
        w.text = NULL;
    }
    *text = w.text;
    return status;
}

static latent_status get_string(latent_context *ctx, const lt_json_node *object, const char *key,
                                const char *origin, char **out) {
    const lt_json_node *node = lt_json_get(object, key);
    if (!node || node->kind != LT_JSON_STRING) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: no text under \"%s\"; it is not the record of a run",
                       origin, key);
    }
    return lt_strdup(ctx, node->string, out);
}

static latent_status get_count(latent_context *ctx, const lt_json_node *object, const char *key,
                               const char *origin, int *out) {
    uint64_t value = 0;
    if (!lt_json_u64(lt_json_get(object, key), &value) || value > INT_MAX) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: \"%s\" must be a whole number from 0 to %d", origin,
                       key, INT_MAX);
    }
    *out = (int)value;
    return LATENT_OK;
}

static void get_asked(const lt_json_node *object, latent_engine_record *out) {
    const struct {
        const char *key;
        char *to;
    } parts[] = {{"backend", out->backend},
                 {"precision", out->precision},
                 {"isa", out->isa},
                 {"kernels", out->kernels}};
    for (int i = 0; i < 4; i++) {
        const lt_json_node *node = lt_json_get(object, parts[i].key);
        if (node && node->kind == LT_JSON_STRING) { /* a name too long is none and is refused when used */
            snprintf(parts[i].to, sizeof out->backend, "%s", node->string);
        }
    }
}

static latent_status get_recipe(latent_context *ctx, const lt_json_node *object, const char *origin,
                                latent_recipe *out) {
    static const char *const keys[] = {"epochs",   "batch", "optimizer", "schedule",    "lr",
                                       "momentum", "beta2", "epsilon",   "weight_decay"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const lt_json_node *node = lt_json_get(object, keys[i]);
        const char *value = node && node->kind == LT_JSON_NUMBER   ? node->number_text
                            : node && node->kind == LT_JSON_STRING ? node->string
                                                                   : NULL;
        if (!value) {
            return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: the recipe does not say \"%s\"", origin, keys[i]);
        }
        if (latent_recipe_set(ctx, out, keys[i], value) != LATENT_OK) {
            return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: %s", origin, latent_context_message(ctx));
        }
    }
    return LATENT_OK;
}

latent_status lt_run_config_read(latent_context *ctx, const char *text, size_t length, const char *origin,
                                 lt_run_config *out) {
    latent_status status = LATENT_OK;
    lt_json *json = NULL;
    memset(out, 0, sizeof *out);
    LT_TRY(lt_json_parse(ctx, text, length, origin, &json));
    const lt_json_node *root = lt_json_root(json);
    const lt_json_node *format = lt_json_get(root, "format");
    if (!format || format->kind != LT_JSON_STRING || strcmp(format->string, "latent-run 1") != 0) {
        status = lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: \"format\" must be \"latent-run 1\"", origin);
        goto done;
    }
    LT_TRY(get_string(ctx, root, "net", origin, &out->net_name));
    LT_TRY(get_string(ctx, root, "net_text", origin, &out->net_text));
    LT_TRY(get_string(ctx, root, "engine", origin, &out->engine));
    LT_TRY(get_recipe(ctx, lt_json_get(root, "recipe"), origin, &out->recipe));
    LT_TRY(get_count(ctx, root, "subset", origin, &out->subset));
    LT_TRY(get_count(ctx, root, "images", origin, &out->images));
    if (!lt_json_u64(lt_json_get(root, "seed"), &out->seed)) {
        status = lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: \"seed\" must be a whole number below 2^64", origin);
        goto done;
    }
    get_asked(lt_json_get(root, "asked"), &out->asked);
    if (lt_json_get(root, "data")) {
        LT_TRY(get_string(ctx, root, "data", origin, &out->data));
    }
    const lt_json_node *digest = lt_json_get(root, "data_digest"); /* one that is none matches nothing */
    if (digest && digest->kind == LT_JSON_STRING) {
        snprintf(out->digest, sizeof out->digest, "%s", digest->string);
    }
done:
    lt_json_destroy(json);
    if (status != LATENT_OK) {
        lt_run_config_free(out);
    }
    return status;
}

/* From the checkpoint; from config.json when the run was stopped before its first one. */
static latent_status read_config(latent_context *ctx, const lt_run *run, lt_run_config *out) {
    if (lt_file_exists(run->checkpoint) || !lt_file_exists(run->config)) {
        lt_checkpoint *checkpoint = NULL;
        latent_status status = lt_checkpoint_read(ctx, run, &checkpoint);
        if (status == LATENT_OK) {
            *out = checkpoint->config;
            memset(&checkpoint->config, 0, sizeof checkpoint->config);
        }
        lt_checkpoint_destroy(checkpoint);
        return status;
    }
    char *text = NULL;
    size_t length = 0;
    latent_status status = LATENT_OK;
    LT_TRY(lt_file_read(ctx, run->config, CONFIG_MAX, &text, &length));
    LT_TRY(lt_run_config_read(ctx, text, length, run->config, out));
done:
    free(text);
    return status;
}

latent_status latent_run_read(latent_context *ctx, const char *run, latent_net **net,
                              latent_train_options *options, char **data_folder) {
    latent_status status = LATENT_OK;
    lt_run files;
    lt_run_config config;
    latent_net *made = NULL;
    memset(&config, 0, sizeof config);
    *net = NULL;
    *data_folder = NULL;
    memset(options, 0, sizeof *options);
    LT_TRY(lt_run_open(ctx, run, &files));
    LT_TRY(read_config(ctx, &files, &config));
    LT_TRY(latent_net_parse(ctx, config.net_text, strlen(config.net_text), config.net_name, &made));
    free(made->name); /* the parser takes what follows a dot for an ending; a name is kept whole */
    made->name = config.net_name;
    config.net_name = NULL;
    options->recipe = config.recipe;
    options->seed = config.seed;
    options->subset = config.subset;
    *data_folder = config.data;
    config.data = NULL;
    *net = made;
done:
    lt_run_config_free(&config);
    lt_run_close(&files);
    return status;
}

latent_status latent_run_read_digest(latent_context *ctx, const char *run, char out[33]) {
    latent_status status = LATENT_OK;
    lt_run files;
    lt_run_config config;
    memset(&config, 0, sizeof config);
    out[0] = 0;
    LT_TRY(lt_run_open(ctx, run, &files));
    LT_TRY(read_config(ctx, &files, &config));
    memcpy(out, config.digest, sizeof config.digest);
done:
    lt_run_config_free(&config);
    lt_run_close(&files);
    return status;
}

latent_status latent_run_read_engine(latent_context *ctx, const char *run, latent_engine_record *out) {
    latent_status status = LATENT_OK;
    lt_run files;
    lt_run_config config;
    memset(&config, 0, sizeof config);
    memset(out, 0, sizeof *out);
    LT_TRY(lt_run_open(ctx, run, &files));
    LT_TRY(read_config(ctx, &files, &config));
    *out = config.asked;
done:
    lt_run_config_free(&config);
    lt_run_close(&files);
    return status;
}
