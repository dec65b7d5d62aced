/* fused.h: what the host tells the kernels of the generation `fused`. C and C++ read it.
 *
 * Splits and strips are decided on the host, from shapes and the batch alone: a sum of T terms is walked in
 * strips of eight, `strips` of them by each of `splits` blocks, whose results a second kernel adds in order.
 */
#ifndef LT_BACKEND_CUDA_FUSED_H
#define LT_BACKEND_CUDA_FUSED_H

#include "backend/backend.h"
#include "base/rng.h" /* LT_HD */

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { LT_FUSED_BM = 128, LT_FUSED_STRIP = 8, LT_FUSED_TAPS_MAX = 256 };

/* Which pixels a sum runs over: see fused_taps.cuh. */
typedef enum lt_fused_pass {
    LT_FUSED_FORWARD,
    LT_FUSED_PHASE,
    LT_FUSED_BACK,
    LT_FUSED_BACK_UP,
    LT_FUSED_BACK_K4S2
} lt_fused_pass;

/* How many taps a sum has; of one phase. */
LT_HD static inline int lt_fused_taps(lt_fused_pass pass, const lt_conv *conv) {
    int taps = conv->R * conv->S;
    return pass == LT_FUSED_PHASE       ? 4
           : pass == LT_FUSED_BACK_K4S2 ? 16
           : pass == LT_FUSED_BACK_UP   ? 4 * taps
                                        : taps;
}

/* A tensor as a pass sees it, at full resolution: see fused_loaders.cuh. */
typedef struct lt_fused_view {
    const float *data;   /* [n][H][W][C] */
    const uint8_t *mask; /* of the same shape, or NULL */
    int H, W, C;
    int half; /* 1: pixel (y, x) is found at (y/2, x/2) */
} lt_fused_view;

typedef struct lt_fused_split {
    int splits, strips;
    float *partials; /* [splits][...], where splits > 1 or the kernel always splits */
} lt_fused_split;

/* y = pool2(relu(conv(x) + b)) */
typedef struct lt_fused_forward {
    lt_conv conv;
    int n;
    lt_fused_pass pass; /* FORWARD, or PHASE: w are then summed weights */
    lt_fused_view x;
    const float *w, *b;
    float *y;
    uint8_t *mask;
    lt_fused_split split;
} lt_fused_forward;
void lt_launch_fused_forward(cudaStream_t stream, const lt_fused_forward *call);
/* Adds up the partials of a split forward pass. */
void lt_launch_fused_forward_finish(cudaStream_t stream, const lt_fused_forward *call);

/* dx = conv backwards, through the mask */
typedef struct lt_fused_input {
    lt_conv conv;
    int n;
    lt_fused_pass pass; /* BACK, BACK_UP or BACK_K4S2 */
    lt_fused_view dz;
    const float *w;
    float *dx;
    int add;
    lt_fused_split split;
} lt_fused_input;
void lt_launch_fused_input(cudaStream_t stream, const lt_fused_input *call);
void lt_launch_fused_input_finish(cudaStream_t stream, const lt_fused_input *call);

/* Partial sums of dw and db. */
typedef struct lt_fused_weight {
    lt_conv conv;
    int n;
    int thin;           /* 1: few filters; rows are channels, columns (tap, filter) */
    lt_fused_pass pass; /* FORWARD or PHASE; thin: BACK, BACK_UP or BACK_K4S2 */
    lt_fused_view x, dz;
    lt_fused_split split; /* partials [splits][rows][columns] */
    float *bias_partials; /* [bias_splits][K], or NULL: db is not wanted */
    int bias_splits;
    float *dw, *db;
} lt_fused_weight;
void lt_launch_fused_weight(cudaStream_t stream, const lt_fused_weight *call);
void lt_launch_fused_thin_weight(cudaStream_t stream, const lt_fused_weight *call);
void lt_launch_fused_thin_bias(cudaStream_t stream, const lt_fused_weight *call);
void lt_launch_fused_weight_finish(cudaStream_t stream, const lt_fused_weight *call);

/* V[a][b][K][u][v][C], the summed weights of the four phases (k4s2.cuh). */
void lt_launch_fused_phases(cudaStream_t stream, int K, int C, const float *w, float *packed);

/* Few filters: products of every pixel with every tap's filters, then sums over the taps. */
typedef struct lt_fused_thin {
    lt_conv conv;
    int n;
    int k4s2; /* w are summed weights */
    const float *x, *w, *b;
    float *products; /* [n*H*W][pitch] */
    int pitch;       /* taps * K, rounded up to 4 */
    float *y;
    uint8_t *mask;
    const float *target; /* NULL: no loss */
    float *dy;
    double *loss_partials;
} lt_fused_thin;
void lt_launch_fused_thin_products(cudaStream_t stream, const lt_fused_thin *call);
void lt_launch_fused_thin_sums(cudaStream_t stream, const lt_fused_thin *call);

#ifdef __cplusplus
}
#endif
#endif
