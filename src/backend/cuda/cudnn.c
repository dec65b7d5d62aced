/* cudnn.c: the generation `cudnn`: NVIDIA's convolutions behind the same interface, the library peer.
 *
 * What it has that we do not: kernels written in machine code, tuned for each chip. What it lacks: it
 * cannot fuse a pool, so relu and pool stay passes of their own; and it knows no upsampling conv. That is
 * given to it as the transposed 4x4 conv of stride 2 with summed weights (k4s2.cuh), which costs 16
 * products where the upsampled image would cost 36. fp32 strictly (CUDNN_FMA_MATH), deterministic
 * algorithms only. It knows no uneven padding either: such ops go to the tiled kernels.
 */
#include "backend/cuda/cudnn_plan.h"

#ifdef LATENT_HAVE_CUDNN

static int even_padding(const lt_conv *conv) {
    return conv->pad_top == conv->pad_bottom && conv->pad_left == conv->pad_right;
}

static int upsamples(lt_cuda *cuda, const lt_conv *conv) {
    (void)cuda;
    return lt_is_k4s2(conv);
}

static const char *variant(lt_cuda *cuda, const lt_conv *conv, lt_pass pass) {
    if (!even_padding(conv)) {
        return lt_core_tiled.variant(cuda, conv, pass);
    }
    return lt_is_k4s2(conv) ? "cuDNN, transposed 4x4 stride 2" : "cuDNN";
}

/* scratch: workspace; tensors rewritten as NCHW; the gradient of the summed weights. */
static size_t planar_bytes(const lt_conv *conv, int n) {
    size_t bytes[3];
    lt_cudnn_tensor_bytes(conv, n, bytes);
    return lt_cuda_round(bytes[0]) + lt_cuda_round(bytes[1]) + lt_cuda_round(bytes[2]);
}

static size_t packed_bytes(const lt_conv *conv) {
    return lt_is_k4s2(conv) ? 16 * (size_t)conv->C * (size_t)conv->K * sizeof(float) : 0;
}

static void memory(lt_cuda *cuda, const lt_conv *conv, int batch, int training, size_t *persist,
                   size_t *scratch) {
    if (!even_padding(conv)) {
        lt_core_tiled.memory(cuda, conv, batch, training, persist, scratch);
        return;
    }
    *persist = packed_bytes(conv);
    *scratch = lt_cudnn_workspace(conv, batch) + planar_bytes(conv, batch) + packed_bytes(conv);
}

static latent_status prepare(latent_context *ctx, lt_cuda *cuda, const lt_conv_call *call) {
    latent_status status = LATENT_OK;
    if (lt_is_k4s2(call->conv)) {
        lt_launch_k4s2_pack(cuda->stream, call->conv->K, call->conv->C, call->w, call->persist);
        LT_LAUNCHED("k4s2_pack");
    }
done:
    return status;
}

/* ---- One cuDNN call ---------------------------------------------------------------------------- */

typedef struct job {
    lt_cudnn_way way;
    const float *x, *w, *y; /* the two that are read; the third is `out` */
    float *out;
    int add;
    char *scratch;
} job;

static cudnnStatus_t convolve(lt_cuda *cuda, const lt_cudnn_plan *plan, const job *j,
                              const lt_cudnn_choice *choice, float beta) {
    lt_libraries *lib = cuda->libraries;
    cudnnHandle_t handle = lib->cudnn.handle;
    const float one = 1;
    int i = choice->planar;
    switch (j->way) {
    case LT_CUDNN_FORWARD:
        return lib->cudnn.cudnnConvolutionForward(handle, &one, plan->x[i], j->x, plan->w[i], j->w,
                                                  plan->convolution,
                                                  (cudnnConvolutionFwdAlgo_t)choice->algorithm, j->scratch,
                                                  choice->workspace, &beta, plan->y[i], j->out);
    case LT_CUDNN_DATA:
        return lib->cudnn.cudnnConvolutionBackwardData(
            handle, &one, plan->w[i], j->w, plan->y[i], j->y, plan->convolution,
            (cudnnConvolutionBwdDataAlgo_t)choice->algorithm, j->scratch, choice->workspace, &beta,
            plan->x[i], j->out);
    default:
        return lib->cudnn.cudnnConvolutionBackwardFilter(
            handle, &one, plan->x[i], j->x, plan->y[i], j->y, plan->convolution,
            (cudnnConvolutionBwdFilterAlgo_t)choice->algorithm, j->scratch, choice->workspace, &beta,
            plan->w[i], j->out);
    }
}

/* The same on tensors rewritten as NCHW: two there, one back, which also does the adding. */
static cudnnStatus_t convolve_planar(lt_cuda *cuda, const lt_cudnn_plan *plan, const job *j,
                                     const lt_cudnn_choice *choice) {
    lt_libraries *lib = cuda->libraries;
    const float one = 1, zero = 0, beta = j->add ? 1 : 0;
    char *at = j->scratch + lt_cudnn_workspace(&plan->conv, plan->n);
    float *x = (float *)at, *y = (float *)(at + lt_cuda_round(plan->x_bytes));
    float *w = (float *)((char *)y + lt_cuda_round(plan->y_bytes));
    const float *given[3] = {j->x, j->y, j->w};
    float *planar[3] = {x, y, w};
    const cudnnTensorDescriptor_t *shape[3] = {plan->x, plan->y, plan->w_tensor};
    int made = j->way == LT_CUDNN_DATA ? 0 : j->way == LT_CUDNN_FORWARD ? 1 : 2;
    cudnnStatus_t result = CUDNN_STATUS_SUCCESS;
    for (int t = 0; t < 3 && result == CUDNN_STATUS_SUCCESS; t++) {
        if (t != made) {
            result = lib->cudnn.cudnnTransformTensor(lib->cudnn.handle, &one, shape[t][0], given[t], &zero,
                                                     shape[t][1], planar[t]);
        }
    }
    if (result == CUDNN_STATUS_SUCCESS) {
        job inner = {j->way, x, w, y, planar[made], 0, j->scratch};
        result = convolve(cuda, plan, &inner, choice, 0);
    }
    if (result == CUDNN_STATUS_SUCCESS) {
        result = lib->cudnn.cudnnTransformTensor(lib->cudnn.handle, &one, shape[made][1], planar[made], &beta,
                                                 shape[made][0], j->out);
    }
    return result;
}

/* An algorithm may refuse a shape that the heuristics promised; then it is the next one's turn, for good. */
static latent_status run(latent_context *ctx, lt_cuda *cuda, lt_cudnn_plan *plan, const job *j) {
    static const char *const names[] = {"cudnnConvolutionForward", "cudnnConvolutionBackwardData",
                                        "cudnnConvolutionBackwardFilter"};
    int *chosen = &plan->chosen[j->way];
    cudnnStatus_t result = CUDNN_STATUS_NOT_SUPPORTED;
    cuda->last_kernel = names[j->way];
    for (; *chosen < plan->choice_count[j->way]; (*chosen)++) {
        const lt_cudnn_choice *choice = &plan->choices[j->way][*chosen];
        result = choice->planar ? convolve_planar(cuda, plan, j, choice)
                                : convolve(cuda, plan, j, choice, j->add ? 1.0f : 0.0f);
        if (result == CUDNN_STATUS_SUCCESS) {
            lt_cuda_mark_kernel(cuda, names[j->way]);
            return LATENT_OK;
        }
    }
    return lt_cudnn_fail(ctx, cuda, result, names[j->way]);
}

/* ---- The core ---------------------------------------------------------------------------------- */

static latent_status forward(latent_context *ctx, lt_cuda *cuda, const lt_core_call *call) {
    latent_status status = LATENT_OK;
    lt_cudnn_plan *plan = NULL;
    if (!even_padding(call->conv)) {
        lt_conv plain = *call->conv;
        lt_core_call to = *call;
        plain.relu = 0; /* bias and relu follow as for every other op of this generation */
        to.conv = &plain;
        to.b = NULL;
        to.mask = NULL;
        return lt_core_tiled.forward(ctx, cuda, &to);
    }
    LT_TRY(lt_cudnn_plan_find(ctx, cuda, call->conv, call->n, &plan));
    job there = {LT_CUDNN_FORWARD, call->u, call->w, NULL, call->z, 0, call->scratch};
    job transposed = {LT_CUDNN_DATA, NULL, call->persist, call->u, call->z, 0, call->scratch};
    LT_TRY(run(ctx, cuda, plan, plan->transposed ? &transposed : &there));
done:
    return status;
}

static latent_status input_gradient(latent_context *ctx, lt_cuda *cuda, const lt_core_call *call) {
    latent_status status = LATENT_OK;
    lt_cudnn_plan *plan = NULL;
    if (!even_padding(call->conv)) {
        return lt_core_tiled.input_gradient(ctx, cuda, call);
    }
    LT_TRY(lt_cudnn_plan_find(ctx, cuda, call->conv, call->n, &plan));
    job there = {LT_CUDNN_DATA, NULL, call->w, call->dz, call->du, call->add, call->scratch};
    job transposed = {LT_CUDNN_FORWARD, call->dz, call->persist, NULL, call->du, call->add, call->scratch};
    LT_TRY(run(ctx, cuda, plan, plan->transposed ? &transposed : &there));
done:
    return status;
}

static latent_status weight_gradient(latent_context *ctx, lt_cuda *cuda, const lt_core_call *call) {
    const lt_conv *conv = call->conv;
    latent_status status = LATENT_OK;
    lt_cudnn_plan *plan = NULL;
    if (!even_padding(conv)) {
        return lt_core_tiled.weight_gradient(ctx, cuda, call);
    }
    LT_TRY(lt_cudnn_plan_find(ctx, cuda, conv, call->n, &plan));
    if (!plan->transposed) {
        job there = {LT_CUDNN_FILTER, call->u, NULL, call->dz, call->dw, 1, call->scratch};
        LT_TRY(run(ctx, cuda, plan, &there));
        goto done;
    }
    char *scratch = call->scratch;
    float *packed = (float *)(scratch + lt_cudnn_workspace(conv, call->n) + planar_bytes(conv, call->n));
    job transposed = {LT_CUDNN_FILTER, call->dz, NULL, call->u, packed, 0, scratch};
    LT_TRY(run(ctx, cuda, plan, &transposed));
    lt_launch_k4s2_unpack(cuda->stream, conv->K, conv->C, packed, call->dw);
    LT_LAUNCHED("k4s2_unpack");
done:
    return status;
}

latent_status lt_cudnn_open(latent_context *ctx, lt_cuda *cuda) {
    return lt_libraries_cudnn(ctx, cuda);
}

const lt_core lt_core_cudnn = {
    .name = "cudnn",
    .epilogue = LT_CORE_PLAIN,
    .upsamples = upsamples,
    .variant = variant,
    .memory = memory,
    .prepare = prepare,
    .forward = forward,
    .weight_gradient = weight_gradient,
    .input_gradient = input_gradient,
};

#else
typedef int lt_no_cudnn; /* a file has a declaration */
#endif
