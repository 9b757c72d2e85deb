/* The rules that operators apply to specs, leaves of specs, and specs against values. */
#include "data/data.h"
#include "data/sparse.h"

#include <string.h>

static bool is_leaf(const ls_spec *s)
{
    return s->kind != LS_SPEC_TUPLE && s->kind != LS_SPEC_DICT;
}

static void release_specs(ls_spec **items, size_t n)
{
    for (size_t i = 0; items != NULL && i < n; i++) {
        ls_spec_release(items[i]);
    }
    lsi_free(items);
}

static ls_status spec_like(const ls_spec *s, ls_spec *const *items, ls_spec **out,
                           ls_error *err)
{
    return s->kind == LS_SPEC_DICT
               ? ls_spec_dict((const char *const *)s->keys, items, s->size, out, err)
               : ls_spec_tuple(items, s->size, out, err);
}

ls_status lsi_spec_map(const ls_spec *s, lsi_spec_rule rule, void *user, ls_spec **out,
                       ls_error *err)
{
    ls_spec **items = NULL;
    ls_status st = LS_OK;

    if (is_leaf(s)) {
        return rule(s, user, out, err);
    }
    items = lsi_alloc(LSI_MAX(s->size, 1), sizeof(ls_spec *));
    if (items == NULL) {
        return lsi_fail_memory(err, "a spec", s->size * sizeof(ls_spec *));
    }
    for (size_t i = 0; i < s->size && st == LS_OK; i++) {
        st = lsi_spec_map(s->child[i], rule, user, &items[i], err);
    }
    if (st == LS_OK) {
        st = spec_like(s, items, out, err);
    }
    release_specs(items, s->size);
    return st;
}

/* ---- rules; `n` points to the number of rows, an int64_t ---- */

/* A leaf of the same kind and dtype with another shape. */
static ls_status leaf_with_shape(const ls_spec *s, int ndim, const int64_t *dims,
                                 ls_spec **out, ls_error *err)
{
    return s->kind == LS_SPEC_SPARSE ? ls_spec_sparse(s->dtype, ndim, dims, out, err)
                                     : ls_spec_tensor(s->dtype, ndim, dims, out, err);
}

static ls_status batch_leaf(const ls_spec *s, void *n, ls_spec **out, ls_error *err)
{
    int64_t dims[LS_MAX_DIMS];

    if (s->kind == LS_SPEC_DATASET) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                             "batch: an element that is a dataset (a window) cannot be "
                             "stacked; flat_map it first");
    }
    if (s->ndim < 0) {
        return lsi_spec_is_unknown(s) ? lsi_spec_unknown(out, err)
                                      : leaf_with_shape(s, -1, NULL, out, err);
    }
    if (s->ndim == LS_MAX_DIMS) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "batch: elements have %d axes, which is the limit",
                             LS_MAX_DIMS);
    }
    dims[0] = *(const int64_t *)n;
    memcpy(dims + 1, s->dims, (size_t)s->ndim * sizeof *dims);
    return leaf_with_shape(s, s->ndim + 1, dims, out, err);
}

static ls_status fail_scalar(ls_error *err)
{
    return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                         "a component is a scalar and has no rows: call batch before");
}

static ls_status unbatch_leaf(const ls_spec *s, void *n, ls_spec **out, ls_error *err)
{
    if (s->ndim < 0) {
        return batch_leaf(s, n, out, err);
    }
    return s->ndim == 0 || s->kind == LS_SPEC_DATASET
               ? fail_scalar(err)
               : leaf_with_shape(s, s->ndim - 1, s->dims + 1, out, err);
}

static ls_status rows_leaf(const ls_spec *s, void *n, ls_spec **out, ls_error *err)
{
    int64_t dims[LS_MAX_DIMS];

    if (s->ndim < 0) {
        return batch_leaf(s, n, out, err);
    }
    if (s->ndim == 0 || s->kind == LS_SPEC_DATASET) {
        return fail_scalar(err);
    }
    memcpy(dims, s->dims, sizeof dims);
    dims[0] = *(const int64_t *)n;
    return leaf_with_shape(s, s->ndim, dims, out, err);
}

static ls_status divide_leaf(const ls_spec *s, void *n, ls_spec **out, ls_error *err)
{
    const int64_t rows = ls_spec_dim(s, 0), by = *(const int64_t *)n;
    int64_t each = rows > 0 && rows % by == 0 ? rows / by : -1;

    return rows_leaf(s, &each, out, err);
}

ls_status lsi_spec_batch(const ls_spec *s, int64_t n, ls_spec **out, ls_error *err)
{
    return lsi_spec_map(s, batch_leaf, &n, out, err);
}

ls_status lsi_spec_unbatch(const ls_spec *s, ls_spec **out, ls_error *err)
{
    int64_t unknown = -1;

    return lsi_spec_map(s, unbatch_leaf, &unknown, out, err);
}

ls_status lsi_spec_with_rows(const ls_spec *s, int64_t n, ls_spec **out, ls_error *err)
{
    return lsi_spec_map(s, rows_leaf, &n, out, err);
}

ls_status lsi_spec_divide_rows(const ls_spec *s, int64_t n, ls_spec **out, ls_error *err)
{
    return lsi_spec_map(s, divide_leaf, &n, out, err);
}

static ls_status fail_different(const ls_spec *a, const ls_spec *b, ls_error *err)
{
    char one[200], other[200];

    (void)ls_spec_text(a, one, sizeof one);
    (void)ls_spec_text(b, other, sizeof other);
    return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                         "elements of %s and of %s cannot be combined", one, other);
}

static ls_status common_leaf(const ls_spec *a, const ls_spec *b, ls_spec **out,
                             ls_error *err)
{
    int64_t dims[LS_MAX_DIMS];

    if (a->kind != b->kind || a->dtype != b->dtype) {
        return fail_different(a, b, err);
    }
    if (a->ndim < 0 || a->ndim != b->ndim) {
        return leaf_with_shape(a, -1, NULL, out, err);
    }
    for (int i = 0; i < a->ndim; i++) {
        dims[i] = a->dims[i] == b->dims[i] ? a->dims[i] : -1;
    }
    return leaf_with_shape(a, a->ndim, dims, out, err);
}

static bool same_structure(const ls_spec *a, const ls_spec *b)
{
    bool same = a->kind == b->kind && a->size == b->size;

    for (size_t i = 0; same && a->keys != NULL && i < a->size; i++) {
        same = strcmp(a->keys[i], b->keys[i]) == 0;
    }
    return same;
}

ls_status lsi_spec_common(const ls_spec *a, const ls_spec *b, ls_spec **out,
                          ls_error *err)
{
    ls_spec **items = NULL;
    ls_status st = LS_OK;

    if (lsi_spec_is_unknown(a) || lsi_spec_is_unknown(b)) {
        return lsi_spec_unknown(out, err);
    }
    if (is_leaf(a) && a->kind != LS_SPEC_DATASET) {
        return common_leaf(a, b, out, err);
    }
    if (!same_structure(a, b)) {
        return fail_different(a, b, err);
    }
    items = lsi_alloc(LSI_MAX(a->size, 1), sizeof(ls_spec *));
    if (items == NULL) {
        return lsi_fail_memory(err, "a spec", a->size * sizeof(ls_spec *));
    }
    for (size_t i = 0; i < a->size && st == LS_OK; i++) {
        st = lsi_spec_common(a->child[i], b->child[i], &items[i], err);
    }
    if (st == LS_OK) {
        st = a->kind == LS_SPEC_DATASET ? ls_spec_dataset(items[0], out, err)
                                        : spec_like(a, items, out, err);
    }
    release_specs(items, a->size);
    return st;
}

/* ---- leaves ---- */

size_t lsi_spec_leaves(const ls_spec *s)
{
    size_t n = 0;

    if (is_leaf(s)) {
        return 1;
    }
    for (size_t i = 0; i < s->size; i++) {
        n += lsi_spec_leaves(s->child[i]);
    }
    return n;
}

const ls_spec *lsi_spec_leaf(const ls_spec *s, size_t i)
{
    if (is_leaf(s)) {
        return i == 0 ? s : NULL;
    }
    for (size_t k = 0; k < s->size; k++) {
        const size_t n = lsi_spec_leaves(s->child[k]);

        if (i < n) {
            return lsi_spec_leaf(s->child[k], i);
        }
        i -= n;
    }
    return NULL;
}

int64_t lsi_spec_rows(const ls_spec *s)
{
    const size_t n = lsi_spec_leaves(s);
    int64_t rows = -1;

    for (size_t i = 0; i < n; i++) {
        const int64_t dim = ls_spec_dim(lsi_spec_leaf(s, i), 0);

        if (dim < 0 || (i > 0 && dim != rows)) {
            return -1;
        }
        rows = dim;
    }
    return rows;
}

/* ---- specs and values ---- */

static ls_status spec_of_tensor(const ls_tensor *t, ls_spec **out, ls_error *err)
{
    const ls_shape shape = ls_tensor_shape(t);

    return ls_spec_tensor(ls_tensor_dtype(t), shape.ndim, shape.dims, out, err);
}

static ls_status spec_of_sparse(const ls_value *v, ls_spec **out, ls_error *err)
{
    int64_t dims[LS_MAX_DIMS];
    const ls_tensor *shape = ls_value_as_tensor(ls_value_find(v, "dense_shape"));
    const int64_t rank = ls_tensor_count(shape);

    for (int i = 0; i < LS_MAX_DIMS; i++) {
        dims[i] = -1; // sizes may differ between elements
    }
    return ls_spec_sparse(ls_tensor_dtype(ls_value_as_tensor(ls_value_find(v, "values"))),
                          rank <= LS_MAX_DIMS ? (int)rank : -1, dims, out, err);
}

static ls_status spec_of_items(const ls_value *v, ls_spec **out, ls_error *err)
{
    const size_t n = ls_value_size(v);
    ls_spec **items = lsi_alloc(LSI_MAX(n, 1), sizeof(ls_spec *));
    const char **keys = lsi_alloc(LSI_MAX(n, 1), sizeof(char *));
    ls_status st = LS_OK;

    if (items == NULL || keys == NULL) {
        lsi_free(items);
        lsi_free(keys);
        return lsi_fail_memory(err, "a spec", n * sizeof(ls_spec *));
    }
    for (size_t i = 0; i < n && st == LS_OK; i++) {
        keys[i] = ls_value_key(v, i);
        st = lsi_spec_of(ls_value_child(v, i), &items[i], err);
    }
    if (st == LS_OK) {
        st = ls_value_kind_of(v) == LS_VALUE_DICT ? ls_spec_dict(keys, items, n, out, err)
                                                  : ls_spec_tuple(items, n, out, err);
    }
    release_specs(items, n);
    lsi_free(keys);
    return st;
}

ls_status lsi_spec_of(const ls_value *v, ls_spec **out, ls_error *err)
{
    const ls_dataset *d = ls_value_as_dataset(v);

    if (lsi_value_is_sparse(v)) {
        return spec_of_sparse(v, out, err);
    }
    switch (ls_value_kind_of(v)) {
    case LS_VALUE_TENSOR:
        return spec_of_tensor(ls_value_as_tensor(v), out, err);
    case LS_VALUE_TUPLE:
    case LS_VALUE_LIST:
    case LS_VALUE_NAMED_TUPLE:
    case LS_VALUE_DICT:
        return spec_of_items(v, out, err);
    case LS_VALUE_DATASET:
        if (!lsi_dataset_bad(d)) {
            return ls_spec_dataset(d->spec, out, err);
        }
        return ls_dataset_status(d, err);
    default:
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                             "a %s cannot be part of an element: elements are tensors, "
                             "or tuples and dicts of them",
                             ls_value_kind_name(ls_value_kind_of(v)));
    }
}

static bool fits_tensor(const ls_spec *s, const ls_tensor *t)
{
    bool fits = s->dtype == ls_tensor_dtype(t);

    if (s->ndim < 0 || !fits) {
        return fits;
    }
    fits = s->ndim == ls_tensor_ndim(t);
    for (int i = 0; fits && i < s->ndim; i++) {
        fits = s->dims[i] < 0 || s->dims[i] == ls_tensor_dim(t, i);
    }
    return fits;
}

static bool fits_sparse(const ls_spec *s, const ls_value *v)
{
    return lsi_value_is_sparse(v) &&
           ls_tensor_dtype(ls_value_as_tensor(ls_value_find(v, "values"))) == s->dtype;
}

static bool fits_spec(const ls_spec *s, const ls_value *v)
{
    const ls_value_kind kind = ls_value_kind_of(v);
    const ls_tensor *t = ls_value_as_tensor(v);
    bool ok = true;

    if (lsi_spec_is_unknown(s)) {
        return v != NULL;
    }
    switch (s->kind) {
    case LS_SPEC_TENSOR:
        return t != NULL && fits_tensor(s, t);
    case LS_SPEC_SPARSE:
        return fits_sparse(s, v);
    case LS_SPEC_DATASET:
        return kind == LS_VALUE_DATASET;
    case LS_SPEC_TUPLE:
        ok = (kind == LS_VALUE_TUPLE || kind == LS_VALUE_LIST ||
              kind == LS_VALUE_NAMED_TUPLE) &&
             ls_value_size(v) == s->size;
        for (size_t i = 0; ok && i < s->size; i++) {
            ok = fits_spec(s->child[i], ls_value_child(v, i));
        }
        return ok;
    case LS_SPEC_DICT:
        ok = kind == LS_VALUE_DICT && ls_value_size(v) == s->size;
        for (size_t i = 0; ok && i < s->size; i++) {
            const ls_value *item = ls_value_find(v, s->keys[i]);

            ok = item != NULL && fits_spec(s->child[i], item);
        }
        return ok;
    }
    return false;
}

static ls_status fail_misfit(const ls_spec *s, const ls_value *v, ls_error *err)
{
    char want[200], have[200];
    ls_spec *is = NULL;
    const ls_status st = lsi_spec_of(v, &is, err);

    if (st != LS_OK) {
        return st;
    }
    (void)ls_spec_text(s, want, sizeof want);
    (void)ls_spec_text(is, have, sizeof have);
    ls_spec_release(is);
    return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                         "an element of %s was declared, this one is %s", want, have);
}

ls_status lsi_spec_check(const ls_spec *s, const ls_value *v, ls_error *err)
{
    return fits_spec(s, v) ? LS_OK : fail_misfit(s, v, err);
}

/* Appends the leaves of `v`; false: its structure differs from the spec's. */
static bool collect_leaves(const ls_spec *s, const ls_value *v, const ls_value ***at)
{
    bool ok = v != NULL;

    if (ok && is_leaf(s)) {
        *(*at)++ = v;
        return true;
    }
    ok = ok && !ls_value_is_leaf(v) && ls_value_size(v) == s->size;
    for (size_t i = 0; ok && i < s->size; i++) {
        const ls_value *item =
            s->keys != NULL ? ls_value_find(v, s->keys[i]) : ls_value_child(v, i);

        ok = collect_leaves(s->child[i], item, at);
    }
    return ok;
}

ls_status lsi_spec_flatten(const ls_spec *s, const ls_value *v, const ls_value **leaves,
                           ls_error *err)
{
    return collect_leaves(s, v, &leaves) ? LS_OK : fail_misfit(s, v, err);
}

static ls_status pack_leaves(const ls_spec *s, ls_value *const **at, ls_value **out,
                             ls_error *err)
{
    ls_value **items = NULL;
    ls_status st = LS_OK;

    if (is_leaf(s)) {
        *out = ls_value_retain(*(*at)++);
        return LS_OK;
    }
    items = lsi_alloc(LSI_MAX(s->size, 1), sizeof(ls_value *));
    if (items == NULL) {
        return lsi_fail_memory(err, "an element", s->size * sizeof(ls_value *));
    }
    for (size_t i = 0; i < s->size && st == LS_OK; i++) {
        st = pack_leaves(s->child[i], at, &items[i], err);
    }
    if (st == LS_OK) {
        st = s->kind == LS_SPEC_DICT
                 ? ls_value_dict((const char *const *)s->keys, items, s->size, out, err)
                 : ls_value_tuple(items, s->size, out, err);
    }
    lsi_value_release_all(items, s->size);
    return st;
}

ls_status lsi_spec_pack(const ls_spec *s, ls_value *const *leaves, ls_value **out,
                        ls_error *err)
{
    return pack_leaves(s, &leaves, out, err);
}
