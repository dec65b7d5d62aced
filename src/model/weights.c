/* weights.c: reading and writing weights.
 *
 * Whatever the format, a file becomes a list of named tensors in PyTorch's order; it fits a net when names
 * and shapes agree one to one, and the first that does not is named.
 */
#include "model/weights.h"

#include "base/file.h"
#include "io/ae2024.h"
#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int has_ae2024_magic(const char *path) {
    unsigned char head[4] = {0};
    FILE *file = fopen(path, "rb");
    if (!file) {
        return 0;
    }
    size_t got = fread(head, 1, sizeof head, file);
    fclose(file);
    return got == sizeof head && memcmp(head, "\x24\x20\xAE\x00", 4) == 0;
}

static latent_status read_ae2024(latent_context *ctx, lt_weights *weights) {
    static const char *const names[2 * LT_AE2024_LAYERS] = {
        "enc_conv1.weight", "enc_conv1.bias",   "enc_conv2.weight", "enc_conv2.bias",   "dec_conv1.weight",
        "dec_conv1.bias",   "dec_conv2.weight", "dec_conv2.bias",   "dec_conv3.weight", "dec_conv3.bias"};
    latent_status status = LATENT_OK;
    LT_TRY(
        lt_alloc(ctx, LT_AE2024_FLOATS * sizeof *weights->values, "the weights", (void **)&weights->values));
    LT_TRY(lt_ae2024_read(ctx, weights->path, weights->values));
    weights->count = 2 * LT_AE2024_LAYERS;
    LT_TRY(lt_calloc(ctx, (size_t)weights->count, sizeof *weights->tensors, "tensors",
                     (void **)&weights->tensors));
    for (int i = 0; i < LT_AE2024_LAYERS; i++) {
        const lt_ae2024_layer *layer = &lt_ae2024_layers[i];
        uint64_t out = (uint64_t)layer->out, in = (uint64_t)layer->in;
        weights->tensors[2 * i] = (lt_st_tensor){.name = names[2 * i],
                                                 .type = LT_ST_F32,
                                                 .dims = 4,
                                                 .shape = {out, in, 3, 3},
                                                 .count = out * in * 9,
                                                 .data = weights->values + layer->weight};
        weights->tensors[2 * i + 1] = (lt_st_tensor){.name = names[2 * i + 1],
                                                     .type = LT_ST_F32,
                                                     .dims = 1,
                                                     .shape = {out},
                                                     .count = out,
                                                     .data = weights->values + layer->bias};
    }
done:
    return status;
}

/* The file that `path` means. */
static latent_status resolve(latent_context *ctx, const char *path, char **out) {
    static const char *const names[] = {"model.safetensors", "checkpoint.safetensors"};
    if (!lt_folder_exists(path)) {
        return lt_strdup(ctx, path, out);
    }
    for (int i = 0; i < 2; i++) {
        latent_status status = lt_path_join(ctx, path, names[i], out);
        if (status != LATENT_OK || lt_file_exists(*out)) {
            return status;
        }
        free(*out);
        *out = NULL;
    }
    return lt_fail(ctx, LATENT_ERROR_IO,
                   "%s: no run here: there is neither model.safetensors nor checkpoint.safetensors", path);
}

latent_status lt_weights_open(latent_context *ctx, const char *path, lt_weights *out) {
    latent_status status = LATENT_OK;
    LT_TRY(resolve(ctx, path, &out->path));
    if (has_ae2024_magic(out->path)) {
        LT_TRY(read_ae2024(ctx, out));
        goto done;
    }
    LT_TRY(lt_st_read(ctx, out->path, &out->file));
    out->count = lt_st_count(out->file);
    LT_TRY(lt_calloc(ctx, (size_t)out->count, sizeof *out->tensors, "tensors", (void **)&out->tensors));
    for (int i = 0; i < out->count; i++) {
        out->tensors[i] = *lt_st_at(out->file, i);
    }
done:
    if (status != LATENT_OK) {
        lt_weights_close(out);
    }
    return status;
}

latent_status lt_weights_open_ae2024(latent_context *ctx, const char *path, lt_weights *out) {
    latent_status status = LATENT_OK;
    LT_TRY(lt_strdup(ctx, path, &out->path));
    LT_TRY(read_ae2024(ctx, out));
done:
    if (status != LATENT_OK) {
        lt_weights_close(out);
    }
    return status;
}

void lt_weights_close(lt_weights *weights) {
    free(weights->path);
    free(weights->values);
    free(weights->tensors);
    lt_st_destroy(weights->file);
    memset(weights, 0, sizeof *weights);
}

const lt_st_tensor *lt_weights_find(const lt_weights *weights, const char *name) {
    for (int i = 0; i < weights->count; i++) {
        if (strcmp(weights->tensors[i].name, name) == 0) {
            return &weights->tensors[i];
        }
    }
    return NULL;
}

latent_status lt_weights_net(latent_context *ctx, const lt_weights *weights, latent_net **out) {
    if (!weights->file) {
        return latent_net_load(ctx, "autoencoder", out);
    }
    const char *text = lt_st_metadata(weights->file, "net"), *name = lt_st_metadata(weights->file, "name");
    if (!text) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: the file does not say which net it is for; name one with --net", weights->path);
    }
    return latent_net_parse(ctx, text, strlen(text), name ? name : weights->path, out);
}

static void shape_text(char *out, size_t size, int dims, const uint64_t *shape) {
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < dims && used < size; i++) {
        used +=
            (size_t)snprintf(out + used, size - used, "%s%llu", i ? "x" : "", (unsigned long long)shape[i]);
    }
}

static latent_status place_slot(latent_context *ctx, const lt_weights *weights, const latent_net *net,
                                const lt_model_slot *slot, float *params) {
    const lt_st_tensor *tensor = lt_weights_find(weights, slot->name);
    if (!tensor) {
        return lt_fail(ctx, LATENT_ERROR_FORMAT,
                       "%s: tensor '%s' of the net '%s' is missing; the file is of another net",
                       weights->path, slot->name, net->name);
    }
    uint64_t shape[4];
    int same = tensor->dims == slot->dims;
    for (int i = 0; i < slot->dims; i++) {
        shape[i] = (uint64_t)slot->shape[i];
        same = same && tensor->shape[i] == shape[i];
    }
    if (!same) {
        char is[128], want[128];
        shape_text(is, sizeof is, tensor->dims, tensor->shape);
        shape_text(want, sizeof want, slot->dims, shape);
        return lt_fail(ctx, LATENT_ERROR_FORMAT, "%s: tensor '%s' is %s, but the net '%s' wants %s",
                       weights->path, slot->name, is, net->name, want);
    }
    float *values = NULL;
    latent_status status = lt_alloc(ctx, slot->count * sizeof *values, "a tensor", (void **)&values);
    if (status == LATENT_OK) {
        for (size_t i = 0; i < slot->count; i++) {
            values[i] = (float)lt_st_value(tensor, i);
        }
        lt_slot_from_file(slot, values, params);
        free(values);
    }
    return status;
}

latent_status lt_weights_place(latent_context *ctx, const lt_weights *weights, const latent_net *net,
                               float *params) {
    latent_status status = LATENT_OK;
    int slots = lt_net_slot_count(net), others = 0;
    for (int i = 0; i < slots; i++) {
        lt_model_slot slot;
        lt_net_slot(net, i, &slot);
        LT_TRY(place_slot(ctx, weights, net, &slot, params));
    }
    for (int i = 0; i < weights->count; i++) {
        others += strncmp(weights->tensors[i].name, "optimizer.", 10) == 0;
    }
    if (weights->count != slots + others) {
        status = lt_fail(ctx, LATENT_ERROR_FORMAT,
                         "%s: %d tensors, but the net '%s' has %d; the file is of another net", weights->path,
                         weights->count - others, net->name, slots);
    }
done:
    return status;
}

latent_status lt_weights_write(latent_context *ctx, const char *path, const latent_net *net,
                               const float *params) {
    latent_status status = LATENT_OK;
    int count = lt_net_slot_count(net);
    lt_model_slot *slots = NULL;
    lt_st_tensor *tensors = NULL;
    float *values = NULL, *at = NULL;
    LT_TRY(lt_calloc(ctx, (size_t)count, sizeof *slots, "tensors", (void **)&slots));
    LT_TRY(lt_calloc(ctx, (size_t)count, sizeof *tensors, "tensors", (void **)&tensors));
    LT_TRY(lt_alloc(ctx, net->param_count * sizeof *values, "the weights", (void **)&values));
    at = values;
    for (int i = 0; i < count; i++) {
        lt_net_slot(net, i, &slots[i]);
        lt_slot_to_file(&slots[i], params, at);
        tensors[i].name = slots[i].name;
        tensors[i].type = LT_ST_F32;
        tensors[i].dims = slots[i].dims;
        for (int d = 0; d < slots[i].dims; d++) {
            tensors[i].shape[d] = (uint64_t)slots[i].shape[d];
        }
        tensors[i].count = slots[i].count;
        tensors[i].data = at;
        at += slots[i].count;
    }
    const lt_st_pair metadata[] = {{"format", "pt"}, {"name", net->name}, {"net", net->text}};
    LT_TRY(lt_st_write(ctx, path, tensors, count, metadata, 3));
done:
    free(slots);
    free(tensors);
    free(values);
    return status;
}
