/*
 * Reductions of memory: sources in the order of ranks, added in the tree's order. Partial
 * sums of 16-bit floats are float32 (`wide`), so that a tree that is cut into steps gives
 * the bits of one that is not.
 */
#ifndef LSI_REDUCTION_H
#define LSI_REDUCTION_H
#include "collective/collective.h"

typedef struct lsi_reduction {
    ls_reduce op; /* LS_MEAN is LS_SUM here: `by` divides */
    ls_dtype dtype;
    int by; /* the result is divided by this; 1: it is not */
} lsi_reduction;

/* Bytes of an element of a partial sum. */
size_t lsi_wide_size(ls_dtype dtype);

/*
 * Adds from[0 .. n-1] into every to[0 .. m-1]; m is at least 1, and a target may also be
 * a source. wide_from[r] (NULL: all false): source r is a partial sum; wide_to: the
 * targets get one.
 */
void lsi_reduction_run(const lsi_reduction *sum, const void *const *from,
                       const bool *wide_from, int n, void *const *to, bool wide_to, int m,
                       size_t count);
#endif
