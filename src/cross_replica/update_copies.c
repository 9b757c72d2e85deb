/*
 * ls_strategy_update() and its relatives: calls a function for each copy of a variable,
 * on the copy's device.
 */
#include "base/guard.h"
#include "cross_replica/cross_replica.h"

#include <string.h>

/* The function of an update and its arguments. */
typedef struct update {
    ls_update_fn fn;
    ls_replica_fn plain; /* update_non_slot: without a variable */
    ls_value *args;
    void *user;
    bool group;
} update;

/* Random positions: every component draws from `begin`, the next update from `end` on. */
struct draws {
    ls_random_state *caller;
    uint64_t begin, end;
};

static ls_status draws_begin(struct draws *d, ls_error *err)
{
    d->caller = lsi_callers_random();
    if (d->caller == NULL) {
        return lsi_fail_memory(err, "a context", sizeof(ls_context));
    }
    d->begin = d->end = d->caller->position;
    return LS_OK;
}

/* Calls the function for component `i`; the result is retained. */
static ls_status update_component(ls_strategy *s, ls_variable *component,
                                  ls_device *device, int i, const update *u,
                                  struct draws *draws, ls_value **out, ls_error *err)
{
    ls_context *c = NULL;
    ls_value *args = NULL, *result = NULL;
    lsi_mode mode = {.strategy = s, .cross = true};
    const lsi_mode *now = lsi_mode_now();
    lsi_replica replica = {.strategy = s, .index = i, .id = s->first + i};
    lsi_guard guard LSI_GUARDED = {NULL};
    ls_status st = ls_context_open(device, NULL, &c, err);
    int former;

    if (st == LS_OK && u->args != NULL) {
        st = ls_value_select(u->args, (size_t)i, &args, err);
    }
    if (st == LS_OK) {
        c->replica = &replica;
        c->own.stream = LSI_STREAM_UPDATE;
        c->own.position = draws->begin;
        mode.context = c;
        mode.run = now != NULL ? now->run : NULL;
        lsi_mode_push(&mode);
        former = lsi_update_id_set(i);
        guard.what = "the function of an update";
        if (u->fn != NULL) {
            result = u->fn(c, component, args, u->user);
        } else if (u->plain != NULL) {
            result = u->plain(c, args, u->user);
        }
        guard.what = NULL;
        (void)lsi_update_id_set(former);
        lsi_mode_pop(&mode);
        draws->end = LSI_MAX(draws->end, c->own.position);
        st = ls_context_status(c, err);
    }
    if (st == LS_OK) {
        if (result != NULL) {
            *out = ls_value_retain(result);
        } else {
            st = ls_value_none(out, err);
        }
    }
    ls_value_release(args);
    ls_context_close(c);
    return st;
}

/* group = false: each leaf becomes a tuple of the local results. */
static ls_status local_tuple(ls_value *leaf, void *user, ls_value **out, ls_error *err)
{
    return ls_strategy_local_results(user, leaf, out, err);
}

static ls_status ungroup(ls_strategy *s, ls_value *merged, ls_value **out, ls_error *err)
{
    return ls_value_map(merged, local_tuple, s, out, err);
}

static ls_status merge_results(ls_strategy *s, ls_value *const *results, size_t n,
                               bool group, ls_value **out, ls_error *err)
{
    ls_regroup_options opts = LS_REGROUP_OPTIONS_INIT;
    ls_value *merged = NULL;
    ls_status st;

    if (out == NULL) {
        return LS_OK;
    }
    if (group) {
        opts.wrap = LS_VALUE_MIRRORED;
        return ls_value_regroup(results, n, &opts, out, err);
    }
    st = ls_value_regroup(results, n, &opts, &merged, err);
    if (st == LS_OK) {
        st = ungroup(s, merged, out, err);
    }
    ls_value_release(merged);
    return st;
}

static ls_status update_each(ls_strategy *s, ls_variable *v, ls_device *const *devices,
                             size_t n, const update *u, ls_value **out, ls_error *err)
{
    ls_value **results = lsi_alloc(n, sizeof(ls_value *));
    struct draws draws = {0};
    ls_status st = LS_OK;

    if (results == NULL) {
        return lsi_fail_memory(err, "update", n * sizeof(ls_value *));
    }
    st = draws_begin(&draws, err);
    for (size_t i = 0; i < n && st == LS_OK; i++) {
        ls_variable *component = v != NULL ? ls_variable_component(v, i) : NULL;
        ls_device *device = component != NULL ? component->device : devices[i];

        st = update_component(s, component, device, (int)i, u, &draws, &results[i], err);
    }
    if (draws.caller != NULL) {
        draws.caller->position = draws.end;
    }
    if (st == LS_OK) {
        st = merge_results(s, results, n, u->group, out, err);
    }
    lsi_value_release_all(results, n);
    return st;
}

/* One copy: the function is called once and its result is returned unchanged. */
static ls_status update_once(ls_strategy *s, ls_variable *v, ls_device *device,
                             const update *u, ls_value **out, ls_error *err)
{
    ls_value *result = NULL;
    struct draws draws = {0};
    ls_status st = draws_begin(&draws, err);

    if (st == LS_OK) {
        st = update_component(s, v, device, 0, u, &draws, &result, err);
        draws.caller->position = draws.end;
    }
    if (st == LS_OK && out != NULL && u->group) {
        *out = result;
        return LS_OK;
    }
    if (st == LS_OK && out != NULL) {
        st = ungroup(s, result, out, err);
    }
    ls_value_release(result);
    return st;
}

static ls_status update_all(ls_strategy *s, ls_variable *v, const update *u,
                            ls_value **out, ls_error *err)
{
    if (v->ops->per_replica) {
        return update_each(s, v, NULL, (size_t)v->components, u, out, err);
    }
    return update_once(s, v, v->device, u, out, err);
}

/* Fails for a PerReplica value: it would make copies that are kept equal differ. */
static ls_status check_argument(ls_value *leaf, void *user, ls_value **out, ls_error *err)
{
    const ls_variable *v = user;

    if (leaf->kind == LS_VALUE_PER_REPLICA) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                             "update: '%s' is kept equal on all replicas; a PerReplica "
                             "argument would make its copies differ: reduce it first",
                             v->name);
    }
    *out = ls_value_retain(leaf);
    return LS_OK;
}

static ls_status check_arguments(ls_variable *v, ls_value *args, ls_error *err)
{
    ls_value *same = NULL;
    ls_status st;

    if (args == NULL || !v->ops->kept_equal || v->aggregation == LS_AGGREGATE_NONE) {
        return LS_OK;
    }
    st = ls_value_map(args, check_argument, v, &same, err);
    ls_value_release(same);
    return st;
}

/* In a replica: as ls_replica_update(); the result is that of this replica. */
static ls_status update_in_replica(ls_context *c, ls_variable *v, const update *u,
                                   ls_value **out, ls_error *err)
{
    ls_value *result = (ls_replica_update)(c, v, u->fn, u->args, u->user);
    ls_status st = ls_context_status(c, err);

    if (st == LS_OK && out != NULL) {
        if (result != NULL) {
            *out = ls_value_retain(result);
        } else {
            st = ls_value_none(out, err);
        }
    }
    return st;
}

ls_status ls_strategy_update(ls_strategy *s, ls_variable *v, ls_update_fn fn,
                             ls_value *args, void *user, bool group, ls_value **out,
                             ls_error *err)
{
    const update u = {.fn = fn, .args = args, .user = user, .group = group};
    const lsi_mode *now = lsi_mode_now();
    lsi_mode mode;
    bool pushed = false;
    ls_status st;

    if (s == NULL || v == NULL || fn == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "update: %s is NULL",
                             s == NULL   ? "the strategy"
                             : v == NULL ? "the variable"
                                         : "the function");
    }
    if (now != NULL && !now->cross && now->strategy == s) {
        return update_in_replica(now->context, v, &u, out, err);
    }
    st = lsi_scope_visit(s, &mode, &pushed, err);
    if (st != LS_OK) {
        return st;
    }
    st = check_arguments(v, args, err);
    if (st == LS_OK) {
        st = update_all(s, v, &u, out, err);
    }
    lsi_scope_leave(&mode, pushed);
    return st;
}

/* ---- in replicas ---- */

struct merged_update {
    ls_variable *variable;
    ls_update_fn fn;
    void *user;
};

static ls_value *update_merged(ls_context *cross, ls_strategy *s, ls_value *args,
                               void *user)
{
    const struct merged_update *m = user;
    const update u = {.fn = m->fn, .args = args, .user = m->user, .group = true};
    ls_error e = LS_ERROR_INIT;
    ls_value *result = NULL;

    if (update_all(s, m->variable, &u, &result, &e) != LS_OK) {
        (void)lsi_context_error(cross, &e);
        return NULL;
    }
    return ls_value_adopt(cross, result);
}

ls_value *(ls_replica_update)(ls_context *c, ls_variable *v, ls_update_fn fn,
                              ls_value *args, void *user)
{
    struct merged_update m = {v, fn, user};

    if (lsi_failed(c)) {
        return NULL;
    }
    if (v == NULL || fn == NULL) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "update: %s is NULL",
                              v == NULL ? "the variable" : "the function");
        return NULL;
    }
    return (ls_merge_call)(c, update_merged, args, &m);
}

/* ---- without a variable ---- */

ls_status ls_strategy_non_slot_devices(ls_strategy *s, ls_variable *const *vars, size_t n,
                                       ls_value **out, ls_error *err)
{
    ls_variable *least = NULL;
    ls_value **names;
    ls_status st = LS_OK;

    if (s == NULL || out == NULL || (n > 0 && vars == NULL)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "non_slot_devices: an argument is NULL");
    }
    if (s->ops->is_default || s->ops->one_parameter_device) {
        for (size_t i = 0; i < n; i++) {
            if (least == NULL || strcmp(vars[i]->name, least->name) < 0) {
                least = vars[i];
            }
        }
        return least != NULL ? ls_value_variable(least, out, err)
                             : lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                             "non_slot_devices: no variable is given");
    }
    names = lsi_alloc((size_t)s->local, sizeof(ls_value *));
    if (names == NULL) {
        return lsi_fail_memory(err, "non_slot_devices", sizeof(ls_value *));
    }
    for (int i = 0; i < s->local && st == LS_OK; i++) {
        const ls_string name = {s->devices[i]->name, strlen(s->devices[i]->name)};

        st = ls_value_string(name, &names[i], err);
    }
    if (st == LS_OK) {
        st = ls_value_tuple(names, (size_t)s->local, out, err);
    }
    lsi_value_release_all(names, (size_t)s->local);
    return st;
}

ls_status ls_strategy_update_non_slot(ls_strategy *s, ls_value *colocate_with,
                                      ls_replica_fn fn, ls_value *args, void *user,
                                      bool group, ls_value **out, ls_error *err)
{
    const update u = {.plain = fn, .args = args, .user = user, .group = group};
    const ls_variable *v = ls_value_as_variable(colocate_with);
    lsi_mode mode;
    bool pushed = false;
    ls_status st;

    if (s == NULL || fn == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "update_non_slot: %s is NULL",
                             s == NULL ? "the strategy" : "the function");
    }
    st = lsi_require_cross(s, "update_non_slot", NULL, err);
    if (st == LS_OK) {
        st = lsi_scope_visit(s, &mode, &pushed, err);
    }
    if (st != LS_OK) {
        return st;
    }
    if (s->ops->copies_variables) {
        st = update_each(s, NULL, s->devices, (size_t)s->local, &u, out, err);
    } else {
        ls_device *device = v != NULL ? v->device : s->parameter_device;

        st = update_once(s, NULL, device, &u, out, err);
    }
    lsi_scope_leave(&mode, pushed);
    return st;
}
