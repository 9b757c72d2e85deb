/* source: elements made by functions of the user, with a state per iterator. */
#include "data/data.h"

#include <string.h>

struct source {
    ls_dataset base;
    ls_source call;
};

struct source_iterator {
    lsi_iterator base;
    void *state;
    bool open, over;
};

static ls_status next_source(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct source_iterator *s = (struct source_iterator *)it;
    const struct source *node = (const struct source *)it->dataset;
    ls_value *given = NULL, *element = NULL;
    ls_status st = s->over ? LS_OUT_OF_RANGE : node->call.next(s->state, &given, err);

    s->over = st == LS_OUT_OF_RANGE;
    if (st != LS_OK) {
        return st;
    }
    if (given == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                             "source: next() returned LS_OK and no element");
    }
    st = lsi_element_of(given, true, it->as.device, &element, err);
    ls_value_release(given);
    if (st == LS_OK) {
        st = lsi_spec_check(node->base.spec, element, err);
    }
    if (st == LS_OK) {
        *out = element;
    } else {
        ls_value_release(element);
    }
    return st;
}

static void close_source(lsi_iterator *it)
{
    struct source_iterator *s = (struct source_iterator *)it;
    const struct source *node = (const struct source *)it->dataset;

    if (s->open && node->call.close != NULL) {
        node->call.close(s->state);
    }
}

static ls_status save_source(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    (void)err;
    (void)lsi_state_write_without(w, it->dataset);
    return LS_OK;
}

/* Nothing was saved: the source stays where it is. */
static ls_status restore_source(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    (void)it;
    (void)r;
    (void)err;
    return LS_OK;
}

static ls_status iterate_source(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                                ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_source,
                                         .save = save_source,
                                         .restore = restore_source,
                                         .close = close_source};
    const struct source *node = (const struct source *)d;
    lsi_iterator *it = NULL;
    struct source_iterator *s = NULL;
    ls_status st = lsi_iterator_new(&ops, sizeof *s, d, how, &it, err);

    if (st != LS_OK) {
        return st;
    }
    s = (struct source_iterator *)it;
    s->state = node->call.user;
    if (node->call.open != NULL) {
        s->state = NULL;
        st = node->call.open(node->call.user, &s->state, err);
    }
    s->open = st == LS_OK;
    if (st == LS_OK) {
        *out = it;
    } else {
        lsi_iterator_close(it);
    }
    return st;
}

ls_dataset *ls_dataset_source(const ls_source *source, ls_spec *spec)
{
    static const lsi_dataset_ops ops = {
        .kind = "source", .iterate = iterate_source, .stateful = true};
    ls_dataset *made = lsi_dataset_new(&ops, sizeof(struct source), NULL, 0);
    ls_error err = LS_ERROR_INIT;
    ls_status st = LS_OK;

    if (lsi_dataset_bad(made)) {
        return made;
    }
    if (source != NULL) {
        memcpy(&((struct source *)made)->call, source,
               LSI_MIN(source->struct_size, sizeof *source));
    }
    if (((struct source *)made)->call.next == NULL) {
        return lsi_dataset_fail(made, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                                "source: it has no function `next`");
    }
    spec = ls_spec_retain(spec);
    if (spec == NULL) {
        st = lsi_spec_unknown(&spec, &err);
    }
    return lsi_dataset_done(made, st, spec, LS_UNKNOWN_SIZE, &err);
}
