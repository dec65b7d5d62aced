/* engine.c: who computes a support vector machine.
 *
 * A backend with its own table is asked first. One without it serves through the host's table when its memory
 * is the host's and it has a matrix product; any other is replaced by the best host backend. So `--backend
 * cuda` never fails for want of memory on the card: the log says who took over and why.
 */
#include "svm/svm.h"

#include "svm/host.h"

#include <string.h>

static int serves(const lt_backend *backend) {
    return backend->type->host_memory && backend->type->gemm_nt;
}

static latent_status open_host(latent_context *ctx, const latent_engine_options *options,
                               lt_svm_engine *out) {
    latent_engine_options wanted = {.threads = options ? options->threads : 0};
    char detail[160];
    for (int i = 0; lt_backend_at(i); i++) {
        const lt_backend_type *type = lt_backend_at(i);
        if (type->host_memory && type->gemm_nt && type->probe(detail, sizeof detail)) {
            wanted.backend = type->name;
            wanted.threads = type->threads ? wanted.threads : 0;
            out->ops = &lt_svm_host_ops;
            return lt_backend_open(ctx, &wanted, &out->backend);
        }
    }
    return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED, "no backend of this build can train on the host");
}

latent_status lt_svm_engine_open(latent_context *ctx, const latent_engine_options *options,
                                 lt_svm_engine *out) {
    memset(out, 0, sizeof *out);
    latent_status status = lt_backend_open(ctx, options, &out->backend);
    if (status != LATENT_OK) {
        return status;
    }
    out->ops = out->backend->type->svm ? out->backend->type->svm : &lt_svm_host_ops;
    if (out->backend->type->svm || serves(out->backend)) {
        return LATENT_OK;
    }
    const char *name = out->backend->type->name;
    lt_backend_close(out->backend);
    out->backend = NULL;
    status = open_host(ctx, options, out);
    if (status == LATENT_OK) {
        lt_log(ctx, LATENT_LOG_INFO,
               "the backend '%s' has no support vector machines of its own; '%s' computes them", name,
               out->backend->type->name);
    }
    return status;
}

latent_status lt_svm_engine_to_host(latent_context *ctx, const latent_engine_options *options,
                                    lt_svm_engine *engine) {
    if (engine->ops == &lt_svm_host_ops) {
        return LATENT_ERROR_UNSUPPORTED; /* the sentence is in the context */
    }
    lt_log(ctx, LATENT_LOG_WARNING, "%s; the host goes on instead", latent_context_message(ctx));
    lt_backend_close(engine->backend);
    engine->backend = NULL;
    return open_host(ctx, options, engine);
}

void lt_svm_engine_close(lt_svm_engine *engine) {
    lt_backend_close(engine->backend);
    engine->backend = NULL;
}
