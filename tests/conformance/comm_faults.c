/*
 * Failures of communicators: calls that differ, late ranks, abort, ranks that leave, bad
 * arguments.
 */
#include "comm_suite.h"

#include "os/thread.h"

#include <string.h>

/* The lines of the two calls that differ, which the error must name. */
struct mismatch {
    void (*odd)(ls_comm *comm, ls_error *err, ls_status *st);  // rank 1
    void (*even)(ls_comm *comm, ls_error *err, ls_status *st); // the others
    ls_status code;
    const char *word;
};

static float buffer_of(int rank)
{
    return (float)rank;
}

#define CALL(name, ...)                                                                  \
    static void name(ls_comm *comm, ls_error *err, ls_status *st)                        \
    {                                                                                    \
        float x[8] = {0}, y[8 * LST_MOST_RANKS] = {0};                                   \
                                                                                         \
        x[0] = buffer_of(ls_comm_rank(comm));                                            \
        (void)x;                                                                         \
        (void)y;                                                                         \
        ls_comm_at(#name ".c", __LINE__);                                                \
        *st = (__VA_ARGS__);                                                             \
    }

/* clang-format off */
CALL(sum_8, (ls_comm_all_reduce)(comm, LS_SUM, x, 8, LS_F32, NULL, err))
CALL(sum_7, (ls_comm_all_reduce)(comm, LS_SUM, x, 7, LS_F32, NULL, err))
CALL(mean_8, (ls_comm_all_reduce)(comm, LS_MEAN, x, 8, LS_F32, NULL, err))
CALL(ints_8, (ls_comm_all_reduce)(comm, LS_SUM, x, 8, LS_I32, NULL, err))
CALL(cast_0, (ls_comm_broadcast)(comm, 0, x, 8, LS_F32, NULL, err))
CALL(cast_1, (ls_comm_broadcast)(comm, 1, x, 8, LS_F32, NULL, err))
CALL(gather, (ls_comm_all_gather)(comm, x, 8, LS_F32, NULL, y, err))
CALL(meet, (ls_comm_barrier)(comm, NULL, err))
/* clang-format on */

static void gather_uneven(ls_comm *comm, ls_error *err, ls_status *st, size_t last)
{
    float x[8] = {0}, y[8 * LST_MOST_RANKS] = {0};
    size_t counts[LST_MOST_RANKS] = {1, 1, 1, 1, 1, 1, 1, 1, 1};

    // The same total, but not the same counts.
    counts[0] = last;
    counts[1] = 4 - last;
    ls_comm_at(last == 1 ? "uneven_1.c" : "uneven_3.c", 5);
    *st = (ls_comm_all_gather_uneven)(comm, x, counts, LS_F32, NULL, y, err);
}

static void uneven_1(ls_comm *comm, ls_error *err, ls_status *st)
{
    gather_uneven(comm, err, st, 1);
}

static void uneven_3(ls_comm *comm, ls_error *err, ls_status *st)
{
    gather_uneven(comm, err, st, 3);
}

static void by_tree(ls_comm *comm, ls_error *err, ls_status *st)
{
    ls_comm_options o = LS_COMM_OPTIONS_INIT;
    float x[8] = {0};

    o.algorithm = "tree";
    ls_comm_at("by_tree.c", 1);
    *st = (ls_comm_all_reduce)(comm, LS_SUM, x, 8, LS_F32, &o, err);
}

/* The second call of a batch differs: the error names its lines. */
static void batch_calls(ls_comm *comm, ls_error *err, ls_status *st, size_t count)
{
    float x[8] = {0}, y[8] = {0};

    LST_OK(ls_comm_group_begin(comm, NULL));
    LST_OK(ls_comm_all_reduce(comm, LS_SUM, x, 8, LS_F32, NULL, NULL));
    ls_comm_at(count == 8 ? "group_8.c" : "group_5.c", 3);
    LST_OK((ls_comm_all_reduce)(comm, LS_SUM, y, count, LS_F32, NULL, NULL));
    *st = ls_comm_group_end(comm, NULL, err);
}

static void group_8(ls_comm *comm, ls_error *err, ls_status *st)
{
    batch_calls(comm, err, st, 8);
}

static void group_5(ls_comm *comm, ls_error *err, ls_status *st)
{
    batch_calls(comm, err, st, 5);
}

static const struct mismatch mismatches[] = {
    {sum_7, sum_8, LS_INVALID_ARGUMENT, "shape mismatch"},
    {mean_8, sum_8, LS_INTERNAL, "operation mismatch"},
    {ints_8, sum_8, LS_INTERNAL, "dtype mismatch"},
    {gather, sum_8, LS_INTERNAL, "operation mismatch"},
    {meet, sum_8, LS_INTERNAL, "operation mismatch"},
    {cast_1, cast_0, LS_INTERNAL, "root mismatch"},
    {uneven_3, uneven_1, LS_INVALID_ARGUMENT, "shape mismatch"},
    {by_tree, sum_8, LS_INVALID_ARGUMENT, "algorithm mismatch"},
    {group_5, group_8, LS_INVALID_ARGUMENT, "shape mismatch"},
    {sum_8, group_8, LS_INTERNAL, "operation mismatch"},
};
static const char *const sides[][2] = {
    {"sum_7.c:", "sum_8.c:"},       {"mean_8.c:", "sum_8.c:"},
    {"ints_8.c:", "sum_8.c:"},      {"gather.c:", "sum_8.c:"},
    {"meet.c:", "sum_8.c:"},        {"cast_1.c:", "cast_0.c:"},
    {"uneven_3.c:", "uneven_1.c:"}, {"by_tree.c:", "sum_8.c:"},
    {"group_5.c:3", "group_8.c:3"}, {"sum_8.c:", "comm_faults.c:"},
};

/* Every rank gets the same code and both lines, and the communicator stays broken. */
static void calls_differ(lst_rank *me)
{
    const int k = *(const int *)me->arg;
    const struct mismatch *m = &mismatches[k];
    ls_error err = LS_ERROR_INIT, again = LS_ERROR_INIT;
    ls_status st = LS_OK;
    float x = 1;

    (me->rank == 1 ? m->odd : m->even)(me->comm, &err, &st);
    LST_FAILS(st, m->code, err, m->word);
    LST_CHECK(strstr(err.message, sides[k][0]) != NULL);
    LST_CHECK(strstr(err.message, sides[k][1]) != NULL);
    LST_CHECK(err.rank == 1);
    st = ls_comm_all_reduce(me->comm, LS_SUM, &x, 1, LS_F32, NULL, &again);
    if (m->code == LS_INVALID_ARGUMENT) {
        LST_CHECK(st == LS_OK && x == (float)me->size);
    } else {
        LST_FAILS(st, m->code, again, m->word);
    }
}

/* A send and a receive that do not match: both ranks get both lines. */
static void letters_that_do_not_fit(lst_rank *me)
{
    float x[4] = {0};
    ls_error err = LS_ERROR_INIT;

    if (me->rank == 0) {
        ls_comm_at("sender.c", 10);
        LST_FAILS((ls_comm_send)(me->comm, 1, x, 3, LS_F32, NULL, &err),
                  LS_INVALID_ARGUMENT, err, "sender.c:10");
        LST_CHECK(strstr(err.message, "receiver.c:20") != NULL);
        ls_comm_at("sender.c", 11);
        LST_FAILS((ls_comm_send)(me->comm, 1, x, 4, LS_I32, NULL, &err), LS_INTERNAL, err,
                  "receiver.c:21");
    } else if (me->rank == 1) {
        ls_comm_at("receiver.c", 20);
        LST_FAILS((ls_comm_recv)(me->comm, 0, 4, LS_F32, NULL, x, &err),
                  LS_INVALID_ARGUMENT, err, "sender.c:10");
        ls_comm_at("receiver.c", 21);
        LST_FAILS((ls_comm_recv)(me->comm, 0, 4, LS_F32, NULL, x, &err), LS_INTERNAL, err,
                  "sender.c:11");
    }
}

static void another_line_alone_is_no_mismatch(lst_rank *me)
{
    float x = 1;

    if (me->rank % 2 == 0) {
        LST_OK(ls_comm_all_reduce(me->comm, LS_SUM, &x, 1, LS_F32, NULL, NULL));
    } else {
        LST_OK(ls_comm_all_reduce(me->comm, LS_SUM, &x, 1, LS_F32, NULL, NULL));
    }
    LST_CHECK(x == (float)me->size);
}

/*
 * S105: only rank 0 calls. When its deadline passes, the error names the missing ranks.
 */
static void only_rank_0_calls(lst_rank *me)
{
    ls_comm_options o = LS_COMM_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT, again = LS_ERROR_INIT;
    float x = 1;

    if (me->rank != 0) {
        return;
    }
    o.timeout_ms = 50;
    LST_FAILS(ls_comm_all_reduce(me->comm, LS_SUM, &x, 1, LS_F32, &o, &err),
              LS_DEADLINE_EXCEEDED, err, "rank 1");
    LST_CHECK(err.rank == 1 && strstr(err.message, "comm_faults.c") != NULL);
    LST_FAILS(ls_comm_barrier(me->comm, NULL, &again), LS_DEADLINE_EXCEEDED, again,
              "rank 1");
}

/* The same for a send without a receive, under the communicator's own timeout. */
static void a_letter_nobody_takes(lst_rank *me)
{
    ls_error err = LS_ERROR_INIT;
    float x = 1;

    if (me->rank == 0) {
        LST_FAILS(ls_comm_send(me->comm, 1, &x, 1, LS_F32, NULL, &err),
                  LS_DEADLINE_EXCEEDED, err, "rank 1");
        LST_CHECK(err.rank == 1);
    }
}

struct late {
    atomic_int lines;
    atomic_bool named;
};

static void count_lines(ls_log_level level, const char *line, void *user)
{
    struct late *late = user;

    if (level == LS_LOG_WARNING && strstr(line, "has waited") != NULL) {
        (void)atomic_fetch_add(&late->lines, 1);
        if (strstr(line, "rank 1, last seen in barrier at") != NULL) {
            atomic_store(&late->named, true);
        }
    }
}

static void late_rank(lst_rank *me)
{
    ls_comm_options o = LS_COMM_OPTIONS_INIT;
    float x = 1;

    LST_OK(ls_comm_barrier(me->comm, NULL, NULL));
    if (me->rank == 0) {
        o.timeout_ms = 2010; // late ranks are named after two seconds
        LST_CHECK(ls_comm_all_reduce(me->comm, LS_SUM, &x, 1, LS_F32, &o, NULL) ==
                  LS_DEADLINE_EXCEEDED);
    }
}

void lst_comm_lateness(const lst_comm_factory *f)
{
    struct late late = {.lines = 0};

    ls_log_set(LS_LOG_WARNING, count_lines, &late);
    lst_run_ranks(f, 2, 0, late_rank, NULL);
    ls_log_set(LS_LOG_WARNING, NULL, NULL);
    LST_CHECK(atomic_load(&late.lines) == 1);
    LST_CHECK(atomic_load(&late.named));
}

/* All ranks wait for one that never calls; another thread aborts. */
struct abortion {
    ls_comm *comm;
    atomic_int waiting;
    lsi_thread thread;
};

static void abort_it(void *arg)
{
    struct abortion *a = arg;

    while (atomic_load(&a->waiting) < 2) {
        lsi_yield();
    }
    ls_comm_abort(a->comm);
}

static void wait_for_abort(lst_rank *me)
{
    struct abortion *a = me->arg;
    ls_error err = LS_ERROR_INIT;
    float x[4] = {1};

    if (me->rank == me->size - 1) {
        a->comm = me->comm;
        LST_OK(lsi_thread_start(&a->thread, abort_it, a, &err, "abort"));
        lsi_thread_join(&a->thread);
    } else {
        (void)atomic_fetch_add(&a->waiting, 1);
        LST_FAILS(ls_comm_all_reduce(me->comm, LS_SUM, x, 4, LS_F32, NULL, &err),
                  LS_ABORTED, err, "aborted");
    }
    LST_FAILS(ls_comm_barrier(me->comm, NULL, &err), LS_ABORTED, err, "aborted");
}

/* A rank releases its handle; later calls that need this rank fail and name it. */
static void a_rank_leaves(lst_rank *me)
{
    ls_error err = LS_ERROR_INIT;
    float x[2000] = {1};

    LST_OK(ls_comm_all_reduce(me->comm, LS_SUM, x, 2000, LS_F32, NULL, &err));
    if (me->rank == 1) {
        me->released = true;
        ls_comm_release(me->comm);
        return;
    }
    LST_FAILS(ls_comm_all_reduce(me->comm, LS_SUM, x, 2000, LS_F32, NULL, &err),
              LS_UNAVAILABLE, err, "rank 1");
    LST_CHECK(err.rank == 1);
}

/* A rank that starts a call and never waits for it does not hold up the others. */
static void a_rank_leaves_its_works(lst_rank *me)
{
    ls_comm_work *work = NULL;
    ls_error err = LS_ERROR_INIT;
    static float shared[LST_MOST_RANKS][5000];
    float *x = shared[me->rank];

    if (me->rank == 1) {
        ls_comm_work *second = NULL;

        LST_OK(ls_comm_start_all_reduce(me->comm, LS_SUM, x, 5000, LS_F32, NULL, &work,
                                        &err));
        // The others may already have failed because their calls differ.
        (void)!ls_comm_start_barrier(me->comm, NULL, &second, &err);
        me->released = true;
        ls_comm_release(me->comm);
        return;
    }
    LST_CHECK(ls_comm_barrier(me->comm, NULL, &err) != LS_OK); // another order, or gone
}

static void bad_arguments(lst_rank *me)
{
    ls_comm_options o = LS_COMM_OPTIONS_INIT, small = {0};
    ls_comm *c = me->comm;
    ls_comm_work *work = NULL;
    ls_error err = LS_ERROR_INIT;
    float x[4] = {1, 2, 3, 4};

    o.algorithm = "carrier pigeon";
    LST_FAILS(ls_comm_all_reduce(c, LS_SUM, x, 4, LS_F32, &o, &err), LS_INVALID_ARGUMENT,
              err, "carrier pigeon");
    LST_FAILS(ls_comm_all_reduce(c, LS_SUM, x, 4, LS_F32, &small, &err),
              LS_INVALID_ARGUMENT, err, "LS_COMM_OPTIONS_INIT");
    LST_FAILS(ls_comm_all_reduce(NULL, LS_SUM, x, 4, LS_F32, NULL, &err),
              LS_INVALID_ARGUMENT, err, "communicator");
    LST_FAILS(ls_comm_all_reduce(c, (ls_reduce)9, x, 4, LS_F32, NULL, &err),
              LS_INVALID_ARGUMENT, err, "9 is not a reduction");
    LST_FAILS(ls_comm_all_reduce(c, LS_SUM, x, 4, LS_BOOL, NULL, &err),
              LS_INVALID_ARGUMENT, err, "bool");
    LST_FAILS(ls_comm_all_reduce(c, LS_SUM, x, 4, (ls_dtype)99, NULL, &err),
              LS_INVALID_ARGUMENT, err, "?");
    LST_FAILS(ls_comm_all_reduce(c, LS_SUM, NULL, 4, LS_F32, NULL, &err),
              LS_INVALID_ARGUMENT, err, "NULL");
    LST_FAILS(ls_comm_all_reduce(c, LS_SUM, x, SIZE_MAX / 2, LS_F32, NULL, &err),
              LS_INVALID_ARGUMENT, err, "more than memory");
    LST_FAILS(ls_comm_broadcast(c, me->size, x, 4, LS_F32, NULL, &err),
              LS_INVALID_ARGUMENT, err, "root");
    LST_FAILS(ls_comm_broadcast(c, 0, x, 4, LS_STRING, NULL, &err), LS_INVALID_ARGUMENT,
              err, "string");
    LST_FAILS(ls_comm_all_gather_uneven(c, x, NULL, LS_F32, NULL, x, &err),
              LS_INVALID_ARGUMENT, err, "counts");
    LST_FAILS(ls_comm_send(c, me->rank, x, 1, LS_F32, NULL, &err), LS_INVALID_ARGUMENT,
              err, "itself");
    LST_FAILS(ls_comm_recv(c, -1, 1, LS_F32, NULL, x, &err), LS_INVALID_ARGUMENT, err,
              "from_rank");
    LST_FAILS(ls_comm_start_barrier(c, NULL, NULL, &err), LS_INVALID_ARGUMENT, err,
              "out is NULL");
    LST_FAILS(ls_comm_group_end(c, NULL, &err), LS_INVALID_ARGUMENT, err, "group_begin");
    LST_FAILS(ls_comm_wait(NULL, &err), LS_INVALID_ARGUMENT, err, "NULL");
    LST_FAILS(ls_comm_split(c, 0, 0, NULL, &err), LS_INVALID_ARGUMENT, err, "result");
    LST_OK(ls_comm_group_begin(c, &err));
    LST_FAILS(ls_comm_group_begin(c, &err), LS_INVALID_ARGUMENT, err, "batch of calls");
    LST_FAILS(ls_comm_start_barrier(c, NULL, &work, &err), LS_INVALID_ARGUMENT, err,
              "batch of calls");
    LST_OK(ls_comm_group_end(c, NULL, &err));
    // Nothing was sent, so the communicator still works.
    LST_OK(ls_comm_all_reduce(c, LS_MAX, x, 4, LS_F32, NULL, &err));
    LST_CHECK(x[3] == 4);
}

static void abort_of_one(lst_rank *me)
{
    ls_error err = LS_ERROR_INIT;
    float x = 1;

    ls_comm_abort(me->comm);
    ls_comm_abort(NULL);
    LST_FAILS(ls_comm_all_reduce(me->comm, LS_SUM, &x, 1, LS_F32, NULL, &err), LS_ABORTED,
              err, "aborted");
}

void lst_comm_faults(const lst_comm_factory *f)
{
    lst_run_sizes(f, bad_arguments, NULL);
    lst_run_ranks(f, 1, 0, abort_of_one, NULL);
    if (f->most < 3) {
        return;
    }
    for (int size = 2; size <= 4; size++) {
        for (int k = 0; k < (int)LSI_COUNT_OF(mismatches); k++) {
            lst_run_ranks(f, size, 0, calls_differ, &k);
        }
    }
    lst_run_ranks(f, 2, 0, letters_that_do_not_fit, NULL);
    lst_run_sizes(f, another_line_alone_is_no_mismatch, NULL);
    lst_run_ranks(f, 2, 0, only_rank_0_calls, NULL);
    lst_run_ranks(f, 4, 0, only_rank_0_calls, NULL);
    lst_run_ranks(f, 2, 50, a_letter_nobody_takes, NULL);
    for (int i = 0; i < 20; i++) {
        struct abortion a = {.waiting = 0};

        lst_run_ranks(f, 3, 0, wait_for_abort, &a);
        lst_run_ranks(f, 2 + i % 3, 0, a_rank_leaves, NULL);
        lst_run_ranks(f, 2 + i % 3, 0, a_rank_leaves_its_works, NULL);
    }
}
