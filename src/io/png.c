/* png.c: 8-bit RGB pictures as PNG (RFC 2083).
 *
 * Signature, then chunks of length, type, data and CRC: IHDR, one IDAT, IEND. Each row is sent through
 * the filter none, sub or up, whichever leaves the smallest sum of absolute differences, the usual guess
 * at what deflates best.
 */
#include "io/png.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { BYTES_PER_PIXEL = 3, IHDR_BYTES = 13, CHUNK_BYTES = 12, LEVEL = 9 };
enum { FILTER_NONE, FILTER_SUB, FILTER_UP, FILTERS };

/* So that every length fits a chunk's 31 bits with room to spare. */
static const uint64_t raw_max = (uint64_t)1 << 30;

static uint8_t *put_u32(uint8_t *out, uint32_t value) {
    for (int i = 0; i < 4; i++) {
        out[i] = (uint8_t)(value >> (24 - 8 * i));
    }
    return out + 4;
}

/* The data already lies at out + 8. Returns the end of the chunk. */
static uint8_t *finish_chunk(uint8_t *out, const char *type, size_t bytes) {
    put_u32(out, (uint32_t)bytes);
    memcpy(out + 4, type, 4);
    uLong crc = crc32(crc32(0, NULL, 0), out + 4, (uInt)(4 + bytes)); /* of type and data */
    return put_u32(out + 8 + bytes, (uint32_t)crc);
}

/* One filtered row into out, its filter's number first. `above` is NULL for the first row, which counts
 * as a row of zeros. Returns the sum of the differences' sizes. */
static uint64_t filter_row(const uint8_t *row, const uint8_t *above, size_t bytes, int filter, uint8_t *out) {
    uint64_t sum = 0;
    *out++ = (uint8_t)filter;
    for (size_t i = 0; i < bytes; i++) {
        uint8_t guess = 0;
        if (filter == FILTER_SUB && i >= BYTES_PER_PIXEL) {
            guess = row[i - BYTES_PER_PIXEL];
        } else if (filter == FILTER_UP && above) {
            guess = above[i];
        }
        out[i] = (uint8_t)(row[i] - guess);
        sum += out[i] < 128 ? out[i] : 256u - out[i];
    }
    return sum;
}

static void filter_picture(const uint8_t *rgb, size_t row_bytes, int height, uint8_t *trial, uint8_t *out) {
    for (int y = 0; y < height; y++) {
        const uint8_t *row = rgb + (size_t)y * row_bytes;
        const uint8_t *above = y > 0 ? row - row_bytes : NULL;
        uint64_t best = filter_row(row, above, row_bytes, FILTER_NONE, out);
        for (int filter = FILTER_SUB; filter < FILTERS; filter++) {
            uint64_t sum = filter_row(row, above, row_bytes, filter, trial);
            if (sum < best) {
                best = sum;
                memcpy(out, trial, row_bytes + 1);
            }
        }
        out += row_bytes + 1;
    }
}

/* The filtered rows: height * (1 + width*3) bytes. */
static latent_status make_rows(latent_context *ctx, const uint8_t *rgb, int width, int height, uint8_t **out,
                               size_t *bytes) {
    latent_status status = LATENT_OK;
    uint8_t *trial = NULL;
    size_t row_bytes = (size_t)width * BYTES_PER_PIXEL;
    *bytes = (row_bytes + 1) * (size_t)height;
    LT_TRY(lt_alloc(ctx, *bytes, "a picture", (void **)out));
    LT_TRY(lt_alloc(ctx, row_bytes + 1, "a picture", (void **)&trial));
    filter_picture(rgb, row_bytes, height, trial, *out);
done:
    free(trial);
    return status;
}

latent_status lt_png_encode(latent_context *ctx, const uint8_t *rgb, int width, int height, uint8_t **out,
                            size_t *bytes) {
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    latent_status status = LATENT_OK;
    uint8_t *rows = NULL, *png = NULL;
    size_t rows_bytes = 0;
    *out = NULL;
    *bytes = 0;
    if (width < 1 || height < 1 || ((uint64_t)width * BYTES_PER_PIXEL + 1) > raw_max / (uint64_t)height) {
        return lt_fail(
            ctx, LATENT_ERROR_ARGUMENT,
            "a picture of %d x %d pixels cannot be a PNG: both must be positive and their product below "
            "357 million",
            width, height);
    }
    LT_TRY(make_rows(ctx, rgb, width, height, &rows, &rows_bytes));
    uLongf packed = compressBound((uLong)rows_bytes);
    LT_TRY(
        lt_alloc(ctx, sizeof signature + 3 * CHUNK_BYTES + IHDR_BYTES + packed, "a picture", (void **)&png));
    memcpy(png, signature, sizeof signature);
    uint8_t *at = png + sizeof signature;
    /* Width, height, 8 bits, colour type 2 (RGB), and 0 for compression, filter and interlace methods. */
    static const uint8_t kind[5] = {8, 2, 0, 0, 0};
    memcpy(put_u32(put_u32(at + 8, (uint32_t)width), (uint32_t)height), kind, sizeof kind);
    at = finish_chunk(at, "IHDR", IHDR_BYTES);
    if (compress2(at + 8, &packed, rows, (uLong)rows_bytes, LEVEL) != Z_OK) {
        status = lt_fail(ctx, LATENT_ERROR_MEMORY, "no memory to compress a picture of %d x %d pixels", width,
                         height);
        goto done;
    }
    at = finish_chunk(at, "IDAT", packed);
    at = finish_chunk(at, "IEND", 0);
    *bytes = (size_t)(at - png);
    *out = png;
    png = NULL;
done:
    free(rows);
    free(png);
    return status;
}

latent_status lt_png_write(latent_context *ctx, const char *path, const uint8_t *rgb, int width, int height) {
    uint8_t *png = NULL;
    size_t bytes = 0;
    latent_status status = lt_png_encode(ctx, rgb, width, height, &png, &bytes);
    if (status == LATENT_OK) {
        status = lt_file_write(ctx, path, png, bytes);
    }
    free(png);
    return status;
}
