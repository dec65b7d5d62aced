/* test_png.c: the encoder's files, taken apart here chunk by chunk and inflated back to pixels. */
#include "scratch.h"

#include "base/rng.h"
#include "io/png.h"

#include <zlib.h>

static uint32_t get_u32(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Checks a chunk's type and CRC and steps over it. */
static const uint8_t *take_chunk(const uint8_t **at, const uint8_t *end, const char *type, uint32_t *length) {
    assert_true(end - *at >= 12);
    *length = get_u32(*at);
    assert_true((size_t)(end - *at) >= 12 + (size_t)*length);
    assert_memory_equal(*at + 4, type, 4);
    assert_int_equal(get_u32(*at + 8 + *length), crc32(0, *at + 4, 4 + *length));
    const uint8_t *data = *at + 8;
    *at += 12 + *length;
    return data;
}

/* Undoes the filters of RFC 2083, chapter 6. Counts which were used. */
static void unfilter(const uint8_t *rows, int width, int height, uint8_t *rgb, int used[3]) {
    size_t bytes = (size_t)width * 3;
    for (int y = 0; y < height; y++) {
        int filter = *rows++;
        assert_in_range(filter, 0, 2);
        used[filter]++;
        for (size_t i = 0; i < bytes; i++) {
            uint8_t left = i >= 3 ? rgb[i - 3] : 0, above = y > 0 ? *(rgb + i - bytes) : 0;
            rgb[i] = (uint8_t)(rows[i] + (filter == 1 ? left : filter == 2 ? above : 0));
        }
        rows += bytes;
        rgb += bytes;
    }
}

static void check_file(const uint8_t *png, size_t size, const uint8_t *rgb, int width, int height,
                       int used[3]) {
    const uint8_t *at = png + 8, *end = png + size, *data;
    uint32_t length = 0;
    assert_true(size > 8);
    assert_memory_equal(png, "\x89PNG\r\n\x1A\n", 8);
    data = take_chunk(&at, end, "IHDR", &length);
    assert_int_equal(length, 13);
    assert_int_equal(get_u32(data), width);
    assert_int_equal(get_u32(data + 4), height);
    assert_memory_equal(data + 8, "\x08\x02\x00\x00\x00", 5);
    data = take_chunk(&at, end, "IDAT", &length);
    uLongf raw_bytes = (uLongf)((size_t)height * (1 + 3 * (size_t)width)), got = raw_bytes;
    uint8_t *raw = malloc(raw_bytes), *back = malloc((size_t)width * (size_t)height * 3);
    assert_true(raw && back);
    assert_int_equal(uncompress(raw, &got, data, length), Z_OK);
    assert_int_equal(got, raw_bytes);
    unfilter(raw, width, height, back, used);
    assert_memory_equal(back, rgb, (size_t)width * (size_t)height * 3);
    take_chunk(&at, end, "IEND", &length);
    assert_int_equal(length, 0);
    assert_ptr_equal(at, end);
    free(raw);
    free(back);
}

enum { NOISE, ACROSS, DOWN, FLAT, PATTERNS };

static uint8_t pixel(int pattern, int x, int y, int c) {
    switch (pattern) {
    case NOISE:
        return (uint8_t)lt_philox(1, LT_RNG_TEST, (uint32_t)c, (uint64_t)x << 32 | (uint64_t)y).v[0];
    case ACROSS:
        return (uint8_t)(x * 2 + c * 70 + (lt_philox(2, LT_RNG_TEST, 0, (uint64_t)y).v[0] & 0xFF));
    case DOWN:
        return (uint8_t)((lt_philox(3, LT_RNG_TEST, (uint32_t)c, (uint64_t)x).v[0] & 0xFF) + (uint32_t)y);
    default:
        return (uint8_t)(200 + c);
    }
}

static void test_pictures(void **state) {
    static const int sizes[][2] = {{1, 1}, {1, 17}, {31, 1}, {33, 29}, {340, 102}};
    scratch *s = *state;
    int used[3] = {0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int pattern = 0; pattern < PATTERNS; pattern++) {
            int width = sizes[i][0], height = sizes[i][1];
            uint8_t *rgb = malloc((size_t)(width * height * 3)), *png = NULL;
            size_t bytes = 0;
            assert_non_null(rgb);
            for (int k = 0; k < width * height * 3; k++) {
                rgb[k] = pixel(pattern, k / 3 % width, k / 3 / width, k % 3);
            }
            assert_int_equal(lt_png_encode(s->ctx, rgb, width, height, &png, &bytes), LATENT_OK);
            check_file(png, bytes, rgb, width, height, used);
            if (pattern == FLAT) {
                assert_true(bytes < 500); /* it does compress */
            }
            free(png);
            free(rgb);
        }
    }
    assert_true(used[0] > 0 && used[1] > 0 && used[2] > 0); /* every filter has been undone */
}

static void test_write(void **state) {
    scratch *s = *state;
    const uint8_t rgb[12] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 1, 2, 3};
    const char *path = scratch_path(s, "p.png");
    char *png = NULL;
    size_t bytes = 0;
    assert_int_equal(lt_png_write(s->ctx, path, rgb, 2, 2), LATENT_OK);
    assert_int_equal(lt_file_read(s->ctx, path, 4096, &png, &bytes), LATENT_OK);
    check_file((const uint8_t *)png, bytes, rgb, 2, 2, (int[3]){0});
    free(png);
    assert_fails(s->ctx, lt_png_write(s->ctx, scratch_path(s, "no/p.png"), rgb, 2, 2), LATENT_ERROR_IO,
                 "no/p.png: cannot write: No such file or directory");
}

static void test_refused(void **state) {
    static const int sizes[][2] = {{0, 1},        {1, 0}, {-1, 1}, {1, -1}, {2147483647, 2147483647},
                                   {20000, 20000}};
    scratch *s = *state;
    uint8_t rgb[3] = {0}, *png = rgb;
    size_t bytes = 1;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_fails(s->ctx, lt_png_encode(s->ctx, rgb, sizes[i][0], sizes[i][1], &png, &bytes),
                     LATENT_ERROR_ARGUMENT, "pixels cannot be a PNG");
        assert_null(png);
        assert_int_equal(bytes, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {SCRATCH_TEST(test_pictures), SCRATCH_TEST(test_write),
                                       SCRATCH_TEST(test_refused)};
    return cmocka_run_group_tests_name("png", tests, NULL, NULL);
}
