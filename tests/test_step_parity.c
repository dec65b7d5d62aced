/* test_step_parity.c: what surrounds the convs in a training step, on every backend: loss, gather, optimizer,
 * the step table and its losses.
 *
 * Expected values are computed here in double from the formulas of backend.h. u = 2^-24 is the rounding of
 * one fp32 operation; a chain of j of them is within j u of its terms.
 */
#include "op_step.h"

static const double u = 0x1p-24;

static void check_close(const char *what, size_t i, double got, double answer, double bound) {
    if (!(fabs(got - answer) <= bound)) {
        fail_msg("%s[%zu] is %.9g, not %.9g; off by %.3g where %.3g is allowed", what, i, got, answer,
                 fabs(got - answer), bound);
    }
}

/* ---- Loss -------------------------------------------------------------------------------------- */

static void test_loss(void **state) {
    static const size_t sizes[][2] = {{1, 1}, {1, 3}, {3, 17}, {7, 257}, {2, 3072}, {9, 3072}};
    rig r;
    rig_open(&r, *state, 0);
    int stored = r.backend->activation == LT_BF16;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        size_t count = sizes[s][0] * sizes[s][1];
        double *y = doubles(count), *target = doubles(count), *dy = doubles(count);
        draw d = {s, 0, stored};
        draw_fill(&d, 0, y, count);
        draw_fill(&d, 1, target, count);
        loss_io io = {.n = (int)sizes[s][0], .values = sizes[s][1], .y = y, .target = target, .dy = dy};
        run_loss(&r, &io);
        double answer = 0;
        for (size_t i = 0; i < count; i++) {
            double gradient = 2 * (y[i] - target[i]) / (double)count;
            answer += (y[i] - target[i]) * (y[i] - target[i]) / (double)count;
            check_close("dy", i, dy[i], gradient, (stored ? 0x1p-8 : 4 * u) * fabs(gradient));
        }
        check_close("loss", s, io.loss, answer, 8 * sqrt((double)count) * u * answer);
        double first = io.loss;
        io.dy = NULL;
        run_loss(&r, &io);
        assert_memory_equal(&io.loss, &first, sizeof first);
        free(y);
        free(target);
        free(dy);
    }
    rig_close(&r);
}

/* ---- Gather ------------------------------------------------------------------------------------ */

enum { IMAGES = 37, LIMIT = 31, BYTES = 5 * 3 * 3 };

/* Walks one epoch in batches of 7, 7, 7, 7, 3 and compares every value. */
static void gather_epoch(rig *r, const uint8_t *images, int shuffle, float scale, float shift, double slack) {
    lt_step steps[5];
    memset(steps, 0, sizeof steps);
    for (uint32_t i = 0; i < 5; i++) {
        steps[i].epoch = 4;
        steps[i].first = 7 * i;
        steps[i].n = i < 4 ? 7 : LIMIT - 28;
    }
    lt_backend_data *data = NULL;
    RIG_OK(r, r->type->data_load(r->ctx, r->backend, images, IMAGES, BYTES, &data));
    RIG_OK(r, r->type->steps_begin(r->ctx, r->backend, steps, 5));
    for (uint32_t i = 0; i < 5; i++) {
        size_t count = (size_t)steps[i].n * BYTES;
        double values[7 * BYTES];
        fenced x = fenced_tensor(r, 7 * BYTES, NULL, 0, LT_F32);
        lt_gather_call call = {.data = data,
                               .n = (int)steps[i].n,
                               .limit = LIMIT,
                               .shuffle = shuffle,
                               .seed = 99,
                               .scale = scale,
                               .shift = shift,
                               .x = fenced_at(&x)};
        RIG_OK(r, r->type->gather(r->ctx, r->backend, &call));
        RIG_OK(r, r->type->step_next(r->ctx, r->backend));
        fenced_values(r, &x, "x", count, LT_F32, values);
        for (size_t j = 0; j < count; j++) {
            uint32_t place = steps[i].first + (uint32_t)(j / BYTES);
            uint32_t image = shuffle ? lt_permute(99, 4, LIMIT, place) : place;
            double scaled = (double)images[image * BYTES + j % BYTES] * (double)scale;
            check_close("x", j, values[j], scaled + (double)shift, slack * (scaled + fabs((double)shift)));
        }
        fenced_free(r, &x);
    }
    r->type->data_free(r->backend, data);
}

static void test_gather(void **state) {
    rig r;
    rig_open(&r, *state, 0);
    uint8_t images[IMAGES * BYTES];
    for (size_t i = 0; i < sizeof images; i++) {
        images[i] = (uint8_t)lt_philox(5, LT_RNG_TEST, 0, i).v[0];
    }
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        gather_epoch(&r, images, shuffle, 1.0f / 256, -0.5f, 0); /* exact in fp32: bit for bit */
        gather_epoch(&r, images, shuffle, 1.0f / 255, 0.0f, u);
        gather_epoch(&r, images, shuffle, 1.0f / 63, -1.9f, 2 * u);
    }
    rig_close(&r);
}

/* ---- Optimizer --------------------------------------------------------------------------------- */

/* The formulas of backend.h for one value, with bounds: an error of m or v passes on into p. */
static void check_step(const lt_optimizer_call *call, const lt_step *step, const block *before,
                       const double *g, const block *after, size_t i) {
    double p = before->p[i], lr = (double)step->lr, decay = (double)call->decay,
           beta1 = (double)call->momentum;
    double beta2 = (double)call->beta2, grad = g[i], size = fabs(g[i]), bound = 0;
    if (call->kind == LATENT_ADAMW) {
        bound += 2 * u * (fabs(p) + fabs(lr * decay * p));
        p -= lr * decay * p;
    } else {
        size += fabs(decay * p);
        grad += decay * p;
    }
    if (call->kind == LATENT_SGD) {
        double m = beta1 * before->m[i] + grad, m_bound = 4 * u * (fabs(beta1 * before->m[i]) + size);
        if (call->momentum != 0) {
            check_close("m", i, after->m[i], m, m_bound);
        }
        check_close("p", i, after->p[i], p - lr * m, lr * m_bound + 2 * u * (fabs(p) + fabs(lr * m)));
        return;
    }
    double m = beta1 * before->m[i] + (1 - beta1) * grad;
    double m_bound = 5 * u * (fabs(beta1 * before->m[i]) + (1 - beta1) * size);
    double v = beta2 * before->v[i] + (1 - beta2) * grad * grad;
    double v_bound = 8 * u * (beta2 * before->v[i] + (1 - beta2) * size * size);
    check_close("m", i, after->m[i], m, m_bound);
    check_close("v", i, after->v[i], v, v_bound);
    double root = sqrt(v), below = root * (double)step->correction2 + (double)call->epsilon;
    double move = lr * m * (double)step->correction1 / below;
    /* |d move| <= |move| (dm/m + d root/root): the root halves v's relative error */
    bound += lr * m_bound * (double)step->correction1 / below;
    bound += fabs(move) * (v > 0 ? v_bound / (2 * v) : 0) + 8 * u * fabs(move) + 2 * u * fabs(p);
    check_close("p", i, after->p[i], p - move, bound);
}

static void optimize(rig *r, const lt_optimizer_call *call, size_t count) {
    block b = block_make(count, 3);
    block before = block_make(count, 3);
    double *g = doubles(count);
    lt_step steps[3];
    memset(steps, 0, sizeof steps);
    for (int t = 0; t < 3; t++) {
        steps[t].lr = 0.01f / (float)(t + 1);
        steps[t].correction1 = (float)(1 / (1 - pow((double)call->momentum, t + 1)));
        steps[t].correction2 = (float)(1 / sqrt(1 - pow((double)call->beta2, t + 1)));
    }
    RIG_OK(r, r->type->steps_begin(r->ctx, r->backend, steps, 3));
    for (uint32_t t = 0; t < 3; t++) {
        draw d = {100 + t, 0, 0};
        draw_fill(&d, t, g, count);
        memcpy(b.g, g, count * sizeof *g);
        memcpy(before.p, b.p, count * sizeof *g);
        memcpy(before.m, b.m, count * sizeof *g);
        memcpy(before.v, b.v, count * sizeof *g);
        run_optimizer(r, *call, &b);
        for (size_t i = 0; i < count; i++) {
            check_step(call, &steps[t], &before, g, &b, i);
        }
        RIG_OK(r, r->type->step_next(r->ctx, r->backend));
    }
    block_free(&b);
    block_free(&before);
    free(g);
}

static void test_optimizer(void **state) {
    static const lt_optimizer_call calls[] = {
        {.kind = LATENT_SGD},
        {.kind = LATENT_SGD, .decay = 0.01f},
        {.kind = LATENT_SGD, .momentum = 0.9f, .decay = 0.01f},
        {.kind = LATENT_ADAM, .momentum = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f},
        {.kind = LATENT_ADAM, .momentum = 0.8f, .beta2 = 0.99f, .epsilon = 1e-3f, .decay = 0.02f},
        {.kind = LATENT_ADAMW, .momentum = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f, .decay = 0.05f},
    };
    static const size_t counts[] = {1, 3, 64, 1027, 70001};
    rig r;
    rig_open(&r, *state, 0);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        for (size_t j = 0; j < sizeof counts / sizeof counts[0]; j++) {
            optimize(&r, &calls[i], counts[j]);
        }
    }
    rig_close(&r);
}

/* A gradient that is no number marks its step, wherever it stands; the first such step stays named. */
static void test_bad_gradient(void **state) {
    static const double bad_values[] = {NAN, INFINITY, -INFINITY};
    rig r;
    rig_open(&r, *state, 0);
    lt_optimizer_call call = {.kind = LATENT_SGD, .momentum = 0.9f};
    for (size_t i = 0; i < 9; i++) {
        lt_step steps[4];
        float losses[4];
        int bad = 0;
        memset(steps, 0, sizeof steps);
        RIG_OK(&r, r.type->steps_begin(r.ctx, r.backend, steps, 4));
        for (int t = 0; t < 4; t++) {
            block b = block_make(1027, 3);
            if (t >= 2) {
                b.g[(size_t[]){0, 500, 1026}[i / 3]] = bad_values[i % 3];
            }
            run_optimizer(&r, call, &b);
            RIG_OK(&r, r.type->losses_read(r.ctx, r.backend, 0, 0, losses, &bad));
            assert_int_equal(bad, t >= 2 ? 2 : -1);
            RIG_OK(&r, r.type->step_next(r.ctx, r.backend));
            block_free(&b);
        }
    }
    rig_close(&r);
}

/* ---- Losses and time --------------------------------------------------------------------------- */

static void test_losses(void **state) {
    rig r;
    rig_open(&r, *state, 0);
    lt_step steps[6];
    memset(steps, 0, sizeof steps);
    RIG_OK(&r, r.type->steps_begin(r.ctx, r.backend, steps, 6));
    double target = 0;
    for (int t = 0; t < 6; t++) { /* the loss of step t is t^2: exact in fp32 and bf16 */
        double value = t;
        fenced y = fenced_tensor(&r, 1, &value, 1, r.backend->activation);
        fenced at = fenced_tensor(&r, 1, &target, 1, LT_F32);
        lt_op op = {.kind = LT_OP_LOSS_MSE, .in = {1, 1, 1}, .out = {1, 1, 1}};
        lt_op_memory want = {0};
        r.type->op_memory(r.backend, &op, r.backend->activation, 1, 0, &want);
        fenced scratch = fenced_make(&r, want.scratch, NULL, 0);
        lt_loss_call call = {.n = 1,
                             .values = 1,
                             .y = fenced_at(&y),
                             .target = fenced_at(&at),
                             .scratch = fenced_at(&scratch)};
        RIG_OK(&r, r.type->loss_mse(r.ctx, r.backend, &call));
        RIG_OK(&r, r.type->step_next(r.ctx, r.backend));
        RIG_OK(&r, r.type->synchronize(r.ctx, r.backend));
        fenced_free(&r, &y);
        fenced_free(&r, &at);
        fenced_free(&r, &scratch);
    }
    float losses[3] = {NAN, NAN, NAN};
    int bad = 0;
    RIG_OK(&r, r.type->losses_read(r.ctx, r.backend, 2, 3, losses, &bad));
    for (int i = 0; i < 3; i++) {
        assert_true(losses[i] == (float)((i + 2) * (i + 2)));
    }
    assert_int_equal(bad, -1);
    rig_close(&r);
}

static void test_profile(void **state) {
    rig r;
    rig_open(&r, *state, 0);
    double seconds[LT_SLOT_OPS];
    void *memory = NULL;
    RIG_OK(&r, r.type->alloc(r.ctx, r.backend, 1 << 20, &memory));
    RIG_OK(&r, r.type->profile_start(r.ctx, r.backend, LT_SLOT_OPS));
    for (int i = 0; i < 4; i++) {
        RIG_OK(&r, r.type->zero(r.ctx, r.backend, memory, 1 << 20));
    }
    r.type->mark(r.backend, LT_SLOT_OTHER);
    RIG_OK(&r, r.type->profile_read(r.ctx, r.backend, seconds, LT_SLOT_OPS));
    for (int i = 0; i < LT_SLOT_OPS; i++) {
        assert_true(i == LT_SLOT_OTHER ? seconds[i] > 0 && seconds[i] < 10 : seconds[i] == 0);
    }
    r.type->free(r.backend, memory);
    rig_close(&r);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_loss),      cmocka_unit_test(test_gather),
                                       cmocka_unit_test(test_optimizer), cmocka_unit_test(test_bad_gradient),
                                       cmocka_unit_test(test_losses),    cmocka_unit_test(test_profile)};
    return run_variants(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
