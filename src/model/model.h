/* model.h: a net, its weights in a backend's memory, and the plans made to run it. */
#ifndef LT_MODEL_MODEL_H
#define LT_MODEL_MODEL_H

#include "net/plan.h"

struct latent_model {
    latent_net *net; /* owned copy */
    lt_backend *backend;
    float *params;   /* [b] net->param_count floats, OHWI */
    lt_plan *infer;  /* made when first needed; batch LT_INFER_BATCH; NULL when stale or not yet made */
    lt_plan *encode; /* up to the latent op */
    int prepared;    /* the plans' packed weights match params */
};

enum { LT_INFER_BATCH = 100 };

/* Call after changing params behind the model's back. */
void lt_model_touch(latent_model *model);

/* A tensor of the parameter block: op index and which part. Index counts weight, bias, weight, ... */
typedef struct lt_model_slot {
    char name[96];
    int dims, shape[4];    /* PyTorch's order */
    size_t offset, count;  /* in the block */
    const lt_op *op;
    int is_weight;
} lt_model_slot;

int lt_net_slot_count(const latent_net *net);
void lt_net_slot(const latent_net *net, int index, lt_model_slot *out);

/* OHWI in the block <-> OIHW in files. Biases are copied. */
void lt_slot_to_file(const lt_model_slot *slot, const float *block, float *values);
void lt_slot_from_file(const lt_model_slot *slot, const float *values, float *block);

/* The whole parameter block, on the host. */
latent_status lt_model_download(latent_context *ctx, latent_model *model, float *params);
latent_status lt_model_upload(latent_context *ctx, latent_model *model, const float *params);

#endif
