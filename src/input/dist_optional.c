/* ls_optional: the result of ls_dist_iterator_next_as_optional(), a value or none. */
#include "base/base.h"

#include "lockstep/distribute.h"

struct ls_optional {
    ls_value *value; /* NULL: none */
};

ls_status ls_dist_iterator_next_as_optional(ls_dist_iterator *it, ls_optional **out,
                                            ls_error *err)
{
    ls_optional *o;
    bool has = false;
    ls_status st;

    if (out == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "next_as_optional: out is NULL");
    }
    o = lsi_alloc(1, sizeof *o);
    if (o == NULL) {
        return lsi_fail_memory(err, "an optional", sizeof *o);
    }
    st = ls_dist_iterator_next_optional(it, &has, &o->value, err);
    if (st != LS_OK) {
        ls_optional_release(o);
        return st;
    }
    *out = o;
    return LS_OK;
}

bool ls_optional_has_value(const ls_optional *o)
{
    return o != NULL && o->value != NULL;
}

ls_status ls_optional_value(const ls_optional *o, ls_value **out, ls_error *err)
{
    if (!ls_optional_has_value(o) || out == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_OP,
                             out == NULL ? "optional: out is NULL"
                                         : "optional: it has no value; ask "
                                           "ls_optional_has_value() first");
    }
    *out = ls_value_retain(o->value);
    return LS_OK;
}

void ls_optional_release(ls_optional *o)
{
    if (o != NULL) {
        ls_value_release(o->value);
        lsi_free(o);
    }
}
