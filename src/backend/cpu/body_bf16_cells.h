/* body_bf16_cells.h: cells of the forms flat and columns into lines, [block of 32 values][cell][32 values].
 *
 * What a cell holds is short runs from all over the image. They are laid straight into its lines, tap by tap
 * for a whole chunk, so that nothing is read soon after it was written. Lines come zeroed: what the last
 * block has past a cell's values stays 0.
 */
#ifndef LT_BACKEND_CPU_BODY_BF16_CELLS_H
#define LT_BACKEND_CPU_BODY_BF16_CELLS_H

typedef struct cell_lines {
    uint16_t *at;
    size_t rows; /* lines of a block */
} cell_lines;

/* Where value c of cell `row` lies. */
ALWAYS uint16_t *cell_value(cell_lines to, int row, int c) {
    return to.at + ((size_t)(c / 32) * to.rows + (size_t)row) * 32 + c % 32;
}

/* n values from c on; they may reach into the next block. */
ALWAYS void lay_run(cell_lines to, int row, int c, halves v, int n) {
    int here = 32 - c % 32;
    if (n <= here) {
        halves_store_part(cell_value(to, row, c), v, n);
        return;
    }
    uint16_t values[32];
    halves_store(values, v);
    memcpy(cell_value(to, row, c), values, (size_t)here * sizeof *values);
    memcpy(cell_value(to, row, c + here), values + here, (size_t)(n - here) * sizeof *values);
}

/* The taps of point p side by side, [tap][channel]. Neighbouring pixels inside a plain image lie side by side
 * as well: a filter row is then read as one pixel of many channels. */
ALWAYS void lay_flat(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, int p,
                     cell_lines to, lt_cpu_kind kind) {
    const lt_cpu_axis *y = &pass->y, *x = &pass->x;
    int py = p / x->phases, px = p % x->phases, C = s->channels, c = 0;
    const int *offset = x->offset + x->first[px];
    int taps = x->first[px + 1] - x->first[px], together = 0;
    lt_cpu_source wide = *s;
    wide.channels = taps * C;
    if (kind == LT_CPU_PLAIN && taps > 0 && taps * C <= 32) {
        together = offset[taps - 1] - offset[0] == taps - 1;
    }
    for (int ty = y->first[py]; ty < y->first[py + 1]; ty++, c += taps * C) {
        int dy = y->offset[ty], y_step = y->in_step, x_step = x->in_step;
        FOR_CELLS(chunk, row, img, cy, cx) {
            int image = chunk->image + img, iy = cy * y_step + dy, ix = cx * x_step;
            if (together && ix + offset[0] >= 0 && ix + offset[0] + taps <= s->width) {
                spot place = locate(s, kind, image, iy, ix + offset[0]);
                lay_run(to, row, c, fetch_halves(&wide, kind, place, 0), taps * C);
                continue;
            }
            for (int tx = 0; tx < taps; tx++) {
                spot place = locate(s, kind, image, iy, ix + offset[tx]);
                lay_run(to, row, c + tx * C, fetch_halves(s, kind, place, 0), C);
            }
        }
    }
}

/* One tap of dz as the columns that gave it: pixel (cy, cx) of x takes part in output phase (py, px). */
ALWAYS void lay_column(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, int py,
                       int ty, int px, int tx, cell_lines to, lt_cpu_kind kind) {
    const lt_cpu_axis *y = &pass->y, *x = &pass->x;
    int c = (ty * x->taps + tx) * s->channels, dy = y->offset[ty], dx = x->offset[tx];
    int y_step = y->out_step, x_step = x->out_step;
    FOR_CELLS(chunk, row, img, cy, cx) {
        int oy = cy - dy, ox = cx - dx;
        spot place = {-1, 0};
        if (oy >= 0 && ox >= 0) {
            place = locate(s, kind, chunk->image + img, oy * y_step + py, ox * x_step + px);
        }
        lay_run(to, row, c, fetch_halves(s, kind, place, 0), s->channels);
    }
}

ALWAYS void lay_columns(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk,
                        cell_lines to, lt_cpu_kind kind) {
    const lt_cpu_axis *y = &pass->y, *x = &pass->x;
    for (int py = 0; py < y->phases; py++) {
        for (int ty = y->first[py]; ty < y->first[py + 1]; ty++) {
            for (int px = 0; px < x->phases; px++) {
                for (int tx = x->first[px]; tx < x->first[px + 1]; tx++) {
                    lay_column(pass, s, chunk, py, ty, px, tx, to, kind);
                }
            }
        }
    }
}

#endif
