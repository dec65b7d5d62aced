/* exec.c: walks a plan, op by op, and says to the backend what to compute where.
 *
 * Nothing here knows how an op is computed, and nothing here waits: the calls are handed over in order and
 * the backend keeps that order.
 */
#include "net/plan.h"

static lt_conv_call conv_call(const lt_plan *plan, int i, int n) {
    const lt_op *op = &plan->net->ops[i];
    const lt_node *node = &plan->nodes[i], *before = &plan->nodes[op->input];
    lt_conv_call call = {0};
    call.conv = &op->conv;
    call.name = op->name;
    call.n = n;
    call.x_type = before->type;
    call.x = before->y;
    call.w = plan->params + op->weight;
    call.b = op->bias_count ? plan->params + op->bias : NULL;
    call.y = node->y;
    call.mask = node->mask;
    call.persist = node->persist;
    call.scratch = plan->scratch;
    if (plan->training) {
        call.dy = node->dy;
        call.dx = before->dy; /* NULL for the input: nobody wants its gradient */
        call.dw = plan->grads + op->weight;
        call.db = op->bias_count ? plan->grads + op->bias : NULL;
    }
    return call;
}

static lt_loss_call loss_call(const lt_plan *plan, int predicted, int n) {
    lt_loss_call call = {0};
    call.n = n;
    call.values = lt_shape_count(plan->net->ops[predicted].out);
    call.y = plan->nodes[predicted].y;
    call.target = plan->nodes[0].y;
    call.dy = plan->nodes[predicted].dy;
    call.scratch = plan->scratch;
    return call;
}

latent_status lt_exec_prepare(latent_context *ctx, lt_plan *plan) {
    const lt_backend_type *type = plan->backend->type;
    latent_status status = LATENT_OK;
    for (int i = 0; i <= plan->last; i++) {
        if (plan->net->ops[i].kind == LT_OP_CONV && plan->nodes[i].persist) {
            lt_conv_call call = conv_call(plan, i, plan->batch);
            LT_TRY(type->conv_prepare(ctx, plan->backend, &call));
        }
    }
    type->mark(plan->backend, LT_SLOT_PREPARE);
done:
    return status;
}

latent_status lt_exec_forward(latent_context *ctx, lt_plan *plan, int n) {
    const lt_backend_type *type = plan->backend->type;
    latent_status status = LATENT_OK;
    for (int i = 1; i <= plan->last; i++) {
        const lt_op *op = &plan->net->ops[i];
        if (op->kind == LT_OP_CONV) {
            lt_conv_call call = conv_call(plan, i, n);
            lt_loss_call loss = loss_call(plan, i, n);
            call.loss = plan->nodes[i].fused_loss ? &loss : NULL;
            LT_TRY(type->conv_forward(ctx, plan->backend, &call));
            type->mark(plan->backend, lt_slot(i, LT_FORWARD));
        } else if (op->kind == LT_OP_LOSS_MSE && !plan->nodes[op->input].fused_loss) {
            lt_loss_call loss = loss_call(plan, op->input, n);
            LT_TRY(type->loss_mse(ctx, plan->backend, &loss));
            type->mark(plan->backend, LT_SLOT_LOSS);
        }
    }
done:
    return status;
}

latent_status lt_exec_backward(latent_context *ctx, lt_plan *plan, int n) {
    const lt_backend_type *type = plan->backend->type;
    latent_status status = LATENT_OK;
    for (int i = plan->last; i > 0; i--) {
        if (plan->net->ops[i].kind == LT_OP_CONV) {
            lt_conv_call call = conv_call(plan, i, n);
            LT_TRY(type->conv_backward(ctx, plan->backend, &call));
            type->mark(plan->backend, lt_slot(i, LT_BACKWARD));
        }
    }
done:
    return status;
}

static latent_status fetch(latent_context *ctx, lt_plan *plan, const lt_gather_call *gather) {
    latent_status status = plan->backend->type->gather(ctx, plan->backend, gather);
    plan->backend->type->mark(plan->backend, LT_SLOT_GATHER);
    return status;
}

static latent_status compute(latent_context *ctx, lt_plan *plan, int n, const lt_optimizer_call *optimizer) {
    const lt_backend_type *type = plan->backend->type;
    latent_status status = LATENT_OK;
    LT_TRY(lt_exec_forward(ctx, plan, n));
    LT_TRY(lt_exec_backward(ctx, plan, n));
    LT_TRY(type->optimizer(ctx, plan->backend, optimizer));
    type->mark(plan->backend, LT_SLOT_OPTIMIZER);
    LT_TRY(lt_exec_prepare(ctx, plan));
    LT_TRY(type->step_next(ctx, plan->backend));
done:
    return status;
}

/* Does the host have a part in every gather? Then a graph begins after it. */
static int streams(const lt_plan *plan, const lt_gather_call *gather) {
    const lt_backend_type *type = plan->backend->type;
    return type->data_streams && type->data_streams(gather->data);
}

static int same_gather(const lt_gather_call *a, const lt_gather_call *b) {
    return a->data == b->data && a->n == b->n && a->limit == b->limit && a->shuffle == b->shuffle &&
           a->seed == b->seed && a->scale == b->scale && a->shift == b->shift && a->mirror == b->mirror &&
           a->width == b->width && a->channels == b->channels && a->x == b->x;
}

/* The place of the graph of such a step, or -1 when both places hold others. */
static int graph_place(const lt_plan *plan, const lt_gather_call *gather) {
    for (int i = 0; i < 2; i++) {
        if (!plan->graph[i] || same_gather(&plan->graph_gather[i], gather)) {
            return i;
        }
    }
    return -1;
}

static latent_status capture(latent_context *ctx, lt_plan *plan, int place, const lt_gather_call *gather,
                             const lt_optimizer_call *optimizer) {
    const lt_backend_type *type = plan->backend->type;
    latent_status status = type->graph_begin(ctx, plan->backend);
    if (status != LATENT_OK) {
        return status;
    }
    latent_status computed = streams(plan, gather) ? LATENT_OK : fetch(ctx, plan, gather);
    computed = computed == LATENT_OK ? compute(ctx, plan, gather->n, optimizer) : computed;
    void *graph = NULL;
    if (computed == LATENT_OK) {
        status = type->graph_end(ctx, plan->backend, &graph);
    } else { /* the capture must end either way; the first failure is the one to tell */
        char message[LT_MESSAGE_MAX];
        for (int i = 0; i < LT_MESSAGE_MAX; i++) {
            message[i] = ctx->message[i];
        }
        (void)type->graph_end(ctx, plan->backend, &graph);
        status = lt_fail(ctx, computed, "%s", message);
    }
    if (status == LATENT_OK) {
        plan->graph[place] = graph;
        plan->graph_gather[place] = *gather;
    } else if (graph) {
        type->graph_free(plan->backend, graph);
    }
    return status;
}

latent_status lt_exec_train_step(latent_context *ctx, lt_plan *plan, const lt_gather_call *gather,
                                 const lt_optimizer_call *optimizer) {
    const lt_backend_type *type = plan->backend->type;
    latent_status status = LATENT_OK;
    int place = type->graph_begin && !plan->eager ? graph_place(plan, gather) : -1;
    if (place < 0 || streams(plan, gather)) {
        LT_TRY(fetch(ctx, plan, gather));
    }
    if (place < 0) {
        LT_TRY(compute(ctx, plan, gather->n, optimizer));
        goto done;
    }
    if (!plan->graph[place]) {
        LT_TRY(capture(ctx, plan, place, gather, optimizer));
    }
    LT_TRY(type->graph_launch(ctx, plan->backend, plan->graph[place]));
done:
    return status;
}
