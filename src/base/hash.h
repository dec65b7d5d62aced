/* hash.h: MD5 (RFC 1321), to check a published archive. Not for secrets. */
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

#endif
