/* take and skip: the first n elements, and all but the first n. */
#include "data/data.h"

struct part {
    ls_dataset base;
    int64_t count; // negative: all
};

struct part_iterator {
    lsi_unary_iterator unary;
    int64_t at; // elements so far
};

static int64_t limit_of(const lsi_iterator *it)
{
    return ((const struct part *)it->dataset)->count;
}

static ls_status save_count(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    struct part_iterator *p = (struct part_iterator *)it;

    lsi_state_write_u64(w, (uint64_t)p->at);
    return lsi_iterator_save(p->unary.input, w, err);
}

static ls_status restore_count(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    struct part_iterator *p = (struct part_iterator *)it;
    uint64_t at = 0;
    const ls_status st = lsi_state_read_count(r, (uint64_t)limit_of(it), &at, err);

    if (st != LS_OK) {
        return st;
    }
    p->at = (int64_t)at;
    return lsi_iterator_restore(p->unary.input, r, err);
}

static ls_status iterate_input(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                               ls_error *err)
{
    return lsi_dataset_iterate(d->inputs[0], how, out, err);
}

/* ---- no elements: take(0) and skip(-1) never read their input ---- */

static ls_status next_of_nothing(lsi_iterator *it, ls_value **out, ls_error *err)
{
    (void)it;
    (void)out;
    (void)err;
    return LS_OUT_OF_RANGE;
}

static ls_status save_nothing(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    (void)it;
    (void)w;
    (void)err;
    return LS_OK;
}

static ls_status restore_nothing(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    (void)it;
    (void)r;
    (void)err;
    return LS_OK;
}

static ls_status iterate_nothing(ls_dataset *d, const lsi_opening *how,
                                 lsi_iterator **out, ls_error *err)
{
    static const lsi_iterator_ops ops = {
        .next = next_of_nothing, .save = save_nothing, .restore = restore_nothing};

    return lsi_iterator_new(&ops, sizeof(lsi_iterator), d, how, out, err);
}

/* ---- take ---- */

static ls_status next_of_take(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct part_iterator *p = (struct part_iterator *)it;
    ls_status st = LS_OUT_OF_RANGE;

    if (p->at < limit_of(it)) {
        st = lsi_iterator_next(p->unary.input, out, err);
        p->at += st == LS_OK;
    }
    return st;
}

static ls_status fill_of_take(lsi_iterator *it, lsi_batch_rows *rows, int64_t want,
                              int64_t *got, ls_error *err)
{
    struct part_iterator *p = (struct part_iterator *)it;
    const int64_t left = limit_of(it) - p->at;
    ls_status st = LS_OK;

    if (left > 0) {
        st = lsi_iterator_fill(p->unary.input, rows, LSI_MIN(want, left), got, err);
        p->at += *got;
    }
    return st == LS_OK && *got < want ? LS_OUT_OF_RANGE : st;
}

static ls_status skip_of_take(lsi_iterator *it, int64_t n, int64_t *skipped,
                              ls_error *err)
{
    struct part_iterator *p = (struct part_iterator *)it;
    const int64_t left = limit_of(it) - p->at;
    ls_status st = LS_OK;

    if (left > 0) {
        st = lsi_iterator_skip(p->unary.input, LSI_MIN(n, left), skipped, err);
        p->at += *skipped;
    }
    return st == LS_OK && *skipped < n ? LS_OUT_OF_RANGE : st;
}

static ls_status iterate_take(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                              ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_of_take,
                                         .fill = fill_of_take,
                                         .skip = skip_of_take,
                                         .save = save_count,
                                         .restore = restore_count,
                                         .close = lsi_unary_iterator_close};
    const int64_t count = ((const struct part *)d)->count;

    if (count <= 0) {
        return count < 0 ? iterate_input(d, how, out, err)
                         : iterate_nothing(d, how, out, err);
    }
    return lsi_unary_iterator_new(&ops, sizeof(struct part_iterator), d, how, out, err);
}

/* ---- skip ---- */

/* After a failure it skips all n again, as TensorFlow does. */
static ls_status next_of_skip(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct part_iterator *p = (struct part_iterator *)it;

    while (p->at < limit_of(it)) {
        int64_t skipped = 0;
        const ls_status st =
            lsi_iterator_skip(p->unary.input, limit_of(it) - p->at, &skipped, err);

        if (st != LS_OK && st != LS_OUT_OF_RANGE) {
            return st;
        }
        p->at += skipped;
        if (st != LS_OK) {
            return st;
        }
    }
    return lsi_iterator_next(p->unary.input, out, err);
}

static ls_status iterate_skip(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                              ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_of_skip,
                                         .save = save_count,
                                         .restore = restore_count,
                                         .close = lsi_unary_iterator_close};
    const int64_t count = ((const struct part *)d)->count;

    if (count <= 0) {
        return count == 0 ? iterate_input(d, how, out, err)
                          : iterate_nothing(d, how, out, err);
    }
    return lsi_unary_iterator_new(&ops, sizeof(struct part_iterator), d, how, out, err);
}

/* ---- builders ---- */

static ls_dataset *build_take(const lsi_dataset_ops *ops, ls_dataset *d, int64_t count)
{
    ls_dataset *made = lsi_dataset_new(ops, sizeof(struct part), &d, 1);

    if (!lsi_dataset_bad(made)) {
        ((struct part *)made)->count = LSI_MAX(count, -1);
        lsi_dataset_mix_parameter(made, (uint64_t)count);
        made->spec = ls_spec_retain(d->spec);
    }
    return made;
}

static ls_dataset *rebuild_take(const ls_dataset *d, ls_dataset *const *inputs)
{
    return ls_dataset_take(ls_dataset_retain(inputs[0]), ((const struct part *)d)->count);
}

ls_dataset *ls_dataset_take(ls_dataset *d, int64_t count)
{
    static const lsi_dataset_ops ops = {
        .kind = "take", .iterate = iterate_take, .rebuild = rebuild_take};
    ls_dataset *made = build_take(&ops, d, count);

    if (!lsi_dataset_bad(made)) {
        const int64_t n = d->cardinality;

        made->cardinality = count < 0 || n == LS_UNKNOWN_SIZE ? n
                            : n == LS_INFINITE                ? count
                                                              : LSI_MIN(n, count);
    }
    return made;
}

static ls_dataset *rebuild_skip(const ls_dataset *d, ls_dataset *const *inputs)
{
    return ls_dataset_skip(ls_dataset_retain(inputs[0]), ((const struct part *)d)->count);
}

ls_dataset *ls_dataset_skip(ls_dataset *d, int64_t count)
{
    static const lsi_dataset_ops ops = {
        .kind = "skip", .iterate = iterate_skip, .rebuild = rebuild_skip};
    ls_dataset *made = build_take(&ops, d, count);

    if (!lsi_dataset_bad(made)) {
        const int64_t n = d->cardinality;

        made->cardinality = n < 0 ? n : count < 0 ? 0 : LSI_MAX(0, n - count);
    }
    return made;
}
