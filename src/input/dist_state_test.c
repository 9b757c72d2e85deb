/* Tests of saving distributed iterators, and of restoring into other iterators. */
#include "input_test.h"

#include "lockstep/record.h"

#include <stdlib.h>
#include <unistd.h>

/* Takes `take` steps, saves, continues; restores into another iterator, continues. */
struct state_case {
    in_build build;
    ls_auto_shard policy;
    int take;
    int ahead, ahead_then; /* per_replica_buffer when saved and when restored */
};

static ls_dist_iterator *open_case(in_worker *me, const struct state_case *c, int ahead,
                                   ls_dist_dataset **dd)
{
    ls_dist_iterator *it = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_dataset *d = in_policy(c->build(), c->policy);

    me->opts.per_replica_buffer = ahead;
    LST_OK(ls_strategy_distribute(me->s, d, &me->opts, dd, &err));
    (*dd)->cheap_ns = 0;
    LST_OK(ls_dist_iterate(*dd, &it, &err));
    ls_dataset_release(d);
    return it;
}

static void save_and_restore(in_worker *me)
{
    const struct state_case *c = me->arg;
    ls_dist_dataset *dd = NULL, *dd_then = NULL;
    ls_value *state = NULL;
    ls_error err = LS_ERROR_INIT;
    static _Thread_local in_text rest, again;
    in_text taken = {{0}, 0};

    ls_dist_iterator *it = open_case(me, c, c->ahead, &dd);
    in_drain(&taken, it, me->replicas, c->take);
    LST_OK(ls_dist_iterator_save(it, &state, &err));
    rest = (in_text){{0}, 0};
    in_drain(&rest, it, me->replicas, IN_STEPS); // saving had no effect on it
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);

    it = open_case(me, c, c->ahead_then, &dd_then);
    for (int turn = 0; turn < 2; turn++) { // a state can be restored more than once
        again = (in_text){{0}, 0};
        LST_OK(ls_dist_iterator_restore(it, state, &err));
        in_drain(&again, it, me->replicas, IN_STEPS);
        in_same(again.text, rest.text, LST_HERE);
    }
    in_put(&me->text, "%s", again.text);
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd_then);
    ls_value_release(state);
}

static void check_state(in_build build, ls_auto_shard policy, int take, int workers,
                        int replicas, const char *const *want, lst_place at)
{
    for (int mode = 0; mode < 9; mode++) {
        const struct state_case c = {build, policy, take, mode % 3 - 1, mode / 3 - 1};
        static in_worker ws[IN_WORKERS];

        in_run(workers, replicas, save_and_restore, &c, ws);
        for (int w = 0; w < workers && want != NULL; w++) {
            in_same(ws[w].text.text, want[w], at);
        }
    }
}
#define CHECK_STATE(build, policy, take, workers, replicas, ...)                         \
    check_state(build, policy, take, workers, replicas,                                  \
                (const char *const[]){__VA_ARGS__}, LST_HERE)

static ls_dataset *d1(void)
{
    return ls_dataset_batch(in_range(10), 4);
}

LST_TEST(d105_the_first_example_goes_on_where_it_was)
{
    CHECK_STATE(d1, LS_SHARD_AUTO, 0, 1, 2, "[0 1],[2 3] | [4 5],[6 7] | [8],[9] | end");
    CHECK_STATE(d1, LS_SHARD_AUTO, 1, 1, 2, "[4 5],[6 7] | [8],[9] | end");
    CHECK_STATE(d1, LS_SHARD_AUTO, 3, 1, 2, "end");
    CHECK_STATE(d1, LS_SHARD_AUTO, 4, 1, 2, "end"); // the end was reached
}

static char folder[64];

static void write_numbers(const char *name, int64_t first, int64_t last)
{
    ls_record_writer *w = NULL;
    ls_error err = LS_ERROR_INIT;
    char path[128], text[32];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    LST_OK(ls_record_writer_open(path, NULL, &w, &err));
    for (int64_t x = first; x <= last; x++) {
        const int n = snprintf(text, sizeof text, "%lld", (long long)x);

        LST_OK(ls_record_writer_write(w, text, (size_t)n, &err));
    }
    LST_OK(ls_record_writer_close(w, &err));
    ls_record_writer_release(w);
}

static void remove_numbers(void)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/a", folder);
    (void)remove(path);
    (void)snprintf(path, sizeof path, "%s/b", folder);
    (void)remove(path);
}

static ls_value *decode(ls_context *c, ls_value *x, void *user)
{
    const ls_string *s = ls_tensor_data(ls_value_as_tensor(x));
    char text[32] = "";

    (void)user;
    memcpy(text, s->ptr, LSI_MIN(s->len, sizeof text - 1));
    return ls_value_of(c, ls_constant_i64(c, strtoll(text, NULL, 10)));
}

static ls_dataset *numbers(void)
{
    char paths[2][128];
    const char *names[] = {paths[0], paths[1]};

    (void)snprintf(paths[0], sizeof paths[0], "%s/a", folder);
    (void)snprintf(paths[1], sizeof paths[1], "%s/b", folder);
    return in_map(ls_dataset_tfrecord_files(names, 2, NULL), decode, NULL, LS_I64, 0,
                  NULL);
}

static ls_dataset *by_seven(void)
{
    return ls_dataset_batch(numbers(), 7);
}

static ls_dataset *by_four(void)
{
    return ls_dataset_batch(numbers(), 4);
}

LST_TEST(d105_files_go_on_in_the_middle_of_a_global_batch)
{
    write_numbers("a", 0, 6);
    write_numbers("b", 10, 16);
    CHECK_STATE(by_seven, LS_SHARD_FILE, 1, 2, 2, "[4 5],[6] | end",
                "[13 14],[15 16] | end");
    remove_numbers();
}

LST_TEST(d106_a_worker_without_data_stays_without)
{
    write_numbers("a", 0, 2);
    write_numbers("b", 10, 16);
    CHECK_STATE(by_four, LS_SHARD_AUTO, 2, 2, 1, "[] | [] | end", "[14 15] | [16] | end");
    remove_numbers();
}

static ls_dataset *shuffled(void)
{
    return ls_dataset_repeat(ls_dataset_batch(ls_dataset_shuffle(in_range(20), 7, 42), 6),
                             2);
}

LST_TEST(shuffled_epochs_go_on_after_every_step)
{
    for (int take = 0; take < 10; take++) {
        check_state(shuffled, LS_SHARD_AUTO, take, 1, 2, NULL, LST_HERE);
        check_state(shuffled, LS_SHARD_OFF, take, 1, 3, NULL, LST_HERE);
    }
}

/* A dataset to save, and worker 0's position in it. */
struct to_save {
    in_build build;
    ls_value *state;
};

static void save_at_the_beginning(in_worker *me)
{
    struct to_save *job = (struct to_save *)(uintptr_t)me->arg;
    const struct state_case c = {job->build, LS_SHARD_AUTO, 0, 0, 0};
    ls_dist_dataset *dd = NULL;
    ls_value *state = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_dist_iterator *it = open_case(me, &c, 0, &dd);

    LST_OK(ls_dist_iterator_save(it, &state, &err));
    if (me->worker == 0) {
        job->state = ls_value_retain(state);
    }
    ls_value_release(state);
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);
}

static ls_value *saved_by(int workers, int replicas, in_build build)
{
    struct to_save job = {build, NULL};
    static in_worker ws[IN_WORKERS];

    in_run(workers, replicas, save_at_the_beginning, &job, ws);
    return job.state;
}

/* A state, and how worker 0 of two must refuse it. */
struct refusal {
    ls_value *state;
    ls_status want;
    const char *word;
    lst_place at;
};

static void restore_on_worker_0(in_worker *me)
{
    const struct refusal *r = me->arg;
    const struct state_case c = {d1, LS_SHARD_AUTO, 0, 0, 0};
    ls_dist_dataset *dd = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_dist_iterator *it = open_case(me, &c, 0, &dd);

    if (me->worker == 0) {
        lst_fails(ls_dist_iterator_restore(it, r->state, &err), r->want, &err, r->word,
                  r->at, "ls_dist_iterator_restore");
    }
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);
}

/* Takes ownership of `state`. */
static void refuses(ls_value *state, ls_status want, const char *word, lst_place at)
{
    const struct refusal r = {state, want, word, at};
    static in_worker ws[IN_WORKERS];

    in_run(2, 2, restore_on_worker_0, &r, ws);
    ls_value_release(state);
}

static ls_value *bytes(const void *p, size_t n)
{
    ls_tensor *t = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_tensor_create(NULL, LS_U8, LS_SHAPE((int64_t)n), p, &t, &err));
    LST_OK(ls_value_tensor(t, &v, &err));
    ls_tensor_release(t);
    return v;
}

static ls_dataset *eleven(void)
{
    return ls_dataset_batch(in_range(11), 4);
}

LST_TEST(d105_another_number_of_workers_or_replicas_is_refused)
{
    refuses(saved_by(3, 2, d1), LS_FAILED_PRECONDITION, "3 workers", LST_HERE);
    refuses(saved_by(2, 3, d1), LS_FAILED_PRECONDITION, "3 replicas", LST_HERE);
    refuses(saved_by(2, 2, eleven), LS_FAILED_PRECONDITION, "another pipeline", LST_HERE);
}

/* Truncation at every length and a change of every byte are detected. */
LST_TEST(a_state_that_is_damaged_is_noticed)
{
    ls_value *state = saved_by(2, 2, d1);
    const ls_tensor *t = ls_value_as_tensor(state);
    const size_t n = ls_tensor_bytes(t);
    uint8_t copy[4096];
    ls_value *none = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_CHECK(n < sizeof copy);
    memcpy(copy, ls_tensor_data(t), LSI_MIN(n, sizeof copy));
    refuses(bytes(copy, n - 1), LS_DATA_LOSS, "", LST_HERE);
    refuses(bytes(copy, 7), LS_DATA_LOSS, "short", LST_HERE);
    for (size_t i = 0; i < n; i += 7) {
        copy[i] ^= 0x40;
        refuses(bytes(copy, n), LS_DATA_LOSS, "sum", LST_HERE);
        copy[i] ^= 0x40;
    }
    refuses(NULL, LS_INVALID_ARGUMENT, "bytes", LST_HERE);
    LST_OK(ls_value_none(&none, &err));
    refuses(none, LS_INVALID_ARGUMENT, "bytes", LST_HERE);
    ls_value_release(state);
}

static ls_dataset *endless(void)
{
    return ls_dataset_batch(ls_dataset_range(0, 1000, 1), 4);
}

/* One worker restores an older state than the other: both fail. */
static void restore_unevenly(in_worker *me)
{
    const struct state_case c = {endless, LS_SHARD_AUTO, 0, -1, -1};
    ls_dist_dataset *dd = NULL;
    ls_value *state = NULL, *v = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_dist_iterator *it = open_case(me, &c, -1, &dd);
    in_text t = {{0}, 0};

    in_drain(&t, it, 1, 1);
    LST_OK(ls_dist_iterator_save(it, &state, &err));
    in_drain(&t, it, 1, 1);
    if (me->worker == 1) {
        LST_OK(ls_dist_iterator_restore(it, state, &err));
    }
    LST_FAILS(ls_dist_iterator_next(it, &v, &err), LS_FAILED_PRECONDITION, err,
              "at step 1");
    ls_value_release(state);
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);
}

LST_TEST(workers_at_different_steps_all_fail)
{
    static in_worker ws[IN_WORKERS];

    in_run(2, 1, restore_unevenly, NULL, ws);
}

static const lst_case cases[] = {
    LST_CASE(d105_the_first_example_goes_on_where_it_was),
    LST_CASE(d105_files_go_on_in_the_middle_of_a_global_batch),
    LST_CASE(d106_a_worker_without_data_stays_without),
    LST_CASE(shuffled_epochs_go_on_after_every_step),
    LST_CASE(d105_another_number_of_workers_or_replicas_is_refused),
    LST_CASE(a_state_that_is_damaged_is_noticed),
    LST_CASE(workers_at_different_steps_all_fail)};

int main(int argc, char **argv)
{
    (void)snprintf(folder, sizeof folder, "/tmp/ls-state-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    const int failed = lst_main(argc, argv, cases, LSI_COUNT_OF(cases));
    (void)rmdir(folder);
    return failed;
}
