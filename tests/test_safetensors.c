/* test_safetensors.c: what is written reads back; a file made by hand reads as the format says; and files
 * that lie are refused with the reason.
 */
#include "scratch.h"

#include "io/safetensors.h"

#include <math.h>

/* A file in memory: the header's length, the header, then `bytes` of data that count up. */
typedef struct image {
    unsigned char bytes[4096];
    size_t size;
} image;

static void make_image(image *out, const char *header, size_t data_bytes) {
    uint64_t length = strlen(header);
    out->size = 8 + length + data_bytes;
    assert_true(out->size <= sizeof out->bytes);
    for (int i = 0; i < 8; i++) {
        out->bytes[i] = (unsigned char)(length >> (8 * i));
    }
    memcpy(out->bytes + 8, header, length);
    for (size_t i = 0; i < data_bytes; i++) {
        out->bytes[8 + length + i] = (unsigned char)i;
    }
}

static void test_round_trip(void **state) {
    scratch *s = *state;
    const char *path = scratch_path(s, "m.safetensors");
    const float weight[6] = {1, -2, 3.5f, 0, 1e-38f, 6};
    const double moment = 0.1;
    const int64_t step = 1234567890123;
    const uint8_t mask[3] = {0, 7, 255};
    const lt_st_tensor tensors[] = {
        {"conv.weight", LT_ST_F32, 4, {1, 2, 3, 1}, 6, weight},
        {"mask", LT_ST_U8, 1, {3}, 3, mask},
        {"empty", LT_ST_F64, 2, {0, 5}, 0, NULL},
        {"moment", LT_ST_F64, 1, {1}, 1, &moment}, /* begins at byte 27: unaligned */
        {"step", LT_ST_I64, 0, {0}, 1, &step},
    };
    const lt_st_pair metadata[] = {{"net", "input 32x32x3\nconv \"a\" \xC3\xA9\n"}, {"seed", "1"}};
    lt_safetensors *st = NULL;
    assert_int_equal(lt_st_write(s->ctx, path, tensors, 5, metadata, 2), LATENT_OK);
    assert_int_equal(scratch_entries(s->folder), 1);
    assert_int_equal(lt_st_read(s->ctx, path, &st), LATENT_OK);
    assert_int_equal(lt_st_count(st), 5);
    for (int i = 0; i < 5; i++) {
        const lt_st_tensor *t = lt_st_find(st, tensors[i].name);
        assert_non_null(t);
        assert_string_equal(t->name, tensors[i].name);
        assert_int_equal(t->type, tensors[i].type);
        assert_int_equal(t->dims, tensors[i].dims);
        assert_memory_equal(t->shape, tensors[i].shape, (size_t)t->dims * sizeof *t->shape);
        assert_int_equal(t->count, tensors[i].count);
        if (t->count > 0) {
            assert_memory_equal(t->data, tensors[i].data, t->count * lt_st_type_bytes(t->type));
        }
    }
    assert_true(lt_st_value(lt_st_find(st, "conv.weight"), 2) == 3.5);
    assert_true(lt_st_value(lt_st_find(st, "moment"), 0) == 0.1);
    assert_true(lt_st_value(lt_st_find(st, "step"), 0) == 1234567890123.0);
    assert_true(lt_st_value(lt_st_find(st, "mask"), 2) == 255);
    assert_null(lt_st_find(st, "conv.bias"));
    assert_string_equal(lt_st_metadata(st, "net"), metadata[0].value);
    assert_string_equal(lt_st_metadata(st, "seed"), "1");
    assert_null(lt_st_metadata(st, "none"));
    lt_st_destroy(st);
}

/* Byte for byte what the format says, so that other readers agree. */
static void test_written_bytes(void **state) {
    static const char header[] = "{\"__metadata__\":{\"k\":\"v\"},"
                                 "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                                 "\"b\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[8,9]}}";
    scratch *s = *state;
    const char *path = scratch_path(s, "m.safetensors");
    const float a[2] = {1.0f, -2.0f}; /* 00 00 80 3f, 00 00 00 c0 */
    const uint8_t b = 5;
    const lt_st_tensor tensors[] = {{"a", LT_ST_F32, 1, {2}, 2, a}, {"b", LT_ST_U8, 0, {0}, 1, &b}};
    const lt_st_pair metadata = {"k", "v"};
    char *bytes = NULL;
    size_t size = 0, padded = (sizeof header - 1 + 7) / 8 * 8;
    assert_int_equal(lt_st_write(s->ctx, path, tensors, 2, &metadata, 1), LATENT_OK);
    assert_int_equal(lt_file_read(s->ctx, path, 4096, &bytes, &size), LATENT_OK);
    assert_int_equal(size, 8 + padded + 9);
    assert_memory_equal(bytes, ((unsigned char[8]){(unsigned char)padded}), 8);
    assert_memory_equal(bytes + 8, header, sizeof header - 1);
    for (size_t i = sizeof header - 1; i < padded; i++) {
        assert_int_equal(bytes[8 + i], ' ');
    }
    assert_memory_equal(bytes + 8 + padded, "\x00\x00\x80\x3F\x00\x00\x00\xC0\x05", 9);
    free(bytes);
}

/* The header's order is not the data's; tensors come in the order of the data. */
static void test_by_hand(void **state) {
    scratch *s = *state;
    image im;
    make_image(&im,
               "{\"late\":{\"dtype\":\"F16\",\"shape\":[1,2],\"data_offsets\":[4,8]}, \"__metadata__\":{},\n"
               "\"early\":{\"shape\":[],\"data_offsets\":[0,4],\"dtype\":\"I32\"},"
               "\"none\":{\"shape\":[0],\"data_offsets\":[4,4],\"dtype\":\"I32\"}}   ",
               8);
    memcpy(im.bytes + im.size - 8, "\xFE\xFF\xFF\xFF\x00\x3C\x00\xC1", 8); /* -2; 1.0, -2.5 */
    lt_safetensors *st = NULL;
    assert_int_equal(lt_st_parse(s->ctx, im.bytes, im.size, "m", &st), LATENT_OK);
    assert_int_equal(lt_st_count(st), 3);
    assert_string_equal(lt_st_at(st, 0)->name, "early");
    assert_string_equal(lt_st_at(st, 1)->name, "none");
    assert_string_equal(lt_st_at(st, 2)->name, "late");
    assert_int_equal(lt_st_at(st, 0)->dims, 0);
    assert_int_equal(lt_st_at(st, 0)->count, 1);
    assert_int_equal(lt_st_at(st, 1)->count, 0);
    assert_true(lt_st_value(lt_st_at(st, 0), 0) == -2);
    assert_true(lt_st_value(lt_st_at(st, 2), 0) == 1);
    assert_true(lt_st_value(lt_st_at(st, 2), 1) == -2.5);
    assert_null(lt_st_metadata(st, "k"));
    lt_st_destroy(st);
    make_image(&im, "{}", 0); /* no tensors at all is a valid file */
    assert_int_equal(lt_st_parse(s->ctx, im.bytes, im.size, "m", &st), LATENT_OK);
    assert_int_equal(lt_st_count(st), 0);
    assert_null(lt_st_find(st, "a"));
    assert_null(lt_st_metadata(st, "k"));
    lt_st_destroy(st);
}

static void test_values(void **state) {
    static const struct {
        lt_st_type type;
        uint64_t bits;
        double value;
    } cases[] = {{LT_ST_F16, 0x0000, 0},
                 {LT_ST_F16, 0x0001, 0x1p-24},
                 {LT_ST_F16, 0x03FF, 1023 * 0x1p-24},
                 {LT_ST_F16, 0x0400, 0x1p-14},
                 {LT_ST_F16, 0x3555, 0.333251953125},
                 {LT_ST_F16, 0x7BFF, 65504},
                 {LT_ST_F16, 0xFC00, -INFINITY},
                 {LT_ST_BF16, 0x3F80, 1},
                 {LT_ST_BF16, 0xC049, -3.140625},
                 {LT_ST_BF16, 0x0001, 0x1p-133},
                 {LT_ST_BF16, 0x7F80, INFINITY},
                 {LT_ST_F32, 0x3DCCCCCD, 0.1f},
                 {LT_ST_F64, 0x3FB999999999999A, 0.1},
                 {LT_ST_I64, 0x8000000000000000, -0x1p63},
                 {LT_ST_I32, 0x80000000, -0x1p31},
                 {LT_ST_U8, 0xFF, 255}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char data[1 + 16]; /* element 1 of an unaligned tensor */
        unsigned bytes = lt_st_type_bytes(cases[i].type);
        memset(data, 0xA5, sizeof data);
        memcpy(data + 1 + bytes, &cases[i].bits, bytes);
        lt_st_tensor t = {"t", cases[i].type, 1, {2}, 2, data + 1};
        assert_true(lt_st_value(&t, 1) == cases[i].value);
    }
    const uint16_t nan = 0x7E00;
    assert_true(isnan(lt_st_value(&(lt_st_tensor){"t", LT_ST_F16, 0, {0}, 1, &nan}, 0)));
}

#define T(name, type, shape, offsets)                                                                        \
    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const struct {
    const char *header;
    size_t data_bytes;
    const char *part;
} hostile[] = {
    {"", 0, "m: header: byte 0: the text ends here"},
    {"[]", 0, "m: header: must be a JSON object"},
    {"{\"a\":1}", 0, "m: tensor \"a\": its entry in the header must be an object"},
    {"{" T("a", "F32", "[1]", "[0,4]") "," T("a", "F32", "[1]", "[4,8]") "}", 8, "has the key \"a\" twice"},
    {"{" T("a", "F8_E4M3", "[1]", "[0,1]") "}", 1, "tensor \"a\": unknown dtype \"F8_E4M3\"; known are F32"},
    {"{" T("a", "f32", "[1]", "[0,4]") "}", 4, "unknown dtype \"f32\""},
    {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "tensor \"a\": \"dtype\" is missing or no string"},
    {"{\"a\":{\"dtype\":32,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "\"dtype\" is missing or no string"},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4,
     "tensor \"a\": \"shape\" is missing or no array"},
    {"{" T("a", "F32", "1", "[0,4]") "}", 4, "\"shape\" is missing or no array"},
    {"{" T("a", "F32", "[-1]", "[0,4]") "}", 4, "\"shape\" must hold whole numbers from 0"},
    {"{" T("a", "F32", "[1.0]", "[0,4]") "}", 4, "\"shape\" must hold whole numbers from 0"},
    {"{" T("a", "F32", "[\"1\"]", "[0,4]") "}", 4, "\"shape\" must hold whole numbers from 0"},
    {"{" T("a", "F32", "[18446744073709551616]", "[0,4]") "}", 4, "\"shape\" must hold whole numbers"},
    {"{" T("a", "F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, "\"shape\" has more than 8 dimensions"},
    {"{" T("a", "U8", "[4294967296,4294967296]", "[0,0]") "}", 0,
     "the product of \"shape\" does not fit 64 bits"},
    {"{" T("a", "U8", "[4294967297,4294967295,2]", "[0,4]") "}", 4, "the product of \"shape\" does not fit"},
    {"{" T("a", "F32", "[4611686018427387905]", "[0,4]") "}", 4, "its size in bytes does not fit 64 bits"},
    {"{" T("a", "F32", "[2]", "[0,4]") "}", 4,
     "tensor \"a\": has 4 bytes of data, but its dtype and shape want 8"},
    {"{" T("a", "F32", "[0]", "[0,4]") "}", 4, "has 4 bytes of data, but its dtype and shape want 0"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4,
     "\"data_offsets\" must be an array of two whole numbers"},
    {"{" T("a", "F32", "[1]", "[0]") "}", 4, "\"data_offsets\" must be an array of two whole numbers"},
    {"{" T("a", "F32", "[1]", "[0,4,8]") "}", 8, "\"data_offsets\" must be an array of two whole numbers"},
    {"{" T("a", "F32", "[1]", "[0,4.0]") "}", 4, "\"data_offsets\" must be an array of two whole numbers"},
    {"{" T("a", "F32", "[1]", "[-4,0]") "}", 4, "\"data_offsets\" must be an array of two whole numbers"},
    {"{" T("a", "F32", "[1]", "[4,0]") "}", 4,
     "tensor \"a\": bytes 4 to 0 are not within the 4 bytes of data"},
    {"{" T("a", "F32", "[1]", "[4,8]") "}", 7, "bytes 4 to 8 are not within the 7 bytes of data"},
    {"{" T("a", "U8", "[4]", "[18446744073709551615,3]") "}", 4, "are not within the 4 bytes of data"},
    {"{" T("a", "F32", "[1]", "[0,4]") "," T("b", "F32", "[1]", "[0,4]") "}", 4,
     "begins at byte 0 of the data and overlaps the bytes up to byte 4"},
    {"{" T("a", "F32", "[2]", "[0,8]") "," T("b", "F32", "[1]", "[4,8]") "}", 8,
     "tensor \"b\": begins at byte 4 of the data and overlaps the bytes up to byte 8"},
    {"{" T("a", "F32", "[1]", "[0,4]") "," T("b", "F32", "[1]", "[8,12]") "}", 12,
     "tensor \"b\": begins at byte 8 of the data and leaves a gap from byte 4"},
    {"{" T("a", "F32", "[1]", "[4,8]") "}", 8,
     "tensor \"a\": begins at byte 4 of the data and leaves a gap from byte 0"},
    {"{" T("a", "F32", "[1]", "[0,4]") "," T("b", "F32", "[0]", "[2,2]") "}", 4,
     "tensor \"b\": begins at byte 2 of the data and overlaps"},
    {"{" T("a", "F32", "[1]", "[0,4]") "}", 5,
     "the tensors end at byte 4 of the data, but the file has 5 bytes"},
    {"{}", 1, "the tensors end at byte 0 of the data, but the file has 1 bytes"},
    {"{\"__metadata__\":[]}", 0, "\"__metadata__\" must be an object of strings"},
    {"{\"__metadata__\":{\"k\":1}}", 0, "\"__metadata__\": the value of \"k\" must be a string"},
    {"{\"__metadata__\":{\"k\":{}}}", 0, "the value of \"k\" must be a string"},
    {"{\"a\x1B\":1}", 0, "m: header: byte 3: a control character"},
    {"{\"\\u001b[2J\":1}", 0, "tensor \"?[2J\": its entry"},
    {"{} x", 0, "m: header: byte 3: text after the end"},
};

static void test_hostile_headers(void **state) {
    scratch *s = *state;
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        image im;
        lt_safetensors *st = (lt_safetensors *)s;
        make_image(&im, hostile[i].header, hostile[i].data_bytes);
        assert_fails(s->ctx, lt_st_parse(s->ctx, im.bytes, im.size, "m", &st), LATENT_ERROR_FORMAT,
                     hostile[i].part);
        assert_null(st);
    }
}

static void test_hostile_frames(void **state) {
    scratch *s = *state;
    lt_safetensors *st = NULL;
    image im;
    make_image(&im, "{" T("a", "F32", "[1]", "[0,4]") "}", 4);
    assert_fails(s->ctx, lt_st_parse(s->ctx, "", 0, "m", &st), LATENT_ERROR_FORMAT, "m: 0 bytes are too few");
    assert_fails(s->ctx, lt_st_parse(s->ctx, im.bytes, 7, "m", &st), LATENT_ERROR_FORMAT,
                 "m: 7 bytes are too few");
    assert_fails(s->ctx, lt_st_parse(s->ctx, im.bytes, 20, "m", &st), LATENT_ERROR_FORMAT,
                 "m: the file ends at byte 20, within its header");
    assert_fails(s->ctx, lt_st_parse(s->ctx, im.bytes, im.size - 1, "m", &st), LATENT_ERROR_FORMAT,
                 "tensor \"a\": bytes 0 to 4 are not within the 3 bytes of data");
    memset(im.bytes, 0xFF, 8);
    assert_fails(s->ctx, lt_st_parse(s->ctx, im.bytes, im.size, "m", &st), LATENT_ERROR_FORMAT,
                 "m: the header would have 18446744073709551615 bytes, more than the 100000000");
    /* Every cut of a good file is refused, also when it comes from a disk. */
    make_image(&im, "{" T("a", "F32", "[1]", "[0,4]") "}", 4);
    for (size_t size = 0; size < im.size; size++) {
        assert_int_equal(lt_st_parse(s->ctx, im.bytes, size, "m", &st), LATENT_ERROR_FORMAT);
        assert_null(st);
    }
    const char *path = scratch_file(s, "cut", im.bytes, 50);
    assert_fails(s->ctx, lt_st_read(s->ctx, path, &st), LATENT_ERROR_FORMAT,
                 "/cut: the file ends at byte 50");
    assert_fails(s->ctx, lt_st_read(s->ctx, scratch_path(s, "none"), &st), LATENT_ERROR_IO,
                 "/none: cannot read");
    assert_null(st);
}

/* Five gigabytes of nothing behind a good header, and behind none: refused by the header, before the rest is
 * read, which would take longer than anybody waits for a test. */
static void test_large_and_empty(void **state) {
    scratch *s = *state;
    lt_safetensors *st = NULL;
    image im;
    make_image(&im, "{" T("a", "F32", "[1]", "[0,4]") "}", 4);
    const char *path = scratch_file(s, "large", im.bytes, im.size);
    if (truncate(path, (off_t)5 << 30) != 0) {
        skip(); /* no such large files here */
    }
    assert_fails(s->ctx, lt_st_read(s->ctx, path, &st), LATENT_ERROR_FORMAT,
                 "/large: the tensors end at byte 4 of the data, but the file has 53687");
    path = scratch_file(s, "zeros", "", 0);
    assert_int_equal(truncate(path, (off_t)5 << 30), 0);
    assert_fails(s->ctx, lt_st_read(s->ctx, path, &st), LATENT_ERROR_FORMAT, "/zeros: header: byte 0");
    assert_null(st);
}

static void test_write_refused(void **state) {
    scratch *s = *state;
    const char *path = scratch_path(s, "m");
    const float a[2] = {1, 2};
    const lt_st_tensor twice[] = {{"a", LT_ST_F32, 1, {2}, 2, a}, {"a", LT_ST_F32, 1, {2}, 2, a}};
    const lt_st_tensor wrong_count = {"a", LT_ST_F32, 1, {2}, 1, a},
                       reserved = {"__metadata__", LT_ST_F32, 1, {2}, 2, a};
    const lt_st_tensor huge = {"a", LT_ST_F32, 2, {UINT64_MAX, 2}, UINT64_MAX - 1, a};
    assert_fails(s->ctx, lt_st_write(s->ctx, path, twice, 2, NULL, 0), LATENT_ERROR_FORMAT,
                 "has the key \"a\" twice");
    assert_fails(s->ctx, lt_st_write(s->ctx, path, &wrong_count, 1, NULL, 0), LATENT_ERROR_ARGUMENT,
                 "cannot write the tensor \"a\"");
    assert_fails(s->ctx, lt_st_write(s->ctx, path, &reserved, 1, NULL, 0), LATENT_ERROR_ARGUMENT,
                 "cannot write the tensor \"__metadata__\"");
    assert_fails(s->ctx, lt_st_write(s->ctx, path, &huge, 1, NULL, 0), LATENT_ERROR_ARGUMENT,
                 "cannot write the tensor");
    assert_fails(s->ctx, lt_st_write(s->ctx, scratch_path(s, "no/m"), twice, 1, NULL, 0), LATENT_ERROR_IO,
                 "no/m: cannot write: No such file or directory");
    assert_int_equal(scratch_entries(s->folder), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_round_trip),      SCRATCH_TEST(test_written_bytes),
        SCRATCH_TEST(test_by_hand),         SCRATCH_TEST(test_values),
        SCRATCH_TEST(test_hostile_headers), SCRATCH_TEST(test_hostile_frames),
        SCRATCH_TEST(test_large_and_empty), SCRATCH_TEST(test_write_refused),
    };
    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
