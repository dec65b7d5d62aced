/* compare.c: two weight files, tensor by tensor.
 *
 * The numbers are read as they stand in the files, in the files' order (OIHW), so an index told here is the
 * one a PyTorch user finds. Of two checkpoints the optimizer's tensors are compared as well.
 */
#include "model/weights.h"

#include <math.h>
#include <string.h>

static int beyond(double a, double b, double absolute, double relative) {
    if (a == b) {
        return 0; /* infinities of one sign as well */
    }
    double scale = fabs(a) > fabs(b) ? fabs(a) : fabs(b);
    return !(fabs(a - b) <= absolute + relative * scale); /* NaN is beyond every tolerance */
}

static void compare_values(const lt_st_tensor *a, const lt_st_tensor *b, double absolute, double relative,
                           latent_difference *out) {
    out->first = -1;
    for (uint64_t i = 0; i < a->count; i++) {
        double x = lt_st_value(a, i), y = lt_st_value(b, i);
        double distance = x == y ? 0 : fabs(x - y);
        double scale = fabs(x) > fabs(y) ? fabs(x) : fabs(y);
        double ratio = distance == 0 ? 0 : distance / scale;
        /* a NaN, once there, stays */
        out->max_abs = isnan(out->max_abs) || distance <= out->max_abs ? out->max_abs : distance;
        out->max_rel = isnan(out->max_rel) || ratio <= out->max_rel ? out->max_rel : ratio;
        if (beyond(x, y, absolute, relative)) {
            if (out->first < 0) {
                out->first = (int64_t)i;
                out->a = x;
                out->b = y;
            }
            out->beyond++;
        }
    }
}

static latent_status check_pair(latent_context *ctx, const lt_weights *wa, const lt_weights *wb,
                                const lt_st_tensor *a, const lt_st_tensor *b) {
    if (!b) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s has no tensor '%s', which %s has; the two are of different nets", wb->path,
                       a->name, wa->path);
    }
    if (a->dims != b->dims || memcmp(a->shape, b->shape, sizeof a->shape[0] * (size_t)a->dims) != 0) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT, "tensor '%s' has different shapes in %s and %s", a->name,
                       wa->path, wb->path);
    }
    return LATENT_OK;
}

latent_status latent_compare(latent_context *ctx, const char *path_a, const char *path_b, double absolute,
                             double relative, latent_difference_fn each, void *user, int *beyond_out) {
    latent_status status = LATENT_OK;
    lt_weights a = {0}, b = {0};
    *beyond_out = 0;
    if (!(absolute >= 0) || !(relative >= 0)) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT, "a tolerance of %g cannot be used; it must be at least 0",
                       absolute >= 0 ? relative : absolute);
    }
    LT_TRY(lt_weights_open(ctx, path_a, &a));
    LT_TRY(lt_weights_open(ctx, path_b, &b));
    for (int i = 0; i < b.count; i++) {
        LT_TRY(check_pair(ctx, &b, &a, &b.tensors[i], lt_weights_find(&a, b.tensors[i].name)));
    }
    for (int i = 0; i < a.count; i++) {
        const lt_st_tensor *other = lt_weights_find(&b, a.tensors[i].name);
        LT_TRY(check_pair(ctx, &a, &b, &a.tensors[i], other));
        latent_difference difference = {0};
        difference.name = a.tensors[i].name;
        difference.dims = a.tensors[i].dims < 4 ? a.tensors[i].dims : 4;
        for (int d = 0; d < difference.dims; d++) {
            difference.shape[d] = (int)a.tensors[i].shape[d];
        }
        difference.count = a.tensors[i].count;
        compare_values(&a.tensors[i], other, absolute, relative, &difference);
        *beyond_out += difference.beyond > 0;
        if (each) {
            each(user, &difference);
        }
    }
done:
    lt_weights_close(&a);
    lt_weights_close(&b);
    return status;
}
