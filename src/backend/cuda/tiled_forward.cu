/* tiled_forward.cu: conv + bias + relu in one kernel, over shared-memory tiles.
 *
 *   z[pixel][k] = b[k] + sum over (r, s, c) of u[pixel moved by (r, s)][c] * w[k][r][s][c]
 *
 * Rows of the tile are output pixels, columns filters. The sum is walked tap by tap (3x3 unrolled: the taps
 * become constants) and 16 channels at a time; each thread fetches four channels with one 16-byte load. A
 * thread loads for the same pixels and the same filter throughout, so where they are is worked out once.
 * Where C is no multiple of 4, as for an RGB input, four channels would straddle taps: then the sum is
 * walked flat, (r, s, c) as one index, number by number.
 */
#include "backend/cuda/tiled.cuh"

/* An output pixel and where its filter begins in u. */
typedef struct pixel {
    const float *image;
    int y, x;
    bool real;
} pixel;

__device__ static pixel locate(const lt_conv &v, int n, const float *u, int index) {
    pixel p;
    int row = index / v.OW, image = row / v.OH;
    p.real = image < n;
    p.image = u + (size_t)image * v.UH * v.UW * v.C;
    p.y = (row - image * v.OH) * v.stride - v.pad_top;
    p.x = (index - row * v.OW) * v.stride - v.pad_left;
    return p;
}

/* The channels of the pixel that tap (r, s) sees, or NULL outside. */
__device__ static const float *seen(const lt_conv &v, const pixel &p, int r, int s) {
    int y = p.y + r, x = p.x + s;
    bool inside = p.real && y >= 0 && y < v.UH && x >= 0 && x < v.UW;
    return inside ? p.image + (y * v.UW + x) * v.C : NULL;
}

/* Bias, relu, and the mask where it is wanted. */
template <class T>
__device__ static void store(const lt_conv &v, int n, const float *b, float *z, uint8_t *mask,
                             const float sums[T::TM][T::TN]) {
    int row = (int)(blockIdx.x * T::BM + threadIdx.x / T::COLUMNS * T::TM);
    int column = (int)(blockIdx.y * T::BN + threadIdx.x % T::COLUMNS * T::TN);
    for (int i = 0; i < T::TM && row + i < n * v.OH * v.OW; i++) {
        for (int j = 0; j < T::TN && column + j < v.K; j++) {
            size_t at = (size_t)(row + i) * v.K + column + j;
            float value = sums[i][j] + (b ? b[column + j] : 0);
            z[at] = v.relu && value < 0 ? 0 : value;
            if (mask) {
                mask[at] = value > 0 ? 0 : LT_DEAD;
            }
        }
    }
}

/* C is a multiple of 4. SIDE 3: the filter is 3x3. SIDE 0: any. */
template <class T, int SIDE>
__global__ static void __launch_bounds__(TILED_THREADS)
    tiled_forward(lt_conv v, int n, const float *__restrict__ u, const float *__restrict__ w,
                  const float *__restrict__ b, float *__restrict__ z, uint8_t *__restrict__ mask) {
    enum { QUADS = TILED_DEPTH / 4, ROWS = TILED_THREADS / QUADS, PIECES = T::BM / ROWS };
    __shared__ tile_memory<T> tile;
    float sums[T::TM][T::TN] = {};
    int R = SIDE ? SIDE : v.R, S = SIDE ? SIDE : v.S;
    int own = (int)threadIdx.x / QUADS, term = (int)threadIdx.x % QUADS * 4;
    int k = (int)blockIdx.y * T::BN + own;
    const float *filter = own < T::BN && k < v.K ? w + (size_t)k * R * S * v.C : NULL;
    pixel pixels[PIECES];
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        pixels[i] = locate(v, n, u, (int)blockIdx.x * T::BM + own + i * ROWS);
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
#pragma unroll
        for (int s = 0; s < S; s++) {
            const float *from[PIECES], *weights = filter ? filter + (r * S + s) * v.C : NULL;
#pragma unroll
            for (int i = 0; i < PIECES; i++) {
                from[i] = seen(v, pixels[i], r, s);
            }
            for (int c = term; c < v.C + term; c += TILED_DEPTH) {
#pragma unroll
                for (int i = 0; i < PIECES; i++) {
                    store_down(&tile.a[term][own + i * ROWS], T::BM + 4, quad_or_zero(from[i], c, v.C));
                }
                if (own < T::BN) {
                    store_down(&tile.b[term][own], T::BN + 4, quad_or_zero(weights, c, v.C));
                }
                __syncthreads();
                tile_multiply<T>(tile, sums);
                __syncthreads();
            }
        }
    }
    store<T>(v, n, b, z, mask, sums);
}

/* Any C: the sum's index is flat, and every number finds its own tap. */
template <class T>
__global__ static void __launch_bounds__(TILED_THREADS)
    tiled_forward_flat(lt_conv v, int n, const float *__restrict__ u, const float *__restrict__ w,
                       const float *__restrict__ b, float *__restrict__ z, uint8_t *__restrict__ mask) {
    __shared__ tile_memory<T> tile;
    float sums[T::TM][T::TN] = {};
    int length = v.R * v.S * v.C;
    for (int first = 0; first < length; first += TILED_DEPTH) {
        for (int i = threadIdx.x; i < T::BM * TILED_DEPTH; i += TILED_THREADS) {
            int row = i / TILED_DEPTH, d = i % TILED_DEPTH, at = first + d, tap = at / v.C;
            const float *from =
                at < length ? seen(v, locate(v, n, u, (int)blockIdx.x * T::BM + row), tap / v.S, tap % v.S)
                            : NULL;
            tile.a[d][row] = from ? from[at - tap * v.C] : 0;
        }
        for (int i = threadIdx.x; i < T::BN * TILED_DEPTH; i += TILED_THREADS) {
            int column = i / TILED_DEPTH, d = i % TILED_DEPTH, k = (int)blockIdx.y * T::BN + column;
            tile.b[d][column] = k < v.K && first + d < length ? w[(size_t)k * length + first + d] : 0;
        }
        __syncthreads();
        tile_multiply<T>(tile, sums);
        __syncthreads();
    }
    store<T>(v, n, b, z, mask, sums);
}

template <class T>
static void launch(cudaStream_t stream, const lt_conv &v, int n, const float *u, const float *w,
                   const float *b, float *z, uint8_t *mask) {
    dim3 grid((unsigned)((n * v.OH * v.OW + T::BM - 1) / T::BM), (unsigned)((v.K + T::BN - 1) / T::BN));
    if (v.C % 4) {
        tiled_forward_flat<T><<<grid, TILED_THREADS, 0, stream>>>(v, n, u, w, b, z, mask);
    } else if (v.R == 3 && v.S == 3) {
        tiled_forward<T, 3><<<grid, TILED_THREADS, 0, stream>>>(v, n, u, w, b, z, mask);
    } else {
        tiled_forward<T, 0><<<grid, TILED_THREADS, 0, stream>>>(v, n, u, w, b, z, mask);
    }
}

extern "C" void lt_launch_tiled_forward(cudaStream_t stream, lt_conv conv, int n, const float *u,
                                        const float *w, const float *b, float *z, uint8_t *mask) {
    if (conv.K <= 4) {
        launch<tall_tile>(stream, conv, n, u, w, b, z, mask);
    } else {
        launch<square_tile>(stream, conv, n, u, w, b, z, mask);
    }
}
