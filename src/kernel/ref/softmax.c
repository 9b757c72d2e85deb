/* Softmax over the last axis, its logarithm, their gradients. */
#include "kernel/ref/element_access.h"
#include "kernel/ref/ref.h"

/* The maximum of a row and the logarithm of the sum of exp(x - maximum). */
struct scale {
    double top, log_sum;
};

LSI_INLINE struct scale scale_of(const void *x, int64_t at, int64_t size, ls_dtype d)
{
    double top = -INFINITY, sum = 0;

    for (int64_t i = 0; i < size; i++) {
        const double v = lsi_get_float(x, d, at + i);

        top = v > top ? v : top;
    }
    for (int64_t i = 0; i < size; i++) {
        sum += exp(lsi_get_float(x, d, at + i) - top);
    }
    return (struct scale){top, log(sum)};
}

LSI_INLINE ls_status softmax_rows(ls_op_call *k, bool logarithm, ls_dtype d)
{
    const void *x = k->in[0]->data;
    const lsi_last_axis r = lsi_last_axis_of(k->in[0]);

    for (int64_t at = 0; at < r.rows * r.size; at += r.size) {
        const struct scale s = scale_of(x, at, r.size, d);

        for (int64_t i = at; i < at + r.size; i++) {
            const double v = lsi_get_float(x, d, i) - s.top - s.log_sum;

            lsi_put_float(k->out[0]->data, d, i, logarithm ? v : exp(v));
        }
    }
    return LS_OK;
}

LSI_INLINE ls_status softmax(ls_op_call *k, ls_dtype d)
{
    return softmax_rows(k, false, d);
}

LSI_INLINE ls_status log_softmax(ls_op_call *k, ls_dtype d)
{
    return softmax_rows(k, true, d);
}

ls_status lsi_ref_softmax(ls_op_call *k)
{
    return LSI_EACH_FLOAT(softmax, k);
}

ls_status lsi_ref_log_softmax(ls_op_call *k)
{
    return LSI_EACH_FLOAT(log_softmax, k);
}

/* (g - sum(g y)) y */
LSI_INLINE ls_status softmax_grad(ls_op_call *k, ls_dtype d)
{
    const void *g = k->in[0]->data, *y = k->in[1]->data;
    const lsi_last_axis r = lsi_last_axis_of(k->in[0]);

    for (int64_t at = 0; at < r.rows * r.size; at += r.size) {
        double sum = 0;

        for (int64_t i = at; i < at + r.size; i++) {
            sum += lsi_get_float(g, d, i) * lsi_get_float(y, d, i);
        }
        for (int64_t i = at; i < at + r.size; i++) {
            lsi_put_float(k->out[0]->data, d, i,
                          (lsi_get_float(g, d, i) - sum) * lsi_get_float(y, d, i));
        }
    }
    return LS_OK;
}

ls_status lsi_ref_softmax_grad(ls_op_call *k)
{
    return LSI_EACH_FLOAT(softmax_grad, k);
}

/* g - exp(y) sum(g) */
LSI_INLINE ls_status log_softmax_grad(ls_op_call *k, ls_dtype d)
{
    const void *g = k->in[0]->data, *y = k->in[1]->data;
    const lsi_last_axis r = lsi_last_axis_of(k->in[0]);

    for (int64_t at = 0; at < r.rows * r.size; at += r.size) {
        double sum = 0;

        for (int64_t i = at; i < at + r.size; i++) {
            sum += lsi_get_float(g, d, i);
        }
        for (int64_t i = at; i < at + r.size; i++) {
            lsi_put_float(k->out[0]->data, d, i,
                          lsi_get_float(g, d, i) - exp(lsi_get_float(y, d, i)) * sum);
        }
    }
    return LS_OK;
}

ls_status lsi_ref_log_softmax_grad(ls_op_call *k)
{
    return LSI_EACH_FLOAT(log_softmax_grad, k);
}
