/* k4s2.cu: packs the weights of an upsampling conv as cuDNN wants its transposed form, and the gradient
 * back. See k4s2.cuh for the sums. There the conv goes from the op's output to its input: C filters of
 * 4 x 4 over K channels.
 */
#include "backend/cuda/k4s2.cuh"
#include "backend/cuda/kernels.h"

enum { THREADS = 256 };

/* packed[c][ty][tx][k] = V[ty][tx] of w[k][.][.][c] */
__global__ static void k4s2_pack(int K, int C, const float *w, float *packed) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < (size_t)16 * C * K) {
        size_t rest = i / K;
        int k = (int)(i - rest * K), tap = (int)(rest % 16), c = (int)(rest / 16);
        packed[i] = lt_k4s2_sum(w + (size_t)k * 9 * C + c, tap / 4, tap % 4, C);
    }
}

/* dw[k][r][s][c] += dV over the taps ty in {2-r, 3-r}, tx in {2-s, 3-s} */
__global__ static void k4s2_unpack(int K, int C, const float *gradient, float *dw) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < (size_t)9 * C * K) {
        size_t rest = i / C;
        int c = (int)(i - rest * C), s = (int)(rest % 3), r = (int)(rest / 3 % 3), k = (int)(rest / 9);
        float sum = 0;
        for (int j = 0; j < 4; j++) {
            int ty = 2 - r + j / 2, tx = 2 - s + j % 2;
            sum += gradient[((size_t)c * 16 + ty * 4 + tx) * K + k];
        }
        dw[i] += sum;
    }
}

extern "C" void lt_launch_k4s2_pack(cudaStream_t stream, int K, int C, const float *w, float *packed) {
    unsigned blocks = (unsigned)(((size_t)16 * C * K + THREADS - 1) / THREADS);
    k4s2_pack<<<blocks, THREADS, 0, stream>>>(K, C, w, packed);
}

extern "C" void lt_launch_k4s2_unpack(cudaStream_t stream, int K, int C, const float *gradient, float *dw) {
    unsigned blocks = (unsigned)(((size_t)9 * C * K + THREADS - 1) / THREADS);
    k4s2_unpack<<<blocks, THREADS, 0, stream>>>(K, C, gradient, dw);
}
