/*
 * ls_strategy_distribute_from_function(): datasets that a user's function makes, one per
 * worker or one per replica, used without sharding.
 */
#include "base/guard.h"
#include "input/input.h"

static ls_status check_options(const ls_strategy *s, const ls_distribute_options *opts,
                               ls_error *err)
{
    const bool alone = opts->replication == LS_PER_REPLICA_INPUT;

    if (opts->replication != LS_PER_WORKER && !alone) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "from_function: %d is not a replication mode",
                             (int)opts->replication);
    }
    if (alone && (!s->ops->copies_variables || s->ops->traits.multi_worker)) {
        return lsi_fail_kind(err, LS_UNIMPLEMENTED, LS_KIND_RUNTIME,
                             "from_function: an input per replica is for "
                             "MirroredStrategy, not for %s; use LS_PER_WORKER",
                             s->ops->name);
    }
    if (opts->place_on_device && !alone) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "from_function: a dataset lives on a device "
                             "(place_on_device) only with LS_PER_REPLICA_INPUT");
    }
    if (opts->place_on_device && !opts->keep_on_host) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "from_function: a dataset on the device (place_on_device) "
                             "is not fetched to it; set keep_on_host");
    }
    return LS_OK;
}

static ls_status call_input_function(ls_dist_dataset *dd, ls_input_fn fn, void *user,
                                     int i, ls_error *err)
{
    const bool alone = dd->npipelines > 1;
    const ls_input_context ic = {alone ? dd->npipelines : dd->workers,
                                 alone ? i : dd->worker, dd->total};

    lsi_guard guard LSI_GUARDED = {
        "the function of ls_strategy_distribute_from_function()"};
    dd->pipelines[i] = fn(&ic, user);
    guard.what = NULL;
    if (dd->pipelines[i] == NULL) {
        return lsi_fail(err, LS_RESOURCE_EXHAUSTED, -1,
                        "from_function: the function returned no dataset: it ran out of "
                        "memory; for other failures it must return "
                        "ls_dataset_failed()");
    }
    return ls_dataset_status(dd->pipelines[i], err);
}

static ls_status make_pipelines(ls_dist_dataset *dd, ls_input_fn fn, void *user, int n,
                                ls_error *err)
{
    ls_status st = LS_OK;

    dd->pipelines = lsi_alloc((size_t)n, sizeof(ls_dataset *));
    if (dd->pipelines == NULL) {
        return lsi_fail_memory(err, "from_function", (size_t)n * sizeof(ls_dataset *));
    }
    dd->npipelines = n;
    for (int i = 0; i < n && st == LS_OK; i++) {
        st = call_input_function(dd, fn, user, i, err);
    }
    for (int i = 1; i < n && st == LS_OK; i++) {
        if (!ls_spec_equal(dd->pipelines[0]->spec, dd->pipelines[i]->spec)) {
            st = lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                               "from_function: the dataset of replica %d has another "
                               "spec than that of replica 0; all must have one",
                               i);
        }
    }
    return st == LS_OK
               ? lsi_dist_describe(dd, dd->pipelines[0], dd->pipelines[0]->spec, err)
               : st;
}

ls_status(ls_strategy_distribute_from_function)(ls_strategy *s, ls_input_fn fn,
                                                void *user,
                                                const ls_distribute_options *opts,
                                                ls_dist_dataset **out, ls_error *err)
{
    const lsi_comm_site site = lsi_comm_take_site();
    ls_dist_dataset *dd = NULL;
    ls_error why = LS_ERROR_INIT;
    ls_status st;
    int n = 1;

    if (s == NULL || fn == NULL || out == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "from_function: an argument is NULL");
    }
    st = lsi_dist_create("from_function", s, opts, &dd, &why);
    if (st == LS_OK && opts != NULL && !s->ops->is_default) {
        st = check_options(s, opts, &why);
        n = opts->replication == LS_PER_REPLICA_INPUT ? dd->local : 1;
    }
    if (st == LS_OK) {
        st = make_pipelines(dd, fn, user, n, &why);
    }
    st = lsi_dist_agree(s, dd, false, site, st, &why, err);
    if (st != LS_OK) {
        ls_dist_dataset_release(dd);
        return st;
    }
    *out = dd;
    return LS_OK;
}
