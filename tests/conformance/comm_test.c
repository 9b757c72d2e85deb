/*
 * Runs the conformance suite on the communicators of one process: self, local, and local
 * without spinning.
 */
#include "comm_suite.h"

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

LST_TEST(one_rank_alone_conforms)
{
    lst_comm_conformance(&self);
}

LST_TEST(threads_conform)
{
    lst_comm_conformance(&local);
}

LST_TEST(threads_that_sleep_conform)
{
    lst_comm_conformance(&sleepy);
}

LST_MAIN(LST_CASE(one_rank_alone_conforms), LST_CASE(threads_conform),
         LST_CASE(threads_that_sleep_conform))
