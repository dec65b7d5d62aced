/* fuzz_npy.c: any bytes as an .npy file, twice: as they are, and as a header with the frame of version 1 put
 * around it, so that mutations of the header count. What parses must describe exactly the bytes that are
 * there.
 */
#include "io/npy.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse(const uint8_t *data, size_t size) {
    latent_context ctx = {0};
    lt_npy_info info;
    latent_status status = lt_npy_parse(&ctx, data, size, size, "input", &info);
    if ((status == LATENT_OK) == (ctx.message[0] != 0)) {
        abort();
    }
    if (status == LATENT_OK &&
        (info.dims < 1 || info.dims > 2 || info.count != info.shape[0] * info.shape[1] ||
         info.offset + info.count * lt_npy_type_bytes(info.type) != size)) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    parse(data, size);
    const uint8_t *zero = size > 0 ? memchr(data, 0, size) : NULL;
    size_t header = zero ? (size_t)(zero - data) : size, rest = zero ? size - header - 1 : 0;
    uint8_t *framed = header < 65536 ? malloc(10 + header + rest) : NULL;
    if (framed) {
        memcpy(framed, "\x93NUMPY\x01\x00", 8);
        framed[8] = (uint8_t)header;
        framed[9] = (uint8_t)(header >> 8);
        if (header > 0) {
            memcpy(framed + 10, data, header);
        }
        if (rest > 0) {
            memcpy(framed + 10 + header, zero + 1, rest);
        }
        parse(framed, 10 + header + rest);
    }
    free(framed);
    return 0;
}
