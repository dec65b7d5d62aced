/* fused_finish.cu: the small kernels around the weights: partial sums to gradients, weights to their sums.
 *
 * A gradient dw[k][r][s][c] collects from one column of the partials, or from four where the columns belong
 * to copies of the filter: the two taps an axis that k4s2.cuh names, or the two copies of an upsampled
 * pixel. The order of every sum is fixed: split by split, and within one the four in row order.
 */
#include "backend/cuda/fused_taps.cuh"

enum { THREADS = 256 };

typedef lt_fused_weight job;

/* The tap that the i-th of a weight's sources is, in the pass's own order. */
__device__ static int source_tap(const job &j, int r, int s, int i) {
    const lt_conv &v = j.conv;
    if (j.pass == LT_FUSED_PHASE) {
        int down = r + 1 - i / 2, right = s + 1 - i % 2; /* 3 - t, for the taps 2-r, 3-r: 2u + a */
        int a = down % 2, u = down / 2, b = right % 2, w = right / 2;
        return (2 * a + b) * 4 + 2 * u + w;
    }
    if (j.pass == LT_FUSED_BACK_K4S2) {
        return (2 - r + i / 2) * 4 + 2 - s + i % 2;
    }
    if (j.pass == LT_FUSED_BACK_UP) {
        return (i / 2 * v.R + r) * 2 * v.S + i % 2 * v.S + s;
    }
    return r * v.S + s;
}

/* SOURCES: columns that a weight collects from. */
template <int SOURCES> __global__ static void fused_weight_finish(job j) {
    const lt_conv &v = j.conv;
    size_t weights = (size_t)v.K * v.R * v.S * v.C, i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= weights) {
        int k = (int)(i - weights);
        float sum = 0;
        for (int s = 0; j.db && k < v.K && s < j.bias_splits; s++) {
            sum += j.bias_partials[(size_t)s * v.K + k];
        }
        if (j.db && k < v.K) {
            j.db[k] += sum;
        }
        return;
    }
    size_t rest = i / v.C;
    int c = (int)(i - rest * v.C), s = (int)(rest % v.S), r = (int)(rest / v.S % v.R),
        k = (int)(rest / v.S / v.R);
    int taps = j.pass == LT_FUSED_PHASE ? 16 : lt_fused_taps(j.pass, &v);
    size_t plane = (size_t)taps * v.K * v.C, at[SOURCES];
#pragma unroll
    for (int t = 0; t < SOURCES; t++) {
        int tap = source_tap(j, r, s, t);
        at[t] = j.thin ? ((size_t)c * taps + tap) * v.K + k : ((size_t)k * taps + tap) * v.C + c;
    }
    float sum = 0;
    for (int split = 0; split < j.split.splits; split++) {
        const float *from = j.split.partials + split * plane;
#pragma unroll
        for (int t = 0; t < SOURCES; t++) {
            sum += from[at[t]];
        }
    }
    j.dw[i] += sum;
}

/* packed[a][b][k][u][w][c] = V[ty][tx] of w[k][.][.][c] */
__global__ static void fused_phases(int K, int C, const float *weights, float *packed) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < (size_t)16 * K * C) {
        size_t rest = i / C;
        int c = (int)(i - rest * C), place = (int)(rest % 4), k = (int)(rest / 4 % K),
            phase = (int)(rest / 4 / K);
        int ty = lt_k4s2_tap(phase / 2, place / 2), tx = lt_k4s2_tap(phase % 2, place % 2);
        packed[i] = lt_k4s2_sum(weights + (size_t)k * 9 * C + c, ty, tx, C);
    }
}

extern "C" void lt_launch_fused_weight_finish(cudaStream_t stream, const lt_fused_weight *call) {
    const lt_conv &v = call->conv;
    size_t count = (size_t)v.K * v.R * v.S * v.C + (call->db ? v.K : 0);
    unsigned blocks = (unsigned)((count + THREADS - 1) / THREADS);
    if (call->pass == LT_FUSED_FORWARD || call->pass == LT_FUSED_BACK) {
        fused_weight_finish<1><<<blocks, THREADS, 0, stream>>>(*call);
    } else {
        fused_weight_finish<4><<<blocks, THREADS, 0, stream>>>(*call);
    }
}

extern "C" void lt_launch_fused_phases(cudaStream_t stream, int K, int C, const float *w, float *packed) {
    size_t count = (size_t)16 * K * C;
    fused_phases<<<(unsigned)((count + THREADS - 1) / THREADS), THREADS, 0, stream>>>(K, C, w, packed);
}
