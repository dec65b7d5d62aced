/* checkpoint.c: checkpoint.safetensors.
 *
 * Tensors, all F32 in PyTorch's names and order: the weights under their own names, the optimizer's moments
 * under "optimizer.m." and "optimizer.v." before them (without momentum there are none). Metadata:
 *     format      "latent-checkpoint 1"
 *     name, net   the net's name and its file
 *     config      config.json: recipe, seed, subset, data
 *     state       JSON: epoch, step within it, and the sums that its line of metrics.jsonl continues
 *     md5         of config, state and the tensors' bytes in file order: safetensors has no checksum of its
 * own, and a flipped bit in a weight would train on unnoticed The file is replaced atomically, so there is
 * always a whole one.
 */
#include "train/checkpoint.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "latent-checkpoint 1"

static const char *const prefixes[] = {"", "optimizer.m.", "optimizer.v."};

enum { NAME_MAX_LENGTH = 128 };

static void part_name(lt_checkpoint_part part, const lt_model_slot *slot, char name[NAME_MAX_LENGTH]) {
    snprintf(name, NAME_MAX_LENGTH, "%s%s", prefixes[part], slot->name);
}

/* ---- Writing ----------------------------------------------------------------------------------- */

static latent_status state_text(latent_context *ctx, const lt_train_state *state, char **out) {
    const char *const keys[] = {"loss_sum", "seconds", "forward", "backward", "optimizer"};
    const double values[] = {state->loss_sum, state->seconds, state->forward, state->backward,
                             state->optimizer};
    lt_json_writer w;
    memset(&w, 0, sizeof w);
    lt_json_begin_object(&w);
    lt_json_key(&w, "epoch");
    lt_json_integer(&w, state->epoch);
    lt_json_key(&w, "step");
    lt_json_integer(&w, state->step);
    for (int i = 0; i < 5; i++) {
        lt_json_key(&w, keys[i]);
        lt_json_number(&w, values[i]);
    }
    lt_json_end_object(&w);
    latent_status status = lt_json_finish(ctx, &w);
    *out = w.text;
    return status;
}

enum { TEXTS = 5 };
static const char *const text_keys[TEXTS] = {"format", "name", "net", "config", "state"};

static void digest(const char *const texts[TEXTS], const lt_st_tensor *const *tensors, int count,
                   char hex[33]) {
    lt_md5 md5;
    lt_md5_init(&md5);
    for (int i = 0; i < TEXTS; i++) {
        lt_md5_update(&md5, texts[i], strlen(texts[i]) + 1);
    }
    for (int i = 0; i < count; i++) {
        lt_md5_update(&md5, tensors[i]->name, strlen(tensors[i]->name) + 1);
        lt_md5_update(&md5, tensors[i]->shape, (size_t)tensors[i]->dims * sizeof tensors[i]->shape[0]);
        lt_md5_update(&md5, tensors[i]->data, (size_t)tensors[i]->count * sizeof(float));
    }
    lt_md5_final(&md5, hex);
}

/* The tensors of a checkpoint in file order, with the memory they point into. */
typedef struct listing {
    int count;
    lt_st_tensor *tensors;
    const lt_st_tensor **order;
    char (*names)[NAME_MAX_LENGTH];
    float *values;
} listing;

static void listing_free(listing *list) {
    free(list->tensors);
    free(list->order);
    free(list->names);
    free(list->values);
}

static latent_status listing_make(latent_context *ctx, const latent_net *net, const float *const blocks[3],
                                  listing *out) {
    latent_status status = LATENT_OK;
    int slots = lt_net_slot_count(net), parts = 1 + (blocks[1] != NULL) + (blocks[2] != NULL);
    size_t most = (size_t)slots * (size_t)parts;
    const char *what = "a checkpoint";
    memset(out, 0, sizeof *out);
    LT_TRY(lt_calloc(ctx, most, sizeof *out->tensors, what, (void **)&out->tensors));
    LT_TRY(lt_calloc(ctx, most, sizeof *out->order, what, (void **)&out->order));
    LT_TRY(lt_calloc(ctx, most, sizeof *out->names, what, (void **)&out->names));
    LT_TRY(lt_calloc(ctx, net->param_count * (size_t)parts, sizeof(float), what, (void **)&out->values));
    float *values = out->values;
    for (int part = LT_PART_WEIGHTS; part <= LT_PART_V; part++) {
        for (int i = 0; blocks[part] && i < slots; i++) {
            lt_model_slot slot;
            lt_net_slot(net, i, &slot);
            lt_st_tensor *tensor = &out->tensors[out->count];
            part_name((lt_checkpoint_part)part, &slot, out->names[out->count]);
            tensor->name = out->names[out->count];
            tensor->type = LT_ST_F32;
            tensor->dims = slot.dims;
            for (int d = 0; d < slot.dims; d++) {
                tensor->shape[d] = (uint64_t)slot.shape[d];
            }
            tensor->count = slot.count;
            tensor->data = values;
            lt_slot_to_file(&slot, blocks[part], values);
            values += slot.count;
            out->order[out->count++] = tensor;
        }
    }
done:
    return status;
}

latent_status lt_checkpoint_write(latent_context *ctx, const lt_run *run, const latent_net *net,
                                  const char *config, const lt_train_state *state, const float *params,
                                  const float *m, const float *v) {
    latent_status status = LATENT_OK;
    listing list;
    char *text = NULL, hex[33];
    const float *const blocks[3] = {params, m, v};
    memset(&list, 0, sizeof list);
    LT_TRY(state_text(ctx, state, &text));
    LT_TRY(listing_make(ctx, net, blocks, &list));
    const char *const texts[TEXTS] = {FORMAT, net->name, net->text, config, text};
    digest(texts, list.order, list.count, hex);
    lt_st_pair metadata[TEXTS + 1];
    for (int i = 0; i < TEXTS; i++) {
        metadata[i] = (lt_st_pair){text_keys[i], texts[i]};
    }
    metadata[TEXTS] = (lt_st_pair){"md5", hex};
    LT_TRY(lt_st_write(ctx, run->checkpoint, list.tensors, list.count, metadata, TEXTS + 1));
done:
    listing_free(&list);
    free(text);
    return status;
}

/* ---- Reading ----------------------------------------------------------------------------------- */

static latent_status damaged(latent_context *ctx, const char *path, const char *what) {
    return lt_fail(ctx, LATENT_ERROR_FORMAT,
                   "%s: %s; the checkpoint is damaged and cannot be resumed: train anew, or put back a copy",
                   path, what);
}

static int read_count(const lt_json_node *object, const char *key, int *out) {
    uint64_t value = 0;
    if (!lt_json_u64(lt_json_get(object, key), &value) || value > INT_MAX) {
        return 0;
    }
    *out = (int)value;
    return 1;
}

static int read_number(const lt_json_node *object, const char *key, double *out) {
    const lt_json_node *node = lt_json_get(object, key);
    if (!node || node->kind != LT_JSON_NUMBER || !isfinite(node->number) || node->number < 0) {
        return 0;
    }
    *out = node->number;
    return 1;
}

static latent_status read_state(latent_context *ctx, const char *path, const char *text,
                                lt_train_state *out) {
    lt_json *json = NULL;
    latent_status status = lt_json_parse(ctx, text, strlen(text), path, &json);
    if (status == LATENT_OK) {
        const lt_json_node *root = lt_json_root(json);
        if (!read_count(root, "epoch", &out->epoch) || !read_count(root, "step", &out->step) ||
            !read_number(root, "loss_sum", &out->loss_sum) || !read_number(root, "seconds", &out->seconds) ||
            !read_number(root, "forward", &out->forward) || !read_number(root, "backward", &out->backward) ||
            !read_number(root, "optimizer", &out->optimizer)) {
            status = damaged(ctx, path, "its state lacks a number");
        }
    }
    lt_json_destroy(json);
    return status;
}

static latent_status check_digest(latent_context *ctx, const lt_checkpoint *checkpoint,
                                  const char *const texts[TEXTS]) {
    const char *path = checkpoint->path, *md5 = lt_st_metadata(checkpoint->file, "md5");
    int count = lt_st_count(checkpoint->file);
    const lt_st_tensor **order = NULL;
    latent_status status = LATENT_OK;
    char hex[33];
    LT_TRY(lt_calloc(ctx, (size_t)count, sizeof *order, "a checkpoint", (void **)&order));
    for (int i = 0; i < count; i++) {
        order[i] = lt_st_at(checkpoint->file, i);
        if (order[i]->type != LT_ST_F32) {
            status = damaged(ctx, path, "a tensor is not F32");
            goto done;
        }
    }
    digest(texts, order, count, hex);
    if (!md5 || strcmp(md5, hex) != 0) {
        status = damaged(ctx, path, "its contents do not match its checksum");
    }
done:
    free(order);
    return status;
}

latent_status lt_checkpoint_read(latent_context *ctx, const lt_run *run, lt_checkpoint **out) {
    latent_status status = LATENT_OK;
    lt_checkpoint *checkpoint = NULL;
    const char *path = run->checkpoint;
    *out = NULL;
    if (!lt_file_exists(path)) {
        return lt_fail(ctx, LATENT_ERROR_ARGUMENT,
                       "%s: no checkpoint to resume; start the run first, without --resume", run->folder);
    }
    LT_TRY(lt_calloc(ctx, 1, sizeof *checkpoint, "a checkpoint", (void **)&checkpoint));
    checkpoint->path = path;
    LT_TRY(lt_st_read(ctx, path, &checkpoint->file));
    const char *texts[TEXTS];
    for (int i = 0; i < TEXTS; i++) {
        texts[i] = lt_st_metadata(checkpoint->file, text_keys[i]);
        if (i == 0 && (!texts[i] || strcmp(texts[i], FORMAT) != 0)) {
            status = lt_fail(ctx, LATENT_ERROR_FORMAT,
                             "%s: no checkpoint; its metadata must say format \"%s\"", path, FORMAT);
            goto done;
        }
        if (!texts[i]) {
            status = damaged(ctx, path, "its metadata is not complete");
            goto done;
        }
    }
    const char *config = texts[3], *state = texts[4];
    LT_TRY(check_digest(ctx, checkpoint, texts));
    LT_TRY(lt_run_config_read(ctx, config, strlen(config), path, &checkpoint->config));
    LT_TRY(read_state(ctx, path, state, &checkpoint->state));
    *out = checkpoint;
    checkpoint = NULL;
done:
    lt_checkpoint_destroy(checkpoint);
    return status;
}

void lt_checkpoint_destroy(lt_checkpoint *checkpoint) {
    if (checkpoint) {
        lt_st_destroy(checkpoint->file);
        lt_run_config_free(&checkpoint->config);
        free(checkpoint);
    }
}

latent_status lt_checkpoint_block(latent_context *ctx, const lt_checkpoint *checkpoint, const latent_net *net,
                                  lt_checkpoint_part part, float *block) {
    latent_status status = LATENT_OK;
    float *values = NULL;
    LT_TRY(lt_alloc(ctx, net->param_count * sizeof(float), "a checkpoint", (void **)&values));
    memset(block, 0, net->param_count * sizeof(float));
    for (int i = 0; i < lt_net_slot_count(net); i++) {
        lt_model_slot slot;
        char name[NAME_MAX_LENGTH];
        lt_net_slot(net, i, &slot);
        part_name(part, &slot, name);
        const lt_st_tensor *tensor = NULL;
        LT_TRY(lt_checkpoint_tensor(ctx, checkpoint, &slot, name, &tensor));
        memcpy(values, tensor->data, slot.count * sizeof(float));
        lt_slot_from_file(&slot, values, block);
    }
done:
    free(values);
    return status;
}
