/* Operators: strategies, contexts, and the scopes of a thread. */
#include "strategy_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- making strategies ---- */

static ls_status fail_program(ls_error *err, const char *what)
{
    err->code = LS_INTERNAL;
    (void)snprintf(err->message, sizeof err->message, "the oracle program: %s", what);
    return LS_INTERNAL;
}

ls_status machine_make_cross_device(json_t *spec, ls_cross_device **out, ls_error *err)
{
    json_t *first = json_is_array(spec) ? json_array_get(spec, 0) : spec;
    const json_t *packs = json_is_array(spec) ? json_array_get(spec, 1) : NULL;
    const char *name = json_string_value(first);
    const int num_packs = packs == NULL ? 1 : (int)json_integer_value(packs);

    if (name == NULL) {
        return fail_program(err, "no cross-device operations of that kind");
    }
    if (strcmp(name, "ReductionToOneDevice") == 0) {
        return ls_reduction_to_one_device_create(NULL, out, err);
    }
    if (strcmp(name, "HierarchicalCopyAllReduce") == 0) {
        return ls_hierarchical_copy_create(num_packs, out, err);
    }
    return strcmp(name, "NcclAllReduce") == 0
               ? ls_nccl_all_reduce_create(num_packs, out, err)
               : fail_program(err, "no cross-device operations of that kind");
}

/* "CPU:0,CPU:1": of a count, or of a list of names. */
static bool join_devices(const json_t *devices, char *buf, size_t size)
{
    const size_t n = json_is_integer(devices) ? (size_t)json_integer_value(devices)
                                              : json_array_size(devices);
    size_t used = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < n && used < size; i++) {
        const char *name = json_string_value(json_array_get(devices, i));
        const char *comma = i == 0 ? "" : ",";
        const int more = name == NULL
                             ? snprintf(buf + used, size - used, "%sCPU:%zu", comma, i)
                             : snprintf(buf + used, size - used, "%s%s", comma, name);

        used += (size_t)more;
    }
    return used < size;
}

static ls_status make_mirrored(const char *devices, json_t *ops, ls_strategy **out,
                               ls_error *err)
{
    ls_strategy_options opts = LS_STRATEGY_OPTIONS_INIT;
    ls_status st = LS_OK;

    if (ops != NULL) {
        st = machine_make_cross_device(ops, &opts.cross_device, err);
    }
    if (st == LS_OK) {
        st = ls_mirrored_create(devices, &opts, out, err);
    }
    ls_cross_device_release(opts.cross_device);
    return st;
}

ls_status machine_make_strategy(json_t *spec, size_t from, ls_strategy **out,
                                ls_error *err)
{
    const char *kind = json_string_value(json_array_get(spec, from));
    char devices[1000];

    if (kind == NULL ||
        !join_devices(json_array_get(spec, from + 1), devices, sizeof devices)) {
        return fail_program(err, "no strategy is written so");
    }
    if (strcmp(kind, "default") == 0) {
        *out = ls_strategy_retain(ls_default_strategy());
        return LS_OK;
    }
    if (strcmp(kind, "one_device") == 0) {
        return ls_one_device_create("CPU:0", NULL, out, err);
    }
    if (strcmp(kind, "mirrored") == 0) {
        return make_mirrored(devices, json_array_get(spec, from + 2), out, err);
    }
    return strcmp(kind, "central_storage") == 0
               ? ls_central_storage_create(devices, NULL, NULL, out, err)
               : fail_program(err, "no strategy is written so");
}

static ls_value *op_strategy(const scene *s, json_t *e)
{
    ls_error err = LS_ERROR_INIT;
    ls_strategy *made = NULL;
    ls_value *out;

    if (machine_make_strategy(e, 1, &made, &err) != LS_OK) {
        return machine_fail(s, &err);
    }
    out = machine_of_strategy(s, made);
    ls_strategy_release(made);
    return out;
}

static ls_value *device_names(const scene *s, const ls_strategy *of, bool parameter)
{
    items names = {0};
    const size_t n =
        parameter ? ls_strategy_parameter_devices(of) : ls_strategy_worker_devices(of);

    if (n == 0) {
        // A strategy without devices: the error is that of a count of 0.
        ls_error err = LS_ERROR_INIT;

        err.code = LS_FAILED_PRECONDITION;
        err.kind = LS_KIND_RUNTIME;
        (void)snprintf(err.message, sizeof err.message, "%s has no devices",
                       ls_strategy_name(of));
        return machine_fail(s, &err);
    }
    for (; names.n < n && names.n < MACHINE_MAX_ITEMS; names.n++) {
        const ls_device *d = parameter ? ls_strategy_parameter_device(of, names.n)
                                       : ls_strategy_worker_device(of, names.n);

        names.v[names.n] = machine_of_text(s, ls_device_name(d));
        if (names.v[names.n] == NULL) {
            return NULL;
        }
    }
    return machine_tuple(s, &names);
}

static ls_value *op_strategy_info(const scene *s, json_t *e)
{
    const ls_strategy *of = machine_eval_strategy(s, json_array_get(e, 1));
    const char *what = json_string_value(json_array_get(e, 2));

    if (of == NULL || what == NULL) {
        return NULL;
    }
    if (strcmp(what, "num_replicas_in_sync") == 0) {
        return machine_of_int(s, ls_strategy_replicas(of));
    }
    if (strcmp(what, "cluster_resolver") == 0) {
        return machine_done(s); // no strategy of one process has one
    }
    if (strcmp(what, "worker_devices") == 0 || strcmp(what, "parameter_devices") == 0) {
        return device_names(s, of, what[0] == 'p');
    }
    return machine_wrong(s, "a strategy has no %s", what);
}

/* ---- the current context ---- */

/* {"id", "n"} of a replica context; none if there is no such context. */
static ls_value *replica_of(const scene *s, const ls_context *c)
{
    static const char *const keys[] = {"id", "n"};
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;

    if (c == NULL) {
        return machine_done(s);
    }
    ls_value *v[] = {machine_of_int(s, ls_replica_id(c)),
                     machine_of_int(s, ls_replica_count(c))};

    if (v[0] == NULL || v[1] == NULL) {
        return NULL;
    }
    return machine_give(s, ls_value_dict(keys, v, 2, &out, &err), &out, &err);
}

static ls_value *op_context(const scene *s, json_t *e)
{
    static const char *const keys[] = {"has_strategy", "cross_replica", "strategy",
                                       "replica"};
    const char *name = machine_label(s->m, ls_current_strategy());
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;
    ls_value *v[] = {machine_of_bool(s, ls_has_strategy()),
                     machine_of_bool(s, ls_in_cross_replica_context()),
                     name == NULL ? machine_done(s) : machine_of_text(s, name),
                     replica_of(s, ls_replica_context())};

    (void)e;
    for (int i = 0; i < 4; i++) {
        if (v[i] == NULL) {
            return NULL;
        }
    }
    return machine_give(s, ls_value_dict(keys, v, 4, &out, &err), &out, &err);
}

/* The id is a tensor in a replica, a literal in the default context. */
static ls_value *op_id(const scene *s, json_t *e)
{
    (void)e;
    return s->replica ? machine_of_tensor(s, ls_replica_id_tensor(s->c))
                      : machine_of_int(s, ls_replica_id(s->c));
}

static ls_value *op_n(const scene *s, json_t *e)
{
    (void)e;
    return machine_of_int(s, ls_replica_count(s->c));
}

static ls_value *op_ctx(const scene *s, json_t *e)
{
    ls_context *c = ls_replica_context();

    (void)e;
    if (c == NULL) {
        return machine_done(s);
    }
    return machine_of_thing(
        s, &(thing){.kind = THING_CONTEXT, .context = c, .replica_id = ls_replica_id(c)});
}

static ls_value *op_in_cross_replica(const scene *s, json_t *e)
{
    (void)e;
    return machine_of_bool(s, ls_in_cross_replica_context());
}

/* ---- scopes ---- */

static ls_value *op_scope(const scene *s, json_t *e)
{
    ls_strategy *of = machine_eval_strategy(s, json_array_get(e, 1));

    return of == NULL
               ? NULL
               : machine_of_thing(s, &(thing){.kind = THING_SCOPE, .strategy = of});
}

/* A creator that changes nothing. */
static ls_status pass_on(const ls_creator_next *next, const ls_tensor *value,
                         const ls_variable_options *opts, void *user, ls_variable **out,
                         ls_error *err)
{
    (void)user;
    return ls_creator_call(next, value, opts, out, err);
}

static ls_value *op_creator_scope(const scene *s, json_t *e)
{
    (void)e;
    return machine_of_thing(s, &(thing){.kind = THING_CREATOR_SCOPE});
}

static thing *eval_scope(const scene *s, json_t *e)
{
    const ls_value *v = machine_eval(s, json_array_get(e, 1));
    thing *t = v == NULL ? NULL : machine_thing(s->m, v);

    if (v != NULL &&
        (t == NULL || (t->kind != THING_SCOPE && t->kind != THING_CREATOR_SCOPE))) {
        (void)machine_wrong(s, "a scope is needed");
        return NULL;
    }
    return t;
}

static ls_value *op_enter(const scene *s, json_t *e)
{
    thing *t = eval_scope(s, e);
    ls_error err = LS_ERROR_INIT;

    if (t == NULL) {
        return NULL;
    }
    const ls_status st = t->kind == THING_SCOPE
                             ? ls_scope_enter(t->strategy, &err)
                             : ls_creator_scope_enter(pass_on, NULL, &err);

    if (st != LS_OK) {
        return machine_fail(s, &err);
    }
    return list_add(&s->m->entered, t) ? machine_done(s)
                                       : machine_wrong(s, "out of memory");
}

static ls_value *op_leave(const scene *s, json_t *e)
{
    const thing *t = eval_scope(s, e);
    list *entered = &s->m->entered;
    ls_error err = LS_ERROR_INIT;

    if (t == NULL) {
        return NULL;
    }
    if ((t->kind == THING_SCOPE ? ls_scope_try_exit(t->strategy, &err)
                                : ls_creator_scope_exit(&err)) != LS_OK) {
        return machine_fail(s, &err);
    }
    for (size_t i = entered->n; i-- > 0;) {
        if (entered->items[i] == t) {
            entered->n--;
            memmove(&entered->items[i], &entered->items[i + 1],
                    (entered->n - i) * sizeof *entered->items);
            break;
        }
    }
    return machine_done(s);
}

/* The value of an expression inside a scope, or the failure of exiting the scope. */
static ls_value *value_after_exit(const scene *s, ls_value *v, ls_status st,
                                  const ls_error *err)
{
    if (v == NULL || st == LS_OK) {
        return v;
    }
    return machine_fail(s, err);
}

static ls_value *op_with(const scene *s, json_t *e)
{
    ls_strategy *of = machine_eval_strategy(s, json_array_get(e, 1));
    ls_error err = LS_ERROR_INIT;
    items args;
    ls_value *v;

    if (of == NULL) {
        return NULL;
    }
    if (ls_scope_enter(of, &err) != LS_OK) {
        return machine_fail(s, &err);
    }
    v = machine_eval_all(s, e, 2, &args) ? args.v[args.n - 1] : NULL;
    return value_after_exit(s, v, ls_scope_try_exit(of, &err), &err);
}

static ls_value *op_name_scope(const scene *s, json_t *e)
{
    const char *name = json_string_value(json_array_get(e, 1));
    ls_error err = LS_ERROR_INIT;

    if (ls_name_scope_enter(name, &err) != LS_OK) {
        return machine_fail(s, &err);
    }
    ls_value *v = machine_eval(s, json_array_get(e, 2));

    return value_after_exit(s, v, ls_name_scope_exit(&err), &err);
}

static ls_value *op_sync_on_read(const scene *s, json_t *e)
{
    ls_error err = LS_ERROR_INIT;

    if (ls_sync_on_read_enter(&err) != LS_OK) {
        return machine_fail(s, &err);
    }
    ls_value *v = machine_eval(s, json_array_get(e, 1));

    return value_after_exit(s, v, ls_sync_on_read_exit(&err), &err);
}

static ls_value *op_colocate(const scene *s, json_t *e)
{
    ls_strategy *of = machine_eval_strategy(s, json_array_get(e, 1));
    ls_variable *with_it =
        of == NULL ? NULL : machine_eval_variable(s, json_array_get(e, 2));
    ls_error err = LS_ERROR_INIT;

    if (with_it == NULL) {
        return NULL;
    }
    if (ls_colocate_enter(of, with_it, &err) != LS_OK) {
        return machine_fail(s, &err);
    }
    ls_value *v = machine_eval(s, json_array_get(e, 3));

    return value_after_exit(s, v, ls_colocate_exit(of, &err), &err);
}

static ls_value *op_set_strategy(const scene *s, json_t *e)
{
    json_t *which = json_array_get(e, 1);
    ls_strategy *of = json_is_null(which) ? NULL : machine_eval_strategy(s, which);
    ls_error err = LS_ERROR_INIT;

    if (of == NULL && !json_is_null(which)) {
        return NULL;
    }
    return ls_set_strategy(of, &err) == LS_OK ? machine_done(s) : machine_fail(s, &err);
}

const operation machine_contexts[] = {
    {"context", op_context, 0, 0},
    {"id", op_id, 0, 0},
    {"n", op_n, 0, 0},
    {"ctx", op_ctx, 0, 0},
    {"in_cross_replica", op_in_cross_replica, 0, 0},
    {"strategy", op_strategy, 1, 3},
    {"strategy_info", op_strategy_info, 2, 2},
    {"scope", op_scope, 1, 1},
    {"creator_scope", op_creator_scope, 0, 0},
    {"enter", op_enter, 1, 1},
    {"exit", op_leave, 1, 1},
    {"with", op_with, 2, 0},
    {"name_scope", op_name_scope, 2, 2},
    {"sync_on_read", op_sync_on_read, 1, 1},
    {"colocate", op_colocate, 3, 3},
    {"set_strategy", op_set_strategy, 1, 1},
    {NULL, NULL, 0, 0},
};
