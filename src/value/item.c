/* Reads the one number of a value. */
#include "value/value.h"

static bool item_of(const ls_value *v, double *out)
{
    int64_t integer = 0;
    bool truth = false;
    const ls_tensor *t = ls_value_as_tensor(v);

    if (t != NULL) {
        if (t->count != 1 || t->data == NULL || t->dtype == LS_STRING) {
            return false;
        }
        *out = lsi_element(t, 0);
        *out = t->dtype == LS_BOOL ? *out != 0 : *out;
        return true;
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
