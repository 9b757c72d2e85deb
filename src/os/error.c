/* Maps errno to a status and adds the message of the system. */
#include "os/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

ls_status lsi_status_of_errno(int number)
{
    switch (number) {
    case 0:
        return LS_OK;
    case ENOENT:
    case ENXIO:
    case ENODEV:
        return LS_NOT_FOUND;
    case EEXIST:
    case EADDRINUSE:
        return LS_ALREADY_EXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
        return LS_PERMISSION_DENIED;
    case EISDIR:
    case ENOTDIR:
    case ENOTEMPTY:
    case EBUSY:
    case ETXTBSY:
    case ENOEXEC:
        return LS_FAILED_PRECONDITION;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EFBIG:
    case EAGAIN:
    case ENOBUFS:
        return LS_RESOURCE_EXHAUSTED;
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP:
    case E2BIG:
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
        return LS_INVALID_ARGUMENT;
    case EPIPE:
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case ENOTCONN:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN:
        return LS_UNAVAILABLE;
    case ETIMEDOUT:
        return LS_DEADLINE_EXCEEDED;
    case EIO:
        return LS_DATA_LOSS;
    case ENOSYS:
    case EOPNOTSUPP:
        return LS_UNIMPLEMENTED;
    default:
        return LS_UNKNOWN;
    }
}

static ls_status fail_args(ls_error *err, ls_status code, int number, const char *fmt,
                           va_list args)
{
    char what[320];
    char words[128];

    (void)vsnprintf(what, sizeof what, fmt, args);
    if (strerror_r(number, words, sizeof words) != 0) {
        (void)snprintf(words, sizeof words, "error %d", number);
    }
    return lsi_fail(err, code, -1, "%s: %s", what, words);
}

ls_status lsi_fail_errno(ls_error *err, int number, const char *fmt, ...)
{
    ls_status st;
    va_list args;

    va_start(args, fmt);
    st = fail_args(err, lsi_status_of_errno(number), number, fmt, args);
    va_end(args);
    return st;
}

ls_status lsi_fail_errno_as(ls_error *err, ls_status code, int number, const char *fmt,
                            ...)
{
    ls_status st;
    va_list args;

    va_start(args, fmt);
    st = fail_args(err, code, number, fmt, args);
    va_end(args);
    return st;
}
