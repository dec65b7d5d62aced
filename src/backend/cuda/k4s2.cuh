/* k4s2.cuh: upsample x2 then conv 3x3 (stride 1, pad 1) is one transposed conv 4x4 of stride 2, pad 1.
 *
 * Per axis, low-res pixel i feeds output rows 2i-1 .. 2i+2. Output row 2i + t - 1 sees it through tap t:
 *     t  0         1         2         3
 *     v  w2     w1 + w2   w0 + w1      w0
 * because of two upsampled copies of a pixel, the filter's rows that land on them can be summed first: 36
 * products a low-res pixel become 16, exactly. In two dimensions V[ty][tx] sums w over a rectangle of taps.
 * The same numbers are four plain 2x2 convs, one for each parity (a, b) of the output row and column: tap
 * (u, v) of phase (a, b) reads low-res row i + a - 1 + u and is V at t = 3 - 2u - a.
 */
#ifndef LT_BACKEND_CUDA_K4S2_CUH
#define LT_BACKEND_CUDA_K4S2_CUH

#include "base/rng.h" /* LT_HD */

/* The filter rows that tap t sums: first to last. */
LT_HD static inline int lt_k4s2_first(int t) {
    return t < 2 ? 2 - t : 0;
}
LT_HD static inline int lt_k4s2_last(int t) {
    return t > 0 ? 3 - t : 2;
}
/* Back: filter row r is part of the taps 2 - r and 3 - r. */
LT_HD static inline int lt_k4s2_tap(int parity, int place) {
    return 3 - 2 * place - parity;
}

/* V[ty][tx] for one filter and channel; w points at w[k][0][0][c]. */
LT_HD static inline float lt_k4s2_sum(const float *w, int ty, int tx, int C) {
    float sum = 0;
    for (int r = lt_k4s2_first(ty); r <= lt_k4s2_last(ty); r++) {
        for (int s = lt_k4s2_first(tx); s <= lt_k4s2_last(tx); s++) {
            sum += w[(r * 3 + s) * C];
        }
    }
    return sum;
}

#endif
