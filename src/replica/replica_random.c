/* Reading and setting the random states of replicas and merge functions between runs. */
#include "replica/run.h"
#include "replica/scope.h"

/* A random state, with the lock that keeps runs from using it. */
typedef struct held_state {
    ls_random_state *at;
    lsi_mutex *lock; // NULL: no lock is needed
} held_state;

/* The mode that the run of `s` gave this thread; NULL: the thread is in no run of `s`. */
static const lsi_mode *part_in_run(const ls_strategy *s)
{
    const lsi_mode *m = lsi_mode_now();

    while (m != NULL && (m->strategy != s || (m->cross && m->run == NULL))) {
        m = m->outer;
    }
    return m;
}

static ls_status hold_state(ls_strategy *s, int replica, const char *what,
                            held_state *out, ls_error *err)
{
    const int local = s != NULL && s->crew != NULL ? s->local : 1;
    const lsi_mode *part = NULL;
    ls_context *c = NULL;

    if (s == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "%s: the strategy is NULL", what);
    }
    if (replica < LS_CROSS_REPLICA || replica >= local) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "%s: there is no replica %d; there are 0 to %d, and "
                             "LS_CROSS_REPLICA for merge functions",
                             what, replica, local - 1);
    }
    if (s->crew == NULL) { // the default strategy: its replica is the thread's own
        c = lsi_thread_context();
        out->at = c != NULL ? c->random : NULL;
        return c != NULL ? LS_OK : lsi_fail_memory(err, "a context", sizeof *c);
    }
    part = part_in_run(s);
    if (part != NULL && !part->cross) {
        return lsi_fail_kind(err, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                             "%s: not in a replica function; its context has the state: "
                             "ls_context_random_state()",
                             what);
    }
    if (part == NULL) { // else this is the merge function's thread: the replicas wait
        out->lock = &s->crew->running;
        lsi_mutex_lock(out->lock);
    }
    out->at = &s->crew->random[replica == LS_CROSS_REPLICA ? local : replica];
    return LS_OK;
}

static void release_state(const held_state *held)
{
    if (held->lock != NULL) {
        lsi_mutex_unlock(held->lock);
    }
}

ls_status ls_strategy_random_state(ls_strategy *s, int replica, ls_random_state *out,
                                   ls_error *err)
{
    held_state held = {NULL, NULL};
    ls_status st;

    if (out == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "random state: out is NULL");
    }
    st = hold_state(s, replica, "random state", &held, err);
    if (st == LS_OK) {
        *out = *held.at;
        release_state(&held);
    }
    return st;
}

ls_status ls_strategy_set_random_state(ls_strategy *s, int replica,
                                       const ls_random_state *state, ls_error *err)
{
    held_state held = {NULL, NULL};
    ls_status st;

    if (state == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "set random state: the state is NULL");
    }
    st = hold_state(s, replica, "set random state", &held, err);
    if (st == LS_OK) {
        *held.at = *state;
        release_state(&held);
    }
    return st;
}

ls_random_state *lsi_callers_random(void)
{
    const lsi_mode *now = lsi_mode_now();
    const ls_context *c = now != NULL ? now->context : NULL;

    c = c != NULL ? c : lsi_thread_context();
    return c != NULL ? c->random : NULL;
}
