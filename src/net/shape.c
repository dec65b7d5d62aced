/* shape.c: the one shape rule of each op.
 *
 * Everything a backend may assume about sizes is established here: positive, small enough that the counts
 * of one image fit in 31 bits, windows that fit. Backends check nothing again.
 */
#include "net/net.h"

enum { SIDE_MAX = 4096, CHANNELS_MAX = 65536, FILTER_MAX = 64, STRIDE_MAX = 64 };

#define COUNT_MAX ((uint64_t)1 << 31)

static latent_status check_range(latent_context *ctx, const char *where, const lt_op *op, const char *what,
                                 int value, int low, int high) {
    if (value < low || value > high) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: conv %s: %s %d cannot be used; it must be %d to %d",
                       where, op->name, what, value, low, high);
    }
    return LATENT_OK;
}

static latent_status check_conv(latent_context *ctx, const char *where, const lt_op *op) {
    const lt_conv *conv = &op->conv;
    latent_status status = LATENT_OK;
    LT_TRY(check_range(ctx, where, op, "input height", conv->H, 1, SIDE_MAX));
    LT_TRY(check_range(ctx, where, op, "input width", conv->W, 1, SIDE_MAX));
    LT_TRY(check_range(ctx, where, op, "input channels", conv->C, 1, CHANNELS_MAX));
    LT_TRY(check_range(ctx, where, op, "number of filters", conv->K, 1, CHANNELS_MAX));
    LT_TRY(check_range(ctx, where, op, "filter height", conv->R, 1, FILTER_MAX));
    LT_TRY(check_range(ctx, where, op, "filter width", conv->S, 1, FILTER_MAX));
    LT_TRY(check_range(ctx, where, op, "stride", conv->stride, 1, STRIDE_MAX));
    LT_TRY(check_range(ctx, where, op, "padding", conv->pad_top, 0, conv->R - 1));
    LT_TRY(check_range(ctx, where, op, "padding", conv->pad_bottom, 0, conv->R - 1));
    LT_TRY(check_range(ctx, where, op, "padding", conv->pad_left, 0, conv->S - 1));
    LT_TRY(check_range(ctx, where, op, "padding", conv->pad_right, 0, conv->S - 1));
done:
    return status;
}

latent_status lt_shape_conv(latent_context *ctx, const char *where, lt_op *op) {
    lt_conv *conv = &op->conv;
    conv->H = op->in.h;
    conv->W = op->in.w;
    conv->C = op->in.c;
    latent_status status = check_conv(ctx, where, op);
    if (status != LATENT_OK) {
        return status;
    }
    conv->UH = conv->up2 ? 2 * conv->H : conv->H;
    conv->UW = conv->up2 ? 2 * conv->W : conv->W;
    int height = conv->UH + conv->pad_top + conv->pad_bottom;
    int width = conv->UW + conv->pad_left + conv->pad_right;
    if (height < conv->R || width < conv->S) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: conv %s: a %dx%d filter does not fit into %dx%d pixels (padding included); use a "
                       "smaller filter or more padding",
                       where, op->name, conv->R, conv->S, height, width);
    }
    conv->OH = (height - conv->R) / conv->stride + 1;
    conv->OW = (width - conv->S) / conv->stride + 1;
    if (conv->pool2 && (conv->OH < 2 || conv->OW < 2)) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: conv %s: pool2 needs at least 2x2 pixels, but the convolution gives %dx%d; drop "
                       "pool2 or use a larger input",
                       where, op->name, conv->OH, conv->OW);
    }
    conv->PH = conv->pool2 ? conv->OH / 2 : conv->OH;
    conv->PW = conv->pool2 ? conv->OW / 2 : conv->OW;
    op->out.h = conv->PH;
    op->out.w = conv->PW;
    op->out.c = conv->K;

    uint64_t weights = (uint64_t)conv->K * (uint64_t)conv->R * (uint64_t)conv->S * (uint64_t)conv->C;
    uint64_t pixels = (uint64_t)conv->OH * (uint64_t)conv->OW;
    uint64_t upsampled = (uint64_t)conv->UH * (uint64_t)conv->UW * (uint64_t)conv->C;
    if (weights >= COUNT_MAX || pixels * (uint64_t)conv->K >= COUNT_MAX || upsampled >= COUNT_MAX) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: conv %s: more than 2^31 weights or values per image; use fewer channels or a "
                       "smaller image",
                       where, op->name);
    }
    op->weight_count = (size_t)weights;
    op->bias_count = conv->bias ? (size_t)conv->K : 0;
    op->macs = pixels * weights;
    return LATENT_OK;
}
