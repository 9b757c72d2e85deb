/* Seeds of datasets, and the random numbers of shuffle and sample (spec §5.2). */
#ifndef LSI_SEED_H
#define LSI_SEED_H
#include "base/philox.h"

typedef struct lsi_seeds {
    uint64_t a, b;
} lsi_seeds;

/* The pair that TensorFlow makes of an operator's seed (NULL: none) and the global seed
 * of this thread. *drawn: neither was set, and the pair is random. */
lsi_seeds lsi_seeds_of(const int64_t *op_seed);
lsi_seeds lsi_seeds_drawn(const int64_t *op_seed, bool *drawn);

/* What ls_dataset_set_seed() set on this thread. A node is rebuilt with the seed swapped
 * in that it was first built with. */
typedef struct lsi_global_seed {
    bool set;
    int64_t seed;
    uint64_t ops; /* operators built since without a seed of their own */
} lsi_global_seed;
lsi_global_seed lsi_global_seed_get(void);
lsi_global_seed lsi_global_seed_swap(lsi_global_seed s); /* returns the former one */

/* Random numbers drawn one after the other, as TensorFlow's kernels draw them. */
typedef struct lsi_draws {
    uint64_t key;
    lsi_words counter, block;
    int used;       /* numbers of the block */
    uint64_t draws; /* numbers so far: this is what a saved state holds */
} lsi_draws;
void lsi_draws_init(lsi_draws *g, lsi_seeds s);
uint32_t lsi_draws_next(lsi_draws *g);
void lsi_draws_skip(lsi_draws *g, uint64_t n);
#endif
