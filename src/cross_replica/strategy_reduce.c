/*
 * ls_strategy_reduce(): one value on the host from the values of replicas. With an axis
 * each replica's tensor is reduced first; a mean then divides the sum over all replicas
 * by the number of elements over all replicas, so it is exact for uneven parts.
 */
#include "cross_replica/cross_replica.h"

#include "op/op.h"

/* The result for the caller: the first of equal copies. */
static ls_status first_copy(ls_value *leaf, void *user, ls_value **out, ls_error *err)
{
    ls_variable *v = ls_value_as_variable(leaf);
    ls_tensor *t = NULL;

    (void)user;
    if (v == NULL || !lsi_variable_is_mirrored(v)) {
        *out = ls_value_retain(lsi_value_is_distributed(leaf) ? ls_value_child(leaf, 0)
                                                              : leaf);
        return LS_OK;
    }
    ls_status st = ls_variable_value(ls_variable_component(v, 0), &t, err);
    if (st == LS_OK) {
        st = ls_value_tensor(t, out, err);
    }
    ls_tensor_release(t);
    return st;
}

static ls_status reduce_whole(ls_strategy *s, ls_reduce op, ls_value *value,
                              ls_value **out, ls_error *err)
{
    lsi_destination to = {0, NULL};
    ls_value *copies = NULL;

    if (!s->ops->per_replica) {
        *out = ls_value_retain(value);
        return LS_OK;
    }
    ls_status st = lsi_destination_device(lsi_host_device(s), &to, err);
    if (st == LS_OK) {
        st = lsi_reduce_value(s, op, value, &to, NULL, &copies, err);
    }
    if (st == LS_OK) {
        st = ls_value_map(copies, first_copy, NULL, out, err);
    }
    ls_value_release(copies);
    lsi_destination_clear(&to);
    return st;
}

/* ---- over axes ---- */

typedef struct axes_reduction {
    ls_strategy *s;
    ls_reduce op;
    const int *axes;
    size_t naxes;
} axes_reduction;

static ls_status check_axes(const axes_reduction *j, const ls_tensor *t, size_t replica,
                            ls_error *err)
{
    for (size_t i = 0; i < j->naxes; i++) {
        int axis;

        if (!lsi_axis(j->axes[i], t->ndim, &axis)) {
            return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                 "reduce: there is no axis %d in %s of replica %zu: it "
                                 "must be between %d and %d",
                                 j->axes[i], lsi_text_of(t).s, replica, -t->ndim,
                                 t->ndim - 1);
        }
    }
    return LS_OK;
}

/* The number of elements that are added into each element of the sum. */
static int64_t count_elements(const axes_reduction *j, const ls_tensor *t)
{
    uint64_t n = 1;

    for (size_t i = 0; i < j->naxes; i++) {
        n *= (uint64_t)ls_tensor_dim(t, j->axes[i]);
    }
    return (int64_t)n;
}

/* Replaces *t by the result of `fn`. */
static ls_status replace_tensor(ls_tensor **t,
                                ls_tensor *(*fn)(ls_context *, ls_tensor *, const void *),
                                const void *arg, ls_error *err)
{
    ls_context *c = NULL;
    ls_status st = ls_context_open((*t)->device, NULL, &c, err);

    if (st != LS_OK) {
        return st;
    }
    ls_tensor *made = ls_tensor_retain(fn(c, *t, arg));
    st = ls_context_finish(c, err);
    ls_context_close(c);
    if (st != LS_OK) {
        ls_tensor_release(made);
        return st;
    }
    ls_tensor_release(*t);
    *t = made;
    return LS_OK;
}

static ls_tensor *sum_axes(ls_context *c, ls_tensor *t, const void *arg)
{
    const axes_reduction *j = arg;
    const bool half = t->dtype == LS_F16 || t->dtype == LS_BF16;

    // A mean is summed in float32 and rounded once: float16 may not hold the sum.
    t = half && j->op == LS_MEAN ? ls_cast(c, t, LS_F32) : t;
    return j->naxes == 0 ? t : ls_sum(c, t, j->axes, j->naxes, false);
}

/* Replaces *t by its sum over the axes. */
static ls_status sum_over_axes(const axes_reduction *j, ls_tensor **t, ls_error *err)
{
    if ((*t)->dtype == LS_BOOL || (*t)->dtype == LS_STRING) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                             "reduce: %s cannot be summed over an axis: it takes floats "
                             "and integers; cast it first",
                             lsi_text_of(*t).s);
    }
    return replace_tensor(t, sum_axes, j, err);
}

/*
 * The tensor of each replica. A plain value is the same for every replica, so it counts
 * once for each.
 */
static ls_status contributions(const axes_reduction *j, ls_value *leaf, ls_device *device,
                               lsi_components *out, ls_error *err)
{
    const size_t replicas = (size_t)LSI_MAX(j->s->local, 1); // the default strategy: 1
    lsi_components p = {0, NULL};
    ls_status st = lsi_components_of("reduce", leaf, device, &p, err);

    if (st != LS_OK) {
        return st;
    }
    ls_variable *v = ls_value_as_variable(leaf);
    const bool plain =
        !lsi_value_is_distributed(leaf) && (v == NULL || !lsi_variable_is_mirrored(v));
    if (plain && replicas > 1) {
        ls_tensor **t = lsi_realloc(p.t, 1, replicas, sizeof(ls_tensor *));

        if (t == NULL) {
            lsi_components_clear(&p);
            return lsi_fail_memory(err, "a value for every replica",
                                   replicas * sizeof(ls_tensor *));
        }
        for (p.t = t; p.n < replicas; p.n++) {
            p.t[p.n] = ls_tensor_retain(p.t[0]);
        }
    }
    if (p.n != replicas) {
        st = lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                           "reduce: a %s of %zu components, but %s has %zu replicas",
                           ls_value_kind_name(ls_value_kind_of(leaf)), p.n,
                           j->s->ops->name, replicas);
        lsi_components_clear(&p);
        return st;
    }
    *out = p;
    return LS_OK;
}

/* The sum over replicas of their tensors, on the host (one replica: on its device). */
static ls_status sum_over_replicas(const axes_reduction *j, lsi_components *p,
                                   ls_value **out, ls_error *err)
{
    const bool single = !j->s->ops->per_replica;
    lsi_destination to = {0, NULL};
    ls_status st = single ? ls_value_tensor(p->t[0], out, err)
                          : lsi_destination_device(lsi_host_device(j->s), &to, err);

    if (st == LS_OK && !single) {
        st = lsi_cross_reduce(j->s, lsi_cross_device_of(j->s), LS_SUM, p, 1, &to, NULL,
                              out, err);
    }
    lsi_destination_clear(&to);
    return st;
}

typedef struct quotient {
    int64_t count;
    ls_dtype dtype; /* the dtype of the value */
} quotient;

/* Divides by the count, cast to the dtype of the sum as in TensorFlow. */
static ls_tensor *divide_sum(ls_context *c, ls_tensor *sum, const void *arg)
{
    const quotient *q = arg;
    ls_tensor *by = ls_cast(c, ls_constant_i64(c, q->count), (ls_dtype)sum->dtype);
    ls_tensor *mean = ls_div(c, sum, by);

    return q->dtype == LS_F16 || q->dtype == LS_BF16 ? ls_cast(c, mean, q->dtype) : mean;
}

static ls_status divide_by_count(ls_value *numerator, quotient q, ls_value **out,
                                 ls_error *err)
{
    ls_tensor *mean = ls_tensor_retain(ls_value_as_tensor(numerator));
    ls_status st = replace_tensor(&mean, divide_sum, &q, err);

    if (st == LS_OK) {
        st = ls_value_tensor(mean, out, err);
    }
    ls_tensor_release(mean);
    return st;
}

/* The number of elements over all workers. */
static ls_status sum_counts(ls_strategy *s, int64_t mine, int64_t *total, ls_error *err)
{
    int64_t all = 0;
    const lsi_comm_piece piece = {&mine, &all, 1};
    const lsi_workers_sum sum = {.call = {"reduce", 0, NULL, lsi_comm_take_site()},
                                 .op = LS_SUM,
                                 .dtype = LS_I64,
                                 .ids = 1,
                                 .pieces = &piece,
                                 .n = 1};

    const ls_status st = lsi_workers_reduce(s, &sum, LS_OK, NULL, err);
    *total = all;
    return st;
}

static ls_status reduce_leaf(ls_value *leaf, void *user, ls_value **out, ls_error *err)
{
    const axes_reduction *j = user;
    lsi_components p = {0, NULL};
    ls_value *sum = NULL;
    int64_t count = 0;
    ls_status st = contributions(j, leaf, lsi_host_device(j->s), &p, err);
    const ls_dtype dtype = p.n > 0 ? (ls_dtype)p.t[0]->dtype : LS_F32;

    for (size_t i = 0; st == LS_OK && i < p.n; i++) {
        st = check_axes(j, p.t[i], i, err);
        if (st == LS_OK) {
            count += count_elements(j, p.t[i]);
            st = sum_over_axes(j, &p.t[i], err);
        }
    }
    if (st == LS_OK) {
        st = sum_over_replicas(j, &p, &sum, err);
    } else {
        st = lsi_fail_workers(j->s, "reduce", st, err);
    }
    if (st == LS_OK && j->op == LS_MEAN && lsi_workers(j->s) > 1) {
        st = sum_counts(j->s, count, &count, err);
    }
    if (st == LS_OK && j->op == LS_MEAN) {
        st = divide_by_count(sum, (quotient){count, dtype}, out, err);
    } else if (st == LS_OK) {
        *out = ls_value_retain(sum);
    }
    ls_value_release(sum);
    lsi_components_clear(&p);
    return st;
}

static ls_status check_call(const ls_strategy *s, ls_reduce op, const ls_value *value,
                            ls_error *err)
{
    if (s == NULL || value == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "reduce: %s is NULL",
                             s == NULL ? "the strategy" : "the value");
    }
    const ls_status st = lsi_require_cross(s, "reduce", NULL, err);
    return st == LS_OK ? lsi_require_reduce("reduce", op, LS_KIND_VALUE, err) : st;
}

ls_status ls_strategy_reduce_axes(ls_strategy *s, ls_reduce op, ls_value *value,
                                  const int *axes, size_t naxes, ls_value **out,
                                  ls_error *err)
{
    axes_reduction j = {s, op, axes, naxes};
    ls_error own = LS_ERROR_INIT;
    ls_value *made = NULL;
    ls_status st = check_call(s, op, value, err);

    if (st == LS_OK && naxes > 0 && axes == NULL) {
        st = lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                           "reduce: %zu axes at NULL", naxes);
    }
    if (st == LS_OK) {
        st = ls_value_map(value, reduce_leaf, &j, &made, err != NULL ? err : &own);
    }
    if (st == LS_OK && out != NULL) {
        *out = made;
        made = NULL;
    }
    ls_value_release(made);
    return st;
}

ls_status ls_strategy_reduce(ls_strategy *s, ls_reduce op, ls_value *value, int axis,
                             ls_value **out, ls_error *err)
{
    ls_value *made = NULL;

    if (axis != LS_NO_AXIS) {
        return ls_strategy_reduce_axes(s, op, value, &axis, 1, out, err);
    }
    ls_status st = check_call(s, op, value, err);
    if (st == LS_OK) {
        st = reduce_whole(s, op, value, &made, err);
    }
    if (st == LS_OK && out != NULL) {
        *out = made;
        made = NULL;
    }
    ls_value_release(made);
    return st;
}
