/* Errors: filling them, names and meanings of statuses, TensorFlow's exceptions. */
#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>

void lsi_bug(const char *what, const char *file, int line)
{
    lsi_log(LS_LOG_ERROR, "%s:%d: a bug of the library: not so: %s", file, line, what);
    abort();
}

void lsi_end_by_exception(const char *what)
{
    lsi_log(LS_LOG_ERROR,
            "an exception has left %s: a function that the library calls must not throw; "
            "catch it there and report it by ls_context_fail() or the function's status. "
            "The process ends, because others wait for the function",
            what);
    abort();
}

ls_status lsi_fail_again(ls_error *err, const ls_error *first)
{
    static const ls_error none = LS_ERROR_INIT;

    if (err != NULL && err != first && err->struct_size >= offsetof(ls_error, message)) {
        const size_t size = err->struct_size, room = LSI_MIN(size, sizeof *err);
        const size_t known = LSI_MIN(first->struct_size, room);

        // Either may be of an older caller, and shorter.
        memcpy(err, &none, room);
        memcpy(err, first, known);
        err->struct_size = size;
        if (known > offsetof(ls_error, message)) {
            ((char *)err)[known - 1] = '\0';
        }
    }
    return first->code;
}

void lsi_error_set_site(ls_error *err, const char *file, int line)
{
    static const char cut[] = "...";
    const size_t len = file != NULL ? strlen(file) : 0;

    if (err == NULL || err->struct_size < offsetof(ls_error, message)) {
        return;
    }
    if (len < sizeof err->file) {
        memcpy(err->file, len > 0 ? file : "", len + 1);
    } else { // the end of a path tells files apart
        const size_t kept = sizeof err->file - sizeof cut;

        memcpy(err->file, cut, sizeof cut - 1);
        memcpy(err->file + sizeof cut - 1, file + len - kept, kept + 1);
    }
    err->line = line;
}

static ls_status fail_args(ls_error *err, ls_status code, ls_kind kind, int rank,
                           const char *fmt, va_list args)
{
    if (err != NULL) {
        ls_error made = LS_ERROR_INIT;

        made.code = code;
        made.kind = kind;
        made.rank = rank;
        (void)vsnprintf(made.message, sizeof made.message, fmt, args);
        (void)lsi_fail_again(err, &made);
    }
    return code;
}

ls_status lsi_fail(ls_error *err, ls_status code, int rank, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    code = fail_args(err, code, LS_KIND_OP, rank, fmt, args);
    va_end(args);
    return code;
}

ls_status lsi_fail_kind(ls_error *err, ls_status code, ls_kind kind, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    code = fail_args(err, code, kind, -1, fmt, args);
    va_end(args);
    return code;
}

ls_status lsi_fail_memory(ls_error *err, const char *what, size_t bytes)
{
    return lsi_fail(err, LS_RESOURCE_EXHAUSTED, -1,
                    "out of memory: %s needs %zu bytes; make the batch or the model "
                    "smaller, or give the process more",
                    what, bytes);
}

const char *ls_status_name(ls_status status)
{
    switch (status) {
#define CASE(name, number, meaning)                                                      \
    case LS_##name:                                                                      \
        return #name;
        LS_STATUS_MAP(CASE)
#undef CASE
    }
    return "?";
}

const char *ls_status_meaning(ls_status status)
{
    switch (status) {
#define CASE(name, number, meaning)                                                      \
    case LS_##name:                                                                      \
        return meaning;
        LS_STATUS_MAP(CASE)
#undef CASE
    }
    return "?";
}

/* TensorFlow's exception for a code that an operation or the runtime gave. */
static const char *op_error(ls_status code)
{
    static const char *const names[] = {
        [LS_OK] = "",
        [LS_CANCELLED] = "CancelledError",
        [LS_UNKNOWN] = "UnknownError",
        [LS_INVALID_ARGUMENT] = "InvalidArgumentError",
        [LS_DEADLINE_EXCEEDED] = "DeadlineExceededError",
        [LS_NOT_FOUND] = "NotFoundError",
        [LS_ALREADY_EXISTS] = "AlreadyExistsError",
        [LS_PERMISSION_DENIED] = "PermissionDeniedError",
        [LS_RESOURCE_EXHAUSTED] = "ResourceExhaustedError",
        [LS_FAILED_PRECONDITION] = "FailedPreconditionError",
        [LS_ABORTED] = "AbortedError",
        [LS_OUT_OF_RANGE] = "OutOfRangeError",
        [LS_UNIMPLEMENTED] = "UnimplementedError",
        [LS_INTERNAL] = "InternalError",
        [LS_UNAVAILABLE] = "UnavailableError",
        [LS_DATA_LOSS] = "DataLossError",
        [LS_UNAUTHENTICATED] = "UnauthenticatedError",
    };

    return (size_t)code < LSI_COUNT_OF(names) ? names[code] : "?";
}

const char *ls_error_python(const ls_error *err)
{
    if (err == NULL || err->code == LS_OK) {
        return "";
    }
    if (err->code == LS_UNIMPLEMENTED && err->kind == LS_KIND_RUNTIME) {
        return "NotImplementedError"; // in Python it is a RuntimeError
    }
    switch (err->kind) {
    case LS_KIND_VALUE:
        return "ValueError";
    case LS_KIND_TYPE:
        return "TypeError";
    case LS_KIND_ASSERT:
        return "AssertionError";
    case LS_KIND_RUNTIME:
        return "RuntimeError";
    case LS_KIND_OP:
        break;
    }
    return op_error(err->code);
}

bool lsi_mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

bool lsi_add_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

const char *lsi_env(const char *name)
{
    const char *value = getenv(name); // NOLINT(concurrency-mt-unsafe): read at start only

    return value != NULL && value[0] != '\0' ? value : NULL;
}
