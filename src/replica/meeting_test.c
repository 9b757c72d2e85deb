/* Tests of meetings: close() does not return while others read what a replica shows. */
#include "replica_test.h"

#include "os/thread.h"
#include "replica/replica.h"

enum { MANY = 1000 };

struct scene {
    ls_strategy *s;
    bool fails, aborts; /* what replica 1 does between open and close */
    atomic_int leaving; /* replicas that are about to close the meeting */
    atomic_int left;
    atomic_int seen; /* the sum of all numbers read */
};

/* Replica 0 reads until the others are about to close, and for a while after that. */
static void read_long(struct scene *k, const lsi_meeting *m)
{
    while (atomic_load(&k->leaving) < m->n - 1) {
        lsi_yield();
    }
    for (int i = 0; i < MANY; i++) {
        LST_CHECK(atomic_load(&k->left) == 0);
        lsi_yield();
    }
}

static ls_value *show_and_leave(ls_context *c, ls_value *args, void *user)
{
    struct scene *k = user;
    const int id = ls_replica_id(c);
    int mine = id + 1; // on this stack
    lsi_meeting m;

    (void)args;
    if (lsi_meeting_open(c, "test", 7, &mine, LSI_UNTIL_CLOSE, &m)) {
        if (id == 1 && k->fails) {
            (void)ls_context_fail(c, LS_DATA_LOSS, "failed while reading");
        }
        if (id == 1 && k->aborts) {
            ls_strategy_abort(k->s);
        }
        if (id == 0) {
            read_long(k, &m);
        }
        for (int r = 0; r < m.n; r++) {
            (void)atomic_fetch_add(&k->seen, *(const int *)lsi_meeting_peer(&m, r));
        }
    }
    if (id != 0) {
        (void)atomic_fetch_add(&k->leaving, 1);
    }
    lsi_meeting_close(&m);
    (void)atomic_fetch_add(&k->left, 1);
    return NULL;
}

static const int sizes[] = {2, 3, 17};

static void read_with(bool fails, bool aborts, ls_status want)
{
    for (size_t i = 0; i < LSI_COUNT_OF(sizes); i++) {
        const int n = sizes[i];
        mirror m = mirror_of(n, false);
        struct scene k = {.s = m.s, .fails = fails, .aborts = aborts};
        ls_error e = LS_ERROR_INIT;

        LST_CHECK(ls_strategy_run(m.s, show_and_leave, NULL, &k, NULL, &e) == want);
        LST_CHECK(e.code == want);
        LST_CHECK(atomic_load(&k.left) == n);
        LST_CHECK(atomic_load(&k.seen) == n * n * (n + 1) / 2);
        mirror_end(&m);
    }
}

LST_TEST(no_close_returns_before_all_have_read)
{
    read_with(false, false, LS_OK);
}

LST_TEST(a_replica_that_fails_while_it_reads_closes_with_the_others)
{
    read_with(true, false, LS_DATA_LOSS);
}

LST_TEST(no_close_of_an_aborted_run_returns_while_others_read)
{
    read_with(false, true, LS_ABORTED);
}

/* ---- memory ---- */

static ls_value *shows_without_memory(ls_context *c, ls_value *args, void *user)
{
    struct scene *k = user;
    lsi_meeting m;
    const bool first = ls_replica_id(c) == 0;

    (void)args;
    if (first) { // the others are not in a call yet
        (void)lsi_alloc_fail_at(1);
    }
    if (lsi_meeting_open(c, "test", 7, &m, LSI_UNTIL_CLOSE, &m)) {
        (void)atomic_fetch_add(&k->seen, 1);
    }
    if (first) {
        (void)lsi_alloc_fail_at(0);
        atomic_store(&k->leaving, 1);
    }
    lsi_meeting_close(&m);
    return NULL;
}

/* Inside of four meetings: deeper ones need memory. */
static ls_value *first_shows_without_memory(ls_context *c, ls_value *args, void *user)
{
    enum { DEEP = 4 };
    struct scene *k = user;
    lsi_meeting outer[DEEP];

    for (int i = 0; i < DEEP; i++) {
        (void)lsi_meeting_open(c, "outer", 0, k, LSI_UNTIL_RUN_ENDS, &outer[i]);
    }
    while (ls_replica_id(c) != 0 && atomic_load(&k->leaving) == 0) {
        lsi_yield();
    }
    (void)shows_without_memory(c, args, user);
    for (int i = DEEP - 1; i >= 0; i--) {
        lsi_meeting_close(&outer[i]);
    }
    return NULL;
}

static ls_value *does_not_meet(ls_context *c, ls_value *args, void *user)
{
    (void)c;
    (void)args;
    (void)user;
    return NULL;
}

LST_TEST(a_replica_without_memory_to_meet_shows_nothing_and_fails_the_run)
{
    mirror m = mirror_of(3, false);
    struct scene k = {.s = m.s};
    ls_error e = LS_ERROR_INIT;

    LST_OK(ls_strategy_run(m.s, does_not_meet, NULL, &k, NULL, &e)); // starts the threads
    k = (struct scene){.s = m.s};
    LST_FAILS(ls_strategy_run(m.s, first_shows_without_memory, NULL, &k, NULL, &e),
              LS_RESOURCE_EXHAUSTED, e, "out of memory for test");
    LST_CHECK(atomic_load(&k.seen) == 0 && e.rank == 0);
    mirror_end(&m);
}

LST_TEST(a_meeting_that_is_not_deep_needs_no_memory)
{
    mirror m = mirror_of(3, false);
    struct scene k = {.s = m.s};
    ls_error e = LS_ERROR_INIT;

    LST_OK(ls_strategy_run(m.s, does_not_meet, NULL, &k, NULL, &e));
    k = (struct scene){.s = m.s};
    LST_OK(ls_strategy_run(m.s, shows_without_memory, NULL, &k, NULL, &e));
    LST_CHECK(atomic_load(&k.seen) == 3);
    mirror_end(&m);
}

/* ---- turns ---- */

static ls_value *aborts_in_turn(ls_context *c, ls_value *args, void *user)
{
    struct scene *k = user;
    int mine = 1;
    lsi_meeting m;

    (void)args;
    if (lsi_meeting_open(c, "test", 7, &mine, LSI_UNTIL_CLOSE, &m)) {
        if (ls_replica_id(c) == atomic_load(&k->seen)) {
            ls_strategy_abort(k->s);
        }
    }
    lsi_meeting_close(&m);
    (void)atomic_fetch_add(&k->left, 1);
    return NULL;
}

LST_TEST(a_sequential_run_that_is_aborted_in_a_meeting_ends)
{
    mirror m = mirror_of(3, true);

    for (int who = 0; who < 3; who++) {
        struct scene k = {.s = m.s, .seen = who};
        ls_error e = LS_ERROR_INIT;

        LST_FAILS(ls_strategy_run(m.s, aborts_in_turn, NULL, &k, NULL, &e), LS_ABORTED, e,
                  "abort");
        LST_CHECK(atomic_load(&k.left) == 3);
    }
    mirror_end(&m);
}

/* ---- meetings inside of meetings ---- */

static ls_value *nest_meetings(ls_context *c, ls_value *args, void *user)
{
    struct scene *k = user;
    int outer = 1, inner = 10;
    lsi_meeting a, b;

    (void)args;
    if (lsi_meeting_open(c, "outer", 1, &outer, LSI_UNTIL_CLOSE, &a)) {
        if (lsi_meeting_open(c, "inner", 2, &inner, LSI_UNTIL_CLOSE, &b)) {
            if (ls_replica_id(c) == atomic_load(&k->leaving)) {
                ls_strategy_abort(k->s);
            }
            for (int r = 0; r < b.n; r++) {
                (void)atomic_fetch_add(&k->seen, *(const int *)lsi_meeting_peer(&b, r));
            }
        }
        lsi_meeting_close(&b);
        for (int r = 0; r < a.n; r++) {
            (void)atomic_fetch_add(&k->seen, *(const int *)lsi_meeting_peer(&a, r));
        }
    }
    lsi_meeting_close(&a);
    return NULL;
}

LST_TEST(meetings_nest_and_an_abort_ends_them)
{
    mirror m = mirror_of(3, false);

    for (int round = 0; round < 200; round++) {
        struct scene k = {.s = m.s, .leaving = round % 4};
        ls_error e = LS_ERROR_INIT;
        const ls_status st = ls_strategy_run(m.s, nest_meetings, NULL, &k, NULL, &e);

        LST_CHECK(st == (round % 4 < 3 ? LS_ABORTED : LS_OK));
        LST_CHECK(atomic_load(&k.seen) == 99);
    }
    mirror_end(&m);
}

LST_MAIN(LST_CASE(no_close_returns_before_all_have_read),
         LST_CASE(a_replica_that_fails_while_it_reads_closes_with_the_others),
         LST_CASE(no_close_of_an_aborted_run_returns_while_others_read),
         LST_CASE(a_replica_without_memory_to_meet_shows_nothing_and_fails_the_run),
         LST_CASE(a_meeting_that_is_not_deep_needs_no_memory),
         LST_CASE(a_sequential_run_that_is_aborted_in_a_meeting_ends),
         LST_CASE(meetings_nest_and_an_abort_ends_them))
