/* fused_taps.cuh: which pixels a sum runs over: the one place that knows padding, phases and directions.
 *
 * Every pass is "for each output pixel (y, x), sum over taps t of source[y*scale + t.y][x*scale + t.x]":
 *
 *   FORWARD    the conv itself, t = (r, s): t.y = r - pad_top, scale = stride
 *   PHASE      one of the four 2x2 convs of an upsampling 3x3 (k4s2.cuh), t = (u, v), from low-res pixels
 *              to the output pixels of parity (a, b): t.y = u + a - 1
 *   BACK       from dz to dx at stride 1: the output row that saw input row y at r is y + pad_top - r
 *   BACK_UP    the same under up2, for low-res y: the rows that saw 2y or 2y+1, t = ((i, r), (j, s)):
 *              t.y = i + pad_top - r, scale 2
 *   BACK_K4S2  the same for the summed weights: output rows 2y-1 .. 2y+2, t.y = 0..3 - 1, scale 2
 *
 * A tap also knows where its weights are: the offset of w[0][tap][0] in the filters.
 */
#ifndef LT_BACKEND_CUDA_FUSED_TAPS_CUH
#define LT_BACKEND_CUDA_FUSED_TAPS_CUH

#include "backend/cuda/fused.h"
#include "backend/cuda/k4s2.cuh"
#include "backend/cuda/kernels.h"

typedef struct fused_tap {
    short y, x;
    int weight; /* in floats */
} fused_tap;

LT_HD static inline int fused_scale(lt_fused_pass pass, const lt_conv &v) {
    return pass == LT_FUSED_FORWARD                                 ? v.stride
           : pass == LT_FUSED_BACK_UP || pass == LT_FUSED_BACK_K4S2 ? 2
                                                                    : 1;
}

/* From one filter to the next. Summed weights lie as [a][b][K][u][v][C]. */
LT_HD static inline int fused_filter_stride(lt_fused_pass pass, const lt_conv &v) {
    return (pass == LT_FUSED_PHASE || pass == LT_FUSED_BACK_K4S2 ? 4 : v.R * v.S) * v.C;
}

LT_HD static inline int fused_phase_offset(const lt_conv &v, int phase) {
    return phase * v.K * 4 * v.C;
}

LT_HD static inline fused_tap fused_make_tap(lt_fused_pass pass, const lt_conv &v, int phase, int t) {
    fused_tap tap;
    if (pass == LT_FUSED_PHASE) {
        int a = phase / 2, b = phase % 2, place = t;
        tap.y = (short)(place / 2 + a - 1);
        tap.x = (short)(place % 2 + b - 1);
        tap.weight = fused_phase_offset(v, phase) + place * v.C;
    } else if (pass == LT_FUSED_BACK_K4S2) {
        int ty = t / 4, tx = t % 4; /* 3 - ty = 2u + a */
        int a = (3 - ty) % 2, u = (3 - ty) / 2, b = (3 - tx) % 2, w = (3 - tx) / 2;
        tap.y = (short)(ty - 1);
        tap.x = (short)(tx - 1);
        tap.weight = fused_phase_offset(v, 2 * a + b) + (2 * u + w) * v.C;
    } else if (pass == LT_FUSED_FORWARD) {
        tap.y = (short)(t / v.S - v.pad_top);
        tap.x = (short)(t % v.S - v.pad_left);
        tap.weight = t * v.C;
    } else {
        int twice = pass == LT_FUSED_BACK_UP ? 2 : 1;
        int down = t / (twice * v.S), right = t % (twice * v.S); /* (i, r) and (j, s) */
        int r = down % v.R, s = right % v.S;
        tap.y = (short)(down / v.R + v.pad_top - r);
        tap.x = (short)(right / v.S + v.pad_left - s);
        tap.weight = (r * v.S + s) * v.C;
    }
    return tap;
}

/* All threads fill the table; a barrier must follow. */
__device__ static inline void fused_fill_taps(fused_tap *taps, lt_fused_pass pass, const lt_conv &v,
                                              int phase) {
    for (int t = threadIdx.x; t < lt_fused_taps(pass, &v); t += blockDim.x) {
        taps[t] = fused_make_tap(pass, v, phase, t);
    }
}

#endif
