/*
 * Structures whose items have names: dicts and named tuples. Names are copied into one
 * block, in the order given, with an index sorted by bytes beside it; bytes of UTF-8 sort
 * as Python sorts the strings, which is the order TensorFlow flattens a dict in.
 */
#include "value/value.h"

#include <string.h>

/* Sorts the n indices at `order` by their names; merges through `spare`, n more. */
static void sort_names(const char *const *name, size_t *order, size_t *spare, size_t n)
{
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t at = 0; at < n; at += 2 * width) {
            const size_t mid = LSI_MIN(at + width, n), end = LSI_MIN(at + 2 * width, n);
            size_t a = at, b = mid;

            for (size_t to = at; to < end; to++) {
                const bool left =
                    b == end || (a < mid && strcmp(name[order[a]], name[order[b]]) <= 0);
                spare[to] = left ? order[a++] : order[b++];
            }
        }
        memcpy(order, spare, n * sizeof *order);
    }
}

/* Bytes of the block that holds all names; false: too many to count. */
static bool block_size(const char *type, const char *const *names, size_t n, size_t *out)
{
    // per name an index, its spare and a pointer; all are as wide as a size_t
    size_t bytes = 0;

    if (!lsi_mul_size(n, 3 * sizeof(size_t), &bytes) ||
        !lsi_add_size(bytes, sizeof(lsi_keys), &bytes) ||
        (type != NULL && !lsi_add_size(bytes, strlen(type) + 1, &bytes))) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!lsi_add_size(bytes, strlen(names[i]) + 1, &bytes)) {
            return false;
        }
    }
    *out = bytes;
    return true;
}

static char *keep(char **end, const char *s)
{
    char *at = *end;
    const size_t bytes = strlen(s) + 1;

    memcpy(at, s, bytes);
    *end = at + bytes;
    return at;
}

/* A block with copies of the names; NULL: out of memory. */
static lsi_keys *copy_names(const char *type, const char *const *names, size_t n,
                            size_t bytes)
{
    lsi_keys *keys = lsi_alloc(1, bytes);

    if (keys == NULL) {
        return NULL;
    }
    keys->sorted = (size_t *)(keys + 1);
    keys->name = (const char **)(keys->sorted + 2 * n);
    char *end = (char *)(keys->name + n);
    if (type != NULL) {
        keys->type = keep(&end, type);
    }
    for (size_t i = 0; i < n; i++) {
        keys->name[i] = keep(&end, names[i]);
        keys->sorted[i] = i;
    }
    sort_names(keys->name, keys->sorted, keys->sorted + n, n);
    return keys;
}

static ls_status named(ls_value_kind kind, const char *type, const char *const *names,
                       ls_value *const *items, size_t n, ls_value **out, ls_error *err)
{
    const char *what = ls_value_kind_name(kind);
    lsi_keys *keys = NULL;
    ls_value *v = NULL;
    size_t bytes = 0;

    if (out == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE, "%s: out is NULL",
                             what);
    }
    for (size_t i = 0; i < n; i++) {
        if (names == NULL || names[i] == NULL) {
            return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                 "%s: the name of item %zu of %zu is NULL", what, i, n);
        }
    }
    if (!block_size(type, names, n, &bytes) ||
        (keys = copy_names(type, names, n, bytes)) == NULL) {
        return lsi_fail_memory(err, what, bytes);
    }
    for (size_t i = 1; i < n; i++) {
        const char *name = keys->name[keys->sorted[i]];

        if (strcmp(keys->name[keys->sorted[i - 1]], name) == 0) {
            const ls_status st =
                lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                              "%s: the name '%.200s' is there twice", what, name);
            lsi_free(keys);
            return st;
        }
    }
    const ls_status st = lsi_value_over(kind, items, n, &v, err);
    if (st != LS_OK) {
        lsi_free(keys);
        return st;
    }
    v->keys = keys;
    *out = v;
    return LS_OK;
}

ls_status ls_value_named_tuple(const char *type, const char *const *fields,
                               ls_value *const *items, size_t n, ls_value **out,
                               ls_error *err)
{
    if (type == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "named tuple: the name of its type is NULL");
    }
    return named(LS_VALUE_NAMED_TUPLE, type, fields, items, n, out, err);
}

ls_status ls_value_dict(const char *const *keys, ls_value *const *items, size_t n,
                        ls_value **out, ls_error *err)
{
    return named(LS_VALUE_DICT, NULL, keys, items, n, out, err);
}

ls_status lsi_value_like(const ls_value *like, ls_value *const *children, ls_value **out,
                         ls_error *err)
{
    return like->keys != NULL
               ? named(like->kind, like->keys->type, like->keys->name, children,
                       like->size, out, err)
               : lsi_value_over(like->kind, children, like->size, out, err);
}

ptrdiff_t lsi_value_index(const ls_value *v, const char *name)
{
    size_t lo = 0, hi = v->keys == NULL ? 0 : v->size;

    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2, i = v->keys->sorted[mid];
        const int order = strcmp(name, v->keys->name[i]);

        if (order == 0) {
            return (ptrdiff_t)i;
        }
        if (order < 0) {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    return -1;
}

const char *ls_value_key(const ls_value *v, size_t i)
{
    return v != NULL && v->keys != NULL && i < v->size ? v->keys->name[i] : NULL;
}

ls_value *ls_value_find(const ls_value *v, const char *key)
{
    const ptrdiff_t i = v == NULL || key == NULL ? -1 : lsi_value_index(v, key);

    return i < 0 ? NULL : v->child[i];
}

const char *ls_value_type_name(const ls_value *v)
{
    return v != NULL && v->keys != NULL ? v->keys->type : NULL;
}
