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
 * Gradients with respect to what was read from keys[i], added up over the reads; NULL:
 * `target` does not depend on it.
 */
void lsi_tape_key_gradients(ls_context *c, ls_tape *tape, ls_tensor *target,
                            const void *const *keys, size_t n, ls_tensor **grads);
#endif
