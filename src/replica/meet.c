/* How replicas of one run come together. */
#include "base/guard.h"
#include "replica/frame.h"
#include "replica/scope.h"

#include <string.h>

int lsi_replica_peers(const ls_context *c)
{
    const lsi_replica *r = lsi_replica_of(c);

    return r == NULL || r->frame == NULL ? 1 : r->frame->n;
}

/* Fails the context that the thread is in, if there is one, and `c` only if it is that.
 */
static bool refuse(ls_context *c, const ls_error *err)
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
        if (now == NULL || (!now->cross && now->strategy->ops->kind == LSI_DEFAULT)) {
            return true;
        }
        (void)lsi_fail_kind(&e, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                            now->cross
                                ? "%s: only inside of a replica function, not in "
                                  "cross-replica context"
                                : "%s: mismatching ReplicaContext: use the one the "
                                  "replica function was given",
                            what);
        return refuse(c, &e);
    }
    if (now == NULL || now->cross) {
        (void)lsi_fail_kind(&e, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                            "%s: only inside of a replica function, and this context's "
                            "has ended or waits",
                            what);
        /* An ended run's context is nobody's and can tell; one that runs is another's. */
        return refuse(now == NULL && r->frame != NULL ? lsi_thread_context() : c, &e);
    }
    if (now->context != c) {
        (void)lsi_fail_kind(
            &e, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
            r->strategy == now->strategy
                ? "%s: mismatching ReplicaContext: this one belongs to another replica"
                : "%s: mismatching strategies: this context belongs to another one",
            what);
        return refuse(c, &e);
    }
    return true;
}

/* Lets the next replica go on, where they take turns, while this one waits. */
static void pause_replica(lsi_replica *r)
{
    r->met++;
    if (r->index == 0) {
        lsi_made_pause(r->frame, r->met);
    }
    lsi_turn_pass(r->frame, r->index);
}

static ls_comm_options options_of(const ls_communication_options *call,
                                  const ls_strategy *s)
{
    ls_communication_options merged = s->communication;
    ls_comm_options opts = LS_COMM_OPTIONS_INIT;

    if (call != NULL) {
        ls_communication_merge(&merged, call);
    }
    if (merged.timeout_seconds > 0) {
        opts.timeout_ms = (int64_t)(merged.timeout_seconds * 1000);
    }
    opts.algorithm = merged.algorithm;
    return opts;
}

static lsi_comm_site place_of(const ls_context *c)
{
    return (lsi_comm_site){c->file, c->line};
}

/*
 * A call of this replica failed: its step has, so those who wait for it are told now.
 * Where replicas take turns it waits for its own next, and they would wait for each
 * other.
 */
static void give_up(ls_context *c, const ls_error *why)
{
    const lsi_replica *r = lsi_replica_of(c);
    ls_error e = *why;

    if (!lsi_comm_broken(r->comm)) {
        if (e.rank < 0) {
            e.rank = r->index;
        }
        lsi_comm_break(r->comm, &e);
    }
    (void)lsi_context_error(c, why);
}

bool lsi_come(ls_context *c, const char *what, uint64_t detail, void *mine, void **all)
{
    lsi_replica *r = lsi_replica_of(c);
    const ls_comm_options opts = options_of(NULL, r->strategy);
    ls_error e = LS_ERROR_INIT;
    ls_status st;

    pause_replica(r);
    st = lsi_comm_meet(r->comm, what, detail, mine, all, &opts, place_of(c), &e);
    if (st != LS_OK) {
        give_up(c, &e);
    }
    return st == LS_OK;
}

bool lsi_meet(ls_context *c, const char *what, uint64_t detail, void *mine, void **all)
{
    const lsi_replica *r = lsi_replica_of(c);
    bool met;

    if (lsi_context_aborted(c)) {
        return false;
    }
    if (lsi_replica_peers(c) == 1) {
        if (all != NULL) {
            all[0] = mine;
        }
        return true;
    }
    met = lsi_come(c, what, detail, mine, all);
    lsi_turn_wait(r->frame, r->index);
    return met;
}

/* ---- merging ---- */

/* Waits for the merge function; runs what it runs meanwhile. */
static void wait_for_merge(struct lsi_frame *f, int k, unsigned seen)
{
    for (;;) {
        struct lsi_frame *inner;

        seen = lsi_word_wait_not(&f->events, seen, f->crew->spin_ns);
        inner = f->inner;
        if (inner == NULL) {
            return;
        }
        lsi_frame_replica(inner, k);
    }
}

/* Calls the merge function with everybody's arguments; on the thread of replica 0. */
static void merge(struct lsi_frame *f, ls_merge_fn fn, void *const *args, void *user)
{
    ls_context *cross = f->level->cross;
    lsi_mode mode = {
        .strategy = f->strategy, .cross = true, .context = cross, .frame = f};
    ls_value *margs = NULL, *result;
    ls_error *err = &f->merge_error;
    lsi_guard guard LSI_GUARDED = {NULL};

    *err = (ls_error)LS_ERROR_INIT;
    if (args[0] != NULL && ls_value_regroup((ls_value *const *)args, (size_t)f->n, NULL,
                                            &margs, err) != LS_OK) {
        return;
    }
    lsi_mode_push(&mode);
    guard.what = "the function of ls_merge_call()";
    result = fn(cross, f->strategy, margs, user);
    guard.what = NULL;
    lsi_mode_pop(&mode);
    if (ls_context_status(cross, err) == LS_OK && result != NULL) {
        f->merged = ls_value_retain(result);
    }
    ls_value_release(margs);
}

/* This replica's part of what the merge function gave. */
static ls_value *take_part(ls_context *c, struct lsi_frame *f, int k)
{
    ls_value *part = NULL;
    ls_error e = LS_ERROR_INIT;

    if (f->merge_error.code != LS_OK) {
        e = f->merge_error;
        if (e.rank < 0) {
            e.rank = 0;
        }
        (void)lsi_context_error(c, &e);
        return NULL;
    }
    if (f->merged == NULL) {
        return NULL;
    }
    if (ls_value_select(f->merged, (size_t)k, &part, &e) != LS_OK) {
        (void)lsi_context_error(c, &e);
        return NULL;
    }
    return ls_value_adopt(c, part);
}

/*
 * Whether a run that breaks lets the merge function begin is decided here, once for each
 * replica: it takes its arguments back, or replica 0 has claimed them before, and then it
 * stays until the function has ended.
 */
static bool move_merge(struct lsi_frame *f, int k, int from, int to)
{
    return atomic_compare_exchange_strong(&f->level->looking[k].merge, &from, to);
}

/* Replica 0 has come. The function is called with everybody's arguments, or not at all.
 */
static void merge_claimed(ls_context *c, bool met, ls_merge_fn fn, void *user)
{
    struct lsi_frame *f = lsi_replica_of(c)->frame;
    bool all = met;

    for (int k = 1; k < f->n && met; k++) {
        all = move_merge(f, k, LSI_MERGE_IN, LSI_MERGE_CLAIMED) && all;
    }
    f->merged = NULL;
    if (all) {
        merge(f, fn, f->shown, user);
    } else {
        if (met) { // somebody took back: the group is broken, and says why
            (void)lsi_meet(c, "merge_call", 2, NULL, NULL);
        }
        f->merge_error = c->error;
    }
    lsi_word_add(&f->events, 1); // also when it could not begin: some may have met
}

static ls_value *merge_many(ls_context *c, ls_merge_fn fn, ls_value *args, void *user)
{
    lsi_replica *r = c->replica;
    struct lsi_frame *f = r->frame;
    const unsigned seen = lsi_word_get(&f->events);
    ls_value *part;
    bool met;

    atomic_store(&f->level->looking[r->index].merge, LSI_MERGE_IN);
    met = lsi_come(c, "merge_call", args != NULL, args, r->index == 0 ? f->shown : NULL);
    if (r->index == 0) {
        lsi_turn_wait(f, 0);
        merge_claimed(c, met, fn, user);
    } else if (met || !move_merge(f, r->index, LSI_MERGE_IN, LSI_MERGE_OUT)) {
        wait_for_merge(f, r->index, seen); // with no turn: it may run an inner frame
    }
    lsi_turn_wait(f, r->index);
    if (!met) {
        return NULL;
    }
    part = take_part(c, f, r->index);
    if (lsi_meet(c, "merge_call", 2, NULL, NULL) && r->index == 0) {
        ls_value_release(f->merged); // everybody has taken a part
        f->merged = NULL;
    }
    return lsi_failed(c) ? NULL : part;
}

/* With one replica the function is called as it is, in the context at hand. */
static ls_value *merge_one(ls_context *c, ls_merge_fn fn, ls_value *args, void *user)
{
    const lsi_replica *r = lsi_replica_of(c);
    ls_strategy *s = ls_replica_strategy(c);
    lsi_mode mode = {.strategy = s, .cross = true, .context = c};
    lsi_guard guard LSI_GUARDED = {"the function of ls_merge_call()"};
    ls_value *result;

    mode.frame = r != NULL ? r->frame : NULL;
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
    return lsi_replica_peers(c) > 1 ? merge_many(c, fn, args, user)
                                    : merge_one(c, fn, args, user);
}

/* ---- sums ---- */

bool lsi_all_reduce_tensors(ls_context *c, ls_reduce op, ls_tensor *const *ts, size_t n,
                            const ls_communication_options *opts, ls_tensor **outs)
{
    enum { FEW = 64 };
    lsi_replica *r = lsi_replica_of(c);
    lsi_comm_piece few[FEW];
    lsi_comm_piece *pieces = n <= FEW ? few : lsi_alloc(n, sizeof *pieces);
    ls_error e = LS_ERROR_INIT;
    ls_comm_options how = options_of(opts, r->strategy);
    ls_status st;

    if (pieces == NULL) {
        (void)ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for all_reduce");
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        pieces[i] = (lsi_comm_piece){ts[i]->data, outs[i]->data, (size_t)ts[i]->count};
    }
    pause_replica(r);
    st = lsi_comm_all_reduce_pieces(r->comm, op, pieces, n, (ls_dtype)ts[0]->dtype, &how,
                                    place_of(c), &e);
    if (st != LS_OK) {
        give_up(c, &e);
    }
    lsi_turn_wait(r->frame, r->index);
    if (pieces != few) {
        lsi_free(pieces);
    }
    return st == LS_OK;
}

ls_tensor *lsi_context_tensor(ls_context *c, ls_dtype dtype, const ls_shape *shape)
{
    ls_tensor *t = lsi_failed(c) ? NULL : lsi_context_struct(c);

    if (t == NULL || !lsi_tensor_init(t, c->device, dtype, shape)) {
        return ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for a tensor");
    }
    return t;
}
