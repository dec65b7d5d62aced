/* fused.c: the generation `fused`: which of its kernels runs an op, with how many splits and what memory.
 *
 * Against `tiled`: larger tiles (fused_tile.cuh), and no pass over memory that only moves numbers. Upsample,
 * bias, relu and pool are part of the convolution, their way back is part of the gradients' loads, the loss
 * is part of the last layer where that has few filters. A step of the autoencoder is some twenty launches
 * that touch a quarter of the memory that staged kernels do, and the host waits for none of them.
 *
 * What it does not do, and leaves to `tiled`: more than 64 taps; filters that four does not divide where they
 * are many or the channels odd as well; and the way back, where it leads on to the input, of strided convs
 * and of channels that four does not divide. Splits depend on the shape and the batch alone, so the bits do
 * not depend on the GPU.
 */
#include "backend/cuda/fused.h"

#include "backend/cuda/generation.h"

#include <string.h>

/* Enough blocks for a large GPU to be busy with; splits make up what tiles do not give. A split block has
 * strips enough to be worth its start. */
enum { BLOCKS = 128, FEW_BLOCKS = 96, STRIPS_MIN = 16, SPLITS_MAX = 8 };
enum { WEIGHT_BLOCKS = 256, WEIGHT_STRIPS_MIN = 32, WEIGHT_SPLITS_MAX = 64, BIAS_SPLITS = 256 };
enum { THIN_FILTERS = 16 };

typedef enum route { TILED, DIRECT, PHASES, THIN } route;

static int divide_up(int a, int b) {
    return (a + b - 1) / b;
}

static int tile_columns(int columns) {
    return columns > 64 ? 128 : 64;
}

/* ---- Which kernel ------------------------------------------------------------------------------ */

static int few_taps(const lt_conv *conv) {
    return 4 * conv->R * conv->S <= LT_FUSED_TAPS_MAX;
}

static route forward_route(const lt_conv *conv) {
    if (!few_taps(conv)) {
        return TILED;
    }
    if (conv->K % 4) {
        return conv->C % 4 == 0 && conv->K <= THIN_FILTERS ? THIN : TILED;
    }
    return lt_is_k4s2(conv) && conv->C % 4 == 0 && !conv->pool2 ? PHASES : DIRECT;
}

static route weight_route(const lt_conv *conv) {
    if (!few_taps(conv)) {
        return TILED;
    }
    if (conv->K % 4) {
        return conv->C % 4 == 0 && conv->stride == 1 ? THIN : TILED;
    }
    return lt_is_k4s2(conv) && conv->C % 4 == 0 ? PHASES : DIRECT;
}

static int has_input_gradient(const lt_conv *conv) {
    return few_taps(conv) && conv->stride == 1 && conv->C % 4 == 0;
}

static lt_fused_pass back_pass(const lt_conv *conv) {
    return lt_is_k4s2(conv) ? LT_FUSED_BACK_K4S2 : conv->up2 ? LT_FUSED_BACK_UP : LT_FUSED_BACK;
}

static const char *variant(lt_cuda *cuda, const lt_conv *conv, lt_pass pass) {
    route chosen = pass == LT_FORWARD ? forward_route(conv) : weight_route(conv);
    switch (chosen) {
    case TILED:
        return lt_core_tiled.variant(cuda, conv, pass);
    case PHASES:
        return "fused 128x128, four 2x2 phases";
    case THIN:
        return pass == LT_FORWARD ? "fused 128x64, products then taps" : "fused 128x64, channels by taps";
    default:
        break;
    }
    if (pass == LT_BACKWARD && !has_input_gradient(conv)) {
        return "fused 128x128; tiled 64x64 where the input's gradient is wanted";
    }
    return conv->C % 4 ? "fused 128x128, single channels" : "fused 128x128";
}

static int fuses_loss(const lt_conv *conv) {
    return forward_route(conv) == THIN;
}

/* ---- Splits and memory ------------------------------------------------------------------------- */

static lt_fused_split split_sum(int tiles, int length, void *partials) {
    lt_fused_split split = {1, divide_up(length, LT_FUSED_STRIP), partials};
    if (tiles < FEW_BLOCKS) {
        int splits = BLOCKS / tiles, useful = split.strips / STRIPS_MIN;
        splits = splits < useful ? splits : useful;
        splits = splits < SPLITS_MAX ? splits : SPLITS_MAX;
        if (splits > 1) {
            int strips = divide_up(split.strips, splits);
            split.splits = divide_up(split.strips, strips);
            split.strips = strips;
        }
    }
    return split;
}

static lt_fused_split split_pixels(int tiles, int pixels) {
    int strips = divide_up(pixels, LT_FUSED_STRIP), splits = WEIGHT_BLOCKS / tiles;
    splits = splits < strips / WEIGHT_STRIPS_MIN ? splits : strips / WEIGHT_STRIPS_MIN;
    splits = splits < WEIGHT_SPLITS_MAX ? splits : WEIGHT_SPLITS_MAX;
    splits = splits > 1 ? splits : 1;
    strips = divide_up(strips, splits);
    lt_fused_split split = {splits, strips, NULL};
    return split;
}

/* What the partials of a split pass take at most, for any batch up to n: tiles * splits <= BLOCKS where there
 * are any. `values` are the outputs of one image. */
static size_t split_bytes(size_t values, int n) {
    size_t most = (size_t)BLOCKS * LT_FUSED_BM * 128, all = SPLITS_MAX * values * (size_t)n;
    return sizeof(float) * (all < most ? all : most);
}

/* Rows, columns and splits of the weight gradient's product. */
typedef struct weight_plan {
    lt_fused_pass pass;
    lt_fused_split split;
    size_t partial_bytes, bias_bytes;
    int bias_splits;
} weight_plan;

static weight_plan plan_weight(const lt_conv *conv, int n) {
    route chosen = weight_route(conv);
    int thin = chosen == THIN, phases = chosen == PHASES ? 4 : 1;
    weight_plan plan;
    plan.pass = thin ? back_pass(conv) : phases > 1 ? LT_FUSED_PHASE : LT_FUSED_FORWARD;
    int rows = thin ? conv->C : conv->K;
    int columns = lt_fused_taps(plan.pass, conv) * (thin ? conv->K : conv->C);
    int width = thin || conv->C % 4 ? 64 : tile_columns(columns);
    int tiles = divide_up(rows, LT_FUSED_BM) * divide_up(columns, width) * phases;
    int pixels = thin || phases > 1 ? conv->H * conv->W : conv->OH * conv->OW;
    plan.split = split_pixels(tiles, n * pixels);
    plan.bias_splits = thin ? BIAS_SPLITS : plan.split.splits * phases;
    plan.partial_bytes = lt_cuda_round((size_t)plan.split.splits * (size_t)rows * (size_t)columns *
                                       (size_t)phases * sizeof(float));
    plan.bias_bytes = (size_t)plan.bias_splits * (size_t)conv->K * sizeof(float);
    return plan;
}

static int thin_pitch(const lt_conv *conv) {
    int columns = (lt_is_k4s2(conv) ? 16 : conv->R * conv->S) * conv->K;
    return divide_up(columns, 4) * 4;
}

static size_t thin_bytes(const lt_conv *conv, int n) {
    return lt_cuda_round((size_t)n * (size_t)conv->H * (size_t)conv->W * (size_t)thin_pitch(conv) *
                         sizeof(float));
}

static void want(size_t *scratch, size_t bytes) {
    *scratch = bytes > *scratch ? bytes : *scratch;
}

static void memory(lt_cuda *cuda, const lt_conv *conv, int batch, int training, lt_op_memory *out) {
    route forward = forward_route(conv), weight = weight_route(conv);
    int tiled = forward == TILED || (training && (weight == TILED || !has_input_gradient(conv)));
    if (tiled) {
        lt_staged_memory(cuda, &lt_core_tiled, conv, batch, training, out);
    }
    out->mask = training ? lt_mask_bytes(conv, batch) : 0;
    out->persist = lt_is_k4s2(conv) ? 16 * (size_t)conv->K * (size_t)conv->C * sizeof(float) : 0;
    size_t outputs = (size_t)conv->OH * (size_t)conv->OW * (size_t)conv->K;
    size_t inputs = (size_t)conv->H * (size_t)conv->W * (size_t)conv->C;
    want(&out->scratch, split_bytes(outputs, batch));
    want(&out->scratch, training ? split_bytes(inputs, batch) : 0);
    if (forward == THIN) {
        want(&out->scratch, thin_bytes(conv, batch) + LT_LOSS_BLOCKS_MAX * sizeof(double));
    }
    if (training && weight != TILED) {
        weight_plan plan = plan_weight(conv, batch);
        want(&out->scratch, plan.partial_bytes + plan.bias_bytes);
    }
}

static latent_status prepare(latent_context *ctx, lt_cuda *cuda, const lt_conv_call *call) {
    latent_status status = LATENT_OK;
    if (lt_is_k4s2(call->conv)) {
        lt_launch_fused_phases(cuda->stream, call->conv->K, call->conv->C, call->w, call->persist);
        LT_LAUNCHED("fused_phases");
    }
done:
    return status;
}

/* ---- Forward ----------------------------------------------------------------------------------- */

static latent_status thin_forward(latent_context *ctx, lt_cuda *cuda, const lt_conv_call *call) {
    const lt_conv *conv = call->conv;
    latent_status status = LATENT_OK;
    char *scratch = call->scratch;
    lt_fused_thin job = {.conv = *conv,
                         .n = call->n,
                         .k4s2 = lt_is_k4s2(conv),
                         .x = call->x,
                         .w = lt_is_k4s2(conv) ? call->persist : call->w,
                         .b = call->b,
                         .products = call->scratch,
                         .pitch = thin_pitch(conv),
                         .y = call->y,
                         .mask = call->mask};
    job.loss_partials = (double *)(scratch + thin_bytes(conv, call->n));
    if (call->loss) {
        LT_TRY(lt_cuda_step_check(ctx, cuda));
        job.target = call->loss->target;
        job.dy = call->loss->dy;
    }
    lt_launch_fused_thin_products(cuda->stream, &job);
    LT_LAUNCHED("fused_thin_products");
    lt_launch_fused_thin_sums(cuda->stream, &job);
    LT_LAUNCHED("fused_thin_sums");
    if (call->loss) {
        size_t count = (size_t)call->n * (size_t)conv->PH * (size_t)conv->PW * (size_t)conv->K;
        lt_launch_loss_finish(cuda->stream, cuda->state, job.loss_partials, lt_loss_blocks(count), count);
        LT_LAUNCHED("loss_finish");
    }
done:
    return status;
}

static latent_status forward(latent_context *ctx, lt_cuda *cuda, const lt_conv_call *call) {
    const lt_conv *conv = call->conv;
    latent_status status = LATENT_OK;
    route chosen = forward_route(conv);
    if (call->n == 0) {
        return LATENT_OK;
    }
    if (chosen == TILED) {
        return lt_staged_forward(ctx, cuda, &lt_core_tiled, call);
    }
    if (chosen == THIN) {
        return thin_forward(ctx, cuda, call);
    }
    int phases = chosen == PHASES ? 4 : 1;
    lt_fused_pass pass = phases > 1 ? LT_FUSED_PHASE : LT_FUSED_FORWARD;
    int pixels = phases > 1 ? conv->H * conv->W : conv->PH * conv->PW * (conv->pool2 ? 4 : 1);
    int tiles = divide_up(call->n * pixels, LT_FUSED_BM) * divide_up(conv->K, tile_columns(conv->K)) * phases;
    lt_fused_forward job = {.conv = *conv,
                            .n = call->n,
                            .pass = pass,
                            .x = {call->x, NULL, conv->H, conv->W, conv->C, phases > 1 ? 0 : conv->up2},
                            .w = phases > 1 ? call->persist : call->w,
                            .b = call->b,
                            .y = call->y,
                            .mask = call->mask,
                            .split = split_sum(tiles, lt_fused_taps(pass, conv) * conv->C, call->scratch)};
    lt_launch_fused_forward(cuda->stream, &job);
    LT_LAUNCHED("fused_forward");
    if (job.split.splits > 1) {
        lt_launch_fused_forward_finish(cuda->stream, &job);
        LT_LAUNCHED("fused_forward_finish");
    }
done:
    return status;
}

/* ---- Backward ---------------------------------------------------------------------------------- */

static latent_status weight_gradient(latent_context *ctx, lt_cuda *cuda, const lt_conv_call *call,
                                     lt_fused_view dz) {
    const lt_conv *conv = call->conv;
    latent_status status = LATENT_OK;
    weight_plan plan = plan_weight(conv, call->n);
    int thin = weight_route(conv) == THIN;
    int shrunk = thin || plan.pass == LT_FUSED_PHASE; /* x is walked as it is, not upsampled */
    lt_fused_weight job = {.conv = *conv,
                           .n = call->n,
                           .thin = thin,
                           .pass = plan.pass,
                           .x = {call->x, NULL, conv->H, conv->W, conv->C, shrunk ? 0 : conv->up2},
                           .dz = dz,
                           .split = plan.split,
                           .bias_splits = plan.bias_splits,
                           .dw = call->dw,
                           .db = call->db};
    job.split.partials = call->scratch;
    job.bias_partials = call->db ? (float *)((char *)call->scratch + plan.partial_bytes) : NULL;
    if (thin) {
        lt_launch_fused_thin_weight(cuda->stream, &job);
        LT_LAUNCHED("fused_thin_weight");
        if (call->db) {
            lt_launch_fused_thin_bias(cuda->stream, &job);
            LT_LAUNCHED("fused_thin_bias");
        }
    } else {
        lt_launch_fused_weight(cuda->stream, &job);
        LT_LAUNCHED("fused_weight");
    }
    lt_launch_fused_weight_finish(cuda->stream, &job);
    LT_LAUNCHED("fused_weight_finish");
done:
    return status;
}

static latent_status input_gradient(latent_context *ctx, lt_cuda *cuda, const lt_conv_call *call,
                                    lt_fused_view dz) {
    const lt_conv *conv = call->conv;
    latent_status status = LATENT_OK;
    lt_fused_pass pass = back_pass(conv);
    int tiles =
        divide_up(call->n * conv->H * conv->W, LT_FUSED_BM) * divide_up(conv->C, tile_columns(conv->C));
    lt_fused_input job = {.conv = *conv,
                          .n = call->n,
                          .pass = pass,
                          .dz = dz,
                          .w = pass == LT_FUSED_BACK_K4S2 ? call->persist : call->w,
                          .dx = call->dx,
                          .add = call->dx_add,
                          .split = split_sum(tiles, lt_fused_taps(pass, conv) * conv->K, call->scratch)};
    lt_launch_fused_input(cuda->stream, &job);
    LT_LAUNCHED("fused_input");
    if (job.split.splits > 1) {
        lt_launch_fused_input_finish(cuda->stream, &job);
        LT_LAUNCHED("fused_input_finish");
    }
done:
    return status;
}

static latent_status backward(latent_context *ctx, lt_cuda *cuda, const lt_conv_call *call) {
    const lt_conv *conv = call->conv;
    latent_status status = LATENT_OK;
    if (call->n == 0) {
        return LATENT_OK;
    }
    if (weight_route(conv) == TILED || (call->dx && !has_input_gradient(conv))) {
        return lt_staged_backward(ctx, cuda, &lt_core_tiled, call);
    }
    const uint8_t *mask = conv->relu || conv->pool2 ? call->mask : NULL;
    lt_fused_view dz = {call->dy, mask, conv->PH, conv->PW, conv->K, conv->pool2};
    LT_TRY(weight_gradient(ctx, cuda, call, dz));
    if (call->dx) {
        LT_TRY(input_gradient(ctx, cuda, call, dz));
    }
done:
    return status;
}

const lt_whole lt_whole_fused = {
    .variant = variant,
    .memory = memory,
    .fuses_loss = fuses_loss,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
};
