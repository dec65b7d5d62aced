/* libraries.h: cuBLAS and cuDNN, opened at run time when a generation wants them.
 *
 * They are hundreds of megabytes that most runs never touch, and a program linked to them would not start
 * on a machine that lacks them. So the build needs their headers only; the functions used are listed here
 * and looked up by name, and a library that is missing is a sentence.
 */
#ifndef LT_BACKEND_CUDA_LIBRARIES_H
#define LT_BACKEND_CUDA_LIBRARIES_H

#include "backend/cuda/cuda.h"

#ifdef LATENT_HAVE_CUBLAS
#include <cublas_v2.h>

/* clang-format off */
#define LT_CUBLAS_FUNCTIONS(each)                                                                            \
    each(cublasCreate_v2)                                                                                    \
    each(cublasDestroy_v2)                                                                                   \
    each(cublasSetStream_v2)                                                                                 \
    each(cublasSetWorkspace_v2)                                                                              \
    each(cublasSetMathMode)                                                                                  \
    each(cublasSgemm_v2)                                                                                     \
    each(cublasGemmEx)                                                                                       \
    each(cublasGetStatusString)
/* clang-format on */
#endif

#ifdef LATENT_HAVE_CUDNN
#include <cudnn.h>

/* clang-format off */
#define LT_CUDNN_FUNCTIONS(each)                                                                             \
    each(cudnnCreate)                                                                                        \
    each(cudnnDestroy)                                                                                       \
    each(cudnnSetStream)                                                                                     \
    each(cudnnGetErrorString)                                                                                \
    each(cudnnCreateTensorDescriptor)                                                                        \
    each(cudnnDestroyTensorDescriptor)                                                                       \
    each(cudnnSetTensor4dDescriptor)                                                                         \
    each(cudnnCreateFilterDescriptor)                                                                        \
    each(cudnnDestroyFilterDescriptor)                                                                       \
    each(cudnnSetFilter4dDescriptor)                                                                         \
    each(cudnnCreateConvolutionDescriptor)                                                                   \
    each(cudnnDestroyConvolutionDescriptor)                                                                  \
    each(cudnnSetConvolution2dDescriptor)                                                                    \
    each(cudnnSetConvolutionMathType)                                                                        \
    each(cudnnGetConvolutionForwardAlgorithm_v7)                                                             \
    each(cudnnGetConvolutionBackwardDataAlgorithm_v7)                                                        \
    each(cudnnGetConvolutionBackwardFilterAlgorithm_v7)                                                      \
    each(cudnnConvolutionForward)                                                                            \
    each(cudnnConvolutionBackwardData)                                                                       \
    each(cudnnConvolutionBackwardFilter)                                                                     \
    each(cudnnTransformTensor)
/* clang-format on */
#endif

#define LT_LIBRARY_FIELD(function) __typeof__(function) *function;

struct lt_libraries {
#ifdef LATENT_HAVE_CUBLAS
    struct {
        void *library;
        cublasHandle_t handle;
        void *workspace; /* ours, so that a graph may hold its address and the choice of kernels is fixed */
        LT_CUBLAS_FUNCTIONS(LT_LIBRARY_FIELD)
    } cublas;
#endif
#ifdef LATENT_HAVE_CUDNN
    struct {
        void *library;
        cudnnHandle_t handle;
        struct lt_cudnn_plan *plans; /* cudnn.c: what was decided for each shape */
        LT_CUDNN_FUNCTIONS(LT_LIBRARY_FIELD)
    } cudnn;
#endif
    int unused; /* a struct has a member */
};

latent_status lt_libraries_cublas(latent_context *ctx, lt_cuda *cuda);
latent_status lt_libraries_cudnn(latent_context *ctx, lt_cuda *cuda);
void lt_libraries_close(lt_libraries *libraries);
#ifdef LATENT_HAVE_CUDNN
void lt_cudnn_plans_free(lt_libraries *libraries); /* cudnn.c */
#endif

#endif
