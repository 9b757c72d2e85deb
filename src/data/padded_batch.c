/*
 * padded_batch: batches of elements of unequal sizes. Each component is padded at its end
 * to a given shape, or to the largest size in the batch.
 */
#include "data/user_function.h"

#include <string.h>

/* The shape a component is padded to; -1 in dims: the largest of the batch. */
struct target {
    ls_dtype dtype; // 0: not known
    int ndim;       // -1: that of the first element of the batch
    int64_t dims[LS_MAX_DIMS];
    ls_tensor *padding; // NULL: zeros
};

struct padded_node {
    ls_dataset base;
    int64_t size; // the first member: see lsi_dataset_batch_size()
    bool exact;
    size_t n; // components; 0: not known, and no padding was given
    struct target *targets;
};

struct padded {
    lsi_unary_iterator unary;
    bool over;       // the last batch was returned
    ls_value **held; // elements of the batch
    size_t count, room;
};

/* ---- one component of a batch ---- */

static ls_status wrong_rank(size_t k, const ls_tensor *t, int ndim, ls_error *err)
{
    lsi_text text = lsi_text_of(t);

    return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_OP,
                         "padded_batch: component %zu is %s, but is to be padded to %d "
                         "axes",
                         k, text.s, ndim);
}

/* The shape that the rows of component `k` are padded to: leaves[0], leaves[step], ... */
static ls_status measure_rows(const struct target *want, size_t k,
                              const ls_value **leaves, size_t step, size_t n,
                              ls_dtype *dtype, ls_shape *row, ls_error *err)
{
    const ls_tensor *first = ls_value_as_tensor(leaves[0]);

    if (first == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                             "padded_batch: component %zu is not a tensor", k);
    }
    *dtype = ls_tensor_dtype(first);
    *row = (ls_shape){.ndim = want->ndim >= 0 ? want->ndim : ls_tensor_ndim(first)};
    for (int a = 0; a < row->ndim; a++) {
        row->dims[a] = want->ndim >= 0 ? LSI_MAX(want->dims[a], 0) : 0;
    }
    for (size_t i = 0; i < n; i++) {
        const ls_tensor *t = ls_value_as_tensor(leaves[i * step]);

        if (t == NULL || ls_tensor_dtype(t) != *dtype) {
            return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                                 "padded_batch: component %zu has different dtypes in "
                                 "one batch",
                                 k);
        }
        if (ls_tensor_ndim(t) != row->ndim) {
            return wrong_rank(k, t, row->ndim, err);
        }
        for (int a = 0; a < row->ndim; a++) {
            const int64_t dim = ls_tensor_dim(t, a);

            if (want->ndim >= 0 && want->dims[a] >= 0 && dim > want->dims[a]) {
                lsi_text text = lsi_text_of(t);

                return lsi_fail(err, LS_DATA_LOSS, -1,
                                "padded_batch: component %zu is %s, which is larger than "
                                "the %lld that axis %d is padded to",
                                k, text.s, (long long)want->dims[a], a);
            }
            row->dims[a] = LSI_MAX(row->dims[a], dim);
        }
    }
    return LS_OK;
}

/* Fills `count` elements of `size` bytes with copies of `one`, or with zeros if NULL. */
static void fill_with(char *to, int64_t count, size_t size, const void *one)
{
    if (one == NULL) {
        memset(to, 0, (size_t)count * size);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        memcpy(to + (size_t)i * size, one, size);
    }
}

/* Copies an array of shape `from` to the start of every axis of one of shape `into`. */
static void copy_corner(char *to, const ls_shape *into, const char *data,
                        const ls_shape *from, size_t size)
{
    const int last = from->ndim - 1;
    const size_t run = last >= 0 ? (size_t)from->dims[last] * size : size;
    int64_t at[LS_MAX_DIMS] = {0};
    const int64_t count = ls_shape_count(from);

    if (count == 0) {
        return;
    }
    for (;;) {
        size_t offset = 0;
        int a = last - 1;

        for (int i = 0; i <= last; i++) {
            offset = offset * (size_t)into->dims[i] + (size_t)at[i];
        }
        memcpy(to + offset * size, data, run);
        data += run;
        while (a >= 0 && ++at[a] == from->dims[a]) {
            at[a--] = 0;
        }
        if (a < 0) {
            return;
        }
    }
}

/* The batch of one component; the bytes of strings are copied. */
static ls_status stack_rows(const struct target *want, size_t k, const ls_value **leaves,
                            size_t step, size_t n, ls_device *device, ls_value **out,
                            ls_error *err)
{
    ls_dtype dtype = LS_F32;
    ls_shape row = {0}, shape = {0};
    ls_tensor *t = NULL;
    int64_t rows = 0;
    ls_status st = measure_rows(want, k, leaves, step, n, &dtype, &row, err);

    if (st != LS_OK) {
        return st;
    }
    if (row.ndim == LS_MAX_DIMS) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "padded_batch: elements have %d axes, which is the "
                             "limit",
                             LS_MAX_DIMS);
    }
    shape.ndim = row.ndim + 1;
    shape.dims[0] = (int64_t)n;
    memcpy(shape.dims + 1, row.dims, (size_t)row.ndim * sizeof *row.dims);
    rows = ls_shape_count(&row);
    t = rows >= 0 && ls_shape_count(&shape) >= 0 ? lsi_tensor_new(device, dtype, &shape)
                                                 : NULL;
    if (t == NULL) {
        return lsi_fail_memory(err, "a padded batch", n * sizeof(ls_tensor));
    }
    const size_t size = ls_dtype_size(dtype);
    char *to = t->data;
    fill_with(to, (int64_t)n * rows, size,
              want->padding != NULL ? ls_tensor_data(want->padding) : NULL);
    for (size_t i = 0; i < n; i++) {
        const ls_tensor *from = ls_value_as_tensor(leaves[i * step]);
        const ls_shape have = ls_tensor_shape(from);

        copy_corner(to + i * (size_t)rows * size, &row, ls_tensor_data(from), &have,
                    size);
    }
    if (dtype == LS_STRING) { // so far they point into the elements' memory
        ls_tensor *own = NULL;

        st = lsi_tensor_create(device, LS_STRING, shape, t->data, &own, err);
        ls_tensor_release(t);
        t = own;
    }
    if (st == LS_OK) {
        st = ls_value_tensor(t, out, err);
    }
    ls_tensor_release(t);
    return st;
}

/* ---- the iterator ---- */

static void release_held(struct padded *p)
{
    for (size_t i = 0; i < p->count; i++) {
        ls_value_release(p->held[i]);
    }
    p->count = 0;
}

/* Reads a batch's elements; on a failure those before it are lost, as in batch.c. */
static ls_status read_elements(struct padded *p, int64_t size, ls_error *err)
{
    ls_status st = LS_OK;

    while (st == LS_OK && (int64_t)p->count < size) {
        ls_value *element = NULL;

        if (p->count == p->room) {
            const size_t room = LSI_MAX(16, 2 * p->room);
            ls_value **grown = lsi_realloc(p->held, p->room, room, sizeof(ls_value *));

            if (grown == NULL) {
                return lsi_fail_memory(err, "a padded batch", room * sizeof(ls_value *));
            }
            p->held = grown;
            p->room = room;
        }
        st = lsi_iterator_next(p->unary.input, &element, err);
        if (st == LS_OK) {
            p->held[p->count++] = element;
        }
    }
    return st;
}

static ls_status build_batch(struct padded *p, const ls_spec *spec, ls_value **out,
                             ls_error *err)
{
    static const struct target any = {.ndim = -1};
    const struct padded_node *node = (const struct padded_node *)p->unary.base.dataset;
    const size_t nleaves = lsi_spec_leaves(spec);
    const ls_value **leaves =
        lsi_alloc(LSI_MAX(p->count * nleaves, 1), sizeof(ls_value *));
    ls_value **made = lsi_alloc(LSI_MAX(nleaves, 1), sizeof(ls_value *));
    ls_status st = LS_OK;

    if (leaves == NULL || made == NULL) {
        st = lsi_fail_memory(err, "a padded batch",
                             p->count * nleaves * sizeof(ls_value *));
        goto out;
    }
    if (node->n > 0 && node->n != nleaves) {
        st = lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                           "padded_batch: %zu shapes or paddings for elements of %zu "
                           "components",
                           node->n, nleaves);
    }
    for (size_t i = 0; i < p->count && st == LS_OK; i++) {
        st = lsi_spec_flatten(spec, p->held[i], leaves + i * nleaves, err);
    }
    for (size_t k = 0; k < nleaves && st == LS_OK; k++) {
        st = stack_rows(node->n > 0 ? &node->targets[k] : &any, k, leaves + k, nleaves,
                        p->count, p->unary.base.as.device, &made[k], err);
    }
    if (st == LS_OK) {
        st = lsi_spec_pack(spec, made, out, err);
    }
out:
    lsi_free(leaves);
    if (made != NULL) {
        lsi_value_release_all(made, nleaves);
    }
    return st;
}

static ls_status emit_batch(struct padded *p, ls_value **out, ls_error *err)
{
    ls_spec *spec = ls_spec_retain(p->unary.base.dataset->inputs[0]->spec);
    ls_status st = LS_OK;

    if (lsi_spec_is_unknown(spec)) {
        ls_spec_release(spec);
        spec = NULL;
        st = lsi_spec_of(p->held[0], &spec, err);
    }
    if (st == LS_OK) {
        st = build_batch(p, spec, out, err);
    }
    ls_spec_release(spec);
    return st;
}

static ls_status next_padded(lsi_iterator *it, ls_value **out, ls_error *err)
{
    const struct padded_node *node = (const struct padded_node *)it->dataset;
    struct padded *p = (struct padded *)it;
    ls_status st = LS_OUT_OF_RANGE;

    if (p->over) {
        return LS_OUT_OF_RANGE;
    }
    st = read_elements(p, node->size, err);
    if (st == LS_OUT_OF_RANGE) {
        p->over = true; // a batch that is not full is the last
        st = p->count > 0 && !node->exact ? LS_OK : LS_OUT_OF_RANGE;
    }
    if (st == LS_OK) {
        st = emit_batch(p, out, err);
    }
    release_held(p);
    return st;
}

static ls_status save_padded(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    const struct padded *p = (const struct padded *)it;

    lsi_state_write_bool(w, p->over);
    return lsi_iterator_save(p->unary.input, w, err);
}

static ls_status restore_padded(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    struct padded *p = (struct padded *)it;
    const ls_status st = lsi_state_read_bool(r, &p->over, err);

    return st == LS_OK ? lsi_iterator_restore(p->unary.input, r, err) : st;
}

static void close_padded(lsi_iterator *it)
{
    struct padded *p = (struct padded *)it;

    release_held(p);
    lsi_free(p->held);
    lsi_unary_iterator_close(it);
}

static ls_status iterate_padded(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                                ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_padded,
                                         .save = save_padded,
                                         .restore = restore_padded,
                                         .close = close_padded};

    return lsi_unary_iterator_new(&ops, sizeof(struct padded), d, how, out, err);
}

/* ---- the node ---- */

static void destroy_padded(ls_dataset *d)
{
    struct padded_node *node = (struct padded_node *)d;

    for (size_t i = 0; node->targets != NULL && i < node->n; i++) {
        ls_tensor_release(node->targets[i].padding);
    }
    lsi_free(node->targets);
}

/* The shape of component k: the given one, if it is compatible with the elements'. */
static ls_status set_shape(struct target *t, size_t k, const ls_spec *given,
                           const ls_spec *have, ls_error *err)
{
    const bool known = have != NULL && !lsi_spec_is_unknown(have);
    const ls_spec *shape = given != NULL ? given : have;
    char text[200];

    if (known && have->kind != LS_SPEC_TENSOR) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                             "padded_batch: component %zu is not a dense tensor", k);
    }
    t->dtype = known ? have->dtype : (ls_dtype)0;
    t->ndim = shape != NULL ? shape->ndim : -1;
    for (int a = 0; a < LSI_MAX(t->ndim, 0); a++) {
        t->dims[a] = shape->dims[a];
    }
    if (known && t->ndim < 0) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "padded_batch: the rank of component %zu is not known; give "
                             "the shape it is to be padded to",
                             k);
    }
    if (!known || have->ndim < 0 || given == NULL) {
        return LS_OK;
    }
    bool fits = given->ndim == have->ndim;
    for (int a = 0; fits && a < have->ndim; a++) {
        fits = given->dims[a] < 0 || given->dims[a] >= have->dims[a];
    }
    if (!fits) {
        (void)ls_spec_text(have, text, sizeof text);
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "padded_batch: component %zu is %s, which does not go into "
                             "the shape it is to be padded to",
                             k, text);
    }
    return LS_OK;
}

static ls_status set_padding(struct target *t, size_t k, ls_tensor *padding,
                             ls_error *err)
{
    if (padding == NULL) {
        return LS_OK;
    }
    const bool scalar = ls_tensor_ndim(padding) == 0;
    if (!scalar || (t->dtype != 0 && ls_tensor_dtype(padding) != t->dtype)) {
        lsi_text text = lsi_text_of(padding);

        return lsi_fail_kind(
            err, LS_INVALID_ARGUMENT, scalar ? LS_KIND_TYPE : LS_KIND_VALUE,
            "padded_batch: component %zu is padded with %s; it must be a "
            "scalar of its own dtype",
            k, text.s);
    }
    t->padding = ls_tensor_retain(padding);
    return LS_OK;
}

static ls_status set_targets(struct padded_node *node, ls_spec *const *shapes,
                             ls_tensor *const *padding, size_t n, ls_error *err)
{
    const ls_spec *spec = node->base.inputs[0]->spec;
    const bool unknown = lsi_spec_is_unknown(spec);
    const bool given = shapes != NULL || padding != NULL;
    const size_t components = unknown ? (given ? n : 0) : lsi_spec_leaves(spec);
    ls_status st = LS_OK;

    if (given && n != components) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "padded_batch: %zu shapes or paddings for elements of %zu "
                             "components",
                             n, components);
    }
    if (components == 0) {
        return LS_OK;
    }
    node->targets = lsi_alloc(components, sizeof *node->targets);
    if (node->targets == NULL) {
        return lsi_fail_memory(err, "padded shapes", components * sizeof *node->targets);
    }
    node->n = components;
    for (size_t k = 0; k < components && st == LS_OK; k++) {
        st = set_shape(&node->targets[k], k, shapes != NULL ? shapes[k] : NULL,
                       unknown ? NULL : lsi_spec_leaf(spec, k), err);
        if (st == LS_OK && padding != NULL) {
            st = set_padding(&node->targets[k], k, padding[k], err);
        }
    }
    return st;
}

struct leaf_at {
    const struct padded_node *node;
    size_t k;
};

static ls_status padded_leaf(const ls_spec *leaf, void *user, ls_spec **out,
                             ls_error *err)
{
    struct leaf_at *at = user;
    const struct padded_node *node = at->node;
    const struct target *t = node->n > 0 ? &node->targets[at->k] : NULL;
    int64_t dims[LS_MAX_DIMS];

    at->k++;
    if (lsi_spec_is_unknown(leaf) || t == NULL) {
        return lsi_spec_unknown(out, err);
    }
    if (t->ndim == LS_MAX_DIMS) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "padded_batch: elements have %d axes, which is the "
                             "limit",
                             LS_MAX_DIMS);
    }
    dims[0] = node->exact ? node->size : -1;
    memcpy(dims + 1, t->dims, (size_t)t->ndim * sizeof *dims);
    return ls_spec_tensor(leaf->dtype, t->ndim + 1, dims, out, err);
}

static ls_dataset *rebuild_padded(const ls_dataset *d, ls_dataset *const *inputs);

static const lsi_dataset_ops padded_ops = {.kind = "padded_batch",
                                           .iterate = iterate_padded,
                                           .rebuild = rebuild_padded,
                                           .destroy = destroy_padded};

/* Completes a node after its targets were set; `st`: whether that succeeded. */
static ls_dataset *complete_padded(struct padded_node *node, ls_status st, ls_error *err)
{
    ls_dataset *made = &node->base;
    const ls_dataset *from = made->inputs[0];
    const int64_t n = from->cardinality, size = node->size;
    struct leaf_at at = {node, 0};
    ls_spec *spec = NULL;

    for (size_t k = 0; k < node->n; k++) {
        for (int a = 0; a < node->targets[k].ndim; a++) {
            lsi_dataset_mix_parameter(made, (uint64_t)node->targets[k].dims[a]);
        }
    }
    lsi_dataset_mix_parameter(made, (uint64_t)size);
    lsi_dataset_mix_parameter(made, node->exact);
    if (st == LS_OK) {
        st = lsi_spec_map(from->spec, padded_leaf, &at, &spec, err);
    }
    return lsi_dataset_done(made, st, spec,
                            n < 0 ? n : n / size + (!node->exact && n % size > 0), err);
}

static ls_dataset *rebuild_padded(const ls_dataset *d, ls_dataset *const *inputs)
{
    const struct padded_node *old = (const struct padded_node *)d;
    ls_dataset *from = ls_dataset_retain(inputs[0]);
    ls_dataset *made = lsi_dataset_new(&padded_ops, sizeof(struct padded_node), &from, 1);
    struct padded_node *node = (struct padded_node *)made;
    ls_error e = LS_ERROR_INIT;
    ls_status st = LS_OK;

    if (lsi_dataset_bad(made)) {
        return made;
    }
    node->size = old->size;
    node->exact = old->exact;
    if (old->n > 0) {
        node->targets = lsi_alloc(old->n, sizeof *node->targets);
        if (node->targets == NULL) {
            st = lsi_fail_memory(&e, "padded shapes", old->n * sizeof *node->targets);
            return complete_padded(node, st, &e);
        }
        node->n = old->n;
    }
    for (size_t k = 0; k < node->n; k++) {
        node->targets[k] = old->targets[k];
        (void)ls_tensor_retain(node->targets[k].padding);
    }
    return complete_padded(node, st, &e);
}

ls_dataset *ls_dataset_padded_batch(ls_dataset *d, int64_t size, ls_spec *const *shapes,
                                    ls_tensor *const *padding, size_t n,
                                    bool drop_remainder)
{
    ls_dataset *made = lsi_dataset_new(&padded_ops, sizeof(struct padded_node), &d, 1);
    struct padded_node *node = (struct padded_node *)made;
    ls_error e = LS_ERROR_INIT;

    if (lsi_dataset_bad(made)) {
        return made;
    }
    if (size <= 0) {
        return lsi_dataset_fail(made, LS_INVALID_ARGUMENT, LS_KIND_OP,
                                "padded_batch: a size of %lld; a batch has at least one "
                                "element",
                                (long long)size);
    }
    node->size = size;
    node->exact = drop_remainder;
    const ls_status st = set_targets(node, shapes, padding, n, &e);
    return complete_padded(node, st, &e);
}
