/* status.h: how a function says that it failed.
 *
 * The context is the first argument of everything that can fail. lt_fail() keeps the sentence in it and
 * returns the code, so that a failure is one line: return lt_fail(ctx, LATENT_ERROR_IO, "%s: ...", path).
 * A sentence names the file or flag, the place, what is wrong and what would be right.
 */
#ifndef LT_BASE_STATUS_H
#define LT_BASE_STATUS_H

#include "latent.h"

#include <stddef.h>

enum { LT_MESSAGE_MAX = 2048 };

struct latent_context {
    char message[LT_MESSAGE_MAX];
    latent_log_fn log;
    void *log_user;
    volatile int interrupted; /* set from signal handlers */
};

#if defined(__GNUC__)
#define LT_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define LT_PRINTF(text, first)
#endif

latent_status lt_fail(latent_context *ctx, latent_status status, const char *format, ...) LT_PRINTF(3, 4);
void lt_log(latent_context *ctx, latent_log_level level, const char *format, ...) LT_PRINTF(3, 4);

/* malloc and calloc that fail with a sentence. `what` completes "no memory for ...". */
latent_status lt_alloc(latent_context *ctx, size_t bytes, const char *what, void **out);
latent_status lt_calloc(latent_context *ctx, size_t count, size_t size, const char *what, void **out);
latent_status lt_strdup(latent_context *ctx, const char *text, char **out);

/* Leaves for `done:` with the status of a failed call. Wants a local `latent_status status`. */
#define LT_TRY(call)                                                                                         \
    do {                                                                                                     \
        status = (call);                                                                                     \
        if (status != LATENT_OK) {                                                                           \
            goto done;                                                                                       \
        }                                                                                                    \
    } while (0)

#endif
