/*
 * Runs the conformance suite on the communicators of one process: self, local, and local
 * without spinning.
 */
#include "comm_suite.h"

#include "os/thread.h"

static ls_status make_self(int ranks, int64_t timeout_ms, ls_comm **out, ls_error *err)
{
    (void)timeout_ms;
    LST_CHECK(ranks == 1);
    return ls_comm_self(out, err);
}

static ls_status make_local(int ranks, int64_t timeout_ms, ls_comm **out, ls_error *err)
{
    ls_comm_local_options o = LS_COMM_LOCAL_OPTIONS_INIT;

    o.timeout_ms = timeout_ms;
    return ls_comm_local(ranks, &o, out, err);
}

/* Sleeps at once instead of spinning: every wake-up has to be right. */
static ls_status make_sleepy(int ranks, int64_t timeout_ms, ls_comm **out, ls_error *err)
{
    ls_comm_local_options o = LS_COMM_LOCAL_OPTIONS_INIT;

    o.timeout_ms = timeout_ms;
    o.spin_us = -1;
    return ls_comm_local(ranks, &o, out, err);
}

static const lst_comm_factory self = {"self", 1, make_self};
static const lst_comm_factory local = {"local", LST_MOST_RANKS, make_local};
static const lst_comm_factory sleepy = {"local", LST_MOST_RANKS, make_sleepy};

LST_TEST(self_reduces_as_the_reference)
{
    lst_comm_reductions(&self);
}

LST_TEST(self_moves_what_it_is_given)
{
    lst_comm_data_movement(&self);
}

LST_TEST(self_ends_started_works)
{
    lst_comm_nonblocking(&self);
}

LST_TEST(self_refuses_what_makes_no_sense)
{
    lst_comm_faults(&self);
}

LST_TEST(threads_reduce_to_the_bits_of_the_tree)
{
    lst_comm_reductions(&local);
}

LST_TEST(threads_move_what_they_are_given)
{
    lst_comm_data_movement(&local);
}

LST_TEST(threads_end_started_works_in_any_order)
{
    lst_comm_nonblocking(&local);
}

LST_TEST(threads_fail_together_and_say_why)
{
    lst_comm_faults(&local);
}

LST_TEST(ranks_that_decline_fail_all_and_break_nothing)
{
    lst_comm_declining(&self);
    lst_comm_declining(&local);
    lst_comm_declining(&sleepy);
}

LST_TEST(sums_over_ids_have_the_bits_of_one_tree)
{
    lst_comm_ids(&self);
    lst_comm_ids(&local);
}

LST_TEST(a_group_is_whole_in_every_generation)
{
    lst_comm_generations(&self);
    lst_comm_generations(&local);
    lst_comm_generations(&sleepy);
}

LST_TEST(threads_name_who_is_late_once)
{
    lst_comm_lateness(&local);
}

LST_TEST(threads_that_sleep_are_woken)
{
    lst_comm_data_movement(&sleepy);
    lst_comm_nonblocking(&sleepy);
    lst_comm_faults(&sleepy);
}

struct pair {
    ls_comm *comm;
    ls_error err;
    ls_status st;
    lsi_thread thread;
};

/* Every call that allocates: works, batches, counts, partial sums, splits. */
static ls_status call_everything(ls_comm *comm, ls_error *err)
{
    ls_comm_options tree = LS_COMM_OPTIONS_INIT;
    const size_t counts[4] = {1, 2, 3, 4};
    ls_comm_work *work = NULL;
    ls_comm *part = NULL;
    uint16_t half[300] = {0};
    float x[10] = {0}, y[10] = {0};
    ls_status st;

    tree.algorithm = "tree";
    st = ls_comm_all_reduce(comm, LS_SUM, half, 300, LS_BF16, &tree, err);
    if (st == LS_OK) {
        st =
            ls_comm_start_all_gather_uneven(comm, x, counts, LS_F32, NULL, y, &work, err);
    }
    if (st == LS_OK) {
        st = ls_comm_wait(work, err);
    }
    if (st == LS_OK) {
        st = ls_comm_group_begin(comm, err);
    }
    for (int i = 0; i < 9 && st == LS_OK; i++) {
        st = ls_comm_all_gather_uneven(comm, x, counts, LS_F32, NULL, y, err);
    }
    if (st == LS_OK) {
        st = ls_comm_group_end(comm, NULL, err);
    }
    if (st == LS_OK) {
        st = ls_comm_split(comm, ls_comm_rank(comm) % 2, 0, &part, err);
    }
    if (st == LS_OK) {
        st = ls_comm_barrier(part, NULL, err);
    }
    ls_comm_release(part);
    return st;
}

static void use_one(void *arg)
{
    struct pair *p = arg;

    p->st = call_everything(p->comm, &p->err);
}

static ls_status four_threads(ls_error *err)
{
    enum { RANKS = 4 };
    struct pair ranks[RANKS];
    ls_comm *comms[RANKS] = {NULL};
    ls_error other = LS_ERROR_INIT;
    ls_status st = ls_comm_local(RANKS, NULL, comms, err);

    LST_CHECK((st == LS_OK) == (comms[0] != NULL));
    if (st != LS_OK) {
        return st;
    }
    for (int r = 0; r < RANKS; r++) {
        ranks[r] = (struct pair){.comm = comms[r], .err = LS_ERROR_INIT};
        LST_OK(lsi_thread_start(&ranks[r].thread, use_one, &ranks[r], &other, "r-%d", r));
    }
    for (int r = 0; r < RANKS; r++) {
        lsi_thread_join(&ranks[r].thread);
        if (ranks[r].st != LS_OK && st == LS_OK) {
            st = ranks[r].st;
            *err = ranks[r].err;
        }
    }
    for (int r = 0; r < RANKS; r++) {
        ls_comm_release(comms[r]);
    }
    return st;
}

static ls_status one_alone(ls_error *err)
{
    ls_comm *comm = NULL;
    ls_status st = ls_comm_self(&comm, err);

    LST_CHECK((st == LS_OK) == (comm != NULL));
    if (st == LS_OK) {
        st = call_everything(comm, err);
    }
    ls_comm_release(comm);
    return st;
}

LST_TEST(any_allocation_may_fail)
{
    lst_every_allocation(one_alone);
    lst_every_allocation(four_threads);
}

LST_MAIN(LST_CASE(self_reduces_as_the_reference), LST_CASE(self_moves_what_it_is_given),
         LST_CASE(self_ends_started_works), LST_CASE(self_refuses_what_makes_no_sense),
         LST_CASE(threads_reduce_to_the_bits_of_the_tree),
         LST_CASE(threads_move_what_they_are_given),
         LST_CASE(threads_end_started_works_in_any_order),
         LST_CASE(threads_fail_together_and_say_why),
         LST_CASE(ranks_that_decline_fail_all_and_break_nothing),
         LST_CASE(sums_over_ids_have_the_bits_of_one_tree),
         LST_CASE(a_group_is_whole_in_every_generation),
         LST_CASE(threads_name_who_is_late_once), LST_CASE(threads_that_sleep_are_woken),
         LST_CASE(any_allocation_may_fail))
