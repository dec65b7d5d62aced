/* tensor_forward.cu: a conv with its bias, relu and pool as one product on tensor cores.
 *
 * A block makes 128 pixels by 128 filters (tensor_mma.cuh). Where the depth is long, its slices come in
 * through a ring of four stages, asked for while the tensor cores are busy with the slice before.
 *
 * With a pool, rows are not pixels in order: a thread holds rows g and g+8 of each 16x8 result, so the four
 * pixels of a window are put at rows g and g+8 of two neighbouring results, and the maximum needs no
 * exchange. Nor are columns filters in order: they are dealt so that the results of a thread in four
 * neighbouring 16x8 are eight filters in a row, 16 bytes.
 */
#include "backend/cuda/tensor_rows.cuh"

enum { STAGES = 4, PACK_THREADS = 256 };

/* ---- Weights ----------------------------------------------------------------------------------- */

/* The filter at a column: columns 8j + 2q + e of 32 are filters 8q + 2j + e. */
__device__ static inline int filter_at(int column) {
    int c = column % 32;
    return column - c + c % 8 / 2 * 8 + c / 8 * 2 + c % 2;
}

__global__ static void pack(lt_tensor_forward call, const float *w, bf16 *packed) {
    int at = blockIdx.x * PACK_THREADS + threadIdx.x, place = at % SLICE, rest = at / SLICE;
    int filter = filter_at(rest % call.columns), slice = rest / call.columns;
    int taps = call.conv.R * call.conv.S, depth = taps * call.conv.C;
    if (slice >= call.slices) {
        return;
    }
    int d = slice * SLICE + place;
    if (!call.flat) {
        d = slice % taps * call.conv.C + slice / taps * SLICE + place;
    }
    bool there = filter < call.conv.K && d < depth;
    packed[at] = narrow(there ? w[(size_t)filter * depth + d] : 0.0f);
}

extern "C" void lt_launch_tensor_pack(cudaStream_t stream, const lt_tensor_forward *call, const float *w,
                                      uint16_t *packed) {
    int values = call->slices * call->columns * SLICE;
    pack<<<(values + PACK_THREADS - 1) / PACK_THREADS, PACK_THREADS, 0, stream>>>(*call, w, (bf16 *)packed);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

/* A thread's share of a slice of weights, a tile's columns from `from` on. */
__device__ static inline void load_weights(const uint16_t *from, uint32_t to) {
    int row = threadIdx.x / PIECES, piece = threadIdx.x % PIECES;
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        int down = i * (THREADS / PIECES);
        copy_16(to + piece_at(row + down, piece), from + (row + down) * SLICE + piece * 8, true);
    }
}

/* ---- Results ----------------------------------------------------------------------------------- */

/* Eight filters of one output. */
__device__ static inline void put_eight(const lt_tensor_forward &call, size_t output, int filter,
                                        const float values[8]) {
    bf16 *to = (bf16 *)call.y + output * call.conv.K + filter;
    __align__(16) bf16 narrowed[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        narrowed[i] = narrow(values[i]);
    }
    if (call.conv.K % 8 == 0) {
        *(uint4 *)to = *(const uint4 *)narrowed;
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        if (filter + i < call.conv.K) {
            to[i] = narrowed[i];
        }
    }
}

/* Filters 8q to 8q + 7 of 32, which are half `half` of a warp's columns, at all its outputs. The bias comes
 * after the maximum: rounding keeps the order. */
template <bool POOL>
__device__ static inline void put_half(const lt_tensor_forward &call, const sums &acc, int half, int tile) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4;
    int filter = tile * TILE + warp / 2 * 64 + half * 32 + lane % 4 * 8;
    int outputs = call.n * call.conv.PH * call.conv.PW;
    float bias[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        bias[i] = call.b && filter + i < call.conv.K ? call.b[filter + i] : 0.0f;
    }
#pragma unroll
    for (int g = 0; g < (POOL ? 2 : 8); g++) { /* eight outputs at a time */
        int output = POOL ? blockIdx.x * (TILE / 4) + warp % 2 * 16 + g * 8 + group
                          : blockIdx.x * TILE + warp % 2 * 64 + g * 8 + group;
        float values[8];
#pragma unroll
        for (int i = 0; i < 8; i++) {
            int j = half * 4 + i / 2, e = i % 2;
            float value = acc.of[g / 2][j][g % 2 * 2 + e];
            if (POOL) {
                const float *top = acc.of[2 * g][j], *bottom = acc.of[2 * g + 1][j];
                value = larger(larger(top[e], top[2 + e]), larger(bottom[e], bottom[2 + e]));
            }
            value += bias[i];
            values[i] = call.conv.relu ? larger(value, 0.0f) : value;
        }
        if (output < outputs && filter < call.conv.K) {
            put_eight(call, (size_t)output, filter, values);
        }
    }
}

template <bool POOL>
__device__ static inline void put_sums(const lt_tensor_forward &call, const sums &acc, int tile) {
    put_half<POOL>(call, acc, 0, tile);
    put_half<POOL>(call, acc, 1, tile);
}
#endif

/* ---- The kernels ------------------------------------------------------------------------------- */

template <bool POOL, bool UP>
__global__ static void __launch_bounds__(THREADS, 2) forward_taps(lt_tensor_forward call) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    extern __shared__ __align__(128) unsigned char stages[]; /* [STAGES][pixels, filters][TILE_BYTES] */
    uint32_t base = (uint32_t)__cvta_generic_to_shared(stages);
    const uint16_t *weights = call.packed + (size_t)blockIdx.y * TILE * SLICE;
    tap_row rows[LOADS];
    tap_cursor tap = {0, 0, 0, 1, 0};
    sums acc = {};
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        rows[i] = find_tap_row<POOL, UP>(call, threadIdx.x / PIECES + i * (THREADS / PIECES));
    }
    for (int slice = 0; slice < STAGES - 1; slice++) {
        if (slice < call.slices) {
            load_tap<UP>(call.conv, rows, tap, base + slice * 2 * TILE_BYTES);
            load_weights(weights, base + slice * 2 * TILE_BYTES + TILE_BYTES);
            weights += call.columns * SLICE;
        }
        copies_end_group();
    }
    for (int slice = 0; slice < call.slices; slice++) {
        uint32_t from = base + slice % STAGES * 2 * TILE_BYTES;
        factors first, second;
        copies_wait<STAGES - 2>();
        __syncthreads(); /* this slice is there, and everyone is done with the one that is overwritten now */
        load_factors(from, from + TILE_BYTES, 0, first);
        load_factors(from, from + TILE_BYTES, 1, second);
        if (slice + STAGES - 1 < call.slices) {
            uint32_t to = base + (slice + STAGES - 1) % STAGES * 2 * TILE_BYTES;
            load_tap<UP>(call.conv, rows, tap, to);
            load_weights(weights, to + TILE_BYTES);
            weights += call.columns * SLICE;
        }
        copies_end_group();
        multiply(first, acc);
        multiply(second, acc);
    }
    put_sums<POOL>(call, acc, blockIdx.y);
#endif
}

/* A block takes every gridDim.y-th tile of filters. One slice of pixels serves them all. */
template <typename ROWS, bool POOL>
__global__ static void __launch_bounds__(THREADS, 2) forward_flat(lt_tensor_forward call) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    __shared__ __align__(128) unsigned char pixels[TILE_BYTES], filters[TILE_BYTES];
    uint32_t a = (uint32_t)__cvta_generic_to_shared(pixels), b = (uint32_t)__cvta_generic_to_shared(filters);
    ROWS rows;
    rows.template find<POOL>(call);
    for (int tile = blockIdx.y; tile * TILE < call.columns; tile += gridDim.y) {
        sums acc = {};
        for (int slice = 0; slice < call.slices; slice++) {
            load_weights(call.packed + ((size_t)slice * call.columns + tile * TILE) * SLICE, b);
            copies_end_group();
            if (call.slices > 1 || tile == blockIdx.y) {
                rows.load(call, slice, pixels);
            }
            copies_wait<0>();
            __syncthreads();
#pragma unroll
            for (int k = 0; k < 2; k++) {
                factors f;
                load_factors(a, b, k, f);
                multiply(f, acc);
            }
            __syncthreads();
        }
        put_sums<POOL>(call, acc, tile);
    }
#endif
}

template <bool POOL, bool UP>
static void launch_taps(cudaStream_t stream, const lt_tensor_forward *call, dim3 grid) {
    int bytes = STAGES * 2 * TILE_BYTES;
    /* A failure shows at the launch. */
    (void)cudaFuncSetAttribute(forward_taps<POOL, UP>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    forward_taps<POOL, UP><<<grid, THREADS, bytes, stream>>>(*call);
}

template <bool POOL> static void launch(cudaStream_t stream, const lt_tensor_forward *call, dim3 grid) {
    if (!call->flat && call->conv.up2) {
        launch_taps<POOL, true>(stream, call, grid);
        return;
    }
    if (!call->flat) {
        launch_taps<POOL, false>(stream, call, grid);
        return;
    }
    grid.y = call->slices == 1 ? 1 : grid.y;
    if (call->x_type == LT_BF16) {
        forward_flat<long_rows<bf16>, POOL><<<grid, THREADS, 0, stream>>>(*call);
    } else if (call->slices == 1 && call->conv.C == 1) {
        forward_flat<short_rows<1>, POOL><<<grid, THREADS, 0, stream>>>(*call);
    } else if (call->slices == 1 && call->conv.C == 3) {
        forward_flat<short_rows<3>, POOL><<<grid, THREADS, 0, stream>>>(*call);
    } else {
        forward_flat<long_rows<float>, POOL><<<grid, THREADS, 0, stream>>>(*call);
    }
}

extern "C" void lt_launch_tensor_forward(cudaStream_t stream, const lt_tensor_forward *call) {
    int outputs = call->n * call->conv.PH * call->conv.PW, rows = call->conv.pool2 ? TILE / 4 : TILE;
    dim3 grid((unsigned)((outputs + rows - 1) / rows), (unsigned)(call->columns / TILE));
    if (call->conv.pool2) {
        launch<true>(stream, call, grid);
    } else {
        launch<false>(stream, call, grid);
    }
}

/* Code for older architectures, which a build may hold as PTX for all newer ones, has empty kernels. */
extern "C" int lt_tensor_code_check(void) {
    cudaFuncAttributes attributes;
    cudaError_t error = cudaFuncGetAttributes(&attributes, (const void *)forward_taps<false, false>);
    (void)cudaGetLastError();
    return error == cudaSuccess && attributes.ptxVersion >= 80;
}
