/* Moves values to the device of the replica they belong to. */
#include "input/input.h"

#include <string.h>

/* True if `t` may not stay where it is: the elements of the device must be its own. */
static bool must_copy(const ls_tensor *t, const ls_device *device)
{
    lsi_memory_location where;

    return device->inline_bytes == 0 && t->dtype != LS_STRING &&
           !lsi_tensor_locate(t, &where);
}

/*
 * Logical CPU devices share memory: the result is a view of the same bytes with another
 * device. Small tensors hold their bytes inline, so these are copied.
 */
static ls_tensor *on_device(ls_tensor *t, ls_device *device)
{
    const ls_shape shape = ls_tensor_shape(t);
    const ls_dtype dtype = ls_tensor_dtype(t);
    ls_tensor *v = NULL;

    if (must_copy(t, device)) {
        return ls_tensor_create(device, dtype, shape, t->data, &v, NULL) == LS_OK ? v
                                                                                  : NULL;
    }
    v = lsi_tensor_view(t, dtype, &shape, 0);
    if (v == NULL) {
        return NULL;
    }
    if (t->data == (void *)t->small) { // not for strings: a buffer holds their bytes
        memcpy(v->small, t->small, sizeof v->small);
        v->data = v->small;
    }
    v->device = device;
    return v;
}

static ls_status place_leaf(ls_value *leaf, void *user, ls_value **out, ls_error *err)
{
    ls_device *device = user;
    ls_tensor *t = ls_value_as_tensor(leaf);
    ls_status st;

    if (t == NULL || t->device == device || t->values != NULL) {
        *out = ls_value_retain(leaf);
        return LS_OK;
    }
    ls_tensor *v = on_device(t, device);
    if (v == NULL) {
        return lsi_fail_memory(err, "a replica's part", sizeof *v);
    }
    st = ls_value_tensor(v, out, err);
    ls_tensor_release(v);
    return st;
}

/* Changes the device of tensors with one reference in place; returns whether all were. */
static bool move_in_place(ls_value *v, ls_device *device)
{
    ls_tensor *t = ls_value_as_tensor(v);
    bool all = true;

    if (t != NULL && t->device == device) {
        return true;
    }
    if (atomic_load(&v->refs) != 1 || (t == NULL && ls_value_is_leaf(v))) {
        return false;
    }
    if (t != NULL) {
        if (t->values != NULL || atomic_load(&t->refs) != 1 || must_copy(t, device)) {
            return false;
        }
        t->device = device;
        return true;
    }
    for (size_t i = 0; i < v->size; i++) {
        all = move_in_place(v->child[i], device) && all;
    }
    return all;
}

ls_status lsi_value_move(ls_value *v, ls_device *device, ls_value **out, ls_error *err)
{
    ls_status st;

    if (device == NULL || move_in_place(v, device)) {
        *out = v;
        return LS_OK;
    }
    st = lsi_value_place(v, device, out, err);
    ls_value_release(v);
    return st;
}

ls_status lsi_value_place(ls_value *v, ls_device *device, ls_value **out, ls_error *err)
{
    if (device == NULL) {
        *out = ls_value_retain(v);
        return LS_OK;
    }
    return ls_value_map(v, place_leaf, device, out, err);
}
