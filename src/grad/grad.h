/* What the layers above use of tapes: variables report their reads here. */
#ifndef LSI_GRAD_H
#define LSI_GRAD_H
#include "op/op.h"

#include "lockstep/tape.h"

/*
 * A read of `key` (a variable) gave `t`. Tapes that watch variables watch it from now on,
 * if `trainable`, and so does a tape that was told to watch `key`.
 */
void lsi_tape_note_read(ls_context *c, const void *key, bool trainable, ls_tensor *t);

/* Watches every later read of `key`. */
void lsi_tape_watch_key(ls_context *c, ls_tape *tape, const void *key);

/*
 * Told that the gradient of keys[i] is final and in grads[i] (NULL: there is none), while
 * the others are still being computed. It may keep the gradient but not write to it (two
 * keys may have one tensor), and may call operations, but ask no tape for gradients.
 */
typedef void (*lsi_gradient_final)(void *user, size_t i);

/*
 * Gradients with respect to what was read from keys[i], added up over the reads; NULL:
 * `target` does not depend on it.
 *
 * `fn`, which may be NULL, is called on this thread, once for each i, before this
 * returns: at first for the keys that `target` does not depend on, in order; for another
 * as soon as the first operation that used it, of those that `target` depends on, has
 * been passed backwards, after which nothing can be added. Keys that are final at the
 * same operation are reported in order. Once the step has failed, by `fn` or otherwise,
 * none is reported, and grads[i] is NULL for those that were not.
 */
void lsi_tape_key_gradients(ls_context *c, ls_tape *tape, ls_tensor *target,
                            const void *const *keys, size_t n, ls_tensor **grads,
                            lsi_gradient_final fn, void *user);
#endif
