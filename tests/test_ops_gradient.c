/* test_ops_gradient.c: the double reference's gradients against central differences.
 *
 * Along a random direction d of one tensor, (L(p + h d) - L(p - h d)) / 2h must equal <dL/dp, d> within a
 * relative 1e-7. For one conv L = sum y*dy, for the whole autoencoder L is its mean squared error. Where
 * a relu sign or a pool winner changes between the two points the difference says nothing: draw again.
 */
#include "op_cases.h"

#include "backend/ref/ref.h"

#include <setjmp.h>
#include <stdarg.h>
/* after the headers that cmocka wants first */
#include <cmocka.h>

enum { LAYERS_MAX = 5, DRAWS = 50, DIRECTIONS = 2 };

typedef struct layer {
    lt_op op;
    size_t in, out;                   /* values of n images */
    double *w, *b, *y, *dy, *dw, *db; /* b NULL without bias */
    uint8_t *mask, *pattern;          /* pattern: which relus are open and which window places won */
    double *scratch;
} layer;

/* A chain of convs; a single one ends in sum y*dy, several in the mean squared error to the input. */
typedef struct chain {
    int n, layers;
    layer layer[LAYERS_MAX];
    double *x, *dx;
} chain;

static void layer_make(layer *l, const op_case *shape, uint64_t seed) {
    latent_context *ctx = NULL;
    assert_int_equal(latent_context_create(&ctx), LATENT_OK);
    assert_int_equal(op_case_make(ctx, shape, &l->op), LATENT_OK);
    latent_context_destroy(ctx);
    size_t K = (size_t)shape->K;
    l->in = (size_t)shape->n * lt_shape_count(l->op.in);
    l->out = (size_t)shape->n * lt_shape_count(l->op.out);
    l->w = doubles(l->op.weight_count);
    l->dw = doubles(l->op.weight_count);
    l->b = l->op.conv.bias ? doubles(K) : NULL;
    l->db = l->op.conv.bias ? doubles(K) : NULL;
    l->y = doubles(l->out);
    l->dy = doubles(l->out);
    l->scratch = doubles(lt_ref_conv_scratch(&l->op.conv));
    l->mask = calloc(l->out, 1);
    l->pattern = calloc(l->out, 1);
    assert_true(l->mask && l->pattern);
    draw d = {seed, 0, 0};
    draw_fill(&d, 0, l->w, l->op.weight_count);
    for (size_t i = 0; i < l->op.weight_count; i++) { /* so that values keep their size through layers */
        l->w[i] *= sqrt(6 / ((double)shape->R * shape->S * shape->C));
    }
    draw_fill(&d, 1, l->dy, l->out);
    if (l->b) {
        draw_fill(&d, 2, l->b, K);
    }
}

static void chain_make(chain *c, const op_case *shapes, int layers, uint64_t seed) {
    memset(c, 0, sizeof *c);
    c->n = shapes[0].n;
    c->layers = layers;
    for (int i = 0; i < layers; i++) {
        layer_make(&c->layer[i], &shapes[i], seed + 10 * (uint64_t)i);
    }
    c->x = doubles(c->layer[0].in);
    c->dx = doubles(c->layer[0].in);
    draw d = {seed, 0, 0};
    draw_fill(&d, 3, c->x, c->layer[0].in);
}

static void chain_free(chain *c) {
    for (int i = 0; i < c->layers; i++) {
        layer *l = &c->layer[i];
        double *all[] = {l->w, l->b, l->y, l->dy, l->dw, l->db, l->scratch};
        for (size_t j = 0; j < sizeof all / sizeof all[0]; j++) {
            free(all[j]);
        }
        free(l->mask);
        free(l->pattern);
    }
    free(c->x);
    free(c->dx);
}

/* The loss; the patterns of the layers are left in `pattern`. */
static double chain_forward(chain *c, const double *target) {
    const double *x = c->x;
    for (int i = 0; i < c->layers; i++) {
        layer *l = &c->layer[i];
        lt_ref_conv_forward_f64(&l->op.conv, c->n, x, l->w, l->b, l->y, l->mask, l->scratch);
        for (size_t j = 0; j < l->out; j++) {
            l->pattern[j] = l->op.conv.pool2 ? l->mask[j] : l->op.conv.relu ? l->y[j] > 0 : 0;
        }
        x = l->y;
    }
    layer *last = &c->layer[c->layers - 1];
    if (target) {
        return lt_ref_mse_f64(last->out, last->y, target, last->dy);
    }
    double loss = 0;
    for (size_t j = 0; j < last->out; j++) {
        loss += last->y[j] * last->dy[j];
    }
    return loss;
}

static void chain_backward(chain *c) {
    for (int i = c->layers - 1; i >= 0; i--) {
        layer *l = &c->layer[i];
        memset(l->dw, 0, l->op.weight_count * sizeof(double));
        if (l->db) {
            memset(l->db, 0, (size_t)l->op.conv.K * sizeof(double));
        }
        const double *x = i ? c->layer[i - 1].y : c->x;
        double *dx = i ? c->layer[i - 1].dy : c->dx;
        lt_ref_conv_backward_f64(&l->op.conv, c->n, x, l->w, l->y, l->mask, l->dy, dx, 0, l->dw, l->db,
                                 l->scratch);
    }
}

/* All patterns after one another: equal bytes, same piece of a piecewise smooth function. */
static size_t patterns(const chain *c, uint8_t *out) {
    size_t total = 0;
    for (int i = 0; i < c->layers; i++) {
        if (out) {
            memcpy(out + total, c->layer[i].pattern, c->layer[i].out);
        }
        total += c->layer[i].out;
    }
    return total;
}

/* The loss at p + h*d, and whether the pattern there is `pattern`. */
static double loss_at(chain *c, const double *target, double *p, const double *start, const double *d,
                      size_t count, double h, const uint8_t *pattern, int *same) {
    for (size_t i = 0; i < count; i++) {
        p[i] = start[i] + h * d[i];
    }
    double loss = chain_forward(c, target);
    size_t size = patterns(c, NULL);
    uint8_t *found = malloc(size);
    assert_non_null(found);
    patterns(c, found);
    *same &= memcmp(found, pattern, size) == 0;
    free(found);
    memcpy(p, start, count * sizeof *p);
    return loss;
}

/* One tensor p with gradient g. Directions whose derivative is by chance a hundredth of its usual size, sqrt
 * of sum g^2 / 3, lose digits to cancellation and are drawn again as well. */
static void check_tensor(chain *c, const double *target, const char *name, const char *what, double *p,
                         const double *g, size_t count, double h, const uint8_t *pattern) {
    double *d = doubles(count), *start = doubles(count), size = 0;
    memcpy(start, p, count * sizeof *p);
    for (size_t i = 0; i < count; i++) {
        size += g[i] * g[i] / 3;
    }
    int checked = 0;
    for (uint64_t attempt = 0; attempt < DRAWS && checked < DIRECTIONS; attempt++) {
        draw random = {900 + attempt, 0, 0};
        draw_fill(&random, 0, d, count);
        int same = 1;
        double up = loss_at(c, target, p, start, d, count, h, pattern, &same);
        double down = loss_at(c, target, p, start, d, count, -h, pattern, &same);
        double slope = (up - down) / (2 * h), dot = 0;
        for (size_t i = 0; i < count; i++) {
            dot += g[i] * d[i];
        }
        if (size == 0) { /* every relu is closed: nothing may move */
            assert_true(!same || slope == 0);
            checked += same;
        } else if (same && fabs(dot) > 0.01 * sqrt(size)) {
            if (!(fabs(slope - dot) <= 1e-7 * fmax(fabs(slope), fabs(dot)))) {
                fail_msg("%s: d%s: central difference %.12g, gradient %.12g, relative %.2g", name, what,
                         slope, dot, fabs(slope - dot) / fmax(fabs(slope), fabs(dot)));
            }
            checked++;
        }
    }
    if (checked < DIRECTIONS) {
        fail_msg("%s: d%s: %d draws, and only %d stayed on one piece", name, what, DRAWS, checked);
    }
    free(d);
    free(start);
}

static void check_chain(chain *c, const double *target, const char *name, double h) {
    chain_forward(c, target);
    chain_backward(c);
    size_t size = patterns(c, NULL);
    uint8_t *pattern = malloc(size);
    assert_non_null(pattern);
    patterns(c, pattern);
    /* The gradients are kept; forward passes at other points overwrite only y, dy and the patterns. */
    check_tensor(c, target, name, "x", c->x, c->dx, c->layer[0].in, h, pattern);
    for (int i = 0; i < c->layers; i++) {
        layer *l = &c->layer[i];
        check_tensor(c, target, name, "w", l->w, l->dw, l->op.weight_count, h, pattern);
        if (l->b) {
            check_tensor(c, target, name, "b", l->b, l->db, (size_t)l->op.conv.K, h, pattern);
        }
    }
    free(pattern);
}

/* A conv is linear on a piece, so h costs nothing; small, it rarely leaves the piece. */
static void test_cases(void **state) {
    (void)state;
    for (size_t i = 0; i < OP_CASES; i++) {
        if (op_cases[i].flags & FULL) {
            continue;
        }
        chain c;
        chain_make(&c, &op_cases[i], 1, 40 + i);
        check_chain(&c, NULL, op_cases[i].name, 1e-6);
        chain_free(&c);
    }
}

/* The autoencoder, narrow, to a fixed target: five convs deep. */
static void test_autoencoder(void **state) {
    (void)state;
    static const op_case shapes[] = {
        {"enc_conv1", 2, 8, 8, 3, 6, 3, 3, 1, {SAME}, BIAS | RELU | POOL2},
        {"enc_conv2", 2, 4, 4, 6, 4, 3, 3, 1, {SAME}, BIAS | RELU | POOL2},
        {"dec_conv1", 2, 2, 2, 4, 4, 3, 3, 1, {SAME}, BIAS | RELU},
        {"dec_conv2", 2, 2, 2, 4, 6, 3, 3, 1, {SAME}, BIAS | RELU | UP2},
        {"dec_conv3", 2, 4, 4, 6, 3, 3, 3, 1, {SAME}, BIAS | UP2},
    };
    for (uint64_t seed = 0; seed < 3; seed++) {
        chain c;
        chain_make(&c, shapes, 5, 7000 + 100 * seed);
        assert_int_equal(c.layer[4].out, c.layer[0].in);
        double *target = doubles(c.layer[4].out);
        draw d = {seed, 0, 0};
        draw_fill(&d, 4, target, c.layer[4].out);
        check_chain(&c, target, "autoencoder", 1e-5);
        free(target);
        chain_free(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_autoencoder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
