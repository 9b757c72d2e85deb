/* concatenate: the elements of one dataset, then those of another. */
#include "data/data.h"

struct chain_iterator {
    lsi_iterator base;
    lsi_iterator *inputs[2]; // made when they are first needed, and kept
    bool over;
    struct chain_iterator *above; // the concatenate whose input this one is

    // In the topmost of nested chains, which reads from the source directly: the source,
    // and the chain whose input it is. NULL: not found yet.
    lsi_iterator *source;
    struct chain_iterator *last;
};

static const lsi_iterator_ops chain_ops;

/* Descends from `at` to the current input that is not a chain itself. */
static void find_source(struct chain_iterator *c, struct chain_iterator *at)
{
    for (;;) {
        lsi_iterator *it = at->inputs[1] != NULL ? at->inputs[1] : at->inputs[0];

        if (it->ops != &chain_ops) {
            c->source = it;
            c->last = at;
            return;
        }
        ((struct chain_iterator *)it)->above = at;
        at = (struct chain_iterator *)it;
    }
}

/* The source has ended: goes on with the second input of the nearest chain above that has
 * not started it. */
static ls_status next_source(struct chain_iterator *c, ls_error *err)
{
    struct chain_iterator *at = c->last;

    while (at->inputs[1] != NULL) {
        at->over = true;
        if (at == c) {
            return LS_OUT_OF_RANGE;
        }
        at = at->above;
    }
    const ls_status st =
        lsi_iterator_open_input(&at->base, at->base.dataset->inputs[1],
                                lsi_lineage_below(&at->base, 1), &at->inputs[1], err);
    if (st == LS_OK) {
        find_source(c, at);
    }
    return st;
}

static ls_status next_chain(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct chain_iterator *c = (struct chain_iterator *)it;
    ls_status st = LS_OK;

    if (c->over) {
        return LS_OUT_OF_RANGE;
    }
    if (c->source == NULL) {
        find_source(c, c);
    }
    while ((st = lsi_iterator_next(c->source, out, err)) == LS_OUT_OF_RANGE) {
        st = next_source(c, err);
        if (st != LS_OK) {
            return st;
        }
    }
    return st;
}

static void close_chain(lsi_iterator *it)
{
    lsi_iterator_close(((struct chain_iterator *)it)->inputs[0]);
    lsi_iterator_close(((struct chain_iterator *)it)->inputs[1]);
}

static ls_status save_chain(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    struct chain_iterator *c = (struct chain_iterator *)it;
    ls_status st;

    lsi_state_write_bool(w, c->over);
    st = lsi_iterator_save(c->inputs[0], w, err);
    return st == LS_OK ? lsi_input_iterator_save(c->inputs[1], w, err) : st;
}

static ls_status restore_chain(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    struct chain_iterator *c = (struct chain_iterator *)it;
    ls_status st = lsi_state_read_bool(r, &c->over, err);

    c->source = NULL;
    if (st == LS_OK) {
        st = lsi_iterator_restore(c->inputs[0], r, err);
    }
    if (st == LS_OK) {
        st = lsi_input_iterator_restore(it, &c->inputs[1], lsi_lineage_below(it, 1),
                                        it->dataset->inputs[1], r, err);
    }
    return st;
}

static const lsi_iterator_ops chain_ops = {.next = next_chain,
                                           .save = save_chain,
                                           .restore = restore_chain,
                                           .close = close_chain};

static ls_status iterate_chain(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                               ls_error *err)
{
    lsi_iterator *it = NULL;
    ls_status st =
        lsi_iterator_new(&chain_ops, sizeof(struct chain_iterator), d, how, &it, err);

    if (st == LS_OK) {
        st = lsi_iterator_open_input(it, d->inputs[0], lsi_lineage_below(it, 0),
                                     &((struct chain_iterator *)it)->inputs[0], err);
    }
    if (st == LS_OK) {
        *out = it;
    } else {
        lsi_iterator_close(it);
    }
    return st;
}

static ls_dataset *rebuild_chain(const ls_dataset *d, ls_dataset *const *inputs)
{
    (void)d;
    return ls_dataset_concatenate(ls_dataset_retain(inputs[0]),
                                  ls_dataset_retain(inputs[1]));
}

static int64_t sum_sizes(int64_t a, int64_t b)
{
    if (a == LS_INFINITE || b == LS_INFINITE) {
        return LS_INFINITE;
    }
    if (a < 0 || b < 0) {
        return LS_UNKNOWN_SIZE;
    }
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

ls_dataset *ls_dataset_concatenate(ls_dataset *d, ls_dataset *next_dataset)
{
    static const lsi_dataset_ops ops = {
        .kind = "concatenate", .iterate = iterate_chain, .rebuild = rebuild_chain};
    ls_dataset *const both[] = {d, next_dataset};
    ls_dataset *made = lsi_dataset_new(&ops, sizeof *made, both, 2);
    ls_error err = LS_ERROR_INIT;
    ls_spec *spec = NULL;

    if (lsi_dataset_bad(made)) {
        return made;
    }
    const ls_status st = lsi_spec_common(d->spec, next_dataset->spec, &spec, &err);
    return lsi_dataset_done(made, st, spec,
                            sum_sizes(d->cardinality, next_dataset->cardinality), &err);
}
