/* Local groups: how they are created, broken, renewed and released. */
#include "collective/local.h"

static void fail_local(ls_comm *comm, const ls_error *why)
{
    lsi_local_comm *c = lsi_local_of(comm);

    lsi_failure_set(&c->group->failure, why, comm->rank);
    lsi_local_wake(c->group, LSI_WANTS_ALL);
}

static bool is_broken(ls_comm *comm, ls_error *why)
{
    return lsi_failure_get(&lsi_local_of(comm)->group->failure, why);
}

static void destroy_handle(ls_comm *comm);
static void release_group(lsi_local_group *g);

void lsi_local_adopt(lsi_local_group *parent, lsi_local_group *orphan)
{
    lsi_mutex_lock(&parent->failure.lock);
    orphan->sibling = parent->orphans;
    parent->orphans = orphan;
    lsi_mutex_unlock(&parent->failure.lock);
}

static void destroy_orphans(lsi_local_group *orphan)
{
    while (orphan != NULL) {
        lsi_local_group *next = orphan->sibling;
        const int size = orphan->size;

        (void)atomic_fetch_add(&orphan->refs, 1); // until all handles were visited
        for (int r = 0; r < size; r++) {
            lsi_local_comm *c = orphan->handles[r];

            if (c != NULL && !atomic_load(&c->taken)) {
                destroy_handle(&c->base);
            }
        }
        release_group(orphan);
        orphan = next;
    }
}

static void destroy_group(lsi_local_group *g)
{
    destroy_orphans(g->orphans);
    for (int r = 0; g->slots != NULL && r < g->size; r++) {
        lsi_word_destroy(&g->slots[r].bell);
        for (int i = 0; i < LSI_CALLS_AHEAD; i++) {
            lsi_free(g->slots[r].queue[i].owned);
        }
    }
    for (int r = 0; g->inboxes != NULL && r < g->size; r++) {
        lsi_mutex_destroy(&g->inboxes[r].lock);
    }
    lsi_failure_destroy(&g->failure);
    lsi_free(g->slots);
    lsi_free(g->inboxes);
    lsi_free((void *)g->handles);
    lsi_free(g);
}

static void free_handle(lsi_local_comm *c)
{
    if (c != NULL) {
        lsi_free((void *)c->calls);
        lsi_free((void *)c->coll.from);
        lsi_free((void *)c->coll.to);
        lsi_free(c->coll.wide);
        lsi_free(c);
    }
}

static void release_group(lsi_local_group *g)
{
    if (atomic_fetch_sub(&g->refs, 1) == 1) {
        destroy_group(g);
    }
}

static void destroy_handle(ls_comm *comm)
{
    lsi_local_comm *c = lsi_local_of(comm);
    lsi_local_group *g = c->group;

    g->handles[comm->rank] = NULL;
    free_handle(c);
    release_group(g);
}

/* Releases a handle: other ranks learn that this rank is gone. */
static void leave_group(ls_comm *comm)
{
    lsi_local_comm *c = lsi_local_of(comm);
    lsi_slot *slot = &c->group->slots[comm->rank];

    atomic_store(&slot->gone, true);
    lsi_local_wake(c->group, LSI_WANTS_ALL);
    destroy_handle(comm);
}

static lsi_local_comm *make_handle(lsi_local_group *g, int rank)
{
    lsi_local_comm *c = lsi_alloc(1, sizeof *c);
    const size_t n = (size_t)g->size;

    if (c == NULL) {
        return NULL;
    }
    atomic_init(&c->base.refs, 1);
    c->base.backend = &lsi_backend_local;
    c->base.rank = rank;
    c->base.size = g->size;
    c->base.agreed = g->agreed;
    c->base.timeout_ms = g->timeout_ms;
    c->group = g;
    c->calls = (const lsi_call **)lsi_alloc(n, sizeof(void *));
    c->coll.from = (const void **)lsi_alloc(n, sizeof *c->coll.from);
    c->coll.to = (void **)lsi_alloc(n, sizeof *c->coll.to);
    c->coll.wide = lsi_alloc(n, sizeof *c->coll.wide);
    c->coll.ranks = g->size;
    c->coll.nodes = g->agreed.nodes;
    c->coll.calls = c->calls;
    if (c->calls == NULL || c->coll.from == NULL || c->coll.to == NULL ||
        c->coll.wide == NULL) {
        free_handle(c);
        return NULL;
    }
    return c;
}

/* How long to spin: with more ranks than cores a waiting rank yields its core. */
static void set_spin_time(lsi_local_group *g, int spin_us)
{
    g->spin_us = spin_us;
    g->crowded = g->size > g->agreed.cores;
    g->spin_ns = (int64_t)(spin_us == 0 ? lsi_team_spin_us() : spin_us) * 1000;
    if (g->spin_ns < 0) {
        g->spin_ns = 0;
    }
}

static lsi_local_group *make_group(int ranks, const ls_comm_local_options *opts,
                                   uint32_t id, const lsi_comm_agreed *agreed)
{
    lsi_local_group *g = lsi_alloc_aligned(sizeof *g, 64);
    const size_t n = (size_t)ranks;

    if (g == NULL) {
        return NULL;
    }
    memset(g, 0, sizeof *g);
    g->size = ranks;
    g->id = id;
    g->agreed = *agreed;
    g->timeout_ms = opts->timeout_ms == 0 ? lsi_comm_timeout_setting() : opts->timeout_ms;
    set_spin_time(g, opts->spin_us);
    lsi_failure_init(&g->failure);
    g->slots = lsi_alloc_aligned(n * sizeof *g->slots, 64);
    g->inboxes = lsi_alloc(n, sizeof *g->inboxes);
    g->handles = (lsi_local_comm **)lsi_alloc(n, sizeof(void *));
    if (g->slots != NULL) {
        memset((void *)g->slots, 0, n * sizeof *g->slots);
        for (int r = 0; r < ranks; r++) {
            lsi_word_init(&g->slots[r].bell, 0);
        }
    }
    for (int r = 0; g->inboxes != NULL && r < ranks; r++) {
        lsi_mutex_init(&g->inboxes[r].lock);
    }
    if (g->slots == NULL || g->inboxes == NULL || g->handles == NULL) {
        destroy_group(g);
        return NULL;
    }
    return g;
}

ls_status lsi_local_create(int ranks, const ls_comm_local_options *opts, uint32_t id,
                           const lsi_comm_agreed *agreed, ls_comm **out,
                           lsi_local_group **group, ls_error *err)
{
    lsi_local_group *g = make_group(ranks, opts, id, agreed);

    if (g == NULL) {
        return lsi_fail_memory(err, "a group of threads",
                               (size_t)ranks * sizeof(lsi_slot));
    }
    for (int r = 0; r < ranks; r++) {
        g->handles[r] = make_handle(g, r);
        if (g->handles[r] == NULL) {
            for (int q = 0; q < r; q++) {
                free_handle(g->handles[q]);
            }
            destroy_group(g);
            return lsi_fail_memory(err, "a communicator", sizeof(lsi_local_comm));
        }
    }
    atomic_init(&g->refs, ranks);
    for (int r = 0; out != NULL && r < ranks; r++) {
        out[r] = &g->handles[r]->base;
    }
    if (group != NULL) {
        *group = g;
    }
    return LS_OK;
}

ls_status ls_comm_local(int ranks, const ls_comm_local_options *opts, ls_comm **out,
                        ls_error *err)
{
    ls_comm_local_options o = LS_COMM_LOCAL_OPTIONS_INIT;
    lsi_comm_agreed agreed;

    if (out == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "ls_comm_local: out is NULL");
    }
    if (ranks < 1 || ranks > LSI_LOCAL_MOST) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "ls_comm_local: a group has 1 to %d ranks, got %d",
                        LSI_LOCAL_MOST, ranks);
    }
    if (opts != NULL) {
        if (opts->struct_size < sizeof opts->struct_size) {
            return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                            "ls_comm_local: the options have size %zu: start them from "
                            "LS_COMM_LOCAL_OPTIONS_INIT",
                            opts->struct_size);
        }
        memcpy(&o, opts, LSI_MIN(opts->struct_size, sizeof o));
    }
    agreed = lsi_comm_agreed_here(ranks);
    return lsi_local_create(ranks, &o, 1, &agreed, out, NULL, err);
}

/* Works that have not ended end with the failure `why`. */
static void reset_handle(lsi_local_comm *c, const ls_error *why)
{
    while (c->first != NULL) {
        ls_comm_work *work = c->first;

        c->first = work->next;
        lsi_work_end(work, why);
    }
    lsi_comm_forget_batch(&c->base);
    c->last = NULL;
    c->unposted = NULL;
    c->next = 0;
    c->room = 0;
}

/* Makes the group as new, whatever state the ranks have left it in. */
static void reset_group(lsi_local_group *g)
{
    ls_error why = LS_ERROR_INIT;

    if (!lsi_failure_get(&g->failure, &why)) {
        (void)lsi_fail(&why, LS_ABORTED, -1, "the group was renewed");
    }
    for (int r = 0; r < g->size; r++) {
        lsi_slot *slot = &g->slots[r];

        if (g->handles[r] != NULL) {
            reset_handle(g->handles[r], &why);
        }
        lsi_p2p_clear(&g->inboxes[r], &why);
        atomic_store(&slot->finished, 0);
        for (int i = 0; i < LSI_CALLS_AHEAD; i++) {
            atomic_store(&slot->queue[i].posted, 0);
        }
    }
    lsi_failure_forget(&g->failure);
}

/* True if every rank has made the same calls, and none is open. */
static bool went_well(lsi_local_group *g)
{
    if (atomic_load(&g->failure.set)) {
        return false;
    }
    for (int r = 0; r < g->size; r++) {
        const lsi_local_comm *c = g->handles[r];

        if (c == NULL || c->next != g->handles[0]->next || c->first != NULL ||
            c->base.batching || g->inboxes[r].waiting > 0) {
            return false;
        }
    }
    return true;
}

static void renew_group(ls_comm *comm)
{
    lsi_local_group *g = lsi_local_of(comm)->group;

    if (!went_well(g)) {
        reset_group(g);
    }
    g->generation++;
}

/* Ranks that wait for this one find it out: see local_wait.c. */
static void leave_generation(ls_comm *comm, const ls_error *why)
{
    lsi_local_group *g = lsi_local_of(comm)->group;
    lsi_slot *slot = &g->slots[comm->rank];

    LSI_ASSERT(why->code != LS_OK);
    slot->why = why;
    atomic_store(&slot->left, g->generation + 1);
    lsi_local_wake(g, LSI_WANTS_ALL);
}

const lsi_backend lsi_backend_local = {
    .name = "local",
    .post = lsi_local_post,
    .test = lsi_local_test,
    .wait = lsi_local_wait,
    .fail = fail_local,
    .broken = is_broken,
    .leave = leave_generation,
    .renew = renew_group,
    .split = lsi_local_split,
    .destroy = leave_group,
};
