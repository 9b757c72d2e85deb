/*
 * Tests of agreements: all local peers go on or none does, with the same failure,
 * whenever an abort, a deadline or the end of a replica comes.
 */
#include "replica_test.h"

#include "os/clock.h"
#include "os/thread.h"
#include "replica/run.h"

enum { MOST = 5 };

typedef enum trouble {
    NONE,
    FAILS,              /* a replica keeps a failure aside */
    ALL_FAIL,           /* every replica does */
    DECIDES_NO,         /* decide() fails */
    ENDS,               /* a replica ends without a word */
    ABORTS_BEFORE,      /* a replica aborts the run before it agrees */
    ABORTS_IN_DECISION, /* while replica 0 decides */
    ABORTS_AFTER,       /* while the others are before the barrier */
    IS_LATE             /* a replica comes after the deadline of the others */
} trouble;

struct scene {
    ls_strategy *s;
    int n, who; /* the replica that makes the trouble */
    trouble what;
    atomic_int decided; /* calls of decide() */
    atomic_int done;    /* replicas that have come before the barrier */
    bool went[MOST];
    ls_error seen[MOST];
    bool whole[MOST]; /* the group was not broken when the agreement had ended */
    atomic_int out;   /* replicas that have looked */
};

static ls_status decide(void *arg, const ls_error *failed, ls_error *err)
{
    struct scene *k = arg;

    (void)atomic_fetch_add(&k->decided, 1);
    if (k->what == ABORTS_IN_DECISION) {
        ls_strategy_abort(k->s);
    }
    if (failed != NULL) {
        return lsi_fail_again(err, failed);
    }
    return k->what == DECIDES_NO ? lsi_fail(err, LS_DATA_LOSS, -1, "decided against it")
                                 : LS_OK;
}

/* What all replicas do if they go on: what one does is seen by all after the barrier. */
static void go_on(ls_context *c, struct scene *k)
{
    if (k->what == ABORTS_AFTER && ls_replica_id(c) == k->who) {
        ls_strategy_abort(k->s);
    }
    (void)atomic_fetch_add(&k->done, 1);
    lsi_barrier(c);
    LST_CHECK(atomic_load(&k->done) == k->n);
    lsi_barrier(c);
}

static void make_trouble(ls_context *c, const struct scene *k)
{
    const int id = ls_replica_id(c);

    if (k->what == ALL_FAIL || (k->what == FAILS && id == k->who)) {
        (void)ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "replica %d has failed", id);
        LST_CHECK(lsi_aside_keep(c) && !lsi_failed(c));
        (void)ls_context_fail(c, LS_INTERNAL, "not the first failure");
    }
    (void)lsi_aside_keep(c);
    if (k->what == ABORTS_BEFORE && id == k->who) {
        ls_strategy_abort(k->s);
    }
    if (k->what == IS_LATE && id == k->who) {
        const lsi_deadline patience = lsi_deadline_in_ms(60000);

        while (!lsi_comm_broken(lsi_replica_of(c)->local) &&
               !lsi_deadline_passed(patience)) {
            lsi_yield();
        }
    }
}

/* Before a replica ends, which breaks the group. In turn, the first has ended already. */
static void look_at_group(ls_context *c, struct scene *k)
{
    const bool in_turn = lsi_replica_of(c)->run->sequential;

    k->whole[ls_replica_id(c)] = in_turn || !lsi_comm_broken(lsi_replica_of(c)->local);
    (void)atomic_fetch_add(&k->out, 1);
    while (k->what <= DECIDES_NO && !in_turn && atomic_load(&k->out) < k->n) {
        lsi_yield();
    }
}

static ls_value *agree_once(ls_context *c, ls_value *args, void *user)
{
    struct scene *k = user;
    const int id = ls_replica_id(c);

    (void)args;
    if (k->what == ENDS && id == k->who) {
        return NULL;
    }
    lsi_aside_clear(c);
    make_trouble(c, k);
    k->went[id] = lsi_agree(c, "test", decide, k);
    if (k->went[id]) {
        go_on(c, k);
    }
    (void)ls_context_status(c, &k->seen[id]);
    look_at_group(c, k);
    return NULL;
}

static void check_scene(const struct scene *k, ls_status st, const ls_error *e)
{
    static const ls_status wanted[] = {LS_OK,
                                       LS_RESOURCE_EXHAUSTED,
                                       LS_RESOURCE_EXHAUSTED,
                                       LS_DATA_LOSS,
                                       LS_FAILED_PRECONDITION,
                                       LS_ABORTED,
                                       LS_OK,
                                       LS_OK,
                                       LS_DEADLINE_EXCEEDED};
    const bool goes = wanted[k->what] == LS_OK;
    const bool reached = k->what <= DECIDES_NO || goes;

    LST_CHECK(st == wanted[k->what]);
    LST_CHECK(atomic_load(&k->decided) == (reached ? 1 : 0));
    for (int r = 0; r < k->n; r++) {
        if (k->what == ENDS && r == k->who) {
            continue;
        }
        LST_CHECK(k->went[r] == goes);
        LST_CHECK(k->seen[r].code == wanted[k->what]);
        if (k->what <= DECIDES_NO) {
            LST_CHECK(k->whole[r]);
            LST_CHECK(strcmp(k->seen[r].message, k->seen[0].message) == 0);
        }
    }
    if (k->what == FAILS || k->what == ALL_FAIL) {
        LST_CHECK(e->rank == (k->what == FAILS ? k->who : 0));
        LST_CHECK(strstr(e->message, "has failed") != NULL);
    }
}

static void play(const mirror *m, int n, trouble what, int who, bool sequential)
{
    struct scene k = {.s = m->s, .n = n, .what = what, .who = who};
    ls_run_options opts = LS_RUN_OPTIONS_INIT;
    ls_error e = LS_ERROR_INIT;
    ls_status st;

    for (int r = 0; r < MOST; r++) {
        k.seen[r] = (ls_error)LS_ERROR_INIT;
    }
    opts.sequential = sequential;
    st = ls_strategy_run_with(m->s, agree_once, NULL, &k, &opts, NULL, &e);
    check_scene(&k, st, &e);
}

LST_TEST(all_go_on_or_none_whatever_happens_on_any_replica)
{
    for (int n = 2; n <= MOST; n += n) {
        mirror m = mirror_of(n, false);

        for (int what = NONE; what < IS_LATE; what++) {
            for (int who = 0; who < n; who++) {
                play(&m, n, (trouble)what, who, false);
                play(&m, n, (trouble)what, who, true);
                play(&m, n, NONE, 0, false); // the next one works
            }
        }
        mirror_end(&m);
    }
}

LST_TEST(one_replica_agrees_with_itself)
{
    static const trouble some[] = {NONE, FAILS, DECIDES_NO, ABORTS_BEFORE};
    mirror m = mirror_of(1, false);

    for (size_t i = 0; i < LSI_COUNT_OF(some); i++) {
        play(&m, 1, some[i], 0, false);
    }
    mirror_end(&m);
}

LST_TEST(a_deadline_stops_all)
{
    ls_runtime_options ro = LS_RUNTIME_OPTIONS_INIT;
    ls_communication_options co = LS_COMMUNICATION_OPTIONS_INIT;
    ls_strategy_options so = LS_STRATEGY_OPTIONS_INIT;
    mirror m = {NULL, NULL};

    ro.logical_cpus = 3;
    co.timeout_seconds = 0.02;
    LST_OK(ls_runtime_create(&ro, &m.rt, NULL));
    so.runtime = m.rt;
    so.communication = &co;
    LST_OK(ls_mirrored_create(NULL, &so, &m.s, NULL));
    for (int who = 0; who < 3; who++) {
        play(&m, 3, IS_LATE, who, false);
    }
    mirror_end(&m);
}

/* ---- many in one run ---- */

struct many {
    int rounds;
    atomic_int count;
};

static ls_status decide_yes(void *arg, const ls_error *failed, ls_error *err)
{
    (void)arg;
    return failed != NULL ? lsi_fail_again(err, failed) : LS_OK;
}

static ls_value *agree_often(ls_context *c, ls_value *args, void *user)
{
    struct many *k = user;
    const int n = lsi_local_peers(c);

    (void)args;
    for (int i = 0; i < k->rounds; i++) {
        const bool fails = i % 3 == 1 && ls_replica_id(c) == i % n;

        lsi_aside_clear(c);
        if (fails) {
            (void)ls_context_fail(c, LS_DATA_LOSS, "round %d", i);
            (void)lsi_aside_keep(c);
        }
        if (lsi_agree(c, "test", decide_yes, k)) {
            (void)atomic_fetch_add(&k->count, 1);
            lsi_barrier(c);
            LST_CHECK(atomic_load(&k->count) >= n);
        } else {
            LST_CHECK(i % 3 == 1 && strncmp(c->error.message, "round", 5) == 0);
            LST_CHECK(ls_context_finish(c, NULL) == LS_DATA_LOSS); // forgets it
        }
    }
    return NULL;
}

LST_TEST(after_a_failure_that_was_kept_aside_the_run_goes_on)
{
    for (int n = 1; n <= 3; n++) {
        for (int sequential = 0; sequential < 2; sequential++) {
            mirror m = mirror_of(n, sequential == 1);
            struct many k = {.rounds = 300};

            LST_OK(ls_strategy_run(m.s, agree_often, NULL, &k, NULL, NULL));
            LST_CHECK(atomic_load(&k.count) == 200 * n);
            mirror_end(&m);
        }
    }
}

/* ---- an abort from another thread, at any time ---- */

struct aborter {
    ls_strategy *s;
    atomic_int at; /* how long it waits; 0: no run is going on */
    atomic_bool stop;
};

static void abort_at_times(void *arg)
{
    struct aborter *a = arg;

    while (!atomic_load(&a->stop)) {
        const int at = atomic_exchange(&a->at, 0);

        if (at == 0) {
            lsi_yield();
            continue;
        }
        for (int i = 1; i < at; i++) {
            lsi_pause();
        }
        ls_strategy_abort(a->s);
    }
}

struct race {
    struct aborter *aborter;
    int delay;
    bool went[MOST];
    atomic_int done;
};

static ls_value *agree_while_aborted(ls_context *c, ls_value *args, void *user)
{
    struct race *k = user;
    const int id = ls_replica_id(c), n = lsi_local_peers(c);

    (void)args;
    if (id == 0) {
        atomic_store(&k->aborter->at, 1 + k->delay);
    }
    lsi_aside_clear(c);
    if (!lsi_meeting_wait(c, "test", 1)) {
        (void)lsi_aside_keep(c);
    }
    k->went[id] = lsi_agree(c, "test", decide_yes, k);
    if (k->went[id]) {
        (void)atomic_fetch_add(&k->done, 1);
        lsi_barrier(c);
        LST_CHECK(atomic_load(&k->done) == n);
    }
    return NULL;
}

LST_TEST(an_abort_at_any_time_stops_all_or_none)
{
    enum { ROUNDS = 400 };
    uint64_t random = 3;

    for (int n = 2; n <= 3; n++) {
        mirror m = mirror_of(n, false);
        struct aborter a = {.s = m.s};
        lsi_thread thread;

        LST_OK(lsi_thread_start(&thread, abort_at_times, &a, NULL, "aborter"));
        for (int i = 0; i < ROUNDS; i++) {
            struct race k = {.aborter = &a, .delay = (int)(lst_random(&random) % 3000)};
            const ls_status st =
                ls_strategy_run(m.s, agree_while_aborted, NULL, &k, NULL, NULL);

            LST_CHECK(st == LS_OK || st == LS_ABORTED);
            for (int r = 1; r < n; r++) {
                LST_CHECK(k.went[r] == k.went[0]);
            }
        }
        atomic_store(&a.stop, true);
        lsi_thread_join(&thread);
        mirror_end(&m);
    }
}

LST_MAIN(LST_CASE(all_go_on_or_none_whatever_happens_on_any_replica),
         LST_CASE(one_replica_agrees_with_itself), LST_CASE(a_deadline_stops_all),
         LST_CASE(after_a_failure_that_was_kept_aside_the_run_goes_on),
         LST_CASE(an_abort_at_any_time_stops_all_or_none))
