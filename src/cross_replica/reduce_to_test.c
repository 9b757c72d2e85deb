/* Tests of reduce_to, batch_reduce_to and broadcast_to of strategies. */
#include "cross_replica/cross_replica_test.h"

static ls_strategy *make_strategy(const char *devices, bool central)
{
    ls_strategy_options opts = LS_STRATEGY_OPTIONS_INIT;
    ls_strategy *s = NULL;

    opts.runtime = lst_runtime();
    LST_OK(central ? ls_central_storage_create(devices, NULL, &opts, &s, NULL)
                   : ls_mirrored_create(devices, &opts, &s, NULL));
    return s;
}

/* A scalar variable of the strategy, as a value. */
static ls_value *variable_of(ls_strategy *s)
{
    ls_tensor *start = lst_tensor(lst_device(0), LS_F32, LS_SCALAR, LST_NUMBERS(9));
    ls_variable *v = NULL;
    ls_value *leaf = NULL;

    LST_OK(ls_scope_enter(s, NULL));
    LST_OK(ls_variable_create(start, NULL, &v, NULL));
    ls_scope_exit(s);
    LST_OK(ls_value_variable(v, &leaf, NULL));
    ls_variable_release(v);
    ls_tensor_release(start);
    return leaf;
}

static ls_value *reduce_to(ls_strategy *s, ls_reduce op, ls_value *value, ls_value *to)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;
    const ls_status st = ls_strategy_reduce_to(s, op, value, to, NULL, &out, &err);

    if (st != LS_OK) {
        printf("# %s\n", err.message);
    }
    LST_OK(st);
    return out;
}

LST_TEST(s82_a_sum_goes_to_the_devices_of_a_variable_and_does_not_write_it)
{
    ls_strategy *m2 = make_strategy("CPU:0,CPU:1", false);
    ls_strategy *cs = make_strategy("CPU:0,CPU:1", true);
    ls_value *on_m2 = variable_of(m2);
    ls_value *on_cs = variable_of(cs);
    ls_value *p = lst_per_replica(LS_F32, LS_SCALAR, 2, LST_NUMBERS(1, 1));
    ls_value *cpu = lst_name("CPU:0");
    ls_value *out = reduce_to(m2, LS_SUM, p, on_m2);
    ls_tensor *kept = NULL;

    LST_CHECK(lst_is_mirrored(out, 2, LS_F32, LS_SCALAR, LST_NUMBERS(2)));
    ls_value_release(out);
    LST_OK(ls_variable_value(ls_value_as_variable(on_m2), &kept, NULL));
    LST_CHECK(lsi_element(kept, 0) == 9);
    ls_tensor_release(kept);
    out = reduce_to(m2, LS_SUM, p, cpu);
    LST_CHECK(lst_is(out, LS_F32, LS_SCALAR, LST_NUMBERS(2)));
    ls_value_release(out);
    out = reduce_to(cs, LS_SUM, p, on_cs);
    LST_CHECK(lst_is(out, LS_F32, LS_SCALAR, LST_NUMBERS(2)));
    ls_value_release(out);
    out = reduce_to(m2, LS_MEAN, on_m2, cpu); // copies of one value: they are the result
    LST_CHECK(out == on_m2);
    ls_value_release(out);
    out = reduce_to(ls_default_strategy(), LS_SUM, p, cpu);
    LST_CHECK(out == p);
    ls_value_release(out);
    ls_value_release(cpu);
    ls_value_release(p);
    ls_value_release(on_m2);
    ls_value_release(on_cs);
    ls_strategy_release(m2);
    ls_strategy_release(cs);
}

LST_TEST(s94_a_list_of_destinations_breaks_a_precondition)
{
    ls_strategy *s = make_strategy("CPU:0,CPU:1", false);
    ls_value *p = lst_per_replica(LS_F32, LS_SCALAR, 2, LST_NUMBERS(0, 1));
    ls_value *names[2] = {lst_name("CPU:0"), lst_name("CPU:1")};
    ls_value *empty = lst_name("");
    ls_value *list = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_value_list(names, 2, &list, NULL));
    LST_FAILS(ls_strategy_reduce_to(s, LS_SUM, p, list, NULL, NULL, &err),
              LS_INVALID_ARGUMENT, err, "list");
    LST_CHECK(err.kind == LS_KIND_ASSERT);
    LST_FAILS(
        ls_strategy_reduce_to(ls_default_strategy(), LS_SUM, p, list, NULL, NULL, &err),
        LS_INVALID_ARGUMENT, err, "list");
    LST_FAILS(ls_strategy_batch_reduce_to(s, LS_SUM, &p, &list, 1, NULL, NULL, &err),
              LS_INVALID_ARGUMENT, err, "list");
    LST_CHECK(err.kind == LS_KIND_ASSERT);
    LST_FAILS(ls_strategy_broadcast_to(s, names[0], list, NULL, &err),
              LS_INVALID_ARGUMENT, err, "list");
    LST_CHECK(err.kind == LS_KIND_ASSERT);
    LST_FAILS(ls_strategy_reduce_to(s, LS_SUM, p, empty, NULL, NULL, &err),
              LS_INVALID_ARGUMENT, err, "empty");
    LST_CHECK(err.kind == LS_KIND_VALUE);
    LST_FAILS(ls_strategy_reduce_to(s, LS_SUM, p, NULL, NULL, NULL, &err),
              LS_INVALID_ARGUMENT, err, "none");
    LST_CHECK(err.kind == LS_KIND_VALUE);
    LST_FAILS(ls_strategy_reduce_to(s, LS_MIN, p, p, NULL, NULL, &err),
              LS_INVALID_ARGUMENT, err, "MIN");
    LST_CHECK(err.kind == LS_KIND_ASSERT);
    LST_FAILS(ls_strategy_reduce_to(NULL, LS_SUM, p, p, NULL, NULL, &err),
              LS_INVALID_ARGUMENT, err, "strategy is NULL");
    LST_FAILS(ls_strategy_reduce_to(s, LS_SUM, NULL, p, NULL, NULL, &err),
              LS_INVALID_ARGUMENT, err, "value is NULL");
    ls_value_release(empty);
    ls_value_release(list);
    ls_value_release(names[0]);
    ls_value_release(names[1]);
    ls_value_release(p);
    ls_strategy_release(s);
}

LST_TEST(a_batch_mixes_values_of_all_kinds_and_keeps_their_order)
{
    ls_strategy *s = make_strategy("CPU:0,CPU:1", false);
    ls_value *dense = lst_per_replica(LS_F32, LS_SHAPE(2), 2, LST_NUMBERS(1, 2, 3, 4));
    ls_value *ints = lst_per_replica(LS_I32, LS_SCALAR, 2, LST_NUMBERS(1, 2));
    ls_value *rows[2] = {
        lst_sparse(lst_device(0), LS_SHAPE(5, 1), 1, LST_NUMBERS(1), LST_NUMBERS(0)),
        lst_sparse(lst_device(1), LS_SHAPE(5, 1), 1, LST_NUMBERS(2), LST_NUMBERS(3))};
    ls_value *sparse = lst_distributed(LS_VALUE_PER_REPLICA, rows, 2);
    ls_value *plain = lst_plain(LS_F32, LS_SCALAR, LST_NUMBERS(5));
    ls_value *cpu = lst_name("CPU:1");
    ls_value *pair = NULL;

    LST_OK(ls_value_tuple((ls_value *[]){dense, ints}, 2, &pair, NULL));
    ls_value *const values[] = {sparse, dense, plain, ints, dense, pair};
    ls_value *const to[] = {dense, dense, dense, dense, cpu, cpu};
    ls_value *outs[6];
    ls_communication_options opts = LS_COMMUNICATION_OPTIONS_INIT;
    for (opts.bytes_per_pack = 0; opts.bytes_per_pack < 12; opts.bytes_per_pack += 4) {
        LST_OK(ls_strategy_batch_reduce_to(s, LS_MEAN, values, to, 6, &opts, outs, NULL));
        const ls_tensor *t = ls_value_as_tensor(ls_value_child(outs[0], 1));

        LST_CHECK(ls_tensor_slices(t, NULL, NULL));
        LST_CHECK(lst_is_mirrored(outs[1], 2, LS_F32, LS_SHAPE(2), LST_NUMBERS(2, 3)));
        LST_CHECK(outs[2] == plain);
        LST_CHECK(lst_is_mirrored(outs[3], 2, LS_F64, LS_SCALAR, LST_NUMBERS(1.5)));
        LST_CHECK(lst_is(outs[4], LS_F32, LS_SHAPE(2), LST_NUMBERS(2, 3)));
        LST_CHECK(
            lst_is(ls_value_child(outs[5], 1), LS_F64, LS_SCALAR, LST_NUMBERS(1.5)));
        for (size_t i = 0; i < 6; i++) {
            ls_value_release(outs[i]);
        }
    }
    opts.bytes_per_pack = -1;
    LST_CHECK(ls_strategy_batch_reduce_to(s, LS_MEAN, values, to, 6, &opts, outs, NULL) ==
              LS_INVALID_ARGUMENT);
    LST_CHECK(ls_strategy_batch_reduce_to(s, LS_MEAN, values, NULL, 6, NULL, outs,
                                          NULL) == LS_INVALID_ARGUMENT);
    LST_OK(ls_strategy_batch_reduce_to(s, LS_SUM, NULL, NULL, 0, NULL, NULL, NULL));
    // One value that cannot be summed fails the batch as a whole.
    LST_CHECK(ls_strategy_batch_reduce_to(s, LS_SUM, values, to, 6, NULL, outs, NULL) ==
              LS_INVALID_ARGUMENT);
    ls_value_release(pair);
    ls_value_release(cpu);
    ls_value_release(plain);
    ls_value_release(sparse);
    ls_value_release(ints);
    ls_value_release(dense);
    ls_strategy_release(s);
}

LST_TEST(a_batch_of_one_replica_is_the_values_themselves)
{
    ls_strategy *def = ls_default_strategy();
    ls_value *x = lst_plain(LS_F32, LS_SCALAR, LST_NUMBERS(1));
    ls_value *y = lst_plain(LS_F32, LS_SCALAR, LST_NUMBERS(2));
    ls_value *const values[2] = {x, y};
    ls_value *const to[2] = {y, NULL};
    ls_value *outs[2] = {NULL, NULL};

    LST_OK(ls_strategy_batch_reduce_to(def, LS_SUM, values, to, 2, NULL, outs, NULL));
    LST_CHECK(outs[0] == x && outs[1] == y);
    ls_value_release(outs[0]);
    ls_value_release(outs[1]);
    ls_value_release(x);
    ls_value_release(y);
}

LST_TEST(a_broadcast_mirrors_tensors_and_leaves_numbers_alone)
{
    ls_strategy *s = make_strategy("CPU:0,CPU:1,CPU:2", false);
    ls_strategy *cs = make_strategy("CPU:0,CPU:1", true);
    ls_value *v = variable_of(s);
    ls_value *w = variable_of(cs);
    ls_value *x = lst_plain(LS_F32, LS_SHAPE(2), LST_NUMBERS(1, 2));
    ls_value *number = NULL;
    ls_value *out = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_value_float(-0.5, &number, NULL));
    LST_OK(ls_strategy_broadcast_to(s, x, v, &out, &err));
    LST_CHECK(lst_is_mirrored(out, 3, LS_F32, LS_SHAPE(2), LST_NUMBERS(1, 2)));
    ls_value_release(out);
    LST_OK(ls_strategy_broadcast_to(cs, x, w, &out, &err));
    LST_CHECK(lst_is(out, LS_F32, LS_SHAPE(2), LST_NUMBERS(1, 2)));
    ls_value_release(out);
    LST_OK(ls_strategy_broadcast_to(s, number, v, &out, &err));
    LST_CHECK(out == number);
    ls_value_release(out);
    LST_FAILS(ls_strategy_broadcast_to(s, x, NULL, &out, &err), LS_INVALID_ARGUMENT, err,
              "no destination");
    LST_CHECK(err.kind == LS_KIND_ASSERT);
    LST_FAILS(ls_strategy_broadcast_to(ls_default_strategy(), x, x, &out, &err),
              LS_UNIMPLEMENTED, err, "default strategy");
    ls_value *p = lst_per_replica(LS_F32, LS_SCALAR, 2, LST_NUMBERS(0, 1));
    LST_FAILS(ls_strategy_broadcast_to(s, p, v, &out, &err), LS_INVALID_ARGUMENT, err,
              "PerReplica");
    ls_value_release(p);
    ls_value_release(number);
    ls_value_release(x);
    ls_value_release(v);
    ls_value_release(w);
    ls_strategy_release(cs);
    ls_strategy_release(s);
}

/* Created once: after that only the reductions may fail. */
static struct {
    ls_strategy *s;
    ls_value *values[3];
} fixed;

static ls_status reduce_everything(ls_error *err)
{
    ls_value *outs[3] = {NULL, NULL, NULL};
    ls_value *out = NULL;
    ls_status st = ls_strategy_batch_reduce_to(fixed.s, LS_MEAN, fixed.values,
                                               fixed.values, 3, NULL, outs, err);

    for (size_t i = 0; i < 3; i++) {
        ls_value_release(outs[i]);
    }
    if (st == LS_OK) {
        st = ls_strategy_reduce(fixed.s, LS_MEAN, fixed.values[0], 0, &out, err);
        ls_value_release(out);
    }
    out = NULL;
    if (st == LS_OK) {
        st = ls_strategy_reduce(fixed.s, LS_SUM, fixed.values[1], LS_NO_AXIS, &out, err);
        ls_value_release(out);
    }
    out = NULL;
    if (st == LS_OK) {
        st = ls_strategy_gather(fixed.s, fixed.values[0], 0, &out, err);
        ls_value_release(out);
    }
    out = NULL;
    if (st == LS_OK) {
        st = ls_strategy_reduce(fixed.s, LS_SUM, fixed.values[2], 0, &out, err);
        ls_value_release(out);
    }
    return st;
}

LST_TEST(running_out_of_memory_leaves_nothing_behind)
{
    fixed.s = make_strategy("CPU:0,CPU:1", false);
    fixed.values[0] = lst_per_replica(LS_F32, LS_SHAPE(2), 2, LST_NUMBERS(1, 2, 3, 4));
    fixed.values[1] = lst_per_replica(LS_I32, LS_SCALAR, 2, LST_NUMBERS(1, 2));
    fixed.values[2] = lst_plain(LS_F32, LS_SHAPE(2), LST_NUMBERS(5, 6));
    lst_every_allocation(reduce_everything);
    for (size_t i = 0; i < 3; i++) {
        ls_value_release(fixed.values[i]);
    }
    ls_strategy_release(fixed.s);
}

LST_MAIN(LST_CASE(s82_a_sum_goes_to_the_devices_of_a_variable_and_does_not_write_it),
         LST_CASE(s94_a_list_of_destinations_breaks_a_precondition),
         LST_CASE(a_batch_mixes_values_of_all_kinds_and_keeps_their_order),
         LST_CASE(a_batch_of_one_replica_is_the_values_themselves),
         LST_CASE(a_broadcast_mirrors_tensors_and_leaves_numbers_alone),
         LST_CASE(running_out_of_memory_leaves_nothing_behind))
