/* The memory pool of a device: size classes, free lists, and what is given back when. */
#include "device/pool.h"

#include "os/thread.h"

#if defined(__SANITIZE_ADDRESS__)
#define POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISON 1
#endif
#endif
#ifdef POISON
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(ptr, bytes) ((void)(ptr), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(ptr, bytes) ((void)(ptr), (void)(bytes))
#endif

/*
 * Sizes are counted in units of 64 bytes and cut off after their three leading bits, so
 * that there are four classes to a power of two and at most a fifth of a block is unused:
 * 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, ... units are classes 0, 1, 2, ...
 */
enum { UNIT = 64, CLASSES = 168, SPINS = 64 };

/* Blocks from 128 KiB on are returned to the provider: their classes are counted. */
enum { LARGE_CLASS = 39, WINDOW = 64 };

#define LARGE ((size_t)1 << 17)
#define HUGE_PAGE ((size_t)1 << 21)

enum state { USED = 0x55534544, FREE = 0x46524545 };

/* In the 64 bytes before each block. */
struct header {
    struct header *next_free;   // the list of its class
    struct header *prev, *next; // all blocks of the pool
    uint32_t class;
    uint32_t state;
};

/* How many large blocks of a class there are, and were in use at once. */
struct count {
    uint32_t held, used;
    uint32_t most, before; // in use at once in this window, and in the one before
    uint64_t last;         // the step that took the last one
};

struct lsi_pool {
    lsi_memory_provider from;           // never changes
    atomic_flag lock;                   // guards the rest
    struct header *free_lists[CLASSES]; // the last one freed comes first
    struct header *all;
    lsi_pool_stats stats;
    struct count counts[CLASSES - LARGE_CLASS];
    uint64_t step;            // how many ended, WINDOW of them make a window
    size_t held, used;        // bytes of large blocks
    size_t peak, peak_before; // of `used`, in this window and in the one before
    size_t contexts;          // that may take memory
    bool emptied;             // by the last context, and no large block was needed since
    bool keeps;               // one was: the last context to leave keeps the blocks
};

_Static_assert(sizeof(struct header) <= UNIT, "a header fits before its block");

static void lock_pool(lsi_pool *pool)
{
    // Held for some ten instructions: spin shortly, then yield to the holder.
    for (int i = 0; atomic_flag_test_and_set_explicit(&pool->lock, memory_order_acquire);
         i++) {
        if (i < SPINS) {
            lsi_pause();
        } else {
            lsi_yield();
        }
    }
}

static void unlock_pool(lsi_pool *pool)
{
    atomic_flag_clear_explicit(&pool->lock, memory_order_release);
}

/* The class for `bytes`; CLASSES: there is none that large. */
static inline unsigned class_of(size_t bytes)
{
    size_t units;
    unsigned cut, top;

    if (bytes > SIZE_MAX - UNIT) {
        return CLASSES;
    }
    units = bytes > UNIT ? (bytes + UNIT - 1) / UNIT : 1;
    if (units < 8) {
        return (unsigned)units - 1;
    }
    cut = 61u - (unsigned)__builtin_clzll(units); // bits after the three leading ones
    top = (unsigned)((units - 1) >> cut) + 1;     // 4 .. 8, rounded up
    return LSI_MIN(cut * 4 + top - 1, (unsigned)CLASSES);
}

static inline size_t class_bytes(unsigned class)
{
    if (class < 7) {
        return (size_t)(class + 1) * UNIT;
    }
    return (size_t)((class + 1) % 4 + 4) << ((class + 1) / 4 - 1) << 6;
}

size_t lsi_pool_rounded(size_t bytes)
{
    const unsigned class = class_of(bytes);

    return class < CLASSES ? class_bytes(class) : 0;
}

lsi_pool *lsi_pool_create(const lsi_memory_provider *from)
{
    lsi_pool *pool = lsi_alloc(1, sizeof *pool);

    LSI_ASSERT(class_of(LARGE) == LARGE_CLASS && class_of(LARGE - 1) <= LARGE_CLASS);

    if (pool != NULL) {
        pool->from = from != NULL ? *from : lsi_system_memory;
        atomic_flag_clear(&pool->lock);
    }
    return pool;
}

static void return_block(const lsi_pool *pool, struct header *h)
{
    const size_t bytes = class_bytes(h->class);

    // The next owner of the memory may write to all of it.
    ASAN_UNPOISON_MEMORY_REGION((char *)h + UNIT, bytes);
    pool->from.free(pool->from.self, h, UNIT + bytes);
}

void lsi_pool_release(lsi_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    while (pool->all != NULL) {
        struct header *h = pool->all;

        pool->all = h->next;
        return_block(pool, h);
    }
    if (pool->from.destroy != NULL) {
        pool->from.destroy(pool->from.self);
    }
    lsi_free(pool);
}

/* With the lock held: removes a block from the pool. */
static void unlink_block(lsi_pool *pool, struct header *h)
{
    if (h->prev != NULL) {
        h->prev->next = h->next;
    } else {
        pool->all = h->next;
    }
    if (h->next != NULL) {
        h->next->prev = h->prev;
    }
    pool->stats.bytes_held -= UNIT + class_bytes(h->class);
    if (h->class >= LARGE_CLASS) {
        pool->counts[h->class - LARGE_CLASS].held--;
        pool->held -= class_bytes(h->class);
    }
}

/* With the lock held: moves a free block of a class from the pool to `list`. */
static void take_off(lsi_pool *pool, unsigned class, struct header **list)
{
    struct header *h = pool->free_lists[class];

    pool->free_lists[class] = h->next_free;
    unlink_block(pool, h);
    h->next_free = *list;
    *list = h;
}

static void return_list(const lsi_pool *pool, struct header *list)
{
    while (list != NULL) {
        struct header *h = list;

        list = h->next_free;
        return_block(pool, h);
    }
}

/* Gives free large blocks back; false: there were none. */
static bool trim_pool(lsi_pool *pool)
{
    struct header *list = NULL;
    bool any = false;

    lock_pool(pool);
    for (unsigned class = LARGE_CLASS; class < CLASSES; class ++) {
        while (pool->free_lists[class] != NULL) {
            take_off(pool, class, &list);
        }
    }
    unlock_pool(pool);
    any = list != NULL;
    return_list(pool, list);
    return any;
}

/* With the lock held: the class whose free blocks lie idle longest; CLASSES: none. */
static unsigned idle_class(const lsi_pool *pool)
{
    unsigned found = CLASSES;

    for (unsigned class = LARGE_CLASS; class < CLASSES; class ++) {
        const struct count *n = &pool->counts[class - LARGE_CLASS];

        // What this step or the last one used, the next one will use again.
        if (pool->free_lists[class] != NULL && n->last + 1 < pool->step &&
            (found == CLASSES || n->last < pool->counts[found - LARGE_CLASS].last)) {
            found = class;
        }
    }
    return found;
}

/*
 * Before a large block is allocated: sizes that vary from step to step would leave free
 * blocks in every class. Returns idle ones until the pool holds at most 1.5 times what was
 * in use at once.
 */
static LSI_COLD void make_room(lsi_pool *pool, size_t bytes)
{
    struct header *list = NULL;
    size_t most = 0;

    lock_pool(pool);
    most = LSI_MAX(LSI_MAX(pool->peak, pool->peak_before), pool->used + bytes);
    while (pool->held + bytes > most + most / 2) {
        const unsigned class = idle_class(pool);

        if (class == CLASSES) {
            break;
        }
        take_off(pool, class, &list);
    }
    pool->keeps = pool->keeps || pool->emptied;
    pool->emptied = false;
    unlock_pool(pool);
    return_list(pool, list);
}

void lsi_pool_step(lsi_pool *pool)
{
    struct header *list = NULL;

    lock_pool(pool);
    if (++pool->step % WINDOW == 0) {
        for (unsigned class = LARGE_CLASS; class < CLASSES; class ++) {
            struct count *n = &pool->counts[class - LARGE_CLASS];

            while (n->held > LSI_MAX(n->most, n->before) &&
                   pool->free_lists[class] != NULL) {
                take_off(pool, class, &list);
            }
            n->before = n->most;
            n->most = n->used;
        }
        pool->peak_before = pool->peak;
        pool->peak = pool->used;
    }
    unlock_pool(pool);
    return_list(pool, list);
}

void lsi_pool_enter(lsi_pool *pool)
{
    lock_pool(pool);
    pool->contexts++;
    unlock_pool(pool);
}

void lsi_pool_leave(lsi_pool *pool)
{
    bool empty = false;

    lock_pool(pool);
    empty = --pool->contexts == 0 && !pool->keeps;
    pool->emptied = pool->emptied || empty;
    unlock_pool(pool);
    if (empty) {
        (void)trim_pool(pool);
    }
}

/*
 * Writes to every page, so that the system provides its memory now: a block that was used
 * in part only would otherwise cause page faults in a later step.
 */
static void touch_pages(struct header *h, size_t bytes)
{
    enum { PAGE = 4096 };

    for (size_t at = 0; at < bytes; at += PAGE) {
        ((volatile char *)h)[at] = 0;
    }
}

/* A block the pool does not have yet, not linked anywhere. */
static LSI_COLD struct header *take_block(lsi_pool *pool, unsigned class)
{
    const lsi_memory_provider *from = &pool->from;
    const size_t bytes = UNIT + class_bytes(class);
    const size_t align = bytes > HUGE_PAGE ? HUGE_PAGE : UNIT;
    struct header *h;

    if (class >= LARGE_CLASS) {
        make_room(pool, bytes);
    }
    h = from->alloc(from->self, bytes, align);
    // Freeing small blocks would not help.
    if (h == NULL && bytes > LARGE && trim_pool(pool)) {
        h = from->alloc(from->self, bytes, align);
    }
    if (h == NULL) {
        return NULL;
    }
    touch_pages(h, bytes);
    memset(h, 0, sizeof *h);
    h->class = class;
    return h;
}

/* With the lock held: a new block joins the list of all. */
static void link_block(lsi_pool *pool, struct header *h)
{
    h->next = pool->all;
    if (h->next != NULL) {
        h->next->prev = h;
    }
    pool->all = h;
    pool->stats.system_allocs++;
    pool->stats.bytes_held += UNIT + class_bytes(h->class);
    if (h->class >= LARGE_CLASS) {
        pool->counts[h->class - LARGE_CLASS].held++;
        pool->held += class_bytes(h->class);
    }
}

/* With the lock held: a large block was taken. */
static void count_taken(lsi_pool *pool, unsigned class)
{
    struct count *n = &pool->counts[class - LARGE_CLASS];

    n->used++;
    n->most = LSI_MAX(n->most, n->used);
    n->last = pool->step;
    pool->used += class_bytes(class);
    pool->peak = LSI_MAX(pool->peak, pool->used);
}

LSI_HOT void *lsi_pool_alloc(lsi_pool *pool, size_t bytes, bool *first)
{
    const unsigned class = class_of(bytes);
    struct header *h;
    bool was_first;

    if (class >= CLASSES) {
        return NULL;
    }
    lock_pool(pool);
    h = pool->free_lists[class];
    if (h != NULL) {
        pool->free_lists[class] = h->next_free;
    } else {
        unlock_pool(pool);
        h = take_block(pool, class);
        if (h == NULL) {
            return NULL;
        }
        lock_pool(pool);
        link_block(pool, h);
    }
    h->state = USED;
    if (class >= LARGE_CLASS) {
        count_taken(pool, class);
    }
    was_first = pool->stats.blocks_used++ == 0;
    unlock_pool(pool);
    if (first != NULL) {
        *first = was_first;
    }
    // Only the requested bytes: reading the rest of the block is an error, too.
    ASAN_POISON_MEMORY_REGION((char *)h + UNIT, class_bytes(class));
    ASAN_UNPOISON_MEMORY_REGION((char *)h + UNIT, bytes);
    return (char *)h + UNIT;
}

LSI_HOT bool lsi_pool_free(lsi_pool *pool, void *ptr)
{
    struct header *h = (struct header *)(void *)((char *)ptr - UNIT);
    bool last;

    ASAN_POISON_MEMORY_REGION(ptr, class_bytes(h->class));
    lock_pool(pool);
    LSI_ASSERT(h->state == USED);
    h->state = FREE;
    h->next_free = pool->free_lists[h->class];
    pool->free_lists[h->class] = h;
    if (h->class >= LARGE_CLASS) {
        pool->counts[h->class - LARGE_CLASS].used--;
        pool->used -= class_bytes(h->class);
    }
    last = --pool->stats.blocks_used == 0;
    unlock_pool(pool);
    return last;
}

const lsi_memory_provider *lsi_pool_provider(const lsi_pool *pool)
{
    return &pool->from;
}

void lsi_pool_stats_get(lsi_pool *pool, lsi_pool_stats *out)
{
    lock_pool(pool);
    *out = pool->stats;
    unlock_pool(pool);
}
