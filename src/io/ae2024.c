/* ae2024.c: the five convs of the autoencoder as one fixed block of floats.
 *
 * Nothing in the file says how large anything is, so everything can be checked: magic, version, and the
 * exact number of bytes. The layers' places are constants; the comment at each is out*in*9 + out floats.
 */
#include "io/ae2024.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the floats are copied as they lie in the file: this wants a little-endian machine"
#endif

enum { VERSION = 1 };
static const uint32_t magic = 0x00AE2024u;

const lt_ae2024_layer lt_ae2024_layers[LT_AE2024_LAYERS] = {
    {"enc_conv1", 3, 256, 0, 6912},          /*   7,168 */
    {"enc_conv2", 256, 128, 7168, 302080},   /* 295,040 */
    {"dec_conv1", 128, 128, 302208, 449664}, /* 147,584 */
    {"dec_conv2", 128, 256, 449792, 744704}, /* 295,168 */
    {"dec_conv3", 256, 3, 744960, 751872},   /*   6,915 */
};

latent_status lt_ae2024_parse(latent_context *ctx, const void *bytes, size_t size, const char *origin,
                              float *values) {
    uint32_t head[2];
    if (size < sizeof head) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: %zu bytes are too few for a 0xAE2024 weight file, which has %d bytes", origin,
                       size, LT_AE2024_BYTES);
    }
    memcpy(head, bytes, sizeof head);
    if (head[0] != magic) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: byte 0: the magic is 0x%08X, but a 0xAE2024 weight file begins with 0x%08X",
                       origin, (unsigned)head[0], (unsigned)magic);
    }
    if (head[1] != VERSION) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: byte 4: the version is %u, but only version %d is known", origin,
                       (unsigned)head[1], VERSION);
    }
    if (size != LT_AE2024_BYTES) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: has %zu bytes and is %s: a 0xAE2024 weight file has %d bytes", origin, size,
                       size < LT_AE2024_BYTES ? "cut short" : "too long", LT_AE2024_BYTES);
    }
    memcpy(values, (const char *)bytes + sizeof head, LT_AE2024_FLOATS * sizeof *values);
    return LATENT_OK;
}

latent_status lt_ae2024_read(latent_context *ctx, const char *path, float *values) {
    char *bytes = NULL;
    size_t size = 0;
    /* The limit leaves room for a file that is too long by a little: its sentence is the better one. */
    latent_status status = lt_file_read(ctx, path, 2 * (size_t)LT_AE2024_BYTES, &bytes, &size);
    if (status == LATENT_OK) {
        status = lt_ae2024_parse(ctx, bytes, size, path, values);
    }
    free(bytes);
    return status;
}

latent_status lt_ae2024_write(latent_context *ctx, const char *path, const float *values) {
    latent_status status = LATENT_OK;
    const uint32_t head[2] = {magic, VERSION};
    lt_writer *file = NULL;
    LT_TRY(lt_writer_open(ctx, path, &file));
    LT_TRY(lt_writer_put(ctx, file, head, sizeof head));
    LT_TRY(lt_writer_put(ctx, file, values, LT_AE2024_FLOATS * sizeof *values));
    status = lt_writer_commit(ctx, file);
    file = NULL; /* commit has freed it either way */
done:
    lt_writer_abort(file);
    return status;
}
