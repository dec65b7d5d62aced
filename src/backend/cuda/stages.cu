/* stages.cu: everything around a convolution as kernels of their own: upsample, relu, pool, and the way
 * back through them; and the second half of split sums.
 *
 * This is what `basic`, `tiled`, `gemm` and `cudnn` run around their convolutions, and what `fused` does
 * away with: each of these passes reads and writes whole tensors to do next to no arithmetic. One thread per
 * output, neighbours in the last dimension, so that a warp touches whole cache lines.
 */
#include "backend/cuda/kernels.h"

enum { THREADS = 256 };

static unsigned blocks_for(size_t count) {
    return (unsigned)((count + THREADS - 1) / THREADS);
}

__device__ static size_t thread_index() {
    return (size_t)blockIdx.x * THREADS + threadIdx.x;
}

/* Where a flat index of [n][H][W][C] is. */
typedef struct place {
    int n, y, x, c;
} place;

__device__ static place locate(size_t i, int H, int W, int C) {
    place p;
    size_t pixel = i / C;
    p.c = (int)(i - pixel * C);
    p.x = (int)(pixel % W);
    pixel /= W;
    p.y = (int)(pixel % H);
    p.n = (int)(pixel / H);
    return p;
}

/* ---- Upsample ---------------------------------------------------------------------------------- */

/* u[n][y][x][c] = x[n][y/2][x/2][c] */
__global__ static void upsample(size_t count, int H, int W, int C, const float *x, float *u) {
    size_t i = thread_index();
    if (i < count) {
        place p = locate(i, 2 * H, 2 * W, C);
        u[i] = x[(((size_t)p.n * H + p.y / 2) * W + p.x / 2) * C + p.c];
    }
}

/* dx[n][y][x][c] = du[2y][2x] + du[2y][2x+1] + du[2y+1][2x] + du[2y+1][2x+1] */
__global__ static void upsample_back(size_t count, int H, int W, int C, const float *du, float *dx, int add) {
    size_t i = thread_index();
    if (i < count) {
        place p = locate(i, H, W, C);
        size_t row = (size_t)2 * W * C;
        const float *from = du + (((size_t)p.n * 2 * H + 2 * p.y) * 2 * W + 2 * p.x) * C + p.c;
        float sum = (from[0] + from[C]) + (from[row] + from[row + C]);
        dx[i] = add ? dx[i] + sum : sum;
    }
}

extern "C" void lt_launch_upsample(cudaStream_t stream, int n, int H, int W, int C, const float *x,
                                   float *u) {
    size_t count = (size_t)n * 4 * H * W * C;
    upsample<<<blocks_for(count), THREADS, 0, stream>>>(count, H, W, C, x, u);
}

extern "C" void lt_launch_upsample_back(cudaStream_t stream, int n, int H, int W, int C, const float *du,
                                        float *dx, int add) {
    size_t count = (size_t)n * H * W * C;
    upsample_back<<<blocks_for(count), THREADS, 0, stream>>>(count, H, W, C, du, dx, add);
}

/* ---- Relu and pool ----------------------------------------------------------------------------- */

/* A NaN stays a NaN. */
__device__ static float positive(float value) {
    return value < 0 ? 0 : value;
}

__global__ static void relu(float *z, uint8_t *mask, size_t count) {
    size_t i = thread_index();
    if (i < count) {
        float value = z[i];
        z[i] = positive(value);
        if (mask) {
            mask[i] = value > 0 ? 0 : LT_DEAD;
        }
    }
}

/* The first maximum of four in row order, or the first NaN. */
__device__ static float maximum(const float a[4], int *position) {
    float best = a[0];
    *position = 0;
    for (int i = 1; i < 4; i++) {
        if (!isnan(best) && !(a[i] <= best)) {
            best = a[i];
            *position = i;
        }
    }
    return best;
}

/* y = pool2(relu(z + b)) as far as the conv has them. relu is monotone, so it may follow the maximum. */
__global__ static void finish(lt_conv conv, size_t count, const float *z, const float *b, float *y,
                              uint8_t *mask) {
    size_t i = thread_index();
    if (i >= count) {
        return;
    }
    float value;
    int position = 0;
    if (conv.pool2) {
        place p = locate(i, conv.PH, conv.PW, conv.K);
        size_t row = (size_t)conv.OW * conv.K;
        const float *window = z + (((size_t)p.n * conv.OH + 2 * p.y) * conv.OW + 2 * p.x) * conv.K + p.c;
        float a[4] = {window[0], window[conv.K], window[row], window[row + conv.K]};
        for (int j = 0; b && j < 4; j++) {
            a[j] += b[p.c];
        }
        value = maximum(a, &position);
    } else {
        value = b ? z[i] + b[i % conv.K] : z[i];
    }
    bool live = !conv.relu || (conv.pool2 ? !(value <= 0) : value > 0);
    y[i] = conv.relu ? positive(value) : value;
    if (mask) {
        mask[i] = live ? position : LT_DEAD;
    }
}

/* dz[n][oy][ox][k] = dy of its window if the mask names this place, else 0. */
__global__ static void expand(lt_conv conv, size_t count, const float *dy, const uint8_t *mask, float *dz) {
    size_t i = thread_index();
    if (i >= count) {
        return;
    }
    size_t at = i;
    int position = 0;
    if (conv.pool2) {
        place p = locate(i, conv.OH, conv.OW, conv.K);
        if (p.y >= 2 * conv.PH || p.x >= 2 * conv.PW) {
            dz[i] = 0; /* the odd row or column that the pool dropped */
            return;
        }
        at = (((size_t)p.n * conv.PH + p.y / 2) * conv.PW + p.x / 2) * conv.K + p.c;
        position = p.y % 2 * 2 + p.x % 2;
    }
    dz[i] = mask[at] == position ? dy[at] : 0;
}

extern "C" void lt_launch_relu(cudaStream_t stream, float *z, uint8_t *mask, size_t count) {
    relu<<<blocks_for(count), THREADS, 0, stream>>>(z, mask, count);
}

extern "C" void lt_launch_finish(cudaStream_t stream, lt_conv conv, int n, const float *z, const float *b,
                                 float *y, uint8_t *mask) {
    size_t count = (size_t)n * conv.PH * conv.PW * conv.K;
    finish<<<blocks_for(count), THREADS, 0, stream>>>(conv, count, z, b, y, mask);
}

extern "C" void lt_launch_pool(cudaStream_t stream, lt_conv conv, int n, const float *a, float *y,
                               uint8_t *mask) {
    lt_launch_finish(stream, conv, n, a, NULL, y, mask);
}

extern "C" void lt_launch_expand(cudaStream_t stream, lt_conv conv, int n, const float *dy,
                                 const uint8_t *mask, float *dz) {
    size_t count = (size_t)n * conv.OH * conv.OW * conv.K;
    expand<<<blocks_for(count), THREADS, 0, stream>>>(conv, count, dy, mask, dz);
}

/* ---- Sums in two stages ------------------------------------------------------------------------ */

__global__ static void sum(const float *partials, int splits, size_t count, float *out) {
    size_t i = thread_index();
    if (i < count) {
        float total = 0;
        for (int s = 0; s < splits; s++) {
            total += partials[s * count + i];
        }
        out[i] += total;
    }
}

/* partials[split][k] = sum of dz[pixel][k] over the split's share of the pixels. */
__global__ static void bias_partials(const float *dz, size_t pixels, int K, float *partials) {
    int k = blockIdx.x * blockDim.x + threadIdx.x, split = blockIdx.y;
    size_t share = (pixels + LT_BIAS_SPLITS - 1) / LT_BIAS_SPLITS;
    size_t first = split * share, last = first + share < pixels ? first + share : pixels;
    if (k < K) {
        float total = 0;
        for (size_t p = first; p < last; p++) {
            total += dz[p * K + k];
        }
        partials[(size_t)split * K + k] = total;
    }
}

extern "C" void lt_launch_sum(cudaStream_t stream, const float *partials, int splits, size_t count,
                              float *out) {
    sum<<<blocks_for(count), THREADS, 0, stream>>>(partials, splits, count, out);
}

extern "C" void lt_launch_bias_partials(cudaStream_t stream, const float *dz, size_t pixels, int K,
                                        float *partials) {
    int threads = K < 128 ? 32 * ((K + 31) / 32) : 128;
    dim3 grid((K + threads - 1) / threads, LT_BIAS_SPLITS);
    bias_partials<<<grid, threads, 0, stream>>>(dz, pixels, K, partials);
}
