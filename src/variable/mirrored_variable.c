/*
 * The kind of variables with a component per device that are kept equal: every write goes
 * to all components. In replicas each replica writes its own component, with the values
 * of all replicas combined by the aggregation.
 */
#include "variable/variable.h"

static ls_tensor *value_of_nearest(ls_context *c, ls_variable *v)
{
    return lsi_variable_peek(c, lsi_variable_nearest(v));
}

static ls_tensor *value_of_first(ls_context *c, ls_variable *v)
{
    return lsi_variable_peek(c, v->component[0]);
}

/* As an operand the value is the same under any strategy. */
static ls_tensor *read_mirrored(ls_context *c, ls_variable *v, bool operand)
{
    ls_error e = LS_ERROR_INIT;
    ls_variable *here = lsi_variable_own(v, "read", &e);

    if (e.code != LS_OK && !operand) {
        return lsi_context_error(c, &e);
    }
    return lsi_variable_note(
        c, v, here == NULL ? value_of_nearest(c, v) : lsi_variable_peek(c, here));
}

static bool assign_mirrored(ls_context *c, ls_variable *v, ls_assign_op op,
                            const lsi_source *s)
{
    if (lsi_source_is_per_replica(s) && v->aggregation != LS_AGGREGATE_NONE) {
        (void)lsi_assign_refused(
            c, LS_INVALID_ARGUMENT, LS_KIND_TYPE, lsi_assign_names[op], v,
            "is kept equal on all replicas and cannot be assigned a PerReplica "
            "value; reduce it first");
        return false;
    }
    return lsi_assign_all(c, v, op, s);
}

static ls_tensor *assign_in_replica(ls_context *c, ls_variable *v, ls_variable *here,
                                    ls_assign_op op, const lsi_source *s)
{
    const size_t index = (size_t)lsi_replica_of(c)->index;
    ls_tensor *t;

    if (v->aggregation == LS_AGGREGATE_NONE && v->strict) {
        return lsi_assign_no_aggregation(c, v, op);
    }
    t = v->aggregation == LS_AGGREGATE_NONE || lsi_sync_replicas(c) == 1
            ? lsi_source_tensor(c, v, op, s, index)
            : lsi_assign_aggregate(c, v, op, s);
    return lsi_variable_put(c, here, op, t);
}

static ls_tensor *scatter_all(ls_context *c, ls_variable *v, ls_scatter_op op,
                              ls_tensor *indices, ls_tensor *updates, bool read)
{
    for (int i = 0; i < v->components && !lsi_failed(c); i++) {
        (void)lsi_scatter_plain(c, v->component[i], op, indices, updates, false);
    }
    return lsi_failed(c) || !read ? NULL : value_of_nearest(c, v);
}

static ls_tensor *scatter_mirrored(ls_context *c, ls_variable *v, ls_scatter_op op,
                                   ls_tensor *indices, ls_tensor *updates, bool read)
{
    const bool sums = op == LS_SCATTER_ADD || op == LS_SCATTER_SUB ||
                      op == LS_SCATTER_MUL || op == LS_SCATTER_DIV;
    const lsi_mode *now = lsi_mode_now();
    ls_error e = LS_ERROR_INIT;
    ls_variable *here = lsi_variable_own(v, "scatter", &e);

    if (e.code != LS_OK) {
        return lsi_context_error(c, &e);
    }
    if (!sums &&
        (v->aggregation == LS_AGGREGATE_SUM || v->aggregation == LS_AGGREGATE_MEAN)) {
        return lsi_scatter_refused(c, v,
                                   "is aggregated by SUM or MEAN, which min, max and "
                                   "update are not defined for");
    }
    if (here == NULL) {
        return scatter_all(c, v, op, indices, updates, read);
    }
    if (lsi_update_id() >= 0 || now == NULL || now->cross ||
        v->aggregation == LS_AGGREGATE_NONE) {
        return lsi_scatter_plain(c, here, op, indices, updates, read);
    }
    c = now->context; // `c` may be another context: use the replica's
    if (lsi_sync_replicas(c) > 1 &&
        !lsi_scatter_gather_rows(c, v, op, &indices, &updates)) {
        return NULL;
    }
    return lsi_scatter_plain(c, here, op, indices, updates, read);
}

ls_status lsi_variable_mirrored_like(ls_variable *like, const ls_tensor *value,
                                     const ls_variable_options *opts, ls_variable **out,
                                     ls_error *err)
{
    return lsi_variable_distributed_like(&lsi_mirrored_variable, like, value, opts, out,
                                         err);
}

const lsi_variable_ops lsi_mirrored_variable = {
    .name = "MirroredVariable",
    .per_replica = true,
    .kept_equal = true,
    .here = lsi_variable_own,
    .read = read_mirrored,
    .value = value_of_nearest,
    .gather = lsi_variable_gather_rows,
    .assign = assign_mirrored,
    .assign_in_replica = assign_in_replica,
    .scatter = scatter_mirrored,
    .save = value_of_first,
    .restore = lsi_restore_all,
    .create_like = lsi_variable_mirrored_like,
};
