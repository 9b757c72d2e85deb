/*
 * rebatch: the rows of all batches, cut into batches whose sizes are taken in turn from a
 * list (spec §7.3). A size of 0 is an empty batch, for which the input is not read. A
 * batch whose rows lie in one batch of the input is a view of it.
 */
#include "data/data.h"

struct rebatch {
    ls_dataset base;
    int64_t *sizes;
    size_t n;
    bool exact; // a last batch that is not full is left out
};

struct rebatch_iterator {
    lsi_unary_iterator unary;
    size_t turn;     // index in the list of sizes
    ls_value *batch; // NULL: the next one has to be read
    int64_t at, rows;
    bool over;
};

/* A batch that is being put together: one piece is a view, several are copied. */
struct gathered {
    ls_value *first;
    int64_t begin, end;
    lsi_batch_rows *rows; // NULL: there is one piece only
    int64_t count;
};

static ls_status add_piece(struct gathered *g, const struct rebatch_iterator *b,
                           int64_t end, int64_t want, ls_error *err)
{
    ls_status st = LS_OK;

    if (g->first == NULL) {
        g->first = ls_value_retain(b->batch);
        g->begin = b->at;
        g->end = end;
    } else {
        if (g->rows == NULL) {
            ls_spec *any = NULL;

            st = lsi_spec_unknown(&any, err);
            if (st == LS_OK) {
                st = lsi_batch_rows_create(any, want, b->unary.base.as.device, &g->rows,
                                           err);
            }
            ls_spec_release(any);
            if (st == LS_OK) {
                st = lsi_batch_rows_add_rows(g->rows, g->first, g->begin, g->end, err);
            }
        }
        if (st == LS_OK) {
            st = lsi_batch_rows_add_rows(g->rows, b->batch, b->at, end, err);
        }
    }
    g->count += end - b->at;
    return st;
}

static ls_status refill_batch(struct rebatch_iterator *b, ls_error *err)
{
    const ls_status st = lsi_iterator_next(b->unary.input, &b->batch, err);

    if (st != LS_OK) {
        return st;
    }
    b->at = 0;
    b->rows = lsi_value_row_count(b->batch, err);
    if (b->rows < 0) {
        ls_value_release(b->batch);
        b->batch = NULL;
        return LS_INVALID_ARGUMENT;
    }
    return LS_OK;
}

/* Takes rows until there are `want` or the input has ended. */
static ls_status gather_rows(struct rebatch_iterator *b, int64_t want, struct gathered *g,
                             ls_error *err)
{
    ls_status st = LS_OK;

    while (g->count < want && st == LS_OK) {
        if (b->batch == NULL) {
            st = refill_batch(b, err);
            if (st == LS_OUT_OF_RANGE) {
                b->over = true;
                return LS_OK;
            }
        }
        if (st == LS_OK) {
            const int64_t end = b->at + LSI_MIN(want - g->count, b->rows - b->at);

            if (end > b->at) {
                st = add_piece(g, b, end, want, err);
            }
            b->at = end;
            if (b->at == b->rows) {
                ls_value_release(b->batch);
                b->batch = NULL;
            }
        }
    }
    return st;
}

static ls_status finish_batch(struct gathered *g, ls_device *device, ls_value **out,
                              ls_error *err)
{
    ls_error why = LS_ERROR_INIT;
    ls_status st;

    if (g->rows == NULL) {
        return lsi_value_rows(g->first, g->begin, g->end, device, out, err);
    }
    st = lsi_batch_rows_take(g->rows, out, &why);
    if (st == LS_INVALID_ARGUMENT) { // TensorFlow's code for rows that differ
        return lsi_fail(err, LS_FAILED_PRECONDITION, -1,
                        "rebatch: rows of different batches cannot be joined: %s",
                        why.message);
    }
    return st == LS_OK ? LS_OK : lsi_fail_again(err, &why);
}

static ls_status next_rebatch(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct rebatch_iterator *b = (struct rebatch_iterator *)it;
    const struct rebatch *node = (const struct rebatch *)it->dataset;
    const int64_t want = node->sizes[b->turn];
    struct gathered g = {0};
    ls_status st = LS_OK;

    if (b->over) {
        return LS_OUT_OF_RANGE;
    }
    if (want > 0) {
        st = gather_rows(b, want, &g, err);
    }
    if (st == LS_OK) {
        b->turn = (b->turn + 1) % node->n;
        if (want == 0) {
            st = lsi_spec_no_rows(it->dataset->spec, it->as.device, out, err);
        } else if (g.count == 0 || (node->exact && g.count < want)) {
            st = LS_OUT_OF_RANGE;
        } else {
            st = finish_batch(&g, it->as.device, out, err);
        }
    }
    ls_value_release(g.first);
    lsi_batch_rows_release(g.rows);
    return st;
}

static void close_rebatch(lsi_iterator *it)
{
    ls_value_release(((struct rebatch_iterator *)it)->batch);
    lsi_unary_iterator_close(it);
}

static ls_status save_rebatch(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    struct rebatch_iterator *b = (struct rebatch_iterator *)it;

    lsi_state_write_u64(w, b->turn);
    lsi_state_write_bool(w, b->over);
    lsi_state_write_bool(w, b->batch != NULL);
    if (b->batch != NULL) {
        lsi_state_write_value(w, b->batch);
        lsi_state_write_u64(w, (uint64_t)b->at);
    }
    return lsi_iterator_save(b->unary.input, w, err);
}

static ls_status read_batch(struct rebatch_iterator *b, lsi_state_reader *r,
                            ls_error *err)
{
    uint64_t at = 0;
    bool there = false;
    ls_status st = lsi_state_read_bool(r, &there, err);

    ls_value_release(b->batch);
    b->batch = NULL;
    if (st == LS_OK && there) {
        st = lsi_state_read_element(r, b->unary.base.dataset->inputs[0]->spec, &b->batch,
                                    err);
        if (st == LS_OK) {
            b->rows = lsi_value_row_count(b->batch, err);
            st = b->rows > 0 ? lsi_state_read_count(r, (uint64_t)b->rows - 1, &at, err)
                             : lsi_state_damaged(err, "a batch has no rows");
            b->at = (int64_t)at;
        }
    }
    return st;
}

static ls_status restore_rebatch(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    struct rebatch_iterator *b = (struct rebatch_iterator *)it;
    uint64_t turn = 0;
    ls_status st =
        lsi_state_read_count(r, ((struct rebatch *)it->dataset)->n - 1, &turn, err);

    if (st == LS_OK) {
        b->turn = (size_t)turn;
        st = lsi_state_read_bool(r, &b->over, err);
    }
    if (st == LS_OK) {
        st = read_batch(b, r, err);
    }
    if (st == LS_OK) {
        st = lsi_iterator_restore(b->unary.input, r, err);
    }
    return st;
}

static ls_status iterate_rebatch(ls_dataset *d, const lsi_opening *how,
                                 lsi_iterator **out, ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_rebatch,
                                         .save = save_rebatch,
                                         .restore = restore_rebatch,
                                         .close = close_rebatch};

    return lsi_unary_iterator_new(&ops, sizeof(struct rebatch_iterator), d, how, out,
                                  err);
}

/* ---- building ---- */

static ls_dataset *rebuild_rebatch(const ls_dataset *d, ls_dataset *const *inputs)
{
    const struct rebatch *node = (const struct rebatch *)d;

    return ls_dataset_rebatch(ls_dataset_retain(inputs[0]), node->sizes, node->n,
                              node->exact);
}

static void destroy_rebatch(ls_dataset *d)
{
    lsi_free(((struct rebatch *)d)->sizes);
}

/* The size of every batch; -1 if it is not known or differs. */
static int64_t size_known(const struct rebatch *node, const ls_dataset *input)
{
    const int64_t size = node->sizes[0], rows = lsi_spec_rows(input->spec);
    bool equal = size > 0;

    for (size_t i = 1; i < node->n; i++) {
        equal = equal && node->sizes[i] == size;
    }
    return equal && (node->exact || (rows >= 0 && rows % size == 0)) ? size : -1;
}

ls_dataset *ls_dataset_rebatch(ls_dataset *d, const int64_t *sizes, size_t n,
                               bool drop_remainder)
{
    static const lsi_dataset_ops ops = {.kind = "rebatch",
                                        .iterate = iterate_rebatch,
                                        .rebuild = rebuild_rebatch,
                                        .destroy = destroy_rebatch};
    ls_dataset *made = lsi_dataset_new(&ops, sizeof(struct rebatch), &d, 1);
    struct rebatch *node = (struct rebatch *)made;
    ls_error err = LS_ERROR_INIT;
    ls_spec *spec = NULL;

    if (lsi_dataset_bad(made)) {
        return made;
    }
    if (sizes == NULL || n == 0) {
        return lsi_dataset_fail(made, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                "rebatch: there are no sizes to cut to");
    }
    node->sizes = lsi_alloc(n, sizeof *sizes);
    if (node->sizes == NULL) {
        (void)lsi_fail_memory(&err, "rebatch", n * sizeof *sizes);
        return lsi_dataset_fail_with(made, &err);
    }
    node->n = n;
    node->exact = drop_remainder;
    lsi_dataset_mix_parameter(made, drop_remainder);
    for (size_t i = 0; i < n; i++) {
        if (sizes[i] < 0) {
            return lsi_dataset_fail(made, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                    "rebatch: size %zu is %lld; sizes are 0 or more", i,
                                    (long long)sizes[i]);
        }
        node->sizes[i] = sizes[i];
        lsi_dataset_mix_parameter(made, (uint64_t)sizes[i]);
    }
    const ls_status st = lsi_spec_with_rows(d->spec, size_known(node, d), &spec, &err);
    return lsi_dataset_done(made, st, spec, LS_UNKNOWN_SIZE, &err);
}
