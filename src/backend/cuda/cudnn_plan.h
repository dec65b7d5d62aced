/* cudnn_plan.h: what cuDNN is asked to do for one shape and batch, and with which of its algorithms.
 *
 * A plan is one cuDNN convolution X -> Y with filter W. An ordinary conv is that with X = u and Y = z. An
 * upsampling 3x3 conv is its transposed form (k4s2.cuh): X = z, Y = x, so the op's forward pass is cuDNN's
 * backward-data and the other way round.
 */
#ifndef LT_BACKEND_CUDA_CUDNN_PLAN_H
#define LT_BACKEND_CUDA_CUDNN_PLAN_H

#include "backend/cuda/generation.h"
#include "backend/cuda/libraries.h"

#ifdef LATENT_HAVE_CUDNN

/* cuDNN's three directions. */
typedef enum lt_cudnn_way { LT_CUDNN_FORWARD, LT_CUDNN_DATA, LT_CUDNN_FILTER, LT_CUDNN_WAYS } lt_cudnn_way;

enum { LT_CUDNN_CHOICES = 16 };

/* An algorithm cuDNN says is deterministic and fp32; planar: on tensors rewritten as NCHW. */
typedef struct lt_cudnn_choice {
    int algorithm;
    int planar;
    size_t workspace;
} lt_cudnn_choice;

typedef struct lt_cudnn_plan {
    struct lt_cudnn_plan *next;
    lt_conv conv; /* the key, with n */
    int n;
    int transposed;
    cudnnTensorDescriptor_t x[2], y[2], w_tensor[2]; /* [planar] */
    cudnnFilterDescriptor_t w[2];
    cudnnConvolutionDescriptor_t convolution;
    size_t x_bytes, y_bytes, w_bytes;
    lt_cudnn_choice choices[LT_CUDNN_WAYS][LT_CUDNN_CHOICES]; /* best first */
    int choice_count[LT_CUDNN_WAYS];
    int chosen[LT_CUDNN_WAYS]; /* the first that did not refuse */
} lt_cudnn_plan;

/* Workspace that an algorithm may have, in bytes: some, and a few times the tensors. Grows with n. */
size_t lt_cudnn_workspace(const lt_conv *conv, int n);
/* Bytes of the three tensors, in the order in, out, weights. */
void lt_cudnn_tensor_bytes(const lt_conv *conv, int n, size_t bytes[3]);
/* The plan for the shape, made at first sight. */
latent_status lt_cudnn_plan_find(latent_context *ctx, lt_cuda *cuda, const lt_conv *conv, int n,
                                 lt_cudnn_plan **out);
latent_status lt_cudnn_fail(latent_context *ctx, lt_cuda *cuda, cudnnStatus_t result, const char *call);

#endif
#endif
