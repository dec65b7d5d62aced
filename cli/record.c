/* record.c: writes to a name beside the file's own, flushes it to the disk and renames it. */
#include "record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cli_file_save(cli_session *session, const char *path, cli_put_fn put, void *user) {
    char *temporary = NULL;
    cli_need_memory(asprintf(&temporary, "%s.tmp.%ld", path, (long)getpid()) < 0 ? NULL : temporary);
    FILE *out = fopen(temporary, "w");
    int error = out ? 0 : errno;
    if (out) {
        errno = 0;
        put(out, user);
        if (fflush(out) != 0 || ferror(out) || fsync(fileno(out)) != 0) {
            error = errno ? errno : EIO;
        }
        if (fclose(out) != 0 && !error) {
            error = errno;
        }
        if (!error && rename(temporary, path) != 0) {
            error = errno;
        }
    }
    int code = CLI_OK;
    if (error) {
        code = cli_fail(session, "%s: cannot write: %s", path, strerror(error));
        unlink(temporary);
    }
    free(temporary);
    return code;
}

typedef struct record {
    cli_record_fn fill;
    void *user;
} record;

static void put_record(FILE *out, void *user) {
    const record *r = user;
    cli_json json = {.out = out};
    cli_json_open(&json, NULL, '{');
    r->fill(&json, r->user);
    cli_json_close(&json, '}');
}

int cli_record_save(cli_session *session, const char *path, cli_record_fn fill, void *user) {
    return cli_file_save(session, path, put_record, &(record){fill, user});
}

void cli_record_print(cli_record_fn fill, void *user) {
    put_record(stdout, &(record){fill, user});
}
