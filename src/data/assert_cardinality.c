/* assert_cardinality: a number of elements that the user promises, checked at the end. */
#include "data/data.h"

struct counted {
    ls_dataset base;
    int64_t count;
};

struct counted_iterator {
    lsi_unary_iterator unary;
    int64_t seen;
};

static ls_status wrong_cardinality(int64_t want, const char *how, int64_t seen,
                                   ls_error *err)
{
    return lsi_fail(err, LS_FAILED_PRECONDITION, -1,
                    "assert_cardinality: %lld elements were promised, the input has %s "
                    "%lld",
                    (long long)want, how, (long long)seen);
}

static ls_status next_asserted(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct counted_iterator *c = (struct counted_iterator *)it;
    const int64_t want = ((const struct counted *)it->dataset)->count;
    ls_value *element = NULL;
    const ls_status st = lsi_iterator_next(c->unary.input, &element, err);

    if (st == LS_OUT_OF_RANGE && c->seen != want) { // also on every later call
        return wrong_cardinality(want, "only", c->seen, err);
    }
    if (st != LS_OK) {
        return st;
    }
    c->seen++;
    if (want != LS_INFINITE && c->seen > want) {
        ls_value_release(element);
        return wrong_cardinality(want, "at least", c->seen, err);
    }
    *out = element;
    return LS_OK;
}

static ls_status save_asserted(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    struct counted_iterator *c = (struct counted_iterator *)it;

    lsi_state_write_u64(w, (uint64_t)c->seen);
    lsi_state_write_bool(w, false); // unused, kept for the format of saved states
    return lsi_iterator_save(c->unary.input, w, err);
}

static ls_status restore_asserted(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    struct counted_iterator *c = (struct counted_iterator *)it;
    uint64_t seen = 0;
    bool unused = false;
    ls_status st = lsi_state_read_count(r, INT64_MAX / 2, &seen, err);

    if (st == LS_OK) {
        st = lsi_state_read_bool(r, &unused, err);
    }
    if (st != LS_OK) {
        return st;
    }
    c->seen = (int64_t)seen;
    return lsi_iterator_restore(c->unary.input, r, err);
}

static ls_status iterate_asserted(ls_dataset *d, const lsi_opening *how,
                                  lsi_iterator **out, ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_asserted,
                                         .save = save_asserted,
                                         .restore = restore_asserted,
                                         .close = lsi_unary_iterator_close};

    return lsi_unary_iterator_new(&ops, sizeof(struct counted_iterator), d, how, out,
                                  err);
}

static ls_dataset *rebuild_asserted(const ls_dataset *d, ls_dataset *const *inputs)
{
    return ls_dataset_assert_cardinality(ls_dataset_retain(inputs[0]),
                                         ((const struct counted *)d)->count);
}

ls_dataset *ls_dataset_assert_cardinality(ls_dataset *d, int64_t cardinality)
{
    static const lsi_dataset_ops ops = {.kind = "assert_cardinality",
                                        .iterate = iterate_asserted,
                                        .rebuild = rebuild_asserted};
    ls_dataset *made = lsi_dataset_new(&ops, sizeof(struct counted), &d, 1);

    if (lsi_dataset_bad(made)) {
        return made;
    }
    if (cardinality < LS_INFINITE) {
        return lsi_dataset_fail(made, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                "assert_cardinality: %lld elements; a number, or "
                                "LS_INFINITE",
                                (long long)cardinality);
    }
    ((struct counted *)made)->count = cardinality;
    lsi_dataset_mix_parameter(made, (uint64_t)cardinality);
    return lsi_dataset_done(made, LS_OK, ls_spec_retain(d->spec), cardinality, NULL);
}
