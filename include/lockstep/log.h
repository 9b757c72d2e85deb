/*
 * lockstep/log.h - the log callback and the allocator of the process.
 *
 * The library never prints. Both hooks must be set before any other call and apply to
 * the whole process; together with the default runtime they are the only global state.
 */
#ifndef LS_LOG_H
#define LS_LOG_H

#include "lockstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ls_log_level {
    LS_LOG_ERROR,
    LS_LOG_WARNING,
    LS_LOG_INFO,
    LS_LOG_DEBUG
} ls_log_level;

/* Called on any thread with one line, without its newline. Must not call the library. */
typedef void (*ls_log_fn)(ls_log_level level, const char *line, void *user);

/* Sends lines up to `level` to `fn`; NULL turns the log off, which is the default. */
LS_API void ls_log_set(ls_log_level level, ls_log_fn fn, void *user);

/*
 * Replaces malloc; NULL, NULL, NULL restores it. Both functions must be given; they are
 * called on any thread. `alloc` returns memory aligned to `align`, a power of two of at
 * least 16, or NULL.
 */
LS_API LS_MUST_USE ls_status ls_allocator_set(void *(*alloc)(size_t size, size_t align,
                                                             void *user),
                                              void (*release)(void *ptr, void *user),
                                              void *user, ls_error *err);

#ifdef __cplusplus
}
#endif
#endif /* LS_LOG_H */
