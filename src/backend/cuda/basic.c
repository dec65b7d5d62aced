/* basic.c: the generation `basic`: the naive kernels of basic.cu as a core.
 *
 * persist holds the weights once more, as [R][S][C][K]; scratch the weight gradient's partial sums.
 */
#include "backend/cuda/generation.h"

static size_t weight_count(const lt_conv *conv) {
    return (size_t)conv->K * (size_t)conv->R * (size_t)conv->S * (size_t)conv->C;
}

static const char *variant(lt_cuda *cuda, const lt_conv *conv, lt_pass pass) {
    (void)cuda;
    (void)conv;
    return pass == LT_FORWARD ? "basic, one thread per output" : "basic, one thread per gradient";
}

static void memory(lt_cuda *cuda, const lt_conv *conv, int batch, int training, size_t *persist,
                   size_t *scratch) {
    (void)cuda;
    (void)batch;
    *persist = weight_count(conv) * sizeof(float);
    *scratch = training ? LT_BASIC_SPLITS * weight_count(conv) * sizeof(float) : 0;
}

static latent_status prepare(latent_context *ctx, lt_cuda *cuda, const lt_conv_call *call) {
    const lt_conv *conv = call->conv;
    latent_status status = LATENT_OK;
    lt_launch_basic_transpose(cuda->stream, conv->K, conv->R * conv->S * conv->C, call->w, call->persist);
    LT_LAUNCHED("basic_transpose");
done:
    return status;
}

static latent_status forward(latent_context *ctx, lt_cuda *cuda, const lt_core_call *call) {
    latent_status status = LATENT_OK;
    lt_launch_basic_forward(cuda->stream, *call->conv, call->n, call->u, call->persist, call->b, call->z);
    LT_LAUNCHED("basic_forward");
done:
    return status;
}

static latent_status weight_gradient(latent_context *ctx, lt_cuda *cuda, const lt_core_call *call) {
    latent_status status = LATENT_OK;
    lt_launch_basic_weight_gradient(cuda->stream, *call->conv, call->n, call->u, call->dz, call->scratch);
    LT_LAUNCHED("basic_weight_gradient");
    lt_launch_sum(cuda->stream, call->scratch, LT_BASIC_SPLITS, weight_count(call->conv), call->dw);
    LT_LAUNCHED("sum");
done:
    return status;
}

static latent_status input_gradient(latent_context *ctx, lt_cuda *cuda, const lt_core_call *call) {
    latent_status status = LATENT_OK;
    lt_launch_basic_input_gradient(cuda->stream, *call->conv, call->n, call->dz, call->w, call->du,
                                   call->add);
    LT_LAUNCHED("basic_input_gradient");
done:
    return status;
}

const lt_core lt_core_basic = {
    .name = "basic",
    .epilogue = LT_CORE_BIAS,
    .variant = variant,
    .memory = memory,
    .prepare = prepare,
    .forward = forward,
    .weight_gradient = weight_gradient,
    .input_gradient = input_gradient,
};
