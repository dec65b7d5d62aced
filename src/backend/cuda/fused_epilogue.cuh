/* fused_epilogue.cuh: what happens to sums on their way out: bias, relu, pool, mask, four channels at once.
 */
#ifndef LT_BACKEND_CUDA_FUSED_EPILOGUE_CUH
#define LT_BACKEND_CUDA_FUSED_EPILOGUE_CUH

#include "backend/cuda/kernels.h"

/* The contract's pool and relu for one window (count 4) or one value (count 1). Returns the output; the
 * position is what the mask keeps. The first maximum wins, and a NaN stays one. */
__device__ static inline float fused_activate(const lt_conv &v, const float *window, int count, float bias,
                                              uint32_t *position) {
    float best = window[0] + bias;
    uint32_t first = 0;
#pragma unroll
    for (int i = 1; i < count; i++) {
        float value = window[i] + bias;
        if (!isnan(best) && !(value <= best)) {
            best = value;
            first = (uint32_t)i;
        }
    }
    bool live = !v.relu || (count > 1 ? !(best <= 0) : best > 0);
    *position = live ? first : (uint32_t)LT_DEAD;
    return v.relu && best < 0 ? 0 : best;
}

/* Four channels of one output at y + at; z[i] are its window's rows. */
template <int COUNT>
__device__ static inline void fused_emit(const lt_conv &v, const float z[COUNT][4], const float *b, float *y,
                                         uint8_t *mask, size_t at) {
    float out[4];
    uint32_t bytes = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        float window[COUNT];
        uint32_t position;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            window[i] = z[i][j];
        }
        out[j] = fused_activate(v, window, COUNT, b ? b[j] : 0, &position);
        bytes |= position << 8 * j;
    }
    *(float4 *)(y + at) = make_float4(out[0], out[1], out[2], out[3]);
    if (mask) {
        *(uint32_t *)(mask + at) = bytes;
    }
}

#endif
