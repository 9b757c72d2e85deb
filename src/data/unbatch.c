/* unbatch: the rows of batches as elements. */
#include "data/data.h"

struct unbatch_iterator {
    lsi_unary_iterator unary;
    ls_value *batch; // NULL: the next one has to be read
    int64_t at, rows;
};

/* Reads a batch if no row is left. One whose components differ in size is dropped. */
static ls_status refill_batch(struct unbatch_iterator *u, ls_error *err)
{
    while (u->batch == NULL || u->at == u->rows) {
        ls_value *batch = NULL;
        ls_status st;

        ls_value_release(u->batch);
        u->batch = NULL;
        st = lsi_iterator_next(u->unary.input, &batch, err);
        if (st != LS_OK) {
            return st;
        }
        u->rows = lsi_value_row_count(batch, err);
        if (u->rows < 0) {
            ls_value_release(batch);
            return LS_INVALID_ARGUMENT;
        }
        u->batch = batch;
        u->at = 0;
    }
    return LS_OK;
}

static ls_status next_row(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct unbatch_iterator *u = (struct unbatch_iterator *)it;
    ls_status st = refill_batch(u, err);

    if (st == LS_OK) {
        st = lsi_value_row(u->batch, u->at, it->as.device, out, err);
        u->at += st == LS_OK;
    }
    return st;
}

static ls_status fill_from_batch(lsi_iterator *it, lsi_batch_rows *rows, int64_t want,
                                 int64_t *got, ls_error *err)
{
    struct unbatch_iterator *u = (struct unbatch_iterator *)it;
    ls_status st = LS_OK;

    while (*got < want && st == LS_OK) {
        st = refill_batch(u, err);
        if (st == LS_OK) {
            const int64_t n = LSI_MIN(want - *got, u->rows - u->at);

            st = lsi_batch_rows_add_rows(rows, u->batch, u->at, u->at + n, err);
            u->at += n;
            *got += n;
        }
    }
    return st;
}

static ls_status skip_rows(lsi_iterator *it, int64_t n, int64_t *skipped, ls_error *err)
{
    struct unbatch_iterator *u = (struct unbatch_iterator *)it;
    ls_status st = LS_OK;

    while (*skipped < n && st == LS_OK) {
        st = refill_batch(u, err);
        if (st == LS_OK) {
            const int64_t some = LSI_MIN(n - *skipped, u->rows - u->at);

            u->at += some;
            *skipped += some;
        }
    }
    return st;
}

static void close_unbatch(lsi_iterator *it)
{
    ls_value_release(((struct unbatch_iterator *)it)->batch);
    lsi_unary_iterator_close(it);
}

static ls_status save_unbatch(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    struct unbatch_iterator *u = (struct unbatch_iterator *)it;
    const bool rest = u->batch != NULL && u->at < u->rows;

    lsi_state_write_bool(w, rest);
    if (rest) {
        lsi_state_write_value(w, u->batch);
        lsi_state_write_u64(w, (uint64_t)u->at);
    }
    return lsi_iterator_save(u->unary.input, w, err);
}

static ls_status restore_unbatch(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    struct unbatch_iterator *u = (struct unbatch_iterator *)it;
    bool rest = false;
    uint64_t at = 0;
    ls_status st = lsi_state_read_bool(r, &rest, err);

    ls_value_release(u->batch);
    u->batch = NULL;
    if (st == LS_OK && rest) {
        st = lsi_state_read_element(r, it->dataset->inputs[0]->spec, &u->batch, err);
        if (st == LS_OK) {
            u->rows = lsi_value_row_count(u->batch, err);
            st = u->rows > 0 ? lsi_state_read_count(r, (uint64_t)u->rows - 1, &at, err)
                             : lsi_state_damaged(err, "a batch has no rows");
            u->at = (int64_t)at;
        }
    }
    if (st == LS_OK) {
        st = lsi_iterator_restore(u->unary.input, r, err);
    }
    return st;
}

static ls_status iterate_unbatch(ls_dataset *d, const lsi_opening *how,
                                 lsi_iterator **out, ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_row,
                                         .fill = fill_from_batch,
                                         .skip = skip_rows,
                                         .save = save_unbatch,
                                         .restore = restore_unbatch,
                                         .close = close_unbatch};

    return lsi_unary_iterator_new(&ops, sizeof(struct unbatch_iterator), d, how, out,
                                  err);
}

static ls_dataset *rebuild_unbatch(const ls_dataset *d, ls_dataset *const *inputs)
{
    (void)d;
    return ls_dataset_unbatch(ls_dataset_retain(inputs[0]));
}

/* The cardinality, from the first component with a known number of rows. */
static int64_t unbatched_size(const ls_dataset *d)
{
    int64_t rows = -1, product = 0;

    if (d->cardinality < 0) {
        return d->cardinality;
    }
    for (size_t i = 0; rows < 0 && i < lsi_spec_leaves(d->spec); i++) {
        rows = ls_spec_dim(lsi_spec_leaf(d->spec, i), 0);
    }
    return rows <= 0 || __builtin_mul_overflow(d->cardinality, rows, &product)
               ? LS_UNKNOWN_SIZE
               : product;
}

ls_dataset *ls_dataset_unbatch(ls_dataset *d)
{
    static const lsi_dataset_ops ops = {
        .kind = "unbatch", .iterate = iterate_unbatch, .rebuild = rebuild_unbatch};
    ls_dataset *made = lsi_dataset_new(&ops, sizeof *made, &d, 1);
    ls_error err = LS_ERROR_INIT;
    ls_spec *spec = NULL;

    if (lsi_dataset_bad(made)) {
        return made;
    }
    const ls_status st = lsi_spec_unbatch(d->spec, &spec, &err);
    return lsi_dataset_done(made, st, spec, unbatched_size(d), &err);
}
