/*
 * Seeds of datasets and the generator that shuffles draw from: TensorFlow's, bit for bit
 * (Philox-4x32 with ten rounds), so that an order given by a seed is the same here.
 */
#include "data/data.h"
#include "os/clock.h"
#include "os/file.h"

#define MODULUS 2147483647 /* 2^31 - 1 */
#define NO_GLOBAL_SEED 87654321

/* What ls_dataset_set_seed() set on this thread. */
static _Thread_local lsi_global_seed global_seed;

lsi_global_seed lsi_global_seed_get(void)
{
    return global_seed;
}

lsi_global_seed lsi_global_seed_swap(lsi_global_seed s)
{
    const lsi_global_seed old = global_seed;

    global_seed = s;
    return old;
}

void ls_dataset_set_seed(const int64_t *seed)
{
    global_seed.set = seed != NULL;
    global_seed.seed = seed != NULL ? *seed : 0;
    global_seed.ops = 0;
}

static uint64_t reduce_seed(int64_t seed)
{
    const int64_t rest = seed % MODULUS;

    return (uint64_t)(rest < 0 ? rest + MODULUS : rest);
}

/* SplitMix64: spreads the few random bits of the clock, used without /dev/urandom. */
static uint64_t spread_bits(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static lsi_seeds fresh_seeds(void)
{
    lsi_seeds s = {0, 0};
    lsi_file *file = NULL;
    size_t got = 0;

    if (lsi_file_open("/dev/urandom", LSI_FILE_READ, &file, NULL) != LS_OK ||
        lsi_file_read_at(file, 0, &s, sizeof s, &got, NULL) != LS_OK || got < sizeof s) {
        s.a = spread_bits((uint64_t)lsi_now_ns());
        s.b = spread_bits(s.a ^ (uint64_t)(uintptr_t)&s);
    }
    lsi_file_close(file);
    return s;
}

lsi_seeds lsi_seeds_drawn(const int64_t *op_seed, bool *drawn)
{
    *drawn = op_seed == NULL && !global_seed.set;
    return lsi_seeds_of(op_seed);
}

lsi_seeds lsi_seeds_of(const int64_t *op_seed)
{
    lsi_seeds s = {NO_GLOBAL_SEED, 0};

    if (op_seed == NULL) {
        if (!global_seed.set) {
            return fresh_seeds();
        }
        s.a = reduce_seed(global_seed.seed);
        s.b = reduce_seed((int64_t)(spread_bits(global_seed.ops++) >> 1));
    } else {
        s.a = global_seed.set ? reduce_seed(global_seed.seed) : NO_GLOBAL_SEED;
        s.b = reduce_seed(*op_seed);
    }
    if (s.a == 0 && s.b == 0) {
        s.b = MODULUS; // two zeros mean "no seed" in TensorFlow
    }
    return s;
}

/* ---- the generator ---- */

static void next_block(lsi_draws *g)
{
    g->block = lsi_philox(g->counter, g->key);
    g->used = 0;
    for (int i = 0; i < 4 && ++g->counter.w[i] == 0; i++) {
    }
}

void lsi_draws_init(lsi_draws *g, lsi_seeds s)
{
    *g = (lsi_draws){.key = s.a, .used = 4};
    g->counter.w[2] = (uint32_t)s.b;
    g->counter.w[3] = (uint32_t)(s.b >> 32);
}

uint32_t lsi_draws_next(lsi_draws *g)
{
    if (g->used == 4) {
        next_block(g);
    }
    g->draws++;
    return g->block.w[g->used++];
}

void lsi_draws_skip(lsi_draws *g, uint64_t n)
{
    const uint64_t left = (uint64_t)(4 - g->used);

    g->draws += n;
    if (n <= left) {
        g->used += (int)n;
        return;
    }
    n -= left;
    g->used = 4;
    uint64_t carry = n / 4; // whole blocks are skipped in the counter
    for (int i = 0; i < 4 && carry > 0; i++) {
        carry += g->counter.w[i];
        g->counter.w[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (n % 4 > 0) {
        next_block(g);
        g->used = (int)(n % 4);
    }
}
