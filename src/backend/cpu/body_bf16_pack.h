/* body_bf16_pack.h: bf16 operands into lines, for products of tiles.
 *
 * pack        [block of 32 channels][cell][32 channels]: rows of a left tile
 * pack_left   [phase][block of 16 filters][32 cells][16 filters][32 cells]: left tiles, cells side by side
 * pack_right  [block of 32 channels][half][pair of cells][16 channels][2 cells]: rows of a right tile
 * The weight gradient sums over cells in steps of 32, so what lies past the last cell is 0 there.
 */
#ifndef LT_BACKEND_CPU_BODY_BF16_PACK_H
#define LT_BACKEND_CPU_BODY_BF16_PACK_H

ALWAYS uint16_t *half_line(void *lines, size_t line) {
    return (uint16_t *)lines + line * 32;
}

/* Sources of the forms taps and columns; the latter reads its pixels as they are. */
static int source_count(const lt_cpu_pass *pass) {
    return pass->form == LT_CPU_COLUMNS ? 1 : pass->y.sources * pass->x.sources;
}

/* Walks the rows of a source, pixel by pixel: the chunk's cells, then those that shifts reach. */
typedef struct walk {
    int img, cy, cx;
    int rows, columns;        /* of cells in a source */
    int y, x, y_step, x_step; /* the first cell's pixel, and the distance to the next */
} walk;

static walk walk_begin(const lt_cpu_pass *pass, const lt_cpu_chunk *chunk, int i) {
    const lt_cpu_axis *y = &pass->y, *x = &pass->x;
    walk w = {0, 0, 0, chunk->rows, pass->chunk_columns, chunk->y, chunk->x, 1, 1};
    if (pass->form != LT_CPU_COLUMNS) {
        w.rows += y->extra;
        w.y_step = y->in_step;
        w.x_step = x->in_step;
        w.y = chunk->y * w.y_step + y->source_offset[i / x->sources];
        w.x = chunk->x * w.x_step + x->source_offset[i % x->sources];
    }
    return w;
}

/* The next pixel; -1 past the chunk. */
ALWAYS spot walk_next(walk *w, const lt_cpu_source *s, const lt_cpu_chunk *chunk, lt_cpu_kind kind) {
    spot place = {-1, 0};
    if (w->img < chunk->images && w->cx < chunk->columns) {
        place = locate(s, kind, chunk->image + w->img, w->y + w->cy * w->y_step, w->x + w->cx * w->x_step);
    }
    if (++w->cx == w->columns) {
        w->cx = 0;
        if (++w->cy == w->rows) {
            w->cy = 0;
            w->img++;
        }
    }
    return place;
}

/* 32 channels of a pixel, from c on. */
ALWAYS void put_line(const lt_cpu_source *s, spot place, int c, uint16_t *to, lt_cpu_kind kind) {
    if (kind == LT_CPU_PLAIN && s->type == LT_BF16 && place.at >= 0 && c + 32 <= s->channels) {
        memcpy(to, (const uint16_t *)s->data + place.at + c, 64);
        return;
    }
    UNROLL for (int i = 0; i < 32; i += LANES) {
        vec_store_bf16(to + i, fetch(s, kind, place, c + i), LANES);
    }
}

ALWAYS void pack_sources(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, void *in,
                         lt_cpu_kind kind) {
    for (int i = 0; i < source_count(pass); i++) {
        size_t base = (size_t)i * (size_t)pass->depth_blocks * pass->in_rows;
        walk w = walk_begin(pass, chunk, i);
        for (size_t row = base; w.img < chunk->images; row++) {
            spot place = walk_next(&w, s, chunk, kind);
            for (int b = 0; b < pass->depth_blocks; b++) {
                put_line(s, place, 32 * b, half_line(in, row + (size_t)b * pass->in_rows), kind);
            }
        }
    }
}

/* A cell of floats as lines; `depth` of them. */
ALWAYS void put_cell(const lt_cpu_pass *pass, const float *cell, int depth, int row, void *in) {
    for (int c = 0; c < (depth + 31) / 32 * 32; c += LANES) {
        vec_store_bf16(half_line(in, (size_t)(c / 32) * pass->in_rows + (size_t)row) + c % 32,
                       vec_load_part(cell + c, depth > c ? depth - c : 0), LANES);
    }
}

ALWAYS void pack_cells(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, int stage,
                       void *in, lt_cpu_kind kind) {
    float columns[LT_CPU_FEW];
    int flat = pass->form == LT_CPU_FLAT;
    float *cell = flat ? (float *)in + (pass->in_lines - lt_cpu_cell_lines(pass)) * 16 : columns;
    FOR_CELLS(chunk, row, img, cy, cx) {
        if (flat) {
            flat_cell(pass, s, stage, chunk->image + img, cy, cx, cell, kind);
        } else {
            columns_cell(pass, s, chunk->image + img, cy, cx, cell, kind);
        }
        put_cell(pass, cell, lt_cpu_depth(pass, stage), row, in);
    }
}

static void pack(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, int stage,
                 void *in) {
    if (pass->form == LT_CPU_FLAT || (pass->form == LT_CPU_COLUMNS && pass->role == LT_CPU_DGRAD)) {
        BY_KIND(s, pack_cells, pass, s, chunk, stage, in);
    } else {
        BY_KIND(s, pack_sources, pass, s, chunk, in);
    }
}

/* ---- Weight gradient: x ------------------------------------------------------------------------ */

ALWAYS void right_sources(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk,
                          void *right, lt_cpu_kind kind) {
    size_t pairs = pass->in_rows / 2;
    int first = pass->depth_first * 32, exact = s->type == LT_BF16;
    for (int i = 0; i < source_count(pass); i++) {
        walk w = walk_begin(pass, chunk, i);
        for (size_t pair = 0; pair < pairs; pair++) {
            spot a = walk_next(&w, s, chunk, kind), b = walk_next(&w, s, chunk, kind);
            for (int c = 0; c < pass->depth_blocks * 32; c += LANES) {
                size_t block = (size_t)i * (size_t)pass->depth_blocks + (size_t)(c / 32);
                size_t line = block * pass->in_rows + (size_t)(c / 16 % 2) * pairs + pair;
                vec_store_pairs((uint32_t *)right + line * 16 + c % 16, fetch(s, kind, a, first + c),
                                fetch(s, kind, b, first + c), exact);
            }
        }
    }
}

ALWAYS void right_flat(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, int stage,
                       void *right, lt_cpu_kind kind) {
    size_t pairs = pass->in_rows / 2, lines = lt_cpu_cell_lines(pass);
    float *cells = (float *)right + (pass->in_lines - 2 * lines) * 16;
    int depth = lt_cpu_depth(pass, stage), last = (depth + 31) / 32 * 32;
    walk w = {0, 0, 0, chunk->rows, chunk->columns, chunk->y, chunk->x, 1, 1};
    for (int row = 0; row < (int)pairs * 2; row++) {
        float *cell = cells + (size_t)(row % 2) * lines * 16;
        if (row < chunk->cells) {
            flat_cell(pass, s, stage, chunk->image + w.img, w.y + w.cy, w.x + w.cx, cell, kind);
            memset(cell + depth, 0, (size_t)(last - depth) * sizeof *cell);
        } else {
            memset(cell, 0, (size_t)last * sizeof *cell);
        }
        (void)walk_next(&w, s, chunk, kind);
        for (int c = 0; row % 2 && c < last; c += LANES) {
            size_t line = (size_t)(c / 32) * pass->in_rows + (size_t)(c / 16 % 2) * pairs + (size_t)row / 2;
            vec_store_pairs((uint32_t *)right + line * 16 + c % 16, vec_load(cells + c), vec_load(cell + c),
                            s->type == LT_BF16);
        }
    }
}

static void pack_right(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, int stage,
                       void *right) {
    if (pass->form == LT_CPU_FLAT) {
        BY_KIND(s, right_flat, pass, s, chunk, stage, right);
    } else {
        BY_KIND(s, right_sources, pass, s, chunk, right);
    }
}

/* ---- Weight gradient: dz ----------------------------------------------------------------------- */

/* One tile: 16 filters from c on, 32 cells. */
ALWAYS void left_tile(const lt_cpu_source *s, const spot places[32], int c, uint16_t *to, float *db,
                      lt_cpu_kind kind) {
    uint32_t pairs[16 * 16];
    for (int i = 0; i < 16; i += LANES) {
        vec sum = vec_zero();
        for (int pair = 0; pair < 16; pair++) {
            vec a = fetch(s, kind, places[2 * pair], c + i);
            vec b = fetch(s, kind, places[2 * pair + 1], c + i);
            sum = sum + (a + b);
            vec_store_pairs(pairs + 16 * pair + i, a, b, 1); /* dz is bf16 */
        }
        if (db) {
            vec_store(db + i, vec_load(db + i) + sum);
        }
    }
    transpose_16x16(pairs, (uint32_t *)(void *)to);
}

ALWAYS void left_phases(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, int stage,
                        void *left, float *db, lt_cpu_kind kind) {
    int steps = pass->room / 32;
    for (int i = 0; i < pass->stage_points; i++) {
        int p = stage * pass->stage_points + i, y_step = pass->y.out_step, x_step = pass->x.out_step;
        walk w = {0,
                  0,
                  0,
                  chunk->rows,
                  chunk->columns,
                  chunk->y * y_step + p / pass->x.phases,
                  chunk->x * x_step + p % pass->x.phases,
                  y_step,
                  x_step};
        for (int step = 0; step < steps; step++) {
            spot places[32];
            for (int row = 0; row < 32; row++) {
                places[row] = walk_next(&w, s, chunk, kind);
            }
            for (int b = 0; b < pass->width_blocks; b++) {
                size_t tile =
                    ((size_t)i * (size_t)pass->width_blocks + (size_t)b) * (size_t)steps + (size_t)step;
                left_tile(s, places, 16 * (pass->width_first + b), (uint16_t *)left + tile * 512,
                          db ? db + 16 * b : NULL, kind);
            }
        }
    }
}

ALWAYS void left_columns(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk,
                         void *left, lt_cpu_kind kind) {
    int steps = pass->room / 32;
    memset(left, 0, (size_t)pass->width_blocks * (size_t)steps * 1024);
    FOR_CELLS(chunk, row, img, cy, cx) {
        float cell[LT_CPU_FEW];
        columns_cell(pass, s, chunk->image + img, cy, cx, cell, kind);
        for (int c = 0; c < pass->width; c++) {
            size_t tile = (size_t)(c / 16) * (size_t)steps + (size_t)(row / 32);
            ((uint16_t *)left)[tile * 512 + (size_t)(c % 16 * 32 + row % 32)] = lt_cpu_bf16(cell[c]);
        }
    }
}

static void pack_left(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, int stage,
                      void *left, float *db) {
    if (pass->form == LT_CPU_COLUMNS) {
        BY_KIND(s, left_columns, pass, s, chunk, left);
        if (db) {
            BY_KIND(s, sum_images, s, chunk, db);
        }
    } else {
        BY_KIND(s, left_phases, pass, s, chunk, stage, left, db);
    }
}

#endif
