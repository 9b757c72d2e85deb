/* Rows that change, in place or not, and conditions on elements. */
#include "ls_row_check.h"

static ls_tensor *ints(ls_context *c, ls_shape shape, const int32_t *values)
{
    return (ls_constant)(c, LS_I32, shape, values);
}
#define INTS(c, shape, ...) ints(c, shape, (const int32_t[]){__VA_ARGS__})

LST_TEST(rows_change_in_place_and_in_other_memory)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *value = F32(c, LS_SHAPE(3, 2), 1, 2, 3, 4, 5, 6);
    ls_tensor *other = ZEROS(c, LS_SHAPE(3, 2));
    ls_tensor *at = INTS(c, LS_SHAPE(3), 2, 0, 2);
    ls_tensor *by = F32(c, LS_SHAPE(3, 2), 10, 20, 30, 40, 50, 60);

    LST_CHECK(lsi_change_rows(c, LS_SCATTER_ADD, value, at, by, other));
    LST_CHECK(lst_holds(value, LS_SHAPE(3, 2), D(1, 2, 3, 4, 5, 6), 0));
    LST_CHECK(lst_holds(other, LS_SHAPE(3, 2), D(31, 42, 3, 4, 65, 86), 0));
    LST_CHECK(lsi_change_rows(c, LS_SCATTER_ADD, value, at, by, value));
    LST_CHECK(lst_holds(value, LS_SHAPE(3, 2), D(31, 42, 3, 4, 65, 86), 0));
    lst_close(c, rt);
}

LST_TEST(a_bad_row_is_named_before_any_has_changed)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_error err = LS_ERROR_INIT;
    ls_tensor *value = F32(c, LS_SHAPE(2), 1, 2), *at = INTS(c, LS_SHAPE(2), 0, 2);
    ls_tensor *i = ls_tensor_retain(INTS(c, LS_SHAPE(2), 7, 8));

    (void)ls_tensor_retain(value);
    LST_CHECK(!lsi_change_rows(c, LS_SCATTER_UPDATE, value, at, F32(c, LS_SHAPE(2), 9, 9),
                               value));
    LST_FAILS(ls_context_finish(c, &err), LS_INVALID_ARGUMENT, err,
              "scatter: index 2 at 1 is outside [0, 2)");
    LST_CHECK(lst_holds(value, LS_SHAPE(2), D(1, 2), 0));
    LST_CHECK(!lsi_change_rows(c, LS_SCATTER_DIV, i, INTS(c, LS_SHAPE(2), 0, 1),
                               INTS(c, LS_SHAPE(2), 2, 0), i));
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "scatter: division by zero");
    LST_CHECK(((const int32_t *)i->data)[0] == 7);
    // Values without elements have no rows to change, but indices to check.
    LST_CHECK(lsi_change_rows(c, LS_SCATTER_ADD, ZEROS(c, LS_SHAPE(3, 0)),
                              INTS(c, LS_SHAPE(1), 2), ZEROS(c, LS_SHAPE(1, 0)),
                              ZEROS(c, LS_SHAPE(3, 0))));
    LST_CHECK(!lsi_change_rows(c, LS_SCATTER_ADD, ZEROS(c, LS_SHAPE(3, 0)),
                               INTS(c, LS_SHAPE(1), 3), ZEROS(c, LS_SHAPE(1, 0)),
                               ZEROS(c, LS_SHAPE(3, 0))));
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "scatter: index 3 at 0 is outside [0, 3)");
    LST_CHECK(lsi_row_indices(c, LS_SCATTER_ADD, INTS(c, LS_SHAPE(1), -1),
                              ZEROS(c, LS_SHAPE(1)), 3) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "scatter: index -1 at 0 is outside [0, 3)");
    ls_tensor_release(value);
    ls_tensor_release(i);
    lst_close(c, rt);
}

LST_TEST(memory_of_another_kind_than_the_result_is_refused)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *value = F32(c, LS_SHAPE(2), 1, 2);

    LST_CHECK(!lsi_change_rows(c, LS_SCATTER_UPDATE, value, INTS(c, LS_SHAPE(1), 0),
                               F32(c, LS_SHAPE(1), 9), ZEROS(c, LS_SHAPE(3))));
    LST_STEP_FAILS(c, LS_INTERNAL, "scatter: does not give float32 (3,)");
    value = F32(c, LS_SHAPE(2), 1, 2);
    LST_CHECK(!lsi_change_rows(c, LS_SCATTER_UPDATE, value, NULL, F32(c, LS_SHAPE(1), 9),
                               value));
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "scatter: input 1 is NULL");
    (void)ls_context_fail(c, LS_UNKNOWN, "before"); // what follows does nothing
    LST_CHECK(!lsi_change_rows(c, LS_SCATTER_UPDATE, NULL, NULL, NULL, NULL));
    LST_STEP_FAILS(c, LS_UNKNOWN, "before");
    lst_close(c, rt);
}

LST_TEST(a_condition_fails_with_the_message_of_the_caller)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_error no = LS_ERROR_INIT, err = LS_ERROR_INIT;
    ls_tensor *t = NULL;

    (void)lsi_fail_kind(&no, LS_OUT_OF_RANGE, LS_KIND_VALUE, "not so");
    t = lsi_require(c, F32(c, LS_SHAPE(2), 0, -0.0F), LSI_ALL_ZERO, &no);
    LST_CHECK(t != NULL && signbit(((const float *)t->data)[1]));
    LST_CHECK(lsi_require(c, F32(c, LS_SHAPE(2), 0, 1), LSI_NONE_NEGATIVE, &no) != NULL);
    (void)ls_context_at(c, "the_line.c", 7);
    LST_CHECK(lsi_require(c, F32(c, LS_SHAPE(1), NAN), LSI_ALL_ZERO, &no) == NULL);
    LST_FAILS(ls_context_finish(c, &err), LS_OUT_OF_RANGE, err, "not so");
    LST_CHECK(err.kind == LS_KIND_VALUE && err.line == 7);
    t = ZEROS(c, LS_SHAPE(1000));
    (void)lsi_alloc_fail_at(1);
    t = lsi_require(c, t, LSI_ALL_ZERO, &no);
    (void)lsi_alloc_fail_at(0);
    LST_CHECK(t == NULL);
    LST_STEP_FAILS(c, LS_RESOURCE_EXHAUSTED, "require");
    (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "before");
    LST_CHECK(lsi_require(c, t, LSI_ALL_ZERO, &no) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "before");
    lst_close(c, rt);
}

LST_MAIN(LST_CASE(rows_change_in_place_and_in_other_memory),
         LST_CASE(a_bad_row_is_named_before_any_has_changed),
         LST_CASE(memory_of_another_kind_than_the_result_is_refused),
         LST_CASE(a_condition_fails_with_the_message_of_the_caller))
