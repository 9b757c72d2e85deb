/* Operators of single cases: merging by hand, packs, options, names, clusters. */
#include "strategy_machine.h"

#include <string.h>

static ls_value *regroup(const scene *s, json_t *e)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;
    items args;

    if (!machine_eval_all(s, e, 1, &args)) {
        return NULL;
    }
    return machine_give(s, ls_value_regroup(args.v, args.n, NULL, &out, &err), &out,
                        &err);
}

static ls_value *select_replica(const scene *s, json_t *e)
{
    const size_t i = (size_t)json_integer_value(json_array_get(e, 1));
    ls_value *v = machine_eval(s, json_array_get(e, 2)), *out = NULL;
    ls_error err = LS_ERROR_INIT;

    return v == NULL ? NULL
                     : machine_give(s, ls_value_select(v, i, &out, &err), &out, &err);
}

static ls_value *select_replica_mirrored(const scene *s, json_t *e)
{
    const size_t i = (size_t)json_integer_value(json_array_get(e, 1));
    ls_value *v = machine_eval(s, json_array_get(e, 2)), *out = NULL;
    ls_error err = LS_ERROR_INIT;

    return v == NULL
               ? NULL
               : machine_give(s, ls_value_select_mirrored(v, i, &out, &err), &out, &err);
}

static ls_value *created_in_scope(const scene *s, json_t *e)
{
    const ls_strategy *of = machine_eval_strategy(s, json_array_get(e, 1));
    const ls_variable *v =
        of == NULL ? NULL : machine_eval_variable(s, json_array_get(e, 2));

    return v == NULL ? NULL : machine_of_bool(s, ls_strategy_created(of, v));
}

/* ---- cross-device operations alone ---- */

static ls_value *cdo_reduce(const scene *s, json_t *e)
{
    ls_error err = LS_ERROR_INIT;
    ls_cross_device *x = NULL;
    ls_value *v = NULL, *to = NULL, *out = NULL;
    ls_status st;
    ls_reduce op;

    if (!machine_reduce_op(s, json_array_get(e, 2), &op) ||
        (v = machine_eval(s, json_array_get(e, 3))) == NULL ||
        (to = machine_destination(s, json_array_get(e, 4))) == NULL) {
        return NULL;
    }
    st = machine_make_cross_device(json_array_get(e, 1), &x, &err);
    if (st == LS_OK) {
        st = ls_cross_device_reduce(x, op, v, to, NULL, &out, &err);
    }
    ls_cross_device_release(x);
    return machine_give(s, st, &out, &err);
}

static ls_value *cdo_broadcast(const scene *s, json_t *e)
{
    ls_error err = LS_ERROR_INIT;
    ls_cross_device *x = NULL;
    ls_value *v = machine_eval(s, json_array_get(e, 2)), *out = NULL;
    ls_value *to = v == NULL ? NULL : machine_destination(s, json_array_get(e, 3));
    ls_status st;

    if (to == NULL) {
        return NULL;
    }
    st = machine_make_cross_device(json_array_get(e, 1), &x, &err);
    if (st == LS_OK) {
        st = ls_cross_device_broadcast(x, v, to, &out, &err);
    }
    ls_cross_device_release(x);
    return machine_give(s, st, &out, &err);
}

/* ---- packs ---- */

static ls_value *list_of_sizes(const scene *s, const size_t *sizes, size_t n)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *list_value = NULL;
    items out = {0};

    for (; out.n < n && out.n < MACHINE_MAX_ITEMS; out.n++) {
        out.v[out.n] = machine_of_int(s, (int64_t)sizes[out.n]);
        if (out.v[out.n] == NULL) {
            return NULL;
        }
    }
    return machine_give(s, ls_value_list(out.v, out.n, &list_value, &err), &list_value,
                        &err);
}

/* The numbers of a JSON list; how many, at most MACHINE_MAX_ITEMS. */
static size_t read_sizes(const json_t *j, size_t *sizes, size_t *total)
{
    size_t n = 0;

    *total = 0;
    for (; n < json_array_size(j) && n < MACHINE_MAX_ITEMS; n++) {
        sizes[n] = (size_t)json_integer_value(json_array_get(j, n));
        *total += sizes[n];
    }
    return n;
}

static ls_value *pack_sizes(const scene *s, json_t *e)
{
    const int packs = (int)json_integer_value(json_array_get(e, 1));
    size_t sizes[MACHINE_MAX_ITEMS], total;
    const size_t n = read_sizes(json_array_get(e, 2), sizes, &total);
    ls_error err = LS_ERROR_INIT;
    ls_cross_device *x = NULL;
    ls_status st = ls_hierarchical_copy_create(packs, &x, &err); // refuses what is wrong

    ls_cross_device_release(x);
    if (st == LS_OK && packs == 0) {
        return list_of_sizes(s, sizes, n); // no packing: each tensor by itself
    }
    if (st == LS_OK && packs > MACHINE_MAX_ITEMS) {
        return machine_wrong(s, "%d packs are too many", packs);
    }
    if (st == LS_OK) {
        st = ls_pack_sizes(total, packs, sizes, &err);
    }
    return st == LS_OK ? list_of_sizes(s, sizes, (size_t)packs) : machine_fail(s, &err);
}

/* TensorFlow's function takes the values as they are to be sent: ours reversed. */
static ls_value *group_by_size(const scene *s, json_t *e)
{
    const json_int_t limit = json_integer_value(json_array_get(e, 2));
    size_t sizes[MACHINE_MAX_ITEMS], reversed[MACHINE_MAX_ITEMS];
    size_t group[MACHINE_MAX_ITEMS], counts[MACHINE_MAX_ITEMS] = {0}, packs = 0, total;
    const size_t n = read_sizes(json_array_get(e, 1), sizes, &total);
    ls_error err = LS_ERROR_INIT;

    for (size_t i = 0; i < n; i++) {
        reversed[i] = sizes[n - 1 - i];
    }
    if (ls_group_by_size(reversed, n, limit, group, &packs, &err) != LS_OK) {
        return machine_fail(s, &err);
    }
    for (size_t i = 0; i < n; i++) {
        if (group[i] >= packs || packs > n) {
            return machine_wrong(s, "a value is in pack %zu of %zu", group[i], packs);
        }
        counts[group[i]]++;
    }
    return list_of_sizes(s, counts, packs);
}

/* ---- options ---- */

static ls_value *options(const scene *s, json_t *e)
{
    static const char *const keys[] = {"bytes_per_pack", "timeout_seconds",
                                       "implementation"};
    ls_communication_options all, more;
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;

    if (machine_options(json_array_get(e, 1), &all, &err) != LS_OK) {
        return machine_fail(s, &err);
    }
    for (size_t i = 2; i < json_array_size(e); i++) {
        json_t *o = json_array_get(e, i);

        if (machine_options(o, &more, &err) != LS_OK) {
            return machine_fail(s, &err);
        }
        ls_communication_merge(&all, json_is_null(o) ? NULL : &more);
    }
    ls_value *seconds = machine_done(s);

    if (all.timeout_seconds >= 0) {
        seconds = NULL;
        seconds = machine_give(s, ls_value_float(all.timeout_seconds, &seconds, &err),
                               &seconds, &err);
    }
    ls_value *v[] = {machine_of_int(s, all.bytes_per_pack), seconds,
                     machine_of_text(s, ls_communication_name(all.implementation))};

    if (v[0] == NULL || v[1] == NULL || v[2] == NULL) {
        return NULL;
    }
    return machine_give(s, ls_value_dict(keys, v, 3, &out, &err), &out, &err);
}

static ls_value *canonicalize(const scene *s, json_t *e)
{
    const char *device = json_string_value(json_array_get(e, 1));
    const char *otherwise = json_string_value(json_array_get(e, 2));
    ls_error err = LS_ERROR_INIT;
    char name[200];

    if (ls_device_canonicalize(device, otherwise, name, sizeof name, &err) != LS_OK) {
        return machine_fail(s, &err);
    }
    return machine_of_text(s, name);
}

/* ---- clusters ---- */

/* The role that a specification, a job and a task (null: not given) ask for. */
static bool read_role(const scene *s, json_t *e, ls_cluster_role *role)
{
    json_t *spec = json_array_get(e, 1), *tasks;
    const char *type = json_string_value(json_array_get(e, 2)), *name;
    const json_t *task = json_array_get(e, 3);
    const int index = json_is_integer(task) ? (int)json_integer_value(task) : -1;
    ls_error err = LS_ERROR_INIT;
    ls_job jobs[MACHINE_MAX_ITEMS];
    size_t n = 0;

    json_object_foreach(spec, name, tasks)
    {
        if (n < MACHINE_MAX_ITEMS) {
            jobs[n++] = (ls_job){name, (int)json_array_size(tasks)};
        }
    }
    if (ls_cluster_role_of(jobs, n, type, index, role, &err) != LS_OK) {
        (void)machine_fail(s, &err);
        return false;
    }
    return true;
}

static ls_value *cluster_role(const scene *s, json_t *e)
{
    static const char *const keys[] = {"workers", "id_in_cluster", "is_chief", "leader"};
    ls_cluster_role role = LS_CLUSTER_ROLE_INIT;
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;

    if (!read_role(s, e, &role)) {
        return NULL;
    }
    ls_value *v[] = {machine_of_int(s, role.workers),
                     machine_of_int(s, role.id_in_cluster),
                     machine_of_bool(s, role.is_chief), machine_of_text(s, role.leader)};

    for (int i = 0; i < 4; i++) {
        if (v[i] == NULL) {
            return NULL;
        }
    }
    return machine_give(s, ls_value_dict(keys, v, 4, &out, &err), &out, &err);
}

/* Only its errors are asked for: what a task may not be, no strategy is made for. */
static ls_value *multi_worker_strategy(const scene *s, json_t *e)
{
    ls_cluster_role role = LS_CLUSTER_ROLE_INIT;

    return read_role(s, e, &role) ? machine_wrong(s, "real processes are needed") : NULL;
}

static ls_value *per_replica_batch(const scene *s, json_t *e)
{
    const ls_input_context ic = {(int)json_integer_value(json_array_get(e, 1)),
                                 (int)json_integer_value(json_array_get(e, 2)),
                                 (int)json_integer_value(json_array_get(e, 3))};
    ls_error err = LS_ERROR_INIT;
    int64_t batch = 0;

    if (ls_input_context_batch(&ic, json_integer_value(json_array_get(e, 4)), &batch,
                               &err) != LS_OK) {
        return machine_fail(s, &err);
    }
    return machine_of_int(s, batch);
}

const operation machine_rare[] = {
    {"regroup", regroup, 1, 0},
    {"select_replica", select_replica, 2, 2},
    {"select_replica_mirrored", select_replica_mirrored, 2, 2},
    {"created_in_scope", created_in_scope, 2, 2},
    {"cdo_reduce", cdo_reduce, 4, 4},
    {"cdo_broadcast", cdo_broadcast, 3, 3},
    {"pack_sizes", pack_sizes, 2, 2},
    {"group_by_size", group_by_size, 2, 2},
    {"options", options, 1, 0},
    {"canonicalize", canonicalize, 1, 2},
    {"cluster_role", cluster_role, 3, 3},
    {"multi_worker_strategy", multi_worker_strategy, 3, 3},
    {"per_replica_batch", per_replica_batch, 4, 4},
    {NULL, NULL, 0, 0},
};
