/* matmul and dense: values, batches, activations, gradients, arguments. */
#include "ls_row_check.h"

LST_TEST(a_product_multiplies_rows_by_columns)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *a = F32(c, LS_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    ls_tensor *b = F32(c, LS_SHAPE(3, 2), 7, 8, 9, 10, 11, 12);

    LST_CHECK(lst_holds(ls_matmul(c, a, b), LS_SHAPE(2, 2), D(58, 64, 139, 154), 0));
    // a' a and a a' need no second matrix.
    LST_CHECK(lst_holds(ls_matmul_t(c, a, a, true, false), LS_SHAPE(3, 3),
                        D(17, 22, 27, 22, 29, 36, 27, 36, 45), 0));
    LST_CHECK(lst_holds(ls_matmul_t(c, a, a, false, true), LS_SHAPE(2, 2),
                        D(14, 32, 32, 77), 0));
    LST_CHECK(lst_holds(ls_matmul_t(c, a, b, true, true), LS_SHAPE(3, 3),
                        D(39, 49, 59, 54, 68, 82, 69, 87, 105), 0));
    lst_close(c, rt);
}

LST_TEST(axes_before_the_last_two_broadcast)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *a = F32(c, LS_SHAPE(2, 1, 1, 2), 1, 2, 3, 4);
    ls_tensor *b = F32(c, LS_SHAPE(3, 2, 1), 1, 10, 2, 20, 3, 30);

    LST_CHECK(lst_holds(ls_matmul(c, a, b), LS_SHAPE(2, 3, 1, 1),
                        D(21, 42, 63, 43, 86, 129), 0));
    LST_CHECK(lst_holds(ls_matmul(c, b, F32(c, LS_SHAPE(1, 2), 1, -1)), LS_SHAPE(3, 2, 2),
                        D(1, -1, 10, -10, 2, -2, 20, -20, 3, -3, 30, -30), 0));
    lst_close(c, rt);
}

LST_TEST(integers_multiply_exactly_and_halves_round_once)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    const int64_t big[] = {3000000001, 1, 2, 5};
    const int32_t small[] = {1000, -7};
    ls_tensor *w = (ls_constant)(c, LS_I64, LS_SHAPE(2, 2), big);
    ls_tensor *i = (ls_constant)(c, LS_I32, LS_SHAPE(1, 2), small);
    ls_tensor *y = ls_matmul(c, w, w), *z = ls_matmul_t(c, i, i, false, true);
    ls_tensor *h = ls_cast(c, F32(c, LS_SHAPE(1, 3), 2048, 1, 1), LS_F16);
    ls_tensor *one = ls_cast(c, F32(c, LS_SHAPE(3, 1), 1, 1, 1), LS_F16);

    LST_CHECK(y != NULL && ((const int64_t *)y->data)[0] == 9000000006000000003);
    LST_CHECK(y != NULL && ((const int64_t *)y->data)[3] == 27);
    LST_CHECK(z != NULL && ((const int32_t *)z->data)[0] == 1000049);
    // 2048 + 1 + 1 is 2050 in float16; adding one at a time would stay at 2048.
    LST_CHECK(lst_at(ls_matmul(c, h, one), 0) == 2050);
    lst_close(c, rt);
}

LST_TEST(an_inner_size_of_zero_gives_zeros_and_an_empty_batch_nothing)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *a = (ls_constant)(c, LS_F32, LS_SHAPE(2, 0), NULL);
    ls_tensor *b = (ls_constant)(c, LS_F32, LS_SHAPE(0, 2), NULL);
    ls_tensor *e = (ls_constant)(c, LS_F32, LS_SHAPE(0, 2, 2), NULL);
    ls_tensor *bias = F32(c, LS_SHAPE(2), 1, 2);

    LST_CHECK(lst_holds(ls_matmul(c, a, b), LS_SHAPE(2, 2), D(0, 0, 0, 0), 0));
    LST_CHECK(
        lst_holds(ls_dense(c, a, b, bias, LS_LINEAR), LS_SHAPE(2, 2), D(1, 2, 1, 2), 0));
    LST_CHECK(lst_holds(ls_matmul(c, e, a), LS_SHAPE(0, 2, 0), NULL, 0));
    lst_close(c, rt);
}

LST_TEST(dense_adds_the_bias_and_activates)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = F32(c, LS_SHAPE(2, 2), 1, 2, -3, 4);
    ls_tensor *w = F32(c, LS_SHAPE(2, 1), 1, -1), *b = F32(c, LS_SHAPE(1), 0.5f);
    const double v[] = {-0.5, -6.5};

    LST_CHECK(
        lst_holds(ls_dense(c, x, w, NULL, LS_LINEAR), LS_SHAPE(2, 1), D(-1, -7), 0));
    LST_CHECK(lst_holds(ls_dense(c, x, w, b, LS_LINEAR), LS_SHAPE(2, 1), v, 0));
    LST_CHECK(lst_holds(ls_dense(c, x, w, b, LS_RELU), LS_SHAPE(2, 1), D(0, 0), 0));
    LST_CHECK(lst_holds(ls_dense(c, ls_neg(c, x), w, b, LS_RELU), LS_SHAPE(2, 1),
                        D(1.5, 7.5), 0));
    LST_CHECK(lst_holds(ls_dense(c, x, w, b, LS_SIGMOID), LS_SHAPE(2, 1),
                        D(1 / (1 + exp(0.5)), 1 / (1 + exp(6.5))), 1e-6));
    LST_CHECK(lst_holds(ls_dense(c, x, w, b, LS_TANH), LS_SHAPE(2, 1),
                        D(tanh(v[0]), tanh(v[1])), 1e-6));
    LST_CHECK(lst_holds(ls_dense(c, x, w, b, LS_SILU), LS_SHAPE(2, 1),
                        D(v[0] / (1 + exp(0.5)), v[1] / (1 + exp(6.5))), 1e-6));
    LST_CHECK(lst_holds(
        ls_dense(c, x, w, b, LS_GELU), LS_SHAPE(2, 1),
        D(v[0] / 2 * erfc(-v[0] / sqrt(2)), v[1] / 2 * erfc(6.5 / sqrt(2))), 1e-6));
    LST_CHECK(lst_holds(ls_dense(c, x, w, b, LS_GELU_TANH), LS_SHAPE(2, 1),
                        D(-0.154285986, 0), 1e-6));
    // A vector and a batch of matrices have rows, too.
    LST_CHECK(lst_holds(ls_dense(c, F32(c, LS_SHAPE(2), 3, 1), w, b, LS_LINEAR),
                        LS_SHAPE(1), D(2.5), 0));
    LST_CHECK(lst_holds(ls_dense(c, ls_reshape(c, x, LS_SHAPE(2, 1, 2)), w, b, LS_LINEAR),
                        LS_SHAPE(2, 1, 1), v, 0));
    lst_close(c, rt);
}

static ls_tensor *random_of(ls_context *c, ls_shape shape)
{
    uint64_t seed = 5 + (uint64_t)shape.ndim + (uint64_t)shape.dims[0] * 16;

    return lst_random_f64(c, shape, -1, 1, &seed);
}

LST_TEST(gradients_of_products_agree_with_differences)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);

    for (int t = 0; t < 4; t++) {
        const bool ta = (t & 1) != 0, tb = (t & 2) != 0;
        ls_tensor *a = random_of(c, ta ? LS_SHAPE(3, 2) : LS_SHAPE(2, 3));
        ls_tensor *b = random_of(c, tb ? LS_SHAPE(4, 3) : LS_SHAPE(3, 4));
        ls_tensor *as = random_of(c, ta ? LS_SHAPE(2, 1, 3, 2) : LS_SHAPE(2, 1, 2, 3));
        ls_tensor *bs = random_of(c, tb ? LS_SHAPE(2, 4, 3) : LS_SHAPE(2, 3, 4));
        ls_tensor *const pairs[][2] = {{a, b}, {as, bs}, {as, b}, {a, bs}};

        for (size_t p = 0; p < LSI_COUNT_OF(pairs); p++) {
            lst_call call;

            lst_watch(c, pairs[p][0], &call);
            (void)ls_matmul_t(c, pairs[p][0], pairs[p][1], ta, tb);
            lst_check_row(c, &call, 1);
        }
    }
    lst_close(c, rt);
}

LST_TEST(gradients_of_dense_agree_with_differences)
{
    static const ls_activation fused[] = {LS_LINEAR, LS_RELU, LS_SIGMOID, LS_TANH};
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *w = random_of(c, LS_SHAPE(3, 2)), *b = random_of(c, LS_SHAPE(2));

    for (size_t i = 0; i < LSI_COUNT_OF(fused); i++) {
        const ls_shape shapes[] = {LS_SHAPE(3), LS_SHAPE(4, 3), LS_SHAPE(2, 2, 3)};

        for (size_t s = 0; s < LSI_COUNT_OF(shapes); s++) {
            ls_tensor *x = random_of(c, shapes[s]);
            lst_call call;

            lst_watch(c, x, &call);
            (void)ls_dense(c, x, w, (s & 1) != 0 ? b : NULL, fused[i]);
            LST_CHECK(call.nin == ((s & 1) != 0 ? 3 : 2));
            lst_check_row(c, &call, 1);
        }
    }
    lst_close(c, rt);
}

LST_TEST(a_gradient_nobody_needs_is_not_computed)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *in[3] = {random_of(c, LS_SHAPE(4, 3)), random_of(c, LS_SHAPE(3, 2)),
                        random_of(c, LS_SHAPE(2))};
    ls_tensor *out = ls_dense(c, in[0], in[1], in[2], LS_LINEAR), *gin[3] = {NULL};
    lsi_matmul_attrs at = {false, false, LS_LINEAR};
    ls_op_node n = {.op = &lsi_op_dense,
                    .nout = 1,
                    .nin = 3,
                    .in = in,
                    .out = &out,
                    .attrs = &at,
                    .needs = 2};

    lsi_op_dense.gradient(c, &n, &out, gin);
    LST_CHECK(gin[0] == NULL && gin[1] != NULL && gin[2] == NULL);
    gin[1] = NULL;
    n.op = &lsi_op_matmul;
    n.nin = 2;
    n.needs = 1;
    lsi_op_matmul.gradient(c, &n, &out, gin);
    LST_CHECK(gin[0] != NULL && gin[1] == NULL);
    lst_close(c, rt);
}

LST_TEST(wrong_operands_are_named)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *const none = NULL;

    (void)ls_matmul(c, ZEROS(c, LS_SHAPE(2, 3)), ZEROS(c, LS_SHAPE(4, 5)));
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT,
                   "matmul: float32 (2, 3) and float32 (4, 5): the inner sizes 3 and 4 "
                   "differ; transpose one or reshape");
    (void)ls_matmul_t(c, ZEROS(c, LS_SHAPE(2, 3)), ZEROS(c, LS_SHAPE(3, 5)), true, false);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "the inner sizes 2 and 3 differ");
    (void)ls_matmul(c, ZEROS(c, LS_SHAPE(3)), ZEROS(c, LS_SHAPE(3, 5)));
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "(3,) and float32 (3, 5): both need at least");
    (void)ls_matmul(c, ZEROS(c, LS_SHAPE(2, 1, 1)), ZEROS(c, LS_SHAPE(3, 1, 1)));
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "do not broadcast");
    (void)ls_matmul(c, ZEROS(c, LS_SHAPE(2, 2)),
                    (ls_constant)(c, LS_F64, LS_SHAPE(2, 2), NULL));
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT,
                   "float32 (2, 2) and float64 (2, 2): the dtypes");
    (void)ls_matmul(c, (ls_constant)(c, LS_U8, LS_SHAPE(1, 1), NULL),
                    (ls_constant)(c, LS_U8, LS_SHAPE(1, 1), NULL));
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "uint8 (1, 1): multiplies floats");
    (void)ls_matmul(c, none, ZEROS(c, LS_SHAPE(2, 2)));
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "input 0 is NULL");
    (void)ls_dense(c, ZEROS(c, LS_SHAPE(2, 3)), ZEROS(c, LS_SHAPE(4, 5)), NULL,
                   LS_LINEAR);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT,
                   "dense: float32 (2, 3) and float32 (4, 5): the inner");
    (void)ls_dense(c, ZEROS(c, LS_SHAPE(2, 3)), ZEROS(c, LS_SHAPE(3)), NULL, LS_LINEAR);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "the weights must be a matrix");
    (void)ls_dense(c, ZEROS(c, LS_SCALAR), ZEROS(c, LS_SHAPE(3, 1)), NULL, LS_LINEAR);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "must have an axis");
    (void)ls_dense(c, ZEROS(c, LS_SHAPE(2, 3)), ZEROS(c, LS_SHAPE(3, 4)),
                   ZEROS(c, LS_SHAPE(3)), LS_RELU);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "each of the 4 columns");
    (void)ls_dense(c, (ls_constant)(c, LS_I32, LS_SHAPE(2, 2), NULL),
                   (ls_constant)(c, LS_I32, LS_SHAPE(2, 2), NULL), NULL, LS_LINEAR);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "needs a floating dtype, got int32");
    (void)ls_dense(c, ZEROS(c, LS_SHAPE(2, 3)), ZEROS(c, LS_SHAPE(3, 4)), NULL,
                   (ls_activation)77);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "activation 77 does not exist");
    lst_close(c, rt);
}

LST_MAIN(LST_CASE(a_product_multiplies_rows_by_columns),
         LST_CASE(axes_before_the_last_two_broadcast),
         LST_CASE(integers_multiply_exactly_and_halves_round_once),
         LST_CASE(an_inner_size_of_zero_gives_zeros_and_an_empty_batch_nothing),
         LST_CASE(dense_adds_the_bias_and_activates),
         LST_CASE(gradients_of_products_agree_with_differences),
         LST_CASE(gradients_of_dense_agree_with_differences),
         LST_CASE(a_gradient_nobody_needs_is_not_computed),
         LST_CASE(wrong_operands_are_named))
