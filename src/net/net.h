/* net.h: a net file in memory: its ops in order, with shapes and places in the parameter block.
 *
 * ops[0] is the input; the last op is the loss. Offsets of parameters are multiples of LT_PARAM_ALIGN
 * floats, so that every tensor starts on a 256-byte boundary of the flat block; the gap is zero and stays
 * zero under every optimizer.
 */
#ifndef LT_NET_NET_H
#define LT_NET_NET_H

#include "base/status.h"
#include "net/op.h"

enum { LT_PARAM_ALIGN = 64, LT_OPS_MAX = 256 };

struct latent_net {
    char *name;
    char *text;
    lt_op *ops;
    int op_count;
    int latent;          /* index of the op whose output is the latent tensor; -1: none */
    size_t param_count;  /* floats in the parameter block, gaps included */
    uint64_t parameters; /* real parameters */
    latent_recipe recipe;
};

/* shape.c: fills op->conv's derived sizes, op->out, op->macs and the parameter counts from op->in and the
 * attributes. `where` is "file:line" for the message. */
latent_status lt_shape_conv(latent_context *ctx, const char *where, lt_op *op);

/* init.c: He initialization of the whole block, N(0, 2 / (C*R*S)), Box-Muller over counted randomness. */
void lt_net_init(const latent_net *net, uint64_t seed, float *params);

#endif
