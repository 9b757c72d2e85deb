/*
 * lockstep/context.h - a context: what operations run in. It has a device, the tensors
 * of the present step and the step's first failure.
 *
 * Operations take a context as their first argument and return tensors that live until
 * the step ends. The first failure is kept: later operations do nothing and return NULL,
 * which every operation accepts, so a step is checked once, at its end.
 *
 *     ls_tensor *y = ls_relu(c, ls_add(c, ls_matmul(c, x, w), b));
 *     ...
 *     LS_TRY(ls_context_finish(c, &err));  // "matmul: (2, 3) and (4, 5) ...", train.c:41
 *
 * Threads: one at a time. A function that the library calls gets the context to use as
 * an argument.
 */
#ifndef LS_CONTEXT_H
#define LS_CONTEXT_H

#include "lockstep/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_context ls_context;

/*
 * The state of a context's random operations. The next numbers depend on these three
 * fields alone: not on the time, on threads or on what other contexts draw. They may be
 * kept, written to a file and set again.
 *
 * Streams of one seed never overlap. A replica's stream is its id in the sync group, that
 * of a context is in its options; streams from 2^63 on are reserved for the library. The
 * position counts blocks of 128 bits (Philox-4x32-10: the seed is the key, stream and
 * position are the counter). An operation uses whole blocks: 4 numbers from each, 2 if
 * they are float64 or integers; a truncated normal uses 64 blocks per number, as some
 * numbers are drawn again. An operation that fails uses none.
 */
typedef struct ls_random_state {
    uint64_t seed;     /* the runtime's, unless it was set */
    uint64_t stream;   /* which of the seed's streams */
    uint64_t position; /* blocks used so far */
} ls_random_state;

/* Start from LS_CONTEXT_OPTIONS_INIT. */
typedef struct ls_context_options {
    size_t struct_size;
    uint64_t stream; /* of its random operations, below 2^63. Two contexts with the same
                        stream draw the same numbers, in any order of opening. */
} ls_context_options;

/* clang-format off */
#define LS_CONTEXT_OPTIONS_INIT {sizeof(ls_context_options), 0}
/* clang-format on */

/*
 * Opens a context on `device` (NULL: CPU:0 of the default runtime), whose runtime is
 * retained. `opts` is borrowed; NULL: the defaults.
 */
LS_API LS_MUST_USE ls_status ls_context_open(ls_device *device,
                                             const ls_context_options *opts,
                                             ls_context **out, ls_error *err);

/*
 * Ends a step: releases the tensors it made, closes the tapes left open and returns its
 * first failure (LS_OK if there was none). The next step starts without a failure.
 */
LS_API LS_MUST_USE ls_status ls_context_finish(ls_context *c, ls_error *err);

/* Ends the last step and frees the context. NULL is allowed. */
LS_API void ls_context_close(ls_context *c);

/* The first failure of the step, or LS_OK. Fills `err` like any failing call. */
LS_API ls_status ls_context_status(const ls_context *c, ls_error *err);

/* Makes the step fail from the caller's own code, unless it has failed; returns NULL. */
LS_API ls_tensor *ls_context_fail(ls_context *c, ls_status code, const char *fmt, ...)
    LS_PRINTF(3, 4);

/* The same with a failure that a call reported: its code, kind, site and message. */
LS_API ls_tensor *ls_context_fail_with(ls_context *c, const ls_error *err);

/* The state of its random operations; zeros for NULL. */
LS_API void ls_context_random_state(const ls_context *c, ls_random_state *out);

/* Sets that state: the next numbers are those that followed when it was read. */
LS_API LS_MUST_USE ls_status ls_context_set_random_state(ls_context *c,
                                                         const ls_random_state *state,
                                                         ls_error *err);

LS_API ls_device *ls_context_device(const ls_context *c); /* borrowed */

/*
 * Sets the site (file and line) of the next call; returns `c`. For bindings, which know
 * the lines of their own language, and for calls that have no macro. `file` is not
 * copied before an error needs it: it must last as long as the context and its tapes.
 */
LS_API ls_context *ls_context_at(ls_context *c, const char *file, int line);
#define LS_HERE(c) ls_context_at((c), __FILE__, __LINE__)

/*
 * Records the site of the call that has just returned `result`, and returns `result`: the
 * macros that have the name of a function use it. The site is set after the call because
 * the arguments of a call may be calls too, and C does not define in which order the
 * parts of an expression are evaluated.
 */
LS_API ls_tensor *ls_placed(ls_context *c, ls_tensor *result, const char *file, int line);
LS_API double ls_placed_item(ls_context *c, double result, const char *file, int line);

/*
 * Records the site of a call that communicates, before the call, and returns `t`: the
 * site is needed while the call runs.
 */
LS_API ls_tensor *ls_here(ls_context *c, ls_tensor *t, const char *file, int line);
#define LS_HERE_TENSOR(c, t) ls_here((c), (t), __FILE__, __LINE__)
#define LS_PLACED(c, call) ls_placed((c), (call), __FILE__, __LINE__)
#define LS_PLACED_VOID(c, call) ((call), (void)ls_placed((c), NULL, __FILE__, __LINE__))

/*
 * Makes a tensor of the step: a copy of `data` (NULL: zeros) on the context's device.
 * Operations on it are recorded only if a tape watches it.
 */
LS_API ls_tensor *ls_constant(ls_context *c, ls_dtype dtype, ls_shape shape,
                              const void *data);
LS_API ls_tensor *ls_constant_f32(ls_context *c, float value); /* a scalar */
LS_API ls_tensor *ls_constant_f64(ls_context *c, double value);
LS_API ls_tensor *ls_constant_i32(ls_context *c, int32_t value);
LS_API ls_tensor *ls_constant_i64(ls_context *c, int64_t value);

/* Takes over the caller's reference to `t`, which is released when the step ends. */
LS_API ls_tensor *ls_adopt(ls_context *c, ls_tensor *t);

/* The element of a tensor that has one, as a double; NAN if the step has failed. */
LS_API double ls_item(ls_context *c, const ls_tensor *t);

#ifdef __cplusplus
}
#endif

#ifndef LS_NO_PLACES
/* clang-format off */
#define ls_context_fail(c, ...) LS_PLACED(c, (ls_context_fail)((c), __VA_ARGS__))
/* clang-format on */
#endif
#endif /* LS_CONTEXT_H */
