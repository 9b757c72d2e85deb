/*
 * Values in a step: leaves of values as tensors of the step, and tensors of the step as
 * values that live until it ends.
 */
#include "replica/replica.h"

/* ---- leaves as tensors ---- */

/*
 * The component of a distributed value that belongs to the calling thread's replica;
 * NULL: failed.
 */
static ls_value *component_here(ls_context *c, const ls_value *v)
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
        (void)lsi_fail_kind(
            &e, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
            "a PerReplica value is one value per replica, and this is not "
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
        v = component_here(c, v);
        if (v == NULL) {
            return NULL;
        }
    }
    switch (v->kind) {
    case LS_VALUE_TENSOR:
        return lsi_context_alias(c, v->leaf.tensor);
    case LS_VALUE_VARIABLE:
        return v->leaf.object.ops->tensor(v->leaf.object.self, c);
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
                            "a %s is not a tensor; take one of its leaves",
                            ls_value_kind_name(v->kind));
        return lsi_context_error(c, &e);
    }
}

ls_value *lsi_value_item(ls_context *c, ls_value *v, size_t i)
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
    ls_value *found = lsi_value_item(c, v, i);

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

/* ---- values that live as long as the step ---- */

static void release_value(void *v)
{
    ls_value_release(v);
}

ls_value *ls_value_adopt(ls_context *c, ls_value *v)
{
    if (v == NULL) {
        return NULL;
    }
    if (lsi_failed(c)) {
        ls_value_release(v);
        return NULL;
    }
    return lsi_context_keep(c, v, release_value) ? v : NULL;
}

static ls_value *keep_created(ls_context *c, ls_status st, ls_value *v, const ls_error *e)
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
    return keep_created(c, st, v, &e);
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
    return keep_created(c, st, v, &e);
}

ls_value *ls_here_value(ls_context *c, ls_value *v, const char *file, int line)
{
    const lsi_mode *now = lsi_mode_now();

    if (now == NULL || now->context == c) { // else the context belongs to another thread
        (void)ls_context_at(c, file, line);
    }
    return v;
}
