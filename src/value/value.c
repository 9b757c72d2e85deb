/* Values: creation of leaves and structures, reading, comparing, releasing. */
#include "value/value.h"

#include <string.h>

static ls_status no_place(ls_error *err, const char *what)
{
    return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE, "%s: out is NULL",
                         what);
}

/* Room for `size` children and `extra` bytes behind them; zeroed, one reference. */
static ls_status make_value(ls_value_kind kind, size_t size, size_t extra, ls_value **out,
                            ls_error *err)
{
    size_t bytes = 0;
    ls_value *v = NULL;

    if (!lsi_mul_size(size, sizeof(ls_value *), &bytes) ||
        !lsi_add_size(bytes, sizeof(ls_value), &bytes) ||
        !lsi_add_size(bytes, extra, &bytes) || (v = lsi_alloc(1, bytes)) == NULL) {
        return lsi_fail_memory(err, ls_value_kind_name(kind), bytes);
    }
    atomic_init(&v->refs, 1);
    v->kind = kind;
    v->size = size;
    *out = v;
    return LS_OK;
}

/* A leaf without children; its contents are the caller's to fill in. */
static ls_status make_leaf(ls_value_kind kind, size_t extra, ls_value **out,
                           ls_error *err)
{
    return out == NULL ? no_place(err, ls_value_kind_name(kind))
                       : make_value(kind, 0, extra, out, err);
}

ls_status ls_value_none(ls_value **out, ls_error *err)
{
    return make_leaf(LS_VALUE_NONE, 0, out, err);
}

ls_status ls_value_tensor(ls_tensor *t, ls_value **out, ls_error *err)
{
    if (t == NULL) {
        return lsi_fail_kind(
            err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
            "tensor: NULL is no tensor; ls_value_none() stands for none");
    }
    const ls_status st = make_leaf(LS_VALUE_TENSOR, 0, out, err);
    if (st == LS_OK) {
        (*out)->leaf.tensor = ls_tensor_retain(lsi_tensor_origin(t));
    }
    return st;
}

ls_status lsi_value_object(ls_value_kind kind, void *self, const lsi_object_ops *ops,
                           ls_value **out, ls_error *err)
{
    const ls_status st = make_leaf(kind, 0, out, err);

    if (st == LS_OK) {
        (*out)->leaf.object = (lsi_object){ops->retain(self), ops};
    }
    return st;
}

ls_status ls_value_int(int64_t x, ls_value **out, ls_error *err)
{
    const ls_status st = make_leaf(LS_VALUE_INT, 0, out, err);

    if (st == LS_OK) {
        (*out)->leaf.integer = x;
    }
    return st;
}

ls_status ls_value_float(double x, ls_value **out, ls_error *err)
{
    const ls_status st = make_leaf(LS_VALUE_FLOAT, 0, out, err);

    if (st == LS_OK) {
        (*out)->leaf.number = x;
    }
    return st;
}

ls_status ls_value_bool(bool x, ls_value **out, ls_error *err)
{
    const ls_status st = make_leaf(LS_VALUE_BOOL, 0, out, err);

    if (st == LS_OK) {
        (*out)->leaf.truth = x;
    }
    return st;
}

ls_status ls_value_string(ls_string s, ls_value **out, ls_error *err)
{
    if (s.ptr == NULL && s.len > 0) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "string: %zu bytes at NULL", s.len);
    }
    size_t room = 0;
    if (!lsi_add_size(s.len, 1, &room)) {
        return lsi_fail_memory(err, "string", s.len);
    }
    const ls_status st = make_leaf(LS_VALUE_STRING, room, out, err);
    if (st == LS_OK) {
        char *bytes = (char *)((*out)->child);

        if (s.len > 0) {
            memcpy(bytes, s.ptr, s.len); // the closing NUL is there: memory comes zeroed
        }
        (*out)->leaf.string.ptr = bytes;
        (*out)->leaf.string.len = s.len;
    }
    return st;
}

ls_status lsi_value_over(ls_value_kind kind, ls_value *const *children, size_t n,
                         ls_value **out, ls_error *err)
{
    const char *name = ls_value_kind_name(kind);
    ls_value *v = NULL;
    int depth = 0;

    if (out == NULL) {
        return no_place(err, name);
    }
    if (children == NULL && n > 0) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "%s: %zu items at NULL", name, n);
    }
    for (size_t i = 0; i < n; i++) {
        if (children[i] == NULL) {
            return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                 "%s: item %zu of %zu is NULL; ls_value_none() stands "
                                 "for none",
                                 name, i, n);
        }
        depth = LSI_MAX(depth, children[i]->depth);
    }
    if (depth >= LS_VALUE_MAX_DEPTH) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "%s: deeper than %d levels", name, LS_VALUE_MAX_DEPTH);
    }
    const ls_status st = make_value(kind, n, 0, &v, err);
    if (st != LS_OK) {
        return st;
    }
    v->depth = depth + 1;
    for (size_t i = 0; i < n; i++) {
        v->child[i] = ls_value_retain(children[i]);
    }
    *out = v;
    return LS_OK;
}

ls_status ls_value_tuple(ls_value *const *items, size_t n, ls_value **out, ls_error *err)
{
    return lsi_value_over(LS_VALUE_TUPLE, items, n, out, err);
}

ls_status ls_value_list(ls_value *const *items, size_t n, ls_value **out, ls_error *err)
{
    return lsi_value_over(LS_VALUE_LIST, items, n, out, err);
}

/* Components are leaves: a structure of distributed leaves is what regroup makes. */
static ls_status distributed(ls_value_kind kind, ls_value *const *components, size_t n,
                             ls_value **out, ls_error *err)
{
    const char *name = ls_value_kind_name(kind);

    if (n == 0) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "%s: needs at least one component", name);
    }
    for (size_t i = 0; components != NULL && i < n; i++) {
        if (components[i] != NULL && !ls_value_is_leaf(components[i])) {
            return lsi_fail_kind(
                err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                "%s: component %zu is a %s; ls_value_regroup() distributes structures",
                name, i, ls_value_kind_name(components[i]->kind));
        }
    }
    return lsi_value_over(kind, components, n, out, err);
}

ls_status ls_value_per_replica(ls_value *const *components, size_t n, ls_value **out,
                               ls_error *err)
{
    return distributed(LS_VALUE_PER_REPLICA, components, n, out, err);
}

ls_status ls_value_mirrored(ls_value *const *components, size_t n, ls_value **out,
                            ls_error *err)
{
    return distributed(LS_VALUE_MIRRORED, components, n, out, err);
}

ls_value *ls_value_retain(ls_value *v)
{
    if (v != NULL) {
        (void)atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
    }
    return v;
}

void ls_value_release(ls_value *v)
{
    if (v == NULL || atomic_fetch_sub_explicit(&v->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (size_t i = 0; i < v->size; i++) {
        ls_value_release(v->child[i]);
    }
    if (v->kind == LS_VALUE_TENSOR) {
        ls_tensor_release(v->leaf.tensor);
    } else if (lsi_value_is_object(v)) {
        v->leaf.object.ops->release(v->leaf.object.self);
    }
    lsi_free(v->keys);
    lsi_free(v);
}

void lsi_value_release_all(ls_value **values, size_t n)
{
    for (size_t i = 0; values != NULL && i < n; i++) {
        ls_value_release(values[i]);
    }
    lsi_free(values);
}

ls_value_kind ls_value_kind_of(const ls_value *v)
{
    return v == NULL ? LS_VALUE_NONE : v->kind;
}

const char *ls_value_kind_name(ls_value_kind kind)
{
    static const char *const names[] = {
        [LS_VALUE_NONE] = "none",
        [LS_VALUE_TENSOR] = "tensor",
        [LS_VALUE_INT] = "int",
        [LS_VALUE_FLOAT] = "float",
        [LS_VALUE_BOOL] = "bool",
        [LS_VALUE_STRING] = "string",
        [LS_VALUE_TUPLE] = "tuple",
        [LS_VALUE_LIST] = "list",
        [LS_VALUE_NAMED_TUPLE] = "named tuple",
        [LS_VALUE_DICT] = "dict",
        [LS_VALUE_PER_REPLICA] = "PerReplica",
        [LS_VALUE_MIRRORED] = "Mirrored",
        [LS_VALUE_VARIABLE] = "variable",
        [LS_VALUE_DATASET] = "dataset",
    };

    return (size_t)kind < LSI_COUNT_OF(names) ? names[kind] : "?";
}

bool ls_value_is_leaf(const ls_value *v)
{
    return v == NULL || v->kind < LS_VALUE_TUPLE || v->kind > LS_VALUE_DICT;
}

size_t ls_value_size(const ls_value *v)
{
    return v == NULL ? 0 : v->size;
}

ls_value *ls_value_child(const ls_value *v, size_t i)
{
    return v != NULL && i < v->size ? v->child[i] : NULL;
}

ls_tensor *ls_value_as_tensor(const ls_value *v)
{
    return v != NULL && v->kind == LS_VALUE_TENSOR ? v->leaf.tensor : NULL;
}

bool ls_value_as_int(const ls_value *v, int64_t *out)
{
    if (v == NULL || v->kind != LS_VALUE_INT) {
        return false;
    }
    *out = v->leaf.integer;
    return true;
}

bool ls_value_as_float(const ls_value *v, double *out)
{
    if (v == NULL || v->kind != LS_VALUE_FLOAT) {
        return false;
    }
    *out = v->leaf.number;
    return true;
}

bool ls_value_as_bool(const ls_value *v, bool *out)
{
    if (v == NULL || v->kind != LS_VALUE_BOOL) {
        return false;
    }
    *out = v->leaf.truth;
    return true;
}

bool ls_value_as_string(const ls_value *v, ls_string *out)
{
    if (v == NULL || v->kind != LS_VALUE_STRING) {
        return false;
    }
    *out = v->leaf.string;
    return true;
}

static uint64_t bits(double x)
{
    uint64_t word = 0;

    memcpy(&word, &x, sizeof word);
    return word;
}

bool ls_value_same(const ls_value *a, const ls_value *b)
{
    if (a == b) {
        return true;
    }
    if (a == NULL || b == NULL || a->kind != b->kind) {
        return false;
    }
    switch (a->kind) {
    case LS_VALUE_NONE:
        return true;
    case LS_VALUE_TENSOR:
        return a->leaf.tensor == b->leaf.tensor;
    case LS_VALUE_INT:
        return a->leaf.integer == b->leaf.integer;
    case LS_VALUE_FLOAT: // by bits: 0.0 is not -0.0, a NaN is itself
        return bits(a->leaf.number) == bits(b->leaf.number);
    case LS_VALUE_BOOL:
        return a->leaf.truth == b->leaf.truth;
    case LS_VALUE_STRING:
        return a->leaf.string.len == b->leaf.string.len &&
               memcmp(a->leaf.string.ptr, b->leaf.string.ptr, a->leaf.string.len) == 0;
    case LS_VALUE_VARIABLE:
    case LS_VALUE_DATASET:
        return a->leaf.object.self == b->leaf.object.self;
    default:
        return false;
    }
}
