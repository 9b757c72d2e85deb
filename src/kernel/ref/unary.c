/* Elementwise, one operand; and the gradients that take one pass over two operands. */
#include "kernel/ref/element_access.h"
#include "kernel/ref/ref.h"

static const double SQRT_HALF = 0.70710678118654752440;
static const double INV_SQRT_2PI = 0.39894228040143267794;
static const double GELU_SCALE = 0.79788456080286535588; // sqrt(2/pi)
static const double GELU_CUBE = 0.044715;

/* Integers come widened to 64 bits; unsigned ones as the same bits. */
typedef double (*float_fn)(double x);
typedef int64_t (*int_fn)(int64_t x, bool is_signed);
typedef double (*float_pair_fn)(double g, double v);
typedef int64_t (*int_pair_fn)(int64_t g, int64_t v, bool is_signed);

LSI_INLINE ls_status map_as(ls_op_call *k, ls_dtype dtype, float_fn f, int_fn fi)
{
    const void *x = k->in[0]->data;
    void *y = k->out[0]->data;

    for (int64_t i = 0, n = k->out[0]->count; i < n; i++) {
        if (lsi_is_float(dtype)) {
            lsi_put_float(y, dtype, i, f(lsi_get_float(x, dtype, i)));
        } else {
            lsi_put_int(y, dtype, i, fi(lsi_get_int(x, dtype, i), lsi_is_signed(dtype)));
        }
    }
    return LS_OK;
}

LSI_INLINE ls_status map_elements(ls_op_call *k, float_fn f)
{
    switch (k->in[0]->dtype) {
#define EACH(D, T)                                                                       \
    case LS_##D:                                                                         \
        return map_as(k, LS_##D, f, NULL);
        LSI_FLOATS(EACH)
#undef EACH
    default:
        return lsi_ref_refuse(k);
    }
}

LSI_INLINE ls_status map_number(ls_op_call *k, float_fn f, int_fn fi)
{
    switch (k->in[0]->dtype) {
#define EACH(D, T, is_signed)                                                            \
    case LS_##D:                                                                         \
        return map_as(k, LS_##D, NULL, fi);
        LSI_INTS(EACH)
#undef EACH
    default:
        return map_elements(k, f);
    }
}

LSI_INLINE ls_status pair_as(ls_op_call *k, ls_dtype dtype, float_pair_fn f,
                             int_pair_fn fi)
{
    const void *g = k->in[0]->data;
    const void *v = k->in[1]->data;
    void *y = k->out[0]->data;

    for (int64_t i = 0, n = k->out[0]->count; i < n; i++) {
        if (lsi_is_float(dtype)) {
            lsi_put_float(y, dtype, i,
                          f(lsi_get_float(g, dtype, i), lsi_get_float(v, dtype, i)));
        } else {
            lsi_put_int(y, dtype, i,
                        fi(lsi_get_int(g, dtype, i), lsi_get_int(v, dtype, i),
                           lsi_is_signed(dtype)));
        }
    }
    return LS_OK;
}

LSI_INLINE ls_status map_pair(ls_op_call *k, float_pair_fn f)
{
    switch (k->in[0]->dtype) {
#define EACH(D, T)                                                                       \
    case LS_##D:                                                                         \
        return pair_as(k, LS_##D, f, NULL);
        LSI_FLOATS(EACH)
#undef EACH
    default:
        return lsi_ref_refuse(k);
    }
}

LSI_INLINE ls_status map_number_pair(ls_op_call *k, float_pair_fn f, int_pair_fn fi)
{
    switch (k->in[0]->dtype) {
#define EACH(D, T, is_signed)                                                            \
    case LS_##D:                                                                         \
        return pair_as(k, LS_##D, NULL, fi);
        LSI_INTS(EACH)
#undef EACH
    default:
        return map_pair(k, f);
    }
}

/* Negates as two's complement does: the lowest number stays itself. */
static inline int64_t minus(int64_t x)
{
    return (int64_t)(0U - (uint64_t)x);
}

static inline double neg_float(double x)
{
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

static inline int64_t abs_int(int64_t x, bool is_signed)
{
    return is_signed && x < 0 ? minus(x) : x;
}

ls_status lsi_ref_abs(ls_op_call *k)
{
    return map_number(k, fabs, abs_int);
}

static inline double sign_float(double x)
{
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

ls_status lsi_ref_exp(ls_op_call *k)
{
    return map_elements(k, exp);
}

ls_status lsi_ref_log(ls_op_call *k)
{
    return map_elements(k, log);
}

ls_status lsi_ref_log1p(ls_op_call *k)
{
    return map_elements(k, log1p);
}

ls_status lsi_ref_sqrt(ls_op_call *k)
{
    return map_elements(k, sqrt);
}

static inline double rsqrt_float(double x)
{
    return 1.0 / sqrt(x);
}

ls_status lsi_ref_rsqrt(ls_op_call *k)
{
    return map_elements(k, rsqrt_float);
}

static inline double square_float(double x)
{
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

static inline double reciprocal_float(double x)
{
    return 1.0 / x;
}

ls_status lsi_ref_reciprocal(ls_op_call *k)
{
    return map_elements(k, reciprocal_float);
}

ls_status lsi_ref_erf(ls_op_call *k)
{
    return map_elements(k, erf);
}

static inline double relu_float(double x)
{
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

/* The slope is rounded to float32, whatever the dtype. */
LSI_INLINE ls_status leaky_relu(ls_op_call *k, ls_dtype dtype)
{
    const double slope = ((const lsi_scalars_attrs *)k->attrs)->a;
    const void *from = k->in[0]->data;
    void *to = k->out[0]->data;

    for (int64_t i = 0, n = k->out[0]->count; i < n; i++) {
        const double x = lsi_get_float(from, dtype, i);

        lsi_put_float(to, dtype, i, x > 0 ? x : slope * x);
    }
    return LS_OK;
}

ls_status lsi_ref_leaky_relu(ls_op_call *k)
{
    return LSI_EACH_FLOAT(leaky_relu, k);
}

static inline double elu_float(double x)
{
    return x > 0 ? x : expm1(x);
}

ls_status lsi_ref_elu(ls_op_call *k)
{
    return map_elements(k, elu_float);
}

static inline double sigmoid_float(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

ls_status lsi_ref_sigmoid(ls_op_call *k)
{
    return map_elements(k, sigmoid_float);
}

ls_status lsi_ref_tanh(ls_op_call *k)
{
    return map_elements(k, tanh);
}

static inline double softplus_float(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

ls_status lsi_ref_softplus(ls_op_call *k)
{
    return map_elements(k, softplus_float);
}

static inline double gelu_exact(double x)
{
    return 0.5 * x * erfc(-x * SQRT_HALF); // 1 + erf() would cancel for negative x
}

static inline double gelu_tanh(double x)
{
    return 0.5 * x * (1.0 + tanh(GELU_SCALE * (x + GELU_CUBE * x * x * x)));
}

static bool is_approximate(const ls_op_call *k)
{
    return ((const lsi_axis_attrs *)k->attrs)->axis != 0;
}

ls_status lsi_ref_gelu(ls_op_call *k)
{
    return is_approximate(k) ? map_elements(k, gelu_tanh) : map_elements(k, gelu_exact);
}

static inline double silu_float(double x)
{
    return x * sigmoid_float(x);
}

ls_status lsi_ref_silu(ls_op_call *k)
{
    return map_elements(k, silu_float);
}

LSI_INLINE ls_status clip(ls_op_call *k, ls_dtype dtype)
{
    const lsi_scalars_attrs *p = k->attrs;
    const void *from = k->in[0]->data;
    void *to = k->out[0]->data;

    for (int64_t i = 0, n = k->out[0]->count; i < n; i++) {
        const double x = lsi_get_float(from, dtype, i);
        const double raised = x < p->a ? p->a : x;

        lsi_put_float(to, dtype, i, raised > p->b ? p->b : raised);
    }
    return LS_OK;
}

/* Bounds of an integer clip are whole or infinite: the shape rule has checked it. */
LSI_INLINE ls_status clip_int_as(ls_op_call *k, ls_dtype dtype)
{
    const lsi_scalars_attrs *p = k->attrs;
    const bool is_signed = dtype != LS_U64; // all others lie within int64
    const void *from = k->in[0]->data;
    void *to = k->out[0]->data;
    uint64_t ends[2]; // room for an element of any dtype each
    int64_t lo, hi;

    lsi_ref_fill(dtype, &ends[0], 1, p->a);
    lsi_ref_fill(dtype, &ends[1], 1, p->b);
    lo = lsi_get_int(&ends[0], dtype, 0);
    hi = lsi_get_int(&ends[1], dtype, 0);
    for (int64_t i = 0, n = k->out[0]->count; i < n; i++) {
        const int64_t x = lsi_get_int(from, dtype, i);
        const int64_t raised = lsi_less_int(x, lo, is_signed) ? lo : x;

        lsi_put_int(to, dtype, i, lsi_less_int(hi, raised, is_signed) ? hi : raised);
    }
    return LS_OK;
}

ls_status lsi_ref_clip(ls_op_call *k)
{
    switch (k->in[0]->dtype) {
#define EACH(D, T, is_signed)                                                            \
    case LS_##D:                                                                         \
        return clip_int_as(k, LS_##D);
        LSI_INTS(EACH)
#undef EACH
    default:
        return LSI_EACH_FLOAT(clip, k);
    }
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

static inline double relu_grad_float(double g, double y)
{
    return y > 0 ? g : 0;
}

static inline int64_t relu_grad_int(int64_t g, int64_t y, bool is_signed)
{
    return lsi_less_int(0, y, is_signed) ? g : 0;
}

ls_status lsi_ref_relu_grad(ls_op_call *k)
{
    return map_number_pair(k, relu_grad_float, relu_grad_int);
}

LSI_INLINE ls_status leaky_relu_grad(ls_op_call *k, ls_dtype dtype)
{
    const double slope = ((const lsi_scalars_attrs *)k->attrs)->a;
    const void *from = k->in[0]->data;
    const void *at = k->in[1]->data;
    void *to = k->out[0]->data;

    for (int64_t i = 0, n = k->out[0]->count; i < n; i++) {
        const double g = lsi_get_float(from, dtype, i);

        lsi_put_float(to, dtype, i, lsi_get_float(at, dtype, i) > 0 ? g : slope * g);
    }
    return LS_OK;
}

ls_status lsi_ref_leaky_relu_grad(ls_op_call *k)
{
    return LSI_EACH_FLOAT(leaky_relu_grad, k);
}

static inline double elu_grad_float(double g, double y)
{
    return y < 0 ? g * (y + 1.0) : g;
}

ls_status lsi_ref_elu_grad(ls_op_call *k)
{
    return map_pair(k, elu_grad_float);
}

static inline double sigmoid_grad_float(double g, double y)
{
    return g * y * (1.0 - y);
}

ls_status lsi_ref_sigmoid_grad(ls_op_call *k)
{
    return map_pair(k, sigmoid_grad_float);
}

static inline double tanh_grad_float(double g, double y)
{
    return g * (1.0 - y * y);
}

ls_status lsi_ref_tanh_grad(ls_op_call *k)
{
    return map_pair(k, tanh_grad_float);
}

static inline double gelu_exact_grad(double g, double x)
{
    const double cdf = 0.5 * erfc(-x * SQRT_HALF);

    return g * (cdf + x * INV_SQRT_2PI * exp(-0.5 * x * x));
}

static inline double gelu_tanh_grad(double g, double x)
{
    const double t = tanh(GELU_SCALE * (x + GELU_CUBE * x * x * x));
    const double slope = GELU_SCALE * (1.0 + 3.0 * GELU_CUBE * x * x);

    return g * 0.5 * (1.0 + t + x * (1.0 - t * t) * slope);
}

ls_status lsi_ref_gelu_grad(ls_op_call *k)
{
    return is_approximate(k) ? map_pair(k, gelu_tanh_grad) : map_pair(k, gelu_exact_grad);
}

static inline double silu_grad_float(double g, double x)
{
    const double s = sigmoid_float(x);

    return g * s * (1.0 + x * (1.0 - s));
}

ls_status lsi_ref_silu_grad(ls_op_call *k)
{
    return map_pair(k, silu_grad_float);
}
