/* fused_thin.cu: convs with few filters, as the last layer's three, with the loss in the same pass.
 *
 * A tile of 128 filters would be nearly all padding. So the sum over channels is done once for every pixel
 * and every (tap, filter), P[pixel][(tap, k)] = sum over c of x[pixel][c] * w[k][tap][c], a plain product
 * with taps*K columns; then each output adds up its taps' entries of its neighbours' rows:
 *     y[oy][ox][k] = b[k] + sum over taps of P[the pixel the tap sees][(tap, k)]
 * P is small beside x (48 numbers a pixel instead of 256) and stays in the cache. The second kernel also
 * does relu, pool, and the loss with its gradient.
 */
#include "backend/cuda/fused_epilogue.cuh"
#include "backend/cuda/fused_loaders.cuh"
#include "backend/cuda/reduce.cuh"

typedef lt_fused_thin job;

__device__ __host__ static inline lt_fused_pass pass_of(const job &j) {
    return j.k4s2 ? LT_FUSED_BACK_K4S2 : LT_FUSED_FORWARD;
}

typedef fused_pair<fused_tap_quads<false>, fused_filter_rows<64, true>> products_loader;

/* P = X V, C a multiple of 4. */
__global__ static void __launch_bounds__(FUSED_THREADS, 2) fused_thin_products(job j) {
    enum { BN = 64 };
    __shared__ fused_memory<BN> memory;
    __shared__ fused_tap here; /* the sum over channels has one tap */
    const lt_conv &v = j.conv;
    int rows = j.n * v.H * v.W, columns = lt_fused_taps(pass_of(j), &v) * v.K;
    if (threadIdx.x == 0) {
        here.y = here.x = 0;
        here.weight = 0;
    }
    __syncthreads();
    int row = (int)blockIdx.x * FUSED_BM + (int)threadIdx.x / 2;
    lt_fused_view flat = {j.x, NULL, 1, 1, v.C, 0}; /* every pixel is an image of its own */
    fused_pixel pixel = {(size_t)row * v.C, 0, 0, row < rows};
    int at = fused_filter_rows<BN, true>::column(), column = (int)blockIdx.y * BN + at;
    const float *filter = NULL;
    if (at < BN && column < columns) {
        int tap = column / v.K;
        filter = j.w + (size_t)(column - tap * v.K) * fused_filter_stride(pass_of(j), v) +
                 fused_make_tap(pass_of(j), v, 0, tap).weight;
    }
    products_loader loader = {{flat, &here, 1, pixel, 0}, {filter, v.C, 0}};
    fused_sums<BN> sums = {};
    fused_multiply<BN>(memory, loader, (v.C + FUSED_DEPTH - 1) / FUSED_DEPTH, sums,
                       [](const float(*)[FUSED_A_STRIDE]) {});
    int first = (int)blockIdx.x * FUSED_BM + fused_row(), place = (int)blockIdx.y * BN + fused_column<BN>();
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int to = first + i % 4 + i / 4 * 16;
        if (to < rows && place < j.pitch) {
            const float *s = sums.at[i];
            *(float4 *)(j.products + (size_t)to * j.pitch + place) = make_float4(s[0], s[1], s[2], s[3]);
        }
    }
}

/* The conv's own output at (oy, ox), without bias. */
__device__ static float add_taps(const job &j, int image, int oy, int ox, int k) {
    const lt_conv &v = j.conv;
    const float *from = j.products + (size_t)image * v.H * v.W * j.pitch + k;
    float sum = 0;
    if (j.k4s2) { /* low-res row i is seen at tap t when oy = 2i + t - 1 */
        for (int ty = (oy + 1) % 2; ty < 4; ty += 2) {
            int y = (oy + 1 - ty) / 2;
            for (int tx = (ox + 1) % 2; tx < 4; tx += 2) {
                int x = (ox + 1 - tx) / 2;
                if (oy + 1 >= ty && ox + 1 >= tx && y < v.H && x < v.W) {
                    sum += from[(size_t)(y * v.W + x) * j.pitch + (ty * 4 + tx) * v.K];
                }
            }
        }
        return sum;
    }
    for (int r = 0; r < v.R; r++) {
        int y = oy * v.stride + r - v.pad_top;
        for (int s = 0; s < v.S; s++) {
            int x = ox * v.stride + s - v.pad_left;
            if (y >= 0 && y < v.UH && x >= 0 && x < v.UW) {
                int pixel = (y >> v.up2) * v.W + (x >> v.up2);
                sum += from[(size_t)pixel * j.pitch + (r * v.S + s) * v.K];
            }
        }
    }
    return sum;
}

/* One output at a time a thread; the number of blocks is that of the loss's partial sums. */
__global__ static void fused_thin_sums(job j, size_t count, float scale) {
    __shared__ double block[LT_LOSS_THREADS];
    const lt_conv &v = j.conv;
    float loss = 0;
    size_t step = (size_t)gridDim.x * LT_LOSS_THREADS;
    for (size_t i = (size_t)blockIdx.x * LT_LOSS_THREADS + threadIdx.x; i < count; i += step) {
        size_t pixel = i / v.K, line = pixel / v.PW;
        int k = (int)(i - pixel * v.K), x = (int)(pixel - line * v.PW), y = (int)(line % v.PH);
        int image = (int)(line / v.PH);
        float window[4], bias = j.b ? j.b[k] : 0, out;
        uint32_t position;
        if (v.pool2) {
            for (int w = 0; w < 4; w++) {
                window[w] = add_taps(j, image, 2 * y + w / 2, 2 * x + w % 2, k);
            }
            out = fused_activate(v, window, 4, bias, &position);
        } else {
            window[0] = add_taps(j, image, y, x, k);
            out = fused_activate(v, window, 1, bias, &position);
        }
        j.y[i] = out;
        if (j.mask) {
            j.mask[i] = (uint8_t)position;
        }
        if (j.target) {
            float difference = out - j.target[i];
            loss += difference * difference;
            if (j.dy) {
                j.dy[i] = scale * difference;
            }
        }
    }
    if (j.target) {
        double total = lt_block_sum<LT_LOSS_THREADS>(loss, block);
        if (threadIdx.x == 0) {
            j.loss_partials[blockIdx.x] = total;
        }
    }
}

/* db of a conv with few filters: every live output's gradient counts once, wherever in its window it goes. */
__global__ static void fused_thin_bias(const float *dy, const uint8_t *mask, size_t outputs, int K,
                                       int splits, float *partials) {
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    size_t share = (outputs + splits - 1) / splits, first = blockIdx.y * share;
    size_t last = first + share < outputs ? first + share : outputs;
    if (k < K) {
        float sum = 0;
        for (size_t i = first; i < last; i++) {
            sum += !mask || mask[i * K + k] != LT_DEAD ? dy[i * K + k] : 0;
        }
        partials[(size_t)blockIdx.y * K + k] = sum;
    }
}

extern "C" void lt_launch_fused_thin_products(cudaStream_t stream, const lt_fused_thin *call) {
    int rows = call->n * call->conv.H * call->conv.W;
    dim3 grid((unsigned)((rows + FUSED_BM - 1) / FUSED_BM), (unsigned)((call->pitch + 63) / 64));
    fused_thin_products<<<grid, FUSED_THREADS, 0, stream>>>(*call);
}

extern "C" void lt_launch_fused_thin_sums(cudaStream_t stream, const lt_fused_thin *call) {
    const lt_conv &v = call->conv;
    size_t count = (size_t)call->n * v.PH * v.PW * v.K;
    fused_thin_sums<<<lt_loss_blocks(count), LT_LOSS_THREADS, 0, stream>>>(*call, count,
                                                                           (float)(2.0 / (double)count));
}

extern "C" void lt_launch_fused_thin_bias(cudaStream_t stream, const lt_fused_weight *call) {
    const lt_conv &v = call->conv;
    dim3 grid((unsigned)((v.K + 31) / 32), (unsigned)call->bias_splits);
    fused_thin_bias<<<grid, 32, 0, stream>>>(call->dz.data, call->dz.mask, (size_t)call->n * v.PH * v.PW, v.K,
                                             call->bias_splits, call->bias_partials);
}
