/* Elements: rows of a batch, and values of the user made into elements. */
#include "data/data.h"
#include "data/sparse.h"

#include <string.h>

/* ---- rows of batches ---- */

/* A view of `t`, or a copy if its elements are stored in the struct, or `small` is set, or
 * the device needs one. */
static ls_tensor *cut_out(ls_tensor *t, const ls_shape *shape, size_t offset, bool small,
                          ls_device *device)
{
    const ls_dtype dtype = ls_tensor_dtype(t);
    ls_tensor *part = NULL;

    if (t->buffer == NULL || small ||
        (device != NULL && lsi_tensor_must_copy(t, device))) {
        part = lsi_tensor_new(device, dtype, shape);
        if (part != NULL && part->count > 0) {
            memcpy(part->data, (const char *)t->data + offset, ls_tensor_bytes(part));
        }
        return part;
    }
    part = lsi_tensor_view(t, dtype, shape, offset);
    if (part != NULL && device != NULL) {
        part->device = device;
    }
    return part;
}

ls_tensor *lsi_tensor_rows(ls_tensor *t, int64_t begin, int64_t end, ls_device *device)
{
    const int64_t rows = ls_tensor_dim(t, 0);
    const size_t row = rows > 0 ? ls_tensor_bytes(t) / (size_t)rows : 0;
    ls_shape shape = ls_tensor_shape(t);

    shape.dims[0] = end - begin;
    return cut_out(t, &shape, (size_t)begin * row, end == begin, device);
}

ls_tensor *lsi_tensor_row(ls_tensor *t, int64_t i, ls_device *device)
{
    const ls_shape whole = ls_tensor_shape(t);
    const ls_shape shape = ls_shape_of((size_t)whole.ndim - 1, whole.dims + 1);
    const size_t row = ls_tensor_bytes(t) / (size_t)whole.dims[0];
    // A copy frees the batch.
    const bool small = row <= LSI_INLINE_BYTES && ls_tensor_dtype(t) != LS_STRING;

    return cut_out(t, &shape, (size_t)i * row, small, device);
}

struct cut {
    int64_t begin, end;
    bool drop; // a single row, without its axis
    ls_device *device;
};

static ls_status cut_leaf(const ls_value *v, const void *user, ls_value **out,
                          ls_error *err)
{
    const struct cut *cut = user;
    ls_tensor *t = ls_value_as_tensor(v), *part = NULL;
    ls_status st;

    if (lsi_value_is_sparse(v)) {
        return lsi_sparse_rows(v, cut->begin, cut->end, cut->drop, cut->device, out, err);
    }
    if (t == NULL || ls_tensor_ndim(t) == 0 || ls_tensor_dim(t, 0) < cut->end) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "a component has no row %lld", (long long)cut->begin);
    }
    part = cut->drop ? lsi_tensor_row(t, cut->begin, cut->device)
                     : lsi_tensor_rows(t, cut->begin, cut->end, cut->device);
    st = part != NULL ? ls_value_tensor(part, out, err)
                      : lsi_fail_memory(err, "rows of a batch", sizeof *part);
    ls_tensor_release(part);
    return st;
}

ls_status lsi_element_map(const ls_value *v, lsi_leaf_fn fn, const void *user,
                          ls_value **out, ls_error *err)
{
    const size_t n = ls_value_size(v);
    ls_value **items = NULL;
    ls_status st = LS_OK;

    if (ls_value_is_leaf(v) || lsi_value_is_sparse(v)) {
        return fn(v, user, out, err);
    }
    items = lsi_alloc(LSI_MAX(n, 1), sizeof(ls_value *));
    if (items == NULL) {
        return lsi_fail_memory(err, "an element", n * sizeof(ls_value *));
    }
    for (size_t i = 0; i < n && st == LS_OK; i++) {
        st = lsi_element_map(ls_value_child(v, i), fn, user, &items[i], err);
    }
    if (st == LS_OK) {
        st = lsi_value_like(v, items, out, err);
    }
    lsi_value_release_all(items, n);
    return st;
}

ls_status lsi_value_row(const ls_value *batch, int64_t i, ls_device *device,
                        ls_value **out, ls_error *err)
{
    const struct cut cut = {i, i + 1, true, device};

    return lsi_element_map(batch, cut_leaf, &cut, out, err);
}

ls_status lsi_value_rows(const ls_value *batch, int64_t begin, int64_t end,
                         ls_device *device, ls_value **out, ls_error *err)
{
    const struct cut cut = {begin, end, false, device};

    return lsi_element_map(batch, cut_leaf, &cut, out, err);
}

/* The rows of all leaves; `rows` of the leaves before: -2: none yet; -1: failed. */
static int64_t count_rows(const ls_value *v, int64_t rows, ls_error *err)
{
    const ls_tensor *t = ls_value_as_tensor(v);
    int64_t own = -1;

    if (!ls_value_is_leaf(v) && !lsi_value_is_sparse(v)) {
        for (size_t i = 0; i < ls_value_size(v) && rows != -1; i++) {
            rows = count_rows(ls_value_child(v, i), rows, err);
        }
        return rows;
    }
    if (t != NULL && ls_tensor_ndim(t) > 0) {
        own = ls_tensor_dim(t, 0);
    } else if (lsi_value_is_sparse(v)) {
        own = lsi_sparse_row_count(v);
    }
    if (own < 0) {
        (void)lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                            "a component is a scalar and has no rows: call batch before");
    } else if (rows >= 0 && rows != own) {
        (void)lsi_fail_kind(
            err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
            "components have %lld and %lld rows; all must have the same number",
            (long long)rows, (long long)own);
        own = -1;
    }
    return own;
}

int64_t lsi_value_row_count(const ls_value *batch, ls_error *err)
{
    const int64_t rows = count_rows(batch, -2, err);

    if (rows == -2) {
        (void)lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                            "an element without components has no rows");
    }
    return LSI_MAX(rows, -1);
}

/* ---- no rows ---- */

static ls_status empty_leaf(const ls_spec *s, ls_device *device, ls_value **out,
                            ls_error *err)
{
    ls_shape shape = {.ndim = LSI_MAX(s->ndim, 1)};
    ls_tensor *t = NULL, *indices = NULL, *dense = NULL;
    ls_status st;

    if (ls_dtype_size(s->dtype) == 0) {
        return lsi_fail(err, LS_FAILED_PRECONDITION, -1,
                        "an empty batch of elements with an unknown spec has no dtype; "
                        "give the map its spec");
    }
    for (int i = 1; i < s->ndim; i++) {
        shape.dims[i] = LSI_MAX(s->dims[i], 0);
    }
    if (s->kind != LS_SPEC_SPARSE) {
        st = lsi_tensor_create(device, s->dtype, shape, NULL, &t, err);
        if (st == LS_OK) {
            st = ls_value_tensor(t, out, err);
        }
        ls_tensor_release(t);
        return st;
    }
    st = lsi_tensor_create(device, s->dtype, LS_SHAPE(0), NULL, &t, err);
    if (st == LS_OK) {
        st = lsi_tensor_create(device, LS_I64, LS_SHAPE(0, shape.ndim), NULL, &indices,
                               err);
    }
    if (st == LS_OK) {
        st = lsi_tensor_create(device, LS_I64, LS_SHAPE(shape.ndim), shape.dims, &dense,
                               err);
    }
    if (st == LS_OK) {
        st = lsi_sparse_value(indices, t, dense, out, err);
    }
    ls_tensor_release(t);
    ls_tensor_release(indices);
    ls_tensor_release(dense);
    return st;
}

ls_status lsi_spec_no_rows(const ls_spec *batch, ls_device *device, ls_value **out,
                           ls_error *err)
{
    const size_t n = lsi_spec_leaves(batch);
    ls_value **leaves = lsi_alloc(LSI_MAX(n, 1), sizeof(ls_value *));
    ls_status st = LS_OK;

    if (leaves == NULL) {
        return lsi_fail_memory(err, "an empty batch", n * sizeof(ls_value *));
    }
    for (size_t i = 0; i < n && st == LS_OK; i++) {
        st = empty_leaf(lsi_spec_leaf(batch, i), device, &leaves[i], err);
    }
    if (st == LS_OK) {
        st = lsi_spec_pack(batch, leaves, out, err);
    }
    lsi_value_release_all(leaves, n);
    return st;
}

/* ---- strings ---- */

/* The buffer of one string that lies in the memory of another buffer. */
struct string_cell {
    lsi_buffer buffer; // first: lsi_buffer_release() frees the cell by it
    ls_string string;
};

static void drop_owner(void *owner)
{
    lsi_buffer_release(owner);
}

ls_tensor *lsi_tensor_string(ls_string s, lsi_buffer *owner, ls_device *device)
{
    const ls_shape scalar = {0};
    struct string_cell *cell = lsi_alloc(1, sizeof *cell);
    ls_tensor *t = NULL;

    if (cell == NULL) {
        return NULL;
    }
    atomic_init(&cell->buffer.refs, 1);
    cell->buffer.device = device;
    cell->buffer.data = &cell->string;
    cell->buffer.bytes = sizeof s;
    cell->buffer.done = drop_owner;
    cell->buffer.user = lsi_buffer_retain(owner);
    cell->string = s;
    t = lsi_tensor_over(&cell->buffer, LS_STRING, &scalar);
    lsi_buffer_release(&cell->buffer);
    return t;
}

ls_status lsi_element_file_name(const ls_value *v, ls_string *out, ls_error *err)
{
    const ls_tensor *t = ls_value_as_tensor(v);

    if (t == NULL || ls_tensor_dtype(t) != LS_STRING || ls_tensor_ndim(t) != 0) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                             "a file's name is a scalar string, not this %s",
                             t != NULL ? ls_dtype_name(ls_tensor_dtype(t))
                                       : ls_value_kind_name(ls_value_kind_of(v)));
    }
    *out = *(const ls_string *)ls_tensor_data(t);
    return LS_OK;
}

/* ---- values of the user ---- */

/* The dense tensor of a sparse one. */
static ls_status of_sparse(ls_tensor *t, ls_device *device, ls_value **out, ls_error *err)
{
    ls_tensor *dense = NULL;
    ls_status st = lsi_tensor_create(device, ls_tensor_dtype(t), ls_tensor_shape(t), NULL,
                                     &dense, err);

    if (st == LS_OK) {
        st = ls_tensor_read(t, dense->data, ls_tensor_bytes(dense), err);
    }
    if (st == LS_OK) {
        st = ls_value_tensor(dense, out, err);
    }
    ls_tensor_release(dense);
    return st;
}

/* Literals get the dtypes that TensorFlow gives to Python's literals. */
static ls_status of_literal(const ls_value *v, ls_device *device, ls_value **out,
                            ls_error *err)
{
    int64_t integer = 0;
    double number = 0;
    bool truth = false;
    ls_string string = {NULL, 0};
    ls_tensor *t = NULL;
    ls_status st;

    if (ls_value_as_int(v, &integer)) {
        const int32_t narrow = (int32_t)integer;

        st = narrow == integer
                 ? lsi_tensor_create(device, LS_I32, LS_SCALAR, &narrow, &t, err)
                 : lsi_tensor_create(device, LS_I64, LS_SCALAR, &integer, &t, err);
    } else if (ls_value_as_float(v, &number)) {
        const float single = (float)number;

        st = lsi_tensor_create(device, LS_F32, LS_SCALAR, &single, &t, err);
    } else if (ls_value_as_bool(v, &truth)) {
        const uint8_t byte = truth;

        st = lsi_tensor_create(device, LS_BOOL, LS_SCALAR, &byte, &t, err);
    } else if (ls_value_as_string(v, &string)) {
        st = lsi_tensor_create(device, LS_STRING, LS_SCALAR, &string, &t, err);
    } else {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                             "a %s cannot be part of an element: elements are tensors, "
                             "or tuples and dicts of them",
                             ls_value_kind_name(ls_value_kind_of(v)));
    }
    if (st == LS_OK) {
        st = ls_value_tensor(t, out, err);
    }
    ls_tensor_release(t);
    return st;
}

/* A list becomes one tensor: its items stacked along a new axis 0. */
static ls_status of_list(ls_value *v, ls_device *device, ls_value **out, ls_error *err)
{
    ls_spec *any = NULL;
    lsi_batch_rows *rows = NULL;
    ls_status st = lsi_spec_unknown(&any, err);

    if (st == LS_OK) {
        st = lsi_batch_rows_create(any, (int64_t)ls_value_size(v), device, &rows, err);
    }
    for (size_t i = 0; i < ls_value_size(v) && st == LS_OK; i++) {
        ls_value *item = NULL;

        st = lsi_element_of(ls_value_child(v, i), true, device, &item, err);
        if (st == LS_OK) {
            st = lsi_batch_rows_add(rows, item, err);
        }
        ls_value_release(item);
    }
    if (st == LS_OK) {
        st = ls_value_size(v) > 0
                 ? lsi_batch_rows_take(rows, out, err)
                 : lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                 "an empty list has no dtype; give an empty tensor");
    }
    lsi_batch_rows_release(rows);
    ls_spec_release(any);
    return st;
}

static ls_status of_items(ls_value *v, bool stack, ls_device *device, ls_value **out,
                          ls_error *err)
{
    const size_t n = ls_value_size(v);
    ls_value **items = lsi_alloc(LSI_MAX(n, 1), sizeof(ls_value *));
    bool same = ls_value_kind_of(v) != LS_VALUE_LIST;
    ls_status st = LS_OK;

    if (items == NULL) {
        return lsi_fail_memory(err, "an element", n * sizeof(ls_value *));
    }
    for (size_t i = 0; i < n && st == LS_OK; i++) {
        st = lsi_element_of(ls_value_child(v, i), stack, device, &items[i], err);
        same = same && items[i] == ls_value_child(v, i);
    }
    if (st == LS_OK && same) {
        *out = ls_value_retain(v);
    } else if (st == LS_OK && ls_value_kind_of(v) == LS_VALUE_LIST) {
        st = ls_value_tuple(items, n, out, err);
    } else if (st == LS_OK) {
        st = lsi_value_like(v, items, out, err);
    }
    lsi_value_release_all(items, n);
    return st;
}

ls_status lsi_element_of(ls_value *v, bool stack, ls_device *device, ls_value **out,
                         ls_error *err)
{
    ls_tensor *t = ls_value_as_tensor(v);

    if (t != NULL && t->values != NULL) {
        return of_sparse(t, device, out, err);
    }
    if (t != NULL || ls_value_kind_of(v) == LS_VALUE_DATASET || lsi_value_is_sparse(v)) {
        return lsi_value_place(v, device, out, err);
    }
    if (ls_value_is_leaf(v)) {
        return of_literal(v, device, out, err);
    }
    if (stack && ls_value_kind_of(v) == LS_VALUE_LIST) {
        return of_list(v, device, out, err);
    }
    return of_items(v, stack, device, out, err);
}
