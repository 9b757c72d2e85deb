/* Functions of the user's in a pipeline: how they are called, what of them is saved. */
#ifndef LSI_FUNCTION_H
#define LSI_FUNCTION_H
#include "data/data.h"

/*
 * Calls fn(c, element, user) in *c, which is opened on CPU:0 if it is NULL, and ends the
 * step. Random operations are keyed by the lineage of `it` and the number of its element,
 * so that neither threads nor what other elements drew matter. The result is an element,
 * the caller's to release. A failure is that of this element; LS_OUT_OF_RANGE becomes
 * LS_INVALID_ARGUMENT: a function cannot end a dataset.
 */
ls_status lsi_call(const lsi_iterator *it, uint64_t number, ls_context **c, ls_map_fn fn,
                   void *user, ls_value *element, const char *what, ls_value **out,
                   ls_error *err);

/* Makes another spec of a leaf, the caller's to release. */
typedef ls_status (*lsi_spec_rule)(const ls_spec *leaf, void *user, ls_spec **out,
                                   ls_error *err);

/* The structure of `s` with rule(leaf) in the place of each leaf, in order. */
ls_status lsi_spec_map(const ls_spec *s, lsi_spec_rule rule, void *user, ls_spec **out,
                       ls_error *err);

/* One element, or the failure that came in its place. */
typedef struct lsi_item {
    ls_value *value; /* NULL: a failure */
    ls_status status;
    ls_error *error; /* its words; NULL: there was no memory for them */
} lsi_item;

/* Keeps what a call gave: takes `value` over, copies `err`. */
lsi_item lsi_item_of(ls_status st, ls_value *value, const ls_error *err);

/* Hands it on: the value becomes the caller's, the item is empty. */
ls_status lsi_item_take(lsi_item *item, ls_value **out, ls_error *err);
void lsi_item_clear(lsi_item *item);
void lsi_item_write(lsi_writer *w, const lsi_item *item);
ls_status lsi_item_read(lsi_reader *r, const ls_spec *spec, lsi_item *item,
                        ls_error *err);
#endif
