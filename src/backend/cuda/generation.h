/* generation.h: the kernel generations, ways to compute the same ops, behind one interface.
 *
 *   basic   one thread per output, from global memory                         the naive port
 *   tiled   tiles in shared memory, blocks of outputs in registers            10x fewer loads
 *   fused   larger tiles, and nothing else: pool, upsample, relu, loss and    no pass over memory that
 *           the way back through them happen inside the convolutions          only moves numbers
 *   gemm    im2col and cuBLAS                                                 the usual shortcut
 *   cudnn   cuDNN's convolutions                                              the library peer
 *   tensor  bf16 operands on tensor cores, forward only                       for models that are trained
 *
 * A generation is one of two things. Most are a `core`: the bare convolution and its two gradients, around
 * which staged.c runs upsample, bias, relu and pool as kernels of their own. `fused` and `tensor` are
 * `whole`: they take an op as it comes. Where a generation has no kernel for a shape it hands the op to a
 * simpler one; the mask has the same format everywhere (kernels.h), so forward and backward need not be of
 * one generation.
 */
#ifndef LT_BACKEND_CUDA_GENERATION_H
#define LT_BACKEND_CUDA_GENERATION_H

#include "backend/cuda/cuda.h"

/* What a core is given: u is x after the upsample (or x itself where the core upsamples), z the plain
 * convolution's output, both in backend memory. */
typedef struct lt_core_call {
    const lt_conv *conv;
    int n;
    const float *u, *w, *b;
    float *z;
    uint8_t *mask; /* forward, for cores that do relu: not NULL where the mask is this core's to write */
    const float *dz;
    float *du; /* input_gradient */
    int add;   /* add to du */
    float *dw; /* weight_gradient: added to */
    void *persist, *scratch;
} lt_core_call;

/* How much of bias and relu a core's forward does itself. */
typedef enum lt_core_epilogue { LT_CORE_PLAIN, LT_CORE_BIAS, LT_CORE_BIAS_RELU } lt_core_epilogue;

typedef struct lt_core {
    const char *name;
    lt_core_epilogue epilogue;
    /* 1: the core reads x itself where the conv has up2. NULL: never. */
    int (*upsamples)(lt_cuda *cuda, const lt_conv *conv);
    const char *(*variant)(lt_cuda *cuda, const lt_conv *conv, lt_pass pass);
    /* Its own bytes, in persist and scratch (which stages share), for a batch. */
    void (*memory)(lt_cuda *cuda, const lt_conv *conv, int batch, int training, size_t *persist,
                   size_t *scratch);
    latent_status (*prepare)(latent_context *ctx, lt_cuda *cuda, const lt_conv_call *call); /* or NULL */
    latent_status (*forward)(latent_context *ctx, lt_cuda *cuda, const lt_core_call *call);
    latent_status (*weight_gradient)(latent_context *ctx, lt_cuda *cuda, const lt_core_call *call);
    latent_status (*input_gradient)(latent_context *ctx, lt_cuda *cuda, const lt_core_call *call);
} lt_core;

typedef struct lt_whole {
    const char *(*variant)(lt_cuda *cuda, const lt_conv *conv, lt_pass pass);
    void (*memory)(lt_cuda *cuda, const lt_conv *conv, int batch, int training, lt_op_memory *out);
    int (*fuses_loss)(const lt_conv *conv);
    latent_status (*prepare)(latent_context *ctx, lt_cuda *cuda, const lt_conv_call *call);
    latent_status (*forward)(latent_context *ctx, lt_cuda *cuda, const lt_conv_call *call);
    latent_status (*backward)(latent_context *ctx, lt_cuda *cuda, const lt_conv_call *call);
} lt_whole;

struct lt_generation {
    const char *name;
    const lt_core *core; /* one of the two */
    const lt_whole *whole;
    /* Opens what it needs beyond the device; NULL: nothing. */
    latent_status (*open)(latent_context *ctx, lt_cuda *cuda);
};

extern const lt_core lt_core_basic, lt_core_tiled;
extern const lt_whole lt_whole_fused, lt_whole_tensor;
latent_status lt_tensor_open(latent_context *ctx, lt_cuda *cuda);
#ifdef LATENT_HAVE_CUBLAS
extern const lt_core lt_core_gemm;
latent_status lt_gemm_open(latent_context *ctx, lt_cuda *cuda);
#endif
#ifdef LATENT_HAVE_CUDNN
extern const lt_core lt_core_cudnn;
latent_status lt_cudnn_open(latent_context *ctx, lt_cuda *cuda);
#endif

/* generation.c: chooses by name (NULL: the best) and opens it. */
latent_status lt_generation_open(latent_context *ctx, lt_cuda *cuda, const char *name);

/* staged.c: an op as a sequence of kernels around a core. */
void lt_staged_memory(lt_cuda *cuda, const lt_core *core, const lt_conv *conv, int batch, int training,
                      lt_op_memory *out);
latent_status lt_staged_forward(latent_context *ctx, lt_cuda *cuda, const lt_core *core,
                                const lt_conv_call *call);
latent_status lt_staged_backward(latent_context *ctx, lt_cuda *cuda, const lt_core *core,
                                 const lt_conv_call *call);
/* The mask's bytes: none where the gradient goes everywhere. */
size_t lt_mask_bytes(const lt_conv *conv, int batch);

#endif
