/* tar_maker.h: archives made in memory, byte by byte, without the code under test: sound ones and the ones
 * that nobody should trust. Zero a maker, add entries, then tar_gzip() it; tar_free() last.
 */
#ifndef TAR_MAKER_H
#define TAR_MAKER_H

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

typedef struct tar_maker {
    unsigned char *bytes, *packed;
    size_t length, packed_length;
} tar_maker;

static inline void tar_append(tar_maker *t, const void *data, size_t bytes) {
    t->bytes = realloc(t->bytes, t->length + bytes + 1);
    assert(t->bytes);
    if (data) {
        memcpy(t->bytes + t->length, data, bytes);
    } else {
        memset(t->bytes + t->length, 0, bytes);
    }
    t->length += bytes;
}

static inline void tar_seal(unsigned char *header) {
    unsigned sum = 0;
    memset(header + 148, ' ', 8);
    for (int i = 0; i < 512; i++) {
        sum += header[i];
    }
    snprintf((char *)header + 148, 8, "%06o", sum);
}

/* A header of any type, its checksum right; `claimed` is the size it names. Returns where it lies. */
static inline size_t tar_header(tar_maker *t, const char *name, char type, unsigned long long claimed) {
    unsigned char header[512] = {0};
    memcpy(header, name, strlen(name) < 100 ? strlen(name) : 100);
    memcpy(header + 100, "0000644", 7);
    memcpy(header + 108, "0000000", 7);
    memcpy(header + 116, "0000000", 7);
    char size[24];
    snprintf(size, sizeof size, "%011llo", claimed);
    memcpy(header + 124, size, 11);
    memcpy(header + 136, "00000000000", 11);
    header[156] = (unsigned char)type;
    memcpy(header + 257, "ustar\00000", 8);
    tar_seal(header);
    tar_append(t, header, sizeof header);
    return t->length - sizeof header;
}

static inline void tar_add(tar_maker *t, const char *name, char type, const void *data, size_t bytes) {
    tar_header(t, name, type, bytes);
    tar_append(t, data, bytes);
    tar_append(t, NULL, (512 - bytes % 512) % 512);
}

/* Compresses what was added; with `finish` the two empty blocks of the end come first. */
static inline void tar_gzip(tar_maker *t, int finish) {
    z_stream stream = {0};
    if (finish) {
        tar_append(t, NULL, 1024);
    }
    size_t room = compressBound((uLong)t->length) + 64;
    t->packed = malloc(room);
    int ready = deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK;
    assert(t->packed && ready);
    (void)ready;
    stream.next_in = t->bytes;
    stream.avail_in = (uInt)t->length;
    stream.next_out = t->packed;
    stream.avail_out = (uInt)room;
    deflate(&stream, Z_FINISH);
    t->packed_length = room - stream.avail_out;
    deflateEnd(&stream);
}

static inline void tar_free(tar_maker *t) {
    free(t->bytes);
    free(t->packed);
    memset(t, 0, sizeof *t);
}

#endif
