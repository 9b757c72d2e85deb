/* Declarations shared by losses and metrics. */
#ifndef LSI_MODEL_H
#define LSI_MODEL_H
#include "replica/replica.h"

#include "op/op.h"

/*
 * `weights` in the dtype of `values` and in a shape that matches: a trailing axis of size
 * 1 is added or removed where the ranks differ by one. NULL: the step has failed.
 */
ls_tensor *lsi_fit_weights(ls_context *c, ls_tensor *values, ls_tensor *weights);
#endif
