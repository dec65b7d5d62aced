/* body_lowered.h: weights of the lowered axes: the sums of the filter taps that read one pixel. */
#ifndef LT_BACKEND_CPU_BODY_LOWERED_H
#define LT_BACKEND_CPU_BODY_LOWERED_H

/* Element (d, n0 .. n0+15) at tap (ty, tx): d is a channel and n a filter, or for the input gradient the
 * other way round. 0 where there is none. */
static void lowered_row(const lt_cpu_pass *pass, const float *w, int d, int n0, int ty, int tx,
                        float out[16]) {
    const lt_conv *v = pass->conv;
    int back = pass->role == LT_CPU_DGRAD, count = (back ? v->C : v->K) - n0;
    size_t filter = (size_t)v->R * (size_t)v->S * (size_t)v->C, C = (size_t)v->C;
    const float *from = back ? w + (size_t)d * filter + (size_t)n0 : w + (size_t)n0 * filter + (size_t)d;
    size_t step = back ? 1 : filter;
    memset(out, 0, 16 * sizeof *out);
    if (d >= (back ? v->K : v->C)) {
        return;
    }
    count = count < 16 ? count : 16;
    for (int r = pass->y.from[ty]; r <= pass->y.to[ty]; r++) {
        for (int s = pass->x.from[tx]; s <= pass->x.to[tx]; s++) {
            const float *tap = from + ((size_t)r * (size_t)v->S + (size_t)s) * C;
            if (back && count == 16) { /* side by side: vectors */
                for (int n = 0; n < 16; n++) {
                    out[n] += tap[n];
                }
                continue;
            }
            for (int n = 0; n < count; n++) {
                out[n] += tap[(size_t)n * step];
            }
        }
    }
}

#endif
