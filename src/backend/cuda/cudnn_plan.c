/* cudnn_plan.c: descriptors and the choice of algorithms (see cudnn_plan.h).
 *
 * cuDNN's heuristics are asked, not its stopwatch: a choice by measured time could differ from run to run,
 * and with it the bits. Algorithms that are not deterministic, use tensor cores or want too much workspace
 * are left out. Tensors as they are (NHWC) come first, then the same on tensors rewritten as NCHW.
 */
#include "backend/cuda/cudnn_plan.h"

#ifdef LATENT_HAVE_CUDNN

#include <stdlib.h>
#include <string.h>

#define LT_CUDNN(call)                                                                                       \
    do {                                                                                                     \
        cudnnStatus_t result_ = cuda->libraries->cudnn.call;                                                 \
        if (result_ != CUDNN_STATUS_SUCCESS) {                                                               \
            status = lt_cudnn_fail(ctx, cuda, result_, #call);                                               \
            goto done;                                                                                       \
        }                                                                                                    \
    } while (0)

latent_status lt_cudnn_fail(latent_context *ctx, lt_cuda *cuda, cudnnStatus_t result, const char *call) {
    return lt_fail(ctx, LATENT_ERROR_DEVICE, "cuDNN: %s: %s", call,
                   cuda->libraries->cudnn.cudnnGetErrorString(result));
}

void lt_cudnn_tensor_bytes(const lt_conv *conv, int n, size_t bytes[3]) {
    int transposed = lt_is_k4s2(conv);
    size_t image = (size_t)n * sizeof(float), C = (size_t)conv->C, K = (size_t)conv->K;
    size_t taps = transposed ? 16 : (size_t)conv->R * (size_t)conv->S;
    size_t in = transposed ? (size_t)conv->H * (size_t)conv->W : (size_t)conv->UH * (size_t)conv->UW;
    bytes[0] = image * in * C;
    bytes[1] = image * (size_t)conv->OH * (size_t)conv->OW * K;
    bytes[2] = taps * C * K * sizeof(float);
}

size_t lt_cudnn_workspace(const lt_conv *conv, int n) {
    size_t bytes[3];
    lt_cudnn_tensor_bytes(conv, n, bytes);
    return lt_cuda_round(((size_t)4 << 20) + 4 * (bytes[0] + bytes[1] + bytes[2]));
}

static void tensor_free(lt_libraries *libraries, cudnnTensorDescriptor_t tensor) {
    if (tensor) {
        (void)libraries->cudnn.cudnnDestroyTensorDescriptor(tensor);
    }
}

static void plan_free(lt_libraries *libraries, lt_cudnn_plan *plan) {
    for (int i = 0; i < 2; i++) {
        tensor_free(libraries, plan->x[i]);
        tensor_free(libraries, plan->y[i]);
        tensor_free(libraries, plan->w_tensor[i]);
        if (plan->w[i]) {
            (void)libraries->cudnn.cudnnDestroyFilterDescriptor(plan->w[i]);
        }
    }
    if (plan->convolution) {
        (void)libraries->cudnn.cudnnDestroyConvolutionDescriptor(plan->convolution);
    }
    free(plan);
}

void lt_cudnn_plans_free(lt_libraries *libraries) {
    while (libraries->cudnn.plans) {
        lt_cudnn_plan *next = libraries->cudnn.plans->next;
        plan_free(libraries, libraries->cudnn.plans);
        libraries->cudnn.plans = next;
    }
}

/* N C H W of a tensor, whatever its order in memory. */
typedef struct dims {
    int n, c, h, w;
} dims;

static size_t bytes_of(dims d) {
    return (size_t)d.n * (size_t)d.c * (size_t)d.h * (size_t)d.w * sizeof(float);
}

static latent_status describe(latent_context *ctx, lt_cuda *cuda, lt_cudnn_plan *plan) {
    static const cudnnTensorFormat_t formats[2] = {CUDNN_TENSOR_NHWC, CUDNN_TENSOR_NCHW};
    const lt_conv *v = &plan->conv;
    latent_status status = LATENT_OK;
    dims x = {plan->n, v->C, v->UH, v->UW}, y = {plan->n, v->K, v->OH, v->OW}, w = {v->K, v->C, v->R, v->S};
    int pad_h = v->pad_top, pad_w = v->pad_left, stride = v->stride;
    if (plan->transposed) {
        x = (dims){plan->n, v->K, v->OH, v->OW};
        y = (dims){plan->n, v->C, v->H, v->W};
        w = (dims){v->C, v->K, 4, 4};
        stride = 2;
    }
    for (int i = 0; i < 2; i++) {
        LT_CUDNN(cudnnCreateTensorDescriptor(&plan->x[i]));
        LT_CUDNN(cudnnSetTensor4dDescriptor(plan->x[i], formats[i], CUDNN_DATA_FLOAT, x.n, x.c, x.h, x.w));
        LT_CUDNN(cudnnCreateTensorDescriptor(&plan->y[i]));
        LT_CUDNN(cudnnSetTensor4dDescriptor(plan->y[i], formats[i], CUDNN_DATA_FLOAT, y.n, y.c, y.h, y.w));
        LT_CUDNN(cudnnCreateTensorDescriptor(&plan->w_tensor[i]));
        LT_CUDNN(
            cudnnSetTensor4dDescriptor(plan->w_tensor[i], formats[i], CUDNN_DATA_FLOAT, w.n, w.c, w.h, w.w));
        LT_CUDNN(cudnnCreateFilterDescriptor(&plan->w[i]));
        LT_CUDNN(cudnnSetFilter4dDescriptor(plan->w[i], CUDNN_DATA_FLOAT, formats[i], w.n, w.c, w.h, w.w));
    }
    LT_CUDNN(cudnnCreateConvolutionDescriptor(&plan->convolution));
    LT_CUDNN(cudnnSetConvolution2dDescriptor(plan->convolution, pad_h, pad_w, stride, stride, 1, 1,
                                             CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    LT_CUDNN(cudnnSetConvolutionMathType(plan->convolution, CUDNN_FMA_MATH));
    plan->x_bytes = bytes_of(x);
    plan->y_bytes = bytes_of(y);
    plan->w_bytes = bytes_of(w);
done:
    return status;
}

static void consider(lt_cudnn_plan *plan, lt_cudnn_way way, int planar, int algorithm, cudnnStatus_t result,
                     cudnnDeterminism_t determinism, cudnnMathType_t math, size_t workspace) {
    int strict = math == CUDNN_FMA_MATH || math == CUDNN_DEFAULT_MATH;
    int *count = &plan->choice_count[way];
    if (result == CUDNN_STATUS_SUCCESS && determinism == CUDNN_DETERMINISTIC && strict &&
        workspace <= lt_cudnn_workspace(&plan->conv, plan->n) && *count < LT_CUDNN_CHOICES) {
        plan->choices[way][*count] = (lt_cudnn_choice){algorithm, planar, workspace};
        (*count)++;
    }
}

/* Collects what cuDNN offers in one format. A question it cannot answer is an empty offer. */
static void collect(lt_cuda *cuda, lt_cudnn_plan *plan, int i) {
    lt_libraries *lib = cuda->libraries;
    cudnnHandle_t handle = lib->cudnn.handle;
    cudnnConvolutionFwdAlgoPerf_t forward[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
    cudnnConvolutionBwdDataAlgoPerf_t data[CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT];
    cudnnConvolutionBwdFilterAlgoPerf_t filter[CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT];
    int n = 0;
    if (lib->cudnn.cudnnGetConvolutionForwardAlgorithm_v7(handle, plan->x[i], plan->w[i], plan->convolution,
                                                          plan->y[i], CUDNN_CONVOLUTION_FWD_ALGO_COUNT, &n,
                                                          forward) != CUDNN_STATUS_SUCCESS) {
        n = 0;
    }
    for (int j = 0; j < n; j++) {
        consider(plan, LT_CUDNN_FORWARD, i, (int)forward[j].algo, forward[j].status, forward[j].determinism,
                 forward[j].mathType, forward[j].memory);
    }
    if (lib->cudnn.cudnnGetConvolutionBackwardDataAlgorithm_v7(
            handle, plan->w[i], plan->y[i], plan->convolution, plan->x[i],
            CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT, &n, data) != CUDNN_STATUS_SUCCESS) {
        n = 0;
    }
    for (int j = 0; j < n; j++) {
        consider(plan, LT_CUDNN_DATA, i, (int)data[j].algo, data[j].status, data[j].determinism,
                 data[j].mathType, data[j].memory);
    }
    if (lib->cudnn.cudnnGetConvolutionBackwardFilterAlgorithm_v7(
            handle, plan->x[i], plan->y[i], plan->convolution, plan->w[i],
            CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT, &n, filter) != CUDNN_STATUS_SUCCESS) {
        n = 0;
    }
    for (int j = 0; j < n; j++) {
        consider(plan, LT_CUDNN_FILTER, i, (int)filter[j].algo, filter[j].status, filter[j].determinism,
                 filter[j].mathType, filter[j].memory);
    }
}

latent_status lt_cudnn_plan_find(latent_context *ctx, lt_cuda *cuda, const lt_conv *conv, int n,
                                 lt_cudnn_plan **out) {
    latent_status status = LATENT_OK;
    lt_cudnn_plan *plan = cuda->libraries->cudnn.plans;
    while (plan && (plan->n != n || memcmp(&plan->conv, conv, sizeof *conv) != 0)) {
        plan = plan->next;
    }
    *out = plan;
    if (plan) {
        return LATENT_OK;
    }
    LT_TRY(lt_calloc(ctx, 1, sizeof *plan, "a convolution's plan", (void **)&plan));
    plan->conv = *conv;
    plan->n = n;
    plan->transposed = lt_is_k4s2(conv);
    LT_TRY(describe(ctx, cuda, plan));
    collect(cuda, plan, 0);
    collect(cuda, plan, 1);
    plan->next = cuda->libraries->cudnn.plans;
    cuda->libraries->cudnn.plans = plan;
    *out = plan;
    plan = NULL;
done:
    if (plan) {
        plan_free(cuda->libraries, plan);
    }
    return status;
}

#else
typedef int lt_no_cudnn_plan; /* a file has a declaration */
#endif
