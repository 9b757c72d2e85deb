/*
 * repeat: the elements of the input again and again; each pass is a new iterator of the
 * input. After its last pass a finite repeat makes one more iterator, which it does not
 * use, unless its input is a shuffle: TensorFlow does so, and every iterator of a shuffle
 * below advances its seeds.
 */
#include "data/data.h"

#include <string.h>

struct repeat {
    ls_dataset base;
    int64_t count; // negative: without end
    bool spare;    // makes the iterator that is not used
    bool shuffled; // its input is a shuffle, perhaps below repeats of one pass
};

struct repeat_iterator {
    lsi_unary_iterator unary;
    int64_t pass;
    bool fresh; // the pass has returned nothing yet
    bool over;  // after the last pass; its input is kept: its position is saved with ours
};

/* Ends the pass and begins the next one, if there is one. */
static ls_status next_pass(struct repeat_iterator *p, ls_error *err)
{
    const struct repeat *node = (const struct repeat *)p->unary.base.dataset;
    ls_dataset *input = node->base.inputs[0];

    lsi_iterator *made = NULL;
    const bool last = node->count >= 0 ? p->pass >= node->count - 1 : p->fresh;
    ls_status st = LS_OK;

    if (!last || node->spare) {
        st = lsi_iterator_open_input(
            &p->unary.base, input,
            lsi_lineage_below(&p->unary.base, (uint64_t)p->pass + 1), &made, err);
    }
    if (st != LS_OK) {
        return st; // the next call tries again
    }
    p->over = last;
    p->pass++;
    p->fresh = true;
    if (last) {
        lsi_iterator_close(made);
    } else {
        lsi_iterator_close(p->unary.input);
        p->unary.input = made;
    }
    return LS_OK;
}

static ls_status next_repeat(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct repeat_iterator *p = (struct repeat_iterator *)it;
    ls_status st = LS_OK;

    while (!p->over && p->unary.input != NULL && st == LS_OK) {
        st = lsi_iterator_next(p->unary.input, out, err);
        if (st != LS_OUT_OF_RANGE) {
            p->fresh = p->fresh && st != LS_OK;
            return st;
        }
        st = next_pass(p, err);
    }
    return st != LS_OK ? st : LS_OUT_OF_RANGE;
}

static ls_status save_repeat(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    struct repeat_iterator *p = (struct repeat_iterator *)it;

    lsi_state_write_u64(w, (uint64_t)p->pass);
    lsi_state_write_bool(w, p->fresh);
    lsi_state_write_bool(w, p->over);
    return lsi_input_iterator_save(p->unary.input, w, err);
}

static ls_status restore_repeat(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    struct repeat_iterator *p = (struct repeat_iterator *)it;
    uint64_t pass = 0;
    ls_status st = lsi_state_read_count(r, INT64_MAX, &pass, err);

    if (st == LS_OK) {
        st = lsi_state_read_bool(r, &p->fresh, err);
    }
    if (st == LS_OK) {
        st = lsi_state_read_bool(r, &p->over, err);
    }
    if (st != LS_OK) {
        return st;
    }
    if ((int64_t)pass != p->pass) { // makes an input of that pass
        lsi_iterator_close(p->unary.input);
        p->unary.input = NULL;
    }
    p->pass = (int64_t)pass;
    return lsi_input_iterator_restore(it, &p->unary.input, lsi_lineage_below(it, pass),
                                      it->dataset->inputs[0], r, err);
}

static ls_status iterate_repeat(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                                ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_repeat,
                                         .save = save_repeat,
                                         .restore = restore_repeat,
                                         .close = lsi_unary_iterator_close};
    const int64_t count = ((const struct repeat *)d)->count;
    ls_status st;

    if (count == 1) {
        return lsi_dataset_iterate(d->inputs[0], how, out, err);
    }
    if (count == 0) {
        return lsi_iterator_new(&ops, sizeof(struct repeat_iterator), d, how, out, err);
    }
    st =
        lsi_function_iterator_new(&ops, sizeof(struct repeat_iterator), d, how, out, err);
    if (st == LS_OK) {
        ((struct repeat_iterator *)*out)->fresh = true;
    }
    return st;
}

static ls_dataset *rebuild_repeat(const ls_dataset *d, ls_dataset *const *inputs)
{
    return ls_dataset_repeat(ls_dataset_retain(inputs[0]),
                             ((const struct repeat *)d)->count);
}

static int64_t repeated_size(int64_t n, int64_t count)
{
    int64_t product = 0;

    if (count == 0 || n == 0) {
        return 0;
    }
    if (count < 0) {
        return LS_INFINITE;
    }
    if (n < 0) {
        return n;
    }
    return __builtin_mul_overflow(n, count, &product) ? INT64_MAX : product;
}

ls_dataset *ls_dataset_repeat(ls_dataset *d, int64_t count)
{
    static const lsi_dataset_ops ops = {
        .kind = "repeat", .iterate = iterate_repeat, .rebuild = rebuild_repeat};
    ls_dataset *made = lsi_dataset_new(&ops, sizeof(struct repeat), &d, 1);
    struct repeat *node = (struct repeat *)made;
    if (lsi_dataset_bad(made)) {
        return made;
    }
    if (d->ops == &ops && ((const struct repeat *)d)->count == 1) {
        node->shuffled = ((const struct repeat *)d)->shuffled;
    } else {
        node->shuffled = strcmp(ls_dataset_kind(d), "shuffle") == 0;
    }
    node->count = LSI_MAX(count, -1);
    node->spare = count >= 2 && !node->shuffled;
    lsi_dataset_mix_parameter(made, (uint64_t)node->count);
    return lsi_dataset_done(made, LS_OK, ls_spec_retain(d->spec),
                            repeated_size(d->cardinality, node->count), NULL);
}
