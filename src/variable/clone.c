/* ls_variable_clone(): a copy of a variable with all of its components. */
#include "variable/variable.h"

#include <string.h>

static ls_status copy_elements(ls_variable *to, const ls_variable *from, ls_error *err)
{
    lsi_write w;
    ls_status st = LS_OK;

    if (from->dtype == LS_STRING) { // their buffer is never written: both share it
        lsi_buffer_release(to->buffer);
        to->buffer = lsi_buffer_retain(from->buffer);
        return LS_OK;
    }
    st = lsi_variable_write(to, &w, err);
    if (st == LS_OK) {
        memcpy(w.to, from->buffer->data,
               (size_t)from->count * ls_dtype_size(from->dtype));
        lsi_variable_commit(to, &w);
    }
    return st;
}

ls_status ls_variable_clone(ls_variable *v, ls_variable **out, ls_error *err)
{
    ls_variable_options opts = LS_VARIABLE_OPTIONS_INIT;
    ls_variable *copy = NULL;
    ls_tensor *value = NULL;
    ls_status st;

    if (v == NULL || out == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "clone: %s is NULL",
                        v == NULL ? "the variable" : "out");
    }
    if (v->components > 0 && lsi_mode_now() != NULL &&
        ls_current_strategy() != v->strategy && ls_has_strategy()) {
        return lsi_wrong_strategy(v->strategy, "clone", err);
    }
    opts.name = v->name;
    opts.synchronization = v->synchronization;
    opts.aggregation = v->aggregation;
    opts.trainable = v->trainable;
    opts.not_trainable = !v->trainable;
    opts.strict = v->strict;
    st = ls_variable_value(ls_variable_component(v, 0), &value, err);
    if (st == LS_OK && v->components == 0) {
        st = lsi_variable_plain(value, &opts, v->name, v->device, NULL, &copy, err);
        if (st == LS_OK) {
            copy->strategy = ls_strategy_retain(v->strategy);
        }
    } else if (st == LS_OK) {
        st = lsi_variable_distributed_like(v->ops, v, value, &opts, &copy, err);
        for (int i = 1; i < v->components && st == LS_OK && copy != NULL; i++) {
            st = v->component[i]->buffer == v->component[0]->buffer
                     ? LS_OK
                     : copy_elements(copy->component[i], v->component[i], err);
        }
    }
    ls_tensor_release(value);
    if (st == LS_OK) {
        *out = copy;
    } else {
        ls_variable_release(copy);
    }
    return st;
}
