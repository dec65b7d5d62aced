/* ref.h: the reference: what every other backend is checked against.
 *
 * The functions below are the meaning of the ops (net/op.h) as plain loops, once for float and once for
 * double tensors; sums are double in both. They take plain arguments so that tests use them as the oracle.
 */
#ifndef LT_BACKEND_REF_REF_H
#define LT_BACKEND_REF_REF_H

#include "backend/backend.h"

extern const lt_backend_type lt_backend_ref;

/* What a pooled output's mask byte says: the window position 0..3 (row order) that was the maximum, or
 * that relu killed it. Without pool2 there is no mask: y > 0 tells. */
enum { LT_REF_DEAD = 4 };

size_t lt_ref_conv_mask(const lt_conv *conv, int n); /* bytes */
size_t lt_ref_conv_scratch(const lt_conv *conv);     /* doubles, for either pass and any n */

/* x [n][H][W][C], w [K][R][S][C], b [K] or NULL, y [n][PH][PW][K], mask [n][PH][PW][K] with pool2, or NULL.
 */
void lt_ref_conv_forward_f32(const lt_conv *conv, int n, const float *x, const float *w, const float *b,
                             float *y, uint8_t *mask, double *scratch);
void lt_ref_conv_forward_f64(const lt_conv *conv, int n, const double *x, const double *w, const double *b,
                             double *y, uint8_t *mask, double *scratch);

/* dx is written, or added to with dx_add, unless NULL; dw and db (unless NULL) are added to. */
void lt_ref_conv_backward_f32(const lt_conv *conv, int n, const float *x, const float *w, const float *y,
                              const uint8_t *mask, const float *dy, float *dx, int dx_add, float *dw,
                              float *db, double *scratch);
void lt_ref_conv_backward_f64(const lt_conv *conv, int n, const double *x, const double *w, const double *y,
                              const uint8_t *mask, const double *dy, double *dx, int dx_add, double *dw,
                              double *db, double *scratch);

/* Returns the mean over `count` values of (y - target)^2; dy, unless NULL, gets 2 (y - target) / count. */
double lt_ref_mse_f32(size_t count, const float *y, const float *target, float *dy);
double lt_ref_mse_f64(size_t count, const double *y, const double *target, double *dy);

#endif
