/*
 * The layout of the heads of attention: in three tensors, one head after the other, or
 * side by side in one, as a dense layer writes them. Kernels treat both alike.
 */
#ifndef LSI_ATTENTION_H
#define LSI_ATTENTION_H
#include "kernel/kernel.h"

/* Rows of d elements. Heads are counted through all examples. */
typedef struct lsi_heads {
    void *data;
    int64_t at;                 /* element the first row starts with */
    int64_t each;               /* heads of an example */
    int64_t example, head, row; /* elements from one to the next */
} lsi_heads;

typedef struct lsi_attention {
    int64_t heads, n, keys, d; /* heads of all examples; queries and keys of each */
    float scale;
    bool causal;
    lsi_heads q, k, v, out;
    ls_tensor *lse;          /* logarithm of each row's sum, a head after the other */
    lsi_heads g, dq, dk, dv; /* of a gradient's call only */
} lsi_attention;

/* The element that row i of a head starts with. */
static inline int64_t lsi_head_at(const lsi_heads *x, int64_t head, int64_t i)
{
    return x->at + head / x->each * x->example + head % x->each * x->head + i * x->row;
}

static inline lsi_heads lsi_heads_apart(const ls_tensor *t)
{
    const int64_t d = t->dims[t->ndim - 1];

    return (lsi_heads){t->data, 0, 1, t->dims[t->ndim - 2] * d, 0, d};
}

/* Part `part` of the `parts` of each row; each holds the rows of `heads` heads. */
static inline lsi_heads lsi_heads_beside(const ls_tensor *t, int heads, int parts,
                                         int part)
{
    const int64_t row = t->dims[t->ndim - 1], wide = row / parts;

    return (lsi_heads){t->data,      part * wide, heads, t->dims[t->ndim - 2] * row,
                       wide / heads, row};
}

/* The same places in another tensor of that shape. */
static inline lsi_heads lsi_heads_in(lsi_heads x, const ls_tensor *t)
{
    x.data = t->data;
    return x;
}

/*
 * A call of one of the four rows, q k v or one qkv for the three:
 * q k v -> out lse; q k v out lse g -> dq dk dv.
 */
static inline lsi_attention lsi_attention_of(const ls_op_call *k, bool gradient)
{
    const lsi_attention_attrs *at = k->attrs;
    const int heads = at->heads; /* 0: three tensors */
    const size_t last = heads > 0 ? 0 : 2;
    const ls_tensor *q = k->in[0], *keys = k->in[last / 2], *v = k->in[last];
    ls_tensor *const *rest = gradient ? k->in + last + 1 : k->out;
    lsi_attention a = {
        .heads = heads > 0 ? heads : 1,
        .n = q->dims[q->ndim - 2],
        .keys = keys->dims[keys->ndim - 2],
        .scale = at->scale,
        .causal = at->causal,
        .q = heads > 0 ? lsi_heads_beside(q, heads, 3, 0) : lsi_heads_apart(q),
        .k = heads > 0 ? lsi_heads_beside(q, heads, 3, 1) : lsi_heads_apart(keys),
        .v = heads > 0 ? lsi_heads_beside(q, heads, 3, 2) : lsi_heads_apart(v),
        .out =
            heads > 0 ? lsi_heads_beside(rest[0], heads, 1, 0) : lsi_heads_apart(rest[0]),
        .lse = rest[1],
    };

    a.d = heads > 0 ? a.q.head : a.q.row;
    for (int axis = 0; axis + 2 < q->ndim; axis++) {
        a.heads *= q->dims[axis];
    }
    if (gradient) {
        a.g = lsi_heads_in(a.out, rest[2]);
        a.dq = lsi_heads_in(a.q, k->out[0]);
        a.dk = lsi_heads_in(a.k, k->out[last / 2]);
        a.dv = lsi_heads_in(a.v, k->out[last]);
    }
    return a;
}
#endif
