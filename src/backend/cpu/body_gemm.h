/* body_gemm.h: the two fp32 products, in register tiles of TILE_ROWS x TILE_VECS vectors.
 *
 * multiply    out[cell][n] = sum over k of in[k][cell] * weights[k][n]: an element of `in` is broadcast,
 *             a row of a weight panel is loaded. Rows past the last cell are computed and never read.
 * correlate   sums[m][n] += sum over cells of left[m][cell] * right[n][cell]. The running sum is loaded and
 *             stored around each group of chunks, so how the cells are grouped does not change a bit.
 */
#ifndef LT_BACKEND_CPU_BODY_GEMM_H
#define LT_BACKEND_CPU_BODY_GEMM_H

enum { TILE_COLUMNS = TILE_VECS * LANES };

/* `vecs` is a constant in every caller. */
ALWAYS void multiply_step(vec acc[TILE_ROWS][TILE_VECS], const float *a, const float *b, int vecs) {
    vec row[TILE_VECS];
    UNROLL for (int v = 0; v < vecs; v++) {
        row[v] = vec_load(b + v * LANES);
    }
    UNROLL for (int r = 0; r < TILE_ROWS; r++) {
        vec value = vec_set(a[r * 16]);
        UNROLL for (int v = 0; v < vecs; v++) {
            acc[r][v] = vec_fma(value, row[v], acc[r][v]);
        }
    }
}

ALWAYS void multiply_tile(const void **blocks, int row, int depth, const float *b, int b_row, int vecs,
                          float *out, size_t out_rows, int column) {
    vec acc[TILE_ROWS][TILE_VECS];
    UNROLL for (int r = 0; r < TILE_ROWS; r++) {
        UNROLL for (int v = 0; v < vecs; v++) {
            acc[r][v] = vec_zero();
        }
    }
    b += column;
    for (; depth >= 16; depth -= 16, blocks++) {
        const float *a = (const float *)*blocks + row * 16;
        for (int k = 0; k < 16; k++, b += b_row) {
            multiply_step(acc, a + k, b, vecs);
        }
    }
    for (int k = 0; k < depth; k++, b += b_row) {
        multiply_step(acc, (const float *)*blocks + row * 16 + k, b, vecs);
    }
    UNROLL for (int v = 0; v < vecs; v++) {
        int n = column + v * LANES;
        float *c = out + ((size_t)(n / 16) * out_rows + (size_t)row) * 16 + n % 16;
        UNROLL for (int r = 0; r < TILE_ROWS; r++) {
            vec_store(c + r * 16, acc[r][v]);
        }
    }
}

/* One panel of one point: all cells, `width` columns (a constant). */
ALWAYS void multiply_panel(const void **blocks, int cells, int depth, const float *b, int width, float *out,
                           size_t out_rows) {
    for (int row = 0; row < cells; row += TILE_ROWS) {
        int n = 0;
        for (; n + TILE_COLUMNS <= width; n += TILE_COLUMNS) {
            multiply_tile(blocks, row, depth, b, width, TILE_VECS, out, out_rows, n);
        }
        if (width % TILE_COLUMNS == 2 * LANES) {
            multiply_tile(blocks, row, depth, b, width, 2, out, out_rows, n);
        } else if (width % TILE_COLUMNS == LANES) {
            multiply_tile(blocks, row, depth, b, width, 1, out, out_rows, n);
        }
    }
}

static void multiply(const lt_cpu_pass *pass, int stage, int cells, const void *in, const void *packed,
                     float *out, size_t out_rows, const void **blocks, size_t *offsets) {
    size_t point = ((size_t)pass->width_blocks * out_rows + 1) * 16;
    int panels = lt_cpu_panels(pass->width_blocks), first_point = stage * pass->stage_points;
    for (int p = first_point; p < first_point + pass->stage_points; p++) {
        const float *b = (const float *)packed + lt_cpu_weights_before(pass, p);
        int depth = lt_cpu_depth(pass, p), count = lt_cpu_blocks(pass, p, offsets);
        for (int i = 0; i < count; i++) {
            blocks[i] = (const float *)in + offsets[i] * 16;
        }
        for (int i = 0; i < panels; i++) {
            int width, first = lt_cpu_panel(pass->width_blocks, i, &width);
            float *c = out + (size_t)p * point + (size_t)first * out_rows * 16;
            if (width == 3) {
                multiply_panel(blocks, cells, depth, b, 48, c, out_rows);
            } else if (width == 2) {
                multiply_panel(blocks, cells, depth, b, 32, c, out_rows);
            } else {
                multiply_panel(blocks, cells, depth, b, 16, c, out_rows);
            }
            b += (size_t)depth * (size_t)width * 16;
        }
    }
}

/* right[v]: where vector v of the tile's columns begins in a chunk's right operand. */
ALWAYS void correlate_tile(const lt_cpu_group *group, size_t left, const size_t right[TILE_VECS], int vecs,
                           float *sums, size_t sums_row) {
    vec acc[TILE_ROWS][TILE_VECS];
    UNROLL for (int r = 0; r < TILE_ROWS; r++) {
        UNROLL for (int v = 0; v < vecs; v++) {
            acc[r][v] = vec_load(sums + (size_t)r * sums_row + v * LANES);
        }
    }
    for (int i = 0; i < group->chunks; i++) {
        const float *a = (const float *)(const void *)(group->left + (size_t)i * group->left_bytes) + left;
        const float *b = (const float *)(const void *)(group->right + (size_t)i * group->right_bytes);
        for (int t = 0; t < group->cells[i]; t++, a += 16, b += 16) {
            vec row[TILE_VECS];
            UNROLL for (int v = 0; v < vecs; v++) {
                row[v] = vec_load(b + right[v]);
            }
            UNROLL for (int r = 0; r < TILE_ROWS; r++) {
                vec value = vec_set(a[r]);
                UNROLL for (int v = 0; v < vecs; v++) {
                    acc[r][v] = vec_fma(value, row[v], acc[r][v]);
                }
            }
        }
    }
    UNROLL for (int r = 0; r < TILE_ROWS; r++) {
        UNROLL for (int v = 0; v < vecs; v++) {
            vec_store(sums + (size_t)r * sums_row + v * LANES, acc[r][v]);
        }
    }
}

/* TILE_ROWS rows of left with one panel of right. */
ALWAYS void correlate_rows(const lt_cpu_group *group, size_t left, const size_t *offsets, int columns,
                           float *sums, size_t sums_row) {
    for (int n = 0; n < columns; n += TILE_COLUMNS) {
        size_t right[TILE_VECS] = {0};
        int vecs = (columns - n) / LANES < TILE_VECS ? (columns - n) / LANES : TILE_VECS;
        for (int v = 0; v < vecs; v++) {
            int column = n + v * LANES;
            right[v] = offsets[column / 16] * 16 + (size_t)(column % 16);
        }
        if (vecs == 3) {
            correlate_tile(group, left, right, 3, sums + n, sums_row);
        } else if (vecs == 2) {
            correlate_tile(group, left, right, 2, sums + n, sums_row);
        } else {
            correlate_tile(group, left, right, 1, sums + n, sums_row);
        }
    }
}

static void correlate(const lt_cpu_pass *pass, const lt_cpu_group *group, int stage, float *sums,
                      size_t *offsets) {
    for (int i = 0; i < pass->stage_points; i++) {
        int p = stage * pass->stage_points + i, count = lt_cpu_blocks(pass, p, offsets);
        size_t point = (size_t)i * ((size_t)pass->width_blocks * pass->out_rows + 1);
        float *to = sums + lt_cpu_weights_before(pass, p);
        for (int panel = 0; panel < lt_cpu_panels(count); panel++) {
            int width, first = lt_cpu_panel(count, panel, &width);
            for (int m = 0; m < pass->width_blocks * 16; m += TILE_ROWS) {
                size_t left = (point + (size_t)(m / 16) * pass->out_rows) * 16 + (size_t)(m % 16);
                correlate_rows(group, left, offsets + first, width * 16,
                               to + (size_t)m * (size_t)count * 16 + first * 16, (size_t)count * 16);
            }
        }
    }
}

/* What the ceiling is measured with: as many sums as a tile has, nothing from memory. */
static double spin(int rounds, float *result) {
    vec acc[TILE_ROWS][TILE_VECS], factor = vec_set(*result), all = vec_zero();
    UNROLL for (int r = 0; r < TILE_ROWS; r++) {
        UNROLL for (int v = 0; v < TILE_VECS; v++) {
            acc[r][v] = vec_set((float)(r * TILE_VECS + v)); /* equal ones would be computed once */
        }
    }
    for (int i = 0; i < rounds; i++) {
        UNROLL for (int r = 0; r < TILE_ROWS; r++) {
            UNROLL for (int v = 0; v < TILE_VECS; v++) {
                acc[r][v] = vec_fma(acc[r][v], factor, factor);
            }
        }
    }
    UNROLL for (int r = 0; r < TILE_ROWS; r++) {
        UNROLL for (int v = 0; v < TILE_VECS; v++) {
            all = all + acc[r][v];
        }
    }
    vec_store_part(result, all, 1);
    return 2.0 * TILE_ROWS * TILE_VECS * LANES * rounds;
}

#endif
