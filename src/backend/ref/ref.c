/* ref.c: the backend `ref`: the reference's ops behind the contract, one thread, float tensors.
 *
 * It is there to be right: no packed weights, no fused loss, no graphs. Everything that is not an op comes
 * from backend/host.c, which the fast host backend uses as well.
 */
#include "backend/ref/ref.h"

#include "backend/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ref_probe(char *detail, size_t size) {
    snprintf(detail, size, "plain C, one thread");
    return 1;
}

static latent_status check_options(latent_context *ctx, const latent_engine_options *options) {
    if (options->precision && strcmp(options->precision, "fp32") != 0) {
        return lt_fail(
            ctx, LATENT_ERROR_UNSUPPORTED,
            "the backend 'ref' computes in fp32 only, not in '%s'; leave the precision out or say fp32",
            options->precision);
    }
    if (options->isa) {
        return lt_fail(
            ctx, LATENT_ERROR_UNSUPPORTED,
            "the backend 'ref' is plain C and has no choice of instruction set ('%s' was asked for); "
            "the backend 'cpu' has",
            options->isa);
    }
    if (options->threads > 1) {
        return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED,
                       "the backend 'ref' runs on one thread, not on %d; the backend 'cpu' has threads",
                       options->threads);
    }
    return lt_host_check_options(ctx, &lt_backend_ref, options);
}

static latent_status ref_open(latent_context *ctx, const latent_engine_options *options, lt_backend **out) {
    latent_status status = LATENT_OK;
    void *memory = NULL;
    *out = NULL;
    LT_TRY(check_options(ctx, options));
    LT_TRY(lt_calloc(ctx, 1, sizeof(lt_host), "the backend", &memory));
    lt_host_init(memory, &lt_backend_ref);
    *out = memory;
    snprintf((*out)->engine, sizeof(*out)->engine, "ref, fp32, 1 thread");
done:
    return status;
}

static void ref_close(lt_backend *backend) {
    lt_host_release((lt_host *)backend);
    free(backend);
}

static latent_status ref_gather(latent_context *ctx, lt_backend *backend, const lt_gather_call *call) {
    const lt_host *host = (lt_host *)backend;
    latent_status status = lt_host_gather_check(ctx, host, call);
    if (status == LATENT_OK) {
        lt_host_gather_range(host, call, 0, call->n);
    }
    return status;
}

static const char *ref_op_variant(latent_context *ctx, lt_backend *backend, const lt_op *op, lt_pass pass) {
    (void)backend;
    (void)pass;
    switch (op->kind) {
    case LT_OP_INPUT:
    case LT_OP_CONV:
    case LT_OP_LOSS_MSE:
        return "reference";
    }
    lt_fail(ctx, LATENT_ERROR_UNSUPPORTED, "the backend 'ref' does not know the op '%s'", op->name);
    return NULL;
}

static void ref_op_memory(lt_backend *backend, const lt_op *op, lt_dtype x_type, int batch, int training,
                          lt_op_memory *out) {
    (void)backend;
    (void)x_type;
    memset(out, 0, sizeof *out);
    if (op->kind == LT_OP_CONV) {
        out->mask = training ? lt_ref_conv_mask(&op->conv, batch) : 0;
        out->scratch = lt_ref_conv_scratch(&op->conv) * sizeof(double);
    }
}

static int ref_fuses_loss(lt_backend *backend, const lt_op *op) {
    (void)backend;
    (void)op;
    return 0;
}

static latent_status ref_conv_prepare(latent_context *ctx, lt_backend *backend, const lt_conv_call *call) {
    (void)ctx;
    (void)backend;
    (void)call;
    return LATENT_OK; /* the weights are used as they are */
}

static latent_status ref_conv_forward(latent_context *ctx, lt_backend *backend, const lt_conv_call *call) {
    (void)ctx;
    (void)backend;
    lt_ref_conv_forward_f32(call->conv, call->n, call->x, call->w, call->b, call->y, call->mask,
                            call->scratch);
    return LATENT_OK;
}

static latent_status ref_conv_backward(latent_context *ctx, lt_backend *backend, const lt_conv_call *call) {
    (void)ctx;
    (void)backend;
    lt_ref_conv_backward_f32(call->conv, call->n, call->x, call->w, call->y, call->mask, call->dy, call->dx,
                             call->dx_add, call->dw, call->db, call->scratch);
    return LATENT_OK;
}

static latent_status ref_loss_mse(latent_context *ctx, lt_backend *backend, const lt_loss_call *call) {
    size_t count = (size_t)call->n * call->values;
    return lt_host_set_loss(ctx, (lt_host *)backend,
                            (float)lt_ref_mse_f32(count, call->y, call->target, call->dy));
}

static latent_status ref_optimizer(latent_context *ctx, lt_backend *backend, const lt_optimizer_call *call) {
    lt_host *host = (lt_host *)backend;
    const lt_step *step = NULL;
    latent_status status = lt_host_step(ctx, host, &step);
    if (status == LATENT_OK && !lt_host_optimizer_range(call, step, 0, call->count)) {
        lt_host_mark_bad(host);
    }
    return status;
}

static latent_status ref_gemm_nt(latent_context *ctx, lt_backend *backend, size_t m, size_t n, size_t k,
                                 const float *a, size_t lda, const float *b, size_t ldb, float *c,
                                 size_t ldc) {
    (void)ctx;
    (void)backend;
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            double sum = 0;
            for (size_t l = 0; l < k; l++) {
                sum += (double)a[i * lda + l] * b[j * ldb + l];
            }
            c[i * ldc + j] = (float)sum;
        }
    }
    return LATENT_OK;
}

const lt_backend_type lt_backend_ref = {
    .name = "ref",
    .summary = "the reference: plain loops, sums in double; slow and right",
    .probe = ref_probe,
    .open = ref_open,
    .close = ref_close,
    .alloc = lt_host_alloc,
    .free = lt_host_free,
    .zero = lt_host_zero,
    .upload = lt_host_copy,
    .download = lt_host_copy,
    .synchronize = lt_host_synchronize,
    .data_load = lt_host_data_load,
    .data_free = lt_host_data_free,
    .data_bytes = lt_host_data_bytes,
    .gather = ref_gather,
    .op_variant = ref_op_variant,
    .op_memory = ref_op_memory,
    .fuses_loss = ref_fuses_loss,
    .conv_prepare = ref_conv_prepare,
    .conv_forward = ref_conv_forward,
    .conv_backward = ref_conv_backward,
    .loss_mse = ref_loss_mse,
    .optimizer = ref_optimizer,
    .steps_begin = lt_host_steps_begin,
    .step_next = lt_host_step_next,
    .losses_read = lt_host_losses_read,
    .profile_start = lt_host_profile_start,
    .mark = lt_host_mark,
    .profile_read = lt_host_profile_read,
    .gemm_nt = ref_gemm_nt,
    .host_memory = 1,
    .rows = &lt_host_rows_ops,
};
