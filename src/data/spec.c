/* Specs of elements: dtypes, shapes with unknown sizes, tuples and dicts; as text. */
#include "data/spec.h"

#include <stdio.h>
#include <string.h>

/* A spec with room for `n` children; NULL: out of memory, and `err` says so. */
static ls_spec *new_spec(ls_spec_kind kind, size_t n, ls_error *err)
{
    size_t bytes = 0;
    ls_spec *s = NULL;

    if (!lsi_mul_size(n, sizeof(ls_spec *), &bytes) ||
        !lsi_add_size(bytes, sizeof(ls_spec), &bytes) ||
        (s = lsi_alloc(1, bytes)) == NULL) {
        (void)lsi_fail_memory(err, "a spec", bytes);
        return NULL;
    }
    atomic_init(&s->refs, 1);
    s->kind = kind;
    s->size = n;
    s->depth = 1;
    return s;
}

static ls_status make_leaf(ls_spec_kind kind, ls_dtype dtype, int ndim,
                           const int64_t *dims, ls_spec **out, ls_error *err)
{
    ls_spec *s = new_spec(kind, 0, err);

    if (s == NULL) {
        return LS_RESOURCE_EXHAUSTED;
    }
    s->dtype = dtype;
    s->ndim = ndim;
    for (int i = 0; i < ndim; i++) {
        s->dims[i] = dims[i];
    }
    *out = s;
    return LS_OK;
}

static ls_status build_leaf(ls_spec_kind kind, ls_dtype dtype, int ndim,
                            const int64_t *dims, ls_spec **out, ls_error *err)
{
    if (out == NULL || (ndim > 0 && dims == NULL)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "spec: `%s` is NULL", out == NULL ? "out" : "dims");
    }
    if (ls_dtype_size(dtype) == 0) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                             "spec: %d is not a dtype", (int)dtype);
    }
    if (ndim < -1 || ndim > LS_MAX_DIMS) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "spec: %d axes; there are 0 to %d, or -1 for unknown", ndim,
                             LS_MAX_DIMS);
    }
    for (int i = 0; i < ndim; i++) {
        if (dims[i] < -1) {
            return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                 "spec: axis %d of size %lld; sizes are 0 or more, or -1 "
                                 "for unknown",
                                 i, (long long)dims[i]);
        }
    }
    return make_leaf(kind, dtype, ndim, dims, out, err);
}

ls_status ls_spec_tensor(ls_dtype dtype, int ndim, const int64_t *dims, ls_spec **out,
                         ls_error *err)
{
    return build_leaf(LS_SPEC_TENSOR, dtype, ndim, dims, out, err);
}

ls_status ls_spec_sparse(ls_dtype dtype, int ndim, const int64_t *dims, ls_spec **out,
                         ls_error *err)
{
    return build_leaf(LS_SPEC_SPARSE, dtype, ndim, dims, out, err);
}

ls_status lsi_spec_unknown(ls_spec **out, ls_error *err)
{
    return make_leaf(LS_SPEC_TENSOR, (ls_dtype)0, -1, NULL, out, err);
}

bool lsi_spec_is_unknown(const ls_spec *s)
{
    return s->kind == LS_SPEC_TENSOR && s->dtype == (ls_dtype)0;
}

/* A tuple or dict over children, which are retained; NULL: failed, with *st and `err`. */
static ls_spec *spec_over(ls_spec_kind kind, ls_spec *const *items, size_t n,
                          ls_status *st, ls_error *err)
{
    ls_spec *s = NULL;

    *st = LS_INVALID_ARGUMENT;
    if (items == NULL && n > 0) {
        (void)lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                            "spec: `items` is NULL");
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        if (items[i] == NULL) {
            (void)lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                "spec: item %zu of %zu is NULL", i, n);
            return NULL;
        }
        if (items[i]->depth >= LS_DATASET_MAX_DEPTH) {
            (void)lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                "spec: item %zu of %zu is nested %d deep, which is the "
                                "limit",
                                i, n, items[i]->depth);
            return NULL;
        }
    }
    s = new_spec(kind, n, err);
    *st = s != NULL ? LS_OK : LS_RESOURCE_EXHAUSTED;
    for (size_t i = 0; s != NULL && i < n; i++) {
        s->child[i] = ls_spec_retain(items[i]);
        s->depth = LSI_MAX(s->depth, 1 + items[i]->depth);
    }
    return s;
}

/* Stores a spec in *out, or releases it and fails. */
static ls_status give_spec(ls_spec *s, ls_status st, ls_spec **out, ls_error *err)
{
    if (st == LS_OK && out != NULL) {
        *out = s;
        return LS_OK;
    }
    ls_spec_release(s);
    return st != LS_OK ? st
                       : lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                       "spec: `out` is NULL");
}

ls_status ls_spec_dataset(ls_spec *element, ls_spec **out, ls_error *err)
{
    ls_status st = LS_OK;
    ls_spec *s = spec_over(LS_SPEC_DATASET, &element, 1, &st, err);

    return give_spec(s, st, out, err);
}

ls_status ls_spec_tuple(ls_spec *const *items, size_t n, ls_spec **out, ls_error *err)
{
    ls_status st = LS_OK;
    ls_spec *s = spec_over(LS_SPEC_TUPLE, items, n, &st, err);

    return give_spec(s, st, out, err);
}

/* Moves item i to its place among the items before it, which are sorted by key. */
static ls_status insert_key(ls_spec *s, size_t i, ls_error *err)
{
    for (size_t at = i; at > 0; at--) {
        char *key = s->keys[at];
        ls_spec *child = s->child[at];
        const int order = strcmp(s->keys[at - 1], key);

        if (order == 0) {
            return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                 "spec: the key '%.200s' occurs twice", key);
        }
        if (order < 0) {
            break;
        }
        s->keys[at] = s->keys[at - 1];
        s->child[at] = s->child[at - 1];
        s->keys[at - 1] = key;
        s->child[at - 1] = child;
    }
    return LS_OK;
}

static ls_status add_key(ls_spec *s, const char *const *keys, size_t i, ls_error *err)
{
    if (keys == NULL || keys[i] == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "spec: the key of item %zu of %zu is NULL", i, s->size);
    }
    s->keys[i] = lsi_strdup(keys[i]);
    if (s->keys[i] == NULL) {
        return lsi_fail_memory(err, "a key of a spec", strlen(keys[i]));
    }
    return insert_key(s, i, err);
}

ls_status ls_spec_dict(const char *const *keys, ls_spec *const *items, size_t n,
                       ls_spec **out, ls_error *err)
{
    ls_status st = LS_OK;
    ls_spec *s = spec_over(LS_SPEC_DICT, items, n, &st, err);

    if (s == NULL) {
        return st;
    }
    s->keys = lsi_alloc(LSI_MAX(n, 1), sizeof(char *));
    if (s->keys == NULL) {
        st = lsi_fail_memory(err, "the keys of a spec", n * sizeof(char *));
    }
    for (size_t i = 0; s->keys != NULL && i < n && st == LS_OK; i++) {
        st = add_key(s, keys, i, err);
    }
    return give_spec(s, st, out, err);
}

ls_spec *ls_spec_retain(ls_spec *s)
{
    if (s != NULL) {
        (void)atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    }
    return s;
}

void ls_spec_release(ls_spec *s)
{
    if (s == NULL || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (size_t i = 0; i < s->size; i++) {
        ls_spec_release(s->child[i]);
        if (s->keys != NULL) {
            lsi_free(s->keys[i]);
        }
    }
    lsi_free(s->keys);
    lsi_free(s);
}

ls_spec_kind ls_spec_kind_of(const ls_spec *s)
{
    return s != NULL ? s->kind : LS_SPEC_TUPLE;
}

ls_dtype ls_spec_dtype(const ls_spec *s)
{
    return s != NULL ? s->dtype : (ls_dtype)0;
}

int ls_spec_ndim(const ls_spec *s)
{
    return s != NULL ? s->ndim : -1;
}

int64_t ls_spec_dim(const ls_spec *s, int axis)
{
    return s != NULL && axis >= 0 && axis < s->ndim ? s->dims[axis] : -1;
}

size_t ls_spec_size(const ls_spec *s)
{
    return s != NULL ? s->size : 0;
}

ls_spec *ls_spec_child(const ls_spec *s, size_t i)
{
    return s != NULL && i < s->size ? s->child[i] : NULL;
}

const char *ls_spec_key(const ls_spec *s, size_t i)
{
    return s != NULL && s->keys != NULL && i < s->size ? s->keys[i] : NULL;
}

bool ls_spec_equal(const ls_spec *a, const ls_spec *b)
{
    if (a == b) {
        return true;
    }
    if (a == NULL || b == NULL || a->kind != b->kind || a->dtype != b->dtype ||
        a->ndim != b->ndim || a->size != b->size) {
        return false;
    }
    for (int i = 0; i < a->ndim; i++) {
        if (a->dims[i] != b->dims[i]) {
            return false;
        }
    }
    for (size_t i = 0; i < a->size; i++) {
        if ((a->keys != NULL && strcmp(a->keys[i], b->keys[i]) != 0) ||
            !ls_spec_equal(a->child[i], b->child[i])) {
            return false;
        }
    }
    return true;
}

/* ---- printing ---- */

struct text {
    char *buf;
    size_t size, length;
};

static void put_text(struct text *t, const char *s)
{
    const size_t n = strlen(s);

    for (size_t i = 0; i < n; i++) {
        if (t->length + i + 1 < t->size) {
            t->buf[t->length + i] = s[i];
            t->buf[t->length + i + 1] = '\0';
        }
    }
    t->length += n;
}

static void put_shape(struct text *t, const ls_spec *s)
{
    char number[32];

    if (s->ndim < 0) {
        put_text(t, " <unknown>");
        return;
    }
    put_text(t, " (");
    for (int i = 0; i < s->ndim; i++) {
        (void)snprintf(number, sizeof number, "%lld", (long long)s->dims[i]);
        put_text(t, i > 0 ? ", " : "");
        put_text(t, s->dims[i] < 0 ? "None" : number);
    }
    put_text(t, s->ndim == 1 ? ",)" : ")");
}

static void put_spec(struct text *t, const ls_spec *s)
{
    switch (s->kind) {
    case LS_SPEC_TENSOR:
    case LS_SPEC_SPARSE:
        put_text(t, s->kind == LS_SPEC_SPARSE ? "sparse " : "");
        put_text(t, lsi_spec_is_unknown(s) ? "any" : ls_dtype_name(s->dtype));
        put_shape(t, s);
        return;
    case LS_SPEC_DATASET:
        put_text(t, "dataset of ");
        put_spec(t, s->child[0]);
        return;
    case LS_SPEC_TUPLE:
    case LS_SPEC_DICT:
        break;
    }
    put_text(t, s->kind == LS_SPEC_TUPLE ? "(" : "{");
    for (size_t i = 0; i < s->size; i++) {
        put_text(t, i > 0 ? ", " : "");
        if (s->keys != NULL) {
            put_text(t, "'");
            put_text(t, s->keys[i]);
            put_text(t, "': ");
        }
        put_spec(t, s->child[i]);
    }
    put_text(t, s->kind == LS_SPEC_DICT ? "}" : s->size == 1 ? ",)" : ")");
}

size_t ls_spec_text(const ls_spec *s, char *buf, size_t size)
{
    struct text t = {buf, buf != NULL ? size : 0, 0};

    if (t.size > 0) {
        buf[0] = '\0';
    }
    if (s == NULL) {
        put_text(&t, "none");
    } else {
        put_spec(&t, s);
    }
    return t.length;
}
