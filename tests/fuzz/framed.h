/* framed.h: safetensors for a fuzzer that knows no lengths: the bytes as they are, and as a header up to the
 * first 0 byte, its length put before it, with the data after it.
 */
#ifndef FUZZ_FRAMED_H
#define FUZZ_FRAMED_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline void parse_both(const uint8_t *data, size_t size, void (*parse)(const uint8_t *, size_t)) {
    parse(data, size);
    const uint8_t *zero = size > 0 ? memchr(data, 0, size) : NULL;
    uint64_t header = zero ? (uint64_t)(zero - data) : size;
    size_t rest = zero ? size - header - 1 : 0;
    unsigned char *framed = malloc(8 + header + rest);
    if (framed) {
        memcpy(framed, &header, 8);
        if (header > 0) {
            memcpy(framed + 8, data, header);
        }
        if (rest > 0) {
            memcpy(framed + 8 + header, zero + 1, rest);
        }
        parse(framed, 8 + header + rest);
    }
    free(framed);
}

#endif
