/* filter: the elements for which a function of the user returns true. */
#include "data/user_function.h"

struct filter_node {
    ls_dataset base;
    ls_map_fn predicate;
    void *user;
};

struct filter {
    lsi_unary_iterator unary;
    ls_context *context;
    uint64_t number; // of the next element
};

/* Whether the element is kept: the predicate's only component is a bool scalar. */
static ls_status call_predicate(struct filter *f, ls_value *element, bool *keep,
                                ls_error *err)
{
    const struct filter_node *node = (const struct filter_node *)f->unary.base.dataset;
    ls_value *verdict = NULL;
    const ls_tensor *t = NULL;
    ls_status st =
        lsi_user_function_call(&f->unary.base, f->number++, &f->context, node->predicate,
                               node->user, element, "filter", &verdict, err);

    if (st != LS_OK) {
        return st;
    }
    t = ls_value_as_tensor(verdict);
    if (t == NULL || ls_tensor_dtype(t) != LS_BOOL || ls_tensor_ndim(t) != 0) {
        lsi_text text = t != NULL ? lsi_text_of(t) : (lsi_text){"no tensor"};

        st = lsi_fail_kind(
            err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
            "filter: the predicate must return a bool scalar, it returned %s", text.s);
    } else {
        *keep = *(const bool *)ls_tensor_data(t);
    }
    ls_value_release(verdict);
    return st;
}

static ls_status next_kept(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct filter *f = (struct filter *)it;

    for (;;) {
        ls_value *element = NULL;
        bool keep = false;
        ls_status st = lsi_iterator_next(f->unary.input, &element, err);

        if (st != LS_OK) {
            return st;
        }
        st = call_predicate(f, element, &keep, err);
        if (st == LS_OK && keep) {
            *out = element;
            return LS_OK;
        }
        ls_value_release(element);
        if (st != LS_OK) {
            return st;
        }
    }
}

static ls_status save_filter(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    lsi_state_write_u64(w, ((struct filter *)it)->number);
    return lsi_iterator_save(((struct filter *)it)->unary.input, w, err);
}

static ls_status restore_filter(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    struct filter *f = (struct filter *)it;
    const ls_status st = lsi_state_read_u64(r, &f->number, err);

    return st == LS_OK ? lsi_iterator_restore(f->unary.input, r, err) : st;
}

static void close_filter(lsi_iterator *it)
{
    ls_context_close(((struct filter *)it)->context);
    lsi_unary_iterator_close(it);
}

static ls_status iterate_filter(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                                ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_kept,
                                         .save = save_filter,
                                         .restore = restore_filter,
                                         .close = close_filter};

    return lsi_function_iterator_new(&ops, sizeof(struct filter), d, how, out, err);
}

static ls_dataset *rebuild_filter(const ls_dataset *d, ls_dataset *const *inputs)
{
    const struct filter_node *node = (const struct filter_node *)d;

    return ls_dataset_filter(ls_dataset_retain(inputs[0]), node->predicate, node->user);
}

ls_dataset *ls_dataset_filter(ls_dataset *d, ls_map_fn predicate, void *user)
{
    static const lsi_dataset_ops ops = {
        .kind = "filter", .iterate = iterate_filter, .rebuild = rebuild_filter};
    ls_dataset *made = lsi_dataset_new(&ops, sizeof(struct filter_node), &d, 1);
    struct filter_node *node = (struct filter_node *)made;

    if (lsi_dataset_bad(made)) {
        return made;
    }
    if (predicate == NULL) {
        return lsi_dataset_fail(made, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                "filter: the predicate is NULL");
    }
    node->predicate = predicate;
    node->user = user;
    return lsi_dataset_done(made, LS_OK, ls_spec_retain(d->spec), LS_UNKNOWN_SIZE, NULL);
}
