/* test_ops_golden.c: the reference against PyTorch in float64 (tools/make_golden.py made the file).
 *
 * The double reference must agree to 1e-12 of the size of the values, the float one to fp32's bound.
 */
#include "op_cases.h"

#include "backend/ref/ref.h"
#include "io/safetensors.h"

#include <setjmp.h>
#include <stdarg.h>
/* after the headers that cmocka wants first */
#include <cmocka.h>

typedef struct golden {
    lt_op op;
    int n;
    size_t in, out;
    double *x, *w, *b, *dy, *y, *dx, *dw, *db; /* b and db NULL without bias */
} golden;

static double *tensor(const lt_safetensors *st, const char *name, const char *part, size_t count) {
    char full[96];
    snprintf(full, sizeof full, "%s.%s", name, part);
    const lt_st_tensor *found = lt_st_find(st, full);
    assert_non_null(found);
    assert_int_equal(found->type, LT_ST_F64);
    assert_int_equal(found->count, count);
    double *values = doubles(count);
    for (size_t i = 0; i < count; i++) {
        values[i] = lt_st_value(found, i);
    }
    return values;
}

static golden golden_read(latent_context *ctx, const lt_safetensors *st, const char *name) {
    golden g = {0};
    op_case c = {.name = name};
    int up2, bias, relu, pool2;
    const char *numbers = lt_st_metadata(st, name);
    assert_non_null(numbers);
    assert_int_equal(sscanf(numbers, "%d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d", &c.n, &c.H, &c.W,
                            &c.C, &c.K, &c.R, &c.S, &c.stride, &c.pad[0], &c.pad[1], &c.pad[2], &c.pad[3],
                            &up2, &bias, &relu, &pool2),
                     16);
    c.flags = (up2 ? UP2 : 0) | (bias ? BIAS : 0) | (relu ? RELU : 0) | (pool2 ? POOL2 : 0);
    assert_int_equal(op_case_make(ctx, &c, &g.op), LATENT_OK);
    g.n = c.n;
    g.in = (size_t)c.n * lt_shape_count(g.op.in);
    g.out = (size_t)c.n * lt_shape_count(g.op.out);
    g.x = tensor(st, name, "x", g.in);
    g.w = tensor(st, name, "w", g.op.weight_count);
    g.b = bias ? tensor(st, name, "b", (size_t)c.K) : NULL;
    g.dy = tensor(st, name, "dy", g.out);
    g.y = tensor(st, name, "y", g.out);
    g.dx = tensor(st, name, "dx", g.in);
    g.dw = tensor(st, name, "dw", g.op.weight_count);
    g.db = bias ? tensor(st, name, "db", (size_t)c.K) : NULL;
    return g;
}

static void golden_free(golden *g) {
    double *all[] = {g->x, g->w, g->b, g->dy, g->y, g->dx, g->dw, g->db};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]);
    }
}

/* Within `tolerance` of the largest value of the tensor: sums of different order differ by that much. */
static void compare(const golden *g, const char *what, const double *got, const double *want, size_t count,
                    double tolerance) {
    double size = 0;
    for (size_t i = 0; i < count; i++) {
        size = fmax(size, fabs(want[i]));
    }
    for (size_t i = 0; i < count; i++) {
        if (!(fabs(got[i] - want[i]) <= tolerance * size)) {
            fail_msg("%s: %s[%zu] is %.17g, not %.17g", g->op.name, what, i, got[i], want[i]);
        }
    }
}

static void check_f64(const golden *g) {
    const lt_conv *conv = &g->op.conv;
    size_t K = (size_t)conv->K;
    double *y = doubles(g->out), *dx = doubles(g->in), *dw = doubles(g->op.weight_count), *db = doubles(K);
    double *scratch = doubles(lt_ref_conv_scratch(conv));
    uint8_t *mask = malloc(g->out);
    lt_ref_conv_forward_f64(conv, g->n, g->x, g->w, g->b, y, mask, scratch);
    lt_ref_conv_backward_f64(conv, g->n, g->x, g->w, y, mask, g->dy, dx, 0, dw, g->b ? db : NULL, scratch);
    compare(g, "y", y, g->y, g->out, 1e-12);
    compare(g, "dx", dx, g->dx, g->in, 1e-12);
    compare(g, "dw", dw, g->dw, g->op.weight_count, 1e-12);
    compare(g, "db", db, g->db, g->b ? K : 0, 1e-12);
    free(y);
    free(dx);
    free(dw);
    free(db);
    free(scratch);
    free(mask);
}

static float *singles(const double *values, size_t count) {
    float *out = calloc(count ? count : 1, sizeof *out);
    assert_non_null(out);
    for (size_t i = 0; values && i < count; i++) {
        out[i] = (float)values[i];
    }
    return out;
}

static void compare_f32(const golden *g, const char *what, float *got, const double *want, size_t count) {
    double *wide = doubles(count);
    for (size_t i = 0; i < count; i++) {
        wide[i] = (double)got[i];
    }
    compare(g, what, wide, want, count, 2e-6); /* a few roundings of inputs and result, 2^-24 each */
    free(wide);
    free(got);
}

static void check_f32(const golden *g) {
    const lt_conv *conv = &g->op.conv;
    size_t K = (size_t)conv->K;
    float *x = singles(g->x, g->in), *w = singles(g->w, g->op.weight_count), *b = singles(g->b, K);
    float *dy = singles(g->dy, g->out), *y = singles(NULL, g->out), *dx = singles(NULL, g->in);
    float *dw = singles(NULL, g->op.weight_count), *db = singles(NULL, K);
    double *scratch = doubles(lt_ref_conv_scratch(conv));
    uint8_t *mask = malloc(g->out);
    lt_ref_conv_forward_f32(conv, g->n, x, w, g->b ? b : NULL, y, mask, scratch);
    lt_ref_conv_backward_f32(conv, g->n, x, w, y, mask, dy, dx, 0, dw, g->b ? db : NULL, scratch);
    compare_f32(g, "y", y, g->y, g->out);
    compare_f32(g, "dx", dx, g->dx, g->in);
    compare_f32(g, "dw", dw, g->dw, g->op.weight_count);
    compare_f32(g, "db", db, g->db, g->b ? K : 0);
    free(x);
    free(w);
    free(b);
    free(dy);
    free(scratch);
    free(mask);
}

static void each_case(void (*check)(const golden *g)) {
    latent_context *ctx = NULL;
    lt_safetensors *st = NULL;
    assert_int_equal(latent_context_create(&ctx), LATENT_OK);
    if (lt_st_read(ctx, TEST_FILES "/golden/conv.safetensors", &st) != LATENT_OK) {
        fail_msg("%s", latent_context_message(ctx));
    }
    const char *list = lt_st_metadata(st, "cases");
    assert_non_null(list);
    int cases = 0;
    for (size_t length; *list; list += length + (list[length] == ' ')) {
        char name[64];
        length = strcspn(list, " ");
        assert_true(length > 0 && length < sizeof name);
        memcpy(name, list, length);
        name[length] = 0;
        golden g = golden_read(ctx, st, name);
        check(&g);
        golden_free(&g);
        cases++;
    }
    assert_int_equal(cases, 16);
    lt_st_destroy(st);
    latent_context_destroy(ctx);
}

static void test_f64(void **state) {
    (void)state;
    each_case(check_f64);
}

static void test_f32(void **state) {
    (void)state;
    each_case(check_f32);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_f64), cmocka_unit_test(test_f32)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
