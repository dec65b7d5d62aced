/* weights.h: weight files: a run, a .safetensors file or a 0xAE2024 file, seen as named tensors. */
#ifndef LT_MODEL_WEIGHTS_H
#define LT_MODEL_WEIGHTS_H

#include "io/safetensors.h"
#include "net/net.h"

typedef struct lt_weights { /* zero it first */
    char *path;             /* the file itself */
    lt_safetensors *file;   /* NULL for 0xAE2024 */
    float *values;          /* of a 0xAE2024 file */
    lt_st_tensor *tensors;
    int count;
} lt_weights;

/* `path` is a run folder (its model.safetensors, else its checkpoint) or a file of either format. */
latent_status lt_weights_open(latent_context *ctx, const char *path, lt_weights *out);
/* The same, when the file must be of the 0xAE2024 format. */
latent_status lt_weights_open_ae2024(latent_context *ctx, const char *path, lt_weights *out);
void lt_weights_close(lt_weights *weights);
const lt_st_tensor *lt_weights_find(const lt_weights *weights, const char *name);
/* The net that the file names; for 0xAE2024 the preset autoencoder. */
latent_status lt_weights_net(latent_context *ctx, const lt_weights *weights, latent_net **out);
/* Checks that the file holds exactly the net's tensors (and, in a checkpoint, the optimizer's), and puts
 * them into the parameter block `params`, whose gaps must be zero. */
latent_status lt_weights_place(latent_context *ctx, const lt_weights *weights, const latent_net *net,
                               float *params);
/* Writes the block as model.safetensors: PyTorch's names and order, the net's text in the metadata. */
latent_status lt_weights_write(latent_context *ctx, const char *path, const latent_net *net,
                               const float *params);

#endif
