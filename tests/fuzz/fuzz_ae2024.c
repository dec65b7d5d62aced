/* fuzz_ae2024.c: a 0xAE2024 file has 3 MB, far more than a fuzzer invents. So the input is a patch of a
 * valid file: two bytes change its size, three say where the rest is laid over it. The bare input is
 * parsed as well.
 */
#include "io/ae2024.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse(const unsigned char *bytes, size_t size, float *values) {
    latent_context ctx = {0};
    latent_status status = lt_ae2024_parse(&ctx, bytes, size, "input", values);
    int valid = size == LT_AE2024_BYTES && memcmp(bytes, "\x24\x20\xAE\x00\x01\x00\x00\x00", 8) == 0;
    if (valid != (status == LATENT_OK) || valid == (ctx.message[0] != 0)) {
        abort();
    }
    if (valid && memcmp(values, bytes + 8, size - 8) != 0) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    float *values = malloc(LT_AE2024_FLOATS * sizeof *values);
    unsigned char *file = NULL;
    if (!values) {
        return 0;
    }
    parse(data, size, values);
    if (size >= 5) {
        /* 0 is the right size; -32768 to 32767 bytes more or less. */
        size_t file_size = (size_t)(LT_AE2024_BYTES + (int16_t)(data[0] | data[1] << 8));
        size_t at = (size_t)data[2] | (size_t)data[3] << 8 | (size_t)data[4] << 16;
        file = calloc(1, file_size);
        if (file) {
            memcpy(file, "\x24\x20\xAE\x00\x01", 5);
            for (size_t i = 5; i < size; i++) {
                file[(at + i - 5) % file_size] = data[i];
            }
            parse(file, file_size, values);
        }
    }
    free(file);
    free(values);
    return 0;
}
