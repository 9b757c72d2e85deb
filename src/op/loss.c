/* Losses: one value per example. */
#include "op/op.h"

#include "kernel/ref/ref.h"

/* The shape of the examples: all axes but the last. */
static ls_shape examples(const ls_tensor *t)
{
    ls_shape s = lsi_shape(t);

    s.ndim--;
    return s;
}

static ls_status check_rows(ls_op_call *k, const ls_tensor *t)
{
    if (!lsi_dtype_is_float((ls_dtype)t->dtype)) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "needs a floating dtype, got %s; convert it with ls_cast()",
                          lsi_text_of(t).s);
    }
    if (t->ndim < 1) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "%s has no last axis to work over; add one with "
                          "ls_expand_dims()",
                          lsi_text_of(t).s);
    }
    return LS_OK;
}

/* Inputs 0 and 1 have one dtype and shape. */
static ls_status check_alike(ls_op_call *k, const char *first, const char *second)
{
    const ls_shape a = lsi_shape(k->in[0]), b = lsi_shape(k->in[1]);

    if (k->in[0]->dtype != k->in[1]->dtype || !ls_shape_equal(&a, &b)) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "%s %s and %s %s must have one dtype and shape; use ls_cast(), "
                          "ls_reshape() or ls_broadcast_to()",
                          first, lsi_text_of(k->in[0]).s, second,
                          lsi_text_of(k->in[1]).s);
    }
    return LS_OK;
}

/* Input `l` holds a class number for each example of input `t`. */
static ls_status check_labels(ls_op_call *k, size_t t, size_t l)
{
    const ls_tensor *labels = k->in[l];
    const ls_shape want = examples(k->in[t]), have = lsi_shape(labels);
    char text[112];

    if (labels->dtype != LS_I32 && labels->dtype != LS_I64) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "labels %s must be class numbers, int32 or int64; convert them "
                          "with ls_cast(), or use ls_softmax_cross_entropy() for "
                          "distributions",
                          lsi_text_of(labels).s);
    }
    if (!ls_shape_equal(&want, &have)) {
        return ls_op_fail(
            k, LS_INVALID_ARGUMENT,
            "logits %s and labels %s: the labels must have the shape %s, one "
            "for each row of logits; reshape",
            lsi_text_of(k->in[t]).s, lsi_text_of(labels).s,
            ls_shape_text(&want, text, sizeof text));
    }
    return LS_OK;
}

/* Output 0: one value per example of input 0; output 1, if any: like input 0. */
static ls_status loss_outputs(ls_op_call *k)
{
    const ls_shape loss = examples(k->in[0]), all = lsi_shape(k->in[0]);
    const ls_dtype dtype = (ls_dtype)k->in[0]->dtype;
    const ls_status st = ls_op_set_output(k, 0, dtype, &loss);

    return st == LS_OK && k->op->outputs > 1 ? ls_op_set_output(k, 1, dtype, &all) : st;
}

static ls_tensor *times_rows(ls_context *c, ls_tensor *g, ls_tensor *x)
{
    return ls_mul(c, ls_expand_dims(c, g, -1), x);
}

static ls_tensor *row_sum(ls_context *c, ls_tensor *x)
{
    return ls_sum(c, x, (const int[]){-1}, 1, false);
}

static ls_status sparse_shape(ls_op_call *k)
{
    ls_status st = check_rows(k, k->in[0]);

    if (st == LS_OK) {
        st = check_labels(k, 0, 1);
    }
    return st == LS_OK ? loss_outputs(k) : st;
}

/* The probabilities are an output like any other: a second derivative comes back here
 * through them. */
static void sparse_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                            ls_tensor **gin)
{
    ls_tensor *p = n->out[1];

    if (gout[0] != NULL) {
        gin[0] =
            lsi_op3(c, &lsi_op_softmax_cross_entropy_grad, gout[0], p, n->in[1], NULL, 0);
    }
    if (gout[1] != NULL) {
        gin[0] = lsi_add_present(c, gin[0],
                                 lsi_op2(c, &lsi_op_softmax_grad, gout[1], p, NULL, 0));
    }
}

LSI_ROW(sparse_softmax_cross_entropy, 2, 2, 2, sparse_shape,
        lsi_ref_sparse_softmax_cross_entropy, sparse_gradient);

/* Inputs g, p, labels. */
static ls_status cross_entropy_grad_shape(ls_op_call *k)
{
    ls_status st = check_rows(k, k->in[1]);
    ls_shape want, g, p;

    if (st == LS_OK) {
        st = check_labels(k, 1, 2);
    }
    if (st != LS_OK) {
        return st;
    }
    want = examples(k->in[1]);
    g = lsi_shape(k->in[0]);
    if (!ls_shape_equal(&want, &g) || k->in[0]->dtype != k->in[1]->dtype) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "gradient %s does not match probabilities %s",
                          lsi_text_of(k->in[0]).s, lsi_text_of(k->in[1]).s);
    }
    p = lsi_shape(k->in[1]);
    return ls_op_set_output(k, 0, (ls_dtype)k->in[1]->dtype, &p);
}

static void cross_entropy_grad_gradient(ls_context *c, const ls_op_node *n,
                                        ls_tensor *const *gout, ls_tensor **gin)
{
    ls_tensor *g = n->in[0], *p = n->in[1], *h = gout[0];

    if (ls_op_needs(n, 0)) {
        ls_tensor *hot =
            ls_one_hot(c, n->in[2], p->dims[p->ndim - 1], (ls_dtype)p->dtype);

        gin[0] = row_sum(c, ls_mul(c, h, ls_sub(c, p, hot)));
    }
    if (ls_op_needs(n, 1)) {
        gin[1] = times_rows(c, g, h);
    }
}

LSI_ROW(softmax_cross_entropy_grad, 3, 3, 1, cross_entropy_grad_shape,
        lsi_ref_softmax_cross_entropy_grad, cross_entropy_grad_gradient);

static ls_status distribution_shape(ls_op_call *k)
{
    ls_status st = check_rows(k, k->in[0]);

    if (st == LS_OK) {
        st = check_alike(k, "logits", "labels");
    }
    return st == LS_OK ? loss_outputs(k) : st;
}

/* Output 1 is softmax(logits) - labels, TensorFlow's gradient for rows that sum to 1. */
static void distribution_gradient(ls_context *c, const ls_op_node *n,
                                  ls_tensor *const *gout, ls_tensor **gin)
{
    ls_tensor *logits = n->in[0];

    if (gout[0] != NULL) {
        gin[0] = times_rows(c, gout[0], n->out[1]);
        if (ls_op_needs(n, 1)) {
            gin[1] = ls_neg(c, times_rows(c, gout[0], ls_log_softmax(c, logits)));
        }
    }
    if (gout[1] != NULL) {
        gin[0] = lsi_add_present(
            c, gin[0],
            lsi_op2(c, &lsi_op_softmax_grad, gout[1], ls_softmax(c, logits), NULL, 0));
        if (ls_op_needs(n, 1)) {
            gin[1] = lsi_add_present(c, gin[1], ls_neg(c, gout[1]));
        }
    }
}

LSI_ROW(softmax_cross_entropy, 2, 2, 2, distribution_shape, lsi_ref_softmax_cross_entropy,
        distribution_gradient);

static ls_status sigmoid_shape(ls_op_call *k)
{
    const ls_status st = check_alike(k, "logits", "labels");

    return st == LS_OK ? lsi_shape_same_float(k) : st;
}

static void sigmoid_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                             ls_tensor **gin)
{
    ls_tensor *logits = n->in[0], *labels = n->in[1], *g = gout[0];

    if (ls_op_needs(n, 0)) {
        gin[0] = ls_mul(c, g, ls_sub(c, ls_sigmoid(c, logits), labels));
    }
    if (ls_op_needs(n, 1)) {
        gin[1] = ls_neg(c, ls_mul(c, g, logits));
    }
}

LSI_ROW(sigmoid_cross_entropy, 2, 2, 1, sigmoid_shape, lsi_ref_sigmoid_cross_entropy,
        sigmoid_gradient);

static ls_status squared_shape(ls_op_call *k)
{
    ls_status st = check_rows(k, k->in[0]);

    if (st == LS_OK) {
        st = check_alike(k, "output", "target");
    }
    return st == LS_OK ? loss_outputs(k) : st;
}

static void squared_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                             ls_tensor **gin)
{
    ls_tensor *output = n->in[0], *target = n->in[1];
    const double size = (double)output->dims[output->ndim - 1];
    ls_tensor *factor = lsi_scalar(c, (ls_dtype)output->dtype, 2 / size);
    ls_tensor *d = times_rows(c, ls_mul(c, gout[0], factor), ls_sub(c, output, target));

    gin[0] = d;
    if (ls_op_needs(n, 1)) {
        gin[1] = ls_neg(c, d);
    }
}

LSI_ROW(mean_squared_error, 2, 2, 1, squared_shape, lsi_ref_mean_squared_error,
        squared_gradient);

ls_tensor *(ls_sparse_softmax_cross_entropy)(ls_context *c, ls_tensor *logits,
                                             ls_tensor *labels)
{
    return lsi_op2(c, &lsi_op_sparse_softmax_cross_entropy, logits, labels, NULL, 0);
}

ls_tensor *(ls_softmax_cross_entropy)(ls_context *c, ls_tensor *logits, ls_tensor *labels)
{
    return lsi_op2(c, &lsi_op_softmax_cross_entropy, logits, labels, NULL, 0);
}

ls_tensor *(ls_sigmoid_cross_entropy)(ls_context *c, ls_tensor *logits, ls_tensor *labels)
{
    return lsi_op2(c, &lsi_op_sigmoid_cross_entropy, logits, labels, NULL, 0);
}

ls_tensor *(ls_mean_squared_error)(ls_context *c, ls_tensor *output, ls_tensor *target)
{
    return lsi_op2(c, &lsi_op_mean_squared_error, output, target, NULL, 0);
}
