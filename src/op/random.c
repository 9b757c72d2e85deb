/*
 * Random numbers. Each call decides here where they come from: the next blocks of the
 * context's stream, or the stream of a seed that the call gives. That is an input of the
 * operation, as it is another one in every step.
 */
#include "op/op.h"

#include <math.h>

#include "base/philox.h"
#include "kernel/ref/ref.h"

/* Blocks that `count` numbers take. */
static uint64_t blocks_of(const ls_op *op, int words, int64_t count)
{
    const int64_t per_block = LSI_WORDS_PER_BLOCK / words;
    const int64_t groups = count / per_block + (count % per_block != 0);
    const int64_t each =
        op == &lsi_op_random_truncated_normal ? LSI_TRUNCATED_BLOCKS * per_block : 1;

    return (uint64_t)groups * (uint64_t)each; // no tensor is large enough to wrap
}

/* TensorFlow's way from a seed to a stream: the seed, encrypted with a constant key. */
static ls_random_state scrambled(const int64_t seed[2])
{
    const lsi_words mixed = lsi_random_words(UINT64_C(0x02461e293ec8f720),
                                             (uint64_t)seed[1], (uint64_t)seed[0]);

    return (ls_random_state){(uint64_t)mixed.w[1] << 32 | mixed.w[0],
                             (uint64_t)mixed.w[3] << 32 | mixed.w[2], 0};
}

/* `at` as an input of an operation; NULL: out of memory, the step has failed. */
static ls_tensor *state_tensor(ls_context *c, const ls_random_state *at)
{
    const uint64_t words[LSI_RANDOM_STATE_WORDS] = {at->seed, at->stream, at->position};
    const ls_shape shape = LS_SHAPE(LSI_RANDOM_STATE_WORDS);
    ls_tensor *t = lsi_context_struct(c); // as ls_constant(), which takes longer

    if (t == NULL || !lsi_tensor_init(t, c->device, LS_U64, &shape)) {
        return ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for a tensor");
    }
    lsi_device_copy(c->device, t->data, words, sizeof words);
    return t;
}

/* Checks the last input. */
static ls_status check_state(ls_op_call *k)
{
    const ls_tensor *state = k->in[k->nin - 1];

    if (state->dtype != LS_U64 || state->ndim != 1 ||
        state->count != LSI_RANDOM_STATE_WORDS) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "seed, stream and position must be uint64 (%d,), got %s",
                          LSI_RANDOM_STATE_WORDS, lsi_text_of(state).s);
    }
    return LS_OK;
}

/*
 * Draws `count` numbers from where `at` stands and moves it on if they were drawn. For
 * dropout `x` is what they are for, else NULL.
 */
static ls_tensor *draw_from(ls_context *c, const ls_op *op, ls_random_state *at,
                            int64_t count, ls_tensor *x, const lsi_random_attrs *attrs)
{
    const uint64_t blocks = blocks_of(op, attrs->words, count);
    ls_tensor *state = NULL;
    ls_tensor *y = NULL;

    if (blocks > UINT64_MAX - at->position) {
        return ls_context_fail(c, LS_OUT_OF_RANGE,
                               "%s: the stream ends at position 2^64 and stands at %llu; "
                               "ls_context_set_random_state() chooses another",
                               op->name, (unsigned long long)at->position);
    }
    state = state_tensor(c, at);
    y = op->max_inputs > 1 ? lsi_op2(c, op, x, state, attrs, sizeof *attrs)
                           : lsi_op1(c, op, state, attrs, sizeof *attrs);
    if (y != NULL) { // a failed operation draws nothing
        at->position += blocks;
    }
    return y;
}

/* Checks the shape asked for; then the result is of that shape and dtype. */
static ls_status drawn(ls_op_call *k)
{
    const lsi_random_attrs *attrs = k->attrs;
    const ls_status st = check_state(k);
    char text[128];

    if (st != LS_OK) {
        return st;
    }
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

/* `at` NULL: from the context's own position. */
static ls_tensor *draw_tensor(ls_context *c, const ls_op *op, ls_dtype dtype,
                              const ls_shape *shape, ls_random_state *at, int words,
                              double a, double b)
{
    lsi_random_attrs attrs;

    if (lsi_failed(c)) {
        return NULL;
    }
    memset(&attrs, 0, sizeof attrs);
    attrs.dtype = dtype;
    attrs.words = words;
    attrs.a = a;
    attrs.b = b;
    attrs.shape.ndim = shape->ndim;
    for (int i = 0; i < shape->ndim && i < LS_MAX_DIMS; i++) {
        attrs.shape.dims[i] = shape->dims[i];
    }
    return draw_from(c, op, at != NULL ? at : c->random,
                     LSI_MAX(ls_shape_count(shape), (int64_t)0), NULL, &attrs);
}

static ls_tensor *draw_next(ls_context *c, const ls_op *op, ls_dtype dtype,
                            const ls_shape *shape, double a, double b)
{
    return draw_tensor(c, op, dtype, shape, NULL, lsi_random_words_of(dtype), a, b);
}

/* True if `seed` is not NULL; else the step has failed. */
static bool has_seed(ls_context *c, const int64_t *seed, const char *what)
{
    if (!lsi_failed(c) && seed == NULL) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT,
                              "%s: the seed is NULL; it is two numbers", what);
    }
    return !lsi_failed(c);
}

/* TensorFlow draws 32-bit integers of 32 bits. */
static ls_tensor *draw_by_seed(ls_context *c, const ls_op *op, const char *what,
                               ls_dtype dtype, const ls_shape *shape,
                               const int64_t seed[2], double a, double b)
{
    const bool short_words = dtype == LS_I32 || dtype == LS_U32;
    ls_random_state at;

    if (!has_seed(c, seed, what)) {
        return NULL;
    }
    at = scrambled(seed);
    return draw_tensor(c, op, dtype, shape, &at,
                       short_words ? 1 : lsi_random_words_of(dtype), a, b);
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
            return ls_op_fail(
                k, LS_INVALID_ARGUMENT,
                "[%g, %g) is not a range of %s: both must be whole numbers of "
                "it, the first below the second",
                attrs->a, attrs->b, ls_dtype_name(attrs->dtype));
        }
    } else if (!isfinite(attrs->b - attrs->a) || attrs->a > attrs->b) {
        return ls_op_fail(
            k, LS_INVALID_ARGUMENT,
            "[%g, %g) is not a range: both must be finite, the first not above "
            "the second",
            attrs->a, attrs->b);
    }
    return drawn(k);
}

LSI_ROW(random_uniform, 1, 1, 1, random_uniform_shape, lsi_ref_random_uniform, NULL);

ls_tensor *(ls_random_uniform)(ls_context *c, ls_dtype dtype, ls_shape shape, double lo,
                               double hi)
{
    return draw_next(c, &lsi_op_random_uniform, dtype, &shape, lo, hi);
}

ls_tensor *(ls_stateless_random_uniform)(ls_context *c, ls_dtype dtype, ls_shape shape,
                                         const int64_t seed[2], double lo, double hi)
{
    return draw_by_seed(c, &lsi_op_random_uniform, "stateless_random_uniform", dtype,
                        &shape, seed, lo, hi);
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

LSI_ROW(random_normal, 1, 1, 1, random_normal_shape, lsi_ref_random_normal, NULL);

ls_tensor *(ls_random_normal)(ls_context *c, ls_dtype dtype, ls_shape shape, double mean,
                              double stddev)
{
    return draw_next(c, &lsi_op_random_normal, dtype, &shape, mean, stddev);
}

ls_tensor *(ls_stateless_random_normal)(ls_context *c, ls_dtype dtype, ls_shape shape,
                                        const int64_t seed[2], double mean, double stddev)
{
    return draw_by_seed(c, &lsi_op_random_normal, "stateless_random_normal", dtype,
                        &shape, seed, mean, stddev);
}

LSI_ROW(random_truncated_normal, 1, 1, 1, random_normal_shape,
        lsi_ref_random_truncated_normal, NULL);

ls_tensor *(ls_random_truncated_normal)(ls_context *c, ls_dtype dtype, ls_shape shape,
                                        double mean, double stddev)
{
    return draw_next(c, &lsi_op_random_truncated_normal, dtype, &shape, mean, stddev);
}

ls_tensor *(ls_stateless_random_truncated_normal)(ls_context *c, ls_dtype dtype,
                                                  ls_shape shape, const int64_t seed[2],
                                                  double mean, double stddev)
{
    return draw_by_seed(c, &lsi_op_random_truncated_normal,
                        "stateless_random_truncated_normal", dtype, &shape, seed, mean,
                        stddev);
}

static ls_status dropout_shape(ls_op_call *k)
{
    const lsi_random_attrs *attrs = k->attrs;
    const ls_shape shape = lsi_shape(k->in[0]);
    ls_status st = lsi_shape_same_float(k);

    if (st == LS_OK) {
        st = check_state(k);
    }
    if (st != LS_OK) {
        return st;
    }
    if (!(attrs->a >= 0 && attrs->a < 1)) { // a NaN too
        return ls_op_fail(k, LS_INVALID_ARGUMENT, "the rate %g must lie in [0, 1)",
                          attrs->a);
    }
    return ls_op_set_output(k, 1, LS_U8, &shape);
}

/* Dropped elements get the gradient 0, even for a NaN. */
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

LSI_ROW(dropout, 2, 2, 2, dropout_shape, lsi_ref_dropout, dropout_gradient);

static ls_tensor *drop(ls_context *c, ls_tensor *x, double rate, ls_random_state *at)
{
    lsi_random_attrs attrs;

    if (rate == 0) {
        return ls_identity(c, x);
    }
    memset(&attrs, 0, sizeof attrs);
    attrs.a = rate;
    attrs.words = 1;
    return draw_from(c, &lsi_op_dropout, at, x != NULL ? x->count : 0, x, &attrs);
}

ls_tensor *(ls_dropout)(ls_context *c, ls_tensor *x, double rate)
{
    return lsi_failed(c) ? NULL : drop(c, x, rate, c->random);
}

ls_tensor *(ls_stateless_dropout)(ls_context *c, ls_tensor *x, double rate,
                                  const int64_t seed[2])
{
    ls_random_state at;

    if (!has_seed(c, seed, "stateless_dropout")) {
        return NULL;
    }
    at = scrambled(seed);
    return drop(c, x, rate, &at);
}
