/* Cross-device reductions: chooses the algorithm for each value and wraps the results. */
#include "cross_replica/cross_replica.h"

#include "op/op.h"

#include <string.h>

static const ls_cross_device tree = {.kind = LSI_CROSS_TREE};
static const ls_cross_device one_device = {.kind = LSI_CROSS_ONE_DEVICE};

const ls_cross_device *lsi_cross_device_of(const ls_strategy *s)
{
    if (s->cross_device != NULL) {
        return s->cross_device;
    }
    return s->ops->combines_on_one_device ? &one_device : &tree;
}

/* ---- checks of one value's components ---- */

static ls_status check_alike(lsi_components *p, ls_error *err)
{
    const ls_shape first = ls_tensor_shape(p->t[0]);
    size_t sparse = 0;

    for (size_t i = 0; i < p->n; i++) {
        const ls_shape shape = ls_tensor_shape(p->t[i]);

        if (p->t[i]->dtype != p->t[0]->dtype || !ls_shape_equal(&shape, &first)) {
            return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                            "reduce: replica 0 has %s, replica %zu has %s; dtypes and "
                            "shapes must agree (uneven ones are reduced over an axis)",
                            lsi_text_of(p->t[0]).s, i, lsi_text_of(p->t[i]).s);
        }
        sparse += p->t[i]->values != NULL;
    }
    for (size_t i = 0; sparse < p->n && sparse > 0 && i < p->n; i++) {
        // A sparse component beside dense ones is counted as the dense one it represents.
        const ls_status st = lsi_tensor_make_dense(&p->t[i], err);

        if (st != LS_OK) {
            return st;
        }
    }
    return lsi_reduce_check(LS_SUM, (ls_dtype)p->t[0]->dtype, err);
}

/* ---- sums ---- */

/* One call of lsi_cross_reduce(). The results of value i begin at results[i * to->n]. */
typedef struct cross_call {
    ls_strategy *s; /* NULL, or one of several workers */
    const ls_cross_device *x;
    const ls_communication_options *opts;
    ls_reduce op;
    lsi_components *values;
    const lsi_destination *to;
    ls_tensor **results;
} cross_call;

static ls_tensor **results_of(const cross_call *j, size_t value)
{
    return j->results + value * j->to->n;
}

/* True if the one component is on the destination already: it is the result. */
static bool is_there(const lsi_components *p, const lsi_destination *to)
{
    return p->n == 1 && to->n == 1 && p->t[0]->device == to->devices[0];
}

/* True if the components are on the destination's devices, an even number of them. */
static bool fits_hierarchy(const lsi_components *p, const lsi_destination *to)
{
    bool fits = p->n == to->n && p->n >= 2 && p->n % 2 == 0;

    for (size_t i = 0; fits && i < p->n; i++) {
        fits = p->t[i]->device == to->devices[i];
    }
    return fits;
}

static lsi_cross_kind kind_for(const cross_call *j, const lsi_components *p)
{
    if (j->x->kind == LSI_CROSS_HIERARCHICAL && !fits_hierarchy(p, j->to)) {
        return LSI_CROSS_ONE_DEVICE;
    }
    return j->x->kind;
}

/* Copies results[0], on whatever device it is, to every device of the destination. */
static ls_status copy_to_all(const lsi_destination *to, ls_tensor **results,
                             ls_error *err)
{
    ls_tensor *first = results[0];
    ls_status st = LS_OK;

    results[0] = NULL;
    for (size_t d = 0; st == LS_OK && d < to->n; d++) {
        st = lsi_tensor_on(first, to->devices[d], &results[d], err);
    }
    ls_tensor_release(first);
    return st;
}

/* True if the mean is made in the order of the additions; else its dtype changes. */
static bool divides_in_order(const ls_tensor *t)
{
    return lsi_dtype_is_float((ls_dtype)t->dtype);
}

/*
 * Divides the `n` sums of a value, if the mean is asked for and is not one already: the
 * mean of integers is of a floating dtype, as tf.truediv has it.
 */
static ls_status divide_sums(const cross_call *j, size_t by, ls_tensor **sums, size_t n,
                             ls_error *err)
{
    for (size_t i = 0; i < n && j->op == LS_MEAN && !divides_in_order(sums[i]); i++) {
        ls_tensor *mean = NULL;
        const ls_status st = lsi_tensor_divide(sums[i], (int64_t)by, &mean, err);

        if (st != LS_OK) {
            return st;
        }
        ls_tensor_release(sums[i]);
        sums[i] = mean;
    }
    return LS_OK;
}

/* Creates the results of a value: one to be copied, or one on every device. */
static ls_status create_results(const cross_call *j, size_t value, lsi_cross_kind kind,
                                ls_error *err)
{
    const ls_tensor *like = j->values[value].t[0];
    const ls_shape shape = ls_tensor_shape(like);
    const bool everywhere = kind == LSI_CROSS_HIERARCHICAL;
    ls_tensor **results = results_of(j, value);

    for (size_t d = 0; d < (everywhere ? j->to->n : 1); d++) {
        ls_device *device = j->to->devices[d];

        if (kind == LSI_CROSS_ONE_DEVICE && j->x->device != NULL) {
            device = j->x->device;
        }
        results[d] = lsi_tensor_new(device, (ls_dtype)like->dtype, &shape);
        if (results[d] == NULL) {
            return lsi_fail_memory(err, "a sum", ls_tensor_bytes(like));
        }
    }
    return LS_OK;
}

/* Sums value `value`; `from` and `at` have room for the components and the devices. */
static void sum_value(const cross_call *j, lsi_cross_kind kind, size_t value,
                      const void **from, void **at)
{
    const lsi_components *p = &j->values[value];
    const ls_dtype dtype = (ls_dtype)p->t[0]->dtype;
    const ls_reduce op = divides_in_order(p->t[0]) ? j->op : LS_SUM;
    const size_t count = (size_t)p->t[0]->count;
    ls_tensor **results = results_of(j, value);

    for (size_t i = 0; i < p->n; i++) {
        from[i] = p->t[i]->data;
    }
    for (size_t d = 0; d < (kind == LSI_CROSS_HIERARCHICAL ? j->to->n : 1); d++) {
        at[d] = results[d]->data;
    }
    if (kind == LSI_CROSS_HIERARCHICAL) {
        lsi_hierarchical_sum(op, from, at, p->n, value, count, dtype);
    } else if (kind == LSI_CROSS_ONE_DEVICE) {
        lsi_reduce_in_order(op, from, p->n, at[0], count, dtype);
    } else {
        lsi_reduce_tree(op, from, (int)p->n, at[0], count, dtype);
    }
}

/* Reduces a dense value. */
static ls_status reduce_dense(const cross_call *j, size_t value, ls_error *err)
{
    const lsi_components *p = &j->values[value];
    const lsi_cross_kind kind = kind_for(j, p);
    const bool everywhere = kind == LSI_CROSS_HIERARCHICAL;
    ls_tensor **results = results_of(j, value);
    void **at = lsi_alloc(j->to->n, sizeof *at);
    const void **from = lsi_alloc(p->n, sizeof *from);
    ls_status st = from == NULL || at == NULL
                       ? lsi_fail_memory(err, "a reduction", p->n * sizeof *from)
                       : create_results(j, value, kind, err);

    if (st == LS_OK) {
        sum_value(j, kind, value, from, at);
    }
    if (st == LS_OK) {
        st = divide_sums(j, p->n, results, everywhere ? j->to->n : 1, err);
    }
    if (st == LS_OK && !everywhere) {
        st = copy_to_all(j->to, results, err);
    }
    lsi_free(from);
    lsi_free(at);
    return st;
}

static ls_status reduce_sparse(const cross_call *j, size_t value, ls_error *err)
{
    const lsi_components *p = &j->values[value];
    ls_tensor **results = results_of(j, value);
    ls_status st = lsi_reduce_rows(p, j->to->devices[0], &results[0], err);

    if (st == LS_OK && j->op == LS_MEAN && divides_in_order(results[0])) {
        const ls_tensor *rows = results[0]->values; // no other reference exists yet

        lsi_reduction_divide((ls_dtype)rows->dtype, (int)p->n, rows->data,
                             (size_t)rows->count);
    } else if (st == LS_OK) {
        st = divide_sums(j, p->n, results, 1, err);
    }
    return st == LS_OK ? copy_to_all(j->to, results, err) : st;
}

/* Reduces value `i`, whose components are those of the whole sync group. */
static ls_status reduce_one(const cross_call *j, size_t i, ls_error *err)
{
    lsi_components *p = &j->values[i];
    const ls_status st = check_alike(p, err);

    if (st != LS_OK) {
        return st;
    }
    if (is_there(p, j->to)) {
        results_of(j, i)[0] = ls_tensor_retain(p->t[0]);
        return LS_OK;
    }
    return p->t[0]->values != NULL ? reduce_sparse(j, i, err) : reduce_dense(j, i, err);
}

/* Reduces every value by the algorithm for it. */
static ls_status reduce_all(const cross_call *j, size_t n, ls_error *err)
{
    ls_status st = LS_OK;

    for (size_t i = 0; st == LS_OK && i < n; i++) {
        st = reduce_one(j, i, err);
    }
    return st;
}

/* ---- over workers ---- */

/* True if the sum is made in the tree: each worker adds its own components first. */
static bool in_tree(const cross_call *j, size_t i)
{
    return kind_for(j, &j->values[i]) == LSI_CROSS_TREE &&
           j->values[i].t[0]->values == NULL;
}

/* Values of one dtype and number of components, which are summed in one call. */
typedef struct tree_group {
    size_t *which;
    lsi_workers_value *values;
    const void **from;
    size_t n;
} tree_group;

/* Adds those of the values [first, n) that belong together with the first. */
static ls_status open_group(const cross_call *j, size_t first, size_t n, tree_group *g,
                            ls_error *err)
{
    const lsi_components *like = &j->values[first];
    ls_status st = LS_OK;

    g->which = lsi_alloc(n, sizeof *g->which);
    g->values = lsi_alloc(n, sizeof *g->values);
    g->from = (const void **)lsi_alloc(n * like->n, sizeof(void *));
    if (g->which == NULL || g->values == NULL || g->from == NULL) {
        return lsi_fail_memory(err, "a reduction", n * sizeof *g->values);
    }
    for (size_t i = first; st == LS_OK && i < n; i++) {
        const lsi_components *p = &j->values[i];
        const void **from = g->from + g->n * like->n;

        if (results_of(j, i)[0] != NULL || !in_tree(j, i) || p->n != like->n ||
            p->t[0]->dtype != like->t[0]->dtype) {
            continue;
        }
        st = create_results(j, i, LSI_CROSS_TREE, err);
        for (size_t k = 0; st == LS_OK && k < p->n; k++) {
            from[k] = p->t[k]->data;
        }
        if (st == LS_OK) {
            g->values[g->n] = (lsi_workers_value){from, results_of(j, i)[0]->data,
                                                  (size_t)p->t[0]->count};
            g->which[g->n++] = i;
        }
    }
    return st;
}

static void close_group(tree_group *g)
{
    lsi_free(g->which);
    lsi_free(g->values);
    lsi_free((void *)g->from);
}

/* Sums value `first` and those that belong together with it, over all workers. */
static ls_status reduce_group(const cross_call *j, size_t first, size_t n, ls_error *err)
{
    const lsi_components *like = &j->values[first];
    const ls_dtype dtype = (ls_dtype)like->t[0]->dtype;
    lsi_workers_sum sum = {.call = {"reduce", 0, j->opts, lsi_comm_take_site()},
                           .op = divides_in_order(like->t[0]) ? j->op : LS_SUM,
                           .dtype = dtype,
                           .ids = (int)like->n};
    tree_group g = {NULL, NULL, NULL, 0};
    ls_error why = LS_ERROR_INIT;
    ls_status st = open_group(j, first, n, &g, &why);

    st = lsi_workers_sum_values(j->s, &sum, g.values, g.n, j->to->devices[0], st, &why,
                                err);
    for (size_t k = 0; st == LS_OK && k < g.n; k++) {
        ls_tensor **results = results_of(j, g.which[k]);

        st = divide_sums(j, like->n * (size_t)lsi_workers(j->s), results, 1, err);
        if (st == LS_OK) {
            st = copy_to_all(j->to, results, err);
        }
    }
    close_group(&g);
    return st;
}

/* Combines with the values of the other workers; `st`, `why`: as in lsi_workers_reduce().
 */
static ls_status reduce_workers(const cross_call *j, size_t n, ls_status st,
                                ls_error *why, ls_error *err)
{
    for (size_t i = 0; st == LS_OK && i < n; i++) {
        st = check_alike(&j->values[i], why);
    }
    if (st != LS_OK) {
        return lsi_components_of_workers(j->s, "reduce", j->opts, NULL, st, why, err);
    }
    for (size_t i = 0; st == LS_OK && i < n; i++) {
        if (results_of(j, i)[0] != NULL) {
            continue; // summed together with an earlier one
        }
        if (in_tree(j, i)) {
            st = reduce_group(j, i, n, err);
            continue;
        }
        st = lsi_components_of_workers(j->s, "reduce", j->opts, &j->values[i], LS_OK,
                                       NULL, err);
        if (st == LS_OK) {
            st = reduce_one(j, i, err);
        }
    }
    return st;
}

/* ---- results ---- */

/* Tensors as a value: plain if there is one, else Mirrored. */
static ls_status as_value(ls_tensor *const *t, size_t n, ls_value **out, ls_error *err)
{
    if (n == 1) {
        return ls_value_tensor(t[0], out, err);
    }
    ls_value **leaves = lsi_alloc(n, sizeof(ls_value *));
    if (leaves == NULL) {
        return lsi_fail_memory(err, "a mirrored value", n * sizeof(ls_value *));
    }
    ls_status st = LS_OK;
    for (size_t i = 0; st == LS_OK && i < n; i++) {
        st = ls_value_tensor(t[i], &leaves[i], err);
    }
    if (st == LS_OK) {
        st = ls_value_mirrored(leaves, n, out, err);
    }
    lsi_value_release_all(leaves, n);
    return st;
}

static void release_tensors(ls_tensor **t, size_t n)
{
    for (size_t i = 0; t != NULL && i < n; i++) {
        ls_tensor_release(t[i]);
    }
    lsi_free(t);
}

ls_status lsi_cross_reduce(ls_strategy *s, const ls_cross_device *x, ls_reduce op,
                           lsi_components *values, size_t n, const lsi_destination *to,
                           const ls_communication_options *opts, ls_value **outs,
                           ls_error *err)
{
    cross_call j = {s, x, opts, op, values, to, NULL};
    const bool workers = s != NULL && lsi_workers(s) > 1;
    ls_error why = LS_ERROR_INIT;
    ls_value **made = NULL;
    size_t room = 0;
    ls_status st = LS_OK;

    if (n == 0) {
        return LS_OK;
    }
    if (lsi_mul_size(n, to->n, &room)) {
        j.results = lsi_alloc(room, sizeof(ls_tensor *));
    }
    made = lsi_alloc(n, sizeof(ls_value *));
    if (j.results == NULL || made == NULL) {
        st = lsi_fail_memory(&why, "the results of a reduction",
                             n * to->n * sizeof(void *));
    }
    if (workers) {
        st = reduce_workers(&j, n, st, &why, err);
    } else {
        st = st == LS_OK ? reduce_all(&j, n, err) : lsi_fail_again(err, &why);
    }
    for (size_t i = 0; st == LS_OK && i < n; i++) {
        st = as_value(results_of(&j, i), to->n, &made[i], err);
    }
    for (size_t i = 0; st == LS_OK && i < n; i++) {
        outs[i] = made[i];
        made[i] = NULL;
    }
    lsi_value_release_all(made, n);
    release_tensors(j.results, room);
    return st;
}

ls_status lsi_cross_broadcast(ls_tensor *t, const lsi_destination *to, ls_value **out,
                              ls_error *err)
{
    ls_tensor **copies = lsi_alloc(to->n, sizeof(ls_tensor *));

    if (copies == NULL) {
        return lsi_fail_memory(err, "a broadcast", to->n * sizeof(ls_tensor *));
    }
    copies[0] = ls_tensor_retain(t);
    ls_status st = copy_to_all(to, copies, err);
    if (st == LS_OK) {
        st = as_value(copies, to->n, out, err);
    }
    release_tensors(copies, to->n);
    return st;
}
