/* tensor_forward.cu: a conv with its bias, relu and pool as one product on tensor cores.
 *
 * A block of four warps makes 128 pixels by 128 filters, a warp 64 by 64 of them, with the instruction
 * m16n8k16. Slices of the operands, 128 rows of 32 bf16, come in through a ring of four stages; a row's four
 * pieces of 16 bytes are permuted so that the eight rows that ldmatrix reads at once lie in different banks.
 *
 * With a pool, rows are not pixels in order: a thread holds rows g and g+8 of each 16x8 result, so the four
 * pixels of a window are put at rows g and g+8 of two neighbouring results, and the maximum needs no
 * exchange.
 */
#include "backend/cuda/fused_epilogue.cuh"
#include "backend/cuda/tensor.h"

#include <cuda_bf16.h>

enum { TILE = LT_TENSOR_TILE, SLICE = LT_TENSOR_SLICE, THREADS = 128, STAGES = 4 };
enum { ROW_BYTES = SLICE * 2, TILE_BYTES = TILE * ROW_BYTES, PIECES = ROW_BYTES / 16 };
enum { LOADS = TILE * PIECES / THREADS }; /* pieces of an operand's slice that a thread brings in */
enum { PACK_THREADS = 256, OUTSIDE = -(1 << 28) };

typedef __nv_bfloat16 bf16;

__device__ static inline bf16 narrow(float x) {
    return __float2bfloat16_rn(x);
}

/* ---- Weights ----------------------------------------------------------------------------------- */

__global__ static void pack(lt_tensor_forward call, const float *w, bf16 *packed) {
    int at = blockIdx.x * PACK_THREADS + threadIdx.x, place = at % SLICE, rest = at / SLICE;
    int filter = rest % call.columns, slice = rest / call.columns;
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
__device__ static inline bf16 narrow(bf16 x) {
    return x;
}

/* ---- The instructions -------------------------------------------------------------------------- */

/* 16 bytes to shared memory, or zeros. */
__device__ static inline void copy_16(uint32_t to, const void *from, bool there) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0)
                 : "memory");
}
__device__ static inline void copies_end_group(void) {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
/* Until at most `LEFT` groups are under way. */
template <int LEFT> __device__ static inline void copies_wait(void) {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

__device__ static inline void load_matrices(uint32_t to[4], uint32_t from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

__device__ static inline void multiply_add(float sums[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Where piece `piece` of row `row` of a slice lies. */
__device__ static inline uint32_t piece_at(int row, int piece) {
    return (uint32_t)(row * ROW_BYTES + (piece ^ (row >> 1 & 3)) * 16);
}

/* ---- Rows -------------------------------------------------------------------------------------- */

/* The upper left pixel, after the upsample, that a row of the product sees; OUTSIDE past the last row. */
template <typename X> struct place {
    const X *image;
    int y, x;
};

template <typename X, bool POOL>
__device__ static inline place<X> find_place(const lt_tensor_forward &call, int row) {
    const lt_conv &v = call.conv;
    int index = blockIdx.x * TILE + row, width = v.OW, pixels = v.OH * v.OW, position = 0;
    if (POOL) {
        int tile = row / 16, r = row % 16;
        index = blockIdx.x * (TILE / 4) + tile / 2 * 8 + r % 8;
        position = tile % 2 * 2 + r / 8;
        width = v.PW;
        pixels = v.PH * v.PW;
    }
    int image = index / pixels, y = index % pixels / width, x = index % pixels % width;
    if (POOL) {
        y = 2 * y + position / 2;
        x = 2 * x + position % 2;
    }
    place<X> found = {(const X *)call.x + (size_t)image * v.H * v.W * v.C, y * v.stride - v.pad_top,
                      x * v.stride - v.pad_left};
    if (image >= call.n) {
        found.image = (const X *)call.x;
        found.y = OUTSIDE;
    }
    return found;
}

/* The pixel's first channel, or NULL outside the image. */
template <typename X>
__device__ static inline const X *pixel(const lt_conv &v, const place<X> &from, int r, int s) {
    int y = from.y + r, x = from.x + s;
    bool inside = (unsigned)y < (unsigned)v.UH && (unsigned)x < (unsigned)v.UW;
    return inside ? from.image + (size_t)((y >> v.up2) * v.W + (x >> v.up2)) * v.C : NULL;
}

/* ---- Operands ---------------------------------------------------------------------------------- */

__device__ static inline void load_weights(const lt_tensor_forward &call, int slice, uint32_t to) {
    const uint16_t *from = call.packed + ((size_t)slice * call.columns + blockIdx.y * TILE) * SLICE;
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        int row = threadIdx.x / PIECES + i * (THREADS / PIECES), piece = threadIdx.x % PIECES;
        copy_16(to + piece_at(row, piece), from + row * SLICE + piece * 8, true);
    }
}

/* 32 channels of one tap. */
__device__ static inline void load_tap(const lt_tensor_forward &call, const place<bf16> places[LOADS],
                                       int slice, uint32_t to) {
    int taps = call.conv.R * call.conv.S, tap = slice % taps, channel = slice / taps * SLICE;
    int r = tap / call.conv.S, s = tap % call.conv.S, piece = threadIdx.x % PIECES;
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        int row = threadIdx.x / PIECES + i * (THREADS / PIECES);
        const bf16 *from = pixel(call.conv, places[i], r, s);
        copy_16(to + piece_at(row, piece), from ? from + channel + piece * 8 : (const bf16 *)call.x,
                from != NULL);
    }
}

/* 32 numbers of the row of all taps and channels, each looked up by itself. */
template <typename X>
__device__ static inline void load_flat(const lt_tensor_forward &call, const place<X> places[LOADS],
                                        int slice, unsigned char *to) {
    const lt_conv &v = call.conv;
    int piece = threadIdx.x % PIECES, depth = v.R * v.S * v.C;
    for (int i = 0; i < LOADS; i++) {
        int row = threadIdx.x / PIECES + i * (THREADS / PIECES);
        __align__(16) bf16 values[8];
        for (int j = 0; j < 8; j++) {
            int d = slice * SLICE + piece * 8 + j, tap = d / v.C;
            const X *from = d < depth ? pixel(v, places[i], tap / v.S, tap % v.S) : NULL;
            values[j] = from ? narrow(from[d % v.C]) : narrow(0.0f);
        }
        *(uint4 *)(to + piece_at(row, piece)) = *(const uint4 *)values;
    }
}

/* ---- Products ---------------------------------------------------------------------------------- */

/* A warp's 64x64 sums: [16 rows][8 columns] results of four numbers a thread. */
struct sums {
    float of[4][8][4];
};

__device__ static inline void multiply_slice(uint32_t a, uint32_t b, sums &acc) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int row = warp % 2 * 64 + lane % 16, column = warp / 2 * 64 + lane / 16 * 8 + lane % 8;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        uint32_t left[4][4], right[4][4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            load_matrices(left[i], a + piece_at(row + 16 * i, 2 * k + lane / 16));
            load_matrices(right[i], b + piece_at(column + 16 * i, 2 * k + lane / 8 % 2));
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                multiply_add(acc.of[i][2 * j], left[i], right[j][0], right[j][1]);
                multiply_add(acc.of[i][2 * j + 1], left[i], right[j][2], right[j][3]);
            }
        }
    }
}

/* ---- Results ----------------------------------------------------------------------------------- */

/* Two neighbouring filters of one output. */
__device__ static inline void put_pair(const lt_tensor_forward &call, size_t output, int column, float first,
                                       float second) {
    bf16 *to = (bf16 *)call.y + output * call.conv.K + column;
    if (call.conv.K % 2 == 0) {
        *(__nv_bfloat162 *)to = __floats2bfloat162_rn(first, second);
    } else {
        to[0] = narrow(first);
        if (column + 1 < call.conv.K) {
            to[1] = narrow(second);
        }
    }
}

/* COUNT results of one output each: a value, or a window's four. */
template <int COUNT>
__device__ static inline void put_results(const lt_tensor_forward &call, size_t output, int column,
                                          const float first[COUNT], const float second[COUNT]) {
    uint32_t position;
    float bias0 = call.b ? call.b[column] : 0;
    float bias1 = call.b && column + 1 < call.conv.K ? call.b[column + 1] : 0;
    put_pair(call, output, column, fused_activate(call.conv, first, COUNT, bias0, &position),
             fused_activate(call.conv, second, COUNT, bias1, &position));
}

template <bool POOL> __device__ static inline void put_sums(const lt_tensor_forward &call, const sums &acc) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4;
    int outputs = call.n * call.conv.PH * call.conv.PW;
#pragma unroll
    for (int j = 0; j < 8; j++) {
        int column = blockIdx.y * TILE + warp / 2 * 64 + j * 8 + lane % 4 * 2;
        if (column >= call.conv.K) {
            continue;
        }
        if (POOL) {
#pragma unroll
            for (int i = 0; i < 4; i += 2) {
                const float *top = acc.of[i][j], *bottom = acc.of[i + 1][j];
                float first[4] = {top[0], top[2], bottom[0], bottom[2]};
                float second[4] = {top[1], top[3], bottom[1], bottom[3]};
                int output = blockIdx.x * (TILE / 4) + warp % 2 * 16 + i / 2 * 8 + group;
                if (output < outputs) {
                    put_results<4>(call, (size_t)output, column, first, second);
                }
            }
        } else {
#pragma unroll
            for (int i = 0; i < 8; i++) { /* eight rows at a time */
                const float *two = &acc.of[i / 2][j][i % 2 * 2];
                int output = blockIdx.x * TILE + warp % 2 * 64 + i * 8 + group;
                if (output < outputs) {
                    put_results<1>(call, (size_t)output, column, two, two + 1);
                }
            }
        }
    }
}
#endif

/* ---- The kernels ------------------------------------------------------------------------------- */

template <bool POOL>
__global__ static void __launch_bounds__(THREADS, 2) forward_taps(lt_tensor_forward call) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    extern __shared__ __align__(128) unsigned char stages[]; /* [STAGES][pixels, filters][TILE_BYTES] */
    uint32_t base = (uint32_t)__cvta_generic_to_shared(stages);
    place<bf16> places[LOADS];
    sums acc = {};
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        places[i] = find_place<bf16, POOL>(call, threadIdx.x / PIECES + i * (THREADS / PIECES));
    }
    for (int slice = 0; slice < STAGES - 1; slice++) {
        if (slice < call.slices) {
            load_tap(call, places, slice, base + slice * 2 * TILE_BYTES);
            load_weights(call, slice, base + slice * 2 * TILE_BYTES + TILE_BYTES);
        }
        copies_end_group();
    }
    for (int slice = 0; slice < call.slices; slice++) {
        int ahead = slice + STAGES - 1;
        copies_wait<STAGES - 2>();
        __syncthreads(); /* this slice is there, and everyone is done with the one that is overwritten now */
        if (ahead < call.slices) {
            uint32_t to = base + ahead % STAGES * 2 * TILE_BYTES;
            load_tap(call, places, ahead, to);
            load_weights(call, ahead, to + TILE_BYTES);
        }
        copies_end_group();
        uint32_t from = base + slice % STAGES * 2 * TILE_BYTES;
        multiply_slice(from, from + TILE_BYTES, acc);
    }
    put_sums<POOL>(call, acc);
#endif
}

template <typename X, bool POOL>
__global__ static void __launch_bounds__(THREADS, 2) forward_flat(lt_tensor_forward call) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    __shared__ __align__(128) unsigned char pixels[TILE_BYTES], filters[TILE_BYTES];
    uint32_t a = (uint32_t)__cvta_generic_to_shared(pixels), b = (uint32_t)__cvta_generic_to_shared(filters);
    place<X> places[LOADS];
    sums acc = {};
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        places[i] = find_place<X, POOL>(call, threadIdx.x / PIECES + i * (THREADS / PIECES));
    }
    for (int slice = 0; slice < call.slices; slice++) {
        load_weights(call, slice, b);
        copies_end_group();
        load_flat(call, places, slice, pixels);
        copies_wait<0>();
        __syncthreads();
        multiply_slice(a, b, acc);
        __syncthreads();
    }
    put_sums<POOL>(call, acc);
#endif
}

template <bool POOL> static void launch(cudaStream_t stream, const lt_tensor_forward *call, dim3 grid) {
    if (call->flat && call->x_type == LT_F32) {
        forward_flat<float, POOL><<<grid, THREADS, 0, stream>>>(*call);
    } else if (call->flat) {
        forward_flat<bf16, POOL><<<grid, THREADS, 0, stream>>>(*call);
    } else {
        int bytes = STAGES * 2 * TILE_BYTES;
        /* A failure shows at the launch. */
        (void)cudaFuncSetAttribute(forward_taps<POOL>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        forward_taps<POOL><<<grid, THREADS, bytes, stream>>>(*call);
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
    cudaError_t error = cudaFuncGetAttributes(&attributes, (const void *)forward_taps<false>);
    (void)cudaGetLastError();
    return error == cudaSuccess && attributes.ptxVersion >= 80;
}
