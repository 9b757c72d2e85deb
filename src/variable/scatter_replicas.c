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

/* Concatenates the rows of all replicas, whatever the shapes of their indices. */
static bool join_rows(ls_context *c, const ls_variable *v, const lsi_meeting *m,
                      ls_tensor **indices, ls_tensor **updates)
{
    ls_shape shape = v->shape, list = LS_SHAPE(0);
    char *to, *at;

    for (int r = 0; r < m->n; r++) {
        list.dims[0] += ((const struct rows *)lsi_meeting_peer(m, r))->indices->count;
    }
    shape.dims[0] = list.dims[0];
    *indices = lsi_context_tensor(c, LS_I64, &list);
    *updates = lsi_context_tensor(c, v->dtype, &shape);
    if (lsi_failed(c)) {
        return false;
    }
    to = (*indices)->data;
    at = (*updates)->data;
    for (int r = 0; r < m->n; r++) {
        const struct rows *theirs = lsi_meeting_peer(m, r);
        const size_t bytes = (size_t)theirs->updates->count * ls_dtype_size(v->dtype);
        const size_t index_bytes = (size_t)theirs->indices->count * sizeof(int64_t);

        if (index_bytes > 0) {
            memcpy(to, theirs->indices->data, index_bytes);
            to += index_bytes;
        }
        if (bytes > 0) {
            memcpy(at, theirs->updates->data, bytes);
            at += bytes;
        }
    }
    return true;
}

/* The rows of all replicas or those of replica 0, depending on the aggregation. */
static bool combine_rows(ls_context *c, const ls_variable *v, const lsi_meeting *m,
                         ls_tensor **indices, ls_tensor **updates)
{
    const struct rows *first = lsi_meeting_peer(m, 0);

    if (v->aggregation == LS_AGGREGATE_ONLY_FIRST_REPLICA) {
        *indices = first->indices;
        *updates = first->updates;
        return true;
    }
    if (!join_rows(c, v, m, indices, updates)) {
        return false;
    }
    if (v->aggregation == LS_AGGREGATE_MEAN) {
        *updates = (ls_div)(c, *updates, lsi_scalar(c, v->dtype, m->n));
    }
    return !lsi_failed(c);
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
