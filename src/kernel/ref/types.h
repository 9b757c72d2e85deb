/*
 * Elements of every dtype as C sees them. Reference kernels compute floats as double and
 * integers as 64 bits that wrap: LSI_GET_F16(v) makes a double of a stored element,
 * LSI_PUT_F16(d) an element of a double. For + - * / and sqrt the detour over double
 * gives what float arithmetic gives (53 bits are more than twice 24 plus 2).
 */
#ifndef LSI_REF_TYPES_H
#define LSI_REF_TYPES_H
#include "tensor/tensor.h"

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

#define LSI_GET_F32(v) ((double)(v))
#define LSI_PUT_F32(v) ((float)(v))
#define LSI_GET_F64(v) (v)
#define LSI_PUT_F64(v) (v)
#define LSI_GET_F16(v) ((double)lsi_f16_to_f32(v))
#define LSI_PUT_F16(v) lsi_f32_to_f16((float)(v))
#define LSI_GET_BF16(v) ((double)lsi_bf16_to_f32(v))
#define LSI_PUT_BF16(v) lsi_f32_to_bf16((float)(v))

/* Bodies that are to be compiled again for every function handed to them. */
#define LSI_TEMPLATE static inline __attribute__((always_inline))

/* Writes n copies of `value`, made to fit `dtype` as ls_cast() would. */
void lsi_ref_fill(ls_dtype dtype, void *to, int64_t n, double value);
#endif
