/* Status, memory, log: what every folder may use. Includes nothing else of ours. */
#ifndef LSI_BASE_H
#define LSI_BASE_H

#include "lockstep/log.h"
#include "lockstep/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/banned.h"

#define LSI_COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))
#define LSI_MIN(a, b) ((a) < (b) ? (a) : (b))
#define LSI_MAX(a, b) ((a) > (b) ? (a) : (b))
#define LSI_HOT __attribute__((hot))
#define LSI_COLD __attribute__((cold, noinline))

/* An invariant of the library; never the arguments of a caller or data from outside. */
#define LSI_ASSERT(cond) ((cond) ? (void)0 : lsi_bug(#cond, __FILE__, __LINE__))
_Noreturn void lsi_bug(const char *what, const char *file, int line);

/* Ends the process: an exception has left a function of the program (base/guard.h). */
_Noreturn void lsi_end_by_exception(const char *what);

/* Fills `err` (NULL allowed) and returns `code`, so that failing is one statement. */
ls_status lsi_fail(ls_error *err, ls_status code, int rank, const char *fmt, ...)
    LS_PRINTF(4, 5) LSI_COLD;

/* The same with the kind of exception TensorFlow raises: kind LS_KIND_VALUE etc. */
ls_status lsi_fail_kind(ls_error *err, ls_status code, ls_kind kind, const char *fmt, ...)
    LS_PRINTF(4, 5) LSI_COLD;

/* Sets *err, if any, to a failure that happened before, and returns its code. */
ls_status lsi_fail_again(ls_error *err, const ls_error *first);

/* Copies the site of the user's call into *err, if any. `file` may be NULL: unknown. */
void lsi_error_set_site(ls_error *err, const char *file, int line);

/* Fails with LS_RESOURCE_EXHAUSTED: no memory for `what`. */
ls_status lsi_fail_memory(ls_error *err, const char *what, size_t bytes) LSI_COLD;

/* Zeroed; aligned to 16; NULL when out of memory or when count * size overflows. */
void *lsi_alloc(size_t count, size_t size);

/* Not zeroed, aligned to `align` (a power of two). */
void *lsi_alloc_aligned(size_t size, size_t align);

/* Grows to `count` elements; the old contents stay, the rest is zero. NULL: old is
 * intact. */
void *lsi_realloc(void *ptr, size_t old_count, size_t count, size_t size);
void lsi_free(void *ptr); /* NULL is allowed */
char *lsi_strdup(const char *s);

/*
 * Fault injection for tests: the n-th allocation from now fails (1: the next one), and
 * only that one, on this thread or any; 0 turns it off. Returns how many were counted
 * since the last call.
 */
int64_t lsi_alloc_fail_at(int64_t n);

/* Overflow-checked product and sum of sizes; false: does not fit. */
bool lsi_mul_size(size_t a, size_t b, size_t *out);
bool lsi_add_size(size_t a, size_t b, size_t *out);

void lsi_log(ls_log_level level, const char *fmt, ...) LS_PRINTF(2, 3);

/* A setting of the environment: NULL if unset or empty. */
const char *lsi_env(const char *name);
#endif
