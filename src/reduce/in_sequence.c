/*
 * ReductionToOneDevice's order: one source after the other, in the order of replicas. The
 * bits are those of TensorFlow's n-ary addition, which those of the tree are not.
 */
#include "reduce/reduction.h"

#include <string.h>

void lsi_reduce_in_order(ls_reduce op, const void *const *from, size_t n, void *to,
                         size_t count, ls_dtype dtype)
{
    const void *pair[2] = {to, NULL};

    if (op == LS_MEAN && lsi_wide_size(dtype) != ls_dtype_size(dtype)) {
        lsi_reduce_tree(LS_MEAN, from, (int)n, to, count, dtype);
        return;
    }
    if (n == 1) {
        memcpy(to, from[0], count * ls_dtype_size(dtype));
        return;
    }
    lsi_reduce_tree(LS_SUM, from, 2, to, count, dtype);
    for (size_t i = 2; i < n; i++) {
        pair[1] = from[i];
        lsi_reduce_tree(LS_SUM, pair, 2, to, count, dtype);
    }
    if (op == LS_MEAN) {
        lsi_reduction_divide(dtype, (int)n, to, count);
    }
}
