/* Attention: softmax(q k' scale) v in one pass, the row attention and its gradient. */
#include "op/op.h"

#include "kernel/ref/ref.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Logarithms are kept in at least float32: a half's would spoil the gradient. */
static ls_dtype sum_dtype(const ls_tensor *q)
{
    return q->dtype == LS_F64 ? LS_F64 : LS_F32;
}

static ls_status check_dtypes(ls_op_call *k)
{
    for (size_t i = 1; i < 3; i++) {
        if (k->in[i]->dtype != k->in[0]->dtype) {
            return ls_op_fail(
                k, LS_INVALID_ARGUMENT,
                "queries %s, keys %s, values %s: the dtypes differ; convert "
                "with ls_cast()",
                lsi_text_of(k->in[0]).s, lsi_text_of(k->in[1]).s,
                lsi_text_of(k->in[2]).s);
        }
    }
    return lsi_shape_same_float(k);
}

/* q [..., n, d]; k and v [..., m, d]; causal: n == m. */
static ls_status check_attention(ls_op_call *k)
{
    const lsi_attention_attrs *at = k->attrs;
    const ls_shape q = lsi_shape(k->in[0]), keys = lsi_shape(k->in[1]);
    const ls_shape v = lsi_shape(k->in[2]);
    const ls_status st = check_dtypes(k);
    bool agree = q.ndim >= 2 && q.ndim == keys.ndim && ls_shape_equal(&keys, &v);

    if (st != LS_OK) {
        return st;
    }
    for (int a = 0; agree && a < q.ndim; a++) {
        agree = a == q.ndim - 2 || q.dims[a] == keys.dims[a];
    }
    if (!agree) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "queries %s, keys %s, values %s: they must be [..., n, d], "
                          "[..., m, d] and [..., m, d], equal before the last two axes",
                          lsi_text_of(k->in[0]).s, lsi_text_of(k->in[1]).s,
                          lsi_text_of(k->in[2]).s);
    }
    if (at->causal && q.dims[q.ndim - 2] != keys.dims[q.ndim - 2]) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "queries %s, keys %s: causal attention needs a key for each "
                          "query, not %" PRId64 " for %" PRId64,
                          lsi_text_of(k->in[0]).s, lsi_text_of(k->in[1]).s,
                          keys.dims[q.ndim - 2], q.dims[q.ndim - 2]);
    }
    return LS_OK;
}

static ls_status check_scale(ls_op_call *k)
{
    const lsi_attention_attrs *at = k->attrs;

    return isfinite(at->scale)
               ? LS_OK
               : ls_op_fail(k, LS_INVALID_ARGUMENT,
                            "the scale %g must be a finite number", (double)at->scale);
}

static ls_status attention_shape(ls_op_call *k)
{
    ls_shape s = lsi_shape(k->in[0]);
    ls_status st = check_attention(k);

    if (st == LS_OK) {
        st = check_scale(k);
    }
    if (st == LS_OK) {
        st = ls_op_set_output(k, 0, (ls_dtype)k->in[0]->dtype, &s);
    }
    if (st != LS_OK) {
        return st;
    }
    s.ndim--;
    return ls_op_set_output(k, 1, sum_dtype(k->in[0]), &s);
}

static ls_status attention_grad_shape(ls_op_call *k)
{
    const ls_shape q = lsi_shape(k->in[0]), out = lsi_shape(k->in[3]);
    const ls_shape sums = lsi_shape(k->in[4]), g = lsi_shape(k->in[5]);
    ls_shape rows = q;
    ls_status st = check_attention(k);

    if (st != LS_OK) {
        return st;
    }
    rows.ndim--;
    if (!ls_shape_equal(&q, &out) || !ls_shape_equal(&q, &g) ||
        !ls_shape_equal(&rows, &sums) || k->in[3]->dtype != k->in[0]->dtype ||
        k->in[4]->dtype != sum_dtype(k->in[0]) || k->in[5]->dtype != k->in[0]->dtype) {
        return ls_op_fail(
            k, LS_INVALID_ARGUMENT,
            "queries %s, result %s, sums %s, gradient %s do not go together",
            lsi_text_of(k->in[0]).s, lsi_text_of(k->in[3]).s, lsi_text_of(k->in[4]).s,
            lsi_text_of(k->in[5]).s);
    }
    for (int i = 0; i < 3 && st == LS_OK; i++) {
        const ls_shape s = lsi_shape(k->in[i]);

        st = ls_op_set_output(k, i, (ls_dtype)k->in[i]->dtype, &s);
    }
    return st;
}

static void attention_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                               ls_tensor **gin)
{
    ls_tensor *in[6] = {n->in[0], n->in[1], n->in[2], n->out[0], n->out[1], gout[0]};

    // The front door hands out the result alone: nothing reaches the sums by themselves.
    ls_op_apply(c, &lsi_op_attention_grad, in, 6, n->attrs, sizeof(lsi_attention_attrs),
                gin);
}

LSI_ROW(attention, 3, 3, 2, attention_shape, lsi_ref_attention, attention_gradient);

/* Not differentiable again: a second derivative needs attention written with ls_matmul()
 * and ls_softmax(). */
LSI_ROW(attention_grad, 6, 6, 3, attention_grad_shape, lsi_ref_attention_grad, NULL);

ls_tensor *(ls_attention)(ls_context *c, ls_tensor *q, ls_tensor *k, ls_tensor *v,
                          double scale, bool causal)
{
    lsi_attention_attrs at;

    memset(&at, 0, sizeof at);
    at.scale = (float)scale;
    at.causal = causal;
    if (at.scale == 0) {
        const int64_t d = q != NULL && q->ndim > 0 ? q->dims[q->ndim - 1] : 0;

        at.scale = d > 0 ? (float)(1 / sqrt((double)d)) : 1;
    }
    return lsi_op3(c, &lsi_op_attention, q, k, v, &at, sizeof at);
}
