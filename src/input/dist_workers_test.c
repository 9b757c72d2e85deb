/* Tests of several workers with a source in memory: each keeps every n-th part. */
#include "input_test.h"

static ls_dataset *d34(void)
{
    return ls_dataset_batch(in_range(16), 8);
}

static ls_dataset *d35(void)
{
    return ls_dataset_batch(in_range(15), 4);
}

static ls_dataset *d35_exact(void)
{
    return ls_dataset_batch_exact(in_range(15), 4);
}

LST_TEST(d34_d35_replica_r_of_worker_w_gets_piece_w_plus_w_times_r)
{
    IN_CHECK(d34, LS_SHARD_AUTO, 2, 2, "[0 1],[4 5] | [8 9],[12 13] | end",
             "[2 3],[6 7] | [10 11],[14 15] | end");
    IN_CHECK(d35, LS_SHARD_AUTO, 2, 2, "[0],[2] | [4],[6] | [8],[10] | [12],[14] | end",
             "[1],[3] | [5],[7] | [9],[11] | [13],[] | end");
    IN_CHECK(d35_exact, LS_SHARD_AUTO, 2, 2, "[0],[2] | [4],[6] | [8],[10] | end",
             "[1],[3] | [5],[7] | [9],[11] | end");
}

static ls_dataset *d36(void)
{
    return ls_dataset_batch(in_range(9), 2);
}

static ls_dataset *d37(void)
{
    return ls_dataset_batch(in_range(8), 3);
}

static ls_dataset *d38(void)
{
    return ls_dataset_batch(in_range(8), 4);
}

static ls_dataset *d39(void)
{
    return ls_dataset_batch(in_range(24), 12);
}

static ls_dataset *d40(void)
{
    return ls_dataset_batch(in_range(7), 2);
}

LST_TEST(d36_to_d40_workers_without_data_keep_step)
{
    IN_CHECK(d36, LS_SHARD_AUTO, 2, 1, "[0] | [2] | [4] | [6] | [8] | end",
             "[1] | [3] | [5] | [7] | [] | end");
    IN_CHECK(d37, LS_SHARD_DATA, 2, 1, "[0 1] | [3 4] | [6] | end",
             "[2] | [5] | [7] | end");
    IN_CHECK(d38, LS_SHARD_AUTO, 3, 1, "[0 1] | [4 5] | end", "[2 3] | [6 7] | end",
             "[] | [] | end");
    IN_CHECK(d39, LS_SHARD_AUTO, 3, 2, "[0 1],[6 7] | [12 13],[18 19] | end",
             "[2 3],[8 9] | [14 15],[20 21] | end",
             "[4 5],[10 11] | [16 17],[22 23] | end");
    IN_CHECK(d40, LS_SHARD_AUTO, 3, 1, "[0] | [2] | [4] | [6] | end",
             "[1] | [3] | [5] | [] | end", "[] | [] | [] | [] | end");
}

static ls_dataset *d41(void)
{
    return ls_dataset_batch(ls_dataset_shuffle(in_range(8), 8, 42), 4);
}

LST_TEST(d41_workers_shuffle_alike)
{
    IN_CHECK(d41, LS_SHARD_AUTO, 2, 1, "[1 4] | [5 2] | end", "[0 6] | [3 7] | end");
}

static ls_dataset *unseeded(void)
{
    return ls_dataset_batch(
        ls_dataset_shuffle_with(ls_dataset_shuffle_with(in_range(64), 64, NULL, false),
                                16, NULL, false),
        4);
}

/* Every worker draws its own seeds; all must use the same ones, or parts overlap. */
static void mark_seen(in_worker *me)
{
    atomic_int *seen = (atomic_int *)me->arg;
    ls_dist_dataset *dd = NULL;
    ls_dist_iterator *it = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_dataset *d = unseeded();

    LST_OK(ls_strategy_distribute(me->s, d, &me->opts, &dd, &err));
    LST_OK(ls_dist_iterate(dd, &it, &err));
    while (ls_dist_iterator_next(it, &v, &err) == LS_OK) {
        const ls_tensor *t = ls_value_as_tensor(ls_value_child(v, 0));

        for (int64_t i = 0; i < ls_tensor_count(t); i++) {
            atomic_fetch_add(&seen[((const int64_t *)ls_tensor_data(t))[i]], 1);
        }
        ls_value_release(v);
        v = NULL;
    }
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);
    ls_dataset_release(d);
}

LST_TEST(unseeded_shuffles_are_one_order_on_all_workers)
{
    static in_worker ws[IN_WORKERS];
    atomic_int seen[64];

    for (int i = 0; i < 64; i++) {
        atomic_init(&seen[i], 0);
    }
    in_run(2, 1, mark_seen, seen, ws);
    for (int i = 0; i < 64; i++) {
        LST_CHECK(atomic_load(&seen[i]) == 1);
    }
}

LST_TEST(shared_seeds_are_another_pair_for_every_shuffle)
{
    ls_dataset *d = unseeded();
    const lsi_seeds first = {5, 11};
    lsi_seeds near = {0, 0}, far = {0, 0};
    ls_error err = LS_ERROR_INIT;

    LST_OK(lsi_graph_share_seeds(&d, first, &err)); // batch, shuffle, shuffle, range
    LST_CHECK(lsi_dataset_drew_seeds(d->inputs[0], &near));
    LST_CHECK(lsi_dataset_drew_seeds(d->inputs[0]->inputs[0], &far));
    LST_CHECK(far.a == 5 && far.b == 11);
    LST_CHECK(near.a != far.a || near.b != far.b);
    ls_dataset_release(d);
}

static ls_value *square(ls_context *c, ls_value *x, void *user)
{
    ls_tensor *f = ls_cast(c, ls_value_as_tensor(x), LS_F32);

    (void)user;
    return ls_value_of(c, ls_mul(c, f, f));
}

static ls_dataset *d44(void)
{
    return ls_dataset_batch(in_map(in_range(10), square, NULL, LS_F32, 0, NULL), 4);
}

static ls_value *sum_of_rows(ls_context *c, ls_value *x, void *user)
{
    (void)user;
    return ls_value_of(c, ls_sum(c, ls_value_as_tensor(x), NULL, 0, false));
}

/* Every step is run and reduced: input and sums share the workers' communicator. */
static void add_up(in_worker *me)
{
    ls_dist_dataset *dd = NULL;
    ls_dist_iterator *it = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_dataset *d = d44();
    float sum = 0;

    LST_OK(ls_strategy_distribute(me->s, d, &me->opts, &dd, &err));
    LST_OK(ls_dist_iterate(dd, &it, &err));
    while (ls_dist_iterator_next(it, &v, &err) == LS_OK) {
        ls_value *sums = NULL, *total = NULL;

        LST_OK(ls_strategy_run(me->s, sum_of_rows, v, NULL, &sums, &err));
        LST_OK(ls_strategy_reduce(me->s, LS_SUM, sums, LS_NO_AXIS, &total, &err));
        sum += *(const float *)ls_tensor_data(ls_value_as_tensor(total));
        ls_value_release(total);
        ls_value_release(sums);
        ls_value_release(v);
        v = NULL;
    }
    in_put(&me->text, "%g", (double)sum);
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);
    ls_dataset_release(d);
}

LST_TEST(d44_every_row_is_somewhere_once)
{
    static in_worker ws[IN_WORKERS];

    for (int replicas = 1; replicas <= 2; replicas++) {
        in_run(2, replicas, add_up, NULL, ws);
        in_same(ws[0].text.text, "285", LST_HERE);
        in_same(ws[1].text.text, "285", LST_HERE);
    }
    in_run(3, 1, add_up, NULL, ws);
    in_same(ws[2].text.text, "285", LST_HERE);
}

static ls_value *fail_on_five(ls_context *c, ls_value *x, void *user)
{
    const ls_tensor *t = ls_value_as_tensor(x);

    (void)user;
    if (((const int64_t *)ls_tensor_data(t))[0] == 5) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "five");
        return NULL;
    }
    return x;
}

/* Elements one by one: worker w reads range(8w, 8w + 8); reading 5 fails. */
static ls_dataset *own_range(const ls_input_context *ic, void *user)
{
    const int64_t first = 8 * (int64_t)ic->pipeline_id;

    (void)user;
    return in_map(ls_dataset_range(first, first + 8, 1), fail_on_five, NULL, LS_I64, 0,
                  NULL);
}

static void step_over_failures(in_worker *me)
{
    ls_dist_dataset *dd = NULL;
    ls_dist_iterator *it = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_status st;

    LST_OK(ls_strategy_distribute_from_function(me->s, own_range, NULL, &me->opts, &dd,
                                                &err));
    LST_OK(ls_dist_iterate(dd, &it, &err));
    do {
        ls_value *v = NULL;

        st = ls_dist_iterator_next(it, &v, &err);
        if (st == LS_OK) {
            in_put_step(&me->text, v, me->replicas);
        } else {
            in_put(&me->text, st == LS_OUT_OF_RANGE ? "end" : "%s by %d: %s | ",
                   ls_status_name(st), err.rank, err.message);
        }
        ls_value_release(v);
    } while (st != LS_OUT_OF_RANGE);
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);
}

LST_TEST(a_failure_of_one_worker_fails_all_and_loses_nothing)
{
    static in_worker ws[IN_WORKERS];

    in_run(2, 2, step_over_failures, NULL, ws);
    in_same(ws[0].text.text, "0,1 | 2,3 | INVALID_ARGUMENT by 0: five | 4,6 | 7,0 | end",
            LST_HERE);
    in_same(ws[1].text.text,
            "8,9 | 10,11 | INVALID_ARGUMENT by 0: five | 12,13 | 14,15 | end", LST_HERE);
}

static void ask_after_the_end(in_worker *me)
{
    ls_dist_dataset *dd = NULL;
    ls_dist_iterator *it = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_dataset *d = d38();

    LST_OK(ls_strategy_distribute(me->s, d, &me->opts, &dd, &err));
    LST_OK(ls_dist_iterate(dd, &it, &err));
    in_drain(&me->text, it, me->replicas, IN_STEPS);
    if (me->worker == 0) { // one worker
        LST_FAILS(ls_dist_iterator_next(it, &v, &err), LS_OUT_OF_RANGE, err, "end");
    }
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);
    ls_dataset_release(d);
}

LST_TEST(after_the_end_no_worker_waits_for_others)
{
    static in_worker ws[IN_WORKERS];

    in_run(2, 1, ask_after_the_end, NULL, ws);
    in_same(ws[0].text.text, "[0 1] | [4 5] | end", LST_HERE);
    in_same(ws[1].text.text, "[2 3] | [6 7] | end", LST_HERE);
}

static void release_the_strategy(in_worker *me)
{
    ls_strategy *copy = NULL;
    ls_dist_dataset *dd = NULL;
    ls_dist_iterator *it = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_dataset *d = d38();

    LST_OK(ls_strategy_copy(me->s, &copy, &err));
    LST_OK(ls_strategy_distribute(copy, d, NULL, &dd, &err));
    ls_strategy_release(copy);
    ls_dataset_release(d);
    LST_OK(ls_dist_iterate(dd, &it, &err));
    ls_dist_dataset_release(dd);
    in_drain(&me->text, it, me->replicas, IN_STEPS);
    ls_dist_iterator_release(it);
}

LST_TEST(an_iterator_keeps_the_strategy_and_its_communicator)
{
    static in_worker ws[IN_WORKERS];

    in_run(2, 1, release_the_strategy, NULL, ws);
    in_same(ws[0].text.text, "[0 1] | [4 5] | end", LST_HERE);
    in_same(ws[1].text.text, "[2 3] | [6 7] | end", LST_HERE);
}

/* Worker 1 takes more steps than worker 0; nobody waits. */
static void take_uneven_steps(in_worker *me)
{
    ls_dist_dataset *dd = NULL;
    ls_dist_iterator *it = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_dataset *d = ls_dataset_repeat(d38(), -1);

    LST_OK(ls_strategy_distribute(me->s, d, &me->opts, &dd, &err));
    LST_OK(ls_dist_iterate(dd, &it, &err));
    in_drain(&me->text, it, me->replicas, me->worker == 0 ? 1 : 3);
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);
    ls_dataset_release(d);
}

static void take_older_steps(in_worker *me)
{
    ls_dist_iterator *it = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_dataset *d = d36();

    LST_OK(ls_strategy_make_dataset_iterator(me->s, d, &it, &err));
    LST_OK(ls_dist_iterator_initialize(it, &err));
    in_drain(&me->text, it, me->replicas, IN_STEPS);
    ls_dist_iterator_release(it);
    ls_dataset_release(d);
}

LST_TEST(steps_without_a_common_end_do_not_wait)
{
    static in_worker ws[IN_WORKERS];

    in_run(2, 1, take_uneven_steps, NULL, ws); // datasets without an end
    in_same(ws[0].text.text, "[0 1] | ...", LST_HERE);
    in_same(ws[1].text.text, "[2 3] | [6 7] | [2 3] | ...", LST_HERE);
    in_run(2, 1, take_older_steps, NULL, ws); // iterators of compat.v1
    in_same(ws[0].text.text, "[0] | [2] | [4] | [6] | [8] | end", LST_HERE);
    in_same(ws[1].text.text, "[1] | [3] | [5] | [7] | [] | end", LST_HERE);
}

static ls_dataset *some_dtype(const ls_input_context *ic, void *user)
{
    (void)user;
    return ic->pipeline_id == 0 ? in_range(4) : in_floats((const float[]){1, 2, 3}, 3);
}

static ls_dataset *fails_on_one(const ls_input_context *ic, void *user)
{
    (void)user;
    return ls_dataset_batch(in_range(4), ic->pipeline_id == 1 ? 0 : 2);
}

static ls_dataset *endless_on_one(const ls_input_context *ic, void *user)
{
    (void)user;
    return ls_dataset_repeat(ls_dataset_batch_exact(in_range(4), 2),
                             ic->pipeline_id == 1 ? -1 : 1);
}

static void only_distribute(in_worker *me)
{
    ls_input_fn fn = *(const ls_input_fn *)me->arg;
    ls_dist_dataset *dd = NULL;
    ls_dist_iterator *it = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_status st =
        ls_strategy_distribute_from_function(me->s, fn, NULL, &me->opts, &dd, &err);

    in_put(&me->text, "%s by %d ", ls_status_name(st), err.rank);
    if (st == LS_OK) {
        LST_OK(ls_dist_iterate(dd, &it, &err));
        in_drain(&me->text, it, me->replicas, 4);
    }
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);
}

LST_TEST(workers_agree_on_what_they_distribute)
{
    static in_worker ws[IN_WORKERS];
    const ls_input_fn functions[] = {some_dtype, fails_on_one, endless_on_one};

    in_run(2, 1, only_distribute, &functions[0], ws); // other specs
    in_same(ws[0].text.text, "INVALID_ARGUMENT by -1 ", LST_HERE);
    in_same(ws[1].text.text, "INVALID_ARGUMENT by -1 ", LST_HERE);
    in_run(2, 1, only_distribute, &functions[1], ws); // one fails
    in_same(ws[0].text.text, "INVALID_ARGUMENT by 1 ", LST_HERE);
    in_same(ws[1].text.text, "INVALID_ARGUMENT by 1 ", LST_HERE);
    in_run(2, 1, only_distribute, &functions[2], ws); // one is infinite, the other ends
    in_same(ws[0].text.text, "OK by -1 [0 1] | [2 3] | [] | [] | ...", LST_HERE);
    in_same(ws[1].text.text, "OK by -1 [0 1] | [2 3] | [0 1] | [2 3] | ...", LST_HERE);
}

LST_TEST(the_arguments_are_checked)
{
    in_machine m = in_machine_of(1);
    ls_distribute_options o = LS_DISTRIBUTE_OPTIONS_INIT;
    ls_dist_dataset *dd = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_dataset *d = d38();

    o.struct_size = 1;
    LST_FAILS(ls_strategy_distribute(m.s, d, &o, &dd, &err), LS_INVALID_ARGUMENT, err,
              "INIT");
    LST_FAILS(ls_strategy_distribute(m.s, d, NULL, NULL, &err), LS_INVALID_ARGUMENT, err,
              "NULL");
    LST_CHECK(dd == NULL);
    ls_dataset_release(d);
    in_machine_end(&m);
}

/* ---- ls_strategy_distribute() is collective ---- */

LST_TEST(a_worker_that_distributes_alone_gets_the_names_of_missing_ones)
{
    in_machine m = in_machine_of(1);
    ls_comm_local_options lo = LS_COMM_LOCAL_OPTIONS_INIT;
    ls_comm *comm[2] = {NULL, NULL};
    ls_dataset *d = d38();
    ls_dist_dataset *dd = NULL;
    ls_error err = LS_ERROR_INIT;

    lo.timeout_ms = 20;
    LST_OK(ls_comm_local(2, &lo, comm, NULL));
    // The strategy of worker 0, made without worker 1.
    m.s->workers = ls_comm_retain(comm[0]);
    m.s->replicas = 2;
    ls_comm_at("user.c", 1);
    LST_FAILS(ls_strategy_distribute(m.s, d, NULL, &dd, &err), LS_DEADLINE_EXCEEDED, err,
              "ls_strategy_distribute of rank 0 at user.c:1");
    LST_CHECK(err.rank == 1 && strstr(err.message, "for rank 1") != NULL);
    ls_dataset_release(d);
    in_machine_end(&m);
    ls_comm_release(comm[0]);
    ls_comm_release(comm[1]);
}

/* True on all workers if the call that gave `st` gave the same on every one. */
static bool all_agree(const in_worker *me, ls_status st)
{
    const int64_t mine = st;
    int64_t all[IN_WORKERS] = {0};
    bool same = true;

    LST_OK(ls_comm_all_gather(me->comm, &mine, 1, LS_I64, NULL, all, NULL));
    for (int w = 0; w < me->workers; w++) {
        same = same && all[w] == mine;
    }
    return same;
}

/* Before a call: its n-th allocation fails on one of the workers. After it: none does. */
static int64_t fail_allocation(const in_worker *me, int64_t n)
{
    int64_t counted = 0;

    LST_OK(ls_comm_barrier(me->comm, NULL, NULL));
    if (me->worker == 0) {
        counted = lsi_alloc_fail_at(n);
    }
    LST_OK(ls_comm_broadcast(me->comm, 0, &counted, 1, LS_I64, NULL, NULL));
    return counted;
}

static void distribute_without_memory(in_worker *me)
{
    ls_dataset *d = unseeded();
    ls_dist_dataset *dd = NULL;
    int64_t failures = 0;

    for (int64_t n = 1;; n++) {
        ls_error err = LS_ERROR_INIT;

        (void)fail_allocation(me, n);
        const ls_status st = ls_strategy_distribute(me->s, d, &me->opts, &dd, &err);
        const int64_t counted = fail_allocation(me, 0);

        LST_CHECK(all_agree(me, st));
        LST_CHECK(st == LS_OK || (st == LS_RESOURCE_EXHAUSTED && err.rank >= 0));
        failures += st != LS_OK;
        ls_dist_dataset_release(dd);
        dd = NULL;
        if (st == LS_OK && counted < n) {
            break;
        }
    }
    LST_CHECK(failures > 20);
    ls_dataset_release(d);
}

LST_TEST(without_memory_on_one_worker_all_fail_and_go_on)
{
    static in_worker ws[IN_WORKERS];

    in_run(2, 2, distribute_without_memory, NULL, ws);
}

static ls_dataset *uneven_ends(const ls_input_context *ic, void *user)
{
    (void)user;
    return in_range(ic->pipeline_id == 0 ? 3 : 6);
}

static void step_without_memory(in_worker *me)
{
    ls_dist_dataset *dd = NULL;
    ls_dist_iterator *it = NULL;
    int64_t failures = 0;
    ls_status st = LS_OK;

    me->opts.per_replica_buffer = -1; // no thread that allocates, too
    LST_OK(ls_strategy_distribute_from_function(me->s, uneven_ends, NULL, &me->opts, &dd,
                                                NULL));
    LST_OK(ls_dist_iterate(dd, &it, NULL));
    while (st != LS_OUT_OF_RANGE) {
        st = LS_RESOURCE_EXHAUSTED;
        for (int64_t n = 1; st == LS_RESOURCE_EXHAUSTED; n++) {
            ls_error err = LS_ERROR_INIT;
            ls_value *v = NULL;

            (void)fail_allocation(me, n);
            st = ls_dist_iterator_next(it, &v, &err);
            (void)fail_allocation(me, 0);
            LST_CHECK(all_agree(me, st));
            LST_CHECK(st == LS_OK || st == LS_OUT_OF_RANGE ||
                      (st == LS_RESOURCE_EXHAUSTED && err.rank >= 0));
            failures += st == LS_RESOURCE_EXHAUSTED;
            if (st == LS_OK) {
                in_put_step(&me->text, v, me->replicas);
            }
            ls_value_release(v);
        }
    }
    LST_CHECK(failures > 3);
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);
}

LST_TEST(a_step_without_memory_fails_on_all_and_is_repeated)
{
    static in_worker ws[IN_WORKERS];

    in_run(2, 2, step_without_memory, NULL, ws);
    in_same(ws[0].text.text, "0,1 | 2,0 | 0,0 | ", LST_HERE); // empty scalars are 0
    in_same(ws[1].text.text, "0,1 | 2,3 | 4,5 | ", LST_HERE);
}

static ls_dataset *eight(const ls_input_context *ic, void *user)
{
    (void)ic;
    (void)user;
    return d38();
}

/* Worker 1 asks for what workers cannot have. */
static void distribute_with_other_options(in_worker *me)
{
    const bool from_function = me->arg != NULL, refused = me->worker == 1;
    ls_dataset *d = d38();
    ls_dist_dataset *dd = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_status st;

    me->opts.replication = refused ? LS_PER_REPLICA_INPUT : LS_PER_WORKER;
    ls_comm_at("user.c", 1 + me->worker);
    st = from_function ? ls_strategy_distribute_from_function(me->s, eight, NULL,
                                                              &me->opts, &dd, &err)
                       : ls_strategy_distribute(me->s, d, &me->opts, &dd, &err);
    LST_FAILS(st, LS_UNIMPLEMENTED, err,
              from_function ? "MultiWorkerMirroredStrategy" : "LS_PER_REPLICA_INPUT");
    LST_CHECK(err.kind == LS_KIND_RUNTIME && err.rank == 1 && dd == NULL);
    // The same call fails on both, with the line of the one that failed.
    LST_CHECK(strcmp(err.file, "user.c") == 0 && err.line == 2);

    // The workers go on: nothing is broken.
    me->opts.replication = LS_PER_WORKER;
    LST_OK(ls_strategy_distribute(me->s, d, &me->opts, &dd, &err));
    ls_dist_dataset_release(dd);
    ls_dataset_release(d);
}

LST_TEST(a_dataset_that_one_worker_may_not_distribute_fails_on_all)
{
    static in_worker ws[IN_WORKERS];

    in_run(2, 1, distribute_with_other_options, NULL, ws);
    in_run(2, 1, distribute_with_other_options, &ws, ws);
}

LST_MAIN(LST_CASE(d34_d35_replica_r_of_worker_w_gets_piece_w_plus_w_times_r),
         LST_CASE(d36_to_d40_workers_without_data_keep_step),
         LST_CASE(d41_workers_shuffle_alike),
         LST_CASE(unseeded_shuffles_are_one_order_on_all_workers),
         LST_CASE(shared_seeds_are_another_pair_for_every_shuffle),
         LST_CASE(d44_every_row_is_somewhere_once),
         LST_CASE(a_failure_of_one_worker_fails_all_and_loses_nothing),
         LST_CASE(after_the_end_no_worker_waits_for_others),
         LST_CASE(an_iterator_keeps_the_strategy_and_its_communicator),
         LST_CASE(steps_without_a_common_end_do_not_wait),
         LST_CASE(workers_agree_on_what_they_distribute),
         LST_CASE(the_arguments_are_checked),
         LST_CASE(a_worker_that_distributes_alone_gets_the_names_of_missing_ones),
         LST_CASE(a_dataset_that_one_worker_may_not_distribute_fails_on_all),
         LST_CASE(without_memory_on_one_worker_all_fail_and_go_on),
         LST_CASE(a_step_without_memory_fails_on_all_and_is_repeated))
