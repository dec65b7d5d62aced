/* libraries.c: opens cuBLAS and cuDNN by name and looks up what is used of them (see libraries.h). */
#include "backend/cuda/libraries.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* The version is part of the file's name: the headers of this build fit that one. */
#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)

#if defined(LATENT_HAVE_CUBLAS) || defined(LATENT_HAVE_CUDNN)
static latent_status make_room(latent_context *ctx, lt_cuda *cuda) {
    return cuda->libraries
               ? LATENT_OK
               : lt_calloc(ctx, 1, sizeof *cuda->libraries, "the libraries", (void **)&cuda->libraries);
}

static latent_status open_library(latent_context *ctx, const char *kernels, const char *file, void **out) {
    *out = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!*out) {
        const char *why = dlerror();
        return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED,
                       "the kernels '%s' need %s, which cannot be opened: %s; LD_LIBRARY_PATH may name its "
                       "folder",
                       kernels, file, why ? why : "unknown reason");
    }
    return LATENT_OK;
}

static latent_status find(latent_context *ctx, void *library, const char *file, const char *name, void *out) {
    /* A function's address travels through void *, which POSIX grants and ISO C does not. */
    void *symbol = dlsym(library, name);
    *(void **)out = symbol;
    return symbol ? LATENT_OK
                  : lt_fail(ctx, LATENT_ERROR_UNSUPPORTED, "%s has no function %s: it is of another version",
                            file, name);
}
#endif

#ifdef LATENT_HAVE_CUBLAS
enum { CUBLAS_WORKSPACE = 32 << 20 }; /* what cuBLAS asks for on Hopper */

static void close_cublas(lt_libraries *libraries) {
    if (libraries->cublas.handle) {
        (void)libraries->cublas.cublasDestroy_v2(libraries->cublas.handle);
    }
    (void)cudaFree(libraries->cublas.workspace);
    libraries->cublas.handle = NULL;
    libraries->cublas.workspace = NULL;
}

/* The stream first: setting it forgets the workspace. Pedantic is the mode of standard fp32 arithmetic: in
 * the default one the environment has a say (CUBLAS_EMULATE_SINGLE_PRECISION makes three bf16 of every
 * float). */
static cublasStatus_t set_up(lt_cuda *cuda) {
    lt_libraries *libraries = cuda->libraries;
    cublasHandle_t handle = libraries->cublas.handle;
    cublasStatus_t result = libraries->cublas.cublasSetStream_v2(handle, cuda->stream);
    if (result == CUBLAS_STATUS_SUCCESS) {
        result =
            libraries->cublas.cublasSetWorkspace_v2(handle, libraries->cublas.workspace, CUBLAS_WORKSPACE);
    }
    if (result == CUBLAS_STATUS_SUCCESS) {
        result = libraries->cublas.cublasSetMathMode(handle, CUBLAS_PEDANTIC_MATH);
    }
    return result;
}

latent_status lt_libraries_cublas(latent_context *ctx, lt_cuda *cuda) {
    static const char file[] = "libcublas.so." TEXT(CUBLAS_VER_MAJOR);
    latent_status status = LATENT_OK;
    LT_TRY(make_room(ctx, cuda));
    if (cuda->libraries->cublas.handle) {
        goto done;
    }
    LT_TRY(open_library(ctx, "gemm", file, &cuda->libraries->cublas.library));
#define FIND(function)                                                                                       \
    LT_TRY(find(ctx, cuda->libraries->cublas.library, file, #function, &cuda->libraries->cublas.function));
    LT_CUBLAS_FUNCTIONS(FIND)
#undef FIND
    cublasStatus_t result = cuda->libraries->cublas.cublasCreate_v2(&cuda->libraries->cublas.handle);
    if (result != CUBLAS_STATUS_SUCCESS) {
        cuda->libraries->cublas.handle = NULL;
        status = lt_fail(ctx, LATENT_ERROR_DEVICE, "cuBLAS does not start: %s",
                         cuda->libraries->cublas.cublasGetStatusString(result));
        goto done;
    }
    LT_TRY(lt_cuda_alloc(ctx, &cuda->base, CUBLAS_WORKSPACE, &cuda->libraries->cublas.workspace));
    result = set_up(cuda);
    if (result != CUBLAS_STATUS_SUCCESS) {
        status = lt_fail(ctx, LATENT_ERROR_DEVICE, "cuBLAS cannot be set up: %s",
                         cuda->libraries->cublas.cublasGetStatusString(result));
    }
done:
    if (status != LATENT_OK && cuda->libraries) { /* half a handle would pass for a whole one next time */
        close_cublas(cuda->libraries);
    }
    return status;
}
#endif

#ifdef LATENT_HAVE_CUDNN
latent_status lt_libraries_cudnn(latent_context *ctx, lt_cuda *cuda) {
    static const char file[] = "libcudnn.so." TEXT(CUDNN_MAJOR);
    latent_status status = LATENT_OK;
    LT_TRY(make_room(ctx, cuda));
    if (cuda->libraries->cudnn.handle) {
        goto done;
    }
    LT_TRY(open_library(ctx, "cudnn", file, &cuda->libraries->cudnn.library));
#define FIND(function)                                                                                       \
    LT_TRY(find(ctx, cuda->libraries->cudnn.library, file, #function, &cuda->libraries->cudnn.function));
    LT_CUDNN_FUNCTIONS(FIND)
#undef FIND
    cudnnHandle_t handle = NULL;
    cudnnStatus_t result = cuda->libraries->cudnn.cudnnCreate(&handle);
    if (result == CUDNN_STATUS_SUCCESS) {
        result = cuda->libraries->cudnn.cudnnSetStream(handle, cuda->stream);
        if (result == CUDNN_STATUS_SUCCESS) {
            cuda->libraries->cudnn.handle = handle;
        } else {
            (void)cuda->libraries->cudnn.cudnnDestroy(handle);
        }
    }
    if (result != CUDNN_STATUS_SUCCESS) {
        status = lt_fail(ctx, LATENT_ERROR_DEVICE, "cuDNN does not start: %s",
                         cuda->libraries->cudnn.cudnnGetErrorString(result));
    }
done:
    return status;
}
#endif

void lt_libraries_close(lt_libraries *libraries) {
    if (!libraries) {
        return;
    }
#ifdef LATENT_HAVE_CUBLAS
    close_cublas(libraries);
#endif
#ifdef LATENT_HAVE_CUDNN
    lt_cudnn_plans_free(libraries);
    if (libraries->cudnn.handle) {
        (void)libraries->cudnn.cudnnDestroy(libraries->cudnn.handle);
    }
#endif
    /* The files stay mapped: both leave threads and hooks behind that outlive their handles. */
    free(libraries);
}
