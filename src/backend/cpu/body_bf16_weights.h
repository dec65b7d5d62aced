/* body_bf16_weights.h: weights into right tiles, [point][block of 16 columns][32 deep][16 pairs][16
 * columns][2].
 *
 * A filter's channels lie side by side. For the input gradient they are the columns, and two filters make a
 * row of pairs; forward they are the depth, so that a column is made as a row, and the tile is turned.
 */
#ifndef LT_BACKEND_CPU_BODY_BF16_WEIGHTS_H
#define LT_BACKEND_CPU_BODY_BF16_WEIGHTS_H

/* A filter at a lowered tap. */
typedef struct filter_tap {
    int k, ty, tx;
} filter_tap;

/* Of the form columns, where filters at taps are numbered through; there is none past the last. */
static filter_tap column_tap(const lt_cpu_pass *pass, int column) {
    int K = pass->conv->K, wide = pass->x.taps, tap = column / K;
    filter_tap at = {tap < pass->y.taps * wide ? column % K : K, tap / wide, tap % wide};
    return at;
}

/* LANES channels from c on; 0 where there are none. */
ALWAYS vec lowered(const lt_cpu_pass *pass, const float *w, filter_tap at, int c) {
    const lt_conv *v = pass->conv;
    int left = v->C - c;
    vec sum = vec_zero();
    if (at.k >= v->K || left <= 0) {
        return sum;
    }
    for (int r = pass->y.from[at.ty]; r <= pass->y.to[at.ty]; r++) {
        for (int s = pass->x.from[at.tx]; s <= pass->x.to[at.tx]; s++) {
            size_t tap = ((size_t)at.k * (size_t)v->R + (size_t)r) * (size_t)v->S + (size_t)s;
            sum = sum + vec_load_part(w + tap * (size_t)v->C + c, left);
        }
    }
    return sum;
}

/* Columns from n on, channels from c on. */
static void forward_tile(const lt_cpu_pass *pass, const float *w, int n, int c, int ty, int tx,
                         uint32_t *to) {
    uint32_t lines[16 * 16];
    for (int i = 0; i < 16; i++) {
        filter_tap at = {n + i, ty, tx};
        if (pass->form == LT_CPU_COLUMNS) {
            at = column_tap(pass, n + i);
        }
        float row[32];
        for (int j = 0; j < 32; j += LANES) {
            vec_store(row + j, lowered(pass, w, at, c + j));
        }
        halves_store((uint16_t *)(void *)(lines + 16 * i), halves_round(row, 32));
    }
    transpose_16x16(lines, to);
}

/* Channels from n on, rows from d on. */
static void back_tile(const lt_cpu_pass *pass, const float *w, int n, int d, int ty, int tx, uint32_t *to) {
    for (int i = 0; i < 32; i += 2, to += 16) {
        filter_tap first = {d + i, ty, tx}, second = {d + i + 1, ty, tx};
        if (pass->form == LT_CPU_COLUMNS) {
            first = column_tap(pass, d + i);
            second = column_tap(pass, d + i + 1);
        }
        for (int j = 0; j < 16; j += LANES) {
            vec_store_pairs(to + j, lowered(pass, w, first, n + j), lowered(pass, w, second, n + j), 0);
        }
    }
}

/* Tiles of the form flat, where a row is a channel at a tap: few, so one row after the other. */
static void flat_tiles(const lt_cpu_pass *pass, const float *w, int p, int n, uint32_t *to) {
    const lt_cpu_axis *y = &pass->y, *x = &pass->x;
    int depth = lt_cpu_depth(pass, p), wide = x->first[p % x->phases + 1] - x->first[p % x->phases];
    float rows[2][16];
    for (int d = 0; d < (depth + 31) / 32 * 32; d++) {
        int tap = d / pass->depth;
        memset(rows[d % 2], 0, sizeof rows[0]);
        if (d < depth) {
            lowered_row(pass, w, d % pass->depth, n, y->first[p / x->phases] + tap / wide,
                        x->first[p % x->phases] + tap % wide, rows[d % 2]);
        }
        for (int i = 0; d % 2 && i < 16; i += LANES) {
            vec_store_pairs(to + d / 2 * 16 + i, vec_load(rows[0] + i), vec_load(rows[1] + i), 0);
        }
    }
}

/* The tiles of point p, 16 columns from n on. */
static void weights_block(const lt_cpu_pass *pass, const float *w, int p, int n, uint32_t *to) {
    const lt_cpu_axis *y = &pass->y, *x = &pass->x;
    int py = p / x->phases, px = p % x->phases, wide = x->first[px + 1] - x->first[px];
    if (pass->form == LT_CPU_FLAT) {
        flat_tiles(pass, w, p, n, to);
        return;
    }
    for (int t = 0; t < (lt_cpu_depth(pass, p) + 31) / 32; t++, to += TILE_BYTES / 4) {
        int tap = t / pass->depth_blocks, d = 32 * (t % pass->depth_blocks), ty = 0, tx = 0;
        if (pass->form == LT_CPU_TAPS) {
            ty = y->first[py] + tap / wide;
            tx = x->first[px] + tap % wide;
        }
        if (pass->role == LT_CPU_DGRAD) {
            back_tile(pass, w, n, d, ty, tx, to);
        } else {
            forward_tile(pass, w, n, d, ty, tx, to);
        }
    }
}

static void pack_weights(const lt_cpu_pass *pass, const float *w, int panel, void *packed) {
    int width, first = lt_cpu_panel(pass->width_blocks, panel, &width);
    for (int p = 0; p < pass->weight_points; p++) {
        size_t block = (size_t)((lt_cpu_depth(pass, p) + 31) / 32) * TILE_HALVES;
        for (int b = first; b < first + width; b++) {
            uint16_t *to = (uint16_t *)packed + lt_cpu_weights_before(pass, p) + (size_t)b * block;
            weights_block(pass, w, p, 16 * b, (uint32_t *)(void *)to);
        }
    }
}

#endif
