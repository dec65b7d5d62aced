/* fuzz_safetensors.c: any bytes as a safetensors file, twice: as they are, and as a header up to the first
 * 0 byte and data after it, with the length in front put right, so that mutations of the header count.
 * In what parses, the tensors must tile the data, and every element must be readable.
 */
#include "framed.h"
#include "io/safetensors.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const lt_safetensors *st, const unsigned char *bytes, size_t size) {
    uint64_t header = 0;
    memcpy(&header, bytes, 8);
    const unsigned char *at = bytes + 8 + header;
    double sum = 0;
    for (int i = 0; i < lt_st_count(st); i++) {
        const lt_st_tensor *tensor = lt_st_at(st, i);
        if (tensor->data != at || lt_st_find(st, tensor->name) != tensor) {
            abort();
        }
        for (uint64_t k = 0; k < tensor->count; k++) {
            sum += lt_st_value(tensor, k);
        }
        at += tensor->count * lt_st_type_bytes(tensor->type);
    }
    if (at != bytes + size) {
        abort();
    }
    volatile double keep = sum; /* the reads above must happen */
    (void)keep;
    lt_st_metadata(st, "net");
}

static void parse(const unsigned char *bytes, size_t size) {
    latent_context ctx = {0};
    lt_safetensors *st = NULL;
    latent_status status = lt_st_parse(&ctx, bytes, size, "input", &st);
    if ((status == LATENT_OK) != (st != NULL) || (status == LATENT_OK) == (ctx.message[0] != 0)) {
        abort();
    }
    if (st) {
        check(st, bytes, size);
    }
    lt_st_destroy(st);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    parse_both(data, size, parse);
    return 0;
}
