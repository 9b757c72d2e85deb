/* Colocation scopes: variables created in one are on the devices of another variable. */
#include "variable/variable.h"

ls_status ls_colocate_enter(ls_strategy *s, ls_variable *v, ls_error *err)
{
    if (s == NULL || v == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "colocate: the %s is NULL",
                             s == NULL ? "strategy" : "variable");
    }
    if (ls_current_strategy() != s) {
        return lsi_wrong_strategy(s, "colocate", err);
    }
    if (!ls_strategy_created(s, v)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "colocate: the variable '%s' was not made in the scope of "
                             "this %s",
                             ls_variable_name(v), s->ops->name);
    }
    return lsi_scope_open_object(v, &lsi_variable_object, err);
}

ls_status ls_colocate_exit(ls_strategy *s, ls_error *err)
{
    (void)s;
    return lsi_scope_close_object(err);
}

ls_variable *lsi_variable_colocated(void)
{
    return lsi_scope_object();
}
