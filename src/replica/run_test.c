/*
 * Tests of ls_strategy_run(): order of replicas, meetings, failures, aborts, nesting, and
 * the state left afterwards.
 */
#include "replica_test.h"

#include "os/team.h"
#include "os/thread.h"
#include "replica/run.h"

static ls_value *own_id(ls_context *c, ls_value *args, void *user)
{
    (void)args;
    (void)user;
    return ls_value_of(c, ls_replica_id_tensor(c));
}

LST_TEST(every_replica_runs_once_with_its_own_id)
{
    for (int n = 1; n <= 9; n++) {
        mirror m = mirror_of(n, false);
        ls_value *out = NULL;
        ls_error e = LS_ERROR_INIT;

        LST_OK(ls_strategy_run(m.s, own_id, NULL, NULL, &out, &e));
        for (int i = 0; i < n; i++) {
            LST_CHECK(number_at(out, (size_t)i) == i);
        }
        // one replica's result is not wrapped
        LST_CHECK(ls_value_size(out) == (n == 1 ? 0U : (size_t)n));
        ls_value_release(out);
        mirror_end(&m);
    }
}

/* ---- order ---- */

struct trace {
    atomic_int at;
    int order[64];
};

static void note_event(struct trace *t, int what)
{
    const int at = atomic_fetch_add(&t->at, 1);

    if (at < 64) {
        t->order[at] = what;
    }
}

static ls_value *merge_noted(ls_context *cross, ls_strategy *s, ls_value *args,
                             void *user)
{
    (void)cross;
    (void)s;
    note_event(user, 100);
    return args;
}

static ls_value *note_and_merge(ls_context *c, ls_value *args, void *user)
{
    (void)args;
    note_event(user, ls_replica_id(c));
    (void)ls_merge_call(c, merge_noted, NULL, user);
    note_event(user, 10 + ls_replica_id(c));
    (void)ls_all_reduce(c, LS_SUM, ls_constant_f32(c, 1));
    note_event(user, 20 + ls_replica_id(c));
    return NULL;
}

LST_TEST(a_sequential_run_takes_replicas_in_turn_from_meeting_to_meeting)
{
    static const int want[] = {0, 1, 2, 100, 10, 11, 12, 20, 21, 22};
    mirror m = mirror_of(3, true);
    ls_error e = LS_ERROR_INIT;

    for (int round = 0; round < 20; round++) {
        struct trace t = {0};

        LST_OK(ls_strategy_run(m.s, note_and_merge, NULL, &t, NULL, &e));
        LST_CHECK(atomic_load(&t.at) == (int)LSI_COUNT_OF(want));
        LST_CHECK(memcmp(t.order, want, sizeof want) == 0);
    }
    mirror_end(&m);
}

/* ---- failing ---- */

static ls_value *second_fails(ls_context *c, ls_value *args, void *user)
{
    (void)args;
    (void)user;
    if (ls_replica_id(c) == 1) {
        ls_context_at(c, "user.c", 7);
        (void)ls_context_fail(c, LS_OUT_OF_RANGE, "the batch ended");
        return NULL;
    }
    return ls_value_of(c, ls_all_reduce(c, LS_SUM, ls_constant_f32(c, 1)));
}

LST_TEST(a_failing_replica_releases_the_others_and_its_error_comes_back)
{
    mirror m = mirror_of(3, false);
    ls_value *out = NULL;
    ls_error e = LS_ERROR_INIT;

    LST_FAILS(ls_strategy_run(m.s, second_fails, NULL, NULL, &out, &e), LS_OUT_OF_RANGE,
              e, "the batch ended");
    LST_CHECK(e.rank == 1 && e.line == 7 && e.file[0] != '\0');
    LST_CHECK(out == NULL);
    LST_CHECK(!ls_has_strategy() && !ls_in_cross_replica_context());
    LST_OK(ls_strategy_run(m.s, own_id, NULL, NULL, &out, &e));
    ls_value_release(out);
    mirror_end(&m);
}

/* The communicator of the runs that are not inside others. */
static ls_comm *outer_comm(const mirror *m)
{
    return atomic_load(&m->s->crew->levels[0])->comm[0];
}

static ls_value *meet_twice(ls_context *c, ls_value *args, void *user)
{
    (void)args;
    (void)user;
    (void)ls_all_reduce(c, LS_SUM, ls_constant_f32(c, 1));
    return ls_value_of(c, ls_all_reduce(c, LS_SUM, ls_constant_f32(c, 2)));
}

/* One replica fails (kind 0 to 2), or makes fewer calls than the others (3 to 5). */
static ls_value *go_wrong(ls_context *c, ls_value *args, void *user)
{
    const int kind = *(const int *)user;
    const bool odd = ls_replica_id(c) == kind % 3;

    if (kind < 3 && odd) {
        (void)ls_context_fail(c, LS_DATA_LOSS, "replica %d fails", ls_replica_id(c));
    }
    return odd ? NULL : meet_twice(c, args, NULL);
}

LST_TEST(a_run_that_went_well_leaves_its_group_whole_and_no_run_disturbs_the_next)
{
    mirror m = mirror_of(3, false);
    ls_value *out = NULL;
    ls_error e = LS_ERROR_INIT;

    for (int kind = 0; kind < 9; kind++) {
        for (int i = 0; i < 3; i++) {
            LST_OK(ls_strategy_run(m.s, meet_twice, NULL, NULL, &out, &e));
            LST_CHECK(number_at(out, 2) == 6);
            LST_CHECK(!lsi_comm_broken(outer_comm(&m)));
            ls_value_release(out);
        }
        if (kind >= 6) { // an abort between runs is forgotten
            ls_strategy_abort(m.s);
            LST_CHECK(lsi_comm_broken(outer_comm(&m)));
        } else {
            LST_FAILS(ls_strategy_run(m.s, go_wrong, NULL, &kind, NULL, &e),
                      kind < 3 ? LS_DATA_LOSS : LS_FAILED_PRECONDITION, e,
                      kind < 3 ? "fails" : "has ended while others wait");
            LST_CHECK(e.rank == kind % 3);
        }
    }
    mirror_end(&m);
}

static ls_value *first_alone(ls_context *c, ls_value *args, void *user)
{
    (void)args;
    (void)user;
    return ls_replica_id(c) == 0 ? ls_merge_call(c, merge_noted, NULL, user) : NULL;
}

LST_TEST(a_replica_that_ends_while_others_wait_is_an_error)
{
    struct trace t = {0};
    mirror m = mirror_of(2, false);
    ls_error e = LS_ERROR_INIT;

    for (int round = 0; round < 100; round++) {
        LST_FAILS(ls_strategy_run(m.s, first_alone, NULL, &t, NULL, &e),
                  LS_FAILED_PRECONDITION, e, "different number of merge_call");
    }
    mirror_end(&m);
}

static ls_value *different_calls(ls_context *c, ls_value *args, void *user)
{
    ls_tensor *x = ls_constant_f32(c, 1);

    (void)args;
    (void)user;
    if (ls_replica_id(c) == 0) {
        ls_context_at(c, "zero.c", 3);
        return ls_value_of(c, ls_all_reduce(c, LS_SUM, x));
    }
    ls_context_at(c, "one.c", 4);
    return ls_merge_call(c, merge_noted, NULL, user);
}

LST_TEST(replicas_that_make_different_calls_get_both_sites)
{
    struct trace t = {0};
    mirror m = mirror_of(2, false);
    ls_error e = LS_ERROR_INIT;

    LST_FAILS(ls_strategy_run(m.s, different_calls, NULL, &t, NULL, &e), LS_INTERNAL, e,
              "zero.c:3");
    LST_CHECK(strstr(e.message, "one.c:4") != NULL);
    mirror_end(&m);
}

static ls_value *failing_merge(ls_context *cross, ls_strategy *s, ls_value *args,
                               void *user)
{
    (void)s;
    (void)args;
    (void)user;
    (void)ls_context_fail(cross, LS_DATA_LOSS, "cannot be merged");
    return NULL;
}

static ls_value *merges_badly(ls_context *c, ls_value *args, void *user)
{
    (void)args;
    return ls_merge_call(c, failing_merge, NULL, user);
}

LST_TEST(a_failing_merge_function_fails_the_run)
{
    mirror m = mirror_of(2, false);
    ls_error e = LS_ERROR_INIT;

    LST_FAILS(ls_strategy_run(m.s, merges_badly, NULL, NULL, NULL, &e), LS_DATA_LOSS, e,
              "cannot be merged");
    mirror_end(&m);
}

/* ---- aborting ---- */

struct stuck {
    ls_strategy *s;
    atomic_bool inside;
};

static ls_value *loops_until_failed(ls_context *c, ls_value *args, void *user)
{
    struct stuck *k = user;

    (void)args;
    atomic_store(&k->inside, true);
    while (ls_context_status(c, NULL) == LS_OK) { // until the abort ends it
        (void)ls_add(c, ls_constant_f32(c, 1), ls_constant_f32(c, 2));
    }
    return NULL;
}

static void abort_later(void *arg)
{
    struct stuck *k = arg;

    while (!atomic_load(&k->inside)) {
        lsi_yield();
    }
    ls_strategy_abort(k->s);
}

LST_TEST(an_abort_from_another_thread_ends_a_run_that_would_not)
{
    mirror m = mirror_of(2, false);
    struct stuck k = {m.s, false};
    lsi_thread t;
    ls_error e = LS_ERROR_INIT;

    LST_OK(lsi_thread_start(&t, abort_later, &k, &e, "abort"));
    LST_FAILS(ls_strategy_run(m.s, loops_until_failed, NULL, &k, NULL, &e), LS_ABORTED, e,
              "abort");
    lsi_thread_join(&t);
    LST_OK(ls_strategy_run(m.s, own_id, NULL, NULL, NULL, &e)); // the next run works
    mirror_end(&m);
}

static ls_value *aborts_merge(ls_context *cross, ls_strategy *s, ls_value *args,
                              void *user)
{
    ls_error e = LS_ERROR_INIT;

    (void)args;
    (void)user;
    ls_strategy_abort(s);
    LST_FAILS(ls_strategy_run(s, own_id, NULL, NULL, NULL, &e), LS_ABORTED, e, "abort");
    return ls_value_of(cross, ls_constant_f32(cross, 1)); // no replica takes it
}

static ls_value *merges_and_aborts(ls_context *c, ls_value *args, void *user)
{
    (void)args;
    return ls_merge_call(c, aborts_merge, NULL, user);
}

LST_TEST(an_abort_in_a_merge_function_ends_the_run_and_keeps_runs_inside_from_starting)
{
    mirror m = mirror_of(3, false);
    ls_error e = LS_ERROR_INIT;

    for (int i = 0; i < 100; i++) {
        LST_FAILS(ls_strategy_run(m.s, merges_and_aborts, NULL, NULL, NULL, &e),
                  LS_ABORTED, e, "abort");
    }
    mirror_end(&m);
}

struct harried {
    ls_strategy *s;
    atomic_bool stop;
};

static void aborts_often(void *arg)
{
    struct harried *h = arg;

    while (!atomic_load(&h->stop)) {
        ls_strategy_abort(h->s);
        lsi_yield();
    }
}

static ls_value *merges_and_sums(ls_context *c, ls_value *args, void *user)
{
    struct trace t = {0};
    ls_tensor *x = ls_constant_f32(c, 1);
    ls_value *mine = ls_value_of(c, x);

    (void)args;
    (void)user;
    for (int i = 0; i < 3; i++) {
        (void)ls_merge_call(c, merge_noted, mine, &t);
        x = ls_all_gather(c, ls_reshape(c, ls_all_reduce(c, LS_SUM, x), LS_SHAPE(1)), 0);
        x = ls_mean(c, x, NULL, 0, false);
    }
    return ls_value_of(c, x);
}

LST_TEST(an_abort_may_come_at_any_time)
{
    for (int n = 2; n <= 4; n++) {
        mirror m = mirror_of(n, n == 4);
        struct harried h = {m.s, false};
        lsi_thread t;
        ls_error e = LS_ERROR_INIT;

        LST_OK(lsi_thread_start(&t, aborts_often, &h, &e, "abort"));
        for (int i = 0; i < 300; i++) {
            const ls_status st =
                ls_strategy_run(m.s, merges_and_sums, NULL, NULL, NULL, &e);

            LST_CHECK(st == LS_OK || st == LS_ABORTED);
        }
        atomic_store(&h.stop, true);
        lsi_thread_join(&t);
        LST_OK(ls_strategy_run(m.s, merges_and_sums, NULL, NULL, NULL, &e));
        mirror_end(&m);
    }
}

/* ---- nesting, threads ---- */

static ls_value *runs_inside(ls_context *cross, ls_strategy *s, ls_value *args,
                             void *user)
{
    int *depth = user;
    ls_value *out = NULL;
    ls_error e = LS_ERROR_INIT;

    (void)args;
    LST_OK(ls_strategy_run(s, own_id, NULL, NULL, &out, &e));
    LST_CHECK(number_at(out, 1) == 1);
    (*depth)++;
    return ls_value_adopt(cross, out);
}

static ls_value *merges_and_nests(ls_context *c, ls_value *args, void *user)
{
    (void)args;
    return ls_merge_call(c, runs_inside, NULL, user);
}

LST_TEST(a_merge_function_may_run_the_replicas_again)
{
    mirror m = mirror_of(4, false);
    int depth = 0;
    ls_value *out = NULL;
    ls_error e = LS_ERROR_INIT;

    for (int i = 0; i < 50; i++) {
        LST_OK(ls_strategy_run(m.s, merges_and_nests, NULL, &depth, &out, &e));
        LST_CHECK(number_at(out, 3) == 3);
        ls_value_release(out);
    }
    LST_CHECK(depth == 50);
    mirror_end(&m);
}

LST_TEST(a_merge_function_may_run_the_replicas_again_where_they_take_turns)
{
    mirror m = mirror_of(3, true);
    int depth = 0;
    ls_value *out = NULL;
    ls_error e = LS_ERROR_INIT;

    for (int i = 0; i < 50; i++) {
        LST_OK(ls_strategy_run(m.s, merges_and_nests, NULL, &depth, &out, &e));
        LST_CHECK(number_at(out, 2) == 2);
        ls_value_release(out);
    }
    LST_CHECK(depth == 50);
    mirror_end(&m);
}

static ls_value *without_arguments(ls_context *c, ls_value *args, void *user)
{
    int *calls = user;

    LST_CHECK(args == NULL);
    if (ls_replica_id(c) == 0) {
        (*calls)++;
    }
    return own_id(c, args, NULL);
}

LST_TEST(steps_without_an_iterator_run_the_function_without_arguments)
{
    mirror m = mirror_of(2, false);
    int calls = 0;
    ls_value *out = NULL;
    ls_error e = LS_ERROR_INIT;

    LST_OK(ls_strategy_run_steps(m.s, without_arguments, &calls, NULL, NULL, 3, NULL,
                                 &out, &e));
    LST_CHECK(calls == 3 && number_at(out, 1) == 1);
    ls_value_release(out);
    mirror_end(&m);
}

struct together {
    ls_strategy *s;
    int bad;
};

static void runs_often(void *arg)
{
    struct together *t = arg;

    for (int i = 0; i < 50; i++) {
        ls_value *out = NULL;
        ls_error e = LS_ERROR_INIT;

        if (ls_strategy_run(t->s, own_id, NULL, NULL, &out, &e) != LS_OK ||
            number_at(out, 1) != 1 || ls_has_strategy()) {
            t->bad++;
        }
        ls_value_release(out);
    }
}

LST_TEST(threads_that_run_one_strategy_take_turns)
{
    mirror m = mirror_of(2, false);
    struct together t[3] = {{m.s, 0}, {m.s, 0}, {m.s, 0}};
    lsi_thread threads[3];
    ls_error e = LS_ERROR_INIT;

    for (int i = 0; i < 3; i++) {
        LST_OK(lsi_thread_start(&threads[i], runs_often, &t[i], &e, "run-%d", i));
    }
    for (int i = 0; i < 3; i++) {
        lsi_thread_join(&threads[i]);
        LST_CHECK(t[i].bad == 0);
    }
    mirror_end(&m);
}

static int64_t spin_of(int replicas, int spin_us)
{
    ls_runtime_options ro = LS_RUNTIME_OPTIONS_INIT;
    ls_strategy_options so = LS_STRATEGY_OPTIONS_INIT;
    ls_strategy *s = NULL;
    ls_error e = LS_ERROR_INIT;

    ro.logical_cpus = replicas;
    LST_OK(ls_runtime_create(&ro, &so.runtime, &e));
    so.spin_us = spin_us;
    LST_OK(ls_mirrored_create(NULL, &so, &s, &e));
    const int64_t spin = s->crew->spin_ns;
    ls_strategy_release(s);
    ls_runtime_release(so.runtime);
    return spin;
}

LST_TEST(replicas_spin_where_each_has_a_core_or_the_program_says_so)
{
    const int cores = LSI_MIN(lsi_affinity_get(NULL, 0), lsi_cpu_quota());

    LST_CHECK(spin_of(cores + 1, 0) == 0);
    LST_CHECK(spin_of(cores + 1, 7) == 7000);
    LST_CHECK(spin_of(2, -1) == 0);
    LST_CHECK(cores < 2 || spin_of(2, 0) == (int64_t)lsi_team_spin_us() * 1000);
}

/* ---- random failures ---- */

struct chance {
    uint64_t seed;
    int replicas;
};

static ls_value *may_fail(ls_context *c, ls_value *args, void *user)
{
    const struct chance *k = user;
    uint64_t state = k->seed;
    const int victim = (int)(lst_random(&state) % (uint64_t)(k->replicas + 1));
    const int when = (int)(lst_random(&state) % 4);
    ls_tensor *x = ls_constant_f32(c, 1);

    (void)args;
    for (int i = 0; i < 3; i++) {
        if (ls_replica_id(c) == victim && when == i) {
            (void)ls_context_fail(c, LS_DATA_LOSS, "struck");
        }
        x = ls_all_reduce(c, LS_MEAN, x);
        if (i == 1) {
            (void)ls_merge_call(c, merge_noted, NULL, &(struct trace){0});
        }
    }
    if (ls_replica_id(c) == victim && when == 3) {
        (void)ls_context_fail(c, LS_DATA_LOSS, "struck");
    }
    return ls_value_of(c, x);
}

LST_TEST(a_thousand_runs_that_fail_at_random_end_and_leave_nothing)
{
    mirror m = mirror_of(3, false);
    int failed = 0;

    for (uint64_t i = 0; i < 1000; i++) {
        struct chance k = {i + 1, 3};
        ls_value *out = NULL;
        ls_error e = LS_ERROR_INIT;
        const ls_status st = ls_strategy_run(m.s, may_fail, NULL, &k, &out, &e);

        LST_CHECK(st == LS_OK || st == LS_DATA_LOSS);
        LST_CHECK(st != LS_OK || number_at(out, 2) == 1);
        failed += st != LS_OK;
        ls_value_release(out);
    }
    LST_CHECK(failed > 500 && failed < 950);
    mirror_end(&m);
}

LST_MAIN(
    LST_CASE(every_replica_runs_once_with_its_own_id),
    LST_CASE(a_sequential_run_takes_replicas_in_turn_from_meeting_to_meeting),
    LST_CASE(a_failing_replica_releases_the_others_and_its_error_comes_back),
    LST_CASE(a_run_that_went_well_leaves_its_group_whole_and_no_run_disturbs_the_next),
    LST_CASE(a_replica_that_ends_while_others_wait_is_an_error),
    LST_CASE(replicas_that_make_different_calls_get_both_sites),
    LST_CASE(a_failing_merge_function_fails_the_run),
    LST_CASE(an_abort_from_another_thread_ends_a_run_that_would_not),
    LST_CASE(
        an_abort_in_a_merge_function_ends_the_run_and_keeps_runs_inside_from_starting),
    LST_CASE(an_abort_may_come_at_any_time),
    LST_CASE(a_merge_function_may_run_the_replicas_again),
    LST_CASE(a_merge_function_may_run_the_replicas_again_where_they_take_turns),
    LST_CASE(steps_without_an_iterator_run_the_function_without_arguments),
    LST_CASE(threads_that_run_one_strategy_take_turns),
    LST_CASE(replicas_spin_where_each_has_a_core_or_the_program_says_so),
    LST_CASE(a_thousand_runs_that_fail_at_random_end_and_leave_nothing))
