/* cuda.c: the backend `cuda`: its table, opening and closing, and the way from an op to the generation.
 *
 * Everything is fp32, strictly, but for the generation `tensor`, which has to be asked for and only goes
 * forward: no other one lets TF32 or bf16 in. Reductions have a fixed order and split
 * counts that depend on shapes alone, so a run gives the same bits on any number of multiprocessors.
 */
#include "backend/cuda/cuda.h"

#include "backend/cuda/generation.h"
#include "backend/cuda/libraries.h"
#include "backend/cuda/svm_cuda.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const lt_backend_type lt_backend_cuda;

/* ---- Open and close ---------------------------------------------------------------------------- */

/* The precision belongs to the kernels: `tensor` is bf16, the others are fp32. */
static latent_status check_precision(latent_context *ctx, const latent_engine_options *options, int *bf16) {
    const char *precision = options->precision, *kernels = options->kernels;
    int tensor = kernels && strcmp(kernels, "tensor") == 0;
    *bf16 = precision ? strcmp(precision, "bf16") == 0 : tensor;
    if (!*bf16 && precision && strcmp(precision, "fp32") != 0) {
        return lt_fail(
            ctx, LATENT_ERROR_ARGUMENT,
            "there is no precision '%s'; the backend 'cuda' computes in fp32, and in bf16 with the "
            "kernels 'tensor'",
            precision);
    }
    if (*bf16 && kernels && !tensor) {
        return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED,
                       "the kernels '%s' of the backend 'cuda' compute in fp32 only, not in bf16; leave the "
                       "precision out or say fp32",
                       kernels);
    }
    if (!*bf16 && tensor) {
        return lt_fail(
            ctx, LATENT_ERROR_UNSUPPORTED,
            "the kernels 'tensor' of the backend 'cuda' compute in bf16 only, not in fp32; leave the "
            "precision out or say bf16");
    }
    return LATENT_OK;
}

static latent_status check_options(latent_context *ctx, const latent_engine_options *options, int *bf16) {
    if (options->isa) {
        return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED,
                       "the backend 'cuda' has no choice of instruction set ('%s' was asked for); it has "
                       "kernel generations (--kernels)",
                       options->isa);
    }
    return check_precision(ctx, options, bf16);
}

static void cuda_close(lt_backend *backend) {
    lt_cuda *cuda = (lt_cuda *)backend;
    if (!cuda) {
        return;
    }
    if (cuda->stream) {
        (void)cudaSetDevice(cuda->device);
        (void)cudaStreamSynchronize(cuda->stream);
    }
    lt_libraries_close(cuda->libraries);
    lt_cuda_profile_close(cuda);
    lt_cuda_steps_close(cuda);
    lt_cuda_free(backend, cuda->bad_row);
    lt_cuda_device_close(cuda);
    free(cuda);
}

static latent_status cuda_open(latent_context *ctx, const latent_engine_options *options, lt_backend **out) {
    latent_status status = LATENT_OK;
    lt_cuda *cuda = NULL;
    int bf16 = 0;
    *out = NULL;
    LT_TRY(check_options(ctx, options, &bf16));
    LT_TRY(lt_calloc(ctx, 1, sizeof *cuda, "the backend", (void **)&cuda));
    cuda->base.type = &lt_backend_cuda;
    cuda->base.activation = bf16 ? LT_BF16 : LT_F32;
    cuda->stream_data = options->stream_data;
    LT_TRY(lt_cuda_device_open(ctx, cuda, options->device));
    LT_TRY(lt_generation_open(ctx, cuda, bf16 ? "tensor" : options->kernels));
    snprintf(cuda->base.engine, sizeof cuda->base.engine, "cuda, %s, %s kernels, %s", cuda->name,
             cuda->generation->name, bf16 ? "bf16" : "fp32");
    *out = &cuda->base;
    cuda = NULL;
done:
    cuda_close(cuda ? &cuda->base : NULL);
    return status;
}

/* ---- Ops --------------------------------------------------------------------------------------- */

static const char *op_variant(latent_context *ctx, lt_backend *backend, const lt_op *op, lt_pass pass) {
    lt_cuda *cuda = (lt_cuda *)backend;
    const lt_generation *generation = cuda->generation;
    const char *name = NULL;
    switch (op->kind) {
    case LT_OP_INPUT:
        return "gather";
    case LT_OP_CONV:
        name = generation->whole ? generation->whole->variant(cuda, &op->conv, pass)
                                 : generation->core->variant(cuda, &op->conv, pass);
        if (!name) {
            lt_fail(
                ctx, LATENT_ERROR_UNSUPPORTED,
                "the kernels '%s' of the backend 'cuda' compute features, reconstructions and losses, but "
                "no gradients; train in fp32",
                generation->name);
        }
        return name;
    case LT_OP_LOSS_MSE:
        return "two-stage sum";
    }
    lt_fail(ctx, LATENT_ERROR_UNSUPPORTED, "the backend 'cuda' does not know the op '%s'", op->name);
    return NULL;
}

static void op_memory(lt_backend *backend, const lt_op *op, lt_dtype x_type, int batch, int training,
                      lt_op_memory *out) {
    lt_cuda *cuda = (lt_cuda *)backend;
    (void)x_type; /* no memory depends on it */
    memset(out, 0, sizeof *out);
    if (op->kind == LT_OP_LOSS_MSE) {
        out->scratch = LT_LOSS_BLOCKS_MAX * sizeof(double);
    } else if (op->kind == LT_OP_CONV && cuda->generation->whole) {
        cuda->generation->whole->memory(cuda, &op->conv, batch, training, out);
    } else if (op->kind == LT_OP_CONV) {
        lt_staged_memory(cuda, cuda->generation->core, &op->conv, batch, training, out);
    }
}

static int fuses_loss(lt_backend *backend, const lt_op *op) {
    const lt_whole *whole = ((lt_cuda *)backend)->generation->whole;
    return op->kind == LT_OP_CONV && whole && whole->fuses_loss(&op->conv);
}

static latent_status conv_prepare(latent_context *ctx, lt_backend *backend, const lt_conv_call *call) {
    lt_cuda *cuda = (lt_cuda *)backend;
    const lt_generation *generation = cuda->generation;
    latent_status status = LATENT_OK;
    lt_cuda_range_begin(cuda, "prepare", "");
    if (generation->whole) {
        status = generation->whole->prepare(ctx, cuda, call);
    } else if (generation->core->prepare) {
        status = generation->core->prepare(ctx, cuda, call);
    }
    lt_cuda_range_end(cuda);
    return status;
}

/* The kernels count pixels of a batch in an int. */
static latent_status check_pixels(latent_context *ctx, const lt_conv_call *call) {
    const lt_conv *conv = call->conv;
    uint64_t in = (uint64_t)conv->UH * (uint64_t)conv->UW, out = (uint64_t)conv->OH * (uint64_t)conv->OW;
    if ((uint64_t)call->n * (in > out ? in : out) <= INT_MAX) {
        return LATENT_OK;
    }
    return lt_fail(
        ctx, LATENT_ERROR_UNSUPPORTED,
        "%s: a batch of %d images has more than 2^31 pixels, which the backend 'cuda' cannot count; "
        "take a smaller batch",
        call->name ? call->name : "a conv", call->n);
}

static latent_status conv_forward(latent_context *ctx, lt_backend *backend, const lt_conv_call *call) {
    lt_cuda *cuda = (lt_cuda *)backend;
    const lt_generation *generation = cuda->generation;
    if (check_pixels(ctx, call) != LATENT_OK) {
        return LATENT_ERROR_UNSUPPORTED;
    }
    lt_cuda_range_begin(cuda, call->name, "forward");
    latent_status status = generation->whole ? generation->whole->forward(ctx, cuda, call)
                                             : lt_staged_forward(ctx, cuda, generation->core, call);
    lt_cuda_range_end(cuda);
    return status;
}

static latent_status conv_backward(latent_context *ctx, lt_backend *backend, const lt_conv_call *call) {
    lt_cuda *cuda = (lt_cuda *)backend;
    const lt_generation *generation = cuda->generation;
    lt_cuda_range_begin(cuda, call->name, "backward");
    latent_status status = generation->whole ? generation->whole->backward(ctx, cuda, call)
                                             : lt_staged_backward(ctx, cuda, generation->core, call);
    lt_cuda_range_end(cuda);
    return status;
}

static latent_status loss_mse(latent_context *ctx, lt_backend *backend, const lt_loss_call *call) {
    lt_cuda *cuda = (lt_cuda *)backend;
    latent_status status = LATENT_OK;
    size_t count = (size_t)call->n * call->values;
    lt_cuda_range_begin(cuda, "loss", "");
    LT_TRY(lt_cuda_step_check(ctx, cuda));
    lt_launch_loss(cuda->stream, backend->activation, call->y, call->target, call->dy, count, call->scratch);
    LT_LAUNCHED("loss_partials");
    lt_launch_loss_finish(cuda->stream, cuda->state, call->scratch, lt_loss_blocks(count), count);
    LT_LAUNCHED("loss_finish");
done:
    lt_cuda_range_end(cuda);
    return status;
}

static latent_status optimizer(latent_context *ctx, lt_backend *backend, const lt_optimizer_call *call) {
    lt_cuda *cuda = (lt_cuda *)backend;
    latent_status status = LATENT_OK;
    lt_cuda_range_begin(cuda, "optimizer", "");
    LT_TRY(lt_cuda_step_check(ctx, cuda));
    if (call->count) {
        lt_launch_optimizer(cuda->stream, cuda->state, call);
        LT_LAUNCHED("optimizer");
    }
done:
    lt_cuda_range_end(cuda);
    return status;
}

const lt_backend_type lt_backend_cuda = {
    .name = "cuda",
    .summary = "NVIDIA GPUs: generations of kernels, whole steps replayed as graphs",
    .probe = lt_cuda_probe,
    .open = cuda_open,
    .close = cuda_close,
    .alloc = lt_cuda_alloc,
    .free = lt_cuda_free,
    .memory_free = lt_cuda_memory_free,
    .zero = lt_cuda_zero,
    .upload = lt_cuda_upload,
    .download = lt_cuda_download,
    .synchronize = lt_cuda_synchronize,
    .data_load = lt_cuda_data_load,
    .data_free = lt_cuda_data_free,
    .data_bytes = lt_cuda_data_bytes,
    .data_streams = lt_cuda_data_streams,
    .gather = lt_cuda_gather,
    .op_variant = op_variant,
    .op_memory = op_memory,
    .fuses_loss = fuses_loss,
    .conv_prepare = conv_prepare,
    .conv_forward = conv_forward,
    .conv_backward = conv_backward,
    .loss_mse = loss_mse,
    .optimizer = optimizer,
    .steps_begin = lt_cuda_steps_begin,
    .step_next = lt_cuda_step_next,
    .losses_read = lt_cuda_losses_read,
    .losses_poll = lt_cuda_losses_poll,
    .profile_start = lt_cuda_profile_start,
    .mark = lt_cuda_mark,
    .profile_read = lt_cuda_profile_read,
    .kernel_time = lt_cuda_kernel_time_at,
    .ceiling = lt_cuda_ceiling,
    .graph_begin = lt_cuda_graph_begin,
    .graph_end = lt_cuda_graph_end,
    .graph_launch = lt_cuda_graph_launch,
    .graph_free = lt_cuda_graph_free,
    .rows = &lt_cuda_rows_ops,
    .svm = &lt_cuda_svm_ops,
};
