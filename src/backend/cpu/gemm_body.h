/* gemm_body.h: one block of a matrix product, written once and compiled once per instruction set.
 *
 * The block's part of B is packed into panels of TILE_VECS vectors: [panel][k][columns of a tile]. Rows of A
 * follow in groups of TILE_ROWS, packed as [k][TILE_ROWS]. Each register tile then runs down k: one element
 * of A is spread over a vector and multiplied with a row of the panel. What lies past the last row or column
 * is packed as 0 and not stored. The sum over k of an element never mixes with another's, so its bits depend
 * on its two rows alone. The including file brings a lanes_*.h and defines GEMM, the name of the table.
 */
#ifndef LT_BACKEND_CPU_GEMM_BODY_H
#define LT_BACKEND_CPU_GEMM_BODY_H

#include "backend/cpu/body_common.h"
#include "backend/cpu/gemm.h"

#include <string.h>

enum { TILE_WIDTH = TILE_VECS * LANES };

/* to[l][width] = from[row][l], rows past the last as 0. */
static void pack_rows(const float *from, size_t stride, size_t rows, size_t width, size_t k, float *to) {
    if (rows < width) {
        memset(to, 0, k * width * sizeof *to);
    }
    /* 128 of k at a time: the lines being filled stay in the L1 cache, and the next row is on its way. */
    for (size_t first = 0; first < k; first += 128) {
        size_t last = first + 128 < k ? first + 128 : k;
        for (size_t r = 0; r < rows; r++) {
            const float *row = from + r * stride;
            for (size_t l = first; r + 1 < rows && l < last; l += 16) {
                __builtin_prefetch(row + stride + l);
            }
            for (size_t l = first; l < last; l++) {
                to[l * width + r] = row[l];
            }
        }
    }
}

ALWAYS void tile(size_t k, const float *a, const float *b, float *c, size_t ldc, int add) {
    vec acc[TILE_ROWS][TILE_VECS];
    UNROLL for (int r = 0; r < TILE_ROWS; r++) {
        UNROLL for (int v = 0; v < TILE_VECS; v++) {
            acc[r][v] = vec_zero();
        }
    }
    for (size_t l = 0; l < k; l++, a += TILE_ROWS, b += TILE_WIDTH) {
        vec row[TILE_VECS];
        UNROLL for (int v = 0; v < TILE_VECS; v++) {
            row[v] = vec_load(b + v * LANES);
        }
        UNROLL for (int r = 0; r < TILE_ROWS; r++) {
            vec value = vec_set(a[r]);
            UNROLL for (int v = 0; v < TILE_VECS; v++) {
                acc[r][v] = vec_fma(value, row[v], acc[r][v]);
            }
        }
    }
    vec one = vec_set(1.0f);
    UNROLL for (int r = 0; r < TILE_ROWS; r++) {
        UNROLL for (int v = 0; v < TILE_VECS; v++) {
            float *to = c + (size_t)r * ldc + v * LANES;
            vec_store(to, add ? vec_fma(vec_load(to), one, acc[r][v]) : acc[r][v]);
        }
    }
}

/* A tile at the edge: through a whole one of its own. */
static void edge_tile(size_t rows, size_t columns, size_t k, const float *a, const float *b, float *c,
                      size_t ldc, int add) {
    float whole[TILE_ROWS * TILE_WIDTH];
    tile(k, a, b, whole, TILE_WIDTH, 0);
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < columns; i++) {
            float value = whole[r * TILE_WIDTH + i];
            c[r * ldc + i] = add ? c[r * ldc + i] + value : value;
        }
    }
}

static void block(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb,
                  float *c, size_t ldc, int add, float *packed) {
    float *left = packed, *panels = packed + k * TILE_ROWS;
    for (size_t j = 0; j < n; j += TILE_WIDTH) {
        size_t columns = n - j < TILE_WIDTH ? n - j : TILE_WIDTH;
        pack_rows(b + j * ldb, ldb, columns, TILE_WIDTH, k, panels + j * k);
    }
    for (size_t i = 0; i < m; i += TILE_ROWS) {
        size_t rows = m - i < TILE_ROWS ? m - i : TILE_ROWS;
        pack_rows(a + i * lda, lda, rows, TILE_ROWS, k, left);
        for (size_t j = 0; j < n; j += TILE_WIDTH) {
            size_t columns = n - j < TILE_WIDTH ? n - j : TILE_WIDTH;
            float *to = c + i * ldc + j;
            if (rows == TILE_ROWS && columns == TILE_WIDTH) {
                tile(k, left, panels + j * k, to, ldc, add);
            } else {
                edge_tile(rows, columns, k, left, panels + j * k, to, ldc, add);
            }
        }
    }
}

const lt_cpu_gemm GEMM = {TILE_ROWS, TILE_WIDTH, block};

#endif
