/* record.h: files that the program itself writes, most of them JSON: whole, or the old one stays. */
#ifndef CLI_RECORD_H
#define CLI_RECORD_H

#include "cli.h"
#include "json.h"

/* 1 when the path is where the program's own output goes: /dev/stdout, the terminal, the file behind '>'. */
int cli_is_stdout(const char *path);

/* Whether cli_file_save could write there: for commands that do long work first. Returns an exit code. */
int cli_file_check(cli_session *session, const char *path);
/* Writes what `put` prints. Returns an exit code. */
typedef void (*cli_put_fn)(FILE *out, void *user);
int cli_file_save(cli_session *session, const char *path, cli_put_fn put, void *user);

typedef void (*cli_record_fn)(cli_json *json, void *user);

/* Writes what `fill` puts into an object. Returns an exit code. */
int cli_record_save(cli_session *session, const char *path, cli_record_fn fill, void *user);
/* The same object on stdout. */
void cli_record_print(cli_record_fn fill, void *user);

#endif
