/* graph.c: a step recorded once and replayed.
 *
 * Everything that changes from step to step is read from device memory, so a graph needs no update: it is
 * the same kernels with the same arguments, launched by one call instead of thirty. Replaying gives the
 * bits of plain launches, because it runs the same code in the same order.
 */
#include "backend/cuda/cuda.h"

#include <stdlib.h>

typedef struct captured {
    cudaGraphExec_t exec;
    int steps; /* step_next calls in it */
} captured;

/* Ends a capture that nobody wants any more. */
static void abandon(lt_cuda *cuda) {
    cudaGraph_t graph = NULL;
    (void)cudaStreamEndCapture(cuda->stream, &graph);
    if (graph) {
        (void)cudaGraphDestroy(graph);
    }
    (void)cudaGetLastError();
    cuda->capturing = 0;
}

latent_status lt_cuda_graph_begin(latent_context *ctx, lt_backend *backend) {
    lt_cuda *cuda = (lt_cuda *)backend;
    latent_status status = LATENT_OK;
    if (cuda->capturing) {
        abandon(cuda);
    }
    /* Relaxed: kernels that are used for the first time may load their code while this records. */
    LT_CUDA(cudaStreamBeginCapture(cuda->stream, cudaStreamCaptureModeRelaxed));
    cuda->capturing = 1;
    cuda->captured_steps = 0;
done:
    return status;
}

latent_status lt_cuda_graph_end(latent_context *ctx, lt_backend *backend, void **out) {
    lt_cuda *cuda = (lt_cuda *)backend;
    latent_status status = LATENT_OK;
    cudaGraph_t graph = NULL;
    captured *made = NULL;
    *out = NULL;
    cuda->capturing = 0;
    LT_CUDA(cudaStreamEndCapture(cuda->stream, &graph));
    LT_TRY(lt_calloc(ctx, 1, sizeof *made, "a graph", (void **)&made));
    LT_CUDA(cudaGraphInstantiate(&made->exec, graph, 0));
    made->steps = cuda->captured_steps;
    *out = made;
    made = NULL;
done:
    free(made);
    if (graph) {
        (void)cudaGraphDestroy(graph);
    }
    return status;
}

latent_status lt_cuda_graph_launch(latent_context *ctx, lt_backend *backend, void *graph) {
    lt_cuda *cuda = (lt_cuda *)backend;
    const captured *replayed = graph;
    latent_status status = LATENT_OK;
    if (replayed->steps) {
        LT_TRY(lt_cuda_step_check(ctx, cuda));
    }
    LT_CUDA(cudaGraphLaunch(replayed->exec, cuda->stream));
    cuda->last_kernel = "a captured step";
    cuda->cursor += replayed->steps;
    lt_cuda_mark(backend, LT_SLOT_OTHER); /* its inside cannot be told apart */
done:
    return status;
}

void lt_cuda_graph_free(lt_backend *backend, void *graph) {
    lt_cuda *cuda = (lt_cuda *)backend;
    captured *freed = graph;
    if (freed) {
        (void)cudaStreamSynchronize(cuda->stream); /* a launch of it may still be under way */
        (void)cudaGraphExecDestroy(freed->exec);
        (void)cudaGetLastError();
        free(freed);
    }
}
