/*
 * lockstep/try.h - LS_TRY(), which checks a status in one line, for programs.
 *
 *     ls_error err = LS_ERROR_INIT;
 *     ls_status st = LS_OK;
 *     ...
 *     LS_TRY(ls_context_open(NULL, NULL, &c, &err)); // else: goto out
 *     ...
 * out:
 *     ls_context_close(c);
 *     return st;
 *
 * The function has a variable `st` and a label `out`, where everything is released.
 * Release functions accept NULL, so all pointers start as NULL. lockstep.h does not
 * include this header, and the library's own code does not use it.
 */
#ifndef LS_TRY_H
#define LS_TRY_H

#include "lockstep/status.h"

#define LS_TRY(call)                                                                     \
    do {                                                                                 \
        if ((st = (call)) != LS_OK) {                                                    \
            goto out;                                                                    \
        }                                                                                \
    } while (0)

#endif /* LS_TRY_H */
