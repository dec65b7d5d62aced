/* record.c: writes to a name beside the file's own, flushes it to the disk and renames it. */
#include "record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void put(FILE *out, cli_record_fn fill, void *user) {
    cli_json json = {.out = out};
    cli_json_open(&json, NULL, '{');
    fill(&json, user);
    cli_json_close(&json, '}');
}

void cli_record_print(cli_record_fn fill, void *user) {
    put(stdout, fill, user);
}

int cli_record_save(cli_session *session, const char *path, cli_record_fn fill, void *user) {
    char *temporary = NULL;
    cli_need_memory(asprintf(&temporary, "%s.tmp.%ld", path, (long)getpid()) < 0 ? NULL : temporary);
    FILE *out = fopen(temporary, "w");
    int error = out ? 0 : errno;
    if (out) {
        errno = 0;
        put(out, fill, user);
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
