#include "data/function.h"

#include <string.h>

ls_status lsi_call(const lsi_iterator *it, uint64_t number, ls_context **c, ls_map_fn fn,
                   void *user, ls_value *element, const char *what, ls_value **out,
                   ls_error *err)
{
    ls_error e = LS_ERROR_INIT;
    ls_value *result = NULL;
    ls_status st = LS_OK;

    if (*c == NULL) {
        st = ls_context_open(NULL, NULL, c, err);
        if (st != LS_OK) {
            return st;
        }
    }
    *(*c)->random = (ls_random_state){lsi_lineage_below(it, 0), number, 0};
    result = fn(*c, element, user);
    st = ls_context_status(*c, &e);
    if (st == LS_OK && result == NULL) {
        st = lsi_fail_kind(&e, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                           "%s: the function gave neither an element nor a failure; it "
                           "returns NULL only after ls_context_fail()",
                           what);
    }
    if (st == LS_OK) {
        st = lsi_element_of(result, false, out, &e);
    }
    lsi_context_end(*c);
    if (st == LS_OK) {
        return LS_OK;
    }
    if (st == LS_OUT_OF_RANGE) {
        e.code = LS_INVALID_ARGUMENT;
    }
    return lsi_fail_again(err, &e);
}

ls_status lsi_spec_map(const ls_spec *s, lsi_spec_rule rule, void *user, ls_spec **out,
                       ls_error *err)
{
    ls_spec **items = NULL;
    ls_status st = LS_OK;

    if (s->kind != LS_SPEC_TUPLE && s->kind != LS_SPEC_DICT) {
        return rule(s, user, out, err);
    }
    items = lsi_alloc(LSI_MAX(s->size, 1), sizeof(ls_spec *));
    if (items == NULL) {
        return lsi_fail_memory(err, "a spec", s->size * sizeof(ls_spec *));
    }
    for (size_t i = 0; i < s->size && st == LS_OK; i++) {
        st = lsi_spec_map(s->child[i], rule, user, &items[i], err);
    }
    if (st == LS_OK) {
        st = s->kind == LS_SPEC_DICT
                 ? ls_spec_dict((const char *const *)s->keys, items, s->size, out, err)
                 : ls_spec_tuple(items, s->size, out, err);
    }
    for (size_t i = 0; i < s->size; i++) {
        ls_spec_release(items[i]);
    }
    lsi_free(items);
    return st;
}

lsi_item lsi_item_of(ls_status st, ls_value *value, const ls_error *err)
{
    lsi_item item = {.value = value, .status = st};

    if (st != LS_OK) {
        item.value = NULL;
        item.error = lsi_alloc(1, sizeof *item.error);
        if (item.error != NULL) {
            *item.error = *err;
            item.error->code = st;
        }
    }
    return item;
}

ls_status lsi_item_take(lsi_item *item, ls_value **out, ls_error *err)
{
    const ls_status st = item->status;

    if (st == LS_OK) {
        *out = item->value;
    } else if (item->error != NULL) {
        (void)lsi_fail_again(err, item->error);
    } else {
        (void)lsi_fail(err, st, -1, "there was no memory to keep what went wrong");
    }
    lsi_free(item->error);
    *item = (lsi_item){0};
    return st;
}

void lsi_item_clear(lsi_item *item)
{
    ls_value_release(item->value);
    lsi_free(item->error);
    *item = (lsi_item){0};
}

void lsi_item_write(lsi_writer *w, const lsi_item *item)
{
    ls_error e = LS_ERROR_INIT;

    lsi_write_bool(w, item->status == LS_OK);
    if (item->status == LS_OK) {
        lsi_write_value(w, item->value);
        return;
    }
    e.code = item->status;
    lsi_write_failure(w, item->error != NULL ? item->error : &e);
}

ls_status lsi_item_read(lsi_reader *r, const ls_spec *spec, lsi_item *item, ls_error *err)
{
    ls_error e = LS_ERROR_INIT;
    ls_value *value = NULL;
    bool good = false;
    ls_status st = lsi_read_bool(r, &good, err);

    if (st == LS_OK && good) {
        st = lsi_read_element(r, spec, &value, err);
    } else if (st == LS_OK) {
        st = lsi_read_failure(r, &e, err);
    }
    if (st == LS_OK && !good && (e.code == LS_OK || e.code == LS_OUT_OF_RANGE)) {
        st = lsi_state_damaged(err, "a failure that is none");
    }
    if (st == LS_OK) {
        *item = lsi_item_of(good ? LS_OK : e.code, value, &e);
    }
    return st;
}
