/* Elementwise, one operand; and the gradients that take one pass over two operands. */
#include "kernel/ref/ref.h"
#include "kernel/ref/types.h"

#include <math.h>

static const double SQRT_HALF = 0.70710678118654752440;
static const double INV_SQRT_2PI = 0.39894228040143267794;
static const double GELU_SCALE = 0.79788456080286535588; // sqrt(2/pi)
static const double GELU_CUBE = 0.044715;

/* `p` are the operation's scalars: slope, bounds; unused by most. */
typedef double (*float_fn)(double x, const lsi_scalars_attrs *p);
typedef double (*pair_fn)(double g, double v, const lsi_scalars_attrs *p);

/* Integers come widened to 64 bits; unsigned ones as the same bits. */
typedef int64_t (*int_fn)(int64_t x, bool is_signed);

static ls_status refuse(ls_op_call *k)
{
    return ls_op_fail(k, LS_UNIMPLEMENTED, "no kernel for %s",
                      ls_dtype_name((ls_dtype)k->in[0]->dtype));
}

LSI_TEMPLATE ls_status map_with(ls_op_call *k, float_fn f, const lsi_scalars_attrs *p)
{
    const int64_t n = k->out[0]->count;

    switch (k->in[0]->dtype) {
#define EACH(D, T)                                                                       \
    case LS_##D: {                                                                       \
        const T *x = k->in[0]->data;                                                     \
        T *y = k->out[0]->data;                                                          \
        for (int64_t i = 0; i < n; i++) {                                                \
            y[i] = LSI_PUT_##D(f(LSI_GET_##D(x[i]), p));                                 \
        }                                                                                \
        return LS_OK;                                                                    \
    }
        LSI_FLOATS(EACH)
#undef EACH
    default:
        return refuse(k);
    }
}

LSI_TEMPLATE ls_status map(ls_op_call *k, float_fn f)
{
    return map_with(k, f, NULL);
}

LSI_TEMPLATE ls_status map_int(ls_op_call *k, int_fn f)
{
    const int64_t n = k->out[0]->count;

    switch (k->in[0]->dtype) {
#define EACH(D, T, is_signed)                                                            \
    case LS_##D: {                                                                       \
        const T *x = k->in[0]->data;                                                     \
        T *y = k->out[0]->data;                                                          \
        for (int64_t i = 0; i < n; i++) {                                                \
            y[i] = (T)f((int64_t)x[i], is_signed);                                       \
        }                                                                                \
        return LS_OK;                                                                    \
    }
        LSI_INTS(EACH)
#undef EACH
    default:
        return refuse(k);
    }
}

LSI_TEMPLATE ls_status map_number(ls_op_call *k, float_fn f, int_fn fi)
{
    return lsi_dtype_is_float((ls_dtype)k->in[0]->dtype) ? map(k, f) : map_int(k, fi);
}

LSI_TEMPLATE ls_status map_pair(ls_op_call *k, pair_fn f, const lsi_scalars_attrs *p)
{
    const int64_t n = k->out[0]->count;

    switch (k->in[0]->dtype) {
#define EACH(D, T)                                                                       \
    case LS_##D: {                                                                       \
        const T *g = k->in[0]->data;                                                     \
        const T *v = k->in[1]->data;                                                     \
        T *y = k->out[0]->data;                                                          \
        for (int64_t i = 0; i < n; i++) {                                                \
            y[i] = LSI_PUT_##D(f(LSI_GET_##D(g[i]), LSI_GET_##D(v[i]), p));              \
        }                                                                                \
        return LS_OK;                                                                    \
    }
        LSI_FLOATS(EACH)
#undef EACH
    default:
        return refuse(k);
    }
}

/* Negates as two's complement does: the lowest number stays itself. */
static inline int64_t minus(int64_t x)
{
    return (int64_t)(0U - (uint64_t)x);
}

static inline double neg_float(double x, const lsi_scalars_attrs *p)
{
    (void)p;
    return -x;
}

static inline int64_t neg_int(int64_t x, bool is_signed)
{
    (void)is_signed;
    return minus(x);
}

ls_status lsi_ref_neg(ls_op_call *k)
{
    return map_number(k, neg_float, neg_int);
}

static inline double abs_float(double x, const lsi_scalars_attrs *p)
{
    (void)p;
    return fabs(x);
}

static inline int64_t abs_int(int64_t x, bool is_signed)
{
    return is_signed && x < 0 ? minus(x) : x;
}

ls_status lsi_ref_abs(ls_op_call *k)
{
    return map_number(k, abs_float, abs_int);
}

static inline double sign_float(double x, const lsi_scalars_attrs *p)
{
    (void)p;
    return isnan(x) ? x : (double)((x > 0) - (x < 0));
}

static inline int64_t sign_int(int64_t x, bool is_signed)
{
    return is_signed && x < 0 ? -1 : (int64_t)(x != 0);
}

ls_status lsi_ref_sign(ls_op_call *k)
{
    return map_number(k, sign_float, sign_int);
}

static inline double exp_float(double x, const lsi_scalars_attrs *p)
{
    (void)p;
    return exp(x);
}

ls_status lsi_ref_exp(ls_op_call *k)
{
    return map(k, exp_float);
}

static inline double log_float(double x, const lsi_scalars_attrs *p)
{
    (void)p;
    return log(x);
}

ls_status lsi_ref_log(ls_op_call *k)
{
    return map(k, log_float);
}

static inline double log1p_float(double x, const lsi_scalars_attrs *p)
{
    (void)p;
    return log1p(x);
}

ls_status lsi_ref_log1p(ls_op_call *k)
{
    return map(k, log1p_float);
}

static inline double sqrt_float(double x, const lsi_scalars_attrs *p)
{
    (void)p;
    return sqrt(x);
}

ls_status lsi_ref_sqrt(ls_op_call *k)
{
    return map(k, sqrt_float);
}

static inline double rsqrt_float(double x, const lsi_scalars_attrs *p)
{
    (void)p;
    return 1.0 / sqrt(x);
}

ls_status lsi_ref_rsqrt(ls_op_call *k)
{
    return map(k, rsqrt_float);
}

static inline double square_float(double x, const lsi_scalars_attrs *p)
{
    (void)p;
    return x * x;
}

static inline int64_t square_int(int64_t x, bool is_signed)
{
    (void)is_signed;
    return (int64_t)((uint64_t)x * (uint64_t)x);
}

ls_status lsi_ref_square(ls_op_call *k)
{
    return map_number(k, square_float, square_int);
}

static inline double reciprocal_float(double x, const lsi_scalars_attrs *p)
{
    (void)p;
    return 1.0 / x;
}

ls_status lsi_ref_reciprocal(ls_op_call *k)
{
    return map(k, reciprocal_float);
}

static inline double erf_float(double x, const lsi_scalars_attrs *p)
{
    (void)p;
    return erf(x);
}

ls_status lsi_ref_erf(ls_op_call *k)
{
    return map(k, erf_float);
}

static inline double relu_float(double x, const lsi_scalars_attrs *p)
{
    (void)p;
    return x < 0 ? 0 : x; // so a NaN stays
}

static inline int64_t relu_int(int64_t x, bool is_signed)
{
    return is_signed && x < 0 ? 0 : x;
}

ls_status lsi_ref_relu(ls_op_call *k)
{
    return map_number(k, relu_float, relu_int);
}

/* The slope was given as a float and is meant as one, whatever the dtype. */
static inline double leaky_relu_float(double x, const lsi_scalars_attrs *p)
{
    return x > 0 ? x : p->a * x;
}

ls_status lsi_ref_leaky_relu(ls_op_call *k)
{
    return map_with(k, leaky_relu_float, k->attrs);
}

static inline double elu_float(double x, const lsi_scalars_attrs *p)
{
    (void)p;
    return x > 0 ? x : expm1(x);
}

ls_status lsi_ref_elu(ls_op_call *k)
{
    return map(k, elu_float);
}

static inline double sigmoid_of(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static inline double sigmoid_float(double x, const lsi_scalars_attrs *p)
{
    (void)p;
    return sigmoid_of(x);
}

ls_status lsi_ref_sigmoid(ls_op_call *k)
{
    return map(k, sigmoid_float);
}

static inline double tanh_float(double x, const lsi_scalars_attrs *p)
{
    (void)p;
    return tanh(x);
}

ls_status lsi_ref_tanh(ls_op_call *k)
{
    return map(k, tanh_float);
}

static inline double softplus_float(double x, const lsi_scalars_attrs *p)
{
    (void)p;
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

ls_status lsi_ref_softplus(ls_op_call *k)
{
    return map(k, softplus_float);
}

static inline double gelu_exact(double x, const lsi_scalars_attrs *p)
{
    (void)p;
    return 0.5 * x * erfc(-x * SQRT_HALF); // 1 + erf() would cancel for negative x
}

static inline double gelu_tanh(double x, const lsi_scalars_attrs *p)
{
    (void)p;
    return 0.5 * x * (1.0 + tanh(GELU_SCALE * (x + GELU_CUBE * x * x * x)));
}

static bool is_approximate(const ls_op_call *k)
{
    return ((const lsi_axis_attrs *)k->attrs)->axis != 0;
}

ls_status lsi_ref_gelu(ls_op_call *k)
{
    return is_approximate(k) ? map(k, gelu_tanh) : map(k, gelu_exact);
}

static inline double silu_float(double x, const lsi_scalars_attrs *p)
{
    (void)p;
    return x * sigmoid_of(x);
}

ls_status lsi_ref_silu(ls_op_call *k)
{
    return map(k, silu_float);
}

static inline double clip_float(double x, const lsi_scalars_attrs *p)
{
    const double raised = x < p->a ? p->a : x;

    return raised > p->b ? p->b : raised;
}

/* Bounds of an integer clip are whole numbers or infinite: the shape rule saw to it. */
#define EACH(D, T, is_signed)                                                            \
    static void clip_##D(ls_op_call *k, const lsi_scalars_attrs *p)                      \
    {                                                                                    \
        const T *x = k->in[0]->data;                                                     \
        T *y = k->out[0]->data;                                                          \
        T lo;                                                                            \
        T hi;                                                                            \
        lsi_ref_fill(LS_##D, &lo, 1, p->a);                                              \
        lsi_ref_fill(LS_##D, &hi, 1, p->b);                                              \
        for (int64_t i = 0; i < k->out[0]->count; i++) {                                 \
            const T raised = LSI_MAX(x[i], lo);                                          \
            y[i] = LSI_MIN(raised, hi);                                                  \
        }                                                                                \
    }
LSI_INTS(EACH)
#undef EACH

static ls_status clip_int(ls_op_call *k, const lsi_scalars_attrs *p)
{
    switch (k->in[0]->dtype) {
#define EACH(D, T, is_signed)                                                            \
    case LS_##D:                                                                         \
        clip_##D(k, p);                                                                  \
        return LS_OK;
        LSI_INTS(EACH)
#undef EACH
    default:
        return refuse(k);
    }
}

ls_status lsi_ref_clip(ls_op_call *k)
{
    const lsi_scalars_attrs *p = k->attrs;

    return lsi_dtype_is_float((ls_dtype)k->in[0]->dtype) ? map_with(k, clip_float, p)
                                                         : clip_int(k, p);
}

ls_status lsi_ref_logical_not(ls_op_call *k)
{
    const uint8_t *x = k->in[0]->data;
    uint8_t *y = k->out[0]->data;

    for (int64_t i = 0; i < k->out[0]->count; i++) {
        y[i] = x[i] == 0;
    }
    return LS_OK;
}

static inline double relu_grad_float(double g, double y, const lsi_scalars_attrs *p)
{
    (void)p;
    return y > 0 ? g : 0;
}

#define EACH(D, T, is_signed)                                                            \
    static void relu_grad_##D(ls_op_call *k)                                             \
    {                                                                                    \
        const T *g = k->in[0]->data;                                                     \
        const T *y = k->in[1]->data;                                                     \
        T *x = k->out[0]->data;                                                          \
        for (int64_t i = 0; i < k->out[0]->count; i++) {                                 \
            x[i] = y[i] > 0 ? g[i] : (T)0;                                               \
        }                                                                                \
    }
LSI_INTS(EACH)
#undef EACH

static ls_status relu_grad_int(ls_op_call *k)
{
    switch (k->in[0]->dtype) {
#define EACH(D, T, is_signed)                                                            \
    case LS_##D:                                                                         \
        relu_grad_##D(k);                                                                \
        return LS_OK;
        LSI_INTS(EACH)
#undef EACH
    default:
        return refuse(k);
    }
}

ls_status lsi_ref_relu_grad(ls_op_call *k)
{
    return lsi_dtype_is_float((ls_dtype)k->in[0]->dtype)
               ? map_pair(k, relu_grad_float, NULL)
               : relu_grad_int(k);
}

static inline double leaky_relu_grad_float(double g, double x, const lsi_scalars_attrs *p)
{
    return x > 0 ? g : p->a * g;
}

ls_status lsi_ref_leaky_relu_grad(ls_op_call *k)
{
    return map_pair(k, leaky_relu_grad_float, k->attrs);
}

static inline double elu_grad_float(double g, double y, const lsi_scalars_attrs *p)
{
    (void)p;
    return y < 0 ? g * (y + 1.0) : g;
}

ls_status lsi_ref_elu_grad(ls_op_call *k)
{
    return map_pair(k, elu_grad_float, NULL);
}

static inline double sigmoid_grad_float(double g, double y, const lsi_scalars_attrs *p)
{
    (void)p;
    return g * y * (1.0 - y);
}

ls_status lsi_ref_sigmoid_grad(ls_op_call *k)
{
    return map_pair(k, sigmoid_grad_float, NULL);
}

static inline double tanh_grad_float(double g, double y, const lsi_scalars_attrs *p)
{
    (void)p;
    return g * (1.0 - y * y);
}

ls_status lsi_ref_tanh_grad(ls_op_call *k)
{
    return map_pair(k, tanh_grad_float, NULL);
}

static inline double gelu_exact_grad(double g, double x, const lsi_scalars_attrs *p)
{
    const double cdf = 0.5 * erfc(-x * SQRT_HALF);

    (void)p;
    return g * (cdf + x * INV_SQRT_2PI * exp(-0.5 * x * x));
}

static inline double gelu_tanh_grad(double g, double x, const lsi_scalars_attrs *p)
{
    const double t = tanh(GELU_SCALE * (x + GELU_CUBE * x * x * x));
    const double slope = GELU_SCALE * (1.0 + 3.0 * GELU_CUBE * x * x);

    (void)p;
    return g * 0.5 * (1.0 + t + x * (1.0 - t * t) * slope);
}

ls_status lsi_ref_gelu_grad(ls_op_call *k)
{
    return is_approximate(k) ? map_pair(k, gelu_tanh_grad, NULL)
                             : map_pair(k, gelu_exact_grad, NULL);
}

static inline double silu_grad_float(double g, double x, const lsi_scalars_attrs *p)
{
    const double s = sigmoid_of(x);

    (void)p;
    return g * s * (1.0 + x * (1.0 - s));
}

ls_status lsi_ref_silu_grad(ls_op_call *k)
{
    return map_pair(k, silu_grad_float, NULL);
}
