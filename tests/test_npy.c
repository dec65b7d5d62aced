/* test_npy.c: NumPy's array files: what NumPy writes, what it reads, and what nobody should. */
#include "scratch.h"

#include "io/npy.h"

#include <math.h>

/* A file with this header text and these data bytes; version 1. */
static const char *make(scratch *s, const char *header, const void *data, size_t bytes) {
    char file[2048] = "\x93NUMPY\x01\x00";
    size_t length = strlen(header);
    assert_true(10 + length + bytes <= sizeof file);
    file[8] = (char)(length & 0xFF);
    file[9] = (char)(length >> 8);
    memcpy(file + 10, header, length);
    memcpy(file + 10 + length, data, bytes);
    return scratch_file(s, "a.npy", file, 10 + length + bytes);
}

static void test_round_trip(void **state) {
    scratch *s = *state;
    const char *path = scratch_path(s, "x.npy");
    float x[6] = {1.5f, -2, 0, 3e38f, 1e-40f, 7}, back[6];
    lt_npy_writer *writer = NULL;
    lt_npy *npy = NULL;
    assert_int_equal(lt_npy_create(s->ctx, path, 3, 2, &writer), LATENT_OK);
    assert_int_equal(lt_npy_put(s->ctx, writer, x, 2), LATENT_OK);
    assert_int_equal(lt_npy_put(s->ctx, writer, x + 2, 4), LATENT_OK);
    assert_int_equal(lt_npy_commit(s->ctx, writer), LATENT_OK);
    assert_int_equal(lt_npy_open(s->ctx, path, &npy), LATENT_OK);
    const lt_npy_info *info = lt_npy_get_info(npy);
    assert_int_equal(info->dims, 2);
    assert_int_equal(info->shape[0], 3);
    assert_int_equal(info->shape[1], 2);
    assert_int_equal(info->offset % 64, 0);
    assert_int_equal(lt_npy_floats(s->ctx, npy, back, 1), LATENT_OK);
    assert_int_equal(lt_npy_floats(s->ctx, npy, back + 1, 5), LATENT_OK);
    assert_memory_equal(back, x, sizeof x);
    assert_fails(s->ctx, lt_npy_floats(s->ctx, npy, back, 1), LATENT_ERROR_ARGUMENT, "more values");
    lt_npy_close(npy);
    assert_int_equal(scratch_entries(s->folder), 1);
}

/* Enough values to be read by several threads, between few that are not. */
static void test_many(void **state) {
    scratch *s = *state;
    const char *path = scratch_path(s, "x.npy");
    const size_t count = 5000003, parts[] = {3, 4400001, 299999, 300000};
    float *x = malloc(count * sizeof *x), *back = calloc(count, sizeof *back);
    lt_npy *npy = NULL;
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        x[i] = (float)i;
    }
    assert_int_equal(latent_rows_write(s->ctx, path, x, count, 1, NULL), LATENT_OK);
    assert_int_equal(lt_npy_open(s->ctx, path, &npy), LATENT_OK);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(lt_npy_floats(s->ctx, npy, back + at, parts[i]), LATENT_OK);
        at += parts[i];
    }
    assert_int_equal(at, count);
    assert_memory_equal(back, x, count * sizeof *x);
    lt_npy_close(npy);
    /* Cut while it is open: whichever way it is read. */
    for (int wide = 0; wide < 2; wide++) {
        off_t bytes = 19999999;
        assert_int_equal(truncate(path, 128 + (off_t)(count * sizeof *x)), 0);
        assert_int_equal(lt_npy_open(s->ctx, path, &npy), LATENT_OK);
        assert_int_equal(lt_npy_floats(s->ctx, npy, back, wide ? 3 : 4900000), LATENT_OK);
        assert_int_equal(truncate(path, bytes), 0);
        assert_fails(s->ctx, lt_npy_floats(s->ctx, npy, back, wide ? 5000000 : 100003), LATENT_ERROR_IO,
                     "the file became shorter while it was read");
        lt_npy_close(npy);
    }
    free(x);
    free(back);
}

/* The very bytes that NumPy 1.24 writes for np.array([7, 8, 9], dtype='<i8'). */
static void test_as_numpy_writes(void **state) {
    scratch *s = *state;
    char header[119];
    memset(header, ' ', sizeof header);
    const char *text = "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }";
    memcpy(header, text, strlen(text));
    header[117] = '\n';
    header[118] = 0;
    int64_t values[3] = {7, 8, 9};
    const char *path = make(s, header, values, sizeof values);
    lt_npy *npy = NULL;
    int32_t labels[3];
    assert_int_equal(lt_npy_open(s->ctx, path, &npy), LATENT_OK);
    assert_int_equal(lt_npy_get_info(npy)->dims, 1);
    assert_int_equal(lt_npy_integers(s->ctx, npy, labels, 3), LATENT_OK);
    assert_int_equal(labels[2], 9);
    lt_npy_close(npy);
}

static void test_types(void **state) {
    scratch *s = *state;
    const double f64[2] = {0.1, -3};
    const int32_t i32[2] = {-5, 1 << 30};
    const uint8_t u8[2] = {0, 255};
    const struct {
        const char *descr;
        const void *data;
        size_t bytes;
        float expected[2];
    } cases[] = {
        {"<f8", f64, sizeof f64, {0.1f, -3}},
        {"<i4", i32, sizeof i32, {-5, 1 << 30}},
        {"|u1", u8, sizeof u8, {0, 255}},
        {"<u1", u8, sizeof u8, {0, 255}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char header[128];
        float out[2];
        lt_npy *npy = NULL;
        /* Keys in another order, double quotes, no trailing comma. */
        snprintf(header, sizeof header, "{\"shape\":(2,1),\"descr\":\"%s\",\"fortran_order\":False}\n",
                 cases[i].descr);
        const char *path = make(s, header, cases[i].data, cases[i].bytes);
        assert_int_equal(lt_npy_open(s->ctx, path, &npy), LATENT_OK);
        assert_int_equal(lt_npy_floats(s->ctx, npy, out, 2), LATENT_OK);
        assert_memory_equal(out, cases[i].expected, sizeof out);
        lt_npy_close(npy);
    }
}

static void test_version_2(void **state) {
    scratch *s = *state;
    const char *header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2), }\n";
    char file[128] = "\x93NUMPY\x02\x00";
    size_t length = strlen(header);
    lt_npy *npy = NULL;
    float out[2];
    file[8] = (char)length;
    memcpy(file + 12, header, length);
    memcpy(file + 12 + length, "\x03\x04", 2);
    const char *path = scratch_file(s, "v2.npy", file, 14 + length);
    assert_int_equal(lt_npy_open(s->ctx, path, &npy), LATENT_OK);
    assert_int_equal(lt_npy_floats(s->ctx, npy, out, 2), LATENT_OK);
    assert_true(out[0] == 3 && out[1] == 4);
    lt_npy_close(npy);
    file[6] = 3;
    path = scratch_file(s, "v3.npy", file, 14 + length);
    assert_fails(s->ctx, lt_npy_open(s->ctx, path, &npy), LATENT_ERROR_FORMAT, "versions 1 and 2");
}

static void test_bad_headers(void **state) {
    scratch *s = *state;
    static const struct {
        const char *header, *says;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }", "Fortran order"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (1, 1), }", "'>f4'"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1, 1), }", "'<c8'"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "string in quotes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1), }", "more than 2"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "no dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }", "cut short"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 1), }", "too long"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "cut short"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 1), }", "2^64"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 1), }", "whole number"},
        {"{'descr': '<f4', 'fortran_order': False}", "lacks the key 'shape'"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1, 1), }", "repeats"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1), 'extra': 1}", "has the key 'extra'"},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1, 1), }", "True or False"},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (1, 1), }", "a comma or }"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1), } x", "end of the header"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1 1), }", "a comma or the end of the shape"},
        {"{'descr", "end of a string"},
        {"", "{ is expected"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lt_npy *npy = NULL;
        const char *path = make(s, cases[i].header, "\0\0\0\0", 4);
        assert_fails(s->ctx, lt_npy_open(s->ctx, path, &npy), LATENT_ERROR_FORMAT, cases[i].says);
        assert_null(npy);
    }
}

/* Cut at every byte: never a crash, always a sentence. */
static void test_cut_short(void **state) {
    scratch *s = *state;
    const char *header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n";
    const float values[4] = {1, 2, 3, 4};
    char file[256];
    const char *whole = make(s, header, values, sizeof values);
    FILE *in = fopen(whole, "rb");
    size_t size = fread(file, 1, sizeof file, in);
    fclose(in);
    for (size_t bytes = 0; bytes < size; bytes++) {
        lt_npy *npy = NULL;
        const char *path = scratch_file(s, "cut.npy", file, bytes);
        assert_int_equal(lt_npy_open(s->ctx, path, &npy), LATENT_ERROR_FORMAT);
        assert_says(s->ctx, "cut");
        assert_null(npy);
    }
    file[8] = (char)0xFF;
    file[9] = (char)0xFF;
    lt_npy *npy = NULL;
    assert_fails(s->ctx, lt_npy_open(s->ctx, scratch_file(s, "long.npy", file, size), &npy),
                 LATENT_ERROR_FORMAT, "only");
    assert_fails(s->ctx, lt_npy_open(s->ctx, scratch_path(s, "none.npy"), &npy), LATENT_ERROR_IO, "none.npy");
    assert_fails(s->ctx, lt_npy_open(s->ctx, s->folder, &npy), LATENT_ERROR_IO, "cannot read");
}

static void test_bad_values(void **state) {
    scratch *s = *state;
    const double values[3] = {1, 1e300, 2.5};
    const char *header = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 1), }\n";
    float out[3];
    int32_t labels[3];
    lt_npy *npy = NULL;
    const char *path = make(s, header, values, sizeof values);
    assert_int_equal(lt_npy_open(s->ctx, path, &npy), LATENT_OK);
    assert_fails(s->ctx, lt_npy_floats(s->ctx, npy, out, 3), LATENT_ERROR_FORMAT, "row 1, column 0: 1e+300");
    lt_npy_close(npy);
    const double fractions[3] = {1, 2, 2.5};
    path = make(s, header, fractions, sizeof fractions);
    assert_int_equal(lt_npy_open(s->ctx, path, &npy), LATENT_OK);
    assert_fails(s->ctx, lt_npy_integers(s->ctx, npy, labels, 3), LATENT_ERROR_FORMAT, "row 2");
    lt_npy_close(npy);
    const double nans[3] = {NAN, INFINITY, 1};
    path = make(s, header, nans, sizeof nans);
    assert_int_equal(lt_npy_open(s->ctx, path, &npy), LATENT_OK);
    assert_int_equal(lt_npy_floats(s->ctx, npy, out, 3), LATENT_OK); /* the user of the values judges them */
    assert_true(isnan(out[0]) && isinf(out[1]));
    lt_npy_close(npy);
    assert_int_equal(lt_npy_open(s->ctx, path, &npy), LATENT_OK);
    assert_fails(s->ctx, lt_npy_integers(s->ctx, npy, labels, 3), LATENT_ERROR_FORMAT, "row 0");
    lt_npy_close(npy);
}

static void test_writing_fails(void **state) {
    scratch *s = *state;
    const char *path = scratch_path(s, "x.npy");
    lt_npy_writer *writer = NULL;
    float x[2] = {1, 2};
    assert_int_equal(lt_npy_create(s->ctx, path, 2, 2, &writer), LATENT_OK);
    assert_int_equal(lt_npy_put(s->ctx, writer, x, 2), LATENT_OK);
    assert_fails(s->ctx, lt_npy_commit(s->ctx, writer), LATENT_ERROR_ARGUMENT, "2 of its 4 values");
    assert_int_equal(scratch_entries(s->folder), 0);
    assert_int_equal(lt_npy_create(s->ctx, path, 1, 1, &writer), LATENT_OK);
    assert_fails(s->ctx, lt_npy_put(s->ctx, writer, x, 2), LATENT_ERROR_ARGUMENT, "more values");
    lt_npy_abort(writer);
    assert_int_equal(scratch_entries(s->folder), 0);
    assert_fails(s->ctx, lt_npy_create(s->ctx, path, UINT64_MAX, 2, &writer), LATENT_ERROR_ARGUMENT,
                 "too many");
    assert_fails(s->ctx, lt_npy_create(s->ctx, scratch_path(s, "no/x.npy"), 1, 1, &writer), LATENT_ERROR_IO,
                 "no/x.npy");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_round_trip), SCRATCH_TEST(test_many),       SCRATCH_TEST(test_as_numpy_writes),
        SCRATCH_TEST(test_types),      SCRATCH_TEST(test_version_2),  SCRATCH_TEST(test_bad_headers),
        SCRATCH_TEST(test_cut_short),  SCRATCH_TEST(test_bad_values), SCRATCH_TEST(test_writing_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
