/* Sparse values: built, stacked and cut into rows. */
#include "data/sparse.h"

#include <string.h>

/* The parts of a sparse value, borrowed. */
struct parts {
    const ls_tensor *indices, *values, *shape;
    int64_t n, rank; // entries, axes
};

static struct parts parts_of(const ls_value *v)
{
    struct parts p = {ls_value_as_tensor(ls_value_find(v, "indices")),
                      ls_value_as_tensor(ls_value_find(v, "values")),
                      ls_value_as_tensor(ls_value_find(v, "dense_shape")), 0, 0};

    p.n = ls_tensor_dim(p.values, 0);
    p.rank = ls_tensor_count(p.shape);
    return p;
}

static bool is_int64(const ls_tensor *t, int ndim)
{
    return t != NULL && ls_tensor_dtype(t) == LS_I64 && ls_tensor_ndim(t) == ndim &&
           ls_tensor_data(t) != NULL;
}

bool lsi_value_is_sparse(const ls_value *v)
{
    const char *type = ls_value_type_name(v);
    const ls_tensor *indices, *values, *shape;

    if (type == NULL || strcmp(type, "SparseTensor") != 0 || ls_value_size(v) != 3) {
        return false;
    }
    indices = ls_value_as_tensor(ls_value_find(v, "indices"));
    values = ls_value_as_tensor(ls_value_find(v, "values"));
    shape = ls_value_as_tensor(ls_value_find(v, "dense_shape"));
    return is_int64(indices, 2) && is_int64(shape, 1) && values != NULL &&
           ls_tensor_ndim(values) == 1 &&
           ls_tensor_dim(values, 0) == ls_tensor_dim(indices, 0) &&
           ls_tensor_dim(indices, 1) == ls_tensor_dim(shape, 0) &&
           ls_tensor_dim(shape, 0) <= LS_MAX_DIMS && ls_tensor_dim(shape, 0) >= 1;
}

ls_status lsi_sparse_value(ls_tensor *indices, ls_tensor *values, ls_tensor *dense_shape,
                           ls_value **out, ls_error *err)
{
    static const char *const names[] = {"indices", "values", "dense_shape"};
    ls_tensor *const tensors[] = {indices, values, dense_shape};
    ls_value *items[3] = {NULL, NULL, NULL};
    ls_status st = LS_OK;

    for (int i = 0; i < 3 && st == LS_OK; i++) {
        st = ls_value_tensor(tensors[i], &items[i], err);
    }
    if (st == LS_OK) {
        st = ls_value_named_tuple("SparseTensor", names, items, 3, out, err);
    }
    for (int i = 0; i < 3; i++) {
        ls_value_release(items[i]);
    }
    return st;
}

/* A sparse value being built: room for all entries, then a view of those used. */
struct build {
    int64_t *indices;
    char *values; // an array of the dtype's elements
    int64_t n, rank;
    int64_t shape[LS_MAX_DIMS];
    ls_dtype dtype;
    ls_device *device;
};

static ls_status open_build(struct build *b, int64_t room, int64_t rank, ls_dtype dtype,
                            ls_device *device, ls_error *err)
{
    *b = (struct build){.rank = rank, .dtype = dtype, .device = device};
    b->indices =
        lsi_alloc((size_t)LSI_MAX(room, 1), (size_t)LSI_MAX(rank, 1) * sizeof(int64_t));
    b->values = lsi_alloc((size_t)LSI_MAX(room, 1), ls_dtype_size(dtype));
    if (b->indices == NULL || b->values == NULL) {
        lsi_free(b->indices);
        lsi_free(b->values);
        return lsi_fail_memory(err, "a sparse batch",
                               (size_t)room * ls_dtype_size(dtype));
    }
    return LS_OK;
}

static ls_status finish_build(struct build *b, ls_value **out, ls_error *err)
{
    ls_tensor *indices = NULL, *values = NULL, *shape = NULL;
    ls_status st = lsi_tensor_create(b->device, LS_I64, LS_SHAPE(b->n, b->rank),
                                     b->indices, &indices, err);

    if (st == LS_OK) {
        st = lsi_tensor_create(b->device, b->dtype, LS_SHAPE(b->n), b->values, &values,
                               err);
    }
    if (st == LS_OK) {
        st = lsi_tensor_create(b->device, LS_I64, LS_SHAPE(b->rank), b->shape, &shape,
                               err);
    }
    if (st == LS_OK) {
        st = lsi_sparse_value(indices, values, shape, out, err);
    }
    ls_tensor_release(indices);
    ls_tensor_release(values);
    ls_tensor_release(shape);
    lsi_free(b->indices);
    lsi_free(b->values);
    return st;
}

static void add_value(struct build *b, const struct parts *p, int64_t i)
{
    const size_t size = ls_dtype_size(b->dtype);

    memcpy(b->values + (size_t)b->n * size,
           (const char *)ls_tensor_data(p->values) + (size_t)i * size, size);
}

ls_status lsi_sparse_stack(ls_value *const *values, size_t n, ls_device *device,
                           ls_value **out, ls_error *err)
{
    const struct parts first = parts_of(values[0]);
    const ls_dtype dtype = ls_tensor_dtype(first.values);
    struct build b;
    int64_t total = 0;
    ls_status st;

    for (size_t i = 0; i < n; i++) {
        const struct parts p = parts_of(values[i]);

        if (p.rank != first.rank || ls_tensor_dtype(p.values) != dtype) {
            return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_OP,
                                 "batch: sparse elements of %lld and of %lld axes, or of "
                                 "different dtypes, cannot be stacked",
                                 (long long)first.rank, (long long)p.rank);
        }
        total += p.n;
    }
    if (first.rank >= LS_MAX_DIMS) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "batch: elements have %d axes, which is the limit",
                             LS_MAX_DIMS);
    }
    st = open_build(&b, total, first.rank + 1, dtype, device, err);
    if (st != LS_OK) {
        return st;
    }
    b.shape[0] = (int64_t)n;
    for (size_t row = 0; row < n; row++) {
        const struct parts p = parts_of(values[row]);
        const int64_t *shape = ls_tensor_data(p.shape), *from = ls_tensor_data(p.indices);

        for (int64_t a = 0; a < p.rank; a++) {
            b.shape[a + 1] = LSI_MAX(b.shape[a + 1], shape[a]);
        }
        for (int64_t i = 0; i < p.n; i++, b.n++) {
            int64_t *to = b.indices + b.n * b.rank;

            to[0] = (int64_t)row;
            memcpy(to + 1, from + i * p.rank, (size_t)p.rank * sizeof *to);
            add_value(&b, &p, i);
        }
    }
    return finish_build(&b, out, err);
}

ls_status lsi_sparse_rows(const ls_value *v, int64_t begin, int64_t end, bool drop,
                          ls_device *device, ls_value **out, ls_error *err)
{
    const struct parts p = parts_of(v);
    const int64_t *from = ls_tensor_data(p.indices), *shape = ls_tensor_data(p.shape);
    const int64_t skip = drop ? 1 : 0;
    struct build b;
    ls_status st;

    if (p.rank <= skip) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "a sparse component of one axis has no rows");
    }
    st = open_build(&b, p.n, p.rank - skip, ls_tensor_dtype(p.values), device, err);
    if (st != LS_OK) {
        return st;
    }
    memcpy(b.shape, shape + skip, (size_t)b.rank * sizeof *b.shape);
    if (!drop) {
        b.shape[0] = end - begin;
    }
    for (int64_t i = 0; i < p.n; i++) {
        const int64_t *at = from + i * p.rank;
        int64_t *to = b.indices + b.n * b.rank;

        if (at[0] < begin || at[0] >= end) {
            continue;
        }
        memcpy(to, at + skip, (size_t)b.rank * sizeof *to);
        if (!drop) {
            to[0] -= begin;
        }
        add_value(&b, &p, i);
        b.n++;
    }
    return finish_build(&b, out, err);
}

int64_t lsi_sparse_row_count(const ls_value *v)
{
    const struct parts p = parts_of(v);

    return p.rank > 0 ? *(const int64_t *)ls_tensor_data(p.shape) : -1;
}
