/*
 * Elements of every dtype as C sees them. Reference kernels compute floats as double and
 * integers as 64 bits that wrap. For + - * / and sqrt the detour over double gives what
 * float arithmetic gives (53 bits are more than twice 24 plus 2). Sums are kept in double
 * whatever the dtype, and rounded once.
 *
 * A kernel is written once, as an LSI_INLINE function of a dtype that it is handed as a
 * constant; a switch over LSI_FLOATS and LSI_INTS, or LSI_EACH_FLOAT, compiles it again
 * for every dtype.
 */
#ifndef LSI_REF_ELEMENT_ACCESS_H
#define LSI_REF_ELEMENT_ACCESS_H
#include "kernel/kernel.h"

#include <math.h>

/* X(dtype, element) */
#define LSI_FLOATS(X)                                                                    \
    X(F32, float)                                                                        \
    X(F64, double)                                                                       \
    X(F16, uint16_t)                                                                     \
    X(BF16, uint16_t)

/* X(dtype, element, signed) */
#define LSI_INTS(X)                                                                      \
    X(I8, int8_t, true)                                                                  \
    X(I16, int16_t, true)                                                                \
    X(I32, int32_t, true)                                                                \
    X(I64, int64_t, true)                                                                \
    X(U8, uint8_t, false)                                                                \
    X(U16, uint16_t, false)                                                              \
    X(U32, uint32_t, false)                                                              \
    X(U64, uint64_t, false)

/* Floats as doubles. */
LSI_INLINE double lsi_get_float(const void *data, ls_dtype dtype, int64_t i)
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

LSI_INLINE void lsi_put_float(void *data, ls_dtype dtype, int64_t i, double v)
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

/* Integers widened to 64 bits, unsigned ones as the same bits; bools as 0 and 1. */
LSI_INLINE int64_t lsi_get_int(const void *data, ls_dtype dtype, int64_t i)
{
    switch (dtype) {
#define EACH(D, T, is_signed)                                                            \
    case LS_##D:                                                                         \
        return (int64_t)((const T *)data)[i];
        LSI_INTS(EACH)
#undef EACH
    default:
        return ((const uint8_t *)data)[i] != 0;
    }
}

LSI_INLINE void lsi_put_int(void *data, ls_dtype dtype, int64_t i, int64_t v)
{
    switch (dtype) {
#define EACH(D, T, is_signed)                                                            \
    case LS_##D:                                                                         \
        ((T *)data)[i] = (T)v;                                                           \
        break;
        LSI_INTS(EACH)
#undef EACH
    default:
        ((uint8_t *)data)[i] = v != 0;
        break;
    }
}

LSI_INLINE bool lsi_is_signed(ls_dtype dtype)
{
    return dtype == LS_I8 || dtype == LS_I16 || dtype == LS_I32 || dtype == LS_I64;
}

/* lsi_dtype_is_float(), for a dtype that the compiler knows. */
LSI_INLINE bool lsi_is_float(ls_dtype dtype)
{
    return dtype == LS_F32 || dtype == LS_F64 || dtype == LS_F16 || dtype == LS_BF16;
}

/* Of two widened integers. */
LSI_INLINE bool lsi_less_int(int64_t a, int64_t b, bool is_signed)
{
    return is_signed ? a < b : (uint64_t)a < (uint64_t)b;
}

/* Fails: there is no kernel for the dtype of input 0. */
static inline ls_status lsi_ref_refuse(ls_op_call *k)
{
    return ls_op_fail(k, LS_UNIMPLEMENTED, "no kernel for %s",
                      ls_dtype_name((ls_dtype)k->in[0]->dtype));
}

/* Writes n copies of `value`, made to fit `dtype` as ls_cast() would. */
void lsi_ref_fill(ls_dtype dtype, void *to, int64_t n, double value);

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
typedef struct lsi_last_axis {
    int64_t rows, size;
} lsi_last_axis;

LSI_INLINE lsi_last_axis lsi_last_axis_of(const ls_tensor *t)
{
    lsi_last_axis r = {1, t->dims[t->ndim - 1]};

    for (int a = 0; a + 1 < t->ndim; a++) {
        r.rows *= t->dims[a];
    }
    return r;
}
#endif
