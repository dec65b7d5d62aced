/* body_pack.h: fp32 operands into lines, [block of 16 channels][cell], for every form.
 *
 * winograd and upsample do their additions here, on the way; see forms.c for the maths.
 */
#ifndef LT_BACKEND_CPU_BODY_PACK_H
#define LT_BACKEND_CPU_BODY_PACK_H

ALWAYS float *line_at(void *lines, size_t line) {
    return (float *)lines + line * 16;
}

/* Copies of the input, shifted as the sources say. */
ALWAYS void pack_taps(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, void *in,
                      lt_cpu_kind kind) {
    const lt_cpu_axis *y = &pass->y, *x = &pass->x;
    for (int i = 0; i < y->sources * x->sources; i++) {
        int dy = y->source_offset[i / x->sources], dx = x->source_offset[i % x->sources];
        float *base = line_at(in, (size_t)i * (size_t)pass->depth_blocks * pass->in_rows);
        for (int img = 0; img < chunk->images; img++) {
            for (int cy = 0; cy < chunk->rows + y->extra; cy++) {
                for (int cx = 0; cx < chunk->columns; cx++) {
                    spot place = locate(s, kind, chunk->image + img, (chunk->y + cy) * y->in_step + dy,
                                        (chunk->x + cx) * x->in_step + dx);
                    float *to = base + ((img * chunk->rows + cy) * pass->chunk_columns + cx) * 16;
                    for (int c = 0; c < pass->depth_blocks * 16; c += LANES) {
                        vec_store(to + (size_t)(c / 16) * pass->in_rows * 16 + c % 16,
                                  fetch(s, kind, place, pass->depth_first * 16 + c));
                    }
                }
            }
        }
    }
}

ALWAYS void pack_flat(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, int stage,
                      void *in, lt_cpu_kind kind) {
    float *cell = line_at(in, pass->in_lines - lt_cpu_cell_lines(pass));
    int depth = lt_cpu_depth(pass, stage);
    FOR_CELLS(chunk, row, img, cy, cx) {
        flat_cell(pass, s, stage, chunk->image + img, cy, cx, cell, kind);
        for (int c = 0; c < (depth + 15) / 16 * 16; c += LANES) {
            vec_store(line_at(in, (size_t)(c / 16) * pass->in_rows + (size_t)row) + c % 16,
                      vec_load_part(cell + c, depth > c ? depth - c : 0));
        }
    }
}

/* One row of B^T d B, of 4x4 pixels d: two rows of pixels take part, with these signs. */
static const struct {
    int a, b; /* rows */
    int plus; /* a + b, or a - b */
} winograd_rows[4] = {{0, 2, 0}, {1, 2, 1}, {2, 1, 0}, {1, 3, 0}};

ALWAYS void pack_winograd(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk,
                          int stage, void *in, lt_cpu_kind kind) {
    const lt_conv *v = pass->conv;
    int back = pass->role == LT_CPU_DGRAD, plus = winograd_rows[stage].plus;
    int up = back ? 2 - v->pad_top : v->pad_top, left = back ? 2 - v->pad_left : v->pad_left;
    size_t point = ((size_t)pass->blocks_max * pass->in_rows + 1) * 16;
    ptrdiff_t ahead = 2 * (ptrdiff_t)s->width * s->channels; /* the next row of cells */
    FOR_CELLS(chunk, row, img, cy, cx) {
        spot a[4], b[4];
        for (int i = 0; i < 4; i++) {
            int y = 2 * cy - up, x = 2 * cx - left + i;
            a[i] = locate(s, kind, chunk->image + img, y + winograd_rows[stage].a, x);
            b[i] = locate(s, kind, chunk->image + img, y + winograd_rows[stage].b, x);
        }
        for (int c = 0; c < pass->depth_blocks * 16; c += LANES) {
            float *to = line_at(in, (size_t)(c / 16) * pass->in_rows + (size_t)row) + c % 16;
            vec d[4];
            UNROLL for (int i = 0; i < 4; i++) {
                vec first = fetch(s, kind, a[i], pass->depth_first * 16 + c);
                vec second = fetch(s, kind, b[i], pass->depth_first * 16 + c);
                d[i] = plus ? first + second : first - second;
            }
            if (kind != LT_CPU_POOL) {
                UNROLL for (int i = 2; i < 4; i++) {
                    prefetch(s, kind, a[i], pass->depth_first * 16 + c, ahead);
                    prefetch(s, kind, b[i], pass->depth_first * 16 + c, ahead);
                }
            }
            vec_store(to, d[0] - d[2]);
            vec_store(to + point, d[1] + d[2]);
            vec_store(to + 2 * point, d[2] - d[1]);
            vec_store(to + 3 * point, d[1] - d[3]);
        }
    }
}

/* Forward: a row of (a-b, b, b-c) of 3x3 pixels, per axis. */
ALWAYS void pack_upsample(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk,
                          int stage, void *in, lt_cpu_kind kind) {
    size_t point = ((size_t)pass->blocks_max * pass->in_rows + 1) * 16;
    FOR_CELLS(chunk, row, img, cy, cx) {
        spot a[3], b[3];
        for (int i = 0; i < 3; i++) { /* rows cy-1 and cy, cy alone, or cy and cy+1 */
            a[i] = locate(s, kind, chunk->image + img, stage == 0 ? cy - 1 : cy, cx - 1 + i);
            b[i] = locate(s, kind, chunk->image + img, stage == 2 ? cy + 1 : cy, cx - 1 + i);
        }
        for (int c = 0; c < pass->depth_blocks * 16; c += LANES) {
            float *to = line_at(in, (size_t)(c / 16) * pass->in_rows + (size_t)row) + c % 16;
            vec d[3];
            UNROLL for (int i = 0; i < 3; i++) {
                d[i] = fetch(s, kind, a[i], pass->depth_first * 16 + c);
                if (stage != 1) {
                    d[i] = d[i] - fetch(s, kind, b[i], pass->depth_first * 16 + c);
                }
            }
            vec_store(to, d[0] - d[1]);
            vec_store(to + point, d[1]);
            vec_store(to + 2 * point, d[1] - d[2]);
        }
    }
}

/* Input gradient: of dz at 2i-1 .. 2i+2, per axis, (d3-d1, d1+d2, d0-d2) meet (g0, g0+g1+g2, g2): the
 * adjoint of the forward sums. All 9 belong to one product. */
ALWAYS void upsample_back(const vec d[16], vec out[9]) {
    vec t[12];
    UNROLL for (int i = 0; i < 4; i++) {
        t[i] = d[12 + i] - d[4 + i];
        t[4 + i] = d[4 + i] + d[8 + i];
        t[8 + i] = d[i] - d[8 + i];
    }
    UNROLL for (int i = 0; i < 3; i++) {
        out[3 * i] = t[4 * i + 3] - t[4 * i + 1];
        out[3 * i + 1] = t[4 * i + 1] + t[4 * i + 2];
        out[3 * i + 2] = t[4 * i] - t[4 * i + 2];
    }
}

ALWAYS void pack_upsample_back(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk,
                               void *in, lt_cpu_kind kind) {
    size_t tap = (size_t)pass->depth_blocks * pass->in_rows * 16;
    FOR_CELLS(chunk, row, img, cy, cx) {
        spot places[16];
        for (int i = 0; i < 16; i++) {
            places[i] = locate(s, kind, chunk->image + img, 2 * cy - 1 + i / 4, 2 * cx - 1 + i % 4);
        }
        for (int c = 0; c < pass->depth_blocks * 16; c += LANES) {
            float *to = line_at(in, (size_t)(c / 16) * pass->in_rows + (size_t)row) + c % 16;
            vec d[16], out[9];
            UNROLL for (int i = 0; i < 16; i++) {
                d[i] = fetch(s, kind, places[i], c);
            }
            upsample_back(d, out);
            UNROLL for (int i = 0; i < 9; i++) {
                vec_store(to + (size_t)i * tap, out[i]);
            }
        }
    }
}

ALWAYS void pack_columns(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, void *in,
                         lt_cpu_kind kind) {
    float buffer[LT_CPU_FEW] = {0};
    int columns = pass->y.taps * pass->x.taps * s->channels;
    FOR_CELLS(chunk, row, img, cy, cx) {
        columns_cell(pass, s, chunk->image + img, cy, cx, buffer, kind);
        for (int c = 0; c < (columns + 15) / 16 * 16; c += LANES) {
            vec_store(line_at(in, (size_t)(c / 16) * pass->in_rows + (size_t)row) + c % 16,
                      vec_load(buffer + c));
        }
    }
}

/* The pixels as they are. */
ALWAYS void pack_pixels(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, void *in,
                        lt_cpu_kind kind) {
    FOR_CELLS(chunk, row, img, cy, cx) {
        spot place = locate(s, kind, chunk->image + img, cy, cx);
        for (int c = 0; c < pass->depth_blocks * 16; c += LANES) {
            vec_store(line_at(in, (size_t)(c / 16) * pass->in_rows + (size_t)row) + c % 16,
                      fetch(s, kind, place, pass->depth_first * 16 + c));
        }
    }
}

static void pack(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, int stage,
                 void *in) {
    switch (pass->form) {
    case LT_CPU_TAPS:
        BY_KIND(s, pack_taps, pass, s, chunk, in);
        break;
    case LT_CPU_FLAT:
        BY_KIND(s, pack_flat, pass, s, chunk, stage, in);
        break;
    case LT_CPU_WINOGRAD:
        BY_KIND(s, pack_winograd, pass, s, chunk, stage, in);
        break;
    case LT_CPU_UPSAMPLE:
        if (pass->role == LT_CPU_DGRAD) {
            BY_KIND(s, pack_upsample_back, pass, s, chunk, in);
        } else {
            BY_KIND(s, pack_upsample, pass, s, chunk, stage, in);
        }
        break;
    case LT_CPU_COLUMNS:
        if (pass->role == LT_CPU_DGRAD) {
            BY_KIND(s, pack_columns, pass, s, chunk, in);
        } else {
            BY_KIND(s, pack_pixels, pass, s, chunk, in);
        }
        break;
    }
}

#endif
