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

#define TILES_BEGIN                                                                                          \
    do {                                                                                                     \
        tile_config config = {.palette = 1};                                                                 \
        for (int tile = 0; tile < 8; tile++) {                                                               \
            config.row_bytes[tile] = 64;                                                                     \
            config.rows[tile] = 16;                                                                          \
        }                                                                                                    \
        _tile_loadconfig(&config);                                                                           \
    } while (0)
#define TILES_END                        _tile_release()
#define TILES_USED                       ((void)0)
#define TILE_ZERO(tile)                  _tile_zero(tile)
#define TILE_LOAD(tile, from, stride)    _tile_loadd(tile, from, stride)
#define TILE_STORE(tile, to, stride)     _tile_stored(tile, to, stride)
#define TILE_MULTIPLY(sums, left, right) _tile_dpbf16ps(sums, left, right)

#endif
