/* plan.h: a net made concrete for a batch size and a backend: where every tensor lives.
 *
 * Four flat blocks: parameters (the model's), gradients (training only), activations with their gradients
 * and masks, and scratch with the packed weights. Tensor i is the output of op i; tensor 0 is the input.
 * Activation gradients, and in plans for inference the activations themselves, share memory when they are
 * not alive at the same time.
 */
#ifndef LT_NET_PLAN_H
#define LT_NET_PLAN_H

#include "backend/backend.h"
#include "net/net.h"

typedef struct lt_node {    /* per op */
    void *y;                /* [b] output */
    void *dy;               /* [b] gradient of the output; NULL when not wanted */
    uint8_t *mask;          /* [b] */
    void *persist;          /* [b] */
    lt_dtype type;          /* of y and dy */
    int fused_loss;         /* the loss is computed in this op's forward */
    const char *variant[2]; /* kernel names, forward and backward */
} lt_node;

typedef struct lt_plan {
    const latent_net *net;
    lt_backend *backend;
    int batch;
    int training;
    int last;      /* the last op to run: the loss, or the latent op in plans that encode */
    float *params; /* [b] the model's; not owned */
    float *grads;  /* [b] owned; NULL without training */
    void *block;   /* [b] owned: activations, masks, packed weights, scratch */
    void *scratch; /* [b] inside block */
    lt_node *nodes;
    latent_memory_info memory;      /* gradients, activations, masks, scratch are filled */
    int eager;                      /* 1: no graphs, so that every op can be timed */
    void *graph[2];                 /* captured training step for the full and the last batch */
    lt_gather_call graph_gather[2]; /* what they fetch */
} lt_plan;

/* `last` < 0: up to and including the loss. */
latent_status lt_plan_create(latent_context *ctx, const latent_net *net, lt_backend *backend, float *params,
                             int batch, int training, int last, lt_plan **out);
void lt_plan_destroy(lt_plan *plan);

/* exec.c: walks a plan. The input must be in nodes[0].y (gather or upload put it there). */
latent_status lt_exec_prepare(latent_context *ctx, lt_plan *plan); /* after every change of the parameters */
latent_status lt_exec_forward(latent_context *ctx, lt_plan *plan, int n);
latent_status lt_exec_backward(latent_context *ctx, lt_plan *plan, int n);
/* One step: gather, then forward, backward, optimizer, prepare and step_next. Where the backend has graphs
 * the whole step is captured once and replayed; all but the gather where the data set is streamed. */
latent_status lt_exec_train_step(latent_context *ctx, lt_plan *plan, const lt_gather_call *gather,
                                 const lt_optimizer_call *optimizer);

#endif
