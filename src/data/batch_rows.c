/*
 * A batch being put together: a column for each leaf, filled row by row. Numbers are
 * copied once, straight into the tensor that the batch will be; strings are not copied at
 * all: a row points into the memory its element pointed into, and the batch keeps the
 * owners of that memory.
 */
#include "data/batch_rows.h"

#include "data/batch_column.h"
#include "data/dataset_element.h"
#include "data/sparse.h"

#include <string.h>

struct lsi_batch_rows {
    ls_spec *spec; // of an element; NULL: not known before the first row
    bool guess;    // the spec comes from the first row
    lsi_batch_plan plan;
    int64_t count;
    size_t ncolumns;
    lsi_batch_column *columns;
    const ls_value **leaves; // room for those of one element
    lsi_string_sink *sink;   // NULL: the rows become a batch
    bool spoilt;
    ls_error error; // why they are spoilt
};

static ls_status set_spec(lsi_batch_rows *rows, ls_spec *spec, ls_error *err)
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

ls_status lsi_batch_rows_create(const ls_spec *element, int64_t capacity,
                                ls_device *device, lsi_batch_rows **out, ls_error *err)
{
    lsi_batch_rows *rows = lsi_alloc(1, sizeof *rows);
    ls_status st = LS_OK;

    if (rows == NULL) {
        return lsi_fail_memory(err, "a batch", sizeof *rows);
    }
    rows->plan = (lsi_batch_plan){device, LSI_MAX(capacity, 1)};
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

ls_status lsi_batch_rows_create_sink(const ls_spec *element, lsi_string_sink *sink,
                                     lsi_batch_rows **out, ls_error *err)
{
    const ls_status st = lsi_batch_rows_create(element, 1, NULL, out, err);

    if (st == LS_OK) {
        (*out)->sink = sink;
    }
    return st;
}

lsi_string_pool *lsi_batch_rows_pool(const lsi_batch_rows *rows)
{
    return rows->sink != NULL ? rows->sink->pool : NULL;
}

void lsi_batch_rows_clear(lsi_batch_rows *rows)
{
    for (size_t i = 0; i < rows->ncolumns; i++) {
        lsi_batch_column_clear(&rows->columns[i]);
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

void lsi_batch_rows_release(lsi_batch_rows *rows)
{
    if (rows != NULL) {
        lsi_batch_rows_clear(rows);
        ls_spec_release(rows->spec);
        lsi_free(rows->columns);
        lsi_free(rows->leaves);
        lsi_free(rows);
    }
}

int64_t lsi_batch_rows_count(const lsi_batch_rows *rows)
{
    return rows->count;
}

static ls_status spoil_rows(lsi_batch_rows *rows, const ls_error *why)
{
    if (!rows->spoilt) {
        rows->spoilt = true;
        rows->error = *why;
    }
    return LS_OK;
}

/* Copies strings to the sink's pool, 64 at a time, and passes them to the sink. */
static ls_status sink_strings(lsi_string_sink *sink, ls_dtype dtype,
                              const ls_shape *shape, const ls_string *strings, size_t n,
                              ls_error *err)
{
    ls_status st = LS_OK;

    if (dtype != LS_STRING || shape->ndim != 0) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                             "an element is of %s with %d axes, but its spec is one "
                             "scalar string",
                             ls_dtype_name(dtype), shape->ndim);
    }
    for (size_t at = 0, part; at < n && st == LS_OK; at += part) {
        ls_string kept[64];
        char *slots[LSI_COUNT_OF(kept)];

        part = LSI_MIN(n - at, LSI_COUNT_OF(kept));
        if (!lsi_string_pool_alloc(sink->pool, strings + at, part, slots)) {
            return lsi_fail_memory(err, "strings", strings[at].len);
        }
        for (size_t i = 0; i < part; i++) {
            kept[i] = strings[at + i];
            lsi_string_pool_copy(sink->pool, slots[i], &kept[i]);
        }
        st = sink->add(sink, kept, part, err);
    }
    return st;
}

static ls_status append_rows(lsi_batch_rows *rows, size_t leaf, ls_dtype dtype,
                             const ls_shape *shape, const void *data, lsi_buffer *owner,
                             int64_t n, ls_error *err)
{
    if (rows->sink != NULL) {
        return sink_strings(rows->sink, dtype, shape, data, (size_t)n, err);
    }
    return lsi_batch_column_append(&rows->columns[leaf], leaf, dtype, shape, data, owner,
                                   n, &rows->plan, err);
}

/* Strings that are stored inside the tensor's struct have no owner: they are copied. */
static ls_status append_tensor(lsi_batch_rows *rows, size_t leaf, const ls_tensor *t,
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
        st = lsi_tensor_create(rows->plan.device, dtype, shape, ls_tensor_data(t), &copy,
                               err);
        if (st != LS_OK) {
            return st;
        }
        t = copy;
    }
    st = append_rows(rows, leaf, dtype, &shape, ls_tensor_data(t), t->buffer, 1, err);
    ls_tensor_release(copy);
    return st;
}

/* ---- adding ---- */

static ls_status add_leaves(lsi_batch_rows *rows, const ls_value *element, ls_error *err)
{
    ls_status st = lsi_spec_flatten(rows->spec, element, rows->leaves, err);

    for (size_t i = 0; i < rows->ncolumns && st == LS_OK; i++) {
        const ls_value *leaf = rows->leaves[i];
        const ls_tensor *t = ls_value_as_tensor(leaf);

        if (lsi_value_is_sparse(leaf)) {
            st = lsi_batch_column_append_sparse(&rows->columns[i], leaf, err);
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

ls_status lsi_batch_rows_add(lsi_batch_rows *rows, const ls_value *element, ls_error *err)
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
    return st == LS_OK ? LS_OK : spoil_rows(rows, &why);
}

ls_status lsi_batch_rows_add_block(lsi_batch_rows *rows, size_t leaf, ls_dtype dtype,
                                   const ls_shape *shape, const void *data,
                                   lsi_buffer *owner, int64_t n, ls_error *err)
{
    ls_error why = LS_ERROR_INIT;
    ls_status st = LS_OK;

    if (rows->spec == NULL) {
        return lsi_fail(err, LS_INTERNAL, -1, "rows of a spec that is not known");
    }
    if (!rows->spoilt) {
        st = append_rows(rows, leaf, dtype, shape, data, owner, n, &why);
    }
    if (leaf + 1 == rows->ncolumns) {
        rows->count += n;
    }
    return st == LS_OK ? LS_OK : spoil_rows(rows, &why);
}

ls_status lsi_batch_rows_add_pooled(lsi_batch_rows *rows, const ls_string *strings,
                                    size_t n, ls_error *err)
{
    return rows->sink->add(rows->sink, strings, n, err);
}

/* Row by row, for batches with a sparse leaf. */
static ls_status add_one_by_one(lsi_batch_rows *rows, const ls_value *batch,
                                int64_t begin, int64_t end, ls_error *err)
{
    ls_status st = LS_OK;

    for (int64_t i = begin; i < end && st == LS_OK; i++) {
        ls_value *row = NULL;

        st = lsi_value_row(batch, i, rows->plan.device, &row, err);
        if (st == LS_OK) {
            st = lsi_batch_rows_add(rows, row, err);
        }
        ls_value_release(row);
    }
    return st;
}

/* Sets the spec of the rows from the first batch. */
static ls_status spec_from_batch(lsi_batch_rows *rows, const ls_value *batch,
                                 ls_error *err)
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

ls_status lsi_batch_rows_add_rows(lsi_batch_rows *rows, const ls_value *batch,
                                  int64_t begin, int64_t end, ls_error *err)
{
    ls_status st = rows->spec != NULL ? LS_OK : spec_from_batch(rows, batch, err);

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

        st = lsi_batch_rows_add_block(rows, i, ls_tensor_dtype(t), &shape,
                                      (const char *)ls_tensor_data(t) +
                                          (size_t)begin * row,
                                      t->buffer, end - begin, err);
    }
    return st;
}

ls_status lsi_batch_rows_add_string(lsi_batch_rows *rows, ls_string s, lsi_buffer *owner,
                                    ls_error *err)
{
    const ls_shape scalar = {0};

    return lsi_batch_rows_add_block(rows, 0, LS_STRING, &scalar, &s, owner, 1, err);
}

/* ---- taking ---- */

ls_status lsi_batch_rows_finish(lsi_batch_rows *rows, ls_error *err)
{
    const ls_status st = rows->spoilt ? lsi_fail_again(err, &rows->error) : LS_OK;

    lsi_batch_rows_clear(rows);
    return st;
}

ls_status lsi_batch_rows_take(lsi_batch_rows *rows, ls_value **out, ls_error *err)
{
    ls_value **leaves = NULL;
    ls_status st = LS_OK;

    if (rows->spoilt) {
        st = lsi_fail_again(err, &rows->error);
    } else if (rows->count == 0) {
        st = lsi_fail(err, LS_INTERNAL, -1, "a batch without rows");
    }
    if (st == LS_OK) {
        leaves = lsi_alloc(LSI_MAX(rows->ncolumns, 1), sizeof(ls_value *));
        if (leaves == NULL) {
            st = lsi_fail_memory(err, "a batch", rows->ncolumns * sizeof(ls_value *));
        }
    }
    for (size_t i = 0; i < rows->ncolumns && st == LS_OK; i++) {
        st = lsi_batch_column_take(&rows->columns[i], &rows->plan, &leaves[i], err);
    }
    if (st == LS_OK) {
        st = lsi_spec_pack(rows->spec, leaves, out, err);
    }
    lsi_value_release_all(leaves, rows->ncolumns);
    lsi_batch_rows_clear(rows);
    return st;
}
