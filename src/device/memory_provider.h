/*
 * Where the pool of a device takes its memory from: the system, or a segment that other
 * processes map. The calls are rare, a steady step makes none. Any thread calls them, also
 * several at once, and no lock of the library is held.
 */
#ifndef LSI_MEMORY_PROVIDER_H
#define LSI_MEMORY_PROVIDER_H
#include "base/base.h"

/* What another process needs to find bytes: they are at `offset` of its own mapping. */
typedef struct lsi_memory_location {
    uint64_t segment; /* a number that the provider gave it */
    uint64_t offset;
} lsi_memory_location;

typedef struct lsi_memory_provider {
    const char *name; /* for messages: "system" */
    void *self;

    /* At least `bytes` aligned to `align`, a power of two; not zeroed. NULL: no more. */
    void *(*alloc)(void *self, size_t bytes, size_t align);

    /* What alloc() gave, with the same number of bytes. */
    void (*free)(void *self, void *ptr, size_t bytes);

    /*
     * Optional: the location of these bytes; false: they are not wholly in one segment.
     * Without it no memory of the device has one.
     */
    bool (*locate)(void *self, const void *ptr, size_t bytes, lsi_memory_location *out);

    /* Optional. Called once, after all memory was freed; nothing is called later. */
    void (*destroy)(void *self);

    /* Elements of small tensors come from here, too: otherwise the struct holds them. */
    bool small_tensors;
} lsi_memory_provider;

/* The allocator of the program (ls_allocator_set()), with advice on large blocks. */
extern const lsi_memory_provider lsi_system_memory;
#endif
