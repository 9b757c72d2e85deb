/* Reductions over axes. */
#include "op/op.h"

#include "kernel/ref/ref.h"

/* Axes as bits; false: the step has failed because of them. */
static bool read_axes(ls_context *c, const ls_op *op, const ls_tensor *x, const int *axes,
                      size_t naxes, uint32_t *mask)
{
    *mask = axes == NULL ? ((uint32_t)1 << x->ndim) - 1 : 0;
    for (size_t i = 0; axes != NULL && i < naxes; i++) {
        int axis = 0;

        if (!lsi_axis(axes[i], x->ndim, &axis)) {
            (void)ls_context_fail(c, LS_INVALID_ARGUMENT,
                                  "%s: there is no axis %d in %s, which has %d axes",
                                  op->name, axes[i], lsi_text_of(x).s, x->ndim);
            return false;
        }
        if ((*mask >> axis & 1) != 0) {
            (void)ls_context_fail(c, LS_INVALID_ARGUMENT,
                                  "%s: axis %d of %s is listed twice; list it once",
                                  op->name, axes[i], lsi_text_of(x).s);
            return false;
        }
        *mask |= (uint32_t)1 << axis;
    }
    return true;
}

static ls_tensor *reduce(ls_context *c, const ls_op *op, ls_tensor *x, const int *axes,
                         size_t naxes, bool keepdims)
{
    lsi_reduce_attrs attrs;

    memset(&attrs, 0, sizeof attrs);
    attrs.keepdims = keepdims;
    if (lsi_failed(c)) {
        return NULL;
    }
    if (x != NULL && !read_axes(c, op, x, axes, naxes, &attrs.mask)) {
        return NULL;
    }
    return lsi_op1(c, op, x, &attrs, sizeof attrs);
}

/* The row of a reduction over axes, and its public function. */
#define ROW(name, shape, gradient)                                                       \
    LSI_ROW(name, 1, 1, 1, shape, lsi_ref_##name, gradient);                             \
                                                                                         \
    ls_tensor *(ls_##name)(ls_context * c, ls_tensor * x, const int *axes, size_t naxes, \
                           bool keepdims)                                                \
    {                                                                                    \
        return reduce(c, &lsi_op_##name, x, axes, naxes, keepdims);                      \
    }

/* `shape` without the axes in `mask`, or with their sizes made 1. */
static ls_shape reduced(const ls_shape *shape, uint32_t mask, bool keepdims)
{
    ls_shape out;

    memset(&out, 0, sizeof out);
    for (int i = 0; i < shape->ndim; i++) {
        if ((mask >> i & 1) == 0) {
            out.dims[out.ndim++] = shape->dims[i];
        } else if (keepdims) {
            out.dims[out.ndim++] = 1;
        }
    }
    return out;
}

static ls_status reduce_shape(ls_op_call *k)
{
    const lsi_reduce_attrs *attrs = k->attrs;
    const ls_shape x = lsi_shape(k->in[0]);
    const ls_shape y = reduced(&x, attrs->mask, attrs->keepdims);

    return ls_op_set_output(k, 0, (ls_dtype)k->in[0]->dtype, &y);
}

static ls_status reduce_numbers(ls_op_call *k)
{
    const ls_status st = lsi_shape_same_number(k);

    return st != LS_OK ? st : reduce_shape(k);
}

static ls_status reduce_floats(ls_op_call *k)
{
    const ls_status st = lsi_shape_same_float(k);

    return st != LS_OK ? st : reduce_shape(k);
}

static ls_status reduce_bools(ls_op_call *k)
{
    if (k->in[0]->dtype != LS_BOOL) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "needs bool, got %s; compare it or convert it with ls_cast()",
                          lsi_text_of(k->in[0]).s);
    }
    return reduce_shape(k);
}

/* `t`, of the output's shape, with the reduced axes back as axes of size 1. */
static ls_tensor *widen(ls_context *c, const ls_op_node *n, ls_tensor *t)
{
    const lsi_reduce_attrs *attrs = n->attrs;
    const ls_shape x = lsi_shape(n->in[0]);

    return attrs->keepdims ? t : ls_reshape(c, t, reduced(&x, attrs->mask, true));
}

/* How many elements are reduced to one. */
static int64_t folded(const ls_op_node *n)
{
    const lsi_reduce_attrs *attrs = n->attrs;
    int64_t count = 1;

    for (int i = 0; i < n->in[0]->ndim; i++) {
        count *= (attrs->mask >> i & 1) != 0 ? n->in[0]->dims[i] : 1;
    }
    return count;
}

static bool differentiable(const ls_op_node *n)
{
    return lsi_dtype_is_float((ls_dtype)n->in[0]->dtype);
}

static void sum_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                         ls_tensor **gin)
{
    gin[0] = ls_broadcast_to(c, widen(c, n, gout[0]), lsi_shape(n->in[0]));
}

ROW(sum, reduce_numbers, sum_gradient)

static void mean_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                          ls_tensor **gin)
{
    ls_tensor *count = NULL;

    if (differentiable(n)) {
        count = lsi_scalar(c, (ls_dtype)n->in[0]->dtype, (double)folded(n));
        gin[0] = ls_broadcast_to(c, ls_div(c, widen(c, n, gout[0]), count),
                                 lsi_shape(n->in[0]));
    }
}

ROW(mean, reduce_numbers, mean_gradient)

/* A matrix with its columns moved by `by` to the right (left if negative); ones come in.
 */
static ls_tensor *shift(ls_context *c, ls_tensor *t, int64_t by)
{
    const int64_t paddings[4] = {0, 0, by > 0 ? by : 0, by < 0 ? -by : 0};
    const int64_t begin[2] = {0, by < 0 ? -by : 0};
    int64_t size[2] = {0};

    if (t == NULL) {
        return NULL;
    }
    size[0] = t->dims[0];
    size[1] = t->dims[1];
    return ls_slice(c, ls_pad(c, t, paddings, 1), begin, size);
}

/* For each element the product of those before it in its row (after it: way -1). */
static ls_tensor *products_beside(ls_context *c, ls_tensor *rows, int64_t way)
{
    ls_tensor *t = shift(c, rows, way);

    for (int64_t reach = 1; t != NULL && reach < rows->dims[1]; reach *= 2) {
        t = ls_mul(c, t, shift(c, t, way * reach));
    }
    return t;
}

/*
 * d prod / d x[i] is the product of the others. It is made of the products on either
 * side and not by a division, so that it is right where elements are zero.
 */
static void prod_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                          ls_tensor **gin)
{
    const lsi_reduce_attrs *attrs = n->attrs;
    ls_tensor *x = n->in[0];
    const int64_t width = folded(n);
    int perm[LS_MAX_DIMS];
    int back[LS_MAX_DIMS];
    int at = 0;
    ls_tensor *moved = NULL;
    ls_tensor *rows = NULL;
    ls_tensor *others = NULL;

    if (!differentiable(n)) {
        return;
    }
    if (x->count == 0) {
        gin[0] = lsi_zeros_like(c, x);
        return;
    }
    for (uint32_t last = 0; last <= 1; last++) { // the axes that stay come first
        for (int i = 0; i < x->ndim; i++) {
            if ((attrs->mask >> i & 1) == last) {
                back[i] = at;
                perm[at++] = i;
            }
        }
    }
    moved = ls_transpose(c, x, perm);
    rows = ls_reshape(c, moved, LS_SHAPE(x->count / width, width));
    if (rows == NULL) {
        return;
    }
    others = ls_mul(c, products_beside(c, rows, 1), products_beside(c, rows, -1));
    others = ls_mul(c, others, ls_reshape(c, gout[0], LS_SHAPE(x->count / width, 1)));
    gin[0] = ls_transpose(c, ls_reshape(c, others, lsi_shape(moved)), back);
}

ROW(prod, reduce_numbers, prod_gradient)

/* Elements that tie for the extreme share its gradient equally. */
static void extreme_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                             ls_tensor **gin)
{
    ls_tensor *x = n->in[0];
    ls_tensor *chosen = NULL;
    ls_tensor *many = NULL;
    lsi_reduce_attrs keeping;

    if (!differentiable(n)) {
        return;
    }
    memcpy(&keeping, n->attrs, sizeof keeping);
    keeping.keepdims = true;
    chosen = ls_cast(c, ls_equal(c, x, widen(c, n, n->out[0])), (ls_dtype)x->dtype);
    many = lsi_op1(c, &lsi_op_sum, chosen, &keeping, sizeof keeping);
    gin[0] = ls_mul(c, ls_div(c, chosen, many), widen(c, n, gout[0]));
}

ROW(max, reduce_numbers, extreme_gradient)
ROW(min, reduce_numbers, extreme_gradient)
ROW(any, reduce_bools, NULL)
ROW(all, reduce_bools, NULL)

/* The softmax over the reduced axes: exp(x - y). */
static void logsumexp_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                               ls_tensor **gin)
{
    ls_tensor *share = ls_exp(c, ls_sub(c, n->in[0], widen(c, n, n->out[0])));

    gin[0] = ls_mul(c, share, widen(c, n, gout[0]));
}

ROW(logsumexp, reduce_floats, logsumexp_gradient)

static ls_status arg_shape(ls_op_call *k)
{
    const lsi_axis_attrs *attrs = k->attrs;
    const ls_shape x = lsi_shape(k->in[0]);
    const ls_status st = lsi_shape_same_number(k);
    ls_shape y;

    if (st != LS_OK) {
        return st;
    }
    if (attrs->axis < 0 || attrs->axis >= x.ndim) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "there is no axis %d in %s, which has %d axes", attrs->axis,
                          lsi_text_of(k->in[0]).s, x.ndim);
    }
    if (x.dims[attrs->axis] == 0) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "axis %d of %s is empty: nothing there is the largest or the "
                          "smallest",
                          attrs->axis, lsi_text_of(k->in[0]).s);
    }
    y = reduced(&x, (uint32_t)1 << attrs->axis, false);
    return ls_op_set_output(k, 0, LS_I64, &y);
}

static ls_tensor *find_extreme(ls_context *c, const ls_op *op, ls_tensor *x, int axis)
{
    const lsi_axis_attrs attrs = lsi_axis_attrs_of(x, axis);

    return lsi_op1(c, op, x, &attrs, sizeof attrs);
}

LSI_ROW(argmax, 1, 1, 1, arg_shape, lsi_ref_argmax, NULL);

ls_tensor *(ls_argmax)(ls_context *c, ls_tensor *x, int axis)
{
    return find_extreme(c, &lsi_op_argmax, x, axis);
}

LSI_ROW(argmin, 1, 1, 1, arg_shape, lsi_ref_argmin, NULL);

ls_tensor *(ls_argmin)(ls_context *c, ls_tensor *x, int axis)
{
    return find_extreme(c, &lsi_op_argmin, x, axis);
}
