/*
 * Sends and receives of a local group. Each waits in the inbox of the receiver until its
 * counterpart is posted; then the rank that polls first copies, straight from buffer to
 * buffer. A copy that was begun is waited for even if the group breaks.
 */
#include "collective/local.h"

#include <stdio.h>

static lsi_p2p_inbox *inbox_of(lsi_local_comm *c, const ls_comm_work *work)
{
    const lsi_call *call = &work->calls[0];

    return &c->group->inboxes[call->kind == LSI_CALL_SEND ? call->peer : c->base.rank];
}

/* The queue that `work` of this rank waits in, or (other) its counterpart. */
static lsi_p2p_queue *queue_of(const lsi_local_comm *c, lsi_p2p_inbox *inbox,
                               const ls_comm_work *work, bool other)
{
    const lsi_call *call = &work->calls[0];
    const bool sends = call->kind == LSI_CALL_SEND;
    const int sender = sends ? c->base.rank : call->peer;

    return (sends != other ? inbox->sends : inbox->receives) + sender % LSI_P2P_QUEUES;
}

static void append_work(lsi_p2p_inbox *inbox, lsi_p2p_queue *queue, ls_comm_work *work)
{
    inbox->waiting++;
    work->p2p.next = NULL;
    work->p2p.queued = true;
    if (queue->first == NULL) {
        queue->first = work;
    } else {
        queue->last->p2p.next = work;
    }
    queue->last = work;
}

static void remove_work(lsi_p2p_inbox *inbox, lsi_p2p_queue *queue, ls_comm_work *work)
{
    ls_comm_work *before = NULL;

    inbox->waiting--;

    for (ls_comm_work *w = queue->first; w != work; w = w->p2p.next) {
        before = w;
    }
    if (before == NULL) {
        queue->first = work->p2p.next;
    } else {
        before->p2p.next = work->p2p.next;
    }
    if (queue->last == work) {
        queue->last = before;
    }
    work->p2p.queued = false;
}

/* The oldest counterpart between the same two ranks. */
static ls_comm_work *find_other(const lsi_local_comm *c, const lsi_p2p_queue *queue,
                                const ls_comm_work *work)
{
    for (ls_comm_work *w = queue->first; w != NULL; w = w->p2p.next) {
        if (w->comm->rank == work->calls[0].peer && w->calls[0].peer == c->base.rank) {
            return w;
        }
    }
    return NULL;
}

static void clear_queue(lsi_p2p_queue *queue, const ls_error *why)
{
    while (queue->first != NULL) {
        ls_comm_work *work = queue->first;

        queue->first = work->p2p.next;
        work->p2p.queued = false;
        lsi_work_end(work, why);
    }
    queue->last = NULL;
}

void lsi_p2p_clear(lsi_p2p_inbox *inbox, const ls_error *why)
{
    for (int i = 0; i < LSI_P2P_QUEUES && inbox->waiting > 0; i++) {
        clear_queue(&inbox->sends[i], why);
        clear_queue(&inbox->receives[i], why);
    }
    inbox->waiting = 0;
}

/* Whether dtype and count agree; if not, both sides get the same failure. */
static bool check_match(ls_comm_work *work, ls_comm_work *other)
{
    const bool sends = work->calls[0].kind == LSI_CALL_SEND;
    const ls_comm_work *s = sends ? work : other, *r = sends ? other : work;
    const lsi_call *from = &s->calls[0], *to = &r->calls[0];
    ls_error why = LS_ERROR_INIT;

    if (from->dtype == to->dtype && from->count == to->count) {
        return true;
    }
    (void)lsi_fail(&why, from->dtype != to->dtype ? LS_INTERNAL : LS_INVALID_ARGUMENT, -1,
                   "%s: rank %d sends %zu of %s at %.100s:%d, rank %d receives %zu of %s "
                   "at %.100s:%d",
                   from->dtype != to->dtype ? "dtype mismatch" : "shape mismatch",
                   s->comm->rank, from->count, ls_dtype_name(from->dtype),
                   from->site.file != NULL ? from->site.file : "?", from->site.line,
                   r->comm->rank, to->count, ls_dtype_name(to->dtype),
                   to->site.file != NULL ? to->site.file : "?", to->site.line);
    work->why = other->why = why;
    work->p2p.mismatch = other->p2p.mismatch = true;
    work->p2p.taken = other->p2p.taken = true;
    return false;
}

void lsi_p2p_post(lsi_local_comm *c, ls_comm_work *work)
{
    lsi_local_group *g = c->group;
    lsi_slot *slot = &g->slots[c->base.rank];
    lsi_p2p_inbox *inbox = inbox_of(c, work);
    const lsi_call *call = &work->calls[0];
    ls_comm_work *other;

    atomic_store_explicit(&slot->last_kind, (int)call->kind, memory_order_relaxed);
    atomic_store_explicit(&slot->last_file, call->site.file, memory_order_relaxed);
    atomic_store_explicit(&slot->last_line, call->site.line, memory_order_relaxed);
    work->posted = true;
    lsi_mutex_lock(&inbox->lock);
    other = find_other(c, queue_of(c, inbox, work, true), work);
    if (other == NULL) {
        append_work(inbox, queue_of(c, inbox, work, false), work);
    } else {
        remove_work(inbox, queue_of(c, inbox, work, true), other);
        work->p2p.other = other;
        other->p2p.other = work;
        if (!check_match(work, other)) {
            atomic_store(&work->p2p.done, true);
            atomic_store(&other->p2p.done, true);
        } else {
            atomic_store(&work->p2p.matched, true);
            atomic_store(&other->p2p.matched, true);
        }
    }
    lsi_mutex_unlock(&inbox->lock);
    if (other != NULL) {
        lsi_local_wake(g, LSI_WANTS_P2P);
    }
}

/* Claims the copy for this rank: its counterpart, or NULL if the other rank copies. */
static ls_comm_work *claim_copy(lsi_local_comm *c, ls_comm_work *work)
{
    lsi_p2p_inbox *inbox = inbox_of(c, work);
    ls_comm_work *other;

    lsi_mutex_lock(&inbox->lock);
    other = work->p2p.taken ? NULL : work->p2p.other;
    if (other != NULL) {
        work->p2p.taken = other->p2p.taken = true;
    }
    lsi_mutex_unlock(&inbox->lock);
    return other;
}

static void copy_message(lsi_local_comm *c, ls_comm_work *work, ls_comm_work *other)
{
    const bool sends = work->calls[0].kind == LSI_CALL_SEND;
    const lsi_call *from = sends ? &work->calls[0] : &other->calls[0];
    const lsi_call *to = sends ? &other->calls[0] : &work->calls[0];

    if (from->count > 0) {
        memcpy(to->to, from->from, from->count * lsi_call_size(from));
    }
    atomic_store(&work->p2p.done, true);
    atomic_store(&other->p2p.done, true); // from here on the other work may be freed
    lsi_local_wake(c->group, LSI_WANTS_P2P);
}

static void finish_p2p(lsi_local_comm *c, ls_comm_work *work)
{
    const ls_error why = work->why;

    if (work->p2p.mismatch && why.code != LS_INVALID_ARGUMENT) {
        c->base.backend->fail(&c->base, &why);
    }
    c->moves++;
    lsi_work_end(work, work->p2p.mismatch ? &why : NULL);
}

bool lsi_p2p_test(lsi_local_comm *c, ls_comm_work *work)
{
    if (work->ended) {
        return true;
    }
    if (!atomic_load(&work->p2p.done) && atomic_load(&work->p2p.matched)) {
        ls_comm_work *other = claim_copy(c, work);

        if (other != NULL) {
            copy_message(c, work, other);
        }
    }
    if (!atomic_load(&work->p2p.done)) {
        return false;
    }
    finish_p2p(c, work);
    return true;
}

void lsi_p2p_withdraw(lsi_local_comm *c, ls_comm_work *work, const ls_error *why)
{
    lsi_p2p_inbox *inbox = inbox_of(c, work);
    bool taken;

    lsi_mutex_lock(&inbox->lock);
    taken = work->p2p.taken;
    if (work->p2p.queued) {
        remove_work(inbox, queue_of(c, inbox, work, false), work);
    } else if (!taken && work->p2p.other != NULL) {
        work->p2p.other->p2p.other = NULL;
    }
    lsi_mutex_unlock(&inbox->lock);
    if (taken) {
        while (!atomic_load(&work->p2p.done)) {
            lsi_yield(); // the other rank is copying
        }
        finish_p2p(c, work);
    } else {
        lsi_work_end(work, why);
    }
}
