/* tensor.c: the generation `tensor`: bf16 operands on tensor cores, sums in fp32, forward only.
 *
 * It is for what a trained model is used for: features, reconstructions, the loss. Activations are bf16 in
 * memory, the input is fp32. Every conv runs on the one kernel of tensor_forward.cu.
 */
#include "backend/cuda/tensor.h"

#include "backend/cuda/generation.h"

#include <limits.h>
#include <string.h>

static int divide_up(int a, int b) {
    return (a + b - 1) / b;
}

/* Slices for any type of x: the memory is asked for before the type is known to be bf16. */
static lt_tensor_forward describe(const lt_conv *conv, lt_dtype x_type) {
    lt_tensor_forward call = {.conv = *conv, .x_type = x_type};
    call.flat = conv->C % LT_TENSOR_SLICE != 0 || conv->R * conv->S > LT_TENSOR_TAPS || x_type != LT_BF16;
    call.slices = divide_up(conv->R * conv->S * conv->C, LT_TENSOR_SLICE);
    call.columns = divide_up(conv->K, LT_TENSOR_TILE) * LT_TENSOR_TILE;
    return call;
}

static const char *variant(lt_cuda *cuda, const lt_conv *conv, lt_pass pass) {
    (void)cuda;
    if (pass == LT_BACKWARD) {
        return NULL;
    }
    return conv->C % LT_TENSOR_SLICE ? "tensor 128x128, taps in a row" : "tensor 128x128";
}

static void memory(lt_cuda *cuda, const lt_conv *conv, int batch, int training, lt_op_memory *out) {
    lt_tensor_forward call = describe(conv, LT_BF16);
    (void)cuda;
    (void)batch;
    (void)training;
    memset(out, 0, sizeof *out);
    out->persist = (size_t)call.slices * (size_t)call.columns * LT_TENSOR_SLICE * sizeof(uint16_t);
}

static int fuses_loss(const lt_conv *conv) {
    (void)conv;
    return 0;
}

static latent_status prepare(latent_context *ctx, lt_cuda *cuda, const lt_conv_call *call) {
    latent_status status = LATENT_OK;
    lt_tensor_forward forward = describe(call->conv, call->x_type);
    if ((uint64_t)forward.slices * (uint64_t)forward.columns * LT_TENSOR_SLICE > INT_MAX) {
        goto done; /* forward() says so */
    }
    lt_launch_tensor_pack(cuda->stream, &forward, call->w, call->persist);
    LT_LAUNCHED("tensor_pack");
done:
    return status;
}

static latent_status forward(latent_context *ctx, lt_cuda *cuda, const lt_conv_call *call) {
    latent_status status = LATENT_OK;
    lt_tensor_forward forward = describe(call->conv, call->x_type);
    forward.n = call->n;
    forward.x = call->x;
    forward.packed = call->persist;
    forward.b = call->b;
    forward.y = call->y;
    if ((uint64_t)call->n * (uint64_t)call->conv->PH * (uint64_t)call->conv->PW > INT_MAX ||
        (uint64_t)forward.slices * (uint64_t)forward.columns * LT_TENSOR_SLICE > INT_MAX) {
        status = lt_fail(ctx, LATENT_ERROR_UNSUPPORTED,
                         "%s: %d images of %dx%d and %d filters of %dx%dx%d are too many for the kernels "
                         "'tensor'; leave the precision out or say fp32",
                         call->name ? call->name : "a conv", call->n, call->conv->PH, call->conv->PW,
                         call->conv->K, call->conv->R, call->conv->S, call->conv->C);
        goto done;
    }
    if (call->n > 0) {
        lt_launch_tensor_forward(cuda->stream, &forward);
        LT_LAUNCHED("tensor_forward");
    }
done:
    return status;
}

static latent_status backward(latent_context *ctx, lt_cuda *cuda, const lt_conv_call *call) {
    (void)cuda;
    return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED, "%s: the kernels 'tensor' go forward only",
                   call->name ? call->name : "a conv");
}

const lt_whole lt_whole_tensor = {variant, memory, fuses_loss, prepare, forward, backward};

latent_status lt_tensor_open(latent_context *ctx, lt_cuda *cuda) {
    latent_status status = LATENT_OK;
    int major = 0;
    LT_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, cuda->device));
    if (major < 8) {
        status =
            lt_fail(ctx, LATENT_ERROR_UNSUPPORTED,
                    "the kernels 'tensor' need a GPU with bf16 tensor cores (sm_80 or newer), and device "
                    "%d (%s) has none; leave the precision out or say fp32",
                    cuda->device, cuda->name);
    } else if (!lt_tensor_code_check()) {
        status =
            lt_fail(ctx, LATENT_ERROR_UNSUPPORTED,
                    "the kernels 'tensor' were not built for device %d (%s): this build's code for it is "
                    "that of GPUs older than sm_80; configure with LATENT_CUDA_ARCHS of the device, or "
                    "leave the precision out",
                    cuda->device, cuda->name);
    }
done:
    return status;
}
