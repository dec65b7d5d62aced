/* profile.c: where the time of a step goes, told op by op.
 *
 * Arithmetic is counted as what the op needs at least: an upsample before a 3x3 conv is a 4x4 transposed
 * conv of stride 2, 16 products in place of 36. A pass backward is two convs, or one for the first op, whose
 * input wants no gradient.
 */
#include "train/trainer.h"

#include <string.h>

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

/* The kind of work of a kernel that has a name of its own; NULL: that of its op. */
static const char *kind_of_kernel(const char *kernel) {
    static const char *const kinds[][2] = {
        {"relu", "activation"}, {"finish", "activation"},   {"expand", "activation"},
        {"pool", "pooling"},    {"upsample", "upsampling"}, {"gather", "copies"},
        {"loss", "loss"},       {"optimizer", "optimizer"}, {"step_next", "other"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strncmp(kernel, kinds[i][0], strlen(kinds[i][0])) == 0) {
            return kinds[i][1];
        }
    }
    return NULL;
}

/* What a slot is called. Returns 0 for slots that no op uses. */
static int describe(const lt_trainer *t, int slot, double images, latent_op_time *out) {
    static const char *const names[LT_SLOT_OPS] = {"gather", "loss", "optimizer", "prepare", "other"};
    static const char *const kinds[LT_SLOT_OPS] = {"copies", "loss", "optimizer", "optimizer", "other"};
    *out = (latent_op_time){.pass = "", .kernel = ""};
    if (slot < LT_SLOT_OPS) {
        out->name = names[slot];
        out->kind = kinds[slot];
        return 1;
    }
    int i = (slot - LT_SLOT_OPS) / 2;
    lt_pass pass = (slot - LT_SLOT_OPS) % 2 ? LT_BACKWARD : LT_FORWARD;
    const lt_op *op = &t->net->ops[i];
    out->name = op->name;
    out->pass = pass == LT_FORWARD ? "forward" : "backward";
    out->kind = pass == LT_FORWARD ? "convolution forward" : "convolution backward";
    out->kernel = t->plan->nodes[i].variant[pass];
    out->flops = op->kind == LT_OP_CONV ? pass_flops(op, pass, op->input > 0) * images : 0;
    return op->kind == LT_OP_CONV;
}

/* Kernel `nth` of a slot, where the backend timed them one by one; 0: there is none. */
static int kernel_of(const lt_trainer *t, int slot, int nth, const char **name, double *seconds) {
    int of = 0;
    for (int i = 0; t->type->kernel_time; i++) {
        *name = t->type->kernel_time(t->backend, i, &of, seconds);
        if (!*name) {
            break;
        }
        if (of == slot && nth-- == 0) {
            return 1;
        }
    }
    return 0;
}

/* The row of the op, and a row for each of its kernels if there are several. */
static void tell_slot(const lt_trainer *t, int slot, double all, int steps, const latent_op_time *op,
                      latent_op_time_fn each, void *user) {
    latent_op_time row = *op;
    const char *name = "", *kind = NULL;
    double seconds = 0, rest = all;
    while (kernel_of(t, slot, row.parts, &name, &seconds)) {
        row.parts++;
        rest -= seconds;
    }
    int more = row.parts > 1 && rest > 1e-3 * all; /* of kernels that are too many to be told apart */
    if (row.parts == 1 && kernel_of(t, slot, 0, &name, &seconds)) {
        kind = kind_of_kernel(name);
        row.kind = kind ? kind : row.kind;
        row.kernel = *row.kernel ? row.kernel : name;
        row.parts = 0;
    }
    int parts = row.parts;
    row.parts += more;
    row.seconds = all / steps;
    each(user, &row);
    for (int i = 0; i < parts + more; i++) {
        latent_op_time part = *op;
        if (i == parts || !kernel_of(t, slot, i, &name, &seconds)) {
            name = "other kernels";
            seconds = rest;
        }
        kind = kind_of_kernel(name);
        part.kernel = *name ? name : op->kernel;
        part.kind = kind ? kind : op->kind;
        part.flops = 0; /* of the op, not of one of its kernels */
        part.seconds = seconds / steps;
        each(user, &part);
    }
}

void lt_trainer_tell_times(const lt_trainer *t, const double *slots, int steps, double images,
                           latent_op_time_fn each, void *user) {
    for (int slot = 0; slot < LT_SLOT_OPS + 2 * t->net->op_count; slot++) {
        latent_op_time time;
        if (describe(t, slot, images / steps, &time)) {
            tell_slot(t, slot, slots[slot], steps, &time, each, user);
        }
    }
}
