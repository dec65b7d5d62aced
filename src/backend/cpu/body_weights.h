/* body_weights.h: fp32 weights into panels, [point][panel][depth][columns of the panel].
 *
 * Forward, the depth is the channel and a column a filter; for the input gradient the other way round.
 */
#ifndef LT_BACKEND_CPU_BODY_WEIGHTS_H
#define LT_BACKEND_CPU_BODY_WEIGHTS_H

/* lowered_row for the form columns, where (tap, filter) is a column; for the input gradient, a row. */
static void columns_row(const lt_cpu_pass *pass, const float *w, int d, int n0, float out[16]) {
    int K = pass->conv->K, wide = pass->x.taps, tall = pass->y.taps;
    if (pass->role == LT_CPU_DGRAD) {
        lowered_row(pass, w, d % K, n0, d / K / wide, d / K % wide, out);
        return;
    }
    float one[16];
    for (int n = 0; n < 16; n++) {
        int tap = (n0 + n) / K;
        out[n] = 0;
        if (tap < tall * wide) {
            lowered_row(pass, w, d, (n0 + n) % K, tap / wide, tap % wide, one);
            out[n] = one[0];
        }
    }
}

static void weights_taps(const lt_cpu_pass *pass, const float *w, int first, int width, int p, float *to) {
    const lt_cpu_axis *y = &pass->y, *x = &pass->x;
    int py = p / x->phases, px = p % x->phases;
    int rows = pass->form == LT_CPU_FLAT ? pass->depth : pass->depth_blocks * 16;
    for (int ty = y->first[py]; ty < y->first[py + 1]; ty++) {
        for (int tx = x->first[px]; tx < x->first[px + 1]; tx++) {
            for (int d = 0; d < rows; d++, to += width) {
                for (int n = 0; n < width; n += 16) {
                    lowered_row(pass, w, d, first + n, ty, tx, to + n);
                }
            }
        }
    }
}

static void weights_columns(const lt_cpu_pass *pass, const float *w, int first, int width, float *to) {
    int rows = pass->role == LT_CPU_DGRAD ? pass->depth : pass->depth_blocks * 16;
    for (int d = 0; d < rows; d++, to += width) {
        for (int n = 0; n < width; n += 16) {
            columns_row(pass, w, d, first + n, to + n);
        }
    }
}

/* 16x16 weights of a 3x3 filter, [tap][d][n]; the taps turned round for winograd's input gradient. */
static void gather_3x3(const lt_cpu_pass *pass, const float *w, int d0, int n0, float g[9][16][16]) {
    const lt_conv *v = pass->conv;
    int back = pass->role == LT_CPU_DGRAD, turned = back && pass->form == LT_CPU_WINOGRAD;
    for (int t = 0; t < 9; t++) {
        int tap = turned ? 8 - t : t;
        for (int i = 0; i < 16; i++) { /* i counts filters: their channels lie side by side */
            int k = (back ? d0 : n0) + i, c0 = back ? n0 : d0;
            const float *from = w + ((size_t)k * 9 + (size_t)tap) * (size_t)v->C + (size_t)c0;
            for (int j = 0; j < 16; j++) {
                float value = k < v->K && c0 + j < v->C ? from[j] : 0;
                g[t][back ? i : j][back ? j : i] = value;
            }
        }
    }
}

/* Per axis: (g0, (g0+g1+g2)/2, (g0-g1+g2)/2, g2). */
ALWAYS void winograd_weights(const vec g[9], vec u[16]) {
    vec t[12], half = vec_set(0.5F);
    UNROLL for (int i = 0; i < 3; i++) {
        vec ends = g[i] + g[6 + i];
        t[i] = g[i];
        t[3 + i] = (ends + g[3 + i]) * half;
        t[6 + i] = (ends - g[3 + i]) * half;
        t[9 + i] = g[6 + i];
    }
    UNROLL for (int i = 0; i < 4; i++) {
        vec ends = t[3 * i] + t[3 * i + 2];
        u[4 * i] = t[3 * i];
        u[4 * i + 1] = (ends + t[3 * i + 1]) * half;
        u[4 * i + 2] = (ends - t[3 * i + 1]) * half;
        u[4 * i + 3] = t[3 * i + 2];
    }
}

/* Per axis: (g0, g0+g1+g2, g2). */
ALWAYS void upsample_weights(const vec g[9], vec u[16]) {
    vec t[9];
    UNROLL for (int i = 0; i < 3; i++) {
        t[i] = g[i];
        t[3 + i] = g[i] + g[3 + i] + g[6 + i];
        t[6 + i] = g[6 + i];
    }
    UNROLL for (int i = 0; i < 9; i += 3) {
        u[i] = t[i];
        u[i + 1] = t[i] + t[i + 1] + t[i + 2];
        u[i + 2] = t[i + 2];
    }
}

static void weights_3x3(const lt_cpu_pass *pass, const float *w, int first, int width, float *packed) {
    int winograd = pass->form == LT_CPU_WINOGRAD, rows = pass->depth_blocks * 16;
    /* A point's own weights lie apart; the 9 of upsample's input gradient are one product. */
    size_t point =
        pass->points == 1 ? (size_t)rows * (size_t)width : (size_t)rows * (size_t)pass->width_blocks * 16;
    float g[9][16][16];
    for (int d0 = 0; d0 < rows; d0 += 16) {
        for (int n0 = 0; n0 < width; n0 += 16) {
            gather_3x3(pass, w, d0, first + n0, g);
            for (int i = 0; i < 16 * 16; i += LANES) {
                vec taps[9], u[16];
                float *to = packed + (size_t)(d0 + i / 16) * (size_t)width + n0 + i % 16;
                UNROLL for (int t = 0; t < 9; t++) {
                    taps[t] = vec_load(&g[t][i / 16][i % 16]);
                }
                if (winograd) {
                    winograd_weights(taps, u);
                } else {
                    upsample_weights(taps, u);
                }
                for (int p = 0; p < (winograd ? 16 : 9); p++) {
                    vec_store(to + (size_t)p * point, u[p]);
                }
            }
        }
    }
}

static void pack_weights(const lt_cpu_pass *pass, const float *w, int panel, void *packed) {
    int width, first = 16 * lt_cpu_panel(pass->width_blocks, panel, &width);
    width *= 16;
    for (int p = 0; p < pass->weight_points; p++) {
        float *to =
            (float *)packed + lt_cpu_weights_before(pass, p) + (size_t)first * (size_t)lt_cpu_depth(pass, p);
        if (pass->form == LT_CPU_COLUMNS) {
            weights_columns(pass, w, first, width, to);
        } else if (pass->form == LT_CPU_TAPS || pass->form == LT_CPU_FLAT) {
            weights_taps(pass, w, first, width, p, to);
        } else {
            weights_3x3(pass, w, first, width, to);
            break; /* all points at once */
        }
    }
}

#endif
