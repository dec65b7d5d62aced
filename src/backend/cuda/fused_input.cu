/* fused_input.cu: the gradient of a conv by its input, through pool and relu, as one kernel.
 *
 *   dx[pixel][c] = sum over taps and filters of dz[pixel moved back by tap][k] * w[k][tap][c]
 *
 * dz is never written out: the loader reads dy through its mask (fused_loaders.cuh). Under up2 the sum runs
 * over everything that saw any of the four copies of a pixel, so the gradient of the upsampled image is not
 * written either; with summed weights (k4s2.cuh) that is 16 taps instead of 36.
 */
#include "backend/cuda/fused_loaders.cuh"

typedef lt_fused_input job;

__device__ __host__ static inline int row_count(const job &j) {
    return j.n * j.conv.H * j.conv.W;
}

__device__ static fused_pixel locate(const job &j, int row) {
    int line = row / j.conv.W, image = line / j.conv.H, scale = fused_scale(j.pass, j.conv);
    fused_pixel p;
    p.real = image < j.n;
    p.image = (size_t)image * (j.dz.H * j.dz.W * j.dz.C);
    p.y = (line - image * j.conv.H) * scale;
    p.x = (row - line * j.conv.W) * scale;
    return p;
}

__device__ static void put(float *to, float4 four, int add) {
    if (add) {
        float4 old = *(const float4 *)to;
        four = make_float4(old.x + four.x, old.y + four.y, old.z + four.z, old.w + four.w);
    }
    *(float4 *)to = four;
}

template <int BN, class Pixels>
__global__ static void __launch_bounds__(FUSED_THREADS, 2) fused_input(job j) {
    __shared__ fused_memory<BN> memory;
    __shared__ fused_tap taps[LT_FUSED_TAPS_MAX];
    const lt_conv &v = j.conv;
    int tap_count = lt_fused_taps(j.pass, &v), length = tap_count * v.K;
    int first = (int)blockIdx.z * j.split.strips, all = (length + FUSED_DEPTH - 1) / FUSED_DEPTH;
    int strips = all - first < j.split.strips ? all - first : j.split.strips;
    fused_fill_taps(taps, j.pass, v, 0);
    __syncthreads();
    first *= FUSED_DEPTH;
    fused_pixel pixel = locate(j, (int)blockIdx.x * FUSED_BM + (int)threadIdx.x / 2);
    int channel = (int)blockIdx.y * BN + (int)threadIdx.x % 32 * 4;
    fused_pair<Pixels, fused_filter_columns<BN>> loader = {
        {j.dz, taps, tap_count, pixel, first},
        {j.w, taps, tap_count, v.K, fused_filter_stride(j.pass, v), first, channel, v.C}};
    fused_sums<BN> sums = {};
    fused_multiply<BN>(memory, loader, strips, sums, [](const float(*)[FUSED_A_STRIDE]) {});

    int rows = row_count(j), row = (int)blockIdx.x * FUSED_BM + fused_row();
    int column = (int)blockIdx.y * BN + fused_column<BN>();
    float *to = j.split.splits > 1 ? j.split.partials + (size_t)blockIdx.z * rows * v.C : j.dx;
    int add = j.split.splits > 1 ? 0 : j.add;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int at = row + i % 4 + i / 4 * 16;
#pragma unroll
        for (int h = 0; h < BN / 64; h++) {
            const float *s = &sums.at[i][4 * h];
            if (at < rows && column + 32 * h < v.C) {
                put(to + (size_t)at * v.C + column + 32 * h, make_float4(s[0], s[1], s[2], s[3]), add);
            }
        }
    }
}

/* dx = the sum of the splits, four values a thread. */
__global__ static void fused_input_finish(job j) {
    size_t plane = (size_t)row_count(j) * j.conv.C;
    size_t i = 4 * ((size_t)blockIdx.x * FUSED_THREADS + threadIdx.x);
    if (i < plane) {
        float4 sum = make_float4(0, 0, 0, 0);
        for (int s = 0; s < j.split.splits; s++) {
            float4 part = *(const float4 *)(j.split.partials + s * plane + i);
            sum = make_float4(sum.x + part.x, sum.y + part.y, sum.z + part.z, sum.w + part.w);
        }
        put(j.dx + i, sum, j.add);
    }
}

template <int BN> static void launch(cudaStream_t stream, const job &j) {
    dim3 grid((unsigned)((row_count(j) + FUSED_BM - 1) / FUSED_BM), (unsigned)((j.conv.C + BN - 1) / BN),
              (unsigned)j.split.splits);
    bool quads = j.conv.K % 4 == 0, masked = j.dz.mask != NULL;
    if (quads && masked) {
        fused_input<BN, fused_tap_quads<true>><<<grid, FUSED_THREADS, 0, stream>>>(j);
    } else if (quads) {
        fused_input<BN, fused_tap_quads<false>><<<grid, FUSED_THREADS, 0, stream>>>(j);
    } else if (masked) {
        fused_input<BN, fused_tap_singles<true>><<<grid, FUSED_THREADS, 0, stream>>>(j);
    } else {
        fused_input<BN, fused_tap_singles<false>><<<grid, FUSED_THREADS, 0, stream>>>(j);
    }
}

extern "C" void lt_launch_fused_input(cudaStream_t stream, const lt_fused_input *call) {
    if (call->conv.C > 64) {
        launch<128>(stream, *call);
    } else {
        launch<64>(stream, *call);
    }
}

extern "C" void lt_launch_fused_input_finish(cudaStream_t stream, const lt_fused_input *call) {
    size_t quads = (size_t)row_count(*call) * call->conv.C / 4;
    unsigned blocks = (unsigned)((quads + FUSED_THREADS - 1) / FUSED_THREADS);
    fused_input_finish<<<blocks, FUSED_THREADS, 0, stream>>>(*call);
}
