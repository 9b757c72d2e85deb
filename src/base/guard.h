/*
 * Functions of the program, called by the library, must not be left by a C++ exception
 * (or pthread_exit): the library holds locks, and other threads wait for the function to
 * return. One that is left so ends the process, with the reason in the log.
 *
 *     lsi_guard guard LSI_GUARDED = {"ls_strategy_run()'s function"};
 *
 *     result = fn(c, args, user);
 *     guard.what = NULL;
 *
 * Sources are compiled with -fexceptions, so that what unwinds the stack comes by here.
 * An exception that is caught nowhere does not unwind: then the C++ runtime ends
 * the process.
 */
#ifndef LSI_GUARD_H
#define LSI_GUARD_H
#include "base/base.h"

typedef struct lsi_guard {
    const char *what; /* which function is being called; NULL: it has returned */
} lsi_guard;

#define LSI_GUARDED __attribute__((cleanup(lsi_guard_leave)))

static inline void lsi_guard_leave(const lsi_guard *guard)
{
    if (guard->what != NULL) {
        lsi_end_by_exception(guard->what);
    }
}
#endif
