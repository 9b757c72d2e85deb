/* Losses: one value per example. */
#include "kernel/ref/element_access.h"
#include "kernel/ref/ref.h"

#include <inttypes.h>

/* The logsumexp of a row: logits minus it are logarithms of probabilities. */
LSI_INLINE double log_sum(const void *x, int64_t at, int64_t size, ls_dtype d)
{
    double top = -INFINITY, sum = 0;

    for (int64_t i = at; i < at + size; i++) {
        const double v = lsi_get_float(x, d, i);

        top = v > top ? v : top;
    }
    for (int64_t i = at; i < at + size; i++) {
        sum += exp(lsi_get_float(x, d, i) - top);
    }
    return top + log(sum);
}

LSI_INLINE ls_status sparse(ls_op_call *k, ls_dtype d)
{
    const void *x = k->in[0]->data;
    const lsi_last_axis r = lsi_last_axis_of(k->in[0]);

    for (int64_t row = 0; row < r.rows; row++) {
        const int64_t at = row * r.size, label = lsi_index_at(k->in[1], row);
        double sum = 0;

        if (label < 0 || label >= r.size) {
            return ls_op_fail(k, LS_INVALID_ARGUMENT,
                              "label %" PRId64 " of example %" PRId64
                              " is outside [0, %" PRId64
                              "); logits need a column for each class",
                              label, row, r.size);
        }
        sum = log_sum(x, at, r.size, d);
        lsi_put_float(k->out[0]->data, d, row, sum - lsi_get_float(x, d, at + label));
        for (int64_t i = at; i < at + r.size; i++) {
            lsi_put_float(k->out[1]->data, d, i, exp(lsi_get_float(x, d, i) - sum));
        }
    }
    return LS_OK;
}

ls_status lsi_ref_sparse_softmax_cross_entropy(ls_op_call *k)
{
    return LSI_EACH_FLOAT(sparse, k);
}

LSI_INLINE ls_status distribution(ls_op_call *k, ls_dtype d)
{
    const void *x = k->in[0]->data, *labels = k->in[1]->data;
    const lsi_last_axis r = lsi_last_axis_of(k->in[0]);

    for (int64_t row = 0; row < r.rows; row++) {
        const int64_t at = row * r.size;
        const double sum = log_sum(x, at, r.size, d);
        double loss = 0;

        for (int64_t i = at; i < at + r.size; i++) {
            const double v = lsi_get_float(x, d, i) - sum,
                         y = lsi_get_float(labels, d, i);

            // A class with the label 0 adds nothing, even at a logit of -inf.
            loss -= y == 0 ? 0 : y * v;
            lsi_put_float(k->out[1]->data, d, i, exp(v) - y);
        }
        lsi_put_float(k->out[0]->data, d, row, loss);
    }
    return LS_OK;
}

ls_status lsi_ref_softmax_cross_entropy(ls_op_call *k)
{
    return LSI_EACH_FLOAT(distribution, k);
}

/* g (p - onehot(label)); labels were checked when p was made, a bad one has no column. */
LSI_INLINE ls_status cross_entropy_grad(ls_op_call *k, ls_dtype d)
{
    const lsi_last_axis r = lsi_last_axis_of(k->in[1]);

    for (int64_t e = 0; e < k->out[0]->count; e++) {
        const int64_t row = e / r.size, label = lsi_index_at(k->in[2], row);
        const double p = lsi_get_float(k->in[1]->data, d, e);

        lsi_put_float(k->out[0]->data, d, e,
                      lsi_get_float(k->in[0]->data, d, row) *
                          (e % r.size == label ? p - 1 : p));
    }
    return LS_OK;
}

ls_status lsi_ref_softmax_cross_entropy_grad(ls_op_call *k)
{
    return LSI_EACH_FLOAT(cross_entropy_grad, k);
}

LSI_INLINE ls_status sigmoid(ls_op_call *k, ls_dtype d)
{
    for (int64_t e = 0; e < k->out[0]->count; e++) {
        const double o = lsi_get_float(k->in[0]->data, d, e);
        const double y = lsi_get_float(k->in[1]->data, d, e);

        lsi_put_float(k->out[0]->data, d, e,
                      (o < 0 ? 0 : o) - o * y + log1p(exp(-fabs(o))));
    }
    return LS_OK;
}

ls_status lsi_ref_sigmoid_cross_entropy(ls_op_call *k)
{
    return LSI_EACH_FLOAT(sigmoid, k);
}

LSI_INLINE ls_status squared(ls_op_call *k, ls_dtype d)
{
    const lsi_last_axis r = lsi_last_axis_of(k->in[0]);

    for (int64_t row = 0; row < r.rows; row++) {
        double sum = 0;

        for (int64_t i = row * r.size; i < (row + 1) * r.size; i++) {
            const double v =
                lsi_get_float(k->in[0]->data, d, i) - lsi_get_float(k->in[1]->data, d, i);

            sum += v * v;
        }
        lsi_put_float(k->out[0]->data, d, row, sum / (double)r.size); // of nothing: NaN
    }
    return LS_OK;
}

ls_status lsi_ref_mean_squared_error(ls_op_call *k)
{
    return LSI_EACH_FLOAT(squared, k);
}
