/*
 * A memory provider for tests: all memory is one piece of a file in memory, which is
 * mapped twice, as a process and its neighbour do it. It counts, and fails on demand.
 */
#ifndef LST_SEGMENT_H
#define LST_SEGMENT_H
#include "device/device.h"

#ifdef __linux__
#define LST_HAS_SEGMENTS 1
#else
#define LST_HAS_SEGMENTS 0 /* no memory without a file name: such tests do nothing */
#endif

enum { LST_SEGMENT_ID = 77 };

typedef struct lst_segment lst_segment;

/* The caller's to release; NULL after a failed check. The devices over it retain it. */
lst_segment *lst_segment_create(bool small_tensors);
void lst_segment_retain(lst_segment *s);
void lst_segment_release(lst_segment *s);

/* What lsi_runtime_setup.memory_of is; `user` is the segment. */
ls_status lst_segment_provider(void *user, int device, lsi_memory_provider *out,
                               ls_error *err);

/* A runtime of `devices` devices, each with one thread, over the segment. */
ls_runtime *lst_segment_runtime(lst_segment *s, int devices);

/* How many devices are over it. */
int lst_segment_devices(const lst_segment *s);

/* The n-th block asked for from now on, and only that one, is refused; 0: none. */
void lst_segment_fail_at(lst_segment *s, int64_t n);

/* How many blocks were given, and how many of them have not come back. */
int64_t lst_segment_given(lst_segment *s);
int64_t lst_segment_in_use(lst_segment *s);

/* The bytes at `offset` as a neighbour sees them. */
const void *lst_segment_seen(const lst_segment *s, uint64_t offset);
#endif
