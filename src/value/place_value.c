/* Values on a device: views of tensors of other devices, or copies where it needs them. */
#include "value/value.h"

static bool is_placed(const ls_tensor *t, const ls_device *device)
{
    return t == NULL || t->device == device || t->values != NULL;
}

static bool is_on(const ls_value *v, const ls_device *device)
{
    bool on = !ls_value_is_leaf(v) || is_placed(ls_value_as_tensor(v), device);

    for (size_t i = 0; on && i < v->size; i++) {
        on = is_on(v->child[i], device);
    }
    return on;
}

static ls_status place_leaf(ls_value *leaf, void *user, ls_value **out, ls_error *err)
{
    ls_device *device = user;
    ls_tensor *t = ls_value_as_tensor(leaf), *placed = NULL;
    ls_status st;

    if (is_placed(t, device)) {
        *out = ls_value_retain(leaf);
        return LS_OK;
    }
    placed = lsi_tensor_placed(t, device);
    if (placed == NULL) {
        return lsi_fail_memory(err, "a tensor on another device", ls_tensor_bytes(t));
    }
    st = ls_value_tensor(placed, out, err);
    ls_tensor_release(placed);
    return st;
}

ls_status lsi_value_place(ls_value *v, ls_device *device, ls_value **out, ls_error *err)
{
    if (device == NULL || is_on(v, device)) {
        *out = ls_value_retain(v);
        return LS_OK;
    }
    return ls_value_map(v, place_leaf, device, out, err);
}
