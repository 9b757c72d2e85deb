/* Tests of inputs made by functions, of values by replica, and of compat.v1 iterators. */
#include "input_test.h"

static ls_status count_replicas(const ls_value_context *vc, void *user, ls_value **out,
                                ls_error *err)
{
    const float n = (float)vc->replicas;
    ls_tensor *t = NULL;
    ls_status st = ls_tensor_create(vc->device, LS_F32, LS_SCALAR, &n, &t, err);

    (void)user;
    if (st == LS_OK) {
        st = ls_value_tensor(t, out, err);
    }
    ls_tensor_release(t);
    return st;
}

static ls_value *twice(ls_context *c, ls_value *x, void *user)
{
    (void)user;
    return ls_value_of(c, ls_mul(c, ls_value_as_tensor(x), ls_constant_f32(c, 2.0F)));
}

LST_TEST(d12_values_from_a_function_go_into_a_run)
{
    for (int replicas = 1; replicas <= 2; replicas++) {
        in_machine m = in_machine_of(replicas);
        ls_value *v = NULL, *run = NULL;
        ls_error err = LS_ERROR_INIT;
        in_text t = {{0}, 0};

        LST_OK(ls_strategy_values(m.s, count_replicas, NULL, &v, &err));
        LST_OK(ls_strategy_run(m.s, twice, v, NULL, &run, &err));
        in_put_step(&t, run, replicas);
        in_same(t.text, replicas == 1 ? "2 | " : "4,4 | ", LST_HERE);
        ls_value_release(v);
        ls_value_release(run);
        in_machine_end(&m);
    }
}

static ls_dataset *note_context(const ls_input_context *ic, void *user)
{
    in_put(user, "(%d,%d,%d)", ic->pipelines, ic->pipeline_id, ic->replicas);
    return ls_dataset_batch(in_range(8), 2);
}

static void put_context(in_worker *me)
{
    ls_dist_dataset *dd = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_strategy_distribute_from_function(me->s, note_context, &me->text, &me->opts,
                                                &dd, &err));
    ls_dist_dataset_release(dd);
}

static void contexts_are(int workers, int replicas, const char *const *want, lst_place at)
{
    static in_worker ws[IN_WORKERS];

    in_run(workers, replicas, put_context, NULL, ws);
    for (int w = 0; w < workers; w++) {
        in_same(ws[w].text.text, want[w], at);
    }
}

LST_TEST(d76_d77_the_arguments_of_the_function)
{
    const ls_input_context ic = {1, 0, 2};
    ls_dist_dataset *dd = NULL;
    ls_error err = LS_ERROR_INIT;
    in_text t = {{0}, 0};
    int64_t each = 0;

    LST_OK(ls_input_context_batch(&ic, 8, &each, &err));
    LST_CHECK(each == 4);
    LST_FAILS(ls_input_context_batch(&ic, 7, &each, &err), LS_INVALID_ARGUMENT, err, "7");
    contexts_are(1, 2, (const char *const[]){"(1,0,2)"}, LST_HERE);
    contexts_are(3, 2, (const char *const[]){"(3,0,6)", "(3,1,6)", "(3,2,6)"}, LST_HERE);
    LST_OK(ls_strategy_distribute_from_function(ls_default_strategy(), note_context, &t,
                                                NULL, &dd, &err));
    in_same(t.text, "(1,0,1)", LST_HERE);
    ls_dist_dataset_release(dd);
}

static ls_value *times(ls_context *c, ls_value *x, void *user)
{
    ls_tensor *factor = ls_constant_i64(c, *(const int64_t *)user);

    return ls_value_of(c, ls_mul(c, ls_value_as_tensor(x), factor));
}

static ls_dataset *by_replica(const ls_input_context *ic, void *user)
{
    static const int64_t factors[] = {1, 2, 3};

    (void)user;
    LST_CHECK(ic->pipelines == 2 && ic->replicas == 2);
    return in_map(ls_dataset_range(1, 10, 1), times,
                  (void *)(uintptr_t)&factors[ic->pipeline_id], LS_I64, 0, NULL);
}

LST_TEST(d78_an_input_per_replica)
{
    in_machine m = in_machine_of(2), one = in_machine_of(1);
    ls_distribute_options o = LS_DISTRIBUTE_OPTIONS_INIT;
    ls_strategy *central = NULL;
    ls_strategy_options so = LS_STRATEGY_OPTIONS_INIT;
    ls_dist_dataset *dd = NULL;
    ls_dist_iterator *it = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_dataset *d = ls_dataset_batch(in_range(8), 4);
    in_text t = {{0}, 0};

    o.replication = LS_PER_REPLICA_INPUT;
    LST_OK(ls_strategy_distribute_from_function(m.s, by_replica, NULL, &o, &dd, &err));
    LST_OK(ls_dist_iterate(dd, &it, &err));
    in_drain(&t, it, 2, IN_STEPS);
    in_same(t.text, "1,2 | 2,4 | 3,6 | 4,8 | 5,10 | 6,12 | 7,14 | 8,16 | 9,18 | end",
            LST_HERE);
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);
    dd = NULL;

    LST_FAILS(ls_strategy_distribute(m.s, d, &o, &dd, &err), LS_UNIMPLEMENTED, err,
              "from_function");
    LST_CHECK(strcmp(ls_error_python(&err), "NotImplementedError") == 0);
    so.runtime = one.rt;
    LST_OK(ls_central_storage_create(NULL, NULL, &so, &central, &err));
    LST_FAILS(
        ls_strategy_distribute_from_function(central, by_replica, NULL, &o, &dd, &err),
        LS_UNIMPLEMENTED, err, "CentralStorage");
    o.place_on_device = true;
    LST_FAILS(ls_strategy_distribute_from_function(m.s, by_replica, NULL, &o, &dd, &err),
              LS_INVALID_ARGUMENT, err, "keep_on_host");
    o.replication = LS_PER_WORKER;
    o.keep_on_host = true;
    LST_FAILS(ls_strategy_distribute_from_function(m.s, by_replica, NULL, &o, &dd, &err),
              LS_INVALID_ARGUMENT, err, "place_on_device");
    o.replication = LS_PER_REPLICA_INPUT;
    LST_OK(ls_strategy_distribute_from_function(m.s, by_replica, NULL, &o, &dd, &err));
    ls_dist_dataset_release(dd);
    dd = NULL;
    ls_strategy_release(central);
    ls_dataset_release(d);
    in_machine_end(&one);
    in_machine_end(&m);
}

static void ask_for_one_per_replica(in_worker *me)
{
    ls_dist_dataset *dd = NULL;
    ls_error err = LS_ERROR_INIT;

    me->opts.replication = LS_PER_REPLICA_INPUT;
    LST_FAILS(ls_strategy_distribute_from_function(me->s, by_replica, NULL, &me->opts,
                                                   &dd, &err),
              LS_UNIMPLEMENTED, err, "not for MultiWorkerMirroredStrategy");
    LST_CHECK(dd == NULL);
}

LST_TEST(d78_an_input_per_replica_is_not_for_several_workers)
{
    static in_worker ws[IN_WORKERS];
    in_worker alone = {.opts = LS_DISTRIBUTE_OPTIONS_INIT, .fn = ask_for_one_per_replica};

    in_run(2, 2, ask_for_one_per_replica, NULL, ws);
    lst_workers_run(1, 2, in_enter, &alone); // nor for that strategy with one worker
}

/* Replica 0 has 3 batches, replica 1 has 2. */
static ls_dataset *uneven(const ls_input_context *ic, void *user)
{
    (void)user;
    return ls_dataset_batch(in_range(6 - 2 * (int64_t)ic->pipeline_id), 2);
}

LST_TEST(inputs_of_replicas_may_end_at_different_steps)
{
    for (int ahead = -1; ahead <= 1; ahead++) {
        in_machine m = in_machine_of(2);
        ls_distribute_options o = LS_DISTRIBUTE_OPTIONS_INIT;
        ls_dist_dataset *dd = NULL;
        ls_dist_iterator *it = NULL;
        ls_value *state = NULL;
        ls_error err = LS_ERROR_INIT;
        in_text t = {{0}, 0}, rest = {{0}, 0};

        o.replication = LS_PER_REPLICA_INPUT;
        o.per_replica_buffer = ahead;
        LST_OK(ls_strategy_distribute_from_function(m.s, uneven, NULL, &o, &dd, &err));
        dd->cheap_ns = 0;
        LST_OK(ls_dist_iterate(dd, &it, &err));
        in_drain(&t, it, 2, 2);
        LST_OK(ls_dist_iterator_save(it, &state, &err));
        in_drain(&t, it, 2, IN_STEPS);
        in_same(t.text, "[0 1],[0 1] | [2 3],[2 3] | ...[4 5],[] | end", LST_HERE);
        LST_OK(ls_dist_iterator_restore(it, state, &err)); // both replicas start again
        in_drain(&rest, it, 2, IN_STEPS);
        in_same(rest.text, "[4 5],[] | end", LST_HERE);
        ls_value_release(state);
        ls_dist_iterator_release(it);
        ls_dist_dataset_release(dd);
        in_machine_end(&m);
    }
}

static ls_dataset *no_dataset(const ls_input_context *ic, void *user)
{
    (void)ic;
    (void)user;
    return NULL;
}

static ls_dataset *other_dtypes(const ls_input_context *ic, void *user)
{
    (void)user;
    return ic->pipeline_id == 0 ? in_range(3) : in_floats((const float[]){1}, 1);
}

LST_TEST(a_function_that_returns_no_dataset_is_an_error)
{
    in_machine m = in_machine_of(2);
    ls_distribute_options o = LS_DISTRIBUTE_OPTIONS_INIT;
    ls_dist_dataset *dd = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_FAILS(
        ls_strategy_distribute_from_function(m.s, no_dataset, NULL, NULL, &dd, &err),
        LS_RESOURCE_EXHAUSTED, err, "dataset");
    LST_FAILS(ls_strategy_distribute_from_function(m.s, NULL, NULL, NULL, &dd, &err),
              LS_INVALID_ARGUMENT, err, "NULL");
    o.replication = LS_PER_REPLICA_INPUT;
    LST_FAILS(
        ls_strategy_distribute_from_function(m.s, other_dtypes, NULL, &o, &dd, &err),
        LS_INVALID_ARGUMENT, err, "replica 1");
    o.replication = (ls_replication)5;
    LST_FAILS(ls_strategy_distribute_from_function(m.s, uneven, NULL, &o, &dd, &err),
              LS_INVALID_ARGUMENT, err, "5");
    LST_CHECK(dd == NULL);
    in_machine_end(&m);
}

static ls_dataset *no_license(const ls_input_context *ic, void *user)
{
    (void)user;
    if (ic->pipelines == 3 && ic->pipeline_id == 0) {
        return in_range(3);
    }
    return ls_dataset_failed(LS_PERMISSION_DENIED, "no license for pipeline %d of %d",
                             ic->pipeline_id, ic->pipelines);
}

/* The error of a builder that is called on a failed dataset. */
static ls_dataset *handed_on(const ls_input_context *ic, void *user)
{
    (void)ic;
    return ls_dataset_batch(ls_dataset_failed_with(user), 2);
}

LST_TEST(the_error_of_a_function_without_a_dataset_is_returned)
{
    in_machine m = in_machine_of(2);
    ls_dist_iterator *it = NULL;
    ls_dist_dataset *dd = NULL;
    ls_error err = LS_ERROR_INIT, why = LS_ERROR_INIT;

    LST_FAILS(ls_strategy_make_input_fn_iterator(m.s, no_license, NULL, NULL,
                                                 LS_PER_WORKER, &it, &err),
              LS_PERMISSION_DENIED, err, "no license for pipeline 0 of 1");
    (void)lsi_fail_kind(&why, LS_NOT_FOUND, LS_KIND_VALUE, "the table has no row 7");
    lsi_error_set_site(&why, "rows.c", 12);
    LST_FAILS(ls_strategy_distribute_from_function(m.s, handed_on, &why, NULL, &dd, &err),
              LS_NOT_FOUND, err, "the table has no row 7");
    LST_CHECK(err.kind == LS_KIND_VALUE && err.line == 12 &&
              strcmp(err.file, "rows.c") == 0);
    LST_FAILS(ls_strategy_distribute_from_function(m.s, handed_on, NULL, NULL, &dd, &err),
              LS_UNKNOWN, err, "without an error");
    LST_FAILS(
        ls_strategy_distribute_from_function(m.s, no_dataset, NULL, NULL, &dd, &err),
        LS_RESOURCE_EXHAUSTED, err, "ls_dataset_failed");
    LST_CHECK(dd == NULL && it == NULL);
    in_machine_end(&m);
}

static void ask_for_a_license(in_worker *me)
{
    ls_dist_dataset *dd = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_FAILS(ls_strategy_distribute_from_function(me->s, no_license, NULL, &me->opts,
                                                   &dd, &err),
              LS_PERMISSION_DENIED, err, "no license for pipeline 1 of 3");
    LST_CHECK(err.rank == 1);
}

LST_TEST(the_error_of_the_first_worker_that_fails_is_returned_by_all)
{
    static in_worker ws[IN_WORKERS];

    in_run(3, 1, ask_for_a_license, NULL, ws);
}

LST_TEST(values_stay_on_the_host_if_asked)
{
    in_machine m = in_machine_of(2);
    ls_distribute_options o = LS_DISTRIBUTE_OPTIONS_INIT;
    ls_dist_dataset *dd = NULL;
    ls_dist_iterator *it = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_dataset *d = ls_dataset_batch(in_range(64), 64);

    o.keep_on_host = true;
    LST_OK(ls_strategy_distribute(m.s, d, &o, &dd, &err));
    LST_OK(ls_dist_iterate(dd, &it, &err));
    LST_OK(ls_dist_iterator_next(it, &v, &err));
    for (size_t r = 0; r < 2; r++) {
        LST_CHECK(ls_tensor_device(ls_value_as_tensor(ls_value_child(v, r))) ==
                  ls_runtime_device(m.rt, 0));
    }
    ls_value_release(v);
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);
    ls_dataset_release(d);
    in_machine_end(&m);
}

/* The replica's number from a table; `user`: where to note the context, or NULL. */
static ls_status pick(const ls_value_context *vc, void *user, ls_value **out,
                      ls_error *err)
{
    static const double table[] = {3, 2, 1, 0};

    if (user != NULL) {
        in_put(user, "%d of %d, ", vc->replica_id, vc->replicas);
    }
    return ls_value_float(table[vc->replica_id], out, err);
}

LST_TEST(d79_values_by_replica_id)
{
    in_machine m = in_machine_of(2);
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;
    double x = 0;

    LST_OK(ls_strategy_values(m.s, pick, NULL, &v, &err));
    LST_CHECK(ls_value_as_float(ls_value_child(v, 0), &x) && x == 3.0);
    LST_CHECK(ls_value_as_float(ls_value_child(v, 1), &x) && x == 2.0);
    ls_value_release(v);
    in_machine_end(&m);
}

static void put_values(in_worker *me)
{
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_strategy_values(me->s, pick, &me->text, &v, &err));
    for (int r = 0; r < me->replicas; r++) {
        double x = -1;

        LST_CHECK(ls_value_as_float(ls_value_child(v, (size_t)r), &x));
        in_put(&me->text, "%g ", x);
    }
    ls_value_release(v);
}

static ls_status nothing_for_id_1(const ls_value_context *vc, void *user, ls_value **out,
                                  ls_error *err)
{
    (void)user;
    return vc->replica_id == 1 ? LS_OK : ls_value_float(0, out, err);
}

/* Making values is no matter of the other workers: worker 1 has the id that fails. */
static void make_half_of_them(in_worker *me)
{
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;
    const ls_status st = ls_strategy_values(me->s, nothing_for_id_1, NULL, &v, &err);

    if (me->worker == 0) {
        LST_OK(st);
    } else {
        LST_FAILS(st, LS_INVALID_ARGUMENT, err, "nothing for replica 1");
    }
    ls_value_release(v);
}

LST_TEST(d79_values_of_workers_have_the_ids_of_the_sync_group)
{
    static in_worker ws[IN_WORKERS];

    in_run(2, 2, put_values, NULL, ws);
    in_same(ws[0].text.text, "0 of 4, 1 of 4, 3 2 ", LST_HERE);
    in_same(ws[1].text.text, "2 of 4, 3 of 4, 1 0 ", LST_HERE);
    in_run(3, 1, put_values, NULL, ws);
    in_same(ws[0].text.text, "0 of 3, 3 ", LST_HERE);
    in_same(ws[1].text.text, "1 of 3, 2 ", LST_HERE);
    in_same(ws[2].text.text, "2 of 3, 1 ", LST_HERE);
    in_run(2, 1, make_half_of_them, NULL, ws);
}

static ls_status count_up(void *state, ls_value **out, ls_error *err)
{
    int64_t *n = state;
    ls_tensor *t = NULL;
    ls_status st;

    if (*n == 5) {
        return LS_OUT_OF_RANGE;
    }
    (*n)++;
    st = ls_tensor_create(NULL, LS_I64, LS_SCALAR, n, &t, err);
    if (st == LS_OK) {
        st = ls_value_tensor(t, out, err);
    }
    ls_tensor_release(t);
    return st;
}

static ls_dataset *five_by_two(const ls_input_context *ic, void *user)
{
    (void)ic;
    (void)user;
    return ls_dataset_batch(in_range(5), 2);
}

LST_TEST(d81_the_older_iterators_are_initialized_and_rewound)
{
    in_machine m = in_machine_of(2);
    ls_dist_iterator *it = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_dataset *d = ls_dataset_batch(in_range(6), 4);
    int64_t n = 0;

    LST_OK(ls_strategy_make_dataset_iterator(m.s, d, &it, &err));
    LST_FAILS(ls_dist_iterator_next(it, &v, &err), LS_FAILED_PRECONDITION, err,
              "initialize");
    for (int turn = 0; turn < 2; turn++) {
        in_text t = {{0}, 0};

        LST_OK(ls_dist_iterator_initialize(it, &err));
        in_drain(&t, it, 2, turn == 0 ? 1 : IN_STEPS);
        in_same(t.text, turn == 0 ? "[0 1],[2 3] | ..." : "[0 1],[2 3] | [4],[5] | end",
                LST_HERE);
    }
    ls_dist_iterator_release(it);
    it = NULL;
    LST_FAILS(ls_strategy_make_input_fn_iterator(m.s, five_by_two, NULL, NULL,
                                                 LS_PER_REPLICA_INPUT, &it, &err),
              LS_INVALID_ARGUMENT, err, "LS_PER_WORKER");
    LST_FAILS(ls_strategy_make_input_fn_iterator(m.s, NULL, NULL, NULL, LS_PER_WORKER,
                                                 &it, &err),
              LS_INVALID_ARGUMENT, err, "pass either");
    LST_OK(ls_strategy_make_input_fn_iterator(m.s, five_by_two, NULL, NULL, LS_PER_WORKER,
                                              &it, &err));
    LST_OK(ls_dist_iterator_initialize(it, &err));
    in_text t = {{0}, 0};
    in_drain(&t, it, 2, IN_STEPS); // partial steps are dropped here
    in_same(t.text, "[0 1],[2 3] | end", LST_HERE);
    ls_dist_iterator_release(it);
    it = NULL;
    LST_OK(ls_strategy_make_input_fn_iterator(m.s, NULL, count_up, &n, LS_PER_WORKER, &it,
                                              &err));
    LST_OK(ls_dist_iterator_initialize(it, &err));
    t = (in_text){{0}, 0};
    in_drain(&t, it, 2, IN_STEPS);
    in_same(t.text, "1,2 | 3,4 | end", LST_HERE);
    LST_CHECK(n == 5);
    LST_FAILS(ls_dist_iterator_save(it, &v, &err), LS_FAILED_PRECONDITION, err,
              "callable");
    ls_dist_iterator_release(it);
    ls_dataset_release(d);
    in_machine_end(&m);
}

static ls_dataset *ones(const ls_input_context *ic, void *user)
{
    (void)ic;
    (void)user;
    return ls_dataset_batch(in_range(10), 1);
}

LST_TEST(d82_sharding_once_more)
{
    in_machine m = in_machine_of(2);
    ls_dist_dataset *dd = NULL;
    ls_dist_iterator *it = NULL;
    ls_error err = LS_ERROR_INIT;
    in_text t = {{0}, 0};

    LST_OK(ls_strategy_distribute_from_function(m.s, ones, NULL, NULL, &dd, &err));
    LST_FAILS(ls_dist_auto_shard(dd, 2, 2, &err), LS_INVALID_ARGUMENT, err, "2 of 2");
    LST_CHECK(ls_dist_cardinality(dd) == 10);
    LST_OK(ls_dist_auto_shard(dd, 2, 0, &err));
    LST_CHECK(ls_dist_cardinality(dd) == 5);
    LST_OK(ls_dist_iterate(dd, &it, &err));
    in_drain(&t, it, 2, IN_STEPS);
    in_same(t.text, "[0],[2] | [4],[6] | [8],[] | end", LST_HERE);
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);
    in_machine_end(&m);
}

LST_MAIN(LST_CASE(d12_values_from_a_function_go_into_a_run),
         LST_CASE(d76_d77_the_arguments_of_the_function),
         LST_CASE(d78_an_input_per_replica),
         LST_CASE(d78_an_input_per_replica_is_not_for_several_workers),
         LST_CASE(inputs_of_replicas_may_end_at_different_steps),
         LST_CASE(a_function_that_returns_no_dataset_is_an_error),
         LST_CASE(the_error_of_a_function_without_a_dataset_is_returned),
         LST_CASE(the_error_of_the_first_worker_that_fails_is_returned_by_all),
         LST_CASE(values_stay_on_the_host_if_asked), LST_CASE(d79_values_by_replica_id),
         LST_CASE(d79_values_of_workers_have_the_ids_of_the_sync_group),
         LST_CASE(d81_the_older_iterators_are_initialized_and_rewound),
         LST_CASE(d82_sharding_once_more))
