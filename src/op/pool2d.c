/* Pooling: the rows max_pool2d, avg_pool2d and their gradients; the global pools. */
#include "op/op.h"

#include "kernel/ref/ref.h"

#include <inttypes.h>
#include <string.h>

/* A window's position must fit into a byte, and 255 stands for none. */
enum { MAX_POSITIONS = 255 };

static ls_status check_attrs(ls_op_call *k)
{
    const lsi_pool_attrs *at = k->attrs;

    for (int a = 0; a < 2; a++) {
        if (at->size[a] < 1 || at->stride[a] < 1) {
            return ls_op_fail(k, LS_INVALID_ARGUMENT,
                              "window (%d, %d) and strides (%d, %d) must be at least 1",
                              at->size[0], at->size[1], at->stride[0], at->stride[1]);
        }
    }
    if (at->padding != LS_VALID && at->padding != LS_SAME) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "padding %d does not exist; use LS_VALID or LS_SAME",
                          (int)at->padding);
    }
    return LS_OK;
}

/* The shape of the result of pooling an image `x`. */
static ls_status result_of(ls_op_call *k, const ls_shape *x, ls_shape *y)
{
    const lsi_pool_attrs *at = k->attrs;
    ls_status st = lsi_shape_same_float(k);
    char text[112];

    if (st == LS_OK) {
        st = check_attrs(k);
    }
    if (st != LS_OK) {
        return st;
    }
    if (x->ndim != 4) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "image %s must be [n, h, w, channels]; reshape",
                          ls_shape_text(x, text, sizeof text));
    }
    *y = *x;
    for (int a = 0; a < 2; a++) {
        y->dims[1 + a] =
            lsi_windows(x->dims[1 + a], at->size[a], at->stride[a], at->padding).count;
        if (y->dims[1 + a] < 0) {
            return ls_op_fail(k, LS_INVALID_ARGUMENT,
                              "image %s is smaller than the window (%d, %d); use LS_SAME "
                              "padding or a smaller window",
                              ls_shape_text(x, text, sizeof text), at->size[0],
                              at->size[1]);
        }
    }
    return LS_OK;
}

/* Input `i` must have the shape `y` that the image has when pooled. */
static ls_status check_pooled(ls_op_call *k, size_t i, const ls_shape *y)
{
    const ls_shape s = lsi_shape(k->in[i]);
    char text[112];

    if (!ls_shape_equal(&s, y)) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT, "input %zu is %s, but pooling gives %s",
                          i, lsi_text_of(k->in[i]).s,
                          ls_shape_text(y, text, sizeof text));
    }
    return LS_OK;
}

static ls_status check_index(ls_op_call *k)
{
    if (k->in[1]->dtype != LS_U8) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT, "the positions are %s, not uint8",
                          lsi_text_of(k->in[1]).s);
    }
    return LS_OK;
}

static ls_status max_shape(ls_op_call *k)
{
    const lsi_pool_attrs *at = k->attrs;
    const ls_shape x = lsi_shape(k->in[0]);
    ls_shape y = {0, {0}};
    ls_status st = result_of(k, &x, &y);

    if (st == LS_OK && (int64_t)at->size[0] * at->size[1] > MAX_POSITIONS) {
        st = ls_op_fail(k, LS_UNIMPLEMENTED,
                        "a window of %d x %d has more than %d positions; pool in two "
                        "steps or use ls_max() over the axes",
                        at->size[0], at->size[1], MAX_POSITIONS);
    }
    if (st == LS_OK) {
        st = ls_op_set_output(k, 0, (ls_dtype)k->in[0]->dtype, &y);
    }
    return st == LS_OK ? ls_op_set_output(k, 1, LS_U8, &y) : st;
}

static ls_status avg_shape(ls_op_call *k)
{
    const ls_shape x = lsi_shape(k->in[0]);
    ls_shape y = {0, {0}};
    const ls_status st = result_of(k, &x, &y);

    return st == LS_OK ? ls_op_set_output(k, 0, (ls_dtype)k->in[0]->dtype, &y) : st;
}

static ls_status grad_shape(ls_op_call *k)
{
    const lsi_pool_attrs *at = k->attrs;
    const ls_shape x = ls_shape_of(4, at->image);
    ls_shape y = {0, {0}};
    ls_status st = result_of(k, &x, &y);

    for (size_t i = 0; i < k->nin && st == LS_OK; i++) {
        st = check_pooled(k, i, &y);
    }
    if (st == LS_OK && k->nin > 1) {
        st = check_index(k);
    }
    return st == LS_OK ? ls_op_set_output(k, 0, (ls_dtype)k->in[0]->dtype, &x) : st;
}

static ls_status grad_grad_shape(ls_op_call *k)
{
    const ls_shape x = lsi_shape(k->in[0]);
    ls_shape y = {0, {0}};
    ls_status st = result_of(k, &x, &y);

    if (st == LS_OK) {
        st = check_pooled(k, 1, &y);
    }
    if (st == LS_OK) {
        st = check_index(k);
    }
    return st == LS_OK ? ls_op_set_output(k, 0, (ls_dtype)k->in[0]->dtype, &y) : st;
}

/* The attributes of a node, about the image `x`. */
static lsi_pool_attrs attrs_for(const ls_op_node *n, const ls_tensor *x)
{
    lsi_pool_attrs at;

    memcpy(&at, n->attrs, sizeof at);
    memcpy(at.image, x->dims, sizeof at.image);
    return at;
}

static void max_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                         ls_tensor **gin)
{
    const lsi_pool_attrs at = attrs_for(n, n->in[0]);

    gin[0] = lsi_op2(c, &lsi_op_max_pool2d_grad, gout[0], n->out[1], &at, sizeof at);
}

/* Both gradients move elements by the same positions, in opposite directions. */
static void max_grad_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                              ls_tensor **gin)
{
    gin[0] = lsi_op2(c, &lsi_op_max_pool2d_grad_grad, gout[0], n->in[1], n->attrs,
                     sizeof(lsi_pool_attrs));
}

static void max_grad_grad_gradient(ls_context *c, const ls_op_node *n,
                                   ls_tensor *const *gout, ls_tensor **gin)
{
    const lsi_pool_attrs at = attrs_for(n, n->in[0]);

    gin[0] = lsi_op2(c, &lsi_op_max_pool2d_grad, gout[0], n->in[1], &at, sizeof at);
}

static void avg_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                         ls_tensor **gin)
{
    const lsi_pool_attrs at = attrs_for(n, n->in[0]);

    gin[0] = lsi_op1(c, &lsi_op_avg_pool2d_grad, gout[0], &at, sizeof at);
}

static void avg_grad_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                              ls_tensor **gin)
{
    gin[0] = lsi_op1(c, &lsi_op_avg_pool2d, gout[0], n->attrs, sizeof(lsi_pool_attrs));
}

LSI_ROW(max_pool2d, 1, 1, 2, max_shape, lsi_ref_max_pool2d, max_gradient);
LSI_ROW(max_pool2d_grad, 2, 2, 1, grad_shape, lsi_ref_max_pool2d_grad, max_grad_gradient);
LSI_ROW(max_pool2d_grad_grad, 2, 2, 1, grad_grad_shape, lsi_ref_max_pool2d_grad_grad,
        max_grad_grad_gradient);
LSI_ROW(avg_pool2d, 1, 1, 1, avg_shape, lsi_ref_avg_pool2d, avg_gradient);
LSI_ROW(avg_pool2d_grad, 1, 1, 1, grad_shape, lsi_ref_avg_pool2d_grad, avg_grad_gradient);

static ls_tensor *pool(ls_context *c, const ls_op *op, ls_tensor *x,
                       const ls_pool_options *opts)
{
    static const ls_pool_options defaults = LS_POOL_OPTIONS_INIT;
    const ls_pool_options *o = opts == NULL ? &defaults : opts;
    lsi_pool_attrs at;

    if (o->struct_size < sizeof *o) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT,
                               "%s: the options say their size is %zu; start them from "
                               "LS_POOL_OPTIONS_INIT",
                               op->name, o->struct_size);
    }
    if (o->relu && op != &lsi_op_max_pool2d) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT,
                               "%s: only max pooling takes the relu with it; call "
                               "ls_relu() before",
                               op->name);
    }
    memset(&at, 0, sizeof at);
    at.padding = o->padding;
    at.relu = o->relu;
    for (int a = 0; a < 2; a++) {
        at.size[a] = o->size[a];
        at.stride[a] = o->stride[a] == 0 ? o->size[a] : o->stride[a];
        if (x != NULL && x->ndim == 4 && at.size[a] >= 1 && at.stride[a] >= 1) {
            at.pad[a] =
                lsi_windows(x->dims[1 + a], at.size[a], at.stride[a], at.padding).pad;
        }
    }
    return lsi_op1(c, op, x, &at, sizeof at);
}

ls_tensor *(ls_max_pool2d)(ls_context *c, ls_tensor *x, const ls_pool_options *opts)
{
    return pool(c, &lsi_op_max_pool2d, x, opts);
}

ls_tensor *(ls_avg_pool2d)(ls_context *c, ls_tensor *x, const ls_pool_options *opts)
{
    return pool(c, &lsi_op_avg_pool2d, x, opts);
}

/* False: `x` is not an image, and the step has failed. */
static bool is_image(ls_context *c, const char *name, const ls_tensor *x)
{
    if (lsi_failed(c)) {
        return false;
    }
    if (x == NULL) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "%s: the image is NULL", name);
        return false;
    }
    if (x->ndim != 4 || !lsi_dtype_is_float((ls_dtype)x->dtype)) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT,
                              "%s: image %s must be floating, [n, h, w, channels]; use "
                              "ls_cast() or reshape",
                              name, lsi_text_of(x).s);
        return false;
    }
    return true;
}

ls_tensor *(ls_global_avg_pool2d)(ls_context *c, ls_tensor *x)
{
    return is_image(c, "global_avg_pool2d", x)
               ? ls_mean(c, x, (const int[]){1, 2}, 2, false)
               : NULL;
}

ls_tensor *(ls_global_max_pool2d)(ls_context *c, ls_tensor *x)
{
    return is_image(c, "global_max_pool2d", x)
               ? ls_max(c, x, (const int[]){1, 2}, 2, false)
               : NULL;
}
