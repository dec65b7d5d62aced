/* journal.c: run.json of a run folder: the stages of `latent run` that are complete.
 *
 * A stage is recorded with everything that decides its output, as text; it is up to date as long as that
 * text is the same. The file is written anew after each stage, so a run that is stopped anywhere finds what
 * it had finished.
 */
#include "base/file.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

enum { STAGES_MAX = 32, JOURNAL_MAX = 1 << 22 };

#define FORMAT_NAME "latent-journal 1"

struct latent_journal {
    char *path;
    char *command, *machine; /* or NULL */
    latent_stage stages[STAGES_MAX];
    int count;
};

static void stage_free(latent_stage *stage) {
    free((void *)(uintptr_t)stage->name);
    free((void *)(uintptr_t)stage->inputs);
    free((void *)(uintptr_t)stage->summary);
    memset(stage, 0, sizeof *stage);
}

void latent_journal_destroy(latent_journal *journal) {
    if (journal) {
        for (int i = 0; i < journal->count; i++) {
            stage_free(&journal->stages[i]);
        }
        free(journal->path);
        free(journal->command);
        free(journal->machine);
        free(journal);
    }
}

static latent_status copy(latent_context *ctx, const char *text, const char **out) {
    char *made = NULL;
    latent_status status = lt_strdup(ctx, text ? text : "", &made);
    *out = made;
    return status;
}

static latent_status stage_copy(latent_context *ctx, const latent_stage *from, latent_stage *to) {
    latent_status status = LATENT_OK;
    memset(to, 0, sizeof *to);
    to->seconds = from->seconds;
    LT_TRY(copy(ctx, from->name, &to->name));
    LT_TRY(copy(ctx, from->inputs, &to->inputs));
    LT_TRY(copy(ctx, from->summary, &to->summary));
done:
    if (status != LATENT_OK) {
        stage_free(to);
    }
    return status;
}

static const char *text_of(const lt_json_node *object, const char *key) {
    const lt_json_node *node = lt_json_get(object, key);
    return node && node->kind == LT_JSON_STRING ? node->string : NULL;
}

static latent_status take_stages(latent_context *ctx, latent_journal *journal, const lt_json_node *stages) {
    latent_status status = LATENT_OK;
    const lt_json_node *node = stages && stages->kind == LT_JSON_ARRAY ? stages->child : NULL;
    for (; node; node = node->next) {
        const lt_json_node *seconds = lt_json_get(node, "seconds");
        latent_stage stage = {.name = text_of(node, "name"),
                              .inputs = text_of(node, "inputs"),
                              .summary = text_of(node, "summary"),
                              .seconds = seconds && seconds->kind == LT_JSON_NUMBER ? seconds->number : 0};
        if (!stage.name || !stage.inputs || journal->count == STAGES_MAX) {
            status = lt_fail(ctx, LATENT_ERROR_FORMAT,
                             "%s: stage %d is not one that 'latent run' writes; remove the file to start "
                             "over",
                             journal->path, journal->count + 1);
            goto done;
        }
        LT_TRY(stage_copy(ctx, &stage, &journal->stages[journal->count]));
        journal->count++;
    }
done:
    return status;
}

static latent_status read_journal(latent_context *ctx, latent_journal *journal) {
    latent_status status = LATENT_OK;
    char *text = NULL;
    size_t bytes = 0;
    lt_json *json = NULL;
    LT_TRY(lt_file_read(ctx, journal->path, JOURNAL_MAX, &text, &bytes));
    LT_TRY(lt_json_parse(ctx, text, bytes, journal->path, &json));
    const lt_json_node *root = lt_json_root(json);
    const char *format = text_of(root, "format");
    if (!format || strcmp(format, FORMAT_NAME) != 0) {
        status =
            lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: \"format\" must be \"" FORMAT_NAME "\"", journal->path);
        goto done;
    }
    if (text_of(root, "command")) {
        LT_TRY(lt_strdup(ctx, text_of(root, "command"), &journal->command));
    }
    if (text_of(root, "machine")) {
        LT_TRY(lt_strdup(ctx, text_of(root, "machine"), &journal->machine));
    }
    LT_TRY(take_stages(ctx, journal, lt_json_get(root, "stages")));
done:
    lt_json_destroy(json);
    free(text);
    return status;
}

latent_status latent_journal_open(latent_context *ctx, const char *run, latent_journal **out) {
    latent_status status = LATENT_OK;
    latent_journal *journal = NULL;
    *out = NULL;
    LT_TRY(lt_calloc(ctx, 1, sizeof *journal, "a journal", (void **)&journal));
    LT_TRY(lt_path_join(ctx, run, "run.json", &journal->path));
    if (lt_file_exists(journal->path)) {
        LT_TRY(read_journal(ctx, journal));
    }
    *out = journal;
    journal = NULL;
done:
    latent_journal_destroy(journal);
    return status;
}

const latent_stage *latent_journal_find(const latent_journal *journal, const char *name) {
    for (int i = 0; i < journal->count; i++) {
        if (strcmp(journal->stages[i].name, name) == 0) {
            return &journal->stages[i];
        }
    }
    return NULL;
}

static void put_string(lt_json_writer *w, const char *key, const char *value) {
    lt_json_key(w, key);
    lt_json_string(w, value);
}

static latent_status write_journal(latent_context *ctx, const latent_journal *journal) {
    latent_status status = LATENT_OK;
    lt_json_writer w;
    memset(&w, 0, sizeof w);
    lt_json_begin_object(&w);
    put_string(&w, "format", FORMAT_NAME);
    put_string(&w, "version", LATENT_VERSION);
    if (journal->command) {
        put_string(&w, "command", journal->command);
    }
    if (journal->machine) {
        put_string(&w, "machine", journal->machine);
    }
    lt_json_key(&w, "stages");
    lt_json_begin_array(&w);
    for (int i = 0; i < journal->count; i++) {
        lt_json_begin_object(&w);
        put_string(&w, "name", journal->stages[i].name);
        put_string(&w, "inputs", journal->stages[i].inputs);
        put_string(&w, "summary", journal->stages[i].summary);
        lt_json_key(&w, "seconds");
        lt_json_number(&w, journal->stages[i].seconds);
        lt_json_end_object(&w);
    }
    lt_json_end_array(&w);
    lt_json_end_object(&w);
    LT_TRY(lt_json_finish(ctx, &w));
    LT_TRY(lt_file_write(ctx, journal->path, w.text, w.length));
done:
    free(w.text);
    return status;
}

latent_status latent_journal_record(latent_context *ctx, latent_journal *journal, const latent_stage *stage) {
    latent_status status = LATENT_OK;
    latent_stage made = {0};
    int at = 0;
    while (at < journal->count && strcmp(journal->stages[at].name, stage->name) != 0) {
        at++;
    }
    if (stage->inputs) {
        if (at == STAGES_MAX) {
            return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "%s: a run has at most %d stages", journal->path,
                           STAGES_MAX);
        }
        LT_TRY(stage_copy(ctx, stage, &made));
        if (at < journal->count) {
            stage_free(&journal->stages[at]);
        } else {
            journal->count++;
        }
        journal->stages[at] = made;
    } else if (at < journal->count) {
        stage_free(&journal->stages[at]);
        journal->count--;
        memmove(&journal->stages[at], &journal->stages[at + 1],
                (size_t)(journal->count - at) * sizeof journal->stages[0]);
    } else {
        return LATENT_OK;
    }
    LT_TRY(write_journal(ctx, journal));
done:
    return status;
}

latent_status latent_journal_describe(latent_context *ctx, latent_journal *journal, const char *command,
                                      const char *machine) {
    latent_status status = LATENT_OK;
    char *new_command = NULL, *new_machine = NULL;
    LT_TRY(lt_strdup(ctx, command, &new_command));
    LT_TRY(lt_strdup(ctx, machine, &new_machine));
    free(journal->command);
    free(journal->machine);
    journal->command = new_command;
    journal->machine = new_machine;
    new_command = new_machine = NULL;
done:
    free(new_command);
    free(new_machine);
    return status;
}
