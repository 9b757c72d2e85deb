/*
 * Compares gradients with central differences: used by the tests of operations and of
 * what is made of them.
 */
#ifndef LSI_GRADIENT_CHECK_H
#define LSI_GRADIENT_CHECK_H
#include "grad/grad.h"

/* Computes `nout` tensors, put at `out`, from `in`, by operations on `c`. */
typedef void (*lsi_check_fn)(ls_context *c, ls_tensor *const *in, size_t nin,
                             ls_tensor **out, size_t nout, void *user);

/* The result: the worst element, and how many were compared. */
typedef struct lsi_check {
    size_t compared;
    double worst; /* |tape - numeric| / (1 + |numeric|); NaN counts as infinite */
    size_t input;
    int64_t element;
    double tape, numeric;
} lsi_check;

/*
 * Compares the tape's gradient of sum over all outputs of weight * output, with weights
 * that differ from element to element, with (f(x + step) - f(x - step)) / (2 step), for
 * every element of every float64 input. A missing gradient counts as zeros: the function
 * must then not depend on the input. Outputs that are not floating take no part.
 *
 * With float64 and a step of 1e-5 both the truncation, about step^2, and the rounding,
 * about 1e-16 / step, stay below 1e-9 for functions of moderate curvature.
 */
ls_status lsi_check_gradient(ls_device *dev, lsi_check_fn fn, void *user,
                             ls_tensor *const *in, size_t nin, size_t nout, double step,
                             lsi_check *found, ls_error *err);
#endif
