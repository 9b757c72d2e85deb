/*
 * Generations of a group: ranks leave one by one; a rank that waits for one that has left
 * fails with its reason; the next generation is whole, however the last one ended.
 */
#include "comm_suite.h"

#include "collective/collective.h"

#include <string.h>

enum { TURNS = 8, MANY = 5000, AHEAD = 40 };

/* Why a rank leaves: kept until the next generation, as lsi_comm_leave() asks. */
struct generation {
    int turn;
    ls_error why[LST_MOST_RANKS];
};

static void leave(lst_rank *me)
{
    struct generation *g = me->arg;
    ls_error *why = &g->why[me->rank];

    *why = (ls_error)LS_ERROR_INIT;
    (void)lsi_fail_kind(why, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME, "%d left in %d",
                        me->rank, g->turn);
    lsi_comm_leave(me->comm, why);
}

static bool leaves_early(const lst_rank *me)
{
    const struct generation *g = me->arg;

    return me->rank == g->turn % me->size;
}

static void expect_reason(const lst_rank *me, ls_status st, const ls_error *err)
{
    const struct generation *g = me->arg;
    char want[32];

    (void)snprintf(want, sizeof want, "%d left in %d", g->turn % me->size, g->turn);
    LST_FAILS(st, LS_FAILED_PRECONDITION, *err, want);
    LST_CHECK(err->kind == LS_KIND_RUNTIME && err->rank == g->turn % me->size);
    LST_CHECK(lsi_comm_broken(me->comm));
}

/* Every rank makes the same calls and leaves at its own time: nothing has happened. */
static void all_is_well(lst_rank *me)
{
    float *x = calloc(MANY, sizeof *x), one = 1;

    LST_OK(ls_comm_all_reduce(me->comm, LS_SUM, x, MANY, LS_F32, NULL, NULL));
    LST_OK(ls_comm_all_reduce(me->comm, LS_SUM, &one, 1, LS_F32, NULL, NULL));
    LST_CHECK(one == (float)me->size);
    if (me->rank > 0) {
        LST_OK(ls_comm_send(me->comm, 0, &me->rank, 1, LS_I32, NULL, NULL));
    }
    for (int r = 1; r < me->size && me->rank == 0; r++) {
        int got = 0;

        LST_OK(ls_comm_recv(me->comm, r, 1, LS_I32, NULL, &got, NULL));
        LST_CHECK(got == r);
    }
    leave(me);
    free(x);
}

/* One rank leaves before a collective that the others call. */
static void one_is_missed(lst_rank *me)
{
    float *x = calloc(MANY, sizeof *x);
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_comm_barrier(me->comm, NULL, NULL));
    if (!leaves_early(me)) {
        expect_reason(
            me, ls_comm_all_reduce(me->comm, LS_SUM, x, MANY, LS_F32, NULL, &err), &err);
        expect_reason(me, ls_comm_barrier(me->comm, NULL, &err), &err);
    }
    leave(me);
    free(x);
}

/* The same for a message that does not come. */
static void a_sender_is_missed(lst_rank *me)
{
    ls_error err = LS_ERROR_INIT;
    const struct generation *g = me->arg;
    int got = 0;

    if (me->rank == (g->turn + 1) % me->size) {
        expect_reason(
            me, ls_comm_recv(me->comm, g->turn % me->size, 1, LS_I32, NULL, &got, &err),
            &err);
    }
    leave(me);
}

/* More calls are started than a rank may be ahead of one that has left. */
static void many_are_started(lst_rank *me)
{
    ls_comm_work *works[AHEAD] = {NULL};
    ls_error err = LS_ERROR_INIT;

    for (int i = 0; i < AHEAD && !leaves_early(me); i++) {
        if (ls_comm_start_barrier(me->comm, NULL, &works[i], &err) != LS_OK) {
            expect_reason(me, err.code, &err); // another rank has noticed already
        }
    }
    for (int i = AHEAD; i-- > 0 && !leaves_early(me);) {
        if (works[i] != NULL) {
            expect_reason(me, ls_comm_wait(works[i], &err), &err);
        }
    }
    leave(me);
}

/* A batch is left open, and a call was declined. */
static void a_batch_stays_open(lst_rank *me)
{
    ls_error why = LS_ERROR_INIT;

    (void)lsi_fail(&why, LS_DATA_LOSS, -1, "no");
    LST_CHECK(lsi_comm_decline(me->comm, &why, (lsi_comm_site){NULL, 0}, NULL) ==
              LS_DATA_LOSS);
    if (leaves_early(me)) {
        LST_OK(ls_comm_group_begin(me->comm, NULL));
        LST_OK(ls_comm_barrier(me->comm, NULL, NULL));
    }
    leave(me);
}

static void some_abort(lst_rank *me)
{
    leave(me);
    if (leaves_early(me)) {
        ls_comm_abort(me->comm);
    }
}

static void run_generations(const lst_comm_factory *f, int size)
{
    static const struct {
        lst_rank_fn fn;
        bool breaks;
    } kinds[] = {{one_is_missed, true},
                 {a_sender_is_missed, true},
                 {many_are_started, true},
                 {a_batch_stays_open, false},
                 {some_abort, true}};
    ls_comm *comms[LST_MOST_RANKS] = {NULL};
    struct generation g = {0};

    LST_OK(f->make(size, 0, comms, NULL));
    for (; g.turn < TURNS * (int)(sizeof kinds / sizeof kinds[0]); g.turn++) {
        const size_t k = (size_t)g.turn / TURNS;

        lst_run_group(f, comms, size, all_is_well, &g, NULL);
        LST_CHECK(!lsi_comm_broken(comms[0]));
        lsi_comm_renew(comms[g.turn % size]);
        if (size > 1 || !kinds[k].breaks) {
            lst_run_group(f, comms, size, kinds[k].fn, &g, NULL);
            LST_CHECK(lsi_comm_broken(comms[0]) == kinds[k].breaks);
            lsi_comm_renew(comms[g.turn % size]);
            LST_CHECK(!lsi_comm_broken(comms[0]));
        }
    }
    for (int r = 0; r < size; r++) {
        ls_comm_release(comms[r]);
    }
}

void lst_comm_generations(const lst_comm_factory *f)
{
    for (int size = 1; size <= LSI_MIN(f->most, 5); size++) {
        run_generations(f, size);
    }
}
