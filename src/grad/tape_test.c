/* What a tape records, and the gradients it gives. */
#include "grad/tape_test.h"

LST_TEST(the_gradient_of_a_scalar)
{
    open_step();
    ls_tensor *x = scalar(3);
    ls_tape *tape = ls_tape_open(c, NULL);

    ls_tape_watch(c, tape, x);
    LST_CHECK(HOLDS(ls_gradient(c, tape, ls_square(c, x), x), 6));
    close_step();
}

LST_TEST(a_target_that_is_no_scalar_is_summed)
{
    open_step();
    ls_tensor *x = VECTOR(1, 2, 3);
    ls_tape *tape = ls_tape_open(c, NULL);

    ls_tape_watch(c, tape, x);
    LST_CHECK(HOLDS(ls_gradient(c, tape, ls_mul(c, x, x), x), 2, 4, 6));
    close_step();
}

LST_TEST(what_was_computed_before_watching_does_not_count)
{
    open_step();
    ls_tensor *x = scalar(3);
    ls_tape *tape = persistent_tape();
    ls_tensor *before = ls_square(c, x);

    ls_tape_watch(c, tape, x);
    ls_tensor *after = ls_square(c, x);
    LST_CHECK(ls_gradient(c, tape, before, x) == NULL);
    LST_CHECK(HOLDS(ls_gradient(c, tape, after, x), 6));
    LST_CHECK(HOLDS(ls_gradient(c, tape, ls_add(c, before, after), x), 6));
    close_step();
}

LST_TEST(nothing_is_recorded_without_watching)
{
    open_step();
    ls_tensor *x = scalar(3);
    ls_tape *tape = ls_tape_open(c, NULL);

    LST_CHECK(ls_gradient(c, tape, ls_square(c, x), x) == NULL);
    close_step();
}

LST_TEST(a_tape_that_is_not_persistent_gives_gradients_once)
{
    open_step();
    ls_tensor *x = scalar(3);
    ls_tape *tape = ls_tape_open(c, NULL);

    ls_tape_watch(c, tape, x);
    ls_tensor *y = ls_square(c, x);
    LST_CHECK(HOLDS(ls_gradient(c, tape, y, x), 6));
    LST_CHECK(ls_gradient(c, tape, y, x) == NULL);
    LST_CHECK(failed_at(LS_FAILED_PRECONDITION, __LINE__ - 1, "persistent"));
    close_step();
}

LST_TEST(a_persistent_tape_gives_gradients_again_and_goes_on_recording)
{
    open_step();
    ls_tensor *x = scalar(3);
    ls_tape *tape = persistent_tape();

    ls_tape_watch(c, tape, x);
    ls_tensor *y = ls_square(c, x), *z = ls_square(c, y);
    LST_CHECK(HOLDS(ls_gradient(c, tape, z, x), 108));
    LST_CHECK(HOLDS(ls_gradient(c, tape, y, x), 6));
    LST_CHECK(HOLDS(ls_gradient(c, tape, z, y), 18));
    ls_tensor *later = ls_mul(c, z, x);
    LST_CHECK(HOLDS(ls_gradient(c, tape, later, x), 405));
    close_step();
}

LST_TEST(a_persistent_tape_differentiates_its_own_gradients)
{
    open_step();
    ls_tensor *x = scalar(3);
    ls_tape *tape = persistent_tape();

    ls_tape_watch(c, tape, x);
    ls_tensor *y = ls_mul(c, ls_square(c, x), x);
    ls_tensor *dy = ls_gradient(c, tape, y, x);
    LST_CHECK(HOLDS(dy, 27));
    LST_CHECK(HOLDS(ls_gradient(c, tape, dy, x), 18));
    close_step();
}

LST_TEST(stop_pauses_recording_and_resume_goes_on)
{
    open_step();
    ls_tensor *x = scalar(2);
    ls_tape *tape = persistent_tape();

    ls_tape_watch(c, tape, x);
    ls_tensor *a = ls_square(c, x);
    ls_tape_stop(c, tape);
    ls_tensor *unseen = ls_square(c, x);
    ls_tape_resume(c, tape);
    ls_tensor *b = ls_mul(c, a, unseen);
    LST_CHECK(HOLDS(ls_gradient(c, tape, b, x), 16)); // d(x^2 * 4): unseen is a constant
    LST_CHECK(ls_gradient(c, tape, unseen, x) == NULL);
    close_step();
}

LST_TEST(reset_forgets_what_was_recorded_and_watched)
{
    open_step();
    ls_tensor *x = scalar(2);
    ls_tape *tape = persistent_tape();

    ls_tape_watch(c, tape, x);
    ls_tensor *y = ls_square(c, x);
    ls_tape_reset(c, tape);
    LST_CHECK(ls_gradient(c, tape, y, x) == NULL);
    LST_CHECK(ls_gradient(c, tape, ls_square(c, x), x) == NULL);
    ls_tape_watch(c, tape, x);
    LST_CHECK(HOLDS(ls_gradient(c, tape, ls_square(c, x), x), 4));
    close_step();
}

LST_TEST(a_tape_that_was_reset_gives_gradients_once_more)
{
    open_step();
    ls_tensor *x = scalar(2);
    ls_tape *tape = ls_tape_open(c, NULL);

    ls_tape_watch(c, tape, x);
    LST_CHECK(HOLDS(ls_gradient(c, tape, ls_square(c, x), x), 4));
    ls_tape_reset(c, tape);
    ls_tape_watch(c, tape, x);
    LST_CHECK(HOLDS(ls_gradient(c, tape, ls_mul(c, x, ls_square(c, x)), x), 12));
    close_step();
}

LST_TEST(one_tape_after_another_watches_the_same_tensor)
{
    open_step();
    ls_tensor *x = scalar(2);

    for (int i = 0; i < 40; i++) { // more than can be open at once
        ls_tape *tape = ls_tape_open(c, NULL);

        ls_tape_watch(c, tape, x);
        LST_CHECK(HOLDS(ls_gradient(c, tape, ls_square(c, x), x), 4));
        ls_tape_close(c, tape);
    }
    close_step();
}

LST_TEST(a_later_tape_does_not_see_what_an_earlier_one_recorded)
{
    open_step();
    ls_tensor *x = scalar(2);
    ls_tape *first = ls_tape_open(c, NULL);

    ls_tape_watch(c, first, x);
    ls_tensor *y = ls_square(c, x);
    ls_tape_close(c, first);
    ls_tape *second = ls_tape_open(c, NULL);
    ls_tape_watch(c, second, y);
    ls_tensor *sources[] = {x, y}, *grads[2];
    ls_tensor *z = ls_square(c, y);
    ls_gradients(c, second, &z, NULL, 1, sources, 2, grads);
    LST_CHECK(grads[0] == NULL);
    LST_CHECK(HOLDS(grads[1], 8));
    close_step();
}

LST_TEST(output_gradients_weigh_the_elements)
{
    open_step();
    ls_tensor *x = VECTOR(1, 2, 3), *weights = VECTOR(10, 0, -1), *dx = NULL;
    ls_tape *tape = ls_tape_open(c, NULL);

    ls_tape_watch(c, tape, x);
    ls_tensor *y = ls_square(c, x);
    ls_gradients(c, tape, &y, &weights, 1, &x, 1, &dx);
    LST_CHECK(HOLDS(dx, 20, 0, -6));
    close_step();
}

LST_TEST(several_targets_add_up_and_may_have_output_gradients_each)
{
    open_step();
    ls_tensor *x = VECTOR(1, 2), *dx = NULL;
    ls_tape *tape = persistent_tape();

    ls_tape_watch(c, tape, x);
    ls_tensor *targets[] = {ls_square(c, x), ls_neg(c, x), ls_constant_f32(c, 1)};
    ls_tensor *weights[] = {NULL, VECTOR(5, 7), NULL};
    ls_gradients(c, tape, targets, NULL, 3, &x, 1, &dx);
    LST_CHECK(HOLDS(dx, 1, 3));
    ls_gradients(c, tape, targets, weights, 3, &x, 1, &dx);
    LST_CHECK(HOLDS(dx, -3, -3));
    close_step();
}

LST_TEST(several_sources_get_their_own_gradients_and_missing_ones_are_null)
{
    open_step();
    ls_tensor *x = scalar(2), *y = scalar(5), *unused = scalar(7), *unwatched = scalar(9);
    ls_tape *tape = ls_tape_open(c, NULL);

    ls_tape_watch(c, tape, x);
    ls_tape_watch(c, tape, y);
    ls_tape_watch(c, tape, unused);
    ls_tensor *z = ls_mul(c, ls_mul(c, x, y), unwatched);
    ls_tensor *sources[] = {x, unused, y, unwatched, x}, *grads[5];
    ls_gradients(c, tape, &z, NULL, 1, sources, 5, grads);
    LST_CHECK(HOLDS(grads[0], 45));
    LST_CHECK(grads[1] == NULL);
    LST_CHECK(HOLDS(grads[2], 18));
    LST_CHECK(grads[3] == NULL);
    LST_CHECK(HOLDS(grads[4], 45));
    close_step();
}

LST_TEST(a_target_is_its_own_source)
{
    open_step();
    ls_tensor *x = VECTOR(2, 3);
    ls_tape *tape = ls_tape_open(c, NULL);

    ls_tape_watch(c, tape, x);
    LST_CHECK(HOLDS(ls_gradient(c, tape, x, x), 1, 1));
    close_step();
}

LST_TEST(the_gradient_with_respect_to_an_intermediate)
{
    open_step();
    ls_tensor *x = scalar(2);
    ls_tape *tape = ls_tape_open(c, NULL);

    ls_tape_watch(c, tape, x);
    ls_tensor *y = ls_square(c, x), *z = ls_mul(c, y, x), *sources[] = {y, x}, *grads[2];
    ls_gradients(c, tape, &z, NULL, 1, sources, 2, grads);
    LST_CHECK(HOLDS(grads[0], 2));
    LST_CHECK(HOLDS(grads[1], 12));
    close_step();
}

LST_TEST(watching_an_intermediate_changes_nothing_for_its_origin)
{
    open_step();
    ls_tensor *x = scalar(2);
    ls_tape *tape = ls_tape_open(c, NULL);

    ls_tape_watch(c, tape, x);
    ls_tensor *y = ls_square(c, x), *early = ls_exp(c, ls_neg(c, y));
    ls_tape_watch(c, tape, y);
    ls_tape_watch(c, tape, y);
    ls_tensor *z = ls_add(c, ls_square(c, y), early), *sources[] = {x, y}, *grads[2];
    ls_gradients(c, tape, &z, NULL, 1, sources, 2, grads);
    LST_CHECK(HOLDS(grads[0], 32 - 4 * exp(-4)));
    LST_CHECK(HOLDS(grads[1], 8 - exp(-4)));
    close_step();
}

LST_TEST(stop_gradient_stops_it)
{
    open_step();
    ls_tensor *x = scalar(3);
    ls_tape *tape = persistent_tape();

    ls_tape_watch(c, tape, x);
    ls_tensor *y = ls_mul(c, x, ls_stop_gradient(c, x));
    LST_CHECK(HOLDS(ls_gradient(c, tape, y, x), 3));
    LST_CHECK(ls_gradient(c, tape, ls_stop_gradient(c, x), x) == NULL);
    close_step();
}

LST_TEST(an_operation_without_gradient_ends_the_way_back)
{
    open_step();
    ls_tensor *x = VECTOR(1, 5);
    ls_tape *tape = ls_tape_open(c, NULL);

    ls_tape_watch(c, tape, x);
    ls_tensor *floor = ls_floordiv(c, x, scalar(2));
    LST_CHECK(ls_gradient(c, tape, ls_square(c, floor), x) == NULL);
    close_step();
}

LST_TEST(views_pass_gradients_on)
{
    open_step();
    ls_tensor *x = VECTOR(1, 2, 3, 4);
    ls_tape *tape = ls_tape_open(c, NULL);

    ls_tape_watch(c, tape, x);
    ls_tensor *m = ls_reshape(c, x, LS_SHAPE(2, 2));
    ls_tensor *row = ls_slice(c, m, (const int64_t[]){1, 0}, (const int64_t[]){1, 2});
    LST_CHECK(HOLDS(ls_gradient(c, tape, ls_square(c, row), x), 0, 0, 6, 8));
    close_step();
}

LST_TEST(a_tensor_used_twice_gets_both_shares)
{
    open_step();
    ls_tensor *x = scalar(3);
    ls_tape *tape = ls_tape_open(c, NULL);

    ls_tape_watch(c, tape, x);
    ls_tensor *y = ls_add(c, ls_mul(c, x, x), ls_mul(c, x, scalar(4)));
    LST_CHECK(HOLDS(ls_gradient(c, tape, y, x), 10));
    close_step();
}

LST_MAIN(LST_CASE(the_gradient_of_a_scalar),
         LST_CASE(a_target_that_is_no_scalar_is_summed),
         LST_CASE(what_was_computed_before_watching_does_not_count),
         LST_CASE(nothing_is_recorded_without_watching),
         LST_CASE(a_tape_that_is_not_persistent_gives_gradients_once),
         LST_CASE(a_persistent_tape_gives_gradients_again_and_goes_on_recording),
         LST_CASE(a_persistent_tape_differentiates_its_own_gradients),
         LST_CASE(stop_pauses_recording_and_resume_goes_on),
         LST_CASE(reset_forgets_what_was_recorded_and_watched),
         LST_CASE(a_tape_that_was_reset_gives_gradients_once_more),
         LST_CASE(one_tape_after_another_watches_the_same_tensor),
         LST_CASE(a_later_tape_does_not_see_what_an_earlier_one_recorded),
         LST_CASE(output_gradients_weigh_the_elements),
         LST_CASE(several_targets_add_up_and_may_have_output_gradients_each),
         LST_CASE(several_sources_get_their_own_gradients_and_missing_ones_are_null),
         LST_CASE(a_target_is_its_own_source),
         LST_CASE(the_gradient_with_respect_to_an_intermediate),
         LST_CASE(watching_an_intermediate_changes_nothing_for_its_origin),
         LST_CASE(stop_gradient_stops_it),
         LST_CASE(an_operation_without_gradient_ends_the_way_back),
         LST_CASE(views_pass_gradients_on),
         LST_CASE(a_tensor_used_twice_gets_both_shares))
