/* ops_body.h: the reference's loops, included by ops.c once for REAL = float and once for double.
 *
 * Every sum is a double. The conv is written as z += x * w over rows of contiguous channels: forward runs
 * over the filters k of a transposed weight, backward over the channels c of the weight as it is. Both
 * directions walk the same taps: filter row r of output row oy reads row uy = oy*stride + r - pad_top of
 * the upsampled input, which is row uy / 2 of x under up2. The same holds for columns.
 */

/* The conv itself, one image: z[oy][ox][k], wt is w as [R][S][C][K]. */
static void NAME(image_forward)(const lt_conv *v, const REAL *x, const double *wt, const REAL *b, double *z) {
    size_t C = (size_t)v->C, K = (size_t)v->K;
    for (int oy = 0; oy < v->OH; oy++) {
        double *row = z + (size_t)oy * (size_t)v->OW * K;
        for (size_t ox = 0; ox < (size_t)v->OW; ox++) {
            for (size_t k = 0; k < K; k++) {
                row[ox * K + k] = b ? (double)b[k] : 0;
            }
        }
        for (int r = 0; r < v->R; r++) {
            int uy = oy * v->stride + r - v->pad_top;
            if (uy < 0 || uy >= v->UH) {
                continue;
            }
            const REAL *x_row = x + (size_t)(uy >> v->up2) * (size_t)v->W * C;
            for (int s = 0; s < v->S; s++) {
                for (size_t c = 0; c < C; c++) {
                    const double *taps = wt + (((size_t)r * (size_t)v->S + (size_t)s) * C + c) * K;
                    for (int ox = 0; ox < v->OW; ox++) {
                        int ux = ox * v->stride + s - v->pad_left;
                        if (ux < 0 || ux >= v->UW) {
                            continue;
                        }
                        double value = (double)x_row[(size_t)(ux >> v->up2) * C + c];
                        double *out = row + (size_t)ox * K;
                        for (size_t k = 0; k < K; k++) {
                            out[k] += value * taps[k];
                        }
                    }
                }
            }
        }
    }
}

/* The first maximum of a 2x2 window in row order, or its first NaN. `a` is the window's first value. */
static REAL NAME(window_maximum)(const double *a, size_t pixel, size_t row, uint8_t *position) {
    const size_t offset[4] = {0, pixel, row, row + pixel};
    REAL best = (REAL)a[0];
    *position = 0;
    for (uint8_t i = 1; i < 4; i++) {
        REAL value = (REAL)a[offset[i]];
        if (!isnan(best) && !(value <= best)) {
            best = value;
            *position = i;
        }
    }
    return best;
}

/* y = pool2(relu(z)), one image. relu is monotone, so it comes after the maximum. */
static void NAME(image_finish)(const lt_conv *v, const double *z, REAL *y, uint8_t *mask) {
    size_t K = (size_t)v->K, row = (size_t)v->OW * K;
    int step = v->pool2 ? 2 : 1;
    for (int py = 0; py < v->PH; py++) {
        for (int px = 0; px < v->PW; px++) {
            const double *a = z + (size_t)(py * step) * row + (size_t)(px * step) * K;
            size_t at = ((size_t)py * (size_t)v->PW + (size_t)px) * K;
            for (size_t k = 0; k < K; k++) {
                uint8_t position = 0;
                REAL value = v->pool2 ? NAME(window_maximum)(a + k, K, row, &position) : (REAL)a[k];
                if (v->pool2 && mask) {
                    mask[at + k] = v->relu && value <= 0 ? LT_REF_DEAD : position;
                }
                y[at + k] = v->relu && value < 0 ? 0 : value;
            }
        }
    }
}

void NAME(lt_ref_conv_forward)(const lt_conv *conv, int n, const REAL *x, const REAL *w, const REAL *b,
                               REAL *y, uint8_t *mask, double *scratch) {
    size_t K = (size_t)conv->K, taps = (size_t)conv->R * (size_t)conv->S * (size_t)conv->C;
    size_t in = (size_t)conv->H * (size_t)conv->W * (size_t)conv->C;
    size_t out = (size_t)conv->PH * (size_t)conv->PW * K;
    double *wt = scratch, *z = scratch + taps * K;
    for (size_t k = 0; k < K; k++) {
        for (size_t t = 0; t < taps; t++) {
            wt[t * K + k] = (double)w[k * taps + t];
        }
    }
    for (size_t i = 0; i < (size_t)n; i++) {
        NAME(image_forward)(conv, x + i * in, wt, b, z);
        NAME(image_finish)(conv, z, y + i * out, mask ? mask + i * out : NULL);
    }
}

/* dz, one image: dy goes to where y came from, and nowhere when relu killed it. */
static void NAME(image_start)(const lt_conv *v, const REAL *y, const uint8_t *mask, const REAL *dy,
                              double *dz) {
    size_t K = (size_t)v->K, row = (size_t)v->OW * K;
    const size_t offset[4] = {0, K, row, row + K};
    int step = v->pool2 ? 2 : 1;
    memset(dz, 0, (size_t)v->OH * row * sizeof *dz);
    for (int py = 0; py < v->PH; py++) {
        for (int px = 0; px < v->PW; px++) {
            double *g = dz + (size_t)(py * step) * row + (size_t)(px * step) * K;
            size_t at = ((size_t)py * (size_t)v->PW + (size_t)px) * K;
            for (size_t k = 0; k < K; k++) {
                if (!v->pool2) {
                    g[k] = !v->relu || y[at + k] > 0 ? (double)dy[at + k] : 0;
                } else if (mask[at + k] != LT_REF_DEAD) {
                    g[offset[mask[at + k]] + k] = (double)dy[at + k];
                }
            }
        }
    }
}

/* One image's part of the gradients: dx[iy][ix][c] += dz * w and dw[k][r][s][c] += dz * x, tap by tap. */
static void NAME(image_backward)(const lt_conv *v, const REAL *x, const REAL *w, const double *dz, double *dx,
                                 double *dw) {
    size_t C = (size_t)v->C, K = (size_t)v->K;
    for (int oy = 0; oy < v->OH; oy++) {
        const double *g_row = dz + (size_t)oy * (size_t)v->OW * K;
        for (int r = 0; r < v->R; r++) {
            int uy = oy * v->stride + r - v->pad_top;
            if (uy < 0 || uy >= v->UH) {
                continue;
            }
            size_t x_row = (size_t)(uy >> v->up2) * (size_t)v->W * C;
            for (size_t k = 0; k < K; k++) {
                for (int s = 0; s < v->S; s++) {
                    size_t tap = ((k * (size_t)v->R + (size_t)r) * (size_t)v->S + (size_t)s) * C;
                    for (int ox = 0; ox < v->OW; ox++) {
                        int ux = ox * v->stride + s - v->pad_left;
                        if (ux < 0 || ux >= v->UW) {
                            continue;
                        }
                        double g = g_row[(size_t)ox * K + k];
                        size_t at = x_row + (size_t)(ux >> v->up2) * C;
                        for (size_t c = 0; c < C; c++) {
                            dw[tap + c] += g * (double)x[at + c];
                        }
                        for (size_t c = 0; dx && c < C; c++) {
                            dx[at + c] += g * (double)w[tap + c];
                        }
                    }
                }
            }
        }
    }
}

void NAME(lt_ref_conv_backward)(const lt_conv *conv, int n, const REAL *x, const REAL *w, const REAL *y,
                                const uint8_t *mask, const REAL *dy, REAL *dx, int dx_add, REAL *dw, REAL *db,
                                double *scratch) {
    size_t K = (size_t)conv->K, weights = K * (size_t)conv->R * (size_t)conv->S * (size_t)conv->C;
    size_t in = (size_t)conv->H * (size_t)conv->W * (size_t)conv->C;
    size_t pixels = (size_t)conv->OH * (size_t)conv->OW, out = (size_t)conv->PH * (size_t)conv->PW * K;
    double *dw_sum = scratch, *db_sum = dw_sum + weights, *dx_sum = db_sum + K, *dz = dx_sum + in;
    memset(dw_sum, 0, (weights + K) * sizeof *dw_sum);
    for (size_t i = 0; i < (size_t)n; i++) {
        NAME(image_start)(conv, y + i * out, mask ? mask + i * out : NULL, dy + i * out, dz);
        memset(dx_sum, 0, in * sizeof *dx_sum);
        NAME(image_backward)(conv, x + i * in, w, dz, dx ? dx_sum : NULL, dw_sum);
        for (size_t j = 0; dx && j < in; j++) {
            dx[i * in + j] = (REAL)(dx_add ? (double)dx[i * in + j] + dx_sum[j] : dx_sum[j]);
        }
        for (size_t j = 0; j < pixels; j++) {
            for (size_t k = 0; k < K; k++) {
                db_sum[k] += dz[j * K + k];
            }
        }
    }
    for (size_t j = 0; j < weights; j++) {
        dw[j] = (REAL)((double)dw[j] + dw_sum[j]);
    }
    for (size_t k = 0; db && k < K; k++) {
        db[k] = (REAL)((double)db[k] + db_sum[k]);
    }
}

double NAME(lt_ref_mse)(size_t count, const REAL *y, const REAL *target, REAL *dy) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        double difference = (double)y[i] - (double)target[i];
        sum += difference * difference;
        if (dy) {
            dy[i] = (REAL)(2 * difference / (double)count);
        }
    }
    return sum / (double)count;
}
