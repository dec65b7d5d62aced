/* session.c: messages, signals and the library's context.
 *
 * The first SIGINT, SIGTERM or SIGHUP asks the library to stop at its next safe point, where it saves what it
 * can; the second ends the program at once. A signal handler reaches nothing but file-scope variables: the
 * two below are the only ones of the program.
 */
#include "cli.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static latent_context *volatile signalled_context;
static volatile sig_atomic_t signals;

static void on_signal(int number) {
    (void)number;
    if (signals++ > 0 || !signalled_context) {
        _exit(CLI_INTERRUPTED);
    }
    latent_context_interrupt(signalled_context);
}

int cli_interrupted(void) {
    return signals > 0;
}

static void handle_signals(void) {
    struct sigaction action = {.sa_handler = on_signal}, old;
    sigemptyset(&action.sa_mask);
    /* Interrupted system calls go on: the library looks at the request between two pieces of work. */
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* nohup ignores SIGHUP, and that shall stay so. */
    if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN) {
        sigaction(SIGHUP, &action, NULL);
    }
    /* A file size limit shall be an error of the write, with a sentence, not the end of the program. */
    action.sa_handler = SIG_IGN;
    sigaction(SIGXFSZ, &action, NULL);
}

static void on_log(void *user, latent_log_level level, const char *message) {
    cli_session *session = user;
    if (level == LATENT_LOG_WARNING) {
        cli_progress_clear(&session->progress);
        fprintf(stderr, "latent: warning: %s\n", message);
    } else {
        cli_note(session, "%s", message);
    }
}

int cli_session_begin(cli_session *session) {
    memset(session, 0, sizeof *session);
    cli_progress_begin(&session->progress);
    if (latent_context_create(&session->ctx) != LATENT_OK) {
        return cli_fail(session, "out of memory");
    }
    latent_context_set_log(session->ctx, on_log, session);
    signalled_context = session->ctx;
    handle_signals();
    return CLI_OK;
}

void cli_session_end(cli_session *session) {
    cli_progress_clear(&session->progress);
    signalled_context = NULL;
    latent_context_destroy(session->ctx);
    session->ctx = NULL;
}

int cli_fail(cli_session *session, const char *format, ...) {
    cli_progress_clear(&session->progress);
    fputs("latent: ", stderr);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return CLI_FAILED;
}

int cli_status(cli_session *session, latent_status status) {
    if (status == LATENT_OK) {
        return CLI_OK;
    }
    const char *message = latent_context_message(session->ctx);
    if (status == LATENT_INTERRUPTED) {
        /* Most sentences say it themselves; what stopped before it had a sentence gets the word alone. */
        int said = strncmp(message, "interrupted", 11) == 0;
        cli_fail(session, "%s%s%s", said ? "" : "interrupted", *message && !said ? ": " : "", message);
        return CLI_INTERRUPTED;
    }
    cli_fail(session, "%s", *message ? message : "failed");
    return status == LATENT_ERROR_ARGUMENT ? CLI_USAGE : CLI_FAILED;
}

int cli_usage(const cli_command *command, const char *format, ...) {
    fprintf(stderr, "latent%s%s: ", command ? " " : "", command ? command->name : "");
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nSee 'latent help%s%s'.\n", command ? " " : "", command ? command->name : "");
    return CLI_USAGE;
}

void cli_note(cli_session *session, const char *format, ...) {
    if (session->quiet) {
        return;
    }
    cli_progress_clear(&session->progress);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

void cli_need_memory(const void *memory) {
    if (!memory) {
        fputs("latent: out of memory\n", stderr);
        exit(CLI_FAILED);
    }
}
