/* tensor.h: what the host tells the kernels of the generation `tensor`. C and C++ read it.
 *
 * A conv is the product of pixels by depth and depth by filters. Depth is walked in slices of 32: where C is
 * a multiple of 32 (and x is bf16, and taps are at most 32), a slice is 32 channels of one tap, the taps of a
 * block of channels one after the other, because they read nearly the same pixels; else the taps and channels
 * are one long row, `flat`.
 */
#ifndef LT_BACKEND_CUDA_TENSOR_H
#define LT_BACKEND_CUDA_TENSOR_H

#include "backend/backend.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { LT_TENSOR_TILE = 128, LT_TENSOR_SLICE = 32, LT_TENSOR_TAPS = 32 };

typedef struct lt_tensor_forward {
    lt_conv conv;
    int n;
    int flat;
    int slices;  /* of depth */
    int columns; /* filters, rounded up to whole tiles */
    lt_dtype x_type;
    const void *x;
    const uint16_t *packed; /* bf16 [slice][column][32], filters in the kernels' order */
    const float *b;         /* or NULL */
    uint16_t *y;            /* bf16 */
} lt_tensor_forward;

/* packed = bf16 of w[K][R][S][C], zeros where there is none. */
void lt_launch_tensor_pack(cudaStream_t stream, const lt_tensor_forward *call, const float *w,
                           uint16_t *packed);
/* 1: the code that this build has for the current device uses tensor cores. */
int lt_tensor_code_check(void);
/* y = pool2(relu(conv(x) + b)); outputs of a call and packed weights are fewer than 2^31. */
void lt_launch_tensor_forward(cudaStream_t stream, const lt_tensor_forward *call);

#ifdef __cplusplus
}
#endif
#endif
