/*
 * Philox4x32-10 (Salmon et al., SC 2011): a block cipher of few rounds as a source of
 * random numbers. A counter and a key give four words, so any position of the stream can
 * be computed directly and by any thread.
 */
#ifndef LSI_PHILOX_H
#define LSI_PHILOX_H
#include <stdint.h>

typedef struct lsi_words {
    uint32_t w[4];
} lsi_words;

/* One round: two 32 x 32 bit products, crossed over. */
static inline lsi_words lsi_philox_round(lsi_words c, uint32_t key0, uint32_t key1)
{
    const uint64_t p0 = (uint64_t)UINT32_C(0xD2511F53) * c.w[0];
    const uint64_t p1 = (uint64_t)UINT32_C(0xCD9E8D57) * c.w[2];
    const lsi_words next = {{(uint32_t)(p1 >> 32) ^ c.w[1] ^ key0, (uint32_t)p1,
                             (uint32_t)(p0 >> 32) ^ c.w[3] ^ key1, (uint32_t)p0}};

    return next;
}

static inline lsi_words lsi_philox(lsi_words counter, uint64_t key)
{
    uint32_t key0 = (uint32_t)key;
    uint32_t key1 = (uint32_t)(key >> 32);

    for (int round = 0; round < 10; round++) {
        counter = lsi_philox_round(counter, key0, key1);
        key0 += UINT32_C(0x9E3779B9);
        key1 += UINT32_C(0xBB67AE85);
    }
    return counter;
}

/*
 * Block number `position` of a stream: the counter's lower half counts, its upper half is
 * the stream, so streams of one seed never meet.
 */
static inline lsi_words lsi_random_words(uint64_t seed, uint64_t stream,
                                         uint64_t position)
{
    const lsi_words counter = {{(uint32_t)position, (uint32_t)(position >> 32),
                                (uint32_t)stream, (uint32_t)(stream >> 32)}};

    return lsi_philox(counter, seed);
}
#endif
