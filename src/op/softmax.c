/* Softmax over the last axis and its logarithm. */
#include "op/op.h"

#include "kernel/ref/ref.h"

static ls_status softmax_shape(ls_op_call *k)
{
    if (k->in[0]->ndim < 1) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "%s has no axis to work over; add one with ls_expand_dims()",
                          lsi_text_of(k->in[0]).s);
    }
    return lsi_shape_same_float(k);
}

static ls_status grad_shape(ls_op_call *k)
{
    const ls_shape g = lsi_shape(k->in[0]), y = lsi_shape(k->in[1]);

    if (!ls_shape_equal(&g, &y) || k->in[0]->dtype != k->in[1]->dtype) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "gradient %s and result %s must have one dtype and shape",
                          lsi_text_of(k->in[0]).s, lsi_text_of(k->in[1]).s);
    }
    return softmax_shape(k);
}

static ls_tensor *row_sum(ls_context *c, ls_tensor *x)
{
    return ls_sum(c, x, (const int[]){-1}, 1, true);
}

static void softmax_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                             ls_tensor **gin)
{
    gin[0] = lsi_op2(c, &lsi_op_softmax_grad, gout[0], n->out[0], NULL, 0);
}

static void log_softmax_gradient(ls_context *c, const ls_op_node *n,
                                 ls_tensor *const *gout, ls_tensor **gin)
{
    gin[0] = lsi_op2(c, &lsi_op_log_softmax_grad, gout[0], n->out[0], NULL, 0);
}

/* Of (g - sum(g y)) y. */
static void softmax_grad_gradient(ls_context *c, const ls_op_node *n,
                                  ls_tensor *const *gout, ls_tensor **gin)
{
    ls_tensor *g = n->in[0], *y = n->in[1], *h = gout[0];

    if (ls_op_needs(n, 0)) {
        gin[0] = lsi_op2(c, &lsi_op_softmax_grad, h, y, NULL, 0);
    }
    if (ls_op_needs(n, 1)) {
        ls_tensor *s = row_sum(c, ls_mul(c, g, y)), *t = row_sum(c, ls_mul(c, h, y));

        gin[1] = ls_sub(c, ls_mul(c, h, ls_sub(c, g, s)), ls_mul(c, g, t));
    }
}

/* Of g - exp(y) sum(g). */
static void log_softmax_grad_gradient(ls_context *c, const ls_op_node *n,
                                      ls_tensor *const *gout, ls_tensor **gin)
{
    ls_tensor *h = gout[0];
    ls_tensor *weighted = ls_mul(c, h, ls_exp(c, n->in[1]));

    if (ls_op_needs(n, 0)) {
        gin[0] = ls_sub(c, h, row_sum(c, weighted));
    }
    if (ls_op_needs(n, 1)) {
        gin[1] = ls_neg(c, ls_mul(c, weighted, row_sum(c, n->in[0])));
    }
}

LSI_ROW(softmax, 1, 1, 1, softmax_shape, lsi_ref_softmax, softmax_gradient);
LSI_ROW(log_softmax, 1, 1, 1, softmax_shape, lsi_ref_log_softmax, log_softmax_gradient);
LSI_ROW(softmax_grad, 2, 2, 1, grad_shape, lsi_ref_softmax_grad, softmax_grad_gradient);
LSI_ROW(log_softmax_grad, 2, 2, 1, grad_shape, lsi_ref_log_softmax_grad,
        log_softmax_grad_gradient);

ls_tensor *(ls_softmax)(ls_context *c, ls_tensor *x)
{
    return lsi_op1(c, &lsi_op_softmax, x, NULL, 0);
}

ls_tensor *(ls_log_softmax)(ls_context *c, ls_tensor *x)
{
    return lsi_op1(c, &lsi_op_log_softmax, x, NULL, 0);
}
