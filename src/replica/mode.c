/*
 * The mode of a thread: a stack, empty at first (default mode). Scopes, replica
 * functions, merge functions and update functions push one entry each.
 */
#include "replica/scope.h"

static _Thread_local lsi_mode *top;
static _Thread_local int update_id = -1;

void lsi_mode_push(lsi_mode *m)
{
    m->outer = top;
    m->scopes = lsi_scopes_mark();
    top = m;
}

void lsi_mode_pop(lsi_mode *m)
{
    lsi_scopes_unwind(m->scopes);
    top = m->outer;
}

const lsi_mode *lsi_mode_now(void)
{
    return top;
}

int lsi_update_id(void)
{
    return update_id;
}

int lsi_update_id_set(int id)
{
    const int former = update_id;

    update_id = id;
    return former;
}

ls_strategy *ls_current_strategy(void)
{
    return top == NULL ? ls_default_strategy() : top->strategy;
}

bool ls_has_strategy(void)
{
    return top != NULL && !top->strategy->ops->is_default;
}

bool ls_in_cross_replica_context(void)
{
    return top != NULL && top->cross;
}

ls_strategy *ls_cross_replica_context(void)
{
    return ls_in_cross_replica_context() ? top->strategy : NULL;
}

ls_context *ls_replica_context(void)
{
    if (top == NULL) {
        return lsi_thread_context();
    }
    return top->cross ? NULL : top->context;
}

ls_status lsi_wrong_strategy(const ls_strategy *s, const char *what, ls_error *err)
{
    if (!ls_has_strategy()) {
        return lsi_fail_kind(err, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                             "%s: needs the scope of %s; call ls_scope_enter() first",
                             what, s->ops->name);
    }
    return lsi_fail_kind(err, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                         "%s: mixing different strategies: %s is current, the call is "
                         "on another one (%s); leave the first scope",
                         what, top->strategy->ops->name, s->ops->name);
}

ls_status lsi_require_cross(const ls_strategy *s, const char *what, const char *hint,
                            ls_error *err)
{
    if (top == NULL || (top->cross && top->strategy == s)) {
        return LS_OK;
    }
    if (top->strategy != s) {
        return lsi_wrong_strategy(s, what, err);
    }
    return lsi_fail_kind(err, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                         "%s: not in a replica function; %s", what,
                         hint != NULL ? hint : "use ls_merge_call() to leave it");
}

ls_status lsi_scope_visit(ls_strategy *s, lsi_mode *m, bool *pushed, ls_error *err)
{
    *pushed = false;
    if (!ls_has_strategy()) {
        if (s->ops->is_default) {
            return LS_OK;
        }
        *m = (lsi_mode){.strategy = s, .cross = true};
        lsi_mode_push(m);
        *pushed = true;
        return LS_OK;
    }
    if (top->strategy != s) {
        return lsi_wrong_strategy(s, "scope", err);
    }
    if (!top->cross) {
        return lsi_fail_kind(err, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                             "scope: %s cannot be entered in a replica function; "
                             "use ls_merge_call() for what all replicas do together",
                             s->ops->name);
    }
    return LS_OK;
}

void lsi_scope_leave(lsi_mode *m, bool pushed)
{
    if (pushed) {
        lsi_mode_pop(m);
    }
}

/* Records the failure in the context the thread is in, if there is one; else in `c`. */
static bool fail_here(ls_context *c, const ls_error *err)
{
    const lsi_mode *now = lsi_mode_now();
    ls_context *here = now != NULL ? now->context : c;

    (void)lsi_context_error(here != NULL ? here : c, err);
    return false;
}

bool lsi_require_replica(ls_context *c, const char *what)
{
    const lsi_mode *now = lsi_mode_now();
    const lsi_replica *r = lsi_replica_of(c);
    ls_error e = LS_ERROR_INIT;

    if (c == NULL) {
        return false;
    }
    if (r == NULL) { // a plain context: the default strategy's, in default mode
        if (now == NULL || (!now->cross && now->strategy->ops->is_default)) {
            return true;
        }
        (void)lsi_fail_kind(&e, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                            now->cross
                                ? "%s: only inside of a replica function, not in "
                                  "cross-replica context"
                                : "%s: mismatching ReplicaContext: use the one the "
                                  "replica function was given",
                            what);
        return fail_here(c, &e);
    }
    if (now == NULL || now->cross) {
        (void)lsi_fail_kind(&e, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                            "%s: only inside of a replica function; that of this "
                            "context has ended or waits",
                            what);
        /*
         * No thread uses the context of an ended run: it can hold the error. That of a
         * run going on belongs to another thread.
         */
        return fail_here(now == NULL && r->run != NULL ? lsi_thread_context() : c, &e);
    }
    if (now->context != c) {
        (void)lsi_fail_kind(
            &e, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
            r->strategy == now->strategy
                ? "%s: mismatching ReplicaContext: this one belongs to another replica"
                : "%s: mismatching strategies: this context belongs to another one",
            what);
        return fail_here(c, &e);
    }
    return true;
}
