/* checkpoint_match.c: is a checkpoint of this net?
 *
 * The tensors decide first, because a person knows them by name; then the ops, because relu, pool2, up2 and
 * stride leave no trace in a tensor's shape. Comments, spacing and the train line of the net file may differ.
 */
#include "train/checkpoint.h"

#include <stdio.h>
#include <string.h>

static void shape_text(int dims, const uint64_t *shape, char out[96]) {
    size_t used = 0;
    snprintf(out, 96, "a single value");
    for (int d = 0; d < dims && d < 4; d++) {
        used += (size_t)snprintf(out + used, 96 - used, "%s%llu", d ? "x" : "", (unsigned long long)shape[d]);
    }
}

latent_status lt_checkpoint_tensor(latent_context *ctx, const lt_checkpoint *checkpoint,
                                   const lt_model_slot *slot, const char *name, const lt_st_tensor **out) {
    const lt_st_tensor *tensor = lt_st_find(checkpoint->file, name);
    if (!tensor) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "%s: the checkpoint of another net (%s): it has no tensor %s", checkpoint->path,
                       checkpoint->config.net_name, name);
    }
    uint64_t shape[4];
    int same = tensor->dims == slot->dims;
    for (int d = 0; d < slot->dims; d++) {
        shape[d] = (uint64_t)slot->shape[d];
        same = same && tensor->shape[d] == shape[d];
    }
    if (!same) {
        char theirs[96], ours[96];
        shape_text(tensor->dims, tensor->shape, theirs);
        shape_text(slot->dims, shape, ours);
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "%s: the checkpoint of another net (%s): its tensor %s is %s, this net wants %s",
                       checkpoint->path, checkpoint->config.net_name, name, theirs, ours);
    }
    *out = tensor;
    return LATENT_OK;
}

static latent_status match_ops(latent_context *ctx, const lt_checkpoint *checkpoint, const latent_net *net) {
    latent_net *theirs = NULL;
    const char *text = checkpoint->config.net_text;
    latent_status status = latent_net_parse(ctx, text, strlen(text), checkpoint->path, &theirs);
    for (int i = 0; status == LATENT_OK && i < net->op_count; i++) {
        const lt_op *a = &net->ops[i], *b = &theirs->ops[i < theirs->op_count ? i : theirs->op_count - 1];
        if (a->kind != b->kind || a->input != b->input || strcmp(a->name, b->name) != 0 ||
            memcmp(&a->in, &b->in, sizeof a->in) != 0 || memcmp(&a->conv, &b->conv, sizeof a->conv) != 0) {
            latent_layer_info ours, other;
            latent_net_get_layer(net, i, &ours);
            latent_net_get_layer(theirs, (int)(b - theirs->ops), &other);
            status = lt_fail(
                ctx, LATENT_ERROR_ARGUMENT,
                "%s: the checkpoint of another net (%s): it has %s %s (%s) where this net has %s %s (%s)",
                checkpoint->path, checkpoint->config.net_name, other.kind, other.name, other.description,
                ours.kind, ours.name, ours.description);
        }
    }
    latent_net_destroy(theirs);
    return status;
}

static int has_slot(const latent_net *net, const char *name) {
    for (int i = 0; i < lt_net_slot_count(net); i++) {
        lt_model_slot slot;
        lt_net_slot(net, i, &slot);
        if (strcmp(slot.name, name) == 0) {
            return 1;
        }
    }
    return 0;
}

latent_status lt_checkpoint_match(latent_context *ctx, const lt_checkpoint *checkpoint,
                                  const latent_net *net) {
    latent_status status = LATENT_OK;
    for (int i = 0; i < lt_net_slot_count(net); i++) {
        lt_model_slot slot;
        lt_net_slot(net, i, &slot);
        const lt_st_tensor *tensor = NULL;
        LT_TRY(lt_checkpoint_tensor(ctx, checkpoint, &slot, slot.name, &tensor));
    }
    for (int i = 0; i < lt_st_count(checkpoint->file); i++) {
        const char *name = lt_st_at(checkpoint->file, i)->name;
        if (strncmp(name, "optimizer.", 10) != 0 && !has_slot(net, name)) {
            status = lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                             "%s: the checkpoint of another net (%s): this net has no tensor %s",
                             checkpoint->path, checkpoint->config.net_name, name);
            goto done;
        }
    }
    LT_TRY(match_ops(ctx, checkpoint, net));
done:
    return status;
}
