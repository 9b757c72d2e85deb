/*
 * Buffers that are used again: memory of a size class comes back in last-in-first-out
 * order, so a step that repeats itself gets the same, still cached addresses and asks the
 * system for nothing. Large blocks are given back when a new one is needed and half as
 * much again is held as recent steps had in use (but not what the last two took), when
 * steps have not used them for long, when the last context leaves, and when the system
 * has run out of memory.
 *
 * Threads: any.
 */
#ifndef LSI_POOL_H
#define LSI_POOL_H
#include "base/base.h"

typedef struct lsi_pool lsi_pool;

enum { LSI_POOL_ALIGN = 64 };

/* NULL: out of memory. */
lsi_pool *lsi_pool_create(void);

/* Gives everything back to the system, blocks in use among it. NULL is allowed. */
void lsi_pool_release(lsi_pool *pool);

/*
 * At least `bytes`, aligned to LSI_POOL_ALIGN, not zeroed; NULL: out of memory.
 * *first (NULL allowed) tells whether no other block was in use.
 */
void *lsi_pool_alloc(lsi_pool *pool, size_t bytes, bool *first);

/* Returns whether it was the last one in use. `ptr` is from lsi_pool_alloc(). */
bool lsi_pool_free(lsi_pool *pool, void *ptr);

/* A step ended: blocks that the steps of late did not need may go. */
void lsi_pool_step(lsi_pool *pool);

/*
 * A context opens or closes. The last one to close gives large free blocks back, unless
 * it was seen that another one comes and wants them again.
 */
void lsi_pool_enter(lsi_pool *pool);
void lsi_pool_leave(lsi_pool *pool);

typedef struct lsi_pool_stats {
    uint64_t system_allocs; /* how often the system was asked */
    size_t bytes_held;      /* from the system, in use or free, headers included */
    size_t blocks_used;
} lsi_pool_stats;
void lsi_pool_stats_get(lsi_pool *pool, lsi_pool_stats *out);

/* The bytes a block for `bytes` really has; 0: too large for any. */
size_t lsi_pool_rounded(size_t bytes);
#endif
