/* tiled_backward.cu: the gradient by the input, over shared-memory tiles (tiled.cuh).
 *
 *   du[pixel][c] = sum over (r, s, k) of dz[pixel moved back by (r, s)][k] * w[k][r][s][c]
 *
 * A gather, like the forward pass: each du collects what it is due, so no thread adds to another's output
 * and no atomics are needed. Rows of the tile are pixels of u, columns channels.
 */
#include "backend/cuda/tiled.cuh"

/* A pixel of u, and dz of its image. */
typedef struct pixel {
    const float *image;
    int y, x;
    bool real;
} pixel;

__device__ static pixel locate(const lt_conv &v, int n, const float *dz, int index) {
    pixel p;
    int line = index / v.UW, image = line / v.UH;
    p.real = image < n;
    p.image = dz + (size_t)image * v.OH * v.OW * v.K;
    p.y = line - image * v.UH;
    p.x = index - line * v.UW;
    return p;
}

/* dz of the output pixel whose filter saw the pixel at (r, s), or NULL. */
__device__ static const float *seen_by(const lt_conv &v, const pixel &p, int r, int s) {
    int down = p.y + v.pad_top - r, right = p.x + v.pad_left - s;
    int oy = down, ox = right;
    if (v.stride > 1) {
        oy = down / v.stride;
        ox = right / v.stride;
    }
    bool real = p.real && down >= 0 && right >= 0 && oy * v.stride == down && ox * v.stride == right &&
                oy < v.OH && ox < v.OW;
    return real ? p.image + (oy * v.OW + ox) * v.K : NULL;
}

template <class T>
__device__ static void store(const lt_conv &v, int n, float *du, int add, const float sums[T::TM][T::TN]) {
    int row = (int)(blockIdx.x * T::BM + threadIdx.x / T::COLUMNS * T::TM);
    int column = (int)(blockIdx.y * T::BN + threadIdx.x % T::COLUMNS * T::TN);
    for (int i = 0; i < T::TM && row + i < n * v.UH * v.UW; i++) {
        for (int j = 0; j < T::TN && column + j < v.C; j++) {
            float *to = du + (size_t)(row + i) * v.C + column + j;
            *to = add ? *to + sums[i][j] : sums[i][j];
        }
    }
}

/* K is a multiple of 4: 16 filters of one tap at a time. */
template <class T>
__global__ static void __launch_bounds__(TILED_THREADS)
    tiled_input_gradient(lt_conv v, int n, const float *__restrict__ dz, const float *__restrict__ w,
                         float *__restrict__ du, int add) {
    enum { QUADS = TILED_DEPTH / 4, ROWS = TILED_THREADS / QUADS, PIECES = T::BM / ROWS };
    enum { B_QUADS = T::BN / 4 };
    __shared__ tile_memory<T> tile;
    float sums[T::TM][T::TN] = {};
    int own = (int)threadIdx.x / QUADS, term = (int)threadIdx.x % QUADS * 4;
    pixel pixels[PIECES];
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        pixels[i] = locate(v, n, dz, (int)blockIdx.x * T::BM + own + i * ROWS);
    }
    int d = (int)threadIdx.x / B_QUADS, column = (int)threadIdx.x % B_QUADS * 4;
    int channel = (int)blockIdx.y * T::BN + column, filter = v.R * v.S * v.C;
    for (int tap = 0; tap < v.R * v.S; tap++) {
        const float *from[PIECES], *weights = w + tap * v.C + channel;
#pragma unroll
        for (int i = 0; i < PIECES; i++) {
            from[i] = seen_by(v, pixels[i], tap / v.S, tap % v.S);
        }
        for (int k = 0; k < v.K; k += TILED_DEPTH) {
#pragma unroll
            for (int i = 0; i < PIECES; i++) {
                store_down(&tile.a[term][own + i * ROWS], T::BM + 4, quad_or_zero(from[i], k + term, v.K));
            }
            if (d < TILED_DEPTH) {
                int room = k + d < v.K ? v.C - channel : 0;
                *(float4 *)&tile.b[d][column] =
                    load_four(weights + (size_t)(k + d) * filter, room, v.C % 4 == 0);
            }
            __syncthreads();
            tile_multiply<T>(tile, sums);
            __syncthreads();
        }
    }
    store<T>(v, n, du, add, sums);
}

/* Any K: (r, s, k) as one index, number by number. */
template <class T>
__global__ static void __launch_bounds__(TILED_THREADS)
    tiled_input_gradient_flat(lt_conv v, int n, const float *__restrict__ dz, const float *__restrict__ w,
                              float *__restrict__ du, int add) {
    __shared__ tile_memory<T> tile;
    float sums[T::TM][T::TN] = {};
    int length = v.R * v.S * v.K;
    for (int first = 0; first < length; first += TILED_DEPTH) {
        for (int i = threadIdx.x; i < T::BM * TILED_DEPTH; i += TILED_THREADS) {
            int row = i / TILED_DEPTH, d = i % TILED_DEPTH, at = first + d, tap = at / v.K;
            const float *from = at < length ? seen_by(v, locate(v, n, dz, (int)blockIdx.x * T::BM + row),
                                                      tap / v.S, tap % v.S)
                                            : NULL;
            tile.a[d][row] = from ? from[at - tap * v.K] : 0;
        }
        for (int i = threadIdx.x; i < T::BN * TILED_DEPTH; i += TILED_THREADS) {
            int d = i / T::BN, column = i % T::BN, c = (int)blockIdx.y * T::BN + column;
            int at = first + d, tap = at / v.K, k = at - tap * v.K;
            tile.b[d][column] = at < length && c < v.C ? w[((size_t)k * v.R * v.S + tap) * v.C + c] : 0;
        }
        __syncthreads();
        tile_multiply<T>(tile, sums);
        __syncthreads();
    }
    store<T>(v, n, du, add, sums);
}

template <class T>
static void launch(cudaStream_t stream, const lt_conv &v, int n, const float *dz, const float *w, float *du,
                   int add) {
    dim3 grid((unsigned)((n * v.UH * v.UW + T::BM - 1) / T::BM), (unsigned)((v.C + T::BN - 1) / T::BN));
    if (v.K % 4) {
        tiled_input_gradient_flat<T><<<grid, TILED_THREADS, 0, stream>>>(v, n, dz, w, du, add);
    } else {
        tiled_input_gradient<T><<<grid, TILED_THREADS, 0, stream>>>(v, n, dz, w, du, add);
    }
}

extern "C" void lt_launch_tiled_input_gradient(cudaStream_t stream, lt_conv conv, int n, const float *dz,
                                               const float *w, float *du, int add) {
    if (conv.C <= 4) {
        launch<tall_tile>(stream, conv, n, dz, w, du, add);
    } else {
        launch<square_tile>(stream, conv, n, dz, w, du, add);
    }
}
