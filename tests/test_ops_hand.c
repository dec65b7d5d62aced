/* test_ops_hand.c: small answers worked out on paper, on every backend.
 *
 * A gradient check proves nothing about the forward pass, and two implementations can share a mistake. The
 * numbers here are small whole ones, exact in every precision, with the working beside them.
 */
#include "op_step.h"

static void expect(const char *what, const double *got, const double *want, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (got[i] != want[i]) {
            fail_msg("%s[%zu] is %.9g, not %.9g", what, i, got[i], want[i]);
        }
    }
}

/* One conv with its answers; what is NULL is not looked at. */
typedef struct paper {
    op_case shape;
    const double *x, *w, *b, *dy, *y, *dx, *dw, *db;
} paper;

#define LIST(...) ((const double[]){__VA_ARGS__})

static void work(void **state, const paper *p) {
    rig r;
    lt_op op;
    rig_open(&r, *state, 0);
    RIG_OK(&r, op_case_make(r.ctx, &p->shape, &op));
    size_t n = (size_t)p->shape.n, in = n * lt_shape_count(op.in), out = n * lt_shape_count(op.out);
    size_t filters = (size_t)op.conv.K;
    double *y = doubles(out), *dx = doubles(in), *dw = doubles(op.weight_count), *db = doubles(filters);
    conv_io io = {.op = &op,
                  .n = p->shape.n,
                  .batch = p->shape.n,
                  .x_type = r.backend->activation,
                  .x = p->x,
                  .w = p->w,
                  .b = p->b,
                  .dy = p->dy,
                  .y = y,
                  .dx = p->dy ? dx : NULL,
                  .dw = dw,
                  .db = p->dy && p->b ? db : NULL};
    rig_conv(&r, &io);
    expect("y", y, p->y, out);
    if (io.dy) {
        expect("dx", dx, p->dx, in);
        expect("dw", dw, p->dw, op.weight_count);
        expect("db", db, p->db, p->b ? filters : 0);
    }
    free(y);
    free(dx);
    free(dw);
    free(db);
    rig_close(&r);
}

/*     1 2 3        1 2
 * x = 4 5 6    w = 3 4    b = 10
 *     7 8 9
 * z00 = 1*1 + 2*2 + 4*3 + 5*4 + 10 = 47     z01 = 2 +  6 + 15 + 24 + 10 = 57
 * z10 = 4 + 10 + 21 + 32 + 10      = 77     z11 = 5 + 12 + 24 + 36 + 10 = 87
 * dy = 1 0 / 0 2:
 * dw = 1*(1 2 / 4 5) + 2*(5 6 / 8 9) = 11 14 / 20 23, db = 1 + 2
 * dx = w at the top left + 2w at the bottom right: 4 + 2*1 where they meet */
static void test_plain(void **state) {
    paper p = {{"2x2 valid", 1, 3, 3, 1, 1, 2, 2, 1, {0}, BIAS},
               LIST(1, 2, 3, 4, 5, 6, 7, 8, 9),
               LIST(1, 2, 3, 4),
               LIST(10),
               LIST(1, 0, 0, 2),
               LIST(47, 57, 77, 87),
               LIST(1, 2, 0, 3, 6, 4, 0, 6, 8),
               LIST(11, 14, 20, 23),
               LIST(3)};
    work(state, &p);
}

/* Two images of one pixel, two channels, two filters: where channels and filters stand in memory.
 * x = (1 2), (3 4)   w0 = (10 20), w1 = (30 40)   b = (1 2)
 * y  = (10+40+1, 30+80+2), (30+80+1, 90+160+2)
 * dy = (1 2), (3 -1):  dx = (10+60, 20+80), (30-30, 60-40)
 * dw0 = 1*(1 2) + 3*(3 4) = (10 14),  dw1 = 2*(1 2) - (3 4) = (-1 0),  db = (1+3, 2-1) */
static void test_channels(void **state) {
    paper p = {{"channels", 2, 1, 1, 2, 2, 1, 1, 1, {0}, BIAS},
               LIST(1, 2, 3, 4),
               LIST(10, 20, 30, 40),
               LIST(1, 2),
               LIST(1, 2, 3, -1),
               LIST(51, 112, 111, 252),
               LIST(70, 100, 0, 20),
               LIST(10, 14, -1, 0),
               LIST(4, 1)};
    work(state, &p);
}

/* `same` with a 1x2 filter pads on the right only. x = 1 2 3, w = 10 1
 * y  = 10*1+2, 10*2+3, 10*3+0
 * dy = 1 1 1:  dx = 10, 1+10, 1+10;  dw = 1+2+3, 2+3+0 */
static void test_even_filter(void **state) {
    paper p = {{"1x2 same", 1, 1, 3, 1, 1, 1, 2, 1, {SAME}, 0},
               LIST(1, 2, 3),
               LIST(10, 1),
               NULL,
               LIST(1, 1, 1),
               LIST(12, 23, 30),
               LIST(10, 11, 11),
               LIST(6, 5),
               NULL};
    work(state, &p);
}

/* Two zeros on the left: windows (0 0 1), (0 1 2). x = 1 2, w = 1 10 100
 * y  = 100*1, 10*1 + 100*2
 * dy = 1 2:  dx0 = 100*1 + 10*2, dx1 = 100*2;  dw = 0, 1*2, 1*1 + 2*2 */
static void test_uneven_padding(void **state) {
    paper p = {{"padded left", 1, 1, 2, 1, 1, 1, 3, 1, {0, 2, 0, 0}, 0},
               LIST(1, 2),
               LIST(1, 10, 100),
               NULL,
               LIST(1, 2),
               LIST(100, 210),
               LIST(120, 200),
               LIST(0, 2, 5),
               NULL};
    work(state, &p);
}

/* Windows (1 2) and (3 4); the 5 is never seen. w = 1 10
 * y  = 1+20, 3+40
 * dy = 1 2:  dx = 1, 10, 2, 20, 0;  dw = 1*1+2*3, 1*2+2*4 */
static void test_stride(void **state) {
    paper p = {{"stride 2", 1, 1, 5, 1, 1, 1, 2, 2, {0}, 0},
               LIST(1, 2, 3, 4, 5),
               LIST(1, 10),
               NULL,
               LIST(1, 2),
               LIST(21, 43),
               LIST(1, 10, 2, 20, 0),
               LIST(7, 10),
               NULL};
    work(state, &p);
}

/* x = 1 2 becomes two rows of 1 1 2 2. A 1x3 filter w = 1 10 100, a zero on either side:
 * row = 10+100, 1+10+200, 1+20+200, 2+20
 * dy = 1 0 0 0 / 0 0 0 1:  the first takes (0 1 1) and gives 10 + 100 to x0;
 * the last takes (2 2 0) and gives 1 + 10 to x1.  dw = (0 1 1) + (2 2 0) */
static void test_upsample(void **state) {
    paper p = {{"up2", 1, 1, 2, 1, 1, 1, 3, 1, {SAME}, UP2},
               LIST(1, 2),
               LIST(1, 10, 100),
               NULL,
               LIST(1, 0, 0, 0, 0, 0, 0, 1),
               LIST(110, 211, 221, 22, 110, 211, 221, 22),
               LIST(110, 11),
               LIST(2, 3, 1),
               NULL};
    work(state, &p);
}

/* z = x - 2 = -1 0 1: only the last is above 0, and at 0 the gradient is 0. */
static void test_relu(void **state) {
    paper p = {{"relu", 1, 1, 3, 1, 1, 1, 1, 1, {0}, BIAS | RELU},
               LIST(1, 2, 3),
               LIST(1),
               LIST(-2),
               LIST(5, 6, 7),
               LIST(0, 0, 1),
               LIST(0, 0, 7),
               LIST(21),
               LIST(7)};
    work(state, &p);
}

/* 4 4 | 1 2 | 9     The 9s stand in the odd row and column and are dropped.
 * 4 4 | 3 3 | 9     Of four 4s the first gets the gradient, of two 3s the left one.
 * 9 9   9 9   9     dw = 4*10 + 3*20 */
static void test_pool(void **state) {
    paper p = {{"pool2", 1, 3, 5, 1, 1, 1, 1, 1, {0}, BIAS | POOL2},
               LIST(4, 4, 1, 2, 9, 4, 4, 3, 3, 9, 9, 9, 9, 9, 9),
               LIST(1),
               LIST(0),
               LIST(10, 20),
               LIST(4, 3),
               LIST(10, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0),
               LIST(100),
               LIST(30)};
    work(state, &p);
}

/* -1 -2 | 0 -1 | -1 5     Largest: -1, 0, and 5 at the right of the first row.
 * -3 -4 | -1 0 |  5 -9    Without relu each gets its gradient: dw = -1*10 + 0*20 + 5*30. */
static void test_pool_negative(void **state) {
    paper p = {{"pool2", 1, 2, 6, 1, 1, 1, 1, 1, {0}, BIAS | POOL2},
               LIST(-1, -2, 0, -1, -1, 5, -3, -4, -1, 0, 5, -9),
               LIST(1),
               LIST(0),
               LIST(10, 20, 30),
               LIST(-1, 0, 5),
               LIST(10, 0, 20, 0, 0, 30, 0, 0, 0, 0, 0, 0),
               LIST(140),
               LIST(60)};
    work(state, &p);
}

/* The same with relu: nothing flows where the largest is not above 0. */
static void test_pool_relu(void **state) {
    paper p = {{"relu pool2", 1, 2, 6, 1, 1, 1, 1, 1, {0}, BIAS | RELU | POOL2},
               LIST(-1, -2, 0, -1, -1, 5, -3, -4, -1, 0, 5, -9),
               LIST(1),
               LIST(0),
               LIST(10, 20, 30),
               LIST(0, 0, 5),
               LIST(0, 0, 0, 0, 0, 30, 0, 0, 0, 0, 0, 0),
               LIST(150),
               LIST(30)};
    work(state, &p);
}

/* A NaN stays a NaN through relu, and is the maximum of its window wherever in it it stands. */
static void test_nan(void **state) {
    for (int place = 0; place < 4; place++) {
        for (int pool = 0; pool < 2; pool++) {
            rig r;
            lt_op op;
            op_case shape = {"nan", 1, 2, 2, 1, 1, 1, 1, 1, {0}, RELU | (pool ? POOL2 : 0)};
            double x[4] = {3, -1, 2, 1}, w = 1, y[4];
            x[place] = NAN;
            rig_open(&r, *state, 0);
            RIG_OK(&r, op_case_make(r.ctx, &shape, &op));
            conv_io io = {
                .op = &op, .n = 1, .batch = 1, .x_type = r.backend->activation, .x = x, .w = &w, .y = y};
            rig_conv(&r, &io);
            assert_true(isnan(y[pool ? 0 : place]));
            rig_close(&r);
        }
    }
}

/* y - t = 0 2 / 0 -2: loss = (4 + 4) / 4, dy = 2 (y - t) / 4. */
static void test_mse(void **state) {
    rig r;
    double dy[4];
    rig_open(&r, *state, 0);
    loss_io io = {.n = 2, .values = 2, .y = LIST(1, 2, 3, 4), .target = LIST(1, 0, 3, 6), .dy = dy};
    run_loss(&r, &io);
    assert_true(io.loss == 2);
    expect("dy", dy, LIST(0, 1, 0, -1), 4);
    rig_close(&r);
}

/* Steps of one parameter; lr 0.25 throughout. */
typedef struct paper_step {
    const char *what;
    lt_optimizer_call call;
    double p, g, m, v; /* before */
    float correction1, correction2;
    double p_after, m_after, v_after;
} paper_step;

static const paper_step paper_steps[] = {
    /* p = 1 - 0.25*0.5 */
    {"sgd", {.kind = LATENT_SGD}, 1, 0.5, 0, 0, 0, 0, 0.875, 0, 0},
    /* g = 0.5 + 0.5*1 = 1 */
    {"sgd, decay", {.kind = LATENT_SGD, .decay = 0.5f}, 1, 0.5, 0, 0, 0, 0, 0.75, 0, 0},
    /* m = 0.5*0 + 1 = 1, p = 1 - 0.25;  then m = 0.5*1 + 1 = 1.5, p = 0.75 - 0.375 */
    {"momentum, first", {.kind = LATENT_SGD, .momentum = 0.5f}, 1, 1, 0, 0, 0, 0, 0.75, 1, 0},
    {"momentum, second", {.kind = LATENT_SGD, .momentum = 0.5f}, 0.75, 1, 1, 0, 0, 0, 0.375, 1.5, 0},
    /* m = 0.5*2 = 1, v = 0.25*4 = 1, corrections 1/(1-0.5) and 1/sqrt(1-0.75): p = 1 - 0.25*2/2 */
    {"adam, first", {.kind = LATENT_ADAM, .momentum = 0.5f, .beta2 = 0.75f}, 1, 2, 0, 0, 2, 2, 0.75, 1, 1},
    /* m = 0.5 + 0.5 = 1, v = 0.75 + 0.25 = 1: p = 0.75 - 0.25 * 1*2 / (1*1) */
    {"adam, later", {.kind = LATENT_ADAM, .momentum = 0.5f, .beta2 = 0.75f}, 0.75, 1, 1, 1, 2, 1, 0.25, 1, 1},
    /* p = 1 - 0.25 * 1*2 / (1*3 + 1): epsilon is outside the corrected root */
    {"adam, epsilon",
     {.kind = LATENT_ADAM, .momentum = 0.5f, .beta2 = 0.75f, .epsilon = 1},
     1,
     2,
     0,
     0,
     2,
     3,
     0.875,
     1,
     1},
    /* g = 1 + 1*1 = 2, then as the first */
    {"adam, decay",
     {.kind = LATENT_ADAM, .momentum = 0.5f, .beta2 = 0.75f, .decay = 1},
     1,
     1,
     0,
     0,
     2,
     2,
     0.75,
     1,
     1},
    /* p = 2 - 0.25*0.5*2 = 1.75, then 0.25 less; m and v do not see the decay */
    {"adamw",
     {.kind = LATENT_ADAMW, .momentum = 0.5f, .beta2 = 0.75f, .decay = 0.5f},
     2,
     2,
     0,
     0,
     2,
     2,
     1.5,
     1,
     1},
};

static void test_optimizers(void **state) {
    rig r;
    rig_open(&r, *state, 0);
    for (size_t i = 0; i < sizeof paper_steps / sizeof paper_steps[0]; i++) {
        const paper_step *s = &paper_steps[i];
        double p = s->p, g = s->g, m = s->m, v = s->v;
        block b = {1, &p, &g, &m, &v};
        lt_step step = {.lr = 0.25f, .correction1 = s->correction1, .correction2 = s->correction2};
        RIG_OK(&r, r.type->steps_begin(r.ctx, r.backend, &step, 1));
        run_optimizer(&r, s->call, &b);
        expect(s->what, (double[]){p, g, m, v}, (double[]){s->p_after, 0, s->m_after, s->v_after}, 4);
    }
    rig_close(&r);
}

/* Ten images of one byte. The shuffled orders were worked out apart, from the papers on Philox and Feistel
 * networks; they are part of what a seed means and must never change. */
static void test_gather_order(void **state) {
    static const uint8_t images[10] = {0, 10, 20, 30, 40, 50, 60, 70, 80, 90};
    static const double orders[3][10] = {
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {6, 9, 0, 4, 2, 1, 7, 8, 5, 3}, {9, 0, 1, 7, 5, 4, 8, 6, 2, 3}};
    rig r;
    rig_open(&r, *state, 0);
    lt_backend_data *data = NULL;
    RIG_OK(&r, r.type->data_load(r.ctx, r.backend, images, 10, 1, &data));
    for (int order = 0; order < 3; order++) {
        lt_step steps[2] = {{.epoch = order == 2, .first = 0, .n = 7},
                            {.epoch = order == 2, .first = 7, .n = 3}};
        double values[10], want[10];
        RIG_OK(&r, r.type->steps_begin(r.ctx, r.backend, steps, 2));
        for (int i = 0; i < 2; i++) {
            fenced x = fenced_tensor(&r, 7, NULL, 0, LT_F32);
            lt_gather_call call = {.data = data,
                                   .n = (int)steps[i].n,
                                   .limit = 10,
                                   .shuffle = order > 0,
                                   .seed = 1,
                                   .scale = 0.5f,
                                   .shift = 3,
                                   .x = fenced_at(&x)};
            RIG_OK(&r, r.type->gather(r.ctx, r.backend, &call));
            RIG_OK(&r, r.type->step_next(r.ctx, r.backend));
            fenced_values(&r, &x, "x", steps[i].n, LT_F32, values + steps[i].first);
            fenced_free(&r, &x);
        }
        for (int i = 0; i < 10; i++) {
            want[i] = orders[order][i] * 10 * 0.5 + 3;
        }
        expect("x", values, want, 10);
    }
    r.type->data_free(r.backend, data);
    rig_close(&r);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),         cmocka_unit_test(test_channels),
        cmocka_unit_test(test_even_filter),   cmocka_unit_test(test_uneven_padding),
        cmocka_unit_test(test_stride),        cmocka_unit_test(test_upsample),
        cmocka_unit_test(test_relu),          cmocka_unit_test(test_pool),
        cmocka_unit_test(test_pool_negative), cmocka_unit_test(test_pool_relu),
        cmocka_unit_test(test_nan),           cmocka_unit_test(test_mse),
        cmocka_unit_test(test_optimizers),    cmocka_unit_test(test_gather_order)};
    return run_variants(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
