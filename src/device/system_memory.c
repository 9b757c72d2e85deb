/* The memory provider of every device that has no other: the program's allocator. */
#include "device/memory_provider.h"
#include "os/memory.h"

enum { HUGE_PAGE = 1 << 21, LARGE = 1 << 17 };

static void *alloc_from_system(void *self, size_t bytes, size_t align)
{
    void *ptr = lsi_alloc_aligned(bytes, align);

    (void)self;
    if (ptr != NULL && bytes > HUGE_PAGE) {
        lsi_memory_want_huge_pages(ptr, bytes);
    }
    return ptr;
}

static void return_to_system(void *self, void *ptr, size_t bytes)
{
    (void)self;
    if (bytes > LARGE) {
        // The allocator may keep it mapped: let the system have the pages now.
        lsi_memory_forget(ptr, bytes);
    }
    lsi_free(ptr);
}

const lsi_memory_provider lsi_system_memory = {
    .name = "system",
    .alloc = alloc_from_system,
    .free = return_to_system,
};
