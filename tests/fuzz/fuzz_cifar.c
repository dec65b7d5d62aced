/* fuzz_cifar.c: any bytes as a batch file. What is accepted has whole records, labels below ten and every
 * pixel in its place; what is not has a sentence.
 */
#include "data/dataset.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    latent_context ctx = {0};
    size_t count = size / LT_CIFAR_RECORD;
    uint8_t *images = malloc(count * LT_CIFAR_IMAGE + 1), *labels = malloc(count + 1);
    if (!images || !labels) {
        abort();
    }
    latent_status status = lt_cifar_parse(&ctx, data, size, "input", images, labels);
    if ((status == LATENT_OK) != (ctx.message[0] == 0)) {
        abort();
    }
    if (status == LATENT_OK && (size == 0 || size % LT_CIFAR_RECORD != 0)) {
        abort();
    }
    for (size_t i = 0; status == LATENT_OK && i < count; i++) {
        const uint8_t *record = data + i * LT_CIFAR_RECORD;
        if (labels[i] != record[0] || labels[i] >= LT_CIFAR_CLASSES) {
            abort();
        }
        for (size_t p = 0; p < LT_CIFAR_IMAGE; p++) {
            if (images[i * LT_CIFAR_IMAGE + p] != record[1 + p % 3 * 1024 + p / 3]) {
                abort();
            }
        }
    }
    free(images);
    free(labels);
    return 0;
}
