/* tensor_rows.cuh: where the rows of a conv's product come from: pixels, a slice at a time, to shared memory.
 *
 * A row is an output's pixels under the filter. Three ways to fetch its slices: 32 channels of a tap, copied
 * in pieces of 16 bytes; a short row whole, for the first conv of a net; and any row, number by number.
 */
#ifndef LT_BACKEND_CUDA_TENSOR_ROWS_CUH
#define LT_BACKEND_CUDA_TENSOR_ROWS_CUH

#include "backend/cuda/tensor_mma.cuh"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

enum { OUTSIDE = -(1 << 28) };

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

/* ---- Pixels, 32 channels of a tap at a time ----------------------------------------------------- */

/* A row that knows its taps: bit t of `inside` says whether tap t hits the image. */
struct tap_row {
    const bf16 *from; /* the upper left pixel, were it there; with an upsample the image */
    uint32_t inside;
    int y, x;
};

template <bool POOL, bool UP>
__device__ static inline tap_row find_tap_row(const lt_tensor_forward &call, int row) {
    const lt_conv &v = call.conv;
    place<bf16> at = find_place<bf16, POOL>(call, row);
    tap_row found = {at.image, 0, at.y, at.x};
    uint32_t across = 0;
    for (int s = 0; s < v.S; s++) {
        across |= (uint32_t)((unsigned)(at.x + s) < (unsigned)v.UW) << s;
    }
    for (int r = 0; r < v.R; r++) {
        found.inside |= (unsigned)(at.y + r) < (unsigned)v.UH ? across << r * v.S : 0;
    }
    if (!UP && found.inside) {
        found.from += ((ptrdiff_t)at.y * v.W + at.x) * v.C;
    }
    return found;
}

/* The tap and channels of a slice. Slices are asked for in order, so that nothing is divided. */
struct tap_cursor {
    int r, s, channel;
    uint32_t bit;
    ptrdiff_t offset; /* from a row's upper left pixel */
};

__device__ static inline void next_tap(const lt_conv &v, tap_cursor &at) {
    at.bit <<= 1;
    at.offset += v.C;
    if (++at.s == v.S) {
        at.s = 0;
        at.offset += (ptrdiff_t)(v.W - v.S) * v.C;
        if (++at.r == v.R) {
            at.r = 0;
            at.channel += SLICE;
            at.offset = at.channel;
            at.bit = 1;
        }
    }
}

template <bool UP>
__device__ static inline void load_tap(const lt_conv &v, const tap_row rows[LOADS], tap_cursor &at,
                                       uint32_t to) {
    int row = threadIdx.x / PIECES, piece = threadIdx.x % PIECES;
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        const bf16 *from = rows[i].from + at.offset;
        if (UP) {
            int y = (rows[i].y + at.r) >> 1, x = (rows[i].x + at.s) >> 1;
            from = rows[i].from + (ptrdiff_t)(y * v.W + x) * v.C + at.channel;
        }
        copy_16(to + piece_at(row + i * (THREADS / PIECES), piece), from + piece * 8,
                rows[i].inside & at.bit);
    }
    next_tap(v, at);
}

/* ---- Pixels, taps and channels as one long row -------------------------------------------------- */

/* A thread to a row whose C is known, all of it in one slice: the first conv of a net. */
template <int C> struct short_rows {
    place<float> at;

    template <bool POOL> __device__ inline void find(const lt_tensor_forward &call) {
        at = find_place<float, POOL>(call, threadIdx.x);
    }
    __device__ inline void load(const lt_tensor_forward &call, int slice, unsigned char *to) const {
        const lt_conv &v = call.conv;
        __align__(16) bf16 values[SLICE];
        int r = 0, s = 0;
        (void)slice; /* the only one */
#pragma unroll
        for (int first = 0; first < SLICE; first += C) {
            int y = at.y + r, x = at.x + s;
            bool inside = (r < v.R) & ((unsigned)y < (unsigned)v.UH) & ((unsigned)x < (unsigned)v.UW);
            int from = inside ? ((y >> v.up2) * v.W + (x >> v.up2)) * C : 0; /* read anyway: no branch */
#pragma unroll
            for (int c = 0; c < C && first + c < SLICE; c++) {
                float value = at.image[from + c];
                values[first + c] = narrow(inside ? value : 0.0f);
            }
            s++;
            r = s == v.S ? r + 1 : r;
            s = s == v.S ? 0 : s;
        }
#pragma unroll
        for (int piece = 0; piece < PIECES; piece++) {
            *(uint4 *)(to + piece_at(threadIdx.x, piece)) = ((const uint4 *)values)[piece];
        }
    }
};

/* Any C and any depth: every number is looked up by itself. A thread's rows want the same eight. */
template <typename X> struct long_rows {
    place<X> at[LOADS];

    template <bool POOL> __device__ inline void find(const lt_tensor_forward &call) {
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            at[i] = find_place<X, POOL>(call, threadIdx.x / PIECES + i * (THREADS / PIECES));
        }
    }
    __device__ inline void load(const lt_tensor_forward &call, int slice, unsigned char *to) const {
        const lt_conv &v = call.conv;
        int piece = threadIdx.x % PIECES, depth = v.R * v.S * v.C;
        __align__(16) bf16 values[LOADS][8];
#pragma unroll
        for (int j = 0; j < 8; j++) {
            int d = slice * SLICE + piece * 8 + j, tap = d / v.C, channel = d - tap * v.C;
            int r = tap / v.S, s = tap - r * v.S;
#pragma unroll
            for (int i = 0; i < LOADS; i++) {
                const X *from = d < depth ? pixel(v, at[i], r, s) : NULL;
                values[i][j] = from ? narrow(from[channel]) : narrow(0.0f);
            }
        }
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            int row = threadIdx.x / PIECES + i * (THREADS / PIECES);
            *(uint4 *)(to + piece_at(row, piece)) = *(const uint4 *)values[i];
        }
    }
};
#else
template <int C> struct short_rows;
template <typename X> struct long_rows;
#endif

#endif
