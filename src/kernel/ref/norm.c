/*
 * Layer and batch normalisation. Both treat the elements as `rows` rows of `size`
 * channels and share their loops: the moments of a layer norm are those of a row, the
 * moments of a batch norm those of a channel. Variances are computed in a second pass.
 */
#include "kernel/ref/element_access.h"
#include "kernel/ref/ref.h"

/* `count` elements from `first` on, `step` apart, that are normalised together. */
struct group {
    int64_t first, step, count;
};

LSI_INLINE struct group group_of(lsi_last_axis r, bool batch, int64_t i)
{
    return batch ? (struct group){i, r.size, r.rows}
                 : (struct group){i * r.size, 1, r.size};
}

struct moments {
    double mean, variance;
};

LSI_INLINE struct moments moments_of(const void *x, struct group g, ls_dtype d)
{
    struct moments m = {0, 0};

    if (g.count == 0) {
        return m; // not NaN: weighted by its rows, an empty part adds nothing to a sum
    }
    for (int64_t i = 0; i < g.count; i++) {
        m.mean += lsi_get_float(x, d, g.first + i * g.step);
    }
    m.mean /= (double)g.count;
    for (int64_t i = 0; i < g.count; i++) {
        const double v = lsi_get_float(x, d, g.first + i * g.step) - m.mean;

        m.variance += v * v;
    }
    m.variance /= (double)g.count;
    return m;
}

/* Outputs: y, mean, variance (batch only), rstd. */
LSI_INLINE ls_status normalise(ls_op_call *k, bool batch, ls_dtype d)
{
    const lsi_scalars_attrs *at = k->attrs;
    const void *x = k->in[0]->data, *gamma = k->in[1]->data, *beta = k->in[2]->data;
    const lsi_last_axis r = lsi_last_axis_of(k->in[0]);

    for (int64_t s = 0; s < (batch ? r.size : r.rows); s++) {
        const struct group g = group_of(r, batch, s);
        const struct moments m = moments_of(x, g, d);
        const double rstd = 1 / sqrt(m.variance + at->a);

        lsi_put_float(k->out[1]->data, d, s, m.mean);
        if (batch) {
            lsi_put_float(k->out[2]->data, d, s, m.variance);
        }
        lsi_put_float(k->out[batch ? 3 : 2]->data, d, s, rstd);
        for (int64_t i = 0; i < g.count; i++) {
            const int64_t e = g.first + i * g.step, c = e % r.size;

            lsi_put_float(k->out[0]->data, d, e,
                          (lsi_get_float(x, d, e) - m.mean) * rstd *
                                  lsi_get_float(gamma, d, c) +
                              lsi_get_float(beta, d, c));
        }
    }
    return LS_OK;
}

/* dx = rstd (u - mean(u) - h mean(u h)), u = g gamma, h = (x - mean) rstd */
LSI_INLINE void input_grad(const ls_op_call *k, lsi_last_axis r, bool batch, int64_t s,
                           ls_dtype d)
{
    const void *g = k->in[0]->data, *x = k->in[1]->data, *gamma = k->in[2]->data;
    const double mean = lsi_get_float(k->in[3]->data, d, s);
    const double rstd = lsi_get_float(k->in[4]->data, d, s);
    const struct group group = group_of(r, batch, s);
    double sum = 0, dot = 0;

    for (int64_t i = 0; i < group.count; i++) {
        const int64_t e = group.first + i * group.step;
        const double u = lsi_get_float(g, d, e) * lsi_get_float(gamma, d, e % r.size);

        sum += u;
        dot += u * (lsi_get_float(x, d, e) - mean) * rstd;
    }
    sum /= (double)group.count;
    dot /= (double)group.count;
    for (int64_t i = 0; i < group.count; i++) {
        const int64_t e = group.first + i * group.step;
        const double u = lsi_get_float(g, d, e) * lsi_get_float(gamma, d, e % r.size);
        const double h = (lsi_get_float(x, d, e) - mean) * rstd;

        lsi_put_float(k->out[0]->data, d, e, rstd * (u - sum - h * dot));
    }
}

LSI_INLINE ls_status normalise_grad(ls_op_call *k, bool batch, ls_dtype d)
{
    const void *g = k->in[0]->data, *x = k->in[1]->data;
    const void *mean = k->in[3]->data, *rstd = k->in[4]->data;
    const lsi_last_axis r = lsi_last_axis_of(k->in[1]);

    for (int64_t s = 0; s < (batch ? r.size : r.rows); s++) {
        input_grad(k, r, batch, s, d);
    }
    for (int64_t c = 0; c < r.size; c++) {
        double dgamma = 0, dbeta = 0;

        for (int64_t row = 0; row < r.rows; row++) {
            const int64_t s = batch ? c : row, e = row * r.size + c;

            dbeta += lsi_get_float(g, d, e);
            dgamma += lsi_get_float(g, d, e) *
                      (lsi_get_float(x, d, e) - lsi_get_float(mean, d, s)) *
                      lsi_get_float(rstd, d, s);
        }
        lsi_put_float(k->out[1]->data, d, c, dgamma);
        lsi_put_float(k->out[2]->data, d, c, dbeta);
    }
    return LS_OK;
}

LSI_INLINE ls_status inference(ls_op_call *k, ls_dtype d)
{
    const lsi_scalars_attrs *at = k->attrs;
    const int64_t size = lsi_last_axis_of(k->in[0]).size;

    for (int64_t e = 0; e < k->out[0]->count; e++) {
        const int64_t c = e % size;
        const double rstd = 1 / sqrt(lsi_get_float(k->in[4]->data, d, c) + at->a);

        lsi_put_float(
            k->out[0]->data, d, e,
            (lsi_get_float(k->in[0]->data, d, e) - lsi_get_float(k->in[3]->data, d, c)) *
                    rstd * lsi_get_float(k->in[1]->data, d, c) +
                lsi_get_float(k->in[2]->data, d, c));
    }
    return LS_OK;
}

/* The shape rules allow float32 and float64 only. */
#define IS_DOUBLE(k) ((k)->in[0]->dtype == LS_F64)

ls_status lsi_ref_layer_norm(ls_op_call *k)
{
    return IS_DOUBLE(k) ? normalise(k, false, LS_F64) : normalise(k, false, LS_F32);
}

ls_status lsi_ref_layer_norm_grad(ls_op_call *k)
{
    return IS_DOUBLE(k) ? normalise_grad(k, false, LS_F64)
                        : normalise_grad(k, false, LS_F32);
}

ls_status lsi_ref_batch_norm(ls_op_call *k)
{
    return IS_DOUBLE(k) ? normalise(k, true, LS_F64) : normalise(k, true, LS_F32);
}

ls_status lsi_ref_batch_norm_grad(ls_op_call *k)
{
    return IS_DOUBLE(k) ? normalise_grad(k, true, LS_F64)
                        : normalise_grad(k, true, LS_F32);
}

ls_status lsi_ref_batch_norm_inference(ls_op_call *k)
{
    return IS_DOUBLE(k) ? inference(k, LS_F64) : inference(k, LS_F32);
}
