/* Tapes and variables, and tapes in the wrong hands. */
#include "grad/tape_test.h"

/* ---- variables ---- */

static ls_variable *variable(double value, bool not_trainable)
{
    ls_variable_options o = LS_VARIABLE_OPTIONS_INIT;
    ls_tensor *t = NULL;
    ls_variable *v = NULL;

    o.not_trainable = not_trainable;
    LST_OK(ls_tensor_create(NULL, LS_F64, LS_SCALAR, &value, &t, &err));
    LST_OK(ls_variable_create(t, &o, &v, &err));
    ls_tensor_release(t);
    return v;
}

LST_TEST(trainable_variables_are_watched_as_they_are_read)
{
    open_step();
    ls_variable *v = variable(3, false), *other = variable(4, false);
    ls_variable *both[] = {v, other};
    ls_tensor *grads[2];
    ls_tape *tape = ls_tape_open(c, NULL);

    ls_tensor *y = ls_mul(c, ls_read(c, v), ls_read(c, v)); // two reads: shares add up
    ls_variable_gradients(c, tape, y, both, 2, grads);
    LST_CHECK(HOLDS(grads[0], 6));
    LST_CHECK(grads[1] == NULL);
    close_step();
    ls_variable_release(v);
    ls_variable_release(other);
}

LST_TEST(reads_share_a_sum_for_their_variable_and_have_their_own_as_tensors)
{
    open_step();
    ls_variable *v = variable(3, false);
    ls_tensor *grad = NULL;
    ls_tape *tape = persistent_tape();
    ls_tensor *a = ls_read(c, v), *b = ls_read(c, v);
    ls_tensor *y = ls_add(c, ls_mul(c, a, scalar(2)), ls_mul(c, b, scalar(5)));

    ls_variable_gradients(c, tape, y, &v, 1, &grad);
    LST_CHECK(HOLDS(grad, 7));
    LST_CHECK(HOLDS(ls_gradient(c, tape, y, a), 2));
    LST_CHECK(HOLDS(ls_gradient(c, tape, y, b), 5));
    ls_variable_gradients(c, tape, b, &v, 1, &grad); // a read is the target itself
    LST_CHECK(HOLDS(grad, 1));
    close_step();
    ls_variable_release(v);
}

LST_TEST(variables_that_are_not_trainable_are_watched_when_told)
{
    open_step();
    ls_variable *v = variable(3, true);
    ls_tensor *grad = NULL;
    ls_tape *tape = persistent_tape();

    ls_variable_gradients(c, tape, ls_square(c, ls_read(c, v)), &v, 1, &grad);
    LST_CHECK(grad == NULL);
    ls_tape_watch_variable(c, tape, v);
    ls_variable_gradients(c, tape, ls_square(c, ls_read(c, v)), &v, 1, &grad);
    LST_CHECK(HOLDS(grad, 6));
    close_step();
    ls_variable_release(v);
}

LST_TEST(a_tape_may_ignore_variables_but_those_it_is_told_to_watch)
{
    ls_tape_options o = LS_TAPE_OPTIONS_INIT;

    o.ignore_variables = true;
    open_step();
    ls_variable *v = variable(3, false), *w = variable(4, false), *both[] = {v, w};
    ls_tensor *grads[2];
    ls_tape *tape = ls_tape_open(c, &o);
    ls_tape_watch_variable(c, tape, w);
    ls_tensor *y = ls_mul(c, ls_read(c, v), ls_read(c, w));
    ls_variable_gradients(c, tape, y, both, 2, grads);
    LST_CHECK(grads[0] == NULL);
    LST_CHECK(HOLDS(grads[1], 3));
    close_step();
    ls_variable_release(v);
    ls_variable_release(w);
}

LST_TEST(reads_before_the_tape_was_opened_do_not_count)
{
    open_step();
    ls_variable *v = variable(3, false);
    ls_tensor *grad = NULL, *before = ls_read(c, v);
    ls_tape *tape = ls_tape_open(c, NULL);

    ls_variable_gradients(c, tape, ls_square(c, before), &v, 1, &grad);
    LST_CHECK(grad == NULL);
    close_step();
    ls_variable_release(v);
}

LST_TEST(an_assignment_inside_the_tape_does_not_change_what_was_read)
{
    open_step();
    ls_variable *v = variable(3, false);
    ls_tensor *grad = NULL;
    ls_tape *tape = ls_tape_open(c, NULL);

    ls_tensor *y = ls_square(c, ls_read(c, v));
    (void)ls_assign_add(c, v, scalar(10));
    ls_tensor *z = ls_mul(c, y, ls_read(c, v)); // 9 * 13
    LST_CHECK(ls_item(c, z) == 117);
    ls_variable_gradients(c, tape, z, &v, 1, &grad);
    LST_CHECK(HOLDS(grad, 6 * 13 + 9));
    close_step();
    ls_variable_release(v);
}

LST_TEST(variables_have_second_derivatives)
{
    open_step();
    ls_variable *v = variable(5, false);
    ls_tensor *first = NULL, *grad = NULL;
    ls_tape *outer = ls_tape_open(c, NULL), *inner = ls_tape_open(c, NULL);

    ls_variable_gradients(c, inner, cube(ls_read(c, v)), &v, 1, &first);
    ls_variable_gradients(c, outer, first, &v, 1, &grad);
    LST_CHECK(HOLDS(first, 75));
    LST_CHECK(HOLDS(grad, 30));
    close_step();
    ls_variable_release(v);
}

/* ---- misuse ---- */

LST_TEST(a_closed_tape_is_refused_with_the_place)
{
    open_step();
    ls_tensor *x = scalar(1);
    ls_tape *tape = ls_tape_open(c, NULL);

    ls_tape_close(c, tape);
    ls_tape_close(c, tape); // closing twice does no harm
    ls_tape_close(c, NULL);
    ls_tape_watch(c, tape, x);
    LST_CHECK(failed_at(LS_FAILED_PRECONDITION, __LINE__ - 1, "closed"));
    x = scalar(1);
    tape = ls_tape_open(c, NULL);
    ls_tape_close(c, tape);
    LST_CHECK(ls_gradient(c, tape, x, x) == NULL);
    LST_CHECK(failed_at(LS_FAILED_PRECONDITION, __LINE__ - 1, "closed"));
    close_step();
}

LST_TEST(null_tapes_targets_and_sources_are_refused_with_the_place)
{
    open_step();
    ls_tensor *x = scalar(1);
    ls_tape *tape = NULL;

    LST_CHECK(ls_gradient(c, NULL, x, x) == NULL);
    LST_CHECK(failed_at(LS_FAILED_PRECONDITION, __LINE__ - 1, "NULL"));
    x = scalar(1);
    tape = ls_tape_open(c, NULL);
    LST_CHECK(ls_gradient(c, tape, NULL, x) == NULL);
    LST_CHECK(failed_at(LS_INVALID_ARGUMENT, __LINE__ - 1, "target"));
    x = scalar(1);
    tape = ls_tape_open(c, NULL);
    LST_CHECK(ls_gradient(c, tape, x, NULL) == NULL);
    LST_CHECK(failed_at(LS_INVALID_ARGUMENT, __LINE__ - 1, "source"));
    tape = ls_tape_open(c, NULL);
    ls_tape_watch(c, tape, NULL);
    LST_CHECK(failed_at(LS_INVALID_ARGUMENT, __LINE__ - 1, "NULL"));
    close_step();
}

LST_TEST(null_lists_of_targets_and_sources_are_refused_with_the_place)
{
    ls_tensor *out = NULL;

    open_step();
    ls_tensor *x = scalar(1);
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_gradients(c, tape, NULL, NULL, 1, &x, 1, &out);
    LST_CHECK(failed_at(LS_INVALID_ARGUMENT, __LINE__ - 1, "target"));
    x = scalar(1);
    tape = ls_tape_open(c, NULL);
    ls_gradients(c, tape, &x, NULL, 1, NULL, 1, &out);
    LST_CHECK(failed_at(LS_INVALID_ARGUMENT, __LINE__ - 1, "source"));
    close_step();
}

LST_TEST(an_output_gradient_of_another_shape_or_dtype_is_refused)
{
    ls_tensor *dx = NULL;

    open_step();
    ls_tensor *x = VECTOR(1, 2), *wrong = VECTOR(1, 2, 3);
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tape_watch(c, tape, x);
    ls_gradients(c, tape, &x, &wrong, 1, &x, 1, &dx);
    LST_CHECK(failed_at(LS_INVALID_ARGUMENT, __LINE__ - 1, "(3,)"));
    x = VECTOR(1, 2);
    wrong = ls_cast(c, x, LS_F32);
    tape = ls_tape_open(c, NULL);
    ls_tape_watch(c, tape, x);
    ls_gradients(c, tape, &x, &wrong, 1, &x, 1, &dx);
    LST_CHECK(failed_at(LS_INVALID_ARGUMENT, __LINE__ - 1, "float32"));
    x = VECTOR(1, 2, 3, 4, 5, 6);
    wrong = ls_reshape(c, x, LS_SHAPE(2, 3)); // as many elements, another shape
    tape = ls_tape_open(c, NULL);
    ls_tape_watch(c, tape, x);
    ls_gradients(c, tape, &x, &wrong, 1, &x, 1, &dx);
    LST_CHECK(failed_at(LS_INVALID_ARGUMENT, __LINE__ - 1, "(2, 3)"));
    close_step();
}

LST_TEST(options_of_no_size_and_too_many_tapes_are_refused)
{
    const ls_tape_options none = {0, false, false};

    open_step();
    LST_CHECK(ls_tape_open(c, &none) == NULL);
    LST_CHECK(failed_at(LS_INVALID_ARGUMENT, __LINE__ - 1, "LS_TAPE_OPTIONS_INIT"));
    for (int i = 0; i < 16; i++) {
        LST_CHECK(ls_tape_open(c, NULL) != NULL);
    }
    LST_CHECK(ls_tape_open(c, NULL) == NULL);
    LST_CHECK(failed_at(LS_RESOURCE_EXHAUSTED, __LINE__ - 1, "tapes"));
    LST_CHECK(ls_tape_open(c, NULL) != NULL); // the step's end closed them all
    close_step();
}

LST_TEST(after_a_failure_every_call_of_a_tape_does_nothing)
{
    open_step();
    ls_tensor *x = VECTOR(1, 2);
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tape_watch(c, tape, x);
    ls_tensor *bad = ls_add(c, x, VECTOR(1, 2, 3));
    const int line = __LINE__ - 1;
    LST_CHECK(bad == NULL);
    ls_tape_watch(c, tape, bad);
    ls_tape_stop(c, tape);
    ls_tape_resume(c, tape);
    ls_tape_reset(c, tape);
    LST_CHECK(ls_tape_open(c, NULL) == NULL);
    LST_CHECK(ls_gradient(c, tape, bad, x) == NULL);
    ls_tape_close(c, tape);
    LST_CHECK(failed_at(LS_INVALID_ARGUMENT, line, "broadcast"));
    close_step();
}

LST_TEST(a_failing_gradient_names_the_place_of_its_operation)
{
    // Whatever fails on the way back belongs to the operation that is followed back, or
    // to the call that asked.
    open_step();
    ls_tensor *x = VECTOR(1, 2);
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tape_watch(c, tape, x);
    ls_tensor *y = ls_square(c, x);
    const int line = __LINE__ - 1;
    (void)lsi_alloc_fail_at(1); // the gradient's first allocation fails
    (void)ls_gradient(c, tape, y, x);
    (void)lsi_alloc_fail_at(0);
    ls_error e = LS_ERROR_INIT;
    LST_CHECK(ls_context_finish(c, &e) == LS_RESOURCE_EXHAUSTED);
    LST_CHECK(lst_same_file(e.file, __FILE__));
    LST_CHECK(e.line >= line && e.line <= line + 3);
    close_step();
}

LST_TEST(a_step_that_ends_closes_its_tapes)
{
    open_step();
    ls_tensor *x = scalar(1);
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tape_watch(c, tape, x);
    LST_OK(ls_context_finish(c, &err));
    x = scalar(1);
    ls_tape_watch(c, tape, x);
    LST_CHECK(failed_at(LS_FAILED_PRECONDITION, __LINE__ - 1, "closed"));
    close_step();
}

LST_TEST(a_tensor_kept_from_the_last_step_is_an_unwatched_one_in_the_next)
{
    open_step();
    ls_tensor *x = scalar(3);
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tape_watch(c, tape, x);
    ls_tensor *y = ls_tensor_retain(ls_square(c, x));
    LST_OK(ls_context_finish(c, &err));

    tape = ls_tape_open(c, NULL);
    ls_tensor *z = scalar(2);
    ls_tape_watch(c, tape, z);
    ls_tensor *sources[] = {y, z}, *grads[2], *w = ls_mul(c, y, z);
    ls_gradients(c, tape, &w, NULL, 1, sources, 2, grads);
    LST_CHECK(grads[0] == NULL);
    LST_CHECK(HOLDS(grads[1], 9));
    close_step();
    ls_tensor_release(y);
}

LST_MAIN(LST_CASE(trainable_variables_are_watched_as_they_are_read),
         LST_CASE(reads_share_a_sum_for_their_variable_and_have_their_own_as_tensors),
         LST_CASE(variables_that_are_not_trainable_are_watched_when_told),
         LST_CASE(a_tape_may_ignore_variables_but_those_it_is_told_to_watch),
         LST_CASE(reads_before_the_tape_was_opened_do_not_count),
         LST_CASE(an_assignment_inside_the_tape_does_not_change_what_was_read),
         LST_CASE(variables_have_second_derivatives),
         LST_CASE(a_closed_tape_is_refused_with_the_place),
         LST_CASE(null_tapes_targets_and_sources_are_refused_with_the_place),
         LST_CASE(null_lists_of_targets_and_sources_are_refused_with_the_place),
         LST_CASE(an_output_gradient_of_another_shape_or_dtype_is_refused),
         LST_CASE(options_of_no_size_and_too_many_tapes_are_refused),
         LST_CASE(after_a_failure_every_call_of_a_tape_does_nothing),
         LST_CASE(a_failing_gradient_names_the_place_of_its_operation),
         LST_CASE(a_step_that_ends_closes_its_tapes),
         LST_CASE(a_tensor_kept_from_the_last_step_is_an_unwatched_one_in_the_next))
