/* Reductions over axes: values, gradients, empty axes, arguments. */
#include "ls_row_check.h"

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

#define AXES(...) (const int[]){__VA_ARGS__}, LSI_COUNT_OF(((const int[]){__VA_ARGS__}))
static const int no_axes[1] = {0};

LST_TEST(numbers_of_every_dtype_reduce_over_any_axes)
{
    static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_F16, LS_BF16, LS_I8,  LS_I16,
                                      LS_I32, LS_I64, LS_U8,  LS_U16,  LS_U32, LS_U64};

    for (size_t i = 0; i < LSI_COUNT_OF(dtypes); i++) {
        const ls_dtype d = dtypes[i];
        ls_runtime *rt;
        ls_context *c = lst_open(&rt);
        ls_tensor *x = of(c, d, LS_SHAPE(2, 3, 2), D(1, 2, 3, 4, 5, 6, 2, 1, 1, 1, 3, 1));

        LST_CHECK(is_exactly(c, ls_sum(c, x, NULL, 0, false), d, LS_SCALAR, D(30)));
        LST_CHECK(is_exactly(c, ls_sum(c, x, AXES(1), false), d, LS_SHAPE(2, 2),
                             D(9, 12, 6, 3)));
        LST_CHECK(is_exactly(c, ls_sum(c, x, AXES(-1, 0), true), d, LS_SHAPE(1, 3, 1),
                             D(6, 9, 15)));
        LST_CHECK(is_exactly(c, ls_mean(c, x, AXES(1), false), d, LS_SHAPE(2, 2),
                             D(3, 4, 2, 1)));
        LST_CHECK(is_exactly(c, ls_prod(c, x, AXES(0), false), d, LS_SHAPE(3, 2),
                             D(2, 2, 3, 4, 15, 6)));
        LST_CHECK(is_exactly(c, ls_max(c, x, AXES(2), false), d, LS_SHAPE(2, 3),
                             D(2, 4, 6, 2, 1, 3)));
        LST_CHECK(
            is_exactly(c, ls_min(c, x, AXES(0, 2), false), d, LS_SHAPE(3), D(1, 1, 1)));
        LST_CHECK(
            is_exactly(c, ls_argmax(c, x, 1), LS_I64, LS_SHAPE(2, 2), D(2, 2, 2, 0)));
        LST_CHECK(
            is_exactly(c, ls_argmin(c, x, -2), LS_I64, LS_SHAPE(2, 2), D(0, 0, 1, 0)));
        lst_close(c, rt);
    }
}

LST_TEST(an_empty_list_of_axes_reduces_nothing)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = F32(c, LS_SHAPE(2, 2), 1, 2, 3, 4);

    LST_CHECK(
        lst_holds(ls_sum(c, x, no_axes, 0, false), LS_SHAPE(2, 2), D(1, 2, 3, 4), 0));
    LST_CHECK(
        lst_holds(ls_max(c, x, no_axes, 0, true), LS_SHAPE(2, 2), D(1, 2, 3, 4), 0));
    lst_close(c, rt);
}

LST_TEST(nothing_reduces_to_the_identity)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    const ls_shape s = LS_SHAPE(2);
    ls_tensor *x = ZEROS(c, LS_SHAPE(2, 0));
    ls_tensor *n = ls_constant(c, LS_I32, LS_SHAPE(2, 0), NULL);
    ls_tensor *u = ls_constant(c, LS_U8, LS_SHAPE(2, 0), NULL);
    ls_tensor *b = ls_constant(c, LS_BOOL, LS_SHAPE(2, 0), NULL);

    LST_CHECK(lst_holds(ls_sum(c, x, AXES(1), false), s, D(0, 0), 0));
    LST_CHECK(lst_holds(ls_prod(c, x, AXES(1), false), s, D(1, 1), 0));
    LST_CHECK(lst_holds(ls_mean(c, x, AXES(1), false), s, D(NAN, NAN), 0));
    LST_CHECK(lst_holds(ls_max(c, x, AXES(1), false), s, D(-INFINITY, -INFINITY), 0));
    LST_CHECK(lst_holds(ls_min(c, x, AXES(1), false), s, D(INFINITY, INFINITY), 0));
    LST_CHECK(
        lst_holds(ls_logsumexp(c, x, AXES(1), false), s, D(-INFINITY, -INFINITY), 0));
    LST_CHECK(is_exactly(c, ls_max(c, n, AXES(1), false), LS_I32, s,
                         D(-2147483648.0, -2147483648.0)));
    LST_CHECK(is_exactly(c, ls_min(c, n, AXES(1), false), LS_I32, s,
                         D(2147483647, 2147483647)));
    LST_CHECK(is_exactly(c, ls_max(c, u, AXES(1), false), LS_U8, s, D(0, 0)));
    LST_CHECK(is_exactly(c, ls_min(c, u, AXES(1), false), LS_U8, s, D(255, 255)));
    LST_CHECK(is_exactly(c, ls_mean(c, n, AXES(1), false), LS_I32, s, D(0, 0)));
    LST_CHECK(is_exactly(c, ls_any(c, b, AXES(1), false), LS_BOOL, s, D(0, 0)));
    LST_CHECK(is_exactly(c, ls_all(c, b, AXES(1), false), LS_BOOL, s, D(1, 1)));
    LST_CHECK(lst_holds(ls_sum(c, x, AXES(0), false), LS_SHAPE(0), NULL, 0));
    lst_close(c, rt);
}

LST_TEST(any_and_all_look_at_every_element)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *b =
        ls_constant(c, LS_BOOL, LS_SHAPE(3, 2), (const uint8_t[]){0, 0, 0, 1, 1, 1});

    LST_CHECK(
        is_exactly(c, ls_any(c, b, AXES(1), false), LS_BOOL, LS_SHAPE(3), D(0, 1, 1)));
    LST_CHECK(
        is_exactly(c, ls_all(c, b, AXES(1), false), LS_BOOL, LS_SHAPE(3), D(0, 0, 1)));
    lst_close(c, rt);
}

LST_TEST(sums_of_small_floats_are_not_lost_in_large_ones)
{
    enum { N = 4096 };
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *h = lsi_fill(c, LS_F16, &(ls_shape){1, {N}}, 1);
    ls_tensor *f = ls_constant(c, LS_F32, LS_SHAPE(N), NULL);

    for (int i = 0; i < N; i++) {
        ((float *)f->data)[i] = i == 0 ? 0x1p26F : 1;
    }
    LST_CHECK(lst_at(ls_sum(c, h, NULL, 0, false), 0) == N); // ones stop at 2048 in half
    LST_CHECK(lst_at(ls_sum(c, f, NULL, 0, false), 0) == 0x1p26 + 4096); // 4095, rounded
    lst_close(c, rt);
}

LST_TEST(integers_divide_and_wrap_as_their_dtype_does)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = of(c, LS_I32, LS_SHAPE(2), D(-3, -4));
    ls_tensor *u = of(c, LS_U8, LS_SHAPE(2), D(200, 100));

    LST_CHECK(is_exactly(c, ls_mean(c, x, NULL, 0, false), LS_I32, LS_SCALAR, D(-3)));
    LST_CHECK(is_exactly(c, ls_sum(c, u, NULL, 0, false), LS_U8, LS_SCALAR, D(44)));
    LST_CHECK(is_exactly(c, ls_mean(c, u, NULL, 0, false), LS_U8, LS_SCALAR, D(150)));
    lst_close(c, rt);
}

LST_TEST(logsumexp_neither_overflows_nor_loses_infinities)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = F32(c, LS_SHAPE(4, 2), 1000, 1000, -1000, -1000, -INFINITY, -INFINITY,
                       INFINITY, 0);

    LST_CHECK(lst_holds(ls_logsumexp(c, x, AXES(1), false), LS_SHAPE(4),
                        D(1000.6931471805599, -999.3068528194401, -INFINITY, INFINITY),
                        1e-7));
    lst_close(c, rt);
}

LST_TEST(a_nan_wins_extremes_and_is_passed_over_by_argmax)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = F32(c, LS_SHAPE(3, 3), 1, NAN, 3, -INFINITY, -INFINITY, NAN, 5, 5, 1);

    LST_CHECK(lst_holds(ls_max(c, x, AXES(1), false), LS_SHAPE(3), D(NAN, NAN, 5), 0));
    LST_CHECK(lst_holds(ls_min(c, x, AXES(1), false), LS_SHAPE(3), D(NAN, NAN, 1), 0));
    LST_CHECK(is_exactly(c, ls_argmax(c, x, 1), LS_I64, LS_SHAPE(3), D(2, 0, 0)));
    LST_CHECK(is_exactly(c, ls_argmin(c, x, 1), LS_I64, LS_SHAPE(3), D(0, 0, 2)));
    lst_close(c, rt);
}

LST_TEST(mistakes_are_named)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);

    LST_CHECK(ls_sum(c, ZEROS(c, LS_SHAPE(2, 3)), AXES(2), false) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT,
                   "sum: there is no axis 2 in float32 (2, 3), which has 2 axes");
    LST_CHECK(ls_mean(c, ZEROS(c, LS_SHAPE(2, 3)), AXES(1, -1), false) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT,
                   "mean: axis -1 of float32 (2, 3) is listed twice");
    LST_CHECK(ls_argmax(c, ZEROS(c, LS_SHAPE(2, 0)), 1) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "argmax: axis 1 of float32 (2, 0) is empty");
    LST_CHECK(ls_argmin(c, ZEROS(c, LS_SHAPE(2)), -2) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "argmin: there is no axis -2");
    LST_CHECK(ls_any(c, ZEROS(c, LS_SHAPE(2)), NULL, 0, false) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "any: needs bool");
    LST_CHECK(ls_sum(c, ls_constant(c, LS_BOOL, LS_SHAPE(2), NULL), NULL, 0, false) ==
              NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "sum: needs numbers");
    LST_CHECK(ls_logsumexp(c, ls_constant(c, LS_I32, LS_SHAPE(2), NULL), NULL, 0,
                           false) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "logsumexp: needs a floating dtype");
    LST_CHECK(ls_sum(c, NULL, AXES(5), false) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "sum: input 0 is NULL");
    lst_close(c, rt);
}

typedef ls_tensor *(*front_door)(ls_context *c, ls_tensor *x, const int *axes,
                                 size_t naxes, bool keepdims);

LST_TEST(gradients_agree_with_differences_over_any_axes)
{
    static const front_door doors[] = {ls_sum, ls_mean, ls_prod,
                                       ls_max, ls_min,  ls_logsumexp};
    static const int lists[][3] = {{0}, {1}, {2}, {0, 2}, {2, 1}, {0, 1, 2}};
    static const size_t lengths[] = {1, 1, 1, 2, 2, 3};

    for (size_t i = 0; i < LSI_COUNT_OF(doors); i++) {
        for (size_t j = 0; j < 2 * LSI_COUNT_OF(lists); j++) {
            ls_runtime *rt;
            ls_context *c = lst_open(&rt);
            uint64_t seed = 11;
            ls_tensor *x = lst_random_f64(c, LS_SHAPE(2, 3, 2), -2, 2, &seed);
            lst_call call;

            lst_watch(c, x, &call);
            (void)doors[i](c, x, lists[j / 2], lengths[j / 2], j % 2 == 1);
            lst_check_row(c, &call, 1);
            lst_close(c, rt);
        }
    }
}

LST_TEST(the_gradient_of_prod_is_right_where_elements_are_zero)
{
    static const double rows[][4] = {
        {2, 0, 3, 4}, {0, 0, 5, 1}, {0, 0, 0, 0}, {1, 2, 3, 0}};

    for (size_t i = 0; i < LSI_COUNT_OF(rows); i++) {
        ls_runtime *rt;
        ls_context *c = lst_open(&rt);
        ls_tensor *x = ls_constant(c, LS_F64, LS_SHAPE(4), rows[i]);
        lst_call call;

        lst_watch(c, x, &call);
        (void)ls_prod(c, x, NULL, 0, false);
        lst_check_row(c, &call, 1);
        lst_close(c, rt);
    }
}

LST_TEST(ties_share_the_gradient_of_an_extreme)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = F32(c, LS_SHAPE(2, 3), 4, 4, 1, 2, 3, 2);
    ls_tensor *y = ls_max(c, x, AXES(1), false);
    ls_tensor *g = F32(c, LS_SHAPE(2), 1, 1);
    ls_tensor *gin[1] = {NULL};
    lsi_reduce_attrs attrs = {.mask = 2};
    ls_op_node n;

    memset(&n, 0, sizeof n);
    n.in = &x;
    n.out = &y;
    n.nin = 1;
    n.nout = 1;
    n.needs = 1;
    n.attrs = &attrs;
    lsi_op_max.gradient(c, &n, &g, gin);
    LST_CHECK(lst_holds(gin[0], LS_SHAPE(2, 3), D(0.5, 0.5, 0, 0, 1, 0), 0));
    lst_close(c, rt);
}

LST_MAIN(LST_CASE(numbers_of_every_dtype_reduce_over_any_axes),
         LST_CASE(an_empty_list_of_axes_reduces_nothing),
         LST_CASE(nothing_reduces_to_the_identity),
         LST_CASE(any_and_all_look_at_every_element),
         LST_CASE(sums_of_small_floats_are_not_lost_in_large_ones),
         LST_CASE(integers_divide_and_wrap_as_their_dtype_does),
         LST_CASE(logsumexp_neither_overflows_nor_loses_infinities),
         LST_CASE(a_nan_wins_extremes_and_is_passed_over_by_argmax),
         LST_CASE(mistakes_are_named),
         LST_CASE(gradients_agree_with_differences_over_any_axes),
         LST_CASE(the_gradient_of_prod_is_right_where_elements_are_zero),
         LST_CASE(ties_share_the_gradient_of_an_extreme))
