/*
 * The sums that a walk over the journal makes: one for each output of a record. Dense
 * gradients are added into one tensor as soon as it is the sum's own, sparse ones are
 * listed and joined once, when the sum is read. A gradient that was added is released
 * at once, and so are the other tensors its operation made: a weight that is used a
 * thousand times needs the memory of two gradients, not of two thousand.
 *
 * All of this only while no tape is recording: a second derivative needs every tensor.
 */
#ifndef LSI_GRADIENT_SUMS_H
#define LSI_GRADIENT_SUMS_H
#include "grad/grad.h"

struct lsi_journal;

/* Sparse gradients, in the order they came; in the journal's memory. */
typedef struct lsi_sparse_parts {
    struct lsi_sparse_part *first, *last;
    size_t count;
} lsi_sparse_parts;

/* There is one for each output of each record, all cleared first: they are small. */
typedef struct lsi_sum {
    ls_tensor *t;            /* NULL: nothing was added yet */
    lsi_sparse_parts *parts; /* `t` is the first of several; NULL: it is alone */
} lsi_sum;

/* Value of `parts` if no one else holds `t` or its memory: it may be added to. */
extern lsi_sparse_parts lsi_sum_own;

static inline bool lsi_sum_is_own(const lsi_sum *sum)
{
    return sum->parts == &lsi_sum_own;
}

/* Adds `g`; `own`: no one else holds it, and the sum may write to it. */
void lsi_sum_add(ls_context *c, struct lsi_journal *j, lsi_sum *sum, ls_tensor *g,
                 bool own);

/* The sum so far; NULL: nothing was added, or the step has failed. */
ls_tensor *lsi_sum_value(ls_context *c, struct lsi_journal *j, lsi_sum *sum);

/*
 * Between the two: a built-in gradient function ran, which made every tensor since
 * `before` and gave gin[0 .. n-1]. Everything else is given back; then, when the
 * gradients are with their sums, those that were added and are needed no more.
 */
void lsi_fresh_sort(ls_context *c, ls_tensor *before, ls_tensor *const *gin, size_t n);
void lsi_fresh_end(ls_context *c, ls_tensor *before);

/* True if `g` was made by the gradient function that just ran, for one input only. */
bool lsi_fresh_is_own(const ls_tensor *g);

/* `g` is needed no more, if it is such a tensor. */
void lsi_fresh_spend(ls_tensor *g);
#endif
