/*
 * The kind of variables of central storage: one component that all replicas use. Replicas
 * write it one at a time, under a lock; values that all replicas assign together are
 * aggregated and written once.
 */
#include "variable/variable.h"

static ls_variable *here_aggregating(ls_variable *v, const char *what, ls_error *err)
{
    const lsi_mode *now = lsi_mode_now();

    if (now != NULL && !now->strategy->ops->is_default && now->strategy != v->strategy) {
        (void)lsi_wrong_strategy(v->strategy, what, err);
        return NULL;
    }
    return v->component[0];
}

static ls_tensor *value_aggregating(ls_context *c, ls_variable *v)
{
    return lsi_variable_peek(c, v->component[0]);
}

static ls_tensor *read_aggregating(ls_context *c, ls_variable *v, bool operand)
{
    ls_error e = LS_ERROR_INIT;
    ls_tensor *t;

    (void)operand;
    if (here_aggregating(v, "read", &e) == NULL) {
        return lsi_context_error(c, &e);
    }
    lsi_mutex_lock(&v->lock); // another replica may be writing a row of it
    t = value_aggregating(c, v);
    lsi_mutex_unlock(&v->lock);
    return lsi_variable_note(c, v, t);
}

/* Replica 0 writes the component once, while the others wait; all get the same result. */
static ls_tensor *assign_once(ls_context *c, ls_variable *v, ls_assign_op op,
                              ls_tensor *t)
{
    ls_tensor *out = NULL;
    lsi_meeting m;

    if (t->dtype != (uint8_t)v->dtype) { // the mean of integers has another dtype
        t = (ls_cast)(c, t, v->dtype);
    }
    if (lsi_replica_of(c)->index == 0) {
        lsi_mutex_lock(&v->lock);
        out = lsi_variable_put(c, v->component[0], op, t);
        lsi_mutex_unlock(&v->lock);
    }
    if (lsi_meeting_open(c, lsi_assign_names[op], 0, out, LSI_UNTIL_CLOSE, &m)) {
        // the same tensor on all replicas
        out = lsi_context_alias(c, lsi_meeting_peer(&m, 0));
    }
    lsi_meeting_close(&m); // until then no replica may write the variable again
    return lsi_failed(c) ? NULL : out;
}

static ls_tensor *assign_aggregating(ls_context *c, ls_variable *v, ls_variable *here,
                                     ls_assign_op op, const lsi_source *s)
{
    ls_tensor *t;

    if (v->aggregation == LS_AGGREGATE_NONE) {
        return lsi_assign_no_aggregation(c, v, op);
    }
    if (lsi_local_peers(c) == 1) {
        return lsi_variable_put(c, here, op, lsi_source_tensor(c, v, op, s, 0));
    }
    t = lsi_assign_aggregate(c, v, op, s);
    return t != NULL ? assign_once(c, v, op, t) : NULL;
}

static ls_tensor *scatter_aggregating(ls_context *c, ls_variable *v, ls_scatter_op op,
                                      ls_tensor *indices, ls_tensor *updates, bool read)
{
    ls_error e = LS_ERROR_INIT;
    ls_variable *here = here_aggregating(v, "scatter", &e);
    ls_tensor *t;

    if (here == NULL) {
        return lsi_context_error(c, &e);
    }
    lsi_mutex_lock(&v->lock);
    t = lsi_scatter_plain(c, here, op, indices, updates, read);
    lsi_mutex_unlock(&v->lock);
    return t;
}

static ls_status create_like(ls_variable *like, const ls_tensor *value,
                             const ls_variable_options *opts, ls_variable **out,
                             ls_error *err)
{
    return lsi_variable_distributed_like(&lsi_aggregating_variable, like, value, opts,
                                         out, err);
}

const lsi_variable_ops lsi_aggregating_variable = {
    .here = here_aggregating,
    .read = read_aggregating,
    .value = value_aggregating,
    .gather = lsi_variable_gather_rows,
    .assign = lsi_assign_all,
    .assign_in_replica = assign_aggregating,
    .scatter = scatter_aggregating,
    .save = value_aggregating,
    .restore = lsi_restore_all,
    .create_like = create_like,
};
