/* op_oracle.h: what a conv must give, and how far from it a backend may be.
 *
 * The answers are the double reference's, for inputs that the backend holds exactly. The bounds are derived,
 * not tuned: with L terms in a sum and S = sum |a*b| (the reference run on absolute values), rounding gives
 *     fp32   8 sqrt(L) 2^-24 S
 *     bf16   8 sqrt(L) 2^-22 S, and 2^-8 |answer| where the result is stored as bf16; an up2 conv may round
 *            sums of weights to bf16 once more: 2^-9 S
 * relu and pool2 move no output further than their inputs moved, so a pooled bound is the window's largest.
 * Going backward, a window whose winner the bound leaves open gets no gradient; the winners that count are
 * the same for everyone.
 */
#ifndef OP_ORACLE_H
#define OP_ORACLE_H

#include "op_cases.h"

#include "backend/ref/ref.h"

typedef struct oracle {
    lt_op op;
    int n;
    int bf16;                         /* inputs are bf16 numbers, sums may be truncated as tensor cores do */
    int exact;                        /* inputs are whole: answers must be met exactly */
    size_t in, out, weights, filters; /* values in all n images; in w; in b */
    double *x, *w, *b, *dy, *dx0, *dw0, *db0; /* inputs; what dx, dw and db are added to */
    double *y, *dx, *dw, *db;                 /* answers, without dx0, dw0, db0 */
    double *y_sum, *dx_sum, *dw_sum, *db_sum; /* S */
    double open;                              /* share of outputs whose winner the bound leaves open */
} oracle;

static inline double oracle_unit(const oracle *o) {
    return o->bf16 ? 0x1p-22 : 0x1p-24;
}

/* Lengths of the sums. */
static inline double oracle_length_y(const lt_conv *v) {
    return (double)v->R * v->S * v->C + v->bias;
}
static inline double oracle_length_dx(const lt_conv *v) {
    return (double)v->R * v->S * v->K * (v->up2 ? 4 : 1);
}
static inline double oracle_length_dw(const oracle *o) {
    return (double)o->n * o->op.conv.OH * o->op.conv.OW;
}

/* The bound of an answer stored as bf16 (or not), of a sum of `length` terms; `resummed`: of up2 weights. */
static inline double oracle_bound(const oracle *o, double answer, double sum, double length, int stored_bf16,
                                  int resummed) {
    double bound = 8 * sqrt(length) * oracle_unit(o) * sum;
    bound += stored_bf16 ? 0x1p-8 * fabs(answer) : 0;
    bound += o->bf16 && resummed ? 0x1p-9 * sum : 0;
    return bound;
}

static inline double *oracle_absolute(const double *values, size_t count) {
    double *out = doubles(count);
    for (size_t i = 0; values && i < count; i++) {
        out[i] = fabs(values[i]);
    }
    return out;
}

/* From z and its S (before relu and pool2): S of every output, and where dy must be 0 because the bound
 * leaves the winner open. */
static inline void oracle_windows(oracle *o, const double *z, const double *z_sum) {
    const lt_conv *v = &o->op.conv;
    size_t K = (size_t)v->K, row = (size_t)v->OW * K, open = 0;
    int step = v->pool2 ? 2 : 1, places = v->pool2 ? 4 : 1;
    const size_t offset[4] = {0, K, row, row + K};
    for (size_t i = 0; i < o->out; i++) {
        size_t k = i % K, px = i / K % (size_t)v->PW, py = i / K / (size_t)v->PW % (size_t)v->PH;
        size_t image = i / K / (size_t)v->PW / (size_t)v->PH;
        size_t at = image * (size_t)v->OH * row + py * (size_t)step * row + px * (size_t)step * K + k;
        double high[4], low[4], best = -INFINITY;
        o->y_sum[i] = 0;
        for (int p = 0; p < places; p++) {
            double value = z[at + offset[p]], sum = z_sum[at + offset[p]];
            double e = oracle_bound(o, value, sum, oracle_length_y(v), o->bf16, v->up2);
            high[p] = value + e;
            low[p] = value - e;
            best = fmax(best, low[p]);
            if (o->exact && o->bf16 && v->pool2 && fabs(value) > 256) {
                abort(); /* our own mistake: a case whose ties depend on when a backend rounds */
            }
            o->y_sum[i] = fmax(o->y_sum[i], sum);
        }
        int candidates = 0, near_zero = 0;
        for (int p = 0; p < places; p++) {
            candidates += high[p] >= best;
            near_zero |= high[p] >= best && high[p] >= 0 && low[p] <= 0;
        }
        if (!o->exact && (candidates > 1 || (v->relu && near_zero))) {
            o->dy[i] = 0;
            open++;
        }
    }
    o->open = (double)open / (double)o->out;
}

static inline void oracle_forward(oracle *o, uint8_t *mask, double *scratch) {
    lt_conv plain = o->op.conv;
    plain.relu = plain.pool2 = 0;
    plain.PH = plain.OH;
    plain.PW = plain.OW;
    size_t count = (size_t)o->n * (size_t)plain.OH * (size_t)plain.OW * (size_t)plain.K;
    double *z = doubles(count), *z_sum = doubles(count);
    double *x = oracle_absolute(o->x, o->in), *w = oracle_absolute(o->w, o->weights);
    double *b = oracle_absolute(o->b, o->filters);
    lt_ref_conv_forward_f64(&plain, o->n, o->x, o->w, o->b, z, NULL, scratch);
    if (!o->exact) {
        lt_ref_conv_forward_f64(&plain, o->n, x, w, b, z_sum, NULL, scratch);
    }
    oracle_windows(o, z, z_sum);
    lt_ref_conv_forward_f64(&o->op.conv, o->n, o->x, o->w, o->b, o->y, mask, scratch);
    free(z);
    free(z_sum);
    free(x);
    free(w);
    free(b);
}

static inline void oracle_backward(oracle *o, const uint8_t *mask, double *scratch) {
    lt_ref_conv_backward_f64(&o->op.conv, o->n, o->x, o->w, o->y, mask, o->dy, o->dx, 0, o->dw, o->db,
                             scratch);
    if (!o->exact) {
        double *x = oracle_absolute(o->x, o->in), *w = oracle_absolute(o->w, o->weights);
        double *dy = oracle_absolute(o->dy, o->out);
        lt_ref_conv_backward_f64(&o->op.conv, o->n, x, w, o->y, mask, dy, o->dx_sum, 0, o->dw_sum, o->db_sum,
                                 scratch);
        free(x);
        free(w);
        free(dy);
    }
}

/* Whole numbers are small enough that every sum is exact: in fp32 any; in bf16 -1, 0 and 1, whose sums stay
 * under the 256 up to which bf16 holds every whole number (oracle_windows checks it under a pool). */
static inline oracle *oracle_make(latent_context *ctx, const op_case *test, int bf16, int exact,
                                  uint64_t seed) {
    oracle *o = calloc(1, sizeof *o);
    if (!o || op_case_make(ctx, test, &o->op) != LATENT_OK) {
        abort();
    }
    const lt_conv *v = &o->op.conv;
    draw d = {seed, exact ? (bf16 ? 1 : 7) : 0, bf16};
    o->n = test->n;
    o->bf16 = bf16;
    o->exact = exact;
    o->in = (size_t)o->n * lt_shape_count(o->op.in);
    o->out = (size_t)o->n * lt_shape_count(o->op.out);
    o->weights = o->op.weight_count;
    o->filters = (size_t)v->K;
    double **tensors[] = {&o->x, &o->w, &o->b, &o->dy, &o->dx0, &o->dw0, &o->db0};
    size_t counts[] = {o->in, o->weights, o->filters, o->out, o->in, o->weights, o->filters};
    for (uint32_t i = 0; i < 7; i++) {
        *tensors[i] = doubles(counts[i]);
        draw_fill(&d, i, *tensors[i], counts[i]);
    }
    double **answers[] = {&o->y, &o->dx, &o->dw, &o->db, &o->y_sum, &o->dx_sum, &o->dw_sum, &o->db_sum};
    size_t sizes[] = {o->out, o->in, o->weights, o->filters};
    for (size_t i = 0; i < 8; i++) {
        *answers[i] = doubles(sizes[i % 4]);
    }
    if (!v->bias) {
        free(o->b);
        o->b = NULL;
    }
    uint8_t *mask = v->pool2 ? malloc(lt_ref_conv_mask(v, o->n)) : NULL;
    double *scratch = doubles(lt_ref_conv_scratch(v));
    oracle_forward(o, mask, scratch);
    oracle_backward(o, mask, scratch);
    free(scratch);
    free(mask);
    return o;
}

static inline void oracle_free(oracle *o) {
    if (o) {
        double *all[] = {o->x,  o->w,  o->b,  o->dy,    o->dx0,    o->dw0,    o->db0,   o->y,
                         o->dx, o->dw, o->db, o->y_sum, o->dx_sum, o->dw_sum, o->db_sum};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
            free(all[i]);
        }
        free(o);
    }
}

#endif
