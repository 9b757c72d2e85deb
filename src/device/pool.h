/*
 * A memory pool over a provider: freed blocks are reused in last-in-first-out order within
 * their size class, so a step that repeats itself gets the same, still cached addresses
 * and asks the provider for nothing. Free large blocks are returned to it: when a new one
 * is needed and the pool holds more than 1.5 times what recent steps had in use (except
 * blocks that the last two steps used); when steps have not used them for long; when the
 * last context leaves; and when the provider has no more memory.
 *
 * Threads: any.
 */
#ifndef LSI_POOL_H
#define LSI_POOL_H
#include "base/base.h"
#include "device/memory_provider.h"

typedef struct lsi_pool lsi_pool;

enum { LSI_POOL_ALIGN = 64 };

/*
 * `from` (NULL: the system) is copied, and destroyed with the pool. NULL: out of memory,
 * and `from` is still the caller's.
 */
lsi_pool *lsi_pool_create(const lsi_memory_provider *from);

/* Returns all memory to the provider, also blocks in use. NULL is allowed. */
void lsi_pool_release(lsi_pool *pool);

/*
 * At least `bytes`, aligned to LSI_POOL_ALIGN, not zeroed; NULL: out of memory.
 * *first (NULL allowed) tells whether no other block was in use.
 */
void *lsi_pool_alloc(lsi_pool *pool, size_t bytes, bool *first);

/* Returns whether it was the last one in use. `ptr` is from lsi_pool_alloc(). */
bool lsi_pool_free(lsi_pool *pool, void *ptr);

/* A step ended: returns free blocks that recent steps did not need. */
void lsi_pool_step(lsi_pool *pool);

/*
 * A context opens or closes. The last one to close returns free large blocks to the
 * provider, unless a context asked for such memory again after an earlier such return.
 */
void lsi_pool_enter(lsi_pool *pool);
void lsi_pool_leave(lsi_pool *pool);

typedef struct lsi_pool_stats {
    uint64_t system_allocs; /* how often the provider gave a block */
    size_t bytes_held;      /* of the provider, in use or free, headers included */
    size_t blocks_used;
} lsi_pool_stats;
void lsi_pool_stats_get(lsi_pool *pool, lsi_pool_stats *out);

const lsi_memory_provider *lsi_pool_provider(const lsi_pool *pool);

/* The size of the block that `bytes` would get; 0: too large for any class. */
size_t lsi_pool_rounded(size_t bytes);
#endif
