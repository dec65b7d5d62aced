/* noise.c: images of noise, for measuring and checking without a data set. */
#include "base/rng.h"
#include "data/dataset.h"

#include <string.h>

latent_status lt_dataset_noise(latent_context *ctx, int count, const int shape[3], uint64_t seed,
                               latent_dataset **out) {
    latent_status status = LATENT_OK;
    latent_dataset *data = NULL;
    size_t bytes = (size_t)count * (size_t)shape[0] * (size_t)shape[1] * (size_t)shape[2];
    *out = NULL;
    LT_TRY(lt_calloc(ctx, 1, sizeof *data, "a data set", (void **)&data));
    LT_TRY(lt_alloc(ctx, bytes, "images of noise", (void **)&data->images[LATENT_TRAIN]));
    LT_TRY(lt_calloc(ctx, (size_t)count, 1, "labels", (void **)&data->labels[LATENT_TRAIN]));
    for (size_t i = 0; i < bytes; i += sizeof(lt_random)) {
        lt_random random = lt_philox(seed, LT_RNG_TEST, 0, i);
        size_t left = bytes - i;
        memcpy(data->images[LATENT_TRAIN] + i, random.v, left < sizeof random.v ? left : sizeof random.v);
    }
    memcpy(data->shape, shape, sizeof data->shape);
    data->count[LATENT_TRAIN] = count;
    *out = data;
    data = NULL;
done:
    latent_dataset_destroy(data);
    return status;
}
