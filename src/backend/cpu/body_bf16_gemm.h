/* body_bf16_gemm.h: the products of bf16 numbers, in tiles of 16x16 sums, two by two. */
#ifndef LT_BACKEND_CPU_BODY_BF16_GEMM_H
#define LT_BACKEND_CPU_BODY_BF16_GEMM_H

enum { TILE_BYTES = 1024, TILE_HALVES = 512 };

/* 32 cells from `row` on, two blocks of columns. */
static void multiply_2x2(const void **blocks, int deep, size_t row, const char *b0, const char *b1, float *c0,
                         float *c1) {
    TILES_USED;
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    for (int i = 0; i < deep; i++) {
        const char *a = (const char *)blocks[i] + row * LT_CPU_LINE;
        TILE_LOAD(4, a, LT_CPU_LINE);
        TILE_LOAD(6, b0 + (size_t)i * TILE_BYTES, LT_CPU_LINE);
        TILE_MULTIPLY(0, 4, 6);
        TILE_LOAD(5, a + TILE_BYTES, LT_CPU_LINE);
        TILE_MULTIPLY(1, 5, 6);
        TILE_LOAD(7, b1 + (size_t)i * TILE_BYTES, LT_CPU_LINE);
        TILE_MULTIPLY(2, 4, 7);
        TILE_MULTIPLY(3, 5, 7);
    }
    TILE_STORE(0, c0 + row * 16, LT_CPU_LINE);
    TILE_STORE(1, c0 + (row + 16) * 16, LT_CPU_LINE);
    TILE_STORE(2, c1 + row * 16, LT_CPU_LINE);
    TILE_STORE(3, c1 + (row + 16) * 16, LT_CPU_LINE);
}

static void multiply_2x1(const void **blocks, int deep, size_t row, const char *b0, float *c0) {
    TILES_USED;
    TILE_ZERO(0);
    TILE_ZERO(1);
    for (int i = 0; i < deep; i++) {
        const char *a = (const char *)blocks[i] + row * LT_CPU_LINE;
        TILE_LOAD(4, a, LT_CPU_LINE);
        TILE_LOAD(6, b0 + (size_t)i * TILE_BYTES, LT_CPU_LINE);
        TILE_MULTIPLY(0, 4, 6);
        TILE_LOAD(5, a + TILE_BYTES, LT_CPU_LINE);
        TILE_MULTIPLY(1, 5, 6);
    }
    TILE_STORE(0, c0 + row * 16, LT_CPU_LINE);
    TILE_STORE(1, c0 + (row + 16) * 16, LT_CPU_LINE);
}

static void multiply(const lt_cpu_pass *pass, int stage, int cells, const void *in, const void *packed,
                     float *out, size_t out_rows, const void **blocks, size_t *offsets) {
    size_t point = ((size_t)pass->width_blocks * out_rows + 1) * 16;
    TILES_BEGIN;
    for (int j = 0; j < pass->stage_points; j++) {
        int p = stage * pass->stage_points + j, deep = lt_cpu_blocks(pass, p, offsets);
        const char *b = (const char *)packed + lt_cpu_weights_before(pass, p) * sizeof(uint16_t);
        for (int i = 0; i < deep; i++) {
            blocks[i] = (const char *)in + offsets[i] * LT_CPU_LINE;
        }
        for (int n = 0; n < pass->width_blocks; n += 2, b += 2 * (size_t)deep * TILE_BYTES) {
            float *c = out + (size_t)p * point + (size_t)n * out_rows * 16;
            for (int row = 0; row < cells; row += 32) {
                if (n + 1 < pass->width_blocks) {
                    multiply_2x2(blocks, deep, (size_t)row, b, b + (size_t)deep * TILE_BYTES, c,
                                 c + out_rows * 16);
                } else {
                    multiply_2x1(blocks, deep, (size_t)row, b, c);
                }
            }
        }
    }
    TILES_END;
}

/* ---- Weight gradient --------------------------------------------------------------------------- */

/* One or two blocks of filters by the 32 channels of a right block. */
typedef struct tile_task {
    size_t left[2], right[2]; /* bytes into a chunk's operands, first tile of 32 cells */
    float *sums;              /* [16 or 32 filters][row] */
    size_t row;               /* floats */
    int steps;                /* tiles of 32 cells in a chunk */
} tile_task;

static void correlate_2x2(const lt_cpu_group *group, const tile_task *t) {
    float *c = t->sums;
    size_t stride = t->row * sizeof(float);
    TILES_USED;
    TILE_LOAD(0, c, stride);
    TILE_LOAD(1, c + 16 * t->row, stride);
    TILE_LOAD(2, c + 16, stride);
    TILE_LOAD(3, c + 16 * t->row + 16, stride);
    for (int i = 0; i < group->chunks; i++) {
        const char *left = group->left + (size_t)i * group->left_bytes;
        const char *right = group->right + (size_t)i * group->right_bytes;
        for (int s = 0; s < t->steps; s++, left += TILE_BYTES, right += TILE_BYTES) {
            TILE_LOAD(4, left + t->left[0], LT_CPU_LINE);
            TILE_LOAD(6, right + t->right[0], LT_CPU_LINE);
            TILE_MULTIPLY(0, 4, 6);
            TILE_LOAD(5, left + t->left[1], LT_CPU_LINE);
            TILE_MULTIPLY(1, 5, 6);
            TILE_LOAD(7, right + t->right[1], LT_CPU_LINE);
            TILE_MULTIPLY(2, 4, 7);
            TILE_MULTIPLY(3, 5, 7);
        }
    }
    TILE_STORE(0, c, stride);
    TILE_STORE(1, c + 16 * t->row, stride);
    TILE_STORE(2, c + 16, stride);
    TILE_STORE(3, c + 16 * t->row + 16, stride);
}

static void correlate_1x2(const lt_cpu_group *group, const tile_task *t) {
    float *c = t->sums;
    size_t stride = t->row * sizeof(float);
    TILES_USED;
    TILE_LOAD(0, c, stride);
    TILE_LOAD(2, c + 16, stride);
    for (int i = 0; i < group->chunks; i++) {
        const char *left = group->left + (size_t)i * group->left_bytes;
        const char *right = group->right + (size_t)i * group->right_bytes;
        for (int s = 0; s < t->steps; s++, left += TILE_BYTES, right += TILE_BYTES) {
            TILE_LOAD(4, left + t->left[0], LT_CPU_LINE);
            TILE_LOAD(6, right + t->right[0], LT_CPU_LINE);
            TILE_MULTIPLY(0, 4, 6);
            TILE_LOAD(7, right + t->right[1], LT_CPU_LINE);
            TILE_MULTIPLY(2, 4, 7);
        }
    }
    TILE_STORE(0, c, stride);
    TILE_STORE(2, c + 16, stride);
}

static void correlate(const lt_cpu_pass *pass, const lt_cpu_group *group, int stage, float *sums,
                      size_t *offsets) {
    int steps = pass->room / 32;
    TILES_BEGIN;
    for (int i = 0; i < pass->stage_points; i++) {
        int p = stage * pass->stage_points + i, count = lt_cpu_blocks(pass, p, offsets);
        float *to = sums + lt_cpu_weights_before(pass, p);
        for (int b = 0; b < count; b++) {
            /* A source's rows are pairs of cells, and its halves lie one after the other. */
            size_t shift = offsets[b] % pass->in_rows, line = offsets[b] - shift + shift / 2;
            for (int m = 0; m < pass->width_blocks; m += 2) {
                size_t tile = ((size_t)i * (size_t)pass->width_blocks + (size_t)m) * (size_t)steps;
                tile_task t = {{tile * TILE_BYTES, (tile + (size_t)steps) * TILE_BYTES},
                               {line * LT_CPU_LINE, (line + pass->in_rows / 2) * LT_CPU_LINE},
                               to + (size_t)m * 16 * (size_t)count * 32 + (size_t)b * 32,
                               (size_t)count * 32,
                               steps};
                if (m + 1 < pass->width_blocks) {
                    correlate_2x2(group, &t);
                } else {
                    correlate_1x2(group, &t);
                }
            }
        }
    }
    TILES_END;
}

/* What the ceiling is measured with: tiles that stay where they are. */
static double spin(int rounds, float *result) {
    float zeros[16 * 16] = {0};
    TILES_USED;
    TILES_BEGIN;
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    TILE_LOAD(4, zeros, LT_CPU_LINE);
    TILE_LOAD(5, zeros, LT_CPU_LINE);
    TILE_LOAD(6, zeros, LT_CPU_LINE);
    TILE_LOAD(7, zeros, LT_CPU_LINE);
    for (int i = 0; i < rounds; i++) {
        TILE_MULTIPLY(0, 4, 6);
        TILE_MULTIPLY(1, 5, 6);
        TILE_MULTIPLY(2, 4, 7);
        TILE_MULTIPLY(3, 5, 7);
    }
    TILE_STORE(0, zeros, LT_CPU_LINE);
    TILES_END;
    *result = zeros[0];
    return 4.0 * 2 * 16 * 16 * 32 * rounds;
}

#endif
