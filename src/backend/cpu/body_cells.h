/* body_cells.h: one cell of the forms flat and columns, laid out as floats: [tap][channel]. */
#ifndef LT_BACKEND_CPU_BODY_CELLS_H
#define LT_BACKEND_CPU_BODY_CELLS_H

/* A run of `count` floats; what is copied past it will be overwritten by the next. */
ALWAYS void copy_run(float *to, const lt_cpu_source *s, size_t at, int count) {
    for (int i = 0; i < count; i += LANES) {
        vec_store(to + i, value_load(s, s->data, at + (size_t)i, count - i));
    }
}

/* One filter row of a plain input: neighbouring pixels lie side by side, so it is one run, cut at the
 * borders of the image. */
ALWAYS void flat_row(const lt_cpu_source *s, int image, int y, int x, int pixels, float *to) {
    int C = s->channels, low = x < 0 ? -x : 0, high = x + pixels > s->width ? s->width - x : pixels;
    low = low > pixels ? pixels : low;
    if (y < 0 || y >= s->height || high <= low) {
        low = high = pixels;
    }
    for (int i = 0; i < low * C; i++) {
        to[i] = 0;
    }
    if (high > low) {
        size_t at = (((size_t)image * (size_t)s->height + (size_t)y) * (size_t)s->width + (size_t)(x + low)) *
                    (size_t)C;
        copy_run(to + low * C, s, at, (high - low) * C);
    }
    for (int i = high * C; i < pixels * C; i++) {
        to[i] = 0;
    }
}

/* The taps of one cell side by side, [tap][channel]. */
ALWAYS void flat_cell(const lt_cpu_pass *pass, const lt_cpu_source *s, int p, int image, int cy, int cx,
                      float *to, lt_cpu_kind kind) {
    const lt_cpu_axis *y = &pass->y, *x = &pass->x;
    int py = p / x->phases, px = p % x->phases, C = pass->depth;
    int first = x->first[px], last = x->first[px + 1] - 1;
    int run = kind == LT_CPU_PLAIN && last >= first && x->offset[last] - x->offset[first] == last - first;
    for (int ty = y->first[py]; ty < y->first[py + 1]; ty++) {
        int iy = cy * y->in_step + y->offset[ty];
        if (run) {
            flat_row(s, image, iy, cx * x->in_step + x->offset[first], last - first + 1, to);
            to += (last - first + 1) * C;
            continue;
        }
        for (int tx = first; tx <= last; tx++, to += C) {
            spot place = locate(s, kind, image, iy, cx * x->in_step + x->offset[tx]);
            for (int c = 0; c < C; c++) {
                to[c] = fetch_one(s, kind, place, c);
            }
        }
    }
}

/* dz as the columns that gave it: pixel (y, x) of x takes part in output phase p by tap t. */
ALWAYS void columns_cell(const lt_cpu_pass *pass, const lt_cpu_source *s, int image, int iy, int ix,
                         float *to, lt_cpu_kind kind) {
    const lt_cpu_axis *y = &pass->y, *x = &pass->x;
    int K = s->channels;
    for (int py = 0; py < y->phases; py++) {
        for (int ty = y->first[py]; ty < y->first[py + 1]; ty++) {
            int cy = iy - y->offset[ty];
            for (int px = 0; px < x->phases; px++) {
                for (int tx = x->first[px]; tx < x->first[px + 1]; tx++, to += K) {
                    int cx = ix - x->offset[tx];
                    spot place = {-1, 0};
                    if (cy >= 0 && cx >= 0) {
                        place = locate(s, kind, image, cy * y->out_step + py, cx * x->out_step + px);
                    }
                    for (int k = 0; k < K; k++) {
                        to[k] = fetch_one(s, kind, place, k);
                    }
                }
            }
        }
    }
}

/* db of whole images, for the form whose cells are not outputs: at the first chunk of each. */
ALWAYS void sum_images(const lt_cpu_source *s, const lt_cpu_chunk *chunk, float *db, lt_cpu_kind kind) {
    if (chunk->y > 0 || chunk->x > 0) {
        return;
    }
    for (int img = 0; img < chunk->images; img++) {
        for (int y = 0; y < s->height; y++) {
            for (int x = 0; x < s->width; x++) {
                spot place = locate(s, kind, chunk->image + img, y, x);
                for (int k = 0; k < s->channels; k++) {
                    db[k] += fetch_one(s, kind, place, k);
                }
            }
        }
    }
}

#endif
