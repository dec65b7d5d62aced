/* body_bf16_pack.h: bf16 operands into lines, for products of tiles.
 *
 * pack        [block of 32 channels][cell][32 channels]: rows of a left tile
 * pack_left   [block of 16 filters][32 cells][16 filters][32 cells]: left tiles, cells side by side
 * pack_right  [block of 32 channels][half][pair of cells][16 channels][2 cells]: rows of a right tile
 * The weight gradient sums over cells in steps of 32, so what lies past the last cell is 0 there.
 */
#ifndef LT_BACKEND_CPU_BODY_BF16_PACK_H
#define LT_BACKEND_CPU_BODY_BF16_PACK_H

/* Copies of what describes a source and a chunk: what is stored might otherwise be a part of them, and they
 * would be read again each time. */
#define COPIES(source, chunk)                                                                                \
    const lt_cpu_source source_copy = *(source), *s = &source_copy;                                          \
    const lt_cpu_chunk chunk_copy = *(chunk);                                                                \
    (chunk) = &chunk_copy

/* Sources of the forms taps and columns; the latter reads its pixels as they are. */
static int source_count(const lt_cpu_pass *pass) {
    return pass->form == LT_CPU_COLUMNS ? 1 : pass->y.sources * pass->x.sources;
}

ALWAYS void pack_sources(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, void *in,
                         lt_cpu_kind kind) {
    size_t block = pass->in_rows * 32;
    int blocks = pass->depth_blocks;
    for (int i = 0; i < source_count(pass); i++) {
        uint16_t *to = (uint16_t *)in + (size_t)i * (size_t)blocks * block;
        for (walk w = walk_begin(pass, chunk, i); w.img < chunk->images; to += 32) {
            spot place = walk_next(&w, s, chunk, kind);
            for (int b = 0; b < blocks; b++) {
                halves_store(to + (size_t)b * block, fetch_halves(s, kind, place, 32 * b));
            }
        }
    }
}

ALWAYS void pack_cells(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, int stage,
                       void *in, lt_cpu_kind kind) {
    cell_lines to = {in, pass->in_rows};
    size_t last = (size_t)((lt_cpu_depth(pass, stage) - 1) / 32);
    memset(to.at + last * to.rows * 32, 0, (size_t)chunk->cells * LT_CPU_LINE);
    if (pass->form == LT_CPU_FLAT) {
        lay_flat(pass, s, chunk, stage, to, kind);
    } else {
        lay_columns(pass, s, chunk, to, kind);
    }
}

static void pack(const lt_cpu_pass *pass, const lt_cpu_source *x, const lt_cpu_chunk *chunk, int stage,
                 void *in) {
    COPIES(x, chunk);
    if (pass->form == LT_CPU_FLAT || (pass->form == LT_CPU_COLUMNS && pass->role == LT_CPU_DGRAD)) {
        BY_KIND(s, pack_cells, pass, s, chunk, stage, in);
    } else {
        BY_KIND(s, pack_sources, pass, s, chunk, in);
    }
}

/* ---- Weight gradient: x ------------------------------------------------------------------------ */

/* 32 channels of two neighbouring cells; the halves of a block lie `half` lines apart. */
ALWAYS void put_pair(uint32_t *to, size_t half, halves a, halves b) {
    pairs low, high;
    halves_zip(a, b, &low, &high);
    pairs_store(to, low);
    pairs_store(to + half * 16, high);
}

/* Does one of the taps from first on, below last, read this source? */
static int axis_reads(const lt_cpu_axis *axis, int first, int last, int source) {
    while (first < last && axis->source[first] != source) {
        first++;
    }
    return first < last;
}

/* Does point p read source i? */
static int point_reads(const lt_cpu_pass *pass, int p, int i) {
    const lt_cpu_axis *y = &pass->y, *x = &pass->x;
    int py = p / x->phases, px = p % x->phases;
    return pass->form == LT_CPU_COLUMNS || (axis_reads(y, y->first[py], y->first[py + 1], i / x->sources) &&
                                            axis_reads(x, x->first[px], x->first[px + 1], i % x->sources));
}

ALWAYS void right_sources(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk,
                          int stage, void *right, lt_cpu_kind kind) {
    size_t half = pass->in_rows / 2, block = pass->in_rows * 16;
    int blocks = pass->depth_blocks, begin = 32 * pass->depth_first;
    for (int i = 0; i < source_count(pass); i++) {
        if (!point_reads(pass, stage, i)) { /* a stage is a point */
            continue;
        }
        uint32_t *to = (uint32_t *)right + (size_t)i * (size_t)blocks * block;
        walk w = walk_begin(pass, chunk, i);
        for (size_t pair = 0; pair < half; pair++, to += 16) {
            spot first = walk_next(&w, s, chunk, kind), second = walk_next(&w, s, chunk, kind);
            for (int b = 0; b < blocks; b++) {
                int c = begin + 32 * b;
                put_pair(to + (size_t)b * block, half, fetch_halves(s, kind, first, c),
                         fetch_halves(s, kind, second, c));
            }
        }
    }
}

/* Cells as they would be multiplied forward, then as pairs. */
ALWAYS void right_flat(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, int stage,
                       void *right, lt_cpu_kind kind) {
    size_t block = pass->in_rows * LT_CPU_LINE, size = (size_t)pass->blocks_max * block;
    cell_lines cells = {(uint16_t *)right + size / 2, pass->in_rows};
    memset(cells.at, 0, size);
    lay_flat(pass, s, chunk, stage, cells, kind);
    for (int b = 0; b < pass->blocks_max; b++) {
        uint32_t *to = (uint32_t *)right + (size_t)b * pass->in_rows * 16;
        for (int row = 0; row < pass->room; row += 2, to += 16) {
            put_pair(to, pass->in_rows / 2, halves_load(cell_value(cells, row, 32 * b), 32),
                     halves_load(cell_value(cells, row + 1, 32 * b), 32));
        }
    }
}

static void pack_right(const lt_cpu_pass *pass, const lt_cpu_source *x, const lt_cpu_chunk *chunk, int stage,
                       void *right) {
    COPIES(x, chunk);
    if (pass->form == LT_CPU_FLAT) {
        BY_KIND(s, right_flat, pass, s, chunk, stage, right);
    } else {
        BY_KIND(s, right_sources, pass, s, chunk, stage, right);
    }
}

/* ---- Weight gradient: dz ----------------------------------------------------------------------- */

/* Two tiles: filters c to c+31, 32 cells; the second lies `next` numbers after the first, or is not wanted
 * (0). db has the sums of both. */
ALWAYS void left_tiles(const lt_cpu_source *s, const spot places[32], int c, uint16_t *to, size_t next,
                       float *db, lt_cpu_kind kind) {
    uint32_t lines[2][16 * 16];
    for (int i = 0; i < 16; i++) {
        pairs low, high;
        halves_zip(fetch_halves(s, kind, places[2 * i], c), fetch_halves(s, kind, places[2 * i + 1], c), &low,
                   &high);
        pairs_store(lines[0] + 16 * i, low);
        pairs_store(lines[1] + 16 * i, high);
    }
    for (int half = 0; half < (next ? 2 : 1); half++) {
        transpose_16x16(lines[half], (uint32_t *)(void *)(to + (size_t)half * next));
        for (int n = 0; db && n < 16; n += LANES) {
            vec sum = vec_zero();
            for (int i = 0; i < 16; i++) {
                sum = sum + vec_pair_sum(lines[half] + 16 * i + n);
            }
            vec_store(db + 16 * half + n, vec_load(db + 16 * half + n) + sum);
        }
    }
}

/* dz of one phase. */
ALWAYS void left_phase(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk, int p,
                       uint16_t *left, float *db, lt_cpu_kind kind) {
    int steps = pass->room / 32, y_step = pass->y.out_step, x_step = pass->x.out_step;
    size_t block = (size_t)steps * TILE_HALVES;
    walk w = {.rows = chunk->rows, .columns = chunk->columns, .y_step = y_step, .x_step = x_step};
    w.y = chunk->y * y_step + p / pass->x.phases;
    w.x = chunk->x * x_step + p % pass->x.phases;
    for (int step = 0; step < steps; step++) {
        spot places[32];
        for (int row = 0; row < 32; row++) {
            places[row] = walk_next(&w, s, chunk, kind);
        }
        for (int b = 0; b < pass->width_blocks; b += 2) {
            left_tiles(s, places, 16 * (pass->width_first + b),
                       left + (size_t)b * block + (size_t)step * TILE_HALVES,
                       b + 1 < pass->width_blocks ? block : 0, db ? db + 16 * b : NULL, kind);
        }
    }
}

/* Columns as they would be multiplied, then as the pixels of a plain image. */
ALWAYS void left_columns(const lt_cpu_pass *pass, const lt_cpu_source *s, const lt_cpu_chunk *chunk,
                         uint16_t *left, lt_cpu_kind kind) {
    enum { BLOCKS = LT_CPU_FEW / 32 };
    uint16_t lines[BLOCKS * LT_CPU_CELLS * 32] = {0};
    int steps = pass->room / 32;
    size_t block = (size_t)steps * TILE_HALVES;
    cell_lines cells = {lines, LT_CPU_CELLS};
    lay_columns(pass, s, chunk, cells, kind);
    lt_cpu_source image = {.kind = LT_CPU_PLAIN, .type = LT_BF16, .data = lines, .channels = 32};
    for (int b = 0; b < pass->width_blocks; b += 2) {
        for (int step = 0; step < steps; step++) {
            spot places[32];
            for (int row = 0; row < 32; row++) {
                places[row] = (spot){cell_value(cells, 32 * step + row, 16 * b) - lines, 0};
            }
            left_tiles(&image, places, 0, left + (size_t)b * block + (size_t)step * TILE_HALVES,
                       b + 1 < pass->width_blocks ? block : 0, NULL, LT_CPU_PLAIN);
        }
    }
}

static void pack_left(const lt_cpu_pass *pass, const lt_cpu_source *dz, const lt_cpu_chunk *chunk, int stage,
                      void *left, float *db) {
    COPIES(dz, chunk);
    if (pass->form == LT_CPU_COLUMNS) {
        BY_KIND(s, left_columns, pass, s, chunk, left);
        if (db) {
            BY_KIND(s, sum_images, s, chunk, db);
        }
    } else {
        BY_KIND(s, left_phase, pass, s, chunk, stage, left, db);
    }
}

#endif
