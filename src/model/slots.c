/* slots.c: the tensors of a net's parameter block under their PyTorch names.
 *
 * Memory is OHWI, files are OIHW: value [o][i][h][w] of the file is value [o][h][w][i] of the block.
 */
#include "model/model.h"

#include <stdio.h>
#include <string.h>

int lt_net_slot_count(const latent_net *net) {
    int count = 0;
    for (int i = 0; i < net->op_count; i++) {
        count += (net->ops[i].weight_count > 0) + (net->ops[i].bias_count > 0);
    }
    return count;
}

static void fill(const lt_op *op, int is_weight, lt_model_slot *out) {
    memset(out, 0, sizeof *out);
    out->op = op;
    out->is_weight = is_weight;
    snprintf(out->name, sizeof out->name, "%s.%s", op->name, is_weight ? "weight" : "bias");
    out->shape[0] = op->conv.K;
    out->dims = 1;
    out->offset = op->bias;
    out->count = op->bias_count;
    if (is_weight) {
        out->dims = 4;
        out->shape[1] = op->conv.C;
        out->shape[2] = op->conv.R;
        out->shape[3] = op->conv.S;
        out->offset = op->weight;
        out->count = op->weight_count;
    }
}

void lt_net_slot(const latent_net *net, int index, lt_model_slot *out) {
    for (int i = 0; i < net->op_count; i++) {
        const lt_op *op = &net->ops[i];
        if (op->weight_count > 0 && index-- == 0) {
            fill(op, 1, out);
            return;
        }
        if (op->bias_count > 0 && index-- == 0) {
            fill(op, 0, out);
            return;
        }
    }
}

/* Calls for each weight: its place in the file and in the block, both from the tensor's start. */
static void reorder(const lt_model_slot *slot, const float *from, float *to, int to_file) {
    if (!slot->is_weight) {
        memcpy(to, from, slot->count * sizeof *to);
        return;
    }
    size_t K = (size_t)slot->shape[0], C = (size_t)slot->shape[1];
    size_t taps = (size_t)slot->shape[2] * (size_t)slot->shape[3];
    for (size_t k = 0; k < K; k++) {
        for (size_t c = 0; c < C; c++) {
            for (size_t tap = 0; tap < taps; tap++) {
                size_t file = (k * C + c) * taps + tap, block = (k * taps + tap) * C + c;
                to[to_file ? file : block] = from[to_file ? block : file];
            }
        }
    }
}

void lt_slot_to_file(const lt_model_slot *slot, const float *block, float *values) {
    reorder(slot, block + slot->offset, values, 1);
}

void lt_slot_from_file(const lt_model_slot *slot, const float *values, float *block) {
    reorder(slot, values, block + slot->offset, 0);
}
