/* The log: messages go to the callback of the program. */
#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>

/* Set before anything else is used (lockstep/log.h), so plain variables would do; atomics
 * keep a late ls_log_set() from being a data race. */
static _Atomic(ls_log_fn) sink;
static _Atomic(void *) sink_user;
static atomic_int sink_level;

void ls_log_set(ls_log_level level, ls_log_fn fn, void *user)
{
    atomic_store(&sink, NULL);
    atomic_store(&sink_user, user);
    atomic_store(&sink_level, (int)level);
    atomic_store(&sink, fn);
}

void lsi_log(ls_log_level level, const char *fmt, ...)
{
    const ls_log_fn fn = atomic_load(&sink);
    char line[1024];
    va_list args;

    if (fn == NULL || (int)level > atomic_load(&sink_level)) {
        return;
    }
    va_start(args, fmt);
    (void)vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    fn(level, line, atomic_load(&sink_user));
}
