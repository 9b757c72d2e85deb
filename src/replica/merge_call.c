/*
 * ls_merge_call(): one function, called once with the arguments of all replicas, on the
 * thread of replica 0.
 */
#include "base/guard.h"
#include "replica/run.h"

/* Waits for the merge function to end; meanwhile takes part in runs that it starts. */
static void wait_for_merge(struct lsi_run *run, int k, unsigned seen)
{
    for (;;) {
        struct lsi_run *inner;

        seen = lsi_word_wait_not(&run->events, seen, run->crew->spin_ns);
        inner = run->inner;
        if (inner == NULL) {
            return;
        }
        lsi_run_replica(inner, k);
    }
}

/* Calls the merge function with the arguments of all replicas; on replica 0's thread. */
static void call_merge_function(struct lsi_run *run, ls_merge_fn fn, void *const *args,
                                void *user)
{
    ls_context *cross = run->level->cross;
    lsi_mode mode = {
        .strategy = run->strategy, .cross = true, .context = cross, .run = run};
    ls_value *margs = NULL, *result;
    ls_error *err = &run->merge_error;
    lsi_guard guard LSI_GUARDED = {NULL};

    *err = (ls_error)LS_ERROR_INIT;
    if (args[0] != NULL && ls_value_regroup((ls_value *const *)args, (size_t)run->n, NULL,
                                            &margs, err) != LS_OK) {
        return;
    }
    lsi_mode_push(&mode);
    guard.what = "the function of ls_merge_call()";
    result = fn(cross, run->strategy, margs, user);
    guard.what = NULL;
    lsi_mode_pop(&mode);
    if (ls_context_status(cross, err) == LS_OK && result != NULL) {
        run->merged = ls_value_retain(result);
    }
    ls_value_release(margs);
}

/* This replica's part of the merge function's result. */
static ls_value *take_part(ls_context *c, struct lsi_run *run, int k)
{
    ls_value *part = NULL;
    ls_error e = LS_ERROR_INIT;

    if (run->merge_error.code != LS_OK) {
        e = run->merge_error;
        if (e.rank < 0) {
            e.rank = 0;
        }
        (void)lsi_context_error(c, &e);
        return NULL;
    }
    if (run->merged == NULL) {
        return NULL;
    }
    if (ls_value_select(run->merged, (size_t)k, &part, &e) != LS_OK) {
        (void)lsi_context_error(c, &e);
        return NULL;
    }
    return ls_value_adopt(c, part);
}

/*
 * Decides, once for each replica, whether the merge function may use its arguments when
 * the run breaks: either the replica withdraws them (IN to OUT), or replica 0 has claimed
 * them before (IN to CLAIMED); then the replica waits until the function has ended.
 */
static bool move_merge(struct lsi_run *run, int k, int from, int to)
{
    return atomic_compare_exchange_strong(&run->level->visible[k].merge, &from, to);
}

/*
 * Replica 0 has entered the merge. Calls the function with the arguments of all replicas,
 * or not at all.
 */
static void merge_claimed(ls_context *c, bool met, ls_merge_fn fn, void *user)
{
    struct lsi_run *run = lsi_replica_of(c)->run;
    bool all = met;

    for (int k = 1; k < run->n && met; k++) {
        all = move_merge(run, k, LSI_MERGE_IN, LSI_MERGE_CLAIMED) && all;
    }
    run->merged = NULL;
    if (all) {
        call_merge_function(run, fn, run->shown, user);
    } else {
        if (met) { // a replica withdrew: the communicator is broken, and holds the reason
            (void)lsi_meeting_wait(c, "merge_call", 2);
        }
        run->merge_error = c->error;
    }
    // also if the function was not called: replicas that have met wait for this
    lsi_word_add(&run->events, 1);
}

static ls_value *merge_many(ls_context *c, ls_merge_fn fn, ls_value *args, void *user)
{
    lsi_replica *r = c->replica;
    struct lsi_run *run = r->run;
    const unsigned seen = lsi_word_get(&run->events);
    ls_value *part;
    bool met;

    atomic_store(&run->level->visible[r->index].merge, LSI_MERGE_IN);
    met = lsi_run_meet(c, "merge_call", args != NULL, args,
                       r->index == 0 ? run->shown : NULL);
    if (r->index == 0) {
        lsi_turn_wait(run, 0);
        merge_claimed(c, met, fn, user);
    } else if (met || !move_merge(run, r->index, LSI_MERGE_IN, LSI_MERGE_OUT)) {
        // holds no turn: it may take part in an inner run
        wait_for_merge(run, r->index, seen);
    }
    lsi_turn_wait(run, r->index);
    if (!met) {
        return NULL;
    }
    part = take_part(c, run, r->index);
    if (lsi_meeting_wait(c, "merge_call", 2) && r->index == 0) {
        ls_value_release(run->merged); // every replica has its part
        run->merged = NULL;
    }
    return lsi_failed(c) ? NULL : part;
}

/* With one replica the function is called directly, in the replica's context. */
static ls_value *merge_one(ls_context *c, ls_merge_fn fn, ls_value *args, void *user)
{
    const lsi_replica *r = lsi_replica_of(c);
    ls_strategy *s = ls_replica_strategy(c);
    lsi_mode mode = {.strategy = s, .cross = true, .context = c};
    lsi_guard guard LSI_GUARDED = {"the function of ls_merge_call()"};
    ls_value *result;

    mode.run = r != NULL ? r->run : NULL;
    lsi_mode_push(&mode);
    result = fn(c, s, args, user);
    guard.what = NULL;
    lsi_mode_pop(&mode);
    return lsi_failed(c) ? NULL : result;
}

ls_value *(ls_merge_call)(ls_context *c, ls_merge_fn fn, ls_value *args, void *user)
{
    if (!lsi_require_replica(c, "merge_call") || lsi_context_aborted(c)) {
        return NULL;
    }
    if (fn == NULL) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "merge_call: the function is NULL");
        return NULL;
    }
    return lsi_local_peers(c) > 1 ? merge_many(c, fn, args, user)
                                  : merge_one(c, fn, args, user);
}
