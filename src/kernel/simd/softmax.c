/*
 * Softmax over the last axis, its logarithm, their gradients, and the losses made of
 * them. A row is read three times while it lies in the cache: its largest element, the
 * exponentials and their sum, the division.
 */
#include "kernel/simd/math.h"

/* Rows to share among threads: each of them is computed alone. */
struct rows {
    void (*fn)(const struct rows *s, int64_t row);
    float *y, *y2;
    const float *x, *x2;
    const ls_tensor *labels;
    int64_t n; /* elements of a row */
    int64_t rows;
};

static void run_part(void *arg, int part, int parts)
{
    const struct rows *s = arg;
    int64_t begin = 0, end = 0;

    lsi_team_share(s->rows, 1, part, parts, &begin, &end);
    for (int64_t row = begin; row < end; row++) {
        s->fn(s, row);
    }
}

static ls_status run(const ls_op_call *k, struct rows *s)
{
    lsi_spread(k, lsi_parts(k, s->rows * (s->n + 16)), run_part, s);
    return LS_OK;
}

/* The size of the last axis; 0: there is none, or nothing in it. */
static int64_t last_axis(const ls_tensor *t)
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

/* What a row's softmax leaves behind: log(sum) + top is its logsumexp. */
struct scale {
    float top, sum;
};

/* The vector at `x`, of which only `n` lanes are there: the others hold -infinity. */
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
LSI_INLINE struct scale softmax_short(float *y, const float *x, int64_t n)
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
    return (struct scale){top, sum};
}

/* y = softmax(x) */
LSI_INLINE struct scale softmax_row(float *y, const float *x, int64_t n)
{
    struct scale s;

    if (n <= (int64_t)2 * VW) {
        return softmax_short(y, x, n);
    }
    s.top = top_of(x, n);
    s.sum = exp_row(y, x, n, s.top);
    scale_row(y, y, n, 1.0F / s.sum);
    return s;
}

static void softmax_of_row(const struct rows *s, int64_t row)
{
    softmax_row(s->y + row * s->n, s->x + row * s->n, s->n);
}

ls_status LSI_SIMD(softmax)(ls_op_call *k)
{
    const int64_t n = last_axis(k->out[0]);
    struct rows s = {
        .fn = softmax_of_row, .y = lsi_out_f32(k, 0), .x = lsi_in_f32(k, 0), .n = n};

    if (!lsi_all_f32(k) || n == 0) {
        return LS_UNIMPLEMENTED;
    }
    s.rows = k->out[0]->count / n;
    return run(k, &s);
}

static void log_softmax_of_row(const struct rows *s, int64_t row)
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
    struct rows s = {
        .fn = log_softmax_of_row, .y = lsi_out_f32(k, 0), .x = lsi_in_f32(k, 0), .n = n};

    if (!lsi_all_f32(k) || n == 0) {
        return LS_UNIMPLEMENTED;
    }
    s.rows = k->out[0]->count / n;
    return run(k, &s);
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
static void softmax_grad_of_row(const struct rows *s, int64_t row)
{
    const float *g = s->x + row * s->n, *y = s->x2 + row * s->n;
    float *dx = s->y + row * s->n;
    const float dot = dot_row(g, y, s->n);

    for (int64_t i = 0; i < s->n; i++) {
        dx[i] = (g[i] - dot) * y[i];
    }
}

/* dx = g - exp(y) sum(g) */
static void log_softmax_grad_of_row(const struct rows *s, int64_t row)
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

static ls_status run_grad(ls_op_call *k, void (*fn)(const struct rows *, int64_t))
{
    const int64_t n = last_axis(k->out[0]), count = k->out[0]->count;
    struct rows s = {.fn = fn,
                     .y = lsi_out_f32(k, 0),
                     .x = lsi_in_f32(k, 0),
                     .x2 = lsi_in_f32(k, 1),
                     .n = n};

    if (!lsi_all_f32(k) || n == 0 || k->in[0]->count != count ||
        k->in[1]->count != count) {
        return LS_UNIMPLEMENTED;
    }
    s.rows = count / n;
    return run(k, &s);
}

ls_status LSI_SIMD(softmax_grad)(ls_op_call *k)
{
    return run_grad(k, softmax_grad_of_row);
}

ls_status LSI_SIMD(log_softmax_grad)(ls_op_call *k)
{
    return run_grad(k, log_softmax_grad_of_row);
}

static int64_t label_at(const ls_tensor *labels, int64_t i)
{
    return labels->dtype == LS_I64 ? ((const int64_t *)labels->data)[i]
                                   : ((const int32_t *)labels->data)[i];
}

static ls_status check_labels(ls_op_call *k, const ls_tensor *labels, int64_t classes)
{
    for (int64_t i = 0; i < labels->count; i++) {
        const int64_t label = label_at(labels, i);

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
static void sparse_loss_of_row(const struct rows *s, int64_t row)
{
    const float *x = s->x + row * s->n;
    const struct scale r = softmax_row(s->y2 + row * s->n, x, s->n);

    s->y[row] = logf(r.sum) - (x[label_at(s->labels, row)] - r.top);
}

ls_status LSI_SIMD(sparse_softmax_cross_entropy)(ls_op_call *k)
{
    const ls_tensor *logits = k->in[0], *labels = k->in[1];
    const int64_t n = last_axis(logits);
    struct rows s = {.fn = sparse_loss_of_row,
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
    return st == LS_OK ? run(k, &s) : st;
}

/* l * v, and 0 for a class that cannot be meant, whatever its logit. */
LSI_INLINE vf cost(vf l, vf v)
{
    return (vf)((vi)(l * v) & (l != 0.0F));
}

/* y: the loss sum(labels (log(sum exp) - x)), y2: softmax - labels */
static void loss_of_row(const struct rows *s, int64_t row)
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
    struct rows s = {.fn = loss_of_row,
                     .y = lsi_out_f32(k, 0),
                     .y2 = lsi_out_f32(k, 1),
                     .x = logits->data,
                     .x2 = labels->data,
                     .n = n};

    if (n == 0 || !lsi_all_f32(k) || labels->count != logits->count) {
        return LS_UNIMPLEMENTED;
    }
    s.rows = logits->count / n;
    return run(k, &s);
}

/* g (p - onehot(label)); x is g and x2 is p. */
static void sparse_grad_of_row(const struct rows *s, int64_t row)
{
    const float *p = s->x2 + row * s->n;
    float *dx = s->y + row * s->n;
    const float g = s->x[row];
    const int64_t label = label_at(s->labels, row);

    scale_row(dx, p, s->n, g);
    if (label >= 0 && label < s->n) { // it was checked when p was made
        dx[label] = g * (p[label] - 1.0F);
    }
}

ls_status LSI_SIMD(softmax_cross_entropy_grad)(ls_op_call *k)
{
    const ls_tensor *g = k->in[0], *p = k->in[1], *labels = k->in[2];
    const int64_t n = last_axis(p);
    struct rows s = {.fn = sparse_grad_of_row,
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
    return run(k, &s);
}
