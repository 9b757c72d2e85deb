/* gather, scatter and one_hot: rows selected by their index. */
#include "op/op.h"

#include "kernel/ref/ref.h"

ls_status lsi_check_index_dtype(ls_op_call *k, const ls_tensor *indices)
{
    if (indices->dtype != LS_I32 && indices->dtype != LS_I64) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "the indices %s must be int32 or int64; convert them with "
                          "ls_cast()",
                          lsi_text_of(indices).s);
    }
    return LS_OK;
}

static ls_status gather_shape(ls_op_call *k)
{
    const int axis = ((const lsi_axis_attrs *)k->attrs)->axis;
    const ls_tensor *x = k->in[0];
    const ls_tensor *indices = k->in[1];
    const ls_status st = lsi_check_index_dtype(k, indices);
    ls_shape shape;

    memset(&shape, 0, sizeof shape);
    if (st != LS_OK) {
        return st;
    }
    if (axis < 0 || axis >= x->ndim) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "there is no axis %d in %s, which has %d axes", axis,
                          lsi_text_of(x).s, x->ndim);
    }
    if (x->dtype == LS_STRING) {
        return ls_op_fail(k, LS_UNIMPLEMENTED,
                          "strings cannot be copied about: %s; gather numbers that stand "
                          "for them",
                          lsi_text_of(x).s);
    }
    if (x->ndim - 1 + indices->ndim > LS_MAX_DIMS) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "%s with indices %s would have %d axes; %d are possible",
                          lsi_text_of(x).s, lsi_text_of(indices).s,
                          x->ndim - 1 + indices->ndim, LS_MAX_DIMS);
    }
    for (int i = 0; i < x->ndim; i++) {
        if (i != axis) {
            shape.dims[shape.ndim++] = x->dims[i];
            continue;
        }
        for (int j = 0; j < indices->ndim; j++) {
            shape.dims[shape.ndim++] = indices->dims[j];
        }
    }
    return ls_op_set_output(k, 0, (ls_dtype)x->dtype, &shape);
}

/* Along axis 0: a sparse gradient with the rows `g` at the indices. */
static ls_tensor *gather_rows_gradient(ls_context *c, ls_tensor *x, ls_tensor *indices,
                                       ls_tensor *g)
{
    ls_shape table = lsi_shape(x);
    ls_shape rows = table;
    ls_tensor *values = NULL;
    ls_tensor *flat = NULL;

    rows.dims[0] = indices->count;
    values = ls_reshape(c, g, rows);
    flat = ls_reshape(c, indices, LS_SHAPE(indices->count));
    if (values == NULL || flat == NULL) {
        return NULL;
    }
    // A tape that records the gradient needs an operation it can record.
    if ((values->tapes & c->recording) != 0) {
        return ls_scatter(c, flat, values, table);
    }
    return lsi_context_sparse(c, &table, values, flat);
}

/* Along another axis: as [outer, axis, inner], the axis to the front and back again. */
static ls_tensor *gather_axis_gradient(ls_context *c, ls_tensor *x, ls_tensor *indices,
                                       ls_tensor *g, int axis)
{
    const int swap[3] = {1, 0, 2};
    const int64_t n = indices->count;
    const int64_t size = x->dims[axis];
    int64_t outer = 1;
    int64_t inner = 1;
    ls_tensor *flat = ls_reshape(c, indices, LS_SHAPE(n));
    ls_tensor *rows = NULL;

    for (int i = 0; i < x->ndim; i++) {
        outer *= i < axis ? x->dims[i] : 1;
        inner *= i > axis ? x->dims[i] : 1;
    }
    rows = ls_transpose(c, ls_reshape(c, g, LS_SHAPE(outer, n, inner)), swap);
    rows = ls_scatter(c, flat, rows, LS_SHAPE(size, outer, inner));
    return ls_reshape(c, ls_transpose(c, rows, swap), lsi_shape(x));
}

static void gather_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                            ls_tensor **gin)
{
    const int axis = ((const lsi_axis_attrs *)n->attrs)->axis;

    gin[0] = axis == 0 ? gather_rows_gradient(c, n->in[0], n->in[1], gout[0])
                       : gather_axis_gradient(c, n->in[0], n->in[1], gout[0], axis);
}

LSI_ROW(gather, 2, 2, 1, gather_shape, lsi_ref_gather, gather_gradient);

ls_tensor *(ls_gather)(ls_context *c, ls_tensor *x, ls_tensor *indices, int axis)
{
    const lsi_axis_attrs attrs = lsi_axis_attrs_of(x, axis);

    return lsi_op2(c, &lsi_op_gather, x, indices, &attrs, sizeof attrs);
}

bool lsi_updates_fit(const ls_tensor *indices, const ls_tensor *updates,
                     const ls_shape *shape)
{
    if (shape->ndim < 1 || updates->ndim != indices->ndim + shape->ndim - 1) {
        return false;
    }
    for (int i = 0; i < updates->ndim; i++) {
        const int64_t wanted =
            i < indices->ndim ? indices->dims[i] : shape->dims[i - indices->ndim + 1];

        if (updates->dims[i] != wanted) {
            return false;
        }
    }
    return true;
}

static ls_status scatter_shape(ls_op_call *k)
{
    const ls_shape *shape = &((const lsi_shape_attrs *)k->attrs)->shape;
    const ls_tensor *indices = k->in[0];
    const ls_tensor *updates = k->in[1];
    const ls_status st = lsi_check_index_dtype(k, indices);
    char text[128];

    if (st != LS_OK) {
        return st;
    }
    if (!lsi_dtype_is_number((ls_dtype)updates->dtype)) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "adds numbers, got %s; convert them with ls_cast()",
                          lsi_text_of(updates).s);
    }
    if (shape->ndim > LS_MAX_DIMS || ls_shape_count(shape) < 0 ||
        !lsi_updates_fit(indices, updates, shape)) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "the updates %s must have the shape of the indices %s, then "
                          "that of a row of the result %s",
                          lsi_text_of(updates).s, lsi_text_of(indices).s,
                          ls_shape_text(shape, text, sizeof text));
    }
    return ls_op_set_output(k, 0, (ls_dtype)updates->dtype, shape);
}

static void scatter_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                             ls_tensor **gin)
{
    if (ls_op_needs(n, 1)) {
        gin[1] = ls_gather(c, gout[0], n->in[0], 0);
    }
}

LSI_ROW(scatter, 2, 2, 1, scatter_shape, lsi_ref_scatter, scatter_gradient);

ls_tensor *(ls_scatter)(ls_context *c, ls_tensor *indices, ls_tensor *updates,
                        ls_shape shape)
{
    lsi_shape_attrs attrs;

    memset(&attrs, 0, sizeof attrs);
    attrs.shape.ndim = shape.ndim;
    for (int i = 0; i < shape.ndim && i < LS_MAX_DIMS; i++) {
        attrs.shape.dims[i] = shape.dims[i];
    }
    return lsi_op2(c, &lsi_op_scatter, indices, updates, &attrs, sizeof attrs);
}

static ls_status one_hot_shape(ls_op_call *k)
{
    const lsi_dtype_attrs *attrs = k->attrs;
    const ls_tensor *indices = k->in[0];
    const ls_status st = lsi_check_index_dtype(k, indices);
    ls_shape shape = lsi_shape(indices);

    if (st != LS_OK) {
        return st;
    }
    if (attrs->dtype != LS_BOOL && !lsi_dtype_is_number(attrs->dtype)) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "the result must be of numbers or bools, not %s",
                          ls_dtype_name(attrs->dtype));
    }
    if (attrs->depth < 0) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT, "the depth %lld must be 0 or more",
                          (long long)attrs->depth);
    }
    if (shape.ndim == LS_MAX_DIMS) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT, "%s has all the %d axes it can have",
                          lsi_text_of(indices).s, LS_MAX_DIMS);
    }
    shape.dims[shape.ndim++] = attrs->depth;
    return ls_op_set_output(k, 0, attrs->dtype, &shape);
}

LSI_ROW(one_hot, 1, 1, 1, one_hot_shape, lsi_ref_one_hot, NULL);

ls_tensor *(ls_one_hot)(ls_context *c, ls_tensor *indices, int64_t depth, ls_dtype dtype)
{
    lsi_dtype_attrs attrs;

    memset(&attrs, 0, sizeof attrs);
    attrs.dtype = dtype;
    attrs.depth = depth;
    return lsi_op1(c, &lsi_op_one_hot, indices, &attrs, sizeof attrs);
}
