/*
 * lockstep/context.h - where operations run: a device, the step's tensors, the first
 * error.
 *
 * Operations take a context first and return tensors that live until the step ends. The
 * first failure sticks: later operations do nothing and return NULL, which every
 * operation takes without complaint, so a step reads like mathematics and its end is the
 * one place that checks.
 *
 *     ls_tensor *y = ls_relu(c, ls_add(c, ls_matmul(c, x, w), b));
 *     ...
 *     LS_TRY(ls_context_finish(c, &err));  // "matmul: (2, 3) and (4, 5) ...", train.c:41
 *
 * Threads: one at a time. Functions of the user are handed the context to use.
 */
#ifndef LS_CONTEXT_H
#define LS_CONTEXT_H

#include "lockstep/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_context ls_context;

/*
 * Where the random operations of a context stand. These three tell what comes next, and
 * nothing else does: not the time, nor threads, nor what other contexts draw. They may be
 * kept, written to a file and set again.
 *
 * Streams of one seed never meet. A replica's stream is its id in the sync group, that of
 * a context is in its options; the upper half, from 2^63 on, is the library's. The
 * position counts blocks of 128 bits (Philox-4x32-10: the seed is the key, stream and
 * position are the counter). An operation takes whole blocks: 4 numbers of one, 2 if they
 * are float64 or integers; a truncated normal takes 64 blocks a number, as some are drawn
 * again. An operation that fails takes none.
 */
typedef struct ls_random_state {
    uint64_t seed;     /* the runtime's, unless it was set */
    uint64_t stream;   /* which of the seed's streams */
    uint64_t position; /* blocks taken so far */
} ls_random_state;

/* How a context draws. Start from LS_CONTEXT_OPTIONS_INIT. */
typedef struct ls_context_options {
    size_t struct_size;
    uint64_t stream; /* of its random operations, below 2^63. Two contexts with one stream
                        draw the same numbers, whichever thread opened them first. */
} ls_context_options;

/* clang-format off */
#define LS_CONTEXT_OPTIONS_INIT {sizeof(ls_context_options), 0}
/* clang-format on */

/*
 * Opens a context on `device` (NULL: CPU:0 of the default runtime); `opts` NULL: the
 * defaults.
 */
LS_API LS_MUST_USE ls_status ls_context_open(ls_device *device,
                                             const ls_context_options *opts,
                                             ls_context **out, ls_error *err);

/*
 * Ends a step: releases the tensors made since the last one, closes the tapes left open,
 * returns the step's first failure (LS_OK if there was none) and forgets it.
 */
LS_API LS_MUST_USE ls_status ls_context_finish(ls_context *c, ls_error *err);

/* Ends the last step and frees the context. NULL is allowed. */
LS_API void ls_context_close(ls_context *c);

/* The failure that sticks to the step, or LS_OK. Fills `err` like any failing call. */
LS_API ls_status ls_context_status(const ls_context *c, ls_error *err);

/* Fails the step from the user's own code, unless it has failed before; returns NULL. */
LS_API ls_tensor *ls_context_fail(ls_context *c, ls_status code, const char *fmt, ...)
    LS_PRINTF(3, 4);

/* The same with a failure that a call reported: its code, kind, place and message. */
LS_API ls_tensor *ls_context_fail_with(ls_context *c, const ls_error *err);

/* Where its random operations stand; zeros for NULL. */
LS_API void ls_context_random_state(const ls_context *c, ls_random_state *out);

/* Goes on from there: the next numbers are those that came next there. */
LS_API LS_MUST_USE ls_status ls_context_set_random_state(ls_context *c,
                                                         const ls_random_state *state,
                                                         ls_error *err);

LS_API ls_device *ls_context_device(const ls_context *c); /* borrowed */

/*
 * Notes where the next call stands in the user's source; returns `c`. For bindings, which
 * know their own lines, and for calls that have no macro. `file` is kept, not copied.
 */
LS_API ls_context *ls_context_at(ls_context *c, const char *file, int line);
#define LS_HERE(c) ls_context_at((c), __FILE__, __LINE__)

/*
 * Notes afterwards where the call that gave `result` stood, and returns it: what the
 * macros of the same name as a function do. Afterwards, because a call's arguments may be
 * calls too, and C leaves open which part of an expression comes first.
 */
LS_API ls_tensor *ls_placed(ls_context *c, ls_tensor *result, const char *file, int line);
LS_API double ls_placed_item(ls_context *c, double result, const char *file, int line);

/*
 * Notes before a call that meets others where it stands, and returns the argument: the
 * place is needed while the call runs, and no other argument is a call.
 */
LS_API ls_tensor *ls_here(ls_context *c, ls_tensor *t, const char *file, int line);
#define LS_HERE_TENSOR(c, t) ls_here((c), (t), __FILE__, __LINE__)
#define LS_PLACED(c, call) ls_placed((c), (call), __FILE__, __LINE__)
#define LS_PLACED_VOID(c, call) ((call), (void)ls_placed((c), NULL, __FILE__, __LINE__))

/*
 * Brings a tensor into the step: a copy of `data` (NULL: zeros) on the context's device.
 * Operations on it are recorded only if a tape watches it.
 */
LS_API ls_tensor *ls_constant(ls_context *c, ls_dtype dtype, ls_shape shape,
                              const void *data);
LS_API ls_tensor *ls_constant_f32(ls_context *c, float value); /* a scalar */
LS_API ls_tensor *ls_constant_f64(ls_context *c, double value);
LS_API ls_tensor *ls_constant_i32(ls_context *c, int32_t value);
LS_API ls_tensor *ls_constant_i64(ls_context *c, int64_t value);

/* The context takes over the caller's reference to `t`: released when the step ends. */
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
