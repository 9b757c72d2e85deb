/* Tests of ls_strategy_reduce() and ls_strategy_gather(). */
#include "cross_replica/cross_replica_test.h"

static ls_strategy *mirrored_with(int n, ls_cross_device *x)
{
    static const char *const devices[] = {
        "", "CPU:0", "CPU:0,CPU:1", "CPU:0,CPU:1,CPU:2", "CPU:0,CPU:1,CPU:2,CPU:3",
    };
    ls_strategy_options opts = LS_STRATEGY_OPTIONS_INIT;
    ls_strategy *s = NULL;

    opts.runtime = lst_runtime();
    opts.cross_device = x;
    LST_OK(ls_mirrored_create(devices[n], &opts, &s, NULL));
    return s;
}

static ls_strategy *mirrored_of(int n)
{
    return mirrored_with(n, NULL);
}

static ls_strategy *central_storage(void)
{
    ls_strategy_options opts = LS_STRATEGY_OPTIONS_INIT;
    ls_strategy *s = NULL;

    opts.runtime = lst_runtime();
    LST_OK(ls_central_storage_create("CPU:0,CPU:1", NULL, &opts, &s, NULL));
    return s;
}

/* Reduces; must succeed. */
static ls_value *reduce_value(ls_strategy *s, ls_reduce op, ls_value *value, int axis)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;
    const ls_status st = ls_strategy_reduce(s, op, value, axis, &out, &err);

    if (st != LS_OK) {
        printf("# %s\n", err.message);
    }
    LST_OK(st);
    return out;
}

/* Checks that it is this plain tensor, exactly. */
static void reduces_to(ls_strategy *s, ls_reduce op, ls_value *value, int axis,
                       ls_dtype dtype, ls_shape shape, const double *numbers)
{
    ls_value *out = reduce_value(s, op, value, axis);

    LST_CHECK(lst_is(out, dtype, shape, numbers));
    ls_value_release(out);
}

/* The same over several axes. */
static void reduces_over(ls_strategy *s, ls_reduce op, ls_value *value, const int *axes,
                         size_t naxes, ls_dtype dtype, ls_shape shape,
                         const double *numbers)
{
    ls_value *out = NULL;

    LST_OK(ls_strategy_reduce_axes(s, op, value, axes, naxes, &out, NULL));
    LST_CHECK(lst_is(out, dtype, shape, numbers));
    ls_value_release(out);
}

static void refuses(ls_strategy *s, ls_reduce op, ls_value *value, int axis, ls_kind kind,
                    const char *word)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;

    LST_FAILS(ls_strategy_reduce(s, op, value, axis, &out, &err), LS_INVALID_ARGUMENT,
              err, word);
    LST_CHECK(err.kind == kind && out == NULL);
}

/* PerReplica of two vectors of different lengths. */
static ls_value *uneven(ls_dtype dtype, int64_t n0, const double *first, int64_t n1,
                        const double *second)
{
    ls_value *leaves[2] = {
        lst_leaf(lst_tensor(lst_device(0), dtype, LS_SHAPE(n0), first)),
        lst_leaf(lst_tensor(lst_device(1), dtype, LS_SHAPE(n1), second))};

    return lst_distributed(LS_VALUE_PER_REPLICA, leaves, 2);
}

LST_TEST(s36_without_an_axis_the_shape_stays_and_with_one_it_goes)
{
    ls_strategy *s = mirrored_of(2);
    ls_value *p =
        lst_per_replica(LS_F32, LS_SHAPE(4), 2, LST_NUMBERS(0, 1, 2, 3, 4, 5, 6, 7));

    reduces_to(s, LS_SUM, p, LS_NO_AXIS, LS_F32, LS_SHAPE(4), LST_NUMBERS(4, 6, 8, 10));
    reduces_to(s, LS_MEAN, p, LS_NO_AXIS, LS_F32, LS_SHAPE(4), LST_NUMBERS(2, 3, 4, 5));
    reduces_to(s, LS_SUM, p, 0, LS_F32, LS_SCALAR, LST_NUMBERS(28));
    reduces_to(s, LS_MEAN, p, 0, LS_F32, LS_SCALAR, LST_NUMBERS(3.5));
    ls_value_release(p);
    ls_strategy_release(s);
}

LST_TEST(s37_uneven_replicas_have_a_mean_over_all_elements)
{
    ls_strategy *s = mirrored_of(2);
    ls_value *p = uneven(LS_F32, 4, LST_NUMBERS(0, 1, 2, 3), 2, LST_NUMBERS(4, 5));
    ls_value *empty = uneven(LS_F32, 3, LST_NUMBERS(1, 2, 6), 0, LST_NUMBERS(0));

    refuses(s, LS_SUM, p, LS_NO_AXIS, LS_KIND_OP, "replica 1 has float32 (2,)");
    reduces_to(s, LS_SUM, p, 0, LS_F32, LS_SCALAR, LST_NUMBERS(15));
    reduces_to(s, LS_MEAN, p, 0, LS_F32, LS_SCALAR, LST_NUMBERS(2.5));
    reduces_to(s, LS_MEAN, empty, 0, LS_F32, LS_SCALAR, LST_NUMBERS(3));
    ls_value_release(empty);
    ls_value_release(p);
    ls_strategy_release(s);
}

LST_TEST(s38_a_mean_of_integers_is_a_true_division)
{
    ls_strategy *s = mirrored_of(2);
    ls_value *p = uneven(LS_I32, 1, LST_NUMBERS(0), 2, LST_NUMBERS(1, 1));
    ls_value *q = lst_per_replica(LS_I64, LS_SHAPE(2), 2, LST_NUMBERS(1, 2, 4, 4));

    reduces_to(s, LS_SUM, p, 0, LS_I32, LS_SCALAR, LST_NUMBERS(2));
    reduces_to(s, LS_MEAN, p, 0, LS_F64, LS_SCALAR, LST_NUMBERS(2.0 / 3.0));
    reduces_to(s, LS_MEAN, q, LS_NO_AXIS, LS_F64, LS_SHAPE(2), LST_NUMBERS(2.5, 3));
    ls_value_release(p);
    ls_value_release(q);
    ls_strategy_release(s);
}

LST_TEST(s39_only_sums_and_means_exist)
{
    ls_strategy *s = mirrored_of(2);
    ls_value *p = lst_per_replica(LS_F32, LS_SCALAR, 2, LST_NUMBERS(1, 2));

    reduces_to(s, LS_MEAN, p, LS_NO_AXIS, LS_F32, LS_SCALAR, LST_NUMBERS(1.5));
    reduces_to(s, LS_SUM, p, LS_NO_AXIS, LS_F32, LS_SCALAR, LST_NUMBERS(3));
    refuses(s, LS_MAX, p, LS_NO_AXIS, LS_KIND_VALUE, "MAX");
    refuses(s, LS_PROD, p, 0, LS_KIND_VALUE, "PROD");
    ls_value_release(p);
    ls_strategy_release(s);
}

LST_TEST(s40_axes_are_reduced_together)
{
    static const int both[] = {0, 1};
    ls_strategy *def = ls_default_strategy();
    ls_strategy *s = mirrored_of(2);
    ls_value *x = lst_plain(LS_F32, LS_SHAPE(2, 2), LST_NUMBERS(1, 2, 3, 4));
    ls_value *p =
        lst_per_replica(LS_F32, LS_SHAPE(2, 2), 2, LST_NUMBERS(1, 2, 3, 4, 1, 2, 3, 4));
    ls_value *same = reduce_value(def, LS_MEAN, x, LS_NO_AXIS);

    LST_CHECK(same == x);
    ls_value_release(same);
    reduces_to(def, LS_MEAN, x, 0, LS_F32, LS_SHAPE(2), LST_NUMBERS(2, 3));
    reduces_over(def, LS_MEAN, x, both, 2, LS_F32, LS_SCALAR, LST_NUMBERS(2.5));
    reduces_to(def, LS_SUM, x, 0, LS_F32, LS_SHAPE(2), LST_NUMBERS(4, 6));
    reduces_over(def, LS_SUM, x, both, 2, LS_F32, LS_SCALAR, LST_NUMBERS(10));
    reduces_over(s, LS_SUM, p, both, 2, LS_F32, LS_SCALAR, LST_NUMBERS(20));
    reduces_over(s, LS_MEAN, p, both, 2, LS_F32, LS_SCALAR, LST_NUMBERS(2.5));
    reduces_over(s, LS_SUM, p, NULL, 0, LS_F32, LS_SHAPE(2, 2), LST_NUMBERS(2, 4, 6, 8));
    reduces_over(s, LS_MEAN, p, NULL, 0, LS_F32, LS_SHAPE(2, 2), LST_NUMBERS(1, 2, 3, 4));
    ls_value_release(x);
    ls_value_release(p);
    ls_strategy_release(s);
}

LST_TEST(s41_an_axis_outside_is_refused)
{
    ls_strategy *s = mirrored_of(2);
    ls_value *p = lst_per_replica(LS_F32, LS_SHAPE(2), 2, LST_NUMBERS(1, 2, 3, 4));
    ls_value *scalars = lst_per_replica(LS_F32, LS_SCALAR, 2, LST_NUMBERS(1, 2));

    refuses(s, LS_MEAN, p, 1, LS_KIND_VALUE, "no axis 1 in float32 (2,)");
    refuses(s, LS_MEAN, p, -2, LS_KIND_VALUE, "no axis -2");
    refuses(s, LS_SUM, p, -3, LS_KIND_VALUE, "no axis -3");
    refuses(s, LS_SUM, scalars, 0, LS_KIND_VALUE, "no axis 0");
    reduces_to(s, LS_MEAN, p, -1, LS_F32, LS_SCALAR, LST_NUMBERS(2.5));
    reduces_to(s, LS_MEAN, p, 0, LS_F32, LS_SCALAR, LST_NUMBERS(2.5));
    ls_value_release(p);
    ls_value_release(scalars);
    ls_strategy_release(s);
}

LST_TEST(s42_a_plain_value_has_a_mean_and_no_sum_over_several_replicas)
{
    ls_strategy *m2 = mirrored_of(2);
    ls_strategy *m1 = mirrored_of(1);
    ls_value *five = lst_plain(LS_F32, LS_SCALAR, LST_NUMBERS(5));
    ls_value *zero = NULL;
    ls_value *number = NULL;
    ls_value *text = lst_name("x");

    refuses(m2, LS_SUM, five, LS_NO_AXIS, LS_KIND_VALUE, "all 2 replicas");
    reduces_to(m2, LS_MEAN, five, LS_NO_AXIS, LS_F32, LS_SCALAR, LST_NUMBERS(5));
    reduces_to(m1, LS_SUM, five, LS_NO_AXIS, LS_F32, LS_SCALAR, LST_NUMBERS(5));
    LST_OK(ls_value_float(0.0, &zero, NULL));
    LST_OK(ls_value_int(3, &number, NULL));
    ls_value *out = reduce_value(m2, LS_SUM, zero, LS_NO_AXIS);
    LST_CHECK(ls_value_same(out, zero)); // zeros stay zero
    ls_value_release(out);
    refuses(m2, LS_SUM, number, LS_NO_AXIS, LS_KIND_VALUE, "all 2 replicas");
    refuses(m2, LS_SUM, text, LS_NO_AXIS, LS_KIND_VALUE, "string");
    out = reduce_value(m2, LS_MEAN, number, LS_NO_AXIS);
    LST_CHECK(ls_value_same(out, number));
    ls_value_release(out);
    reduces_to(m1, LS_SUM, number, LS_NO_AXIS, LS_I32, LS_SCALAR, LST_NUMBERS(3));
    ls_value_release(text);
    ls_value_release(number);
    ls_value_release(zero);
    ls_value_release(five);
    ls_strategy_release(m1);
    ls_strategy_release(m2);
}

LST_TEST(s43_with_an_axis_a_plain_value_counts_once_per_replica)
{
    ls_strategy *s = mirrored_of(2);
    ls_value *x = lst_plain(LS_F32, LS_SHAPE(2), LST_NUMBERS(1, 2));
    ls_value *leaves[2] = {lst_plain(LS_F32, LS_SHAPE(2), LST_NUMBERS(1, 2)),
                           lst_plain(LS_F32, LS_SHAPE(2), LST_NUMBERS(1, 2))};
    ls_value *mi = lst_distributed(LS_VALUE_MIRRORED, leaves, 2);

    reduces_to(s, LS_SUM, x, 0, LS_F32, LS_SCALAR, LST_NUMBERS(6));
    reduces_to(s, LS_MEAN, x, 0, LS_F32, LS_SCALAR, LST_NUMBERS(1.5));
    reduces_to(s, LS_SUM, mi, 0, LS_F32, LS_SCALAR, LST_NUMBERS(6));
    ls_value_release(mi);
    ls_value_release(x);
    ls_strategy_release(s);
}

LST_TEST(s44_a_structure_is_reduced_leaf_by_leaf)
{
    ls_strategy *s = mirrored_of(2);
    ls_strategy *cs = central_storage();
    ls_value *items[2] = {lst_per_replica(LS_F32, LS_SCALAR, 2, LST_NUMBERS(4, 4)),
                          lst_per_replica(LS_F32, LS_SCALAR, 2, LST_NUMBERS(2, 2))};
    ls_value *pair = NULL;

    LST_OK(ls_value_tuple(items, 2, &pair, NULL));
    ls_value *out = reduce_value(s, LS_SUM, pair, LS_NO_AXIS);
    LST_CHECK(ls_value_kind_of(out) == LS_VALUE_TUPLE && ls_value_size(out) == 2);
    LST_CHECK(lst_is(ls_value_child(out, 0), LS_F32, LS_SCALAR, LST_NUMBERS(8)));
    LST_CHECK(lst_is(ls_value_child(out, 1), LS_F32, LS_SCALAR, LST_NUMBERS(4)));
    ls_value_release(out);
    refuses(cs, LS_SUM, pair, LS_NO_AXIS, LS_KIND_VALUE, "structure");
    ls_value_release(pair);
    ls_value_release(items[0]);
    ls_value_release(items[1]);
    ls_strategy_release(cs);
    ls_strategy_release(s);
}

LST_TEST(s45_equal_copies_have_a_mean_and_no_sum)
{
    ls_strategy *s = mirrored_of(2);
    ls_strategy *cs = central_storage();
    ls_value *leaves[2] = {lst_plain(LS_F32, LS_SCALAR, LST_NUMBERS(2)),
                           lst_plain(LS_F32, LS_SCALAR, LST_NUMBERS(2))};
    ls_value *mi = lst_distributed(LS_VALUE_MIRRORED, leaves, 2);

    reduces_to(s, LS_MEAN, mi, LS_NO_AXIS, LS_F32, LS_SCALAR, LST_NUMBERS(2));
    refuses(s, LS_SUM, mi, LS_NO_AXIS, LS_KIND_ASSERT, "Mirrored");
    reduces_to(cs, LS_SUM, mi, LS_NO_AXIS, LS_F32, LS_SCALAR, LST_NUMBERS(4));
    ls_value_release(mi);
    ls_strategy_release(cs);
    ls_strategy_release(s);
}

/* A variable of `s` whose copy i holds base + i, created in its scope. */
static ls_value *variable_of(ls_strategy *s, ls_synchronization sync, ls_dtype dtype,
                             double base)
{
    ls_variable_options opts = LS_VARIABLE_OPTIONS_INIT;
    const double numbers[2] = {base, base};
    ls_tensor *start = lst_tensor(lst_device(0), dtype, LS_SHAPE(2, 1), numbers);
    ls_variable *v = NULL;
    ls_value *leaf = NULL;

    opts.synchronization = sync;
    opts.aggregation = LS_AGGREGATE_SUM;
    LST_OK(ls_scope_enter(s, NULL));
    LST_OK(ls_variable_create(start, &opts, &v, NULL));
    ls_scope_exit(s);
    ls_tensor_release(start);
    for (size_t i = 0; i < ls_variable_components(v); i++) {
        const double mine[2] = {base, base + (double)i};
        ls_tensor *t = lst_tensor(lst_device(i), dtype, LS_SHAPE(2, 1), mine);

        LST_OK(ls_variable_set(ls_variable_component(v, i), t, NULL));
        ls_tensor_release(t);
    }
    LST_OK(ls_value_variable(v, &leaf, NULL));
    ls_variable_release(v);
    return leaf;
}

LST_TEST(an_on_read_variable_is_reduced_like_per_replica_and_others_are_copies)
{
    ls_strategy *s = mirrored_of(2);
    ls_value *free_running = variable_of(s, LS_SYNC_ON_READ, LS_F32, 3);
    ls_value *kept_equal = variable_of(s, LS_SYNC_ON_WRITE, LS_F32, 3);

    reduces_to(s, LS_SUM, free_running, LS_NO_AXIS, LS_F32, LS_SHAPE(2, 1),
               LST_NUMBERS(6, 7));
    reduces_to(s, LS_MEAN, free_running, LS_NO_AXIS, LS_F32, LS_SHAPE(2, 1),
               LST_NUMBERS(3, 3.5));
    refuses(s, LS_SUM, kept_equal, LS_NO_AXIS, LS_KIND_ASSERT, "mirrored variable");
    reduces_to(s, LS_MEAN, kept_equal, LS_NO_AXIS, LS_F32, LS_SHAPE(2, 1),
               LST_NUMBERS(3, 3)); // of copy 0
    reduces_to(s, LS_SUM, kept_equal, 0, LS_F32, LS_SHAPE(1), LST_NUMBERS(13));
    ls_value_release(free_running);
    ls_value_release(kept_equal);
    ls_strategy_release(s);
}

LST_TEST(a_copy_of_a_variable_and_one_of_central_storage_are_plain_values)
{
    ls_strategy *s = mirrored_of(2);
    ls_strategy *cs = central_storage();
    ls_value *v = variable_of(s, LS_SYNC_ON_WRITE, LS_F32, 3);
    ls_value *stored = variable_of(cs, LS_SYNC_ON_READ, LS_F32, 4);
    ls_value *copy = NULL;
    ls_value *out = NULL;

    LST_OK(ls_value_variable(ls_variable_component(ls_value_as_variable(v), 1), &copy,
                             NULL));
    refuses(s, LS_SUM, copy, LS_NO_AXIS, LS_KIND_VALUE, "all 2 replicas");
    refuses(cs, LS_SUM, stored, LS_NO_AXIS, LS_KIND_VALUE, "all 2 replicas");
    reduces_to(cs, LS_SUM, stored, 0, LS_F32, LS_SHAPE(1), LST_NUMBERS(16));
    LST_OK(ls_strategy_gather(cs, stored, 0, &out, NULL));
    LST_CHECK(out == stored);
    ls_value_release(out);
    ls_value_release(copy);
    ls_value_release(stored);
    ls_value_release(v);
    ls_strategy_release(cs);
    ls_strategy_release(s);
}

LST_TEST(a_value_of_another_number_of_replicas_is_refused_with_an_axis)
{
    ls_strategy *s = mirrored_of(2);
    ls_value *p = lst_per_replica(LS_F32, LS_SHAPE(1), 3, LST_NUMBERS(1, 2, 3));
    ls_error err = LS_ERROR_INIT;

    refuses(s, LS_SUM, p, 0, LS_KIND_VALUE, "3 components");
    LST_FAILS(ls_strategy_reduce(NULL, LS_SUM, p, 0, NULL, &err), LS_INVALID_ARGUMENT,
              err, "strategy is NULL");
    LST_FAILS(ls_strategy_reduce(s, LS_SUM, NULL, LS_NO_AXIS, NULL, &err),
              LS_INVALID_ARGUMENT, err, "value is NULL");
    LST_FAILS(ls_strategy_reduce_axes(s, LS_SUM, p, NULL, 2, NULL, &err),
              LS_INVALID_ARGUMENT, err, "axes at NULL");
    LST_OK(ls_strategy_reduce(s, LS_SUM, p, LS_NO_AXIS, NULL, &err)); // without out
    ls_value_release(p);
    ls_strategy_release(s);
}

LST_TEST(literals_that_differ_per_replica_are_numbers)
{
    ls_strategy *s = mirrored_of(2);
    ls_value *leaves[2] = {NULL, NULL};

    LST_OK(ls_value_int(1, &leaves[0], NULL));
    LST_OK(ls_value_int(2, &leaves[1], NULL));
    ls_value *p = lst_distributed(LS_VALUE_PER_REPLICA, leaves, 2);
    reduces_to(s, LS_SUM, p, LS_NO_AXIS, LS_I32, LS_SCALAR, LST_NUMBERS(3));
    ls_value_release(p);
    ls_strategy_release(s);
}

LST_TEST(s12_a_reduction_is_not_for_the_scope_of_another_strategy)
{
    ls_strategy *s = mirrored_of(2);
    ls_strategy *other = mirrored_of(2);
    ls_value *p = lst_per_replica(LS_F32, LS_SCALAR, 2, LST_NUMBERS(1, 1));
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_scope_enter(other, &err));
    LST_FAILS(ls_strategy_reduce(s, LS_SUM, p, LS_NO_AXIS, NULL, &err),
              LS_FAILED_PRECONDITION, err, "mixing");
    LST_CHECK(err.kind == LS_KIND_RUNTIME);
    LST_FAILS(ls_strategy_gather(s, p, 0, NULL, &err), LS_FAILED_PRECONDITION, err,
              "mixing");
    ls_scope_exit(other);
    reduces_to(s, LS_SUM, p, LS_NO_AXIS, LS_F32, LS_SCALAR, LST_NUMBERS(2));
    LST_OK(ls_scope_enter(s, &err));
    reduces_to(s, LS_SUM, p, LS_NO_AXIS, LS_F32, LS_SCALAR, LST_NUMBERS(2));
    ls_scope_exit(s);
    ls_value_release(p);
    ls_strategy_release(other);
    ls_strategy_release(s);
}

/* ---- gather ---- */

static void gathers(ls_strategy *s, ls_value *value, int axis, ls_dtype dtype,
                    ls_shape shape, const double *numbers)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;
    const ls_status st = ls_strategy_gather(s, value, axis, &out, &err);

    if (st != LS_OK) {
        printf("# %s\n", err.message);
    }
    LST_OK(st);
    LST_CHECK(lst_is(out, dtype, shape, numbers));
    ls_value_release(out);
}

static void refuses_to_gather(ls_strategy *s, ls_value *value, int axis, ls_status code,
                              ls_kind kind, const char *word)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;

    LST_FAILS(ls_strategy_gather(s, value, axis, &out, &err), code, err, word);
    LST_CHECK(err.kind == kind && out == NULL);
}

LST_TEST(s56_components_are_joined_along_any_axis)
{
    ls_strategy *s = mirrored_of(4);
    double numbers[24];
    double rows[24];

    for (int i = 0; i < 24; i++) {
        numbers[i] = i % 6;
        rows[i] = i / 12 * 3 + i % 3; // 0, 1, 2 four times, then 3, 4, 5
    }
    ls_value *p = lst_per_replica(LS_F32, LS_SHAPE(1, 2, 3), 4, numbers);
    gathers(s, p, 0, LS_F32, LS_SHAPE(4, 2, 3), numbers);
    gathers(s, p, 1, LS_F32, LS_SHAPE(1, 8, 3), numbers);
    gathers(s, p, 2, LS_F32, LS_SHAPE(1, 2, 12), rows);
    ls_value_release(p);
    ls_strategy_release(s);
}

LST_TEST(s57_a_variable_gathers_its_copies_and_a_plain_value_is_itself)
{
    ls_strategy *s = mirrored_of(2);
    ls_value *v = variable_of(s, LS_SYNC_ON_WRITE, LS_I32, 1);
    ls_value *x = lst_plain(LS_F32, LS_SHAPE(2), LST_NUMBERS(1, 2));
    ls_value *out = NULL;

    gathers(s, v, 0, LS_I32, LS_SHAPE(4, 1), LST_NUMBERS(1, 1, 1, 2));
    LST_OK(ls_strategy_gather(s, x, 0, &out, NULL));
    LST_CHECK(out == x);
    ls_value_release(out);
    ls_value_release(v);
    ls_value_release(x);
    ls_strategy_release(s);
}

LST_TEST(sizes_may_differ_along_the_axis_and_nowhere_else)
{
    ls_strategy *s = mirrored_of(2);
    ls_value *p = uneven(LS_F32, 1, LST_NUMBERS(7), 3, LST_NUMBERS(8, 9, 10));
    ls_value *nothing = uneven(LS_F32, 0, LST_NUMBERS(0), 0, LST_NUMBERS(0));
    ls_value *leaves[2] = {lst_plain(LS_F32, LS_SHAPE(1, 2), LST_NUMBERS(1, 2)),
                           lst_plain(LS_F32, LS_SHAPE(1, 1), LST_NUMBERS(3))};
    ls_value *wide = lst_distributed(LS_VALUE_PER_REPLICA, leaves, 2);
    ls_value *mixed[2] = {lst_plain(LS_F32, LS_SHAPE(1), LST_NUMBERS(1)),
                          lst_plain(LS_F32, LS_SHAPE(1, 1), LST_NUMBERS(3))};
    ls_value *ranks = lst_distributed(LS_VALUE_PER_REPLICA, mixed, 2);

    gathers(s, p, 0, LS_F32, LS_SHAPE(4), LST_NUMBERS(7, 8, 9, 10));
    gathers(s, nothing, 0, LS_F32, LS_SHAPE(0), LST_NUMBERS(0));
    gathers(s, wide, 1, LS_F32, LS_SHAPE(1, 3), LST_NUMBERS(1, 2, 3));
    refuses_to_gather(s, wide, 0, LS_INVALID_ARGUMENT, LS_KIND_OP,
                      "replica 1 has float32 (1, 1)");
    refuses_to_gather(s, ranks, 0, LS_INVALID_ARGUMENT, LS_KIND_OP, "replica 1");
    ls_value_release(ranks);
    ls_value_release(wide);
    ls_value_release(nothing);
    ls_value_release(p);
    ls_strategy_release(s);
}

LST_TEST(what_cannot_be_gathered_is_refused_by_its_kind_and_slices_become_dense)
{
    ls_strategy *s = mirrored_of(2);
    ls_value *scalars = lst_per_replica(LS_F32, LS_SCALAR, 2, LST_NUMBERS(1, 2));
    ls_value *p = lst_per_replica(LS_F32, LS_SHAPE(1), 2, LST_NUMBERS(1, 2));
    ls_value *rows[2] = {
        lst_sparse(lst_device(0), LS_SHAPE(5, 1), 1, LST_NUMBERS(1), LST_NUMBERS(0)),
        lst_sparse(lst_device(1), LS_SHAPE(5, 1), 1, LST_NUMBERS(2), LST_NUMBERS(3))};
    ls_value *plain_rows = ls_value_retain(rows[0]);
    ls_value *sparse = lst_distributed(LS_VALUE_PER_REPLICA, rows, 2);
    ls_error err = LS_ERROR_INIT;

    refuses_to_gather(s, scalars, 0, LS_INVALID_ARGUMENT, LS_KIND_VALUE, "scalar");
    refuses_to_gather(s, p, -1, LS_INVALID_ARGUMENT, LS_KIND_VALUE, "axis is -1");
    refuses_to_gather(s, p, 1, LS_INVALID_ARGUMENT, LS_KIND_VALUE, "no axis 1");
    refuses_to_gather(s, sparse, 2, LS_INVALID_ARGUMENT, LS_KIND_VALUE, "no axis 2");
    gathers(s, sparse, 0, LS_F32, LS_SHAPE(10, 1),
            LST_NUMBERS(1, 0, 0, 0, 0, 0, 0, 0, 2, 0));
    gathers(s, sparse, 1, LS_F32, LS_SHAPE(5, 2),
            LST_NUMBERS(1, 0, 0, 0, 0, 0, 0, 2, 0, 0));
    refuses_to_gather(s, plain_rows, 0, LS_UNIMPLEMENTED, LS_KIND_RUNTIME, "sparse");
    LST_FAILS(ls_strategy_gather(s, NULL, 0, NULL, &err), LS_INVALID_ARGUMENT, err,
              "NULL");
    ls_value_release(plain_rows);
    ls_value_release(sparse);
    ls_value_release(p);
    ls_value_release(scalars);
    ls_strategy_release(s);
}

LST_TEST(where_one_device_does_the_work_an_axis_may_count_from_the_end)
{
    ls_cross_device *x = NULL;

    LST_OK(ls_reduction_to_one_device_create(NULL, &x, NULL));
    ls_strategy *one = mirrored_with(2, x);
    ls_strategy *s = mirrored_of(2);
    ls_value *p = lst_per_replica(LS_F32, LS_SHAPE(1), 2, LST_NUMBERS(1, 2));
    ls_value *ints = lst_per_replica(LS_I32, LS_SHAPE(1), 2, LST_NUMBERS(1, 2));

    gathers(one, p, -1, LS_F32, LS_SHAPE(2), LST_NUMBERS(1, 2));
    gathers(s, ints, -1, LS_I32, LS_SHAPE(2), LST_NUMBERS(1, 2));
    ls_value_release(ints);
    ls_value_release(p);
    ls_strategy_release(s);
    ls_strategy_release(one);
    ls_cross_device_release(x);
}

LST_TEST(the_default_strategy_gathers_nothing)
{
    ls_value *x = lst_plain(LS_F32, LS_SHAPE(2), LST_NUMBERS(1, 2));
    ls_value *out = NULL;

    LST_OK(ls_strategy_gather(ls_default_strategy(), x, 0, &out, NULL));
    LST_CHECK(out == x);
    ls_value_release(out);
    ls_value_release(x);
}

/* Calls that fail in a replica function: S11. */
static ls_value *reduce_in_replica(ls_context *c, ls_value *args, void *user)
{
    ls_error err = LS_ERROR_INIT;

    (void)c;
    LST_FAILS(ls_strategy_reduce(user, LS_SUM, args, LS_NO_AXIS, NULL, &err),
              LS_FAILED_PRECONDITION, err, "merge_call");
    LST_FAILS(ls_strategy_gather(user, args, 0, NULL, &err), LS_FAILED_PRECONDITION, err,
              "ls_all_gather");
    LST_CHECK(err.kind == LS_KIND_RUNTIME);
    return NULL;
}

LST_TEST(s11_replica_functions_do_not_reduce_for_all)
{
    ls_strategy *s = mirrored_of(2);
    ls_value *p = lst_per_replica(LS_F32, LS_SHAPE(1), 2, LST_NUMBERS(1, 2));

    LST_OK(ls_strategy_run(s, reduce_in_replica, p, s, NULL, NULL));
    ls_value_release(p);
    ls_strategy_release(s);
}

LST_MAIN(LST_CASE(s36_without_an_axis_the_shape_stays_and_with_one_it_goes),
         LST_CASE(s37_uneven_replicas_have_a_mean_over_all_elements),
         LST_CASE(s38_a_mean_of_integers_is_a_true_division),
         LST_CASE(s39_only_sums_and_means_exist), LST_CASE(s40_axes_are_reduced_together),
         LST_CASE(s41_an_axis_outside_is_refused),
         LST_CASE(s42_a_plain_value_has_a_mean_and_no_sum_over_several_replicas),
         LST_CASE(s43_with_an_axis_a_plain_value_counts_once_per_replica),
         LST_CASE(s44_a_structure_is_reduced_leaf_by_leaf),
         LST_CASE(s45_equal_copies_have_a_mean_and_no_sum),
         LST_CASE(an_on_read_variable_is_reduced_like_per_replica_and_others_are_copies),
         LST_CASE(a_copy_of_a_variable_and_one_of_central_storage_are_plain_values),
         LST_CASE(a_value_of_another_number_of_replicas_is_refused_with_an_axis),
         LST_CASE(literals_that_differ_per_replica_are_numbers),
         LST_CASE(s12_a_reduction_is_not_for_the_scope_of_another_strategy),
         LST_CASE(s56_components_are_joined_along_any_axis),
         LST_CASE(s57_a_variable_gathers_its_copies_and_a_plain_value_is_itself),
         LST_CASE(sizes_may_differ_along_the_axis_and_nowhere_else),
         LST_CASE(what_cannot_be_gathered_is_refused_by_its_kind_and_slices_become_dense),
         LST_CASE(where_one_device_does_the_work_an_axis_may_count_from_the_end),
         LST_CASE(the_default_strategy_gathers_nothing),
         LST_CASE(s11_replica_functions_do_not_reduce_for_all))
