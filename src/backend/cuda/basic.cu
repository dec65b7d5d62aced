/* basic.cu: the naive port. One thread per output, everything from global memory, nothing clever.
 *
 * What it costs: each multiply-add fetches its two operands anew, so the load units and the first-level
 * cache set the pace, at a few percent of the arithmetic. The one thing it minds is who sits next to whom:
 * neighbouring threads take neighbouring channels, so that a warp reads one line of weights (or of x) and
 * one number that all its threads share. For that the forward pass wants the weights as [R][S][C][K].
 */
#include "backend/cuda/kernels.h"

enum { THREADS = 256 };

static unsigned blocks_for(size_t count) {
    return (unsigned)((count + THREADS - 1) / THREADS);
}

/* wt[t][k] = w[k][t] */
__global__ static void basic_transpose(int K, int taps, const float *w, float *wt) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < (size_t)K * taps) {
        wt[i] = w[i % K * taps + i / K];
    }
}

/* z[n][oy][ox][k] = b[k] + sum over r, s, c of u[n][oy*stride+r-pad_top][ox*stride+s-pad_left][c] *
 * w[k][r][s][c]. One thread per z. */
__global__ static void basic_forward(lt_conv v, size_t count, const float *__restrict__ u,
                                     const float *__restrict__ wt, const float *__restrict__ b,
                                     float *__restrict__ z) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) {
        return;
    }
    size_t pixel = i / v.K;
    int k = (int)(i - pixel * v.K), ox = (int)(pixel % v.OW), oy = (int)(pixel / v.OW % v.OH);
    size_t image = pixel / v.OW / v.OH;
    float sum = b ? b[k] : 0;
    for (int r = 0; r < v.R; r++) {
        int y = oy * v.stride + r - v.pad_top;
        if (y < 0 || y >= v.UH) {
            continue;
        }
        for (int s = 0; s < v.S; s++) {
            int x = ox * v.stride + s - v.pad_left;
            if (x < 0 || x >= v.UW) {
                continue;
            }
            const float *from = u + ((image * v.UH + y) * v.UW + x) * v.C;
            const float *weight = wt + (size_t)(r * v.S + s) * v.C * v.K + k;
#pragma unroll 8
            for (int c = 0; c < v.C; c++) {
                sum += from[c] * weight[(size_t)c * v.K];
            }
        }
    }
    z[i] = sum;
}

/* du[n][y][x][c] = sum over r, s, k of dz[n][oy][ox][k] * w[k][r][s][c], for the oy, ox whose filter saw
 * (y, x) at (r, s): oy*stride + r - pad_top = y. One thread per du: a gather, so nobody adds to another's. */
__global__ static void basic_input_gradient(lt_conv v, size_t count, const float *__restrict__ dz,
                                            const float *__restrict__ w, float *__restrict__ du, int add) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) {
        return;
    }
    size_t pixel = i / v.C;
    int c = (int)(i - pixel * v.C), x = (int)(pixel % v.UW), y = (int)(pixel / v.UW % v.UH);
    size_t image = pixel / v.UW / v.UH, filter = (size_t)v.R * v.S * v.C;
    float sum = 0;
    for (int r = 0; r < v.R; r++) {
        int down = y + v.pad_top - r, oy = down / v.stride;
        if (down < 0 || down % v.stride || oy >= v.OH) {
            continue;
        }
        for (int s = 0; s < v.S; s++) {
            int right = x + v.pad_left - s, ox = right / v.stride;
            if (right < 0 || right % v.stride || ox >= v.OW) {
                continue;
            }
            const float *from = dz + ((image * v.OH + oy) * v.OW + ox) * v.K;
            const float *weight = w + (size_t)(r * v.S + s) * v.C + c;
#pragma unroll 8
            for (int k = 0; k < v.K; k++) {
                sum += from[k] * weight[k * filter];
            }
        }
    }
    du[i] = add ? du[i] + sum : sum;
}

/* dw[k][r][s][c] = sum over n, oy, ox of dz[n][oy][ox][k] * u[n][oy*stride+r-pad_top][...][c].
 * One thread per weight and share of the output rows; the shares are summed in order afterwards. */
__global__ static void basic_weight_gradient(lt_conv v, int n, const float *__restrict__ u,
                                             const float *__restrict__ dz, float *__restrict__ partials) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x, count = (size_t)v.K * v.R * v.S * v.C;
    if (i >= count) {
        return;
    }
    int c = (int)(i % v.C), s = (int)(i / v.C % v.S), r = (int)(i / v.C / v.S % v.R);
    int k = (int)(i / v.C / v.S / v.R);
    /* The ox whose column x = ox*stride + s - pad_left lies inside u. */
    int shift = s - v.pad_left, low = shift < 0 ? (v.stride - 1 - shift) / v.stride : 0;
    int inside = v.UW - shift > 0 ? (v.UW - 1 - shift) / v.stride + 1 : 0,
        high = inside < v.OW ? inside : v.OW;
    int rows = n * v.OH, share = (rows + LT_BASIC_SPLITS - 1) / LT_BASIC_SPLITS;
    int first = (int)blockIdx.y * share, last = first + share < rows ? first + share : rows;
    float sum = 0;
    for (int row = first; row < last; row++) {
        int image = row / v.OH, y = row % v.OH * v.stride + r - v.pad_top;
        if (y < 0 || y >= v.UH) {
            continue;
        }
        const float *gradient = dz + (size_t)row * v.OW * v.K + k;
        const float *from = u + (((ptrdiff_t)image * v.UH + y) * v.UW + shift) * v.C + c;
#pragma unroll 8
        for (int ox = low; ox < high; ox++) {
            sum += gradient[ox * v.K] * from[ox * v.stride * v.C];
        }
    }
    partials[blockIdx.y * count + i] = sum;
}

extern "C" void lt_launch_basic_transpose(cudaStream_t stream, int K, int taps, const float *w, float *wt) {
    basic_transpose<<<blocks_for((size_t)K * taps), THREADS, 0, stream>>>(K, taps, w, wt);
}

extern "C" void lt_launch_basic_forward(cudaStream_t stream, lt_conv conv, int n, const float *u,
                                        const float *wt, const float *b, float *z) {
    size_t count = (size_t)n * conv.OH * conv.OW * conv.K;
    basic_forward<<<blocks_for(count), THREADS, 0, stream>>>(conv, count, u, wt, b, z);
}

extern "C" void lt_launch_basic_input_gradient(cudaStream_t stream, lt_conv conv, int n, const float *dz,
                                               const float *w, float *du, int add) {
    size_t count = (size_t)n * conv.UH * conv.UW * conv.C;
    basic_input_gradient<<<blocks_for(count), THREADS, 0, stream>>>(conv, count, dz, w, du, add);
}

extern "C" void lt_launch_basic_weight_gradient(cudaStream_t stream, lt_conv conv, int n, const float *u,
                                                const float *dz, float *partials) {
    dim3 grid(blocks_for((size_t)conv.K * conv.R * conv.S * conv.C), LT_BASIC_SPLITS);
    basic_weight_gradient<<<grid, THREADS, 0, stream>>>(conv, n, u, dz, partials);
}
