/*
 * Leaves out elements that failed. A failure that comes back for ever (a missing file is
 * reported again and again) is given after all: nothing loops without an end. So is one
 * for want of memory, which says nothing about the element.
 */
#include "data/data.h"

#include <string.h>

enum { PATIENCE = 100000 }; // the same failure so often in a row is no element's

static ls_status next(lsi_iterator *it, ls_value **out, ls_error *err)
{
    ls_error why = LS_ERROR_INIT, last = LS_ERROR_INIT;
    int same = 0;

    for (;;) {
        const ls_status st = lsi_iterator_next(((lsi_unary *)it)->input, out, &why);

        if (st == LS_OK || st == LS_OUT_OF_RANGE) {
            return st;
        }
        same = strcmp(why.message, last.message) == 0 ? same + 1 : 0;
        if (st == LS_RESOURCE_EXHAUSTED || same == PATIENCE) {
            return lsi_fail_again(err, &why);
        }
        if (same == 0) {
            lsi_log(LS_LOG_WARNING, "an element is left out: %s", why.message);
        }
        last = why;
    }
}

static ls_status save(lsi_iterator *it, lsi_writer *w, ls_error *err)
{
    return lsi_iterator_save(((lsi_unary *)it)->input, w, err);
}

static ls_status restore(lsi_iterator *it, lsi_reader *r, ls_error *err)
{
    return lsi_iterator_restore(((lsi_unary *)it)->input, r, err);
}

static ls_status iterate(ls_dataset *d, lsi_iterator **out, ls_error *err)
{
    static const lsi_iterator_ops ops = {
        .next = next, .save = save, .restore = restore, .close = lsi_unary_close};

    return lsi_unary_new(&ops, sizeof(lsi_unary), d, out, err);
}

static ls_dataset *rebuild(const ls_dataset *d, ls_dataset *const *inputs)
{
    (void)d;
    return ls_dataset_ignore_errors(ls_dataset_retain(inputs[0]));
}

ls_dataset *ls_dataset_ignore_errors(ls_dataset *d)
{
    static const lsi_dataset_ops ops = {
        .kind = "ignore_errors", .iterate = iterate, .rebuild = rebuild};
    ls_dataset *made = lsi_dataset_new(&ops, sizeof *made, &d, 1);

    if (lsi_dataset_bad(made)) {
        return made;
    }
    return lsi_dataset_done(made, LS_OK, ls_spec_retain(d->spec),
                            d->cardinality == LS_INFINITE ? LS_INFINITE : LS_UNKNOWN_SIZE,
                            NULL);
}
