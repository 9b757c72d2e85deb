/*
 * Synchronization of the replicas of one run: calls of the run's communicator, and
 * meetings, in which replicas show each other memory.
 *
 * While a replica reads other replicas' memory, it publishes how many such meetings it
 * has open (lsi_visible_state.depth): from before it enters the meeting until it has
 * finished reading. So a replica whose calls fail because the run is broken knows from the counts
 * which replicas may still read the memory it shows.
 */
#include "replica/run.h"

#include <string.h>

int lsi_local_peers(const ls_context *c)
{
    const lsi_replica *r = lsi_replica_of(c);

    return r == NULL || r->run == NULL ? 1 : r->run->n;
}

int lsi_sync_replicas(const ls_context *c)
{
    const lsi_replica *r = lsi_replica_of(c);

    return r == NULL || r->run == NULL ? 1 : r->strategy->replicas;
}

void lsi_run_pause(lsi_replica *r)
{
    r->met++;
    if (r->index == 0) {
        lsi_created_pause(r->run, r->met);
    }
    lsi_turn_pass(r->run, r->index);
}

lsi_comm_site lsi_site_of(const ls_context *c)
{
    return (lsi_comm_site){c->file, c->line};
}

void lsi_run_fail(ls_context *c, const ls_error *why)
{
    const lsi_replica *r = lsi_replica_of(c);
    ls_error e = *why;

    if (!lsi_comm_broken(r->local)) {
        if (e.rank < 0) {
            e.rank = r->id;
        }
        lsi_comm_break(r->local, &e);
    }
    (void)lsi_context_error(c, why);
}

bool lsi_run_meet(ls_context *c, const char *what, uint64_t detail, void *mine,
                  void **all)
{
    lsi_replica *r = lsi_replica_of(c);
    const ls_comm_options opts = lsi_call_options(r->strategy, NULL);
    ls_error e = LS_ERROR_INIT;
    ls_status st;

    lsi_run_pause(r);
    st = lsi_comm_meet(r->local, what, detail, mine, all, &opts, lsi_site_of(c), &e);
    if (st != LS_OK) {
        lsi_run_fail(c, &e);
    }
    return st == LS_OK;
}

bool lsi_meeting_wait(ls_context *c, const char *what, uint64_t detail)
{
    const lsi_replica *r = lsi_replica_of(c);
    bool met;

    if (lsi_context_aborted(c)) {
        return false;
    }
    if (lsi_local_peers(c) == 1) {
        return true;
    }
    met = lsi_run_meet(c, what, detail, NULL, NULL);
    lsi_turn_wait(r->run, r->index);
    return met;
}

/* ---- meetings ---- */

/* The pointers shown in one meeting. A replica reuses its structs in later meetings. */
struct lsi_shown {
    struct lsi_shown *next;
    void *by[]; /* one per replica */
};

static lsi_visible_state *visible_of(const lsi_replica *r)
{
    return &r->run->level->visible[r->index];
}

static struct lsi_shown *make_shown(int n)
{
    return lsi_alloc(1, sizeof(struct lsi_shown) + (size_t)n * sizeof(void *));
}

/* A struct for the pointers of `n` replicas; NULL: out of memory. */
static struct lsi_shown *take_shown(const lsi_replica *r, int n)
{
    lsi_visible_state *mine = visible_of(r);
    struct lsi_shown *shown = mine->unused;

    if (shown == NULL) {
        return make_shown(n);
    }
    mine->unused = shown->next;
    return shown;
}

static void return_shown(const lsi_replica *r, struct lsi_shown *shown)
{
    lsi_visible_state *mine = visible_of(r);

    if (shown != NULL) {
        shown->next = mine->unused;
        mine->unused = shown;
    }
}

bool lsi_visible_state_fill(lsi_visible_state *visible, int n)
{
    enum { NESTED = 4 };

    for (int i = 0; i < NESTED; i++) {
        struct lsi_shown *shown = make_shown(n);

        if (shown == NULL) {
            return false;
        }
        shown->next = visible->unused;
        visible->unused = shown;
    }
    return true;
}

void lsi_visible_state_clear(lsi_visible_state *visible)
{
    while (visible->unused != NULL) {
        struct lsi_shown *shown = visible->unused;

        visible->unused = shown->next;
        lsi_free(shown);
    }
}

static atomic_int *count_of(const lsi_replica *r, int index)
{
    return &r->run->level->visible[index].depth;
}

/*
 * Waits until no replica has a meeting open that is as deep as the one this replica
 * closes. Called in a broken run only, where replicas wait for each other nowhere else; a
 * replica waits here for meetings deeper than its own, so there is no cycle. In a
 * sequential run the turn is passed on: the replica that is waited for may need it.
 */
static void wait_for_readers(const lsi_replica *r, int depth)
{
    struct lsi_run *run = r->run;

    for (int k = 0; k < run->n; k++) {
        while (k != r->index && atomic_load(count_of(r, k)) >= depth) {
            if (lsi_turn_is(run, r->index)) {
                lsi_turn_pass(run, r->index);
            }
            lsi_yield();
        }
    }
}

static void stop_reading(lsi_meeting *m)
{
    const lsi_replica *r = lsi_replica_of(m->context);

    atomic_store(count_of(r, r->index), m->depth - 1);
}

/*
 * A meeting failed here; other replicas may have entered it successfully and read what
 * this one shows.
 */
static void wait_if_broken(const lsi_meeting *m)
{
    const lsi_replica *r = lsi_replica_of(m->context);

    if (lsi_comm_broken(r->local)) {
        wait_for_readers(r, m->depth);
    }
}

/* Enters the meeting; false: it failed, as not all replicas came. */
static bool enter_meeting(lsi_meeting *m, uint64_t detail, void *mine)
{
    const lsi_replica *r = lsi_replica_of(m->context);

    if (m->lifetime == LSI_UNTIL_CLOSE) {
        m->depth = atomic_load_explicit(count_of(r, r->index), memory_order_relaxed) + 1;
        atomic_store(count_of(r, r->index), m->depth);
    }
    m->met = lsi_run_meet(m->context, m->what, detail, mine, m->shown->by);
    if (!m->met && m->lifetime == LSI_UNTIL_CLOSE) {
        stop_reading(m);
        wait_if_broken(m);
    }
    lsi_turn_wait(r->run, r->index);
    return m->met;
}

bool lsi_meeting_open(ls_context *c, const char *what, uint64_t detail, void *mine,
                      lsi_lifetime lifetime, lsi_meeting *m)
{
    ls_error e = LS_ERROR_INIT;

    *m = (lsi_meeting){.context = c,
                       .what = what,
                       .n = lsi_local_peers(c),
                       .lifetime = lifetime,
                       .mine = mine};
    if (lsi_context_aborted(c)) {
        return false;
    }
    if (m->n == 1) {
        return true;
    }
    m->shown = take_shown(lsi_replica_of(c), m->n);
    if (m->shown == NULL) {
        (void)lsi_fail(&e, LS_RESOURCE_EXHAUSTED, -1, "out of memory for %s", what);
        lsi_run_fail(c, &e);
        return false;
    }
    return enter_meeting(m, detail, mine);
}

void *lsi_meeting_peer(const lsi_meeting *m, int r)
{
    return m->shown == NULL ? m->mine : m->shown->by[r];
}

void lsi_meeting_close(lsi_meeting *m)
{
    const lsi_replica *r = lsi_replica_of(m->context);

    if (m->met && m->lifetime == LSI_UNTIL_CLOSE) {
        stop_reading(m);
        if (!lsi_run_meet(m->context, m->what, UINT64_MAX, NULL, NULL)) {
            wait_if_broken(m);
        }
        lsi_turn_wait(r->run, r->index);
    }
    if (m->shown != NULL) {
        return_shown(r, m->shown);
    }
    m->shown = NULL;
    m->met = false;
}

static void release_shown(void *t)
{
    ls_tensor_release(t);
}

bool lsi_meeting_keep(ls_context *c, ls_tensor *t)
{
    return lsi_context_keep(c, ls_tensor_retain(t), release_shown);
}

void *lsi_meeting_room(ls_context *c, size_t bytes)
{
    const ls_shape shape = LS_SHAPE((int64_t)bytes);
    ls_tensor *t = lsi_context_tensor(c, LS_U8, &shape);

    if (t == NULL || !lsi_meeting_keep(c, t)) {
        return NULL;
    }
    memset(t->data, 0, bytes);
    return t->data;
}

ls_tensor *lsi_context_tensor(ls_context *c, ls_dtype dtype, const ls_shape *shape)
{
    ls_tensor *t = lsi_failed(c) ? NULL : lsi_context_struct(c);

    if (t == NULL || !lsi_tensor_init(t, c->device, dtype, shape)) {
        return ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for a tensor");
    }
    return t;
}
