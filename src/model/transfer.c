/* transfer.c: a model's weights to and from files. */
#include "model/model.h"

#include "io/ae2024.h"
#include "model/weights.h"

#include <stdlib.h>
#include <string.h>

/* The layout of 0xAE2024 files is that of one net: five 3x3 convs of fixed sizes. */
static latent_status check_ae2024_net(latent_context *ctx, const latent_model *model) {
    int good = model->slot_count == 2 * LT_AE2024_LAYERS;
    for (int i = 0; good && i < LT_AE2024_LAYERS; i++) {
        const lt_ae2024_layer *layer = &lt_ae2024_layers[i];
        const lt_op *op = model->slots[2 * i].op;
        good = strcmp(op->name, layer->name) == 0 && op->conv.C == layer->in && op->conv.K == layer->out &&
               op->conv.R == 3 && op->conv.S == 3 && op->bias_count > 0;
    }
    if (!good) {
        return lt_fail(ctx, LATENT_ERROR_UNSUPPORTED,
                       "the 0xAE2024 format holds the five convs of the net 'autoencoder' only, and '%s' is "
                       "another; use safetensors",
                       model->net->name);
    }
    return LATENT_OK;
}

static latent_status write_ae2024(latent_context *ctx, latent_model *model, const char *path,
                                  const float *params) {
    latent_status status = LATENT_OK;
    float *values = NULL;
    LT_TRY(check_ae2024_net(ctx, model));
    LT_TRY(lt_alloc(ctx, LT_AE2024_FLOATS * sizeof *values, "the weights", (void **)&values));
    for (int i = 0; i < LT_AE2024_LAYERS; i++) {
        lt_slot_to_file(&model->slots[2 * i], params, values + lt_ae2024_layers[i].weight);
        lt_slot_to_file(&model->slots[2 * i + 1], params, values + lt_ae2024_layers[i].bias);
    }
    LT_TRY(lt_ae2024_write(ctx, path, values));
done:
    free(values);
    return status;
}

latent_status latent_model_export(latent_context *ctx, latent_model *model, const char *path,
                                  latent_weight_format format) {
    latent_status status = LATENT_OK;
    float *params = NULL;
    LT_TRY(lt_alloc(ctx, model->net->param_count * sizeof *params, "the weights", (void **)&params));
    LT_TRY(lt_model_download(ctx, model, params));
    LT_TRY(format == LATENT_AE2024 ? write_ae2024(ctx, model, path, params)
                                   : lt_weights_write(ctx, path, model->net, params));
done:
    free(params);
    return status;
}

latent_status latent_model_import(latent_context *ctx, latent_model *model, const char *path,
                                  latent_weight_format format) {
    latent_status status = LATENT_OK;
    lt_weights weights = {0};
    float *params = NULL;
    if (format == LATENT_AE2024) {
        LT_TRY(check_ae2024_net(ctx, model));
        LT_TRY(lt_weights_open_ae2024(ctx, path, &weights));
    } else {
        LT_TRY(lt_weights_open(ctx, path, &weights));
    }
    LT_TRY(lt_calloc(ctx, model->net->param_count, sizeof *params, "the weights", (void **)&params));
    LT_TRY(lt_weights_place(ctx, &weights, model->net, params));
    LT_TRY(lt_model_upload(ctx, model, params));
done:
    free(params);
    lt_weights_close(&weights);
    return status;
}
