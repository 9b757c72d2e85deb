/* Destinations: the devices of a value, of a variable or of a name. */
#include "cross_replica/cross_replica.h"

#include <string.h>

void lsi_destination_clear(lsi_destination *d)
{
    lsi_free(d->devices);
    d->devices = NULL;
    d->n = 0;
}

bool lsi_destination_same(const lsi_destination *a, const lsi_destination *b)
{
    return a->n == b->n &&
           memcmp(a->devices, b->devices, a->n * sizeof(ls_device *)) == 0;
}

/* Allocates room for `n` devices. */
static ls_status reserve_devices(size_t n, lsi_destination *out, ls_error *err)
{
    ls_device **devices = lsi_alloc(n, sizeof(ls_device *));

    if (devices == NULL) {
        return lsi_fail_memory(err, "a destination", n * sizeof(ls_device *));
    }
    *out = (lsi_destination){n, devices};
    return LS_OK;
}

ls_status lsi_destination_device(ls_device *device, lsi_destination *out, ls_error *err)
{
    const ls_status st = reserve_devices(1, out, err);

    if (st == LS_OK) {
        out->devices[0] = device;
    }
    return st;
}

static ls_status of_name(const char *what, ls_string name, ls_runtime *rt,
                         lsi_destination *out, ls_error *err)
{
    char text[128];
    ls_device *device = NULL;

    if (name.len == 0) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "%s: the destination is an empty string; give a device's "
                             "name, such as \"CPU:0\"",
                             what);
    }
    if (name.len >= sizeof text || memchr(name.ptr, '\0', name.len) != NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "%s: the destination is a string of %zu bytes, which is not "
                             "the name of a device",
                             what, name.len);
    }
    memcpy(text, name.ptr, name.len);
    text[name.len] = '\0';
    const ls_status st = ls_runtime_find_device(rt, text, &device, err);
    return st == LS_OK ? lsi_destination_device(device, out, err) : st;
}

static ls_status of_variable(ls_variable *v, lsi_destination *out, ls_error *err)
{
    const size_t n = ls_variable_components(v);
    const ls_status st = reserve_devices(n, out, err);

    for (size_t i = 0; st == LS_OK && i < n; i++) {
        out->devices[i] = ls_variable_device(ls_variable_component(v, i));
    }
    return st;
}

/* The device of one component; NULL: it is a literal, which is on no device. */
static ls_device *device_of(const ls_value *leaf)
{
    const ls_tensor *t = ls_value_as_tensor(leaf);
    const ls_variable *v = ls_value_as_variable(leaf);

    if (t != NULL) {
        return ls_tensor_device(t);
    }
    return v != NULL ? ls_variable_device(v) : NULL;
}

static ls_status of_components(const char *what, const ls_value *d, lsi_destination *out,
                               ls_error *err)
{
    ls_status st = reserve_devices(ls_value_size(d), out, err);

    for (size_t i = 0; st == LS_OK && i < out->n; i++) {
        const ls_value *component = ls_value_child(d, i);

        out->devices[i] = device_of(component);
        if (out->devices[i] == NULL) {
            st = lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                               "%s: component %zu of the destination is a literal (%s), "
                               "which is on no device",
                               what, i, ls_value_kind_name(ls_value_kind_of(component)));
            lsi_destination_clear(out);
        }
    }
    return st;
}

ls_status lsi_destination_of(const char *what, ls_value *d, ls_runtime *rt,
                             lsi_destination *out, ls_error *err)
{
    ls_variable *v = d == NULL ? NULL : ls_value_as_variable(d);
    const ls_value_kind kind = ls_value_kind_of(d);
    ls_string name;

    if (v != NULL) {
        return of_variable(v, out, err);
    }
    if (kind == LS_VALUE_PER_REPLICA || kind == LS_VALUE_MIRRORED) {
        return of_components(what, d, out, err);
    }
    if (kind == LS_VALUE_TENSOR) {
        return lsi_destination_device(ls_tensor_device(ls_value_as_tensor(d)), out, err);
    }
    if (kind == LS_VALUE_STRING && ls_value_as_string(d, &name)) {
        return of_name(what, name, rt, out, err);
    }
    if (!ls_value_is_leaf(d)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "%s: the destination is a %s; for several devices use a "
                             "variable or a distributed value",
                             what, ls_value_kind_name(kind));
    }
    return lsi_fail_kind(
        err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
        "%s: the destination is %s%s; it is a variable, a distributed "
        "value, a tensor or a device's name",
        what, kind == LS_VALUE_NONE ? "" : "a literal: ", ls_value_kind_name(kind));
}
