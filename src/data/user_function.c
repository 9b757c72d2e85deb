/* Calls of user functions, and their outcomes: taken, cleared, saved and restored. */
#include "data/user_function.h"

#include <string.h>

ls_status lsi_user_function_call(const lsi_iterator *it, uint64_t number, ls_context **c,
                                 ls_map_fn fn, void *user, ls_value *element,
                                 const char *what, ls_value **out, ls_error *err)
{
    ls_error e = LS_ERROR_INIT;
    ls_value *result = NULL;
    ls_status st = LS_OK;

    if (*c == NULL) {
        st = ls_context_open(it->as.device, NULL, c, err);
        if (st != LS_OK) {
            return st;
        }
    }
    *(*c)->random = (ls_random_state){lsi_lineage_below(it, 0), number, 0};
    result = fn(*c, element, user);
    st = ls_context_status(*c, &e);
    if (st == LS_OK && result == NULL) {
        st = lsi_fail_kind(&e, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                           "%s: the function returned NULL without a failure; NULL is "
                           "only allowed after ls_context_fail()",
                           what);
    }
    if (st == LS_OK) {
        st = lsi_element_of(result, false, it->as.device, out, &e);
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

lsi_outcome lsi_outcome_of(ls_status st, ls_value *value, const ls_error *err)
{
    lsi_outcome outcome = {.value = value, .status = st};

    if (st != LS_OK) {
        outcome.value = NULL;
        outcome.error = lsi_alloc(1, sizeof *outcome.error);
        if (outcome.error != NULL) {
            *outcome.error = *err;
            outcome.error->code = st;
        }
    }
    return outcome;
}

ls_status lsi_outcome_take(lsi_outcome *outcome, ls_value **out, ls_error *err)
{
    const ls_status st = outcome->status;

    if (st == LS_OK) {
        *out = outcome->value;
    } else if (outcome->error != NULL) {
        (void)lsi_fail_again(err, outcome->error);
    } else {
        (void)lsi_fail(err, st, -1, "there was no memory to keep the error message");
    }
    lsi_free(outcome->error);
    *outcome = (lsi_outcome){0};
    return st;
}

void lsi_outcome_clear(lsi_outcome *outcome)
{
    ls_value_release(outcome->value);
    lsi_free(outcome->error);
    *outcome = (lsi_outcome){0};
}

void lsi_outcome_write(lsi_state_writer *w, const lsi_outcome *outcome)
{
    ls_error e = LS_ERROR_INIT;

    lsi_state_write_bool(w, outcome->status == LS_OK);
    if (outcome->status == LS_OK) {
        lsi_state_write_value(w, outcome->value);
        return;
    }
    e.code = outcome->status;
    lsi_state_write_failure(w, outcome->error != NULL ? outcome->error : &e);
}

ls_status lsi_outcome_read(lsi_state_reader *r, const ls_spec *spec, lsi_outcome *outcome,
                           ls_error *err)
{
    ls_error e = LS_ERROR_INIT;
    ls_value *value = NULL;
    bool good = false;
    ls_status st = lsi_state_read_bool(r, &good, err);

    if (st == LS_OK && good) {
        st = lsi_state_read_element(r, spec, &value, err);
    } else if (st == LS_OK) {
        st = lsi_state_read_failure(r, &e, err);
    }
    if (st == LS_OK && !good && (e.code == LS_OK || e.code == LS_OUT_OF_RANGE)) {
        st = lsi_state_damaged(err, "a failure has no error code");
    }
    if (st == LS_OK) {
        *outcome = lsi_outcome_of(good ? LS_OK : e.code, value, &e);
    }
    return st;
}
