/*
 * ls_strategy_distribute(): a dataset of global batches, cut into parts and sharded for
 * the replicas of this worker.
 */
#include "input/input.h"

enum { HAND_OVER_NS = 10000 }; // the time to wake a thread: prefetching must save more

ls_dist_dataset *ls_dist_dataset_retain(ls_dist_dataset *d)
{
    if (d != NULL) {
        atomic_fetch_add(&d->refs, 1);
    }
    return d;
}

void ls_dist_dataset_release(ls_dist_dataset *d)
{
    if (d == NULL || atomic_fetch_sub(&d->refs, 1) != 1) {
        return;
    }
    for (int i = 0; i < d->npipelines; i++) {
        ls_dataset_release(d->pipelines[i]);
    }
    lsi_free(d->pipelines);
    ls_dataset_release(d->original);
    ls_spec_release(d->spec);
    ls_spec_release(d->empty_spec);
    ls_strategy_release(d->strategy);
    lsi_free(d);
}

int64_t ls_dist_cardinality(const ls_dist_dataset *d)
{
    return d == NULL ? LS_UNKNOWN_SIZE : d->cardinality;
}

ls_spec *ls_dist_spec(const ls_dist_dataset *d, bool *wrapped)
{
    if (wrapped != NULL) {
        *wrapped = d != NULL && d->wrapped;
    }
    return d == NULL ? NULL : d->spec;
}

static ls_status refuse_call(const char *what, const char *why, ls_error *err)
{
    return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE, "%s: %s", what, why);
}

ls_status lsi_dist_create(const char *what, ls_strategy *s,
                          const ls_distribute_options *opts, ls_dist_dataset **out,
                          ls_error *err)
{
    static const ls_distribute_options none = LS_DISTRIBUTE_OPTIONS_INIT;
    ls_dist_dataset *dd;

    if (opts != NULL && opts->struct_size < sizeof *opts) {
        return refuse_call(what, "start the options from LS_DISTRIBUTE_OPTIONS_INIT",
                           err);
    }
    dd = lsi_alloc(1, sizeof *dd);
    if (dd == NULL) {
        return lsi_fail_memory(err, what, sizeof *dd);
    }
    opts = opts == NULL || s->ops->is_default ? &none : opts;
    atomic_init(&dd->refs, 1);
    dd->strategy = ls_strategy_retain(s);
    dd->workers = lsi_workers(s);
    dd->worker = s->workers != NULL ? ls_comm_rank(s->workers) : 0;
    dd->local = s->local > 0 ? s->local : 1;
    dd->total = s->replicas;
    dd->buffer = opts->per_replica_buffer == 0 ? 1 : LSI_MAX(opts->per_replica_buffer, 0);
    dd->cheap_ns = HAND_OVER_NS;
    dd->on_host = opts->keep_on_host || s->local == 0;
    dd->cardinality = LS_UNKNOWN_SIZE;
    dd->wrapped = dd->total > 1;
    *out = dd;
    return LS_OK;
}

/* True if replicas must end at the same step, by empty batches for those without data. */
static bool must_end_together(const ls_dist_dataset *dd)
{
    return dd->strategy->ops->per_replica || dd->workers > 1;
}

ls_status lsi_dist_describe(ls_dist_dataset *dd, const ls_dataset *original,
                            const ls_spec *spec, ls_error *err)
{
    dd->cardinality = original->cardinality;
    dd->partial = must_end_together(dd) && original->cardinality != LS_INFINITE &&
                  (dd->workers > 1 || !lsi_spec_is_static(original->spec));
    dd->empty_spec = ls_spec_retain((ls_spec *)spec);
    if (dd->partial && dd->workers > 1) {
        return lsi_spec_open_rows(spec, &dd->spec, err);
    }
    dd->spec = ls_spec_retain((ls_spec *)spec);
    return LS_OK;
}

/* Cuts batches into parts for the replicas, before sharding. */
static ls_status cut_batches(const ls_dist_dataset *dd, ls_dataset *d, ls_dataset **out,
                             ls_error *err)
{
    int64_t batch = -1;
    int64_t *sizes;
    ls_status st = lsi_batch_size(d, &batch, err);

    if (st != LS_OK) {
        return st;
    }
    if (batch < 0) {
        d = lsi_dataset_legacy_rebatch(ls_dataset_retain(d), dd->total);
        return lsi_graph_made(ls_dataset_prefetch(d, dd->local), out, err);
    }
    sizes = lsi_alloc((size_t)dd->total, sizeof *sizes);
    if (sizes == NULL) {
        return lsi_fail_memory(err, "distribute", (size_t)dd->total * sizeof *sizes);
    }
    st = ls_batch_sizes(batch, dd->workers, dd->local, dd->worker, sizes, err);
    if (st == LS_OK) {
        d = ls_dataset_rebatch(ls_dataset_retain(d), sizes, (size_t)dd->total, false);
        st = lsi_graph_made(ls_dataset_prefetch(d, dd->local), out, err);
    }
    lsi_free(sizes);
    return st;
}

/* Builds the pipeline of this worker in dd->pipelines[0]. `d` is a copy made for it. */
static ls_status build_pipeline(ls_dist_dataset *dd, ls_dataset *d, ls_error *err)
{
    const lsi_sharding how = {dd->workers, dd->worker, dd->total, d->options.auto_shard,
                              &dd->too_few};
    ls_dataset *parts = NULL;
    ls_status st = LS_OK;

    dd->wanting = dd->workers;
    dd->prefetched = dd->total > 1;
    if (dd->total > 1) {
        st = cut_batches(dd, d, &parts, err);
    } else {
        parts = ls_dataset_retain(d);
    }
    if (st == LS_OK) { // sharding does not change the spec
        st = lsi_dist_describe(dd, d, parts->spec, err);
    }
    if (st == LS_OK) {
        st = lsi_auto_shard(parts, &how, &dd->pipelines[0], err);
    }
    if (st == LS_OK && dd->workers > 1) {
        st = lsi_graph_part_caches(&dd->pipelines[0], dd->workers, dd->worker, err);
    }
    ls_dataset_release(parts);
    return st;
}

/* What ls_strategy_distribute() does on this worker, up to the agreement of all. */
static ls_status distribute_input(ls_dist_dataset *dd, ls_dataset *d, ls_error *err)
{
    ls_dataset *own = NULL;
    ls_status st = ls_dataset_status(d, err);

    if (st != LS_OK) {
        return st;
    }
    dd->pipelines = lsi_alloc(1, sizeof(ls_dataset *));
    if (dd->pipelines == NULL) {
        return lsi_fail_memory(err, "distribute", sizeof(ls_dataset *));
    }
    dd->npipelines = 1;
    if (dd->strategy->ops->is_default) {
        dd->pipelines[0] = ls_dataset_retain(d);
        return lsi_dist_describe(dd, d, d->spec, err);
    }
    st = lsi_graph_made(lsi_dataset_clone(d), &own, err);
    if (st == LS_OK) {
        st = build_pipeline(dd, own, err);
        dd->original = lsi_spec_is_open(d->spec) ? ls_dataset_retain(d) : NULL;
    }
    ls_dataset_release(own);
    return st;
}

ls_status(ls_strategy_distribute)(ls_strategy *s, ls_dataset *d,
                                  const ls_distribute_options *opts,
                                  ls_dist_dataset **out, ls_error *err)
{
    const lsi_comm_site site = lsi_comm_take_site();
    ls_dist_dataset *dd = NULL;
    ls_error why = LS_ERROR_INIT;
    ls_status st;

    if (s == NULL || out == NULL) {
        return refuse_call("distribute", "an argument is NULL", err);
    }
    st = lsi_dist_create("distribute", s, opts, &dd, &why);
    if (st == LS_OK && opts != NULL && opts->replication != LS_PER_WORKER &&
        !s->ops->is_default) {
        st = lsi_fail_kind(&why, LS_UNIMPLEMENTED, LS_KIND_RUNTIME,
                           "distribute: batches are cut by the worker; an input per "
                           "replica (LS_PER_REPLICA_INPUT) takes "
                           "ls_strategy_distribute_from_function()");
    }
    if (st == LS_OK) {
        st = distribute_input(dd, d, &why);
    }
    st = lsi_dist_agree(s, dd, true, site, st, &why, err);
    if (st != LS_OK) {
        ls_dist_dataset_release(dd);
        return st;
    }
    *out = dd;
    return LS_OK;
}

/* Shards all pipelines into `made`, each by its own policy. */
static ls_status shard_all(const ls_dist_dataset *d, lsi_sharding how, ls_dataset **made,
                           ls_error *err)
{
    ls_status st = LS_OK;

    for (int i = 0; i < d->npipelines && st == LS_OK; i++) {
        how.policy = d->pipelines[i]->options.auto_shard;
        st = lsi_auto_shard(d->pipelines[i], &how, &made[i], err);
    }
    return st;
}

ls_status ls_dist_auto_shard(ls_dist_dataset *d, int shards, int index, ls_error *err)
{
    ls_dataset **made;
    ls_status st;
    int64_t few = 0;

    if (d == NULL || d->npipelines == 0) {
        return refuse_call("auto-shard",
                           d == NULL ? "the dataset is NULL"
                                     : "a callable has no pipeline to shard",
                           err);
    }
    made = lsi_alloc((size_t)d->npipelines, sizeof(ls_dataset *));
    if (made == NULL) {
        return lsi_fail_memory(err, "auto-shard", sizeof(ls_dataset *));
    }
    st = shard_all(d, (lsi_sharding){shards, index, 1, LS_SHARD_AUTO, &few}, made, err);
    if (st == LS_OK) {
        d->cardinality = made[0]->cardinality;
    }
    if (st == LS_OK && few > 0) {
        d->too_few = few;
        d->wanting = shards;
    }
    for (int i = 0; i < d->npipelines; i++) {
        ls_dataset_release(st == LS_OK ? d->pipelines[i] : made[i]);
        d->pipelines[i] = st == LS_OK ? made[i] : d->pipelines[i];
    }
    lsi_free(made);
    return st;
}
