/* fuzz_scaling.c: any bytes as a scaling of features, as they are and as a header up to the first 0 byte with
 * data after it. What is taken must be finite, with no deviation below 0.
 */
#include "framed.h"
#include "model/features.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WIDTH = 4 };

static void parse(const unsigned char *bytes, size_t size) {
    latent_context ctx = {0};
    latent_features_options options;
    lt_safetensors *st = NULL;
    float mean[WIDTH], deviation[WIDTH];
    latent_features_defaults(&options);
    latent_status status = lt_st_parse(&ctx, bytes, size, "input", &st);
    if (status == LATENT_OK) {
        status = lt_scaling_take(&ctx, st, "input", WIDTH, &options, "", mean, deviation);
    }
    if ((status == LATENT_OK) == (ctx.message[0] != 0)) {
        abort();
    }
    for (int i = 0; status == LATENT_OK && i < WIDTH; i++) {
        if (!isfinite(mean[i]) || !isfinite(deviation[i]) || deviation[i] < 0) {
            abort();
        }
    }
    lt_st_destroy(st);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    parse_both(data, size, parse);
    return 0;
}
