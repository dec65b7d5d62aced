/* body_reduce.h: from a weight gradient's sums to dw, through the adjoint of what made the weights. */
#ifndef LT_BACKEND_CPU_BODY_REDUCE_H
#define LT_BACKEND_CPU_BODY_REDUCE_H

ALWAYS void add_to(float *to, vec value, int left) {
    if (left >= LANES) {
        vec_store(to, vec_load(to) + value);
    } else {
        vec_store_part(to, vec_load_part(to, left) + value, left);
    }
}

/* Channels of the part, from `first` on. */
static int part_channels(const lt_cpu_pass *pass, int first) {
    int C = pass->conv->C - first, room = pass->depth_blocks * pass->block;
    return pass->form == LT_CPU_FLAT || C < room ? C : room;
}

/* The sums of a lowered tap go to every filter tap that it stands for. */
static void reduce_tap(const lt_cpu_pass *pass, const float *from, int ty, int tx, float *dw) {
    const lt_conv *v = pass->conv;
    int first = pass->depth_first * pass->block, channels = part_channels(pass, first);
    for (int r = pass->y.from[ty]; r <= pass->y.to[ty]; r++) {
        for (int s = pass->x.from[tx]; s <= pass->x.to[tx]; s++) {
            float *to = dw + ((size_t)r * (size_t)v->S + (size_t)s) * (size_t)v->C + first;
            for (int c = 0; c < channels; c += LANES) {
                add_to(to + c, vec_load_part(from + c, channels - c), channels - c);
            }
        }
    }
}

static void reduce_taps(const lt_cpu_pass *pass, const float *sums, int k, float *dw) {
    const lt_cpu_axis *y = &pass->y, *x = &pass->x;
    int step = pass->form == LT_CPU_FLAT ? pass->depth : pass->depth_blocks * pass->block;
    for (int p = 0; p < pass->points; p++) {
        int py = p / x->phases, px = p % x->phases;
        size_t row = (size_t)((lt_cpu_depth(pass, p) + pass->block - 1) / pass->block * pass->block);
        const float *from = sums + lt_cpu_weights_before(pass, p) + (size_t)k * row;
        for (int ty = y->first[py]; ty < y->first[py + 1]; ty++) {
            for (int tx = x->first[px]; tx < x->first[px + 1]; tx++, from += step) {
                reduce_tap(pass, from, ty, tx, dw);
            }
        }
    }
}

static void reduce_columns(const lt_cpu_pass *pass, const float *sums, int k, float *dw) {
    int K = pass->conv->K;
    size_t row = (size_t)(pass->depth_blocks * pass->block);
    for (int tap = 0; tap < pass->y.taps * pass->x.taps; tap++) {
        reduce_tap(pass, sums + (size_t)(tap * K + k) * row, tap / pass->x.taps, tap % pass->x.taps, dw);
    }
}

ALWAYS void winograd_reduce(const vec u[16], vec g[9]) {
    vec t[12], half = vec_set(0.5F);
    UNROLL for (int i = 0; i < 4; i++) {
        vec both = (u[4 + i] + u[8 + i]) * half;
        t[i] = u[i] + both;
        t[4 + i] = (u[4 + i] - u[8 + i]) * half;
        t[8 + i] = both + u[12 + i];
    }
    UNROLL for (int i = 0; i < 3; i++) {
        vec both = (t[4 * i + 1] + t[4 * i + 2]) * half;
        g[3 * i] = t[4 * i] + both;
        g[3 * i + 1] = (t[4 * i + 1] - t[4 * i + 2]) * half;
        g[3 * i + 2] = both + t[4 * i + 3];
    }
}

ALWAYS void upsample_reduce(const vec u[9], vec g[9]) {
    vec t[9];
    UNROLL for (int i = 0; i < 3; i++) {
        t[i] = u[i] + u[3 + i];
        t[3 + i] = u[3 + i];
        t[6 + i] = u[3 + i] + u[6 + i];
    }
    UNROLL for (int i = 0; i < 9; i += 3) {
        g[i] = t[i] + t[i + 1];
        g[i + 1] = t[i + 1];
        g[i + 2] = t[i + 1] + t[i + 2];
    }
}

static void reduce_3x3(const lt_cpu_pass *pass, const float *sums, int k, float *dw) {
    int winograd = pass->form == LT_CPU_WINOGRAD, C = pass->conv->C;
    int first = pass->depth_first * 16, channels = part_channels(pass, first);
    size_t row = (size_t)pass->depth_blocks * 16, point = row * (size_t)pass->width_blocks * 16;
    for (int c = 0; c < channels; c += LANES) {
        vec u[16], g[9];
        for (int p = 0; p < (winograd ? 16 : 9); p++) {
            u[p] = vec_load(sums + (size_t)p * point + (size_t)k * row + c);
        }
        if (winograd) {
            winograd_reduce(u, g);
        } else {
            upsample_reduce(u, g);
        }
        for (int t = 0; t < 9; t++) {
            add_to(dw + (size_t)t * (size_t)C + first + c, g[t], channels - c);
        }
    }
}

/* k counts from the part's first filter; dw is of that filter alone, [R][S][C]. */
static void reduce(const lt_cpu_pass *pass, const float *sums, int k, float *dw) {
    if (pass->form == LT_CPU_COLUMNS) {
        reduce_columns(pass, sums, k, dw);
    } else if (pass->form == LT_CPU_TAPS || pass->form == LT_CPU_FLAT) {
        reduce_taps(pass, sums, k, dw);
    } else {
        reduce_3x3(pass, sums, k, dw);
    }
}

#endif
