/* op_step.h: runs the loss and the optimizer of any backend through the contract, for tests (see op_run.h).
 */
#ifndef OP_STEP_H
#define OP_STEP_H

#include "op_run.h"

typedef struct loss_io {
    int n;
    size_t values;
    const double *y, *target;
    double *dy; /* NULL: not wanted */
    double loss;
} loss_io;

static inline void run_loss(rig *r, loss_io *io) {
    size_t count = (size_t)io->n * io->values;
    lt_dtype type = r->backend->activation;
    lt_op op = {.kind = LT_OP_LOSS_MSE,
                .name = "loss",
                .in = {1, 1, (int)io->values},
                .out = {1, 1, (int)io->values}};
    lt_op_memory want = {0};
    r->type->op_memory(r->backend, &op, type, io->n, io->dy != NULL, &want);
    fenced y = fenced_tensor(r, count, io->y, count, type);
    fenced target = fenced_tensor(r, count, io->target, count, LT_F32);
    fenced dy = fenced_tensor(r, io->dy ? count : 0, NULL, 0, type);
    fenced scratch = fenced_make(r, want.scratch, NULL, 0);
    lt_loss_call call = {.n = io->n,
                         .values = io->values,
                         .y = fenced_at(&y),
                         .target = fenced_at(&target),
                         .dy = fenced_at(&dy),
                         .scratch = fenced_at(&scratch)};
    lt_step step = {.n = (uint32_t)io->n};
    RIG_OK(r, r->type->steps_begin(r->ctx, r->backend, &step, 1));
    RIG_OK(r, r->type->loss_mse(r->ctx, r->backend, &call));
    float loss = NAN;
    int bad = 0;
    RIG_OK(r, r->type->losses_read(r->ctx, r->backend, 0, 1, &loss, &bad));
    assert_int_equal(bad, -1);
    io->loss = (double)loss;
    if (io->dy) {
        fenced_values(r, &dy, "dy", count, type, io->dy);
    }
    fenced_read(r, &scratch, "scratch", scratch.bytes);
    fenced_free(r, &y);
    fenced_free(r, &target);
    fenced_free(r, &dy);
    fenced_free(r, &scratch);
}

typedef struct block { /* of parameters, and the state that goes with it */
    size_t count;
    double *p, *g, *m, *v;
} block;

static inline block block_make(size_t count, uint64_t seed) {
    block b = {count, doubles(count), doubles(count), doubles(count), doubles(count)};
    draw d = {seed, 0, 0};
    draw_fill(&d, 0, b.p, count);
    return b;
}

static inline void block_free(block *b) {
    free(b->p);
    free(b->g);
    free(b->m);
    free(b->v);
}

/* One step on the backend, from the block's values to its new ones; the gradient must come back zero. */
static inline void run_optimizer(rig *r, lt_optimizer_call call, block *b) {
    fenced p = fenced_tensor(r, b->count, b->p, b->count, LT_F32);
    fenced g = fenced_tensor(r, b->count, b->g, b->count, LT_F32);
    fenced m = fenced_tensor(r, b->count, b->m, b->count, LT_F32);
    fenced v = fenced_tensor(r, call.kind == LATENT_SGD ? 0 : b->count, b->v, b->count, LT_F32);
    call.params = fenced_at(&p);
    call.grads = fenced_at(&g);
    call.m = fenced_at(&m);
    call.v = fenced_at(&v);
    call.count = b->count;
    RIG_OK(r, r->type->optimizer(r->ctx, r->backend, &call));
    fenced_values(r, &p, "p", b->count, LT_F32, b->p);
    fenced_values(r, &g, "g", b->count, LT_F32, b->g);
    fenced_values(r, &m, "m", b->count, LT_F32, b->m);
    if (v.bytes) {
        fenced_values(r, &v, "v", b->count, LT_F32, b->v);
    }
    for (size_t i = 0; i < b->count; i++) {
        assert_true(b->g[i] == 0);
    }
    fenced_free(r, &p);
    fenced_free(r, &g);
    fenced_free(r, &m);
    fenced_free(r, &v);
}

#endif
