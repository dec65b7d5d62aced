/* record.c: what a command prints is gathered first and then written by the library, whole or not at all.
 * Terminals, pipes and what is open already (stdout, /dev/fd/5) cannot be replaced by a file; what goes there
 * is simply written.
 */
#include "record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int cli_is_stdout(const char *path) {
    struct stat there, own;
    return stat(path, &there) == 0 && fstat(fileno(stdout), &own) == 0 && there.st_dev == own.st_dev &&
           there.st_ino == own.st_ino;
}

/* The descriptor that a path is another name of, or -1. */
static int descriptor_of(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    for (int i = 0; i < 2; i++) {
        size_t length = strlen(folders[i]);
        const char *digits = path + length;
        if (strncmp(path, folders[i], length) == 0 && *digits && strlen(digits) < 10 &&
            digits[strspn(digits, "0123456789")] == 0) {
            return atoi(digits);
        }
    }
    return strcmp(path, "/dev/stderr") == 0 ? STDERR_FILENO : -1;
}

/* A terminal, a pipe, /dev/null; or a descriptor, whatever it leads to. */
static int is_stream(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 &&
           (S_ISCHR(info.st_mode) || S_ISFIFO(info.st_mode) || descriptor_of(path) >= 0);
}

/* To a stream that is there already. */
static int write_stream(cli_session *session, const char *path, const char *text, size_t bytes) {
    int own = cli_is_stdout(path), fd = descriptor_of(path);
    FILE *out = own ? stdout : fd >= 0 ? fdopen(dup(fd), "w") : fopen(path, "w");
    int error = !out ? errno : fwrite(text, 1, bytes, out) == bytes && fflush(out) == 0 ? 0 : errno;
    if (out && !own && fclose(out) != 0 && !error) {
        error = errno;
    }
    return error ? cli_fail(session, "%s: cannot write: %s", path, strerror(error)) : CLI_OK;
}

int cli_file_check(cli_session *session, const char *path) {
    return cli_is_stdout(path) || is_stream(path)
               ? CLI_OK
               : cli_status(session, latent_file_check(session->ctx, path));
}

int cli_file_save(cli_session *session, const char *path, cli_put_fn put, void *user) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *gathered = open_memstream(&text, &bytes);
    cli_need_memory(gathered);
    put(gathered, user);
    int failed = ferror(gathered);
    failed |= fclose(gathered) != 0;
    cli_need_memory(failed ? NULL : text);
    int code = cli_is_stdout(path) || is_stream(path)
                   ? write_stream(session, path, text, bytes)
                   : cli_status(session, latent_file_write(session->ctx, path, text, bytes));
    free(text);
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
