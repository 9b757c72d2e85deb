/* Operators: cross-device operations, and how values are packed for them. */
#include "strategy_machine.h"

static ls_value *op_cdo_reduce(const scene *s, json_t *e)
{
    ls_error err = LS_ERROR_INIT;
    ls_cross_device *x = NULL;
    ls_value *v = NULL, *to = NULL, *out = NULL;
    ls_status st;
    ls_reduce op;

    if (!machine_reduce_op(s, json_array_get(e, 2), &op) ||
        (v = machine_eval(s, json_array_get(e, 3))) == NULL ||
        (to = machine_destination(s, json_array_get(e, 4))) == NULL) {
        return NULL;
    }
    st = machine_make_cross_device(json_array_get(e, 1), &x, &err);
    if (st == LS_OK) {
        st = ls_cross_device_reduce(x, op, v, to, NULL, &out, &err);
    }
    ls_cross_device_release(x);
    return machine_give(s, st, &out, &err);
}

static ls_value *op_cdo_broadcast(const scene *s, json_t *e)
{
    ls_error err = LS_ERROR_INIT;
    ls_cross_device *x = NULL;
    ls_value *v = machine_eval(s, json_array_get(e, 2)), *out = NULL;
    ls_value *to = v == NULL ? NULL : machine_destination(s, json_array_get(e, 3));
    ls_status st;

    if (to == NULL) {
        return NULL;
    }
    st = machine_make_cross_device(json_array_get(e, 1), &x, &err);
    if (st == LS_OK) {
        st = ls_cross_device_broadcast(x, v, to, &out, &err);
    }
    ls_cross_device_release(x);
    return machine_give(s, st, &out, &err);
}

/* ---- packs ---- */

static ls_value *list_of_sizes(const scene *s, const size_t *sizes, size_t n)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *list_value = NULL;
    items out = {0};

    for (; out.n < n && out.n < MACHINE_MAX_ITEMS; out.n++) {
        out.v[out.n] = machine_of_int(s, (int64_t)sizes[out.n]);
        if (out.v[out.n] == NULL) {
            return NULL;
        }
    }
    return machine_give(s, ls_value_list(out.v, out.n, &list_value, &err), &list_value,
                        &err);
}

/* The numbers of a JSON list; how many, at most MACHINE_MAX_ITEMS. */
static size_t read_sizes(const json_t *j, size_t *sizes, size_t *total)
{
    size_t n = 0;

    *total = 0;
    for (; n < json_array_size(j) && n < MACHINE_MAX_ITEMS; n++) {
        sizes[n] = (size_t)json_integer_value(json_array_get(j, n));
        *total += sizes[n];
    }
    return n;
}

static ls_value *op_pack_sizes(const scene *s, json_t *e)
{
    const int packs = (int)json_integer_value(json_array_get(e, 1));
    size_t sizes[MACHINE_MAX_ITEMS], total;
    const size_t n = read_sizes(json_array_get(e, 2), sizes, &total);
    ls_error err = LS_ERROR_INIT;
    ls_cross_device *x = NULL;
    ls_status st = ls_hierarchical_copy_create(packs, &x, &err); // refuses what is wrong

    ls_cross_device_release(x);
    if (st == LS_OK && packs == 0) {
        return list_of_sizes(s, sizes, n); // no packing: each tensor by itself
    }
    if (st == LS_OK && packs > MACHINE_MAX_ITEMS) {
        return machine_wrong(s, "%d packs are too many", packs);
    }
    if (st == LS_OK) {
        st = ls_pack_sizes(total, packs, sizes, &err);
    }
    return st == LS_OK ? list_of_sizes(s, sizes, (size_t)packs) : machine_fail(s, &err);
}

/* TensorFlow's function takes the values as they are to be sent: ours reversed. */
static ls_value *op_group_by_size(const scene *s, json_t *e)
{
    const json_int_t limit = json_integer_value(json_array_get(e, 2));
    size_t sizes[MACHINE_MAX_ITEMS], reversed[MACHINE_MAX_ITEMS];
    size_t group[MACHINE_MAX_ITEMS], counts[MACHINE_MAX_ITEMS] = {0}, packs = 0, total;
    const size_t n = read_sizes(json_array_get(e, 1), sizes, &total);
    ls_error err = LS_ERROR_INIT;

    for (size_t i = 0; i < n; i++) {
        reversed[i] = sizes[n - 1 - i];
    }
    if (ls_group_by_size(reversed, n, limit, group, &packs, &err) != LS_OK) {
        return machine_fail(s, &err);
    }
    for (size_t i = 0; i < n; i++) {
        if (group[i] >= packs || packs > n) {
            return machine_wrong(s, "a value is in pack %zu of %zu", group[i], packs);
        }
        counts[group[i]]++;
    }
    return list_of_sizes(s, counts, packs);
}

const operation machine_cross_device[] = {
    {"cdo_reduce", op_cdo_reduce, 4, 4},
    {"cdo_broadcast", op_cdo_broadcast, 3, 3},
    {"pack_sizes", op_pack_sizes, 2, 2},
    {"group_by_size", op_group_by_size, 2, 2},
    {NULL, NULL, 0, 0},
};
