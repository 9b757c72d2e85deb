/* Second derivatives, sparse gradients, and what has none. */
#include "grad/tape_test.h"

/* The second derivative of fn at x, by nested tapes. */
static ls_tensor *second(ls_tensor *(*fn)(ls_tensor *x), ls_tensor *x)
{
    ls_tape *outer = ls_tape_open(c, NULL);

    ls_tape_watch(c, outer, x);
    ls_tape *inner = ls_tape_open(c, NULL);
    ls_tape_watch(c, inner, x);
    ls_tensor *first = ls_gradient(c, inner, fn(x), x);
    return ls_gradient(c, outer, first, x);
}

static ls_tensor *tanh_of(ls_tensor *x)
{
    return ls_tanh(c, x);
}

LST_TEST(second_derivatives_by_nested_tapes)
{
    const double t = tanh(0.7);

    open_step();
    LST_CHECK(HOLDS(second(cube, scalar(5)), 30));
    LST_CHECK(HOLDS(second(tanh_of, scalar(0.7)), -2 * t * (1 - t * t)));
    close_step();
}

LST_TEST(third_derivatives_too)
{
    open_step();
    ls_tensor *x = scalar(2);
    ls_tape *outer = ls_tape_open(c, NULL);

    ls_tape_watch(c, outer, x);
    ls_tensor *two = second(cube, x); // 6 x
    LST_CHECK(HOLDS(two, 12));
    LST_CHECK(HOLDS(ls_gradient(c, outer, two, x), 6));
    close_step();
}

static ls_tensor *cross_entropy(ls_tensor *x)
{
    const int32_t label = 1;
    ls_tensor *logits = ls_reshape(c, x, LS_SHAPE(1, 3));

    return ls_sparse_softmax_cross_entropy(c, logits,
                                           ls_constant(c, LS_I32, LS_SHAPE(1), &label));
}

LST_TEST(the_second_derivative_of_softmax_cross_entropy_is_that_of_logsumexp)
{
    const double x[3] = {0.3, -1.2, 0.8};
    double p[3], sum = 0, h[3] = {0, 0, 0};

    for (int i = 0; i < 3; i++) {
        sum += exp(x[i]);
    }
    for (int i = 0; i < 3; i++) {
        p[i] = exp(x[i]) / sum;
    }
    for (int i = 0; i < 3; i++) { // gradient of the first gradient's second element
        h[i] = (i == 1 ? p[1] : 0) - p[1] * p[i];
    }
    open_step();
    ls_tensor *v = vector(3, x);
    ls_tape *outer = ls_tape_open(c, NULL);
    ls_tape_watch(c, outer, v);
    ls_tape *inner = ls_tape_open(c, NULL);
    ls_tape_watch(c, inner, v);
    ls_tensor *g = ls_gradient(c, inner, cross_entropy(v), v);
    ls_tensor *one =
        ls_slice(c, g, (const int64_t[]){1}, (const int64_t[]){1}); // p[1] - 1
    LST_CHECK(HOLDS(one, p[1] - 1));
    LST_CHECK(HOLDS(ls_gradient(c, outer, one, v), h[0], h[1], h[2]));
    close_step();
}

LST_TEST(an_inner_tape_may_watch_an_intermediate_of_the_outer)
{
    open_step();
    ls_tensor *x = scalar(2);
    ls_tape *outer = ls_tape_open(c, NULL);

    ls_tape_watch(c, outer, x);
    ls_tensor *y = ls_square(c, x); // 4
    ls_tape *inner = ls_tape_open(c, NULL);
    ls_tape_watch(c, inner, y);
    ls_tensor *z = cube(y);                      // y^3
    ls_tensor *dz = ls_gradient(c, inner, z, y); // 3 y^2 = 3 x^4
    LST_CHECK(HOLDS(dz, 48));
    LST_CHECK(HOLDS(ls_gradient(c, outer, dz, x), 96)); // 12 x^3
    close_step();
}

LST_TEST(the_outer_tape_sees_what_the_inner_saw)
{
    open_step();
    ls_tensor *x = scalar(2);
    ls_tape *outer = ls_tape_open(c, NULL), *inner = ls_tape_open(c, NULL);

    ls_tape_watch(c, outer, x);
    ls_tape_watch(c, inner, x);
    ls_tensor *y = cube(x);
    LST_CHECK(HOLDS(ls_gradient(c, inner, y, x), 12));
    LST_CHECK(HOLDS(ls_gradient(c, outer, y, x), 12));
    close_step();
}

LST_TEST(gradients_of_gather_stay_sparse_and_add_up)
{
    const double table[6] = {1, 2, 3, 4, 5, 6};
    const int32_t rows[3] = {2, 0, 2};
    const ls_tensor *values = NULL, *indices = NULL;

    open_step();
    ls_tensor *x = ls_constant(c, LS_F64, LS_SHAPE(3, 2), table);
    ls_tensor *i = ls_constant(c, LS_I32, LS_SHAPE(3), rows);
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tape_watch(c, tape, x);
    ls_tensor *y = ls_gather(c, x, i, 0);
    ls_tensor *z = ls_gather(c, x, ls_constant_i64(c, 1), 0);
    ls_tensor *targets[] = {ls_square(c, y), ls_neg(c, z)}, *dx = NULL;
    ls_gradients(c, tape, targets, NULL, 2, &x, 1, &dx);
    LST_CHECK(dx != NULL && ls_tensor_slices(dx, &values, &indices));
    LST_CHECK(values != NULL && ls_tensor_dim(values, 0) == 4);
    LST_CHECK(indices != NULL && ls_tensor_count(indices) == 4);
    LST_CHECK(dx != NULL && ls_tensor_dim(dx, 0) == 3);
    LST_CHECK(HOLDS(dx, 2, 4, -1, -1, 20, 24));              // read: dense, rows added
    LST_CHECK(HOLDS(ls_neg(c, dx), -2, -4, 1, 1, -20, -24)); // and to operations
    close_step();
}

LST_TEST(a_sparse_and_a_dense_gradient_give_a_dense_one)
{
    const double table[4] = {1, 2, 3, 4};

    open_step();
    ls_tensor *x = ls_constant(c, LS_F64, LS_SHAPE(2, 2), table);
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tape_watch(c, tape, x);
    ls_tensor *y = ls_gather(c, x, ls_constant_i64(c, 1), 0);
    ls_tensor *targets[] = {y, ls_square(c, x)}, *dx = NULL;
    ls_gradients(c, tape, targets, NULL, 2, &x, 1, &dx);
    LST_CHECK(dx != NULL && !ls_tensor_slices(dx, NULL, NULL));
    LST_CHECK(HOLDS(dx, 2, 4, 7, 9));
    close_step();
}

LST_TEST(the_second_derivative_passes_through_gather)
{
    const int32_t rows[2] = {1, 1};

    open_step();
    ls_tensor *x = VECTOR(2, 3);
    ls_tensor *i = ls_constant(c, LS_I32, LS_SHAPE(2), rows);
    ls_tape *outer = ls_tape_open(c, NULL);
    ls_tape_watch(c, outer, x);
    ls_tape *inner = ls_tape_open(c, NULL);
    ls_tape_watch(c, inner, x);
    ls_tensor *g = ls_gradient(c, inner, cube(ls_gather(c, x, i, 0)), x); // 0, 6 x1^2
    LST_CHECK(HOLDS(g, 0, 54));
    LST_CHECK(HOLDS(ls_gradient(c, outer, g, x), 0, 36));
    close_step();
}

LST_TEST(integer_tensors_are_not_watched)
{
    open_step();
    ls_tensor *i = ls_constant_i64(c, 3);
    ls_tape *tape = persistent_tape();

    ls_tape_watch(c, tape, i);
    LST_CHECK(ls_gradient(c, tape, ls_mul(c, i, i), i) == NULL);
    LST_CHECK(ls_gradient(c, tape, ls_cast(c, i, LS_F64), i) == NULL);
    close_step();
}

LST_TEST(casts_between_floats_pass_gradients_on)
{
    open_step();
    ls_tensor *x = VECTOR(1, 2);
    ls_tape *tape = ls_tape_open(c, NULL);

    ls_tape_watch(c, tape, x);
    ls_tensor *y = ls_square(c, ls_cast(c, x, LS_F32));
    LST_CHECK(HOLDS(ls_gradient(c, tape, y, x), 2, 4));
    close_step();
}

LST_MAIN(LST_CASE(second_derivatives_by_nested_tapes), LST_CASE(third_derivatives_too),
         LST_CASE(the_second_derivative_of_softmax_cross_entropy_is_that_of_logsumexp),
         LST_CASE(an_inner_tape_may_watch_an_intermediate_of_the_outer),
         LST_CASE(the_outer_tape_sees_what_the_inner_saw),
         LST_CASE(gradients_of_gather_stay_sparse_and_add_up),
         LST_CASE(a_sparse_and_a_dense_gradient_give_a_dense_one),
         LST_CASE(the_second_derivative_passes_through_gather),
         LST_CASE(integer_tensors_are_not_watched),
         LST_CASE(casts_between_floats_pass_gradients_on))
