/*
 * Attention: softmax(q k' scale) v in one pass. Two rows and their gradients: attention
 * takes three tensors, self_attention one whose rows hold every head of all three.
 */
#include "op/op.h"

#include "kernel/ref/ref.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Logarithms are kept in at least float32: 16 bits would be too few for the gradient. */
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

static bool is_like(const ls_tensor *t, const ls_shape *shape, ls_dtype dtype)
{
    const ls_shape own = lsi_shape(t);

    return t->dtype == dtype && ls_shape_equal(&own, shape);
}

static ls_status attention_grad_shape(ls_op_call *k)
{
    const ls_dtype dtype = (ls_dtype)k->in[0]->dtype;
    const ls_shape q = lsi_shape(k->in[0]);
    ls_shape rows = q;
    ls_status st = check_attention(k);

    if (st != LS_OK) {
        return st;
    }
    rows.ndim--;
    if (!is_like(k->in[3], &q, dtype) || !is_like(k->in[4], &rows, sum_dtype(k->in[0])) ||
        !is_like(k->in[5], &q, dtype)) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "queries %s, result %s, sums %s, gradient %s: the shapes or "
                          "dtypes do not match",
                          lsi_text_of(k->in[0]).s, lsi_text_of(k->in[3]).s,
                          lsi_text_of(k->in[4]).s, lsi_text_of(k->in[5]).s);
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

    // ls_attention() returns output 0 alone, so no gradient reaches output 1.
    ls_op_apply(c, &lsi_op_attention_grad, in, 6, n->attrs, sizeof(lsi_attention_attrs),
                gin);
}

LSI_ROW(attention, 3, 3, 2, attention_shape, lsi_ref_attention, attention_gradient);

/* Not differentiable again: a second derivative needs attention written with ls_matmul()
 * and ls_softmax(). */
LSI_ROW(attention_grad, 6, 6, 3, attention_grad_shape, lsi_ref_attention_grad, NULL);

/* qkv [..., n, 3 * heads * d] */
static ls_status check_beside(ls_op_call *k)
{
    const lsi_attention_attrs *at = k->attrs;
    const ls_tensor *x = k->in[0];
    const ls_status st = lsi_shape_same_float(k);

    if (st != LS_OK) {
        return st;
    }
    if (at->heads < 1) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT, "%d heads: there must be at least one",
                          at->heads);
    }
    if (x->ndim < 2 || x->dims[x->ndim - 1] % (3 * (int64_t)at->heads) != 0) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "%s with %d heads: it must be [..., n, 3 * %d * d], for a row "
                          "holds the queries of every head, then the keys, then the "
                          "values",
                          lsi_text_of(x).s, at->heads, at->heads);
    }
    return check_scale(k);
}

/* [..., n, heads * d], and the sums [..., heads, n]. */
static void beside_shapes(const ls_tensor *qkv, int heads, ls_shape *out, ls_shape *sums)
{
    const int last = qkv->ndim - 1;

    *out = lsi_shape(qkv);
    *sums = *out;
    out->dims[last] /= 3;
    sums->dims[last] = sums->dims[last - 1];
    sums->dims[last - 1] = heads;
}

static ls_status self_attention_shape(ls_op_call *k)
{
    const lsi_attention_attrs *at = k->attrs;
    ls_status st = check_beside(k);
    ls_shape out, sums;

    if (st != LS_OK) {
        return st;
    }
    beside_shapes(k->in[0], at->heads, &out, &sums);
    st = ls_op_set_output(k, 0, (ls_dtype)k->in[0]->dtype, &out);
    return st == LS_OK ? ls_op_set_output(k, 1, sum_dtype(k->in[0]), &sums) : st;
}

static ls_status self_attention_grad_shape(ls_op_call *k)
{
    const lsi_attention_attrs *at = k->attrs;
    const ls_status st = check_beside(k);
    ls_shape out, sums;

    if (st != LS_OK) {
        return st;
    }
    beside_shapes(k->in[0], at->heads, &out, &sums);
    if (!is_like(k->in[1], &out, (ls_dtype)k->in[0]->dtype) ||
        !is_like(k->in[2], &sums, sum_dtype(k->in[0])) ||
        !is_like(k->in[3], &out, (ls_dtype)k->in[0]->dtype)) {
        return ls_op_fail(
            k, LS_INVALID_ARGUMENT,
            "%s, result %s, sums %s, gradient %s: the shapes or dtypes do not match",
            lsi_text_of(k->in[0]).s, lsi_text_of(k->in[1]).s, lsi_text_of(k->in[2]).s,
            lsi_text_of(k->in[3]).s);
    }
    return lsi_shape_same(k);
}

static void self_attention_gradient(ls_context *c, const ls_op_node *n,
                                    ls_tensor *const *gout, ls_tensor **gin)
{
    ls_tensor *in[4] = {n->in[0], n->out[0], n->out[1], gout[0]};

    ls_op_apply(c, &lsi_op_self_attention_grad, in, 4, n->attrs,
                sizeof(lsi_attention_attrs), gin);
}

LSI_ROW(self_attention, 1, 1, 2, self_attention_shape, lsi_ref_attention,
        self_attention_gradient);
LSI_ROW(self_attention_grad, 4, 4, 1, self_attention_grad_shape, lsi_ref_attention_grad,
        NULL);

/* Attributes of both; scale 0: 1/sqrt(d). */
static lsi_attention_attrs attrs_of(double scale, bool causal, int heads, int64_t d)
{
    lsi_attention_attrs at;

    memset(&at, 0, sizeof at);
    at.scale = (float)scale;
    at.causal = causal;
    at.heads = heads;
    if (at.scale == 0) {
        at.scale = d > 0 ? (float)(1 / sqrt((double)d)) : 1;
    }
    return at;
}

static int64_t last_dim(const ls_tensor *t)
{
    return t != NULL && t->ndim > 0 ? t->dims[t->ndim - 1] : 0;
}

ls_tensor *(ls_attention)(ls_context *c, ls_tensor *q, ls_tensor *k, ls_tensor *v,
                          double scale, bool causal)
{
    const lsi_attention_attrs at = attrs_of(scale, causal, 0, last_dim(q));

    return lsi_op3(c, &lsi_op_attention, q, k, v, &at, sizeof at);
}

ls_tensor *(ls_self_attention)(ls_context *c, ls_tensor *qkv, int heads, double scale,
                               bool causal)
{
    const int64_t d = heads > 0 ? last_dim(qkv) / 3 / heads : 0;
    const lsi_attention_attrs at = attrs_of(scale, causal, heads, d);

    return lsi_op1(c, &lsi_op_self_attention, qkv, &at, sizeof at);
}
