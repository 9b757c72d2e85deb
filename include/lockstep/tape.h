/*
 * lockstep/tape.h - the gradient tape: it records operations and computes gradients.
 *
 * While a tape is open, operations whose inputs it watches are recorded; trainable
 * variables are watched when they are read. Afterwards it computes the gradient of one
 * tensor with respect to others. A tensor that took no part has no gradient: NULL, not
 * zeros. Gradients are tensors of the step and belong to the context.
 *
 *     ls_tape *tape = ls_tape_open(c, NULL);
 *     ls_tape_watch(c, tape, x);
 *     ls_tensor *y = ls_square(c, x);
 *     ls_tensor *dx = ls_gradient(c, tape, y, x); // 2 x
 *
 * A tape computes gradients once, unless it is persistent. Tapes nest: a tape that is
 * open while another one computes gradients records that computation (second
 * derivatives). A tape belongs to its context and ends with the step at the latest.
 *
 * Threads: the context's.
 */
#ifndef LS_TAPE_H
#define LS_TAPE_H

#include "lockstep/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_tape ls_tape;

/* Start from LS_TAPE_OPTIONS_INIT. */
typedef struct ls_tape_options {
    size_t struct_size;
    bool persistent;       /* may be asked for gradients more than once */
    bool ignore_variables; /* variables are not watched when they are read */
} ls_tape_options;

/* clang-format off */
#define LS_TAPE_OPTIONS_INIT {sizeof(ls_tape_options), false, false}
/* clang-format on */

/* Opens a tape and starts recording. NULL after a failure; all calls here accept NULL. */
LS_API ls_tape *ls_tape_open(ls_context *c, const ls_tape_options *opts);

/* Records what is computed from `t` from now on. Only floating dtypes have gradients. */
LS_API void ls_tape_watch(ls_context *c, ls_tape *tape, ls_tensor *t);

/* Stop recording and resume it: for parts of a step that need no gradient. */
LS_API void ls_tape_stop(ls_context *c, ls_tape *tape);
LS_API void ls_tape_resume(ls_context *c, ls_tape *tape);

/* Discards what was recorded and watched. */
LS_API void ls_tape_reset(ls_context *c, ls_tape *tape);

/*
 * The gradient of `target` (summed over its elements) with respect to `source`; NULL if
 * `target` does not depend on it or it was not watched. May be sparse (ls_tensor_slices).
 */
LS_API ls_tensor *ls_gradient(ls_context *c, ls_tape *tape, ls_tensor *target,
                              ls_tensor *source);

/*
 * The same for several targets, whose gradients are added, and several sources: grads[i]
 * is for sources[i]. `output_gradients` holds one tensor per target, of the target's
 * shape; a NULL entry, or NULL for all, means ones.
 */
LS_API void ls_gradients(ls_context *c, ls_tape *tape, ls_tensor *const *targets,
                         ls_tensor *const *output_gradients, size_t ntargets,
                         ls_tensor *const *sources, size_t nsources, ls_tensor **grads);

/* Closes the tape before the step ends. NULL is allowed. */
LS_API void ls_tape_close(ls_context *c, ls_tape *tape);

#ifdef __cplusplus
}
#endif

#ifndef LS_NO_PLACES
/* clang-format off */
#define ls_tape_open(c, ...) (ls_tape_open)(LS_HERE(c), __VA_ARGS__)
#define ls_tape_watch(c, ...) LS_PLACED_VOID(c, (ls_tape_watch)((c), __VA_ARGS__))
#define ls_gradient(c, ...) LS_PLACED(c, (ls_gradient)((c), __VA_ARGS__))
#define ls_gradients(c, ...) LS_PLACED_VOID(c, (ls_gradients)((c), __VA_ARGS__))
/* clang-format on */
#endif
#endif /* LS_TAPE_H */
