/* steps.cu: the cursor moves. One thread, because there is one cursor. */
#include "backend/cuda/kernels.h"

__global__ static void step_next(lt_cuda_state *state) {
    state->cursor++;
}

extern "C" void lt_launch_step_next(cudaStream_t stream, lt_cuda_state *state) {
    step_next<<<1, 1, 0, stream>>>(state);
}

extern "C" cudaError_t lt_cuda_code_check(void) {
    cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, (const void *)step_next);
}
