/* test_base.c: hashing, counted randomness and suggestions, against published answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/rng.h"
#include "latent.h"

#include <stdlib.h>
#include <string.h>

/* RFC 1321, A.5. */
static void test_md5(void **state) {
    static const char *const cases[][2] = {
        {"", "d41d8cd98f00b204e9800998ecf8427e"},
        {"a", "0cc175b9c0f1b6a831c399e269772661"},
        {"abc", "900150983cd24fb0d6963f7d28e17f72"},
        {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
        {"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
         "d174ab98d277d9f5a5611c2c9f419d9f"},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
         "57edf4a22be3c955ac49da2e2107b67a"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t length = strlen(cases[i][0]);
        for (size_t cut = 0; cut <= length; cut++) { /* in two pieces, wherever they meet */
            lt_md5 md5;
            char hex[33];
            lt_md5_init(&md5);
            lt_md5_update(&md5, cases[i][0], cut);
            lt_md5_update(&md5, cases[i][0] + cut, length - cut);
            lt_md5_final(&md5, hex);
            assert_string_equal(hex, cases[i][1]);
        }
    }
}

/* Answers of a second implementation, written from the description of the digest alone. */
static void test_digest(void **state) {
    static const struct {
        size_t length;
        unsigned step;
        const char *hex;
    } cases[] = {
        {0, 1, "3c24a8414fd0d8315912fe762f576fff"},    {31, 1, "95a486ac359bf84d3ac37f7c5dcae821"},
        {32, 1, "f200f201e847558eed5adb95d987afc1"},   {33, 1, "c0faf848d4614d55087ed921753f633d"},
        {1000, 7, "b20f0cf33364e198cb1a1fc8915aea6e"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t bytes[1000];
        for (size_t k = 0; k < cases[i].length; k++) {
            bytes[k] = (uint8_t)(k * cases[i].step);
        }
        for (size_t cut = 0; cut <= cases[i].length; cut++) { /* in three pieces, wherever they meet */
            lt_digest digest;
            char hex[33];
            size_t second = (cases[i].length - cut) / 3;
            lt_digest_init(&digest);
            lt_digest_update(&digest, bytes, cut);
            lt_digest_update(&digest, bytes + cut, second);
            lt_digest_update(&digest, bytes + cut + second, cases[i].length - cut - second);
            lt_digest_final(&digest, hex);
            assert_string_equal(hex, cases[i].hex);
        }
    }
}

static int compare_texts(const void *a, const void *b) {
    return memcmp(a, b, 33);
}

/* Every flipped bit, every swapped pair of words and every zero at the end makes another digest, and each
 * flips about half of its bits. */
static void test_digest_differs(void **state) {
    enum { BYTES = 96, WORDS = BYTES / 8, CASES = 8 * BYTES + WORDS * (WORDS - 1) / 2 + 8 };
    static char hex[CASES + 1][33];
    uint8_t text[BYTES + 8] = {0};
    int count = 0;
    (void)state;
    for (int i = 0; i < BYTES; i++) {
        text[i] = (uint8_t)(i * 151 + 3); /* no byte twice */
    }
    for (int i = -1; i < CASES; i++) {
        uint8_t changed[BYTES + 8];
        size_t bytes = BYTES;
        memcpy(changed, text, sizeof changed);
        if (i >= 0 && i < 8 * BYTES) {
            changed[i / 8] ^= (uint8_t)(1 << i % 8);
        } else if (i >= CASES - 8) {
            bytes += (size_t)(i - (CASES - 8)) + 1;
        } else if (i >= 0) {
            int a = 0, b = i - 8 * BYTES;
            for (; b >= WORDS - 1 - a; a++) {
                b -= WORDS - 1 - a;
            }
            b += a + 1;
            memcpy(changed + 8 * a, text + 8 * b, 8);
            memcpy(changed + 8 * b, text + 8 * a, 8);
        }
        lt_digest digest;
        lt_digest_init(&digest);
        lt_digest_update(&digest, changed, bytes);
        lt_digest_final(&digest, hex[count++]);
    }
    int flipped = 0;
    for (int i = 1; i < count; i++) {
        for (int k = 0; k < 32; k++) {
            int a = hex[0][k] <= '9' ? hex[0][k] - '0' : hex[0][k] - 'a' + 10;
            int b = hex[i][k] <= '9' ? hex[i][k] - '0' : hex[i][k] - 'a' + 10;
            flipped += __builtin_popcount((unsigned)(a ^ b));
        }
    }
    assert_in_range(flipped / (count - 1), 62, 66);
    qsort(hex, (size_t)count, sizeof hex[0], compare_texts);
    for (int i = 1; i < count; i++) {
        assert_string_not_equal(hex[i - 1], hex[i]);
    }
}

/* Lengths on either side of where the padding needs another block; answers from coreutils' md5sum. */
static void test_md5_padding(void **state) {
    static const struct {
        size_t length;
        const char *hex;
    } cases[] = {{55, "04364420e25c512fd958a70738aa8f72"},  {56, "668a72d5ba17f08e62dabcafad6db14b"},
                 {57, "693037871c4a9d3d8685018905cb530a"},  {63, "7dc2ca208106a2f703567bdff99d8981"},
                 {64, "c1bb4f81d892b2d57947682aeb252456"},  {65, "1bc932052302d074bdec39795fe00cf6"},
                 {119, "ab347a5f68c8a443cfcddc633f12c24f"}, {120, "fb98667f98096de92620b64f46e1c5b5"},
                 {128, "d69cb61a6ee87200676eb0d4b90edbcb"}, {2000, "6284398f25b31fbdd31e5c6cc04af9ad"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[2000], hex[33];
        lt_md5 md5;
        memset(text, 'x', sizeof text);
        lt_md5_init(&md5);
        lt_md5_update(&md5, text, cases[i].length);
        lt_md5_final(&md5, hex);
        assert_string_equal(hex, cases[i].hex);
    }
}

/* philox4x32 10 in the known-answer file of Random123. */
static void test_philox(void **state) {
    static const struct {
        uint32_t counter[4], key[2], answer[4];
    } cases[] = {{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
                 {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                  {0xffffffff, 0xffffffff},
                  {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
                 {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                  {0xa4093822, 0x299f31d0},
                  {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t seed = (uint64_t)cases[i].key[1] << 32 | cases[i].key[0];
        uint64_t index = (uint64_t)cases[i].counter[1] << 32 | cases[i].counter[0];
        lt_random r = lt_philox(seed, cases[i].counter[3], cases[i].counter[2], index);
        assert_memory_equal(r.v, cases[i].answer, sizeof r.v);
    }
    assert_true(lt_uniform(0) > 0 && lt_uniform(0xffffffff) < 1);
    assert_true(lt_uniform(0x80000000) > 0.5 && lt_uniform(0x7fffffff) < 0.5);
}

static void test_permute(void **state) {
    static const uint32_t sizes[] = {1, 2, 3, 5, 64, 1000, 50000};
    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        uint32_t n = sizes[k], moved = 0, differ_epoch = 0, differ_seed = 0;
        unsigned char *seen = calloc(n, 1);
        assert_non_null(seen);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t at = lt_permute(7, 3, n, i);
            assert_in_range(at, 0, n - 1);
            assert_int_equal(seen[at], 0);
            seen[at] = 1;
            moved += at != i;
            differ_epoch += at != lt_permute(7, 4, n, i);
            differ_seed += at != lt_permute(8, 3, n, i);
        }
        free(seen);
        if (n >= 64) { /* a random permutation keeps about one element in place */
            assert_true(moved >= n - 8 && differ_epoch >= n - 8 && differ_seed >= n - 8);
        }
    }
}

/* Neighbours in the data set do not stay neighbours, and both halves mix: what a shuffle is for. */
static void test_permute_mixes(void **state) {
    enum { N = 50000 };
    uint32_t near = 0, crossed = 0;
    (void)state;
    for (uint32_t i = 0; i + 1 < N; i++) {
        uint32_t a = lt_permute(1, 0, N, i), b = lt_permute(1, 0, N, i + 1);
        near += (a > b ? a - b : b - a) < 50; /* expected: 2*50/N of them, 100 */
        crossed += (i < N / 2) != (a < N / 2);
    }
    assert_in_range(near, 50, 150); /* five standard deviations */
    assert_in_range(crossed, 25000 - 560, 25000 + 560);
}

static void test_suggest(void **state) {
    static const char *const commands[] = {"data",        "train",   "eval", "features",
                                           "reconstruct", "compare", "run",  "lr"};
    static const struct {
        const char *word, *meant;
    } cases[] = {{"train", "train"},
                 {"trian", "train"},
                 {"tarin", "train"},
                 {"rtain", "train"},
                 {"TRAIN", "train"},
                 {"eavl", "eval"},
                 {"comapre", "compare"},
                 {"recnostrct", "reconstruct"},
                 {"reconstruction", "reconstruct"},
                 {"feature", "features"},
                 {"dat", "data"},
                 {"rn", "run"},
                 {"l", "lr"},
                 {"zzzzz", NULL},
                 {"x", NULL},
                 {"", NULL},
                 {"xy", NULL},
                 {"learn", NULL}};
    enum { COUNT = sizeof commands / sizeof *commands };
    char wordy[1000];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *found = latent_suggest(cases[i].word, commands, COUNT);
        if (!cases[i].meant) {
            assert_null(found);
        } else {
            assert_non_null(found);
            assert_string_equal(found, cases[i].meant);
        }
    }
    assert_null(latent_suggest("train", commands, 0));
    memset(wordy, 'a', sizeof wordy - 1);
    wordy[sizeof wordy - 1] = 0;
    assert_null(latent_suggest(wordy, commands, COUNT));
    assert_null(latent_suggest("train", (const char *[]){wordy}, 1));
    /* A swap costs 1, so that it beats two replacements; of equals the first wins. */
    assert_string_equal(latent_suggest("ab", (const char *[]){"cb", "ba"}, 2), "cb");
    assert_string_equal(latent_suggest("abcd", (const char *[]){"xbcx", "abdc"}, 2), "abdc");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digest),        cmocka_unit_test(test_digest_differs),
        cmocka_unit_test(test_md5),           cmocka_unit_test(test_md5_padding),
        cmocka_unit_test(test_philox),        cmocka_unit_test(test_permute),
        cmocka_unit_test(test_permute_mixes), cmocka_unit_test(test_suggest)};
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
