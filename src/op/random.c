/* Random numbers: the place in the runtime's stream is taken here, once a call. */
#include "op/op.h"

#include <math.h>

#include "kernel/ref/philox.h"
#include "kernel/ref/ref.h"

/* Notes seed and position for `count` elements, four or two a block. */
static void take(ls_context *c, lsi_random_attrs *attrs, int64_t count, int per_block)
{
    const int64_t blocks = count / per_block + (count % per_block != 0);

    attrs->seed = lsi_runtime_seed(c->runtime);
    attrs->position = lsi_runtime_take_random(c->runtime, (uint64_t)blocks);
}

/* Checks the shape asked for; then the result is of that shape and dtype. */
static ls_status drawn(ls_op_call *k)
{
    const lsi_random_attrs *attrs = k->attrs;
    char text[128];

    if (attrs->shape.ndim < 0 || attrs->shape.ndim > LS_MAX_DIMS ||
        ls_shape_count(&attrs->shape) < 0) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "%s is no shape: up to %d sizes of 0 or more",
                          ls_shape_text(&attrs->shape, text, sizeof text), LS_MAX_DIMS);
    }
    return ls_op_set_output(k, 0, attrs->dtype, &attrs->shape);
}

static ls_status check_float(ls_op_call *k, ls_dtype dtype)
{
    if (!lsi_dtype_is_float(dtype)) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT, "gives floating dtypes, not %s",
                          ls_dtype_name(dtype));
    }
    return LS_OK;
}

static ls_tensor *draw(ls_context *c, const ls_op *op, ls_dtype dtype,
                       const ls_shape *shape, double a, double b)
{
    lsi_random_attrs attrs;

    if (lsi_failed(c)) {
        return NULL;
    }
    memset(&attrs, 0, sizeof attrs);
    attrs.dtype = dtype;
    attrs.a = a;
    attrs.b = b;
    attrs.shape.ndim = shape->ndim;
    for (int i = 0; i < shape->ndim && i < LS_MAX_DIMS; i++) {
        attrs.shape.dims[i] = shape->dims[i];
    }
    take(c, &attrs, LSI_MAX(ls_shape_count(shape), (int64_t)0),
         lsi_random_per_block(dtype));
    return ls_op_apply1(c, op, NULL, 0, &attrs, sizeof attrs);
}

/* Bounds of integers: whole, in the dtype, the upper one of them not reached. */
static bool int_bounds_fit(const lsi_random_attrs *attrs)
{
    const int bits = 8 * (int)ls_dtype_size(attrs->dtype);
    const bool natural = attrs->dtype == LS_U8 || attrs->dtype == LS_U16 ||
                         attrs->dtype == LS_U32 || attrs->dtype == LS_U64;
    const double lowest = natural ? 0 : -ldexp(1, bits - 1);
    const double beyond = ldexp(1, natural ? bits : bits - 1);

    return attrs->a >= lowest && attrs->b <= beyond && attrs->a < attrs->b &&
           floor(attrs->a) == attrs->a && floor(attrs->b) == attrs->b;
}

static ls_status random_uniform_shape(ls_op_call *k)
{
    const lsi_random_attrs *attrs = k->attrs;

    if (!lsi_dtype_is_number(attrs->dtype)) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT, "gives numbers, not %s",
                          ls_dtype_name(attrs->dtype));
    }
    if (lsi_dtype_is_int(attrs->dtype)) {
        if (!int_bounds_fit(attrs)) {
            return ls_op_fail(k, LS_INVALID_ARGUMENT,
                              "[%g, %g) is no range of %s: both must be whole numbers of "
                              "it, the first below the second",
                              attrs->a, attrs->b, ls_dtype_name(attrs->dtype));
        }
    } else if (!isfinite(attrs->b - attrs->a) || attrs->a > attrs->b) {
        return ls_op_fail(
            k, LS_INVALID_ARGUMENT,
            "[%g, %g) is no range: both must be finite, the first not above "
            "the second",
            attrs->a, attrs->b);
    }
    return drawn(k);
}

LSI_ROW(random_uniform, 0, 0, 1, random_uniform_shape, lsi_ref_random_uniform, NULL);

ls_tensor *(ls_random_uniform)(ls_context *c, ls_dtype dtype, ls_shape shape, double lo,
                               double hi)
{
    return draw(c, &lsi_op_random_uniform, dtype, &shape, lo, hi);
}

static ls_status random_normal_shape(ls_op_call *k)
{
    const lsi_random_attrs *attrs = k->attrs;
    const ls_status st = check_float(k, attrs->dtype);

    if (st != LS_OK) {
        return st;
    }
    if (!isfinite(attrs->a) || !isfinite(attrs->b) || attrs->b < 0) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "mean %g and stddev %g must be finite, the latter 0 or more",
                          attrs->a, attrs->b);
    }
    return drawn(k);
}

LSI_ROW(random_normal, 0, 0, 1, random_normal_shape, lsi_ref_random_normal, NULL);

ls_tensor *(ls_random_normal)(ls_context *c, ls_dtype dtype, ls_shape shape, double mean,
                              double stddev)
{
    return draw(c, &lsi_op_random_normal, dtype, &shape, mean, stddev);
}

LSI_ROW(random_truncated_normal, 0, 0, 1, random_normal_shape,
        lsi_ref_random_truncated_normal, NULL);

ls_tensor *(ls_random_truncated_normal)(ls_context *c, ls_dtype dtype, ls_shape shape,
                                        double mean, double stddev)
{
    return draw(c, &lsi_op_random_truncated_normal, dtype, &shape, mean, stddev);
}

static ls_status dropout_shape(ls_op_call *k)
{
    const lsi_random_attrs *attrs = k->attrs;
    const ls_shape shape = lsi_shape(k->in[0]);
    const ls_status st = lsi_shape_same_float(k);

    if (st != LS_OK) {
        return st;
    }
    if (!(attrs->a >= 0 && attrs->a < 1)) { // a NaN too
        return ls_op_fail(k, LS_INVALID_ARGUMENT, "the rate %g must lie in [0, 1)",
                          attrs->a);
    }
    return ls_op_set_output(k, 1, LS_U8, &shape);
}

/* What was dropped gets nothing, not even a NaN. */
static void dropout_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                             ls_tensor **gin)
{
    const lsi_random_attrs *attrs = n->attrs;
    const ls_dtype dtype = (ls_dtype)n->in[0]->dtype;
    ls_tensor *kept = NULL;

    if (gout[0] == NULL) { // only the mask was used, which nothing flows through
        return;
    }
    kept = ls_mul(c, gout[0], lsi_scalar(c, dtype, 1.0 / (1.0 - attrs->a)));
    gin[0] = ls_where(c, ls_cast(c, n->out[1], LS_BOOL), kept, lsi_scalar(c, dtype, 0));
}

LSI_ROW(dropout, 1, 1, 2, dropout_shape, lsi_ref_dropout, dropout_gradient);

ls_tensor *(ls_dropout)(ls_context *c, ls_tensor *x, double rate)
{
    lsi_random_attrs attrs;

    if (lsi_failed(c)) {
        return NULL;
    }
    if (rate == 0) {
        return ls_identity(c, x);
    }
    memset(&attrs, 0, sizeof attrs);
    attrs.a = rate;
    if (x != NULL) {
        take(c, &attrs, x->count, lsi_random_per_block(LS_F32));
    }
    return lsi_op1(c, &lsi_op_dropout, x, &attrs, sizeof attrs);
}
