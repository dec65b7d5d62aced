/* staged.c: an op as a sequence of kernels: upsample, convolution, bias, relu, pool, and back.
 *
 * Forward:   u = upsample(x);  z = core(u);  y, mask = pool2(relu(z + b))
 * Backward:  dz = dy through the mask;  db = sums of dz;  dw = core(u, dz);  du = core(dz);  dx = sums of du
 * Stages that an op does not have are left out, and z is y itself where nothing follows that changes its
 * shape. Between the stages tensors lie in scratch: at the front u (du takes its place when dw is done),
 * then z or dz, then what the core wants for itself.
 */
#include "backend/cuda/generation.h"

size_t lt_mask_bytes(const lt_conv *conv, int batch) {
    return conv->pool2 || conv->relu ? (size_t)batch * (size_t)conv->PH * (size_t)conv->PW * (size_t)conv->K
                                     : 0;
}

static int core_upsamples(lt_cuda *cuda, const lt_core *core, const lt_conv *conv) {
    return conv->up2 && core->upsamples && core->upsamples(cuda, conv);
}

/* Where things lie in scratch, in bytes. */
typedef struct places {
    size_t z, bias, core, total;
} places;

static places carve(lt_cuda *cuda, const lt_core *core, const lt_conv *conv, int n, int backward) {
    size_t values = (size_t)n * sizeof(float), core_bytes = 0, persist = 0;
    size_t u = values * (size_t)conv->UH * (size_t)conv->UW * (size_t)conv->C;
    size_t z = values * (size_t)conv->OH * (size_t)conv->OW * (size_t)conv->K;
    places at = {0, 0, 0, 0};
    core->memory(cuda, conv, n, backward, &persist, &core_bytes);
    at.z = conv->up2 && !core_upsamples(cuda, core, conv) ? lt_cuda_round(u) : 0;
    int apart = backward ? conv->pool2 || conv->relu : conv->pool2;
    at.bias = at.z + (apart ? lt_cuda_round(z) : 0);
    size_t bias = backward ? LT_BIAS_SPLITS * (size_t)conv->K * sizeof(float) : 0;
    at.core = at.bias + lt_cuda_round(bias);
    at.total = at.core + core_bytes;
    return at;
}

void lt_staged_memory(lt_cuda *cuda, const lt_core *core, const lt_conv *conv, int batch, int training,
                      lt_op_memory *out) {
    size_t scratch = 0;
    out->mask = training ? lt_mask_bytes(conv, batch) : 0;
    out->persist = 0;
    core->memory(cuda, conv, batch, training, &out->persist, &scratch);
    out->scratch = carve(cuda, core, conv, batch, 0).total;
    size_t backward = training ? carve(cuda, core, conv, batch, 1).total : 0;
    out->scratch = backward > out->scratch ? backward : out->scratch;
}

/* What a core sees: the convolution over u, or over x where it upsamples itself. */
static lt_core_call core_call(const lt_conv_call *call, const places *at) {
    lt_core_call to = {0};
    to.conv = call->conv;
    to.n = call->n;
    to.u = call->x;
    to.w = call->w;
    to.b = call->b;
    to.persist = call->persist;
    to.scratch = (char *)call->scratch + at->core;
    return to;
}

static latent_status upsampled(latent_context *ctx, lt_cuda *cuda, const lt_core *core,
                               const lt_conv_call *call, lt_core_call *to) {
    const lt_conv *conv = call->conv;
    latent_status status = LATENT_OK;
    if (conv->up2 && !core_upsamples(cuda, core, conv)) {
        float *u = call->scratch;
        lt_launch_upsample(cuda->stream, call->n, conv->H, conv->W, conv->C, call->x, u);
        LT_LAUNCHED("upsample");
        to->u = u;
    }
done:
    return status;
}

/* What the core left of bias, relu and pool. */
static latent_status finish(latent_context *ctx, lt_cuda *cuda, const lt_core *core, const lt_conv_call *call,
                            float *z) {
    const lt_conv *conv = call->conv;
    latent_status status = LATENT_OK;
    size_t count = (size_t)call->n * (size_t)conv->OH * (size_t)conv->OW * (size_t)conv->K;
    if (core->epilogue == LT_CORE_PLAIN) {
        if (call->b || conv->relu || conv->pool2) {
            lt_launch_finish(cuda->stream, *conv, call->n, z, call->b, call->y, call->mask);
            LT_LAUNCHED("finish");
        }
        goto done;
    }
    if (core->epilogue == LT_CORE_BIAS && conv->relu) {
        lt_launch_relu(cuda->stream, z, conv->pool2 ? NULL : call->mask, count);
        LT_LAUNCHED("relu");
    }
    if (conv->pool2) {
        lt_launch_pool(cuda->stream, *conv, call->n, z, call->y, call->mask);
        LT_LAUNCHED("pool");
    }
done:
    return status;
}

latent_status lt_staged_forward(latent_context *ctx, lt_cuda *cuda, const lt_core *core,
                                const lt_conv_call *call) {
    latent_status status = LATENT_OK;
    if (call->n == 0) {
        return LATENT_OK;
    }
    places at = carve(cuda, core, call->conv, call->n, 0);
    lt_core_call to = core_call(call, &at);
    LT_TRY(upsampled(ctx, cuda, core, call, &to));
    to.z = call->conv->pool2 ? (float *)((char *)call->scratch + at.z) : call->y;
    to.mask = call->conv->pool2 ? NULL : call->mask;
    LT_TRY(core->forward(ctx, cuda, &to));
    LT_TRY(finish(ctx, cuda, core, call, to.z));
done:
    return status;
}

static latent_status bias_gradient(latent_context *ctx, lt_cuda *cuda, const lt_conv_call *call,
                                   const float *dz, float *partials) {
    const lt_conv *conv = call->conv;
    latent_status status = LATENT_OK;
    size_t pixels = (size_t)call->n * (size_t)conv->OH * (size_t)conv->OW;
    lt_launch_bias_partials(cuda->stream, dz, pixels, conv->K, partials);
    LT_LAUNCHED("bias_partials");
    lt_launch_sum(cuda->stream, partials, LT_BIAS_SPLITS, (size_t)conv->K, call->db);
    LT_LAUNCHED("sum");
done:
    return status;
}

latent_status lt_staged_backward(latent_context *ctx, lt_cuda *cuda, const lt_core *core,
                                 const lt_conv_call *call) {
    const lt_conv *conv = call->conv;
    latent_status status = LATENT_OK;
    if (call->n == 0) {
        return LATENT_OK;
    }
    places at = carve(cuda, core, conv, call->n, 1);
    char *scratch = call->scratch;
    lt_core_call to = core_call(call, &at);
    to.dz = call->dy;
    if (conv->pool2 || conv->relu) {
        float *dz = (float *)(scratch + at.z);
        lt_launch_expand(cuda->stream, *conv, call->n, call->dy, call->mask, dz);
        LT_LAUNCHED("expand");
        to.dz = dz;
    }
    if (call->db) {
        LT_TRY(bias_gradient(ctx, cuda, call, to.dz, (float *)(scratch + at.bias)));
    }
    LT_TRY(upsampled(ctx, cuda, core, call, &to));
    to.dw = call->dw;
    LT_TRY(core->weight_gradient(ctx, cuda, &to));
    if (!call->dx) {
        goto done;
    }
    int apart = conv->up2 && !core_upsamples(cuda, core, conv);
    to.du = apart ? call->scratch : call->dx;
    to.add = apart ? 0 : call->dx_add;
    LT_TRY(core->input_gradient(ctx, cuda, &to));
    if (apart) {
        lt_launch_upsample_back(cuda->stream, call->n, conv->H, conv->W, conv->C, to.du, call->dx,
                                call->dx_add);
        LT_LAUNCHED("upsample_back");
    }
done:
    return status;
}
