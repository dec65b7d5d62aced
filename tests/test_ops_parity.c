/* test_ops_parity.c: every backend's conv against the reference, case by case (op_cases.h).
 *
 * Whole numbers must be met exactly: the best test of indexing and of ties. Other numbers must be met within
 * the derived bounds of op_oracle.h. Each backend runs behind fences and over poison (op_run.h), for fewer
 * images than its memory was planned for, twice with the same bits; where it has threads, the second time
 * with another number of them.
 */
#include "op_oracle.h"
#include "op_run.h"

/* Answers are made once and shared by all variants. [case][bf16][exact] */
static oracle *oracles[OP_CASES][2][2];

static oracle *answers(latent_context *ctx, size_t index, int bf16, int exact) {
    oracle **slot = &oracles[index][bf16][exact];
    if (!*slot) {
        *slot = oracle_make(ctx, &op_cases[index], bf16, exact, 1000 + index);
        /* A test that left everything open would pass everything. */
        if ((*slot)->open > 0.25) {
            fail_msg("%s: the bound leaves %.0f%% of the outputs open", op_cases[index].name,
                     100 * (*slot)->open);
        }
    }
    return *slot;
}

typedef struct results {
    double *y, *dx, *dw, *db;
} results;

/* dx, dw and db start from the given values. */
static results results_make(const oracle *o) {
    results out = {doubles(o->out), doubles(o->in), doubles(o->weights), doubles(o->filters)};
    memcpy(out.dx, o->dx0, o->in * sizeof(double));
    memcpy(out.dw, o->dw0, o->weights * sizeof(double));
    memcpy(out.db, o->db0, o->filters * sizeof(double));
    return out;
}

static void results_free(results *out) {
    free(out->y);
    free(out->dx);
    free(out->dw);
    free(out->db);
}

static conv_io make_io(const rig *r, const oracle *o, const results *out) {
    conv_io io = {.op = &o->op,
                  .n = o->n,
                  .batch = o->n + 2,
                  .x_type = r->backend->activation,
                  .x = o->x,
                  .w = o->w,
                  .b = o->b,
                  .dy = o->dy,
                  .y = out->y,
                  .dx = out->dx,
                  .dw = out->dw,
                  .db = o->b ? out->db : NULL};
    return io;
}

typedef struct expected {
    const char *what;
    const double *got, *answer, *start, *sum; /* start NULL: nothing was added to */
    size_t count;
    double length;
    int stored_bf16, resummed;
} expected;

static void check(const oracle *o, const expected *e) {
    for (size_t i = 0; i < e->count; i++) {
        double start = e->start ? e->start[i] : 0, answer = e->answer[i] + start, bound = 0;
        if (o->exact) {
            answer = e->stored_bf16 ? (double)bf16_round((float)answer) : answer;
        } else {
            bound = oracle_bound(o, answer, e->sum[i] + fabs(start), e->length, e->stored_bf16, e->resummed);
        }
        if (!(fabs(e->got[i] - answer) <= bound)) {
            fail_msg("%s, %s numbers: %s[%zu] is %.9g, not %.9g; off by %.3g where %.3g is allowed",
                     o->op.name, o->exact ? "whole" : "real", e->what, i, e->got[i], answer,
                     fabs(e->got[i] - answer), bound);
        }
    }
}

static void check_forward(const rig *r, const oracle *o, const conv_io *io) {
    expected y = {"y",
                  io->y,
                  o->y,
                  NULL,
                  o->y_sum,
                  o->out,
                  oracle_length_y(&o->op.conv),
                  r->backend->activation == LT_BF16,
                  o->op.conv.up2};
    check(o, &y);
}

static void check_backward(const oracle *o, const conv_io *io) {
    const lt_conv *v = &o->op.conv;
    if (!io->dy) {
        return; /* the backend only goes forward */
    }
    expected dx = {"dx",
                   io->dx,
                   o->dx,
                   io->dx_add ? o->dx0 : NULL,
                   o->dx_sum,
                   io->dx ? o->in : 0,
                   oracle_length_dx(v) + io->dx_add,
                   io->x_type == LT_BF16,
                   v->up2};
    expected dw = {"dw", io->dw, o->dw, o->dw0, o->dw_sum, o->weights, oracle_length_dw(o) + 1, 0, 0};
    expected db = {"db", io->db, o->db, o->db0, o->db_sum, io->db ? o->filters : 0, oracle_length_dw(o) + 1,
                   0,    0};
    check(o, &dx);
    check(o, &dw);
    check(o, &db);
}

/* The reference is slow: at full size it is run once, on whole numbers. */
static int too_slow(const rig *r, const op_case *test) {
    return (test->flags & FULL) && (small_only || strcmp(r->type->name, "ref") == 0);
}

static void test_whole(void **state) {
    rig r;
    rig_open(&r, *state, 0);
    for (size_t i = 0; i < OP_CASES; i++) {
        if (small_only && (op_cases[i].flags & FULL)) {
            continue;
        }
        const oracle *o = answers(r.ctx, i, r.bf16, 1);
        results out = results_make(o);
        conv_io io = make_io(&r, o, &out);
        io.dx_add = 1;
        rig_conv(&r, &io);
        check_forward(&r, o, &io);
        check_backward(o, &io);
        results_free(&out);
    }
    rig_close(&r);
}

/* The forms of a call that leave something out: no dx as for a first layer, no db, nothing backward. */
static void test_parts(void **state) {
    rig r;
    rig_open(&r, *state, 0);
    for (size_t i = 0; i < OP_CASES; i++) {
        if (too_slow(&r, &op_cases[i])) {
            continue;
        }
        const oracle *o = answers(r.ctx, i, r.bf16, 1);
        results out = results_make(o), inferred = results_make(o);
        conv_io io = make_io(&r, o, &out);
        io.x_type = LT_F32; /* as a first layer's */
        io.dx = NULL;
        io.db = NULL;
        rig_conv(&r, &io);
        check_forward(&r, o, &io);
        check_backward(o, &io);
        io = make_io(&r, o, &inferred);
        io.dy = NULL;
        io.dx = io.dw = io.db = NULL;
        rig_conv(&r, &io);
        check_forward(&r, o, &io);
        results_free(&out);
        results_free(&inferred);
    }
    rig_close(&r);
}

static void check_same(const oracle *o, const results *a, const results *b) {
    if (memcmp(a->y, b->y, o->out * sizeof(double)) != 0 ||
        memcmp(a->dx, b->dx, o->in * sizeof(double)) != 0 ||
        memcmp(a->dw, b->dw, o->weights * sizeof(double)) != 0 ||
        memcmp(a->db, b->db, o->filters * sizeof(double)) != 0) {
        fail_msg("%s: two runs differ", o->op.name);
    }
}

static void test_real(void **state) {
    rig r, second;
    rig_open(&r, *state, 1);
    rig_open(&second, *state, 3);
    for (size_t i = 0; i < OP_CASES; i++) {
        if (too_slow(&r, &op_cases[i])) {
            continue;
        }
        const oracle *o = answers(r.ctx, i, r.bf16, 0);
        results out = results_make(o), again = results_make(o);
        conv_io io = make_io(&r, o, &out);
        rig_conv(&r, &io);
        check_forward(&r, o, &io);
        check_backward(o, &io);
        io = make_io(&second, o, &again);
        rig_conv(&second, &io);
        check_same(o, &out, &again);
        results_free(&out);
        results_free(&again);
    }
    rig_close(&second);
    rig_close(&r);
}

/* The loss computed with the last conv: its value, and its gradient by y, against the reference's y.
 *   dy = 2 (y - t) / N moves by 2/N of what y may move by;  loss by mean of 2 |y - t| e + e^2. */
static void check_fused_loss(const rig *r, const oracle *o, const conv_io *io) {
    double count = (double)o->out, loss = 0, slack = 0;
    int stored = r->backend->activation == LT_BF16;
    for (size_t i = 0; i < o->out; i++) {
        double d = o->y[i] - io->target[i], sum = o->y_sum[i] + fabs(io->target[i]);
        double e = oracle_bound(o, o->y[i], sum, oracle_length_y(&o->op.conv) + 1, stored, o->op.conv.up2);
        double bound = 2 / count * e + (stored ? 0x1p-8 : 0x1p-21) * fabs(2 * d / count);
        if (!(fabs(io->loss_dy[i] - 2 * d / count) <= bound)) {
            fail_msg("%s: fused dy[%zu] is %.9g, not %.9g", o->op.name, i, io->loss_dy[i], 2 * d / count);
        }
        loss += d * d / count;
        slack += (2 * fabs(d) * e + e * e) / count;
    }
    slack += 8 * sqrt(count) * 0x1p-24 * loss;
    if (!(fabs(io->loss - loss) <= slack)) {
        fail_msg("%s: fused loss is %.9g, not %.9g", o->op.name, io->loss, loss);
    }
}

static void test_fused_loss(void **state) {
    rig r;
    rig_open(&r, *state, 0);
    int fused = 0;
    for (size_t i = 0; i < OP_CASES; i++) {
        const op_case *test = &op_cases[i];
        lt_op op;
        RIG_OK(&r, op_case_make(r.ctx, test, &op));
        if (too_slow(&r, test) || !r.type->fuses_loss(r.backend, &op)) {
            continue;
        }
        fused++;
        const oracle *o = answers(r.ctx, i, r.bf16, 0);
        results out = results_make(o);
        double *target = doubles(o->out), *loss_dy = doubles(o->out);
        draw d = {77 + i, 0, 0};
        draw_fill(&d, 0, target, o->out);
        lt_step step = {.n = (uint32_t)o->n};
        RIG_OK(&r, r.type->steps_begin(r.ctx, r.backend, &step, 1));
        conv_io io = make_io(&r, o, &out);
        io.dy = NULL;
        io.dx = io.dw = io.db = NULL;
        io.target = target;
        io.loss_dy = loss_dy;
        rig_conv(&r, &io);
        check_forward(&r, o, &io);
        check_fused_loss(&r, o, &io);
        free(target);
        free(loss_dy);
        results_free(&out);
    }
    rig_close(&r);
    if (!fused) {
        skip(); /* the backend fuses none of them */
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_whole), cmocka_unit_test(test_parts),
                                       cmocka_unit_test(test_real), cmocka_unit_test(test_fused_loss)};
    int result = run_variants(argc, argv, tests, sizeof tests / sizeof tests[0]);
    for (size_t i = 0; i < OP_CASES; i++) {
        for (int j = 0; j < 4; j++) {
            oracle_free(oracles[i][j / 2][j % 2]);
        }
    }
    return result;
}
