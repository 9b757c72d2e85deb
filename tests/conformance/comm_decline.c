/*
 * Ranks that take part in a collective with a failure in place of data: every rank gets
 * it, and the group stays whole.
 */
#include "comm_suite.h"

#include "collective/collective.h"

#include <string.h>

static const lsi_comm_site here = {"decline.c", 7};

/* What the ranks that do not decline call, and whether it has changed their buffers. */
struct declined_call {
    ls_status (*run)(ls_comm *comm, float *x, float *y, ls_error *err);
    size_t count;
};

enum { MANY = 5000 };

static ls_status sum_few(ls_comm *comm, float *x, float *y, ls_error *err)
{
    (void)y;
    return ls_comm_all_reduce(comm, LS_SUM, x, 3, LS_F32, NULL, err);
}

static ls_status sum_many(ls_comm *comm, float *x, float *y, ls_error *err)
{
    (void)y;
    return ls_comm_all_reduce(comm, LS_SUM, x, MANY, LS_F32, NULL, err);
}

static ls_status cast_many(ls_comm *comm, float *x, float *y, ls_error *err)
{
    (void)y;
    return ls_comm_broadcast(comm, 0, x, MANY, LS_F32, NULL, err);
}

static ls_status gather_many(ls_comm *comm, float *x, float *y, ls_error *err)
{
    return ls_comm_all_gather(comm, x, MANY, LS_F32, NULL, y, err);
}

static ls_status just_meet(ls_comm *comm, float *x, float *y, ls_error *err)
{
    (void)x;
    (void)y;
    return ls_comm_barrier(comm, NULL, err);
}

static ls_status start_one(ls_comm *comm, float *x, float *y, ls_error *err)
{
    ls_comm_work *work = NULL;

    (void)y;
    LST_OK(ls_comm_start_all_reduce(comm, LS_SUM, x, MANY, LS_F32, NULL, &work, err));
    return ls_comm_wait(work, err);
}

static ls_status run_batch(ls_comm *comm, float *x, float *y, ls_error *err)
{
    LST_OK(ls_comm_group_begin(comm, NULL));
    LST_OK(ls_comm_all_reduce(comm, LS_SUM, x, MANY, LS_F32, NULL, NULL));
    LST_OK(ls_comm_all_reduce(comm, LS_SUM, y, 2, LS_F32, NULL, NULL));
    return ls_comm_group_end(comm, NULL, err);
}

static ls_status share_numbers(ls_comm *comm, float *x, float *y, ls_error *err)
{
    int64_t mine = 1, all[LST_MOST_RANKS];

    (void)x;
    (void)y;
    return lsi_comm_share(comm, "numbers", &mine, 1, all, here, err);
}

static ls_status split_all(ls_comm *comm, float *x, float *y, ls_error *err)
{
    ls_comm *part = NULL;
    const ls_status st = ls_comm_split(comm, 0, 0, &part, err);

    (void)x;
    (void)y;
    LST_CHECK(part == NULL);
    return st;
}

static ls_status (*const calls[])(ls_comm *comm, float *x, float *y, ls_error *err) = {
    sum_few,   sum_many,  cast_many,     gather_many, just_meet,
    start_one, run_batch, share_numbers, split_all};

/* Whether rank r of `size` declines in turn `turn`: at least one does. */
static bool declines(int turn, int r, int size)
{
    return turn % (size + 1) == size || r == turn % (size + 1) ||
           (turn % 3 == 0 && r == size - 1);
}

static int lowest(int turn, int size)
{
    int r = 0;

    while (!declines(turn, r, size)) {
        r++;
    }
    return r;
}

/* Half of the declining ranks have a batch open: its calls are forgotten. */
static ls_status decline(const lst_rank *me, float *x, ls_error *err)
{
    ls_error why = LS_ERROR_INIT;

    (void)lsi_fail_kind(&why, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME, "rank %d has none",
                        me->rank);
    if (me->rank % 2 == 1) {
        LST_OK(ls_comm_group_begin(me->comm, NULL));
        LST_OK(ls_comm_all_reduce(me->comm, LS_SUM, x, 3, LS_F32, NULL, NULL));
    }
    return lsi_comm_decline(me->comm, &why, here, err);
}

static void check_buffer(const float *x, size_t count, float want)
{
    bool right = true;

    for (size_t i = 0; i < count; i++) {
        right = right && x[i] == want;
    }
    LST_CHECK(right);
}

static void some_decline(lst_rank *me)
{
    float *x = malloc(MANY * sizeof *x), *y = malloc((size_t)MANY * 9 * sizeof *y);

    for (int turn = 0; turn < 3 * (me->size + 1); turn++) {
        for (size_t k = 0; k < sizeof calls / sizeof calls[0]; k++) {
            ls_error err = LS_ERROR_INIT;
            const int first = lowest(turn, me->size);
            char want[32];
            float one = 1;
            ls_status st;

            for (size_t i = 0; i < (size_t)MANY * 9; i++) {
                x[i % MANY] = (float)me->rank;
                y[i] = -1;
            }
            st = declines(turn, me->rank, me->size) ? decline(me, x, &err)
                                                    : calls[k](me->comm, x, y, &err);
            (void)snprintf(want, sizeof want, "rank %d has none", first);
            LST_FAILS(st, LS_FAILED_PRECONDITION, err, want);
            LST_CHECK(err.kind == LS_KIND_RUNTIME && err.rank == first);
            LST_CHECK(strcmp(err.file, "decline.c") == 0 && err.line == 7);
            check_buffer(x, MANY, (float)me->rank);
            check_buffer(y, (size_t)MANY * 9, -1);
            LST_CHECK(!lsi_comm_broken(me->comm));
            LST_OK(ls_comm_all_reduce(me->comm, LS_SUM, &one, 1, LS_F32, NULL, NULL));
            LST_CHECK(one == (float)me->size);
        }
    }
    free(x);
    free(y);
}

/* A rank and a site that the reason names are kept. */
static void decline_for_another(lst_rank *me)
{
    ls_error why = LS_ERROR_INIT, err = LS_ERROR_INIT;
    float x = 1;
    ls_status st;

    (void)lsi_fail(&why, LS_INVALID_ARGUMENT, 4, "no");
    lsi_error_set_site(&why, "user.c", 12);
    st = me->rank == me->size - 1
             ? lsi_comm_decline(me->comm, &why, here, &err)
             : ls_comm_all_reduce(me->comm, LS_SUM, &x, 1, LS_F32, NULL, &err);
    LST_FAILS(st, LS_INVALID_ARGUMENT, err, "no");
    LST_CHECK(err.rank == 4 && err.line == 12 && strcmp(err.file, "user.c") == 0);
}

/* The longest message and file arrive whole. */
static void decline_at_length(lst_rank *me)
{
    ls_error why = LS_ERROR_INIT, err = LS_ERROR_INIT;
    float x = 1;

    why.code = LS_DATA_LOSS;
    memset(why.message, 'm', sizeof why.message - 1);
    memset(why.file, 'f', sizeof why.file - 1);
    LST_CHECK((me->rank == 0 ? lsi_comm_decline(me->comm, &why, here, &err)
                             : ls_comm_all_reduce(me->comm, LS_SUM, &x, 1, LS_F32, NULL,
                                                  &err)) == LS_DATA_LOSS);
    LST_CHECK(strcmp(err.message, why.message) == 0);
    LST_CHECK(strcmp(err.file, why.file) == 0);
}

/* A rank without memory for the numbers of all ranks. */
static void share_without_memory(lst_rank *me)
{
    int64_t mine = 1, all[LST_MOST_RANKS] = {0};
    ls_error err = LS_ERROR_INIT;

    LST_FAILS(lsi_comm_share(me->comm, "numbers", &mine, 1, me->rank == 0 ? NULL : all,
                             here, &err),
              LS_RESOURCE_EXHAUSTED, err, "numbers");
    LST_CHECK(err.rank == 0 && all[0] == 0);
    LST_OK(lsi_comm_share(me->comm, "numbers", &mine, 1, all, here, NULL));
    LST_CHECK(all[me->size - 1] == 1);
}

/* A broken group fails a rank that declines as it fails every call. */
static void decline_in_a_broken_group(lst_rank *me)
{
    ls_error why = LS_ERROR_INIT, err = LS_ERROR_INIT;

    (void)lsi_fail(&why, LS_INTERNAL, -1, "no");
    ls_comm_abort(me->comm);
    LST_FAILS(lsi_comm_decline(me->comm, &why, here, &err), LS_ABORTED, err, "aborted");
}

void lst_comm_declining(const lst_comm_factory *f)
{
    lst_run_sizes(f, some_decline, NULL);
    lst_run_sizes(f, decline_for_another, NULL);
    lst_run_sizes(f, decline_at_length, NULL);
    lst_run_sizes(f, share_without_memory, NULL);
    lst_run_sizes(f, decline_in_a_broken_group, NULL);
}
