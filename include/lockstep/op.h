/*
 * lockstep/op.h - the operations.
 *
 * Each takes the context first and returns a tensor that belongs to the context and lives
 * until the step ends, or NULL after a failure (which the context keeps:
 * lockstep/context.h). Arguments are borrowed. Dtypes and shapes of results are those of
 * TensorFlow; dtypes are never converted silently. Each name is a function and also a
 * macro that records the caller's file and line (and evaluates `c` twice); a binding, or
 * a program that defines LS_NO_PLACES, calls the functions.
 *
 * Threads: the context's.
 */
#ifndef LS_OP_H
#define LS_OP_H

#include "lockstep/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ls_activation {
    LS_LINEAR = 0,
    LS_RELU,
    LS_SIGMOID,
    LS_TANH,
    LS_GELU,      /* exact */
    LS_GELU_TANH, /* the tanh formula */
    LS_SILU
} ls_activation;

typedef enum ls_padding { LS_VALID = 0, LS_SAME } ls_padding;

/* Start from LS_CONV_OPTIONS_INIT; zero means 1 for strides and dilations. */
typedef struct ls_conv_options {
    size_t struct_size;
    int stride[2];
    int dilation[2];
    ls_padding padding;
    ls_activation activation; /* applied after the bias, in the same pass */
} ls_conv_options;

/* Start from LS_POOL_OPTIONS_INIT; a zero stride is the window's size. */
typedef struct ls_pool_options {
    size_t struct_size;
    int size[2];
    int stride[2];
    ls_padding padding;
    bool relu; /* max pooling only: pools relu(x), in one pass */
} ls_pool_options;

/* clang-format off */
#define LS_CONV_OPTIONS_INIT {sizeof(ls_conv_options), {1, 1}, {1, 1}, LS_VALID, LS_LINEAR}
#define LS_POOL_OPTIONS_INIT {sizeof(ls_pool_options), {2, 2}, {0, 0}, LS_VALID, false}
/* clang-format on */

/*
 * Elementwise, one operand. Floating dtypes only, unless "any number" is said; the result
 * has the operand's dtype and shape.
 */

/* -x; any number */
LS_API ls_tensor *ls_neg(ls_context *c, ls_tensor *x);

/* |x|; any number */
LS_API ls_tensor *ls_abs(ls_context *c, ls_tensor *x);

/* -1, 0 or 1; any number; NaN stays NaN */
LS_API ls_tensor *ls_sign(ls_context *c, ls_tensor *x);

LS_API ls_tensor *ls_exp(ls_context *c, ls_tensor *x);

LS_API ls_tensor *ls_log(ls_context *c, ls_tensor *x);

/* log(1 + x) */
LS_API ls_tensor *ls_log1p(ls_context *c, ls_tensor *x);

LS_API ls_tensor *ls_sqrt(ls_context *c, ls_tensor *x);

/* 1 / sqrt(x) */
LS_API ls_tensor *ls_rsqrt(ls_context *c, ls_tensor *x);

/* x * x; any number */
LS_API ls_tensor *ls_square(ls_context *c, ls_tensor *x);

/* 1 / x */
LS_API ls_tensor *ls_reciprocal(ls_context *c, ls_tensor *x);

LS_API ls_tensor *ls_erf(ls_context *c, ls_tensor *x);

/* max(x, 0); gradient 0 at 0; any number */
LS_API ls_tensor *ls_relu(ls_context *c, ls_tensor *x);

/* x if x > 0, else slope * x */
LS_API ls_tensor *ls_leaky_relu(ls_context *c, ls_tensor *x, float slope);

/* x if x > 0, else exp(x) - 1 */
LS_API ls_tensor *ls_elu(ls_context *c, ls_tensor *x);

LS_API ls_tensor *ls_sigmoid(ls_context *c, ls_tensor *x);

LS_API ls_tensor *ls_tanh(ls_context *c, ls_tensor *x);

/* log(1 + exp(x)) */
LS_API ls_tensor *ls_softplus(ls_context *c, ls_tensor *x);

/* x/2 (1 + erf(x/sqrt 2)), or the tanh formula */
LS_API ls_tensor *ls_gelu(ls_context *c, ls_tensor *x, bool approximate);

/* x * sigmoid(x) */
LS_API ls_tensor *ls_silu(ls_context *c, ls_tensor *x);

/* min(max(x, lo), hi) */
LS_API ls_tensor *ls_clip(ls_context *c, ls_tensor *x, double lo, double hi);

/* Another dtype: to an integer, rounds toward zero; to bool, x != 0 */
LS_API ls_tensor *ls_cast(ls_context *c, ls_tensor *x, ls_dtype dtype);

/* Bool */
LS_API ls_tensor *ls_logical_not(ls_context *c, ls_tensor *x);

/*
 * Elementwise, two operands of one dtype, with NumPy broadcasting.
 */

LS_API ls_tensor *ls_add(ls_context *c, ls_tensor *a, ls_tensor *b);

LS_API ls_tensor *ls_sub(ls_context *c, ls_tensor *a, ls_tensor *b);

LS_API ls_tensor *ls_mul(ls_context *c, ls_tensor *a, ls_tensor *b);

/* Integers give float64 (those of 8 and 16 bits float32), as tf.truediv does */
LS_API ls_tensor *ls_div(ls_context *c, ls_tensor *a, ls_tensor *b);

/* Rounds toward minus infinity; an integer divisor of 0 is an error */
LS_API ls_tensor *ls_floordiv(ls_context *c, ls_tensor *a, ls_tensor *b);

/* The remainder has the sign of the divisor, as in Python */
LS_API ls_tensor *ls_mod(ls_context *c, ls_tensor *a, ls_tensor *b);

/* Integers: a negative exponent is an error */
LS_API ls_tensor *ls_pow(ls_context *c, ls_tensor *a, ls_tensor *b);

/* NaN if either operand is NaN */
LS_API ls_tensor *ls_maximum(ls_context *c, ls_tensor *a, ls_tensor *b);

/* NaN if either operand is NaN */
LS_API ls_tensor *ls_minimum(ls_context *c, ls_tensor *a, ls_tensor *b);

/* Comparisons give bool */
LS_API ls_tensor *ls_equal(ls_context *c, ls_tensor *a, ls_tensor *b);

LS_API ls_tensor *ls_not_equal(ls_context *c, ls_tensor *a, ls_tensor *b);

LS_API ls_tensor *ls_less(ls_context *c, ls_tensor *a, ls_tensor *b);

LS_API ls_tensor *ls_less_equal(ls_context *c, ls_tensor *a, ls_tensor *b);

LS_API ls_tensor *ls_greater(ls_context *c, ls_tensor *a, ls_tensor *b);

LS_API ls_tensor *ls_greater_equal(ls_context *c, ls_tensor *a, ls_tensor *b);

/* Bool */
LS_API ls_tensor *ls_logical_and(ls_context *c, ls_tensor *a, ls_tensor *b);

/* Bool */
LS_API ls_tensor *ls_logical_or(ls_context *c, ls_tensor *a, ls_tensor *b);

/* `a` where `cond` is true, else `b`; all three are broadcast */
LS_API ls_tensor *ls_where(ls_context *c, ls_tensor *cond, ls_tensor *a, ls_tensor *b);

/*
 * Reductions over the `naxes` axes listed (NULL: all of them); a negative axis counts
 * from the end. `keepdims` leaves axes of size 1.
 */

LS_API ls_tensor *ls_sum(ls_context *c, ls_tensor *x, const int *axes, size_t naxes,
                         bool keepdims);

/* Integers stay integers, as in TensorFlow */
LS_API ls_tensor *ls_mean(ls_context *c, ls_tensor *x, const int *axes, size_t naxes,
                          bool keepdims);

LS_API ls_tensor *ls_prod(ls_context *c, ls_tensor *x, const int *axes, size_t naxes,
                          bool keepdims);

LS_API ls_tensor *ls_max(ls_context *c, ls_tensor *x, const int *axes, size_t naxes,
                         bool keepdims);

LS_API ls_tensor *ls_min(ls_context *c, ls_tensor *x, const int *axes, size_t naxes,
                         bool keepdims);

/* Bool */
LS_API ls_tensor *ls_any(ls_context *c, ls_tensor *x, const int *axes, size_t naxes,
                         bool keepdims);

/* Bool */
LS_API ls_tensor *ls_all(ls_context *c, ls_tensor *x, const int *axes, size_t naxes,
                         bool keepdims);

LS_API ls_tensor *ls_logsumexp(ls_context *c, ls_tensor *x, const int *axes, size_t naxes,
                               bool keepdims);

/* Index of the first maximum; int64 */
LS_API ls_tensor *ls_argmax(ls_context *c, ls_tensor *x, int axis);

LS_API ls_tensor *ls_argmin(ls_context *c, ls_tensor *x, int axis);

/*
 * Products.
 */

/* Matrix product of the last two axes; the axes before are broadcast */
LS_API ls_tensor *ls_matmul(ls_context *c, ls_tensor *a, ls_tensor *b);

/* With either side transposed */
LS_API ls_tensor *ls_matmul_t(ls_context *c, ls_tensor *a, ls_tensor *b, bool transpose_a,
                              bool transpose_b);

/* activation(x w + bias) in one pass; `bias` may be NULL; x of any rank, w a matrix */
LS_API ls_tensor *ls_dense(ls_context *c, ls_tensor *x, ls_tensor *w, ls_tensor *bias,
                           ls_activation activation);

/* x [n,h,w,c], w [kh,kw,c,out]; `bias` may be NULL */
LS_API ls_tensor *ls_conv2d(ls_context *c, ls_tensor *x, ls_tensor *w, ls_tensor *bias,
                            const ls_conv_options *opts);

/* w [kh,kw,c,m], result [..., c*m] */
LS_API ls_tensor *ls_depthwise_conv2d(ls_context *c, ls_tensor *x, ls_tensor *w,
                                      ls_tensor *bias, const ls_conv_options *opts);

/*
 * softmax(q k' * scale) v over [..., n, d]; scale 0: 1/sqrt(d); causal: row i uses keys
 * up to i only
 */
LS_API ls_tensor *ls_attention(ls_context *c, ls_tensor *q, ls_tensor *k, ls_tensor *v,
                               double scale, bool causal);

/*
 * The same for `heads` heads that are side by side in the rows of one tensor: qkv
 * [..., n, 3 w] holds queries, keys and values, the result is [..., n, w]. One dense
 * layer computes all three, and no element is moved between it and the next layer:
 *
 *     qkv = ls_dense(c, x, w, bias, LS_LINEAR);
 *     x = ls_dense(c, ls_self_attention(c, qkv, 4, 0, true), v, bias2, LS_LINEAR);
 */
LS_API ls_tensor *ls_self_attention(ls_context *c, ls_tensor *qkv, int heads,
                                    double scale, bool causal);

/*
 * Pooling over windows of an image [n,h,w,c].
 */

/* With `opts->relu`, of relu(x) in the same pass */
LS_API ls_tensor *ls_max_pool2d(ls_context *c, ls_tensor *x, const ls_pool_options *opts);

/* The mean of the elements inside the image: padding is not counted */
LS_API ls_tensor *ls_avg_pool2d(ls_context *c, ls_tensor *x, const ls_pool_options *opts);

/* [n,c] */
LS_API ls_tensor *ls_global_avg_pool2d(ls_context *c, ls_tensor *x);

/* [n,c] */
LS_API ls_tensor *ls_global_max_pool2d(ls_context *c, ls_tensor *x);

/*
 * Shapes. If no element has to move, the result is a view of the same memory.
 */

/* One size may be -1 */
LS_API ls_tensor *ls_reshape(ls_context *c, ls_tensor *x, ls_shape shape);

/* perm NULL: all axes reversed */
LS_API ls_tensor *ls_transpose(ls_context *c, ls_tensor *x, const int *perm);

/* axes NULL: every axis of size 1 */
LS_API ls_tensor *ls_squeeze(ls_context *c, ls_tensor *x, const int *axes, size_t naxes);

LS_API ls_tensor *ls_expand_dims(ls_context *c, ls_tensor *x, int axis);

LS_API ls_tensor *ls_broadcast_to(ls_context *c, ls_tensor *x, ls_shape shape);

/* multiples: one per axis */
LS_API ls_tensor *ls_tile(ls_context *c, ls_tensor *x, const int64_t *multiples);

/* paddings: 2 per axis, before and after */
LS_API ls_tensor *ls_pad(ls_context *c, ls_tensor *x, const int64_t *paddings,
                         double value);

/* begin, size: one per axis; size -1: to the end */
LS_API ls_tensor *ls_slice(ls_context *c, ls_tensor *x, const int64_t *begin,
                           const int64_t *size);

LS_API ls_tensor *ls_concat(ls_context *c, ls_tensor *const *xs, size_t n, int axis);

LS_API ls_tensor *ls_stack(ls_context *c, ls_tensor *const *xs, size_t n, int axis);

/* The gradient for axis 0 is sparse */
LS_API ls_tensor *ls_gather(ls_context *c, ls_tensor *x, ls_tensor *indices, int axis);

/* Zeros of `shape` with `updates` added to the rows `indices` */
LS_API ls_tensor *ls_scatter(ls_context *c, ls_tensor *indices, ls_tensor *updates,
                             ls_shape shape);

/* An index out of range gives a row of zeros */
LS_API ls_tensor *ls_one_hot(ls_context *c, ls_tensor *indices, int64_t depth,
                             ls_dtype dtype);

/* x, without a gradient through it */
LS_API ls_tensor *ls_stop_gradient(ls_context *c, ls_tensor *x);

/* x as a new tensor */
LS_API ls_tensor *ls_identity(ls_context *c, ls_tensor *x);

/*
 * Softmax, normalisation, losses. A loss has one value per example.
 */

/* Over the last axis */
LS_API ls_tensor *ls_softmax(ls_context *c, ls_tensor *x);

LS_API ls_tensor *ls_log_softmax(ls_context *c, ls_tensor *x);

/* Over the last axis */
LS_API ls_tensor *ls_layer_norm(ls_context *c, ls_tensor *x, ls_tensor *gamma,
                                ls_tensor *beta, double epsilon);

/*
 * For training: normalises by the moments over all axes but the last, and returns them
 * (divided by n) through `mean` and `variance` if these are not NULL. The moments of an
 * empty batch (which the last step may give a replica) are 0, so that a sum weighted by
 * rows is right; ls_moving_average() leaves an empty batch out.
 */
LS_API ls_tensor *ls_batch_norm(ls_context *c, ls_tensor *x, ls_tensor *gamma,
                                ls_tensor *beta, double epsilon, ls_tensor **mean,
                                ls_tensor **variance);

/* For inference: normalises by the moments given */
LS_API ls_tensor *ls_batch_norm_inference(ls_context *c, ls_tensor *x, ls_tensor *gamma,
                                          ls_tensor *beta, ls_tensor *mean,
                                          ls_tensor *variance, double epsilon);

/*
 * momentum * moving + (1 - momentum) * moment, without a gradient; `moving` itself if
 * `x`, whose moment it is, has no elements.
 */
LS_API ls_tensor *ls_moving_average(ls_context *c, ls_tensor *moving, ls_tensor *moment,
                                    ls_tensor *x, double momentum);

/* labels: class numbers, int32 or int64 */
LS_API ls_tensor *ls_sparse_softmax_cross_entropy(ls_context *c, ls_tensor *logits,
                                                  ls_tensor *labels);

/* labels: a probability distribution per row */
LS_API ls_tensor *ls_softmax_cross_entropy(ls_context *c, ls_tensor *logits,
                                           ls_tensor *labels);

/* Elementwise */
LS_API ls_tensor *ls_sigmoid_cross_entropy(ls_context *c, ls_tensor *logits,
                                           ls_tensor *labels);

/* Mean over the last axis */
LS_API ls_tensor *ls_mean_squared_error(ls_context *c, ls_tensor *output,
                                        ls_tensor *target);

/*
 * Random numbers. Each call uses the next positions of the context's stream
 * (ls_random_state in lockstep/context.h): seed, stream and position determine the
 * result. A call that fails uses none.
 */

/* Sets elements to 0 with probability `rate`, scales the others by 1 / (1 - rate) */
LS_API ls_tensor *ls_dropout(ls_context *c, ls_tensor *x, double rate);

/* In [lo, hi) */
LS_API ls_tensor *ls_random_uniform(ls_context *c, ls_dtype dtype, ls_shape shape,
                                    double lo, double hi);

LS_API ls_tensor *ls_random_normal(ls_context *c, ls_dtype dtype, ls_shape shape,
                                   double mean, double stddev);

/* Values beyond 2 stddev are drawn again */
LS_API ls_tensor *ls_random_truncated_normal(ls_context *c, ls_dtype dtype,
                                             ls_shape shape, double mean, double stddev);

/*
 * The same with a seed of their own: the two numbers of `seed` alone determine the
 * result, not the state of the context. They are tf.random.stateless_uniform and its like
 * with the algorithm "philox": uniform numbers, and the elements that dropout of float32
 * keeps, are TensorFlow's bit by bit (except that `hi` itself, which rounding can give in
 * TensorFlow, does not occur); normal ones agree within some units in the last place.
 * Integers are drawn modulo the range, from 32 bits for int32 and uint32, as TensorFlow
 * does, so they are only nearly uniform, the better the smaller the range.
 */
LS_API ls_tensor *ls_stateless_dropout(ls_context *c, ls_tensor *x, double rate,
                                       const int64_t seed[2]);
LS_API ls_tensor *ls_stateless_random_uniform(ls_context *c, ls_dtype dtype,
                                              ls_shape shape, const int64_t seed[2],
                                              double lo, double hi);
LS_API ls_tensor *ls_stateless_random_normal(ls_context *c, ls_dtype dtype,
                                             ls_shape shape, const int64_t seed[2],
                                             double mean, double stddev);
LS_API ls_tensor *ls_stateless_random_truncated_normal(ls_context *c, ls_dtype dtype,
                                                       ls_shape shape,
                                                       const int64_t seed[2], double mean,
                                                       double stddev);

/*
 * Cuts `x` along `axis` into parts of the `n` sizes given; outs[0..n-1] receive them
 * (NULL after a failure).
 */
LS_API void ls_split(ls_context *c, ls_tensor *x, const int64_t *sizes, size_t n,
                     int axis, ls_tensor **outs);

#ifdef __cplusplus
}
#endif

#ifndef LS_NO_PLACES
/* clang-format off */
#define ls_neg(c, ...) LS_PLACED(c, (ls_neg)((c), __VA_ARGS__))
#define ls_abs(c, ...) LS_PLACED(c, (ls_abs)((c), __VA_ARGS__))
#define ls_sign(c, ...) LS_PLACED(c, (ls_sign)((c), __VA_ARGS__))
#define ls_exp(c, ...) LS_PLACED(c, (ls_exp)((c), __VA_ARGS__))
#define ls_log(c, ...) LS_PLACED(c, (ls_log)((c), __VA_ARGS__))
#define ls_log1p(c, ...) LS_PLACED(c, (ls_log1p)((c), __VA_ARGS__))
#define ls_sqrt(c, ...) LS_PLACED(c, (ls_sqrt)((c), __VA_ARGS__))
#define ls_rsqrt(c, ...) LS_PLACED(c, (ls_rsqrt)((c), __VA_ARGS__))
#define ls_square(c, ...) LS_PLACED(c, (ls_square)((c), __VA_ARGS__))
#define ls_reciprocal(c, ...) LS_PLACED(c, (ls_reciprocal)((c), __VA_ARGS__))
#define ls_erf(c, ...) LS_PLACED(c, (ls_erf)((c), __VA_ARGS__))
#define ls_relu(c, ...) LS_PLACED(c, (ls_relu)((c), __VA_ARGS__))
#define ls_leaky_relu(c, ...) LS_PLACED(c, (ls_leaky_relu)((c), __VA_ARGS__))
#define ls_elu(c, ...) LS_PLACED(c, (ls_elu)((c), __VA_ARGS__))
#define ls_sigmoid(c, ...) LS_PLACED(c, (ls_sigmoid)((c), __VA_ARGS__))
#define ls_tanh(c, ...) LS_PLACED(c, (ls_tanh)((c), __VA_ARGS__))
#define ls_softplus(c, ...) LS_PLACED(c, (ls_softplus)((c), __VA_ARGS__))
#define ls_gelu(c, ...) LS_PLACED(c, (ls_gelu)((c), __VA_ARGS__))
#define ls_silu(c, ...) LS_PLACED(c, (ls_silu)((c), __VA_ARGS__))
#define ls_clip(c, ...) LS_PLACED(c, (ls_clip)((c), __VA_ARGS__))
#define ls_cast(c, ...) LS_PLACED(c, (ls_cast)((c), __VA_ARGS__))
#define ls_logical_not(c, ...) LS_PLACED(c, (ls_logical_not)((c), __VA_ARGS__))
#define ls_add(c, ...) LS_PLACED(c, (ls_add)((c), __VA_ARGS__))
#define ls_sub(c, ...) LS_PLACED(c, (ls_sub)((c), __VA_ARGS__))
#define ls_mul(c, ...) LS_PLACED(c, (ls_mul)((c), __VA_ARGS__))
#define ls_div(c, ...) LS_PLACED(c, (ls_div)((c), __VA_ARGS__))
#define ls_floordiv(c, ...) LS_PLACED(c, (ls_floordiv)((c), __VA_ARGS__))
#define ls_mod(c, ...) LS_PLACED(c, (ls_mod)((c), __VA_ARGS__))
#define ls_pow(c, ...) LS_PLACED(c, (ls_pow)((c), __VA_ARGS__))
#define ls_maximum(c, ...) LS_PLACED(c, (ls_maximum)((c), __VA_ARGS__))
#define ls_minimum(c, ...) LS_PLACED(c, (ls_minimum)((c), __VA_ARGS__))
#define ls_equal(c, ...) LS_PLACED(c, (ls_equal)((c), __VA_ARGS__))
#define ls_not_equal(c, ...) LS_PLACED(c, (ls_not_equal)((c), __VA_ARGS__))
#define ls_less(c, ...) LS_PLACED(c, (ls_less)((c), __VA_ARGS__))
#define ls_less_equal(c, ...) LS_PLACED(c, (ls_less_equal)((c), __VA_ARGS__))
#define ls_greater(c, ...) LS_PLACED(c, (ls_greater)((c), __VA_ARGS__))
#define ls_greater_equal(c, ...) LS_PLACED(c, (ls_greater_equal)((c), __VA_ARGS__))
#define ls_logical_and(c, ...) LS_PLACED(c, (ls_logical_and)((c), __VA_ARGS__))
#define ls_logical_or(c, ...) LS_PLACED(c, (ls_logical_or)((c), __VA_ARGS__))
#define ls_where(c, ...) LS_PLACED(c, (ls_where)((c), __VA_ARGS__))
#define ls_sum(c, ...) LS_PLACED(c, (ls_sum)((c), __VA_ARGS__))
#define ls_mean(c, ...) LS_PLACED(c, (ls_mean)((c), __VA_ARGS__))
#define ls_prod(c, ...) LS_PLACED(c, (ls_prod)((c), __VA_ARGS__))
#define ls_max(c, ...) LS_PLACED(c, (ls_max)((c), __VA_ARGS__))
#define ls_min(c, ...) LS_PLACED(c, (ls_min)((c), __VA_ARGS__))
#define ls_any(c, ...) LS_PLACED(c, (ls_any)((c), __VA_ARGS__))
#define ls_all(c, ...) LS_PLACED(c, (ls_all)((c), __VA_ARGS__))
#define ls_logsumexp(c, ...) LS_PLACED(c, (ls_logsumexp)((c), __VA_ARGS__))
#define ls_argmax(c, ...) LS_PLACED(c, (ls_argmax)((c), __VA_ARGS__))
#define ls_argmin(c, ...) LS_PLACED(c, (ls_argmin)((c), __VA_ARGS__))
#define ls_matmul(c, ...) LS_PLACED(c, (ls_matmul)((c), __VA_ARGS__))
#define ls_matmul_t(c, ...) LS_PLACED(c, (ls_matmul_t)((c), __VA_ARGS__))
#define ls_dense(c, ...) LS_PLACED(c, (ls_dense)((c), __VA_ARGS__))
#define ls_conv2d(c, ...) LS_PLACED(c, (ls_conv2d)((c), __VA_ARGS__))
#define ls_depthwise_conv2d(c, ...) LS_PLACED(c, (ls_depthwise_conv2d)((c), __VA_ARGS__))
#define ls_attention(c, ...) LS_PLACED(c, (ls_attention)((c), __VA_ARGS__))
#define ls_self_attention(c, ...) LS_PLACED(c, (ls_self_attention)((c), __VA_ARGS__))
#define ls_max_pool2d(c, ...) LS_PLACED(c, (ls_max_pool2d)((c), __VA_ARGS__))
#define ls_avg_pool2d(c, ...) LS_PLACED(c, (ls_avg_pool2d)((c), __VA_ARGS__))
#define ls_global_avg_pool2d(c, ...) LS_PLACED(c, (ls_global_avg_pool2d)((c), __VA_ARGS__))
#define ls_global_max_pool2d(c, ...) LS_PLACED(c, (ls_global_max_pool2d)((c), __VA_ARGS__))
#define ls_reshape(c, ...) LS_PLACED(c, (ls_reshape)((c), __VA_ARGS__))
#define ls_transpose(c, ...) LS_PLACED(c, (ls_transpose)((c), __VA_ARGS__))
#define ls_squeeze(c, ...) LS_PLACED(c, (ls_squeeze)((c), __VA_ARGS__))
#define ls_expand_dims(c, ...) LS_PLACED(c, (ls_expand_dims)((c), __VA_ARGS__))
#define ls_broadcast_to(c, ...) LS_PLACED(c, (ls_broadcast_to)((c), __VA_ARGS__))
#define ls_tile(c, ...) LS_PLACED(c, (ls_tile)((c), __VA_ARGS__))
#define ls_pad(c, ...) LS_PLACED(c, (ls_pad)((c), __VA_ARGS__))
#define ls_slice(c, ...) LS_PLACED(c, (ls_slice)((c), __VA_ARGS__))
#define ls_concat(c, ...) LS_PLACED(c, (ls_concat)((c), __VA_ARGS__))
#define ls_stack(c, ...) LS_PLACED(c, (ls_stack)((c), __VA_ARGS__))
#define ls_gather(c, ...) LS_PLACED(c, (ls_gather)((c), __VA_ARGS__))
#define ls_scatter(c, ...) LS_PLACED(c, (ls_scatter)((c), __VA_ARGS__))
#define ls_one_hot(c, ...) LS_PLACED(c, (ls_one_hot)((c), __VA_ARGS__))
#define ls_stop_gradient(c, ...) LS_PLACED(c, (ls_stop_gradient)((c), __VA_ARGS__))
#define ls_identity(c, ...) LS_PLACED(c, (ls_identity)((c), __VA_ARGS__))
#define ls_softmax(c, ...) LS_PLACED(c, (ls_softmax)((c), __VA_ARGS__))
#define ls_log_softmax(c, ...) LS_PLACED(c, (ls_log_softmax)((c), __VA_ARGS__))
#define ls_layer_norm(c, ...) LS_PLACED(c, (ls_layer_norm)((c), __VA_ARGS__))
#define ls_batch_norm(c, ...) LS_PLACED(c, (ls_batch_norm)((c), __VA_ARGS__))
#define ls_batch_norm_inference(c, ...) LS_PLACED(c, (ls_batch_norm_inference)((c), __VA_ARGS__))
#define ls_moving_average(c, ...) LS_PLACED(c, (ls_moving_average)((c), __VA_ARGS__))
#define ls_sparse_softmax_cross_entropy(c, ...) LS_PLACED(c, (ls_sparse_softmax_cross_entropy)((c), __VA_ARGS__))
#define ls_softmax_cross_entropy(c, ...) LS_PLACED(c, (ls_softmax_cross_entropy)((c), __VA_ARGS__))
#define ls_sigmoid_cross_entropy(c, ...) LS_PLACED(c, (ls_sigmoid_cross_entropy)((c), __VA_ARGS__))
#define ls_mean_squared_error(c, ...) LS_PLACED(c, (ls_mean_squared_error)((c), __VA_ARGS__))
#define ls_dropout(c, ...) LS_PLACED(c, (ls_dropout)((c), __VA_ARGS__))
#define ls_random_uniform(c, ...) LS_PLACED(c, (ls_random_uniform)((c), __VA_ARGS__))
#define ls_random_normal(c, ...) LS_PLACED(c, (ls_random_normal)((c), __VA_ARGS__))
#define ls_random_truncated_normal(c, ...) LS_PLACED(c, (ls_random_truncated_normal)((c), __VA_ARGS__))
#define ls_stateless_dropout(c, ...) LS_PLACED(c, (ls_stateless_dropout)((c), __VA_ARGS__))
#define ls_stateless_random_uniform(c, ...) LS_PLACED(c, (ls_stateless_random_uniform)((c), __VA_ARGS__))
#define ls_stateless_random_normal(c, ...) LS_PLACED(c, (ls_stateless_random_normal)((c), __VA_ARGS__))
#define ls_stateless_random_truncated_normal(c, ...) LS_PLACED(c, (ls_stateless_random_truncated_normal)((c), __VA_ARGS__))
#define ls_split(c, ...) LS_PLACED_VOID(c, (ls_split)((c), __VA_ARGS__))
#define ls_constant(c, ...) LS_PLACED(c, (ls_constant)((c), __VA_ARGS__))
#define ls_item(c, ...) ls_placed_item((c), (ls_item)((c), __VA_ARGS__), __FILE__, __LINE__)
/* clang-format on */
#endif
#endif /* LS_OP_H */
