/*
 * softmax(q k' scale) v, a row of q at a time. The logarithm of each row's sum is kept,
 * so that the gradient finds its probabilities again without a maximum.
 */
#include "kernel/attention.h"
#include "kernel/ref/element_access.h"
#include "kernel/ref/ref.h"

/* Row i of a head, element by element as doubles. */
struct row {
    const void *data;
    int64_t at;
};

static struct row row_of(const lsi_heads *x, int64_t head, int64_t i)
{
    return (struct row){x->data, lsi_head_at(x, head, i)};
}

LSI_INLINE double get_in_row(struct row r, int64_t i, ls_dtype d)
{
    return lsi_get_float(r.data, d, r.at + i);
}

LSI_INLINE double dot(struct row a, struct row b, int64_t size, ls_dtype d)
{
    double sum = 0;

    for (int64_t i = 0; i < size; i++) {
        sum += get_in_row(a, i, d) * get_in_row(b, i, d);
    }
    return sum;
}

/* Probabilities of one row into p[0..seen-1]; returns the logarithm of its sum. */
LSI_INLINE double row_softmax(const lsi_attention *a, int64_t head, int64_t i,
                              int64_t seen, double *p, ls_dtype d)
{
    double top = -INFINITY, sum = 0;

    for (int64_t j = 0; j < seen; j++) {
        p[j] = dot(row_of(&a->q, head, i), row_of(&a->k, head, j), a->d, d) *
               (double)a->scale;
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
    const lsi_attention a = lsi_attention_of(k, false);
    double *p = lsi_alloc((size_t)a.keys + 1, sizeof(double));

    if (p == NULL) {
        return lsi_fail_memory(k->err, "attention",
                               ((size_t)a.keys + 1) * sizeof(double));
    }
    for (int64_t row = 0; row < a.heads * a.n; row++) {
        const int64_t head = row / a.n, i = row % a.n;
        const int64_t seen = a.causal ? i + 1 : a.keys;

        lsi_put_float(a.lse->data, (ls_dtype)a.lse->dtype, row,
                      row_softmax(&a, head, i, seen, p, d));
        for (int64_t t = 0; t < a.d; t++) {
            double sum = 0;

            for (int64_t j = 0; j < seen; j++) {
                sum += p[j] * get_in_row(row_of(&a.v, head, j), t, d);
            }
            lsi_put_float(a.out.data, d, lsi_head_at(&a.out, head, i) + t, sum);
        }
    }
    lsi_free(p);
    return LS_OK;
}

ls_status lsi_ref_attention(ls_op_call *k)
{
    return LSI_EACH_FLOAT(attention, k);
}

/* Sums of one head: dk and dv of all keys, dq of one query. */
struct sums {
    double *dk, *dv, *dq;
};

/* Adds what query i gives: dq complete, dk and dv in part. */
LSI_INLINE void add_row(const lsi_attention *a, int64_t head, int64_t i,
                        const struct sums *sums, ls_dtype d)
{
    const struct row q = row_of(&a->q, head, i), g = row_of(&a->g, head, i);
    const int64_t seen = a->causal ? i + 1 : a->keys;
    const double lse =
        lsi_get_float(a->lse->data, (ls_dtype)a->lse->dtype, head * a->n + i);
    const double mean = dot(g, row_of(&a->out, head, i), a->d, d);

    for (int64_t j = 0; j < seen; j++) {
        const struct row key = row_of(&a->k, head, j), v = row_of(&a->v, head, j);
        const double scale = (double)a->scale;
        const double p = exp(dot(q, key, a->d, d) * scale - lse);
        const double ds = p * (dot(g, v, a->d, d) - mean) * scale;

        for (int64_t t = 0; t < a->d; t++) {
            sums->dq[t] += ds * get_in_row(key, t, d);
            sums->dk[j * a->d + t] += ds * get_in_row(q, t, d);
            sums->dv[j * a->d + t] += p * get_in_row(g, t, d);
        }
    }
}

/* Rounds the sums of `rows` rows from row i on and makes them 0 again. */
LSI_INLINE void flush(double *sums, const lsi_heads *to, int64_t head, int64_t i,
                      int64_t rows, int64_t size, ls_dtype d)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t t = 0; t < size; t++) {
            lsi_put_float(to->data, d, lsi_head_at(to, head, i + r) + t,
                          sums[r * size + t]);
            sums[r * size + t] = 0;
        }
    }
}

LSI_INLINE ls_status attention_grad(ls_op_call *k, ls_dtype d)
{
    const lsi_attention a = lsi_attention_of(k, true);
    const int64_t keys = a.keys * a.d;
    const size_t room = (size_t)(2 * keys + a.d);
    double *all = lsi_alloc(room, sizeof(double));
    struct sums sums;

    if (all == NULL) {
        return lsi_fail_memory(k->err, "attention_grad", room * sizeof(double));
    }
    sums = (struct sums){all, all + keys, all + 2 * keys};
    for (int64_t head = 0; head < a.heads; head++) {
        for (int64_t i = 0; i < a.n; i++) {
            add_row(&a, head, i, &sums, d);
            flush(sums.dq, &a.dq, head, i, 1, a.d, d);
        }
        flush(sums.dk, &a.dk, head, 0, a.keys, a.d, d);
        flush(sums.dv, &a.dv, head, 0, a.keys, a.d, d);
    }
    lsi_free(all);
    return LS_OK;
}

ls_status lsi_ref_attention_grad(ls_op_call *k)
{
    return LSI_EACH_FLOAT(attention_grad, k);
}
