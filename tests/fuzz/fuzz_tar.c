/* fuzz_tar.c: any bytes as a .tar.gz; and, since a fuzzer seldom guesses a gzip checksum, the same bytes as
 * the archive inside one, in stored blocks. Every name that comes out stays inside a folder.
 */
#include "data/tar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STORED_MAX = 65535 };

typedef struct input {
    const uint8_t *bytes;
    size_t length, at;
} input;

static latent_status next_bytes(latent_context *ctx, void *user, void *buffer, size_t bytes, size_t *got) {
    input *in = user;
    (void)ctx;
    *got = in->length - in->at < bytes ? in->length - in->at : bytes;
    memcpy(buffer, in->bytes + in->at, *got);
    in->at += *got;
    return LATENT_OK;
}

static void check_name(const char *name) {
    size_t length = strlen(name);
    if (name[0] == '/' || strncmp(name, "../", 3) == 0 || strcmp(name, "..") == 0 || strstr(name, "/../") ||
        (length >= 3 && strcmp(name + length - 3, "/..") == 0)) {
        abort();
    }
    for (const char *c = name; *c; c++) {
        if ((unsigned char)*c < ' ') {
            abort();
        }
    }
}

static void walk(const uint8_t *bytes, size_t length) {
    latent_context ctx = {0};
    input in = {bytes, length, 0};
    lt_tar *tar = NULL;
    lt_tar_entry entry;
    int more = 1;
    uint64_t total = 0;
    latent_status status = lt_tar_open(&ctx, next_bytes, &in, "input", 1 << 22, &tar);
    while (status == LATENT_OK && more) {
        status = lt_tar_next(&ctx, tar, &entry, &more);
        if (status != LATENT_OK || !more) {
            break;
        }
        check_name(entry.name);
        char buffer[1000];
        uint64_t file = 0;
        size_t got = 1;
        while (status == LATENT_OK && got > 0) {
            status = lt_tar_read(&ctx, tar, buffer, sizeof buffer, &got);
            file += got;
        }
        total += file;
        if ((status == LATENT_OK && file != entry.size) || total > 1 << 22) {
            abort();
        }
    }
    if ((status == LATENT_OK) != (ctx.message[0] == 0)) {
        abort();
    }
    lt_tar_close(tar);
}

/* Gives every block that is not empty the checksum of a header. */
static void seal(uint8_t *bytes, size_t length) {
    for (size_t at = 0; at + 512 <= length; at += 512) {
        unsigned sum = 0, used = 0;
        for (size_t i = 0; i < 512; i++) {
            sum += i >= 148 && i < 156 ? ' ' : bytes[at + i];
            used |= bytes[at + i];
        }
        if (used) {
            char text[8];
            snprintf(text, sizeof text, "%06o", sum);
            memcpy(bytes + at + 148, text, sizeof text);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t head[10] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3};
    size_t part = size < STORED_MAX ? size : STORED_MAX, at = sizeof head;
    walk(data, size);
    uint8_t *wrapped = malloc(sizeof head + 5 + part);
    if (!wrapped) {
        abort();
    }
    memcpy(wrapped, head, sizeof head);
    wrapped[at++] = 0; /* a stored block with more to follow: the stream ends without its checksum */
    wrapped[at++] = (uint8_t)part;
    wrapped[at++] = (uint8_t)(part >> 8);
    wrapped[at++] = (uint8_t)~part;
    wrapped[at++] = (uint8_t)(~part >> 8);
    memcpy(wrapped + at, data, part);
    seal(wrapped + at, part);
    walk(wrapped, at + part);
    free(wrapped);
    return 0;
}
