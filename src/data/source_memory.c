/* Sources in memory: range, one element, rows of tensors, elements of a window. */
#include "data/data.h"

#include <string.h>

/* The iterator of all of them: element i of n. */
struct counter {
    lsi_iterator base;
    int64_t at;
};

static ls_status save_counter(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    (void)err;
    lsi_state_write_u64(w, (uint64_t)((struct counter *)it)->at);
    return LS_OK;
}

static ls_status restore_counter(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    uint64_t at = 0;
    const ls_status st =
        lsi_state_read_count(r, (uint64_t)it->dataset->cardinality, &at, err);

    if (st == LS_OK) {
        ((struct counter *)it)->at = (int64_t)at;
    }
    return st;
}

static ls_status skip_counter(lsi_iterator *it, int64_t n, int64_t *skipped,
                              ls_error *err)
{
    struct counter *c = (struct counter *)it;

    (void)err;
    *skipped = LSI_MIN(n, it->dataset->cardinality - c->at);
    c->at += *skipped;
    return *skipped < n ? LS_OUT_OF_RANGE : LS_OK;
}

static ls_status next_of_counter(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct counter *c = (struct counter *)it;
    ls_status st = LS_OUT_OF_RANGE;

    if (c->at < it->dataset->cardinality) {
        st = it->dataset->ops->element(it->dataset, c->at, it->as.device, out, err);
        c->at += st == LS_OK;
    }
    return st;
}

static ls_status fill_of_counter(lsi_iterator *it, lsi_batch_rows *rows, int64_t want,
                                 int64_t *got, ls_error *err)
{
    struct counter *c = (struct counter *)it;
    const int64_t n = LSI_MIN(want, it->dataset->cardinality - c->at);
    const ls_status st = it->dataset->ops->rows(it->dataset, c->at, n, rows, err);

    if (st == LS_OK) {
        c->at += n;
        *got = n;
    }
    return st == LS_OK && n < want ? LS_OUT_OF_RANGE : st;
}

static ls_status iterate_counter(ls_dataset *d, const lsi_opening *how,
                                 lsi_iterator **out, ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_of_counter,
                                         .fill = fill_of_counter,
                                         .skip = skip_counter,
                                         .save = save_counter,
                                         .restore = restore_counter};

    return lsi_iterator_new(&ops, sizeof(struct counter), d, how, out, err);
}

/* ---- range ---- */

struct range {
    ls_dataset base;
    int64_t begin, step;
};

/* May wrap around for i == n, which is never used. */
static int64_t number_at(const struct range *r, int64_t i)
{
    return (int64_t)((uint64_t)r->begin + (uint64_t)i * (uint64_t)r->step);
}

static ls_status range_element(const ls_dataset *d, int64_t i, ls_device *device,
                               ls_value **out, ls_error *err)
{
    const int64_t x = number_at((const struct range *)d, i);
    ls_tensor *t = NULL;
    ls_status st = lsi_tensor_create(device, LS_I64, LS_SCALAR, &x, &t, err);

    if (st == LS_OK) {
        st = ls_value_tensor(t, out, err);
    }
    ls_tensor_release(t);
    return st;
}

static ls_status range_rows(const ls_dataset *d, int64_t i, int64_t n,
                            lsi_batch_rows *rows, ls_error *err)
{
    const ls_shape scalar = {0};
    ls_status st = LS_OK;

    for (int64_t done = 0; done < n && st == LS_OK;) {
        int64_t block[64];
        const int64_t some = LSI_MIN((int64_t)LSI_COUNT_OF(block), n - done);

        for (int64_t k = 0; k < some; k++) {
            block[k] = number_at((const struct range *)d, i + done + k);
        }
        st = lsi_batch_rows_add_block(rows, 0, LS_I64, &scalar, block, NULL, some, err);
        done += some;
    }
    return st;
}

static int64_t range_size(int64_t begin, int64_t end, int64_t step)
{
    const bool up = step > 0;
    const uint64_t way =
        up ? (uint64_t)end - (uint64_t)begin : (uint64_t)begin - (uint64_t)end;
    const uint64_t stride = up ? (uint64_t)step : 0 - (uint64_t)step;

    if (up ? end <= begin : end >= begin) {
        return 0;
    }
    return (int64_t)LSI_MIN((way - 1) / stride + 1, (uint64_t)INT64_MAX);
}

ls_dataset *ls_dataset_range(int64_t begin, int64_t end, int64_t step)
{
    static const lsi_dataset_ops ops = {.kind = "range",
                                        .iterate = iterate_counter,
                                        .element = range_element,
                                        .rows = range_rows};
    ls_dataset *made = lsi_dataset_new(&ops, sizeof(struct range), NULL, 0);
    struct range *node = (struct range *)made;
    ls_error err = LS_ERROR_INIT;
    ls_spec *spec = NULL;

    if (lsi_dataset_bad(made)) {
        return made;
    }
    if (step == 0) {
        return lsi_dataset_fail(made, LS_INVALID_ARGUMENT, LS_KIND_OP,
                                "range: step must not be 0");
    }
    node->begin = begin;
    node->step = step;
    lsi_dataset_mix_parameter(made, (uint64_t)begin);
    lsi_dataset_mix_parameter(made, (uint64_t)end);
    lsi_dataset_mix_parameter(made, (uint64_t)step);
    const ls_status st = ls_spec_tensor(LS_I64, 0, NULL, &spec, &err);
    return lsi_dataset_done(made, st, spec, range_size(begin, end, step), &err);
}

/* ---- one element, and rows of tensors ---- */

struct memory {
    ls_dataset base;
    ls_value *value;         // the element, or the tensors whose rows are elements
    const ls_value **leaves; // of `value`; NULL: some are sparse
    lsi_load_fn load;        // reads `value` when it is first needed; NULL: it is set
    char *path;              // of the file that it reads
    lsi_mutex lock;          // guards `value` and `leaves` until they are loaded
};

static void destroy_memory(ls_dataset *d)
{
    struct memory *m = (struct memory *)d;

    lsi_free(m->leaves);
    ls_value_release(m->value);
    if (m->load != NULL) {
        lsi_free(m->path);
        lsi_mutex_destroy(&m->lock);
    }
}

static ls_status next_of_one(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct counter *c = (struct counter *)it;

    ls_status st = LS_OUT_OF_RANGE;

    if (c->at == 0) {
        st = lsi_value_place(((struct memory *)it->dataset)->value, it->as.device, out,
                             err);
        c->at += st == LS_OK;
    }
    return st;
}

static ls_status iterate_one(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                             ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_of_one,
                                         .skip = skip_counter,
                                         .save = save_counter,
                                         .restore = restore_counter};

    return lsi_iterator_new(&ops, sizeof(struct counter), d, how, out, err);
}

static ls_status slice_element(const ls_dataset *d, int64_t i, ls_device *device,
                               ls_value **out, ls_error *err)
{
    return lsi_value_row(((const struct memory *)d)->value, i, device, out, err);
}

/* Consecutive rows are contiguous: one copy per leaf. */
static ls_status slice_rows(const ls_dataset *d, int64_t i, int64_t n,
                            lsi_batch_rows *rows, ls_error *err)
{
    const struct memory *m = (const struct memory *)d;
    const size_t leaves = m->leaves != NULL ? lsi_spec_leaves(d->spec) : 0;
    ls_status st = LS_OK;

    if (m->leaves == NULL) {
        return lsi_batch_rows_add_rows(rows, m->value, i, i + n, err);
    }
    for (size_t k = 0; n > 0 && k < leaves && st == LS_OK; k++) {
        const ls_tensor *t = ls_value_as_tensor(m->leaves[k]);
        const ls_shape whole = ls_tensor_shape(t);
        const ls_shape shape = ls_shape_of((size_t)whole.ndim - 1, whole.dims + 1);
        const size_t row = ls_tensor_bytes(t) / (size_t)whole.dims[0];

        st = lsi_batch_rows_add_block(rows, k, ls_tensor_dtype(t), &shape,
                                      (const char *)ls_tensor_data(t) + (size_t)i * row,
                                      t->buffer, n, err);
    }
    return st;
}

/* A node that holds `value` as an element; it may be NULL or failed. */
static ls_dataset *new_memory_node(const lsi_dataset_ops *ops, ls_value *value)
{
    ls_dataset *made = lsi_dataset_new(ops, sizeof(struct memory), NULL, 0);
    ls_error err = LS_ERROR_INIT;

    if (lsi_dataset_bad(made)) {
        return made;
    }
    if (value == NULL) {
        return lsi_dataset_fail(made, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                "%s: the value is NULL", ops->kind);
    }
    if (lsi_element_of(value, true, NULL, &((struct memory *)made)->value, &err) !=
        LS_OK) {
        return lsi_dataset_fail_with(made, &err);
    }
    lsi_dataset_hold(made, ((struct memory *)made)->value);
    return made;
}

ls_dataset *ls_dataset_tensors(ls_value *element)
{
    static const lsi_dataset_ops ops = {
        .kind = "tensors", .iterate = iterate_one, .destroy = destroy_memory};
    ls_dataset *made = new_memory_node(&ops, element);
    ls_error err = LS_ERROR_INIT;
    ls_spec *spec = NULL;

    if (lsi_dataset_bad(made)) {
        return made;
    }
    const ls_status st = lsi_spec_of(((struct memory *)made)->value, &spec, &err);
    return lsi_dataset_done(made, st, spec, 1, &err);
}

static ls_status find_leaves(struct memory *m, const ls_spec *spec, ls_error *err)
{
    const size_t n = lsi_spec_leaves(spec);
    ls_status st;

    m->leaves = lsi_alloc(LSI_MAX(n, 1), sizeof(ls_value *));
    if (m->leaves == NULL) {
        return lsi_fail_memory(err, "slices", n * sizeof(ls_value *));
    }
    st = lsi_spec_flatten(spec, m->value, m->leaves, err);
    for (size_t i = 0; i < n && st == LS_OK; i++) {
        const ls_tensor *t = ls_value_as_tensor(m->leaves[i]);

        if (t == NULL || (ls_tensor_dtype(t) == LS_STRING && t->buffer == NULL)) {
            lsi_free(m->leaves); // rows are read one at a time
            m->leaves = NULL;
            break;
        }
    }
    return st;
}

ls_dataset *ls_dataset_slices(ls_value *tensors)
{
    static const lsi_dataset_ops ops = {.kind = "slices",
                                        .iterate = iterate_counter,
                                        .destroy = destroy_memory,
                                        .element = slice_element,
                                        .rows = slice_rows};
    ls_dataset *made = new_memory_node(&ops, tensors);
    struct memory *node = (struct memory *)made;
    ls_error err = LS_ERROR_INIT;
    ls_spec *whole = NULL, *spec = NULL;
    int64_t rows = 0;
    ls_status st;

    if (lsi_dataset_bad(made)) {
        return made;
    }
    rows = lsi_value_row_count(node->value, &err);
    st = rows < 0 ? err.code : lsi_spec_of(node->value, &whole, &err);
    if (st == LS_OK) {
        st = lsi_spec_unbatch(whole, &spec, &err);
    }
    if (st == LS_OK) {
        st = find_leaves(node, whole, &err);
    }
    ls_spec_release(whole);
    lsi_dataset_mix_parameter(made, (uint64_t)rows);
    return lsi_dataset_done(made, st, spec, rows, &err);
}

/* ---- rows of a tensor that is read when it is needed ---- */

/* The file may have changed since its header was read. */
static ls_status check_loaded(const struct memory *m, const ls_value *v, ls_error *err)
{
    ls_spec *whole = NULL, *row = NULL;
    ls_status st = lsi_spec_of(v, &whole, err);

    if (st == LS_OK) {
        st = lsi_spec_unbatch(whole, &row, err);
    }
    if (st == LS_OK && (ls_spec_dim(whole, 0) != m->base.cardinality ||
                        !ls_spec_equal(row, m->base.spec))) {
        st = lsi_fail(err, LS_FAILED_PRECONDITION, -1,
                      "%s holds another array than when the dataset was built", m->path);
    }
    ls_spec_release(whole);
    ls_spec_release(row);
    return st;
}

static ls_status load_value(struct memory *m, ls_error *err)
{
    ls_value *v = NULL;
    ls_status st = LS_OK;

    lsi_mutex_lock(&m->lock);
    if (m->value == NULL) {
        st = m->load(m->path, &v, err);
        if (st == LS_OK) {
            st = check_loaded(m, v, err);
        }
        if (st == LS_OK) {
            m->value = v;
            v = NULL;
            st = find_leaves(m, m->base.spec, err);
        }
        if (st != LS_OK) {
            ls_value_release(m->value);
            lsi_free(m->leaves);
            m->value = NULL;
            m->leaves = NULL;
        }
    }
    lsi_mutex_unlock(&m->lock);
    ls_value_release(v);
    return st;
}

static ls_status iterate_loaded(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                                ls_error *err)
{
    const ls_status st = load_value((struct memory *)d, err);

    return st == LS_OK ? iterate_counter(d, how, out, err) : st;
}

ls_dataset *lsi_dataset_slices_later(const char *path, lsi_load_fn fn,
                                     const ls_spec *whole)
{
    static const lsi_dataset_ops ops = {.kind = "slices",
                                        .iterate = iterate_loaded,
                                        .destroy = destroy_memory,
                                        .element = slice_element,
                                        .rows = slice_rows};
    ls_dataset *made = lsi_dataset_new(&ops, sizeof(struct memory), NULL, 0);
    struct memory *node = (struct memory *)made;
    ls_error err = LS_ERROR_INIT;
    ls_spec *row = NULL;
    ls_status st = LS_OK;

    if (made == NULL) {
        return NULL;
    }
    lsi_mutex_init(&node->lock);
    node->load = fn;
    node->path = lsi_strdup(path);
    if (node->path == NULL) {
        st = lsi_fail_memory(&err, "the name of a file", strlen(path));
    }
    if (st == LS_OK) {
        st = lsi_spec_unbatch(whole, &row, &err);
    }
    lsi_dataset_mix_parameter(made, (uint64_t)ls_spec_dim(whole, 0));
    return lsi_dataset_done(made, st, row, ls_spec_dim(whole, 0), &err);
}

/* ---- elements of a window ---- */

struct kept {
    ls_dataset base;
    ls_value **elements;
    size_t n;
};

static void destroy_kept(ls_dataset *d)
{
    struct kept *k = (struct kept *)d;

    lsi_value_release_all(k->elements, k->n);
}

static ls_status next_of_kept(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct counter *c = (struct counter *)it;

    ls_status st = LS_OUT_OF_RANGE;

    if (c->at < it->dataset->cardinality) {
        st = lsi_value_place(((struct kept *)it->dataset)->elements[c->at], it->as.device,
                             out, err);
        c->at += st == LS_OK;
    }
    return st;
}

static ls_status iterate_kept(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                              ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_of_kept,
                                         .skip = skip_counter,
                                         .save = save_counter,
                                         .restore = restore_counter};

    return lsi_iterator_new(&ops, sizeof(struct counter), d, how, out, err);
}

static const lsi_dataset_ops kept_ops = {
    .kind = "kept", .iterate = iterate_kept, .destroy = destroy_kept};

ls_dataset *lsi_dataset_of_elements(ls_value *const *elements, size_t n, ls_spec *spec)
{
    ls_dataset *made = lsi_dataset_new(&kept_ops, sizeof(struct kept), NULL, 0);
    struct kept *node = (struct kept *)made;

    if (made == NULL) {
        return NULL;
    }
    node->elements = lsi_alloc(LSI_MAX(n, 1), sizeof(ls_value *));
    if (node->elements == NULL) {
        ls_dataset_release(made);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        node->elements[i] = ls_value_retain(elements[i]);
        lsi_dataset_hold(made, elements[i]);
    }
    node->n = n;
    return lsi_dataset_done(made, LS_OK, ls_spec_retain(spec), (int64_t)n, NULL);
}

ls_value *const *lsi_dataset_elements(const ls_dataset *d, size_t *n)
{
    const struct kept *node = (const struct kept *)d;

    if (d == NULL || d->ops != &kept_ops) {
        return NULL;
    }
    *n = node->n;
    return node->elements;
}
