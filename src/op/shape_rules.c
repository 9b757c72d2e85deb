/* Shape rules that several families share, broadcasting and its gradient. */
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

lsi_axis_attrs lsi_axis_attrs_of(const ls_tensor *x, int axis)
{
    lsi_axis_attrs attrs;

    memset(&attrs, 0, sizeof attrs);
    attrs.axis = axis;
    if (x != NULL) {
        (void)lsi_axis(axis, x->ndim, &attrs.axis);
    }
    return attrs;
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

ls_tensor *lsi_add_present(ls_context *c, ls_tensor *a, ls_tensor *b)
{
    return a == NULL ? b : b == NULL ? a : ls_add(c, a, b);
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
