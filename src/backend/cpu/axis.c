/* axis.c: one axis of a conv, lowered to cells, phases and shifted inputs.
 *
 * Whatever the stride, padding and upsampling, each output of a conv (and each input gradient) is a sum of
 * inputs at fixed distances, once the outputs are sorted into phases:
 *   forward        output i*q + p reads input (i*q + p)*stride + r - pad, halved under up2. q is 2 where
 *                  halving would not be the same for all outputs, or where pooling wants pairs.
 *   input gradient input i*stride + p was read by the outputs i + (p + pad - r)/stride, for the r that
 * divide. Under up2 two inputs of the filter are one pixel: both are collected. Taps that read the same pixel
 * are added up: 3x3 over up2 has 2 instead of 3 entries per phase and axis, which is the 4x4 stride-2
 * transposed form, found rather than written down.
 */
#include "backend/cpu/cpu.h"

#include <string.h>

static int floor_div(int a, int b) {
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/* Adds tap r at `offset` to the phase that is being filled. */
static void add_tap(lt_cpu_axis *axis, int phase, int offset, int r) {
    for (int i = axis->first[phase]; i < axis->taps; i++) {
        if (axis->offset[i] == offset) {
            axis->from[i] = r < axis->from[i] ? r : axis->from[i];
            axis->to[i] = r > axis->to[i] ? r : axis->to[i];
            return;
        }
    }
    axis->offset[axis->taps] = offset;
    axis->from[axis->taps] = axis->to[axis->taps] = r;
    axis->taps++;
}

void lt_cpu_axis_forward(lt_cpu_axis *axis, int in, int filter, int pad, int stride, int up2, int out,
                         int quads) {
    int shrink = up2 ? 2 : 1;
    memset(axis, 0, sizeof *axis);
    axis->in = in;
    axis->out = out;
    axis->out_step = quads || (up2 && stride % 2) ? 2 : 1;
    axis->in_step = axis->out_step * stride / shrink;
    axis->phases = axis->out_step;
    axis->cells = (out + axis->out_step - 1) / axis->out_step;
    for (int p = 0; p < axis->phases; p++) {
        axis->first[p] = axis->taps;
        for (int r = 0; r < filter; r++) {
            add_tap(axis, p, floor_div(p * stride + r - pad, shrink), r);
        }
    }
    axis->first[axis->phases] = axis->taps;
}

void lt_cpu_axis_backward(lt_cpu_axis *axis, int in, int filter, int pad, int stride, int up2, int out) {
    int twice = up2 ? 2 : 1;
    memset(axis, 0, sizeof *axis);
    axis->in = in;
    axis->out = out;
    axis->out_step = up2 && stride % 2 == 0 ? stride / 2 : stride;
    axis->in_step = twice * axis->out_step / stride;
    axis->phases = axis->out_step;
    axis->cells = (out + axis->out_step - 1) / axis->out_step;
    for (int p = 0; p < axis->phases; p++) {
        axis->first[p] = axis->taps;
        for (int r = filter - 1; r >= 0; r--) {
            for (int a = 0; a < twice; a++) {
                int distance = twice * p + a + pad - r;
                if (floor_div(distance, stride) * stride == distance) {
                    add_tap(axis, p, floor_div(distance, stride), r);
                }
            }
        }
    }
    axis->first[axis->phases] = axis->taps;
}

void lt_cpu_axis_sources(lt_cpu_axis *axis, int share) {
    axis->sources = 0;
    axis->extra = 0;
    for (int i = 0; i < axis->taps; i++) { /* the lowest offset of each class begins its source */
        int found = -1;
        for (int j = 0; j < axis->sources && found < 0; j++) {
            int apart = axis->offset[i] - axis->source_offset[j];
            found = share ? (apart % axis->in_step == 0 ? j : -1) : (apart == 0 ? j : -1);
        }
        if (found < 0) {
            found = axis->sources++;
            axis->source_offset[found] = axis->offset[i];
        } else if (axis->offset[i] < axis->source_offset[found]) {
            axis->source_offset[found] = axis->offset[i];
        }
        axis->source[i] = found;
    }
    for (int i = 0; i < axis->taps; i++) {
        axis->shift[i] = (axis->offset[i] - axis->source_offset[axis->source[i]]) / axis->in_step;
        axis->extra = axis->shift[i] > axis->extra ? axis->shift[i] : axis->extra;
    }
}
