/* plan.c: from a net to memory.
 *
 * Time is counted in op calls: op i runs forward at time i and backward at time 2*last - i + 1. A value is
 * alive from the call that writes it to the last call that reads it; lt_layout does the rest. In training,
 * the output of op i is read by its own backward (relu) and by that of op i+1, so it lives until then; its
 * gradient lives from the backward of op i+1 (or from the forward that fuses the loss) to its own.
 */
#include "net/plan.h"

#include "net/layout.h"

#include <stdlib.h>
#include <string.h>

typedef struct sizes {
    lt_item *items; /* y and dy of each op, in pairs */
    size_t values;  /* bytes of all y and dy together */
    size_t masks, persist, scratch;
} sizes;

static size_t round_up(size_t bytes) {
    return (bytes + LT_ALIGN - 1) / LT_ALIGN * LT_ALIGN;
}

static int backward_time(const lt_plan *plan, int op) {
    return 2 * plan->last - op + 1;
}

static void value_lifetimes(const lt_plan *plan, int batch, int i, lt_item *y, lt_item *dy) {
    const lt_op *op = &plan->net->ops[i];
    size_t bytes = (size_t)batch * lt_shape_count(op->out) * lt_dtype_size(plan->nodes[i].type);
    if (op->kind == LT_OP_LOSS_MSE) {
        bytes = 0;
    }
    *y = (lt_item){.bytes = bytes, .from = i, .to = i + 1};
    *dy = (lt_item){.bytes = 0};
    if (plan->training) {
        y->to = backward_time(plan, i);
        if (i > 0) {
            dy->bytes = bytes;
            dy->from = backward_time(plan, i + 1);
            if (i + 1 == plan->last) { /* the loss writes it: within op i where it is fused */
                dy->from = plan->nodes[i].fused_loss ? i : i + 1;
            }
            dy->to = backward_time(plan, i);
        }
    } else if (i == 0 && plan->net->ops[plan->last].kind == LT_OP_LOSS_MSE) {
        y->to = plan->last; /* the target */
    }
}

static void measure(const lt_plan *plan, int batch, sizes *out) {
    const latent_net *net = plan->net;
    out->masks = out->persist = out->scratch = 0;
    for (int i = 0; i <= plan->last; i++) {
        value_lifetimes(plan, batch, i, &out->items[2 * i], &out->items[2 * i + 1]);
        if (net->ops[i].kind == LT_OP_INPUT) {
            continue;
        }
        lt_op_memory memory = {0, 0, 0};
        lt_dtype x_type = plan->nodes[net->ops[i].input].type;
        plan->backend->type->op_memory(plan->backend, &net->ops[i], x_type, batch, plan->training, &memory);
        out->masks += plan->training ? round_up(memory.mask) : 0;
        out->persist += round_up(memory.persist);
        out->scratch = memory.scratch > out->scratch ? memory.scratch : out->scratch;
    }
    out->values = lt_layout(out->items, 2 * (plan->last + 1), LT_ALIGN);
    out->scratch = round_up(out->scratch);
}

static size_t total(const sizes *s) {
    return s->values + s->masks + s->persist + s->scratch;
}

static size_t param_bytes(const lt_plan *plan) {
    return plan->net->param_count * sizeof(float);
}

/* What a training takes besides: gradients, the optimizer's two moments, two batches of streamed images. */
static size_t beside(const lt_plan *plan, int batch) {
    return 3 * param_bytes(plan) + 2 * (size_t)batch * lt_shape_count(plan->net->ops[0].out);
}

/* Out of memory in training: says which batch would fit, where the backend knows what is free. A plan for
 * inference is anybody's batch: who made it tries a smaller one. */
static latent_status no_room(latent_context *ctx, lt_plan *plan, sizes *s, latent_status status) {
    const lt_backend_type *type = plan->backend->type;
    if (status != LATENT_ERROR_MEMORY || !plan->training) {
        return status;
    }
    if (!type->memory_free) {
        return lt_fail(ctx, status, "%s; a smaller batch needs less (--batch, now %d)", ctx->message,
                       plan->batch);
    }
    uint64_t room = type->memory_free(plan->backend);
    int fits = 0;
    for (int step = 1 << 16; step > 0; step /= 2) {
        if (fits + step < plan->batch) {
            measure(plan, fits + step, s);
            fits += total(s) + beside(plan, fits + step) <= room ? step : 0;
        }
    }
    if (fits == 0) {
        return lt_fail(ctx, status, "%s; not even batch 1 would fit", ctx->message);
    }
    return lt_fail(ctx, status, "%s; batch %d would fit (--batch %d)", ctx->message, fits, fits);
}

static void release(lt_plan *plan) {
    plan->backend->type->free(plan->backend, plan->grads);
    plan->backend->type->free(plan->backend, plan->block);
    plan->grads = plan->block = NULL;
}

/* The block and the gradients, or neither of them. */
static latent_status take(latent_context *ctx, lt_plan *plan, sizes *s) {
    const lt_backend_type *type = plan->backend->type;
    latent_status status = LATENT_OK;
    LT_TRY(type->alloc(ctx, plan->backend, total(s), &plan->block));
    if (plan->training) {
        LT_TRY(type->alloc(ctx, plan->backend, param_bytes(plan), (void **)&plan->grads));
    }
done:
    if (status != LATENT_OK) {
        release(plan); /* what it took is free again when the batch that fits is looked for */
        status = no_room(ctx, plan, s, status);
    }
    return status;
}

/* Hands out the block: values first, then masks, packed weights, scratch. */
static void carve(lt_plan *plan, const sizes *s) {
    const latent_net *net = plan->net;
    char *base = plan->block, *mask = base + s->values, *persist = mask + s->masks;
    for (int i = 0; i <= plan->last; i++) {
        lt_node *node = &plan->nodes[i];
        const lt_item *y = &s->items[2 * i], *dy = &s->items[2 * i + 1];
        node->y = y->bytes ? base + y->offset : NULL;
        node->dy = dy->bytes ? base + dy->offset : NULL;
        if (net->ops[i].kind == LT_OP_INPUT) {
            continue;
        }
        lt_op_memory memory = {0, 0, 0};
        lt_dtype x_type = plan->nodes[net->ops[i].input].type;
        plan->backend->type->op_memory(plan->backend, &net->ops[i], x_type, plan->batch, plan->training,
                                       &memory);
        if (plan->training && memory.mask) {
            node->mask = (uint8_t *)mask;
            mask += round_up(memory.mask);
        }
        if (memory.persist) {
            node->persist = persist;
            persist += round_up(memory.persist);
        }
    }
    plan->scratch = base + s->values + s->masks + s->persist;
}

/* Which kernel runs each op, and whether the loss is part of the last conv. */
static latent_status choose(latent_context *ctx, lt_plan *plan) {
    const latent_net *net = plan->net;
    lt_backend *backend = plan->backend;
    for (int i = 0; i <= plan->last; i++) {
        const lt_op *op = &net->ops[i];
        plan->nodes[i].type = op->kind == LT_OP_INPUT ? LT_F32 : backend->activation;
        if (op->kind == LT_OP_INPUT) {
            continue;
        }
        for (int pass = LT_FORWARD; pass <= (plan->training ? LT_BACKWARD : LT_FORWARD); pass++) {
            plan->nodes[i].variant[pass] = backend->type->op_variant(ctx, backend, op, (lt_pass)pass);
            if (!plan->nodes[i].variant[pass]) {
                return LATENT_ERROR_UNSUPPORTED;
            }
        }
        if (op->kind == LT_OP_LOSS_MSE) {
            const lt_op *before = &net->ops[op->input];
            plan->nodes[op->input].fused_loss = before->kind == LT_OP_CONV && backend->type->fuses_loss &&
                                                backend->type->fuses_loss(backend, before);
        }
    }
    return LATENT_OK;
}

latent_status lt_plan_create(latent_context *ctx, const latent_net *net, lt_backend *backend, float *params,
                             int batch, int training, int last, lt_plan **out) {
    latent_status status = LATENT_OK;
    lt_plan *plan = NULL;
    sizes s = {0};
    *out = NULL;
    LT_TRY(lt_calloc(ctx, 1, sizeof *plan, "a plan", (void **)&plan));
    plan->net = net;
    plan->backend = backend;
    plan->params = params;
    plan->batch = batch;
    plan->training = training;
    plan->last = last < 0 ? net->op_count - 1 : last;
    LT_TRY(lt_calloc(ctx, (size_t)net->op_count, sizeof *plan->nodes, "a plan", (void **)&plan->nodes));
    LT_TRY(lt_calloc(ctx, 2 * (size_t)net->op_count, sizeof *s.items, "a plan", (void **)&s.items));
    LT_TRY(choose(ctx, plan));
    measure(plan, batch, &s);
    LT_TRY(take(ctx, plan, &s));
    carve(plan, &s);
    plan->memory.activations = s.values;
    plan->memory.masks = s.masks;
    plan->memory.scratch = s.persist + s.scratch;
    if (training) {
        LT_TRY(backend->type->zero(ctx, backend, plan->grads, param_bytes(plan)));
        plan->memory.gradients = param_bytes(plan);
    }
    *out = plan;
    plan = NULL;
done:
    free(s.items);
    lt_plan_destroy(plan);
    return status;
}

void lt_plan_destroy(lt_plan *plan) {
    if (!plan) {
        return;
    }
    const lt_backend_type *type = plan->backend->type;
    for (int i = 0; i < 2; i++) {
        if (plan->graph[i]) {
            type->graph_free(plan->backend, plan->graph[i]);
        }
    }
    release(plan);
    free(plan->nodes);
    free(plan);
}
