/* hash.c: MD5 as RFC 1321 describes it, and the digest.
 *
 * MD5: the 64 additive constants are floor(2^32 |sin(i+1)|). They are written out rather than computed,
 * because the last bit of sin() is not the same in every libm.
 *
 * The digest deals blocks of four words out to four lanes that never wait for each other. A lane takes a word
 * in by a step that can be undone, so contents that differ in one word of a lane never meet there again; at
 * the end, the lanes and the length are mixed twice, in opposite orders, to 64 bits each. Its constants are
 * the first digits of pi, and of the golden ratio and the roots of 2 and 3, made odd.
 */
#include "base/hash.h"

#include <string.h>

static const uint32_t constants[64] = {
    0xd76aa478u, 0xe8c7b756u, 0x242070dbu, 0xc1bdceeeu, 0xf57c0fafu, 0x4787c62au, 0xa8304613u, 0xfd469501u,
    0x698098d8u, 0x8b44f7afu, 0xffff5bb1u, 0x895cd7beu, 0x6b901122u, 0xfd987193u, 0xa679438eu, 0x49b40821u,
    0xf61e2562u, 0xc040b340u, 0x265e5a51u, 0xe9b6c7aau, 0xd62f105du, 0x02441453u, 0xd8a1e681u, 0xe7d3fbc8u,
    0x21e1cde6u, 0xc33707d6u, 0xf4d50d87u, 0x455a14edu, 0xa9e3e905u, 0xfcefa3f8u, 0x676f02d9u, 0x8d2a4c8au,
    0xfffa3942u, 0x8771f681u, 0x6d9d6122u, 0xfde5380cu, 0xa4beea44u, 0x4bdecfa9u, 0xf6bb4b60u, 0xbebfbc70u,
    0x289b7ec6u, 0xeaa127fau, 0xd4ef3085u, 0x04881d05u, 0xd9d4d039u, 0xe6db99e5u, 0x1fa27cf8u, 0xc4ac5665u,
    0xf4292244u, 0x432aff97u, 0xab9423a7u, 0xfc93a039u, 0x655b59c3u, 0x8f0ccc92u, 0xffeff47du, 0x85845dd1u,
    0x6fa87e4fu, 0xfe2ce6e0u, 0xa3014314u, 0x4e0811a1u, 0xf7537e82u, 0xbd3af235u, 0x2ad7d2bbu, 0xeb86d391u,
};

static const uint8_t shifts[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

static uint32_t rotate(uint32_t x, unsigned n) {
    return x << n | x >> (32 - n);
}

static void transform(uint32_t state[4], const uint8_t block[64]) {
    uint32_t word[16];
    for (int i = 0; i < 16; i++) {
        word[i] = (uint32_t)block[4 * i] | (uint32_t)block[4 * i + 1] << 8 |
                  (uint32_t)block[4 * i + 2] << 16 | (uint32_t)block[4 * i + 3] << 24;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    for (int i = 0; i < 64; i++) {
        uint32_t mixed = 0;
        int from = 0;
        switch (i / 16) {
        case 0:
            mixed = (b & c) | (~b & d);
            from = i;
            break;
        case 1:
            mixed = (d & b) | (~d & c);
            from = (5 * i + 1) % 16;
            break;
        case 2:
            mixed = b ^ c ^ d;
            from = (3 * i + 5) % 16;
            break;
        default:
            mixed = c ^ (b | ~d);
            from = 7 * i % 16;
        }
        uint32_t turned = rotate(a + mixed + constants[i] + word[from], shifts[i / 16][i % 4]);
        a = d;
        d = c;
        c = b;
        b += turned;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

void lt_md5_init(lt_md5 *md5) {
    *md5 = (lt_md5){.state = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u}};
}

void lt_md5_update(lt_md5 *md5, const void *data, size_t bytes) {
    const uint8_t *at = data;
    while (bytes > 0) {
        size_t used = md5->bytes % 64;
        size_t n = bytes < 64 - used ? bytes : 64 - used;
        memcpy(md5->block + used, at, n);
        md5->bytes += n;
        at += n;
        bytes -= n;
        if (used + n == 64) {
            transform(md5->state, md5->block);
        }
    }
}

void lt_md5_final(lt_md5 *md5, char hex[33]) {
    static const char digits[] = "0123456789abcdef";
    static const uint8_t padding[64] = {0x80};
    uint64_t bits = md5->bytes * 8;
    uint8_t length[8];
    for (int i = 0; i < 8; i++) {
        length[i] = (uint8_t)(bits >> (8 * i));
    }
    /* A 1 bit and zeros up to 56 bytes of a block, then the length in 8. */
    lt_md5_update(md5, padding, 1 + (119 - md5->bytes % 64) % 64);
    lt_md5_update(md5, length, sizeof length);
    for (int i = 0; i < 16; i++) {
        uint8_t byte = (uint8_t)(md5->state[i / 4] >> (8 * (i % 4)));
        hex[2 * i] = digits[byte >> 4];
        hex[2 * i + 1] = digits[byte & 15];
    }
    hex[32] = 0;
}

/* ---- The digest -------------------------------------------------------------------------------- */

#define GOLDEN 0x9e3779b97f4a7c15u
#define ROOT_2 0x6a09e667f3bcc909u
#define ROOT_3 0xbb67ae8584caa73bu

static uint64_t word_at(const uint8_t *at) {
    return (uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 | (uint64_t)at[3] << 24 |
           (uint64_t)at[4] << 32 | (uint64_t)at[5] << 40 | (uint64_t)at[6] << 48 | (uint64_t)at[7] << 56;
}

/* The shift first: a product carries a difference upwards only, and one in the top bit would stay alone. */
static uint64_t take_in(uint64_t lane, uint64_t word) {
    lane ^= word;
    return (lane ^ lane >> 32) * GOLDEN;
}

static uint64_t scramble(uint64_t x) {
    x = (x ^ x >> 32) * ROOT_2;
    x = (x ^ x >> 29) * ROOT_3;
    return x ^ x >> 32;
}

void lt_digest_init(lt_digest *digest) {
    *digest = (lt_digest){
        .lanes = {0x243f6a8885a308d3u, 0x13198a2e03707344u, 0xa4093822299f31d0u, 0x082efa98ec4e6c89u}};
}

static void take_blocks(lt_digest *digest, const uint8_t *at, size_t blocks) {
    uint64_t a = digest->lanes[0], b = digest->lanes[1], c = digest->lanes[2], d = digest->lanes[3];
    for (size_t i = 0; i < blocks; i++, at += 32) {
        a = take_in(a, word_at(at));
        b = take_in(b, word_at(at + 8));
        c = take_in(c, word_at(at + 16));
        d = take_in(d, word_at(at + 24));
    }
    digest->lanes[0] = a;
    digest->lanes[1] = b;
    digest->lanes[2] = c;
    digest->lanes[3] = d;
}

void lt_digest_update(lt_digest *digest, const void *data, size_t bytes) {
    const uint8_t *at = data;
    size_t used = digest->bytes % 32;
    digest->bytes += bytes;
    if (used > 0) {
        size_t n = bytes < 32 - used ? bytes : 32 - used;
        memcpy(digest->block + used, at, n);
        at += n;
        bytes -= n;
        if (used + n < 32) {
            return;
        }
        take_blocks(digest, digest->block, 1);
    }
    take_blocks(digest, at, bytes / 32);
    if (bytes % 32 > 0) {
        memcpy(digest->block, at + bytes / 32 * 32, bytes % 32);
    }
}

void lt_digest_final(lt_digest *digest, char hex[33]) {
    static const char digits[] = "0123456789abcdef";
    size_t used = digest->bytes % 32;
    if (used > 0) {
        memset(digest->block + used, 0, 32 - used); /* the length tells zeros from nothing */
        take_blocks(digest, digest->block, 1);
    }
    uint64_t half[2] = {digest->bytes, ~digest->bytes};
    for (int i = 0; i < 4; i++) {
        half[0] = scramble(half[0] ^ digest->lanes[i]);
        half[1] = scramble(half[1] + digest->lanes[3 - i]);
    }
    for (int i = 0; i < 32; i++) {
        hex[i] = digits[half[i / 16] >> (60 - 4 * (i % 16)) & 15];
    }
    hex[32] = 0;
}
