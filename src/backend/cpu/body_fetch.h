/* body_fetch.h: one pixel of what a pass reads, a vector of channels at a time.
 *
 * dz is never stored: it is dy where relu or the pool let it through, looked up where it is needed. Pixels
 * outside the image and channels past the last are 0. The kind is a constant in every caller, so that the
 * compiler makes one loop for each.
 */
#ifndef LT_BACKEND_CPU_BODY_FETCH_H
#define LT_BACKEND_CPU_BODY_FETCH_H

/* A pixel: where its channels begin, -1 outside; `code`: its place in the pool window. */
typedef struct spot {
    ptrdiff_t at;
    int code;
} spot;

ALWAYS spot locate(const lt_cpu_source *s, lt_cpu_kind kind, int image, int y, int x) {
    spot place = {-1, 0};
    if (y < 0 || x < 0 || y >= s->height || x >= s->width) {
        return place;
    }
    if (kind == LT_CPU_POOL) {
        int py = y / 2, px = x / 2;
        if (py < s->pooled_h && px < s->pooled_w) {
            place.at = (((ptrdiff_t)image * s->pooled_h + py) * s->pooled_w + px) * s->channels;
            place.code = (y & 1) * 2 + (x & 1);
        }
    } else {
        place.at = (((ptrdiff_t)image * s->height + y) * s->width + x) * s->channels;
    }
    return place;
}

/* LANES channels from c on. */
ALWAYS vec fetch(const lt_cpu_source *s, lt_cpu_kind kind, spot place, int c) {
    int left = s->channels - c;
    if (place.at < 0 || left <= 0) {
        return vec_zero();
    }
    size_t at = (size_t)place.at + (size_t)c;
    vec value = value_load(s, s->data, at, left);
    if (kind == LT_CPU_RELU) {
        value = vec_where_positive(value_load(s, s->y, at, left), value);
    } else if (kind == LT_CPU_POOL) {
        value = vec_where_code(codes_load(s->mask + at, left), place.code, value);
    }
    return value;
}

/* Asks for what lies `ahead` values further on, so that it is near when it is wanted: pixels come in runs too
 * short for the processor to see a pattern. Past the last image nothing is read. */
ALWAYS void prefetch(const lt_cpu_source *s, lt_cpu_kind kind, spot place, int c, ptrdiff_t ahead) {
    ptrdiff_t at = (place.at + c + ahead) * (ptrdiff_t)lt_dtype_size(s->type);
    __builtin_prefetch((const char *)s->data + at, 0, 2);
    if (kind == LT_CPU_RELU) {
        __builtin_prefetch((const char *)s->y + at, 0, 2);
    }
}

/* One channel. */
ALWAYS float fetch_one(const lt_cpu_source *s, lt_cpu_kind kind, spot place, int c) {
    if (place.at < 0) {
        return 0;
    }
    size_t at = (size_t)place.at + (size_t)c;
    if (kind == LT_CPU_RELU && !(value_at(s, s->y, at) > 0)) {
        return 0;
    }
    if (kind == LT_CPU_POOL && s->mask[at] != place.code) {
        return 0;
    }
    return value_at(s, s->data, at);
}

/* Calls f(..., kind) with the kind as a constant. */
#define BY_KIND(s, f, ...)                                                                                   \
    do {                                                                                                     \
        if ((s)->kind == LT_CPU_PLAIN) {                                                                     \
            f(__VA_ARGS__, LT_CPU_PLAIN);                                                                    \
        } else if ((s)->kind == LT_CPU_RELU) {                                                               \
            f(__VA_ARGS__, LT_CPU_RELU);                                                                     \
        } else {                                                                                             \
            f(__VA_ARGS__, LT_CPU_POOL);                                                                     \
        }                                                                                                    \
    } while (0)

/* Walks the cells of a chunk: `row` counts them, (y, x) is the place in the grid. */
#define FOR_CELLS(chunk, row, img, cy, cx)                                                                   \
    for (int row = 0, img = 0; img < (chunk)->images; img++)                                                 \
        for (int cy = (chunk)->y; cy < (chunk)->y + (chunk)->rows; cy++)                                     \
            for (int cx = (chunk)->x; cx < (chunk)->x + (chunk)->columns; cx++, row++)

#endif
