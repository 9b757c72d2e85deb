/* Constants of a step: from memory, from one number, or like another tensor. */
#include "op/op.h"

ls_tensor *(ls_constant)(ls_context *c, ls_dtype dtype, ls_shape shape, const void *data)
{
    ls_error e = LS_ERROR_INIT;
    ls_tensor *t = NULL;
    int64_t count;
    size_t bytes;

    if (lsi_failed(c)) {
        return NULL;
    }
    if (dtype != LS_STRING && lsi_shape_bytes(&shape, dtype, &count, &bytes)) {
        t = lsi_context_struct(c); // the usual case: the struct is reused
        if (t == NULL || !lsi_tensor_init(t, c->device, dtype, &shape)) {
            (void)lsi_fail_memory(&e, "a constant", bytes);
            return lsi_context_error(c, &e);
        }
        if (data != NULL && bytes > 0) {
            lsi_device_copy(c->device, t->data, data, bytes);
        } else {
            memset(t->data, 0, bytes);
        }
        return t;
    }
    if (ls_tensor_create(c->device, dtype, shape, data, &t, &e) != LS_OK) {
        return lsi_context_error(c, &e);
    }
    return lsi_context_own(c, t);
}

ls_tensor *ls_constant_f32(ls_context *c, float value)
{
    return (ls_constant)(c, LS_F32, LS_SCALAR, &value);
}

ls_tensor *ls_constant_f64(ls_context *c, double value)
{
    return (ls_constant)(c, LS_F64, LS_SCALAR, &value);
}

ls_tensor *ls_constant_i32(ls_context *c, int32_t value)
{
    return (ls_constant)(c, LS_I32, LS_SCALAR, &value);
}

ls_tensor *ls_constant_i64(ls_context *c, int64_t value)
{
    return (ls_constant)(c, LS_I64, LS_SCALAR, &value);
}

/* Writes `value`, which `dtype` can hold, as an element at `to`; returns its size. */
static size_t encode_element(ls_dtype dtype, double value, void *to)
{
    union {
        float f32;
        double f64;
        uint16_t h;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
    } e = {0};

    switch (dtype) {
    case LS_F32:
        e.f32 = (float)value;
        break;
    case LS_F64:
        e.f64 = value;
        break;
    case LS_F16:
        e.h = lsi_f32_to_f16((float)value);
        break;
    case LS_BF16:
        e.h = lsi_f32_to_bf16((float)value);
        break;
    case LS_I8:
        e.i8 = (int8_t)value;
        break;
    case LS_I16:
        e.i16 = (int16_t)value;
        break;
    case LS_I32:
        e.i32 = (int32_t)value;
        break;
    case LS_I64:
        e.i64 = (int64_t)value;
        break;
    case LS_U8:
        e.u8 = (uint8_t)value;
        break;
    case LS_BOOL:
        e.u8 = value != 0;
        break;
    case LS_U16:
        e.u16 = (uint16_t)value;
        break;
    case LS_U32:
        e.u32 = (uint32_t)value;
        break;
    case LS_U64:
        e.u64 = (uint64_t)value;
        break;
    case LS_STRING:
        return 0;
    }
    memcpy(to, &e, ls_dtype_size(dtype));
    return ls_dtype_size(dtype);
}

ls_tensor *lsi_fill(ls_context *c, ls_dtype dtype, const ls_shape *shape, double value)
{
    ls_tensor *t = (ls_constant)(c, dtype, *shape, NULL);
    unsigned char element[8];
    size_t size;

    if (t == NULL || value == 0 || t->count == 0) {
        return t;
    }
    size = encode_element(dtype, value, element);
    if (dtype == LS_F32) { // the common one, in a loop the compiler vectorises
        for (int64_t i = 0; i < t->count; i++) {
            ((float *)t->data)[i] = (float)value;
        }
        return t;
    }
    for (int64_t i = 0; i < t->count; i++) {
        memcpy((char *)t->data + (size_t)i * size, element, size);
    }
    return t;
}

ls_tensor *lsi_scalar(ls_context *c, ls_dtype dtype, double value)
{
    const ls_shape s = LS_SCALAR;

    return lsi_fill(c, dtype, &s, value);
}

ls_tensor *lsi_zeros_like(ls_context *c, const ls_tensor *t)
{
    const ls_shape s = ls_tensor_shape(t);

    return (ls_constant)(c, (ls_dtype)t->dtype, s, NULL);
}

ls_tensor *lsi_ones_like(ls_context *c, const ls_tensor *t)
{
    const ls_shape s = ls_tensor_shape(t);

    return lsi_fill(c, (ls_dtype)t->dtype, &s, 1);
}
