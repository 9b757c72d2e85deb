/* The components of a leaf as tensors: what cross-device operations combine. */
#include "cross_replica/cross_replica.h"

#include "op/op.h"

void lsi_components_clear(lsi_components *p)
{
    for (size_t i = 0; i < p->n; i++) {
        ls_tensor_release(p->t[i]);
    }
    lsi_free(p->t);
    *p = (lsi_components){0, NULL};
}

bool lsi_variable_is_mirrored(ls_variable *v)
{
    // A component is a plain variable of the default strategy, and so is the variable of
    // central storage.
    return ls_variable_strategy(v)->ops->copies_variables;
}

/* Integers become int32, as in TensorFlow, unless they do not fit. */
static ls_status of_int(int64_t x, ls_device *device, ls_tensor **out, ls_error *err)
{
    if (x < INT32_MIN || x > INT32_MAX) {
        return ls_tensor_create(device, LS_I64, LS_SCALAR, &x, out, err);
    }
    const int32_t narrow = (int32_t)x;
    return ls_tensor_create(device, LS_I32, LS_SCALAR, &narrow, out, err);
}

ls_status lsi_leaf_tensor(const char *what, ls_value *leaf, ls_device *device,
                          ls_tensor **out, ls_error *err)
{
    ls_variable *v = leaf == NULL ? NULL : ls_value_as_variable(leaf);
    ls_tensor *t = ls_value_as_tensor(leaf);
    int64_t integer;
    double number;
    bool truth;
    ls_string string;

    if (v != NULL) {
        return ls_variable_value(v, out, err);
    }
    if (t != NULL) {
        *out = ls_tensor_retain(t);
        return LS_OK;
    }
    if (ls_value_as_int(leaf, &integer)) {
        return of_int(integer, device, out, err);
    }
    if (ls_value_as_float(leaf, &number)) {
        const float narrow = (float)number;

        return ls_tensor_create(device, LS_F32, LS_SCALAR, &narrow, out, err);
    }
    if (ls_value_as_bool(leaf, &truth)) {
        const uint8_t byte = truth;

        return ls_tensor_create(device, LS_BOOL, LS_SCALAR, &byte, out, err);
    }
    if (ls_value_as_string(leaf, &string)) {
        return ls_tensor_create(device, LS_STRING, LS_SCALAR, &string, out, err);
    }
    return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                         "%s: %s is not a tensor and cannot become one", what,
                         ls_value_kind_name(ls_value_kind_of(leaf)));
}

ls_status lsi_components_of(const char *what, ls_value *leaf, ls_device *device,
                            lsi_components *out, ls_error *err)
{
    ls_variable *v = leaf == NULL ? NULL : ls_value_as_variable(leaf);
    const bool copies = v != NULL && lsi_variable_is_mirrored(v);
    const bool spread = leaf != NULL && lsi_value_is_distributed(leaf);
    const size_t n = copies   ? ls_variable_components(v)
                     : spread ? ls_value_size(leaf)
                              : 1;
    lsi_components p = {0, lsi_alloc(n, sizeof(ls_tensor *))};
    ls_status st = LS_OK;

    if (p.t == NULL) {
        return lsi_fail_memory(err, "the parts of a value", n * sizeof(ls_tensor *));
    }
    for (size_t i = 0; st == LS_OK && i < n; i++) {
        ls_value *component = spread ? ls_value_child(leaf, i) : leaf;

        st = copies ? ls_variable_value(ls_variable_component(v, i), &p.t[i], err)
                    : lsi_leaf_tensor(what, component, device, &p.t[i], err);
        p.n += st == LS_OK;
    }
    if (st != LS_OK) {
        lsi_components_clear(&p);
        return st;
    }
    *out = p;
    return LS_OK;
}

static ls_status sparse_of(const ls_tensor *like, ls_tensor *values, ls_tensor *indices,
                           ls_tensor **out, ls_error *err)
{
    const ls_shape shape = ls_tensor_shape(like);

    *out = lsi_tensor_sparse(&shape, values, indices);
    return *out != NULL ? LS_OK : lsi_fail_memory(err, "a sparse tensor", sizeof **out);
}

static ls_status sparse_on(ls_tensor *t, ls_device *device, ls_tensor **out,
                           ls_error *err)
{
    ls_tensor *values = NULL;
    ls_tensor *indices = NULL;
    ls_status st = lsi_tensor_on(t->values, device, &values, err);

    if (st == LS_OK) {
        st = lsi_tensor_on(t->indices, device, &indices, err);
    }
    if (st == LS_OK) {
        st = sparse_of(t, values, indices, out, err);
    }
    ls_tensor_release(values);
    ls_tensor_release(indices);
    return st;
}

ls_status lsi_tensor_on(ls_tensor *t, ls_device *device, ls_tensor **out, ls_error *err)
{
    if (t->device == device) {
        *out = ls_tensor_retain(t);
        return LS_OK;
    }
    if (t->values != NULL) {
        return sparse_on(t, device, out, err);
    }
    return ls_tensor_create(device, (ls_dtype)t->dtype, ls_tensor_shape(t), t->data, out,
                            err);
}

ls_status lsi_tensor_make_dense(ls_tensor **t, ls_error *err)
{
    const ls_shape shape = ls_tensor_shape(*t);

    if ((*t)->values == NULL) {
        return LS_OK;
    }
    ls_tensor *dense = lsi_tensor_new((*t)->device, (ls_dtype)(*t)->dtype, &shape);
    if (dense == NULL) {
        return lsi_fail_memory(err, "a dense tensor", ls_tensor_bytes(*t));
    }
    const ls_status st = ls_tensor_read(*t, dense->data, ls_tensor_bytes(*t), err);
    if (st != LS_OK) {
        ls_tensor_release(dense);
        return st;
    }
    ls_tensor_release(*t);
    *t = dense;
    return LS_OK;
}

static ls_status divide_dense(ls_tensor *t, int64_t by, ls_tensor **out, ls_error *err)
{
    ls_context *c = NULL;
    ls_status st = ls_context_open(t->device, NULL, &c, err);

    if (st != LS_OK) {
        return st;
    }
    // Integers are first cast as tf.truediv does: a small dtype may not be able to hold
    // the divisor.
    const bool small = ls_dtype_size((ls_dtype)t->dtype) < sizeof(int32_t);
    const ls_dtype dtype = lsi_dtype_is_float((ls_dtype)t->dtype) ? (ls_dtype)t->dtype
                           : small                                ? LS_F32
                                                                  : LS_F64;
    ls_tensor *sum = dtype == (ls_dtype)t->dtype ? t : ls_cast(c, t, dtype);
    ls_tensor *result = ls_div(c, sum, lsi_scalar(c, dtype, (double)by));
    (void)ls_tensor_retain(result);
    st = ls_context_finish(c, err);
    ls_context_close(c);
    if (st != LS_OK) {
        ls_tensor_release(result);
        return st;
    }
    *out = result;
    return LS_OK;
}

ls_status lsi_tensor_divide(ls_tensor *t, int64_t by, ls_tensor **out, ls_error *err)
{
    ls_tensor *values = NULL;

    if (t->values == NULL) {
        return divide_dense(t, by, out, err);
    }
    ls_status st = divide_dense(t->values, by, &values, err);
    if (st == LS_OK) {
        st = sparse_of(t, values, t->indices, out, err);
    }
    ls_tensor_release(values);
    return st;
}

ls_status lsi_components_of_workers(ls_strategy *s, const char *what,
                                    const ls_communication_options *opts,
                                    lsi_components *p, ls_status st, const ls_error *why,
                                    ls_error *err)
{
    const lsi_workers_call call = {what, 0, opts, lsi_comm_take_site()};
    ls_error own = LS_ERROR_INIT;
    lsi_components all = {0, NULL};
    size_t n = 0;

    if (st == LS_OK) {
        n = p->n * (size_t)lsi_workers(s);
        all.t = lsi_alloc(n, sizeof(ls_tensor *));
        why = &own;
        st = all.t == NULL ? lsi_fail_memory(&own, what, n * sizeof(ls_tensor *)) : LS_OK;
    }
    st = st == LS_OK ? lsi_workers_gather(s, &call, p->t, p->n, p->t[0]->device, all.t,
                                          LS_OK, NULL, err)
                     : lsi_workers_decline(s, &call, why, err);
    if (st == LS_OK) {
        all.n = n;
        lsi_components_clear(p);
        *p = all;
    } else {
        lsi_free(all.t);
    }
    return st;
}

ls_status lsi_fail_workers(ls_strategy *s, const char *what, ls_status st, ls_error *err)
{
    const lsi_workers_call call = {what, 0, NULL, lsi_comm_take_site()};
    const ls_error why = *err;

    return st == LS_OK || lsi_workers(s) == 1 ? st
                                              : lsi_workers_decline(s, &call, &why, err);
}
