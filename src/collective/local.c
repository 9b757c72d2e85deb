/* How calls of a local group are posted, compared between ranks, and run. */
#include "collective/local.h"

#include "base/hash.h"

static bool is_broken(lsi_local_group *g)
{
    return atomic_load(&g->failure.set);
}

void lsi_local_wake(lsi_local_group *group, unsigned what)
{
    if (atomic_load(&group->sleepers) == 0) {
        return;
    }
    for (int r = 0; r < group->size; r++) {
        lsi_slot *slot = &group->slots[r];

        if ((atomic_load(&slot->wants) & what) != 0) {
            lsi_word_add(&slot->bell, 1);
        }
    }
}

/* Wakes the others if this rank is the last to post the call: they can go on now. */
static void wake_if_last(lsi_local_group *g, uint32_t sequence)
{
    if (atomic_load(&g->sleepers) == 0) {
        return;
    }
    for (int r = 0; r < g->size; r++) {
        if (!lsi_local_has_come(g, r, sequence)) {
            return;
        }
    }
    lsi_local_wake(g, LSI_WANTS_ARRIVAL);
}

/* An entry can be reused when every rank has finished the call that was in it. */
static bool has_room(lsi_local_comm *c, uint32_t sequence)
{
    lsi_local_group *g = c->group;
    uint32_t least = sequence;

    if (sequence - c->room < LSI_CALLS_AHEAD) {
        return true;
    }
    for (int r = 0; r < g->size; r++) {
        const uint32_t finished = atomic_load(&g->slots[r].finished);

        if ((int32_t)(finished - least) < 0) {
            least = finished;
        }
    }
    c->room = least;
    return sequence - least < LSI_CALLS_AHEAD;
}

static unsigned char *payload_of(lsi_entry *e, size_t bytes)
{
    return bytes <= LSI_NEAR ? e->near : e->far;
}

static size_t inline_bytes(const ls_comm_work *work)
{
    size_t bytes = 0;

    for (size_t i = 0; i < work->call_count; i++) {
        bytes += work->calls[i].inlined;
    }
    return bytes;
}

/*
 * The summary of a batch of calls. The counts and pieces that a call refers to are freed
 * when its rank leaves; what others compare is kept in the call.
 */
static lsi_call summarize_batch(ls_comm_work *work, int ranks)
{
    lsi_call sum = {.kind = LSI_CALL_BATCH,
                    .dtype = LS_F32,
                    .peer = -1,
                    .count = work->call_count,
                    .detail = LSI_HASH_INIT,
                    .site = work->one.site};

    for (size_t i = 0; i < work->call_count; i++) {
        lsi_fingerprint f = lsi_fingerprint_of(&work->calls[i], ranks);

        work->calls[i].print = f.detail;
        f.site = 0;
        sum.detail = lsi_hash(sum.detail, &f, sizeof f);
    }
    return sum;
}

/* Stores the call, or the summary of a batch, and the calls that others may read. */
static void fill_call(lsi_entry *e, ls_comm_work *work, int ranks)
{
    if (e->owned != NULL) {
        lsi_free(e->owned);
        e->owned = NULL;
    }
    e->calls = &e->one;
    if (work->owns_calls) {
        e->one = summarize_batch(work, ranks);
        e->owned = work->calls;
        e->calls = e->owned;
    } else {
        e->one = work->calls[0];
    }
}

/*
 * Other ranks poll the entry's first cache line while it is written, and every poll
 * steals the line from this core: so it is built locally and stored once.
 */
static void publish_entry(lsi_local_comm *c, ls_comm_work *work)
{
    lsi_local_group *g = c->group;
    const int rank = c->base.rank;
    lsi_slot *slot = &g->slots[rank];
    lsi_entry *e = lsi_entry_of(g, rank, work->sequence);
    lsi_fingerprint print;
    _Alignas(8) unsigned char near[LSI_NEAR] = {0};

    fill_call(e, work, g->size);
    print = lsi_fingerprint_of(&e->one, g->size);
    print.group = (uint16_t)g->id;
    print.generation = (uint16_t)g->generation;
    print.sequence = work->sequence;
    if (work->inlined) {
        unsigned char *payload = inline_bytes(work) <= LSI_NEAR ? near : e->far;

        for (size_t i = 0; i < work->call_count; i++) {
            lsi_inline_send(&work->calls[i], g->size, rank, payload);
            payload += work->calls[i].inlined;
        }
    } else {
        // No rank uses these counters now: safe to reset.
        atomic_store_explicit(&slot->claims[work->sequence % LSI_CALLS_AHEAD].next, 0,
                              memory_order_relaxed);
        if (rank == 0) {
            atomic_store_explicit(&g->stages[work->sequence % LSI_CALLS_AHEAD].done, 0,
                                  memory_order_relaxed);
        }
    }
    atomic_store_explicit(&slot->last_kind, (int)e->one.kind, memory_order_relaxed);
    atomic_store_explicit(&slot->last_file, e->one.site.file, memory_order_relaxed);
    atomic_store_explicit(&slot->last_line, e->one.site.line, memory_order_relaxed);
    work->posted = true;
    e->print = print;
    memcpy(e->near, near, sizeof near);
    atomic_store(&e->posted, work->sequence + 1);
    wake_if_last(g, work->sequence);
}

static void publish_waiting(lsi_local_comm *c)
{
    while (c->unposted != NULL && has_room(c, c->unposted->sequence)) {
        publish_entry(c, c->unposted);
        c->unposted = c->unposted->next;
        c->moves++;
    }
}

static void release_partials(ls_comm_work *work)
{
    for (size_t i = 0; i < work->call_count; i++) {
        lsi_free(work->calls[i].partial);
        work->calls[i].partial = NULL;
    }
}

/* Allocates partial sums; decides whether the data is sent in the call itself. */
static ls_status prepare_work(lsi_local_comm *c, ls_comm_work *work, ls_error *err)
{
    const int ranks = c->group->size;
    size_t bytes = 0;

    work->inlined = true;
    for (size_t i = 0; i < work->call_count; i++) {
        lsi_call *call = &work->calls[i];
        const size_t elements =
            lsi_plan_partial(call, ranks, c->base.agreed.nodes, c->base.rank);

        if (call->algorithm != LSI_ALGORITHM_INLINE) {
            work->inlined = false;
        } else {
            bytes += call->inlined;
        }
        if (elements > 0) {
            const size_t size = elements * lsi_wide_size(call->dtype);

            call->partial = lsi_alloc_aligned(size, 64);
            if (call->partial == NULL) {
                release_partials(work);
                return lsi_fail_memory(err, "the partial sums of a reduction", size);
            }
        }
    }
    work->inlined = work->inlined && bytes <= LSI_INLINE_MOST;
    return LS_OK;
}

ls_status lsi_local_post(ls_comm *comm, ls_comm_work *work, ls_error *err)
{
    lsi_local_comm *c = lsi_local_of(comm);
    ls_status st;

    if (lsi_work_is_p2p(work)) {
        lsi_p2p_post(c, work);
        return LS_OK;
    }
    st = prepare_work(c, work, err);
    if (st != LS_OK) {
        return st;
    }
    work->sequence = c->next++;
    work->next = NULL;
    if (c->first == NULL) {
        c->first = work;
    } else {
        c->last->next = work;
    }
    c->last = work;
    if (c->unposted == NULL) {
        c->unposted = work;
    }
    publish_waiting(c);
    return LS_OK;
}

/* Ends the first work; this rank does not touch its entry and buffers any more. */
static void end_first(lsi_local_comm *c, const ls_error *why)
{
    ls_comm_work *work = c->first;

    c->first = work->next;
    c->moves++;
    atomic_store(&c->group->slots[c->base.rank].finished, work->sequence + 1);
    lsi_work_end(work, why);
    lsi_local_wake(c->group, LSI_WANTS_ROOM);
}

static bool same_call(const lsi_call *a, const lsi_call *b)
{
    return a->kind == b->kind && a->op == b->op && a->dtype == b->dtype &&
           a->count == b->count && a->print == b->print;
}

/* The first call in which two batches differ; SIZE_MAX: only their lengths do. */
static size_t first_difference(const lsi_entry *a, const lsi_entry *b)
{
    const size_t most = LSI_MIN(a->one.count, b->one.count);

    for (size_t i = 0; i < most; i++) {
        if (!same_call(&a->calls[i], &b->calls[i])) {
            return i;
        }
    }
    return SIZE_MAX;
}

/* Every rank compares with rank 0 in the same order, so all report the same mismatch. */
static ls_status compare_calls(lsi_local_comm *c, uint32_t sequence, ls_error *err)
{
    lsi_local_group *g = c->group;
    const lsi_entry *a = lsi_entry_of(g, 0, sequence);

    for (int r = 1; r < g->size; r++) {
        const lsi_entry *b = lsi_entry_of(g, r, sequence);
        const lsi_call *x = &a->one, *y = &b->one;

        if (lsi_fingerprint_equal(&a->print, &b->print)) {
            continue;
        }
        if (x->kind == LSI_CALL_BATCH && y->kind == LSI_CALL_BATCH) {
            const size_t i = first_difference(a, b);

            if (i != SIZE_MAX) {
                x = &a->calls[i];
                y = &b->calls[i];
            }
        }
        return lsi_mismatch(err, x, r, y);
    }
    return LS_OK;
}

static void finish_inline(lsi_local_comm *c, const ls_comm_work *work)
{
    lsi_local_group *g = c->group;
    const size_t bytes = inline_bytes(work);
    const unsigned char **payload = (const unsigned char **)(void *)c->coll.to;

    for (int r = 0; r < g->size; r++) {
        payload[r] = payload_of(lsi_entry_of(g, r, work->sequence), bytes);
    }
    for (size_t i = 0; i < work->call_count; i++) {
        const size_t size = work->calls[i].inlined;

        lsi_inline_finish(&work->calls[i], g->size, c->base.rank, payload, c->coll.from);
        for (int r = 0; r < g->size; r++) {
            payload[r] += size;
        }
    }
}

/* Sets up call work->at: finds the call of every rank. */
static void set_collective(lsi_local_comm *c, const ls_comm_work *work)
{
    lsi_local_group *g = c->group;

    for (int r = 0; r < g->size; r++) {
        c->calls[r] = &lsi_entry_of(g, r, work->sequence)->calls[work->at];
    }
    c->coll.mine = c->calls[c->base.rank];
    c->coll.piece = 0; // where the search for a piece begins
    c->coll.piece_at = 0;
}

/* A task of rank r's share, if one is left: [*task] of `tasks`. */
static bool claim_task(lsi_local_group *g, const ls_comm_work *work, int r, size_t tasks,
                       size_t *task)
{
    _Atomic uint64_t *next = &g->slots[r].claims[work->sequence % LSI_CALLS_AHEAD].next;
    const uint64_t begin = tasks * (size_t)r / (size_t)g->size;
    const uint64_t end = tasks * ((size_t)r + 1) / (size_t)g->size;
    const uint64_t step = (uint64_t)work->step << 32;
    uint64_t seen = atomic_load_explicit(next, memory_order_relaxed);

    for (;;) {
        const uint64_t index = seen >= step ? seen - step : 0;

        // A later step: this one is done. (An index is below 2^32.)
        if (index >= end - begin) {
            return false;
        }
        if (atomic_compare_exchange_weak_explicit(next, &seen, step + index + 1,
                                                  memory_order_relaxed,
                                                  memory_order_relaxed)) {
            *task = begin + index;
            return true;
        }
    }
}

/*
 * Runs tasks until none is left: first those of this rank, whose memory is near, then
 * what the next ranks have not begun. A rank that leaves a broken group waits until no
 * rank is busy, so no task may begin once the group is broken.
 */
static void run_tasks(lsi_local_comm *c, const ls_comm_work *work, const lsi_plan *plan,
                      size_t tasks)
{
    lsi_local_group *g = c->group;
    lsi_slot *slot = &g->slots[c->base.rank];
    uint64_t did = 0;
    size_t task = 0;

    atomic_store(&slot->busy, true);
    for (int i = 0; i < g->size; i++) {
        const int r = (c->base.rank + i) % g->size;

        while (!is_broken(g) && claim_task(g, work, r, tasks, &task)) {
            plan->run(&c->coll, work->phase, task, tasks);
            did++;
        }
    }
    if (did > 0) {
        _Atomic uint64_t *done = &g->stages[work->sequence % LSI_CALLS_AHEAD].done;

        c->moves++;
        if (atomic_fetch_add(done, did) + did == work->finished + tasks) {
            lsi_local_wake(g, LSI_WANTS_TASKS);
        }
    }
    atomic_store_explicit(&slot->busy, false, memory_order_release);
}

/* True when all phases of all calls are done. */
static bool run_phases(lsi_local_comm *c, ls_comm_work *work)
{
    _Atomic uint64_t *done = &c->group->stages[work->sequence % LSI_CALLS_AHEAD].done;

    for (; work->at < work->call_count; work->at++, work->phase = 0) {
        const lsi_plan *plan;
        int phases;

        set_collective(c, work);
        plan = lsi_plan_of(c->coll.mine);
        phases = plan->phases(&c->coll);
        for (; work->phase < phases; work->phase++, work->step++) {
            const size_t tasks = plan->tasks(&c->coll, work->phase);

            if (atomic_load(done) < work->finished + tasks) {
                run_tasks(c, work, plan, tasks);
            }
            if (atomic_load(done) < work->finished + tasks) {
                return false;
            }
            work->finished += tasks;
            c->moves++;
        }
    }
    return true;
}

static bool is_declined(const lsi_entry *e)
{
    return (e->print.what & 0xff) == LSI_CALL_DECLINE;
}

/* The failure of the lowest rank that declined; false: none did. */
static bool find_declined(lsi_local_group *g, uint32_t sequence, ls_error *why)
{
    for (int r = 0; r < g->size; r++) {
        lsi_entry *e = lsi_entry_of(g, r, sequence);

        if (is_declined(e)) {
            lsi_reason_read(payload_of(e, e->one.inlined), e->one.count, r, why);
            return true;
        }
    }
    return false;
}

static void end_refused(lsi_local_comm *c, uint32_t sequence) LSI_COLD;

/* The calls of the ranks do not agree, or a rank declined: that is not the group's. */
static void end_refused(lsi_local_comm *c, uint32_t sequence)
{
    ls_error why = LS_ERROR_INIT;

    if (!find_declined(c->group, sequence, &why) &&
        compare_calls(c, sequence, &why) != LS_INVALID_ARGUMENT) {
        lsi_failure_set(&c->group->failure, &why, c->base.rank);
        lsi_local_wake(c->group, LSI_WANTS_ALL);
    }
    end_first(c, &why);
}

/* True if the first work has ended. */
static bool advance_first(lsi_local_comm *c, ls_comm_work *work)
{
    lsi_local_group *g = c->group;

    if (!work->posted) {
        return false;
    }
    if (!work->running) {
        while (work->seen < g->size) {
            if (!lsi_local_has_come(g, work->seen, work->sequence)) {
                return false;
            }
            work->seen++;
        }
        work->running = true;
        c->moves++;
        // Declined calls are alike only if all ranks declined, rank 0 with them.
        if (compare_calls(c, work->sequence, NULL) != LS_OK ||
            is_declined(lsi_entry_of(g, 0, work->sequence))) {
            end_refused(c, work->sequence);
            return true;
        }
        if (work->inlined) {
            finish_inline(c, work);
        }
    }
    if (!work->inlined && !run_phases(c, work)) {
        return false;
    }
    end_first(c, NULL);
    return true;
}

LSI_HOT void lsi_local_progress(lsi_local_comm *c)
{
    do {
        if (c->unposted != NULL) {
            publish_waiting(c);
        }
    } while (c->first != NULL && advance_first(c, c->first));
}

bool lsi_local_test(ls_comm *comm, ls_comm_work *work)
{
    lsi_local_comm *c = lsi_local_of(comm);

    lsi_local_progress(c);
    if (!work->ended && lsi_work_is_p2p(work)) {
        return lsi_p2p_test(c, work);
    }
    if (!work->ended && is_broken(c->group)) {
        lsi_local_wait(comm, work); // ends with the group's failure
    }
    return work->ended;
}
