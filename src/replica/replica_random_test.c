/*
 * Tests of random numbers in replicas, merge functions and update functions; and of the
 * step's tensors for the leaves of values, when there are many.
 */
#include "replica_test.h"

#include "op/op.h"
#include "os/clock.h"

enum { N = 64, MOST = 4, RUNS = 20 };

/* The numbers that the replicas drew, N each. */
struct drawn {
    float x[MOST][N];
    bool late; /* replica 0 draws last */
};

static void keep_numbers(ls_context *c, ls_tensor *t, float *out)
{
    ls_error err = LS_ERROR_INIT;

    if (t != NULL && ls_tensor_read(t, out, N * sizeof *out, &err) != LS_OK) {
        (void)ls_context_fail_with(c, &err);
    }
}

static ls_value *drop_ones(ls_context *c, ls_value *args, void *user)
{
    struct drawn *d = user;
    static float ones[N];
    const int r = ls_replica_id(c);
    ls_tensor *x = ls_constant(c, LS_F32, LS_SHAPE(N), ones);

    (void)args;
    x = ls_add(c, x, ls_constant_f32(c, 1));
    if (d->late && r == 0) {
        lsi_sleep_ns(200000);
    }
    keep_numbers(c, ls_dropout(c, x, 0.5), d->x[r]);
    return NULL;
}

static void run_replicas(mirror *m, ls_replica_fn fn, struct drawn *d)
{
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_strategy_run(m->s, fn, NULL, d, NULL, &err));
}

LST_TEST(dropout_on_replicas_is_the_same_in_twenty_runs)
{
    for (int n = 1; n <= MOST; n++) {
        struct drawn first[2] = {{.late = false}};

        for (int i = 0; i < RUNS; i++) {
            mirror m = mirror_of(n, i % 5 == 4);
            struct drawn d = {.late = i % 2 == 1};

            for (int step = 0; step < 2; step++) {
                run_replicas(&m, drop_ones, &d);
                if (i == 0) {
                    first[step] = d;
                }
                LST_CHECK(memcmp(first[step].x, d.x, sizeof d.x) == 0);
            }
            mirror_end(&m);
        }
        // continues the stream
        LST_CHECK(memcmp(first[0].x, first[1].x, sizeof first[0].x[0]) != 0);
        for (int r = 1; r < n; r++) {
            LST_CHECK(memcmp(first[0].x[r - 1], first[0].x[r], sizeof first[0].x[r]) !=
                      0);
        }
    }
}

/* Replica r draws the numbers of a context with stream r, for any number of replicas. */
LST_TEST(a_replica_draws_as_a_context_with_its_id_for_a_stream)
{
    struct drawn on3 = {0}, on1 = {0}, plain = {0};
    mirror three = mirror_of(3, false), one = mirror_of(1, false);
    ls_error err = LS_ERROR_INIT;

    run_replicas(&three, drop_ones, &on3);
    run_replicas(&one, drop_ones, &on1);
    for (uint64_t r = 0; r < 3; r++) {
        ls_context_options opts = LS_CONTEXT_OPTIONS_INIT;
        ls_context *c = NULL;

        opts.stream = r;
        LST_OK(ls_context_open(ls_runtime_device(three.rt, 0), &opts, &c, &err));
        (void)drop_ones(c, NULL, &plain); // its replica id is 0
        LST_CHECK(memcmp(plain.x[0], on3.x[r], sizeof on3.x[r]) == 0);
        ls_context_close(c);
    }
    LST_CHECK(memcmp(on1.x[0], on3.x[0], sizeof on1.x[0]) == 0);
    mirror_end(&one);
    mirror_end(&three);
}

LST_TEST(the_states_of_a_strategy_go_on_in_another)
{
    mirror m = mirror_of(3, false), other = mirror_of(3, false);
    struct drawn want = {0}, got = {0};
    ls_error err = LS_ERROR_INIT;

    run_replicas(&m, drop_ones, &want);
    for (int r = LS_CROSS_REPLICA; r < 3; r++) {
        ls_random_state s = {0};

        LST_OK(ls_strategy_random_state(m.s, r, &s, &err));
        LST_CHECK(s.position == (r < 0 ? 0 : N / 4));
        LST_CHECK(r < 0 ? s.stream >> 63 == 1 : s.stream == (uint64_t)r);
        LST_OK(ls_strategy_set_random_state(other.s, r, &s, &err)); // before any run
    }
    run_replicas(&m, drop_ones, &want);
    run_replicas(&other, drop_ones, &got);
    LST_CHECK(memcmp(want.x, got.x, sizeof got.x) == 0);
    mirror_end(&m);
    mirror_end(&other);
}

/* ---- inside of a step ---- */

static ls_value *rewind_once(ls_context *c, ls_value *args, void *user)
{
    struct drawn *d = user;
    ls_error err = LS_ERROR_INIT;
    ls_random_state s = {0};
    float first[N];
    const int r = ls_replica_id(c);

    (void)drop_ones(c, args, user);
    memcpy(first, d->x[r], sizeof first);
    ls_context_random_state(c, &s);
    s.position -= N / 4;
    LST_OK(ls_context_set_random_state(c, &s, &err));
    (void)drop_ones(c, args, user);
    LST_CHECK(memcmp(first, d->x[r], sizeof first) == 0);
    LST_FAILS(ls_strategy_random_state(ls_replica_strategy(c), 0, &s, &err),
              LS_FAILED_PRECONDITION, err, "ls_context_random_state()");
    return NULL;
}

LST_TEST(a_replica_asks_and_sets_its_own_state)
{
    mirror m = mirror_of(2, false);
    struct drawn d = {0};

    run_replicas(&m, rewind_once, &d);
    mirror_end(&m);
}

LST_TEST(states_that_are_not_there_are_named)
{
    mirror m = mirror_of(2, false);
    ls_random_state s = {0};
    ls_error err = LS_ERROR_INIT;

    LST_FAILS(ls_strategy_random_state(NULL, 0, &s, &err), LS_INVALID_ARGUMENT, err,
              "the strategy is NULL");
    LST_FAILS(ls_strategy_random_state(m.s, 2, &s, &err), LS_INVALID_ARGUMENT, err,
              "there is no replica 2; there are 0 to 1");
    LST_FAILS(ls_strategy_set_random_state(m.s, -2, &s, &err), LS_INVALID_ARGUMENT, err,
              "there is no replica -2");
    LST_FAILS(ls_strategy_random_state(m.s, 0, NULL, &err), LS_INVALID_ARGUMENT, err,
              "out is NULL");
    LST_FAILS(ls_strategy_set_random_state(m.s, 0, NULL, &err), LS_INVALID_ARGUMENT, err,
              "the state is NULL");
    mirror_end(&m);
}

/* ---- merges, runs inside of them, updates ---- */

/* The merge function draws, and runs the replicas once more. */
static ls_value *draw_and_run(ls_context *c, ls_strategy *s, ls_value *args, void *user)
{
    struct drawn *d = user;
    ls_error err = LS_ERROR_INIT;
    struct drawn inner = {0};
    ls_random_state at = {0};

    (void)args;
    keep_numbers(c, ls_random_uniform(c, LS_F32, LS_SHAPE(N), 0, 1), d->x[2]);
    LST_OK(ls_strategy_run(s, drop_ones, NULL, &inner, NULL, &err));
    memcpy(d->x[3], inner.x[1], sizeof d->x[3]);
    LST_OK(ls_strategy_random_state(s, 1, &at, &err)); // its replicas wait
    LST_CHECK(at.stream == 1 && at.position % (N / 2) == 0);
    return NULL;
}

static ls_value *draw_and_merge(ls_context *c, ls_value *args, void *user)
{
    (void)drop_ones(c, args, user);
    (void)ls_merge_call(c, draw_and_run, NULL, user);
    return NULL;
}

LST_TEST(merges_and_runs_inside_of_them_repeat_nothing_and_are_the_same_each_time)
{
    struct drawn first = {0};

    for (int i = 0; i < RUNS; i++) {
        mirror m = mirror_of(2, false);
        struct drawn d = {.late = i % 2 == 1};

        run_replicas(&m, draw_and_merge, &d);
        first = i == 0 ? d : first;
        LST_CHECK(memcmp(first.x, d.x, sizeof d.x) == 0);
        run_replicas(&m, draw_and_merge, &d);
        // the merge function's stream continues
        LST_CHECK(memcmp(first.x[2], d.x[2], sizeof d.x[2]) != 0);
        mirror_end(&m);
    }
    for (int a = 0; a < 4; a++) {
        for (int b = 0; b < a; b++) {
            LST_CHECK(memcmp(first.x[a], first.x[b], sizeof first.x[a]) != 0);
        }
    }
}

static ls_value *add_noise(ls_context *c, ls_variable *v, ls_value *args, void *user)
{
    (void)args;
    (void)user;
    (void)ls_assign_add(c, v, ls_random_normal(c, LS_F32, LS_SHAPE(N), 0, 1));
    return NULL;
}

LST_TEST(an_update_adds_the_same_noise_to_every_copy_and_another_each_time)
{
    mirror m = mirror_of(3, false);
    ls_error err = LS_ERROR_INIT;
    ls_variable *v = NULL;
    ls_tensor *zeros = NULL;
    float copies[2][3][N];

    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(N), NULL, &zeros, &err));
    LST_OK(ls_scope_enter(m.s, &err));
    LST_OK(ls_variable_create(zeros, NULL, &v, &err));
    for (int step = 0; step < 2; step++) {
        LST_OK(ls_strategy_update(m.s, v, add_noise, NULL, NULL, true, NULL, &err));
        for (size_t i = 0; i < 3; i++) {
            ls_tensor *t = NULL;

            LST_OK(ls_variable_value(ls_variable_component(v, i), &t, &err));
            LST_OK(ls_tensor_read(t, copies[step][i], sizeof copies[step][i], &err));
            ls_tensor_release(t);
        }
        LST_CHECK(memcmp(copies[step][0], copies[step][1], sizeof copies[0][0]) == 0);
        LST_CHECK(memcmp(copies[step][0], copies[step][2], sizeof copies[0][0]) == 0);
    }
    LST_CHECK(copies[0][0][0] != 0);
    LST_CHECK(copies[1][0][0] - copies[0][0][0] != copies[0][0][0]);
    ls_scope_exit(m.s);
    ls_variable_release(v);
    ls_tensor_release(zeros);
    mirror_end(&m);
}

/* The default strategy's replica uses the thread's state, which continues in each run. */
LST_TEST(runs_of_the_default_strategy_go_on)
{
    ls_strategy *s = ls_default_strategy();
    struct drawn a = {0}, b = {0}, again = {0};
    ls_random_state at = {0};
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_strategy_random_state(s, 0, &at, &err));
    LST_OK(ls_strategy_run(s, drop_ones, NULL, &a, NULL, &err));
    LST_OK(ls_strategy_run(s, drop_ones, NULL, &b, NULL, &err));
    LST_CHECK(memcmp(a.x[0], b.x[0], sizeof a.x[0]) != 0);
    LST_OK(ls_strategy_set_random_state(s, 0, &at, &err));
    LST_OK(ls_strategy_run(s, drop_ones, NULL, &again, NULL, &err));
    LST_CHECK(memcmp(a.x[0], again.x[0], sizeof a.x[0]) == 0);
}

/* ---- tensors for the leaves of a value ---- */

enum { LEAVES = 1000 };

/* Reads every leaf twice, in two orders: both reads return one tensor, from a table. */
static ls_value *read_leaves(ls_context *c, ls_value *args, void *user)
{
    ls_tensor *first[LEAVES];

    (void)user;
    for (size_t i = 0; i < LEAVES; i++) {
        first[i] = ls_value_at(c, args, i);
    }
    for (size_t i = LEAVES; i-- > 0;) {
        ls_tensor *t = ls_value_at(c, args, i);

        LST_CHECK(t == first[i] && ls_item(c, t) == (double)i);
    }
    LST_CHECK(c->naliases == LEAVES && c->alias_slots > LEAVES);
    return NULL;
}

static ls_value *read_some(ls_context *c, ls_value *args, void *user)
{
    (void)user;
    for (size_t i = 0; i < 20; i++) {
        LST_CHECK(ls_item(c, ls_value_at(c, args, i)) == (double)i);
    }
    // the table is not as large as that of the largest step
    LST_CHECK(c->naliases == 20 && c->alias_slots <= 64);
    return NULL;
}

static ls_value *read_nothing(ls_context *c, ls_value *args, void *user)
{
    (void)c;
    (void)args;
    (void)user;
    return NULL;
}

LST_TEST(many_leaves_have_one_tensor_each_and_steady_steps_allocate_nothing)
{
    mirror m = mirror_of(2, false);
    ls_error err = LS_ERROR_INIT;
    ls_value *leaves[LEAVES], *args = NULL;
    int64_t empty = 0;

    for (int i = 0; i < LEAVES; i++) {
        const float x = (float)i;
        ls_tensor *t = NULL;

        LST_OK(ls_tensor_create(NULL, LS_F32, LS_SCALAR, &x, &t, &err));
        LST_OK(ls_value_tensor(t, &leaves[i], &err));
        ls_tensor_release(t);
    }
    LST_OK(ls_value_tuple(leaves, LEAVES, &args, &err));
    for (int i = 0; i < LEAVES; i++) {
        ls_value_release(leaves[i]);
    }
    LST_OK(ls_strategy_run(m.s, read_leaves, args, NULL, NULL, &err));
    LST_OK(ls_strategy_run(m.s, read_some, args, NULL, NULL, &err));
    LST_OK(ls_strategy_run(m.s, read_leaves, args, NULL, NULL, &err));
    (void)lsi_alloc_fail_at(INT64_MAX); // counts allocations, makes none fail
    LST_OK(ls_strategy_run(m.s, read_nothing, args, NULL, NULL, &err));
    empty = lsi_alloc_fail_at(0);
    (void)lsi_alloc_fail_at(INT64_MAX);
    LST_OK(ls_strategy_run(m.s, read_leaves, args, NULL, NULL, &err));
    LST_CHECK(lsi_alloc_fail_at(0) == empty);
    ls_value_release(args);
    mirror_end(&m);
}

LST_MAIN(
    LST_CASE(dropout_on_replicas_is_the_same_in_twenty_runs),
    LST_CASE(a_replica_draws_as_a_context_with_its_id_for_a_stream),
    LST_CASE(the_states_of_a_strategy_go_on_in_another),
    LST_CASE(a_replica_asks_and_sets_its_own_state),
    LST_CASE(states_that_are_not_there_are_named),
    LST_CASE(merges_and_runs_inside_of_them_repeat_nothing_and_are_the_same_each_time),
    LST_CASE(an_update_adds_the_same_noise_to_every_copy_and_another_each_time),
    LST_CASE(runs_of_the_default_strategy_go_on),
    LST_CASE(many_leaves_have_one_tensor_each_and_steady_steps_allocate_nothing))
