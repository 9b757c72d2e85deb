/*
 * Broadcasting: walks over the output row by row, with the start and the step of each
 * operand in that row.
 */
#ifndef LSI_REF_BROADCAST_ROWS_H
#define LSI_REF_BROADCAST_ROWS_H
#include "kernel/kernel.h"

enum { LSI_MAX_OPERANDS = 3 };

/*
 * The rows of the output, one after the other: `n` elements each, for which operand i
 * starts at element at[i] and goes on by step[i], which is 0 where it is broadcast.
 */
typedef struct lsi_broadcast_rows {
    int64_t n;
    int64_t left; /* rows still to come, this one included */
    int64_t at[LSI_MAX_OPERANDS];
    int64_t step[LSI_MAX_OPERANDS];
    int operands;
    int outer; /* axes that count the rows */
    int64_t index[LS_MAX_DIMS];
    int64_t dims[LS_MAX_DIMS];
    int64_t stride[LSI_MAX_OPERANDS][LS_MAX_DIMS];
} lsi_broadcast_rows;

/* Elements that operand `t` moves on when axis `axis` of the output moves by one. */
static inline int64_t lsi_stride_of(const ls_tensor *t, const ls_tensor *out, int axis)
{
    const int own = axis - (out->ndim - t->ndim);
    int64_t stride = 1;

    if (own < 0 || t->dims[own] == 1) {
        return 0;
    }
    for (int i = own + 1; i < t->ndim; i++) {
        stride *= t->dims[i];
    }
    return stride;
}

/* True if axis `axis` goes on where the row of `n` elements after it ends. */
static inline bool lsi_broadcast_rows_continue(const lsi_broadcast_rows *r,
                                               const int64_t *stride)
{
    for (int i = 0; i < r->operands; i++) {
        if (stride[i] != r->step[i] * r->n) {
            return false;
        }
    }
    return true;
}

/* Starts at the first row. Inner axes that follow each other in memory become one. */
static inline lsi_broadcast_rows lsi_broadcast_rows_of(const ls_op_call *k)
{
    const ls_tensor *out = k->out[0];
    lsi_broadcast_rows r;

    memset(&r, 0, sizeof r);
    r.n = 1;
    r.left = out->count;
    r.operands = (int)k->nin;
    for (int axis = out->ndim - 1; axis >= 0; axis--) {
        int64_t stride[LSI_MAX_OPERANDS] = {0};

        if (out->dims[axis] == 1) {
            continue;
        }
        for (int i = 0; i < r.operands; i++) {
            stride[i] = lsi_stride_of(k->in[i], out, axis);
        }
        if (r.n == 1) {
            r.n = out->dims[axis];
            memcpy(r.step, stride, sizeof r.step);
        } else if (r.outer == 0 && lsi_broadcast_rows_continue(&r, stride)) {
            r.n *= out->dims[axis];
        } else {
            r.dims[r.outer] = out->dims[axis];
            for (int i = 0; i < r.operands; i++) {
                r.stride[i][r.outer] = stride[i];
            }
            r.outer++;
        }
    }
    r.left = out->count / r.n;
    return r;
}

/* Goes on to the next row; false after the last. */
static inline bool lsi_next_row(lsi_broadcast_rows *r)
{
    if (--r->left <= 0) {
        return false;
    }
    for (int axis = 0; axis < r->outer; axis++) { // [0] is the innermost
        const bool wraps = ++r->index[axis] == r->dims[axis];

        for (int i = 0; i < r->operands; i++) {
            r->at[i] +=
                wraps ? r->stride[i][axis] * (1 - r->dims[axis]) : r->stride[i][axis];
        }
        if (!wraps) {
            break;
        }
        r->index[axis] = 0;
    }
    return true;
}

/* The body of a kernel on two operands: y = expr of *pa and *pb for every element. */
#define LSI_EACH_ELEMENT(k, T, R, expr)                                                  \
    do {                                                                                 \
        lsi_broadcast_rows r = lsi_broadcast_rows_of(k);                                 \
        const T *a = (k)->in[0]->data;                                                   \
        const T *b = (k)->in[1]->data;                                                   \
        R *y = (k)->out[0]->data;                                                        \
        do {                                                                             \
            const T *pa = a + r.at[0];                                                   \
            const T *pb = b + r.at[1];                                                   \
            for (int64_t i = 0; i < r.n; i++, pa += r.step[0], pb += r.step[1]) {        \
                y[i] = expr;                                                             \
            }                                                                            \
            y += r.n;                                                                    \
        } while (lsi_next_row(&r));                                                      \
    } while (0)

#endif
