/* png.h: writes 8-bit RGB PNG files over zlib. */
#ifndef LT_IO_PNG_H
#define LT_IO_PNG_H

#include "base/status.h"

/* rgb: [height][width][3]. Encodes into memory (free with free()) or writes a file atomically. */
latent_status lt_png_encode(latent_context *ctx, const uint8_t *rgb, int width, int height, uint8_t **out,
                            size_t *bytes);
latent_status lt_png_write(latent_context *ctx, const char *path, const uint8_t *rgb, int width, int height);

#endif
