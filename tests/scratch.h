/* scratch.h: what tests of files share: a context, a folder that is gone afterwards, and the assertion
 * that a failure said the right thing. Use SCRATCH_TEST(function) in the list of tests; a test begins with
 * `scratch *s = *state;`.
 */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/status.h"
#include "scratch_folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct scratch {
    latent_context *ctx;
    char folder[40];
    char paths[4][128]; /* the latest four answers of scratch_path() */
    int next;
} scratch;

static inline int scratch_setup(void **state) {
    scratch *s = calloc(1, sizeof *s);
    if (!s || latent_context_create(&s->ctx) != LATENT_OK) {
        return -1;
    }
    *state = s;
    return scratch_folder_make(s->folder);
}

static inline int scratch_teardown(void **state) {
    scratch *s = *state;
    int failed = scratch_folder_remove(s->folder);
    latent_context_destroy(s->ctx);
    free(s);
    return failed;
}

#define SCRATCH_TEST(function) cmocka_unit_test_setup_teardown(function, scratch_setup, scratch_teardown)

/* A path in the scratch folder; good for the next three calls. */
static inline const char *scratch_path(scratch *s, const char *name) {
    char *path = s->paths[s->next++ % 4];
    assert_true(snprintf(path, sizeof s->paths[0], "%s/%s", s->folder, name) < (int)sizeof s->paths[0]);
    return path;
}

/* Writes a file without the code under test. */
static inline const char *scratch_file(scratch *s, const char *name, const void *data, size_t bytes) {
    const char *path = scratch_path(s, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
    return path;
}

/* How many entries a folder has; -1 when it is not there. */
static inline int scratch_entries(const char *folder) {
    DIR *dir = opendir(folder);
    int count = 0;
    if (!dir) {
        return -1;
    }
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(dir);
    return count;
}

#define assert_says(ctx, part)                                                                               \
    do {                                                                                                     \
        if (!strstr(latent_context_message(ctx), part)) {                                                    \
            fail_msg("the message is \"%s\", without \"%s\"", latent_context_message(ctx), part);            \
        }                                                                                                    \
    } while (0)

/* The call fails with this status and a sentence that holds this part. */
#define assert_fails(ctx, call, wanted, part)                                                                \
    do {                                                                                                     \
        (ctx)->message[0] = 0;                                                                               \
        assert_int_equal((call), (wanted));                                                                  \
        assert_says(ctx, part);                                                                              \
    } while (0)

#endif
