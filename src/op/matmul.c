/* Matrix products: the rows matmul and dense. */
#include "op/op.h"

#include "kernel/ref/ref.h"

#include <inttypes.h>
#include <string.h>

static bool multiplies(ls_dtype d)
{
    return lsi_dtype_is_float(d) || d == LS_I32 || d == LS_I64;
}

static ls_status check_product(ls_op_call *k, const ls_tensor *a, const ls_tensor *b)
{
    if (a->dtype != b->dtype) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "%s and %s: the dtypes differ; convert one with ls_cast()",
                          lsi_text_of(a).s, lsi_text_of(b).s);
    }
    if (!multiplies((ls_dtype)a->dtype)) {
        return ls_op_fail(
            k, LS_INVALID_ARGUMENT,
            "%s: multiplies floats, int32 and int64; convert with ls_cast()",
            lsi_text_of(a).s);
    }
    return LS_OK;
}

static LSI_COLD ls_status fail_inner(ls_op_call *k, int64_t left, int64_t right)
{
    return ls_op_fail(k, LS_INVALID_ARGUMENT,
                      "%s and %s: the inner sizes %" PRId64 " and %" PRId64
                      " differ; transpose one or reshape",
                      lsi_text_of(k->in[0]).s, lsi_text_of(k->in[1]).s, left, right);
}

static ls_status matmul_shape(ls_op_call *k)
{
    const lsi_matmul_attrs *at = k->attrs;
    const ls_tensor *a = k->in[0], *b = k->in[1];
    ls_shape sa = lsi_shape(a), sb = lsi_shape(b), out;
    const int na = sa.ndim, nb = sb.ndim;
    const ls_status st = check_product(k, a, b);

    if (st != LS_OK) {
        return st;
    }
    if (na < 2 || nb < 2) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "%s and %s: both need at least two axes; add one with "
                          "ls_expand_dims()",
                          lsi_text_of(a).s, lsi_text_of(b).s);
    }
    if (sa.dims[na - (at->ta ? 2 : 1)] != sb.dims[nb - (at->tb ? 1 : 2)]) {
        return fail_inner(k, sa.dims[na - (at->ta ? 2 : 1)],
                          sb.dims[nb - (at->tb ? 1 : 2)]);
    }
    sa.ndim -= 2;
    sb.ndim -= 2;
    if (!lsi_broadcast(&sa, &sb, &out)) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "%s and %s: the axes before the last two do not broadcast; "
                          "make them equal or 1",
                          lsi_text_of(a).s, lsi_text_of(b).s);
    }
    out.dims[out.ndim] = sa.dims[na - (at->ta ? 1 : 2)];
    out.dims[out.ndim + 1] = sb.dims[nb - (at->tb ? 2 : 1)];
    out.ndim += 2;
    return ls_op_set_output(k, 0, (ls_dtype)a->dtype, &out);
}

/* All axes but the last as one. */
static ls_tensor *as_matrix(ls_context *c, ls_tensor *t)
{
    int64_t rows = 1;

    if (t == NULL || t->ndim == 2) {
        return t;
    }
    for (int i = 0; i + 1 < t->ndim; i++) {
        rows *= t->dims[i];
    }
    return ls_reshape(c, t, LS_SHAPE(rows, t->dims[t->ndim - 1]));
}

static ls_tensor *left_gradient(ls_context *c, ls_tensor *g, ls_tensor *b,
                                const lsi_matmul_attrs *at)
{
    return at->ta ? ls_matmul_t(c, b, g, at->tb, true)
                  : ls_matmul_t(c, g, b, false, !at->tb);
}

static ls_tensor *right_gradient(ls_context *c, ls_tensor *g, ls_tensor *a,
                                 const lsi_matmul_attrs *at)
{
    return at->tb ? ls_matmul_t(c, g, a, true, at->ta)
                  : ls_matmul_t(c, a, g, !at->ta, false);
}

static void matmul_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                            ls_tensor **gin)
{
    const lsi_matmul_attrs *at = n->attrs;
    ls_tensor *a = n->in[0], *b = n->in[1], *g = gout[0];

    if (ls_op_needs(n, 0)) {
        gin[0] = lsi_sum_to(c, left_gradient(c, g, b, at), a);
    }
    if (!ls_op_needs(n, 1)) {
        return;
    }
    if (b->ndim == 2 && a->ndim > 2 && !at->ta) {
        // One matrix for the whole batch: its gradient is one product over all rows
        // instead of a batch of products that is then summed.
        gin[1] = right_gradient(c, as_matrix(c, g), as_matrix(c, a), at);
        return;
    }
    gin[1] = lsi_sum_to(c, right_gradient(c, g, a, at), b);
}

LSI_ROW(matmul, 2, 2, 1, matmul_shape, lsi_ref_matmul, matmul_gradient);

ls_tensor *(ls_matmul)(ls_context *c, ls_tensor *a, ls_tensor *b)
{
    return (ls_matmul_t)(c, a, b, false, false);
}

ls_tensor *(ls_matmul_t)(ls_context *c, ls_tensor *a, ls_tensor *b, bool transpose_a,
                         bool transpose_b)
{
    lsi_matmul_attrs at;

    memset(&at, 0, sizeof at);
    at.ta = transpose_a;
    at.tb = transpose_b;
    return lsi_op2(c, &lsi_op_matmul, a, b, &at, sizeof at);
}

bool lsi_activation_fused(ls_activation activation)
{
    return activation == LS_LINEAR || activation == LS_RELU || activation == LS_SIGMOID ||
           activation == LS_TANH;
}

ls_tensor *lsi_activate(ls_context *c, ls_activation activation, ls_tensor *x)
{
    switch (activation) {
    case LS_LINEAR:
        return x;
    case LS_RELU:
        return ls_relu(c, x);
    case LS_SIGMOID:
        return ls_sigmoid(c, x);
    case LS_TANH:
        return ls_tanh(c, x);
    case LS_GELU:
        return ls_gelu(c, x, false);
    case LS_GELU_TANH:
        return ls_gelu(c, x, true);
    case LS_SILU:
        return ls_silu(c, x);
    }
    return ls_context_fail(c, LS_INVALID_ARGUMENT,
                           "activation %d does not exist; use one of ls_activation",
                           (int)activation);
}

ls_tensor *lsi_activation_grad(ls_context *c, ls_activation activation, ls_tensor *g,
                               ls_tensor *y)
{
    switch (activation) {
    case LS_RELU:
        return lsi_op2(c, &lsi_op_relu_grad, g, y, NULL, 0);
    case LS_SIGMOID:
        return lsi_op2(c, &lsi_op_sigmoid_grad, g, y, NULL, 0);
    case LS_TANH:
        return lsi_op2(c, &lsi_op_tanh_grad, g, y, NULL, 0);
    default:
        return g;
    }
}

static ls_status check_dense(ls_op_call *k)
{
    const ls_tensor *x = k->in[0], *w = k->in[1];
    const ls_tensor *bias = k->nin > 2 ? k->in[2] : NULL;

    if (!lsi_dtype_is_float((ls_dtype)x->dtype)) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "needs a floating dtype, got %s; convert it with ls_cast()",
                          lsi_text_of(x).s);
    }
    if (w->ndim != 2 || x->ndim < 1) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "%s and %s: the weights must be a matrix [k, n] and the input "
                          "must have an axis to multiply; reshape",
                          lsi_text_of(x).s, lsi_text_of(w).s);
    }
    if (x->dims[x->ndim - 1] != w->dims[0]) {
        return fail_inner(k, x->dims[x->ndim - 1], w->dims[0]);
    }
    if (bias != NULL &&
        (bias->dtype != x->dtype || bias->ndim != 1 || bias->dims[0] != w->dims[1])) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "bias %s does not match weights %s: it needs one %s for each "
                          "of the %" PRId64 " columns",
                          lsi_text_of(bias).s, lsi_text_of(w).s,
                          ls_dtype_name((ls_dtype)x->dtype), w->dims[1]);
    }
    return LS_OK;
}

static ls_status dense_shape(ls_op_call *k)
{
    ls_shape out = lsi_shape(k->in[0]);
    ls_status st = check_product(k, k->in[0], k->in[1]);

    if (st == LS_OK) {
        st = check_dense(k);
    }
    if (st != LS_OK) {
        return st;
    }
    out.dims[out.ndim - 1] = k->in[1]->dims[1];
    return ls_op_set_output(k, 0, (ls_dtype)k->in[0]->dtype, &out);
}

static void dense_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                           ls_tensor **gin)
{
    const lsi_matmul_attrs *at = n->attrs;
    ls_tensor *x = n->in[0], *w = n->in[1];
    ls_tensor *g = lsi_activation_grad(c, at->activation, gout[0], n->out[0]);

    g = as_matrix(c, g);
    if (ls_op_needs(n, 0)) {
        gin[0] = ls_matmul_t(c, g, w, false, true);
        if (x->ndim != 2) {
            gin[0] = ls_reshape(c, gin[0], lsi_shape(x));
        }
    }
    if (ls_op_needs(n, 1)) {
        gin[1] = ls_matmul_t(c, as_matrix(c, x), g, true, false);
    }
    if (ls_op_needs(n, 2)) {
        gin[2] = ls_sum(c, g, (const int[]){0}, 1, false);
    }
}

LSI_ROW(dense, 2, 3, 1, dense_shape, lsi_ref_dense, dense_gradient);

ls_tensor *(ls_dense)(ls_context *c, ls_tensor *x, ls_tensor *w, ls_tensor *bias,
                      ls_activation activation)
{
    const bool fused = lsi_activation_fused(activation);
    ls_tensor *in[3] = {x, w, bias};
    lsi_matmul_attrs at;
    ls_tensor *y;

    if ((int)activation < LS_LINEAR || (int)activation > LS_SILU) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT,
                               "dense: activation %d does not exist; use one of "
                               "ls_activation",
                               (int)activation);
    }
    memset(&at, 0, sizeof at);
    at.activation = fused ? activation : LS_LINEAR;
    y = ls_op_apply1(c, &lsi_op_dense, in, bias == NULL ? 2 : 3, &at, sizeof at);
    return fused ? y : lsi_activate(c, activation, y);
}
