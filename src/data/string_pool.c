/*
 * A pool of memory for strings. Slots come from chunks; all slots of a chunk have one
 * size. The list of free slots is kept outside of the chunk, so that managing slots does
 * not load their bytes, which are in no cache by then. An empty chunk is freed, so that
 * strings of other sizes can use its memory.
 */
#include "data/string_pool.h"

#include "os/thread.h"

#include <string.h>

enum {
    UNIT = 64,
    SIZES = 48, // size classes: four per power of two, as in device/pool.c
    SMALLEST_CHUNK = 64 << 10,
    LARGEST_CHUNK = (2 << 20) - 128, // with the allocator's header, a large page
    LARGEST_SLOT = 256 << 10,        // longer strings have a chunk of their own
    MANY_BYTES = 1 << 20,            // more than the caches of a core hold
};

struct chunk {
    struct chunk *next, **link; // list of chunks of its size with free slots
    bool listed;                // it is in that list
    char *bytes;
    size_t slot;      // bytes of a slot
    uint64_t inverse; // 2^32 / units of a slot, rounded up: replaces a division
    uint32_t size;    // size class; SIZES: one string of its own
    uint32_t n, free; // slots, and how many of them are free
    uint32_t stack[]; // indices of the free ones; the last one freed is on top
};

/* Chunks by address, to find the chunk of a string that is freed. */
struct place {
    const char *bytes;
    struct chunk *chunk;
};

struct lsi_string_pool {
    atomic_int refs;
    ls_device *device;
    atomic_size_t bytes; // of all chunks; also read without the lock
    lsi_mutex lock;      // guards the rest
    struct chunk *open[SIZES];
    struct place *places;
    size_t n, room;
};

ls_status lsi_string_pool_create(ls_device *device, lsi_string_pool **out, ls_error *err)
{
    lsi_string_pool *s = lsi_alloc(1, sizeof *s);

    if (s == NULL) {
        return lsi_fail_memory(err, "a pool of strings", sizeof *s);
    }
    s->device = device;
    atomic_init(&s->refs, 1);
    atomic_init(&s->bytes, 0);
    lsi_mutex_init(&s->lock);
    *out = s;
    return LS_OK;
}

size_t lsi_string_pool_bytes(const lsi_string_pool *s)
{
    return atomic_load_explicit(&s->bytes, memory_order_relaxed);
}

static void destroy_chunk(const lsi_string_pool *s, struct chunk *c)
{
    lsi_device_free(s->device, c->bytes);
    lsi_free(c);
}

void lsi_string_pool_release(lsi_string_pool *s)
{
    if (s == NULL || atomic_fetch_sub(&s->refs, 1) != 1) {
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        destroy_chunk(s, s->places[i].chunk);
    }
    lsi_free(s->places);
    lsi_mutex_destroy(&s->lock);
    lsi_free(s);
}

/* ---- chunks; the lock is held ---- */

/* The slot size for `len` bytes: 1, 2, .. 8, 10, 12, 14, 16, 20, .. units. */
static uint32_t size_class(size_t len, size_t *slot)
{
    size_t units = LSI_MAX((len + UNIT - 1) / UNIT, 1);
    uint32_t cut = 0;

    if (len > LARGEST_SLOT) {
        *slot = units * UNIT;
        return SIZES;
    }
    for (; units > 8; cut++) {
        units = (units + 1) / 2;
    }
    *slot = (units << cut) * UNIT;
    return (uint32_t)units - 1 + 4 * cut;
}

static void list_chunk(lsi_string_pool *s, struct chunk *c)
{
    struct chunk **head = &s->open[c->size];

    c->next = *head;
    c->link = head;
    if (c->next != NULL) {
        c->next->link = &c->next;
    }
    *head = c;
    c->listed = true;
}

static void unlist_chunk(struct chunk *c)
{
    *c->link = c->next;
    if (c->next != NULL) {
        c->next->link = c->link;
    }
    c->listed = false;
}

/*
 * How many chunks begin at or below `p`. Strings are freed in random order, so a branch
 * would often be predicted wrongly: the search has none that depends on the data.
 */
static size_t count_below(const lsi_string_pool *s, const char *p)
{
    const struct place *at = s->places;

    for (size_t left = s->n; left > 0;) {
        const size_t half = (left + 1) / 2;
        const size_t all = 0 - (size_t)(at[half - 1].bytes <= p); // all bits set, or none

        at += half & all;
        left -= half;
    }
    return (size_t)(at - s->places);
}

static bool insert_chunk(lsi_string_pool *s, struct chunk *c)
{
    const size_t at = s->n > 0 ? count_below(s, c->bytes) : 0;

    if (s->n == s->room) {
        const size_t room = LSI_MAX(8, 2 * s->room);
        struct place *grown = lsi_realloc(s->places, s->n, room, sizeof *grown);

        if (grown == NULL) {
            return false;
        }
        s->places = grown;
        s->room = room;
    }
    memmove(s->places + at + 1, s->places + at, (s->n - at) * sizeof *s->places);
    s->places[at] = (struct place){c->bytes, c};
    s->n++;
    atomic_fetch_add(&s->bytes, c->slot * c->n);
    return true;
}

static void remove_chunk(lsi_string_pool *s, struct chunk *c)
{
    const size_t at = count_below(s, c->bytes) - 1;

    if (c->listed) {
        unlist_chunk(c);
    }
    s->n--;
    memmove(s->places + at, s->places + at + 1, (s->n - at) * sizeof *s->places);
    atomic_fetch_sub(&s->bytes, c->slot * c->n);
    destroy_chunk(s, c);
}

/* A new chunk is as large as all others together, within limits. */
static uint32_t slots_of(const lsi_string_pool *s, uint32_t size, size_t slot)
{
    size_t bytes = LSI_MAX(lsi_string_pool_bytes(s), (size_t)SMALLEST_CHUNK);

    if (size == SIZES) {
        return 1;
    }
    bytes = LSI_MIN(LSI_MAX(bytes, 8 * slot), (size_t)LARGEST_CHUNK);
    return (uint32_t)(bytes / slot);
}

static struct chunk *add_chunk(lsi_string_pool *s, uint32_t size, size_t slot)
{
    const uint32_t n = slots_of(s, size, slot);
    struct chunk *c = lsi_alloc(1, sizeof *c + n * sizeof c->stack[0]);

    if (c == NULL) {
        return NULL;
    }
    c->slot = slot;
    c->inverse = ((UINT64_C(1) << 32) + slot / UNIT - 1) / (slot / UNIT);
    c->size = size;
    c->n = n;
    for (; c->free < n; c->free++) {
        c->stack[c->free] = n - 1 - c->free;
    }
    c->bytes = lsi_device_alloc(s->device, n * slot);
    if (c->bytes == NULL) {
        lsi_free(c);
        return NULL;
    }
    if (!insert_chunk(s, c)) {
        destroy_chunk(s, c);
        return NULL;
    }
    if (size < SIZES) {
        list_chunk(s, c);
    }
    return c;
}

static char *take_slot(lsi_string_pool *s, size_t len)
{
    size_t slot = 0;
    const uint32_t size = size_class(len, &slot);
    struct chunk *c = size < SIZES ? s->open[size] : NULL;

    if (c == NULL) {
        c = add_chunk(s, size, slot);
    }
    if (c == NULL) {
        return NULL;
    }
    c->free--;
    if (c->free == 0 && c->listed) {
        unlist_chunk(c);
    }
    return c->bytes + c->stack[c->free] * c->slot;
}

/* An empty chunk is freed, but not the last one of its size that has free slots. */
static bool may_free_chunk(const lsi_string_pool *s, const struct chunk *c)
{
    if (c->free < c->n || c->size == SIZES) {
        return c->free == c->n;
    }
    return s->open[c->size] != NULL && (s->open[c->size] != c || c->next != NULL);
}

static struct chunk *chunk_of(const lsi_string_pool *s, const char *p)
{
    return s->places[count_below(s, p) - 1].chunk;
}

static void give_slot(lsi_string_pool *s, struct chunk *c, const char *p)
{
    c->stack[c->free++] = (uint32_t)((size_t)(p - c->bytes) / UNIT * c->inverse >> 32);
    if (may_free_chunk(s, c)) {
        remove_chunk(s, c);
    } else if (!c->listed) {
        list_chunk(s, c);
    }
}

/* ---- copying ---- */

/*
 * Stores that bypass the caches: the bytes are not read again soon, and a normal store
 * would first load the old contents of the cache line.
 */
#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx"))) static void stream_bytes(char *to, const char *from,
                                                        size_t len)
{
    for (size_t at = 0; at < len; at += sizeof(__m256i)) {
        const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(from + at));

        _mm256_stream_si256((__m256i *)(void *)(to + at), x);
    }
}

static void copy_far(char *to, const char *from, size_t len)
{
    const size_t lines = __builtin_cpu_supports("avx") ? len / UNIT * UNIT : 0;

    stream_bytes(to, from, lines);
    memcpy(to + lines, from + lines, len - lines);
}

void lsi_string_pool_fence(void)
{
    _mm_sfence();
}

#else
static void copy_far(char *to, const char *from, size_t len)
{
    memcpy(to, from, len);
}

void lsi_string_pool_fence(void)
{
}
#endif

void lsi_string_pool_copy(const lsi_string_pool *s, char *slot, ls_string *string)
{
    if (lsi_string_pool_bytes(s) > MANY_BYTES) {
        copy_far(slot, string->ptr, string->len);
    } else if (string->len > 0) {
        memcpy(slot, string->ptr, string->len);
    }
    string->ptr = slot;
}

/* ---- slots of several strings ---- */

bool lsi_string_pool_alloc(lsi_string_pool *s, const ls_string *strings, size_t n,
                           char **slots)
{
    size_t i = 0;

    lsi_mutex_lock(&s->lock);
    while (i < n && (slots[i] = take_slot(s, strings[i].len)) != NULL) {
        i++;
    }
    for (size_t k = 0; i < n && k < i; k++) {
        give_slot(s, chunk_of(s, slots[k]), slots[k]);
    }
    lsi_mutex_unlock(&s->lock);
    return i == n;
}

void lsi_string_pool_free(lsi_string_pool *s, char *const *slots, size_t n)
{
    if (n == 0) {
        return;
    }
    lsi_mutex_lock(&s->lock);
    for (size_t i = 0; i < n; i++) {
        give_slot(s, chunk_of(s, slots[i]), slots[i]);
    }
    lsi_mutex_unlock(&s->lock);
}

/* All searches come first, so that the CPU overlaps their cache misses. A chunk that was
 * found stays: it is not empty as long as that string is in it. */
void lsi_string_pool_free_strings(lsi_string_pool *s, const ls_string *strings, size_t n)
{
    lsi_mutex_lock(&s->lock);
    for (size_t at = 0, part; at < n; at += part) {
        struct chunk *chunks[64];

        part = LSI_MIN(n - at, LSI_COUNT_OF(chunks));
        for (size_t i = 0; i < part; i++) {
            chunks[i] = chunk_of(s, strings[at + i].ptr);
        }
        for (size_t i = 0; i < part; i++) {
            give_slot(s, chunks[i], strings[at + i].ptr);
        }
    }
    lsi_mutex_unlock(&s->lock);
}

/* ---- owners ---- */

struct string_owner {
    lsi_buffer buffer; // first: lsi_buffer_release() frees the struct by it
    lsi_string_pool *pool;
    size_t n;
    ls_string strings[];
};

static void release_strings(void *user)
{
    struct string_owner *l = user;

    lsi_string_pool_free_strings(l->pool, l->strings, l->n);
    lsi_string_pool_release(l->pool);
}

lsi_buffer *lsi_string_pool_owner(lsi_string_pool *s, const ls_string *strings, size_t n)
{
    const size_t bytes = n * sizeof *strings;
    struct string_owner *l =
        lsi_alloc_aligned(sizeof *l + bytes, _Alignof(struct string_owner));

    if (l == NULL) {
        return NULL;
    }
    l->buffer = (lsi_buffer){.device = s->device, .done = release_strings, .user = l};
    atomic_init(&l->buffer.refs, 1);
    atomic_fetch_add(&s->refs, 1);
    l->pool = s;
    l->n = n;
    memcpy(l->strings, strings, bytes);
    return &l->buffer;
}
