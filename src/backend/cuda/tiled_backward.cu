/* tiled_backward.cu: both gradients over shared-memory tiles (tiled.cuh).
 *
 *   du[pixel][c]    = sum over (r, s, k) of dz[pixel moved back by (r, s)][k] * w[k][r][s][c]
 *   dw[k][(r,s,c)]  = sum over pixels of dz[pixel][k] * u[pixel moved by (r, s)][c]
 *
 * The input gradient is a gather, like the forward pass, so no thread adds to another's output. The weight
 * gradient has few outputs and a sum over all pixels: the pixels are split over blocks, each writes its
 * partial sums, and a second kernel adds those in order. No atomics, so the bits are the same every time.
 */
#include "backend/cuda/tiled.cuh"

/* ---- Input gradient ---------------------------------------------------------------------------- */

/* dz of the output pixel whose filter saw (y, x) of the image at (r, s), or NULL. */
__device__ static const float *seen_by(const lt_conv &v, const float *image, int y, int x, int r, int s) {
    int down = y + v.pad_top - r, right = x + v.pad_left - s;
    int oy = down / v.stride, ox = right / v.stride;
    bool real =
        down >= 0 && right >= 0 && oy * v.stride == down && ox * v.stride == right && oy < v.OH && ox < v.OW;
    return real ? image + ((size_t)oy * v.OW + ox) * v.K : NULL;
}

/* Rows are pixels of u. One strip: 16 filters of one tap. FLAT: 16 (r, s, k) in one index, for odd K. */
template <class T, bool FLAT>
__device__ static void load_gradients(tile_memory<T> &tile, const lt_conv &v, int n, const float *dz, int tap,
                                      int first) {
    enum { STEP = FLAT ? 1 : 4, PIECES = TILED_DEPTH / STEP };
    for (int i = threadIdx.x; i < T::BM * PIECES; i += TILED_THREADS) {
        int row = i / PIECES, d = i % PIECES * STEP, at = first + d;
        int index = (int)blockIdx.x * T::BM + row, line = index / v.UW, image = line / v.UH;
        int t = FLAT ? at / v.K : tap, k = FLAT ? at - t * v.K : at;
        const float *from = NULL;
        if (image < n && t < v.R * v.S) {
            from = seen_by(v, dz + (size_t)image * v.OH * v.OW * v.K, line - image * v.UH,
                           index - line * v.UW, t / v.S, t % v.S);
        }
        if (FLAT) {
            tile.a[d][row] = from ? from[k] : 0;
        } else {
            float4 four = from ? load_four(from + k, v.K - k, true) : make_float4(0, 0, 0, 0);
            store_down(&tile.a[d][row], T::BM + 4, four);
        }
    }
}

/* Columns are channels: a row of the strip is contiguous in w. */
template <class T, bool FLAT>
__device__ static void load_filters(tile_memory<T> &tile, const lt_conv &v, const float *w, int tap,
                                    int first) {
    enum { QUADS = T::BN / 4 };
    for (int i = threadIdx.x; i < TILED_DEPTH * QUADS; i += TILED_THREADS) {
        int d = i / QUADS, column = i % QUADS * 4, c = (int)blockIdx.y * T::BN + column;
        int t = FLAT ? (first + d) / v.K : tap, k = FLAT ? first + d - t * v.K : first + d;
        bool real = k < v.K && t < v.R * v.S;
        const float *from = w + ((size_t)k * v.R * v.S + t) * v.C + c;
        *(float4 *)&tile.b[d][column] = load_four(from, real ? v.C - c : 0, v.C % 4 == 0);
    }
}

template <class T, bool FLAT>
__global__ static void __launch_bounds__(TILED_THREADS)
    tiled_input_gradient(lt_conv v, int n, const float *__restrict__ dz, const float *__restrict__ w,
                         float *__restrict__ du, int add) {
    __shared__ tile_memory<T> tile;
    float sums[T::TM][T::TN] = {};
    int taps = FLAT ? 1 : v.R * v.S, length = FLAT ? v.R * v.S * v.K : v.K;
    for (int tap = 0; tap < taps; tap++) {
        for (int first = 0; first < length; first += TILED_DEPTH) {
            load_gradients<T, FLAT>(tile, v, n, dz, tap, first);
            load_filters<T, FLAT>(tile, v, w, tap, first);
            __syncthreads();
            tile_multiply<T>(tile, sums);
            __syncthreads();
        }
    }
    int row = (int)(blockIdx.x * T::BM + threadIdx.x / T::COLUMNS * T::TM);
    int column = (int)(blockIdx.y * T::BN + threadIdx.x % T::COLUMNS * T::TN);
    for (int i = 0; i < T::TM && row + i < n * v.UH * v.UW; i++) {
        for (int j = 0; j < T::TN && column + j < v.C; j++) {
            float *to = du + (size_t)(row + i) * v.C + column + j;
            *to = add ? *to + sums[i][j] : sums[i][j];
        }
    }
}

template <class T>
static void launch_input(cudaStream_t stream, const lt_conv &v, int n, const float *dz, const float *w,
                         float *du, int add) {
    dim3 grid((unsigned)((n * v.UH * v.UW + T::BM - 1) / T::BM), (unsigned)((v.C + T::BN - 1) / T::BN));
    if (v.K % 4) {
        tiled_input_gradient<T, true><<<grid, TILED_THREADS, 0, stream>>>(v, n, dz, w, du, add);
    } else {
        tiled_input_gradient<T, false><<<grid, TILED_THREADS, 0, stream>>>(v, n, dz, w, du, add);
    }
}

extern "C" void lt_launch_tiled_input_gradient(cudaStream_t stream, lt_conv conv, int n, const float *dz,
                                               const float *w, float *du, int add) {
    if (conv.C <= 4) {
        launch_input<tall_tile>(stream, conv, n, dz, w, du, add);
    } else {
        launch_input<square_tile>(stream, conv, n, dz, w, du, add);
    }
}

/* ---- Weight gradient --------------------------------------------------------------------------- */

/* Four columns (r, s, c) of u, at the pixel whose filter begins at (y, x). Aligned: C is a multiple of 4,
 * so all four belong to one tap. */
__device__ static float4 load_inputs(const lt_conv &v, const float *image, int y, int x, int column) {
    float four[4];
    if (v.C % 4 == 0) {
        int tap = column / v.C, r = tap / v.S, s = tap - r * v.S;
        bool inside = r < v.R && y + r >= 0 && y + r < v.UH && x + s >= 0 && x + s < v.UW;
        const float *from = image + ((ptrdiff_t)(y + r) * v.UW + x + s) * v.C + column - tap * v.C;
        return load_four(from, inside ? 4 : 0, true);
    }
    for (int i = 0; i < 4; i++) {
        int tap = (column + i) / v.C, r = tap / v.S, s = tap - r * v.S;
        bool inside = r < v.R && y + r >= 0 && y + r < v.UH && x + s >= 0 && x + s < v.UW;
        const float *from = image + ((ptrdiff_t)(y + r) * v.UW + x + s) * v.C + column + i - tap * v.C;
        four[i] = inside ? *from : 0;
    }
    return *(float4 *)four;
}

/* Rows are filters, columns (r, s, c); the sum runs over the block's share of the pixels. */
template <class T>
__global__ static void __launch_bounds__(TILED_THREADS)
    tiled_weight_gradient(lt_conv v, int n, int share, const float *__restrict__ u,
                          const float *__restrict__ dz, float *__restrict__ partials) {
    __shared__ tile_memory<T> tile;
    enum { A_QUADS = T::BM / 4, B_QUADS = T::BN / 4 };
    float sums[T::TM][T::TN] = {};
    int pixels = n * v.OH * v.OW, length = v.R * v.S * v.C;
    int begin = (int)blockIdx.z * share, end = begin + share < pixels ? begin + share : pixels;
    for (int first = begin; first < end; first += TILED_DEPTH) {
        for (int i = threadIdx.x; i < TILED_DEPTH * A_QUADS; i += TILED_THREADS) {
            int d = i / A_QUADS, row = i % A_QUADS * 4, k = (int)blockIdx.x * T::BM + row, at = first + d;
            const float *from = dz + (size_t)at * v.K + k;
            *(float4 *)&tile.a[d][row] = load_four(from, at < end ? v.K - k : 0, v.K % 4 == 0);
        }
        for (int i = threadIdx.x; i < TILED_DEPTH * B_QUADS; i += TILED_THREADS) {
            int d = i / B_QUADS, column = i % B_QUADS * 4, at = first + d;
            int line = at / v.OW, image = line / v.OH;
            float4 four = make_float4(0, 0, 0, 0);
            if (at < end) {
                int y = (line - image * v.OH) * v.stride - v.pad_top;
                int x = (at - line * v.OW) * v.stride - v.pad_left;
                four = load_inputs(v, u + (size_t)image * v.UH * v.UW * v.C, y, x,
                                   (int)blockIdx.y * T::BN + column);
            }
            *(float4 *)&tile.b[d][column] = four;
        }
        __syncthreads();
        tile_multiply<T>(tile, sums);
        __syncthreads();
    }
    int row = (int)(blockIdx.x * T::BM + threadIdx.x / T::COLUMNS * T::TM);
    int column = (int)(blockIdx.y * T::BN + threadIdx.x % T::COLUMNS * T::TN);
    float *to = partials + (size_t)blockIdx.z * v.K * length;
    for (int i = 0; i < T::TM && row + i < v.K; i++) {
        for (int j = 0; j < T::TN && column + j < length; j++) {
            to[(size_t)(row + i) * length + column + j] = sums[i][j];
        }
    }
}

template <class T>
static void launch_weight(cudaStream_t stream, const lt_conv &v, int n, int splits, const float *u,
                          const float *dz, float *partials) {
    int pixels = n * v.OH * v.OW, length = v.R * v.S * v.C;
    int share = ((pixels + splits - 1) / splits + TILED_DEPTH - 1) / TILED_DEPTH * TILED_DEPTH;
    dim3 grid((unsigned)((v.K + T::BM - 1) / T::BM), (unsigned)((length + T::BN - 1) / T::BN),
              (unsigned)splits);
    tiled_weight_gradient<T><<<grid, TILED_THREADS, 0, stream>>>(v, n, share, u, dz, partials);
}

/* Enough blocks for any GPU, counted from the shape alone: the order of the sums must not depend on the
 * machine. */
extern "C" int lt_tiled_splits(const lt_conv *conv) {
    enum { BLOCKS = 1024, SPLITS_MAX = 64 };
    int length = conv->R * conv->S * conv->C;
    int tiles = conv->K <= 4 ? (length + 255) / 256 : (conv->K + 63) / 64 * ((length + 63) / 64);
    int splits = (BLOCKS + tiles - 1) / tiles;
    return splits < SPLITS_MAX ? splits : SPLITS_MAX;
}

extern "C" void lt_launch_tiled_weight_gradient(cudaStream_t stream, lt_conv conv, int n, const float *u,
                                                const float *dz, float *partials) {
    int splits = lt_tiled_splits(&conv);
    if (conv.K <= 4) {
        launch_weight<wide_tile>(stream, conv, n, splits, u, dz, partials);
    } else {
        launch_weight<square_tile>(stream, conv, n, splits, u, dz, partials);
    }
}
