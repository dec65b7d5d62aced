/* forms.c: which form a pass takes, how it is cut into chunks, and where its packed parts lie.
 *
 * Two forms trade multiplications for additions, exactly on whole numbers and within fp32's bounds:
 *   winograd   per axis 4 products give 2 outputs of a 3-tap filter (Lavin and Gray, 2016):
 *              inputs (d0-d2, d1+d2, d2-d1, d1-d3), weights (g0, (g0+g1+g2)/2, (g0-g1+g2)/2, g2),
 *              outputs (m0+m1+m2, m1-m2-m3)
 *   upsample   the same on an input whose pixels come in pairs (a, b, b, c): d2-d1 is 0, so 3 products are
 *              left, inputs (a-b, b, b-c), weights (g0, g0+g1+g2, g2), outputs (m0+m1, m1-m2).
 *              In two dimensions 9 instead of the 16 of the 4x4 stride-2 form.
 * Their rounding is relative to a pixel's neighbourhood, not to the products of one tap. A weight gradient
 * over a tiny image may have no products at a tap at all and must then be 0, so tiny images go tap by tap.
 */
#include "backend/cpu/cpu.h"

#include <string.h>

enum { TINY = 16, FEW_FILTERS = 4, LANES = 16 };

static int ceil_div(int a, int b) {
    return (a + b - 1) / b;
}

static int is_3x3(const lt_conv *conv) {
    return conv->R == 3 && conv->S == 3 && conv->stride == 1 && conv->C >= LANES && conv->K >= LANES;
}

static int is_columns(const lt_conv *conv) {
    if (conv->K > FEW_FILTERS || conv->C < LANES || conv->pool2 || conv->stride != 1) {
        return 0;
    }
    lt_cpu_axis y, x;
    lt_cpu_axis_forward(&y, conv->H, conv->R, conv->pad_top, 1, conv->up2, conv->OH, 0);
    lt_cpu_axis_forward(&x, conv->W, conv->S, conv->pad_left, 1, conv->up2, conv->OW, 0);
    return y.taps * x.taps * conv->K <= LT_CPU_FEW;
}

lt_cpu_form lt_cpu_choose(const lt_conv *conv, lt_cpu_role role, int block) {
    int exact = block == LANES; /* bf16 would round the sums once more */
    int padded = conv->pad_top == 1 && conv->pad_left == 1 && conv->pad_bottom == 1 && conv->pad_right == 1;
    if (is_columns(conv)) {
        return LT_CPU_COLUMNS;
    }
    if (exact && is_3x3(conv) && !conv->up2) {
        int tiles = ceil_div(conv->OH, 2) * ceil_div(conv->OW, 2);
        if (role != LT_CPU_WGRAD || tiles >= TINY) {
            return LT_CPU_WINOGRAD;
        }
    }
    if (exact && is_3x3(conv) && conv->up2 && padded) {
        if (role != LT_CPU_WGRAD || conv->H * conv->W >= TINY) {
            return LT_CPU_UPSAMPLE;
        }
    }
    return (role == LT_CPU_DGRAD ? conv->K : conv->C) < block ? LT_CPU_FLAT : LT_CPU_TAPS;
}

static void make_axes(lt_cpu_pass *pass) {
    const lt_conv *v = pass->conv;
    int back = pass->role == LT_CPU_DGRAD && pass->form != LT_CPU_COLUMNS;
    /* A pooled conv works on windows; its weight gradient in bf16 rather has long rows of single pixels. */
    int quads = !back && v->pool2 && !(pass->role == LT_CPU_WGRAD && pass->block != LANES);
    if (back) {
        lt_cpu_axis_backward(&pass->y, v->OH, v->R, v->pad_top, v->stride, v->up2, v->H);
        lt_cpu_axis_backward(&pass->x, v->OW, v->S, v->pad_left, v->stride, v->up2, v->W);
    } else {
        lt_cpu_axis_forward(&pass->y, v->H, v->R, v->pad_top, v->stride, v->up2, v->OH, quads);
        lt_cpu_axis_forward(&pass->x, v->W, v->S, v->pad_left, v->stride, v->up2, v->OW, quads);
    }
    pass->grid_h = quads ? v->PH : pass->y.cells;
    pass->grid_w = quads ? v->PW : pass->x.cells;
    if (pass->form == LT_CPU_WINOGRAD && !quads) {
        pass->grid_h = ceil_div(pass->y.out, 2);
        pass->grid_w = ceil_div(pass->x.out, 2);
    }
    if (pass->form == LT_CPU_COLUMNS) { /* cells are the pixels of x */
        pass->grid_h = v->H;
        pass->grid_w = v->W;
    }
}

static void cut(lt_cpu_pass *pass) {
    int cells = pass->grid_h * pass->grid_w;
    pass->chunk_images = cells < LT_CPU_CELLS ? LT_CPU_CELLS / cells : 1;
    pass->chunk_columns = pass->grid_w < LT_CPU_CELLS ? pass->grid_w : LT_CPU_CELLS;
    pass->chunk_rows = LT_CPU_CELLS / pass->chunk_columns;
    if (pass->chunk_rows > pass->grid_h || pass->chunk_images > 1) {
        pass->chunk_rows = pass->grid_h;
    }
    pass->chunks_h = ceil_div(pass->grid_h, pass->chunk_rows);
    pass->chunks_w = ceil_div(pass->grid_w, pass->chunk_columns);
    pass->room = ceil_div(pass->chunk_images * pass->chunk_rows * pass->chunk_columns, 32) * 32;
}

static int count_points(const lt_cpu_pass *pass) {
    switch (pass->form) {
    case LT_CPU_TAPS:
    case LT_CPU_FLAT:
        return pass->y.phases * pass->x.phases;
    case LT_CPU_WINOGRAD:
        return 16;
    case LT_CPU_UPSAMPLE:
        return pass->role == LT_CPU_DGRAD ? 1 : 9;
    case LT_CPU_COLUMNS:
        break;
    }
    return 1;
}

/* Points whose operands are made together: rows of winograd's and upsample's squares; taps share theirs. In
 * bf16 packing dz is what a weight gradient costs, and each phase has its own: one at a time, more of its
 * sums stay in cache and dz is packed less often. */
static int count_stage_points(const lt_cpu_pass *pass) {
    int single = pass->role == LT_CPU_WGRAD && pass->block != LANES;
    switch (pass->form) {
    case LT_CPU_WINOGRAD:
        return 4;
    case LT_CPU_UPSAMPLE:
        return pass->role == LT_CPU_DGRAD ? 1 : 3;
    case LT_CPU_FLAT:
        return 1;
    case LT_CPU_TAPS:
        return single ? 1 : pass->points;
    case LT_CPU_COLUMNS:
        break;
    }
    return pass->points;
}

/* Taps of point p of the forms taps and flat. */
static int point_taps(const lt_cpu_pass *pass, int p) {
    int py = p / pass->x.phases, px = p % pass->x.phases;
    return (pass->y.first[py + 1] - pass->y.first[py]) * (pass->x.first[px + 1] - pass->x.first[px]);
}

int lt_cpu_depth(const lt_cpu_pass *pass, int p) {
    int padded = pass->depth_blocks * pass->block;
    switch (pass->form) {
    case LT_CPU_TAPS:
        return point_taps(pass, p) * padded;
    case LT_CPU_FLAT:
        return point_taps(pass, p) * pass->depth;
    case LT_CPU_WINOGRAD:
        return padded;
    case LT_CPU_UPSAMPLE:
        return pass->role == LT_CPU_DGRAD ? 9 * padded : padded;
    case LT_CPU_COLUMNS:
        break;
    }
    return pass->role == LT_CPU_DGRAD ? pass->depth : padded;
}

/* Depth as the packed weights have it: products of bf16 take whole lines. */
static size_t packed_depth(const lt_cpu_pass *pass, int p) {
    int depth = lt_cpu_depth(pass, p);
    return (size_t)(pass->block == LANES ? depth : ceil_div(depth, pass->block) * pass->block);
}

/* The outputs of a pool's window see the same filter, each from its place: they share its weights, which
 * stay in cache where four copies would not. */
static int count_weight_points(const lt_cpu_pass *pass) {
    int window = pass->role == LT_CPU_FORWARD && pass->conv->pool2 && !pass->conv->up2;
    return window && (pass->form == LT_CPU_TAPS || pass->form == LT_CPU_FLAT) ? 1 : pass->points;
}

size_t lt_cpu_weights_before(const lt_cpu_pass *pass, int p) {
    size_t before = 0;
    if (pass->weight_points == 1) {
        p = p == pass->points;
    }
    for (int i = 0; i < p; i++) {
        size_t depth = packed_depth(pass, i);
        if (pass->role == LT_CPU_WGRAD) {
            depth = (size_t)ceil_div((int)depth, pass->block) * (size_t)pass->block;
        }
        before += depth * (size_t)pass->width_blocks * LANES;
    }
    return before;
}

size_t lt_cpu_cell_lines(const lt_cpu_pass *pass) {
    return (size_t)pass->blocks_max * (size_t)(pass->block / LANES) + 1;
}

static void measure(lt_cpu_pass *pass) {
    size_t most = 0;
    for (int p = 0; p < pass->points; p++) {
        size_t blocks = (size_t)ceil_div(lt_cpu_depth(pass, p), pass->block);
        most = blocks > most ? blocks : most;
    }
    pass->blocks_max = (int)most;
    pass->out_rows = (size_t)pass->room + 1; /* odd: neighbours do not fall on one set of a cache */
    pass->out_lines = (size_t)pass->points * ((size_t)pass->width_blocks * pass->out_rows + 1);
    pass->in_rows = pass->out_rows;
    if (pass->form == LT_CPU_TAPS) {
        pass->in_rows = ((size_t)pass->y.extra * (size_t)pass->chunk_columns + (size_t)pass->room) | 1;
        pass->in_lines =
            (size_t)pass->y.sources * (size_t)pass->x.sources * (size_t)pass->depth_blocks * pass->in_rows;
    } else {
        pass->in_lines = (size_t)pass->stage_points * (most * pass->in_rows + 1);
    }
    if (pass->form == LT_CPU_FLAT) {
        pass->in_lines +=
            pass->block == LANES ? lt_cpu_cell_lines(pass) : pass->in_lines; /* to lay out cells */
    }
    size_t size = pass->role == LT_CPU_WGRAD || pass->block == LANES ? sizeof(float) : sizeof(uint16_t);
    pass->weight_bytes = lt_cpu_weights_before(pass, pass->points) * size;
}

void lt_cpu_pass_make(lt_cpu_pass *pass, const lt_conv *conv, lt_cpu_role role, int block) {
    memset(pass, 0, sizeof *pass);
    pass->conv = conv;
    pass->role = role;
    pass->block = block;
    pass->form = lt_cpu_choose(conv, role, block);
    make_axes(pass);
    cut(pass);
    pass->depth = role == LT_CPU_DGRAD ? conv->K : conv->C;
    pass->width = role == LT_CPU_DGRAD ? conv->C : conv->K;
    if (pass->form == LT_CPU_COLUMNS) {
        int columns = pass->y.taps * pass->x.taps * conv->K;
        *(role == LT_CPU_DGRAD ? &pass->depth : &pass->width) = columns;
    }
    pass->depth_blocks = ceil_div(pass->depth, block);
    pass->width_blocks = ceil_div(pass->width, LANES);
    pass->points = count_points(pass);
    pass->stage_points = count_stage_points(pass);
    pass->stages = pass->points / pass->stage_points;
    pass->weight_points = count_weight_points(pass);
    /* bf16 weight gradients read pairs of cells: a shift by an odd number would split them. */
    int split = role == LT_CPU_WGRAD && block != LANES && pass->chunk_columns % 2;
    lt_cpu_axis_sources(&pass->y, pass->chunk_images == 1 && !split);
    lt_cpu_axis_sources(&pass->x, 0);
    measure(pass);
}

void lt_cpu_pass_part(lt_cpu_pass *pass, int depth_first, int depth_blocks, int width_first,
                      int width_blocks) {
    pass->depth_first = depth_first;
    pass->depth_blocks = depth_blocks;
    pass->width_first = width_first;
    pass->width_blocks = width_blocks;
    measure(pass);
}

int lt_cpu_chunks(const lt_cpu_pass *pass, int n) {
    return pass->chunk_images > 1 ? ceil_div(n, pass->chunk_images) : n * pass->chunks_h * pass->chunks_w;
}

static int at_most(int value, int limit) {
    return value < limit ? value : limit;
}

lt_cpu_chunk lt_cpu_chunk_at(const lt_cpu_pass *pass, int n, int index) {
    lt_cpu_chunk chunk = {0};
    if (pass->chunk_images > 1) {
        chunk.image = index * pass->chunk_images;
        chunk.images = at_most(pass->chunk_images, n - chunk.image);
        chunk.rows = pass->grid_h;
        chunk.columns = pass->grid_w;
    } else {
        int within = index % (pass->chunks_h * pass->chunks_w);
        chunk.image = index / (pass->chunks_h * pass->chunks_w);
        chunk.images = 1;
        chunk.y = within / pass->chunks_w * pass->chunk_rows;
        chunk.x = within % pass->chunks_w * pass->chunk_columns;
        chunk.rows = at_most(pass->chunk_rows, pass->grid_h - chunk.y);
        chunk.columns = at_most(pass->chunk_columns, pass->grid_w - chunk.x);
    }
    chunk.cells = chunk.images * chunk.rows * chunk.columns;
    return chunk;
}

static int taps_blocks(const lt_cpu_pass *pass, int p, size_t *offset) {
    const lt_cpu_axis *y = &pass->y, *x = &pass->x;
    int py = p / x->phases, px = p % x->phases, count = 0;
    for (int ty = y->first[py]; ty < y->first[py + 1]; ty++) {
        for (int tx = x->first[px]; tx < x->first[px + 1]; tx++) {
            size_t source = (size_t)y->source[ty] * (size_t)x->sources + (size_t)x->source[tx];
            size_t row = (size_t)y->shift[ty] * (size_t)pass->chunk_columns;
            for (int b = 0; b < pass->depth_blocks; b++) {
                offset[count++] = (source * (size_t)pass->depth_blocks + (size_t)b) * pass->in_rows + row;
            }
        }
    }
    return count;
}

int lt_cpu_blocks(const lt_cpu_pass *pass, int p, size_t *offset) {
    if (pass->form == LT_CPU_TAPS) {
        return taps_blocks(pass, p, offset);
    }
    int count = ceil_div(lt_cpu_depth(pass, p), pass->block);
    size_t first = (size_t)(p % pass->stage_points) * ((size_t)pass->blocks_max * pass->in_rows + 1);
    for (int b = 0; b < count; b++) {
        offset[b] = first + (size_t)b * pass->in_rows;
    }
    return count;
}

size_t lt_cpu_image_rows(const lt_cpu_pass *pass) {
    return ((size_t)pass->grid_h * (size_t)pass->grid_w + (size_t)pass->room) | 1;
}

/* Two panels of two blocks run better than one of three and one of one. */
int lt_cpu_panels(int blocks) {
    return blocks % 3 == 1 && blocks > 3 ? (blocks - 4) / 3 + 2 : ceil_div(blocks, 3);
}

int lt_cpu_panel(int blocks, int index, int *width) {
    int threes = blocks % 3 == 1 && blocks > 3 ? (blocks - 4) / 3 : blocks / 3;
    int first = index < threes ? 3 * index : 3 * threes + 2 * (index - threes);
    *width = index < threes ? 3 : at_most(2, blocks - first);
    return first;
}
