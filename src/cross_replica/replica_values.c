/* Values by replica: created by a function, local results, and containers of values. */
#include "base/guard.h"
#include "cross_replica/cross_replica.h"

static ls_status make_one(ls_value_maker fn, const ls_value_context *vc, void *user,
                          ls_value **out, ls_error *err)
{
    lsi_guard guard LSI_GUARDED = {"the function of ls_strategy_values()"};
    const ls_status st = fn(vc, user, out, err);

    guard.what = NULL;
    return st;
}

static ls_status make_each(ls_strategy *s, ls_value_maker fn, void *user, ls_value **out,
                           ls_error *err)
{
    const size_t n = (size_t)s->local;
    ls_regroup_options opts = LS_REGROUP_OPTIONS_INIT;
    ls_value **made = lsi_alloc(n, sizeof(ls_value *));
    ls_status st = LS_OK;

    if (made == NULL) {
        return lsi_fail_memory(err, "values", n * sizeof(ls_value *));
    }
    for (size_t i = 0; i < n && st == LS_OK; i++) {
        const ls_value_context vc = {s->first + (int)i, s->replicas, s->devices[i]};

        st = make_one(fn, &vc, user, &made[i], err);
        if (st == LS_OK && made[i] == NULL) {
            st = lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                               "values: the function returned nothing for replica %d",
                               vc.replica_id);
        }
    }
    if (st == LS_OK) {
        opts.always_wrap = true;
        st = ls_value_regroup(made, n, &opts, out, err);
    }
    lsi_value_release_all(made, n);
    return st;
}

ls_status ls_strategy_values(ls_strategy *s, ls_value_maker fn, void *user,
                             ls_value **out, ls_error *err)
{
    ls_value_context vc = {0, 1, NULL};

    if (s == NULL || fn == NULL || out == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "values: an argument is NULL");
    }
    if (s->ops->per_replica) {
        return make_each(s, fn, user, out, err);
    }
    vc.device = s->local > 0 ? s->devices[0] : NULL;
    return make_one(fn, &vc, user, out, err);
}

/* ---- queries of values ---- */

static ls_status copies_of(const ls_variable *v, ls_value **out, ls_error *err)
{
    const size_t n = ls_variable_components(v);
    ls_value **items = lsi_alloc(n, sizeof(ls_value *));
    ls_status st = LS_OK;

    if (items == NULL) {
        return lsi_fail_memory(err, "local_results", n * sizeof(ls_value *));
    }
    for (size_t i = 0; i < n && st == LS_OK; i++) {
        st = ls_value_variable(ls_variable_component(v, i), &items[i], err);
    }
    if (st == LS_OK) {
        st = ls_value_tuple(items, n, out, err);
    }
    lsi_value_release_all(items, n);
    return st;
}

/* The part of a leaf, also of a variable, for the replica that `user` points at. */
static ls_status pick_component(ls_value *leaf, void *user, ls_value **out, ls_error *err)
{
    const size_t *replica = user;
    const ls_variable *v = ls_value_as_variable(leaf);

    if (v != NULL && v->ops->per_replica && *replica < (size_t)v->components) {
        return ls_value_variable(v->component[*replica], out, err);
    }
    return ls_value_select(leaf, *replica, out, err);
}

static ls_status results_of(const ls_strategy *s, ls_value *structure, ls_value **out,
                            ls_error *err)
{
    const size_t n = (size_t)s->local;
    ls_value **made = lsi_alloc(n, sizeof(ls_value *));
    ls_status st = LS_OK;

    if (made == NULL) {
        return lsi_fail_memory(err, "local_results", n * sizeof(ls_value *));
    }
    for (size_t k = 0; k < n && st == LS_OK; k++) {
        st = ls_value_map(structure, pick_component, &k, &made[k], err);
    }
    if (st == LS_OK) {
        st = ls_value_tuple(made, n, out, err);
    }
    lsi_value_release_all(made, n);
    return st;
}

ls_status ls_strategy_local_results(ls_strategy *s, ls_value *value, ls_value **out,
                                    ls_error *err)
{
    const ls_variable *v = ls_value_as_variable(value);

    if (s == NULL || value == NULL || out == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "local_results: an argument is NULL");
    }
    if (!s->ops->per_replica) {
        return ls_value_tuple(&value, 1, out, err);
    }
    if (v != NULL && v->ops->per_replica) {
        return copies_of(v, out, err);
    }
    return ls_value_is_leaf(value)
               ? ls_value_local_results(value, (size_t)s->local, out, err)
               : results_of(s, value, out, err);
}

ls_status ls_strategy_value_container(ls_strategy *s, ls_value *value, ls_value **out,
                                      ls_error *err)
{
    ls_variable *v = ls_value_as_variable(value);

    if (s == NULL || value == NULL || out == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "value_container: an argument is NULL");
    }
    if (v != NULL && ls_variable_container(v) != v && !s->ops->is_default) {
        return ls_value_variable(ls_variable_container(v), out, err);
    }
    *out = ls_value_retain(value);
    return LS_OK;
}

ls_status ls_strategy_read_variable(ls_strategy *s, ls_variable *v, ls_tensor **out,
                                    ls_error *err)
{
    if (s == NULL || v == NULL || out == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "read_var: an argument is NULL");
    }
    return ls_variable_save(v, out, err); // the one copy, or the aggregate
}

ls_status ls_strategy_run_steps(ls_strategy *s, ls_replica_fn fn, void *user,
                                ls_next_fn next, void *next_user, int64_t iterations,
                                ls_value *initial, ls_value **out, ls_error *err)
{
    ls_value *last = ls_value_retain(initial);
    ls_status st;

    if (s == NULL || fn == NULL || iterations < 0) {
        ls_value_release(last);
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE, "run_steps: %s",
                             s == NULL    ? "the strategy is NULL"
                             : fn == NULL ? "the function is NULL"
                                          : "the number of iterations is negative");
    }
    st = lsi_require_cross(s, "run_steps", NULL, err);
    for (int64_t i = 0; i < iterations && st == LS_OK; i++) {
        ls_value *element = NULL, *result = NULL;

        st = next != NULL ? next(next_user, &element, err) : LS_OK;
        if (st == LS_OK) {
            st = ls_strategy_run(s, fn, element, user, &result, err);
        }
        ls_value_release(element);
        if (st == LS_OK) {
            ls_value_release(last);
            last = result;
        }
    }
    if (st == LS_OK && out != NULL) {
        *out = last;
        return LS_OK;
    }
    ls_value_release(last);
    return st;
}
