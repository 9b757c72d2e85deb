/*
 * lockstep/status.h - status codes and the error struct, by which every fallible call
 * reports, and the attributes of the library's declarations.
 */
#ifndef LS_STATUS_H
#define LS_STATUS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LS_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define LS_API __attribute__((visibility("default")))
#define LS_MUST_USE __attribute__((warn_unused_result))
#else
#define LS_PRINTF(fmt, args)
#define LS_API
#define LS_MUST_USE
#endif

/* name, number, meaning. Numbers are wire format and ABI: append, never renumber. */
#define LS_STATUS_MAP(X)                                                                 \
    X(OK, 0, "success")                                                                  \
    X(CANCELLED, 1, "cancelled by the caller")                                           \
    X(UNKNOWN, 2, "a failure that somebody else's code did not classify")                \
    X(INVALID_ARGUMENT, 3, "the caller broke the contract of the call")                  \
    X(DEADLINE_EXCEEDED, 4, "not finished in the time allowed")                          \
    X(NOT_FOUND, 5, "there is no such thing")                                            \
    X(ALREADY_EXISTS, 6, "there is one already")                                         \
    X(PERMISSION_DENIED, 7, "not allowed to this caller")                                \
    X(RESOURCE_EXHAUSTED, 8, "out of memory or of another resource")                     \
    X(FAILED_PRECONDITION, 9, "the object is not in a state for this call")              \
    X(ABORTED, 10, "given up because a part of the group failed")                        \
    X(OUT_OF_RANGE, 11, "end of the sequence")                                           \
    X(UNIMPLEMENTED, 12, "this backend does not do that")                                \
    X(INTERNAL, 13, "what must hold does not")                                           \
    X(UNAVAILABLE, 14, "a peer is gone or cannot be reached")                            \
    X(DATA_LOSS, 15, "stored or received bytes are damaged")                             \
    X(UNAUTHENTICATED, 16, "no key, or a wrong one")

typedef enum ls_status {
#define LS_STATUS_ENUM(name, number, meaning) LS_##name = number,
    LS_STATUS_MAP(LS_STATUS_ENUM)
#undef LS_STATUS_ENUM
} ls_status;

/* Which kind of exception TensorFlow raises for it: for ported programs and tests. */
typedef enum ls_kind {
    LS_KIND_OP, /* an error of TensorFlow's runtime: the class follows from the code */
    LS_KIND_VALUE,
    LS_KIND_TYPE,
    LS_KIND_ASSERT,
    LS_KIND_RUNTIME
} ls_kind;

/*
 * The details of a failure. Start from LS_ERROR_INIT; filled only when a call fails. The
 * library writes at most `struct_size` bytes. It holds no pointer, so a copy of it is
 * complete: it may go to another process and outlive the code that failed.
 */
typedef struct ls_error {
    size_t struct_size;
    ls_status code;
    ls_kind kind;
    int rank; /* the rank or task that failed first; -1: unknown or this one */
    int line; /* the line of the user's call that failed; 0: unknown */
    /* Its file, "": unknown. Of a path that is too long the end is kept, after "...". */
    char file[96];
    char message[480];
} ls_error;

/* clang-format off */
#define LS_ERROR_INIT {sizeof(ls_error), LS_OK, LS_KIND_OP, -1, 0, "", ""}
/* clang-format on */

/* The name, "INVALID_ARGUMENT"; "?" for a number that is no status. Never NULL. */
LS_API const char *ls_status_name(ls_status status);

/* One sentence on what the code means. Never NULL. */
LS_API const char *ls_status_meaning(ls_status status);

/* The exception TensorFlow raises for it: "ValueError", "InvalidArgumentError". */
LS_API const char *ls_error_python(const ls_error *err);

#ifdef __cplusplus
}
#endif
#endif /* LS_STATUS_H */
