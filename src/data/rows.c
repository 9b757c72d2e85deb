/*
 * A batch being put together: a column for each leaf, filled row by row. Numbers are
 * copied once, straight into the tensor that the batch will be; strings are not copied at
 * all: a row points into the memory its element pointed into, and the batch keeps the
 * owners of that memory.
 */
#include "data/data.h"
#include "data/sparse.h"

#include <string.h>

enum { FIRST_BYTES = 64 << 20 }; // a column begins with room for no more than this

struct column {
    bool open; // dtype and shape are those of the first row
    ls_dtype dtype;
    ls_shape shape; // of a row
    size_t row_bytes;
    int64_t count, room;
    ls_tensor *tensor;  // of numbers
    ls_string *strings; // of strings, with those who own their bytes
    lsi_buffer **owners;
    size_t nowners, owner_room;
    ls_value **sparse; // rows of a sparse leaf, retained
};

struct lsi_rows {
    ls_spec *spec; // of an element; unknown: found out by the first row
    bool guess;    // it was unknown
    int64_t capacity, count;
    size_t ncolumns;
    struct column *columns;
    const ls_value **leaves; // room for one element's
    bool spoilt;
    ls_error error; // why
};

static ls_status set_spec(lsi_rows *rows, ls_spec *spec, ls_error *err)
{
    const size_t n = lsi_spec_leaves(spec);

    rows->columns = lsi_alloc(LSI_MAX(n, 1), sizeof *rows->columns);
    rows->leaves = lsi_alloc(LSI_MAX(n, 1), sizeof(ls_value *));
    if (rows->columns == NULL || rows->leaves == NULL) {
        lsi_free(rows->columns);
        lsi_free(rows->leaves);
        rows->columns = NULL;
        rows->leaves = NULL;
        (void)lsi_fail_memory(err, "a batch", n * sizeof *rows->columns);
        return LS_RESOURCE_EXHAUSTED;
    }
    rows->ncolumns = n;
    rows->spec = ls_spec_retain(spec);
    return LS_OK;
}

ls_status lsi_rows_create(const ls_spec *element, int64_t capacity, lsi_rows **out,
                          ls_error *err)
{
    lsi_rows *rows = lsi_alloc(1, sizeof *rows);
    ls_status st = LS_OK;

    if (rows == NULL) {
        return lsi_fail_memory(err, "a batch", sizeof *rows);
    }
    rows->capacity = LSI_MAX(capacity, 1);
    rows->guess = lsi_spec_is_unknown(element);
    if (!rows->guess) {
        // NOLINTNEXTLINE: the count of references is what changes, not the spec
        st = set_spec(rows, (ls_spec *)element, err);
    }
    if (st == LS_OK) {
        *out = rows;
    } else {
        lsi_free(rows);
    }
    return st;
}

static void drop_owners(lsi_buffer **owners, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        lsi_buffer_release(owners[i]);
    }
    lsi_free(owners);
}

static void clear_column(struct column *c)
{
    for (int64_t i = 0; c->sparse != NULL && i < c->count; i++) {
        ls_value_release(c->sparse[i]);
    }
    lsi_free(c->sparse);
    ls_tensor_release(c->tensor);
    lsi_free(c->strings);
    drop_owners(c->owners, c->nowners);
    *c = (struct column){0};
}

void lsi_rows_clear(lsi_rows *rows)
{
    for (size_t i = 0; i < rows->ncolumns; i++) {
        clear_column(&rows->columns[i]);
    }
    rows->count = 0;
    rows->spoilt = false;
    if (rows->guess) {
        ls_spec_release(rows->spec);
        lsi_free(rows->columns);
        lsi_free(rows->leaves);
        rows->spec = NULL;
        rows->columns = NULL;
        rows->leaves = NULL;
        rows->ncolumns = 0;
    }
}

void lsi_rows_release(lsi_rows *rows)
{
    if (rows != NULL) {
        lsi_rows_clear(rows);
        ls_spec_release(rows->spec);
        lsi_free(rows->columns);
        lsi_free(rows->leaves);
        lsi_free(rows);
    }
}

int64_t lsi_rows_count(const lsi_rows *rows)
{
    return rows->count;
}

static ls_status spoil(lsi_rows *rows, const ls_error *why)
{
    if (!rows->spoilt) {
        rows->spoilt = true;
        rows->error = *why;
    }
    return LS_OK;
}

/* ---- one column ---- */

static ls_device *home(void)
{
    ls_runtime *rt = lsi_runtime_default();

    return rt != NULL ? ls_runtime_device(rt, 0) : NULL;
}

/* The column's tensor with room for `room` rows, the old ones copied. */
static bool grow_numbers(struct column *c, int64_t room)
{
    ls_device *dev = home();
    ls_shape shape = {.ndim = c->shape.ndim + 1};
    ls_tensor *t = NULL;

    shape.dims[0] = room;
    memcpy(shape.dims + 1, c->shape.dims, (size_t)c->shape.ndim * sizeof *shape.dims);
    t = dev != NULL ? lsi_tensor_new(dev, c->dtype, &shape) : NULL;
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

static bool grow(struct column *c, int64_t room)
{
    const size_t per_row = c->row_bytes / sizeof(ls_string);
    size_t old = 0, need = 0;

    if (c->dtype != LS_STRING) {
        if (!grow_numbers(c, room)) {
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

static ls_status make_room(struct column *c, int64_t n, int64_t capacity, ls_error *err)
{
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
    return grow(c, room) ? LS_OK
                         : lsi_fail_memory(err, "a batch", (size_t)room * c->row_bytes);
}

static ls_status open_column(struct column *c, ls_dtype dtype, const ls_shape *shape,
                             ls_error *err)
{
    int64_t count = 0;

    if (shape->ndim == LS_MAX_DIMS) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "batch: elements have %d axes already, which is the most",
                             LS_MAX_DIMS);
    }
    if (!lsi_shape_bytes(shape, dtype, &count, &c->row_bytes)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "batch: an element has an impossible shape");
    }
    c->open = true;
    c->dtype = dtype;
    c->shape = *shape;
    return LS_OK;
}

static ls_status unequal(const struct column *c, size_t leaf, ls_dtype dtype,
                         const ls_shape *shape, ls_error *err)
{
    char first[128], other[128];

    return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_OP,
                         "batch: component %zu is %s %s in the first element and %s %s "
                         "in a later one; elements of a batch must be alike "
                         "(padded_batch takes unequal ones)",
                         leaf, ls_dtype_name(c->dtype),
                         ls_shape_text(&c->shape, first, sizeof first),
                         ls_dtype_name(dtype), ls_shape_text(shape, other, sizeof other));
}

/* Owners often come in runs: a file's block holds many records. */
static bool own(struct column *c, lsi_buffer *owner)
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

static ls_status append(lsi_rows *rows, size_t leaf, ls_dtype dtype,
                        const ls_shape *shape, const void *data, lsi_buffer *owner,
                        int64_t n, ls_error *err)
{
    struct column *c = &rows->columns[leaf];
    ls_status st = LS_OK;

    if (!c->open) {
        st = open_column(c, dtype, shape, err);
    } else if (c->dtype != dtype || !ls_shape_equal(&c->shape, shape)) {
        st = unequal(c, leaf, dtype, shape, err);
    }
    if (st == LS_OK) {
        st = make_room(c, n, rows->capacity, err);
    }
    if (st != LS_OK) {
        return st;
    }
    if (!own(c, dtype == LS_STRING ? owner : NULL)) {
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

static ls_status append_sparse(lsi_rows *rows, size_t leaf, const ls_value *v,
                               ls_error *err)
{
    struct column *c = &rows->columns[leaf];

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

/* Strings that stand inside the tensor's struct have no owner: they are copied. */
static ls_status append_tensor(lsi_rows *rows, size_t leaf, const ls_tensor *t,
                               ls_error *err)
{
    const ls_shape shape = ls_tensor_shape(t);
    const ls_dtype dtype = ls_tensor_dtype(t);
    ls_tensor *copy = NULL;
    ls_status st;

    if (ls_tensor_data(t) == NULL && ls_tensor_count(t) > 0) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                             "batch: component %zu stores rows only; make it dense",
                             leaf);
    }
    if (dtype == LS_STRING && t->buffer == NULL) {
        st = ls_tensor_create(NULL, dtype, shape, ls_tensor_data(t), &copy, err);
        if (st != LS_OK) {
            return st;
        }
        t = copy;
    }
    st = append(rows, leaf, dtype, &shape, ls_tensor_data(t), t->buffer, 1, err);
    ls_tensor_release(copy);
    return st;
}

/* ---- adding ---- */

static ls_status add_leaves(lsi_rows *rows, const ls_value *element, ls_error *err)
{
    ls_status st = lsi_spec_flatten(rows->spec, element, rows->leaves, err);

    for (size_t i = 0; i < rows->ncolumns && st == LS_OK; i++) {
        const ls_value *leaf = rows->leaves[i];
        const ls_tensor *t = ls_value_as_tensor(leaf);

        if (lsi_value_is_sparse(leaf)) {
            st = append_sparse(rows, i, leaf, err);
        } else if (t != NULL) {
            st = append_tensor(rows, i, t, err);
        } else {
            st = lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                               "batch: component %zu is a %s, which cannot be stacked", i,
                               ls_value_kind_name(ls_value_kind_of(leaf)));
        }
    }
    return st;
}

ls_status lsi_rows_add(lsi_rows *rows, const ls_value *element, ls_error *err)
{
    ls_error why = LS_ERROR_INIT;
    ls_status st = LS_OK;

    (void)err;
    if (!rows->spoilt) {
        if (rows->spec == NULL) {
            ls_spec *spec = NULL;

            st = lsi_spec_of(element, &spec, &why);
            if (st == LS_OK) {
                st = set_spec(rows, spec, &why);
            }
            ls_spec_release(spec);
        }
        if (st == LS_OK) {
            st = add_leaves(rows, element, &why);
        }
    }
    rows->count++;
    return st == LS_OK ? LS_OK : spoil(rows, &why);
}

ls_status lsi_rows_add_block(lsi_rows *rows, size_t leaf, ls_dtype dtype,
                             const ls_shape *shape, const void *data, lsi_buffer *owner,
                             int64_t n, ls_error *err)
{
    ls_error why = LS_ERROR_INIT;
    ls_status st = LS_OK;

    if (rows->spec == NULL) {
        return lsi_fail(err, LS_INTERNAL, -1, "rows of a spec that is not known");
    }
    if (!rows->spoilt) {
        st = append(rows, leaf, dtype, shape, data, owner, n, &why);
    }
    if (leaf + 1 == rows->ncolumns) {
        rows->count += n;
    }
    return st == LS_OK ? LS_OK : spoil(rows, &why);
}

/* A row at a time, where a leaf is sparse. */
static ls_status add_one_by_one(lsi_rows *rows, const ls_value *batch, int64_t begin,
                                int64_t end, ls_error *err)
{
    ls_status st = LS_OK;

    for (int64_t i = begin; i < end && st == LS_OK; i++) {
        ls_value *row = NULL;

        st = lsi_value_row(batch, i, &row, err);
        if (st == LS_OK) {
            st = lsi_rows_add(rows, row, err);
        }
        ls_value_release(row);
    }
    return st;
}

/* The spec of the rows, of the batch that comes first. */
static ls_status guess_spec(lsi_rows *rows, const ls_value *batch, ls_error *err)
{
    ls_spec *whole = NULL, *row = NULL;
    ls_status st = lsi_spec_of(batch, &whole, err);

    if (st == LS_OK) {
        st = lsi_spec_unbatch(whole, &row, err);
    }
    if (st == LS_OK) {
        st = set_spec(rows, row, err);
    }
    ls_spec_release(whole);
    ls_spec_release(row);
    return st;
}

ls_status lsi_rows_add_rows(lsi_rows *rows, const ls_value *batch, int64_t begin,
                            int64_t end, ls_error *err)
{
    ls_status st = rows->spec != NULL ? LS_OK : guess_spec(rows, batch, err);

    if (st == LS_OK) {
        st = lsi_spec_flatten(rows->spec, batch, rows->leaves, err);
    }
    for (size_t i = 0; i < rows->ncolumns && st == LS_OK; i++) {
        const ls_tensor *t = ls_value_as_tensor(rows->leaves[i]);

        if (t == NULL || (ls_tensor_dtype(t) == LS_STRING && t->buffer == NULL)) {
            return add_one_by_one(rows, batch, begin, end, err);
        }
    }
    for (size_t i = 0; i < rows->ncolumns && st == LS_OK && begin < end; i++) {
        const ls_tensor *t = ls_value_as_tensor(rows->leaves[i]);
        const ls_shape whole = ls_tensor_shape(t);
        const ls_shape shape = ls_shape_of((size_t)whole.ndim - 1, whole.dims + 1);
        const size_t row = ls_tensor_bytes(t) / (size_t)whole.dims[0];

        st = lsi_rows_add_block(rows, i, ls_tensor_dtype(t), &shape,
                                (const char *)ls_tensor_data(t) + (size_t)begin * row,
                                t->buffer, end - begin, err);
    }
    return st;
}

ls_status lsi_rows_add_string(lsi_rows *rows, ls_string s, lsi_buffer *owner,
                              ls_error *err)
{
    const ls_shape scalar = {0};

    return lsi_rows_add_block(rows, 0, LS_STRING, &scalar, &s, owner, 1, err);
}

/* ---- taking ---- */

/* The buffer of a batch of strings: the pointers, and who owns what they point at. */
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

static ls_status take_strings(struct column *c, const ls_shape *shape, ls_tensor **out,
                              ls_error *err)
{
    struct string_block *b = lsi_alloc(1, sizeof *b);
    ls_device *dev = home();

    if (b == NULL || dev == NULL) {
        lsi_free(b);
        return lsi_fail_memory(err, "a batch of strings", sizeof *b);
    }
    atomic_init(&b->buffer.refs, 1);
    b->buffer.device = dev;
    b->buffer.data = c->strings;
    b->buffer.bytes = (size_t)c->count * c->row_bytes;
    b->buffer.done = drop_block;
    b->buffer.user = b;
    b->strings = c->strings;
    b->owners = c->owners;
    b->nowners = c->nowners;
    c->strings = NULL; // both are the block's now
    c->owners = NULL;
    c->nowners = 0;
    *out = lsi_tensor_over(&b->buffer, LS_STRING, shape);
    lsi_buffer_release(&b->buffer);
    return *out != NULL ? LS_OK : lsi_fail_memory(err, "a batch", sizeof(ls_tensor));
}

static ls_status take_column(struct column *c, ls_value **out, ls_error *err)
{
    ls_shape shape = {.ndim = c->shape.ndim + 1};
    ls_tensor *t = NULL;
    ls_status st = LS_OK;

    if (c->sparse != NULL) {
        return lsi_sparse_stack(c->sparse, (size_t)c->count, out, err);
    }
    shape.dims[0] = c->count;
    memcpy(shape.dims + 1, c->shape.dims, (size_t)c->shape.ndim * sizeof *shape.dims);
    if (c->dtype == LS_STRING) {
        st = take_strings(c, &shape, &t, err);
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

ls_status lsi_rows_take(lsi_rows *rows, ls_value **out, ls_error *err)
{
    ls_value **leaves = NULL;
    ls_status st = LS_OK;

    if (rows->spoilt) {
        (void)lsi_fail_again(err, &rows->error);
        st = rows->error.code;
    } else if (rows->count == 0) {
        st = lsi_fail(err, LS_INTERNAL, -1, "a batch of no rows was asked for");
    }
    if (st == LS_OK) {
        leaves = lsi_alloc(LSI_MAX(rows->ncolumns, 1), sizeof(ls_value *));
        if (leaves == NULL) {
            st = lsi_fail_memory(err, "a batch", rows->ncolumns * sizeof(ls_value *));
        }
    }
    for (size_t i = 0; i < rows->ncolumns && st == LS_OK; i++) {
        st = take_column(&rows->columns[i], &leaves[i], err);
    }
    if (st == LS_OK) {
        st = lsi_spec_pack(rows->spec, leaves, out, err);
    }
    lsi_value_release_all(leaves, rows->ncolumns);
    lsi_rows_clear(rows);
    return st;
}
