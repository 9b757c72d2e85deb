/* Elementwise operations with one operand, and their gradients that take one pass. */
#include "kernel/simd/math.h"

/* `n` elements of y from those of x (and g, for gradients); a and b are attributes. */
typedef void (*span_fn)(float *y, const float *x, const float *g, int64_t n, float a,
                        float b);

struct team_work {
    span_fn fn;
    float *y;
    const float *x, *g;
    int64_t n;
    float a, b;
};

static void run_part(void *arg, int part, int parts)
{
    const struct team_work *j = arg;
    int64_t begin = 0, end = 0;

    lsi_team_share(j->n, 16, part, parts, &begin, &end);
    if (begin < end) {
        j->fn(j->y + begin, j->x + begin, j->g + begin, end - begin, j->a, j->b);
    }
}

/* `cost`: eighths of a nanosecond per element. */
LSI_INLINE ls_status run_spans(ls_op_call *k, span_fn fn, int cost, const ls_tensor *x,
                               const ls_tensor *g, float a, float b)
{
    const int64_t n = k->out[0]->count;
    float *y = lsi_out_f32(k, 0);
    int parts = 1;

    if (!lsi_all_f32(k) || x->count != n || g->count != n) {
        return LS_UNIMPLEMENTED;
    }
    parts = lsi_parts(k, n * cost / 8);
    if (parts == 1) {
        fn(y, x->data, g->data, n, a, b);
    } else {
        struct team_work j = {fn, y, x->data, g->data, n, a, b};

        lsi_team_run(k->team, parts, run_part, &j);
    }
    return LS_OK;
}

/* name_span(): `expr` of the vectors x, g, a and b for every element. */
#define SPAN(name, expr)                                                                 \
    LSI_INLINE vf name##_lanes(vf x, vf g, vf a, vf b)                                   \
    {                                                                                    \
        (void)g;                                                                         \
        (void)a;                                                                         \
        (void)b;                                                                         \
        return expr;                                                                     \
    }                                                                                    \
    static void name##_span(float *y, const float *x, const float *g, int64_t n,         \
                            float a, float b)                                            \
    {                                                                                    \
        const vf va = vsplat(a), vb = vsplat(b);                                         \
        int64_t i = 0;                                                                   \
                                                                                         \
        for (; i + VW <= n; i += VW) {                                                   \
            vstore(y + i, name##_lanes(vload(x + i), vload(g + i), va, vb));             \
        }                                                                                \
        if (i < n) {                                                                     \
            const vf tx = vtail(x + i, n - i), tg = vtail(g + i, n - i);                 \
                                                                                         \
            vtail_store(y + i, name##_lanes(tx, tg, va, vb), n - i);                     \
        }                                                                                \
    }

/* y = expr(x) */
#define UNARY(name, cost, expr)                                                          \
    SPAN(name, expr)                                                                     \
    ls_status LSI_SIMD(name)(ls_op_call * k)                                             \
    {                                                                                    \
        return run_spans(k, name##_span, cost, k->in[0], k->in[0], 0.0F, 0.0F);          \
    }

/* dx = expr(g, x), where x is the operand or the result */
#define GRADIENT(name, cost, expr)                                                       \
    SPAN(name, expr)                                                                     \
    ls_status LSI_SIMD(name)(ls_op_call * k)                                             \
    {                                                                                    \
        return run_spans(k, name##_span, cost, k->in[1], k->in[0], 0.0F, 0.0F);          \
    }

LSI_INLINE vf silu_slope(vf x)
{
    const vf s = vsigmoid(x);

    return s * (1.0F + x * (1.0F - s));
}

/* Phi(x) + x phi(x) */
LSI_INLINE vf gelu_slope(vf x)
{
    vf bell;
    const vf below = vnormal(x, &bell);

    return below + x * (0.398942280F * bell);
}

/* x sigmoid(w), w = c (x + d x^3); sigmoid' = z / (1 + z)^2 with z = exp(-|w|) */
LSI_INLINE vf gelu_tanh_slope(vf all)
{
    // Far out the slope is 0 or 1, and the cube must not overflow on the way.
    const vf low = vselect(all < -30.0F, vsplat(-30.0F), all);
    const vf x = vselect(low > 30.0F, vsplat(30.0F), low);
    const vf s = x * x;
    const vf w = 1.59576912F * (x + 0.044715F * (s * x));
    const vf z = vexp((vf)((vi)w | vsplat_i(INT32_MIN)));
    const vf r = 1.0F / (1.0F + z);
    const vf slope = 1.59576912F * (1.0F + (3.0F * 0.044715F) * s);

    // The last term is 0, and NaN at infinity, as in the reference.
    return vselect(w < 0.0F, z * r, r) + x * ((z * r) * r) * slope + 0.0F * all;
}

enum { SIMPLE = 2, DIVISION = 3, ROOT = 4, EXPONENTIAL = 6, LONG = 12 };

/* clang-format off */
UNARY(neg, SIMPLE, -x)
UNARY(abs, SIMPLE, vabs(x))
UNARY(sign, SIMPLE, vselect(x > 0.0F, vsplat(1.0F), vselect(x < 0.0F, vsplat(-1.0F), x)))
UNARY(exp, EXPONENTIAL, vexp(x))
UNARY(log, EXPONENTIAL, vlog(x))
UNARY(log1p, LONG, vlog1p(x))
UNARY(sqrt, ROOT, vsqrt(x))
UNARY(rsqrt, ROOT, 1.0F / vsqrt(x))
UNARY(square, SIMPLE, x * x)
UNARY(reciprocal, DIVISION, 1.0F / x)
UNARY(erf, LONG, verf(x))
UNARY(relu, SIMPLE, (vf)((vi)x & ~(x <= 0.0F)))
UNARY(elu, EXPONENTIAL, vselect(x < 0.0F, vexpm1(vmin(vzero(), x)), x))
UNARY(sigmoid, EXPONENTIAL, vsigmoid(x))
UNARY(tanh, EXPONENTIAL, vtanh(x))
UNARY(softplus, LONG,
      vselect(x > 0.0F, x, vzero()) + vlog1p_unit(vexp((vf)((vi)x | vsplat_i(INT32_MIN)))))
UNARY(silu, EXPONENTIAL, x * vsigmoid(x))

GRADIENT(relu_grad, SIMPLE, (vf)((vi)g & (x > 0.0F)))
GRADIENT(elu_grad, SIMPLE, vselect(x < 0.0F, g * (x + 1.0F), g))
GRADIENT(sigmoid_grad, SIMPLE, g * x * (1.0F - x))
GRADIENT(tanh_grad, SIMPLE, g * (1.0F - x * x))
GRADIENT(silu_grad, EXPONENTIAL, g * silu_slope(x))

SPAN(clip, vselect(vselect(x < a, a, x) > b, b, vselect(x < a, a, x)))
SPAN(leaky_relu, vselect(x > 0.0F, x, a * x))
SPAN(leaky_relu_grad, vselect(x > 0.0F, g, a * g))
SPAN(gelu, vgelu(x))
SPAN(gelu_tanh, vgelu_tanh(x))
SPAN(gelu_grad, g * gelu_slope(x))
SPAN(gelu_tanh_grad, g * gelu_tanh_slope(x))
/* clang-format on */

ls_status LSI_SIMD(clip)(ls_op_call *k)
{
    const lsi_scalars_attrs *s = k->attrs;

    return run_spans(k, clip_span, SIMPLE, k->in[0], k->in[0], (float)s->a, (float)s->b);
}

ls_status LSI_SIMD(leaky_relu)(ls_op_call *k)
{
    const lsi_scalars_attrs *s = k->attrs;

    return run_spans(k, leaky_relu_span, SIMPLE, k->in[0], k->in[0], (float)s->a, 0.0F);
}

ls_status LSI_SIMD(leaky_relu_grad)(ls_op_call *k)
{
    const lsi_scalars_attrs *s = k->attrs;

    return run_spans(k, leaky_relu_grad_span, SIMPLE, k->in[1], k->in[0], (float)s->a,
                     0.0F);
}

ls_status LSI_SIMD(gelu)(ls_op_call *k)
{
    const lsi_axis_attrs *s = k->attrs;

    return run_spans(k, s->axis != 0 ? gelu_tanh_span : gelu_span, LONG, k->in[0],
                     k->in[0], 0.0F, 0.0F);
}

ls_status LSI_SIMD(gelu_grad)(ls_op_call *k)
{
    const lsi_axis_attrs *s = k->attrs;

    return run_spans(k, s->axis != 0 ? gelu_tanh_grad_span : gelu_grad_span, LONG,
                     k->in[1], k->in[0], 0.0F, 0.0F);
}
