/*
 * The kind of variables with a component per replica that each replica writes alone.
 * Outside of replicas the value is all components, combined by the aggregation.
 */
#include "reduce/reduction.h"
#include "variable/variable.h"

/* Bools and strings may have several components, but cannot be summed. */
static bool can_combine(ls_context *c, const ls_variable *v)
{
    ls_error e = LS_ERROR_INIT;

    if (lsi_dtype_is_number(v->dtype)) {
        return true;
    }
    (void)lsi_fail_kind(&e, LS_INVALID_ARGUMENT, LS_KIND_OP,
                        "read: '%s' is %s with the aggregation %s, and %s cannot be "
                        "added up; read a component, or use ONLY_FIRST_REPLICA",
                        v->name, ls_dtype_name(v->dtype),
                        ls_aggregation_name(v->aggregation), ls_dtype_name(v->dtype));
    (void)lsi_context_error(c, &e);
    return false;
}

/* Adds the components of all workers; from[] are those of this one. */
static bool combine_workers(ls_context *c, ls_variable *v, const void *const *from,
                            ls_tensor *out)
{
    const lsi_workers_sum sum = {.call = {"read", 0, NULL, {c->file, c->line}},
                                 .op = v->aggregation == LS_AGGREGATE_MEAN ? LS_MEAN
                                                                           : LS_SUM,
                                 .dtype = v->dtype,
                                 .ids = v->components};
    const lsi_workers_value value = {from, out->data, (size_t)v->count};
    ls_error e = LS_ERROR_INIT;

    if (lsi_workers_sum_values(v->strategy, &sum, &value, 1, v->device, LS_OK, NULL,
                               &e) != LS_OK) {
        (void)lsi_context_error(c, &e);
    }
    return !lsi_failed(c);
}

/* The sum or mean of the components of all workers, in the order of the tree. */
static ls_tensor *combine_components(ls_context *c, ls_variable *v)
{
    enum { FEW = 16 };
    const void *few[FEW];
    const int n = v->components;
    const void **from;
    ls_tensor *out;

    if (!can_combine(c, v)) {
        return NULL;
    }
    out = lsi_context_tensor(c, v->dtype, &v->shape);
    from = n <= FEW ? few : lsi_alloc((size_t)n, sizeof(void *));
    if (from == NULL) {
        return ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for %s", v->name);
    }
    for (int i = 0; i < n; i++) {
        from[i] = v->component[i]->buffer->data;
    }
    if (out != NULL && lsi_workers(v->strategy) > 1) {
        out = combine_workers(c, v, from, out) ? out : NULL;
    } else if (out != NULL && v->count > 0) {
        lsi_reduce_tree(v->aggregation == LS_AGGREGATE_MEAN ? LS_MEAN : LS_SUM, from, n,
                        out->data, (size_t)v->count, v->dtype);
    }
    if (from != few) {
        lsi_free(from);
    }
    return out;
}

static ls_tensor *value_on_read(ls_context *c, ls_variable *v)
{
    ls_error e = LS_ERROR_INIT;

    switch (v->aggregation) {
    case LS_AGGREGATE_SUM:
    case LS_AGGREGATE_MEAN:
        return combine_components(c, v);
    case LS_AGGREGATE_ONLY_FIRST_REPLICA:
        return lsi_variable_peek(c, v->component[0]);
    case LS_AGGREGATE_NONE:
        break;
    }
    (void)lsi_fail_kind(&e, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                        "read: '%s' is ON_READ without an aggregation: outside of "
                        "replicas its copies are not one value; read a component",
                        v->name);
    return lsi_context_error(c, &e);
}

/* Between ls_sync_on_read_enter() and _exit(): the sum or mean over replicas. */
static ls_tensor *read_together(ls_context *c, ls_variable *v, ls_variable *here,
                                bool operand)
{
    ls_error e = LS_ERROR_INIT;

    if (!operand) {
        (void)lsi_fail_kind(&e, LS_UNIMPLEMENTED, LS_KIND_RUNTIME,
                            "read: '%s' is added up inside of sync_on_read; use it "
                            "as an operand (ls_variable_as_tensor)",
                            v->name);
        return lsi_context_error(c, &e);
    }
    if (v->aggregation == LS_AGGREGATE_ONLY_FIRST_REPLICA) {
        return lsi_variable_peek(c, v->component[0]);
    }
    return (ls_all_reduce)(c, v->aggregation == LS_AGGREGATE_MEAN ? LS_MEAN : LS_SUM,
                           lsi_variable_note(c, v, lsi_variable_peek(c, here)));
}

static ls_tensor *read_on_read(ls_context *c, ls_variable *v, bool operand)
{
    const lsi_mode *now = lsi_mode_now();
    ls_error e = LS_ERROR_INIT;
    ls_variable *here = lsi_variable_own(v, "read", &e);

    if (e.code != LS_OK) {
        return lsi_context_error(c, &e);
    }
    if (here == NULL) {
        return lsi_variable_note(c, v, value_on_read(c, v));
    }
    if (now != NULL && !now->cross && lsi_sync_on_read()) {
        return read_together(c, v, here, operand);
    }
    return lsi_variable_note(c, v, lsi_variable_peek(c, here));
}

/* ---- writing ---- */

/*
 * x / N, truncated for integers: the part of a sum that each component gets, N being all
 * replicas of the sync group.
 */
static ls_tensor *share_of(ls_context *c, const ls_variable *v, ls_tensor *t)
{
    const uint16_t recording = c->recording;

    c->recording = 0;
    t = (ls_cast)(c, (ls_div)(c, t, lsi_scalar(c, v->dtype, v->strategy->replicas)),
                  v->dtype);
    c->recording = recording;
    return t;
}

static bool assign_on_read(ls_context *c, ls_variable *v, ls_assign_op op,
                           const lsi_source *s)
{
    lsi_source part = *s;

    if (lsi_source_is_per_replica(s)) {
        (void)lsi_assign_refused(
            c, LS_INVALID_ARGUMENT, LS_KIND_VALUE, lsi_assign_names[op], v,
            "is ON_READ and cannot be assigned a PerReplica value outside of "
            "replicas; use ls_strategy_update()");
        return false;
    }
    if (v->aggregation == LS_AGGREGATE_SUM) {
        if (op != LS_ASSIGN) {
            (void)lsi_assign_refused(
                c, LS_INVALID_ARGUMENT, LS_KIND_VALUE, lsi_assign_names[op], v,
                "is a sum over replicas: outside of them it can be assigned, not "
                "added to");
            return false;
        }
        if (!lsi_dtype_is_number(v->dtype)) {
            (void)lsi_assign_refused(
                c, LS_INVALID_ARGUMENT, LS_KIND_TYPE, lsi_assign_names[op], v,
                "is a sum over replicas of a dtype that cannot be divided among "
                "them; assign inside of replicas");
            return false;
        }
        part = (lsi_source){.tensor = share_of(c, v, lsi_source_tensor(c, v, op, s, 0))};
    }
    return !lsi_failed(c) && lsi_assign_all(c, v, op, &part);
}

static ls_tensor *assign_own(ls_context *c, ls_variable *v, ls_variable *here,
                             ls_assign_op op, const lsi_source *s)
{
    const size_t index = (size_t)lsi_replica_of(c)->index;

    return lsi_variable_put(c, here, op, lsi_source_tensor(c, v, op, s, index));
}

static ls_tensor *scatter_on_read(ls_context *c, ls_variable *v, ls_scatter_op op,
                                  ls_tensor *indices, ls_tensor *updates, bool read)
{
    ls_error e = LS_ERROR_INIT;

    (void)op;
    (void)indices;
    (void)updates;
    (void)read;
    (void)lsi_variable_own(v, "scatter", &e);
    return e.code != LS_OK
               ? lsi_context_error(c, &e)
               : lsi_scatter_refused(c, v, "is ON_READ: rows of it cannot be changed");
}

/* Writes a sum divided among the components, any other value to each of them. */
static void restore_on_read(ls_context *c, ls_variable *v, const lsi_source *s)
{
    if (v->aggregation == LS_AGGREGATE_SUM) {
        (void)assign_on_read(c, v, LS_ASSIGN, s);
    } else {
        (void)lsi_assign_all(c, v, LS_ASSIGN, s);
    }
}

const lsi_variable_ops lsi_sync_on_read_variable = {
    .name = "SyncOnReadVariable",
    .per_replica = true,
    .here = lsi_variable_own,
    .read = read_on_read,
    .value = value_on_read,
    .gather = lsi_variable_gather_rows,
    .assign = assign_on_read,
    .assign_in_replica = assign_own,
    .scatter = scatter_on_read,
    .save = value_on_read,
    .restore = restore_on_read,
    .create_like = lsi_variable_mirrored_like,
};
