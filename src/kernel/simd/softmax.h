/*
 * What softmax and the losses made of it share: rows of logits cut among the threads of a
 * team, the largest element of a row, its exponentials and their sum.
 */
#ifndef LSI_SIMD_SOFTMAX_H
#define LSI_SIMD_SOFTMAX_H
#include "kernel/simd/math.h"

/* Rows to share among threads: each of them is computed alone. */
struct logit_rows {
    void (*fn)(const struct logit_rows *s, int64_t row);
    float *y, *y2;
    const float *x, *x2;
    const ls_tensor *labels;
    int64_t n; /* elements of a row */
    int64_t rows;
};

static inline void run_logit_rows_part(void *arg, int part, int parts)
{
    const struct logit_rows *s = arg;
    int64_t begin = 0, end = 0;

    lsi_team_share(s->rows, 1, part, parts, &begin, &end);
    for (int64_t row = begin; row < end; row++) {
        s->fn(s, row);
    }
}

static inline ls_status run_logit_rows(const ls_op_call *k, struct logit_rows *s)
{
    lsi_spread(k, lsi_parts(k, s->rows * (s->n + 16)), run_logit_rows_part, s);
    return LS_OK;
}

/* The size of the last axis; 0: there is none, or nothing in it. */
static inline int64_t last_axis(const ls_tensor *t)
{
    return t->ndim > 0 ? t->dims[t->ndim - 1] : 0;
}

/*
 * The largest element, or anything if there is a NaN: that makes the whole row NaN when
 * the exponentials are summed.
 */
LSI_INLINE float top_of(const float *x, int64_t n)
{
    vf top = vsplat(-INFINITY);
    int64_t i = 0;

    for (; i + VW <= n; i += VW) {
        top = vmax(vload(x + i), top);
    }
    if (i < n) {
        top = vmax(vfirst(vtail(x + i, n - i), n - i, -INFINITY), top);
    }
    return vfold(LSI_JOIN_MAX, top);
}

/* e[i] = exp(x[i] - top), also where e is NULL; returns their sum. */
LSI_INLINE float exp_row(float *e, const float *x, int64_t n, float top)
{
    struct long_sum total = {0};
    int64_t i = 0;

    for (; i + VW <= n; i += VW) {
        const vf v = vexp_negative(vload(x + i) - top);

        long_add(&total, v);
        if (e != NULL) {
            vstore(e + i, v);
        }
    }
    if (i < n) {
        const vf v = vfirst(vexp_negative(vtail(x + i, n - i) - top), n - i, 0.0F);

        long_add(&total, v);
        if (e != NULL) {
            vtail_store(e + i, v, n - i);
        }
    }
    return long_total(&total);
}

/* y = x * factor */
LSI_INLINE void scale_row(float *y, const float *x, int64_t n, float factor)
{
    int64_t i = 0;

    for (; i + VW <= n; i += VW) {
        vstore(y + i, vload(x + i) * factor);
    }
    if (i < n) {
        vtail_store(y + i, vtail(x + i, n - i) * factor, n - i);
    }
}

/* The maximum of a row and its sum of exponentials: log(sum) + top is its logsumexp. */
struct softmax_scale {
    float top, sum;
};

/* Loads up to `n` floats at `x`; the other lanes hold -infinity. */
LSI_INLINE vf load_logits(const float *x, int64_t n)
{
    return n >= VW ? vload(x) : vfirst(vtail(x, n), n, -INFINITY);
}

LSI_INLINE void store_some(float *y, vf v, int64_t n)
{
    if (n >= VW) {
        vstore(y, v);
    } else {
        vtail_store(y, v, n);
    }
}

/* y = softmax(x) for rows of at most two vectors, which stay in registers. */
LSI_INLINE struct softmax_scale softmax_short(float *y, const float *x, int64_t n)
{
    const bool two = n > VW;
    const vf a = load_logits(x, n);
    const vf b = two ? load_logits(x + VW, n - VW) : vsplat(-INFINITY);
    const float top = vfold(LSI_JOIN_MAX, vmax(a, b));
    const vf ea = vexp_negative(a - top);
    const vf eb = two ? vexp_negative(b - top) : vzero();
    const float sum = vfold(LSI_JOIN_SUM, ea + eb);

    store_some(y, ea * (1.0F / sum), n);
    if (two) {
        store_some(y + VW, eb * (1.0F / sum), n - VW);
    }
    return (struct softmax_scale){top, sum};
}

/* y = softmax(x) */
LSI_INLINE struct softmax_scale softmax_row(float *y, const float *x, int64_t n)
{
    struct softmax_scale s;

    if (n <= (int64_t)2 * VW) {
        return softmax_short(y, x, n);
    }
    s.top = top_of(x, n);
    s.sum = exp_row(y, x, n, s.top);
    scale_row(y, y, n, 1.0F / s.sum);
    return s;
}
#endif
