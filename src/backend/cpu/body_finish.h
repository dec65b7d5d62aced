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

/* Output (oy, ox) of an image: for each filter, the sum of the taps' columns at the pixels they read. */
static void shifted_sum(const lt_cpu_pass *pass, const float *out, size_t out_rows, int oy, int ox,
                        float *z) {
    const lt_cpu_axis *y = &pass->y, *x = &pass->x;
    int K = pass->conv->K, py = oy % y->out_step, px = ox % x->out_step;
    for (int ty = y->first[py]; ty < y->first[py + 1]; ty++) {
        int iy = oy / y->out_step + y->offset[ty];
        for (int tx = x->first[px]; tx < x->first[px + 1]; tx++) {
            int ix = ox / x->out_step + x->offset[tx], column = (ty * x->taps + tx) * K;
            if (iy < 0 || ix < 0 || iy >= y->in || ix >= x->in) {
                continue;
            }
            size_t cell = (size_t)iy * (size_t)x->in + (size_t)ix;
            for (int k = 0; k < K; k++, column++) {
                z[k] += out[((size_t)(column / 16) * out_rows + cell) * 16 + (size_t)(column % 16)];
            }
        }
    }
}

static double shift(const lt_cpu_pass *pass, const float *out, const lt_cpu_result *r, int image,
                    const float *target, double scale, void *dy) {
    int K = r->channels;
    size_t out_rows = lt_cpu_image_rows(pass);
    double sum = 0;
    for (int oy = 0; oy < r->height; oy++) {
        for (int ox = 0; ox < r->width; ox++) {
            float z[LT_CPU_FEW];
            for (int k = 0; k < K; k++) {
                z[k] = r->bias ? r->bias[k] : 0;
            }
            shifted_sum(pass, out, out_rows, oy, ox, z);
            size_t at = (((size_t)image * (size_t)r->height + (size_t)oy) * (size_t)r->width + (size_t)ox) *
                        (size_t)K;
            for (int k = 0; k < K; k++, at++) {
                float value = r->relu && z[k] < 0 ? 0 : z[k];
                result_put(r->data, at, value);
                if (target) {
                    double difference = (double)value - (double)target[at];
                    sum += difference * difference;
                    if (dy) {
                        result_put(dy, at, (float)(scale * difference));
                    }
                }
            }
        }
    }
    return sum;
}

#endif
