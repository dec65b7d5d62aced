/* hash.h: MD5 (RFC 1321), to check a published archive, and a digest of our own that keeps up with memory, to
 * know large contents by. Neither is for secrets.
 */
#ifndef LT_BASE_HASH_H
#define LT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct lt_md5 {
    uint32_t state[4];
    uint64_t bytes;
    uint8_t block[64];
} lt_md5;

void lt_md5_init(lt_md5 *md5);
void lt_md5_update(lt_md5 *md5, const void *data, size_t bytes);
void lt_md5_final(lt_md5 *md5, char hex[33]);

/* 128 bits, several GB a second; the same on every machine, however the bytes are cut into pieces. */
typedef struct lt_digest {
    uint64_t lanes[4];
    uint64_t bytes;
    uint8_t block[32];
} lt_digest;

void lt_digest_init(lt_digest *digest);
void lt_digest_update(lt_digest *digest, const void *data, size_t bytes);
void lt_digest_final(lt_digest *digest, char hex[33]);

#endif
