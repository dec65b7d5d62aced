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

/* The pixel that row `row` of a source holds; -1 past the chunk. */
ALWAYS spot source_spot(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, int i,
                        int row, lt_cpu_kind kind) {
    const lt_cpu_axis *y = &pass->y, *x = &pass->x;
    int plain = pass->form == LT_CPU_COLUMNS, extra = plain ? 0 : y->extra;
    int columns = chunk->images > 1 ? chunk->columns : pass->chunk_columns;
    int rows = chunk->rows + extra, img = row / (rows * columns);
    int cy = row / columns % rows, cx = row % columns;
    spot place = {-1, 0};
    if (img >= chunk->images || cx >= chunk->columns) {
        return place;
    }
    cy += chunk->y;
    cx += chunk->x;
    if (!plain) {
        cy = cy * y->in_step + y->source_offset[i / x->sources];
        cx = cx * x->in_step + x->source_offset[i % x->sources];
    }
    return locate(s, kind, chunk->image + img, cy, cx);
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
    int extra = pass->form == LT_CPU_COLUMNS ? 0 : pass->y.extra;
    int columns = chunk->images > 1 ? chunk->columns : pass->chunk_columns;
    int rows = chunk->images * (chunk->rows + extra) * columns;
    for (int i = 0; i < source_count(pass); i++) {
        size_t base = (size_t)i * (size_t)pass->depth_blocks * pass->in_rows;
        for (int row = 0; row < rows; row++) {
            spot place = source_spot(pass, s, chunk, i, row, kind);
            for (int b = 0; b < pass->depth_blocks; b++) {
                put_line(s, place, 32 * b, half_line(in, base + (size_t)b * pass->in_rows + (size_t)row),
                         kind);
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
    int first = pass->depth_first * 32;
    for (int i = 0; i < source_count(pass); i++) {
        for (size_t pair = 0; pair < pairs; pair++) {
            spot a = source_spot(pass, s, chunk, i, (int)(2 * pair), kind);
            spot b = source_spot(pass, s, chunk, i, (int)(2 * pair) + 1, kind);
            for (int c = 0; c < pass->depth_blocks * 32; c += LANES) {
                size_t block = (size_t)i * (size_t)pass->depth_blocks + (size_t)(c / 32);
                size_t line = block * pass->in_rows + (size_t)(c / 16 % 2) * pairs + pair;
                vec_store_pairs((uint32_t *)right + line * 16 + c % 16, fetch(s, kind, a, first + c),
                                fetch(s, kind, b, first + c));
            }
        }
    }
}

ALWAYS void right_flat(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, int stage,
                       void *right, lt_cpu_kind kind) {
    size_t pairs = pass->in_rows / 2, lines = lt_cpu_cell_lines(pass);
    float *cells = (float *)right + (pass->in_lines - 2 * lines) * 16;
    int depth = lt_cpu_depth(pass, stage), last = (depth + 31) / 32 * 32;
    for (int row = 0; row < (int)pairs * 2; row++) {
        float *cell = cells + (size_t)(row % 2) * lines * 16;
        int rest = row % (chunk->rows * chunk->columns), img = row / (chunk->rows * chunk->columns);
        memset(cell, 0, (size_t)last * sizeof *cell);
        if (row < chunk->cells) {
            flat_cell(pass, s, stage, chunk->image + img, chunk->y + rest / chunk->columns,
                      chunk->x + rest % chunk->columns, cell, kind);
            memset(cell + depth, 0, (size_t)(last - depth) * sizeof *cell);
        }
        for (int c = 0; row % 2 && c < last; c += LANES) {
            size_t line = (size_t)(c / 32) * pass->in_rows + (size_t)(c / 16 % 2) * pairs + (size_t)row / 2;
            vec_store_pairs((uint32_t *)right + line * 16 + c % 16, vec_load(cells + c), vec_load(cell + c));
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

/* Where output phase p of cell `row` lies; -1 past the chunk. */
ALWAYS spot phase_spot(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, int p,
                       int row, lt_cpu_kind kind) {
    int rest = row % (chunk->rows * chunk->columns), img = row / (chunk->rows * chunk->columns);
    spot place = {-1, 0};
    if (row < chunk->cells) {
        int cy = chunk->y + rest / chunk->columns, cx = chunk->x + rest % chunk->columns;
        place = locate(s, kind, chunk->image + img, cy * pass->y.out_step + p / pass->x.phases,
                       cx * pass->x.out_step + p % pass->x.phases);
    }
    return place;
}

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
            vec_store_pairs(pairs + 16 * pair + i, a, b);
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
        for (int step = 0; step < steps; step++) {
            spot places[32];
            for (int row = 0; row < 32; row++) {
                places[row] =
                    phase_spot(pass, s, chunk, stage * pass->stage_points + i, 32 * step + row, kind);
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
