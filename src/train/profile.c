/* profile.c: where the time of a step goes, told op by op.
 *
 * Arithmetic is counted as what the op needs at least: an upsample before a 3x3 conv is a 4x4 transposed
 * conv of stride 2, 16 products in place of 36. A pass backward is two convs, or one for the first op, whose
 * input wants no gradient.
 */
#include "train/trainer.h"

/* Multiply-adds of one image's pass, times two. */
static double pass_flops(const lt_op *op, lt_pass pass, int wants_dx) {
    const lt_conv *conv = &op->conv;
    double flops = 2.0 * (double)op->macs;
    if (conv->up2 && conv->R == 3 && conv->S == 3 && conv->stride == 1) {
        flops *= 16.0 / 36.0;
    }
    return pass == LT_FORWARD ? flops : flops * (wants_dx ? 2 : 1);
}

double lt_net_flops(const latent_net *net) {
    double flops = 0;
    for (int i = 0; i < net->op_count; i++) {
        if (net->ops[i].kind == LT_OP_CONV) {
            flops += pass_flops(&net->ops[i], LT_FORWARD, 1);
            flops += pass_flops(&net->ops[i], LT_BACKWARD, net->ops[i].input > 0);
        }
    }
    return flops;
}

void lt_trainer_tell_times(const lt_trainer *t, const double *slots, int steps, double images,
                           latent_op_time_fn each, void *user) {
    static const char *const names[LT_SLOT_OPS] = {"gather", "loss", "optimizer", "prepare", "other"};
    for (int i = 1; i < t->net->op_count; i++) {
        const lt_op *op = &t->net->ops[i];
        if (op->kind != LT_OP_CONV) {
            continue;
        }
        for (int pass = LT_FORWARD; pass <= LT_BACKWARD; pass++) {
            latent_op_time time = {.name = op->name, .pass = pass == LT_FORWARD ? "forward" : "backward"};
            time.kernel = t->plan->nodes[i].variant[pass];
            time.seconds = slots[lt_slot(i, (lt_pass)pass)] / steps;
            time.flops = pass_flops(op, (lt_pass)pass, op->input > 0) * images / steps;
            each(user, &time);
        }
    }
    for (int slot = 0; slot < LT_SLOT_OPS; slot++) {
        latent_op_time time = {.name = names[slot], .pass = "", .kernel = ""};
        time.seconds = slots[slot] / steps;
        each(user, &time);
    }
}
