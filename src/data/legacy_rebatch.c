/*
 * legacy_rebatch: every batch cut into n pieces (spec §7.4), each component separately:
 * of b rows, piece k has ceil(b / n) rows from k * ceil(b / n) on, as far as there are
 * any.
 */
#include "data/data.h"
#include "data/sparse.h"

struct legacy {
    ls_dataset base;
    int64_t pieces;
};

struct legacy_iterator {
    lsi_unary_iterator unary;
    ls_value *batch; // NULL: the next one has to be read
    int64_t piece;   // the next piece of it
};

/* The rows of the k-th of n pieces. */
struct piece {
    int64_t k, n;
    ls_device *device;
};

static ls_status cut_leaf(const ls_value *v, const void *user, ls_value **out,
                          ls_error *err)
{
    const struct piece *p = user;
    const bool sparse = lsi_value_is_sparse(v);
    ls_tensor *t = ls_value_as_tensor(v), *part = NULL;
    ls_status st;

    if (!sparse && (t == NULL || ls_tensor_ndim(t) == 0)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "a component is a scalar and has no rows: call batch "
                             "before");
    }
    const int64_t rows = sparse ? lsi_sparse_row_count(v) : ls_tensor_dim(t, 0);
    const int64_t each = rows / p->n + (rows % p->n > 0);
    const int64_t begin = each > 0 && p->k > rows / each ? rows : p->k * each;
    const int64_t end = LSI_MIN(begin + each, rows);
    if (sparse) {
        return lsi_sparse_rows(v, begin, end, false, p->device, out, err);
    }
    part = lsi_tensor_rows(t, begin, LSI_MAX(begin, end), p->device);
    st = part != NULL ? ls_value_tensor(part, out, err)
                      : lsi_fail_memory(err, "a piece of a batch", sizeof *part);
    ls_tensor_release(part);
    return st;
}

static ls_status next_piece(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct legacy_iterator *l = (struct legacy_iterator *)it;
    const int64_t n = ((const struct legacy *)it->dataset)->pieces;
    const struct piece p = {l->batch != NULL ? l->piece : 0, n, it->as.device};
    ls_status st = LS_OK;

    if (l->batch == NULL) {
        st = lsi_iterator_next(l->unary.input, &l->batch, err);
    }
    if (st != LS_OK) {
        return st;
    }
    st = lsi_element_map(l->batch, cut_leaf, &p, out, err);
    l->piece = p.k + 1;
    if (st == LS_INVALID_ARGUMENT || (st == LS_OK && l->piece == n)) {
        ls_value_release(l->batch);
        l->batch = NULL;
    } else if (st != LS_OK) {
        l->piece = p.k; // out of memory: the next call returns the same piece
    }
    return st;
}

static void close_pieces(lsi_iterator *it)
{
    ls_value_release(((struct legacy_iterator *)it)->batch);
    lsi_unary_iterator_close(it);
}

static ls_status save_pieces(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    struct legacy_iterator *l = (struct legacy_iterator *)it;

    lsi_state_write_bool(w, l->batch != NULL);
    if (l->batch != NULL) {
        lsi_state_write_value(w, l->batch);
        lsi_state_write_u64(w, (uint64_t)l->piece);
    }
    return lsi_iterator_save(l->unary.input, w, err);
}

static ls_status restore_pieces(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    struct legacy_iterator *l = (struct legacy_iterator *)it;
    const int64_t n = ((const struct legacy *)it->dataset)->pieces;
    bool there = false;
    uint64_t piece = 0;
    ls_status st = lsi_state_read_bool(r, &there, err);

    ls_value_release(l->batch);
    l->batch = NULL;
    if (st == LS_OK && there) {
        st = lsi_state_read_element(r, it->dataset->inputs[0]->spec, &l->batch, err);
        if (st == LS_OK) {
            st = lsi_state_read_count(r, (uint64_t)n - 1, &piece, err);
            l->piece = (int64_t)piece;
        }
    }
    if (st == LS_OK) {
        st = lsi_iterator_restore(l->unary.input, r, err);
    }
    return st;
}

static ls_status iterate_pieces(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                                ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_piece,
                                         .save = save_pieces,
                                         .restore = restore_pieces,
                                         .close = close_pieces};

    return lsi_unary_iterator_new(&ops, sizeof(struct legacy_iterator), d, how, out, err);
}

static ls_dataset *rebuild_pieces(const ls_dataset *d, ls_dataset *const *inputs)
{
    return lsi_dataset_legacy_rebatch(ls_dataset_retain(inputs[0]),
                                      ((const struct legacy *)d)->pieces);
}

ls_dataset *lsi_dataset_legacy_rebatch(ls_dataset *d, int64_t n)
{
    static const lsi_dataset_ops ops = {
        .kind = "legacy_rebatch", .iterate = iterate_pieces, .rebuild = rebuild_pieces};
    ls_dataset *made = lsi_dataset_new(&ops, sizeof(struct legacy), &d, 1);
    ls_error err = LS_ERROR_INIT;
    ls_spec *spec = NULL;

    if (lsi_dataset_bad(made)) {
        return made;
    }
    if (n < 1) {
        return lsi_dataset_fail(made, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                "rebatch: %lld pieces; there must be at least one",
                                (long long)n);
    }
    ((struct legacy *)made)->pieces = n;
    lsi_dataset_mix_parameter(made, (uint64_t)n);
    const ls_status st = lsi_spec_divide_rows(d->spec, n, &spec, &err);
    return lsi_dataset_done(made, st, spec, LS_UNKNOWN_SIZE, &err);
}
