/* fuzz_svm_model.c: any bytes as a model of support vectors, in both formats. What loads must answer: three
 * rows of its own width go through it, and give labels that it has.
 */
#include "svm/svm.h"

#include "svm/host.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void predict(latent_svm *svm) {
    latent_context ctx = {0};
    latent_engine_options engine = {.backend = "ref"};
    size_t d = svm->d;
    int32_t labels[3];
    float *x = calloc(3, d * sizeof *x);
    if (!x || lt_svm_engine_open(&ctx, &engine, &svm->engine) != LATENT_OK) {
        abort();
    }
    x[0] = 1;
    x[3 * d - 1] = -0.5f;
    latent_status status = latent_svm_predict(&ctx, svm, x, 3, d, labels, NULL, NULL);
    for (int i = 0; status == LATENT_OK && i < 3; i++) {
        int c = 0;
        while (c < svm->classes && svm->labels[c] != labels[i]) {
            c++;
        }
        if (c == svm->classes) {
            abort();
        }
    }
    free(x);
}

static void check(latent_context *ctx, latent_status status, latent_svm *svm) {
    if ((status == LATENT_OK) != (svm != NULL) || (status == LATENT_OK) == (ctx->message[0] != 0)) {
        abort();
    }
    if (svm && svm->support * svm->d < 100000 && svm->pairs < 1000) {
        predict(svm);
    }
    latent_svm_destroy(svm);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    latent_context ctx = {0}, other = {0};
    latent_svm *svm = NULL;
    latent_status status = lt_svm_text_parse(&ctx, data, size, "input", &svm);
    check(&ctx, status, svm);
    status = lt_svm_file_parse(&other, data, size, "input", &svm);
    check(&other, status, svm);
    return 0;
}
