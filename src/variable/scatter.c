/* Scatter operations: changing some rows of a variable. */
#include "variable/variable.h"

static bool known_op(ls_scatter_op op)
{
    return (int)op >= LS_SCATTER_UPDATE && op <= LS_SCATTER_MAX;
}

static bool scatter_supports(ls_dtype d)
{
    return d == LS_F32 || d == LS_F64 || d == LS_I32 || d == LS_I64;
}

/* What the indices and updates hold is checked by the operation that uses them. */
static bool check_rows(ls_context *c, const ls_variable *v, ls_scatter_op op,
                       const ls_tensor *indices, const ls_tensor *updates)
{
    char shape[128];

    if (!known_op(op)) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "scatter: %d is no operation",
                              (int)op);
    } else if (!scatter_supports(v->dtype)) {
        (void)ls_context_fail(c, LS_UNIMPLEMENTED,
                              "scatter: not for %s; float32, float64, int32 and int64 "
                              "variables have it",
                              ls_dtype_name(v->dtype));
    } else if ((indices->dtype != LS_I32 && indices->dtype != LS_I64) ||
               updates->dtype != v->dtype ||
               !lsi_updates_fit(indices, updates, &v->shape)) {
        (void)ls_context_fail(
            c, LS_INVALID_ARGUMENT,
            "scatter: '%s' is %s %s; indices %s need updates of the indices' shape and "
            "then the variable's without its first axis, got %s",
            v->name, ls_dtype_name(v->dtype),
            ls_shape_text(&v->shape, shape, sizeof shape), lsi_text_of(indices).s,
            lsi_text_of(updates).s);
    }
    return !lsi_failed(c);
}

ls_tensor *lsi_scatter_indices(ls_context *c, const ls_variable *v, ls_scatter_op op,
                               ls_tensor *indices, ls_tensor *updates)
{
    return check_rows(c, v, op, indices, updates)
               ? lsi_row_indices(c, op, indices, updates, v->shape.dims[0])
               : NULL;
}

ls_tensor *lsi_scatter_plain(ls_context *c, ls_variable *v, ls_scatter_op op,
                             ls_tensor *indices, ls_tensor *updates, bool read)
{
    ls_error e = LS_ERROR_INIT;
    ls_tensor from = {0}, to = {0};
    lsi_write w;
    bool ok;

    if (!check_rows(c, v, op, indices, updates)) {
        return NULL;
    }
    if (lsi_variable_write(v, &w, &e) != LS_OK) {
        return lsi_context_error(c, &e);
    }
    lsi_tensor_init_over(&from, v->buffer, v->dtype, &v->shape);
    lsi_tensor_init_over(&to, w.fresh != NULL ? w.fresh : v->buffer, v->dtype, &v->shape);
    ok = lsi_change_rows(c, op, &from, indices, updates, &to);
    lsi_tensor_clear(&from);
    lsi_tensor_clear(&to);
    if (!ok) { // nothing was written
        lsi_buffer_release(w.fresh);
        return NULL;
    }
    lsi_variable_commit(v, &w);
    return read ? lsi_variable_peek(c, v) : NULL;
}

ls_tensor *lsi_scatter_refused(ls_context *c, const ls_variable *v, const char *why)
{
    ls_error e = LS_ERROR_INIT;

    (void)lsi_fail_kind(&e, LS_UNIMPLEMENTED, LS_KIND_RUNTIME, "scatter: '%s' %s",
                        v->name, why);
    return lsi_context_error(c, &e);
}

static ls_tensor *scatter_rows(ls_context *c, ls_variable *v, ls_scatter_op op,
                               ls_tensor *indices, ls_tensor *updates, bool read)
{
    ls_tensor *t;
    uint16_t recording;

    if (c == NULL || lsi_context_aborted(c)) {
        return NULL;
    }
    if (v == NULL || indices == NULL || updates == NULL) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT, "scatter: an argument is NULL");
    }
    recording = c->recording;
    c->recording = 0; // an assignment is not recorded by tapes
    indices = lsi_dense(c, indices);
    updates = lsi_dense(c, updates);
    t = lsi_failed(c) ? NULL : v->ops->scatter(c, v, op, indices, updates, read);
    c->recording = recording;
    return t;
}

ls_tensor *(ls_variable_scatter)(ls_context *c, ls_variable *v, ls_scatter_op op,
                                 ls_tensor *indices, ls_tensor *updates)
{
    return scatter_rows(c, v, op, indices, updates, true);
}

void(ls_variable_scatter_in_place)(ls_context *c, ls_variable *v, ls_scatter_op op,
                                   ls_tensor *indices, ls_tensor *updates)
{
    (void)scatter_rows(c, v, op, indices, updates, false);
}
