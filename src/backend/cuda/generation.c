/* generation.c: the list of kernel generations, and the choice of one by name. */
#include "backend/cuda/generation.h"

#include <string.h>

/* Every name there is; a generation without a core or a whole is not part of this build. */
static const lt_generation generations[] = {
    {"fused", NULL, &lt_whole_fused, NULL},         {"tiled", &lt_core_tiled, NULL, NULL},
    {"basic", &lt_core_basic, NULL, NULL},          {"tensor", NULL, &lt_whole_tensor, lt_tensor_open},
#ifdef LATENT_HAVE_CUBLAS
    {"gemm", &lt_core_gemm, NULL, lt_gemm_open},
#else
    {"gemm", NULL, NULL, NULL},
#endif
#ifdef LATENT_HAVE_CUDNN
    {"cudnn", &lt_core_cudnn, NULL, lt_cudnn_open},
#else
    {"cudnn", NULL, NULL, NULL},
#endif
};

enum { GENERATIONS = sizeof generations / sizeof generations[0] };

latent_status lt_generation_open(latent_context *ctx, lt_cuda *cuda, const char *name) {
    const char *names[GENERATIONS];
    const lt_generation *found = name ? NULL : &generations[0];
    for (size_t i = 0; i < GENERATIONS; i++) {
        names[i] = generations[i].name;
        if (name && strcmp(name, names[i]) == 0) {
            found = &generations[i];
        }
    }
    if (!found) {
        const char *near = latent_suggest(name, names, GENERATIONS);
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "there are no kernels '%s'%s%s%s; the backend 'cuda' has: fused, tiled, basic, gemm, "
                       "cudnn, and tensor for bf16",
                       name, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    }
    if (!found->core && !found->whole) {
        return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED,
                       "the kernels '%s' are not part of this build: its library was not found when it was "
                       "configured",
                       found->name);
    }
    cuda->generation = found;
    return found->open ? found->open(ctx, cuda) : LATENT_OK;
}
