/* The rows that all replicas of a run scatter into one variable. */
#include "variable/variable.h"

/* What a replica shows to the others. */
struct rows {
    const ls_variable *variable;
    ls_scatter_op op;
    ls_tensor *indices;
    ls_tensor *updates;
};

/* All change the same variable in the same way. */
static bool agree(ls_context *c, const lsi_offers *o)
{
    const struct rows *first = o->all[0];

    for (int r = 1; r < o->n; r++) {
        const struct rows *other = o->all[r];

        if (other->variable != first->variable || other->op != first->op) {
            (void)ls_context_fail(c, LS_INVALID_ARGUMENT,
                                  "scatter: replica 0 changes '%s' by operation %d, "
                                  "replica %d '%s' by %d; every replica makes the same "
                                  "calls in the same order",
                                  first->variable->name, (int)first->op, r,
                                  other->variable->name, (int)other->op);
            return false;
        }
    }
    return true;
}

/* The rows of all replicas after each other, whatever the shapes of their indices. */
static bool join_rows(ls_context *c, const ls_variable *v, const lsi_offers *o,
                      ls_tensor **indices, ls_tensor **updates)
{
    ls_shape shape = v->shape, list = LS_SHAPE(0);
    int64_t *to;
    char *at;

    for (int r = 0; r < o->n; r++) {
        list.dims[0] += ((const struct rows *)o->all[r])->indices->count;
    }
    shape.dims[0] = list.dims[0];
    *indices = lsi_context_tensor(c, LS_I64, &list);
    *updates = lsi_context_tensor(c, v->dtype, &shape);
    if (lsi_failed(c)) {
        return false;
    }
    to = (*indices)->data;
    at = (*updates)->data;
    for (int r = 0; r < o->n; r++) {
        const struct rows *theirs = o->all[r];
        const size_t bytes = (size_t)theirs->updates->count * ls_dtype_size(v->dtype);

        for (int64_t i = 0; i < theirs->indices->count; i++) {
            *to++ = lsi_index_at(theirs->indices, i);
        }
        if (bytes > 0) {
            memcpy(at, theirs->updates->data, bytes);
            at += bytes;
        }
    }
    return true;
}

bool lsi_scatter_gather_rows(ls_context *c, const ls_variable *v, ls_scatter_op op,
                             ls_tensor **indices, ls_tensor **updates)
{
    struct rows *mine;
    const struct rows *first;
    lsi_offers o;

    lsi_scatter_check(c, v, op, *indices, *updates); // the other replicas rely on it
    mine = lsi_failed(c) ? NULL : lsi_show_room(c, sizeof *mine);
    if (mine == NULL || !lsi_show_tensor(c, *indices) || !lsi_show_tensor(c, *updates)) {
        return false;
    }
    *mine = (struct rows){v, op, *indices, *updates};
    if (!lsi_offers_meet(c, "scatter", 0, mine, &o) || !agree(c, &o)) {
        return false;
    }
    if (v->aggregation == LS_AGGREGATE_ONLY_FIRST_REPLICA) {
        first = o.all[0];
        *indices = first->indices;
        *updates = first->updates;
        return true;
    }
    if (!join_rows(c, v, &o, indices, updates)) {
        return false;
    }
    if (v->aggregation == LS_AGGREGATE_MEAN) {
        *updates = (ls_div)(c, *updates, lsi_scalar(c, v->dtype, o.n));
    }
    return !lsi_failed(c);
}
