/* Functions of the user's in a pipeline: how they are called, what of them is saved. */
#ifndef LSI_USER_FUNCTION_H
#define LSI_USER_FUNCTION_H
#include "data/data.h"

/*
 * Calls fn(c, element, user) in *c, which is opened on CPU:0 if it is NULL, and ends the
 * step. Random operations are keyed by the lineage of `it` and the number of its element,
 * so that neither threads nor what other elements drew matter. The result is an element,
 * the caller's to release. A failure is that of this element; LS_OUT_OF_RANGE becomes
 * LS_INVALID_ARGUMENT: a function cannot end a dataset.
 */
ls_status lsi_user_function_call(const lsi_iterator *it, uint64_t number, ls_context **c,
                                 ls_map_fn fn, void *user, ls_value *element,
                                 const char *what, ls_value **out, ls_error *err);

/* One element, or the failure that came in its place. */
typedef struct lsi_outcome {
    ls_value *value; /* NULL: a failure */
    ls_status status;
    ls_error *error; /* its words; NULL: there was no memory for them */
} lsi_outcome;

/* Keeps what a call gave: takes `value` over, copies `err`. */
lsi_outcome lsi_outcome_of(ls_status st, ls_value *value, const ls_error *err);

/* Hands it on: the value becomes the caller's, the outcome is empty. */
ls_status lsi_outcome_take(lsi_outcome *outcome, ls_value **out, ls_error *err);
void lsi_outcome_clear(lsi_outcome *outcome);
void lsi_outcome_write(lsi_state_writer *w, const lsi_outcome *outcome);
ls_status lsi_outcome_read(lsi_state_reader *r, const ls_spec *spec, lsi_outcome *outcome,
                           ls_error *err);
#endif
