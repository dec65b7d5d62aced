/* model.c: making, loading and freeing models, and their tensors one by one. */
#include "model/model.h"

#include "model/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void keep(char *to, size_t size, const char *text) {
    snprintf(to, size, "%s", text && strcmp(text, "auto") != 0 ? text : "");
}

static void record(const latent_engine_options *engine, latent_engine_record *out) {
    keep(out->backend, sizeof out->backend, engine->backend);
    keep(out->precision, sizeof out->precision, engine->precision);
    keep(out->isa, sizeof out->isa, engine->isa);
    keep(out->kernels, sizeof out->kernels, engine->kernels);
}

/* A model without weights yet: net copied, backend open, block allocated. */
static latent_status model_open(latent_context *ctx, const latent_net *net,
                                const latent_engine_options *engine, latent_model **out) {
    static const latent_engine_options automatic;
    latent_status status = LATENT_OK;
    latent_model *model = NULL;
    *out = NULL;
    LT_TRY(lt_calloc(ctx, 1, sizeof *model, "a model", (void **)&model));
    LT_TRY(latent_net_parse(ctx, net->text, strlen(net->text), net->name, &model->net));
    model->slot_count = lt_net_slot_count(model->net);
    LT_TRY(
        lt_calloc(ctx, (size_t)model->slot_count, sizeof *model->slots, "a model", (void **)&model->slots));
    for (int i = 0; i < model->slot_count; i++) {
        lt_net_slot(model->net, i, &model->slots[i]);
    }
    engine = engine ? engine : &automatic;
    LT_TRY(lt_backend_open(ctx, engine, &model->backend));
    record(engine, &model->asked);
    size_t bytes = model->net->param_count * sizeof(float);
    LT_TRY(model->backend->type->alloc(ctx, model->backend, bytes, (void **)&model->params));
    *out = model;
    model = NULL;
done:
    latent_model_destroy(model);
    return status;
}

latent_status latent_model_create(latent_context *ctx, const latent_net *net,
                                  const latent_engine_options *engine, uint64_t seed, latent_model **out) {
    latent_status status = LATENT_OK;
    latent_model *model = NULL;
    float *params = NULL;
    *out = NULL;
    LT_TRY(model_open(ctx, net, engine, &model));
    LT_TRY(lt_calloc(ctx, model->net->param_count, sizeof *params, "the weights", (void **)&params));
    lt_net_init(model->net, seed, params);
    LT_TRY(lt_model_upload(ctx, model, params));
    *out = model;
    model = NULL;
done:
    free(params);
    latent_model_destroy(model);
    return status;
}

latent_status latent_model_load(latent_context *ctx, const char *path, const latent_net *net,
                                const latent_engine_options *engine, latent_model **out) {
    latent_status status = LATENT_OK;
    lt_weights weights = {0};
    latent_net *own = NULL;
    latent_model *model = NULL;
    float *params = NULL;
    *out = NULL;
    LT_TRY(lt_weights_open(ctx, path, &weights));
    if (!net) {
        LT_TRY(lt_weights_net(ctx, &weights, &own));
        net = own;
    }
    LT_TRY(lt_calloc(ctx, net->param_count, sizeof *params, "the weights", (void **)&params));
    LT_TRY(lt_weights_place(ctx, &weights, net, params));
    LT_TRY(model_open(ctx, net, engine, &model));
    LT_TRY(lt_model_upload(ctx, model, params));
    *out = model;
    model = NULL;
done:
    free(params);
    lt_weights_close(&weights);
    latent_net_destroy(own);
    latent_model_destroy(model);
    return status;
}

void latent_model_destroy(latent_model *model) {
    if (!model) {
        return;
    }
    lt_plan_destroy(model->infer);
    lt_plan_destroy(model->encode);
    if (model->backend) {
        model->backend->type->free(model->backend, model->params);
        lt_backend_close(model->backend);
    }
    free(model->slots);
    latent_net_destroy(model->net);
    free(model);
}

const latent_net *latent_model_net(const latent_model *model) {
    return model->net;
}

const char *latent_model_engine(const latent_model *model) {
    return model->backend->engine;
}

void lt_model_touch(latent_model *model) {
    model->infer_ready = model->encode_ready = 0;
}

latent_status lt_model_download(latent_context *ctx, latent_model *model, float *params) {
    size_t bytes = model->net->param_count * sizeof *params;
    return model->backend->type->download(ctx, model->backend, params, model->params, bytes);
}

latent_status lt_model_upload(latent_context *ctx, latent_model *model, const float *params) {
    size_t bytes = model->net->param_count * sizeof *params;
    lt_model_touch(model);
    return model->backend->type->upload(ctx, model->backend, model->params, params, bytes);
}

int latent_model_tensor_count(const latent_model *model) {
    return model->slot_count;
}

void latent_model_get_tensor(const latent_model *model, int index, latent_tensor_info *out) {
    const lt_model_slot *slot = &model->slots[index];
    memset(out, 0, sizeof *out);
    out->name = slot->name;
    out->dims = slot->dims;
    memcpy(out->shape, slot->shape, sizeof out->shape);
    out->count = slot->count;
}

/* Both ways through a host copy of the whole block: simple, and no larger than the model. */
static latent_status with_block(latent_context *ctx, latent_model *model, const lt_model_slot *slot,
                                float *read, const float *write) {
    latent_status status = LATENT_OK;
    float *block = NULL;
    LT_TRY(lt_alloc(ctx, model->net->param_count * sizeof *block, "the weights", (void **)&block));
    LT_TRY(lt_model_download(ctx, model, block));
    if (read) {
        lt_slot_to_file(slot, block, read);
    } else {
        lt_slot_from_file(slot, write, block);
        LT_TRY(lt_model_upload(ctx, model, block));
    }
done:
    free(block);
    return status;
}

latent_status latent_model_read_tensor(latent_context *ctx, latent_model *model, int index, float *out) {
    return with_block(ctx, model, &model->slots[index], out, NULL);
}

latent_status latent_model_write_tensor(latent_context *ctx, latent_model *model, int index,
                                        const float *values) {
    return with_block(ctx, model, &model->slots[index], NULL, values);
}
