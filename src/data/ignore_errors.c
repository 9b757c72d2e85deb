/*
 * ignore_errors: leaves out elements that failed. A failure that repeats endlessly (that
 * of a missing file does) is returned in the end, so that no call loops for ever; a
 * failure for lack of memory is returned at once, because the element itself may be good.
 */
#include "data/data.h"

#include <string.h>

enum { MOST_REPEATS = 100000 }; // the same failure so often in a row is returned

/* Errors are kept here, not on the stack: nested iterators share one stack. */
struct ignore_errors {
    lsi_unary_iterator unary;
    ls_error why, last;
};

static ls_status next_without_error(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct ignore_errors *c = (struct ignore_errors *)it;
    int same = -1; // none yet

    for (;;) {
        const ls_status st = lsi_iterator_next(c->unary.input, out, &c->why);

        if (st == LS_OK || st == LS_OUT_OF_RANGE) {
            return st;
        }
        same = same >= 0 && strcmp(c->why.message, c->last.message) == 0 ? same + 1 : 0;
        if (st == LS_RESOURCE_EXHAUSTED || same == MOST_REPEATS) {
            return lsi_fail_again(err, &c->why);
        }
        if (same == 0) {
            lsi_log(LS_LOG_WARNING, "an element is left out: %s", c->why.message);
        }
        c->last = c->why;
    }
}

static ls_status iterate_ignore_errors(ls_dataset *d, const lsi_opening *how,
                                       lsi_iterator **out, ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_without_error,
                                         .save = lsi_unary_iterator_save,
                                         .restore = lsi_unary_iterator_restore,
                                         .close = lsi_unary_iterator_close};

    const ls_status st =
        lsi_unary_iterator_new(&ops, sizeof(struct ignore_errors), d, how, out, err);

    if (st == LS_OK) {
        ((struct ignore_errors *)*out)->why = (ls_error)LS_ERROR_INIT;
    }
    return st;
}

static ls_dataset *rebuild_ignore_errors(const ls_dataset *d, ls_dataset *const *inputs)
{
    (void)d;
    return ls_dataset_ignore_errors(ls_dataset_retain(inputs[0]));
}

ls_dataset *ls_dataset_ignore_errors(ls_dataset *d)
{
    static const lsi_dataset_ops ops = {.kind = "ignore_errors",
                                        .iterate = iterate_ignore_errors,
                                        .rebuild = rebuild_ignore_errors};
    ls_dataset *made = lsi_dataset_new(&ops, sizeof *made, &d, 1);

    if (lsi_dataset_bad(made)) {
        return made;
    }
    return lsi_dataset_done(made, LS_OK, ls_spec_retain(d->spec),
                            d->cardinality == LS_INFINITE ? LS_INFINITE : LS_UNKNOWN_SIZE,
                            NULL);
}
