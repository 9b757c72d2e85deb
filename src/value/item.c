/* The one number that a value holds. */
#include "value/value.h"

#include <string.h>

/* The element of a tensor that has one; false: it is no number. */
static bool number_of(const ls_tensor *t, double *out)
{
    union {
        float f32;
        double f64;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
    } x;

    memcpy(&x, t->data, ls_dtype_size((ls_dtype)t->dtype));
    switch ((ls_dtype)t->dtype) {
    case LS_F32:
        *out = (double)x.f32;
        return true;
    case LS_F64:
        *out = x.f64;
        return true;
    case LS_F16:
        *out = (double)lsi_f16_to_f32(x.u16);
        return true;
    case LS_BF16:
        *out = (double)lsi_bf16_to_f32(x.u16);
        return true;
    case LS_I8:
        *out = x.i8;
        return true;
    case LS_I16:
        *out = x.i16;
        return true;
    case LS_I32:
        *out = x.i32;
        return true;
    case LS_I64:
        *out = (double)x.i64;
        return true;
    case LS_U8:
        *out = x.u8;
        return true;
    case LS_BOOL:
        *out = x.u8 != 0;
        return true;
    case LS_U16:
        *out = x.u16;
        return true;
    case LS_U32:
        *out = x.u32;
        return true;
    case LS_U64:
        *out = (double)x.u64;
        return true;
    default:
        return false;
    }
}

static bool item_of(const ls_value *v, double *out)
{
    int64_t integer = 0;
    bool truth = false;
    const ls_tensor *t = ls_value_as_tensor(v);

    if (t != NULL) {
        return t->count == 1 && t->data != NULL && t->dtype != LS_STRING &&
               number_of(t, out);
    }
    if (ls_value_as_int(v, &integer)) {
        *out = (double)integer;
        return true;
    }
    if (ls_value_as_bool(v, &truth)) {
        *out = truth;
        return true;
    }
    return ls_value_as_float(v, out);
}

ls_status ls_value_item(const ls_value *v, double *out, ls_error *err)
{
    char text[200];

    if (out == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "item: out is NULL");
    }
    if (!item_of(v, out)) {
        (void)ls_value_text(v, text, sizeof text);
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "item: needs a value with one number, got %s; reduce it, or "
                             "take one of its items with ls_value_child()",
                             text);
    }
    return LS_OK;
}
