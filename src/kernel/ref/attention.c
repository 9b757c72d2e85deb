/*
 * softmax(q k' scale) v, a row of q at a time. The logarithm of each row's sum is kept,
 * so that the gradient finds its probabilities again without a maximum.
 */
#include "kernel/ref/element.h"
#include "kernel/ref/ref.h"

struct sizes {
    int64_t batch, n, m, d;
};

static struct sizes sizes_of(const ls_tensor *q, const ls_tensor *k)
{
    struct sizes s = {1, q->dims[q->ndim - 2], k->dims[k->ndim - 2],
                      q->dims[q->ndim - 1]};

    for (int a = 0; a + 2 < q->ndim; a++) {
        s.batch *= q->dims[a];
    }
    return s;
}

LSI_INLINE double dot(const void *a, int64_t a0, const void *b, int64_t b0, int64_t size,
                      ls_dtype d)
{
    double sum = 0;

    for (int64_t i = 0; i < size; i++) {
        sum += lsi_get(a, d, a0 + i) * lsi_get(b, d, b0 + i);
    }
    return sum;
}

/* Probabilities of one row into p[0..seen-1]; returns the logarithm of its sum. */
LSI_INLINE double row_softmax(const ls_op_call *k, int64_t q0, int64_t k0, int64_t seen,
                              int64_t size, double *p, ls_dtype d)
{
    const lsi_attention_attrs *at = k->attrs;
    double top = -INFINITY, sum = 0;

    for (int64_t j = 0; j < seen; j++) {
        p[j] = dot(k->in[0]->data, q0, k->in[1]->data, k0 + j * size, size, d) *
               (double)at->scale;
        top = p[j] > top ? p[j] : top;
    }
    for (int64_t j = 0; j < seen; j++) {
        p[j] = exp(p[j] - top);
        sum += p[j];
    }
    for (int64_t j = 0; j < seen; j++) {
        p[j] /= sum;
    }
    return seen == 0 ? -INFINITY : top + log(sum);
}

LSI_INLINE ls_status attention(ls_op_call *k, ls_dtype d)
{
    const lsi_attention_attrs *at = k->attrs;
    const struct sizes s = sizes_of(k->in[0], k->in[1]);
    const ls_dtype stat = (ls_dtype)k->out[1]->dtype;
    double *p = lsi_alloc((size_t)s.m + 1, sizeof(double));

    if (p == NULL) {
        return lsi_fail_memory(k->err, "attention", ((size_t)s.m + 1) * sizeof(double));
    }
    for (int64_t row = 0; row < s.batch * s.n; row++) {
        const int64_t k0 = row / s.n * s.m * s.d;
        const int64_t seen = at->causal ? row % s.n + 1 : s.m;

        lsi_put(k->out[1]->data, stat, row,
                row_softmax(k, row * s.d, k0, seen, s.d, p, d));
        for (int64_t t = 0; t < s.d; t++) {
            double sum = 0;

            for (int64_t j = 0; j < seen; j++) {
                sum += p[j] * lsi_get(k->in[2]->data, d, k0 + j * s.d + t);
            }
            lsi_put(k->out[0]->data, d, row * s.d + t, sum);
        }
    }
    lsi_free(p);
    return LS_OK;
}

ls_status lsi_ref_attention(ls_op_call *k)
{
    return LSI_EACH_FLOAT(attention, k);
}

/* Sums of one batch: dk and dv of m rows, dq of one. */
struct sums {
    double *dk, *dv, *dq;
};

/* Adds what row `row` of q gives: dq complete, dk and dv in part. */
LSI_INLINE void add_row(const ls_op_call *k, const struct sizes *s, int64_t row,
                        const struct sums *sums, ls_dtype d)
{
    const lsi_attention_attrs *at = k->attrs;
    const void *q = k->in[0]->data, *keys = k->in[1]->data, *v = k->in[2]->data;
    const void *g = k->in[5]->data;
    const int64_t q0 = row * s->d, k0 = row / s->n * s->m * s->d;
    const int64_t seen = at->causal ? row % s->n + 1 : s->m;
    const double lse = lsi_get(k->in[4]->data, (ls_dtype)k->in[4]->dtype, row);
    const double mean = dot(g, q0, k->in[3]->data, q0, s->d, d);

    for (int64_t j = 0; j < seen; j++) {
        const int64_t kj = k0 + j * s->d;
        const double scale = (double)at->scale;
        const double p = exp(dot(q, q0, keys, kj, s->d, d) * scale - lse);
        const double ds = p * (dot(g, q0, v, kj, s->d, d) - mean) * scale;

        for (int64_t t = 0; t < s->d; t++) {
            sums->dq[t] += ds * lsi_get(keys, d, kj + t);
            sums->dk[j * s->d + t] += ds * lsi_get(q, d, q0 + t);
            sums->dv[j * s->d + t] += p * lsi_get(g, d, q0 + t);
        }
    }
}

/* Rounds `count` sums into `to` and makes them 0 again. */
LSI_INLINE void flush(double *sums, void *to, int64_t at, int64_t count, ls_dtype d)
{
    for (int64_t i = 0; i < count; i++) {
        lsi_put(to, d, at + i, sums[i]);
        sums[i] = 0;
    }
}

LSI_INLINE ls_status attention_grad(ls_op_call *k, ls_dtype d)
{
    const struct sizes s = sizes_of(k->in[0], k->in[1]);
    const int64_t keys = s.m * s.d;
    const size_t room = (size_t)(2 * keys + s.d);
    double *all = lsi_alloc(room, sizeof(double));
    struct sums sums;

    if (all == NULL) {
        return lsi_fail_memory(k->err, "attention_grad", room * sizeof(double));
    }
    sums = (struct sums){all, all + keys, all + 2 * keys};
    for (int64_t b = 0; b < s.batch; b++) {
        for (int64_t row = b * s.n; row < (b + 1) * s.n; row++) {
            add_row(k, &s, row, &sums, d);
            flush(sums.dq, k->out[0]->data, row * s.d, s.d, d);
        }
        flush(sums.dk, k->out[1]->data, b * keys, keys, d);
        flush(sums.dv, k->out[2]->data, b * keys, keys, d);
    }
    lsi_free(all);
    return LS_OK;
}

ls_status lsi_ref_attention_grad(ls_op_call *k)
{
    return LSI_EACH_FLOAT(attention_grad, k);
}
