/* Elementwise operations on two operands of one dtype, with NumPy broadcasting. */
#include "op/op.h"

#include "kernel/ref/ref.h"

/* The row of an operation without attributes, and its public function. */
#define ROW(name, shape, gradient)                                                       \
    LSI_ROW(name, 2, 2, 1, shape, lsi_ref_##name, gradient);                             \
                                                                                         \
    ls_tensor *(ls_##name)(ls_context * c, ls_tensor * a, ls_tensor * b)                 \
    {                                                                                    \
        return lsi_op2(c, &lsi_op_##name, a, b, NULL, 0);                                \
    }

/* Output 0: the shape both operands broadcast to, of `dtype`. */
static ls_status broadcast_pair(ls_op_call *k, ls_dtype dtype)
{
    const ls_shape a = lsi_shape(k->in[0]);
    const ls_shape b = lsi_shape(k->in[1]);

    k->spec[0].dtype = dtype;
    if (!lsi_broadcast(&a, &b, &k->spec[0].shape)) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "%s and %s do not broadcast: sizes must be equal or 1, counted "
                          "from the last axis; see ls_reshape() and ls_expand_dims()",
                          lsi_text_of(k->in[0]).s, lsi_text_of(k->in[1]).s);
    }
    return LS_OK;
}

static ls_status one_dtype(ls_op_call *k)
{
    if (k->in[0]->dtype != k->in[1]->dtype) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "%s and %s have different dtypes; convert one with ls_cast()",
                          lsi_text_of(k->in[0]).s, lsi_text_of(k->in[1]).s);
    }
    return LS_OK;
}

static ls_status two_numbers(ls_op_call *k)
{
    const ls_status st = one_dtype(k);

    if (st == LS_OK && !lsi_dtype_is_number((ls_dtype)k->in[0]->dtype)) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "needs numbers, got %s and %s; convert them with ls_cast()",
                          lsi_text_of(k->in[0]).s, lsi_text_of(k->in[1]).s);
    }
    return st;
}

static ls_status arithmetic(ls_op_call *k)
{
    const ls_status st = two_numbers(k);

    return st != LS_OK ? st : broadcast_pair(k, (ls_dtype)k->in[0]->dtype);
}

/* Less and greater: numbers. */
static ls_status ordering(ls_op_call *k)
{
    const ls_status st = two_numbers(k);

    return st != LS_OK ? st : broadcast_pair(k, LS_BOOL);
}

/* Equal or not: every dtype. */
static ls_status equality(ls_op_call *k)
{
    const ls_status st = one_dtype(k);

    return st != LS_OK ? st : broadcast_pair(k, LS_BOOL);
}

static ls_status logical(ls_op_call *k)
{
    if (k->in[0]->dtype != LS_BOOL || k->in[1]->dtype != LS_BOOL) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "needs bools, got %s and %s; compare them or convert them with "
                          "ls_cast()",
                          lsi_text_of(k->in[0]).s, lsi_text_of(k->in[1]).s);
    }
    return broadcast_pair(k, LS_BOOL);
}

/* The result of a true division: of 8 and 16 bit integers float32, of others float64. */
static ls_dtype quotient_dtype(ls_dtype dtype)
{
    if (lsi_dtype_is_float(dtype)) {
        return dtype;
    }
    return ls_dtype_size(dtype) <= 2 ? LS_F32 : LS_F64;
}

static ls_status division(ls_op_call *k)
{
    const ls_status st = two_numbers(k);

    return st != LS_OK ? st
                       : broadcast_pair(k, quotient_dtype((ls_dtype)k->in[0]->dtype));
}

static void add_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                         ls_tensor **gin)
{
    if (ls_op_needs(n, 0)) {
        gin[0] = lsi_sum_to(c, gout[0], n->in[0]);
    }
    if (ls_op_needs(n, 1)) {
        gin[1] = lsi_sum_to(c, gout[0], n->in[1]);
    }
}

ROW(add, arithmetic, add_gradient)

static void sub_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                         ls_tensor **gin)
{
    if (ls_op_needs(n, 0)) {
        gin[0] = lsi_sum_to(c, gout[0], n->in[0]);
    }
    if (ls_op_needs(n, 1)) {
        gin[1] = ls_neg(c, lsi_sum_to(c, gout[0], n->in[1]));
    }
}

ROW(sub, arithmetic, sub_gradient)

static void mul_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                         ls_tensor **gin)
{
    if (ls_op_needs(n, 0)) {
        gin[0] = lsi_sum_to(c, ls_mul(c, gout[0], n->in[1]), n->in[0]);
    }
    if (ls_op_needs(n, 1)) {
        gin[1] = lsi_sum_to(c, ls_mul(c, gout[0], n->in[0]), n->in[1]);
    }
}

ROW(mul, arithmetic, mul_gradient)

/* The quotient of integers is of another dtype than they: they get no gradient. */
static void div_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                         ls_tensor **gin)
{
    ls_tensor *a = n->in[0];
    ls_tensor *b = n->in[1];

    if (!lsi_dtype_is_float((ls_dtype)a->dtype)) {
        return;
    }
    if (ls_op_needs(n, 0)) {
        gin[0] = lsi_sum_to(c, ls_div(c, gout[0], b), a);
    }
    if (ls_op_needs(n, 1)) {
        ls_tensor *slope = ls_div(c, ls_div(c, ls_neg(c, a), b), b);

        gin[1] = lsi_sum_to(c, ls_mul(c, gout[0], slope), b);
    }
}

ROW(div, division, div_gradient)

ROW(floordiv, arithmetic, NULL)

/* a - b floor(a/b), the floor taken as constant. */
static void mod_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                         ls_tensor **gin)
{
    ls_tensor *a = n->in[0];
    ls_tensor *b = n->in[1];

    if (ls_op_needs(n, 0)) {
        gin[0] = lsi_sum_to(c, gout[0], a);
    }
    if (ls_op_needs(n, 1)) {
        ls_tensor *slope = ls_neg(c, ls_floordiv(c, a, b));

        gin[1] = lsi_sum_to(c, ls_mul(c, gout[0], slope), b);
    }
}

ROW(mod, arithmetic, mod_gradient)

/* b a^(b-1) and a^b log a; the latter is taken as 0 where the logarithm is not real. */
static void pow_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                         ls_tensor **gin)
{
    ls_tensor *a = n->in[0];
    ls_tensor *b = n->in[1];
    const ls_dtype dtype = (ls_dtype)a->dtype;

    if (!lsi_dtype_is_float(dtype)) {
        return;
    }
    if (ls_op_needs(n, 0)) {
        ls_tensor *less = ls_sub(c, b, lsi_scalar(c, dtype, 1));
        ls_tensor *slope = ls_mul(c, b, ls_pow(c, a, less));

        gin[0] = lsi_sum_to(c, ls_mul(c, gout[0], slope), a);
    }
    if (ls_op_needs(n, 1)) {
        ls_tensor *zero = lsi_scalar(c, dtype, 0);
        ls_tensor *real = ls_greater(c, a, zero);
        ls_tensor *safe = ls_where(c, real, a, lsi_scalar(c, dtype, 1));
        ls_tensor *log = ls_where(c, real, ls_log(c, safe), zero);

        gin[1] = lsi_sum_to(c, ls_mul(c, gout[0], ls_mul(c, n->out[0], log)), b);
    }
}

ROW(pow, arithmetic, pow_gradient)

/* Each element's gradient goes to the operand that was taken: `a` where `first`. */
static void choose_gradient(ls_context *c, const ls_op_node *n, ls_tensor *first,
                            ls_tensor *g, ls_tensor **gin)
{
    ls_tensor *zero = lsi_scalar(c, (ls_dtype)n->in[0]->dtype, 0);

    if (ls_op_needs(n, 0)) {
        gin[0] = lsi_sum_to(c, ls_where(c, first, g, zero), n->in[0]);
    }
    if (ls_op_needs(n, 1)) {
        gin[1] = lsi_sum_to(c, ls_where(c, first, zero, g), n->in[1]);
    }
}

static void maximum_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                             ls_tensor **gin)
{
    choose_gradient(c, n, ls_greater_equal(c, n->in[0], n->in[1]), gout[0], gin);
}

ROW(maximum, arithmetic, maximum_gradient)

static void minimum_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                             ls_tensor **gin)
{
    choose_gradient(c, n, ls_less_equal(c, n->in[0], n->in[1]), gout[0], gin);
}

ROW(minimum, arithmetic, minimum_gradient)

ROW(equal, equality, NULL)
ROW(not_equal, equality, NULL)
ROW(less, ordering, NULL)
ROW(less_equal, ordering, NULL)
ROW(greater, ordering, NULL)
ROW(greater_equal, ordering, NULL)
ROW(logical_and, logical, NULL)
ROW(logical_or, logical, NULL)

static ls_status where_shape(ls_op_call *k)
{
    const ls_tensor *cond = k->in[0];
    const ls_tensor *a = k->in[1];
    const ls_tensor *b = k->in[2];
    const ls_shape sc = lsi_shape(cond);
    const ls_shape sa = lsi_shape(a);
    const ls_shape sb = lsi_shape(b);
    ls_shape both;

    if (cond->dtype != LS_BOOL) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "the condition %s must be bool; compare it or use ls_cast()",
                          lsi_text_of(cond).s);
    }
    if (a->dtype != b->dtype) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "%s and %s have different dtypes; convert one with ls_cast()",
                          lsi_text_of(a).s, lsi_text_of(b).s);
    }
    if (a->dtype == LS_STRING) {
        return ls_op_fail(k, LS_UNIMPLEMENTED, "strings are not copied: %s",
                          lsi_text_of(a).s);
    }
    k->spec[0].dtype = (ls_dtype)a->dtype;
    if (!lsi_broadcast(&sa, &sb, &both) ||
        !lsi_broadcast(&sc, &both, &k->spec[0].shape)) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "%s, %s and %s do not broadcast: sizes must be equal or 1, "
                          "counted from the last axis",
                          lsi_text_of(cond).s, lsi_text_of(a).s, lsi_text_of(b).s);
    }
    return LS_OK;
}

static void where_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                           ls_tensor **gin)
{
    ls_tensor *zero = lsi_scalar(c, (ls_dtype)n->in[1]->dtype, 0);

    if (ls_op_needs(n, 1)) {
        gin[1] = lsi_sum_to(c, ls_where(c, n->in[0], gout[0], zero), n->in[1]);
    }
    if (ls_op_needs(n, 2)) {
        gin[2] = lsi_sum_to(c, ls_where(c, n->in[0], zero, gout[0]), n->in[2]);
    }
}

LSI_ROW(where, 3, 3, 1, where_shape, lsi_ref_where, where_gradient);

ls_tensor *(ls_where)(ls_context *c, ls_tensor *cond, ls_tensor *a, ls_tensor *b)
{
    return lsi_op3(c, &lsi_op_where, cond, a, b, NULL, 0);
}
