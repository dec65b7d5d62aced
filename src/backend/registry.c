/* registry.c: the backends compiled in, best first, and the choice of one by name.
 *
 * "auto" takes the first that says it can run here and then opens; a device that turns out to be unusable is
 * told in the log, and the host computes. With an option that the GPU alone has, "auto" means the GPU, so
 * that its reason is the one that is told. A name that is wrong, not compiled in or not able to run here is
 * told apart in the message.
 */
#include "backend/backend.h"
#include "backend/ref/ref.h"

#include <stdio.h>
#include <string.h>

#ifdef LATENT_HAVE_CUDA
extern const lt_backend_type lt_backend_cuda;
#endif
#ifdef LATENT_HAVE_CPU
extern const lt_backend_type lt_backend_cpu;
#endif

static const lt_backend_type *const backends[] = {
#ifdef LATENT_HAVE_CUDA
    &lt_backend_cuda,
#endif
#ifdef LATENT_HAVE_CPU
    &lt_backend_cpu,
#endif
    &lt_backend_ref,
};

enum { BACKENDS = sizeof backends / sizeof backends[0] };

/* Every name there is, compiled in or not. */
static const char *const known[] = {"auto", "cuda", "cpu", "ref"};

enum { KNOWN = sizeof known / sizeof known[0] };

const lt_backend_type *lt_backend_at(int index) {
    return index >= 0 && index < (int)BACKENDS ? backends[index] : NULL;
}

int latent_backend_get_info(int index, latent_backend_info *out) {
    const lt_backend_type *type = lt_backend_at(index);
    memset(out, 0, sizeof *out);
    if (!type) {
        return 0;
    }
    out->name = type->name;
    out->summary = type->summary;
    out->available = type->probe(out->detail, sizeof out->detail);
    return 1;
}

static void list_backends(char *text, size_t size) {
    size_t length = 0;
    text[0] = 0;
    for (size_t i = 0; i < BACKENDS && length < size; i++) {
        length += (size_t)snprintf(text + length, size - length, "%s%s", i ? ", " : "", backends[i]->name);
    }
}

static latent_status unknown_backend(latent_context *ctx, const char *name) {
    char list[64];
    list_backends(list, sizeof list);
    for (size_t i = 0; i < KNOWN; i++) {
        if (strcmp(name, known[i]) == 0) {
            return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED,
                           "the backend '%s' is not part of this build; it has: %s", name, list);
        }
    }
    const char *near = latent_suggest(name, known, KNOWN);
    return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "there is no backend '%s'%s%s%s; this build has: %s", name,
                   near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "", list);
}

static latent_status open_named(latent_context *ctx, const char *name, const latent_engine_options *options,
                                lt_backend **out) {
    char detail[160] = "";
    for (size_t i = 0; i < BACKENDS; i++) {
        if (strcmp(name, backends[i]->name) == 0) {
            return backends[i]->probe(detail, sizeof detail)
                       ? backends[i]->open(ctx, options, out)
                       : lt_fail(ctx, LATENT_ERROR_UNSUPPORTED, "the backend '%s' cannot run here: %s", name,
                                 detail);
        }
    }
    return unknown_backend(ctx, name);
}

/* The host cannot be busy or too old: what it refuses is an option, and that sentence is the answer. */
static latent_status open_first(latent_context *ctx, const latent_engine_options *options, lt_backend **out) {
    char detail[160] = "";
    for (size_t i = 0; i < BACKENDS; i++) {
        if (!backends[i]->probe(detail, sizeof detail)) {
            continue;
        }
        latent_status status = backends[i]->open(ctx, options, out);
        int unusable = status == LATENT_ERROR_UNSUPPORTED || status == LATENT_ERROR_DEVICE;
        if (!unusable || backends[i]->host_memory) {
            return status;
        }
        lt_log(ctx, LATENT_LOG_WARNING, "going on without the backend '%s': %s", backends[i]->name,
               ctx->message);
        ctx->message[0] = 0; /* nothing has failed */
    }
    return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED, "no backend can run here: %s", detail);
}

latent_status lt_backend_open(latent_context *ctx, const latent_engine_options *options, lt_backend **out) {
    const latent_engine_options defaults = {0};
    *out = NULL;
    options = options ? options : &defaults;
    if (options->backend && strcmp(options->backend, "auto") != 0) {
        return open_named(ctx, options->backend, options, out);
    }
    if (options->kernels || options->stream_data || options->device) {
        return open_named(ctx, "cuda", options, out);
    }
    return open_first(ctx, options, out);
}

void lt_backend_close(lt_backend *backend) {
    if (backend) {
        backend->type->close(backend);
    }
}
