/* Losses: one value per example, from a softmax over its row of logits. */
#include "kernel/simd/softmax.h"

static ls_status check_labels(ls_op_call *k, const ls_tensor *labels, int64_t classes)
{
    for (int64_t i = 0; i < labels->count; i++) {
        const int64_t label = lsi_index_at(labels, i);

        if (label < 0 || label >= classes) {
            return ls_op_fail(k, LS_INVALID_ARGUMENT,
                              "label %lld of example %lld is outside [0, %lld); logits "
                              "need a column for each class",
                              (long long)label, (long long)i, (long long)classes);
        }
    }
    return LS_OK;
}

static bool are_labels(const ls_tensor *t, int64_t rows)
{
    return (t->dtype == LS_I32 || t->dtype == LS_I64) && t->count == rows;
}

/* y: the loss, y2: the probabilities */
static void sparse_loss_of_row(const struct logit_rows *s, int64_t row)
{
    const float *x = s->x + row * s->n;
    const struct softmax_scale r = softmax_row(s->y2 + row * s->n, x, s->n);

    s->y[row] = logf(r.sum) - (x[lsi_index_at(s->labels, row)] - r.top);
}

ls_status LSI_SIMD(sparse_softmax_cross_entropy)(ls_op_call *k)
{
    const ls_tensor *logits = k->in[0], *labels = k->in[1];
    const int64_t n = last_axis(logits);
    struct logit_rows s = {.fn = sparse_loss_of_row,
                           .y = lsi_out_f32(k, 0),
                           .y2 = lsi_out_f32(k, 1),
                           .x = logits->data,
                           .labels = labels,
                           .n = n};
    ls_status st = LS_OK;

    if (n == 0 || logits->dtype != LS_F32 || !are_labels(labels, logits->count / n)) {
        return LS_UNIMPLEMENTED;
    }
    st = check_labels(k, labels, n);
    s.rows = labels->count;
    return st == LS_OK ? run_logit_rows(k, &s) : st;
}

/* l * v, but 0 where the label l is 0, even if v is infinite. */
LSI_INLINE vf cost(vf l, vf v)
{
    return (vf)((vi)(l * v) & (l != 0.0F));
}

/* y: the loss sum(labels (log(sum exp) - x)), y2: softmax - labels */
static void loss_of_row(const struct logit_rows *s, int64_t row)
{
    const float *x = s->x + row * s->n, *labels = s->x2 + row * s->n;
    float *p = s->y2 + row * s->n;
    const float top = top_of(x, s->n);
    const float sum = exp_row(p, x, s->n, top);
    const float log_sum = logf(sum), scale = 1.0F / sum;
    vf loss = vzero();
    int64_t i = 0;

    for (; i + VW <= s->n; i += VW) {
        const vf l = vload(labels + i);

        loss += cost(l, log_sum - (vload(x + i) - top));
        vstore(p + i, vload(p + i) * scale - l);
    }
    if (i < s->n) {
        const int64_t rest = s->n - i;
        const vf l = vtail(labels + i, rest);

        loss += cost(l, log_sum - (vtail(x + i, rest) - top));
        vtail_store(p + i, vtail(p + i, rest) * scale - l, rest);
    }
    s->y[row] = vfold(LSI_JOIN_SUM, loss);
}

ls_status LSI_SIMD(softmax_cross_entropy)(ls_op_call *k)
{
    const ls_tensor *logits = k->in[0], *labels = k->in[1];
    const int64_t n = last_axis(logits);
    struct logit_rows s = {.fn = loss_of_row,
                           .y = lsi_out_f32(k, 0),
                           .y2 = lsi_out_f32(k, 1),
                           .x = logits->data,
                           .x2 = labels->data,
                           .n = n};

    if (n == 0 || !lsi_all_f32(k) || labels->count != logits->count) {
        return LS_UNIMPLEMENTED;
    }
    s.rows = logits->count / n;
    return run_logit_rows(k, &s);
}

/* g (p - onehot(label)); x is g and x2 is p. */
static void sparse_grad_of_row(const struct logit_rows *s, int64_t row)
{
    const float *p = s->x2 + row * s->n;
    float *dx = s->y + row * s->n;
    const float g = s->x[row];
    const int64_t label = lsi_index_at(s->labels, row);

    scale_row(dx, p, s->n, g);
    if (label >= 0 && label < s->n) { // it was checked when p was made
        dx[label] = g * (p[label] - 1.0F);
    }
}

ls_status LSI_SIMD(softmax_cross_entropy_grad)(ls_op_call *k)
{
    const ls_tensor *g = k->in[0], *p = k->in[1], *labels = k->in[2];
    const int64_t n = last_axis(p);
    struct logit_rows s = {.fn = sparse_grad_of_row,
                           .y = lsi_out_f32(k, 0),
                           .x = g->data,
                           .x2 = p->data,
                           .labels = labels,
                           .n = n};

    if (n == 0 || g->dtype != LS_F32 || p->dtype != LS_F32 ||
        k->out[0]->dtype != LS_F32 || g->count != p->count / n ||
        !are_labels(labels, g->count)) {
        return LS_UNIMPLEMENTED;
    }
    s.rows = g->count;
    return run_logit_rows(k, &s);
}
