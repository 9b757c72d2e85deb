/*
 * Softmax over the last axis, its logarithm and their gradients. A row is read three
 * times while it lies in the cache: its largest element, the exponentials and their sum,
 * the division.
 */
#include "kernel/simd/softmax.h"

static void softmax_of_row(const struct logit_rows *s, int64_t row)
{
    softmax_row(s->y + row * s->n, s->x + row * s->n, s->n);
}

ls_status LSI_SIMD(softmax)(ls_op_call *k)
{
    const int64_t n = last_axis(k->out[0]);
    struct logit_rows s = {
        .fn = softmax_of_row, .y = lsi_out_f32(k, 0), .x = lsi_in_f32(k, 0), .n = n};

    if (!lsi_all_f32(k) || n == 0) {
        return LS_UNIMPLEMENTED;
    }
    s.rows = k->out[0]->count / n;
    return run_logit_rows(k, &s);
}

static void log_softmax_of_row(const struct logit_rows *s, int64_t row)
{
    const float *x = s->x + row * s->n;
    float *y = s->y + row * s->n;
    const float top = top_of(x, s->n);
    const float below = logf(exp_row(NULL, x, s->n, top));

    for (int64_t i = 0; i < s->n; i++) {
        y[i] = (x[i] - top) - below;
    }
}

ls_status LSI_SIMD(log_softmax)(ls_op_call *k)
{
    const int64_t n = last_axis(k->out[0]);
    struct logit_rows s = {
        .fn = log_softmax_of_row, .y = lsi_out_f32(k, 0), .x = lsi_in_f32(k, 0), .n = n};

    if (!lsi_all_f32(k) || n == 0) {
        return LS_UNIMPLEMENTED;
    }
    s.rows = k->out[0]->count / n;
    return run_logit_rows(k, &s);
}

LSI_INLINE float dot_row(const float *a, const float *b, int64_t n)
{
    struct long_sum total = {0};
    int64_t i = 0;

    for (; i + VW <= n; i += VW) {
        long_add(&total, vload(a + i) * vload(b + i));
    }
    if (i < n) {
        long_add(&total, vtail(a + i, n - i) * vtail(b + i, n - i));
    }
    return long_total(&total);
}

/* dx = (g - sum(g y)) y; x is g and x2 is y. */
static void softmax_grad_of_row(const struct logit_rows *s, int64_t row)
{
    const float *g = s->x + row * s->n, *y = s->x2 + row * s->n;
    float *dx = s->y + row * s->n;
    const float dot = dot_row(g, y, s->n);

    for (int64_t i = 0; i < s->n; i++) {
        dx[i] = (g[i] - dot) * y[i];
    }
}

/* dx = g - exp(y) sum(g) */
static void log_softmax_grad_of_row(const struct logit_rows *s, int64_t row)
{
    const float *g = s->x + row * s->n, *y = s->x2 + row * s->n;
    float *dx = s->y + row * s->n;
    const float sum = join_row(LSI_JOIN_SUM, g, s->n);
    int64_t i = 0;

    for (; i + VW <= s->n; i += VW) {
        vstore(dx + i, vload(g + i) - vexp(vload(y + i)) * sum);
    }
    if (i < s->n) {
        const int64_t rest = s->n - i;

        vtail_store(dx + i, vtail(g + i, rest) - vexp(vtail(y + i, rest)) * sum, rest);
    }
}

static ls_status run_grad(ls_op_call *k, void (*fn)(const struct logit_rows *, int64_t))
{
    const int64_t n = last_axis(k->out[0]), count = k->out[0]->count;
    struct logit_rows s = {.fn = fn,
                           .y = lsi_out_f32(k, 0),
                           .x = lsi_in_f32(k, 0),
                           .x2 = lsi_in_f32(k, 1),
                           .n = n};

    if (!lsi_all_f32(k) || n == 0 || k->in[0]->count != count ||
        k->in[1]->count != count) {
        return LS_UNIMPLEMENTED;
    }
    s.rows = count / n;
    return run_logit_rows(k, &s);
}

ls_status LSI_SIMD(softmax_grad)(ls_op_call *k)
{
    return run_grad(k, softmax_grad_of_row);
}

ls_status LSI_SIMD(log_softmax_grad)(ls_op_call *k)
{
    return run_grad(k, log_softmax_grad_of_row);
}
