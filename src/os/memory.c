/* Advice to the system about pages of memory. */
#if defined(__linux__) && !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE // NOLINT(bugprone-reserved-identifier): madvise
#endif
#include "os/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE ((uintptr_t)1 << 21)

void lsi_memory_want_huge_pages(void *ptr, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    const uintptr_t begin = ((uintptr_t)ptr + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    const uintptr_t end = ((uintptr_t)ptr + bytes) & ~(HUGE_PAGE - 1);

    if (begin < end) {
        // NOLINTNEXTLINE(performance-no-int-to-ptr): rounding needs the number
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
    }
#else
    (void)ptr;
    (void)bytes;
#endif
}

void lsi_memory_forget(void *ptr, size_t bytes)
{
#if defined(__linux__) // elsewhere the advice does not mean that the pages go at once
    const long asked = sysconf(_SC_PAGESIZE);
    const uintptr_t page = asked > 0 ? (uintptr_t)asked : 4096;
    const uintptr_t begin = ((uintptr_t)ptr + page - 1) & ~(page - 1);
    const uintptr_t end = ((uintptr_t)ptr + bytes) & ~(page - 1);

    if (begin < end) {
        // NOLINTNEXTLINE(performance-no-int-to-ptr): rounding needs the number
        void *from = (void *)begin;

#ifdef MADV_NOHUGEPAGE // data of the allocator in that page would bring 2 MiB back
        (void)madvise(from, end - begin, MADV_NOHUGEPAGE);
#endif
        (void)madvise(from, end - begin, MADV_DONTNEED);
    }
#else
    (void)ptr;
    (void)bytes;
#endif
}
