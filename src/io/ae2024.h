/* ae2024.h: the weight file of the field's student projects.
 *
 * Little-endian, no padding: uint32 magic 0x00AE2024, uint32 version 1, then for enc_conv1, enc_conv2,
 * dec_conv1, dec_conv2, dec_conv3: the weights OIHW float32, then the biases float32. The sizes are fixed:
 * 3->256, 256->128, 128->128, 128->256, 256->3, all 3x3; 751,875 floats, 3,007,508 bytes in all.
 */
#ifndef LT_IO_AE2024_H
#define LT_IO_AE2024_H

#include "base/status.h"

enum { LT_AE2024_LAYERS = 5, LT_AE2024_FLOATS = 751875, LT_AE2024_BYTES = 8 + 4 * LT_AE2024_FLOATS };

typedef struct lt_ae2024_layer {
    const char *name;
    int in, out;         /* channels */
    size_t weight, bias; /* offsets in floats from the first float of the file */
} lt_ae2024_layer;

extern const lt_ae2024_layer lt_ae2024_layers[LT_AE2024_LAYERS];

/* Checks the bytes and copies the floats; values are taken as they are. `values` holds LT_AE2024_FLOATS. */
latent_status lt_ae2024_parse(latent_context *ctx, const void *bytes, size_t size, const char *origin,
                              float *values);
latent_status lt_ae2024_read(latent_context *ctx, const char *path, float *values);
latent_status lt_ae2024_write(latent_context *ctx, const char *path, const float *values);

#endif
