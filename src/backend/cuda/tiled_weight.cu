/* tiled_weight.cu: the gradient by the weights, over shared-memory tiles (tiled.cuh).
 *
 *   dw[k][(r,s,c)] = sum over pixels of dz[pixel][k] * u[pixel moved by (r, s)][c]
 *
 * Few outputs and a sum over every pixel of the batch: the pixels are split over blocks, each writes its
 * partial sums, and a second kernel adds those in order. No atomics, so the bits are the same every time.
 * Rows of the tile are filters, columns (r, s, c); a thread's column does not change, so its tap is worked
 * out once, and its pixels are walked to, sixteen further each time, instead of divided for.
 */
#include "backend/cuda/tiled.cuh"

/* An output pixel by its place in the batch. */
typedef struct walker {
    int at, y, x;
    size_t image;
} walker;

__device__ static walker walk_from(const lt_conv &v, int at) {
    int line = at / v.OW, image = line / v.OH;
    walker p = {at, line - image * v.OH, at - line * v.OW, (size_t)image};
    return p;
}

__device__ static void walk(const lt_conv &v, walker &p, int steps) {
    p.at += steps;
    p.x += steps;
    while (p.x >= v.OW) {
        p.x -= v.OW;
        if (++p.y == v.OH) {
            p.y = 0;
            p.image++;
        }
    }
}

/* What a column is: a tap and a channel. */
typedef struct place {
    int down, right, c;
    bool real;
} place;

__device__ static place column_of(const lt_conv &v, int column) {
    int tap = column / v.C, r = tap / v.S;
    place at = {r - v.pad_top, tap - r * v.S - v.pad_left, column - tap * v.C, r < v.R};
    return at;
}

__device__ static const float *seen(const lt_conv &v, const float *u, const walker &p, const place &at) {
    int y = p.y * v.stride + at.down, x = p.x * v.stride + at.right;
    bool inside = at.real && y >= 0 && y < v.UH && x >= 0 && x < v.UW;
    return inside ? u + ((p.image * v.UH + y) * v.UW + x) * v.C + at.c : NULL;
}

/* QUADS: C is a multiple of 4, so four neighbouring columns belong to one tap. */
template <class T, bool QUADS>
__global__ static void __launch_bounds__(TILED_THREADS)
    tiled_weight_gradient(lt_conv v, int n, int share, const float *__restrict__ u,
                          const float *__restrict__ dz, float *__restrict__ partials) {
    enum { A_QUADS = T::BM / 4, B_QUADS = T::BN / 4, ROWS = TILED_THREADS / B_QUADS };
    __shared__ tile_memory<T> tile;
    float sums[T::TM][T::TN] = {};
    int pixels = n * v.OH * v.OW, length = v.R * v.S * v.C;
    int begin = (int)blockIdx.z * share, end = begin + share < pixels ? begin + share : pixels;
    int a_row = (int)threadIdx.x / A_QUADS, a_column = (int)threadIdx.x % A_QUADS * 4;
    int k = (int)blockIdx.x * T::BM + a_column;
    int b_row = (int)threadIdx.x / B_QUADS, b_column = (int)threadIdx.x % B_QUADS * 4;
    place places[QUADS ? 1 : 4];
#pragma unroll
    for (int i = 0; i < (QUADS ? 1 : 4); i++) {
        places[i] = column_of(v, (int)blockIdx.y * T::BN + b_column + i);
    }
    walker pixel = walk_from(v, begin + b_row);
    for (int first = begin; first < end; first += TILED_DEPTH) {
        if (a_row < TILED_DEPTH) {
            int room = first + a_row < end ? v.K - k : 0;
            const float *from = dz + (size_t)(first + a_row) * v.K + k;
            *(float4 *)&tile.a[a_row][a_column] = load_four(from, room, v.K % 4 == 0);
        }
#pragma unroll
        for (int d = 0; d < TILED_DEPTH; d += ROWS) {
            float four[4] = {0, 0, 0, 0};
            if (QUADS) {
                const float *from = pixel.at < end ? seen(v, u, pixel, places[0]) : NULL;
                *(float4 *)four = quad_or_zero(from, 0, 4);
            } else {
#pragma unroll
                for (int i = 0; i < (QUADS ? 1 : 4); i++) {
                    const float *from = pixel.at < end ? seen(v, u, pixel, places[i]) : NULL;
                    four[i] = from ? *from : 0;
                }
            }
            *(float4 *)&tile.b[b_row + d][b_column] = *(float4 *)four;
            walk(v, pixel, ROWS);
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
static void launch(cudaStream_t stream, const lt_conv &v, int n, int splits, const float *u, const float *dz,
                   float *partials) {
    int pixels = n * v.OH * v.OW, length = v.R * v.S * v.C;
    int share = ((pixels + splits - 1) / splits + TILED_DEPTH - 1) / TILED_DEPTH * TILED_DEPTH;
    dim3 grid((unsigned)((v.K + T::BM - 1) / T::BM), (unsigned)((length + T::BN - 1) / T::BN),
              (unsigned)splits);
    if (v.C % 4) {
        tiled_weight_gradient<T, false><<<grid, TILED_THREADS, 0, stream>>>(v, n, share, u, dz, partials);
    } else {
        tiled_weight_gradient<T, true><<<grid, TILED_THREADS, 0, stream>>>(v, n, share, u, dz, partials);
    }
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
        launch<wide_tile>(stream, conv, n, splits, u, dz, partials);
    } else {
        launch<square_tile>(stream, conv, n, splits, u, dz, partials);
    }
}
