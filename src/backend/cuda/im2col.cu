/* im2col.cu: the input of a convolution written out as a matrix, and back.
 *
 *   col[n][oy][ox][(r, s, c)] = u[n][oy*stride + r - pad_top][ox*stride + s - pad_left][c]    (0 outside)
 *   dx[n][iy][ix][c] = sum of dcol over the places that col took x[n][iy][ix][c] to
 *
 * u is x upsampled where the conv has up2, read through the halved coordinates. The way back is a gather:
 * each dx looks up the places, in a fixed order, so nothing is added by two threads.
 */
#include "backend/cuda/kernels.h"

enum { THREADS = 256 };

static unsigned blocks_for(size_t count) {
    return (unsigned)((count + THREADS - 1) / THREADS);
}

__global__ static void im2col(lt_conv v, size_t count, const float *x, float *col) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) {
        return;
    }
    size_t rest = i / v.C;
    int c = (int)(i - rest * v.C);
    int s = (int)(rest % v.S);
    rest /= v.S;
    int r = (int)(rest % v.R);
    rest /= v.R;
    int ox = (int)(rest % v.OW);
    rest /= v.OW;
    int oy = (int)(rest % v.OH);
    size_t image = rest / v.OH;
    int y = oy * v.stride + r - v.pad_top, ux = ox * v.stride + s - v.pad_left;
    bool inside = y >= 0 && y < v.UH && ux >= 0 && ux < v.UW;
    col[i] = inside ? x[((image * v.H + (y >> v.up2)) * v.W + (ux >> v.up2)) * v.C + c] : 0;
}

/* The sum over the filter's places that saw (y, x) of the upsampled image. */
__device__ static float places(const lt_conv &v, const float *dcol, size_t image, int y, int x, int c) {
    float sum = 0;
    for (int r = 0; r < v.R; r++) {
        int down = y + v.pad_top - r, oy = down / v.stride;
        if (down < 0 || down % v.stride || oy >= v.OH) {
            continue;
        }
        for (int s = 0; s < v.S; s++) {
            int right = x + v.pad_left - s, ox = right / v.stride;
            if (right >= 0 && right % v.stride == 0 && ox < v.OW) {
                size_t row = (image * v.OH + oy) * v.OW + ox;
                sum += dcol[((row * v.R + r) * v.S + s) * v.C + c];
            }
        }
    }
    return sum;
}

__global__ static void col2im(lt_conv v, size_t count, const float *dcol, float *dx, int add) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) {
        return;
    }
    size_t pixel = i / v.C;
    int c = (int)(i - pixel * v.C), ix = (int)(pixel % v.W), iy = (int)(pixel / v.W % v.H);
    size_t image = pixel / v.W / v.H;
    float sum = 0;
    if (v.up2) {
        for (int j = 0; j < 4; j++) {
            sum += places(v, dcol, image, 2 * iy + j / 2, 2 * ix + j % 2, c);
        }
    } else {
        sum = places(v, dcol, image, iy, ix, c);
    }
    dx[i] = add ? dx[i] + sum : sum;
}

extern "C" void lt_launch_im2col(cudaStream_t stream, lt_conv conv, int n, const float *x, float *col) {
    size_t count = (size_t)n * conv.OH * conv.OW * conv.R * conv.S * conv.C;
    im2col<<<blocks_for(count), THREADS, 0, stream>>>(conv, count, x, col);
}

extern "C" void lt_launch_col2im(cudaStream_t stream, lt_conv conv, int n, const float *dcol, float *dx,
                                 int add) {
    size_t count = (size_t)n * conv.H * conv.W * conv.C;
    col2im<<<blocks_for(count), THREADS, 0, stream>>>(conv, count, dcol, dx, add);
}
