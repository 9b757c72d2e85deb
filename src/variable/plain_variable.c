/*
 * The kind of plain variables: one copy of the elements, which shares its buffer with
 * tensors until it is written.
 */
#include "variable/variable.h"

#include <string.h>

static size_t bytes_of(const ls_variable *v)
{
    return (size_t)v->count * ls_dtype_size(v->dtype);
}

/*
 * Copies the elements of `value` to a new buffer; NULL: failed, see err. Strings are
 * elements that point at bytes: one buffer holds both, and is never written again.
 */
static lsi_buffer *copy_elements(const ls_tensor *value, ls_device *device, ls_error *err)
{
    const ls_dtype dtype = (ls_dtype)value->dtype;
    const size_t bytes = (size_t)value->count * ls_dtype_size(dtype);
    lsi_buffer *copy = NULL;
    ls_tensor *strings = NULL;

    if (dtype == LS_STRING) {
        if (ls_tensor_create(device, LS_STRING, ls_tensor_shape(value), value->data,
                             &strings, err) == LS_OK) {
            copy = lsi_buffer_retain(strings->buffer);
            ls_tensor_release(strings);
        }
        return copy;
    }
    copy = lsi_buffer_new(device, bytes);
    if (copy == NULL) {
        (void)lsi_fail_memory(err, "a variable", bytes);
    } else if (ls_tensor_read(value, copy->data, bytes, err) != LS_OK) {
        lsi_buffer_release(copy);
        copy = NULL;
    }
    return copy;
}

ls_status lsi_variable_plain(const ls_tensor *value, const ls_variable_options *opts,
                             const char *name, ls_device *device, lsi_buffer *shared,
                             ls_variable **out, ls_error *err)
{
    ls_variable *v =
        lsi_variable_new(&lsi_plain_variable, value, opts, name, device, err);
    ls_error e = LS_ERROR_INIT;

    if (v == NULL) {
        return LS_RESOURCE_EXHAUSTED;
    }
    v->buffer =
        shared != NULL ? lsi_buffer_retain(shared) : copy_elements(value, device, &e);
    if (v->buffer == NULL) {
        ls_variable_release(v);
        return lsi_fail_again(err, &e);
    }
    *out = v;
    return LS_OK;
}

/* ---- the elements ---- */

ls_status lsi_variable_write(ls_variable *v, lsi_write *w, ls_error *err)
{
    return lsi_variable_write_shared(v, 1, w, err);
}

ls_status lsi_variable_write_shared(ls_variable *v, int holders, lsi_write *w,
                                    ls_error *err)
{
    w->from = v->buffer->data;
    w->to = v->buffer->data;
    w->fresh = NULL;
    if (atomic_load(&v->buffer->refs) > holders) { // tensors still share the buffer
        w->fresh = lsi_buffer_new(v->device, bytes_of(v));
        if (w->fresh == NULL) {
            return lsi_fail_memory(err, v->name, bytes_of(v));
        }
        w->to = w->fresh->data;
    }
    return LS_OK;
}

void lsi_variable_commit(ls_variable *v, const lsi_write *w)
{
    if (w->fresh != NULL) {
        lsi_buffer_release(v->buffer);
        v->buffer = w->fresh;
    }
}

ls_tensor *lsi_variable_peek(ls_context *c, ls_variable *v)
{
    ls_tensor *t = lsi_context_struct(c);

    if (t == NULL) {
        return ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for a tensor");
    }
    lsi_tensor_init_over(t, v->buffer, v->dtype, &v->shape);
    return t;
}

/* Sets the variable to `t`, a new value computed in this step. */
static ls_tensor *take_value(ls_context *c, ls_variable *v, ls_tensor *t)
{
    ls_error e = LS_ERROR_INIT;
    lsi_write w;

    t = lsi_dense(c, t);
    if (t == NULL) {
        return NULL;
    }
    if (v->dtype == LS_STRING) { // copies the bytes, too: another buffer may own them
        lsi_buffer *copy = copy_elements(t, v->device, &e);

        if (copy == NULL) {
            return lsi_context_error(c, &e);
        }
        lsi_buffer_release(v->buffer);
        v->buffer = copy;
        return lsi_variable_peek(c, v);
    }
    if (t->buffer != NULL && t->buffer->pooled && t->data == t->buffer->data &&
        t->buffer->device == v->device) { // tensors are never written: share it
        lsi_buffer *old = v->buffer;

        v->buffer = lsi_buffer_retain(t->buffer);
        lsi_buffer_release(old);
        return t;
    }
    if (lsi_variable_write(v, &w, &e) != LS_OK) {
        return lsi_context_error(c, &e);
    }
    if (ls_tensor_read(t, w.to, bytes_of(v), &e) != LS_OK) {
        (void)lsi_context_error(c, &e);
    }
    lsi_variable_commit(v, &w);
    return lsi_failed(c) ? NULL : lsi_variable_peek(c, v);
}

/* Adding another shape is TensorFlow's InvalidArgumentError, the rest its ValueError. */
bool lsi_variable_takes(ls_context *c, const ls_variable *v, ls_assign_op op,
                        const ls_tensor *t)
{
    const ls_shape shape = ls_tensor_shape(t);
    const ls_dtype dtype = ls_tensor_dtype(t);
    char mine[128], theirs[128];
    ls_error e = LS_ERROR_INIT;

    if (lsi_failed(c)) {
        return false;
    }
    if (t == NULL) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "%s: the value is NULL",
                              lsi_assign_names[op]);
        return false;
    }
    if (dtype == v->dtype && ls_shape_equal(&shape, &v->shape)) {
        return true;
    }
    (void)lsi_fail_kind(&e, LS_INVALID_ARGUMENT,
                        op != LS_ASSIGN && dtype == v->dtype ? LS_KIND_OP : LS_KIND_VALUE,
                        "%s: the variable '%s' is %s %s, the value is %s %s",
                        lsi_assign_names[op], v->name, ls_dtype_name(v->dtype),
                        ls_shape_text(&v->shape, mine, sizeof mine), ls_dtype_name(dtype),
                        ls_shape_text(&shape, theirs, sizeof theirs));
    (void)lsi_context_error(c, &e);
    return false;
}

ls_tensor *lsi_variable_put(ls_context *c, ls_variable *v, ls_assign_op op, ls_tensor *t)
{
    const uint16_t recording = c->recording;

    if (!lsi_variable_takes(c, v, op, t)) {
        return NULL;
    }
    c->recording = 0; // an assignment is not recorded by tapes
    if (op != LS_ASSIGN) {
        ls_tensor *now = lsi_variable_peek(c, v);

        t = op == LS_ASSIGN_ADD ? (ls_add)(c, now, t) : (ls_sub)(c, now, t);
    }
    t = t != NULL ? take_value(c, v, t) : NULL;
    c->recording = recording;
    return t;
}

/* ---- the kind ---- */

static ls_variable *here_plain(ls_variable *v, const char *what, ls_error *err)
{
    (void)what;
    (void)err;
    return v;
}

static ls_tensor *read_plain(ls_context *c, ls_variable *v, bool operand)
{
    (void)operand;
    return lsi_variable_note(c, v, lsi_variable_peek(c, v));
}

static bool assign_plain(ls_context *c, ls_variable *v, ls_assign_op op,
                         const lsi_source *s)
{
    return lsi_variable_put(c, v, op, lsi_source_tensor(c, v, op, s, 0)) != NULL;
}

static void restore_plain(ls_context *c, ls_variable *v, const lsi_source *s)
{
    (void)assign_plain(c, v, LS_ASSIGN, s);
}

static ls_status create_like(ls_variable *like, const ls_tensor *value,
                             const ls_variable_options *opts, ls_variable **out,
                             ls_error *err)
{
    return lsi_variable_plain(value, opts, opts->name, like->device, NULL, out, err);
}

const lsi_variable_ops lsi_plain_variable = {
    .here = here_plain,
    .read = read_plain,
    .value = lsi_variable_peek,
    .gather = lsi_variable_gather_rows,
    .assign = assign_plain,
    .scatter = lsi_scatter_plain,
    .save = lsi_variable_peek,
    .restore = restore_plain,
    .create_like = create_like,
};
