/* Copying elements from one regular layout to another. */
#ifndef LSI_REF_COPY_H
#define LSI_REF_COPY_H
#include "kernel/kernel.h"

enum { LSI_COPY_DIMS = 2 * LS_MAX_DIMS };

/* For every index below `dims`: to[index . out] = from[index . in]. */
typedef struct lsi_copy {
    int ndim;
    size_t size; /* bytes of an element: 1, 2, 4 or 8 */
    const void *from;
    void *to;
    int64_t dims[LSI_COPY_DIMS];
    int64_t in[LSI_COPY_DIMS]; /* strides, in elements; 0 repeats */
    int64_t out[LSI_COPY_DIMS];
} lsi_copy;

/* Adds an axis inside those there are. */
void lsi_copy_axis(lsi_copy *copy, int64_t dim, int64_t in, int64_t out);

/* Row-major strides of `t`, in elements. */
void lsi_strides(const ls_tensor *t, int64_t *strides);

/* Copies, on the team of `k`. */
void lsi_copy_run(const ls_op_call *k, lsi_copy *copy);
#endif
