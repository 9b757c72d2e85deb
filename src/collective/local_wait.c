/*
 * How a rank of a local group waits: it spins, then sleeps; logs which rank is late;
 * fails at its deadline; and leaves a broken group only when no other rank uses its
 * buffers.
 */
#include "collective/local.h"

#include <inttypes.h>
#include <stdio.h>

#define NS_PER_MS 1000000
#define LATE_NS ((int64_t)2000 * NS_PER_MS)

enum {
    QUICK_POLLS = 16,     // without a pause: ranks in step arrive within these
    POLLS_PER_CLOCK = 64, // reading the clock costs as much as some pauses
    YIELDS_PER_CLOCK = 4
};

/* One wait. The clock is not read before the first polls have failed. */
struct waiter {
    lsi_local_comm *c;
    ls_comm_work *work;
    int polls;
    int64_t began; // 0: the clock was not read yet
    int64_t spin_until;
    lsi_deadline deadline;
    bool warned;
};

static bool poll_work(lsi_local_comm *c, ls_comm_work *work)
{
    lsi_local_progress(c);
    return work->ended || (lsi_work_is_p2p(work) && lsi_p2p_test(c, work));
}

/* The call that this rank waits in: its first collective, or a send or receive. */
static const lsi_call *waiting_call(const struct waiter *p)
{
    const ls_comm_work *work =
        lsi_work_is_p2p(p->work) || p->c->first == NULL ? p->work : p->c->first;

    return work->owns_calls ? &work->one : &work->calls[0];
}

/* True if this rank waits for a send or receive, not for a collective. */
static bool waits_for_peer(const struct waiter *p)
{
    return p->c->first == NULL || lsi_work_is_p2p(p->work);
}

/* True if the first collective waits for rank r. */
static bool holds_up(lsi_local_comm *c, int r)
{
    const ls_comm_work *work = c->first;
    lsi_slot *slot = &c->group->slots[r];

    if (!work->posted) {
        return work->sequence - atomic_load(&slot->finished) >= LSI_CALLS_AHEAD;
    }
    return work->running ? r != c->base.rank && atomic_load(&slot->busy)
                         : !lsi_local_has_come(c->group, r, work->sequence);
}

/* The rank that this one waits for; -1: not known. */
static int late_rank(const struct waiter *p)
{
    if (waits_for_peer(p)) {
        return p->work->calls[0].peer;
    }
    for (int r = 0; r < p->c->group->size; r++) {
        if (holds_up(p->c, r)) {
            return r;
        }
    }
    return -1;
}

/* True if rank r makes no more calls: it is gone, or has left this generation. */
static bool has_left(lsi_local_group *g, int r)
{
    return atomic_load(&g->slots[r].gone) ||
           atomic_load(&g->slots[r].left) == g->generation + 1;
}

/* A rank that this one waits for and that makes no more calls; -1: there is none. */
static int left_rank(const struct waiter *p)
{
    lsi_local_comm *c = p->c;

    if (waits_for_peer(p)) {
        return has_left(c->group, late_rank(p)) ? late_rank(p) : -1;
    }
    for (int r = 0; r < c->group->size && !c->first->running; r++) {
        if (holds_up(c, r) && has_left(c->group, r)) {
            return r;
        }
    }
    return -1;
}

/* "rank 1, last seen in all_reduce at train.c:40" */
static void describe_rank(lsi_local_group *g, int rank, char *out, size_t size)
{
    lsi_slot *slot;
    const char *file;

    if (rank < 0) {
        (void)snprintf(out, size, "the other ranks");
        return;
    }
    slot = &g->slots[rank];
    file = atomic_load(&slot->last_file);
    if (atomic_load(&slot->gone)) {
        (void)snprintf(out, size, "rank %d, whose handle was released", rank);
    } else if (file != NULL) {
        (void)snprintf(out, size, "rank %d, last seen in %s at %.160s:%d", rank,
                       lsi_call_name((lsi_call_kind)atomic_load(&slot->last_kind)), file,
                       atomic_load(&slot->last_line));
    } else {
        (void)snprintf(out, size, "rank %d, which has made no call with a known site",
                       rank);
    }
}

static void warn_late(const struct waiter *p, int64_t now)
{
    const lsi_call *call = waiting_call(p);
    char who[256];

    describe_rank(p->c->group, late_rank(p), who, sizeof who);
    lsi_log(LS_LOG_WARNING, "rank %d of %d: %s at %.160s:%d has waited %.1f s for %s",
            p->c->base.rank, p->c->base.size, lsi_call_title(call),
            call->site.file != NULL ? call->site.file : "?", call->site.line,
            (double)(now - p->began) * 1e-9, who);
}

static void fail_at_deadline(const struct waiter *p, int64_t now)
{
    const lsi_call *call = waiting_call(p);
    const int late = late_rank(p);
    ls_error why = LS_ERROR_INIT;
    char who[256];

    describe_rank(p->c->group, late, who, sizeof who);
    (void)lsi_fail(&why, LS_DEADLINE_EXCEEDED, late,
                   "%s of rank %d at %.100s:%d has waited %" PRId64
                   " ms for %s; the timeout is set by the options or "
                   "LS_COMM_TIMEOUT_MS",
                   lsi_call_title(call), p->c->base.rank,
                   call->site.file != NULL ? call->site.file : "?", call->site.line,
                   (now - p->began) / NS_PER_MS, who);
    p->c->base.backend->fail(&p->c->base, &why);
}

/* Fails if a rank that is waited for makes no more calls. */
static void check_left(const struct waiter *p)
{
    const int late = left_rank(p);
    ls_error why = LS_ERROR_INIT;
    const lsi_call *call;

    if (late < 0 || poll_work(p->c, p->work) || left_rank(p) != late) {
        return; // or it posted the call before it left
    }
    if (!atomic_load(&p->c->group->slots[late].gone)) {
        (void)lsi_fail_again(&why, p->c->group->slots[late].why);
        why.rank = why.rank < 0 ? late : why.rank;
        p->c->base.backend->fail(&p->c->base, &why);
        return;
    }
    call = waiting_call(p);
    (void)lsi_fail(&why, LS_UNAVAILABLE, late,
                   "rank %d is gone: its handle was released, and %s of rank %d at "
                   "%.160s:%d needs it",
                   late, lsi_call_title(call), p->c->base.rank,
                   call->site.file != NULL ? call->site.file : "?", call->site.line);
    p->c->base.backend->fail(&p->c->base, &why);
}

static unsigned wants(const struct waiter *p)
{
    const ls_comm_work *first = p->c->first;
    unsigned what = lsi_work_is_p2p(p->work) ? LSI_WANTS_P2P : 0;

    if (first != NULL) {
        what |= !first->posted    ? LSI_WANTS_ROOM
                : !first->running ? LSI_WANTS_ARRIVAL
                                  : LSI_WANTS_TASKS;
        // A later work may wait for a free entry.
        what |= p->c->unposted != NULL ? LSI_WANTS_ROOM : 0;
    }
    return what;
}

/*
 * Sleeps until the bell is rung or until `until`. `wants` is stored before the last poll,
 * so a rank that makes it true after that poll sees it and rings.
 */
static void sleep_wait(struct waiter *p, lsi_deadline until)
{
    lsi_local_group *g = p->c->group;
    lsi_slot *slot = &g->slots[p->c->base.rank];
    const unsigned bell = lsi_word_get(&slot->bell);
    const uint64_t moves = p->c->moves;

    atomic_store(&slot->wants, wants(p));
    (void)atomic_fetch_add(&g->sleepers, 1);
    if (!poll_work(p->c, p->work) && p->c->moves == moves &&
        !atomic_load(&g->failure.set) && left_rank(p) < 0) {
        lsi_word_sleep(&slot->bell, bell, until);
    }
    (void)atomic_fetch_sub(&g->sleepers, 1);
    atomic_store(&slot->wants, 0);
}

static void begin_wait(struct waiter *p)
{
    p->began = lsi_now_ns();
    p->spin_until = p->began + p->c->group->spin_ns;
    p->deadline = lsi_comm_deadline(&p->c->base, p->work);
}

/* After a poll that found nothing. */
static void pause_wait(struct waiter *p)
{
    lsi_local_group *g = p->c->group;
    int64_t now;

    if (g->spin_ns > 0) {
        if (g->crowded) {
            lsi_yield();
        } else if (p->polls >= QUICK_POLLS) {
            lsi_pause();
        }
        if (++p->polls % (g->crowded ? YIELDS_PER_CLOCK : POLLS_PER_CLOCK) != 0) {
            return;
        }
    }
    if (p->began == 0) {
        begin_wait(p);
    }
    now = lsi_now_ns();
    check_left(p);
    if (now < p->spin_until) {
        return;
    }
    if (!p->warned && now - p->began >= LATE_NS) {
        p->warned = true;
        warn_late(p, now);
    }
    if (now >= p->deadline) {
        fail_at_deadline(p, now);
        return;
    }
    sleep_wait(p, p->warned ? p->deadline : LSI_MIN(p->deadline, p->began + LATE_NS));
    p->spin_until = lsi_now_ns() + g->spin_ns; // more progress often follows a wake-up
}

/*
 * The group is broken. Calls that all ranks have completed still succeed: a rank may
 * leave after its last call while others are still returning from it. The other works end
 * with the group's failure, once no rank uses this rank's buffers.
 */
static void leave_broken(lsi_local_comm *c, ls_comm_work *work)
{
    lsi_local_group *g = c->group;
    ls_error why = LS_ERROR_INIT;

    for (int r = 0; r < g->size; r++) {
        while (r != c->base.rank && atomic_load(&g->slots[r].busy)) {
            lsi_yield();
        }
    }
    lsi_local_progress(c);
    (void)lsi_failure_get(&g->failure, &why);
    while (c->first != NULL) {
        ls_comm_work *first = c->first;

        c->first = first->next;
        lsi_work_end(first, &why);
    }
    c->unposted = NULL;
    c->moves++;
    if (!work->ended) {
        lsi_p2p_withdraw(c, work, &why);
    }
}

LSI_HOT void lsi_local_wait(ls_comm *comm, ls_comm_work *work)
{
    struct waiter p = {.c = lsi_local_of(comm), .work = work};

    while (!poll_work(p.c, work)) {
        if (atomic_load(&p.c->group->failure.set)) {
            leave_broken(p.c, work);
            return;
        }
        pause_wait(&p);
    }
}
