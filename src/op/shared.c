/* What the families share: shape rules, broadcasting and its gradient, constants. */
#include "op/op.h"

#include <stdio.h>

lsi_text lsi_text_of(const ls_tensor *t)
{
    lsi_text text;
    char shape[112];
    const ls_shape s = ls_tensor_shape(t);

    (void)snprintf(text.s, sizeof text.s, "%s %s", ls_dtype_name((ls_dtype)t->dtype),
                   ls_shape_text(&s, shape, sizeof shape));
    return text;
}

ls_status lsi_shape_same(ls_op_call *k)
{
    const ls_tensor *x = k->in[0];

    k->spec[0].dtype = (ls_dtype)x->dtype;
    k->spec[0].shape.ndim = x->ndim;
    for (int i = 0; i < x->ndim; i++) {
        k->spec[0].shape.dims[i] = x->dims[i];
    }
    return LS_OK;
}

ls_status lsi_shape_same_float(ls_op_call *k)
{
    if (!lsi_dtype_is_float((ls_dtype)k->in[0]->dtype)) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "needs a floating dtype, got %s; convert it with ls_cast()",
                          lsi_text_of(k->in[0]).s);
    }
    return lsi_shape_same(k);
}

ls_status lsi_shape_same_number(ls_op_call *k)
{
    if (!lsi_dtype_is_number((ls_dtype)k->in[0]->dtype)) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "needs numbers, got %s; convert it with ls_cast()",
                          lsi_text_of(k->in[0]).s);
    }
    return lsi_shape_same(k);
}

bool lsi_broadcast(const ls_shape *a, const ls_shape *b, ls_shape *out)
{
    const int n = LSI_MAX(a->ndim, b->ndim);

    out->ndim = n;
    for (int i = 0; i < n; i++) {
        const int ia = i - (n - a->ndim), ib = i - (n - b->ndim);
        const int64_t da = ia < 0 ? 1 : a->dims[ia], db = ib < 0 ? 1 : b->dims[ib];

        if (da != db && da != 1 && db != 1) {
            return false;
        }
        out->dims[i] = da == 1 ? db : da;
    }
    return true;
}

ls_tensor *lsi_dense(ls_context *c, ls_tensor *t)
{
    ls_tensor *d;
    ls_shape s;

    if (t == NULL || t->values == NULL) {
        return t;
    }
    s = ls_tensor_shape(t);
    d = (ls_constant)(c, (ls_dtype)t->dtype, s, NULL);
    if (d != NULL) {
        lsi_slices_add(t, d->data);
    }
    return d;
}

ls_tensor *lsi_sum_to(ls_context *c, ls_tensor *g, ls_tensor *like)
{
    int axes[LS_MAX_DIMS];
    size_t n = 0;
    int lead;

    if (g == NULL || like == NULL || lsi_failed(c)) {
        return NULL;
    }
    lead = (int)g->ndim - (int)like->ndim;
    for (int i = 0; i < g->ndim; i++) {
        if (i < lead || (like->dims[i - lead] == 1 && g->dims[i] != 1)) {
            axes[n++] = i;
        }
    }
    if (n == 0) {
        return g;
    }
    g = (ls_sum)(c, g, axes, n, true);
    return lead > 0 ? (ls_reshape)(c, g, ls_tensor_shape(like)) : g;
}

/* Writes `value`, which `dtype` can hold, as an element at `to`; returns its size. */
static size_t encode(ls_dtype dtype, double value, void *to)
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
    size = encode(dtype, value, element);
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
