/* fused_forward.cu: conv + bias + relu + pool2, upsampling included, as one kernel.
 *
 *   sums[pixel][k] = sum over taps and channels of x[pixel moved by tap][c] * w[k][tap][c]
 *
 * Rows of a tile are output pixels. Where a pool follows they are ordered window by window, so that the four
 * values of a window end up in one thread and only the maximum is written: a quarter of the output, and no
 * second pass. An upsampling 3x3 conv runs as its four phases, one per parity of the output pixel: 2x2
 * convs over the small image with summed weights (k4s2.cuh), 16 products for 36.
 */
#include "backend/cuda/fused_epilogue.cuh"
#include "backend/cuda/fused_loaders.cuh"

typedef lt_fused_forward job;

/* The grid whose pixels are rows: the output's, the windows', or the small image's of a phase. */
__device__ __host__ static inline int grid_height(const job &j) {
    return j.pass == LT_FUSED_PHASE ? j.conv.H : j.conv.PH;
}
__device__ __host__ static inline int grid_width(const job &j) {
    return j.pass == LT_FUSED_PHASE ? j.conv.W : j.conv.PW;
}
__device__ __host__ static inline int row_count(const job &j) {
    return j.n * grid_height(j) * grid_width(j) * (j.conv.pool2 ? 4 : 1);
}

__device__ static fused_pixel locate(const job &j, int row) {
    int GH = grid_height(j), GW = grid_width(j), scale = fused_scale(j.pass, j.conv);
    int at = j.conv.pool2 ? row / 4 : row, line = at / GW, image = line / GH;
    int y = line - image * GH, x = at - line * GW;
    if (j.conv.pool2) {
        y = 2 * y + row / 2 % 2;
        x = 2 * x + row % 2;
    }
    fused_pixel p;
    p.real = image < j.n;
    p.image = (size_t)image * (j.x.H * j.x.W * j.x.C);
    p.y = y * scale;
    p.x = x * scale;
    return p;
}

/* Where the output of a row lies; windows have one for four rows. */
__device__ static size_t output_of(const job &j, int phase, int row) {
    if (j.pass != LT_FUSED_PHASE) {
        return (size_t)(j.conv.pool2 ? row / 4 : row) * j.conv.K;
    }
    int line = row / j.conv.W, image = line / j.conv.H;
    int y = 2 * (line - image * j.conv.H) + phase / 2, x = 2 * (row - line * j.conv.W) + phase % 2;
    return (((size_t)image * j.conv.OH + y) * j.conv.OW + x) * j.conv.K;
}

/* Four rows and four columns of a thread: one window, or four pixels. */
template <int BN>
__device__ static void store_block(const job &j, int phase, int row, int column, const float z[4][4]) {
    const lt_conv &v = j.conv;
    int rows = row_count(j);
    if (column >= v.K || row >= rows) {
        return;
    }
    if (j.split.splits > 1) {
        float *to = j.split.partials + (size_t)blockIdx.z * rows * v.K + column; /* z: split, then phase */
        for (int i = 0; i < 4 && row + i < rows; i++) {
            *(float4 *)(to + (size_t)(row + i) * v.K) = make_float4(z[i][0], z[i][1], z[i][2], z[i][3]);
        }
        return;
    }
    const float *b = j.b ? j.b + column : NULL;
    if (v.pool2) {
        fused_emit<4>(v, z, b, j.y, j.mask, output_of(j, phase, row) + column);
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (row + i < rows) {
            fused_emit<1>(v, z + i, b, j.y, j.mask, output_of(j, phase, row + i) + column);
        }
    }
}

template <int BN, bool QUADS>
__global__ static void __launch_bounds__(FUSED_THREADS, 2) fused_forward(job j) {
    __shared__ fused_memory<BN> memory;
    __shared__ fused_tap taps[LT_FUSED_TAPS_MAX];
    typedef fused_filter_rows<BN, QUADS> filters;
    const lt_conv &v = j.conv;
    int phases = j.pass == LT_FUSED_PHASE ? 4 : 1;
    int phase = (int)blockIdx.z % phases, split = (int)blockIdx.z / phases;
    int tap_count = lt_fused_taps(j.pass, &v), length = tap_count * v.C;
    int first = split * j.split.strips, all = (length + FUSED_DEPTH - 1) / FUSED_DEPTH;
    int strips = all - first < j.split.strips ? all - first : j.split.strips;
    fused_fill_taps(taps, j.pass, v, phase);
    __syncthreads();
    fused_pixel pixel = locate(j, (int)blockIdx.x * FUSED_BM + (int)threadIdx.x / 2);
    int k = (int)blockIdx.y * BN + filters::column();
    const float *filter = filters::column() < BN && k < v.K
                              ? j.w + (phases > 1 ? fused_phase_offset(v, phase) : 0) +
                                    (size_t)k * fused_filter_stride(j.pass, v)
                              : NULL;
    fused_sums<BN> sums = {};
    first *= FUSED_DEPTH;
    if (QUADS) {
        fused_pair<fused_tap_quads<false>, filters> loader = {{j.x, taps, tap_count, pixel, first},
                                                              {filter, length, first}};
        fused_multiply<BN>(memory, loader, strips, sums, [](const float(*)[FUSED_A_STRIDE]) {});
    } else {
        fused_pair<fused_tap_singles<false>, filters> loader = {{j.x, taps, tap_count, pixel, first},
                                                                {filter, length, first}};
        fused_multiply<BN>(memory, loader, strips, sums, [](const float(*)[FUSED_A_STRIDE]) {});
    }
    int row = (int)blockIdx.x * FUSED_BM + fused_row();
    int column = (int)blockIdx.y * BN + fused_column<BN>();
#pragma unroll
    for (int g = 0; g < 2; g++) {
#pragma unroll
        for (int h = 0; h < BN / 64; h++) {
            float z[4][4];
#pragma unroll
            for (int i = 0; i < 16; i++) {
                z[i / 4][i % 4] = sums.at[4 * g + i / 4][4 * h + i % 4];
            }
            store_block<BN>(j, phase, row + 16 * g, column + 32 * h, z);
        }
    }
}

/* The sum of the splits of four channels of one row. */
__device__ static void add_up(const job &j, int phases, int phase, int row, int column, float z[4]) {
    size_t plane = (size_t)row_count(j) * j.conv.K;
    const float *from = j.split.partials + phase * plane + (size_t)row * j.conv.K + column;
    z[0] = z[1] = z[2] = z[3] = 0;
    for (int s = 0; s < j.split.splits; s++) {
        float4 part = *(const float4 *)(from + (size_t)s * phases * plane);
        z[0] += part.x;
        z[1] += part.y;
        z[2] += part.z;
        z[3] += part.w;
    }
}

/* One thread per four channels of an output. */
__global__ static void fused_forward_finish(job j) {
    int phases = j.pass == LT_FUSED_PHASE ? 4 : 1, rows = row_count(j), quads = j.conv.K / 4;
    int outputs = j.conv.pool2 ? rows / 4 : rows;
    size_t i = (size_t)blockIdx.x * FUSED_THREADS + threadIdx.x;
    if (i >= (size_t)phases * outputs * quads) {
        return;
    }
    int column = (int)(i % quads) * 4, phase = (int)(i / quads / outputs),
        output = (int)(i / quads % outputs);
    const float *b = j.b ? j.b + column : NULL;
    if (j.conv.pool2) {
        float z[4][4];
        for (int w = 0; w < 4; w++) {
            add_up(j, phases, phase, 4 * output + w, column, z[w]);
        }
        fused_emit<4>(j.conv, z, b, j.y, j.mask, output_of(j, phase, 4 * output) + column);
    } else {
        float z[1][4];
        add_up(j, phases, phase, output, column, z[0]);
        fused_emit<1>(j.conv, z, b, j.y, j.mask, output_of(j, phase, output) + column);
    }
}

template <int BN> static void launch(cudaStream_t stream, const job &j) {
    int phases = j.pass == LT_FUSED_PHASE ? 4 : 1;
    dim3 grid((unsigned)((row_count(j) + FUSED_BM - 1) / FUSED_BM), (unsigned)((j.conv.K + BN - 1) / BN),
              (unsigned)(j.split.splits * phases));
    if (j.conv.C % 4 == 0) {
        fused_forward<BN, true><<<grid, FUSED_THREADS, 0, stream>>>(j);
    } else {
        fused_forward<BN, false><<<grid, FUSED_THREADS, 0, stream>>>(j);
    }
}

extern "C" void lt_launch_fused_forward(cudaStream_t stream, const lt_fused_forward *call) {
    if (call->conv.K > 64) {
        launch<128>(stream, *call);
    } else {
        launch<64>(stream, *call);
    }
}

extern "C" void lt_launch_fused_forward_finish(cudaStream_t stream, const lt_fused_forward *call) {
    size_t count = (size_t)call->n * call->conv.PH * call->conv.PW * call->conv.K / 4;
    unsigned blocks = (unsigned)((count + FUSED_THREADS - 1) / FUSED_THREADS);
    fused_forward_finish<<<blocks, FUSED_THREADS, 0, stream>>>(*call);
}
