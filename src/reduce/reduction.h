/*
 * Reductions over replicas: the orders of additions, partial sums, the division of a mean
 * and the rounding at the end. Everything that sums over replicas calls this folder.
 *
 * The automatic order is one binary tree over the ids of the sync group, aligned at
 * powers of two: ids 2i and 2i+1 first, then pairs of pairs; a missing right half is
 * passed through. Partial sums of 16-bit floats are float32 (`wide`), so that a tree that
 * is cut into steps gives the bits of one that is not. The named orders (in sequence,
 * hierarchical copy, ring) run only when they are asked for.
 */
#ifndef LSI_REDUCTION_H
#define LSI_REDUCTION_H
#include "device/device.h"
#include "lockstep/comm.h"

/* ---- the tree over buffers (reduction.c) ---- */

typedef struct lsi_reduction {
    ls_reduce op; /* LS_MEAN is LS_SUM here: `by` divides */
    ls_dtype dtype;
    int by; /* the result is divided by this; 1: it is not */
} lsi_reduction;

/* The reduction `op` over `ids` ids. */
lsi_reduction lsi_reduction_of(ls_reduce op, ls_dtype dtype, int ids);

/* LS_OK if `op` can be done on `dtype`. */
ls_status lsi_reduce_check(ls_reduce op, ls_dtype dtype, ls_error *err);

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

/* Adds count elements of `n` ids in the tree's order: to = from[0] op ... from[n-1]. */
void lsi_reduce_tree(ls_reduce op, const void *const *from, int n, void *to, size_t count,
                     ls_dtype dtype);

/* left = left op right, both partial sums, not divided. */
void lsi_reduction_join(const lsi_reduction *sum, void *left, const void *right,
                        size_t count);

/* ---- partial sums of ranges of ids (partial_sums.c) ---- */

/*
 * The partial sum of the ids [first, first + ids): one complete subtree, so `ids` is a
 * power of two and `first` a multiple of it. `data` has lsi_wide_size() per element.
 */
typedef struct lsi_partial_sum {
    int first, ids;
    void *data;
} lsi_partial_sum;

enum { LSI_PARTIALS_MOST = 62 }; /* of any range of ids: two per level */

/*
 * The complete subtrees of the ids [begin, end), in the order of ids: one where the range
 * is an aligned power of two, at most 2 log2 of its length otherwise. Sets all but `data`
 * in parts[0 .. LSI_PARTIALS_MOST-1] and returns how many there are.
 */
int lsi_partials_of(int begin, int end, lsi_partial_sum *parts);

/* Adds the sources of each part: from[i] is that of id parts[0].first + i. */
void lsi_partials_add(const lsi_reduction *sum, const void *const *from,
                      const lsi_partial_sum *parts, int n, size_t count);

/*
 * Merges neighbours: joins, in place, every pair of parts that are the two halves of a
 * subtree. parts[0 .. n-1] are in the order of ids without a gap, of one holder or of
 * several. Returns how many are left; the memory of the others is free to be used again.
 */
int lsi_partials_merge(const lsi_reduction *sum, lsi_partial_sum *parts, int n,
                       size_t count);

/*
 * The root: parts[0 .. n-1] cover all ids from 0 on and were merged. Joins them, divides
 * and rounds once; `to` has the dtype's own size and may be parts[0].data.
 */
void lsi_partials_finish(const lsi_reduction *sum, lsi_partial_sum *parts, int n,
                         void *to, size_t count);

/* How many partial sums the ids [begin, end) have. */
int lsi_partials_count(int begin, int end);

/*
 * All of that at once, for `holders` of `ids` ids each: holder h has the ids
 * [h * ids, (h + 1) * ids). from[h] is the first of its partial sums, the next begins
 * `stride` elements later. Merges them block by block without changing them, and writes
 * the finished result to to[0 .. m-1]. A target may be the first partial sum of a holder
 * if both have the same size of an element; else nothing overlaps. (reduction.c)
 */
void lsi_partials_reduce(const lsi_reduction *sum, const void *const *from, int holders,
                         int ids, size_t stride, void *const *to, int m, size_t count);

/* Divides `count` elements at `data` by `by`, as the end of a mean does. */
void lsi_reduction_divide(ls_dtype dtype, int by, void *data, size_t count);

/*
 * ---- named orders ----
 *
 * LS_SUM, and LS_MEAN of floats. The mean of 16-bit floats is added in the tree whatever
 * the order: 60000 and 60000 have a mean, but no float16 holds their sum.
 */

/* One after the other, in the order of replicas (in_sequence.c). */
void lsi_reduce_in_order(ls_reduce op, const void *const *from, size_t n, void *to,
                         size_t count, ls_dtype dtype);

/* The two devices that sum tensor `i` on `n` devices (hierarchical_copy.c). */
void lsi_hierarchical_mains(size_t i, size_t n, size_t *a, size_t *b);

/* The sum of n = 2, 4, ... sources into each of n buffers, by way of these two. */
void lsi_hierarchical_sum(ls_reduce op, const void *const *from, void *const *to,
                          size_t n, size_t i, size_t count, ls_dtype dtype);

/* The ring of spec: subdivisions, offsets and permutations (ring_order.c). */
int lsi_ring_subdivisions(size_t bytes, int ranks, int per_task, int max_per_device);
void lsi_ring_offsets(int subdivisions, int per_task, int *offsets);
void lsi_ring_permutation(int tasks, int per_task, int offset, int *order);

/* The rank at position `i` of the ring of `offset`. */
int lsi_ring_position(int per_task, int offset, int i);
#endif
