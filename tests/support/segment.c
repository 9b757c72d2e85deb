/* A memory provider for tests: a piece of a file in memory, given away in order. */
#ifdef __linux__
#define _GNU_SOURCE // NOLINT(bugprone-reserved-identifier): memfd_create
#endif
#include "segment.h"

#include "ls_test.h"
#include "os/thread.h"

#if LST_HAS_SEGMENTS
#include <sys/mman.h>
#include <unistd.h>

enum { SEGMENT_BYTES = 512 << 20 }; // of addresses; pages are given when written to

struct lst_segment {
    atomic_int refs; // devices and the test
    bool small_tensors;
    char *ours, *theirs; // the two mappings
    lsi_mutex lock;      // guards the rest
    size_t used;         // begins anew when nothing is in use
    int64_t given, in_use, fail_at;
};

lst_segment *lst_segment_create(bool small_tensors)
{
    const int fd = memfd_create("segment", MFD_CLOEXEC);
    lst_segment *s = calloc(1, sizeof *s);
    void *maps[2] = {MAP_FAILED, MAP_FAILED};

    LST_CHECK(fd >= 0 && ftruncate(fd, SEGMENT_BYTES) == 0 && s != NULL);
    for (int i = 0; i < 2 && fd >= 0; i++) {
        maps[i] = mmap(NULL, SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        LST_CHECK(maps[i] != MAP_FAILED);
    }
    (void)close(fd);
    if (s == NULL || maps[0] == MAP_FAILED || maps[1] == MAP_FAILED) {
        free(s);
        return NULL;
    }
    atomic_init(&s->refs, 1);
    s->small_tensors = small_tensors;
    s->ours = maps[0];
    s->theirs = maps[1];
    lsi_mutex_init(&s->lock);
    return s;
}

void lst_segment_retain(lst_segment *s)
{
    (void)atomic_fetch_add(&s->refs, 1);
}

void lst_segment_release(lst_segment *s)
{
    if (atomic_fetch_sub(&s->refs, 1) == 1) {
        (void)munmap(s->ours, SEGMENT_BYTES);
        (void)munmap(s->theirs, SEGMENT_BYTES);
        lsi_mutex_destroy(&s->lock);
        free(s);
    }
}

static void *take_block(void *self, size_t bytes, size_t align)
{
    lst_segment *s = self;
    void *ptr = NULL;

    lsi_mutex_lock(&s->lock);
    const size_t begin = (s->used + align - 1) / align * align;
    const bool refused = s->fail_at > 0 && --s->fail_at == 0;

    if (!refused && begin <= SEGMENT_BYTES && bytes <= SEGMENT_BYTES - begin) {
        ptr = s->ours + begin;
        s->used = begin + bytes;
        s->given++;
        s->in_use++;
    }
    lsi_mutex_unlock(&s->lock);
    return ptr;
}

static void return_block(void *self, void *ptr, size_t bytes)
{
    lst_segment *s = self;

    lsi_mutex_lock(&s->lock);
    LST_CHECK((char *)ptr >= s->ours && (char *)ptr + bytes <= s->ours + s->used);
    s->in_use--;
    if (s->in_use == 0) {
        s->used = 0;
    }
    lsi_mutex_unlock(&s->lock);
}

static bool locate_bytes(void *self, const void *ptr, size_t bytes,
                         lsi_memory_location *out)
{
    const lst_segment *s = self;
    const uintptr_t begin = (uintptr_t)s->ours, at = (uintptr_t)ptr;

    if (at < begin || at - begin > SEGMENT_BYTES ||
        bytes > SEGMENT_BYTES - (at - begin)) {
        return false;
    }
    *out = (lsi_memory_location){.segment = LST_SEGMENT_ID, .offset = at - begin};
    return true;
}

static void end_provider(void *self)
{
    lst_segment_release(self);
}

ls_status lst_segment_provider(void *user, int device, lsi_memory_provider *out,
                               ls_error *err)
{
    lst_segment *s = user;

    (void)device;
    (void)err;
    lst_segment_retain(s);
    *out = (lsi_memory_provider){.name = "segment",
                                 .self = s,
                                 .alloc = take_block,
                                 .free = return_block,
                                 .locate = locate_bytes,
                                 .destroy = end_provider,
                                 .small_tensors = s->small_tensors};
    return LS_OK;
}

ls_runtime *lst_segment_runtime(lst_segment *s, int devices)
{
    const lsi_runtime_setup setup = {.memory_of = lst_segment_provider, .user = s};
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    ls_runtime *rt = NULL;

    opts.logical_cpus = devices;
    opts.threads = 1;
    LST_OK(lsi_runtime_create_with(&opts, &setup, &rt, &err));
    return rt;
}

void lst_segment_fail_at(lst_segment *s, int64_t n)
{
    lsi_mutex_lock(&s->lock);
    s->fail_at = n;
    lsi_mutex_unlock(&s->lock);
}

int lst_segment_devices(const lst_segment *s)
{
    return atomic_load(&s->refs) - 1;
}

int64_t lst_segment_given(lst_segment *s)
{
    lsi_mutex_lock(&s->lock);
    const int64_t n = s->given;
    lsi_mutex_unlock(&s->lock);
    return n;
}

int64_t lst_segment_in_use(lst_segment *s)
{
    lsi_mutex_lock(&s->lock);
    const int64_t n = s->in_use;
    lsi_mutex_unlock(&s->lock);
    return n;
}

const void *lst_segment_seen(const lst_segment *s, uint64_t offset)
{
    return s->theirs + offset;
}
#else
// The tests that need segments are left out: nothing calls these.
typedef int lst_segment_none;
#endif
