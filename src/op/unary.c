/* Elementwise operations on one operand. */
#include "op/op.h"

#include <math.h>

#include "kernel/ref/ref.h"

/* The row of an operation without attributes, and its public function. */
#define ROW(name, shape, gradient)                                                       \
    LSI_ROW(name, 1, 1, 1, shape, lsi_ref_##name, gradient);                             \
                                                                                         \
    ls_tensor *(ls_##name)(ls_context * c, ls_tensor * x)                                \
    {                                                                                    \
        return lsi_op1(c, &lsi_op_##name, x, NULL, 0);                                   \
    }

static ls_tensor *scaled(ls_context *c, ls_tensor *t, double factor)
{
    return t == NULL ? NULL : ls_mul(c, t, lsi_scalar(c, (ls_dtype)t->dtype, factor));
}

static ls_tensor *shifted(ls_context *c, ls_tensor *t, double term)
{
    return t == NULL ? NULL : ls_add(c, t, lsi_scalar(c, (ls_dtype)t->dtype, term));
}

/* Shape rule of the *_grad rows: two operands that are alike. */
static ls_status alike(ls_op_call *k)
{
    const ls_tensor *g = k->in[0];
    const ls_tensor *v = k->in[1];
    const ls_shape sg = lsi_shape(g);
    const ls_shape sv = lsi_shape(v);

    if (g->dtype != v->dtype || !ls_shape_equal(&sg, &sv)) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "the gradient %s and the value %s must be alike",
                          lsi_text_of(g).s, lsi_text_of(v).s);
    }
    return LS_OK;
}

static ls_status alike_float(ls_op_call *k)
{
    const ls_status st = alike(k);

    return st != LS_OK ? st : lsi_shape_same_float(k);
}

static ls_status alike_number(ls_op_call *k)
{
    const ls_status st = alike(k);

    return st != LS_OK ? st : lsi_shape_same_number(k);
}

static void neg_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                         ls_tensor **gin)
{
    (void)n;
    gin[0] = ls_neg(c, gout[0]);
}

ROW(neg, lsi_shape_same_number, neg_gradient)

static void abs_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                         ls_tensor **gin)
{
    gin[0] = ls_mul(c, gout[0], ls_sign(c, n->in[0]));
}

ROW(abs, lsi_shape_same_number, abs_gradient)

/*
 * The derivative is 0 except at 0: as in TensorFlow, the gradient is zeros, not missing.
 */
static void sign_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                          ls_tensor **gin)
{
    (void)gout;
    gin[0] = lsi_zeros_like(c, n->in[0]);
}

ROW(sign, lsi_shape_same_number, sign_gradient)

static void exp_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                         ls_tensor **gin)
{
    gin[0] = ls_mul(c, gout[0], n->out[0]);
}

ROW(exp, lsi_shape_same_float, exp_gradient)

static void log_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                         ls_tensor **gin)
{
    gin[0] = ls_div(c, gout[0], n->in[0]);
}

ROW(log, lsi_shape_same_float, log_gradient)

static void log1p_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                           ls_tensor **gin)
{
    gin[0] = ls_div(c, gout[0], shifted(c, n->in[0], 1));
}

ROW(log1p, lsi_shape_same_float, log1p_gradient)

static void sqrt_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                          ls_tensor **gin)
{
    gin[0] = ls_div(c, scaled(c, gout[0], 0.5), n->out[0]);
}

ROW(sqrt, lsi_shape_same_float, sqrt_gradient)

static void rsqrt_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                           ls_tensor **gin)
{
    ls_tensor *y = n->out[0];

    gin[0] = ls_mul(c, scaled(c, gout[0], -0.5), ls_mul(c, ls_square(c, y), y));
}

ROW(rsqrt, lsi_shape_same_float, rsqrt_gradient)

static void square_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                            ls_tensor **gin)
{
    gin[0] = ls_mul(c, gout[0], scaled(c, n->in[0], 2));
}

ROW(square, lsi_shape_same_number, square_gradient)

static void reciprocal_gradient(ls_context *c, const ls_op_node *n,
                                ls_tensor *const *gout, ls_tensor **gin)
{
    gin[0] = ls_mul(c, ls_neg(c, gout[0]), ls_square(c, n->out[0]));
}

ROW(reciprocal, lsi_shape_same_float, reciprocal_gradient)

static void erf_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                         ls_tensor **gin)
{
    const double two_over_sqrt_pi = 1.12837916709551257390;
    ls_tensor *bell = ls_exp(c, ls_neg(c, ls_square(c, n->in[0])));

    gin[0] = ls_mul(c, gout[0], scaled(c, bell, two_over_sqrt_pi));
}

ROW(erf, lsi_shape_same_float, erf_gradient)

static void softplus_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                              ls_tensor **gin)
{
    gin[0] = ls_mul(c, gout[0], ls_sigmoid(c, n->in[0]));
}

ROW(softplus, lsi_shape_same_float, softplus_gradient)

/*
 * relu, leaky_relu: straight lines, so that the gradient's own gradient is the same
 * operation again and the operand it tests gets none.
 */
static void relu_grad_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                               ls_tensor **gin)
{
    gin[0] = lsi_op2(c, &lsi_op_relu_grad, gout[0], n->in[1], NULL, 0);
}

LSI_ROW(relu_grad, 2, 2, 1, alike_number, lsi_ref_relu_grad, relu_grad_gradient);

static void relu_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                          ls_tensor **gin)
{
    gin[0] = lsi_op2(c, &lsi_op_relu_grad, gout[0], n->out[0], NULL, 0);
}

ROW(relu, lsi_shape_same_number, relu_gradient)

static void leaky_relu_grad_gradient(ls_context *c, const ls_op_node *n,
                                     ls_tensor *const *gout, ls_tensor **gin)
{
    gin[0] = lsi_op2(c, &lsi_op_leaky_relu_grad, gout[0], n->in[1], n->attrs,
                     sizeof(lsi_scalars_attrs));
}

LSI_ROW(leaky_relu_grad, 2, 2, 1, alike_float, lsi_ref_leaky_relu_grad,
        leaky_relu_grad_gradient);

static void leaky_relu_gradient(ls_context *c, const ls_op_node *n,
                                ls_tensor *const *gout, ls_tensor **gin)
{
    gin[0] = lsi_op2(c, &lsi_op_leaky_relu_grad, gout[0], n->in[0], n->attrs,
                     sizeof(lsi_scalars_attrs));
}

LSI_ROW(leaky_relu, 1, 1, 1, lsi_shape_same_float, lsi_ref_leaky_relu,
        leaky_relu_gradient);

ls_tensor *(ls_leaky_relu)(ls_context *c, ls_tensor *x, float slope)
{
    lsi_scalars_attrs attrs;

    memset(&attrs, 0, sizeof attrs);
    attrs.a = (double)slope;
    return lsi_op1(c, &lsi_op_leaky_relu, x, &attrs, sizeof attrs);
}

/* d/dg is the operation again; d/dy is g where y is on the curved side. */
static void elu_grad_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                              ls_tensor **gin)
{
    ls_tensor *y = n->in[1];

    gin[0] = lsi_op2(c, &lsi_op_elu_grad, gout[0], y, NULL, 0);
    if (ls_op_needs(n, 1)) {
        ls_tensor *zero = lsi_scalar(c, (ls_dtype)y->dtype, 0);

        gin[1] = ls_where(c, ls_less(c, y, zero), ls_mul(c, gout[0], n->in[0]), zero);
    }
}

LSI_ROW(elu_grad, 2, 2, 1, alike_float, lsi_ref_elu_grad, elu_grad_gradient);

static void elu_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                         ls_tensor **gin)
{
    gin[0] = lsi_op2(c, &lsi_op_elu_grad, gout[0], n->out[0], NULL, 0);
}

ROW(elu, lsi_shape_same_float, elu_gradient)

/* g y (1 - y): d/dy is g (1 - 2y). */
static void sigmoid_grad_gradient(ls_context *c, const ls_op_node *n,
                                  ls_tensor *const *gout, ls_tensor **gin)
{
    gin[0] = lsi_op2(c, &lsi_op_sigmoid_grad, gout[0], n->in[1], NULL, 0);
    if (ls_op_needs(n, 1)) {
        ls_tensor *slope = shifted(c, scaled(c, n->in[1], -2), 1);

        gin[1] = ls_mul(c, ls_mul(c, gout[0], n->in[0]), slope);
    }
}

LSI_ROW(sigmoid_grad, 2, 2, 1, alike_float, lsi_ref_sigmoid_grad, sigmoid_grad_gradient);

static void sigmoid_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                             ls_tensor **gin)
{
    gin[0] = lsi_op2(c, &lsi_op_sigmoid_grad, gout[0], n->out[0], NULL, 0);
}

ROW(sigmoid, lsi_shape_same_float, sigmoid_gradient)

/* g (1 - y*y): d/dy is -2 g y. */
static void tanh_grad_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                               ls_tensor **gin)
{
    gin[0] = lsi_op2(c, &lsi_op_tanh_grad, gout[0], n->in[1], NULL, 0);
    if (ls_op_needs(n, 1)) {
        gin[1] = ls_mul(c, ls_mul(c, gout[0], n->in[0]), scaled(c, n->in[1], -2));
    }
}

LSI_ROW(tanh_grad, 2, 2, 1, alike_float, lsi_ref_tanh_grad, tanh_grad_gradient);

static void tanh_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                          ls_tensor **gin)
{
    gin[0] = lsi_op2(c, &lsi_op_tanh_grad, gout[0], n->out[0], NULL, 0);
}

ROW(tanh, lsi_shape_same_float, tanh_gradient)

/* The second derivative of the exact gelu: phi(x) (2 - x*x), phi the normal density. */
static ls_tensor *gelu_exact_curve(ls_context *c, ls_tensor *x)
{
    const double inv_sqrt_2pi = 0.39894228040143267794;
    ls_tensor *square = ls_square(c, x);
    ls_tensor *phi = scaled(c, ls_exp(c, scaled(c, square, -0.5)), inv_sqrt_2pi);

    return ls_mul(c, phi, shifted(c, scaled(c, square, -1), 2));
}

/*
 * That of x/2 (1 + t), t = tanh(u), u = s (x + a x^3):
 * (1 - t*t) (u' + x u''/2 - x t u'*u'), where u' = s (1 + 3 a x*x) and u'' = 6 s a x.
 */
static ls_tensor *gelu_tanh_curve(ls_context *c, ls_tensor *x)
{
    const double s = 0.79788456080286535588;
    const double a = 0.044715;
    ls_tensor *square = ls_square(c, x);
    ls_tensor *u = ls_mul(c, x, shifted(c, scaled(c, square, s * a), s));
    ls_tensor *t = ls_tanh(c, u);
    ls_tensor *u1 = shifted(c, scaled(c, square, 3 * s * a), s);
    ls_tensor *bend = ls_add(c, u1, scaled(c, square, 3 * s * a)); // u' + x u''/2
    ls_tensor *pull = ls_mul(c, ls_mul(c, x, t), ls_square(c, u1));

    return ls_mul(c, shifted(c, scaled(c, ls_square(c, t), -1), 1),
                  ls_sub(c, bend, pull));
}

static void gelu_grad_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                               ls_tensor **gin)
{
    const lsi_axis_attrs *attrs = n->attrs;

    gin[0] =
        lsi_op2(c, &lsi_op_gelu_grad, gout[0], n->in[1], attrs, sizeof(lsi_axis_attrs));
    if (ls_op_needs(n, 1)) {
        ls_tensor *curve = attrs->axis != 0 ? gelu_tanh_curve(c, n->in[1])
                                            : gelu_exact_curve(c, n->in[1]);

        gin[1] = ls_mul(c, ls_mul(c, gout[0], n->in[0]), curve);
    }
}

LSI_ROW(gelu_grad, 2, 2, 1, alike_float, lsi_ref_gelu_grad, gelu_grad_gradient);

static void gelu_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                          ls_tensor **gin)
{
    gin[0] = lsi_op2(c, &lsi_op_gelu_grad, gout[0], n->in[0], n->attrs,
                     sizeof(lsi_axis_attrs));
}

LSI_ROW(gelu, 1, 1, 1, lsi_shape_same_float, lsi_ref_gelu, gelu_gradient);

ls_tensor *(ls_gelu)(ls_context *c, ls_tensor *x, bool approximate)
{
    lsi_axis_attrs attrs;

    memset(&attrs, 0, sizeof attrs);
    attrs.axis = approximate;
    return lsi_op1(c, &lsi_op_gelu, x, &attrs, sizeof attrs);
}

/* The second derivative of x s, s the sigmoid: s (1 - s) (2 + x (1 - 2s)). */
static void silu_grad_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                               ls_tensor **gin)
{
    ls_tensor *x = n->in[1];

    gin[0] = lsi_op2(c, &lsi_op_silu_grad, gout[0], x, NULL, 0);
    if (ls_op_needs(n, 1)) {
        ls_tensor *s = ls_sigmoid(c, x);
        ls_tensor *ds = ls_mul(c, s, shifted(c, scaled(c, s, -1), 1));
        ls_tensor *bend = shifted(c, ls_mul(c, x, shifted(c, scaled(c, s, -2), 1)), 2);

        gin[1] = ls_mul(c, ls_mul(c, gout[0], n->in[0]), ls_mul(c, ds, bend));
    }
}

LSI_ROW(silu_grad, 2, 2, 1, alike_float, lsi_ref_silu_grad, silu_grad_gradient);

static void silu_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                          ls_tensor **gin)
{
    gin[0] = lsi_op2(c, &lsi_op_silu_grad, gout[0], n->in[0], NULL, 0);
}

ROW(silu, lsi_shape_same_float, silu_gradient)

/* True if an integer dtype can hold it, or it is so far out that it never matters. */
static bool is_whole(double v)
{
    return isinf(v) || floor(v) == v;
}

static ls_status clip_shape(ls_op_call *k)
{
    const lsi_scalars_attrs *p = k->attrs;

    if (isnan(p->a) || isnan(p->b)) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT, "the bounds %g and %g must be numbers",
                          p->a, p->b);
    }
    if (lsi_dtype_is_int((ls_dtype)k->in[0]->dtype) &&
        !(is_whole(p->a) && is_whole(p->b))) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "the bounds %g and %g of %s must be whole numbers; convert it "
                          "with ls_cast() first",
                          p->a, p->b, lsi_text_of(k->in[0]).s);
    }
    return lsi_shape_same_number(k);
}

/* Clipped elements get 0; an element on a bound gets the whole gradient. */
static void clip_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                          ls_tensor **gin)
{
    const lsi_scalars_attrs *p = n->attrs;
    ls_tensor *x = n->in[0];
    const ls_dtype dtype = (ls_dtype)x->dtype;
    ls_tensor *below = NULL;
    ls_tensor *above = NULL;

    if (!lsi_dtype_is_float(dtype)) {
        return;
    }
    below = ls_less(c, x, lsi_scalar(c, dtype, p->a));
    above = ls_greater(c, x, lsi_scalar(c, dtype, p->b));
    gin[0] =
        ls_where(c, ls_logical_or(c, below, above), lsi_scalar(c, dtype, 0), gout[0]);
}

LSI_ROW(clip, 1, 1, 1, clip_shape, lsi_ref_clip, clip_gradient);

ls_tensor *(ls_clip)(ls_context *c, ls_tensor *x, double lo, double hi)
{
    lsi_scalars_attrs attrs;

    memset(&attrs, 0, sizeof attrs);
    attrs.a = lo;
    attrs.b = hi;
    return lsi_op1(c, &lsi_op_clip, x, &attrs, sizeof attrs);
}

static ls_status cast_shape(ls_op_call *k)
{
    const lsi_dtype_attrs *attrs = k->attrs;
    const ls_shape shape = lsi_shape(k->in[0]);
    const bool known = ls_dtype_size(attrs->dtype) > 0;

    if (!known) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT, "%d is no dtype", (int)attrs->dtype);
    }
    if ((ls_dtype)k->in[0]->dtype == attrs->dtype) {
        k->spec[0].view = true;
        k->spec[0].offset = 0;
    } else if (attrs->dtype == LS_STRING || k->in[0]->dtype == LS_STRING) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "%s cannot become %s: only numbers and bools are converted",
                          lsi_text_of(k->in[0]).s, ls_dtype_name(attrs->dtype));
    }
    return ls_op_set_output(k, 0, attrs->dtype, &shape);
}

/* Only between floating dtypes; a cast to integers has the derivative 0. */
static void cast_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                          ls_tensor **gin)
{
    const ls_dtype from = (ls_dtype)n->in[0]->dtype;

    if (lsi_dtype_is_float(from) && lsi_dtype_is_float((ls_dtype)n->out[0]->dtype)) {
        gin[0] = ls_cast(c, gout[0], from);
    }
}

LSI_ROW(cast, 1, 1, 1, cast_shape, lsi_ref_cast, cast_gradient);

ls_tensor *(ls_cast)(ls_context *c, ls_tensor *x, ls_dtype dtype)
{
    lsi_dtype_attrs attrs;

    memset(&attrs, 0, sizeof attrs);
    attrs.dtype = dtype;
    return lsi_op1(c, &lsi_op_cast, x, &attrs, sizeof attrs);
}

static ls_status logical_not_shape(ls_op_call *k)
{
    if (k->in[0]->dtype != LS_BOOL) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "needs bool, got %s; compare it or convert it with ls_cast()",
                          lsi_text_of(k->in[0]).s);
    }
    return lsi_shape_same(k);
}

ROW(logical_not, logical_not_shape, NULL)
