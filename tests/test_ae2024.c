/* test_ae2024.c: the weight file of the student projects, against a file put together here byte by byte. */
#include "scratch.h"

#include "io/ae2024.h"

/* A value that says where it stands: exact in a float, different for every index. */
static float value_at(size_t index) {
    return (float)index * 0.25f - 1000.0f;
}

static void put_u32(unsigned char *out, uint32_t value) {
    for (int i = 0; i < 4; i++) {
        out[i] = (unsigned char)(value >> (8 * i));
    }
}

/* The whole file, one byte longer than it should be. */
static unsigned char *make_file(void) {
    unsigned char *bytes = calloc(1, LT_AE2024_BYTES + 1);
    assert_non_null(bytes);
    put_u32(bytes, 0x00AE2024u);
    put_u32(bytes + 4, 1);
    for (size_t i = 0; i < LT_AE2024_FLOATS; i++) {
        float value = value_at(i);
        uint32_t bits = 0;
        memcpy(&bits, &value, 4);
        put_u32(bytes + 8 + 4 * i, bits);
    }
    return bytes;
}

static float *make_values(void) {
    float *values = calloc(LT_AE2024_FLOATS, sizeof *values);
    assert_non_null(values);
    return values;
}

static void test_layout(void **state) {
    (void)state;
    static const int channels[LT_AE2024_LAYERS][2] = {{3, 256}, {256, 128}, {128, 128}, {128, 256}, {256, 3}};
    static const char *const names[] = {"enc_conv1", "enc_conv2", "dec_conv1", "dec_conv2", "dec_conv3"};
    size_t at = 0;
    for (int i = 0; i < LT_AE2024_LAYERS; i++) {
        const lt_ae2024_layer *layer = &lt_ae2024_layers[i];
        assert_string_equal(layer->name, names[i]);
        assert_int_equal(layer->in, channels[i][0]);
        assert_int_equal(layer->out, channels[i][1]);
        assert_int_equal(layer->weight, at);
        at += (size_t)(layer->in * layer->out * 9);
        assert_int_equal(layer->bias, at);
        at += (size_t)layer->out;
    }
    assert_int_equal(at, LT_AE2024_FLOATS);
    assert_int_equal(LT_AE2024_BYTES, 3007508);
}

static void test_by_hand(void **state) {
    scratch *s = *state;
    unsigned char *bytes = make_file();
    assert_memory_equal(bytes, "\x24\x20\xAE\x00\x01\x00\x00\x00", 8);
    float *values = make_values();
    const char *path = scratch_file(s, "w.bin", bytes, LT_AE2024_BYTES);
    assert_int_equal(lt_ae2024_read(s->ctx, path, values), LATENT_OK);
    for (size_t i = 0; i < LT_AE2024_FLOATS; i++) {
        assert_true(values[i] == value_at(i));
    }
    /* Written again, it is the same file. */
    char *again = NULL;
    size_t size = 0;
    path = scratch_path(s, "again.bin");
    assert_int_equal(lt_ae2024_write(s->ctx, path, values), LATENT_OK);
    assert_int_equal(lt_file_read(s->ctx, path, SIZE_MAX, &again, &size), LATENT_OK);
    assert_int_equal(size, LT_AE2024_BYTES);
    assert_memory_equal(again, bytes, size);
    assert_int_equal(scratch_entries(s->folder), 2);
    free(again);
    free(values);
    free(bytes);
}

static void test_refused(void **state) {
    scratch *s = *state;
    unsigned char *bytes = make_file();
    float *values = make_values();
    static const struct {
        size_t size;
        const char *part;
    } sizes[] = {{0, "w: 0 bytes are too few for a 0xAE2024 weight file, which has 3007508 bytes"},
                 {7, "w: 7 bytes are too few"},
                 {8, "w: has 8 bytes and is cut short: a 0xAE2024 weight file has 3007508 bytes"},
                 {LT_AE2024_BYTES - 1, "w: has 3007507 bytes and is cut short"},
                 {LT_AE2024_BYTES + 1, "w: has 3007509 bytes and is too long"}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_fails(s->ctx, lt_ae2024_parse(s->ctx, bytes, sizes[i].size, "w", values), LATENT_ERROR_FORMAT,
                     sizes[i].part);
    }
    const char *path = scratch_file(s, "long.bin", bytes, LT_AE2024_BYTES + 1);
    assert_fails(s->ctx, lt_ae2024_read(s->ctx, path, values), LATENT_ERROR_FORMAT,
                 "/long.bin: has 3007509 bytes and is too long");
    put_u32(bytes, 0xAE2024u << 8);
    assert_fails(s->ctx, lt_ae2024_parse(s->ctx, bytes, LT_AE2024_BYTES, "w", values), LATENT_ERROR_FORMAT,
                 "w: byte 0: the magic is 0xAE202400, but a 0xAE2024 weight file begins with 0x00AE2024");
    put_u32(bytes, 0xAE2024u);
    put_u32(bytes + 4, 2);
    assert_fails(s->ctx, lt_ae2024_parse(s->ctx, bytes, LT_AE2024_BYTES, "w", values), LATENT_ERROR_FORMAT,
                 "w: byte 4: the version is 2, but only version 1 is known");
    for (size_t i = 0; i < LT_AE2024_FLOATS; i++) {
        assert_true(values[i] == 0); /* a refused file changes nothing */
    }
    assert_fails(s->ctx, lt_ae2024_read(s->ctx, scratch_path(s, "none"), values), LATENT_ERROR_IO,
                 "/none: cannot read: No such file or directory");
    assert_fails(s->ctx, lt_ae2024_write(s->ctx, scratch_path(s, "no/w"), values), LATENT_ERROR_IO,
                 "no/w: cannot write: No such file or directory");
    free(values);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layout), SCRATCH_TEST(test_by_hand),
                                       SCRATCH_TEST(test_refused)};
    return cmocka_run_group_tests_name("ae2024", tests, NULL, NULL);
}
