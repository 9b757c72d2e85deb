/* Iterators of compat.v1: distributed iterators that must be initialized before use. */
#include "input/input.h"

/* An uninitialized iterator over `dd`, whose reference it takes. */
static ls_status create_uninitialized(ls_dist_dataset *dd, ls_dist_iterator **out,
                                      ls_error *err)
{
    const ls_status st = lsi_dist_iterator_create(dd, true, out, err);

    ls_dist_dataset_release(dd);
    return st;
}

ls_status ls_strategy_make_dataset_iterator(ls_strategy *s, ls_dataset *d,
                                            ls_dist_iterator **out, ls_error *err)
{
    ls_dist_dataset *dd = NULL;
    ls_status st;

    if (out == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "make_dataset_iterator: out is NULL");
    }
    st = ls_strategy_distribute(s, d, NULL, &dd, err);
    return st == LS_OK ? create_uninitialized(dd, out, err) : st;
}

/*
 * A distributed dataset over a callable, called once per replica and step: its spec is
 * unknown, and nothing is prefetched.
 */
static ls_status from_callable(ls_strategy *s, ls_input_callable callable, void *user,
                               ls_dist_dataset **out, ls_error *err)
{
    const ls_status st = lsi_dist_create("make_input_fn_iterator", s, NULL, out, err);

    if (st == LS_OK) {
        (*out)->callable = callable;
        (*out)->user = user;
    }
    return st;
}

ls_status ls_strategy_make_input_fn_iterator(ls_strategy *s, ls_input_fn fn,
                                             ls_input_callable callable, void *user,
                                             ls_replication mode, ls_dist_iterator **out,
                                             ls_error *err)
{
    ls_dist_dataset *dd = NULL;
    ls_status st;

    if (s == NULL || out == NULL || (fn == NULL) == (callable == NULL)) {
        return lsi_fail_kind(
            err, LS_INVALID_ARGUMENT, LS_KIND_VALUE, "make_input_fn_iterator: %s",
            s == NULL || out == NULL ? "an argument is NULL"
                                     : "pass either a function that makes a dataset or a "
                                       "callable that returns values");
    }
    if (mode != LS_PER_WORKER) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "make_input_fn_iterator: only one input per worker "
                             "(LS_PER_WORKER) is supported");
    }
    st = fn != NULL ? ls_strategy_distribute_from_function(s, fn, user, NULL, &dd, err)
                    : from_callable(s, callable, user, &dd, err);
    if (st != LS_OK) {
        return st;
    }
    dd->partial = false;
    return create_uninitialized(dd, out, err);
}
