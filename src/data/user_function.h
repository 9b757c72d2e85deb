/* Calling a function of the user for an element, and keeping the result of the call. */
#ifndef LSI_USER_FUNCTION_H
#define LSI_USER_FUNCTION_H
#include "data/data.h"

/*
 * Calls fn(c, element, user) in *c, which is opened on the device of `it` if it is NULL,
 * and ends the step. Random operations are keyed by the lineage of `it` and the index of the element,
 * so that they do not depend on threads or on other elements. The result is an element,
 * the caller's to release. A failure concerns this element only; LS_OUT_OF_RANGE becomes
 * LS_INVALID_ARGUMENT: a function cannot end a dataset.
 */
ls_status lsi_user_function_call(const lsi_iterator *it, uint64_t number, ls_context **c,
                                 ls_map_fn fn, void *user, ls_value *element,
                                 const char *what, ls_value **out, ls_error *err);

/* What a call returned: an element or a failure. */
typedef struct lsi_outcome {
    ls_value *value; /* NULL: a failure */
    ls_status status;
    ls_error *error; /* NULL: there was no memory for it */
} lsi_outcome;

/* Takes `value` over, copies `err`. */
lsi_outcome lsi_outcome_of(ls_status st, ls_value *value, const ls_error *err);

/* Returns it: the value becomes the caller's, the outcome is empty afterwards. */
ls_status lsi_outcome_take(lsi_outcome *outcome, ls_value **out, ls_error *err);
void lsi_outcome_clear(lsi_outcome *outcome);
void lsi_outcome_write(lsi_state_writer *w, const lsi_outcome *outcome);
ls_status lsi_outcome_read(lsi_state_reader *r, const ls_spec *spec, lsi_outcome *outcome,
                           ls_error *err);
#endif
