/* fuzz_net.c: any bytes as a net file. A net that parses must also describe itself and initialize. */
#include "net/net.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    latent_context *ctx = NULL;
    latent_net *net = NULL;
    if (latent_context_create(&ctx) != LATENT_OK) {
        return 0;
    }
    if (latent_net_parse(ctx, (const char *)bytes, size, "fuzz.net", &net) == LATENT_OK) {
        latent_layer_info layer;
        for (int i = 0; i < latent_net_layer_count(net); i++) {
            latent_net_get_layer(net, i, &layer);
        }
        if (net->param_count < 1 << 16) {
            float *params = malloc(net->param_count * sizeof *params + 1);
            if (params) {
                lt_net_init(net, 1, params);
            }
            free(params);
        }
        latent_net_destroy(net);
    }
    latent_context_destroy(ctx);
    return 0;
}
