/* concat and stack: several tensors into one; split: one into several. */
#include "op/op.h"

#include "kernel/ref/ref.h"

/* Input i is like input 0 except for the size of `axis` (-1: no exception). */
static ls_status check_alike(ls_op_call *k, size_t i, int axis)
{
    const ls_tensor *a = k->in[0];
    const ls_tensor *b = k->in[i];
    bool alike = a->dtype == b->dtype && a->ndim == b->ndim;

    for (int d = 0; alike && d < a->ndim; d++) {
        alike = d == axis || a->dims[d] == b->dims[d];
    }
    if (!alike) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "operand 0 is %s, operand %zu is %s; dtypes and sizes must be "
                          "the same%s",
                          lsi_text_of(a).s, i, lsi_text_of(b).s,
                          axis < 0 ? "" : " but along the axis of concat");
    }
    if (a->dtype == LS_STRING) {
        return ls_op_fail(k, LS_UNIMPLEMENTED,
                          "strings cannot be copied about: %s; make the tensor in its "
                          "final layout",
                          lsi_text_of(a).s);
    }
    return LS_OK;
}

/* concat and stack: `more` is 1 if the result has one more axis. */
static ls_tensor *join_tensors(ls_context *c, const ls_op *op, ls_tensor *const *xs,
                               size_t n, int axis, int more)
{
    lsi_axis_attrs attrs;

    memset(&attrs, 0, sizeof attrs);
    attrs.axis = axis;
    if (xs == NULL) {
        n = 0;
    }
    if (n > 0 && xs[0] != NULL) {
        (void)lsi_axis(axis, xs[0]->ndim + more,
                       &attrs.axis); // out of range: the shape rule fails
    }
    return ls_op_apply1(c, op, xs, n, &attrs, sizeof attrs);
}

static ls_status concat_shape(ls_op_call *k)
{
    const lsi_axis_attrs *attrs = k->attrs;
    const int axis = attrs->axis;
    ls_shape shape = lsi_shape(k->in[0]);

    if (axis < 0 || axis >= shape.ndim) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "there is no axis %d in %s, which has %d axes%s", axis,
                          lsi_text_of(k->in[0]).s, shape.ndim,
                          shape.ndim == 0 ? "; see ls_stack() for scalars" : "");
    }
    for (size_t i = 1; i < k->nin; i++) {
        const ls_status st = check_alike(k, i, axis);

        if (st != LS_OK) {
            return st;
        }
        if (k->in[i]->dims[axis] > INT64_MAX - shape.dims[axis]) {
            return ls_op_fail(k, LS_INVALID_ARGUMENT, "axis %d gets too long", axis);
        }
        shape.dims[axis] += k->in[i]->dims[axis];
    }
    k->spec[0].view = k->nin == 1;
    k->spec[0].offset = 0;
    return ls_op_set_output(k, 0, (ls_dtype)k->in[0]->dtype, &shape);
}

static void concat_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                            ls_tensor **gin)
{
    const lsi_axis_attrs *attrs = n->attrs;
    int64_t begin[LS_MAX_DIMS] = {0};

    for (uint32_t i = 0; i < n->nin; i++) {
        if (ls_op_needs(n, i)) {
            gin[i] = ls_slice(c, gout[0], begin, n->in[i]->dims);
        }
        begin[attrs->axis] += n->in[i]->dims[attrs->axis];
    }
}

LSI_ROW(concat, 1, -1, 1, concat_shape, lsi_ref_concat, concat_gradient);

ls_tensor *(ls_concat)(ls_context *c, ls_tensor *const *xs, size_t n, int axis)
{
    return join_tensors(c, &lsi_op_concat, xs, n, axis, 0);
}

static ls_status stack_shape(ls_op_call *k)
{
    const lsi_axis_attrs *attrs = k->attrs;
    const ls_tensor *x = k->in[0];
    ls_shape shape;

    memset(&shape, 0, sizeof shape);
    if (attrs->axis < 0 || attrs->axis > x->ndim || x->ndim == LS_MAX_DIMS) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "%s cannot have a new axis %d: it must lie between %d and %d, "
                          "and %d axes are possible",
                          lsi_text_of(x).s, attrs->axis, -x->ndim - 1, x->ndim,
                          LS_MAX_DIMS);
    }
    for (size_t i = 1; i < k->nin; i++) {
        const ls_status st = check_alike(k, i, -1);

        if (st != LS_OK) {
            return st;
        }
    }
    shape.ndim = x->ndim + 1;
    for (int i = 0; i < shape.ndim; i++) {
        const int from = i < attrs->axis ? i : i - 1;

        shape.dims[i] = i == attrs->axis ? (int64_t)k->nin : x->dims[from];
    }
    k->spec[0].view = k->nin == 1;
    k->spec[0].offset = 0;
    return ls_op_set_output(k, 0, (ls_dtype)x->dtype, &shape);
}

static void stack_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                           ls_tensor **gin)
{
    const lsi_axis_attrs *attrs = n->attrs;
    int64_t begin[LS_MAX_DIMS] = {0};
    ls_shape size = lsi_shape(n->out[0]);

    size.dims[attrs->axis] = 1;
    for (uint32_t i = 0; i < n->nin; i++) {
        begin[attrs->axis] = (int64_t)i;
        if (ls_op_needs(n, i)) {
            gin[i] = ls_reshape(c, ls_slice(c, gout[0], begin, size.dims),
                                lsi_shape(n->in[i]));
        }
    }
}

LSI_ROW(stack, 1, -1, 1, stack_shape, lsi_ref_stack, stack_gradient);

ls_tensor *(ls_stack)(ls_context *c, ls_tensor *const *xs, size_t n, int axis)
{
    return join_tensors(c, &lsi_op_stack, xs, n, axis, 1);
}

/* False: the sizes do not add up to that of the axis, and the step has failed. */
static bool check_sizes(ls_context *c, const ls_tensor *x, const int64_t *sizes, size_t n,
                        int axis)
{
    int64_t left = x->dims[axis];

    for (size_t i = 0; i < n && left >= 0; i++) {
        left = sizes[i] < 0 || sizes[i] > left ? -1 : left - sizes[i];
    }
    if (left != 0) {
        (void)ls_context_fail(
            c, LS_INVALID_ARGUMENT,
            "split: the %zu sizes must be 0 or more and add up to %lld, "
            "the size of axis %d of %s",
            n, (long long)x->dims[axis], axis, lsi_text_of(x).s);
    }
    return left == 0;
}

/* Recorded as the slices it is made of; along the first axis they are views. */
void(ls_split)(ls_context *c, ls_tensor *x, const int64_t *sizes, size_t n, int axis,
               ls_tensor **outs)
{
    int64_t begin[LS_MAX_DIMS] = {0};
    int64_t size[LS_MAX_DIMS] = {0};
    int at = 0;

    for (size_t i = 0; outs != NULL && i < n; i++) {
        outs[i] = NULL;
    }
    if (lsi_failed(c)) {
        return;
    }
    if (x == NULL || (n > 0 && (sizes == NULL || outs == NULL))) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "split: %s NULL",
                              x == NULL       ? "input 0 is"
                              : sizes == NULL ? "the sizes are"
                                              : "the list of results is");
        return;
    }
    if (!lsi_axis(axis, x->ndim, &at)) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT,
                              "split: there is no axis %d in %s, which has %d axes", axis,
                              lsi_text_of(x).s, x->ndim);
        return;
    }
    if (!check_sizes(c, x, sizes, n, at)) {
        return;
    }
    memcpy(size, x->dims, (size_t)x->ndim * sizeof *size);
    for (size_t i = 0; i < n; i++) {
        size[at] = sizes[i];
        outs[i] = ls_slice(c, x, begin, size);
        begin[at] += sizes[i];
    }
    for (size_t i = 0; i < n && lsi_failed(c); i++) {
        outs[i] = NULL;
    }
}
