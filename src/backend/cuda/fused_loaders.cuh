/* fused_loaders.cuh: how the factors of a product get from tensors into the strips of fused_tile.cuh.
 *
 * A view is a tensor as a pass sees it, at full resolution: an upsampled x is read through halved
 * coordinates, and so is the gradient of a pooled output, which in addition flows only to the pixel that
 * its mask names. So neither the upsampled image nor the expanded gradient exists in memory.
 *
 * Names say what a row of the strip (a term of the sum) and a column of the tile are:
 *   tap_quads, tap_singles   columns are pixels, terms (tap, channel): four channels at once, or one by one
 *                            where their number is no multiple of 4
 *   pixel_quads, pixel_singles   terms are pixels, columns (tap, channel): for weight gradients
 *   filter_rows, filter_columns  weights: columns are filters, or channels
 * fetch() is called once for each strip, in order; store() puts down what was fetched last.
 */
#ifndef LT_BACKEND_CUDA_FUSED_LOADERS_CUH
#define LT_BACKEND_CUDA_FUSED_LOADERS_CUH

#include "backend/cuda/fused_taps.cuh"
#include "backend/cuda/fused_tile.cuh"

/* An offset in an image, or -1 outside. Negative coordinates and too large ones fail one comparison. */
__device__ static inline int fused_find(const lt_fused_view &view, int y, int x) {
    bool inside =
        (unsigned)y < (unsigned)(view.H << view.half) && (unsigned)x < (unsigned)(view.W << view.half);
    return inside ? ((y >> view.half) * view.W + (x >> view.half)) * view.C : -1;
}

/* What the mask must say for the gradient to reach (y, x). */
__device__ static inline int fused_position(const lt_fused_view &view, int y, int x) {
    return view.half ? (y & 1) * 2 + (x & 1) : 0;
}

/* A pixel of the output grid, in the source's coordinates before the taps. */
typedef struct fused_pixel {
    size_t image; /* offset of the image in the view, in floats */
    int y, x;
    bool real;
} fused_pixel;

__device__ static inline float4 fused_select(float4 four, uint32_t mask, int position) {
    four.x = (int)(mask & 255) == position ? four.x : 0;
    four.y = (int)(mask >> 8 & 255) == position ? four.y : 0;
    four.z = (int)(mask >> 16 & 255) == position ? four.z : 0;
    four.w = (int)(mask >> 24) == position ? four.w : 0;
    return four;
}

/* Four terms of one column: down the strip. */
template <class Row> __device__ static inline void fused_down(Row *strip, int term, int column, float4 four) {
    strip[term][column] = four.x;
    strip[term + 1][column] = four.y;
    strip[term + 2][column] = four.z;
    strip[term + 3][column] = four.w;
}

/* Two threads a pixel, four channels each. view.C is a multiple of 4. */
template <bool MASKED> struct fused_tap_quads {
    const lt_fused_view &view;
    const fused_tap *taps;
    int tap_count;
    fused_pixel pixel;
    int tap, channel; /* of the next four */
    int offset, position;
    float4 held;
    uint32_t held_mask;
    int held_position;

    __device__ fused_tap_quads(const lt_fused_view &v, const fused_tap *t, int count, const fused_pixel &p,
                               int first)
        : view(v), taps(t), tap_count(count), pixel(p) {
        int term = first + (int)threadIdx.x % 2 * 4;
        tap = term / view.C;
        channel = term - tap * view.C;
        aim();
    }
    __device__ void aim() {
        offset = -1;
        if (pixel.real && tap < tap_count) {
            int y = pixel.y + taps[tap].y, x = pixel.x + taps[tap].x;
            offset = fused_find(view, y, x);
            position = fused_position(view, y, x);
        }
    }
    __device__ void fetch() {
        held = make_float4(0, 0, 0, 0);
        if (offset >= 0) {
            size_t at = pixel.image + offset + channel;
            held = *(const float4 *)(view.data + at);
            if (MASKED) {
                held_mask = *(const uint32_t *)(view.mask + at);
                held_position = position;
            }
        }
        channel += FUSED_DEPTH;
        if (channel >= view.C) {
            do {
                channel -= view.C;
                tap++;
            } while (channel >= view.C);
            aim();
        }
    }
    template <class Row> __device__ void store(Row *strip) const {
        float4 four = MASKED ? fused_select(held, held_mask, held_position) : held;
        fused_down(strip, (int)threadIdx.x % 2 * 4, (int)threadIdx.x / 2, four);
    }
};

/* The same for any number of channels: each term looks up its own tap. `length` terms in all. */
template <bool MASKED> struct fused_tap_singles {
    const lt_fused_view &view;
    const fused_tap *taps;
    fused_pixel pixel;
    int term, length;
    float held[4];

    __device__ fused_tap_singles(const lt_fused_view &v, const fused_tap *t, int count, const fused_pixel &p,
                                 int first)
        : view(v), taps(t), pixel(p), term(first + (int)threadIdx.x % 2 * 4), length(count * v.C) {}
    __device__ float load(int at) const {
        if (!pixel.real || at >= length) {
            return 0;
        }
        int tap = at / view.C, y = pixel.y + taps[tap].y, x = pixel.x + taps[tap].x;
        int offset = fused_find(view, y, x);
        if (offset < 0) {
            return 0;
        }
        size_t place = pixel.image + offset + at - tap * view.C;
        bool flows = !MASKED || view.mask[place] == fused_position(view, y, x);
        return flows ? view.data[place] : 0;
    }
    __device__ void fetch() {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            held[i] = load(term + i);
        }
        term += FUSED_DEPTH;
    }
    template <class Row> __device__ void store(Row *strip) const {
        fused_down(strip, (int)threadIdx.x % 2 * 4, (int)threadIdx.x / 2,
                   make_float4(held[0], held[1], held[2], held[3]));
    }
};

/* Weights for a forward pass: a filter's `length` weights are contiguous, and one column. */
template <int BN, bool QUADS> struct fused_filter_rows {
    const float *filter; /* NULL: the column is past the last filter */
    int term, length;
    float4 held;

    __device__ fused_filter_rows(const float *f, int terms, int first)
        : filter(f), term(first + (int)threadIdx.x % 2 * 4), length(terms) {}
    __device__ static int column() { return (int)threadIdx.x / 2; }
    __device__ void fetch() {
        held = make_float4(0, 0, 0, 0);
        if (filter && term < length) {
            if (QUADS) {
                held = *(const float4 *)(filter + term);
            } else {
                held.x = filter[term];
                held.y = term + 1 < length ? filter[term + 1] : 0;
                held.z = term + 2 < length ? filter[term + 2] : 0;
                held.w = term + 3 < length ? filter[term + 3] : 0;
            }
        }
        term += FUSED_DEPTH;
    }
    template <class Row> __device__ void store(Row *strip) const {
        if (column() < BN) {
            fused_down(strip, (int)threadIdx.x % 2 * 4, column(), held);
        }
    }
};

/* Weights for an input gradient: terms are (tap, filter), columns channels. v.C is a multiple of 4. */
template <int BN> struct fused_filter_columns {
    const float *w; /* moved to the thread's channel */
    const fused_tap *taps;
    int tap_count, filters, stride;
    int tap, filter;
    bool real;
    float4 held;

    __device__ fused_filter_columns(const float *weights, const fused_tap *t, int count, int K,
                                    int filter_stride, int first, int channel, int channels)
        : w(weights + channel), taps(t), tap_count(count), filters(K), stride(filter_stride) {
        int term = first + (int)threadIdx.x / 32;
        tap = term / K;
        filter = term - tap * K;
        real = (int)threadIdx.x % 32 * 4 < BN && channel < channels;
    }
    __device__ void fetch() {
        held = make_float4(0, 0, 0, 0);
        if (real && tap < tap_count) {
            held = *(const float4 *)(w + (size_t)filter * stride + taps[tap].weight);
        }
        filter += FUSED_DEPTH;
        while (filter >= filters) {
            filter -= filters;
            tap++;
        }
    }
    template <class Row> __device__ void store(Row *strip) const {
        int column = (int)threadIdx.x % 32 * 4;
        if (column < BN) {
            *(float4 *)&strip[threadIdx.x / 32][column] = held;
        }
    }
};

/* Walks the pixels [first, end) of a grid, eight at a time, one row of the strip a warp. */
struct fused_walker {
    int H, W;
    int at, end;
    int image, y, x;

    __device__ fused_walker(int height, int width, int first, int last) : H(height), W(width), end(last) {
        at = first + (int)threadIdx.x / 32;
        int line = at / W;
        image = line / H;
        y = line - image * H;
        x = at - line * W;
    }
    __device__ void next() {
        at += FUSED_DEPTH;
        x += FUSED_DEPTH;
        while (x >= W) {
            x -= W;
            if (++y == H) {
                y = 0;
                image++;
            }
        }
    }
};

/* Four channels of one tap; the columns of a thread do not change from strip to strip. */
template <int COLUMNS, bool MASKED> struct fused_pixel_quads {
    const lt_fused_view &view;
    int scale, down, right, channel;
    bool real; /* the thread has columns, and they are no padding */
    float4 held;
    uint32_t held_mask;
    int held_position;

    __device__ fused_pixel_quads(const lt_fused_view &v, int s, fused_tap tap, int c, bool inside)
        : view(v), scale(s), down(tap.y), right(tap.x), channel(c),
          real(inside && (int)threadIdx.x % 32 * 4 < COLUMNS) {}
    __device__ void fetch(const fused_walker &walker) {
        int y = walker.y * scale + down, x = walker.x * scale + right;
        int offset = real && walker.at < walker.end ? fused_find(view, y, x) : -1;
        held = make_float4(0, 0, 0, 0);
        if (offset >= 0) {
            size_t at = (size_t)walker.image * (view.H * view.W * view.C) + offset + channel;
            held = *(const float4 *)(view.data + at);
            if (MASKED) {
                held_mask = *(const uint32_t *)(view.mask + at);
                held_position = fused_position(view, y, x);
            }
        }
    }
    template <class Row> __device__ void store(Row *strip) const {
        int column = (int)threadIdx.x % 32 * 4;
        if (column < COLUMNS) {
            float4 four = MASKED ? fused_select(held, held_mask, held_position) : held;
            *(float4 *)&strip[threadIdx.x / 32][column] = four;
        }
    }
};

/* Two single columns a thread, 32 apart, each with its own tap and channel: a tile of 64. */
template <bool MASKED> struct fused_pixel_singles {
    const lt_fused_view &view;
    int scale;
    int down[2], right[2], channel[2]; /* channel -1: past the last column */
    float held[2];

    __device__ fused_pixel_singles(const lt_fused_view &v, int s, const fused_tap *taps, int tap_count,
                                   int first)
        : view(v), scale(s) {
        for (int i = 0; i < 2; i++) {
            int column = first + (int)threadIdx.x % 32 + 32 * i, tap = column / view.C;
            bool real = tap < tap_count;
            channel[i] = real ? column - tap * view.C : -1;
            down[i] = real ? taps[tap].y : 0;
            right[i] = real ? taps[tap].x : 0;
        }
    }
    __device__ void fetch(const fused_walker &walker) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int y = walker.y * scale + down[i], x = walker.x * scale + right[i];
            int offset = channel[i] >= 0 && walker.at < walker.end ? fused_find(view, y, x) : -1;
            held[i] = 0;
            if (offset >= 0) {
                size_t at = (size_t)walker.image * (view.H * view.W * view.C) + offset + channel[i];
                bool flows = !MASKED || view.mask[at] == fused_position(view, y, x);
                held[i] = flows ? view.data[at] : 0;
            }
        }
    }
    template <class Row> __device__ void store(Row *strip) const {
        strip[threadIdx.x / 32][threadIdx.x % 32] = held[0];
        strip[threadIdx.x / 32][threadIdx.x % 32 + 32] = held[1];
    }
};

/* Both factors of a product. */
template <class Pixels, class Filters> struct fused_pair {
    Pixels pixels;
    Filters filters;
    __device__ void fetch() {
        pixels.fetch();
        filters.fetch();
    }
    template <class A, class B> __device__ void store(A *a, B *b) const {
        pixels.store(a);
        filters.store(b);
    }
};

#endif
