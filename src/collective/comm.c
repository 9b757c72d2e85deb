/*
 * Communicators, whatever their backend: options and the state of the group are checked
 * here, once; works are made, posted, waited for and reused here.
 */
#include "collective/call.h"

#include <stdio.h>

/* The site of the next call of this thread; cleared by that call. */
static _Thread_local lsi_comm_site here;

void ls_comm_at(const char *file, int line)
{
    here.file = file;
    here.line = line;
}

lsi_comm_site lsi_comm_take_site(void)
{
    const lsi_comm_site site = here;

    here.file = NULL;
    here.line = 0;
    return site;
}

int ls_comm_rank(const ls_comm *comm)
{
    return comm != NULL ? comm->rank : -1;
}

int ls_comm_size(const ls_comm *comm)
{
    return comm != NULL ? comm->size : 0;
}

const char *ls_comm_backend(const ls_comm *comm)
{
    return comm != NULL ? comm->backend->name : "?";
}

lsi_deadline lsi_comm_deadline(const ls_comm *comm, const ls_comm_work *work)
{
    return lsi_deadline_in_ms(work->timeout_ms != 0 ? work->timeout_ms
                                                    : comm->timeout_ms);
}

ls_status lsi_comm_options_copy(const ls_comm_options *from, ls_comm_options *to,
                                ls_error *err)
{
    static const ls_comm_options init = LS_COMM_OPTIONS_INIT;

    *to = init;
    if (from == NULL) {
        return LS_OK;
    }
    if (from->struct_size < sizeof from->struct_size) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "the options have size %zu: start them from LS_COMM_OPTIONS_INIT",
                        from->struct_size);
    }
    memcpy(to, from, LSI_MIN(from->struct_size, sizeof *to));
    to->struct_size = sizeof *to;
    if (to->subdivisions < 0) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "%d subdivisions of a ring: it is 1 or more, or 0 to choose",
                        to->subdivisions);
    }
    return LS_OK;
}

static void free_calls(ls_comm_work *work)
{
    for (size_t i = 0; i < work->call_count; i++) {
        lsi_free(work->calls[i].partial);
        lsi_free(work->calls[i].own_counts);
        work->calls[i].partial = NULL;
        work->calls[i].own_counts = NULL;
    }
    if (work->owns_calls && !work->posted) {
        lsi_free(work->calls);
        work->owns_calls = false;
        work->calls = &work->one;
        work->call_count = 1;
    }
}

void lsi_work_end(ls_comm_work *work, const ls_error *why)
{
    free_calls(work);
    work->status = LS_OK;
    if (why != NULL) {
        work->status = lsi_fail_again(&work->why, why);
    }
    work->ended = true;
}

/* Returns the failure to the caller, with the caller's site if it has none. */
static ls_status report_failure(const ls_comm_work *work, lsi_comm_site site,
                                ls_error *err)
{
    if (work->status == LS_OK) {
        return LS_OK;
    }
    (void)lsi_fail_again(err, &work->why);
    if (err != NULL && err->struct_size >= offsetof(ls_error, message) &&
        err->file[0] == '\0') {
        lsi_error_set_site(err, site.file, site.line);
    }
    return work->status;
}

/*
 * A failure other than of the arguments breaks the group: no rank may wait for this one.
 */
static ls_status break_group(ls_comm *comm, ls_status st, const ls_error *why,
                             ls_error *err)
{
    if (st != LS_OK && st != LS_INVALID_ARGUMENT) {
        comm->backend->fail(comm, why);
    }
    return st == LS_OK ? LS_OK : lsi_fail_again(err, why);
}

static void begin_work(ls_comm_work *work, ls_comm *comm, int64_t timeout_ms)
{
    // Everything but `why`, which is large and read only if it was set.
    memset((char *)work + offsetof(ls_comm_work, timeout_ms), 0,
           offsetof(ls_comm_work, why) - offsetof(ls_comm_work, timeout_ms));
    memset((char *)work + offsetof(ls_comm_work, next), 0,
           sizeof *work - offsetof(ls_comm_work, next));
    work->why.struct_size = sizeof work->why;
    work->comm = comm;
    work->calls = &work->one;
    work->call_count = 1;
    work->timeout_ms = timeout_ms;
}

LSI_HOT ls_status lsi_comm_run(ls_comm *comm, lsi_call *call, int64_t timeout_ms,
                               ls_error *err)
{
    ls_comm_work work;
    ls_status st;

    begin_work(&work, comm, timeout_ms);
    work.calls = call;
    st = comm->backend->post(comm, &work, &work.why);
    if (st != LS_OK) {
        free_calls(&work);
        return break_group(comm, st, &work.why, err);
    }
    comm->backend->wait(comm, &work);
    return report_failure(&work, call->site, err);
}

static ls_comm_work *take_work(ls_comm *comm)
{
    ls_comm_work *work = comm->spare;

    if (work != NULL) {
        comm->spare = work->next;
        return work;
    }
    return lsi_alloc(1, sizeof *work);
}

static void recycle_work(ls_comm *comm, ls_comm_work *work)
{
    work->next = comm->spare;
    comm->spare = work;
}

/* Adds to the list of works that were started and not waited for. */
static void link_work(ls_comm *comm, ls_comm_work *work)
{
    work->before = NULL;
    work->after = comm->works;
    if (comm->works != NULL) {
        comm->works->before = work;
    }
    comm->works = work;
}

static void unlink_work(ls_comm *comm, ls_comm_work *work)
{
    if (work->before != NULL) {
        work->before->after = work->after;
    } else {
        comm->works = work->after;
    }
    if (work->after != NULL) {
        work->after->before = work->before;
    }
}

/*
 * Copies the counts: the caller may free its own when a call that does not block returns.
 */
static ls_status keep_counts(const ls_comm *comm, lsi_call *call, ls_error *err)
{
    const size_t bytes = (size_t)comm->size * sizeof *call->counts;

    if (call->counts == NULL) {
        return LS_OK;
    }
    call->own_counts = lsi_alloc((size_t)comm->size, sizeof *call->counts);
    if (call->own_counts == NULL) {
        return lsi_fail_memory(err, "the counts of a gather", bytes);
    }
    memcpy(call->own_counts, call->counts, bytes);
    call->counts = call->own_counts;
    return LS_OK;
}

static ls_status start_work(ls_comm *comm, const lsi_call *call, int64_t timeout_ms,
                            ls_comm_work **out, ls_error *err)
{
    ls_error why = LS_ERROR_INIT;
    ls_comm_work *work = take_work(comm);
    ls_status st;

    if (work == NULL) {
        st = lsi_fail_memory(&why, "a started call", sizeof *work);
        return break_group(comm, st, &why, err);
    }
    begin_work(work, comm, timeout_ms);
    work->one = *call;
    work->site = call->site;
    st = keep_counts(comm, &work->one, &why);
    if (st == LS_OK) {
        st = comm->backend->post(comm, work, &why);
    }
    if (st != LS_OK) {
        free_calls(work);
        recycle_work(comm, work);
        return break_group(comm, st, &why, err);
    }
    link_work(comm, work);
    (void)comm->backend->test(comm, work);
    *out = work;
    return LS_OK;
}

/* Notes a call of a batch; it runs at the end of the batch. */
static ls_status note_call(ls_comm *comm, const lsi_call *call, ls_error *err)
{
    ls_error why = LS_ERROR_INIT;
    lsi_call *slot;
    ls_status st;

    if (comm->noted_count == comm->noted_room) {
        const size_t room = comm->noted_room > 0 ? 2 * comm->noted_room : 8;
        lsi_call *grown =
            lsi_realloc(comm->noted, comm->noted_room, room, sizeof *comm->noted);

        if (grown == NULL) {
            st = lsi_fail_memory(&why, "a batch of calls", room * sizeof *grown);
            return break_group(comm, st, &why, err);
        }
        comm->noted = grown;
        comm->noted_room = room;
    }
    slot = &comm->noted[comm->noted_count];
    *slot = *call;
    st = keep_counts(comm, slot, &why);
    if (st == LS_OK) {
        comm->noted_count++;
    }
    return break_group(comm, st, &why, err);
}

static ls_status fail_as_before(ls_comm *comm, ls_error *err) LSI_COLD;

static ls_status fail_as_before(ls_comm *comm, ls_error *err)
{
    ls_error why = LS_ERROR_INIT;

    (void)comm->backend->broken(comm, &why);
    return lsi_fail_again(err, &why);
}

/* The failure that broke the group, if any: no call may follow it. */
static ls_status check_whole(ls_comm *comm, ls_error *err)
{
    return comm->backend->broken(comm, NULL) ? fail_as_before(comm, err) : LS_OK;
}

LSI_HOT ls_status lsi_comm_call(ls_comm *comm, lsi_call *call,
                                const ls_comm_options *opts, ls_comm_work **out,
                                ls_error *err)
{
    static const ls_comm_options init = LS_COMM_OPTIONS_INIT;
    ls_comm_options o = init;
    ls_status st = opts != NULL ? lsi_comm_options_copy(opts, &o, err) : LS_OK;

    if (st == LS_OK) {
        st = lsi_call_prepare(comm, call, &o, err);
    }
    if (st == LS_OK) {
        st = check_whole(comm, err);
    }
    if (st != LS_OK) {
        return st;
    }
    if (out != NULL) {
        if (comm->batching) {
            return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                            "%s is started inside a batch of calls: only blocking calls "
                            "may come before ls_comm_group_end()",
                            lsi_call_name(call->kind));
        }
        return start_work(comm, call, o.timeout_ms, out, err);
    }
    return comm->batching ? note_call(comm, call, err)
                          : lsi_comm_run(comm, call, o.timeout_ms, err);
}

bool ls_comm_test(ls_comm_work *work)
{
    return work == NULL || work->ended || work->comm->backend->test(work->comm, work);
}

ls_status ls_comm_wait(ls_comm_work *work, ls_error *err)
{
    ls_comm *comm;
    ls_status st;

    if (work == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "ls_comm_wait: there is no work (it is NULL)");
    }
    comm = work->comm;
    if (!work->ended) {
        comm->backend->wait(comm, work);
    }
    st = report_failure(work, work->site, err);
    unlink_work(comm, work);
    recycle_work(comm, work);
    return st;
}

ls_status ls_comm_group_begin(ls_comm *comm, ls_error *err)
{
    if (comm == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "ls_comm_group_begin: there is no communicator (it is NULL)");
    }
    if (comm->batching) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "ls_comm_group_begin: a batch of calls is open already; end it "
                        "with ls_comm_group_end() first");
    }
    comm->batching = true;
    return LS_OK;
}

void lsi_comm_forget_batch(ls_comm *comm)
{
    for (size_t i = 0; i < comm->noted_count; i++) {
        lsi_free(comm->noted[i].own_counts);
    }
    comm->noted_count = 0;
    comm->batching = false;
}

static bool is_p2p(const lsi_call *call)
{
    return call->kind == LSI_CALL_SEND || call->kind == LSI_CALL_RECV;
}

/* Each send or receive of a batch is a work of its own; `*p2p` lists them. */
static ls_status post_p2p(ls_comm *comm, int64_t timeout_ms, ls_comm_work **p2p,
                          ls_error *err)
{
    for (size_t i = 0; i < comm->noted_count; i++) {
        ls_comm_work *work = NULL;
        ls_status st;

        if (!is_p2p(&comm->noted[i])) {
            continue;
        }
        st = start_work(comm, &comm->noted[i], timeout_ms, &work, err);
        if (st != LS_OK || work == NULL) {
            return st;
        }
        work->chain = *p2p;
        *p2p = work;
    }
    return LS_OK;
}

/* All collectives of the batch as one work: the ranks wait for each other once. */
static ls_status run_collectives(ls_comm *comm, lsi_comm_site site, int64_t timeout_ms,
                                 ls_error *err)
{
    ls_comm_work work;
    size_t n = 0;
    ls_status st;

    begin_work(&work, comm, timeout_ms);
    work.one = (lsi_call){.kind = LSI_CALL_BATCH, .peer = -1, .site = site};
    for (size_t i = 0; i < comm->noted_count; i++) {
        n += is_p2p(&comm->noted[i]) ? 0 : 1;
    }
    if (n == 0) {
        return LS_OK;
    }
    work.calls = lsi_alloc(n, sizeof *work.calls);
    if (work.calls == NULL) {
        st = lsi_fail_memory(&work.why, "a batch of calls", n * sizeof *work.calls);
        return break_group(comm, st, &work.why, err);
    }
    work.owns_calls = true;
    work.call_count = n;
    n = 0;
    for (size_t i = 0; i < comm->noted_count; i++) {
        if (!is_p2p(&comm->noted[i])) {
            work.calls[n++] = comm->noted[i];
            comm->noted[i].own_counts = NULL; // the work's now
        }
    }
    st = comm->backend->post(comm, &work, &work.why);
    if (st != LS_OK) {
        free_calls(&work);
        return break_group(comm, st, &work.why, err);
    }
    comm->backend->wait(comm, &work);
    return report_failure(&work, site, err);
}

ls_status(ls_comm_group_end)(ls_comm *comm, const ls_comm_options *opts, ls_error *err)
{
    const lsi_comm_site site = lsi_comm_take_site();
    ls_comm_work *p2p = NULL;
    ls_error later = LS_ERROR_INIT;
    ls_comm_options o;
    ls_status st;

    if (comm == NULL || !comm->batching) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "ls_comm_group_end without ls_comm_group_begin");
    }
    comm->batching = false;
    st = lsi_comm_options_copy(opts, &o, err);
    if (st == LS_OK) {
        st = check_whole(comm, err);
    }
    if (st == LS_OK) {
        st = post_p2p(comm, o.timeout_ms, &p2p, err);
    }
    if (st == LS_OK) {
        st = run_collectives(comm, site, o.timeout_ms, err);
    }
    while (p2p != NULL) {
        ls_comm_work *work = p2p;
        ls_status ended;

        p2p = work->chain;
        ended = ls_comm_wait(work, st == LS_OK ? err : &later);
        st = st == LS_OK ? ended : st;
    }
    lsi_comm_forget_batch(comm);
    return st;
}

ls_status lsi_comm_decline(ls_comm *comm, const ls_error *why, lsi_comm_site site,
                           ls_error *err)
{
    unsigned char reason[LSI_REASON_MOST];
    ls_error sited = LS_ERROR_INIT;
    lsi_call call = {.kind = LSI_CALL_DECLINE,
                     .dtype = LS_U8,
                     .size = 1,
                     .peer = -1,
                     .from = reason,
                     .algorithm = LSI_ALGORITHM_INLINE,
                     .site = site};
    ls_status st;

    LSI_ASSERT(why->code != LS_OK);
    (void)lsi_fail_again(&sited, why);
    if (sited.file[0] == '\0') {
        lsi_error_set_site(&sited, site.file, site.line);
    }
    call.count = lsi_reason_write(&sited, reason);
    call.inlined = lsi_inline_size(&call, comm->size);
    lsi_comm_forget_batch(comm);
    st = check_whole(comm, err);
    return st == LS_OK ? lsi_comm_run(comm, &call, 0, err) : st;
}

ls_comm *ls_comm_retain(ls_comm *comm)
{
    if (comm != NULL) {
        (void)atomic_fetch_add_explicit(&comm->refs, 1, memory_order_relaxed);
    }
    return comm;
}

void ls_comm_release(ls_comm *comm)
{
    ls_comm_work *work;
    ls_error why = LS_ERROR_INIT;

    if (comm == NULL ||
        atomic_fetch_sub_explicit(&comm->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (comm->works != NULL) { // not waited for any more, so other ranks must not wait
        (void)lsi_fail(&why, LS_UNAVAILABLE, comm->rank,
                       "rank %d was released before it waited for all calls it started",
                       comm->rank);
        comm->backend->fail(comm, &why);
    }
    while ((work = comm->works) != NULL) {
        (void)!ls_comm_wait(work, NULL);
    }
    while ((work = comm->spare) != NULL) {
        comm->spare = work->next;
        lsi_free(work);
    }
    lsi_comm_forget_batch(comm);
    lsi_free(comm->noted);
    comm->backend->destroy(comm);
}

void ls_comm_abort(ls_comm *comm)
{
    ls_error why = LS_ERROR_INIT;

    if (comm != NULL) {
        (void)lsi_fail(&why, LS_ABORTED, comm->rank,
                       "the group was aborted through the handle of rank %d", comm->rank);
        comm->backend->fail(comm, &why);
    }
}

void lsi_comm_break(ls_comm *comm, const ls_error *why)
{
    comm->backend->fail(comm, why);
}

void lsi_comm_leave(ls_comm *comm, const ls_error *why)
{
    LSI_ASSERT(comm->backend->leave != NULL);
    comm->backend->leave(comm, why);
}

void lsi_comm_renew(ls_comm *comm)
{
    LSI_ASSERT(comm->backend->renew != NULL);
    comm->backend->renew(comm);
}

ls_status lsi_comm_failure(ls_comm *comm, ls_error *err)
{
    ls_error why = LS_ERROR_INIT;

    return comm->backend->broken(comm, &why) ? lsi_fail_again(err, &why) : LS_OK;
}

bool lsi_comm_broken(const ls_comm *comm)
{
    return comm->backend->broken((ls_comm *)(uintptr_t)comm, NULL);
}

ls_status(ls_comm_split)(ls_comm *comm, int colour, int key, ls_comm **out, ls_error *err)
{
    const lsi_comm_site site = lsi_comm_take_site();
    ls_status st;

    if (comm == NULL || out == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "ls_comm_split: there is no %s (it is NULL)",
                        comm == NULL ? "communicator" : "room for the result");
    }
    if (comm->batching) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "ls_comm_split inside a batch of calls: call ls_comm_group_end() "
                        "first");
    }
    st = check_whole(comm, err);
    return st == LS_OK ? comm->backend->split(comm, colour, key, site, out, err) : st;
}
