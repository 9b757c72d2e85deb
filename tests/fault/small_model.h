/* A small model for tests of whole steps: two dense layers, cross entropy, Adam. */
#ifndef LST_SMALL_MODEL_H
#define LST_SMALL_MODEL_H
#include "lockstep/lockstep.h"

enum { SMALL_ROWS = 8, SMALL_IN = 20, SMALL_HIDDEN = 33, SMALL_CLASSES = 5 };

typedef struct small_model {
    ls_runtime *runtime;
    ls_context *c;
    ls_variable *v[4]; /* w1, b1, w2, b2 */
    ls_optimizer *optimizer;
    ls_tensor *x, *y;
} small_model;

/*
 * What was made is released by small_model_release(), also after a failure. The second is
 * for a runtime that the caller made, which the model takes over, also on failure.
 */
ls_status small_model_create(small_model *m, int threads, ls_error *err);
ls_status small_model_create_in(small_model *m, ls_runtime *rt, ls_error *err);
void small_model_release(small_model *m);

/* One training step; *loss is the loss before the update. */
ls_status small_model_step(small_model *m, double *loss, ls_error *err);
#endif
