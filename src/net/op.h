/* op.h: one op of a net, made concrete.
 *
 * An op has one shape rule (net/shape.c) and one meaning, told here and computed plainly by the reference
 * backend. Sizes are per image. Dimensions: N images, H W C of the input, K filters of R x S, OH OW of the
 * convolution's own output, PH PW of what leaves the op.
 *
 * conv:  u = up2 ? nearest-upsampled x : x                       [n][UH][UW][C]
 *        z[n][oy][ox][k] = b[k] + sum over r, s, c of
 *            u[n][oy*stride + r - pad_top][ox*stride + s - pad_left][c] * w[k][r][s][c]   (0 outside u)
 *        a = relu ? max(z, 0) : z                                 a NaN stays a NaN
 *        y = pool2 ? maximum over 2x2 windows of a : a            an odd last row or column is dropped
 *        The gradient of relu at 0 is 0. In a window the first maximum in row order gets the gradient.
 * mse:   loss = mean over all values of the batch of (y - target)^2
 */
#ifndef LT_NET_OP_H
#define LT_NET_OP_H

#include <stddef.h>
#include <stdint.h>

typedef struct lt_shape {
    int h, w, c;
} lt_shape;

static inline size_t lt_shape_count(lt_shape shape) {
    return (size_t)shape.h * (size_t)shape.w * (size_t)shape.c;
}

typedef struct lt_conv {
    int H, W, C; /* input, before the upsample */
    int K, R, S;
    int stride;
    int pad_top, pad_left, pad_bottom, pad_right;
    int up2, bias, relu, pool2; /* 0 or 1 */
    int UH, UW;                 /* what the filter slides over: H W, or twice that */
    int OH, OW;                 /* the convolution's output */
    int PH, PW;                 /* the op's output: OH OW, or half of that */
} lt_conv;

typedef enum lt_op_kind { LT_OP_INPUT, LT_OP_CONV, LT_OP_LOSS_MSE } lt_op_kind;

enum { LT_NAME_MAX = 64 };

typedef struct lt_op {
    lt_op_kind kind;
    char name[LT_NAME_MAX];
    int line;         /* in the net file */
    int input;        /* index of the op whose output it reads; -1 for the input op */
    lt_shape in, out; /* per image */
    lt_conv conv;     /* LT_OP_CONV */
    size_t weight;    /* offset of the weight, OHWI, in the parameter block, in floats */
    size_t weight_count;
    size_t bias;       /* offset of the bias */
    size_t bias_count; /* 0: none */
    uint64_t macs;     /* of one image's forward pass */
} lt_op;

#endif
