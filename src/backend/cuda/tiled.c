/* tiled.c: the generation `tiled`: shared memory, register blocks, 16-byte loads; bias and relu in the
 * convolution's own kernel. What is left to stages: pool and upsample. See tiled.cuh.
 */
#include "backend/cuda/generation.h"

static size_t weight_count(const lt_conv *conv) {
    return (size_t)conv->K * (size_t)conv->R * (size_t)conv->S * (size_t)conv->C;
}

static const char *variant(lt_cuda *cuda, const lt_conv *conv, lt_pass pass) {
    (void)cuda;
    if (pass == LT_FORWARD) {
        return conv->K <= 4                   ? "tiled 256x4"
               : conv->R == 3 && conv->S == 3 ? "tiled 64x64, 3x3"
                                              : "tiled 64x64";
    }
    return conv->K <= 4 ? "tiled 4x256" : "tiled 64x64";
}

static void memory(lt_cuda *cuda, const lt_conv *conv, int batch, int training, size_t *persist,
                   size_t *scratch) {
    (void)cuda;
    (void)batch;
    *persist = 0;
    *scratch = training ? (size_t)lt_tiled_splits(conv) * weight_count(conv) * sizeof(float) : 0;
}

static latent_status forward(latent_context *ctx, lt_cuda *cuda, const lt_core_call *call) {
    latent_status status = LATENT_OK;
    lt_launch_tiled_forward(cuda->stream, *call->conv, call->n, call->u, call->w, call->b, call->z,
                            call->mask);
    LT_LAUNCHED("tiled_forward");
done:
    return status;
}

static latent_status weight_gradient(latent_context *ctx, lt_cuda *cuda, const lt_core_call *call) {
    latent_status status = LATENT_OK;
    lt_launch_tiled_weight_gradient(cuda->stream, *call->conv, call->n, call->u, call->dz, call->scratch);
    LT_LAUNCHED("tiled_weight_gradient");
    lt_launch_sum(cuda->stream, call->scratch, lt_tiled_splits(call->conv), weight_count(call->conv),
                  call->dw);
    LT_LAUNCHED("sum");
done:
    return status;
}

static latent_status input_gradient(latent_context *ctx, lt_cuda *cuda, const lt_core_call *call) {
    latent_status status = LATENT_OK;
    lt_launch_tiled_input_gradient(cuda->stream, *call->conv, call->n, call->dz, call->w, call->du,
                                   call->add);
    LT_LAUNCHED("tiled_input_gradient");
done:
    return status;
}

const lt_core lt_core_tiled = {
    .name = "tiled",
    .epilogue = LT_CORE_BIAS_RELU,
    .variant = variant,
    .memory = memory,
    .forward = forward,
    .weight_gradient = weight_gradient,
    .input_gradient = input_gradient,
};
