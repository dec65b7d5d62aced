/* fused_weight.cu: the gradient of a conv by its weights and bias, through pool and relu.
 *
 *   dw[k][(tap, c)] = sum over pixels of dz[pixel][k] * x[pixel moved by tap][c]       db[k] = sum of dz
 *
 * Few outputs, a sum over every pixel of the batch: the pixels are split over blocks, each writes partial
 * sums, and fused_weight_finish adds them in order, undoes the summing of weights (dw[r] collects from the
 * taps 2-r and 3-r, k4s2.cuh) and adds to the gradient block. The blocks of the first columns also add up
 * dz itself as it passes through shared memory: the bias costs no pass of its own.
 *
 * An upsampling conv is four plain ones, by the parity (a, b) of the output pixel: dz is read at (2i+a,
 * 2j+b), x at the small image's neighbours. Columns are then (phase, place, c).
 */
#include "backend/cuda/fused_loaders.cuh"

typedef lt_fused_weight job;

enum { FINISH_THREADS = 256 };

/* One walk over the pixels feeds both factors. */
template <class Left, class Right> struct walk {
    fused_walker walker;
    Left left;
    Right right;
    __device__ void fetch() {
        left.fetch(walker);
        right.fetch(walker);
        walker.next();
    }
    template <class A, class B> __device__ void store(A *a, B *b) const {
        left.store(a);
        right.store(b);
    }
};

template <int BN>
__device__ static void store_partials(float *to, int rows, int columns, int limit, int first,
                                      const fused_sums<BN> &sums) {
    int row = (int)blockIdx.x * FUSED_BM + fused_row(), column = first + fused_column<BN>();
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int at = row + i % 4 + i / 4 * 16;
#pragma unroll
        for (int j = 0; j < fused_sums<BN>::COLUMNS; j++) {
            int place = column + j % 4 + j / 4 * 32;
            if (at < rows && place < limit) {
                to[(size_t)at * columns + place] = sums.at[i][j];
            }
        }
    }
}

/* Rows are filters. QUADS: C is a multiple of 4; else columns are taken one by one, in tiles of 64. */
template <int BN, bool QUADS, bool MASKED>
__global__ static void __launch_bounds__(FUSED_THREADS, 2) fused_weight(job j) {
    __shared__ fused_memory<BN> memory;
    __shared__ fused_tap taps[LT_FUSED_TAPS_MAX];
    const lt_conv &v = j.conv;
    int phases = j.pass == LT_FUSED_PHASE ? 4 : 1, tap_count = lt_fused_taps(j.pass, &v);
    int length = tap_count * v.C, tiles = (length + BN - 1) / BN; /* of one phase */
    int phase = (int)blockIdx.y / tiles, first = (int)blockIdx.y % tiles * BN;
    int H = phases > 1 ? v.H : v.OH, W = phases > 1 ? v.W : v.OW;
    int share = j.split.strips * FUSED_DEPTH, begin = (int)blockIdx.z * share, all = j.n * H * W;
    int end = begin + share < all ? begin + share : all;
    fused_fill_taps(taps, j.pass, v, phase);
    __syncthreads();

    int k = (int)blockIdx.x * FUSED_BM + (int)threadIdx.x % 32 * 4;
    fused_tap parity = {(short)(phase / 2), (short)(phase % 2), 0};
    typedef fused_pixel_quads<FUSED_BM, MASKED> gradients;
    gradients left(j.dz, phases > 1 ? 2 : 1, parity, k, k < v.K);
    int scale = fused_scale(j.pass, v),
        strips = end > begin ? (end - begin + FUSED_DEPTH - 1) / FUSED_DEPTH : 0;
    fused_walker walker(H, W, begin, end);
    fused_sums<BN> sums = {};
    float bias = 0;
    bool sums_bias = j.bias_partials && first == 0 && (int)threadIdx.x < FUSED_BM;
    auto add_bias = [&](const float(*a)[FUSED_A_STRIDE]) {
        if (sums_bias) {
#pragma unroll
            for (int d = 0; d < FUSED_DEPTH; d++) {
                bias += a[d][threadIdx.x];
            }
        }
    };
    if (QUADS) {
        int column = first + (int)threadIdx.x % 32 * 4, tap = column / v.C;
        bool inside = column < length;
        typedef fused_pixel_quads<BN, false> inputs;
        walk<gradients, inputs> loader = {
            walker, left, inputs(j.x, scale, taps[inside ? tap : 0], column - tap * v.C, inside)};
        fused_multiply<BN>(memory, loader, strips, sums, add_bias);
    } else {
        typedef fused_pixel_singles<false> inputs;
        walk<gradients, inputs> loader = {walker, left, inputs(j.x, scale, taps, tap_count, first)};
        fused_multiply<BN>(memory, loader, strips, sums, add_bias);
    }
    size_t columns = (size_t)phases * length;
    store_partials<BN>(j.split.partials + (size_t)blockIdx.z * v.K * columns + (size_t)phase * length, v.K,
                       (int)columns, length, first, sums);
    int row = (int)blockIdx.x * FUSED_BM + (int)threadIdx.x;
    if (sums_bias && row < v.K) {
        j.bias_partials[((size_t)blockIdx.z * phases + phase) * v.K + row] = bias;
    }
}

/* Few filters: rows are channels, columns (tap, filter), and the walk is over pixels of x. */
template <bool MASKED> __global__ static void __launch_bounds__(FUSED_THREADS, 2) fused_thin_weight(job j) {
    enum { BN = 64 };
    __shared__ fused_memory<BN> memory;
    __shared__ fused_tap taps[LT_FUSED_TAPS_MAX];
    const lt_conv &v = j.conv;
    int tap_count = lt_fused_taps(j.pass, &v), length = tap_count * v.K, first = (int)blockIdx.y * BN;
    int share = j.split.strips * FUSED_DEPTH, begin = (int)blockIdx.z * share, all = j.n * v.H * v.W;
    int end = begin + share < all ? begin + share : all;
    fused_fill_taps(taps, j.pass, v, 0);
    __syncthreads();
    int channel = (int)blockIdx.x * FUSED_BM + (int)threadIdx.x % 32 * 4;
    fused_tap here = {0, 0, 0};
    typedef fused_pixel_quads<FUSED_BM, false> inputs;
    typedef fused_pixel_singles<MASKED> gradients;
    walk<inputs, gradients> loader = {fused_walker(v.H, v.W, begin, end),
                                      inputs(j.x, 1, here, channel, channel < v.C),
                                      gradients(j.dz, fused_scale(j.pass, v), taps, tap_count, first)};
    fused_sums<BN> sums = {};
    int strips = end > begin ? (end - begin + FUSED_DEPTH - 1) / FUSED_DEPTH : 0;
    fused_multiply<BN>(memory, loader, strips, sums, [](const float(*)[FUSED_A_STRIDE]) {});
    store_partials<BN>(j.split.partials + (size_t)blockIdx.z * v.C * length, v.C, length, length, first,
                       sums);
}

template <int BN, bool QUADS> static void launch(cudaStream_t stream, const job &j) {
    int phases = j.pass == LT_FUSED_PHASE ? 4 : 1, length = lt_fused_taps(j.pass, &j.conv) * j.conv.C;
    dim3 grid((unsigned)((j.conv.K + FUSED_BM - 1) / FUSED_BM), (unsigned)((length + BN - 1) / BN * phases),
              (unsigned)j.split.splits);
    if (j.dz.mask) {
        fused_weight<BN, QUADS, true><<<grid, FUSED_THREADS, 0, stream>>>(j);
    } else {
        fused_weight<BN, QUADS, false><<<grid, FUSED_THREADS, 0, stream>>>(j);
    }
}

extern "C" void lt_launch_fused_weight(cudaStream_t stream, const lt_fused_weight *call) {
    if (call->conv.C % 4) {
        launch<64, false>(stream, *call);
    } else if (lt_fused_taps(call->pass, &call->conv) * call->conv.C > 64) {
        launch<128, true>(stream, *call);
    } else {
        launch<64, true>(stream, *call);
    }
}

extern "C" void lt_launch_fused_thin_weight(cudaStream_t stream, const lt_fused_weight *call) {
    int length = lt_fused_taps(call->pass, &call->conv) * call->conv.K;
    dim3 grid((unsigned)((call->conv.C + FUSED_BM - 1) / FUSED_BM), (unsigned)((length + 63) / 64),
              (unsigned)call->split.splits);
    if (call->dz.mask) {
        fused_thin_weight<true><<<grid, FUSED_THREADS, 0, stream>>>(*call);
    } else {
        fused_thin_weight<false><<<grid, FUSED_THREADS, 0, stream>>>(*call);
    }
}
