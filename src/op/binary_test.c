/* Operations on two operands: values, broadcasting, gradients, arguments. */
#include "ls_row_check.h"

/* `t` has the dtype and, exactly, the numbers of `want`. */
static bool is_exactly(ls_context *c, ls_tensor *t, ls_dtype dtype, ls_shape shape,
                       const double *want)
{
    return t != NULL && (ls_dtype)t->dtype == dtype &&
           lst_holds(ls_cast(c, t, LS_F64), shape, want, 0);
}

static ls_tensor *of(ls_context *c, ls_dtype dtype, ls_shape shape, const double *values)
{
    return ls_cast(c, ls_constant(c, LS_F64, shape, values), dtype);
}

LST_TEST(floats_of_every_dtype_compute_and_round)
{
    static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_F16, LS_BF16};

    for (size_t i = 0; i < LSI_COUNT_OF(dtypes); i++) {
        const ls_dtype d = dtypes[i];
        ls_runtime *rt;
        ls_context *c = lst_open(&rt);
        const ls_shape s = LS_SHAPE(4);
        ls_tensor *a = of(c, d, s, D(7, -7, 7, -7));
        ls_tensor *b = of(c, d, s, D(2, 2, -2, -2));

        LST_CHECK(is_exactly(c, ls_add(c, a, b), d, s, D(9, -5, 5, -9)));
        LST_CHECK(is_exactly(c, ls_sub(c, a, b), d, s, D(5, -9, 9, -5)));
        LST_CHECK(is_exactly(c, ls_mul(c, a, b), d, s, D(14, -14, -14, 14)));
        LST_CHECK(is_exactly(c, ls_div(c, a, b), d, s, D(3.5, -3.5, -3.5, 3.5)));
        LST_CHECK(is_exactly(c, ls_floordiv(c, a, b), d, s, D(3, -4, -4, 3)));
        LST_CHECK(is_exactly(c, ls_mod(c, a, b), d, s, D(1, 1, -1, -1)));
        LST_CHECK(is_exactly(c, ls_maximum(c, a, b), d, s, D(7, 2, 7, -2)));
        LST_CHECK(is_exactly(c, ls_minimum(c, a, b), d, s, D(2, -7, -2, -7)));
        LST_CHECK(is_exactly(c, ls_pow(c, b, of(c, d, s, D(3, 0, -1, 4))), d, s,
                             D(8, 1, -0.5, 16)));
        lst_close(c, rt);
    }
}

LST_TEST(integers_of_every_dtype_wrap_and_divide_toward_minus_infinity)
{
    static const ls_dtype dtypes[] = {LS_I8, LS_I16, LS_I32, LS_I64};

    for (size_t i = 0; i < LSI_COUNT_OF(dtypes); i++) {
        const ls_dtype d = dtypes[i];
        const double lowest = -ldexp(1, 8 * (int)ls_dtype_size(d) - 1);
        ls_runtime *rt;
        ls_context *c = lst_open(&rt);
        const ls_shape s = LS_SHAPE(5);
        ls_tensor *a = of(c, d, s, D(7, -7, 7, -7, lowest));
        ls_tensor *b = of(c, d, s, D(2, 2, -2, -2, -1));

        LST_CHECK(is_exactly(c, ls_floordiv(c, a, b), d, s, D(3, -4, -4, 3, lowest)));
        LST_CHECK(is_exactly(c, ls_mod(c, a, b), d, s, D(1, 1, -1, -1, 0)));
        LST_CHECK(is_exactly(c, ls_maximum(c, a, b), d, s, D(7, 2, 7, -2, -1)));
        LST_CHECK(is_exactly(c, ls_minimum(c, a, b), d, s, D(2, -7, -2, -7, lowest)));
        LST_CHECK(is_exactly(c, ls_mul(c, a, b), d, s, D(14, -14, -14, 14, lowest)));
        LST_CHECK(is_exactly(c, ls_less(c, a, b), LS_BOOL, s, D(0, 1, 0, 1, 1)));
        LST_CHECK(is_exactly(c, ls_div(c, a, b),
                             d == LS_I8 || d == LS_I16 ? LS_F32 : LS_F64, s,
                             D(3.5, -3.5, -3.5, 3.5, -lowest)));
        lst_close(c, rt);
    }
}

LST_TEST(unsigned_integers_use_all_their_bits)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    const ls_shape s = LS_SHAPE(2);
    ls_tensor *a = ls_constant(c, LS_U64, s, (const uint64_t[]){UINT64_MAX, 3});
    ls_tensor *b = ls_constant(c, LS_U64, s, (const uint64_t[]){2, 5});
    ls_tensor *x = ls_constant(c, LS_U8, s, (const uint8_t[]){200, 3});
    ls_tensor *y = ls_constant(c, LS_U8, s, (const uint8_t[]){100, 5});

    LST_CHECK(is_exactly(c, ls_greater(c, a, b), LS_BOOL, s, D(1, 0)));
    LST_CHECK(is_exactly(c, ls_floordiv(c, a, b), LS_U64, s, D(0x1p63, 0)));
    LST_CHECK(is_exactly(c, ls_mod(c, a, b), LS_U64, s, D(1, 3)));
    LST_CHECK(is_exactly(c, ls_minimum(c, a, b), LS_U64, s, D(2, 3)));
    LST_CHECK(is_exactly(c, ls_add(c, x, y), LS_U8, s, D(44, 8)));
    LST_CHECK(is_exactly(c, ls_sub(c, x, y), LS_U8, s, D(100, 254)));
    LST_CHECK(is_exactly(c, ls_pow(c, y, x), LS_U8, s, D(0, 125)));
    lst_close(c, rt);
}

LST_TEST(comparisons_and_logic_have_their_tables)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    const ls_shape s = LS_SHAPE(4);
    ls_tensor *a = F32(c, s, 1, 2, 3, NAN);
    ls_tensor *b = F32(c, s, 2, 2, 2, NAN);
    ls_tensor *p = ls_constant(c, LS_BOOL, s, (const uint8_t[]){0, 0, 1, 1});
    ls_tensor *q = ls_constant(c, LS_BOOL, s, (const uint8_t[]){0, 1, 0, 1});

    LST_CHECK(is_exactly(c, ls_equal(c, a, b), LS_BOOL, s, D(0, 1, 0, 0)));
    LST_CHECK(is_exactly(c, ls_not_equal(c, a, b), LS_BOOL, s, D(1, 0, 1, 1)));
    LST_CHECK(is_exactly(c, ls_less(c, a, b), LS_BOOL, s, D(1, 0, 0, 0)));
    LST_CHECK(is_exactly(c, ls_less_equal(c, a, b), LS_BOOL, s, D(1, 1, 0, 0)));
    LST_CHECK(is_exactly(c, ls_greater(c, a, b), LS_BOOL, s, D(0, 0, 1, 0)));
    LST_CHECK(is_exactly(c, ls_greater_equal(c, a, b), LS_BOOL, s, D(0, 1, 1, 0)));
    LST_CHECK(is_exactly(c, ls_logical_and(c, p, q), LS_BOOL, s, D(0, 0, 0, 1)));
    LST_CHECK(is_exactly(c, ls_logical_or(c, p, q), LS_BOOL, s, D(0, 1, 1, 1)));
    LST_CHECK(is_exactly(c, ls_equal(c, p, q), LS_BOOL, s, D(1, 0, 0, 1)));
    lst_close(c, rt);
}

LST_TEST(strings_are_equal_byte_for_byte)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    const ls_string x[] = {{"ab", 2}, {"a\0c", 3}, {"", 0}};
    const ls_string y[] = {{"ab", 2}, {"a\0d", 3}, {"a", 1}};
    ls_tensor *a = ls_constant(c, LS_STRING, LS_SHAPE(3), x);
    ls_tensor *b = ls_constant(c, LS_STRING, LS_SHAPE(3), y);

    LST_CHECK(is_exactly(c, ls_equal(c, a, b), LS_BOOL, LS_SHAPE(3), D(1, 0, 0)));
    LST_CHECK(is_exactly(c, ls_not_equal(c, a, b), LS_BOOL, LS_SHAPE(3), D(0, 1, 1)));
    lst_close(c, rt);
}

LST_TEST(a_nan_wins_and_a_zero_divisor_of_floats_is_no_error)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    const ls_shape s = LS_SHAPE(3);
    ls_tensor *a = F32(c, s, NAN, 1, 0);
    ls_tensor *b = F32(c, s, 1, NAN, 0);

    LST_CHECK(lst_holds(ls_maximum(c, a, b), s, D(NAN, NAN, 0), 0));
    LST_CHECK(lst_holds(ls_minimum(c, a, b), s, D(NAN, NAN, 0), 0));
    LST_CHECK(lst_holds(ls_div(c, F32(c, s, 1, -1, 0), F32(c, s, 0, 0, 0)), s,
                        D(INFINITY, -INFINITY, NAN), 0));
    lst_close(c, rt);
}

/* Indexes both operands by hand: the rule of NumPy written out. */
static double expected(const ls_tensor *a, const ls_tensor *b, const ls_tensor *y,
                       int64_t at)
{
    const ls_tensor *in[2] = {a, b};
    double v[2] = {0, 0};

    for (int i = 0; i < 2; i++) {
        int64_t rest = at;
        int64_t place = 0;
        int64_t stride = 1;

        for (int d = y->ndim - 1; d >= 0; d--) {
            const int own = d - (y->ndim - in[i]->ndim);

            if (own >= 0) {
                place += (in[i]->dims[own] == 1 ? 0 : rest % y->dims[d]) * stride;
                stride *= in[i]->dims[own];
            }
            rest /= y->dims[d];
        }
        v[i] = lst_at(in[i], place);
    }
    return v[0] - v[1];
}

LST_TEST(every_pair_of_shapes_that_go_together_broadcasts)
{
    const ls_shape shapes[] = {
        LS_SCALAR,         LS_SHAPE(1),       LS_SHAPE(4),       LS_SHAPE(3, 1),
        LS_SHAPE(1, 4),    LS_SHAPE(3, 4),    LS_SHAPE(2, 3, 4), LS_SHAPE(2, 1, 4),
        LS_SHAPE(2, 3, 1), LS_SHAPE(2, 1, 1), LS_SHAPE(1, 3, 1), LS_SHAPE(5, 1, 3, 4)};
    uint64_t seed = 1;
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);

    for (size_t i = 0; i < LSI_COUNT_OF(shapes); i++) {
        for (size_t j = 0; j < LSI_COUNT_OF(shapes); j++) {
            ls_tensor *a = lst_random_f64(c, shapes[i], -1, 1, &seed);
            ls_tensor *b = lst_random_f64(c, shapes[j], -1, 1, &seed);
            ls_tensor *y = ls_sub(c, a, b);
            int64_t wrong = 0;

            LST_CHECK(y != NULL);
            for (int64_t at = 0; y != NULL && at < y->count; at++) {
                wrong += lst_at(y, at) != expected(a, b, y, at);
            }
            LST_CHECK(wrong == 0);
        }
    }
    lst_close(c, rt);
}

LST_TEST(empty_operands_broadcast_to_an_empty_result)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *a = ZEROS(c, LS_SHAPE(3, 0));
    ls_tensor *b = ZEROS(c, LS_SHAPE(3, 1));

    LST_CHECK(lst_holds(ls_add(c, a, b), LS_SHAPE(3, 0), NULL, 0));
    // Zero divisors that meet no element are none.
    LST_CHECK(ls_floordiv(c, ls_constant(c, LS_I32, LS_SHAPE(0), NULL),
                          ls_constant(c, LS_I32, LS_SHAPE(1), NULL)) != NULL);
    lst_close(c, rt);
}

LST_TEST(where_chooses_by_element_in_every_size_of_element)
{
    static const ls_dtype dtypes[] = {LS_BOOL, LS_U8, LS_F16, LS_F32, LS_I64, LS_F64};

    for (size_t i = 0; i < LSI_COUNT_OF(dtypes); i++) {
        ls_runtime *rt;
        ls_context *c = lst_open(&rt);
        ls_tensor *cond =
            ls_constant(c, LS_BOOL, LS_SHAPE(2, 1), (const uint8_t[]){1, 0});
        ls_tensor *a = of(c, dtypes[i], LS_SHAPE(3), D(1, 0, 1));
        ls_tensor *b = of(c, dtypes[i], LS_SCALAR, D(0));

        LST_CHECK(is_exactly(c, ls_where(c, cond, a, b), dtypes[i], LS_SHAPE(2, 3),
                             D(1, 0, 1, 0, 0, 0)));
        lst_close(c, rt);
    }
}

LST_TEST(mistakes_are_named_with_operation_operands_and_remedy)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *f = ZEROS(c, LS_SHAPE(2, 3));
    const int32_t minus[] = {1, -2};

    LST_CHECK(ls_add(c, f, ls_constant(c, LS_I32, LS_SHAPE(3), NULL)) == NULL);
    LST_STEP_FAILS(
        c, LS_INVALID_ARGUMENT,
        "add: float32 (2, 3) and int32 (3,) have different dtypes; convert one "
        "with ls_cast()");
    LST_CHECK(ls_mul(c, ZEROS(c, LS_SHAPE(2, 3)), ZEROS(c, LS_SHAPE(4))) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT,
                   "mul: float32 (2, 3) and float32 (4,) do not broadcast");
    LST_CHECK(ls_floordiv(c, ls_constant(c, LS_I32, LS_SHAPE(2), NULL),
                          ls_constant(c, LS_I32, LS_SHAPE(2), NULL)) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "floordiv: element 0 of the divisor is 0");
    LST_CHECK(ls_mod(c, ls_constant(c, LS_U8, LS_SHAPE(2), NULL),
                     ls_constant(c, LS_U8, LS_SHAPE(2), NULL)) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "mod: element 0 of the divisor is 0");
    LST_CHECK(ls_pow(c, ls_constant(c, LS_I32, LS_SHAPE(2), NULL),
                     ls_constant(c, LS_I32, LS_SHAPE(2), minus)) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "pow: element 1 of the exponent is -2");
    LST_CHECK(ls_add(c, ls_constant(c, LS_BOOL, LS_SHAPE(2), NULL),
                     ls_constant(c, LS_BOOL, LS_SHAPE(2), NULL)) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "add: needs numbers");
    LST_CHECK(ls_less(c, ls_constant(c, LS_BOOL, LS_SHAPE(2), NULL),
                      ls_constant(c, LS_BOOL, LS_SHAPE(2), NULL)) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "less: needs numbers");
    LST_CHECK(ls_logical_or(c, ZEROS(c, LS_SHAPE(2)), ZEROS(c, LS_SHAPE(2))) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "logical_or: needs bools");
    lst_close(c, rt);
}

LST_TEST(mistakes_of_where_are_named)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    const ls_string text = {"a", 1};
    ls_tensor *f = ZEROS(c, LS_SHAPE(3));

    LST_CHECK(ls_where(c, f, f, f) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "where: the condition float32 (3,)");
    LST_CHECK(ls_where(c, ls_constant(c, LS_BOOL, LS_SHAPE(3), NULL),
                       ZEROS(c, LS_SHAPE(3)),
                       ls_constant(c, LS_I32, LS_SHAPE(3), NULL)) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "different dtypes");
    LST_CHECK(ls_where(c, ls_constant(c, LS_BOOL, LS_SHAPE(2), NULL),
                       ZEROS(c, LS_SHAPE(3)), ZEROS(c, LS_SHAPE(3))) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "do not broadcast");
    LST_CHECK(ls_where(c, ls_constant(c, LS_BOOL, LS_SHAPE(1), NULL),
                       ls_constant(c, LS_STRING, LS_SHAPE(1), &text),
                       ls_constant(c, LS_STRING, LS_SHAPE(1), &text)) == NULL);
    LST_STEP_FAILS(c, LS_UNIMPLEMENTED, "where: strings");
    lst_close(c, rt);
}

typedef ls_tensor *(*front_door)(ls_context *c, ls_tensor *a, ls_tensor *b);

LST_TEST(gradients_agree_with_differences_through_broadcasting)
{
    static const front_door doors[] = {ls_add, ls_sub,     ls_mul,     ls_div,
                                       ls_mod, ls_maximum, ls_minimum, ls_pow};
    const ls_shape shapes[][2] = {{LS_SHAPE(2, 3), LS_SHAPE(2, 3)},
                                  {LS_SHAPE(2, 3), LS_SHAPE(3)},
                                  {LS_SCALAR, LS_SHAPE(2, 3)},
                                  {LS_SHAPE(2, 1), LS_SHAPE(4, 1, 3)}};

    for (size_t i = 0; i < LSI_COUNT_OF(doors); i++) {
        for (size_t j = 0; j < LSI_COUNT_OF(shapes); j++) {
            ls_runtime *rt;
            ls_context *c = lst_open(&rt);
            uint64_t seed = 7;
            const double lo = doors[i] == ls_pow ? 0.2 : -2;
            ls_tensor *a = lst_random_f64(c, shapes[j][0], lo, 2, &seed);
            ls_tensor *b = lst_random_f64(c, shapes[j][1], 0.3, 2, &seed);
            lst_call call;

            lst_watch(c, a, &call);
            (void)doors[i](c, a, b);
            lst_check_row(c, &call, 1);
            lst_close(c, rt);
        }
    }
}

LST_TEST(the_gradient_of_where_goes_to_the_chosen_operand)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    uint64_t seed = 8;
    ls_tensor *cond = ls_constant(c, LS_BOOL, LS_SHAPE(2, 1), (const uint8_t[]){1, 0});
    ls_tensor *a = lst_random_f64(c, LS_SHAPE(3), -1, 1, &seed);
    ls_tensor *b = lst_random_f64(c, LS_SHAPE(1, 1), -1, 1, &seed);
    lst_call call;

    lst_watch(c, a, &call);
    (void)ls_where(c, cond, a, b);
    lst_check_row(c, &call, 1);
    lst_close(c, rt);
}

/* The gradients of `op` at a and b for ones. */
static void gradients(ls_context *c, const ls_op *op, ls_tensor *a, ls_tensor *b,
                      ls_tensor **gin)
{
    ls_tensor *in[2] = {a, b};
    ls_tensor *y = lsi_op2(c, op, a, b, NULL, 0);
    ls_tensor *ones = lsi_ones_like(c, y);
    ls_op_node n;

    memset(&n, 0, sizeof n);
    n.op = op;
    n.in = in;
    n.out = &y;
    n.nin = 2;
    n.nout = 1;
    n.needs = 3;
    op->gradient(c, &n, &ones, gin);
}

LST_TEST(the_gradients_at_ties_and_at_negative_bases_are_tensorflow_s)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    const ls_shape s = LS_SHAPE(2);
    ls_tensor *gin[2] = {NULL, NULL};

    gradients(c, &lsi_op_maximum, F32(c, s, 1, 1), F32(c, s, 1, 2), gin);
    LST_CHECK(lst_holds(gin[0], s, D(1, 0), 0));
    LST_CHECK(lst_holds(gin[1], s, D(0, 1), 0));
    gradients(c, &lsi_op_minimum, F32(c, s, 1, 1), F32(c, s, 1, 2), gin);
    LST_CHECK(lst_holds(gin[0], s, D(1, 1), 0));
    LST_CHECK(lst_holds(gin[1], s, D(0, 0), 0));
    gradients(c, &lsi_op_pow, F32(c, s, -2, 0), F32(c, s, 3, 2), gin);
    LST_CHECK(lst_holds(gin[0], s, D(12, 0), 0));
    LST_CHECK(lst_holds(gin[1], s, D(0, 0), 0));
    lst_close(c, rt);
}

LST_TEST(floordiv_and_comparisons_have_no_gradient)
{
    LST_CHECK(lsi_op_floordiv.gradient == NULL);
    LST_CHECK(lsi_op_equal.gradient == NULL);
    LST_CHECK(lsi_op_logical_and.gradient == NULL);
}

LST_MAIN(LST_CASE(floats_of_every_dtype_compute_and_round),
         LST_CASE(integers_of_every_dtype_wrap_and_divide_toward_minus_infinity),
         LST_CASE(unsigned_integers_use_all_their_bits),
         LST_CASE(comparisons_and_logic_have_their_tables),
         LST_CASE(strings_are_equal_byte_for_byte),
         LST_CASE(a_nan_wins_and_a_zero_divisor_of_floats_is_no_error),
         LST_CASE(every_pair_of_shapes_that_go_together_broadcasts),
         LST_CASE(empty_operands_broadcast_to_an_empty_result),
         LST_CASE(where_chooses_by_element_in_every_size_of_element),
         LST_CASE(mistakes_are_named_with_operation_operands_and_remedy),
         LST_CASE(mistakes_of_where_are_named),
         LST_CASE(gradients_agree_with_differences_through_broadcasting),
         LST_CASE(the_gradient_of_where_goes_to_the_chosen_operand),
         LST_CASE(the_gradients_at_ties_and_at_negative_bases_are_tensorflow_s),
         LST_CASE(floordiv_and_comparisons_have_no_gradient))
