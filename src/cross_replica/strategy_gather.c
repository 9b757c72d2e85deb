/* ls_strategy_gather(): concatenates the components along an axis, on the host. */
#include "cross_replica/cross_replica.h"

#include "op/op.h"

typedef struct gathering {
    ls_strategy *s;
    int axis;
} gathering;

/*
 * As in TensorFlow: its reduction to one device accepts negative axes, its collectives do
 * not; int32 always uses the former.
 */
static bool counts_from_end(const ls_strategy *s, const ls_tensor *t)
{
    const lsi_cross_kind kind = lsi_cross_device_of(s)->kind;

    return kind != LSI_CROSS_TREE || t->dtype == LS_I32;
}

static ls_status check_axis(const gathering *j, const ls_tensor *t, ls_error *err)
{
    if (t->ndim == 0) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "gather: %s is a scalar and has no axis; give it one by "
                             "ls_expand_dims()",
                             lsi_text_of(t).s);
    }
    if (j->axis < 0 && !counts_from_end(j->s, t)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "gather: the axis is %d, but here it counts from the "
                             "front: 0 to %d for %s",
                             j->axis, t->ndim - 1, lsi_text_of(t).s);
    }
    int axis;
    return lsi_axis(j->axis, t->ndim, &axis)
               ? LS_OK
               : lsi_fail_kind(err, LS_INVALID_ARGUMENT,
                               counts_from_end(j->s, t) ? LS_KIND_OP : LS_KIND_VALUE,
                               "gather: there is no axis %d in %s", j->axis,
                               lsi_text_of(t).s);
}

static ls_status check_parts(const gathering *j, const lsi_components *p, ls_error *err)
{
    const ls_tensor *first = p->t[0];
    ls_status st = LS_OK;
    int axis = 0;

    if (p->n == 1) { // one component is the result, whatever the axis
        return LS_OK;
    }
    for (size_t i = 0; st == LS_OK && i < p->n; i++) {
        st = check_axis(j, p->t[i], err);
    }
    if (st != LS_OK) {
        return st;
    }
    (void)lsi_axis(j->axis, first->ndim, &axis);
    for (size_t i = 1; i < p->n; i++) {
        const ls_tensor *t = p->t[i];
        bool alike = t->dtype == first->dtype && t->ndim == first->ndim;

        for (int d = 0; alike && d < t->ndim; d++) {
            alike = d == axis || t->dims[d] == first->dims[d];
        }
        if (!alike) {
            return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                            "gather: replica 0 has %s, replica %zu has %s; they may "
                            "differ along axis %d only",
                            lsi_text_of(first).s, i, lsi_text_of(t).s, j->axis);
        }
    }
    return LS_OK;
}

static ls_status concatenate(const gathering *j, const lsi_components *p, ls_tensor **out,
                             ls_error *err)
{
    ls_device *host = lsi_host_device(j->s);
    ls_context *c = NULL;

    if (p->n == 1) {
        return lsi_tensor_on(p->t[0], host, out, err);
    }
    ls_status st = ls_context_open(host, NULL, &c, err);
    if (st != LS_OK) {
        return st;
    }
    ls_tensor *all = ls_tensor_retain(ls_concat(c, p->t, p->n, j->axis));
    st = ls_context_finish(c, err);
    ls_context_close(c);
    if (st == LS_OK) {
        *out = all;
    } else {
        ls_tensor_release(all);
    }
    return st;
}

static ls_status gather_leaf(ls_value *leaf, void *user, ls_value **out, ls_error *err)
{
    const gathering *j = user;
    ls_variable *v = ls_value_as_variable(leaf);
    lsi_components p = {0, NULL};
    ls_tensor *all = NULL;
    const bool plain =
        !lsi_value_is_distributed(leaf) && (v == NULL || !lsi_variable_is_mirrored(v));

    if (plain && ls_tensor_slices(ls_value_as_tensor(leaf), NULL, NULL)) {
        const ls_status st =
            lsi_fail_kind(err, LS_UNIMPLEMENTED, LS_KIND_RUNTIME,
                          "gather: %s is sparse and the same for all replicas; only "
                          "values per replica are gathered",
                          lsi_text_of(ls_value_as_tensor(leaf)).s);

        return lsi_fail_workers(j->s, "gather", st, err);
    }
    // With several workers a plain value is one of each worker.
    if ((plain && lsi_workers(j->s) == 1) || !j->s->ops->per_replica) {
        *out = ls_value_retain(leaf);
        return LS_OK;
    }
    ls_status st = lsi_components_of("gather", leaf, lsi_host_device(j->s), &p, err);
    for (size_t i = 0; st == LS_OK && i < p.n; i++) {
        // of sparse tensors: the dense tensor they represent
        st = lsi_tensor_make_dense(&p.t[i], err);
    }
    if (st != LS_OK) {
        st = lsi_fail_workers(j->s, "gather", st, err);
    } else if (lsi_workers(j->s) > 1) {
        st = lsi_components_of_workers(j->s, "gather", NULL, &p, LS_OK, NULL, err);
    }
    if (st == LS_OK) {
        st = check_parts(j, &p, err);
    }
    if (st == LS_OK) {
        st = concatenate(j, &p, &all, err);
    }
    if (st == LS_OK) {
        st = ls_value_tensor(all, out, err);
    }
    ls_tensor_release(all);
    lsi_components_clear(&p);
    return st;
}

ls_status ls_strategy_gather(ls_strategy *s, ls_value *value, int axis, ls_value **out,
                             ls_error *err)
{
    gathering j = {s, axis};
    ls_error own = LS_ERROR_INIT;
    ls_value *made = NULL;

    if (s == NULL || value == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "gather: %s is NULL",
                             s == NULL ? "the strategy" : "the value");
    }
    ls_status st = lsi_require_cross(s, "gather", "use ls_all_gather() there", err);
    if (st == LS_OK) {
        st = ls_value_map(value, gather_leaf, &j, &made, err != NULL ? err : &own);
    }
    if (st == LS_OK && out != NULL) {
        *out = made;
        made = NULL;
    }
    ls_value_release(made);
    return st;
}
