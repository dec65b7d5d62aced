/* tiles_amx.h: the tile registers of AMX: 8 tiles of 16 rows of 64 bytes.
 *
 * Work with tiles lies between TILES_BEGIN and TILES_END; a function that names tiles begins with TILES_USED,
 * and tile numbers are constants. Palette 1 is the same on every processor that has AMX.
 */
#ifndef LT_BACKEND_CPU_TILES_AMX_H
#define LT_BACKEND_CPU_TILES_AMX_H

#include <immintrin.h>
#include <stdint.h>

typedef struct tile_config {
    uint8_t palette, start;
    uint8_t reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

static const tile_config all_tiles = {
    1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};

/* gcc does not know that loading a tile reads memory: what was written before must be there. */
#define TILES_BEGIN                                                                                          \
    do {                                                                                                     \
        _tile_loadconfig(&all_tiles);                                                                        \
        __asm__ volatile("" ::: "memory");                                                                   \
    } while (0)
#define TILES_END                        _tile_release()
#define TILES_USED                       ((void)0)
#define TILE_ZERO(tile)                  _tile_zero(tile)
#define TILE_LOAD(tile, from, stride)    _tile_loadd(tile, from, stride)
#define TILE_STORE(tile, to, stride)     _tile_stored(tile, to, stride)
#define TILE_MULTIPLY(sums, left, right) _tile_dpbf16ps(sums, left, right)

#endif
