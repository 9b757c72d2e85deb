/* Contexts: failures and their sites, lifetime of tensors, operations of the program. */
#include "lockstep/ext/op.h"
#include "ls_test.h"

static ls_context *open_context(void)
{
    ls_context *c = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_context_open(NULL, NULL, &c, &err));
    return c;
}

LST_TEST(the_first_failure_sticks_and_names_its_line)
{
    ls_context *c = open_context();
    ls_error err = LS_ERROR_INIT;
    ls_tensor *a = ls_constant(c, LS_F32, LS_SHAPE(2, 3), NULL);
    ls_tensor *b = ls_constant(c, LS_F32, LS_SHAPE(4, 5), NULL);
    const int line = __LINE__ + 1;
    ls_tensor *y = ls_relu(c, ls_matmul(c, a, b));
    ls_tensor *z = ls_add(c, y, a);

    LST_CHECK(y == NULL && z == NULL);
    LST_CHECK(ls_context_status(c, &err) == LS_INVALID_ARGUMENT);
    LST_FAILS(ls_context_finish(c, &err), LS_INVALID_ARGUMENT, err, "matmul: ");
    LST_CHECK(err.line == line && strstr(err.file, "context_test.c") != NULL);
    LST_CHECK(strstr(err.message, "(2, 3)") != NULL &&
              strstr(err.message, "(4, 5)") != NULL);
    LST_OK(ls_context_finish(c, &err)); // the next step starts in order
    ls_context_close(c);
}

LST_TEST(scalars_have_the_dtype_of_their_name)
{
    ls_context *c = open_context();
    ls_tensor *f32 = ls_constant_f32(c, 0.1F), *f64 = ls_constant_f64(c, 0.1);
    ls_tensor *i32 = ls_constant_i32(c, INT32_MIN), *i64 = ls_constant_i64(c, INT64_MIN);

    LST_CHECK(ls_tensor_dtype(f32) == LS_F32 && ls_item(c, f32) == (double)0.1F);
    LST_CHECK(ls_tensor_dtype(f64) == LS_F64 && ls_item(c, f64) == 0.1);
    LST_CHECK(ls_tensor_dtype(i32) == LS_I32 && ls_item(c, i32) == INT32_MIN);
    LST_CHECK(ls_tensor_dtype(i64) == LS_I64 && ls_item(c, i64) == (double)INT64_MIN);
    LST_CHECK(ls_tensor_ndim(f64) == 0 && ls_tensor_ndim(i32) == 0);
    ls_context_close(c);
}

LST_TEST(a_retained_tensor_outlives_its_step)
{
    ls_context *c = open_context();
    ls_error err = LS_ERROR_INIT;
    float got[100];
    ls_tensor *big = ls_constant(c, LS_F32, LS_SHAPE(100), NULL);
    ls_tensor *kept = ls_tensor_retain(ls_add(c, big, ls_constant_f32(c, 2)));

    LST_OK(ls_context_finish(c, &err));
    (void)ls_constant(c, LS_F32, LS_SHAPE(100), NULL); // would reuse freed memory
    LST_OK(ls_tensor_read(kept, got, sizeof got, &err));
    LST_CHECK(got[0] == 2 && got[99] == 2);
    ls_context_close(c);
    LST_OK(ls_tensor_read(kept, got, sizeof got, &err));
    LST_CHECK(got[50] == 2);
    ls_tensor_release(kept);
}

LST_TEST(a_steady_step_gets_the_same_memory_again)
{
    ls_context *c = open_context();
    ls_error err = LS_ERROR_INIT;
    const void *first[3] = {NULL};

    for (int step = 0; step < 5; step++) {
        ls_tensor *a = ls_constant(c, LS_F32, LS_SHAPE(1000), NULL);
        ls_tensor *b = ls_exp(c, a);
        ls_tensor *d = ls_mul(c, a, b);
        const void *now[3] = {ls_tensor_data(a), ls_tensor_data(b), ls_tensor_data(d)};

        if (step == 1) {
            memcpy(first, now, sizeof first);
        }
        if (step > 1) {
            LST_CHECK(memcmp(first, now, sizeof first) == 0);
        }
        LST_OK(ls_context_finish(c, &err));
    }
    ls_context_close(c);
}

static ls_status cube_shape(ls_op_call *k)
{
    const ls_tensor *x = ls_op_input(k, 0);
    const ls_shape s = ls_tensor_shape(x);

    if (ls_tensor_dtype(x) != LS_F32) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT, "needs float32, got %s",
                          ls_dtype_name(ls_tensor_dtype(x)));
    }
    return ls_op_set_output(k, 0, LS_F32, &s);
}

static ls_status cube_kernel(ls_op_call *k)
{
    const float *x = ls_tensor_data(ls_op_input(k, 0));
    float *y = ls_op_output(k, 0);

    for (int64_t i = 0; i < ls_tensor_count(ls_op_input(k, 0)); i++) {
        y[i] = x[i] * x[i] * x[i];
    }
    return LS_OK;
}

static const ls_op cube = {sizeof cube, "cube",     1,           1,   1,
                           0,           cube_shape, cube_kernel, NULL};

LST_TEST(a_user_has_operations_on_equal_terms)
{
    ls_context *c = open_context();
    ls_error err = LS_ERROR_INIT;
    ls_tensor *x = ls_constant_f32(c, 3);
    ls_tensor *i = ls_constant_i64(c, 3);
    static const ls_op broken = {sizeof broken, "broken", 1, 1, 9, 0, NULL, NULL, NULL};

    LST_CHECK(ls_item(c, ls_op_apply1(LS_HERE(c), &cube, &x, 1, NULL, 0)) == 27);
    LST_CHECK(ls_op_apply1(LS_HERE(c), &cube, &i, 1, NULL, 0) == NULL);
    LST_FAILS(ls_context_finish(c, &err), LS_INVALID_ARGUMENT, err,
              "cube: needs float32, got int64");
    x = ls_constant_f32(c, 3);
    LST_CHECK(ls_op_apply1(LS_HERE(c), &broken, &x, 1, NULL, 0) == NULL);
    LST_FAILS(ls_context_finish(c, &err), LS_INVALID_ARGUMENT, err, "row");
    LST_CHECK(ls_op_apply1(LS_HERE(c), &cube, NULL, 0, NULL, 0) == NULL);
    LST_FAILS(ls_context_finish(c, &err), LS_INVALID_ARGUMENT, err,
              "takes 1 input, got 0");
    ls_context_close(c);
}

LST_TEST(the_user_can_fail_a_step_too)
{
    ls_context *c = open_context();
    ls_error err = LS_ERROR_INIT;

    LST_CHECK(ls_context_fail(LS_HERE(c), LS_DATA_LOSS, "row %d is bad", 7) == NULL);
    LST_CHECK(isnan(ls_item(c, ls_constant_f32(c, 1))));
    LST_FAILS(ls_context_finish(c, &err), LS_DATA_LOSS, err, "row 7 is bad");
    LST_CHECK(err.line > 0);
    ls_context_close(c);
}

LST_TEST(item_wants_one_number)
{
    ls_context *c = open_context();
    ls_error err = LS_ERROR_INIT;

    LST_CHECK(isnan(ls_item(c, ls_constant(c, LS_F32, LS_SHAPE(2), NULL))));
    LST_FAILS(ls_context_finish(c, &err), LS_INVALID_ARGUMENT, err, "one number");
    LST_CHECK(isnan(ls_item(c, NULL)));
    LST_FAILS(ls_context_finish(c, &err), LS_INVALID_ARGUMENT, err, "NULL");
    ls_context_close(c);
}

LST_TEST(an_adopted_tensor_goes_with_the_step)
{
    ls_context *c = open_context();
    ls_error err = LS_ERROR_INIT;
    ls_tensor *t = NULL;

    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(100), NULL, &t, &err));
    LST_CHECK(ls_adopt(c, t) == t);
    LST_CHECK(ls_adopt(c, ls_tensor_retain(t)) == t); // a second time is harmless
    LST_OK(ls_context_finish(c, &err));
    ls_context_close(c);
}

static ls_status open_and_compute(ls_error *err)
{
    ls_context *c = NULL;
    ls_status st = ls_context_open(NULL, NULL, &c, err);

    if (st == LS_OK) {
        ls_tensor *x = ls_constant(c, LS_F32, LS_SHAPE(50, 40), NULL);
        (void)ls_sum(c, ls_matmul_t(c, x, x, true, false), NULL, 0, false);
        st = ls_context_finish(c, err);
    }
    ls_context_close(c);
    return st;
}

LST_TEST(a_step_survives_every_failing_allocation)
{
    lst_every_allocation(open_and_compute);
}

static ls_status breaks(ls_op_call *k)
{
    (void)k;
    return LS_INTERNAL; // and says nothing
}

static ls_status like_input(ls_op_call *k)
{
    const ls_shape shape = ls_tensor_shape(ls_op_input(k, 0));

    return ls_op_set_output(k, 0, LS_F32, &shape);
}

LST_TEST(a_kernel_of_the_program_that_fails_in_silence_is_named_and_no_bug_of_the_library)
{
    static const ls_op row = {.struct_size = sizeof(ls_op),
                              .name = "mine",
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .outputs = 1,
                              .shape = like_input,
                              .kernel = breaks};
    ls_context *c = NULL;
    ls_error e = LS_ERROR_INIT;

    LST_OK(ls_context_open(NULL, NULL, &c, &e));
    ls_tensor *x = ls_constant_f32(c, 1);
    LST_CHECK(ls_op_apply1(c, &row, &x, 1, NULL, 0) == NULL);
    LST_FAILS(ls_context_status(c, &e), LS_INTERNAL, e, "mine: the operation failed");
    LST_CHECK(strstr(e.message, "bug") == NULL);
    ls_context_close(c);
}

LST_TEST(an_input_may_be_on_another_device_and_the_result_is_on_the_contexts)
{
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_error e = LS_ERROR_INIT;
    ls_runtime *rt = NULL;
    ls_context *c = NULL;
    ls_tensor *x = NULL, *y = NULL;
    const float two = 2;

    opts.logical_cpus = 2;
    LST_OK(ls_runtime_create(&opts, &rt, &e));
    LST_OK(ls_tensor_create(ls_runtime_device(rt, 0), LS_F32, LS_SCALAR, &two, &x, &e));
    LST_OK(ls_context_open(ls_runtime_device(rt, 1), NULL, &c, &e));
    y = ls_add(c, x, ls_constant_f32(c, 3)); // all devices share the process's memory
    LST_CHECK(y != NULL && ls_tensor_device(y) == ls_runtime_device(rt, 1));
    LST_CHECK(ls_item(c, y) == 5);
    LST_OK(ls_context_finish(c, &e));
    ls_context_close(c);
    ls_tensor_release(x);
    ls_runtime_release(rt);
}

LST_MAIN(
    LST_CASE(scalars_have_the_dtype_of_their_name),
    LST_CASE(the_first_failure_sticks_and_names_its_line),
    LST_CASE(a_retained_tensor_outlives_its_step),
    LST_CASE(a_steady_step_gets_the_same_memory_again),
    LST_CASE(a_user_has_operations_on_equal_terms),
    LST_CASE(the_user_can_fail_a_step_too), LST_CASE(item_wants_one_number),
    LST_CASE(an_input_may_be_on_another_device_and_the_result_is_on_the_contexts),
    LST_CASE(an_adopted_tensor_goes_with_the_step),
    LST_CASE(a_step_survives_every_failing_allocation),
    LST_CASE(
        a_kernel_of_the_program_that_fails_in_silence_is_named_and_no_bug_of_the_library))
