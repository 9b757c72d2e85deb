/* Failures of system calls: errno as a status and a message. */
#ifndef LSI_ERROR_H
#define LSI_ERROR_H
#include "base/base.h"

/* ENOENT is LS_NOT_FOUND, ENOSPC is LS_RESOURCE_EXHAUSTED, ... */
ls_status lsi_status_of_errno(int number);

/* Fails with that status; the message is the given one, ": " and that of the system. */
ls_status lsi_fail_errno(ls_error *err, int number, const char *fmt, ...)
    LS_PRINTF(3, 4) LSI_COLD;

/* The same with a status that the caller knows better than errno. */
ls_status lsi_fail_errno_as(ls_error *err, ls_status code, int number, const char *fmt,
                            ...) LS_PRINTF(4, 5) LSI_COLD;
#endif
