/* Pooling of images: values, gradients, windows, arguments. */
#include "ls_row_check.h"

static ls_pool_options options(int kh, int kw, int sh, int sw, ls_padding padding,
                               bool relu)
{
    return (ls_pool_options){sizeof(ls_pool_options), {kh, kw}, {sh, sw}, padding, relu};
}

/* The pool of `op` with both outputs. */
static void pool_both(ls_context *c, ls_tensor *x, ls_pool_options o, ls_tensor **y,
                      ls_tensor **index)
{
    ls_tensor *outs[LSI_MAX_OUTPUTS] = {NULL};
    lst_call call;

    lst_watch(c, x, &call);
    *y = ls_max_pool2d(c, x, &o);
    c->recording = 0;
    ls_op_apply(c, &lsi_op_max_pool2d, &x, 1, call.attrs, call.attrs_size, outs);
    *index = outs[1];
}

static bool indices_are(const ls_tensor *index, const uint8_t *want)
{
    return index != NULL && index->dtype == LS_U8 &&
           memcmp(index->data, want, (size_t)index->count) == 0;
}

LST_TEST(the_first_maximum_of_a_window_is_found_and_remembered)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = F32(c, LS_SHAPE(1, 3, 3, 1), 1, 7, 7, 2, 7, 0, -1, -2, -3), *y, *index;

    LST_CHECK(lst_holds(ls_max_pool2d(c, x, NULL), LS_SHAPE(1, 1, 1, 1), D(7), 0));
    pool_both(c, x, options(2, 2, 1, 1, LS_VALID, false), &y, &index);
    LST_CHECK(lst_holds(y, LS_SHAPE(1, 2, 2, 1), D(7, 7, 7, 7), 0));
    LST_CHECK(indices_are(index, (const uint8_t[]){1, 0, 1, 0}));
    // Size 2, stride 2, SAME: one row and column of padding, after.
    pool_both(c, x, options(2, 2, 2, 2, LS_SAME, false), &y, &index);
    LST_CHECK(lst_holds(y, LS_SHAPE(1, 2, 2, 1), D(7, 7, -1, -3), 0));
    LST_CHECK(indices_are(index, (const uint8_t[]){1, 0, 0, 0}));
    // Size 3, stride 1, SAME: positions count those in the padding before.
    pool_both(c, x, options(3, 3, 1, 1, LS_SAME, false), &y, &index);
    LST_CHECK(lst_holds(y, LS_SHAPE(1, 3, 3, 1), D(7, 7, 7, 7, 7, 7, 7, 7, 7), 0));
    LST_CHECK(indices_are(index, (const uint8_t[]){5, 4, 3, 2, 1, 0, 2, 1, 0}));
    lst_close(c, rt);
}

LST_TEST(pooling_with_relu_is_the_pooling_of_the_relu)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = F32(c, LS_SHAPE(1, 2, 4, 1), -1, -2, 0, -4, -5, -6, -7, 3), *y, *index;

    pool_both(c, x, options(2, 2, 0, 0, LS_VALID, true), &y, &index);
    LST_CHECK(lst_holds(y, LS_SHAPE(1, 1, 2, 1), D(0, 3), 0));
    LST_CHECK(indices_are(index, (const uint8_t[]){255, 3}));
    pool_both(c, x, options(1, 1, 1, 1, LS_VALID, true), &y, &index);
    LST_CHECK(
        indices_are(index, (const uint8_t[]){255, 255, 255, 255, 255, 255, 255, 0}));
    lst_close(c, rt);
}

LST_TEST(an_average_counts_the_image_and_not_the_padding)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = F32(c, LS_SHAPE(1, 3, 3, 1), 1, 2, 3, 4, 5, 6, 7, 8, 9);
    const ls_pool_options same = options(2, 2, 2, 2, LS_SAME, false);
    const ls_pool_options wide = options(3, 3, 1, 1, LS_SAME, false);

    LST_CHECK(lst_holds(ls_avg_pool2d(c, x, NULL), LS_SHAPE(1, 1, 1, 1), D(3), 0));
    LST_CHECK(lst_holds(ls_avg_pool2d(c, x, &same), LS_SHAPE(1, 2, 2, 1),
                        D(3, 4.5, 7.5, 9), 0));
    LST_CHECK(lst_holds(ls_avg_pool2d(c, x, &wide), LS_SHAPE(1, 3, 3, 1),
                        D(3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5, 7), 1e-6));
    lst_close(c, rt);
}

LST_TEST(global_pools_leave_a_value_for_each_channel)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = F32(c, LS_SHAPE(2, 1, 2, 2), 1, 10, 3, 30, -1, 0, 2, -2);

    LST_CHECK(
        lst_holds(ls_global_avg_pool2d(c, x), LS_SHAPE(2, 2), D(2, 20, 0.5, -1), 0));
    LST_CHECK(lst_holds(ls_global_max_pool2d(c, x), LS_SHAPE(2, 2), D(3, 30, 2, 0), 0));
    lst_close(c, rt);
}

LST_TEST(channels_and_images_are_pooled_apart_and_an_empty_batch_is_empty)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = F32(c, LS_SHAPE(2, 2, 1, 2), 1, 8, 2, 7, 3, 6, 4, 5);
    const ls_pool_options o = options(2, 1, 0, 0, LS_VALID, false);
    ls_tensor *h = ls_max_pool2d(c, ls_cast(c, x, LS_F16), &o);

    LST_CHECK(lst_holds(ls_max_pool2d(c, x, &o), LS_SHAPE(2, 1, 1, 2), D(2, 8, 4, 6), 0));
    LST_CHECK(lst_holds(h, LS_SHAPE(2, 1, 1, 2), D(2, 8, 4, 6), 0));
    LST_CHECK(lst_holds(ls_avg_pool2d(c, x, &o), LS_SHAPE(2, 1, 1, 2),
                        D(1.5, 7.5, 3.5, 5.5), 0));
    x = ZEROS(c, LS_SHAPE(0, 4, 4, 3));
    LST_CHECK(lst_holds(ls_max_pool2d(c, x, NULL), LS_SHAPE(0, 2, 2, 3), NULL, 0));
    LST_CHECK(lst_holds(ls_avg_pool2d(c, x, NULL), LS_SHAPE(0, 2, 2, 3), NULL, 0));
    lst_close(c, rt);
}

LST_TEST(gradients_of_pools_agree_with_differences_to_second_order)
{
    const ls_pool_options all[] = {
        options(2, 2, 0, 0, LS_VALID, false), options(3, 2, 1, 1, LS_SAME, false),
        options(3, 3, 2, 2, LS_SAME, true),   options(2, 3, 3, 1, LS_VALID, true),
        options(2, 2, 3, 3, LS_VALID, false), options(5, 6, 1, 1, LS_SAME, false)};
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    uint64_t seed = 3;
    ls_tensor *x = lst_random_f64(c, LS_SHAPE(2, 5, 6, 2), -1, 1, &seed);

    for (size_t i = 0; i < LSI_COUNT_OF(all); i++) {
        ls_pool_options o = all[i];
        ls_tensor *y, *index;
        lsi_pool_attrs at;
        lst_call call;

        pool_both(c, x, o, &y, &index);
        lst_watch(c, x, &call);
        (void)ls_max_pool2d(c, x, &o);
        lst_check_row(c, &call, 1);
        memcpy(&at, call.attrs, sizeof at);
        memcpy(at.image, x->dims, sizeof at.image);
        lst_watch(c, y, &call);
        (void)lsi_op2(c, &lsi_op_max_pool2d_grad, y, index, &at, sizeof at);
        lst_check_row(c, &call, 1);
        lst_watch(c, x, &call);
        (void)lsi_op2(c, &lsi_op_max_pool2d_grad_grad, x, index, &at, sizeof at);
        lst_check_row(c, &call, 1);

        o.relu = false;
        lst_watch(c, x, &call);
        y = ls_avg_pool2d(c, x, &o);
        lst_check_row(c, &call, 1);
        lst_watch(c, y, &call);
        (void)lsi_op1(c, &lsi_op_avg_pool2d_grad, y, &at, sizeof at);
        lst_check_row(c, &call, 1);
    }
    lst_close(c, rt);
}

LST_TEST(where_nothing_was_above_zero_no_gradient_comes_from_the_pixel_numbered_255)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    uint64_t seed = 3;
    ls_tensor *x = lst_random_f64(c, LS_SHAPE(1, 300, 1, 1), -1, -0.5, &seed), *y, *index;
    ls_tensor *h = lst_random_f64(c, LS_SHAPE(1, 300, 1, 1), 1, 2, &seed);
    const lsi_pool_attrs at = {{2, 1}, {2, 1}, {0, 0}, LS_VALID, true, {1, 300, 1, 1}};

    pool_both(c, x, options(2, 1, 0, 0, LS_VALID, true), &y, &index);
    h = lsi_op2(c, &lsi_op_max_pool2d_grad_grad, h, index, &at, sizeof at);
    for (int64_t i = 0; i < 150; i++) {
        LST_CHECK(lst_at(h, i) == 0);
    }
    lst_close(c, rt);
}

LST_TEST(wrong_images_windows_and_options_are_named)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_pool_options o = options(16, 16, 0, 0, LS_VALID, false);
    lsi_pool_attrs at = {{2, 2}, {2, 2}, {0, 0}, LS_VALID, false, {1, 4, 4, 1}};

    (void)ls_max_pool2d(c, ZEROS(c, LS_SHAPE(1, 20, 20, 1)), &o);
    LST_STEP_FAILS(c, LS_UNIMPLEMENTED,
                   "max_pool2d: a window of 16 x 16 has more than 255");
    o = options(15, 17, 0, 0, LS_VALID, false); // 255: the largest there is
    LST_CHECK(ls_max_pool2d(c, ZEROS(c, LS_SHAPE(1, 20, 20, 1)), &o) != NULL);
    (void)ls_max_pool2d(c, ZEROS(c, LS_SHAPE(4, 4, 1)), NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "max_pool2d: image (4, 4, 1) must be");
    (void)ls_avg_pool2d(c, ZEROS(c, LS_SHAPE(4)), NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "avg_pool2d: image (4,) must be");
    (void)ls_max_pool2d(c, (ls_constant)(c, LS_I32, LS_SHAPE(1, 2, 2, 1), NULL), NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "needs a floating dtype");
    o = options(3, 3, 1, 1, LS_VALID, false);
    (void)ls_max_pool2d(c, ZEROS(c, LS_SHAPE(1, 1, 4, 1)), &o);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "is smaller than the window (3, 3)");
    o = options(0, 2, 0, 0, LS_VALID, false);
    (void)ls_max_pool2d(c, ZEROS(c, LS_SHAPE(1, 4, 4, 1)), &o);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "window (0, 2) and strides (0, 2)");
    o = options(2, 2, 1, -1, LS_VALID, false);
    (void)ls_avg_pool2d(c, ZEROS(c, LS_SHAPE(1, 4, 4, 1)), &o);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "strides (1, -1)");
    o = options(2, 2, 1, 1, (ls_padding)5, false);
    (void)ls_avg_pool2d(c, ZEROS(c, LS_SHAPE(1, 4, 4, 1)), &o);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "padding 5 does not exist");
    o = options(2, 2, 1, 1, LS_VALID, true);
    (void)ls_avg_pool2d(c, ZEROS(c, LS_SHAPE(1, 4, 4, 1)), &o);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "avg_pool2d: only max pooling takes the relu");
    o.struct_size = 4;
    (void)ls_max_pool2d(c, ZEROS(c, LS_SHAPE(1, 4, 4, 1)), &o);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "start them from LS_POOL_OPTIONS_INIT");
    (void)ls_global_avg_pool2d(c, ZEROS(c, LS_SHAPE(4, 4, 1)));
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "global_avg_pool2d: image float32 (4, 4, 1)");
    (void)ls_global_max_pool2d(c, ZEROS(c, LS_SHAPE(4, 4, 1)));
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "global_max_pool2d: image float32 (4, 4, 1)");
    (void)lsi_op1(c, &lsi_op_avg_pool2d_grad, ZEROS(c, LS_SHAPE(1, 3, 2, 1)), &at,
                  sizeof at);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "but pooling gives (1, 2, 2, 1)");
    (void)lsi_op2(c, &lsi_op_max_pool2d_grad, ZEROS(c, LS_SHAPE(1, 2, 2, 1)),
                  ZEROS(c, LS_SHAPE(1, 2, 2, 1)), &at, sizeof at);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "the positions are float32");
    lst_close(c, rt);
}

LST_MAIN(
    LST_CASE(the_first_maximum_of_a_window_is_found_and_remembered),
    LST_CASE(pooling_with_relu_is_the_pooling_of_the_relu),
    LST_CASE(an_average_counts_the_image_and_not_the_padding),
    LST_CASE(global_pools_leave_a_value_for_each_channel),
    LST_CASE(channels_and_images_are_pooled_apart_and_an_empty_batch_is_empty),
    LST_CASE(gradients_of_pools_agree_with_differences_to_second_order),
    LST_CASE(where_nothing_was_above_zero_no_gradient_comes_from_the_pixel_numbered_255),
    LST_CASE(wrong_images_windows_and_options_are_named))
