/* Allocation through the program's allocator, and failure injection for tests. */
#include "base/base.h"

typedef void *(*alloc_fn)(size_t size, size_t align, void *user);
typedef void (*free_fn)(void *ptr, void *user);

static alloc_fn user_alloc; // all three are set together, before the first allocation
static free_fn user_free;
static void *user_data;

static _Atomic int64_t fail_at; // 0: never
static _Atomic int64_t counted;

ls_status ls_allocator_set(alloc_fn alloc, free_fn release, void *user, ls_error *err)
{
    if ((alloc == NULL) != (release == NULL)) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "allocator: give both functions, or neither to have malloc back");
    }
    user_alloc = alloc;
    user_free = release;
    user_data = user;
    return LS_OK;
}

int64_t lsi_alloc_fail_at(int64_t n)
{
    atomic_store(&fail_at, n);
    return atomic_exchange(&counted, 0);
}

static bool injected(void)
{
    const int64_t at = atomic_load_explicit(&fail_at, memory_order_relaxed);

    return at != 0 && atomic_fetch_add(&counted, 1) + 1 == at;
}

void *lsi_alloc_aligned(size_t size, size_t align)
{
    void *ptr = NULL;

    if (injected()) {
        return NULL;
    }
    if (size == 0) {
        size = 1;
    }
    if (user_alloc != NULL) {
        return user_alloc(size, align, user_data);
    }
    if (align <= _Alignof(max_align_t)) {
        return malloc(size);
    }
    return posix_memalign(&ptr, align, size) == 0 ? ptr : NULL;
}

void *lsi_alloc(size_t count, size_t size)
{
    size_t bytes;
    void *ptr;

    if (!lsi_mul_size(count, size, &bytes)) {
        return NULL;
    }
    ptr = lsi_alloc_aligned(bytes, 16);
    if (ptr != NULL) {
        memset(ptr, 0, bytes);
    }
    return ptr;
}

void *lsi_realloc(void *ptr, size_t old_count, size_t count, size_t size)
{
    void *grown = lsi_alloc(count, size);

    if (grown != NULL && ptr != NULL) {
        memcpy(grown, ptr, LSI_MIN(old_count, count) * size);
        lsi_free(ptr);
    }
    return grown;
}

void lsi_free(void *ptr)
{
    if (ptr == NULL) {
        return;
    }
    if (user_free != NULL) {
        user_free(ptr, user_data);
    } else {
        free(ptr);
    }
}

char *lsi_strdup(const char *s)
{
    const size_t n = strlen(s) + 1;
    char *copy = lsi_alloc_aligned(n, 16);

    return copy != NULL ? memcpy(copy, s, n) : NULL;
}
