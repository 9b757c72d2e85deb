/* Variables as leaves of values, and leaves as tensors of a step. */
#include "variable/variable.h"

#include <stdio.h>
#include <string.h>

static void *retain(void *v)
{
    return ls_variable_retain(v);
}

static void release(void *v)
{
    ls_variable_release(v);
}

static void *container(void *v)
{
    return ls_variable_container(v);
}

static size_t text(void *v, char *buf, size_t size)
{
    return ls_variable_text(v, buf, size);
}

static const lsi_object_ops variable_ops = {retain, release, container, text};

ls_status ls_value_variable(ls_variable *v, ls_value **out, ls_error *err)
{
    if (v == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "variable: NULL is no variable");
    }
    return lsi_value_object(LS_VALUE_VARIABLE, v, &variable_ops, out, err);
}

ls_variable *ls_value_as_variable(const ls_value *v)
{
    return v != NULL && v->kind == LS_VALUE_VARIABLE ? v->leaf.object.self : NULL;
}

/* ---- leaves as tensors ---- */

/* The component of a distributed value that the calling thread is in; NULL: failed. */
static ls_value *component(ls_context *c, const ls_value *v)
{
    const lsi_mode *now = lsi_mode_now();
    const lsi_replica *r =
        now != NULL && !now->cross ? lsi_replica_of(now->context) : NULL;
    ls_error e = LS_ERROR_INIT;
    int index = lsi_update_id() >= 0 ? lsi_update_id() : r != NULL ? r->index : -1;

    if (index < 0 && v->kind == LS_VALUE_MIRRORED) {
        index = 0;
    }
    if (index < 0) {
        (void)lsi_fail_kind(&e, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                            "a PerReplica value is one value a replica, and this is not "
                            "inside of a replica; reduce it or take its local results");
        (void)lsi_context_error(c, &e);
        return NULL;
    }
    if ((size_t)index >= v->size) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT,
                              "replica %d has no component of a %s with %zu", index,
                              ls_value_kind_name(v->kind), v->size);
        return NULL;
    }
    return v->child[index];
}

ls_tensor *(ls_value_to_tensor)(ls_context *c, ls_value *v)
{
    ls_error e = LS_ERROR_INIT;

    if (lsi_failed(c)) {
        return NULL;
    }
    if (v == NULL) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT, "the value is NULL");
    }
    if (lsi_value_is_distributed(v)) {
        v = component(c, v);
        if (v == NULL) {
            return NULL;
        }
    }
    switch (v->kind) {
    case LS_VALUE_TENSOR:
        return lsi_context_alias(c, v->leaf.tensor);
    case LS_VALUE_VARIABLE:
        return (ls_variable_as_tensor)(c, ls_value_as_variable(v));
    case LS_VALUE_INT: {
        const int32_t narrow = (int32_t)v->leaf.integer;

        return narrow == v->leaf.integer
                   ? (ls_constant)(c, LS_I32, LS_SCALAR, &narrow)
                   : (ls_constant)(c, LS_I64, LS_SCALAR, &v->leaf.integer);
    }
    case LS_VALUE_FLOAT:
        return ls_constant_f32(c, (float)v->leaf.number);
    case LS_VALUE_BOOL: {
        const uint8_t truth = v->leaf.truth;

        return (ls_constant)(c, LS_BOOL, LS_SCALAR, &truth);
    }
    case LS_VALUE_STRING:
        return (ls_constant)(c, LS_STRING, LS_SCALAR, &v->leaf.string);
    default:
        (void)lsi_fail_kind(&e, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                            "a %s is no tensor; take one of its leaves",
                            ls_value_kind_name(v->kind));
        return lsi_context_error(c, &e);
    }
}

static ls_value *item(ls_context *c, ls_value *v, size_t i)
{
    ls_value *found = ls_value_is_leaf(v) && !(v != NULL && lsi_value_is_distributed(v))
                          ? (i == 0 ? v : NULL)
                          : ls_value_child(v, i);

    if (found == NULL && !lsi_failed(c)) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "no item %zu in a %s of %zu", i,
                              ls_value_kind_name(ls_value_kind_of(v)), ls_value_size(v));
    }
    return lsi_failed(c) ? NULL : found;
}

ls_tensor *(ls_value_at)(ls_context *c, ls_value *v, size_t i)
{
    ls_value *found = item(c, v, i);

    return found != NULL ? (ls_value_to_tensor)(c, found) : NULL;
}

ls_tensor *(ls_value_at_key)(ls_context *c, ls_value *v, const char *key)
{
    ls_value *found = key != NULL ? ls_value_find(v, key) : NULL;

    if (found == NULL && !lsi_failed(c)) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "no item '%s' in a %s of %zu",
                              key != NULL ? key : "NULL",
                              ls_value_kind_name(ls_value_kind_of(v)), ls_value_size(v));
    }
    return lsi_failed(c) ? NULL : (ls_value_to_tensor)(c, found);
}

ls_variable *(ls_value_variable_at)(ls_context *c, ls_value *v, size_t i)
{
    ls_value *found = item(c, v, i);
    ls_variable *variable = ls_value_as_variable(found);

    if (found != NULL && variable == NULL) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "item %zu is a %s, not a variable",
                              i, ls_value_kind_name(ls_value_kind_of(found)));
    }
    return variable;
}

static ls_value *kept(ls_context *c, ls_status st, ls_value *v, const ls_error *e)
{
    if (st != LS_OK) {
        (void)lsi_context_error(c, e);
        return NULL;
    }
    return ls_value_adopt(c, v);
}

ls_value *(ls_value_of)(ls_context *c, ls_tensor *t)
{
    ls_error e = LS_ERROR_INIT;
    ls_value *v = NULL;
    ls_status st;

    if (lsi_failed(c)) {
        return NULL;
    }
    st = ls_value_tensor(t, &v, &e);
    return kept(c, st, v, &e);
}

ls_value *(ls_value_of_all)(ls_context *c, ls_tensor *const *ts, size_t n)
{
    ls_error e = LS_ERROR_INIT;
    ls_value *v = NULL, **items;
    ls_status st = LS_OK;

    if (lsi_failed(c)) {
        return NULL;
    }
    items = lsi_alloc(LSI_MAX(n, 1), sizeof(ls_value *));
    if (items == NULL) {
        (void)ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for a tuple");
        return NULL;
    }
    for (size_t i = 0; i < n && st == LS_OK; i++) {
        st = ls_value_tensor(ts[i], &items[i], &e);
    }
    if (st == LS_OK) {
        st = ls_value_tuple(items, n, &v, &e);
    }
    lsi_value_release_all(items, n);
    return kept(c, st, v, &e);
}

/* ---- printing and copying ---- */

static size_t plain_text(ls_variable *v, char *buf, size_t size)
{
    char shape[128];
    ls_tensor *t = lsi_tensor_over(v->buffer, v->dtype, &v->shape);
    size_t length;
    int n;

    if (t == NULL) {
        if (size > 0) {
            buf[0] = '\0';
        }
        return 0;
    }
    n = snprintf(buf, size, "<tf.Variable '%s:0' shape=%s dtype=%s, numpy=", v->name,
                 ls_shape_text(&v->shape, shape, sizeof shape), ls_dtype_name(v->dtype));
    length = n > 0 ? (size_t)n : 0;
    length += lsi_tensor_array_text(t, length < size ? buf + length : NULL,
                                    length < size ? size - length : 0);
    if (length + 1 < size) {
        buf[length] = '>';
        buf[length + 1] = '\0';
    }
    ls_tensor_release(t);
    return length + 1;
}

size_t ls_variable_text(ls_variable *v, char *buf, size_t size)
{
    size_t length = 0;
    int n;

    if (v == NULL) {
        n = snprintf(buf, size, "None");
        return n > 0 ? (size_t)n : 0;
    }
    if (v->kind == LSI_PLAIN) {
        return plain_text(v, buf, size);
    }
    if (v->kind == LSI_AGGREGATING) {
        return plain_text(v->component[0], buf, size);
    }
    n = snprintf(buf, size, "%s:{\n",
                 v->kind == LSI_SYNC_ON_READ ? "SyncOnReadVariable" : "MirroredVariable");
    length = n > 0 ? (size_t)n : 0;
    for (int i = 0; i < v->components; i++) {
        const bool room = length < size;

        n = snprintf(room ? buf + length : NULL, room ? size - length : 0,
                     "%s  %d: ", i > 0 ? ",\n" : "", i);
        length += n > 0 ? (size_t)n : 0;
        length += plain_text(v->component[i], length < size ? buf + length : NULL,
                             length < size ? size - length : 0);
    }
    n = snprintf(length < size ? buf + length : NULL, length < size ? size - length : 0,
                 "\n}");
    return length + (n > 0 ? (size_t)n : 0);
}

static ls_status copy_elements(ls_variable *to, const ls_variable *from, ls_error *err)
{
    lsi_write w;
    ls_status st = LS_OK;

    if (from->dtype == LS_STRING) { // never written: one buffer serves both
        lsi_buffer_release(to->buffer);
        to->buffer = lsi_buffer_retain(from->buffer);
        return LS_OK;
    }
    st = lsi_variable_write(to, &w, err);
    if (st == LS_OK) {
        memcpy(w.to, from->buffer->data,
               (size_t)from->count * ls_dtype_size(from->dtype));
        lsi_variable_commit(to, &w);
    }
    return st;
}

ls_status ls_variable_clone(ls_variable *v, ls_variable **out, ls_error *err)
{
    ls_variable_options opts = LS_VARIABLE_OPTIONS_INIT;
    ls_variable *copy = NULL;
    ls_tensor *value = NULL;
    ls_status st;

    if (v == NULL || out == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "clone: %s is NULL",
                        v == NULL ? "the variable" : "out");
    }
    if (v->kind != LSI_PLAIN && lsi_mode_now() != NULL &&
        ls_current_strategy() != v->strategy && ls_has_strategy()) {
        return lsi_wrong_strategy(v->strategy, "clone", err);
    }
    opts.name = v->name;
    opts.synchronization = v->synchronization;
    opts.aggregation = v->aggregation;
    opts.trainable = v->trainable;
    opts.not_trainable = !v->trainable;
    opts.strict = v->strict;
    st = ls_variable_value(ls_variable_component(v, 0), &value, err);
    if (st == LS_OK && v->kind == LSI_PLAIN) {
        st = lsi_variable_plain(value, &opts, v->name, v->device, NULL, &copy, err);
        if (st == LS_OK) {
            copy->strategy = ls_strategy_retain(v->strategy);
        }
    } else if (st == LS_OK) {
        ls_device **devices = lsi_alloc((size_t)v->components, sizeof(ls_device *));

        for (int i = 0; devices != NULL && i < v->components; i++) {
            devices[i] = v->component[i]->device;
        }
        st = devices == NULL
                 ? lsi_fail_memory(err, "a variable", sizeof *v)
                 : lsi_variable_distributed(v->kind, v->strategy, devices, v->components,
                                            value, &opts, &copy, err);
        lsi_free(devices);
        for (int i = 1; i < v->components && st == LS_OK && copy != NULL; i++) {
            st = v->component[i]->buffer == v->component[0]->buffer
                     ? LS_OK
                     : copy_elements(copy->component[i], v->component[i], err);
        }
    }
    ls_tensor_release(value);
    if (st == LS_OK) {
        *out = copy;
    } else {
        ls_variable_release(copy);
    }
    return st;
}
