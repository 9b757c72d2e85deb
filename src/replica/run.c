/*
 * ls_strategy_run(): runs a function on every replica, waits for all, collects results
 * and errors.
 */
#include "replica/run.h"
#include "base/guard.h"
#include "replica/scope.h"

#include <limits.h>
#include <stdio.h>

/* ---- turns: a sequential run reproduces TensorFlow's order ---- */

void lsi_turn_wait(struct lsi_run *run, int k)
{
    if (!run->sequential) {
        return;
    }
    for (unsigned now = lsi_word_get(&run->turn); now != (unsigned)k;) {
        now = lsi_word_wait_not(&run->turn, now, run->crew->spin_ns);
    }
}

void lsi_turn_pass(struct lsi_run *run, int k)
{
    if (!run->sequential) {
        return;
    }
    for (int i = 1; i <= run->n; i++) {
        const int next = (k + i) % run->n;

        if (!atomic_load(&run->finished[next]) && next != k) {
            lsi_word_set(&run->turn, (unsigned)next);
            return;
        }
    }
}

bool lsi_turn_is(struct lsi_run *run, int k)
{
    return run->sequential && lsi_word_get(&run->turn) == (unsigned)k;
}

/* ---- one replica ---- */

/* Calls the function in the replica's context and stores its result or error. */
static void call_replica(struct lsi_run *run, ls_context *c, int k)
{
    ls_error *err = &run->errors[k];
    ls_value *args = NULL, *result = NULL;
    lsi_guard guard LSI_GUARDED = {NULL};

    if (run->args != NULL && ls_value_select(run->args, (size_t)k, &args, err) != LS_OK) {
        return;
    }
    guard.what = "the function of ls_strategy_run()";
    result = run->fn(c, args, run->user);
    guard.what = NULL;
    if (ls_context_status(c, err) != LS_OK) {
        ls_value_release(args);
        return;
    }
    if (result != NULL) {
        run->results[k] = ls_value_retain(result);
    } else if (ls_value_none(&run->results[k], err) != LS_OK) {
        run->results[k] = NULL;
    }
    ls_value_release(args);
}

/* The id in the sync group of local replica `k`. */
static int id_of(const struct lsi_run *run, int k)
{
    return run->strategy->first + k;
}

/*
 * This replica makes no more calls in this run, a generation of the communicator: those
 * that wait for it fail with its error. A failure that other workers do not know of
 * breaks their group, for good.
 */
static void leave_run(struct lsi_run *run, int k)
{
    const lsi_level *level = run->level;
    const bool failed = run->errors[k].code != LS_OK;

    if (failed && run->errors[k].rank < 0) {
        run->errors[k].rank = id_of(run, k);
    }
    if (failed && run->strategy->workers != NULL && !atomic_load(&run->agreed)) {
        lsi_comm_break(run->strategy->workers, &run->errors[k]);
    }
    lsi_comm_leave(level->comm[k], failed ? &run->errors[k] : &level->ended[k]);
}

void lsi_run_replica(struct lsi_run *run, int k)
{
    ls_context *c = run->level->context[k];
    lsi_mode mode = {.strategy = run->strategy, .context = c};
    lsi_replica *r = c->replica;

    lsi_turn_wait(run, k);
    r->run = run;
    r->met = 0;
    r->agreements = 0;
    lsi_mode_push(&mode);
    call_replica(run, c, k);
    lsi_mode_pop(&mode);
    if (k == 0) {
        lsi_created_pause(run, UINT_MAX);
    }
    leave_run(run, k);
    atomic_store(&run->finished[k], true);
    lsi_turn_pass(run, k);
    lsi_word_drop(&run->left);
}

/* ---- the run ---- */

/*
 * Waits for all replicas; logs those that have not finished after 2 s, then at doubling
 * intervals.
 */
static void wait_for_all(struct lsi_run *run)
{
    enum { FIRST_MS = 2000, MOST_MS = 60000 };
    int64_t patience = FIRST_MS;
    const int64_t until = lsi_now_ns() + run->crew->spin_ns;

    while (lsi_word_get(&run->left) != 0 && lsi_now_ns() < until) {
        lsi_pause();
    }
    for (unsigned left; (left = lsi_word_get(&run->left)) != 0;) {
        lsi_deadline deadline = lsi_deadline_in_ms(patience);

        while (left != 0 && !lsi_deadline_passed(deadline)) {
            lsi_word_sleep(&run->left, left, deadline);
            left = lsi_word_get(&run->left);
        }
        for (int k = 1; k < run->n && left != 0; k++) {
            const ls_context *c = run->level->context[k];
            const char *file = atomic_load(&c->last_file);

            if (!atomic_load(&run->finished[k])) {
                lsi_log(LS_LOG_WARNING,
                        "replica %d has not returned for %lld ms; its last call is at "
                        "%s:%d",
                        id_of(run, k), (long long)patience, file != NULL ? file : "?",
                        atomic_load(&c->last_line));
            }
        }
        patience = LSI_MIN(2 * patience, MOST_MS);
    }
}

/* The failure to report: that of the lowest replica whose own code failed. */
static const ls_error *first_failure(const struct lsi_run *run, int *replica)
{
    const ls_error *found = NULL;

    for (int k = 0; k < run->n; k++) {
        const ls_error *e = &run->errors[k];

        if (e->code == LS_OK) {
            continue;
        }
        if (e->rank < 0 || e->rank == id_of(run, k)) {
            *replica = id_of(run, k);
            return e;
        }
        if (found == NULL) {
            found = e;
            *replica = e->rank;
        }
    }
    return found;
}

static ls_status collect_results(struct lsi_run *run, ls_value **out, ls_error *err)
{
    int replica = 0;
    const ls_error *failed = first_failure(run, &replica);
    ls_status st = LS_OK;

    if (failed != NULL) {
        st = lsi_fail_again(err, failed);
        if (err != NULL) {
            err->rank = replica;
        }
    } else if (out != NULL) {
        st = ls_value_regroup(run->results, (size_t)run->n, NULL, out, err);
    }
    for (int k = 0; k < run->n; k++) {
        ls_value_release(run->results[k]);
        run->results[k] = NULL;
    }
    return st;
}

/* Ends the step of every replica: its tensors are freed, except those retained. */
static void end_steps(struct lsi_run *run)
{
    lsi_level *level = run->level;

    for (int k = 0; k < run->n; k++) {
        level->replica[k].run = NULL;
        lsi_context_end(level->context[k]);
    }
    lsi_context_end(level->cross);
    lsi_created_forget(run);
    ls_value_release(run->merged); // left if a replica failed before the merge had ended
    run->merged = NULL;
}

/*
 * Clears an abort that came between runs. An abort that came while the outer run was in
 * its merge function is not cleared: then no inner run may start.
 */
static ls_status forget_abort(struct lsi_run *run, struct lsi_run *outer, ls_error *err)
{
    lsi_level *level = run->level;
    ls_status st = LS_OK;

    lsi_mutex_lock(&run->crew->aborting);
    if (outer != NULL) {
        st = lsi_comm_failure(outer->level->comm[0], err);
    }
    if (st == LS_OK) {
        lsi_comm_renew(level->comm[0]);
        for (int k = 0; k < run->n; k++) {
            atomic_store(&level->context[k]->aborted, false);
        }
    }
    lsi_mutex_unlock(&run->crew->aborting);
    return st;
}

/* Resets the state that the last run left. */
static void prepare_run(struct lsi_run *run)
{
    lsi_level *level = run->level;

    run->first_met = 0;
    run->inner = NULL;
    atomic_store(&run->agreed, false);
    for (int k = 0; k < run->n; k++) {
        run->errors[k] = (ls_error)LS_ERROR_INIT;
        lsi_context_end(level->context[k]); // the program may have used it between runs
        atomic_store(&run->finished[k], false);
        atomic_store(&level->visible[k].depth, 0);
        atomic_store(&level->visible[k].merge, LSI_MERGE_OUT);
        level->aside[k].code = LS_OK;
    }
    lsi_word_set(&level->verdict, 0);
    lsi_word_set(&run->turn, 0);
    lsi_word_set(&run->left, (unsigned)run->n);
}

/*
 * Runs replica 0 on this thread, on its device's core if threads are pinned, and waits
 * for the others.
 */
static void run_first(struct lsi_run *run)
{
    enum { MOST = 1024 };
    const ls_device *device = run->strategy->devices[0];
    int cores[MOST];
    const int n = device->core >= 0 ? lsi_affinity_get(cores, MOST) : 0;

    lsi_device_settle(device);
    lsi_run_replica(run, 0);
    wait_for_all(run);
    if (n > 0) {
        (void)lsi_affinity_set(cores, LSI_MIN(n, MOST), NULL);
    }
}

/*
 * Starts the other replicas: the threads of the crew or, in a merge function, the
 * replicas that wait for it.
 */
static void announce_run(struct lsi_run *run, struct lsi_run *outer)
{
    if (outer != NULL) {
        outer->inner = run;
        lsi_word_add(&outer->events, 1);
    } else {
        run->crew->run = run;
        lsi_word_add(&run->crew->go, 1);
    }
}

static ls_status run_many(ls_strategy *s, const ls_run_options *opts, ls_replica_fn fn,
                          ls_value *args, void *user, struct lsi_run *outer, int depth,
                          ls_value **out, ls_error *err)
{
    lsi_level *level = NULL;
    ls_status st = lsi_crew_ready(s->crew, depth, &level, err);
    struct lsi_run *run;

    if (st != LS_OK) {
        return st;
    }
    run = &level->run;
    run->fn = fn;
    run->args = args;
    run->user = user;
    run->sequential = s->sequential || (opts != NULL && opts->sequential);
    prepare_run(run);
    st = forget_abort(run, outer, err);
    if (st != LS_OK) {
        return st;
    }
    announce_run(run, outer);
    run_first(run);
    if (outer != NULL) {
        outer->inner = NULL;
    }
    st = collect_results(run, out, err);
    end_steps(run);
    return st;
}

/* Runs the default strategy's replica: a call in a context of its own. */
static ls_status run_one(ls_strategy *s, ls_replica_fn fn, ls_value *args, void *user,
                         ls_value **out, ls_error *err)
{
    ls_context *c = NULL;
    lsi_replica replica = {.strategy = s};
    lsi_mode mode = {.strategy = s};
    ls_value *mine = NULL, *result = NULL;
    const ls_context *own = lsi_thread_context();
    lsi_guard guard LSI_GUARDED = {NULL};
    ls_status st = ls_context_open(lsi_scope_device(), NULL, &c, err);

    if (st == LS_OK && own == NULL) {
        ls_context_close(c);
        st = lsi_fail_memory(err, "a context", sizeof *c);
    }
    if (st != LS_OK) {
        return st;
    }
    c->random = own->random; // the stream continues from run to run
    c->replica = &replica;
    mode.context = c;
    if (args != NULL) {
        st = ls_value_select(args, 0, &mine, err);
    }
    if (st == LS_OK) {
        lsi_mode_push(&mode);
        guard.what = "the function of ls_strategy_run()";
        result = fn(c, mine, user);
        guard.what = NULL;
        lsi_mode_pop(&mode);
        st = ls_context_status(c, err);
        if (st != LS_OK && err != NULL && err->rank < 0) {
            err->rank = 0;
        }
    }
    if (st == LS_OK && out != NULL && result != NULL) {
        *out = ls_value_retain(result);
    } else if (st == LS_OK && out != NULL) {
        st = ls_value_none(out, err);
    }
    ls_value_release(mine);
    ls_context_close(c);
    return st;
}

/* The run of `s` whose merge function this thread is in; its depth, counted from 1. */
static struct lsi_run *outer_run(const ls_strategy *s, int *depth)
{
    struct lsi_run *found = NULL;

    *depth = 0;
    for (const lsi_mode *m = lsi_mode_now(); m != NULL; m = m->outer) {
        if (m->run != NULL && m->run->strategy == s) {
            found = found != NULL ? found : m->run;
            (*depth)++;
        }
    }
    return found;
}

static ls_status check_args(const ls_value *args, ls_error *err)
{
    if (args == NULL || !ls_value_is_leaf(args) || lsi_value_is_distributed(args)) {
        return LS_OK;
    }
    return lsi_fail_kind(
        err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
        "run: the arguments are a tuple, a list, a dict or a distributed "
        "value, not a single %s; put it into a tuple",
        ls_value_kind_name(ls_value_kind_of(args)));
}

ls_status ls_strategy_run_with(ls_strategy *s, ls_replica_fn fn, ls_value *args,
                               void *user, const ls_run_options *opts, ls_value **out,
                               ls_error *err)
{
    lsi_mode mode;
    bool pushed = false;
    ls_status st;
    int depth = 0;

    if (s == NULL || fn == NULL || (opts != NULL && opts->struct_size < sizeof *opts)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE, "run: %s",
                             s == NULL    ? "the strategy is NULL"
                             : fn == NULL ? "the function is NULL"
                                          : "start the options from LS_RUN_OPTIONS_INIT");
    }
    st = check_args(args, err);
    if (st == LS_OK) {
        st = lsi_scope_visit(s, &mode, &pushed, err);
    }
    if (st != LS_OK) {
        return st;
    }
    if (s->crew == NULL) {
        st = run_one(s, fn, args, user, out, err);
    } else {
        struct lsi_run *outer = outer_run(s, &depth);

        if (outer == NULL) {
            lsi_mutex_lock(&s->crew->running);
        }
        st = run_many(s, opts, fn, args, user, outer, depth, out, err);
        if (outer == NULL) {
            lsi_mutex_unlock(&s->crew->running);
        }
    }
    lsi_scope_leave(&mode, pushed);
    return st;
}

ls_status ls_strategy_run(ls_strategy *s, ls_replica_fn fn, ls_value *args, void *user,
                          ls_value **out, ls_error *err)
{
    return ls_strategy_run_with(s, fn, args, user, NULL, out, err);
}

void ls_strategy_abort(ls_strategy *s)
{
    ls_error why = LS_ERROR_INIT;

    if (s == NULL || s->crew == NULL) {
        return;
    }
    (void)lsi_fail(&why, LS_ABORTED, -1, "the run was aborted by ls_strategy_abort()");
    lsi_mutex_lock(&s->crew->aborting);
    for (int i = 0; i < LSI_MAX_LEVELS; i++) {
        lsi_level *level = atomic_load(&s->crew->levels[i]);

        for (int k = 0; level != NULL && k < s->crew->n; k++) {
            atomic_store(&level->context[k]->aborted, true);
            lsi_comm_break(level->comm[k], &why);
        }
    }
    if (s->workers != NULL) {
        lsi_comm_break(s->workers, &why);
    }
    lsi_mutex_unlock(&s->crew->aborting);
}

/* ---- queries of a replica's context ---- */

int ls_replica_id(const ls_context *c)
{
    const lsi_replica *r = lsi_replica_of(c);

    return r == NULL ? 0 : r->id;
}

int ls_replica_count(const ls_context *c)
{
    return ls_replica_strategy(c)->replicas;
}

ls_strategy *ls_replica_strategy(const ls_context *c)
{
    const lsi_replica *r = lsi_replica_of(c);

    return r == NULL ? ls_default_strategy() : r->strategy;
}

ls_tensor *ls_replica_id_tensor(ls_context *c)
{
    const int32_t id = ls_replica_id(c);

    return (ls_constant)(c, LS_I32, LS_SCALAR, &id);
}
