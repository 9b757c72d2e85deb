/* Operations that move no element: their result shares the memory of their operand. */
#include "op/op.h"

/* Output 0 is input 0 under another shape. */
static ls_status view_as(ls_op_call *k, const ls_shape *shape)
{
    k->spec[0].view = true;
    k->spec[0].offset = 0;
    return ls_op_set_output(k, 0, (ls_dtype)k->in[0]->dtype, shape);
}

static ls_status view_same(ls_op_call *k)
{
    k->spec[0].view = true;
    k->spec[0].offset = 0;
    return lsi_shape_same(k);
}

/* The gradient is reshaped to the operand's shape. */
static void reshape_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                             ls_tensor **gin)
{
    gin[0] = ls_reshape(c, gout[0], lsi_shape(n->in[0]));
}

/* The product of a shape's sizes without the zeros among them; -1: too large. */
static int64_t count_without_zeros(const ls_shape *shape)
{
    ls_shape s = *shape;

    for (int i = 0; i < s.ndim; i++) {
        s.dims[i] = s.dims[i] == 0 ? 1 : s.dims[i];
    }
    return ls_shape_count(&s);
}

/*
 * Computes the size for the one -1 of `shape`; false: there are two, or it is ambiguous.
 * With zeros beside it, it is what the sizes that are none leave of those of `from`: (0,
 * 3) as (0, -1) is (0, 3), as in TensorFlow.
 */
static bool infer(ls_shape *shape, const ls_shape *from)
{
    int unknown = -1;
    bool zero = false;
    ls_shape known = *shape;
    int64_t rest = 0, count = ls_shape_count(from);

    for (int i = 0; i < shape->ndim; i++) {
        zero = zero || shape->dims[i] == 0;
        if (shape->dims[i] == -1) {
            if (unknown >= 0) {
                return false;
            }
            unknown = i;
            known.dims[i] = 1;
        }
    }
    if (unknown < 0) {
        return true;
    }
    rest = count_without_zeros(&known);
    if (zero && count == 0) {
        count = count_without_zeros(from);
    } else if (rest > 0 && count % rest != 0) {
        return false;
    }
    if (rest <= 0) {
        return false;
    }
    shape->dims[unknown] = count / rest;
    return true;
}

static ls_status reshape_shape(ls_op_call *k)
{
    const lsi_shape_attrs *attrs = k->attrs;
    const ls_shape from = lsi_shape(k->in[0]);
    ls_shape shape = attrs->shape;
    char text[128];

    if (shape.ndim < 0 || shape.ndim > LS_MAX_DIMS) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT, "a shape of %d axes; %d are possible",
                          shape.ndim, LS_MAX_DIMS);
    }
    if (!infer(&shape, &from) || ls_shape_count(&shape) != k->in[0]->count) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "%s has %lld elements, which do not fit the shape %s; one size "
                          "may be -1: what the others leave",
                          lsi_text_of(k->in[0]).s, (long long)k->in[0]->count,
                          ls_shape_text(&attrs->shape, text, sizeof text));
    }
    return view_as(k, &shape);
}

LSI_ROW(reshape, 1, 1, 1, reshape_shape, NULL, reshape_gradient);

ls_tensor *(ls_reshape)(ls_context *c, ls_tensor *x, ls_shape shape)
{
    lsi_shape_attrs attrs;

    memset(&attrs, 0, sizeof attrs);
    attrs.shape.ndim = shape.ndim;
    for (int i = 0; i < shape.ndim && i < LS_MAX_DIMS; i++) {
        attrs.shape.dims[i] = shape.dims[i];
    }
    return lsi_op1(c, &lsi_op_reshape, x, &attrs, sizeof attrs);
}

static ls_status squeeze_shape(ls_op_call *k)
{
    const lsi_reduce_attrs *attrs = k->attrs;
    const ls_tensor *x = k->in[0];
    ls_shape shape;

    memset(&shape, 0, sizeof shape);
    for (int i = 0; i < x->ndim; i++) {
        if ((attrs->mask >> i & 1) == 0) {
            shape.dims[shape.ndim++] = x->dims[i];
        } else if (x->dims[i] != 1) {
            return ls_op_fail(k, LS_INVALID_ARGUMENT,
                              "axis %d of %s has the size %lld; only axes of size 1 can "
                              "go",
                              i, lsi_text_of(x).s, (long long)x->dims[i]);
        }
    }
    return view_as(k, &shape);
}

LSI_ROW(squeeze, 1, 1, 1, squeeze_shape, NULL, reshape_gradient);

/* The axes to go as bits; false: the step has failed because of them. */
static bool squeezed(ls_context *c, const ls_tensor *x, const int *axes, size_t naxes,
                     uint32_t *mask)
{
    *mask = 0;
    for (int i = 0; axes == NULL && i < x->ndim && i < LS_MAX_DIMS; i++) {
        *mask |= (uint32_t)(x->dims[i] == 1) << i;
    }
    for (size_t i = 0; axes != NULL && i < naxes; i++) {
        int axis = 0;

        if (!lsi_axis(axes[i], x->ndim, &axis)) {
            (void)ls_context_fail(c, LS_INVALID_ARGUMENT,
                                  "squeeze: there is no axis %d in %s, which has %d axes",
                                  axes[i], lsi_text_of(x).s, x->ndim);
            return false;
        }
        *mask |= (uint32_t)1 << axis;
    }
    return true;
}

ls_tensor *(ls_squeeze)(ls_context *c, ls_tensor *x, const int *axes, size_t naxes)
{
    lsi_reduce_attrs attrs;

    memset(&attrs, 0, sizeof attrs);
    if (lsi_failed(c)) {
        return NULL;
    }
    if (x != NULL && !squeezed(c, x, axes, naxes, &attrs.mask)) {
        return NULL;
    }
    return lsi_op1(c, &lsi_op_squeeze, x, &attrs, sizeof attrs);
}

static ls_status expand_dims_shape(ls_op_call *k)
{
    const lsi_axis_attrs *attrs = k->attrs;
    const ls_tensor *x = k->in[0];
    ls_shape shape;

    memset(&shape, 0, sizeof shape);
    if (attrs->axis < 0 || attrs->axis > x->ndim) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "axis %d of %s must lie between %d and %d", attrs->axis,
                          lsi_text_of(x).s, -x->ndim - 1, x->ndim);
    }
    if (x->ndim == LS_MAX_DIMS) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT, "%s has all the %d axes it can have",
                          lsi_text_of(x).s, LS_MAX_DIMS);
    }
    shape.ndim = x->ndim + 1;
    for (int i = 0; i < shape.ndim; i++) {
        const int from = i < attrs->axis ? i : i - 1;

        shape.dims[i] = i == attrs->axis ? 1 : x->dims[from];
    }
    return view_as(k, &shape);
}

LSI_ROW(expand_dims, 1, 1, 1, expand_dims_shape, NULL, reshape_gradient);

ls_tensor *(ls_expand_dims)(ls_context *c, ls_tensor *x, int axis)
{
    lsi_axis_attrs attrs;

    memset(&attrs, 0, sizeof attrs);
    attrs.axis = axis;
    if (x != NULL) {
        (void)lsi_axis(axis, x->ndim + 1,
                       &attrs.axis); // out of range: the shape rule fails
    }
    return lsi_op1(c, &lsi_op_expand_dims, x, &attrs, sizeof attrs);
}

/* Without a gradient the tape records nothing and nothing flows back. */
LSI_ROW(stop_gradient, 1, 1, 1, view_same, NULL, NULL);

ls_tensor *(ls_stop_gradient)(ls_context *c, ls_tensor *x)
{
    return lsi_op1(c, &lsi_op_stop_gradient, x, NULL, 0);
}

static void identity_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                              ls_tensor **gin)
{
    (void)c;
    (void)n;
    gin[0] = gout[0];
}

LSI_ROW(identity, 1, 1, 1, view_same, NULL, identity_gradient);

ls_tensor *(ls_identity)(ls_context *c, ls_tensor *x)
{
    return lsi_op1(c, &lsi_op_identity, x, NULL, 0);
}
