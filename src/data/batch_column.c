/* One column of a batch: its rows are appended, then taken as one leaf. */
#include "data/batch_column.h"

#include "data/sparse.h"

#include <string.h>

enum { FIRST_BYTES = 64 << 20 }; // the most that a column reserves at first

static void drop_owners(lsi_buffer **owners, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        lsi_buffer_release(owners[i]);
    }
    lsi_free(owners);
}

void lsi_batch_column_clear(lsi_batch_column *c)
{
    for (int64_t i = 0; c->sparse != NULL && i < c->count; i++) {
        ls_value_release(c->sparse[i]);
    }
    lsi_free(c->sparse);
    ls_tensor_release(c->tensor);
    lsi_free(c->strings);
    drop_owners(c->owners, c->nowners);
    *c = (lsi_batch_column){0};
}

/* The column's tensor with room for `room` rows, the old ones copied. */
static bool grow_numbers(lsi_batch_column *c, int64_t room, ls_device *device)
{
    ls_shape shape = {.ndim = c->shape.ndim + 1};
    ls_tensor *t = NULL;

    shape.dims[0] = room;
    memcpy(shape.dims + 1, c->shape.dims, (size_t)c->shape.ndim * sizeof *shape.dims);
    t = lsi_tensor_new(device, c->dtype, &shape);
    if (t == NULL) {
        return false;
    }
    if (c->tensor != NULL) {
        memcpy(t->data, c->tensor->data, (size_t)c->count * c->row_bytes);
        ls_tensor_release(c->tensor);
    }
    c->tensor = t;
    return true;
}

static bool grow_column(lsi_batch_column *c, int64_t room, ls_device *device)
{
    const size_t per_row = c->row_bytes / sizeof(ls_string);
    size_t old = 0, need = 0;

    if (c->dtype != LS_STRING) {
        if (!grow_numbers(c, room, device)) {
            return false;
        }
    } else {
        if (!lsi_mul_size((size_t)room, per_row, &need)) {
            return false;
        }
        old = (size_t)c->count * per_row;
        ls_string *grown =
            lsi_realloc(c->strings, old, LSI_MAX(need, 1), sizeof(ls_string));
        if (grown == NULL) {
            return false;
        }
        c->strings = grown;
    }
    c->room = room;
    return true;
}

static ls_status make_row_room(lsi_batch_column *c, int64_t n, const lsi_batch_plan *plan,
                               ls_error *err)
{
    const int64_t capacity = plan->capacity;
    const int64_t need = c->count + n;
    int64_t room = c->room * 2;

    if (need <= c->room) {
        return LS_OK;
    }
    if (c->room == 0) {
        const int64_t first = FIRST_BYTES / (int64_t)LSI_MAX(c->row_bytes, 1);

        room = LSI_MIN(capacity, LSI_MAX(first, 1));
    }
    room = LSI_MAX(room, need);
    if (c->room < capacity && need <= capacity) {
        room = LSI_MIN(room, capacity);
    }
    return grow_column(c, room, plan->device)
               ? LS_OK
               : lsi_fail_memory(err, "a batch", (size_t)room * c->row_bytes);
}

static ls_status open_column(lsi_batch_column *c, ls_dtype dtype, const ls_shape *shape,
                             ls_error *err)
{
    int64_t count = 0;

    if (shape->ndim == LS_MAX_DIMS) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "batch: elements have %d axes, which is the limit",
                             LS_MAX_DIMS);
    }
    if (!lsi_shape_bytes(shape, dtype, &count, &c->row_bytes)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "batch: the shape of an element is too large");
    }
    c->open = true;
    c->dtype = dtype;
    c->shape = *shape;
    return LS_OK;
}

static ls_status unequal_rows(const lsi_batch_column *c, size_t leaf, ls_dtype dtype,
                              const ls_shape *shape, ls_error *err)
{
    char first[128], other[128];

    return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_OP,
                         "batch: component %zu is %s %s in the first element and %s %s "
                         "in a later one; elements of a batch must have equal "
                         "shapes and dtypes (padded_batch accepts unequal shapes)",
                         leaf, ls_dtype_name(c->dtype),
                         ls_shape_text(&c->shape, first, sizeof first),
                         ls_dtype_name(dtype), ls_shape_text(shape, other, sizeof other));
}

/* Many rows in a row have the same owner: one buffer of a file holds many records. */
static bool add_owner(lsi_batch_column *c, lsi_buffer *owner)
{
    if (owner == NULL || (c->nowners > 0 && c->owners[c->nowners - 1] == owner)) {
        return true;
    }
    if (c->nowners == c->owner_room) {
        const size_t room = LSI_MAX(8, 2 * c->owner_room);
        lsi_buffer **grown =
            lsi_realloc(c->owners, c->nowners, room, sizeof(lsi_buffer *));

        if (grown == NULL) {
            return false;
        }
        c->owners = grown;
        c->owner_room = room;
    }
    c->owners[c->nowners++] = lsi_buffer_retain(owner);
    return true;
}

ls_status lsi_batch_column_append(lsi_batch_column *c, size_t leaf, ls_dtype dtype,
                                  const ls_shape *shape, const void *data,
                                  lsi_buffer *owner, int64_t n,
                                  const lsi_batch_plan *plan, ls_error *err)
{
    ls_status st = LS_OK;

    if (!c->open) {
        st = open_column(c, dtype, shape, err);
    } else if (c->dtype != dtype || !ls_shape_equal(&c->shape, shape)) {
        st = unequal_rows(c, leaf, dtype, shape, err);
    }
    if (st == LS_OK) {
        st = make_row_room(c, n, plan, err);
    }
    if (st != LS_OK) {
        return st;
    }
    if (!add_owner(c, dtype == LS_STRING ? owner : NULL)) {
        return lsi_fail_memory(err, "a batch of strings",
                               c->owner_room * sizeof(lsi_buffer *));
    }
    const size_t bytes = (size_t)n * c->row_bytes, at = (size_t)c->count * c->row_bytes;
    if (bytes > 0) {
        void *to = dtype == LS_STRING ? (void *)c->strings : c->tensor->data;

        memcpy((char *)to + at, data, bytes);
    }
    c->count += n;
    return LS_OK;
}

ls_status lsi_batch_column_append_sparse(lsi_batch_column *c, const ls_value *v,
                                         ls_error *err)
{
    if (c->count == c->room) {
        const int64_t room = LSI_MAX(8, 2 * c->room);
        ls_value **grown =
            lsi_realloc(c->sparse, (size_t)c->count, (size_t)room, sizeof(ls_value *));

        if (grown == NULL) {
            return lsi_fail_memory(err, "a batch", (size_t)room * sizeof(ls_value *));
        }
        c->sparse = grown;
        c->room = room;
    }
    // NOLINTNEXTLINE: the count of references is what changes, not the value
    c->sparse[c->count++] = ls_value_retain((ls_value *)v);
    return LS_OK;
}

/* ---- taking ---- */

/* The buffer of a batch of strings: the pointers, and the owners of their bytes. */
struct string_block {
    lsi_buffer buffer; // first: lsi_buffer_release() frees the block by it
    ls_string *strings;
    lsi_buffer **owners;
    size_t nowners;
};

static void drop_block(void *user)
{
    struct string_block *b = user;

    drop_owners(b->owners, b->nowners);
    lsi_free(b->strings);
}

static ls_status take_strings(lsi_batch_column *c, const ls_shape *shape,
                              ls_device *device, ls_tensor **out, ls_error *err)
{
    struct string_block *b = lsi_alloc(1, sizeof *b);

    if (b == NULL) {
        return lsi_fail_memory(err, "a batch of strings", sizeof *b);
    }
    atomic_init(&b->buffer.refs, 1);
    b->buffer.device = device;
    b->buffer.data = c->strings;
    b->buffer.bytes = (size_t)c->count * c->row_bytes;
    b->buffer.done = drop_block;
    b->buffer.user = b;
    b->strings = c->strings;
    b->owners = c->owners;
    b->nowners = c->nowners;
    c->strings = NULL; // both belong to the block now
    c->owners = NULL;
    c->nowners = 0;
    *out = lsi_tensor_over(&b->buffer, LS_STRING, shape);
    lsi_buffer_release(&b->buffer);
    return *out != NULL ? LS_OK : lsi_fail_memory(err, "a batch", sizeof(ls_tensor));
}

ls_status lsi_batch_column_take(lsi_batch_column *c, const lsi_batch_plan *plan,
                                ls_value **out, ls_error *err)
{
    ls_shape shape = {.ndim = c->shape.ndim + 1};
    ls_tensor *t = NULL;
    ls_status st = LS_OK;

    if (c->sparse != NULL) {
        return lsi_sparse_stack(c->sparse, (size_t)c->count, plan->device, out, err);
    }
    shape.dims[0] = c->count;
    memcpy(shape.dims + 1, c->shape.dims, (size_t)c->shape.ndim * sizeof *shape.dims);
    if (c->dtype == LS_STRING) {
        st = take_strings(c, &shape, plan->device, &t, err);
    } else {
        t = c->tensor;
        c->tensor = NULL;
        t->dims[0] = c->count; // a short batch leaves the rest of its memory unused
        t->count = ls_shape_count(&shape);
    }
    if (st == LS_OK) {
        st = ls_value_tensor(t, out, err);
    }
    ls_tensor_release(t);
    return st;
}
