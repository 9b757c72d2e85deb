/*
 * Reductions. For every element of the output the elements that fold into it are visited
 * in row-major order, and floats are summed as doubles: the result is the nearest one can
 * reasonably ask for and is what faster kernels are compared with.
 */
#include "kernel/ref/element_access.h"
#include "kernel/ref/ref.h"

/* A set of axes of the input, walked in row-major order: of those kept, or reduced. */
typedef struct walk {
    int ndim;
    int64_t count; /* positions; 1 if there is no axis */
    int64_t at;    /* offset of the position, in elements */
    int64_t dims[LS_MAX_DIMS];
    int64_t stride[LS_MAX_DIMS];
    int64_t index[LS_MAX_DIMS];
} walk;

static walk walk_over(const ls_tensor *x, uint32_t mask)
{
    int64_t stride = 1;
    walk w;

    memset(&w, 0, sizeof w);
    w.count = 1;
    for (int axis = x->ndim - 1; axis >= 0; axis--) { // [0] is the innermost
        if ((mask >> axis & 1) != 0) {
            w.dims[w.ndim] = x->dims[axis];
            w.stride[w.ndim] = stride;
            w.count *= x->dims[axis];
            w.ndim++;
        }
        stride *= x->dims[axis];
    }
    return w;
}

/* Goes on to the next position; after the last it stands at the first again. */
static inline void step_walk(walk *w)
{
    for (int i = 0; i < w->ndim; i++) {
        w->at += w->stride[i];
        if (++w->index[i] < w->dims[i]) {
            return;
        }
        w->at -= w->stride[i] * w->dims[i];
        w->index[i] = 0;
    }
}

typedef double (*float_fold)(double acc, double x);
typedef int64_t (*int_fold)(int64_t acc, int64_t x, bool is_signed);

static walk kept_of(const ls_op_call *k)
{
    const lsi_reduce_attrs *attrs = k->attrs;

    return walk_over(k->in[0], ~attrs->mask);
}

static walk reduced_of(const ls_op_call *k)
{
    const lsi_reduce_attrs *attrs = k->attrs;

    return walk_over(k->in[0], attrs->mask);
}

static inline double no_end(double acc, double n)
{
    (void)n;
    return acc;
}

static inline double by_count(double acc, double n)
{
    return acc / n; // NaN of nothing, as TensorFlow
}

LSI_INLINE ls_status fold_float_as(ls_op_call *k, ls_dtype dtype, double init,
                                   float_fold f, double (*end)(double acc, double n))
{
    walk kept = kept_of(k);
    walk inner = reduced_of(k);
    const void *x = k->in[0]->data;
    void *y = k->out[0]->data;

    for (int64_t i = 0, n = k->out[0]->count; i < n; i++, step_walk(&kept)) {
        double acc = init;

        for (int64_t j = 0; j < inner.count; j++, step_walk(&inner)) {
            acc = f(acc, lsi_get_float(x, dtype, kept.at + inner.at));
        }
        lsi_put_float(y, dtype, i, end(acc, (double)inner.count));
    }
    return LS_OK;
}

LSI_INLINE ls_status fold_float(ls_op_call *k, double init, float_fold f,
                                double (*end)(double acc, double n))
{
    switch (k->in[0]->dtype) {
#define EACH(D, T)                                                                       \
    case LS_##D:                                                                         \
        return fold_float_as(k, LS_##D, init, f, end);
        LSI_FLOATS(EACH)
#undef EACH
    default:
        return lsi_ref_refuse(k);
    }
}

/* What an integer fold starts from. */
typedef struct int_start {
    bool extreme; /* the lowest number of the dtype, or the highest */
    bool highest;
    int64_t value;
} int_start;

static int64_t start_of(int_start s, size_t size, bool is_signed)
{
    const unsigned bits = 8U * (unsigned)size;
    const uint64_t ones = UINT64_MAX >> (64U - bits);

    if (!s.extreme) {
        return s.value;
    }
    if (is_signed) {
        const int64_t top = (int64_t)(ones >> 1U);

        return s.highest ? top : -top - 1;
    }
    return s.highest ? (int64_t)ones : 0;
}

static inline int64_t divide(int64_t acc, int64_t n, bool is_signed)
{
    if (n == 0) {
        return acc;
    }
    return is_signed ? acc / n : (int64_t)((uint64_t)acc / (uint64_t)n);
}

LSI_INLINE ls_status fold_int_as(ls_op_call *k, ls_dtype dtype, int_start init,
                                 int_fold f, bool mean)
{
    const bool is_signed = lsi_is_signed(dtype);
    const int64_t first = start_of(init, ls_dtype_size(dtype), is_signed);
    walk kept = kept_of(k);
    walk inner = reduced_of(k);
    const void *x = k->in[0]->data;
    void *y = k->out[0]->data;

    for (int64_t i = 0, n = k->out[0]->count; i < n; i++, step_walk(&kept)) {
        int64_t acc = first;

        for (int64_t j = 0; j < inner.count; j++, step_walk(&inner)) {
            acc = f(acc, lsi_get_int(x, dtype, kept.at + inner.at), is_signed);
        }
        lsi_put_int(y, dtype, i, mean ? divide(acc, inner.count, is_signed) : acc);
    }
    return LS_OK;
}

LSI_INLINE ls_status fold_int(ls_op_call *k, int_start init, int_fold f, bool mean)
{
    switch (k->in[0]->dtype) {
#define EACH(D, T, is_signed)                                                            \
    case LS_##D:                                                                         \
        return fold_int_as(k, LS_##D, init, f, mean);
        LSI_INTS(EACH)
#undef EACH
    default:
        return lsi_ref_refuse(k);
    }
}

static bool floats(const ls_op_call *k)
{
    return lsi_dtype_is_float((ls_dtype)k->in[0]->dtype);
}

static inline double add_float(double acc, double x)
{
    return acc + x;
}

static inline int64_t add_int(int64_t acc, int64_t x, bool is_signed)
{
    (void)is_signed;
    return (int64_t)((uint64_t)acc + (uint64_t)x);
}

ls_status lsi_ref_sum(ls_op_call *k)
{
    return floats(k) ? fold_float(k, 0, add_float, no_end)
                     : fold_int(k, (int_start){false, false, 0}, add_int, false);
}

ls_status lsi_ref_mean(ls_op_call *k)
{
    return floats(k) ? fold_float(k, 0, add_float, by_count)
                     : fold_int(k, (int_start){false, false, 0}, add_int, true);
}

static inline double mul_float(double acc, double x)
{
    return acc * x;
}

static inline int64_t mul_int(int64_t acc, int64_t x, bool is_signed)
{
    (void)is_signed;
    return (int64_t)((uint64_t)acc * (uint64_t)x);
}

ls_status lsi_ref_prod(ls_op_call *k)
{
    return floats(k) ? fold_float(k, 1, mul_float, no_end)
                     : fold_int(k, (int_start){false, false, 1}, mul_int, false);
}

static inline double max_float(double acc, double x)
{
    return x > acc || isnan(x) ? x : acc;
}

static inline int64_t max_int(int64_t acc, int64_t x, bool is_signed)
{
    return lsi_less_int(acc, x, is_signed) ? x : acc;
}

ls_status lsi_ref_max(ls_op_call *k)
{
    return floats(k) ? fold_float(k, -INFINITY, max_float, no_end)
                     : fold_int(k, (int_start){true, false, 0}, max_int, false);
}

static inline double min_float(double acc, double x)
{
    return x < acc || isnan(x) ? x : acc;
}

static inline int64_t min_int(int64_t acc, int64_t x, bool is_signed)
{
    return lsi_less_int(x, acc, is_signed) ? x : acc;
}

ls_status lsi_ref_min(ls_op_call *k)
{
    return floats(k) ? fold_float(k, INFINITY, min_float, no_end)
                     : fold_int(k, (int_start){true, true, 0}, min_int, false);
}

/* True as soon as an element is `wanted`; the opposite if none is. */
static ls_status find_bool(ls_op_call *k, bool wanted)
{
    walk kept = kept_of(k);
    walk inner = reduced_of(k);
    uint8_t *y = k->out[0]->data;

    for (int64_t i = 0; i < k->out[0]->count; i++, step_walk(&kept)) {
        const uint8_t *x = (const uint8_t *)k->in[0]->data + kept.at;
        bool found = false;

        for (int64_t j = 0; j < inner.count; j++, step_walk(&inner)) {
            found |= (x[inner.at] != 0) == wanted;
        }
        y[i] = found == wanted;
    }
    return LS_OK;
}

ls_status lsi_ref_any(ls_op_call *k)
{
    return find_bool(k, true);
}

ls_status lsi_ref_all(ls_op_call *k)
{
    return find_bool(k, false);
}

/* Subtracts the maximum, unless it is infinite, so that exp() does not overflow. */
LSI_INLINE ls_status logsumexp(ls_op_call *k, ls_dtype dtype)
{
    walk kept = kept_of(k);
    walk inner = reduced_of(k);
    const void *x = k->in[0]->data;
    void *y = k->out[0]->data;

    for (int64_t i = 0, n = k->out[0]->count; i < n; i++, step_walk(&kept)) {
        double top = -INFINITY;
        double acc = 0;

        for (int64_t j = 0; j < inner.count; j++, step_walk(&inner)) {
            top = max_float(top, lsi_get_float(x, dtype, kept.at + inner.at));
        }
        top = isfinite(top) ? top : 0;
        for (int64_t j = 0; j < inner.count; j++, step_walk(&inner)) {
            acc += exp(lsi_get_float(x, dtype, kept.at + inner.at) - top);
        }
        lsi_put_float(y, dtype, i, top + log(acc));
    }
    return LS_OK;
}

ls_status lsi_ref_logsumexp(ls_op_call *k)
{
    return LSI_EACH_FLOAT(logsumexp, k);
}

static uint32_t axis_mask(const ls_op_call *k)
{
    const lsi_axis_attrs *attrs = k->attrs;

    return (uint32_t)1 << attrs->axis; // its range was checked by the shape rule
}

/*
 * The place of the first extreme along one axis. NaNs are passed over, as TensorFlow
 * does; where nothing counts the answer is 0.
 */
LSI_INLINE ls_status find_float(ls_op_call *k, ls_dtype dtype, bool largest)
{
    walk inner = walk_over(k->in[0], axis_mask(k));
    walk kept = walk_over(k->in[0], ~axis_mask(k));
    const void *x = k->in[0]->data;
    int64_t *y = k->out[0]->data;

    for (int64_t i = 0, n = k->out[0]->count; i < n; i++, step_walk(&kept)) {
        double best = -INFINITY;

        y[i] = 0;
        for (int64_t j = 0; j < inner.count; j++, step_walk(&inner)) {
            const double v = lsi_get_float(x, dtype, kept.at + inner.at);

            if ((largest ? v : -v) > best) {
                best = largest ? v : -v;
                y[i] = j;
            }
        }
    }
    return LS_OK;
}

LSI_INLINE ls_status find_int(ls_op_call *k, ls_dtype dtype, bool largest)
{
    const bool is_signed = lsi_is_signed(dtype);
    walk inner = walk_over(k->in[0], axis_mask(k));
    walk kept = walk_over(k->in[0], ~axis_mask(k));
    const void *x = k->in[0]->data;
    int64_t *y = k->out[0]->data;

    for (int64_t i = 0, n = k->out[0]->count; i < n; i++, step_walk(&kept)) {
        int64_t best = lsi_get_int(x, dtype, kept.at);

        y[i] = 0;
        for (int64_t j = 0; j < inner.count; j++, step_walk(&inner)) {
            const int64_t v = lsi_get_int(x, dtype, kept.at + inner.at);

            if (largest ? lsi_less_int(best, v, is_signed)
                        : lsi_less_int(v, best, is_signed)) {
                best = v;
                y[i] = j;
            }
        }
    }
    return LS_OK;
}

LSI_INLINE ls_status find_extreme(ls_op_call *k, bool largest)
{
    switch (k->in[0]->dtype) {
#define EACH(D, T)                                                                       \
    case LS_##D:                                                                         \
        return find_float(k, LS_##D, largest);
        LSI_FLOATS(EACH)
#undef EACH
#define EACH(D, T, is_signed)                                                            \
    case LS_##D:                                                                         \
        return find_int(k, LS_##D, largest);
        LSI_INTS(EACH)
#undef EACH
    default:
        return lsi_ref_refuse(k);
    }
}

ls_status lsi_ref_argmax(ls_op_call *k)
{
    return find_extreme(k, true);
}

ls_status lsi_ref_argmin(ls_op_call *k)
{
    return find_extreme(k, false);
}
