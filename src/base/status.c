#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

latent_status latent_context_create(latent_context **out) {
    *out = calloc(1, sizeof **out);
    return *out ? LATENT_OK : LATENT_ERROR_MEMORY;
}

void latent_context_destroy(latent_context *ctx) {
    free(ctx);
}

const char *latent_context_message(const latent_context *ctx) {
    return ctx->message;
}

void latent_context_set_log(latent_context *ctx, latent_log_fn log, void *user) {
    ctx->log = log;
    ctx->log_user = user;
}

void latent_context_interrupt(latent_context *ctx) {
    ctx->interrupted = 1;
}

const char *latent_version(void) {
    return LATENT_VERSION;
}

void latent_free(void *memory) {
    free(memory);
}

latent_status lt_fail(latent_context *ctx, latent_status status, const char *format, ...) {
    /* Formatted aside first: an argument may be the old message. */
    char message[LT_MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    memcpy(ctx->message, message, sizeof message);
    return status;
}

void lt_log(latent_context *ctx, latent_log_level level, const char *format, ...) {
    if (!ctx->log) {
        return;
    }
    char message[LT_MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    ctx->log(ctx->log_user, level, message);
}

static latent_status no_memory(latent_context *ctx, size_t count, size_t size, const char *what) {
    return lt_fail(ctx, LATENT_ERROR_MEMORY, "no memory for %s (%zu x %zu bytes)", what, count, size);
}

latent_status lt_alloc(latent_context *ctx, size_t bytes, const char *what, void **out) {
    *out = malloc(bytes ? bytes : 1);
    return *out ? LATENT_OK : no_memory(ctx, 1, bytes, what);
}

latent_status lt_calloc(latent_context *ctx, size_t count, size_t size, const char *what, void **out) {
    *out = calloc(count ? count : 1, size ? size : 1);
    return *out ? LATENT_OK : no_memory(ctx, count, size, what);
}

latent_status lt_strdup(latent_context *ctx, const char *text, char **out) {
    size_t size = strlen(text) + 1;
    void *copy = NULL;
    latent_status status = lt_alloc(ctx, size, "a string", &copy);
    if (status == LATENT_OK) {
        memcpy(copy, text, size);
    }
    *out = copy;
    return status;
}
