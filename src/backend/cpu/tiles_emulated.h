/* tiles_emulated.h: what tiles_amx.h names, in plain C, so that the loops around the tiles are tested on
 * processors without them. */
#ifndef LT_BACKEND_CPU_TILES_EMULATED_H
#define LT_BACKEND_CPU_TILES_EMULATED_H

#include <stdint.h>
#include <string.h>

typedef struct emulated_tile {
    uint8_t bytes[16][64];
} emulated_tile;

static inline void tile_load(emulated_tile *t, const void *from, size_t stride) {
    for (size_t i = 0; i < 16; i++) {
        memcpy(t->bytes[i], (const uint8_t *)from + i * stride, 64);
    }
}

static inline void tile_store(const emulated_tile *t, void *to, size_t stride) {
    for (size_t i = 0; i < 16; i++) {
        memcpy((uint8_t *)to + i * stride, t->bytes[i], 64);
    }
}

static inline float tile_bf16(const emulated_tile *t, int row, int place) {
    uint16_t half;
    memcpy(&half, &t->bytes[row][2 * place], sizeof half);
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* sums[m][n] += sum over pairs p: left[m][2p] right[p][2n] + left[m][2p+1] right[p][2n+1] */
static inline void tile_multiply(emulated_tile *sums, const emulated_tile *left, const emulated_tile *right) {
    float a[16][32], b[16][32], c[16][16];
    memcpy(c, sums->bytes, sizeof c);
    for (int i = 0; i < 16; i++) {
        for (int j = 0; j < 32; j++) {
            a[i][j] = tile_bf16(left, i, j);
            b[i][j] = tile_bf16(right, i, j);
        }
    }
    for (int m = 0; m < 16; m++) {
        for (int p = 0; p < 16; p++) {
            for (int n = 0; n < 16; n++) {
                c[m][n] += a[m][2 * p] * b[p][2 * n];
                c[m][n] += a[m][2 * p + 1] * b[p][2 * n + 1];
            }
        }
    }
    memcpy(sums->bytes, c, sizeof c);
}

#define TILES_BEGIN                     ((void)0)
#define TILES_END                       ((void)0)
#define TILES_USED                      emulated_tile emulated_tiles[8]
#define TILE_ZERO(number)               memset(&emulated_tiles[number], 0, sizeof(emulated_tile))
#define TILE_LOAD(number, from, stride) tile_load(&emulated_tiles[number], from, (size_t)(stride))
#define TILE_STORE(number, to, stride)  tile_store(&emulated_tiles[number], to, (size_t)(stride))
#define TILE_MULTIPLY(sums, left, right)                                                                     \
    tile_multiply(&emulated_tiles[sums], &emulated_tiles[left], &emulated_tiles[right])

#endif
