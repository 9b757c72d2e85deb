/*
 * The element loops of reductions, built once per instruction set (reduction_loops.c).
 * Additions of single elements give the same bits whatever the width of a vector, so the
 * choice is about speed alone.
 */
#ifndef LSI_REDUCTION_LOOPS_H
#define LSI_REDUCTION_LOOPS_H
#include "device/device.h"

/* Rows of the tables below; a mean is a sum that is divided afterwards. */
enum lsi_add_op { LSI_ADD_SUM, LSI_ADD_MIN, LSI_ADD_MAX, LSI_ADD_PROD, LSI_ADD_OPS };

/* What is computed in: 16-bit floats are widened to float32 and rounded at the end. */
enum lsi_add_type {
    LSI_ADD_F32,
    LSI_ADD_F64,
    LSI_ADD_I8,
    LSI_ADD_I16,
    LSI_ADD_I32,
    LSI_ADD_I64,
    LSI_ADD_U8,
    LSI_ADD_U16,
    LSI_ADD_U32,
    LSI_ADD_U64,
    LSI_ADD_TYPES
};

enum { LSI_ADD_MOST = 8 }; /* sources that are added in one pass */

typedef struct lsi_reduction_loops {
    /* to = a op b; `to` may be a or b. */
    void (*pair[LSI_ADD_OPS][LSI_ADD_TYPES])(void *to, const void *a, const void *b,
                                             size_t count);
    void (*divide[LSI_ADD_TYPES])(void *buf, int by, size_t count);

    /*
     * Sums of n = 2 .. LSI_ADD_MOST sources in the tree's order, divided by `by` unless
     * it is 1, into `to` and (not NULL) `too`; both may be sources. NULL: by pairs.
     */
    void (*sum[LSI_ADD_TYPES])(const void *const *from, int n, int by, void *to,
                               void *too, size_t count);
    void (*from_f16)(float *to, const uint16_t *from, size_t count);
    void (*from_bf16)(float *to, const uint16_t *from, size_t count);
    void (*to_f16)(uint16_t *to, const float *from, size_t count);
    void (*to_bf16)(uint16_t *to, const float *from, size_t count);
} lsi_reduction_loops;

/* The table of the best instruction set that this CPU has and LS_ISA allows. */
const lsi_reduction_loops *lsi_reduction_loops_best(void);
#endif
