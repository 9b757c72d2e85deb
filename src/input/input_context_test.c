/* Tests of ls_input_context. */
#include "lockstep/input.h"
#include "ls_test.h"

LST_TEST(s117_a_batch_is_divided_evenly_or_not_at_all)
{
    const ls_input_context ic = {2, 1, 6};
    ls_error err = LS_ERROR_INIT;
    int64_t batch = -1;

    LST_OK(ls_input_context_batch(&ic, 12, &batch, &err));
    LST_CHECK(batch == 2);
    LST_FAILS(ls_input_context_batch(&ic, 13, &batch, &err), LS_INVALID_ARGUMENT, err,
              "13");
    LST_CHECK(err.kind == LS_KIND_VALUE && batch == 2);
    LST_OK(ls_input_context_batch(&ic, 0, &batch, &err));
    LST_CHECK(batch == 0);
}

LST_TEST(a_question_that_makes_no_sense_is_refused)
{
    const ls_input_context none = {1, 0, 0};
    const ls_input_context one = {1, 0, 1};
    ls_error err = LS_ERROR_INIT;
    int64_t batch = 7;

    LST_FAILS(ls_input_context_batch(&none, 12, &batch, &err), LS_INVALID_ARGUMENT, err,
              "0 replicas");
    LST_FAILS(ls_input_context_batch(&one, -12, &batch, &err), LS_INVALID_ARGUMENT, err,
              "-12");
    LST_FAILS(ls_input_context_batch(NULL, 12, &batch, &err), LS_INVALID_ARGUMENT, err,
              "NULL");
    LST_FAILS(ls_input_context_batch(&one, 12, NULL, &err), LS_INVALID_ARGUMENT, err,
              "out");
    LST_CHECK(batch == 7);
}

LST_MAIN(LST_CASE(s117_a_batch_is_divided_evenly_or_not_at_all),
         LST_CASE(a_question_that_makes_no_sense_is_refused))
