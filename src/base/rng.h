/* rng.h: randomness that is counted, not streamed.
 *
 * Every random number is Philox4x32-10 (Salmon et al., 2011) of a key (seed) and a counter (purpose,
 * epoch, index): initialization, order, augmentation and dropout are therefore the same numbers on every
 * backend, on any number of threads and after a resume. The header is plain C that nvcc compiles for the
 * device as well.
 */
#ifndef LT_BASE_RNG_H
#define LT_BASE_RNG_H

#include <stdint.h>

#ifdef __CUDACC__
#define LT_HD __host__ __device__
#else
#define LT_HD
#endif

typedef enum lt_purpose {
    LT_RNG_INIT = 1,    /* index: the weight's place in the parameter block */
    LT_RNG_SHUFFLE = 2, /* index: the Feistel round's half block */
    LT_RNG_SYNTH = 3,   /* index: the image; epoch: the draw within it */
    LT_RNG_TEST = 4,
    LT_RNG_AUGMENT = 5, /* index: the image */
    LT_RNG_DROPOUT = 6
} lt_purpose;

typedef struct lt_random {
    uint32_t v[4];
} lt_random;

/* Ten rounds of Philox4x32 over the counter (index low, index high, epoch, purpose) with key seed. */
LT_HD static inline lt_random lt_philox(uint64_t seed, uint32_t purpose, uint32_t epoch, uint64_t index) {
    uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32), c2 = epoch, c3 = purpose;
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    lt_random r = {{c0, c1, c2, c3}};
    return r;
}

/* Uniform in (0, 1): never 0, so that its logarithm is finite. */
LT_HD static inline double lt_uniform(uint32_t bits) {
    return ((double)bits + 0.5) * (1.0 / 4294967296.0);
}

/* The i-th element of the epoch's permutation of [0, n): a Feistel network over the smallest even power of
 * two that holds n, walked until it lands inside. At most four steps on average; no table, no state. */
LT_HD static inline uint32_t lt_permute(uint64_t seed, uint32_t epoch, uint32_t n, uint32_t i) {
    uint32_t half = 1;
    while (half < 16 && ((uint64_t)1 << (2 * half)) < n) {
        half++;
    }
    uint32_t mask = half < 16 ? ((uint32_t)1 << half) - 1 : 0xFFFFu;
    uint32_t at = i;
    do {
        uint32_t left = at >> half, right = at & mask;
        for (uint32_t round = 0; round < 4; round++) {
            uint64_t index = ((uint64_t)round << 32) | right;
            uint32_t mixed = left ^ (lt_philox(seed, LT_RNG_SHUFFLE, epoch, index).v[0] & mask);
            left = right;
            right = mixed;
        }
        at = (left << half) | right;
    } while (at >= n);
    return at;
}

#endif
