/* The functions of lockstep/cross_device.h: reductions and broadcasts by a handle. */
#include "cross_replica/cross_replica.h"

#include "op/op.h"

/* The runtime for names of devices: the value's, or the handle's if it is empty. */
static ls_runtime *runtime_of(const ls_cross_device *x, const lsi_components *p)
{
    return p->n > 0 ? p->t[0]->device->runtime : x->runtime;
}

static ls_status check_call(const char *what, const ls_cross_device *x,
                            const ls_value *value, ls_error *err)
{
    if (x == NULL || value == NULL || !ls_value_is_leaf(value)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "%s: %s; a structure is combined leaf by leaf", what,
                             x == NULL       ? "the object is NULL"
                             : value == NULL ? "the value is NULL"
                                             : "the value is a structure");
    }
    return LS_OK;
}

/* Finds the components of a value and their destination; nothing to free on failure. */
static ls_status resolve_pair(const ls_cross_device *x, ls_value *value,
                              ls_value *destination, lsi_components *p,
                              lsi_destination *to, ls_error *err)
{
    ls_status st = check_call("reduce", x, value, err);

    if (st == LS_OK) {
        st = lsi_components_of("reduce", value, x->device, p, err);
    }
    if (st != LS_OK) {
        return st;
    }
    st = lsi_destination_of("reduce", destination, runtime_of(x, p), to, err);
    if (st != LS_OK) {
        lsi_components_clear(p);
    }
    return st;
}

/* Pairs with one destination are reduced together, others one by one. */
static ls_status reduce_pairs(const ls_cross_device *x, ls_reduce op,
                              lsi_components *values, const lsi_destination *to, size_t n,
                              ls_value **outs, ls_error *err)
{
    bool together = true;
    ls_status st = LS_OK;

    for (size_t i = 1; i < n; i++) {
        together = together && lsi_destination_same(&to[0], &to[i]);
    }
    if (together) {
        return lsi_cross_reduce(NULL, x, op, values, n, to, NULL, outs, err);
    }
    for (size_t i = 0; st == LS_OK && i < n; i++) {
        st = lsi_cross_reduce(NULL, x, op, &values[i], 1, &to[i], NULL, &outs[i], err);
    }
    return st;
}

ls_status ls_cross_device_batch_reduce(ls_cross_device *x, ls_reduce op,
                                       ls_value *const *values,
                                       ls_value *const *destinations, size_t n,
                                       const ls_communication_options *opts,
                                       ls_value **outs, ls_error *err)
{
    ls_status st = lsi_require_reduce("reduce", op, LS_KIND_VALUE, err);
    size_t ready = 0;

    if (st == LS_OK) {
        st = ls_communication_check(opts, err);
    }
    if (st != LS_OK || n == 0) {
        return st;
    }
    if (values == NULL || destinations == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "reduce: %zu pairs of a value and a destination, but %s is "
                             "NULL",
                             n, values == NULL ? "values" : "destinations");
    }
    lsi_components *parts = lsi_alloc(n, sizeof *parts);
    lsi_destination *to = lsi_alloc(n, sizeof *to);
    ls_value **made = lsi_alloc(n, sizeof(ls_value *));
    if (parts == NULL || to == NULL || made == NULL) {
        st = lsi_fail_memory(err, "a batch of values", n * sizeof *parts);
    }
    for (; st == LS_OK && ready < n; ready += st == LS_OK) {
        st = resolve_pair(x, values[ready], destinations[ready], &parts[ready],
                          &to[ready], err);
    }
    if (st == LS_OK) {
        st = reduce_pairs(x, op, parts, to, n, made, err);
    }
    for (size_t i = 0; st == LS_OK && outs != NULL && i < n; i++) {
        outs[i] = made[i];
        made[i] = NULL;
    }
    for (size_t i = 0; i < ready; i++) {
        lsi_components_clear(&parts[i]);
        lsi_destination_clear(&to[i]);
    }
    lsi_value_release_all(made, n);
    lsi_free(parts);
    lsi_free(to);
    return st;
}

ls_status ls_cross_device_reduce(ls_cross_device *x, ls_reduce op, ls_value *value,
                                 ls_value *destination,
                                 const ls_communication_options *opts, ls_value **out,
                                 ls_error *err)
{
    return ls_cross_device_batch_reduce(x, op, &value, &destination, 1, opts, out, err);
}

ls_status ls_cross_device_broadcast(ls_cross_device *x, ls_value *value,
                                    ls_value *destination, ls_value **out, ls_error *err)
{
    ls_tensor *t = NULL;
    ls_value *made = NULL;
    lsi_destination to = {0, NULL};
    ls_status st = check_call("broadcast", x, value, err);

    if (st == LS_OK) {
        st = lsi_leaf_tensor("broadcast", value, x->device, &t, err);
    }
    if (st == LS_OK) {
        const lsi_components p = {1, &t};

        st = lsi_destination_of("broadcast", destination, runtime_of(x, &p), &to, err);
    }
    if (st == LS_OK) {
        st = lsi_cross_broadcast(t, &to, &made, err);
    }
    if (st == LS_OK && out != NULL) {
        *out = made;
        made = NULL;
    }
    ls_value_release(made);
    lsi_destination_clear(&to);
    ls_tensor_release(t);
    return st;
}
