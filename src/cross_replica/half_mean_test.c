/*
 * Tests of dtypes that need care in sums: a mean of 16-bit floats is summed in float32 by
 * every function, and dtypes that are not numbers fail with the class of TensorFlow.
 */
#include "cross_replica/cross_replica_test.h"

#include "lockstep/lockstep.h"

static ls_value *average_in_replica(ls_context *c, ls_value *args, void *user)
{
    (void)user;
    return ls_value_of(c, ls_all_reduce(c, LS_MEAN, ls_value_to_tensor(c, args)));
}

/* Checks that every element of every component is `want`, in `dtype`. */
static void is_filled(const ls_value *v, ls_dtype dtype, double want, lst_place at)
{
    const bool spread = ls_value_size(v) > 0;

    for (size_t i = 0; i < (spread ? ls_value_size(v) : 1); i++) {
        const ls_tensor *t = ls_value_as_tensor(spread ? ls_value_child(v, i) : v);

        lst_check(t != NULL && ls_tensor_dtype(t) == dtype, at, "the dtype");
        for (int64_t k = 0; t != NULL && k < ls_tensor_count(t); k++) {
            lst_check(lsi_element(t, k) == want, at, "an element");
        }
    }
}

static ls_strategy *strategy_by(int way)
{
    ls_strategy_options so = LS_STRATEGY_OPTIONS_INIT;
    ls_strategy *s = NULL;

    so.runtime = lst_runtime();
    if (way == 1) {
        LST_OK(ls_reduction_to_one_device_create(NULL, &so.cross_device, NULL));
    } else if (way == 2) {
        LST_OK(ls_hierarchical_copy_create(1, &so.cross_device, NULL));
    }
    LST_OK(way == 3 ? ls_central_storage_create("CPU:0,CPU:1", NULL, &so, &s, NULL)
                    : ls_mirrored_create("CPU:0,CPU:1", &so, &s, NULL));
    ls_cross_device_release(so.cross_device);
    return s;
}

LST_TEST(a_mean_of_halves_is_added_wide_in_a_replica_and_outside_by_every_algorithm)
{
    const double big = 60000; // float16 cannot hold twice as much
    const double all[] = {big, big, big, big};

    for (int way = 0; way < 4; way++) {
        ls_strategy *s = strategy_by(way);
        ls_value *p = lst_per_replica(LS_F16, LS_SHAPE(2), 2, all);
        ls_value *out = NULL;
        ls_error e = LS_ERROR_INIT;

        LST_OK(ls_strategy_reduce(s, LS_MEAN, p, LS_NO_AXIS, &out, &e));
        is_filled(out, LS_F16, big, LST_HERE);
        ls_value_release(out);
        LST_OK(ls_strategy_run(s, average_in_replica, p, NULL, &out, &e));
        is_filled(out, LS_F16, big, LST_HERE);
        ls_value_release(out);
        LST_OK(ls_strategy_reduce(s, LS_MEAN, p, 0, &out, &e));
        is_filled(out, LS_F16, big, LST_HERE);
        ls_value_release(out);
        LST_OK(ls_strategy_reduce(s, LS_SUM, p, LS_NO_AXIS, &out, &e));
        is_filled(out, LS_F16, (double)INFINITY, LST_HERE);
        ls_value_release(out);
        ls_value_release(p);
        ls_strategy_release(s);
    }
}

LST_TEST(a_sum_of_what_is_no_number_is_refused_by_the_class_of_tensorflow)
{
    ls_strategy *s = strategy_by(0);
    ls_value *p = lst_per_replica(LS_BOOL, LS_SHAPE(1), 2, LST_NUMBERS(1, 1));
    ls_value *out = NULL;
    ls_error e = LS_ERROR_INIT;

    for (ls_reduce op = LS_SUM; op <= LS_MEAN; op++) {
        LST_FAILS(ls_strategy_reduce(s, op, p, LS_NO_AXIS, &out, &e), LS_INVALID_ARGUMENT,
                  e, "bool");
        LST_CHECK(strcmp(ls_error_python(&e), "InvalidArgumentError") == 0);
        LST_FAILS(ls_strategy_reduce(s, op, p, 0, &out, &e), LS_INVALID_ARGUMENT, e,
                  "bool");
        LST_CHECK(strcmp(ls_error_python(&e), "TypeError") == 0);
        LST_FAILS(ls_strategy_run(s, average_in_replica, p, NULL, &out, &e),
                  LS_INVALID_ARGUMENT, e, "bool");
        LST_CHECK(strcmp(ls_error_python(&e), "InvalidArgumentError") == 0);
    }
    LST_CHECK(out == NULL);
    ls_value_release(p);
    ls_strategy_release(s);
}

LST_MAIN(
    LST_CASE(a_mean_of_halves_is_added_wide_in_a_replica_and_outside_by_every_algorithm),
    LST_CASE(a_sum_of_what_is_no_number_is_refused_by_the_class_of_tensorflow))
