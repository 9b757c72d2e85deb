/* gather, scatter and one_hot: values, gradients, arguments. */
#include "ls_row_check.h"

#include "lockstep/tape.h"

static ls_tensor *i32(ls_context *c, ls_shape shape, const int32_t *data)
{
    return ls_constant(c, LS_I32, shape, data);
}

static ls_tensor *i64(ls_context *c, ls_shape shape, const int64_t *data)
{
    return ls_constant(c, LS_I64, shape, data);
}

static bool is_exactly(ls_context *c, ls_tensor *t, ls_dtype dtype, ls_shape shape,
                       const double *want)
{
    return t != NULL && (ls_dtype)t->dtype == dtype &&
           lst_holds(ls_cast(c, t, LS_F64), shape, want, 0);
}

static ls_tensor *counted(ls_context *c, ls_dtype dtype, ls_shape shape)
{
    ls_tensor *t = ls_constant(c, LS_F64, shape, NULL);

    for (int64_t i = 0; t != NULL && i < t->count; i++) {
        ((double *)t->data)[i] = (double)i;
    }
    return ls_cast(c, t, dtype);
}

#define ROWS(...)                                                                        \
    (const int32_t[])                                                                    \
    {                                                                                    \
        __VA_ARGS__                                                                      \
    }

LST_TEST(gather_takes_slices_of_any_axis_in_any_order)
{
    static const ls_dtype dtypes[] = {LS_U8, LS_F16, LS_F32, LS_F64};

    for (size_t i = 0; i < LSI_COUNT_OF(dtypes); i++) {
        const ls_dtype d = dtypes[i];
        ls_runtime *rt;
        ls_context *c = lst_open(&rt);
        ls_tensor *x = counted(c, d, LS_SHAPE(3, 2));
        ls_tensor *rows = i32(c, LS_SHAPE(2, 2), ROWS(2, 0, 0, 1));
        ls_tensor *one = i64(c, LS_SCALAR, (const int64_t[]){1});

        LST_CHECK(is_exactly(c, ls_gather(c, x, rows, 0), d, LS_SHAPE(2, 2, 2),
                             D(4, 5, 0, 1, 0, 1, 2, 3)));
        LST_CHECK(is_exactly(c, ls_gather(c, x, one, 0), d, LS_SHAPE(2), D(2, 3)));
        LST_CHECK(is_exactly(c, ls_gather(c, x, one, -1), d, LS_SHAPE(3), D(1, 3, 5)));
        LST_CHECK(is_exactly(c, ls_gather(c, x, i32(c, LS_SHAPE(3), ROWS(1, 1, 0)), 1), d,
                             LS_SHAPE(3, 3), D(1, 1, 0, 3, 3, 2, 5, 5, 4)));
        LST_CHECK(is_exactly(c, ls_gather(c, x, i32(c, LS_SHAPE(0), NULL), 0), d,
                             LS_SHAPE(0, 2), NULL));
        lst_close(c, rt);
    }
}

LST_TEST(scatter_adds_up_the_updates_of_a_row)
{
    static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_F16, LS_BF16, LS_I8, LS_U64};

    for (size_t i = 0; i < LSI_COUNT_OF(dtypes); i++) {
        const ls_dtype d = dtypes[i];
        ls_runtime *rt;
        ls_context *c = lst_open(&rt);
        ls_tensor *updates = counted(c, d, LS_SHAPE(3, 2));
        ls_tensor *rows = i32(c, LS_SHAPE(3), ROWS(3, 1, 3));
        ls_tensor *grid = i64(c, LS_SHAPE(3, 2), (const int64_t[]){0, 1, 0, 1, 0, 1});

        LST_CHECK(is_exactly(c, ls_scatter(c, rows, updates, LS_SHAPE(4, 2)), d,
                             LS_SHAPE(4, 2), D(0, 0, 2, 3, 0, 0, 4, 6)));
        LST_CHECK(is_exactly(c, ls_scatter(c, grid, updates, LS_SHAPE(2)), d, LS_SHAPE(2),
                             D(6, 9)));
        lst_close(c, rt);
    }
}

LST_TEST(two_threads_scatter_and_gather_like_one)
{
    enum { N = 5000, ROWS_ = 100, WIDTH = 30 };
    ls_runtime *rt1;
    ls_context *c1 = lst_open(&rt1);
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_runtime *rt2 = NULL;
    ls_context *c2 = NULL;
    ls_context *both[2];
    ls_tensor *sum[2];
    ls_tensor *back[2];

    opts.threads = 2;
    LST_OK(ls_runtime_create(&opts, &rt2, NULL));
    LST_OK(ls_context_open(ls_runtime_device(rt2, 0), NULL, &c2, NULL));
    both[0] = c1;
    both[1] = c2;
    for (int i = 0; i < 2; i++) {
        uint64_t seed = 5;
        ls_tensor *updates = ls_cast(
            both[i], lst_random_f64(both[i], LS_SHAPE(N, WIDTH), -1, 1, &seed), LS_F32);
        ls_tensor *rows = ls_cast(
            both[i], lst_random_f64(both[i], LS_SHAPE(N), 0, ROWS_, &seed), LS_I32);

        sum[i] = ls_scatter(both[i], rows, updates, LS_SHAPE(ROWS_, WIDTH));
        back[i] = ls_gather(both[i], sum[i], rows, 0);
    }
    LST_CHECK(memcmp(sum[0]->data, sum[1]->data, (size_t)ROWS_ * WIDTH * 4) == 0);
    LST_CHECK(memcmp(back[0]->data, back[1]->data, (size_t)N * WIDTH * 4) == 0);
    lst_close(c1, rt1);
    lst_close(c2, rt2);
}

LST_TEST(one_hot_marks_the_index_and_leaves_others_zero)
{
    static const ls_dtype dtypes[] = {LS_F32, LS_F16, LS_BOOL, LS_I64, LS_U8};

    for (size_t i = 0; i < LSI_COUNT_OF(dtypes); i++) {
        const ls_dtype d = dtypes[i];
        ls_runtime *rt;
        ls_context *c = lst_open(&rt);
        ls_tensor *x = i32(c, LS_SHAPE(2, 2), ROWS(1, -1, 3, 0));

        LST_CHECK(is_exactly(c, ls_one_hot(c, x, 3, d), d, LS_SHAPE(2, 2, 3),
                             D(0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0)));
        LST_CHECK(is_exactly(c, ls_one_hot(c, x, 0, d), d, LS_SHAPE(2, 2, 0), NULL));
        lst_close(c, rt);
    }
}

LST_TEST(an_index_outside_is_named_with_its_position)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);

    LST_CHECK(ls_gather(c, ZEROS(c, LS_SHAPE(3, 2)), i32(c, LS_SHAPE(3), ROWS(0, 2, 3)),
                        0) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT,
                   "gather: index 3 at position 2 is not in [0, 3)");
    LST_CHECK(ls_gather(c, ZEROS(c, LS_SHAPE(3, 2)), i32(c, LS_SHAPE(1), ROWS(-1)), 1) ==
              NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT,
                   "gather: index -1 at position 0 is not in [0, 2)");
    LST_CHECK(ls_scatter(c, i32(c, LS_SHAPE(2), ROWS(0, 4)), ZEROS(c, LS_SHAPE(2, 2)),
                         LS_SHAPE(4, 2)) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT,
                   "scatter: index 4 at position 1 is not in [0, 4)");
    lst_close(c, rt);
}

LST_TEST(other_mistakes_are_named)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    const ls_string text = {"a", 1};
    const ls_shape wide = LS_SHAPE(1, 1, 1, 1, 1, 1, 1, 1);

    LST_CHECK(ls_gather(c, ZEROS(c, LS_SHAPE(3)), ZEROS(c, LS_SHAPE(1)), 0) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT,
                   "gather: the indices float32 (1,) must be int32 or int64");
    LST_CHECK(ls_gather(c, ZEROS(c, LS_SHAPE(3)), i32(c, LS_SHAPE(1), NULL), 1) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "gather: there is no axis 1");
    LST_CHECK(ls_gather(c, ZEROS(c, wide), i32(c, LS_SHAPE(1, 1), NULL), 0) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "would have 9 axes");
    LST_CHECK(ls_gather(c, ls_constant(c, LS_STRING, LS_SHAPE(1), &text),
                        i32(c, LS_SHAPE(1), NULL), 0) == NULL);
    LST_STEP_FAILS(c, LS_UNIMPLEMENTED, "gather: strings");
    LST_CHECK(ls_scatter(c, i32(c, LS_SHAPE(2), NULL), ZEROS(c, LS_SHAPE(3, 2)),
                         LS_SHAPE(4, 2)) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "scatter: the updates float32 (3, 2)");
    LST_CHECK(ls_scatter(c, i32(c, LS_SCALAR, NULL), ZEROS(c, LS_SCALAR), LS_SCALAR) ==
              NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "scatter: the updates");
    LST_CHECK(ls_scatter(c, i32(c, LS_SHAPE(2), NULL),
                         ls_constant(c, LS_BOOL, LS_SHAPE(2), NULL),
                         LS_SHAPE(4)) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "scatter: adds numbers");
    LST_CHECK(ls_one_hot(c, i32(c, LS_SHAPE(2), NULL), -1, LS_F32) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "one_hot: the depth -1");
    LST_CHECK(ls_one_hot(c, i32(c, LS_SHAPE(2), NULL), 3, LS_STRING) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "one_hot: the result");
    LST_CHECK(ls_one_hot(c, i32(c, wide, NULL), 3, LS_F32) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "one_hot: int32");
    lst_close(c, rt);
}

LST_TEST(gradients_of_other_axes_and_of_scatter_agree_with_differences)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    uint64_t seed = 31;
    ls_tensor *x = lst_random_f64(c, LS_SHAPE(2, 3, 2), -1, 1, &seed);
    ls_tensor *u = lst_random_f64(c, LS_SHAPE(2, 2, 3), -1, 1, &seed);
    ls_tensor *rows = i32(c, LS_SHAPE(2, 2), ROWS(1, 0, 1, 1));
    lst_call call;

    lst_watch(c, x, &call);
    (void)ls_gather(c, x, rows, 1);
    lst_check_row(c, &call, 1);
    lst_watch(c, x, &call);
    (void)ls_gather(c, x, rows, 2);
    lst_check_row(c, &call, 1);
    lst_watch(c, u, &call);
    (void)ls_scatter(c, rows, u, LS_SHAPE(4, 3));
    lst_check_row(c, &call, 1);
    lst_close(c, rt);
}

LST_TEST(the_gradient_of_the_first_axis_is_sparse)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *table = counted(c, LS_F32, LS_SHAPE(4, 2));
    ls_tensor *rows = i32(c, LS_SHAPE(2, 1), ROWS(2, 2));
    ls_tape *tape = ls_tape_open(c, NULL);
    const ls_tensor *values = NULL;
    const ls_tensor *indices = NULL;
    ls_tensor *g = NULL;

    ls_tape_watch(c, tape, table);
    g = ls_gradient(c, tape, ls_square(c, ls_gather(c, table, rows, 0)), table);
    LST_CHECK(g != NULL && ls_tensor_slices(g, &values, &indices));
    LST_CHECK(lst_holds(values, LS_SHAPE(2, 2), D(8, 10, 8, 10), 0));
    LST_CHECK(indices != NULL && indices->count == 2 && lsi_index_at(indices, 0) == 2);
    LST_CHECK(lst_holds(lsi_dense(c, g), LS_SHAPE(4, 2), D(0, 0, 0, 0, 16, 20, 0, 0), 0));
    lst_close(c, rt);
}

LST_TEST(a_second_derivative_through_gather_is_not_lost)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *table = counted(c, LS_F32, LS_SHAPE(3));
    ls_tensor *rows = i32(c, LS_SHAPE(2), ROWS(2, 2));
    ls_tape *outer = ls_tape_open(c, NULL);
    ls_tape *inner = NULL;
    ls_tensor *x = NULL;
    ls_tensor *g = NULL;

    ls_tape_watch(c, outer, table);
    inner = ls_tape_open(c, NULL);
    ls_tape_watch(c, inner, table);
    x = ls_gather(c, table, rows, 0);
    g = ls_gradient(c, inner, ls_mul(c, ls_square(c, x), x), table); // 2 * 3 x^2
    LST_CHECK(lst_holds(lsi_dense(c, g), LS_SHAPE(3), D(0, 0, 24), 0));
    g = ls_gradient(c, outer, g, table);
    LST_CHECK(lst_holds(lsi_dense(c, g), LS_SHAPE(3), D(0, 0, 24), 0)); // 2 * 6 x
    lst_close(c, rt);
}

LST_MAIN(LST_CASE(gather_takes_slices_of_any_axis_in_any_order),
         LST_CASE(scatter_adds_up_the_updates_of_a_row),
         LST_CASE(two_threads_scatter_and_gather_like_one),
         LST_CASE(one_hot_marks_the_index_and_leaves_others_zero),
         LST_CASE(an_index_outside_is_named_with_its_position),
         LST_CASE(other_mistakes_are_named),
         LST_CASE(gradients_of_other_axes_and_of_scatter_agree_with_differences),
         LST_CASE(the_gradient_of_the_first_axis_is_sparse),
         LST_CASE(a_second_derivative_through_gather_is_not_lost))
