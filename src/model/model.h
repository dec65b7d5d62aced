/* model.h: a net, its weights in a backend's memory, and the plans made to run it. */
#ifndef LT_MODEL_MODEL_H
#define LT_MODEL_MODEL_H

#include "net/plan.h"

/* A tensor of the parameter block. Slots are numbered op by op, the weight before the bias. */
typedef struct lt_model_slot {
    char name[LT_NAME_MAX + 8]; /* "enc_conv1.weight" */
    int dims, shape[4];         /* PyTorch's order */
    size_t offset, count;       /* in the block */
    const lt_op *op;
    int is_weight;
} lt_model_slot;

struct latent_model {
    latent_net *net; /* owned copy */
    lt_backend *backend;
    latent_engine_record asked; /* of the engine options */
    float *params;              /* [b] net->param_count floats, OHWI */
    lt_model_slot *slots;
    int slot_count;
    lt_plan *infer;                /* made when first needed, for LT_INFER_BATCH images or fewer */
    lt_plan *encode;               /* the same, up to the latent op */
    int infer_ready, encode_ready; /* the plan's packed weights match params */
};

enum { LT_INFER_BATCH = 100, LT_ENCODE_BATCH_DEVICE = 250 };

/* Images that go through the encoder at once, if they fit: a GPU wants more of them. */
static inline int lt_encode_batch(const lt_backend *backend) {
    return backend->type->host_memory ? LT_INFER_BATCH : LT_ENCODE_BATCH_DEVICE;
}

/* Call after changing params behind the model's back. */
void lt_model_touch(latent_model *model);

int lt_net_slot_count(const latent_net *net);
void lt_net_slot(const latent_net *net, int index, lt_model_slot *out);

/* One tensor between the whole block (OHWI) and a file's values (OIHW). */
void lt_slot_to_file(const lt_model_slot *slot, const float *block, float *values);
void lt_slot_from_file(const lt_model_slot *slot, const float *values, float *block);

/* Whether the net's input fits the images of a data set. */
latent_status lt_model_check_data(latent_context *ctx, const latent_net *net, const latent_dataset *data);

/* Makes the encoder's plan, unless it is there: lt_model_encode_rows would do it. */
latent_status lt_model_encode_ready(latent_context *ctx, latent_model *model);
/* The features of the first `count` images of `data`, CHW-flattened, with those of the mirrored images added
 * where `flip`; rows[count][width] in the backend's memory. May return before the work is done. */
latent_status lt_model_encode_rows(latent_context *ctx, latent_model *model, const lt_backend_data *data,
                                   int count, int flip, float *rows);

/* The whole parameter block, on the host. */
latent_status lt_model_download(latent_context *ctx, latent_model *model, float *params);
latent_status lt_model_upload(latent_context *ctx, latent_model *model, const float *params);

#endif
