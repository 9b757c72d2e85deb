/* Moves values to the device of the replica they belong to. */
#include "input/input.h"

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
        if (t->values != NULL || atomic_load(&t->refs) != 1 ||
            lsi_tensor_must_copy(t, device)) {
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
