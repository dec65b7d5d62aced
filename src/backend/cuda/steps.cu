/* steps.cu: the cursor moves, and the host sees it. One thread, because there is one cursor. */
#include "backend/cuda/kernels.h"

__global__ static void step_next(lt_cuda_state *state) {
    int at = state->cursor;
    lt_cuda_shown *shown = state->shown;
    shown->losses[at] = state->losses[at];
    shown->bad_step = state->bad_step;
    __threadfence_system(); /* the host sees these before it sees the count */
    *(volatile int *)&shown->steps = at + 1;
    state->cursor = at + 1;
}

extern "C" void lt_launch_step_next(cudaStream_t stream, lt_cuda_state *state) {
    step_next<<<1, 1, 0, stream>>>(state);
}

extern "C" cudaError_t lt_cuda_code_check(void) {
    cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, (const void *)step_next);
}
