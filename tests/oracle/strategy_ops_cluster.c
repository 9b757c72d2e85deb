/* Operators: communication options, names of devices, and roles of a cluster's tasks. */
#include "strategy_machine.h"

/* ---- options ---- */

static ls_value *op_options(const scene *s, json_t *e)
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

static ls_value *op_canonicalize(const scene *s, json_t *e)
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

static ls_value *op_cluster_role(const scene *s, json_t *e)
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
static ls_value *op_multi_worker_strategy(const scene *s, json_t *e)
{
    ls_cluster_role role = LS_CLUSTER_ROLE_INIT;

    return read_role(s, e, &role) ? machine_wrong(s, "real processes are needed") : NULL;
}

static ls_value *op_per_replica_batch(const scene *s, json_t *e)
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

const operation machine_cluster[] = {
    {"options", op_options, 1, 0},
    {"canonicalize", op_canonicalize, 1, 2},
    {"cluster_role", op_cluster_role, 3, 3},
    {"multi_worker_strategy", op_multi_worker_strategy, 3, 3},
    {"per_replica_batch", op_per_replica_batch, 4, 4},
    {NULL, NULL, 0, 0},
};
