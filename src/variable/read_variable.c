/* Reading variables, in replica and in cross-replica context. */
#include "variable/variable.h"

ls_variable *lsi_variable_own(ls_variable *v, const char *what, ls_error *err)
{
    const lsi_mode *now = lsi_mode_now();
    const int id = lsi_update_id();
    int index;

    if (now == NULL || now->strategy->ops->is_default) {
        return NULL;
    }
    if (now->strategy != v->strategy) {
        (void)lsi_wrong_strategy(v->strategy, what, err);
        return NULL;
    }
    if (now->cross && id < 0) {
        return NULL;
    }
    index = id >= 0 ? id : lsi_replica_of(now->context)->index;
    return v->component[index < v->components ? index : 0];
}

ls_variable *lsi_variable_nearest(ls_variable *v)
{
    const ls_device *device = lsi_scope_device();

    for (int i = 0; device != NULL && i < v->components; i++) {
        if (v->component[i]->device == device) {
            return v->component[i];
        }
    }
    return v->component[0];
}

ls_tensor *lsi_variable_note(ls_context *c, ls_variable *v, ls_tensor *t)
{
    if (t != NULL) {
        lsi_tape_note_read(c, v, v->trainable, t);
    }
    return lsi_failed(c) ? NULL : t;
}

static bool can_read(ls_context *c, const ls_variable *v)
{
    if (!lsi_failed(c) && v == NULL) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "read: the variable is NULL");
    }
    return !lsi_failed(c);
}

ls_tensor *(ls_read)(ls_context *c, ls_variable *v)
{
    if (!can_read(c, v)) {
        return NULL;
    }
    return v->ops->read(c, v, false);
}

ls_tensor *(ls_variable_as_tensor)(ls_context *c, ls_variable *v)
{
    if (!can_read(c, v)) {
        return NULL;
    }
    return v->ops->read(c, v, true);
}

/*
 * The tape needs the shape of the variable only. So the value is released once the rows
 * are copied, and an update of them in this step can be done in place.
 */
ls_tensor *lsi_variable_gather_rows(ls_context *c, ls_variable *v, ls_tensor *indices)
{
    ls_tensor *whole = v->ops->read(c, v, false); // the only reference to this view
    ls_tensor *rows = whole != NULL ? (ls_gather)(c, whole, indices, 0) : NULL;

    if (whole != NULL && whole->buffer != NULL) {
        lsi_buffer_release(whole->buffer);
        whole->buffer = NULL;
        whole->data = NULL;
    }
    return rows;
}

ls_tensor *(ls_variable_gather)(ls_context *c, ls_variable *v, ls_tensor *indices)
{
    return can_read(c, v) ? v->ops->gather(c, v, indices) : NULL;
}

/* ---- outside of any step ---- */

/* Calls `fn` in a context of its own; returns the failure of its step. */
static ls_status call_in_context(ls_variable *v,
                                 ls_tensor *(*fn)(ls_context *, ls_variable *),
                                 ls_tensor **out, ls_error *err)
{
    ls_context *c = NULL;
    ls_status st = ls_context_open(v->device, NULL, &c, err);

    if (st == LS_OK) {
        ls_tensor *t = ls_tensor_retain(fn(c, v));

        st = ls_context_finish(c, err);
        if (st == LS_OK) {
            *out = t;
        } else {
            ls_tensor_release(t);
        }
    }
    ls_context_close(c);
    return st;
}

ls_status ls_variable_value(ls_variable *v, ls_tensor **out, ls_error *err)
{
    ls_tensor *t;

    if (v == NULL || out == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "value: %s is NULL",
                        v == NULL ? "the variable" : "out");
    }
    if (v->components > 0) {
        return call_in_context(v, (ls_read), out, err);
    }
    t = lsi_tensor_over(v->buffer, v->dtype, &v->shape);
    if (t == NULL) {
        return lsi_fail_memory(err, "a tensor", sizeof *t);
    }
    *out = t;
    return LS_OK;
}

ls_status ls_variable_save(ls_variable *v, ls_tensor **out, ls_error *err)
{
    if (v == NULL || out == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "save: %s is NULL",
                        v == NULL ? "the variable" : "out");
    }
    return call_in_context(v, v->ops->save, out, err);
}
