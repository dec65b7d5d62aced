/* test_rows.c: rows of features in a backend's memory: transposed, summed, measured, scaled; and images that
 * are gathered mirrored. Every backend; expected values by hand or by plain loops here.
 */
#include "op_run.h"

#include <math.h>

static double number(int i) { /* exact in bf16 */
    return (double)((i * 37 + 11) % 64) - 20;
}

/* Odd sizes on both sides of a 32x32 tile. */
static void test_gather(void **state) {
    rig r;
    rig_open(&r, *state, 0);
    static const int shapes[][3] = {{1, 1, 1}, {3, 64, 128}, {2, 33, 5}, {2, 7, 70}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        int n = shapes[s][0], pixels = shapes[s][1], channels = shapes[s][2], count = n * pixels * channels;
        double *x = malloc((size_t)count * sizeof *x), *rows = malloc((size_t)count * sizeof *rows);
        assert_true(x && rows);
        for (int i = 0; i < count; i++) {
            x[i] = number(i);
        }
        fenced from = fenced_tensor(&r, (size_t)count, x, (size_t)count, r.backend->activation);
        fenced to = fenced_tensor(&r, (size_t)count, NULL, 0, LT_F32);
        lt_rows_gather_call call = {(size_t)n,        (size_t)pixels, (size_t)channels,
                                    fenced_at(&from), fenced_at(&to), 0};
        for (call.add = 0; call.add <= 1; call.add++) {
            RIG_OK(&r, r.type->rows->gather(r.ctx, r.backend, &call));
            fenced_values(&r, &to, "rows", (size_t)count, LT_F32, rows);
            for (int i = 0; i < count; i++) {
                int c = i / pixels % channels, p = i % pixels, image = i / (pixels * channels);
                double wanted = (1 + call.add) * x[(image * pixels + p) * channels + c];
                assert_true(rows[i] == wanted);
            }
        }
        fenced_free(&r, &from);
        fenced_free(&r, &to);
        free(x);
        free(rows);
    }
    rig_close(&r);
}

static void columns_of(rig *r, const float *x, size_t n, size_t width, size_t split, double *out) {
    fenced rows = fenced_make(r, n * width * sizeof *x, x, n * width * sizeof *x);
    fenced sums = fenced_make(r, 2 * width * sizeof *out, NULL, 0);
    double *mean = fenced_at(&sums);
    RIG_OK(r, r->type->zero(r->ctx, r->backend, mean, 2 * width * sizeof *out));
    lt_rows_columns_call call = {fenced_at(&rows), split, width, 0, mean, mean + width};
    RIG_OK(r, r->type->rows->columns(r->ctx, r->backend, &call));
    call.rows += split * width;
    call.n = n - split;
    call.before = split;
    RIG_OK(r, r->type->rows->columns(r->ctx, r->backend, &call));
    memcpy(out, fenced_read(r, &sums, "statistics", 2 * width * sizeof *out), 2 * width * sizeof *out);
    fenced_free(r, &rows);
    fenced_free(r, &sums);
}

/* Two columns, three rows, on paper: (1, 2, 3) and (4, 4, 10): means 2 and 6, squared distances 2 and 24. In
 * one piece and in two. */
static void test_columns_by_hand(void **state) {
    rig r;
    rig_open(&r, *state, 0);
    const float x[] = {1, 4, 2, 4, 3, 10};
    for (size_t split = 0; split <= 3; split++) {
        double sums[4];
        columns_of(&r, x, 3, 2, split, sums);
        assert_float_equal(sums[0], 2, 1e-12);
        assert_float_equal(sums[1], 6, 1e-12);
        assert_float_equal(sums[2], 2, 1e-12);
        assert_float_equal(sums[3], 24, 1e-12);
    }
    rig_close(&r);
}

/* Bit for bit what the contract says, on more columns and rows than a block of anything has. */
static void test_columns_exact(void **state) {
    enum { ROWS = 83, WIDTH = 301 };
    static float x[ROWS * WIDTH];
    static double sums[2 * WIDTH];
    rig r;
    rig_open(&r, *state, 0);
    for (int i = 0; i < ROWS * WIDTH; i++) {
        x[i] = (float)sin(i) * 3 + 1;
    }
    columns_of(&r, x, ROWS, WIDTH, 40, sums);
    for (int c = 0; c < WIDTH; c++) {
        volatile double mean = 0, m2 = 0;
        for (int row = 0; row < ROWS; row++) {
            volatile double share = 1.0 / (row + 1), distance = (double)x[row * WIDTH + c] - mean;
            volatile double step = distance * share;
            mean = mean + step;
            volatile double rest = (double)x[row * WIDTH + c] - mean, square = distance * rest;
            m2 = m2 + square;
        }
        assert_true(sums[c] == mean);
        assert_true(sums[WIDTH + c] == m2);
    }
    rig_close(&r);
}

static size_t finish(rig *r, float *x, size_t n, size_t width, const float *scaling, int l2) {
    fenced rows = fenced_make(r, n * width * sizeof *x, x, n * width * sizeof *x);
    fenced both = fenced_make(r, scaling ? 2 * width * sizeof *x : 0, scaling, 2 * width * sizeof *x);
    const float *mean = fenced_at(&both);
    lt_rows_finish_call call = {fenced_at(&rows),   n, width, mean, mean ? mean + width : NULL,
                                scaling ? 0.5f : 0, l2};
    size_t bad = 12345;
    RIG_OK(r, r->type->rows->finish(r->ctx, r->backend, &call, &bad));
    memcpy(x, fenced_read(r, &rows, "rows", n * width * sizeof *x), n * width * sizeof *x);
    fenced_free(r, &rows);
    fenced_free(r, &both);
    return bad;
}

/* (3, 4) has length 5; zeros stay zeros; what is not finite is found, the first of it. */
static void test_finish_by_hand(void **state) {
    rig r;
    rig_open(&r, *state, 0);
    float x[] = {3, 4, 0, 0, -5, 12};
    assert_int_equal(finish(&r, x, 3, 2, NULL, 1), 3);
    const float wanted[] = {0.6f, 0.8f, 0, 0, (float)(-5.0 / 13), (float)(12.0 / 13)};
    assert_memory_equal(x, wanted, sizeof x);
    float scaled[] = {3, 4, 7, 10};
    const float scaling[] = {1, 2, 0.5f, 1.5f}; /* means 1 and 2, deviations, to which 0.5 is added */
    assert_int_equal(finish(&r, scaled, 2, 2, scaling, 0), 2);
    const float scaled_wanted[] = {2, 1, 6, 4};
    assert_memory_equal(scaled, scaled_wanted, sizeof scaled);
    float bad[] = {1, 2, 3, NAN, INFINITY, 1};
    assert_int_equal(finish(&r, bad, 3, 2, NULL, 0), 1);
    float huge[] = {3e38f, 3e38f}; /* its length is beyond float */
    assert_int_equal(finish(&r, huge, 1, 2, NULL, 1), 1);
    assert_float_equal(huge[0], sqrt(0.5), 1e-6);
    rig_close(&r);
}

/* Rows longer than a block, and more of them than a piece of the host's. */
static void test_finish_lengths(void **state) {
    enum { ROWS = 4100, WIDTH = 260 };
    rig r;
    rig_open(&r, *state, 0);
    float *x = malloc(ROWS * WIDTH * sizeof *x);
    assert_non_null(x);
    for (int i = 0; i < ROWS * WIDTH; i++) {
        x[i] = (float)cos(i) * (float)(1 + i % 7);
    }
    assert_int_equal(finish(&r, x, ROWS, WIDTH, NULL, 1), ROWS);
    for (int row = 0; row < ROWS; row++) {
        double squares = 0;
        for (int i = 0; i < WIDTH; i++) {
            squares += (double)x[row * WIDTH + i] * x[row * WIDTH + i];
        }
        assert_float_equal(squares, 1, 1e-5);
    }
    x[4098 * WIDTH + 3] = INFINITY;
    x[4099 * WIDTH] = NAN;
    assert_int_equal(finish(&r, x, ROWS, WIDTH, NULL, 0), 4098);
    free(x);
    rig_close(&r);
}

/* Two images of 2x3 pixels with two channels: each row of pixels from right to left, each pixel as it was. */
static void test_mirror(void **state) {
    rig r;
    rig_open(&r, *state, 0);
    static const uint8_t images[24] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
                                       21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};
    static const float wanted[24] = {5,  6,  3,  4,  1,  2,  11, 12, 9,  10, 7,  8,
                                     25, 26, 23, 24, 21, 22, 31, 32, 29, 30, 27, 28};
    lt_backend_data *data = NULL;
    lt_step step = {.n = 2};
    fenced x = fenced_make(&r, sizeof wanted, NULL, 0);
    RIG_OK(&r, r.type->data_load(r.ctx, r.backend, images, 2, 12, &data));
    RIG_OK(&r, r.type->steps_begin(r.ctx, r.backend, &step, 1));
    lt_gather_call call = {.data = data,
                           .n = 2,
                           .limit = 2,
                           .scale = 1,
                           .mirror = 1,
                           .width = 3,
                           .channels = 2,
                           .x = fenced_at(&x)};
    RIG_OK(&r, r.type->gather(r.ctx, r.backend, &call));
    assert_memory_equal(fenced_read(&r, &x, "x", sizeof wanted), wanted, sizeof wanted);
    r.type->data_free(r.backend, data);
    fenced_free(&r, &x);
    rig_close(&r);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gather),         cmocka_unit_test(test_columns_by_hand),
        cmocka_unit_test(test_columns_exact),  cmocka_unit_test(test_finish_by_hand),
        cmocka_unit_test(test_finish_lengths), cmocka_unit_test(test_mirror),
    };
    return run_variants(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
