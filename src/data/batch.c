/* batch: consecutive elements stacked along a new axis 0. */
#include "data/data.h"

#include <string.h>

struct batch {
    ls_dataset base;
    int64_t size;
    bool exact; // a last batch that is not full is left out
};

struct batch_iterator {
    lsi_unary_iterator unary;
    lsi_batch_rows *rows;
    bool over; // the last batch was returned
};

/*
 * If the input fails, the batch fails and the elements read for it are lost. If elements
 * differ in shape or dtype, the batch fails after all of its elements were read. Either
 * way the next call begins with the next batch.
 */
static ls_status next_batch(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct batch_iterator *b = (struct batch_iterator *)it;
    const struct batch *node = (const struct batch *)it->dataset;
    int64_t n = 0;
    ls_status st = LS_OK;

    if (b->over) {
        return LS_OUT_OF_RANGE;
    }
    while (n < node->size && st == LS_OK) {
        int64_t got = 0;

        st = lsi_iterator_fill(b->unary.input, b->rows, node->size - n, &got, err);
        n += got;
    }
    if (st == LS_OUT_OF_RANGE) {
        b->over = true;
        st = n == 0 || node->exact ? LS_OUT_OF_RANGE : LS_OK;
    }
    if (st != LS_OK) {
        lsi_batch_rows_clear(b->rows);
        return st;
    }
    return lsi_batch_rows_take(b->rows, out, err);
}

static void close_batch(lsi_iterator *it)
{
    lsi_batch_rows_release(((struct batch_iterator *)it)->rows);
    lsi_unary_iterator_close(it);
}

static ls_status save_batch(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    lsi_state_write_bool(w, ((struct batch_iterator *)it)->over);
    return lsi_iterator_save(((lsi_unary_iterator *)it)->input, w, err);
}

static ls_status restore_batch(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    const ls_status st =
        lsi_state_read_bool(r, &((struct batch_iterator *)it)->over, err);

    return st == LS_OK ? lsi_iterator_restore(((lsi_unary_iterator *)it)->input, r, err)
                       : st;
}

static ls_status iterate_batch(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                               ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_batch,
                                         .save = save_batch,
                                         .restore = restore_batch,
                                         .close = close_batch};
    const ls_dataset *input = d->inputs[0];
    int64_t rows = ((struct batch *)d)->size;
    lsi_iterator *it = NULL;
    ls_status st =
        lsi_unary_iterator_new(&ops, sizeof(struct batch_iterator), d, how, &it, err);

    if (input->cardinality >= 0) {
        rows = LSI_MIN(rows, LSI_MAX(input->cardinality, 1));
    }
    if (st == LS_OK) {
        st = lsi_batch_rows_create(input->spec, rows, how->device,
                                   &((struct batch_iterator *)it)->rows, err);
    }
    if (st == LS_OK) {
        *out = it;
    } else {
        lsi_iterator_close(it);
    }
    return st;
}

static ls_dataset *build_batch(ls_dataset *d, int64_t size, bool exact);

static ls_dataset *rebuild_batch(const ls_dataset *d, ls_dataset *const *inputs)
{
    const struct batch *node = (const struct batch *)d;

    return build_batch(ls_dataset_retain(inputs[0]), node->size, node->exact);
}

static const lsi_dataset_ops batch_ops = {
    .kind = "batch", .iterate = iterate_batch, .rebuild = rebuild_batch};

static ls_dataset *build_batch(ls_dataset *d, int64_t size, bool exact)
{
    ls_dataset *made = lsi_dataset_new(&batch_ops, sizeof(struct batch), &d, 1);
    struct batch *node = (struct batch *)made;
    ls_error err = LS_ERROR_INIT;
    ls_spec *spec = NULL;

    if (lsi_dataset_bad(made)) {
        return made;
    }
    if (size <= 0) {
        // TensorFlow first uses a negative number as the size of an axis: ValueError
        return lsi_dataset_fail(
            made, LS_INVALID_ARGUMENT, exact && size < 0 ? LS_KIND_VALUE : LS_KIND_OP,
            "batch: a size of %lld; a batch has at least one element", (long long)size);
    }
    node->size = size;
    node->exact = exact;
    lsi_dataset_mix_parameter(made, (uint64_t)size);
    lsi_dataset_mix_parameter(made, exact);
    const int64_t n = d->cardinality;
    const int64_t batches = n < 0 ? n : n / size + (!exact && n % size > 0);
    const ls_status st = lsi_spec_batch(d->spec, exact ? size : -1, &spec, &err);
    return lsi_dataset_done(made, st, spec, batches, &err);
}

/* The structs of all batch nodes have the size as their first member. */
int64_t lsi_dataset_batch_size(const ls_dataset *d)
{
    const char *kind = ls_dataset_kind(d);

    return !lsi_dataset_bad(d) &&
                   (strcmp(kind, "batch") == 0 || strcmp(kind, "parallel_batch") == 0 ||
                    strcmp(kind, "padded_batch") == 0)
               ? ((const struct batch *)d)->size
               : -1;
}

ls_dataset *ls_dataset_batch(ls_dataset *d, int64_t size)
{
    return build_batch(d, size, false);
}

ls_dataset *ls_dataset_batch_exact(ls_dataset *d, int64_t size)
{
    return build_batch(d, size, true);
}
