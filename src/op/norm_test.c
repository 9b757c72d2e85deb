/* Layer and batch normalisation: values, gradients, arguments. */
#include "ls_row_check.h"

LST_TEST(a_layer_norm_centres_and_scales_each_row)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = F32(c, LS_SHAPE(2, 2), 1, 3, -10, 30);
    ls_tensor *gamma = F32(c, LS_SHAPE(2), 2, 3), *beta = F32(c, LS_SHAPE(2), 0.5f, -1);

    // Means 2 and 10, variances 1 and 400.
    LST_CHECK(lst_holds(ls_layer_norm(c, x, gamma, beta, 0), LS_SHAPE(2, 2),
                        D(-1.5, 2, -1.5, 2), 1e-6));
    LST_CHECK(lst_holds(ls_layer_norm(c, x, gamma, beta, 3), LS_SHAPE(2, 2),
                        D(-0.5, 0.5, -2 * 20 / sqrt(403) + 0.5, 3 * 20 / sqrt(403) - 1),
                        1e-6));
    LST_CHECK(
        lst_holds(ls_layer_norm(c, ls_reshape(c, x, LS_SHAPE(1, 2, 2)), gamma, beta, 0),
                  LS_SHAPE(1, 2, 2), D(-1.5, 2, -1.5, 2), 1e-6));
    lst_close(c, rt);
}

LST_TEST(a_batch_norm_hands_out_the_moments_of_each_channel)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = F32(c, LS_SHAPE(2, 1, 2, 2), 1, 10, 2, 10, 3, 10, 6, 10);
    ls_tensor *gamma = F32(c, LS_SHAPE(2), 2, 3), *beta = F32(c, LS_SHAPE(2), 1, -1);
    ls_tensor *mean = NULL, *variance = NULL;
    const double r = 1 / sqrt(3.5 + 0.5); // divided by n, not n - 1

    LST_CHECK(lst_holds(ls_batch_norm(c, x, gamma, beta, 0.5, &mean, &variance),
                        LS_SHAPE(2, 1, 2, 2),
                        D(1 - 4 * r, -1, 1 - 2 * r, -1, 1, -1, 1 + 6 * r, -1), 1e-6));
    LST_CHECK(lst_holds(mean, LS_SHAPE(2), D(3, 10), 1e-6));
    LST_CHECK(lst_holds(variance, LS_SHAPE(2), D(3.5, 0), 1e-6));
    LST_CHECK(ls_batch_norm(c, x, gamma, beta, 0.5, NULL, NULL) != NULL);
    lst_close(c, rt);
}

LST_TEST(inference_with_the_moments_of_the_batch_repeats_training)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    uint64_t seed = 8;
    ls_tensor *x = lst_random_f64(c, LS_SHAPE(6, 3), -2, 5, &seed);
    ls_tensor *gamma = lst_random_f64(c, LS_SHAPE(3), 1, 2, &seed);
    ls_tensor *beta = lst_random_f64(c, LS_SHAPE(3), 1, 2, &seed), *mean, *variance;
    ls_tensor *y = ls_batch_norm(c, x, gamma, beta, 1e-3, &mean, &variance);
    ls_tensor *z = ls_batch_norm_inference(c, x, gamma, beta, mean, variance, 1e-3);

    LST_CHECK(y != NULL && lst_holds(z, LS_SHAPE(6, 3), y->data, 1e-12));
    LST_CHECK(lst_holds(
        ls_batch_norm_inference(c, F32(c, LS_SHAPE(1, 1), 5), F32(c, LS_SHAPE(1), 3),
                                F32(c, LS_SHAPE(1), -1), F32(c, LS_SHAPE(1), 1),
                                F32(c, LS_SHAPE(1), 3), 1),
        LS_SHAPE(1, 1), D(5), 1e-6));
    lst_close(c, rt);
}

LST_TEST(a_small_spread_on_a_large_mean_is_not_lost)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = F32(c, LS_SHAPE(4), 10000, 10001, 10002, 10003);
    ls_tensor *one = F32(c, LS_SHAPE(4), 1, 1, 1, 1), *zero = ZEROS(c, LS_SHAPE(4));

    LST_CHECK(lst_holds(
        ls_layer_norm(c, x, one, zero, 0), LS_SHAPE(4),
        D(-1.5 / sqrt(1.25), -0.5 / sqrt(1.25), 0.5 / sqrt(1.25), 1.5 / sqrt(1.25)),
        1e-6));
    lst_close(c, rt);
}

LST_TEST(an_empty_part_changes_no_moving_average)
{
    for (int isa = LSI_ISA_REF; isa <= (int)lsi_isa_best(); isa++) {
        ls_runtime *rt;
        ls_context *c = lst_open(&rt);
        ls_tensor *x = ZEROS(c, LS_SHAPE(0, 3)), *g = ZEROS(c, LS_SHAPE(3));
        ls_tensor *mean = NULL, *variance = NULL, *old = F32(c, LS_SHAPE(3), 1, 2, 3);

        c->device->isa = (lsi_isa)isa;
        LST_CHECK(lst_holds(ls_layer_norm(c, x, g, g, 1e-3), LS_SHAPE(0, 3), NULL, 0));
        LST_CHECK(lst_holds(ls_batch_norm(c, x, g, g, 1e-3, &mean, &variance),
                            LS_SHAPE(0, 3), NULL, 0));
        LST_CHECK(lst_holds(mean, LS_SHAPE(3), D(0, 0, 0), 0));
        LST_CHECK(lst_holds(variance, LS_SHAPE(3), D(0, 0, 0), 0));
        LST_CHECK(lst_holds(ls_batch_norm_inference(c, x, g, g, g, g, 1e-3),
                            LS_SHAPE(0, 3), NULL, 0));
        LST_CHECK(lst_holds(ls_moving_average(c, old, mean, x, 0.9), LS_SHAPE(3),
                            D(1, 2, 3), 0));
        lst_close(c, rt);
    }
}

LST_TEST(a_moving_average_goes_towards_the_moment)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = ZEROS(c, LS_SHAPE(2, 2)), *old = F32(c, LS_SHAPE(2), 1, 2);
    ls_tensor *moment = F32(c, LS_SHAPE(2), 11, -8);

    LST_CHECK(
        lst_holds(ls_moving_average(c, old, moment, x, 0.9), LS_SHAPE(2), D(2, 1), 1e-6));
    (void)ls_moving_average(c, old, moment, x, 1.5);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "the momentum 1.5 must lie in [0, 1]");
    (void)ls_moving_average(c, old, NULL, x, 0.5);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "moving_average: moment is NULL");
    lst_close(c, rt);
}

/* The row of `call` with something reaching every set of outputs; then its gradient row.
 */
static void check_norm(ls_context *c, const lst_call *call, const ls_op *grad)
{
    uint64_t seed = 12;
    ls_tensor *outs[LSI_MAX_OUTPUTS] = {NULL};
    lst_call second;

    for (unsigned mask = 1; mask < 1u << call->op->outputs; mask++) {
        lst_check_row(c, call, mask);
    }
    ls_op_apply(c, call->op, call->in, call->nin, call->attrs, call->attrs_size, outs);
    if (outs[0] != NULL) {
        ls_tensor *in[5] = {lst_random_f64(c, ls_tensor_shape(outs[0]), -1, 1, &seed),
                            call->in[0], call->in[1], outs[1],
                            outs[call->op->outputs - 1]};

        lst_watch(c, in[0], &second);
        (void)ls_op_apply1(c, grad, in, 5, NULL, 0);
        for (unsigned mask = 1; mask < 8; mask++) {
            lst_check_row(c, &second, mask);
        }
    }
}

LST_TEST(gradients_of_norms_agree_with_differences_to_second_order)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    const ls_shape shapes[] = {LS_SHAPE(4, 3), LS_SHAPE(2, 2, 3)};
    uint64_t seed = 6;

    for (size_t s = 0; s < LSI_COUNT_OF(shapes); s++) {
        ls_tensor *x = lst_random_f64(c, shapes[s], -2, 2, &seed);
        ls_tensor *gamma = lst_random_f64(c, LS_SHAPE(3), 0.5, 2, &seed);
        ls_tensor *beta = lst_random_f64(c, LS_SHAPE(3), -1, 1, &seed);
        ls_tensor *mean = lst_random_f64(c, LS_SHAPE(3), -1, 1, &seed);
        lst_call call;

        lst_watch(c, x, &call);
        (void)ls_layer_norm(c, x, gamma, beta, 0.1);
        check_norm(c, &call, &lsi_op_layer_norm_grad);
        lst_watch(c, x, &call);
        (void)ls_batch_norm(c, x, gamma, beta, 0.1, NULL, NULL);
        check_norm(c, &call, &lsi_op_batch_norm_grad);
        lst_watch(c, x, &call);
        (void)ls_batch_norm_inference(c, x, gamma, beta, mean, gamma, 0.1);
        lst_check_row(c, &call, 1);
    }
    lst_close(c, rt);
}

LST_TEST(wrong_operands_are_named)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *in[5], *mean = NULL;

#define X ZEROS(c, LS_SHAPE(2, 3))
#define G ZEROS(c, LS_SHAPE(3))
    (void)ls_layer_norm(c, X, ZEROS(c, LS_SHAPE(2)), G, 0);
    LST_STEP_FAILS(
        c, LS_INVALID_ARGUMENT,
        "layer_norm: gamma float32 (2,) does not match float32 (2, 3): it needs "
        "one float32 for each of the 3 channels");
    (void)ls_layer_norm(c, X, G, X, 0);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "beta float32 (2, 3)");
    (void)ls_layer_norm(c, ZEROS(c, LS_SCALAR), G, G, 0);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "has too few axes");
    (void)ls_layer_norm(c, X, G, G, -1);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "epsilon is -1");
    (void)ls_layer_norm(c, (ls_constant)(c, LS_F16, LS_SHAPE(2, 3), NULL), G, G, 0);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "works in float32 and float64, got float16");
    (void)ls_batch_norm(c, G, G, G, 0, &mean, NULL);
    LST_CHECK(mean == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "batch_norm: float32 (3,) has too few axes");
    (void)ls_batch_norm(c, X, G, G, NAN, NULL, NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "epsilon is");
    (void)ls_batch_norm_inference(c, X, G, G, G, ZEROS(c, LS_SHAPE(1)), 0);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "batch_norm_inference: variance float32 (1,)");
    (void)ls_batch_norm_inference(c, X, G, G, X, G, 0);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "mean float32 (2, 3)");
    (void)ls_batch_norm_inference(c, X, G, G, G, G, INFINITY);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "epsilon is inf");
    for (size_t i = 0; i < 5; i++) {
        in[i] = i < 2 ? X : G;
    }
    (void)ls_op_apply1(c, &lsi_op_layer_norm_grad, in, 5, NULL, 0);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "input 3, float32 (3,), does not match");
    lst_close(c, rt);
}

LST_MAIN(LST_CASE(a_layer_norm_centres_and_scales_each_row),
         LST_CASE(a_batch_norm_hands_out_the_moments_of_each_channel),
         LST_CASE(inference_with_the_moments_of_the_batch_repeats_training),
         LST_CASE(a_small_spread_on_a_large_mean_is_not_lost),
         LST_CASE(an_empty_part_changes_no_moving_average),
         LST_CASE(a_moving_average_goes_towards_the_moment),
         LST_CASE(gradients_of_norms_agree_with_differences_to_second_order),
         LST_CASE(wrong_operands_are_named))
