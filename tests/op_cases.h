/* op_cases.h: conv geometries that hurt, for every test of the ops.
 *
 * One table drives gradients, parity and golden checks for every backend: 1x1 images, odd and prime sizes,
 * strides, asymmetric padding, upsampling, pools that drop a row, channel counts that no vector length
 * divides, and the five layers of the autoencoder at full size.
 */
#ifndef OP_CASES_H
#define OP_CASES_H

#include "base/rng.h"
#include "net/net.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAME = -1 };
enum { UP2 = 1, BIAS = 2, RELU = 4, POOL2 = 8, FULL = 16 }; /* FULL: of full size, not for slow tests */

typedef struct op_case {
    const char *name;
    int n, H, W, C, K, R, S, stride;
    int pad[4]; /* top, left, bottom, right; or SAME */
    int flags;
} op_case;

/* clang-format off */
static const op_case op_cases[] = {
    /* name                         n   H   W    C    K  R  S  stride  pad       flags */
    {"one number",                  1,  1,  1,   1,   1, 1, 1, 1, {0},          BIAS},
    {"1x1 image, 3x3",              2,  1,  1,   3,  10, 3, 3, 1, {SAME},       BIAS | RELU},
    {"1x1 image, up2",              3,  1,  1,   5,   3, 3, 3, 1, {SAME},       BIAS | UP2},
    {"1x1 image, up2 pool2",        1,  1,  1,   1,   1, 3, 3, 1, {SAME},       BIAS | RELU | UP2 | POOL2},
    {"1x1 filter",                  3,  7,  5,  17,  48, 1, 1, 1, {0},          BIAS | RELU},
    {"1x1 filter, stride 2",        2,  7,  9,   5,   3, 1, 1, 2, {0},          BIAS},
    {"1x1 filter, pool2",           1,  6,  5,  16,  10, 1, 1, 1, {0},          BIAS | RELU | POOL2},
    {"1x1 filter, up2",             2,  3,  5,   3,  16, 1, 1, 1, {0},          RELU | UP2},
    {"one row",                     1,  1, 17,   3,  16, 3, 3, 1, {SAME},       BIAS | RELU},
    {"one column",                  7, 13,  1,  16,   1, 3, 3, 1, {SAME},       BIAS},
    {"3x3 prime sizes",             3, 13, 11,   5,  10, 3, 3, 1, {SAME},       BIAS | RELU},
    {"3x3 no bias",                 2,  7,  7,   3,  17, 3, 3, 1, {SAME},       0},
    {"3x3 valid",                   2,  7,  9,   3,  16, 3, 3, 1, {0},          BIAS | RELU},
    {"3x3 fills the image",         7,  3,  3,  17,   3, 3, 3, 1, {0},          BIAS},
    {"3x3 padded by 2",             2,  5,  6,   5,   3, 3, 3, 1, {2, 2, 2, 2}, BIAS | RELU},
    {"3x3 padded unevenly",         2,  6,  5,   3,  10, 3, 3, 1, {2, 0, 1, 2}, BIAS | RELU},
    {"3x3 stride 2",                2, 11,  8,  16,  17, 3, 3, 2, {SAME},       BIAS | RELU},
    {"3x3 stride 2 valid",          3, 10,  9,   1,  10, 3, 3, 2, {0},          BIAS},
    {"3x3 stride 3",                1, 11, 13,   3,  10, 3, 3, 3, {0},          BIAS | RELU},
    {"2x2 stride 3 leaves gaps",    7,  8,  9,   5,   3, 2, 2, 3, {0},          BIAS},
    {"2x2 same",                    2,  5,  7,   3,  10, 2, 2, 1, {SAME},       BIAS | RELU},
    {"2x2 same, pool2",             2,  5,  7,  16,   3, 2, 2, 1, {SAME},       BIAS | RELU | POOL2},
    {"4x4 same",                    1,  7,  6,   5,   3, 4, 4, 1, {SAME},       BIAS},
    {"4x4 stride 2, pad 1",         2,  8, 10,  16,  10, 4, 4, 2, {1, 1, 1, 1}, BIAS | RELU},
    {"5x5 same",                    2,  9,  7,   3,  16, 5, 5, 1, {SAME},       BIAS | RELU},
    {"5x5 larger than the image",   1,  2,  3,   3,   5, 5, 5, 1, {SAME},       BIAS},
    {"5x1",                         2,  7,  4,   5,  10, 5, 1, 1, {SAME},       BIAS | RELU},
    {"1x7, stride 2",               1,  5, 11,   3,   3, 1, 7, 2, {SAME},       BIAS},
    {"up2 3x3",                     2,  5,  7,  16,  48, 3, 3, 1, {SAME},       BIAS | RELU | UP2},
    {"up2 3x3, no relu, K 3",       3,  7,  5,  17,   3, 3, 3, 1, {SAME},       BIAS | UP2},
    {"up2 3x3 valid",               2,  3,  4,   5,  10, 3, 3, 1, {0},          RELU | UP2},
    {"up2 3x3 stride 2",            2,  5,  3,   3,  16, 3, 3, 2, {SAME},       BIAS | RELU | UP2},
    {"up2 3x3 pool2",               1,  4,  5,   3,  10, 3, 3, 1, {SAME},       BIAS | RELU | UP2 | POOL2},
    {"up2 2x2 same",                2,  4,  3,   5,   3, 2, 2, 1, {SAME},       BIAS | UP2},
    {"up2 4x4 same",                1,  3,  5,   3,   3, 4, 4, 1, {SAME},       BIAS | UP2},
    {"up2 5x5 same",                2,  3,  4,   3,  10, 5, 5, 1, {SAME},       BIAS | RELU | UP2},
    {"pool2 of 2x2",                3,  2,  2,   3,  16, 3, 3, 1, {SAME},       BIAS | RELU | POOL2},
    {"pool2 odd height",            2,  7,  6,   3,  10, 3, 3, 1, {SAME},       BIAS | RELU | POOL2},
    {"pool2 odd width",             1,  4,  9,  17,   5, 3, 3, 1, {SAME},       BIAS | RELU | POOL2},
    {"pool2 odd both",              3,  5,  3,   5,  17, 3, 3, 1, {SAME},       BIAS | RELU | POOL2},
    {"pool2 without relu",          2,  6,  7,   3,  10, 3, 3, 1, {SAME},       BIAS | POOL2},
    {"pool2, stride 2",             2, 11, 13,   3,  16, 3, 3, 2, {SAME},       BIAS | RELU | POOL2},
    {"pool2, valid, no bias",       2,  8,  7,   1,   3, 3, 3, 1, {0},          RELU | POOL2},
    {"C 64, K 128",                 2,  8,  8,  64, 128, 3, 3, 1, {SAME},       BIAS | RELU},
    {"C 128, K 256, pool2",         1,  4,  4, 128, 256, 3, 3, 1, {SAME},       BIAS | RELU | POOL2},
    {"C 3, K 256, pool2",           3,  8,  8,   3, 256, 3, 3, 1, {SAME},       BIAS | RELU | POOL2},
    {"C 128, K 3, up2",             2,  4,  4, 128,   3, 3, 3, 1, {SAME},       BIAS | UP2},
    {"batch of 7",                  7,  6,  6,  16,  16, 3, 3, 1, {SAME},       BIAS | RELU},
    {"narrow encoder",              2, 16, 16,  64,  32, 3, 3, 1, {SAME},       BIAS | RELU | POOL2},
    {"enc_conv1",                   1, 32, 32,   3, 256, 3, 3, 1, {SAME},       BIAS | RELU | POOL2 | FULL},
    {"enc_conv2",                   1, 16, 16, 256, 128, 3, 3, 1, {SAME},       BIAS | RELU | POOL2 | FULL},
    {"dec_conv1",                   1,  8,  8, 128, 128, 3, 3, 1, {SAME},       BIAS | RELU | FULL},
    {"dec_conv2",                   1,  8,  8, 128, 256, 3, 3, 1, {SAME},       BIAS | RELU | UP2 | FULL},
    {"dec_conv3",                   1, 16, 16, 256,   3, 3, 3, 1, {SAME},       BIAS | UP2 | FULL},
    {"batch of 9, pool2",           9, 16, 16,  16,  32, 3, 3, 1, {SAME},       BIAS | RELU | POOL2},
    {"batch of 5, up2",             5,  8,  8,  16,  16, 3, 3, 1, {SAME},       BIAS | RELU | UP2},
    {"batch of 3, up2 to K 3",      3, 12, 11,  32,   3, 3, 3, 1, {SAME},       BIAS | UP2},
    {"wide",                        1,  3, 150, 16,  16, 3, 3, 1, {SAME},       BIAS | RELU},
    {"wide 5x5",                    2,  4, 141, 17,   5, 5, 5, 1, {SAME},       BIAS | RELU},
    {"wide up2 5x3, pool2",         1,  2,  71,  5,   7, 5, 3, 1, {SAME},       BIAS | RELU | UP2 | POOL2},
    {"wide stride 2",               1,  9, 139, 33,  20, 3, 3, 2, {SAME},       BIAS},
    {"C 1, K 20, pool2",            2,  9, 11,   1,  20, 3, 3, 1, {SAME},       BIAS | RELU | POOL2},
    {"C 2, 4x4",                    2,  5,  6,   2,   8, 4, 4, 1, {SAME},       BIAS},
    {"C 3, K 140",                  1,  5,  5,   3, 140, 3, 3, 1, {SAME},       BIAS | RELU},
    {"C 32, stride 2",              2,  9,  7,  32,  40, 3, 3, 2, {SAME},       BIAS | RELU},
    {"C 32, up2 pool2, K 20",       2,  4,  3,  32,  20, 5, 5, 1, {SAME},       BIAS | RELU | UP2 | POOL2},
    {"C 32, 7x7",                   1,  6,  5,  32,  12, 7, 7, 1, {SAME},       BIAS | RELU},
    {"up2 2x2, C 16",               2,  5,  4,  16,   8, 2, 2, 1, {SAME},       BIAS | RELU | UP2},
    {"up2 5x5, C 16, K 3",          2,  4,  5,  16,   3, 5, 5, 1, {SAME},       BIAS | UP2},
    {"up2 1x1, C 16, K 6",          3,  5,  3,  16,   6, 1, 1, 1, {0},          BIAS | RELU | UP2},
    {"up2 3x3 pool2, C 16",         2,  6,  5,  16,  16, 3, 3, 1, {SAME},       BIAS | RELU | UP2 | POOL2},
    {"C 16, K 10",                  2,  7,  6,  16,  10, 3, 3, 1, {SAME},       BIAS | RELU},
    {"9x9",                         1,  7,  8,   4,   8, 9, 9, 1, {SAME},       BIAS | RELU},
};
/* clang-format on */

enum { OP_CASES = sizeof op_cases / sizeof op_cases[0] };

static inline latent_status op_case_make(latent_context *ctx, const op_case *test, lt_op *op) {
    memset(op, 0, sizeof *op);
    op->kind = LT_OP_CONV;
    snprintf(op->name, sizeof op->name, "%s", test->name);
    op->in.h = test->H;
    op->in.w = test->W;
    op->in.c = test->C;
    lt_conv *conv = &op->conv;
    conv->K = test->K;
    conv->R = test->R;
    conv->S = test->S;
    conv->stride = test->stride;
    int same = test->pad[0] == SAME; /* an even filter looks further ahead than back */
    conv->pad_top = same ? (test->R - 1) / 2 : test->pad[0];
    conv->pad_left = same ? (test->S - 1) / 2 : test->pad[1];
    conv->pad_bottom = same ? test->R - 1 - conv->pad_top : test->pad[2];
    conv->pad_right = same ? test->S - 1 - conv->pad_left : test->pad[3];
    conv->up2 = !!(test->flags & UP2);
    conv->bias = !!(test->flags & BIAS);
    conv->relu = !!(test->flags & RELU);
    conv->pool2 = !!(test->flags & POOL2);
    return lt_shape_conv(ctx, "op_cases.h", op);
}

/* ---- Numbers ----------------------------------------------------------------------------------- */

/* What numbers a test draws: any in [-1, 1), or whole ones in [-range, range]. */
typedef struct draw {
    uint64_t seed;
    int range; /* 0: not whole */
    int bf16;  /* round to what bf16 can hold */
} draw;

/* Round to nearest, ties to even; for finite values. */
static inline float bf16_round(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits += 0x7FFFu + ((bits >> 16) & 1);
    bits &= 0xFFFF0000u;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

/* `tensor` keeps the numbers of different tensors apart. Every value is exact as a float. */
static inline void draw_fill(const draw *d, uint32_t tensor, double *out, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = lt_philox(d->seed, LT_RNG_TEST, tensor, i).v[0];
        if (d->range) {
            out[i] = (double)(bits % (uint32_t)(2 * d->range + 1)) - d->range;
        } else {
            float value = (float)(2 * lt_uniform(bits) - 1);
            out[i] = (double)(d->bf16 ? bf16_round(value) : value);
        }
    }
}

/* Memory that a test may not lack. Counts of 0 give a pointer as well. */
static inline double *doubles(size_t count) {
    double *memory = calloc(count ? count : 1, sizeof *memory);
    if (!memory) {
        abort();
    }
    return memory;
}

#endif
