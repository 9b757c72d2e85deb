/* Variable handles: reference counts, and the queries of a program. */
#include "variable/variable.h"

ls_variable *ls_variable_retain(ls_variable *v)
{
    if (v != NULL) {
        atomic_fetch_add(&v->refs, 1);
    }
    return v;
}

void ls_variable_release(ls_variable *v)
{
    if (v == NULL || atomic_fetch_sub(&v->refs, 1) != 1) {
        return;
    }
    for (int i = 0; i < v->components; i++) {
        if (v->component[i] != NULL) {
            // the program may hold a reference to the component alone
            v->component[i]->container = NULL;
            ls_variable_release(v->component[i]);
        }
    }
    lsi_free(v->component);
    lsi_mutex_destroy(&v->lock);
    lsi_buffer_release(v->buffer);
    ls_runtime_release(v->runtime);
    ls_strategy_release(v->strategy);
    lsi_free(v->name);
    lsi_free(v);
}

/* ---- queries ---- */

const char *ls_variable_name(const ls_variable *v)
{
    return v != NULL ? v->name : NULL;
}

ls_dtype ls_variable_dtype(const ls_variable *v)
{
    return v != NULL ? v->dtype : (ls_dtype)0;
}

ls_shape ls_variable_shape(const ls_variable *v)
{
    return v != NULL ? v->shape : (ls_shape){0};
}

bool ls_variable_trainable(const ls_variable *v)
{
    return v != NULL && v->trainable;
}

ls_synchronization ls_variable_synchronization(const ls_variable *v)
{
    return v != NULL ? v->synchronization : LS_SYNC_AUTO;
}

ls_aggregation ls_variable_aggregation(const ls_variable *v)
{
    return v != NULL ? v->aggregation : LS_AGGREGATE_NONE;
}

ls_device *ls_variable_device(const ls_variable *v)
{
    return v != NULL ? v->device : NULL;
}

size_t ls_variable_components(const ls_variable *v)
{
    if (v == NULL) {
        return 0;
    }
    return v->components == 0 ? 1 : (size_t)v->components;
}

ls_variable *ls_variable_component(const ls_variable *v, size_t i)
{
    if (v == NULL) {
        return NULL;
    }
    if (v->components == 0) {
        return i == 0 ? (ls_variable *)v : NULL; // NOLINT: a getter of the handle itself
    }
    return i < (size_t)v->components ? v->component[i] : NULL;
}

ls_variable *ls_variable_container(ls_variable *v)
{
    return v != NULL && v->container != NULL ? v->container : v;
}

ls_strategy *ls_variable_strategy(const ls_variable *v)
{
    if (v == NULL) {
        return NULL;
    }
    return v->strategy != NULL ? v->strategy : ls_default_strategy();
}

bool ls_strategy_created(const ls_strategy *s, const ls_variable *v)
{
    return v != NULL && ls_variable_strategy(v) == s;
}

/* ---- tapes ---- */

void lsi_variable_gradients_with(ls_context *c, ls_tape *tape, ls_tensor *target,
                                 ls_variable *const *v, size_t n, ls_tensor **grads,
                                 lsi_gradient_final fn, void *user)
{
    if (n > 0 && (v == NULL || grads == NULL)) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "gradient: %s is NULL",
                              v == NULL ? "the list of variables" : "grads");
        return;
    }
    lsi_tape_key_gradients(c, tape, target, (const void *const *)v, n, grads, fn, user);
}

void(ls_variable_gradients)(ls_context *c, ls_tape *tape, ls_tensor *target,
                            ls_variable *const *v, size_t n, ls_tensor **grads)
{
    lsi_variable_gradients_with(c, tape, target, v, n, grads, NULL, NULL);
}

void ls_tape_watch_variable(ls_context *c, ls_tape *tape, ls_variable *v)
{
    if (lsi_failed(c)) {
        return;
    }
    if (v == NULL) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "watch: the variable is NULL");
        return;
    }
    lsi_tape_watch_key(c, tape, v);
}
