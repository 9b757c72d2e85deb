/* Losses: values, gradients, labels out of range, arguments. */
#include "ls_row_check.h"

#define I32(c, shape, ...) (ls_constant)(c, LS_I32, shape, (const int32_t[]){__VA_ARGS__})
#define I64(c, shape, ...) (ls_constant)(c, LS_I64, shape, (const int64_t[]){__VA_ARGS__})

LST_TEST(a_sparse_cross_entropy_is_minus_the_logarithm_of_the_probability)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = F32(c, LS_SHAPE(2, 3), 1, 2, 3, 0, 0, 0);
    const double want[] = {2.4076059644443806, log(3)};
    ls_tensor *outs[LSI_MAX_OUTPUTS] = {NULL}, *in[2] = {x, I32(c, LS_SHAPE(2), 0, 2)};

    LST_CHECK(
        lst_holds(ls_sparse_softmax_cross_entropy(c, x, in[1]), LS_SHAPE(2), want, 1e-6));
    LST_CHECK(lst_holds(ls_sparse_softmax_cross_entropy(c, x, I64(c, LS_SHAPE(2), 0, 2)),
                        LS_SHAPE(2), want, 1e-6));
    LST_CHECK(
        lst_holds(ls_sparse_softmax_cross_entropy(c, ls_reshape(c, x, LS_SHAPE(2, 1, 3)),
                                                  I64(c, LS_SHAPE(2, 1), 0, 2)),
                  LS_SHAPE(2, 1), want, 1e-6));
    ls_op_apply(c, &lsi_op_sparse_softmax_cross_entropy, in, 2, NULL, 0, outs);
    LST_CHECK(lst_holds(outs[1], LS_SHAPE(2, 3),
                        D(0.09003057317038046, 0.24472847105479764, 0.6652409557748218,
                          1.0 / 3, 1.0 / 3, 1.0 / 3),
                        1e-6));
    // A single example; logits that overflow exp().
    LST_CHECK(lst_holds(ls_sparse_softmax_cross_entropy(c, F32(c, LS_SHAPE(2), 1000, 0),
                                                        I32(c, LS_SCALAR, 1)),
                        LS_SCALAR, D(1000), 1e-6));
    lst_close(c, rt);
}

LST_TEST(a_cross_entropy_with_certain_labels_is_the_sparse_one)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = F32(c, LS_SHAPE(2, 3), 1, 2, 3, 0, 0, 0);
    ls_tensor *outs[LSI_MAX_OUTPUTS] = {NULL},
              *in[2] = {x, F32(c, LS_SHAPE(2, 3), 1, 0, 0, 0.5f, 0.25f, 0.25f)};

    ls_op_apply(c, &lsi_op_softmax_cross_entropy, in, 2, NULL, 0, outs);
    LST_CHECK(lst_holds(outs[0], LS_SHAPE(2), D(2.4076059644443806, log(3)), 1e-6));
    LST_CHECK(lst_holds(outs[1], LS_SHAPE(2, 3),
                        D(0.09003057317038046 - 1, 0.24472847105479764,
                          0.6652409557748218, 1.0 / 3 - 0.5, 1.0 / 12, 1.0 / 12),
                        1e-6));
    LST_CHECK(lst_holds(ls_softmax_cross_entropy(c, x, in[1]), LS_SHAPE(2),
                        D(2.4076059644443806, log(3)), 1e-6));
    // A masked class that is not meant costs nothing.
    LST_CHECK(lst_holds(ls_softmax_cross_entropy(c, F32(c, LS_SHAPE(2), -INFINITY, 4),
                                                 F32(c, LS_SHAPE(2), 0, 1)),
                        LS_SCALAR, D(0), 1e-7));
    lst_close(c, rt);
}

LST_TEST(a_sigmoid_cross_entropy_is_exact_for_large_logits)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *o = F32(c, LS_SHAPE(4), 0, 1000, -1000, 2);
    ls_tensor *y = F32(c, LS_SHAPE(4), 0.25f, 0, 1, 1);

    LST_CHECK(lst_holds(ls_sigmoid_cross_entropy(c, o, y), LS_SHAPE(4),
                        D(log(2), 1000, 1000, log1p(exp(-2))), 1e-6));
    LST_CHECK(
        lst_holds(ls_sigmoid_cross_entropy(c, F32(c, LS_SCALAR, 0), F32(c, LS_SCALAR, 1)),
                  LS_SCALAR, D(log(2)), 1e-6));
    lst_close(c, rt);
}

LST_TEST(a_squared_error_is_averaged_over_the_last_axis)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *o = F32(c, LS_SHAPE(2, 2), 1, 2, 3, 4),
              *t = F32(c, LS_SHAPE(2, 2), 0, 4, 3, 1);

    LST_CHECK(lst_holds(ls_mean_squared_error(c, o, t), LS_SHAPE(2), D(2.5, 4.5), 0));
    LST_CHECK(
        lst_holds(ls_mean_squared_error(c, ls_cast(c, o, LS_F16), ls_cast(c, t, LS_F16)),
                  LS_SHAPE(2), D(2.5, 4.5), 0));
    lst_close(c, rt);
}

LST_TEST(an_empty_batch_has_no_loss)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = ZEROS(c, LS_SHAPE(0, 3));
    ls_tensor *labels = (ls_constant)(c, LS_I32, LS_SHAPE(0), NULL);

    LST_CHECK(
        lst_holds(ls_sparse_softmax_cross_entropy(c, x, labels), LS_SHAPE(0), NULL, 0));
    LST_CHECK(lst_holds(ls_softmax_cross_entropy(c, x, x), LS_SHAPE(0), NULL, 0));
    LST_CHECK(lst_holds(ls_sigmoid_cross_entropy(c, x, x), LS_SHAPE(0, 3), NULL, 0));
    LST_CHECK(lst_holds(ls_mean_squared_error(c, x, x), LS_SHAPE(0), NULL, 0));
    lst_close(c, rt);
}

LST_TEST(gradients_of_losses_agree_with_differences_to_second_order)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    uint64_t seed = 9;
    ls_tensor *x = lst_random_f64(c, LS_SHAPE(2, 2, 3), -2, 2, &seed);
    ls_tensor *g = lst_random_f64(c, LS_SHAPE(2, 2), -2, 2, &seed);
    ls_tensor *y = ls_softmax(c, lst_random_f64(c, LS_SHAPE(2, 2, 3), -2, 2, &seed));
    ls_tensor *labels = I64(c, LS_SHAPE(2, 2), 0, 2, 1, 2);
    lst_call call;

    for (unsigned mask = 1; mask < 4; mask++) {
        lst_watch(c, x, &call);
        (void)ls_sparse_softmax_cross_entropy(c, x, labels);
        lst_check_row(c, &call, mask);
    }
    lst_watch(c, g, &call);
    (void)lsi_op3(c, &lsi_op_softmax_cross_entropy_grad, g, y, labels, NULL, 0);
    lst_check_row(c, &call, 1);
    lst_watch(c, x, &call);
    (void)ls_sigmoid_cross_entropy(c, x, y);
    lst_check_row(c, &call, 1);
    lst_watch(c, x, &call);
    (void)ls_mean_squared_error(c, x, y);
    lst_check_row(c, &call, 1);
    lst_close(c, rt);
}

LST_TEST(the_gradient_of_a_cross_entropy_is_that_of_tensorflow)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    uint64_t seed = 10;
    ls_tensor *x = lst_random_f64(c, LS_SHAPE(2, 3), -2, 2, &seed);
    ls_tensor *y = ls_softmax(c, lst_random_f64(c, LS_SHAPE(2, 3), -2, 2, &seed));
    ls_tensor *g[2] = {lst_random_f64(c, LS_SHAPE(2), -1, 1, &seed), NULL};
    ls_tensor *in[2] = {x, y}, *outs[LSI_MAX_OUTPUTS] = {NULL}, *gin[2] = {NULL, NULL};
    ls_tensor *p = ls_softmax(c, x);
    ls_op_node n = {.op = &lsi_op_softmax_cross_entropy,
                    .nout = 2,
                    .nin = 2,
                    .in = in,
                    .out = outs,
                    .needs = 3};
    lst_call call;

    ls_op_apply(c, n.op, in, 2, NULL, 0, outs);
    n.op->gradient(c, &n, g, gin);
    for (int64_t i = 0; i < 6; i++) {
        // By the label: -log p times g. By the logit: p - label, labels summing to 1.
        LST_CHECK(lst_near(lst_at(gin[0], i),
                           lst_at(g[0], i / 3) * (lst_at(p, i) - lst_at(y, i)), 1e-12,
                           1e-12));
        LST_CHECK(lst_near(lst_at(gin[1], i), -lst_at(g[0], i / 3) * log(lst_at(p, i)),
                           1e-12, 1e-12));
    }
    // What comes back through the second output is the derivative of p - label.
    lst_watch(c, x, &call);
    (void)ls_softmax_cross_entropy(c, x, y);
    lst_check_row(c, &call, 2);
    lst_close(c, rt);
}

LST_TEST(a_label_outside_the_classes_is_named_with_its_example)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);

#define LOGITS ZEROS(c, LS_SHAPE(3, 4))
    (void)ls_sparse_softmax_cross_entropy(c, LOGITS, I32(c, LS_SHAPE(3), 0, 3, 4));
    LST_STEP_FAILS(
        c, LS_INVALID_ARGUMENT,
        "sparse_softmax_cross_entropy: label 4 of example 2 is outside [0, 4)");
    (void)ls_sparse_softmax_cross_entropy(c, LOGITS, I64(c, LS_SHAPE(3), 0, -1, 3));
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "label -1 of example 1 is outside [0, 4)");
    (void)ls_sparse_softmax_cross_entropy(c, ZEROS(c, LS_SHAPE(1, 0)),
                                          I32(c, LS_SHAPE(1), 0));
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "label 0 of example 0 is outside [0, 0)");
    lst_close(c, rt);
}

LST_TEST(wrong_operands_are_named)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);

    (void)ls_sparse_softmax_cross_entropy(c, LOGITS, I32(c, LS_SHAPE(2), 0, 0));
    LST_STEP_FAILS(
        c, LS_INVALID_ARGUMENT,
        "logits float32 (3, 4) and labels int32 (2,): the labels must have the "
        "shape (3,)");
    (void)ls_sparse_softmax_cross_entropy(c, LOGITS, ZEROS(c, LS_SHAPE(3)));
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "labels float32 (3,) must be class numbers");
    (void)ls_sparse_softmax_cross_entropy(c, ZEROS(c, LS_SCALAR), I32(c, LS_SCALAR, 0));
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "has no last axis");
    (void)ls_softmax_cross_entropy(c, LOGITS, ZEROS(c, LS_SHAPE(3)));
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT,
                   "logits float32 (3, 4) and labels float32 (3,) must");
    (void)ls_softmax_cross_entropy(c, I32(c, LS_SHAPE(1), 0), I32(c, LS_SHAPE(1), 0));
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "needs a floating dtype, got int32");
    (void)ls_sigmoid_cross_entropy(c, LOGITS, ZEROS(c, LS_SHAPE(1, 4)));
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT,
                   "sigmoid_cross_entropy: logits float32 (3, 4)");
    (void)ls_sigmoid_cross_entropy(c, I32(c, LS_SHAPE(1), 0), I32(c, LS_SHAPE(1), 0));
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "needs a floating dtype");
    (void)ls_mean_squared_error(c, LOGITS, ZEROS(c, LS_SHAPE(4)));
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT,
                   "output float32 (3, 4) and target float32 (4,)");
    (void)ls_mean_squared_error(c, ZEROS(c, LS_SCALAR), ZEROS(c, LS_SCALAR));
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT,
                   "mean_squared_error: float32 () has no last axis");
    (void)lsi_op3(c, &lsi_op_softmax_cross_entropy_grad, ZEROS(c, LS_SHAPE(2)), LOGITS,
                  I32(c, LS_SHAPE(3), 0, 0, 0), NULL, 0);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "gradient float32 (2,) does not match");
    lst_close(c, rt);
}

LST_MAIN(LST_CASE(a_sparse_cross_entropy_is_minus_the_logarithm_of_the_probability),
         LST_CASE(a_cross_entropy_with_certain_labels_is_the_sparse_one),
         LST_CASE(a_sigmoid_cross_entropy_is_exact_for_large_logits),
         LST_CASE(a_squared_error_is_averaged_over_the_last_axis),
         LST_CASE(an_empty_batch_has_no_loss),
         LST_CASE(gradients_of_losses_agree_with_differences_to_second_order),
         LST_CASE(the_gradient_of_a_cross_entropy_is_that_of_tensorflow),
         LST_CASE(a_label_outside_the_classes_is_named_with_its_example),
         LST_CASE(wrong_operands_are_named))
