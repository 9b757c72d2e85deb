/* Combining the rows that all replicas of a run scatter into one variable. */
#include "variable/variable.h"

/* What a replica shows to the others. */
struct rows {
    const ls_variable *variable;
    ls_scatter_op op;
    ls_tensor *indices; /* int64 */
    ls_tensor *updates;
};

/* Checks that all replicas change the same variable by the same operation. */
static bool change_the_same(ls_context *c, const lsi_meeting *m)
{
    const struct rows *first = lsi_meeting_peer(m, 0);

    for (int r = 1; r < m->n; r++) {
        const struct rows *other = lsi_meeting_peer(m, r);

        if (other->variable != first->variable || other->op != first->op) {
            (void)ls_context_fail(c, LS_INVALID_ARGUMENT,
                                  "scatter: replica 0 changes '%s' by operation %d, "
                                  "replica %d '%s' by %d; every replica must make the "
                                  "same calls in the same order",
                                  first->variable->name, (int)first->op, r,
                                  other->variable->name, (int)other->op);
            return false;
        }
    }
    return true;
}

/* Concatenates the rows of all replicas. */
static bool join_rows(ls_context *c, const ls_variable *v, const lsi_gathering *g,
                      ls_tensor **indices, ls_tensor **updates)
{
    ls_shape shape = v->shape, list = LS_SHAPE(0);
    char *to, *at;

    for (int r = 0; r < g->n; r++) {
        list.dims[0] += g->t[r]->indices->count;
    }
    shape.dims[0] = list.dims[0];
    *indices = lsi_context_tensor(c, LS_I64, &list);
    *updates = lsi_context_tensor(c, v->dtype, &shape);
    if (lsi_failed(c)) {
        return false;
    }
    to = (*indices)->data;
    at = (*updates)->data;
    for (int r = 0; r < g->n; r++) {
        const ls_tensor *theirs = g->t[r];
        const size_t bytes = ls_tensor_bytes(theirs->values);
        const size_t index_bytes = ls_tensor_bytes(theirs->indices);

        if (index_bytes > 0) {
            memcpy(to, theirs->indices->data, index_bytes);
            to += index_bytes;
        }
        if (bytes > 0) {
            memcpy(at, theirs->values->data, bytes);
            at += bytes;
        }
    }
    return true;
}

/* Checks that other workers change rows of a variable of the same shape and dtype. */
static bool rows_fit(ls_context *c, const ls_variable *v, const lsi_gathering *g)
{
    for (int r = 0; r < g->n; r++) {
        const ls_shape shape = ls_tensor_shape(g->t[r]);

        if (g->t[r]->values == NULL || g->t[r]->dtype != (uint8_t)v->dtype ||
            g->t[r]->indices->dtype != LS_I64 || !ls_shape_equal(&shape, &v->shape)) {
            (void)ls_context_fail(c, LS_INVALID_ARGUMENT,
                                  "scatter: '%s': replica %d changes rows of another "
                                  "variable, %s; every replica must make the same calls "
                                  "in the same order",
                                  v->name, r, lsi_text_of(g->t[r]).s);
            return false;
        }
    }
    return true;
}

/* The rows as one sparse tensor, whatever the shape of the indices. */
static ls_tensor *as_slices(ls_context *c, const ls_variable *v, ls_tensor *indices,
                            ls_tensor *updates)
{
    ls_shape rows = v->shape;

    rows.dims[0] = indices->count;
    updates = (ls_reshape)(c, updates, rows);
    indices = (ls_reshape)(c, indices, LS_SHAPE(indices->count));
    return lsi_failed(c) ? NULL : lsi_context_sparse(c, &v->shape, updates, indices);
}

/* The rows of all replicas; the mean divides by their number. */
static bool gather_rows(ls_context *c, const ls_variable *v, ls_tensor **indices,
                        ls_tensor **updates)
{
    ls_tensor *mine = as_slices(c, v, *indices, *updates);
    lsi_gathering g;
    bool ok;

    if (mine == NULL) {
        return false;
    }
    ok = lsi_gathering_open(c, "scatter", (uint64_t)v->aggregation, mine, &g) &&
         rows_fit(c, v, &g) && join_rows(c, v, &g, indices, updates);
    lsi_gathering_close(&g);
    if (ok && v->aggregation == LS_AGGREGATE_MEAN) {
        *updates = (ls_div)(c, *updates, lsi_scalar(c, v->dtype, g.n));
    }
    return ok && !lsi_failed(c);
}

/* The rows of all replicas or those of local replica 0, depending on the aggregation. */
static bool combine_rows(ls_context *c, const ls_variable *v, const lsi_meeting *m,
                         ls_tensor **indices, ls_tensor **updates)
{
    const struct rows *first = lsi_meeting_peer(m, 0);
    const uint16_t recording = c->recording;
    bool ok;

    if (v->aggregation == LS_AGGREGATE_ONLY_FIRST_REPLICA) {
        *indices = first->indices;
        *updates = first->updates;
        return true;
    }
    c->recording = 0;
    ok = gather_rows(c, v, indices, updates);
    c->recording = recording;
    return ok;
}

bool lsi_scatter_gather_rows(ls_context *c, const ls_variable *v, ls_scatter_op op,
                             ls_tensor **indices, ls_tensor **updates)
{
    struct rows *mine;
    lsi_meeting m;
    bool ok;

    // checked here, so that the replica that passes a bad one is told, with its position
    *indices = lsi_scatter_indices(c, v, op, *indices, *updates);
    mine = *indices == NULL ? NULL : lsi_meeting_room(c, sizeof *mine);
    if (mine == NULL || !lsi_meeting_keep(c, *indices) ||
        !lsi_meeting_keep(c, *updates)) {
        return false;
    }
    *mine = (struct rows){v, op, *indices, *updates};
    ok = lsi_meeting_open(c, "scatter", 0, mine, LSI_UNTIL_RUN_ENDS, &m) &&
         change_the_same(c, &m) && combine_rows(c, v, &m, indices, updates);
    lsi_meeting_close(&m);
    return ok;
}
