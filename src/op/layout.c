/*
 * Operations that rearrange elements. Where none has to be moved, the result is a view.
 */
#include "op/op.h"

#include "kernel/ref/copy.h"
#include "kernel/ref/ref.h"

/*
 * Output 0 of `shape`; a view of input 0 if `still`: no element moves. The bytes
 * of strings belong to their tensor's buffer, which a copied element would not keep
 * alive.
 */
static ls_status moved(ls_op_call *k, const ls_shape *shape, bool still)
{
    if (still) {
        k->spec[0].view = true;
        k->spec[0].offset = 0;
    } else if (k->in[0]->dtype == LS_STRING) {
        return ls_op_fail(k, LS_UNIMPLEMENTED,
                          "strings cannot be copied about: %s; make the tensor in its "
                          "final layout",
                          lsi_text_of(k->in[0]).s);
    }
    return ls_op_set_output(k, 0, (ls_dtype)k->in[0]->dtype, shape);
}

/* True if `perm` names every axis once. */
static bool is_permutation(const int64_t *perm, int ndim)
{
    uint32_t seen = 0;

    for (int i = 0; i < ndim; i++) {
        if (perm[i] < 0 || perm[i] >= ndim || (seen >> perm[i] & 1) != 0) {
            return false;
        }
        seen |= (uint32_t)1 << perm[i];
    }
    return true;
}

static ls_status transpose_shape(ls_op_call *k)
{
    const lsi_shape_attrs *attrs = k->attrs;
    const ls_tensor *x = k->in[0];
    const ls_shape perm = {x->ndim, {0}};
    ls_shape shape = lsi_shape(x);
    int64_t last = -1;
    bool still = true;
    char text[128];

    if (!is_permutation(attrs->begin, x->ndim)) {
        ls_shape given = perm;

        memcpy(given.dims, attrs->begin, sizeof given.dims);
        return ls_op_fail(
            k, LS_INVALID_ARGUMENT, "%s is no permutation of the %d axes of %s",
            ls_shape_text(&given, text, sizeof text), x->ndim, lsi_text_of(x).s);
    }
    for (int i = 0; i < x->ndim; i++) {
        const int64_t axis = attrs->begin[i];

        shape.dims[i] = x->dims[axis];
        if (x->dims[axis] != 1) { // axes of size 1 can be moved without copying
            still &= axis > last;
            last = axis;
        }
    }
    return moved(k, &shape, still);
}

static void transpose_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                               ls_tensor **gin)
{
    const lsi_shape_attrs *attrs = n->attrs;
    int back[LS_MAX_DIMS] = {0};

    for (int i = 0; i < n->in[0]->ndim; i++) {
        back[attrs->begin[i]] = i;
    }
    gin[0] = ls_transpose(c, gout[0], back);
}

LSI_ROW(transpose, 1, 1, 1, transpose_shape, lsi_ref_transpose, transpose_gradient);

ls_tensor *(ls_transpose)(ls_context *c, ls_tensor *x, const int *perm)
{
    lsi_shape_attrs attrs;

    memset(&attrs, 0, sizeof attrs);
    for (int i = 0; x != NULL && i < x->ndim; i++) {
        int axis = perm != NULL ? perm[i] : x->ndim - 1 - i;

        (void)lsi_axis(axis, x->ndim,
                       &axis); // out of range: the shape rule fails
        attrs.begin[i] = axis;
    }
    return lsi_op1(c, &lsi_op_transpose, x, &attrs, sizeof attrs);
}

static ls_status broadcast_to_shape(ls_op_call *k)
{
    const lsi_shape_attrs *attrs = k->attrs;
    const ls_shape x = lsi_shape(k->in[0]);
    ls_shape both;
    char text[128];

    if (attrs->shape.ndim < 0 || attrs->shape.ndim > LS_MAX_DIMS ||
        ls_shape_count(&attrs->shape) < 0 || !lsi_broadcast(&x, &attrs->shape, &both) ||
        !ls_shape_equal(&both, &attrs->shape)) {
        return ls_op_fail(
            k, LS_INVALID_ARGUMENT,
            "%s does not broadcast to %s: sizes must be equal or 1, counted "
            "from the last axis",
            lsi_text_of(k->in[0]).s, ls_shape_text(&attrs->shape, text, sizeof text));
    }
    return moved(k, &attrs->shape, ls_shape_count(&both) == k->in[0]->count);
}

static void broadcast_to_gradient(ls_context *c, const ls_op_node *n,
                                  ls_tensor *const *gout, ls_tensor **gin)
{
    gin[0] = lsi_sum_to(c, gout[0], n->in[0]);
}

LSI_ROW(broadcast_to, 1, 1, 1, broadcast_to_shape, lsi_ref_broadcast_to,
        broadcast_to_gradient);

ls_tensor *(ls_broadcast_to)(ls_context *c, ls_tensor *x, ls_shape shape)
{
    lsi_shape_attrs attrs;

    memset(&attrs, 0, sizeof attrs);
    attrs.shape.ndim = shape.ndim;
    for (int i = 0; i < shape.ndim && i < LS_MAX_DIMS; i++) {
        attrs.shape.dims[i] = shape.dims[i];
    }
    return lsi_op1(c, &lsi_op_broadcast_to, x, &attrs, sizeof attrs);
}

static ls_status tile_shape(ls_op_call *k)
{
    const lsi_shape_attrs *attrs = k->attrs;
    const ls_tensor *x = k->in[0];
    ls_shape shape = lsi_shape(x);
    bool still = true;

    for (int i = 0; i < x->ndim; i++) {
        const int64_t times = attrs->begin[i];

        if (times < 0 || (times > 0 && x->dims[i] > INT64_MAX / times)) {
            return ls_op_fail(k, LS_INVALID_ARGUMENT,
                              "axis %d of %s cannot be repeated %lld times", i,
                              lsi_text_of(x).s, (long long)times);
        }
        shape.dims[i] *= times;
        still &= times == 1;
    }
    return moved(k, &shape, still);
}

/* The copies add up: axis by axis, as [outer, times, one copy]. */
static void tile_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                          ls_tensor **gin)
{
    const lsi_shape_attrs *attrs = n->attrs;
    const ls_tensor *x = n->in[0];
    const int middle = 1;
    ls_tensor *g = gout[0];
    int64_t outer = 1;

    if (n->out[0]->count == 0) {
        gin[0] = lsi_zeros_like(c, x);
        return;
    }
    for (int i = 0; i < x->ndim && g != NULL; i++) {
        const int64_t times = attrs->begin[i];

        if (times > 1) {
            const ls_shape split = LS_SHAPE(outer, times, g->count / outer / times);

            g = ls_sum(c, ls_reshape(c, g, split), &middle, 1, false);
        }
        outer *= x->dims[i];
    }
    gin[0] = ls_reshape(c, g, lsi_shape(x));
}

LSI_ROW(tile, 1, 1, 1, tile_shape, lsi_ref_tile, tile_gradient);

/* True if `list` is not NULL, or `x` has no axis; else the step fails. */
static bool has_list(ls_context *c, const ls_op *op, const ls_tensor *x,
                     const int64_t *list, const char *what)
{
    if (x == NULL || x->ndim == 0 || list != NULL) {
        return true;
    }
    (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "%s: the %s of %s are NULL", op->name,
                          what, lsi_text_of(x).s);
    return false;
}

ls_tensor *(ls_tile)(ls_context *c, ls_tensor *x, const int64_t *multiples)
{
    lsi_shape_attrs attrs;

    if (!has_list(c, &lsi_op_tile, x, multiples, "multiples")) {
        return NULL;
    }
    memset(&attrs, 0, sizeof attrs);
    for (int i = 0; x != NULL && i < x->ndim; i++) {
        attrs.begin[i] = multiples[i];
    }
    return lsi_op1(c, &lsi_op_tile, x, &attrs, sizeof attrs);
}

static ls_status pad_shape(ls_op_call *k)
{
    const lsi_shape_attrs *attrs = k->attrs;
    const ls_tensor *x = k->in[0];
    ls_shape shape = lsi_shape(x);
    bool still = true;

    for (int i = 0; i < x->ndim; i++) {
        const int64_t before = attrs->begin[i];
        const int64_t after = attrs->end[i];

        if (before < 0 || after < 0 || before > INT64_MAX - x->dims[i] ||
            after > INT64_MAX - x->dims[i] - before) {
            return ls_op_fail(k, LS_INVALID_ARGUMENT,
                              "axis %d of %s cannot have %lld before and %lld after; "
                              "paddings are 0 or more (see ls_slice() to cut)",
                              i, lsi_text_of(x).s, (long long)before, (long long)after);
        }
        shape.dims[i] += before + after;
        still &= before == 0 && after == 0;
    }
    return moved(k, &shape, still);
}

static void pad_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                         ls_tensor **gin)
{
    const lsi_shape_attrs *attrs = n->attrs;

    gin[0] = ls_slice(c, gout[0], attrs->begin, n->in[0]->dims);
}

LSI_ROW(pad, 1, 1, 1, pad_shape, lsi_ref_pad, pad_gradient);

ls_tensor *(ls_pad)(ls_context *c, ls_tensor *x, const int64_t *paddings, double value)
{
    lsi_shape_attrs attrs;

    if (!has_list(c, &lsi_op_pad, x, paddings, "paddings")) {
        return NULL;
    }
    memset(&attrs, 0, sizeof attrs);
    for (int i = 0; x != NULL && i < x->ndim; i++) {
        attrs.begin[i] = paddings[2U * (size_t)i];
        attrs.end[i] = paddings[2U * (size_t)i + 1];
    }
    attrs.value = value;
    return lsi_op1(c, &lsi_op_pad, x, &attrs, sizeof attrs);
}

/* True if the slice is contiguous: single indices, then one range, then whole axes. */
static bool is_stretch(const ls_tensor *x, const ls_shape *size)
{
    int axis = 0;

    while (axis < x->ndim && size->dims[axis] == 1) {
        axis++;
    }
    for (axis++; axis < x->ndim; axis++) {
        if (size->dims[axis] != x->dims[axis]) {
            return false;
        }
    }
    return true;
}

static ls_status slice_shape(ls_op_call *k)
{
    const lsi_shape_attrs *attrs = k->attrs;
    const ls_tensor *x = k->in[0];
    ls_shape size = lsi_shape(x);
    int64_t strides[LS_MAX_DIMS];
    int64_t offset = 0;
    ls_status st = LS_OK;

    lsi_strides(x, strides);
    for (int i = 0; i < x->ndim; i++) {
        const int64_t begin = attrs->begin[i];
        const int64_t asked = attrs->shape.dims[i];

        if (begin < 0 || begin > x->dims[i] || asked < -1 || asked > x->dims[i] - begin) {
            return ls_op_fail(
                k, LS_INVALID_ARGUMENT,
                "axis %d of %s has no %lld elements from %lld on; a size of "
                "-1 takes the rest",
                i, lsi_text_of(x).s, (long long)asked, (long long)begin);
        }
        size.dims[i] = asked == -1 ? x->dims[i] - begin : asked;
        offset += begin * strides[i];
    }
    // An empty slice has no element to point at.
    st = moved(k, &size, ls_shape_count(&size) > 0 && is_stretch(x, &size));
    k->spec[0].offset = (size_t)offset * ls_dtype_size((ls_dtype)x->dtype);
    return st;
}

static void slice_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                           ls_tensor **gin)
{
    const lsi_shape_attrs *attrs = n->attrs;
    int64_t paddings[2 * LS_MAX_DIMS] = {0};

    for (int i = 0; i < n->in[0]->ndim; i++) {
        paddings[2U * (size_t)i] = attrs->begin[i];
        paddings[2U * (size_t)i + 1] =
            n->in[0]->dims[i] - attrs->begin[i] - n->out[0]->dims[i];
    }
    gin[0] = ls_pad(c, gout[0], paddings, 0);
}

LSI_ROW(slice, 1, 1, 1, slice_shape, lsi_ref_slice, slice_gradient);

ls_tensor *(ls_slice)(ls_context *c, ls_tensor *x, const int64_t *begin,
                      const int64_t *size)
{
    lsi_shape_attrs attrs;

    if (!has_list(c, &lsi_op_slice, x, begin, "begins") ||
        !has_list(c, &lsi_op_slice, x, size, "sizes")) {
        return NULL;
    }
    memset(&attrs, 0, sizeof attrs);
    attrs.shape.ndim = x != NULL ? x->ndim : 0;
    for (int i = 0; i < attrs.shape.ndim; i++) {
        attrs.begin[i] = begin[i];
        attrs.shape.dims[i] = size[i];
    }
    return lsi_op1(c, &lsi_op_slice, x, &attrs, sizeof attrs);
}
