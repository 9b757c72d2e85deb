/*
 * Floating elements of any dtype as doubles. A reference kernel is written once, for a
 * dtype it is handed as a constant: LSI_EACH_FLOAT instantiates it for the four there
 * are. Sums are kept in double whatever the dtype, and rounded once.
 */
#ifndef LSI_REF_ELEMENT_H
#define LSI_REF_ELEMENT_H
#include "kernel/kernel.h"

#include <math.h>

#define LSI_INLINE static inline __attribute__((always_inline))

LSI_INLINE double lsi_get(const void *data, ls_dtype dtype, int64_t i)
{
    switch (dtype) {
    case LS_F64:
        return ((const double *)data)[i];
    case LS_F16:
        return (double)lsi_f16_to_f32(((const uint16_t *)data)[i]);
    case LS_BF16:
        return (double)lsi_bf16_to_f32(((const uint16_t *)data)[i]);
    default:
        return (double)((const float *)data)[i];
    }
}

LSI_INLINE void lsi_put(void *data, ls_dtype dtype, int64_t i, double v)
{
    switch (dtype) {
    case LS_F64:
        ((double *)data)[i] = v;
        break;
    case LS_F16:
        ((uint16_t *)data)[i] = lsi_f32_to_f16((float)v);
        break;
    case LS_BF16:
        ((uint16_t *)data)[i] = lsi_f32_to_bf16((float)v);
        break;
    default:
        ((float *)data)[i] = (float)v;
        break;
    }
}

/* `fn(k, dtype)` with the dtype of input 0 as a constant; the status it returns. */
#define LSI_EACH_FLOAT(fn, k)                                                            \
    ((k)->in[0]->dtype == LS_F64    ? fn(k, LS_F64)                                      \
     : (k)->in[0]->dtype == LS_F16  ? fn(k, LS_F16)                                      \
     : (k)->in[0]->dtype == LS_BF16 ? fn(k, LS_BF16)                                     \
                                    : fn(k, LS_F32))

/* The activations that dense and convolutions apply themselves. */
LSI_INLINE double lsi_ref_activation(ls_activation activation, double v)
{
    switch (activation) {
    case LS_RELU:
        return v < 0 ? 0 : v; // a NaN stays
    case LS_SIGMOID:
        return 1 / (1 + exp(-v));
    case LS_TANH:
        return tanh(v);
    default:
        return v;
    }
}

/* The size of the last axis and how many rows of it there are. */
typedef struct lsi_rows {
    int64_t rows, size;
} lsi_rows;

LSI_INLINE lsi_rows lsi_rows_of(const ls_tensor *t)
{
    lsi_rows r = {1, t->dims[t->ndim - 1]};

    for (int a = 0; a + 1 < t->ndim; a++) {
        r.rows *= t->dims[a];
    }
    return r;
}
#endif
