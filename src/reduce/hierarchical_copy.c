/*
 * Hierarchical copy, for machines whose devices form two halves with good links inside
 * each (DGX-1): each half is summed on one device, the two sums are added, and the total
 * is copied to the halves the same way. The summing devices change from tensor to tensor,
 * so that all links are used. The order of additions is fixed by n alone: the tree over
 * each half, then both; with n a power of two that is the tree over all.
 */
#include "reduce/reduction.h"

#include <string.h>

void lsi_hierarchical_mains(size_t i, size_t n, size_t *a, size_t *b)
{
    *a = i % n;
    *b = (*a + n / 2) % n;
}

/* Copies the result from the main devices to those of their halves. */
static void copy_to_halves(void *const *to, size_t n, size_t low, size_t high,
                           size_t bytes)
{
    for (size_t d = 0; d < n; d++) {
        const size_t main = d < n / 2 ? low : high;

        if (d != main) {
            memcpy(to[d], to[main], bytes);
        }
    }
}

void lsi_hierarchical_sum(ls_reduce op, const void *const *from, void *const *to,
                          size_t n, size_t i, size_t count, ls_dtype dtype)
{
    const size_t half = n / 2;
    const size_t bytes = count * ls_dtype_size(dtype);
    size_t a;
    size_t b;

    lsi_hierarchical_mains(i, n, &a, &b);
    const size_t low = a < half ? a : b; // the summing device of the first half
    const size_t high = a < half ? b : a;
    if (op == LS_MEAN && lsi_wide_size(dtype) != ls_dtype_size(dtype)) {
        lsi_reduce_tree(LS_MEAN, from, (int)n, to[a], count, dtype);
    } else {
        lsi_reduce_tree(LS_SUM, from, (int)half, to[low], count, dtype);
        lsi_reduce_tree(LS_SUM, from + half, (int)half, to[high], count, dtype);
        const void *halves[2] = {to[low], to[high]};
        lsi_reduce_tree(LS_SUM, halves, 2, to[a], count, dtype);
        if (op == LS_MEAN) {
            lsi_reduction_divide(dtype, (int)n, to[a], count);
        }
    }
    memcpy(to[b], to[a], bytes);
    copy_to_halves(to, n, low, high, bytes);
}
