/* softmax and log_softmax: values, gradients, arguments. */
#include "ls_row_check.h"

LST_TEST(softmax_gives_probabilities_and_log_softmax_their_logarithms)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = F32(c, LS_SHAPE(2, 3), 1, 2, 3, 0, 0, 0);
    const double p[] = {0.09003057317038046,
                        0.24472847105479764,
                        0.6652409557748218,
                        1.0 / 3,
                        1.0 / 3,
                        1.0 / 3};
    const double l[] = {-2.4076059644443806,
                        -1.4076059644443804,
                        -0.4076059644443804,
                        -log(3),
                        -log(3),
                        -log(3)};

    LST_CHECK(lst_holds(ls_softmax(c, x), LS_SHAPE(2, 3), p, 1e-6));
    LST_CHECK(lst_holds(ls_log_softmax(c, x), LS_SHAPE(2, 3), l, 1e-6));
    LST_CHECK(lst_holds(ls_softmax(c, ls_cast(c, x, LS_F16)), LS_SHAPE(2, 3), p, 1e-3));
    LST_CHECK(
        lst_holds(ls_log_softmax(c, ls_cast(c, x, LS_BF16)), LS_SHAPE(2, 3), l, 1e-2));
    lst_close(c, rt);
}

LST_TEST(large_logits_do_not_overflow_and_masked_ones_vanish)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = F32(c, LS_SHAPE(3, 2), 1e4f, 1e4f, -1e30f, 0, -INFINITY, 5);

    LST_CHECK(lst_holds(ls_softmax(c, x), LS_SHAPE(3, 2), D(0.5, 0.5, 0, 1, 0, 1), 1e-7));
    LST_CHECK(lst_holds(ls_log_softmax(c, F32(c, LS_SHAPE(1, 2), 1000, 0)),
                        LS_SHAPE(1, 2), D(0, -1000), 1e-6));
    lst_close(c, rt);
}

LST_TEST(one_class_is_certain_and_empty_tensors_stay_empty)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);

    LST_CHECK(lst_holds(ls_softmax(c, F32(c, LS_SHAPE(2, 1), 3, -8)), LS_SHAPE(2, 1),
                        D(1, 1), 0));
    LST_CHECK(lst_holds(ls_log_softmax(c, F32(c, LS_SHAPE(1), 3)), LS_SHAPE(1), D(0), 0));
    LST_CHECK(
        lst_holds(ls_softmax(c, ZEROS(c, LS_SHAPE(0, 4))), LS_SHAPE(0, 4), NULL, 0));
    LST_CHECK(
        lst_holds(ls_softmax(c, ZEROS(c, LS_SHAPE(4, 0))), LS_SHAPE(4, 0), NULL, 0));
    lst_close(c, rt);
}

LST_TEST(gradients_of_softmax_agree_with_differences_to_second_order)
{
    static const ls_op *const rows[] = {&lsi_op_softmax, &lsi_op_log_softmax};
    static const ls_op *const grads[] = {&lsi_op_softmax_grad, &lsi_op_log_softmax_grad};
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    uint64_t seed = 4;
    ls_tensor *x = lst_random_f64(c, LS_SHAPE(2, 2, 3), -2, 2, &seed);
    ls_tensor *g = lst_random_f64(c, LS_SHAPE(2, 2, 3), -1, 1, &seed);

    for (size_t i = 0; i < LSI_COUNT_OF(rows); i++) {
        lst_call call;
        ls_tensor *y;

        lst_watch(c, x, &call);
        y = lsi_op1(c, rows[i], x, NULL, 0);
        lst_check_row(c, &call, 1);
        lst_watch(c, g, &call);
        (void)lsi_op2(c, grads[i], g, y, NULL, 0);
        lst_check_row(c, &call, 1);
    }
    lst_close(c, rt);
}

LST_TEST(wrong_operands_are_named)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);

    (void)ls_softmax(c, ZEROS(c, LS_SCALAR));
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "softmax: float32 () has no axis");
    (void)ls_log_softmax(c, (ls_constant)(c, LS_I64, LS_SHAPE(2), NULL));
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "log_softmax: needs a floating dtype");
    (void)lsi_op2(c, &lsi_op_softmax_grad, ZEROS(c, LS_SHAPE(2)), ZEROS(c, LS_SHAPE(3)),
                  NULL, 0);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT,
                   "gradient float32 (2,) and result float32 (3,)");
    lst_close(c, rt);
}

LST_MAIN(LST_CASE(softmax_gives_probabilities_and_log_softmax_their_logarithms),
         LST_CASE(large_logits_do_not_overflow_and_masked_ones_vanish),
         LST_CASE(one_class_is_certain_and_empty_tensors_stay_empty),
         LST_CASE(gradients_of_softmax_agree_with_differences_to_second_order),
         LST_CASE(wrong_operands_are_named))
