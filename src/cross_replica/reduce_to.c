/*
 * Reductions to a destination, by kind of value. Values that differ per replica are
 * combined by the cross-device operations; for others the table in
 * docs/from-tensorflow.md says when they are the result and when they are an error.
 */
#include "cross_replica/cross_replica.h"

#include "op/op.h"

/* How a reduction treats a leaf of `s`. */
typedef enum treatment {
    PLAIN,  /* one value, the same for all replicas */
    SPREAD, /* one per replica, to be combined */
    EQUAL   /* copies of one value */
} treatment;

static treatment treatment_of(const ls_strategy *s, ls_value *leaf)
{
    ls_variable *v = ls_value_as_variable(leaf);

    if (v != NULL && lsi_variable_is_mirrored(v)) {
        return ls_variable_synchronization(v) == LS_SYNC_ON_READ ? SPREAD : EQUAL;
    }
    if (ls_value_kind_of(leaf) == LS_VALUE_MIRRORED) {
        return s->ops->combines_on_one_device ? SPREAD : EQUAL;
    }
    return ls_value_kind_of(leaf) == LS_VALUE_PER_REPLICA ? SPREAD : PLAIN;
}

/* True for a strategy with one replica, whose values are not combined. */
static bool is_single(const ls_strategy *s)
{
    return !s->ops->per_replica;
}

ls_status lsi_require_reduce(const char *what, ls_reduce op, ls_kind kind, ls_error *err)
{
    return op == LS_SUM || op == LS_MEAN
               ? LS_OK
               : lsi_fail_kind(err, LS_INVALID_ARGUMENT, kind,
                               "%s: values of replicas are combined by LS_SUM or "
                               "LS_MEAN, not by %s",
                               what, ls_reduce_name(op));
}

ls_device *lsi_host_device(const ls_strategy *s)
{
    ls_device *device = lsi_scope_device();

    return device != NULL ? device : ls_runtime_device(s->runtime, 0);
}

/* True for a literal that is zero, of any kind. */
static bool is_zero(const ls_value *leaf)
{
    int64_t integer;
    double number;
    bool truth;

    if (ls_value_as_int(leaf, &integer)) {
        return integer == 0;
    }
    if (ls_value_as_float(leaf, &number)) {
        return number == 0.0;
    }
    return ls_value_as_bool(leaf, &truth) && !truth;
}

/* One call of lsi_reduce_value(); the argument of ls_value_map(). */
typedef struct reduction {
    ls_strategy *s;
    ls_reduce op;
    const lsi_destination *to;
    const ls_communication_options *opts;
} reduction;

/* The components of this worker, combined with those of the others. */
static ls_status reduce_spread(const reduction *r, ls_value *leaf, ls_value **out,
                               ls_error *err)
{
    lsi_components p = {0, NULL};
    ls_status st = lsi_components_of("reduce", leaf, r->to->devices[0], &p, err);

    if (st == LS_OK) {
        st = lsi_cross_reduce(r->s, lsi_cross_device_of(r->s), r->op, &p, 1, r->to,
                              r->opts, out, err);
    } else {
        st = lsi_fail_workers(r->s, "reduce", st, err);
    }
    lsi_components_clear(&p);
    return st;
}

static ls_status reduce_plain(const reduction *r, ls_value *leaf, ls_value **out,
                              ls_error *err)
{
    const ls_strategy *s = r->s;
    ls_tensor *t = NULL;

    if (lsi_workers(s) > 1) { // one value per worker
        return reduce_spread(r, leaf, out, err);
    }
    if (is_zero(leaf) || r->op == LS_MEAN) {
        *out = ls_value_retain(leaf);
        return LS_OK;
    }
    if (s->replicas != 1) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "reduce: a plain %s is the same on all %d replicas, so "
                             "that its sum would count it %d times; use LS_MEAN, or "
                             "return a value of each replica's own",
                             ls_value_kind_name(ls_value_kind_of(leaf)), s->replicas,
                             s->replicas);
    }
    ls_status st = lsi_leaf_tensor("reduce", leaf, r->to->devices[0], &t, err);
    if (st == LS_OK) {
        st = lsi_cross_broadcast(t, r->to, out, err);
    }
    ls_tensor_release(t);
    return st;
}

static ls_status reduce_leaf(ls_value *leaf, void *user, ls_value **out, ls_error *err)
{
    const reduction *r = user;

    switch (treatment_of(r->s, leaf)) {
    case PLAIN:
        return reduce_plain(r, leaf, out, err);
    case SPREAD:
        return reduce_spread(r, leaf, out, err);
    case EQUAL:
        break;
    }
    if (r->op == LS_MEAN) {
        *out = ls_value_retain(leaf);
        return LS_OK;
    }
    const ls_status st = lsi_fail_kind(
        err, LS_INVALID_ARGUMENT, LS_KIND_ASSERT,
        "reduce: the copies of a %s are equal, so that their sum would "
        "count one value %d times; use LS_MEAN",
        ls_value_as_variable(leaf) != NULL ? "mirrored variable" : "Mirrored value",
        r->s->replicas);
    return lsi_fail_workers(r->s, "reduce", st, err);
}

ls_status lsi_reduce_value(ls_strategy *s, ls_reduce op, ls_value *value,
                           const lsi_destination *to,
                           const ls_communication_options *opts, ls_value **out,
                           ls_error *err)
{
    ls_error own = LS_ERROR_INIT;
    reduction r = {s, op, to, opts};

    if (s->ops->combines_on_one_device && op == LS_SUM && !ls_value_is_leaf(value)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "reduce: %s does not sum a structure (%s); reduce its "
                             "leaves one by one",
                             s->ops->name, ls_value_kind_name(ls_value_kind_of(value)));
    }
    return ls_value_map(value, reduce_leaf, &r, out, err != NULL ? err : &own);
}

/* The checks that every call begins with. */
static ls_status check_call(const char *what, const ls_strategy *s, bool given,
                            ls_error *err)
{
    if (s == NULL || !given) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE, "%s: %s is NULL",
                             what, s == NULL ? "the strategy" : "the value");
    }
    return lsi_require_cross(s, what, NULL, err);
}

/* Fails for a list or a tuple, also where the destination is not used. */
static ls_status refuse_list(const char *what, const ls_value *destination, ls_error *err)
{
    const ls_value_kind kind = ls_value_kind_of(destination);

    if (kind == LS_VALUE_LIST || kind == LS_VALUE_TUPLE || kind == LS_VALUE_NAMED_TUPLE) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_ASSERT,
                             "%s: the destination is a %s; for several devices use a "
                             "variable or a distributed value",
                             what, ls_value_kind_name(kind));
    }
    return LS_OK;
}

/* Returns `made` in *out, or releases it if out is NULL. */
static ls_status return_value(ls_value *made, ls_value **out)
{
    if (out != NULL) {
        *out = made;
    } else {
        ls_value_release(made);
    }
    return LS_OK;
}

/* Reduces one pair of a batch, or the value of reduce_to(). */
static ls_status reduce_pair(ls_strategy *s, const char *what, ls_reduce op,
                             ls_value *value, ls_value *destination,
                             const ls_communication_options *opts, ls_value **out,
                             ls_error *err)
{
    lsi_destination to = {0, NULL};

    if (is_single(s)) {
        *out = ls_value_retain(value);
        return LS_OK;
    }
    ls_status st = lsi_destination_of(what, destination, s->runtime, &to, err);
    if (st == LS_OK) {
        st = lsi_reduce_value(s, op, value, &to, opts, out, err);
    }
    lsi_destination_clear(&to);
    return st;
}

ls_status ls_strategy_reduce_to(ls_strategy *s, ls_reduce op, ls_value *value,
                                ls_value *destination,
                                const ls_communication_options *opts, ls_value **out,
                                ls_error *err)
{
    ls_value *made = NULL;
    ls_status st = check_call("reduce_to", s, value != NULL, err);

    if (st == LS_OK) {
        st = refuse_list("reduce_to", destination, err);
    }
    if (st == LS_OK) {
        st = lsi_require_reduce("reduce_to", op, LS_KIND_ASSERT, err);
    }
    if (st == LS_OK) {
        st = ls_communication_check(opts, err);
    }
    if (st == LS_OK) {
        st = reduce_pair(s, "reduce_to", op, value, destination, opts, &made, err);
    }
    return st == LS_OK ? return_value(made, out) : st;
}

/* ---- batches ---- */

typedef struct batch {
    ls_strategy *s;
    ls_reduce op;
    ls_value *const *values;
    ls_value *const *destinations;
    size_t n;
    const ls_communication_options *opts;
} batch;

/*
 * The values of a batch that are combined in one call: those that differ per replica and
 * have one destination.
 */
typedef struct together {
    size_t n;
    size_t *which;
    lsi_components *parts;
    ls_value **made;
    lsi_destination to;
} together;

static void clear_together(together *g)
{
    for (size_t i = 0; g->parts != NULL && i < g->n; i++) {
        lsi_components_clear(&g->parts[i]);
    }
    lsi_value_release_all(g->made, g->n);
    lsi_destination_clear(&g->to);
    lsi_free(g->which);
    lsi_free(g->parts);
}

/* Adds value `i` to the group if it belongs there; else *taken is false. */
static ls_status take_into_group(const batch *b, size_t i, together *g, bool *taken,
                                 ls_error *err)
{
    lsi_destination to = {0, NULL};

    *taken = false;
    if (is_single(b->s) || !ls_value_is_leaf(b->values[i]) ||
        treatment_of(b->s, b->values[i]) != SPREAD) {
        return LS_OK;
    }
    ls_status st = lsi_destination_of("batch_reduce_to", b->destinations[i],
                                      b->s->runtime, &to, err);
    if (st != LS_OK) {
        return st;
    }
    if (g->n == 0 || lsi_destination_same(&g->to, &to)) {
        st = lsi_components_of("batch_reduce_to", b->values[i], to.devices[0],
                               &g->parts[g->n], err);
        if (st == LS_OK) {
            g->which[g->n++] = i;
            *taken = true;
            if (g->to.n == 0) {
                g->to = to;
                to = (lsi_destination){0, NULL};
            }
        }
    }
    lsi_destination_clear(&to);
    return st;
}

static ls_status reduce_together(const batch *b, together *g, ls_value **made,
                                 ls_error *err)
{
    const ls_status st = lsi_cross_reduce(b->s, lsi_cross_device_of(b->s), b->op,
                                          g->parts, g->n, &g->to, b->opts, g->made, err);

    for (size_t i = 0; st == LS_OK && i < g->n; i++) {
        made[g->which[i]] = g->made[i];
        g->made[i] = NULL;
    }
    return st;
}

static ls_status reduce_batch(const batch *b, ls_value **made, ls_error *err)
{
    together g = {0,
                  lsi_alloc(b->n, sizeof *g.which),
                  lsi_alloc(b->n, sizeof *g.parts),
                  lsi_alloc(b->n, sizeof(ls_value *)),
                  {0, NULL}};
    ls_status st = LS_OK;

    if (g.which == NULL || g.parts == NULL || g.made == NULL) {
        st = lsi_fail_memory(err, "a batch of values", b->n * sizeof *g.parts);
    }
    for (size_t i = 0; st == LS_OK && i < b->n; i++) {
        bool taken = false;

        st = refuse_list("batch_reduce_to", b->destinations[i], err);
        if (st == LS_OK) {
            st = take_into_group(b, i, &g, &taken, err);
        }
        if (st == LS_OK && !taken) {
            st = reduce_pair(b->s, "batch_reduce_to", b->op, b->values[i],
                             b->destinations[i], b->opts, &made[i], err);
        }
    }
    if (st == LS_OK) {
        st = reduce_together(b, &g, made, err);
    }
    clear_together(&g);
    return st;
}

/* True if the arrays are not NULL and neither is any value. */
static bool all_given(ls_value *const *values, ls_value *const *destinations, size_t n)
{
    bool given = n == 0 || (values != NULL && destinations != NULL);

    for (size_t i = 0; given && i < n; i++) {
        given = values[i] != NULL;
    }
    return given;
}

ls_status ls_strategy_batch_reduce_to(ls_strategy *s, ls_reduce op,
                                      ls_value *const *values,
                                      ls_value *const *destinations, size_t n,
                                      const ls_communication_options *opts,
                                      ls_value **outs, ls_error *err)
{
    ls_status st =
        check_call("batch_reduce_to", s, all_given(values, destinations, n), err);

    if (st == LS_OK) {
        st = lsi_require_reduce("batch_reduce_to", op, LS_KIND_ASSERT, err);
    }
    if (st == LS_OK) {
        st = ls_communication_check(opts, err);
    }
    if (st != LS_OK || n == 0) {
        return st;
    }
    const batch b = {s, op, values, destinations, n, opts};
    ls_value **made = lsi_alloc(n, sizeof(ls_value *));
    if (made == NULL) {
        return lsi_fail_memory(err, "a batch of values", n * sizeof(ls_value *));
    }
    st = reduce_batch(&b, made, err);
    for (size_t i = 0; st == LS_OK && outs != NULL && i < n; i++) {
        outs[i] = made[i];
        made[i] = NULL;
    }
    lsi_value_release_all(made, n);
    return st;
}

/* ---- broadcast ---- */

/* Copies one value to every device of the destination. */
static ls_status broadcast_value(ls_strategy *s, ls_value *value, ls_value *destination,
                                 ls_value **out, ls_error *err)
{
    lsi_destination to = {0, NULL};
    ls_tensor *t = NULL;

    if (!ls_value_is_leaf(value) || lsi_value_is_distributed(value)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "broadcast_to: a %s is not a single value; pass a tensor",
                             ls_value_kind_name(ls_value_kind_of(value)));
    }
    ls_status st = lsi_destination_of("broadcast_to", destination, s->runtime, &to, err);
    if (st == LS_OK) {
        st = lsi_leaf_tensor("broadcast_to", value, to.devices[0], &t, err);
    }
    if (st == LS_OK) {
        st = lsi_cross_broadcast(t, &to, out, err);
    }
    ls_tensor_release(t);
    lsi_destination_clear(&to);
    return st;
}

ls_status ls_strategy_broadcast_to(ls_strategy *s, ls_value *value, ls_value *destination,
                                   ls_value **out, ls_error *err)
{
    const ls_value_kind kind = ls_value_kind_of(value);
    ls_value *made = NULL;
    ls_status st = check_call("broadcast_to", s, value != NULL, err);

    if (st == LS_OK) {
        st = refuse_list("broadcast_to", destination, err);
    }
    if (st != LS_OK) {
        return st;
    }
    if (destination == NULL || ls_value_kind_of(destination) == LS_VALUE_NONE) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_ASSERT,
                             "broadcast_to: there is no destination");
    }
    if (s->ops->is_default) {
        return lsi_fail_kind(err, LS_UNIMPLEMENTED, LS_KIND_RUNTIME,
                             "broadcast_to: the default strategy has one replica and no "
                             "devices of its own; the value is there already");
    }
    // A literal stays one: its dtype is decided by the value that it is combined with.
    if (!s->ops->per_replica || kind == LS_VALUE_INT || kind == LS_VALUE_FLOAT ||
        kind == LS_VALUE_BOOL) {
        return return_value(ls_value_retain(value), out);
    }
    st = broadcast_value(s, value, destination, &made, err);
    return st == LS_OK ? return_value(made, out) : st;
}
