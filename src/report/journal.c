/* journal.c: run.json of a run folder: the stages of `latent run`.
 *
 * A stage is recorded with everything that decides its output, as text, and with the fingerprints of the
 * files that it wrote; it is up to date as long as both are the same. The file is written anew before and
 * after each stage, so a run that is stopped anywhere finds what it had finished, and how long the unfinished
 * stage has taken already.
 */
#include "base/file.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

enum { STAGES_MAX = 32, FILES_MAX = 16, JOURNAL_MAX = 1 << 22 };

#define FORMAT_NAME "latent-journal 1"

typedef struct entry {
    latent_stage stage; /* its texts are the entry's; `files` is not used */
    char *files[FILES_MAX];
    char fingerprints[FILES_MAX][33];
    int file_count;
} entry;

struct latent_journal {
    char *run, *path;
    char *command, *machine; /* or NULL */
    entry entries[STAGES_MAX];
    int count;
};

static void entry_free(entry *e) {
    free((void *)(uintptr_t)e->stage.name);
    free((void *)(uintptr_t)e->stage.inputs);
    free((void *)(uintptr_t)e->stage.summary);
    for (int i = 0; i < e->file_count; i++) {
        free(e->files[i]);
    }
    memset(e, 0, sizeof *e);
}

void latent_journal_destroy(latent_journal *journal) {
    if (journal) {
        for (int i = 0; i < journal->count; i++) {
            entry_free(&journal->entries[i]);
        }
        free(journal->run);
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

static latent_status entry_make(latent_context *ctx, const latent_stage *from, entry *to) {
    latent_status status = LATENT_OK;
    memset(to, 0, sizeof *to);
    to->stage.seconds = from->seconds;
    to->stage.unfinished = from->unfinished;
    LT_TRY(copy(ctx, from->name, &to->stage.name));
    LT_TRY(copy(ctx, from->inputs, &to->stage.inputs));
    LT_TRY(copy(ctx, from->summary, &to->stage.summary));
done:
    if (status != LATENT_OK) {
        entry_free(to);
    }
    return status;
}

static latent_status entry_add_file(latent_context *ctx, entry *e, const char *name,
                                    const char fingerprint[33]) {
    latent_status status = lt_strdup(ctx, name, &e->files[e->file_count]);
    if (status == LATENT_OK) {
        memcpy(e->fingerprints[e->file_count++], fingerprint, 33);
    }
    return status;
}

/* "" when there is none that can be read. Returns whether there is such a file. */
static int fingerprint(const latent_journal *journal, const char *name, char out[33]) {
    latent_context quiet; /* a file that is gone is an answer here, not an error */
    char *path = NULL;
    int there = 0;
    memset(&quiet, 0, sizeof quiet);
    memset(out, 0, 33);
    if (lt_path_join(&quiet, journal->run, name, &path) == LATENT_OK) {
        there = lt_file_exists(path);
        (void)latent_file_fingerprint(&quiet, path, out);
    }
    free(path);
    return there;
}

static const char *text_of(const lt_json_node *object, const char *key) {
    const lt_json_node *node = lt_json_get(object, key);
    return node && node->kind == LT_JSON_STRING ? node->string : NULL;
}

/* A file that is not recorded as we record it has the mark "", which no file has: the stage is not whole. */
static latent_status take_files(latent_context *ctx, entry *e, const lt_json_node *files) {
    latent_status status = LATENT_OK;
    const lt_json_node *node = files && files->kind == LT_JSON_ARRAY ? files->child : NULL;
    for (; node && e->file_count < FILES_MAX; node = node->next) {
        const char *name = text_of(node, "name"), *told = text_of(node, "fingerprint");
        char mark[33] = "";
        if (told && strlen(told) == 32) {
            memcpy(mark, told, sizeof mark);
        }
        LT_TRY(entry_add_file(ctx, e, name ? name : "?", mark));
    }
done:
    return status;
}

static latent_status take_stages(latent_context *ctx, latent_journal *journal, const lt_json_node *stages) {
    latent_status status = LATENT_OK;
    const lt_json_node *node = stages && stages->kind == LT_JSON_ARRAY ? stages->child : NULL;
    for (; node; node = node->next) {
        const lt_json_node *seconds = lt_json_get(node, "seconds"), *open = lt_json_get(node, "unfinished");
        latent_stage stage = {.name = text_of(node, "name"),
                              .inputs = text_of(node, "inputs"),
                              .summary = text_of(node, "summary"),
                              .seconds = seconds && seconds->kind == LT_JSON_NUMBER ? seconds->number : 0,
                              .unfinished = open && open->kind == LT_JSON_TRUE};
        if (!stage.name || !stage.inputs || journal->count == STAGES_MAX) {
            status = lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: stage %d is not one that 'latent run' writes",
                             journal->path, journal->count + 1);
            goto done;
        }
        LT_TRY(entry_make(ctx, &stage, &journal->entries[journal->count]));
        journal->count++;
        LT_TRY(take_files(ctx, &journal->entries[journal->count - 1], lt_json_get(node, "files")));
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

latent_status latent_journal_create(latent_context *ctx, const char *run, latent_journal **out) {
    latent_status status = LATENT_OK;
    latent_journal *journal = NULL;
    *out = NULL;
    LT_TRY(lt_calloc(ctx, 1, sizeof *journal, "a journal", (void **)&journal));
    LT_TRY(lt_strdup(ctx, run, &journal->run));
    LT_TRY(lt_path_join(ctx, run, "run.json", &journal->path));
    *out = journal;
    journal = NULL;
done:
    latent_journal_destroy(journal);
    return status;
}

latent_status latent_journal_open(latent_context *ctx, const char *run, latent_journal **out) {
    latent_status status = latent_journal_create(ctx, run, out);
    if (status == LATENT_OK && lt_file_exists((*out)->path)) {
        status = read_journal(ctx, *out);
        if (status != LATENT_OK) {
            latent_journal_destroy(*out);
            *out = NULL;
        }
    }
    return status;
}

/* Whether it was completed or not; NULL when it was never begun. */
static const entry *find(const latent_journal *journal, const char *name) {
    for (int i = 0; i < journal->count; i++) {
        if (strcmp(journal->entries[i].stage.name, name) == 0) {
            return &journal->entries[i];
        }
    }
    return NULL;
}

const latent_stage *latent_journal_find(const latent_journal *journal, const char *name) {
    const entry *e = find(journal, name);
    return e && !e->stage.unfinished ? &e->stage : NULL;
}

double latent_journal_spent(const latent_journal *journal, const char *name) {
    const entry *e = find(journal, name);
    return e ? e->stage.seconds : 0;
}

const char *latent_journal_changed(const latent_journal *journal, const char *name) {
    const entry *e = find(journal, name);
    for (int i = 0; e && i < e->file_count; i++) {
        char now[33];
        (void)fingerprint(journal, e->files[i], now);
        if (!now[0] || strcmp(now, e->fingerprints[i]) != 0) {
            return e->files[i];
        }
    }
    return NULL;
}

static void put_string(lt_json_writer *w, const char *key, const char *value) {
    lt_json_key(w, key);
    lt_json_string(w, value);
}

static void put_stage(lt_json_writer *w, const entry *e) {
    lt_json_begin_object(w);
    put_string(w, "name", e->stage.name);
    put_string(w, "inputs", e->stage.inputs);
    put_string(w, "summary", e->stage.summary);
    lt_json_key(w, "seconds");
    lt_json_number(w, e->stage.seconds);
    if (e->stage.unfinished) {
        lt_json_key(w, "unfinished");
        lt_json_bool(w, 1);
    }
    if (e->file_count > 0) {
        lt_json_key(w, "files");
        lt_json_begin_array(w);
        for (int i = 0; i < e->file_count; i++) {
            lt_json_begin_object(w);
            put_string(w, "name", e->files[i]);
            put_string(w, "fingerprint", e->fingerprints[i]);
            lt_json_end_object(w);
        }
        lt_json_end_array(w);
    }
    lt_json_end_object(w);
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
        put_stage(&w, &journal->entries[i]);
    }
    lt_json_end_array(&w);
    lt_json_end_object(&w);
    LT_TRY(lt_json_finish(ctx, &w));
    LT_TRY(lt_file_write(ctx, journal->path, w.text, w.length));
done:
    free(w.text);
    return status;
}

static latent_status add_files(latent_context *ctx, const latent_journal *journal, const char *const *files,
                               entry *e) {
    latent_status status = LATENT_OK;
    for (; files && *files && e->file_count < FILES_MAX; files++) {
        char mark[33];
        if (fingerprint(journal, *files, mark)) {
            LT_TRY(entry_add_file(ctx, e, *files, mark));
        }
    }
done:
    return status;
}

static void forget(latent_journal *journal, int at) {
    entry_free(&journal->entries[at]);
    journal->count--;
    memmove(&journal->entries[at], &journal->entries[at + 1],
            (size_t)(journal->count - at) * sizeof journal->entries[0]);
    memset(&journal->entries[journal->count], 0, sizeof journal->entries[0]);
}

latent_status latent_journal_record(latent_context *ctx, latent_journal *journal, const latent_stage *stage) {
    latent_status status = LATENT_OK;
    entry made = {0};
    const entry *old = find(journal, stage->name);
    int at = old ? (int)(old - journal->entries) : journal->count;
    if (!stage->inputs) {
        if (!old) {
            return LATENT_OK;
        }
        forget(journal, at);
        return write_journal(ctx, journal);
    }
    if (at == STAGES_MAX) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "%s: a run has at most %d stages", journal->path,
                       STAGES_MAX);
    }
    LT_TRY(entry_make(ctx, stage, &made));
    LT_TRY(add_files(ctx, journal, stage->files, &made));
    entry_free(&journal->entries[at]);
    journal->entries[at] = made;
    memset(&made, 0, sizeof made);
    journal->count += !old;
    LT_TRY(write_journal(ctx, journal));
done:
    entry_free(&made);
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
