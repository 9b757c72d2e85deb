/*
 * Steps of a distributed iterator: one part per replica of this worker; all workers end
 * at the same step. A step that fails keeps the parts it has; the next call continues
 * with them, so no element is lost and every replica gets the part of its batch.
 */
#include "input/input.h"

/* What a worker sends to the others at every step. */
enum { FACT_STEP, FACT_PRESENT, FACTS };

static ls_status open_feeds(ls_dist_iterator *it, ls_error *err);

void lsi_dist_iterator_drop(ls_dist_iterator *it)
{
    for (int r = 0; r < it->have; r++) {
        ls_value_release(it->parts[r]);
        it->parts[r] = NULL;
    }
    it->have = 0;
}

static int feed_count(const ls_dist_dataset *dd)
{
    return dd->callable != NULL ? 1 : dd->npipelines;
}

static void close_feeds(ls_dist_iterator *it)
{
    for (int i = 0; it->feeds != NULL && i < feed_count(it->dataset); i++) {
        lsi_feed_close(it->feeds[i]);
    }
    lsi_free(it->feeds);
    it->feeds = NULL;
    if (it->parts != NULL) {
        lsi_dist_iterator_drop(it);
    }
    it->steps = 0;
    it->over = false;
}

void ls_dist_iterator_release(ls_dist_iterator *it)
{
    if (it == NULL) {
        return;
    }
    close_feeds(it);
    lsi_free(it->parts);
    lsi_free(it->whole);
    if (it->empty != NULL) {
        lsi_value_release_all(it->empty, (size_t)it->dataset->local);
    }
    ls_spec_release(it->seen);
    lsi_free(it->facts);
    ls_dist_dataset_release(it->dataset);
    lsi_free(it);
}

ls_status lsi_dist_iterator_create(ls_dist_dataset *dd, bool uninitialized,
                                   ls_dist_iterator **out, ls_error *err)
{
    ls_dist_iterator *it = lsi_alloc(1, sizeof *it);
    ls_status st = LS_OK;

    if (it == NULL) {
        return lsi_fail_memory(err, "an iterator", sizeof *it);
    }
    it->dataset = ls_dist_dataset_retain(dd);
    it->uninitialized = uninitialized;
    it->parts = lsi_alloc((size_t)dd->local, sizeof(ls_value *));
    it->whole = lsi_alloc((size_t)dd->local, sizeof(ls_value *));
    it->empty = lsi_alloc((size_t)dd->local, sizeof(ls_value *));
    it->facts = lsi_alloc((size_t)dd->workers * FACTS, sizeof(int64_t));
    if (it->parts == NULL || it->whole == NULL || it->empty == NULL ||
        it->facts == NULL) {
        st = lsi_fail_memory(err, "an iterator", (size_t)dd->local * sizeof(ls_value *));
    }
    if (st == LS_OK && !uninitialized) {
        st = open_feeds(it, err);
    }
    if (st != LS_OK) {
        ls_dist_iterator_release(it);
        return st;
    }
    *out = it;
    return LS_OK;
}

/* The options of feed `i`: its pipeline, devices and how many elements it prefetches. */
static lsi_feed_options feed_options(const ls_dist_dataset *dd, int i)
{
    const size_t replicas = dd->npipelines > 1 ? 1 : (size_t)dd->local;
    lsi_feed_options o = {.callable = dd->callable, .user = dd->user};

    o.dataset = dd->callable != NULL ? NULL : dd->pipelines[i];
    // one buffer on the host and one on the device
    o.ahead = replicas * 2 * (size_t)dd->buffer;
    o.runtime = dd->strategy->runtime;
    o.cheap_ns = dd->cheap_ns;
    if (!dd->on_host) {
        o.devices = dd->strategy->devices + (dd->npipelines > 1 ? i : 0);
        o.ndevices = replicas;
    }
    if (dd->prefetched) { // the feed's thread replaces that of the last node, a prefetch
        o.dataset = dd->pipelines[i]->inputs[0];
        o.ahead += dd->buffer > 0 ? replicas : 0;
    }
    return o;
}

static ls_status open_feeds(ls_dist_iterator *it, ls_error *err)
{
    const ls_dist_dataset *dd = it->dataset;
    const int n = feed_count(dd);
    ls_status st = LS_OK;

    if (dd->too_few > 0) {
        return lsi_fail_too_few(dd->too_few, dd->wanting, err);
    }
    it->feeds = lsi_alloc((size_t)n, sizeof(lsi_feed *));
    if (it->feeds == NULL) {
        return lsi_fail_memory(err, "an iterator", (size_t)n * sizeof(lsi_feed *));
    }
    for (int i = 0; i < n && st == LS_OK; i++) {
        const lsi_feed_options o = feed_options(dd, i);

        st = lsi_feed_open(&o, &it->feeds[i], err);
    }
    if (st != LS_OK) {
        close_feeds(it);
    }
    return st;
}

ls_status ls_dist_iterate(ls_dist_dataset *d, ls_dist_iterator **out, ls_error *err)
{
    if (d == NULL || out == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "iterate: an argument is NULL");
    }
    return lsi_dist_iterator_create(d, false, out, err);
}

ls_status ls_dist_iterator_initialize(ls_dist_iterator *it, ls_error *err)
{
    ls_status st;

    if (it == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "initialize: the iterator is NULL");
    }
    close_feeds(it);
    st = open_feeds(it, err);
    it->uninitialized = st != LS_OK;
    return st;
}

ls_status lsi_dist_iterator_ready(const ls_dist_iterator *it, const char *what,
                                  ls_error *err)
{
    const lsi_mode *mode = lsi_mode_now();

    if (it == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "%s: the iterator is NULL", what);
    }
    if (mode != NULL && !mode->cross && !it->dataset->strategy->ops->is_default) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "%s: a distributed iterator has a part for every replica, "
                             "so one replica cannot call it; call it outside of the "
                             "replica function and pass the value to ls_strategy_run()",
                             what);
    }
    if (it->uninitialized) {
        return lsi_fail(err, LS_FAILED_PRECONDITION, -1,
                        "%s: call ls_dist_iterator_initialize() first", what);
    }
    return LS_OK;
}

/* Takes a part for each replica; NULL where data has ended, if `missing` allows it. */
static ls_status collect_parts(ls_dist_iterator *it, bool missing, ls_error *err)
{
    const ls_dist_dataset *dd = it->dataset;
    ls_status st = LS_OK;

    for (int r = it->have; r < dd->local && st == LS_OK; r++) {
        st = lsi_feed_take(it->feeds[dd->npipelines > 1 ? r : 0], &it->parts[r], err);
        if (st == LS_OUT_OF_RANGE && missing) {
            it->parts[r] = NULL;
            st = LS_OK;
        }
        it->have += st == LS_OK ? 1 : 0;
    }
    return st;
}

static ls_status end_iteration(ls_dist_iterator *it, ls_error *err)
{
    lsi_dist_iterator_drop(it);
    it->over = true;
    return lsi_fail(err, LS_OUT_OF_RANGE, -1, "end of the distributed dataset");
}

/* A part for each replica, as one value. */
static ls_status wrap_parts(const ls_dist_dataset *dd, ls_value *const *parts,
                            ls_value **out, ls_error *err)
{
    ls_regroup_options opts = LS_REGROUP_OPTIONS_INIT;

    if (!dd->wrapped) {
        *out = ls_value_retain(parts[0]);
        return LS_OK;
    }
    opts.always_wrap = true;
    return ls_value_regroup(parts, (size_t)dd->local, &opts, out, err);
}

/* Returns the step whose value is `v`; it cannot fail. */
static void give_step(ls_dist_iterator *it, ls_value *v, ls_value **out)
{
    lsi_dist_iterator_drop(it);
    it->steps++;
    *out = v;
}

/* Finds the spec by reading the first element, with a new iterator over the dataset. */
static ls_status read_one_spec(ls_dist_iterator *it, ls_error *err)
{
    ls_dataset *d = NULL;
    lsi_iterator *one = NULL;
    ls_value *v = NULL;
    ls_status st = LS_NOT_FOUND;

    if (it->dataset->original != NULL) {
        st = lsi_graph_made(lsi_dataset_clone(it->dataset->original), &d, err);
    }
    if (st == LS_OK) {
        st = lsi_pipeline_iterate(d, it->dataset->strategy->runtime, &one, err);
    }
    if (st == LS_OK) {
        st = lsi_iterator_next(one, &v, err);
    }
    if (st == LS_OK) {
        st = lsi_spec_of(v, &it->seen, err);
    }
    if (st == LS_OUT_OF_RANGE || st == LS_NOT_FOUND) {
        st = lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                           "distribute: this worker has no data, and the spec of an "
                           "empty batch is not known; declare the spec of the map");
    }
    ls_value_release(v);
    lsi_iterator_close(one);
    ls_dataset_release(d);
    return st;
}

/* The spec of elements, for empty batches; borrowed. */
static ls_status known_spec(ls_dist_iterator *it, const ls_spec **out, ls_error *err)
{
    const ls_dist_dataset *dd = it->dataset;
    ls_status st = LS_OK;

    *out = dd->empty_spec;
    if (!lsi_spec_is_open(dd->empty_spec)) {
        return LS_OK;
    }
    for (int r = 0; r < it->have && it->seen == NULL && st == LS_OK; r++) {
        if (it->parts[r] != NULL) {
            st = lsi_spec_of(it->parts[r], &it->seen, err);
        }
    }
    if (it->seen == NULL && st == LS_OK) {
        st = read_one_spec(it, err);
    }
    *out = it->seen;
    return st;
}

/* Creates empty batches for missing parts; they are reused from step to step. */
static ls_status make_empties(ls_dist_iterator *it, ls_error *err)
{
    const ls_dist_dataset *dd = it->dataset;
    const ls_spec *spec = NULL;
    ls_status st = LS_OK;

    for (int r = 0; r < it->have && st == LS_OK; r++) {
        if (it->parts[r] == NULL && it->empty[r] == NULL) {
            st = known_spec(it, &spec, err);
            if (st == LS_OK) {
                st = lsi_empty_value(spec,
                                     dd->on_host ? lsi_input_device(dd->strategy->runtime)
                                                 : dd->strategy->devices[r],
                                     &it->empty[r], err);
            }
        }
    }
    return st;
}

/*
 * The parts with empty batches for missing ones, as one value, which is NULL if no worker
 * can have a part; *present: the number of parts.
 */
static ls_status complete_step(ls_dist_iterator *it, int64_t *present, ls_value **out,
                               ls_error *err)
{
    const ls_dist_dataset *dd = it->dataset;
    ls_status st = LS_OK;

    for (int r = 0; r < dd->local; r++) {
        *present += it->parts[r] != NULL ? 1 : 0;
    }
    if (*present == 0 && dd->workers == 1) {
        return LS_OK;
    }
    if (*present < dd->local) {
        st = make_empties(it, err);
    }
    for (int r = 0; r < dd->local; r++) {
        it->whole[r] = it->parts[r] != NULL ? it->parts[r] : it->empty[r];
    }
    return st == LS_OK ? wrap_parts(dd, it->whole, out, err) : st;
}

/*
 * Sums the number of parts over all workers. What this worker could not do (`st`, `why`)
 * fails the step on all of them.
 */
static ls_status sum_present(ls_dist_iterator *it, ls_status st, ls_error *why,
                             int64_t *present, ls_error *err)
{
    const ls_dist_dataset *dd = it->dataset;
    const lsi_workers_call call = {.what = "ls_dist_iterator_next", .site = it->place};
    const int64_t mine[FACTS] = {it->steps, *present};

    why->code = st;
    st = lsi_workers_share(dd->strategy, &call, mine, FACTS, it->facts, st, why, err);
    if (st != LS_OK) {
        return st;
    }
    *present = 0;
    for (int w = 0; w < dd->workers; w++) {
        const int64_t *facts = it->facts + (size_t)w * FACTS;

        if (facts[FACT_STEP] != it->steps) {
            return lsi_fail(err, LS_FAILED_PRECONDITION, w,
                            "next: worker %d is at step %lld, this one (%d) at step "
                            "%lld; save and restore all workers at one step",
                            w, (long long)facts[FACT_STEP], dd->worker,
                            (long long)it->steps);
        }
        *present += facts[FACT_PRESENT];
    }
    return LS_OK;
}

/*
 * A step in which replicas and workers without data get empty batches. Its value is made
 * before the workers agree on the step: afterwards nothing can fail on one of them alone.
 */
static ls_status step_partial(ls_dist_iterator *it, ls_value **out, ls_error *err)
{
    ls_error why = LS_ERROR_INIT;
    ls_value *v = NULL;
    int64_t present = 0;
    ls_status st = collect_parts(it, true, &why);

    if (st == LS_OK) {
        st = complete_step(it, &present, &v, &why);
    }
    if (it->dataset->workers > 1) {
        st = sum_present(it, st, &why, &present, err);
    } else if (st != LS_OK) {
        (void)lsi_fail_again(err, &why);
    }
    if (st == LS_OK && present > 0) {
        give_step(it, v, out);
        return LS_OK;
    }
    ls_value_release(v);
    return st == LS_OK ? end_iteration(it, err) : st;
}

/* A step with a part for every replica, or the end; drops an incomplete last step. */
static ls_status step_whole(ls_dist_iterator *it, ls_value **out, ls_error *err)
{
    ls_value *v = NULL;
    ls_status st = collect_parts(it, false, err);

    if (st == LS_OUT_OF_RANGE) {
        return end_iteration(it, err);
    }
    if (st == LS_OK) {
        st = wrap_parts(it->dataset, it->parts, &v, err);
    }
    if (st == LS_OK) {
        give_step(it, v, out);
    }
    return st;
}

static ls_status take_step(ls_dist_iterator *it, bool partial, ls_value **out,
                           ls_error *err)
{
    if (it->over) {
        return end_iteration(it, err);
    }
    return partial ? step_partial(it, out, err) : step_whole(it, out, err);
}

static ls_status check_next(const ls_dist_iterator *it, bool refused, ls_error *err)
{
    if (refused) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "next: an argument is NULL");
    }
    return lsi_dist_iterator_ready(it, "next", err);
}

/*
 * Records the site of the program's call, which workers that wait for this one report.
 * Not for calls that failed a check: those may come from several replica threads at once.
 */
static void note_site(ls_dist_iterator *it, ls_status st)
{
    const lsi_comm_site place = lsi_comm_take_site();

    if (st == LS_OK) {
        it->place = place;
    }
}

ls_status(ls_dist_iterator_next)(ls_dist_iterator *it, ls_value **out, ls_error *err)
{
    const ls_status st = check_next(it, it == NULL || out == NULL, err);

    note_site(it, st);
    return st == LS_OK ? take_step(it, it->dataset->partial, out, err) : st;
}

ls_status(ls_dist_iterator_next_optional)(ls_dist_iterator *it, bool *has, ls_value **out,
                                          ls_error *err)
{
    ls_status st = check_next(it, it == NULL || has == NULL || out == NULL, err);
    ls_error why = LS_ERROR_INIT;

    note_site(it, st);
    if (st != LS_OK) {
        return st;
    }
    const ls_dist_dataset *dd = it->dataset;
    if (dd->cardinality == 0 && dd->workers == 1) {
        *has = false;
        return LS_OK;
    }
    st = take_step(it, dd->partial || dd->cardinality != LS_INFINITE, out, &why);
    *has = st == LS_OK;
    if (st == LS_OUT_OF_RANGE) {
        return LS_OK;
    }
    return st == LS_OK ? st : lsi_fail_again(err, &why);
}
