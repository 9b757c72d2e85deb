/*
 * lockstep/log.h - where the library's words and its memory come from and go to.
 *
 * The library never prints. Both hooks are set before anything else is used and hold for
 * the process; they are, with the default runtime, all that is global.
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

/* Called from any thread, one line without its newline. Must not call the library. */
typedef void (*ls_log_fn)(ls_log_level level, const char *line, void *user);

/* Sends lines up to `level` to `fn`; NULL turns the log off (the state at start). */
LS_API void ls_log_set(ls_log_level level, ls_log_fn fn, void *user);

/*
 * Replaces malloc: all three or none (NULL, NULL, NULL puts malloc back). `alloc` returns
 * memory aligned to `align`, a power of two of at least 16, or NULL.
 */
LS_API LS_MUST_USE ls_status ls_allocator_set(void *(*alloc)(size_t size, size_t align,
                                                             void *user),
                                              void (*release)(void *ptr, void *user),
                                              void *user, ls_error *err);

#ifdef __cplusplus
}
#endif
#endif /* LS_LOG_H */
