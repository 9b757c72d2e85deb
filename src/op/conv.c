/*
 * Convolutions: the rows conv2d and depthwise_conv2d and their gradients. The three of a
 * family are linear in two operands each and are one another's gradients, to any order.
 */
#include "op/op.h"

#include "kernel/ref/ref.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

lsi_window lsi_windows(int64_t size, int64_t extent, int stride, ls_padding padding)
{
    lsi_window w = {(size - extent + stride) / stride, 0};

    if (padding == LS_SAME) {
        int64_t total;

        w.count = (size + stride - 1) / stride;
        total = (w.count - 1) * stride + extent - size;
        w.pad = total > 0 && w.count > 0 ? (int)(total / 2) : 0;
    }
    return w;
}

/* Elements of the image that a filter of `taps` rows or columns reaches over. */
static int64_t extent_of(int64_t taps, int dilation)
{
    return (taps - 1) * dilation + 1;
}

static bool is_depthwise(const ls_op *op)
{
    return op == &lsi_op_depthwise_conv2d || op == &lsi_op_depthwise_conv2d_input_grad ||
           op == &lsi_op_depthwise_conv2d_filter_grad;
}

/* Strides, dilations, padding: everything but the shapes. */
static ls_status check_attrs(ls_op_call *k)
{
    const lsi_conv_attrs *at = k->attrs;

    for (int a = 0; a < 2; a++) {
        if (at->stride[a] < 1 || at->dilation[a] < 1) {
            return ls_op_fail(
                k, LS_INVALID_ARGUMENT,
                "strides (%d, %d) and dilations (%d, %d) must be at least 1",
                at->stride[0], at->stride[1], at->dilation[0], at->dilation[1]);
        }
    }
    if (at->padding != LS_VALID && at->padding != LS_SAME) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "padding %d does not exist; use LS_VALID or LS_SAME",
                          (int)at->padding);
    }
    return LS_OK;
}

/* "(1, 5, 5, 3)" */
static lsi_text text_of(const ls_shape *s)
{
    lsi_text t;

    (void)ls_shape_text(s, t.s, sizeof t.s);
    return t;
}

/* The shape of the result of an image `x` under a filter `w`. */
static ls_status result_of(ls_op_call *k, const ls_shape *x, const ls_shape *w,
                           ls_shape *y)
{
    const lsi_conv_attrs *at = k->attrs;
    const bool depthwise = is_depthwise(k->op);
    const ls_status st = check_attrs(k);

    if (st != LS_OK) {
        return st;
    }
    if (x->ndim != 4 || w->ndim != 4) {
        return ls_op_fail(
            k, LS_INVALID_ARGUMENT,
            "image %s and filter %s: the image must be [n, h, w, channels], "
            "the filter [rows, columns, channels, %s]; reshape",
            text_of(x).s, text_of(w).s, depthwise ? "multiplier" : "results");
    }
    if (x->dims[3] != w->dims[2]) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "image %s and filter %s: the image has %" PRId64
                          " channels (its last axis), the filter takes %" PRId64
                          " (its third); make them agree",
                          text_of(x).s, text_of(w).s, x->dims[3], w->dims[2]);
    }
    if (depthwise && w->dims[3] != 0 && w->dims[2] > INT64_MAX / w->dims[3]) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT, "filter %s is too large", text_of(w).s);
    }
    *y = *x;
    y->dims[3] = depthwise ? w->dims[2] * w->dims[3] : w->dims[3];
    for (int a = 0; a < 2; a++) {
        const int64_t taps = w->dims[a];

        if (taps < 1 || taps > INT_MAX || extent_of(taps, at->dilation[a]) > INT_MAX) {
            return ls_op_fail(
                k, LS_INVALID_ARGUMENT,
                "filter %s with dilations (%d, %d) is empty or too large; it "
                "needs at least one row and column",
                text_of(w).s, at->dilation[0], at->dilation[1]);
        }
        y->dims[1 + a] = lsi_windows(x->dims[1 + a], extent_of(taps, at->dilation[a]),
                                     at->stride[a], at->padding)
                             .count;
        if (y->dims[1 + a] < 0) {
            return ls_op_fail(
                k, LS_INVALID_ARGUMENT,
                "image %s and filter %s: the filter reaches over %" PRId64
                " %s, the image has %" PRId64 "; use LS_SAME padding or a smaller filter",
                text_of(x).s, text_of(w).s, extent_of(taps, at->dilation[a]),
                a == 0 ? "rows" : "columns", x->dims[1 + a]);
        }
    }
    return LS_OK;
}

static ls_status check_dtypes(ls_op_call *k)
{
    for (size_t i = 1; i < k->nin; i++) {
        if (k->in[i]->dtype != k->in[0]->dtype) {
            return ls_op_fail(k, LS_INVALID_ARGUMENT,
                              "%s and %s: the dtypes differ; convert one with ls_cast()",
                              lsi_text_of(k->in[0]).s, lsi_text_of(k->in[i]).s);
        }
    }
    return lsi_shape_same_float(k);
}

static ls_status forward_shape(ls_op_call *k)
{
    const ls_shape x = lsi_shape(k->in[0]), w = lsi_shape(k->in[1]);
    const ls_tensor *bias = k->nin > 2 ? k->in[2] : NULL;
    ls_shape y = {0, {0}};
    ls_status st = check_dtypes(k);

    if (st == LS_OK) {
        st = result_of(k, &x, &w, &y);
    }
    if (st != LS_OK) {
        return st;
    }
    if (bias != NULL && (bias->ndim != 1 || bias->dims[0] != y.dims[3])) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "bias %s does not match filter %s: it needs one value for "
                          "each of the %" PRId64 " results",
                          lsi_text_of(bias).s, text_of(&w).s, y.dims[3]);
    }
    return ls_op_set_output(k, 0, (ls_dtype)k->in[0]->dtype, &y);
}

/* `g` must be what an image `x` under a filter `w` gives; the output is `out`. */
static ls_status gradient_shape(ls_op_call *k, const ls_tensor *g, const ls_shape *x,
                                const ls_shape *w, const ls_shape *out)
{
    const ls_shape sg = lsi_shape(g);
    ls_shape y = {0, {0}};
    ls_status st = check_dtypes(k);

    if (st == LS_OK) {
        st = result_of(k, x, w, &y);
    }
    if (st != LS_OK) {
        return st;
    }
    if (!ls_shape_equal(&sg, &y)) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "image %s and filter %s give %s, but the gradient is %s",
                          text_of(x).s, text_of(w).s, text_of(&y).s, lsi_text_of(g).s);
    }
    return ls_op_set_output(k, 0, (ls_dtype)g->dtype, out);
}

static ls_status input_grad_shape(ls_op_call *k)
{
    const lsi_conv_attrs *at = k->attrs;
    const ls_shape x = ls_shape_of(4, at->image), w = lsi_shape(k->in[1]);

    return gradient_shape(k, k->in[0], &x, &w, &x);
}

static ls_status filter_grad_shape(ls_op_call *k)
{
    const lsi_conv_attrs *at = k->attrs;
    const ls_shape x = lsi_shape(k->in[0]), w = ls_shape_of(4, at->image);

    return gradient_shape(k, k->in[1], &x, &w, &w);
}

/* The attributes for a linear row of the same family; `image`: its attribute, or NULL. */
static lsi_conv_attrs attrs_for(const ls_op_node *n, const ls_tensor *image)
{
    lsi_conv_attrs at;

    memcpy(&at, n->attrs, sizeof at);
    at.activation = LS_LINEAR;
    memset(at.image, 0, sizeof at.image);
    if (image != NULL) {
        memcpy(at.image, image->dims, sizeof at.image);
    }
    return at;
}

static ls_tensor *forward_again(ls_context *c, const ls_op_node *n, ls_tensor *x,
                                ls_tensor *w)
{
    const lsi_conv_attrs at = attrs_for(n, NULL);
    const ls_op *op = is_depthwise(n->op) ? &lsi_op_depthwise_conv2d : &lsi_op_conv2d;

    return lsi_op2(c, op, x, w, &at, sizeof at);
}

static ls_tensor *input_grad(ls_context *c, const ls_op_node *n, ls_tensor *g,
                             ls_tensor *w, const ls_tensor *x)
{
    const lsi_conv_attrs at = attrs_for(n, x);
    const ls_op *op = is_depthwise(n->op) ? &lsi_op_depthwise_conv2d_input_grad
                                          : &lsi_op_conv2d_input_grad;

    return lsi_op2(c, op, g, w, &at, sizeof at);
}

static ls_tensor *filter_grad(ls_context *c, const ls_op_node *n, ls_tensor *x,
                              ls_tensor *g, const ls_tensor *w)
{
    const lsi_conv_attrs at = attrs_for(n, w);
    const ls_op *op = is_depthwise(n->op) ? &lsi_op_depthwise_conv2d_filter_grad
                                          : &lsi_op_conv2d_filter_grad;

    return lsi_op2(c, op, x, g, &at, sizeof at);
}

static void conv_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                          ls_tensor **gin)
{
    const lsi_conv_attrs *at = n->attrs;
    ls_tensor *x = n->in[0], *w = n->in[1];
    ls_tensor *g = lsi_activation_grad(c, at->activation, gout[0], n->out[0]);

    if (ls_op_needs(n, 0)) {
        gin[0] = input_grad(c, n, g, w, x);
    }
    if (ls_op_needs(n, 1)) {
        gin[1] = filter_grad(c, n, x, g, w);
    }
    if (ls_op_needs(n, 2)) {
        gin[2] = ls_sum(c, g, (const int[]){0, 1, 2}, 3, false);
    }
}

static void input_grad_gradient(ls_context *c, const ls_op_node *n,
                                ls_tensor *const *gout, ls_tensor **gin)
{
    ls_tensor *g = n->in[0], *w = n->in[1];

    if (ls_op_needs(n, 0)) {
        gin[0] = forward_again(c, n, gout[0], w);
    }
    if (ls_op_needs(n, 1)) {
        gin[1] = filter_grad(c, n, gout[0], g, w);
    }
}

static void filter_grad_gradient(ls_context *c, const ls_op_node *n,
                                 ls_tensor *const *gout, ls_tensor **gin)
{
    ls_tensor *x = n->in[0], *g = n->in[1];

    if (ls_op_needs(n, 0)) {
        gin[0] = input_grad(c, n, g, gout[0], x);
    }
    if (ls_op_needs(n, 1)) {
        gin[1] = forward_again(c, n, x, gout[0]);
    }
}

LSI_ROW(conv2d, 2, 3, 1, forward_shape, lsi_ref_conv2d, conv_gradient);
LSI_ROW(conv2d_input_grad, 2, 2, 1, input_grad_shape, lsi_ref_conv2d_input_grad,
        input_grad_gradient);
LSI_ROW(conv2d_filter_grad, 2, 2, 1, filter_grad_shape, lsi_ref_conv2d_filter_grad,
        filter_grad_gradient);
LSI_ROW(depthwise_conv2d, 2, 3, 1, forward_shape, lsi_ref_depthwise_conv2d,
        conv_gradient);
LSI_ROW(depthwise_conv2d_input_grad, 2, 2, 1, input_grad_shape,
        lsi_ref_depthwise_conv2d_input_grad, input_grad_gradient);
LSI_ROW(depthwise_conv2d_filter_grad, 2, 2, 1, filter_grad_shape,
        lsi_ref_depthwise_conv2d_filter_grad, filter_grad_gradient);

/* The padding; the arguments are checked later, by the shape rule. */
static int pad_of(const lsi_conv_attrs *at, int axis, const ls_tensor *x,
                  const ls_tensor *w)
{
    const int64_t taps = w->dims[axis];

    if (at->stride[axis] < 1 || at->dilation[axis] < 1 || taps < 1 || taps > INT_MAX ||
        extent_of(taps, at->dilation[axis]) > INT_MAX) {
        return 0;
    }
    return lsi_windows(x->dims[1 + axis], extent_of(taps, at->dilation[axis]),
                       at->stride[axis], at->padding)
        .pad;
}

static ls_tensor *convolve(ls_context *c, const ls_op *op, ls_tensor *x, ls_tensor *w,
                           ls_tensor *bias, const ls_conv_options *opts)
{
    static const ls_conv_options defaults = LS_CONV_OPTIONS_INIT;
    const ls_conv_options *o = opts == NULL ? &defaults : opts;
    ls_tensor *in[3] = {x, w, bias};
    lsi_conv_attrs at;
    ls_tensor *y;
    bool fused;

    if (o->struct_size < sizeof *o) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT,
                               "%s: struct_size of the options is %zu; start them from "
                               "LS_CONV_OPTIONS_INIT",
                               op->name, o->struct_size);
    }
    if ((int)o->activation < LS_LINEAR || (int)o->activation > LS_SILU) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT,
                               "%s: activation %d does not exist; use one of "
                               "ls_activation",
                               op->name, (int)o->activation);
    }
    fused = lsi_activation_fused(o->activation);
    memset(&at, 0, sizeof at);
    for (int a = 0; a < 2; a++) {
        at.stride[a] = o->stride[a] == 0 ? 1 : o->stride[a];
        at.dilation[a] = o->dilation[a] == 0 ? 1 : o->dilation[a];
    }
    at.padding = o->padding;
    at.activation = fused ? o->activation : LS_LINEAR;
    if (x != NULL && w != NULL && x->ndim == 4 && w->ndim == 4) {
        at.pad[0] = pad_of(&at, 0, x, w);
        at.pad[1] = pad_of(&at, 1, x, w);
    }
    y = ls_op_apply1(c, op, in, bias == NULL ? 2 : 3, &at, sizeof at);
    return fused ? y : lsi_activate(c, o->activation, y);
}

ls_tensor *(ls_conv2d)(ls_context *c, ls_tensor *x, ls_tensor *w, ls_tensor *bias,
                       const ls_conv_options *opts)
{
    return convolve(c, &lsi_op_conv2d, x, w, bias, opts);
}

ls_tensor *(ls_depthwise_conv2d)(ls_context *c, ls_tensor *x, ls_tensor *w,
                                 ls_tensor *bias, const ls_conv_options *opts)
{
    return convolve(c, &lsi_op_depthwise_conv2d, x, w, bias, opts);
}
