/* body_finish.h: from products to pixels: the forms' last additions, bias, relu, pool, store.
 *
 * Forms whose outputs come in 2x2 quads (winograd, upsample, and everything before a pool) finish quad by
 * quad; the others phase by phase.
 */
#ifndef LT_BACKEND_CPU_BODY_FINISH_H
#define LT_BACKEND_CPU_BODY_FINISH_H

/* m (16 products) to A^T m A: z[0..3] in row order. */
ALWAYS void winograd_out(const vec m[16], vec z[4]) {
    vec t[8];
    UNROLL for (int i = 0; i < 4; i++) {
        t[i] = m[i] + m[4 + i] + m[8 + i];
        t[4 + i] = m[4 + i] - m[8 + i] - m[12 + i];
    }
    UNROLL for (int i = 0; i < 2; i++) {
        z[2 * i] = t[4 * i] + t[4 * i + 1] + t[4 * i + 2];
        z[2 * i + 1] = t[4 * i + 1] - t[4 * i + 2] - t[4 * i + 3];
    }
}

ALWAYS void upsample_out(const vec m[9], vec z[4]) {
    vec t[6];
    UNROLL for (int i = 0; i < 3; i++) {
        t[i] = m[i] + m[3 + i];
        t[3 + i] = m[3 + i] - m[6 + i];
    }
    UNROLL for (int i = 0; i < 2; i++) {
        z[2 * i] = t[3 * i] + t[3 * i + 1];
        z[2 * i + 1] = t[3 * i + 1] - t[3 * i + 2];
    }
}

ALWAYS void quad(const float *from, size_t point, lt_cpu_form form, vec z[4]) {
    vec m[16];
    int points = form == LT_CPU_WINOGRAD ? 16 : form == LT_CPU_UPSAMPLE ? 9 : 4;
    UNROLL for (int i = 0; i < points; i++) {
        m[i] = vec_load(from + (size_t)i * point);
    }
    if (form == LT_CPU_WINOGRAD) {
        winograd_out(m, z);
    } else if (form == LT_CPU_UPSAMPLE) {
        upsample_out(m, z);
    } else {
        UNROLL for (int i = 0; i < 4; i++) {
            z[i] = m[i];
        }
    }
}

/* LANES channels of an output pixel, from c on. */
ALWAYS void put(const lt_cpu_result *r, size_t pixel, int c, vec z) {
    int left = r->channels - c;
    if (left <= 0) {
        return;
    }
    size_t at = pixel * (size_t)r->channels + (size_t)c;
    if (r->relu) {
        z = vec_relu(z);
    }
    if (r->add) {
        z = z + result_load(r, at, left);
    }
    result_store(r, at, z, left);
}

ALWAYS void put_pool(const lt_cpu_result *r, size_t pixel, int c, const vec z[4]) {
    int left = r->channels - c;
    if (left <= 0) {
        return;
    }
    vec best = z[0];
    codes at = codes_set(0);
    UNROLL for (int i = 1; i < 4; i++) {
        vec_maximum(&best, &at, z[i], i);
    }
    if (r->mask) {
        if (r->relu) {
            at = codes_where_dead(at, best, LT_CPU_DEAD);
        }
        codes_store(r->mask + pixel * (size_t)r->channels + (size_t)c, at, left);
    }
    put(r, pixel, c, best);
}

ALWAYS vec bias_at(const lt_cpu_result *r, int c) {
    if (!r->bias || c >= r->channels) {
        return vec_zero();
    }
    return vec_load_part(r->bias + c, r->channels - c);
}

ALWAYS void finish_quads(const lt_cpu_pass *pass, const lt_cpu_chunk *chunk, const float *out,
                         const lt_cpu_result *r, lt_cpu_form form) {
    size_t rows = pass->out_rows, point = ((size_t)pass->width_blocks * rows + 1) * 16;
    int columns = pass->width_blocks * 16;
    FOR_CELLS(chunk, row, img, cy, cx) {
        size_t image = (size_t)(chunk->image + img) * (size_t)r->height;
        for (int c = 0; c < columns; c += LANES) {
            vec z[4], bias = bias_at(r, c);
            quad(out + ((size_t)(c / 16) * rows + (size_t)row) * 16 + c % 16, point, form, z);
            UNROLL for (int i = 0; i < 4; i++) {
                z[i] = z[i] + bias;
            }
            if (r->pool) {
                put_pool(r, (image + (size_t)cy) * (size_t)r->width + (size_t)cx, c, z);
                continue;
            }
            UNROLL for (int i = 0; i < 4; i++) {
                int y = 2 * cy + i / 2, x = 2 * cx + i % 2;
                if (y < r->height && x < r->width) {
                    put(r, (image + (size_t)y) * (size_t)r->width + (size_t)x, c, z[i]);
                }
            }
        }
    }
}

ALWAYS void finish_phases(const lt_cpu_pass *pass, const lt_cpu_chunk *chunk, const float *out,
                          const lt_cpu_result *r) {
    size_t rows = pass->out_rows;
    int columns = pass->width_blocks * 16, y_step = pass->y.out_step, x_step = pass->x.out_step;
    int single = pass->form == LT_CPU_COLUMNS || pass->form == LT_CPU_UPSAMPLE; /* a cell is a pixel */
    int phases = single ? 1 : pass->x.phases;
    for (int p = 0; p < pass->points; p++) {
        const float *from = out + (size_t)p * ((size_t)columns * rows + 16);
        int py = p / phases, px = p % phases;
        FOR_CELLS(chunk, row, img, cy, cx) {
            int y = single ? cy : cy * y_step + py, x = single ? cx : cx * x_step + px;
            if (y >= r->height || x >= r->width) {
                continue;
            }
            size_t image = (size_t)(chunk->image + img) * (size_t)r->height;
            for (int c = 0; c < columns; c += LANES) {
                vec z = vec_load(from + ((size_t)(c / 16) * rows + (size_t)row) * 16 + c % 16);
                put(r, (image + (size_t)y) * (size_t)r->width + (size_t)x, c, z + bias_at(r, c));
            }
        }
    }
}

static void finish(const lt_cpu_pass *pass, const lt_cpu_chunk *chunk, const float *out,
                   const lt_cpu_result *result) {
    /* Copies: what is stored might otherwise be a part of them, and they would be read again each time. */
    const lt_cpu_chunk cells = *chunk;
    const lt_cpu_result copy = *result, *r = &copy;
    chunk = &cells;
    if (pass->form == LT_CPU_WINOGRAD) {
        finish_quads(pass, chunk, out, r, LT_CPU_WINOGRAD);
    } else if (pass->form == LT_CPU_UPSAMPLE && pass->role == LT_CPU_FORWARD) {
        finish_quads(pass, chunk, out, r, LT_CPU_UPSAMPLE);
    } else if (r->pool) {
        finish_quads(pass, chunk, out, r, LT_CPU_TAPS);
    } else {
        finish_phases(pass, chunk, out, r);
    }
}

/* ---- The form columns -------------------------------------------------------------------------- */

enum { SPAN = 32 }; /* cells whose outputs are summed together */

/* Adds to z the outputs of `cells` cells of row oy, [output][filter]: for each filter, the taps' columns at
 * the pixels they read. */
static void shifted_sums(const lt_cpu_pass *pass, const float *out, size_t rows, int oy, int first, int cells,
                         float *z) {
    const lt_cpu_axis *y = &pass->y, *x = &pass->x;
    int K = pass->conv->K, py = oy % y->out_step, step = x->out_step * K;
    for (int ty = y->first[py]; ty < y->first[py + 1]; ty++) {
        int iy = oy / y->out_step + y->offset[ty];
        if (iy < 0 || iy >= y->in) {
            continue;
        }
        for (int i = 0; i < x->taps * K; i++) {
            int tx = i / K, px = tx >= x->first[1], ix = first + x->offset[tx], column = ty * x->taps * K + i;
            int low = ix < 0 ? -ix : 0, high = x->in - ix < cells ? x->in - ix : cells;
            const float *from =
                out + ((size_t)(column / 16) * rows + (size_t)iy * (size_t)x->in) * 16 + column % 16;
            float *to = z + px * K + i % K;
            for (int cell = low; cell < high; cell++) {
                to[cell * step] += from[(ix + cell) * 16];
            }
        }
    }
}

/* Stores `count` values from `at` on; with `target`, adds their squared error to the sum and writes dy. */
static double put_values(const lt_cpu_result *r, size_t at, float *z, int count, const float *target,
                         double scale, void *dy, double sum) {
    for (int i = 0; i < count; i += LANES) {
        vec value = r->relu ? vec_relu(vec_load(z + i)) : vec_load(z + i);
        vec_store(z + i, value);
        result_store(r, at + (size_t)i, value, count - i);
    }
    if (!target) {
        return sum;
    }
    for (int i = 0; i < count; i++) {
        double difference = (double)z[i] - (double)target[at + (size_t)i];
        sum += difference * difference;
        z[i] = (float)(scale * difference);
    }
    lt_cpu_result slope = *r;
    slope.data = dy;
    for (int i = 0; dy && i < count; i += LANES) {
        result_store(&slope, at + (size_t)i, vec_load(z + i), count - i);
    }
    return sum;
}

static double shift(const lt_cpu_pass *pass, const float *out, const lt_cpu_result *r, int image,
                    const float *target, double scale, void *dy) {
    float z[2 * SPAN * LT_CPU_FEW];
    int K = r->channels, step = pass->x.out_step;
    double sum = 0;
    for (int oy = 0; oy < r->height; oy++) {
        for (int first = 0; first < pass->x.cells; first += SPAN) {
            int cells = pass->x.cells - first < SPAN ? pass->x.cells - first : SPAN;
            int ox = first * step, outputs = r->width - ox < cells * step ? r->width - ox : cells * step;
            for (int i = 0; i < cells * step; i++) {
                for (int k = 0; k < K; k++) {
                    z[i * K + k] = r->bias ? r->bias[k] : 0;
                }
            }
            shifted_sums(pass, out, lt_cpu_image_rows(pass), oy, first, cells, z);
            size_t row = (size_t)image * (size_t)r->height + (size_t)oy;
            sum = put_values(r, (row * (size_t)r->width + (size_t)ox) * (size_t)K, z, outputs * K, target,
                             scale, dy, sum);
        }
    }
    return sum;
}

#endif
