/* Empty batches for replicas without data, and specs with an unknown number of rows. */
#include "input/input.h"

#include "data/sparse.h"

/* The spec with the structure of `s` and other children, which are borrowed. */
static ls_status same_structure(const ls_spec *s, ls_spec *const *children, ls_spec **out,
                                ls_error *err)
{
    return s->kind == LS_SPEC_TUPLE
               ? ls_spec_tuple(children, s->size, out, err)
               : ls_spec_dict((const char *const *)s->keys, children, s->size, out, err);
}

static ls_status open_children(const ls_spec *s, ls_spec **out, ls_error *err)
{
    ls_spec **made = lsi_alloc(LSI_MAX(s->size, 1), sizeof(ls_spec *));
    ls_status st = LS_OK;

    if (made == NULL) {
        return lsi_fail_memory(err, "a spec", s->size * sizeof(ls_spec *));
    }
    for (size_t i = 0; i < s->size && st == LS_OK; i++) {
        st = lsi_spec_open_rows(s->child[i], &made[i], err);
    }
    if (st == LS_OK) {
        st = same_structure(s, made, out, err);
    }
    for (size_t i = 0; i < s->size; i++) {
        ls_spec_release(made[i]);
    }
    lsi_free(made);
    return st;
}

ls_status lsi_spec_open_rows(const ls_spec *s, ls_spec **out, ls_error *err)
{
    int64_t dims[LS_MAX_DIMS] = {-1};

    if (s->kind == LS_SPEC_TUPLE || s->kind == LS_SPEC_DICT) {
        return open_children(s, out, err);
    }
    if (s->kind == LS_SPEC_DATASET || s->ndim < 1) {
        *out = ls_spec_retain((ls_spec *)s);
        return LS_OK;
    }
    for (int i = 1; i < s->ndim; i++) {
        dims[i] = s->dims[i];
    }
    return s->kind == LS_SPEC_SPARSE ? ls_spec_sparse(s->dtype, s->ndim, dims, out, err)
                                     : ls_spec_tensor(s->dtype, s->ndim, dims, out, err);
}

bool lsi_spec_is_static(const ls_spec *s)
{
    for (size_t i = 0; i < lsi_spec_leaves(s); i++) {
        const ls_spec *leaf = lsi_spec_leaf(s, i);
        const int known = leaf->kind == LS_SPEC_SPARSE ? 1 : leaf->ndim;

        if (leaf->kind == LS_SPEC_DATASET || leaf->ndim < 0) {
            return false;
        }
        for (int a = 0; a < LSI_MIN(known, leaf->ndim); a++) {
            if (leaf->dims[a] < 0) {
                return false;
            }
        }
    }
    return true;
}

bool lsi_spec_is_open(const ls_spec *s)
{
    for (size_t i = 0; i < lsi_spec_leaves(s); i++) {
        if (lsi_spec_is_unknown(lsi_spec_leaf(s, i))) {
            return true;
        }
    }
    return false;
}

static ls_status empty_tensor(ls_dtype dtype, const ls_shape *shape, ls_device *device,
                              ls_value **out, ls_error *err)
{
    ls_tensor *t = NULL;
    ls_status st = ls_tensor_create(device, dtype, *shape, NULL, &t, err);

    if (st == LS_OK) {
        st = ls_value_tensor(t, out, err);
        ls_tensor_release(t);
    }
    return st;
}

/* Unknown dims become 0; if all are known, dim 0, the number of rows, becomes 0. */
static ls_shape empty_shape(const ls_spec *s)
{
    ls_shape shape = {LSI_MAX(s->ndim, 0), {0}};
    bool known = true;

    if (s->ndim < 0) {
        shape.ndim = 1;
        return shape;
    }
    for (int i = 0; i < s->ndim; i++) {
        known = known && s->dims[i] >= 0;
        shape.dims[i] = LSI_MAX(s->dims[i], 0);
    }
    if (known && s->ndim > 0) {
        shape.dims[0] = 0;
    }
    return shape;
}

/* A sparse value without entries, of the right rank. */
static ls_status empty_sparse(const ls_spec *s, ls_device *device, ls_value **out,
                              ls_error *err)
{
    const ls_shape dense = empty_shape(s);
    const ls_shape none = LS_SHAPE(0), pairs = LS_SHAPE(0, dense.ndim);
    const ls_shape rank = LS_SHAPE(dense.ndim);
    ls_tensor *indices = NULL, *values = NULL, *sizes = NULL;
    ls_status st = ls_tensor_create(device, LS_I64, pairs, NULL, &indices, err);

    if (st == LS_OK) {
        st = ls_tensor_create(device, s->dtype, none, NULL, &values, err);
    }
    if (st == LS_OK) {
        st = ls_tensor_create(device, LS_I64, rank, dense.dims, &sizes, err);
    }
    if (st == LS_OK) {
        st = lsi_sparse_value(indices, values, sizes, out, err);
    }
    ls_tensor_release(indices);
    ls_tensor_release(values);
    ls_tensor_release(sizes);
    return st;
}

static ls_status empty_structure(const ls_spec *s, ls_device *device, ls_value **out,
                                 ls_error *err)
{
    ls_value **made = lsi_alloc(LSI_MAX(s->size, 1), sizeof(ls_value *));
    ls_status st = LS_OK;

    if (made == NULL) {
        return lsi_fail_memory(err, "an empty batch", s->size * sizeof(ls_value *));
    }
    for (size_t i = 0; i < s->size && st == LS_OK; i++) {
        st = lsi_empty_value(s->child[i], device, &made[i], err);
    }
    if (st == LS_OK) {
        st = s->kind == LS_SPEC_TUPLE
                 ? ls_value_tuple(made, s->size, out, err)
                 : ls_value_dict((const char *const *)s->keys, made, s->size, out, err);
    }
    lsi_value_release_all(made, s->size);
    return st;
}

ls_status lsi_empty_value(const ls_spec *s, ls_device *device, ls_value **out,
                          ls_error *err)
{
    const ls_shape shape = empty_shape(s);

    switch (s->kind) {
    case LS_SPEC_TENSOR:
        return empty_tensor(s->dtype, &shape, device, out, err);
    case LS_SPEC_SPARSE:
        return empty_sparse(s, device, out, err);
    case LS_SPEC_DATASET:
        break;
    case LS_SPEC_TUPLE:
    case LS_SPEC_DICT:
        return empty_structure(s, device, out, err);
    }
    return lsi_fail(err, LS_UNIMPLEMENTED, -1,
                    "distribute: a replica has no data, and a window has no empty batch; "
                    "every replica must have the same number of windows");
}
