#include "variable/variable.h"

static size_t bytes_of(const ls_variable *v)
{
    return (size_t)v->count * ls_dtype_size(v->dtype);
}

ls_status ls_variable_create(const ls_tensor *value, const ls_variable_options *opts,
                             ls_variable **out, ls_error *err)
{
    ls_variable *v;
    ls_status st = LS_OK;

    if (value == NULL || out == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "variable: %s is NULL",
                        value == NULL ? "the initial value" : "out");
    }
    if (opts != NULL && opts->struct_size < sizeof *opts) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "variable: start the options from LS_VARIABLE_OPTIONS_INIT");
    }
    if (value->dtype == LS_STRING) {
        return lsi_fail_kind(err, LS_UNIMPLEMENTED, LS_KIND_TYPE,
                             "variable: strings cannot be assigned to; keep the tensor");
    }
    v = lsi_alloc(1, sizeof *v);
    if (v == NULL) {
        return lsi_fail_memory(err, "a variable", sizeof *v);
    }
    atomic_init(&v->refs, 1);
    v->dtype = (ls_dtype)value->dtype;
    v->shape = ls_tensor_shape(value);
    v->count = value->count;
    v->trainable = opts == NULL || !opts->not_trainable;
    v->device = opts != NULL && opts->device != NULL ? opts->device : value->device;
    v->runtime = ls_runtime_retain(v->device->runtime);
    v->name = lsi_strdup(opts != NULL && opts->name != NULL ? opts->name : "Variable");
    v->buffer = lsi_buffer_new(v->device, bytes_of(v));
    if (v->name == NULL || v->buffer == NULL) {
        st = lsi_fail_memory(err, "a variable", bytes_of(v));
    } else {
        st = ls_tensor_read(value, v->buffer->data, bytes_of(v), err);
    }
    if (st != LS_OK) {
        ls_variable_release(v);
        return st;
    }
    *out = v;
    return LS_OK;
}

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
    lsi_buffer_release(v->buffer);
    ls_runtime_release(v->runtime);
    lsi_free(v->name);
    lsi_free(v);
}

const char *ls_variable_name(const ls_variable *v)
{
    return v->name;
}

ls_dtype ls_variable_dtype(const ls_variable *v)
{
    return v->dtype;
}

ls_shape ls_variable_shape(const ls_variable *v)
{
    return v->shape;
}

bool ls_variable_trainable(const ls_variable *v)
{
    return v->trainable;
}

ls_status lsi_variable_write(ls_variable *v, lsi_write *w, ls_error *err)
{
    w->from = v->buffer->data;
    w->to = v->buffer->data;
    w->fresh = NULL;
    if (atomic_load(&v->buffer->refs) > 1) { // somebody still reads the present value
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

static ls_status check_value(const ls_variable *v, const char *what, ls_dtype dtype,
                             const ls_shape *shape, ls_error *err)
{
    char mine[128], theirs[128];

    if (dtype == v->dtype && ls_shape_equal(shape, &v->shape)) {
        return LS_OK;
    }
    return lsi_fail_kind(
        err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
        "%s: the variable '%s' is %s %s, the value is %s %s", what, v->name,
        ls_dtype_name(v->dtype), ls_shape_text(&v->shape, mine, sizeof mine),
        ls_dtype_name(dtype), ls_shape_text(shape, theirs, sizeof theirs));
}

ls_status ls_variable_value(ls_variable *v, ls_tensor **out, ls_error *err)
{
    ls_tensor *t;

    if (v == NULL || out == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "value: %s is NULL",
                        v == NULL ? "the variable" : "out");
    }
    t = lsi_tensor_over(v->buffer, v->dtype, &v->shape);
    if (t == NULL) {
        return lsi_fail_memory(err, "a tensor", sizeof *t);
    }
    *out = t;
    return LS_OK;
}

ls_status ls_variable_set(ls_variable *v, const ls_tensor *value, ls_error *err)
{
    lsi_write w;
    ls_shape shape;
    ls_status st;

    if (v == NULL || value == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "set: %s is NULL",
                        v == NULL ? "the variable" : "the value");
    }
    shape = ls_tensor_shape(value);
    st = check_value(v, "set", (ls_dtype)value->dtype, &shape, err);
    if (st == LS_OK) {
        st = lsi_variable_write(v, &w, err);
    }
    if (st == LS_OK) {
        st = ls_tensor_read(value, w.to, bytes_of(v), err);
        lsi_variable_commit(v, &w);
    }
    return st;
}

/* The present value as a tensor of the step, watched by nobody. */
static ls_tensor *peek(ls_context *c, ls_variable *v)
{
    ls_tensor *t = lsi_context_struct(c);

    if (t == NULL) {
        return ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for a tensor");
    }
    lsi_tensor_init_over(t, v->buffer, v->dtype, &v->shape);
    return t;
}

static bool usable(ls_context *c, const ls_variable *v, const char *what)
{
    if (!lsi_failed(c) && v == NULL) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "%s: the variable is NULL", what);
    }
    return !lsi_failed(c);
}

ls_tensor *(ls_read)(ls_context *c, ls_variable *v)
{
    ls_tensor *t;

    if (!usable(c, v, "read")) {
        return NULL;
    }
    t = peek(c, v);
    lsi_tape_note_read(c, v, v->trainable, t);
    return lsi_failed(c) ? NULL : t;
}

/* Makes `t`, a new value computed in this step, the variable's. */
static ls_tensor *take(ls_context *c, ls_variable *v, ls_tensor *t, const char *what)
{
    ls_error e = LS_ERROR_INIT;
    ls_shape shape;
    lsi_write w;

    if (t == NULL) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT, "%s: the value is NULL", what);
    }
    shape = ls_tensor_shape(t);
    if (check_value(v, what, (ls_dtype)t->dtype, &shape, &e) != LS_OK) {
        return lsi_context_error(c, &e);
    }
    if (t->buffer != NULL && t->buffer->pooled && t->data == t->buffer->data &&
        t->buffer->device == v->device) { // elements never change: they can be shared
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
    return lsi_failed(c) ? NULL : peek(c, v);
}

ls_tensor *(ls_assign)(ls_context *c, ls_variable *v, ls_tensor *value)
{
    return usable(c, v, "assign") ? take(c, v, value, "assign") : NULL;
}

typedef ls_tensor *(*binary)(ls_context *c, ls_tensor *a, ls_tensor *b);

/* An assignment is no part of a gradient: nothing is recorded meanwhile. */
static ls_tensor *change(ls_context *c, ls_variable *v, ls_tensor *delta, binary op,
                         const char *what)
{
    uint16_t recording;
    ls_error e = LS_ERROR_INIT;
    ls_shape shape;
    ls_tensor *t;

    if (!usable(c, v, what)) {
        return NULL;
    }
    if (delta == NULL) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT, "%s: the value is NULL", what);
    }
    shape = ls_tensor_shape(delta);
    if (check_value(v, what, (ls_dtype)delta->dtype, &shape, &e) != LS_OK) {
        return lsi_context_error(c, &e);
    }
    recording = c->recording;
    c->recording = 0;
    t = op(c, peek(c, v), delta);
    c->recording = recording;
    return t != NULL ? take(c, v, t, what) : NULL;
}

ls_tensor *(ls_assign_add)(ls_context *c, ls_variable *v, ls_tensor *delta)
{
    return change(c, v, delta, (ls_add), "assign_add");
}

ls_tensor *(ls_assign_sub)(ls_context *c, ls_variable *v, ls_tensor *delta)
{
    return change(c, v, delta, (ls_sub), "assign_sub");
}

void(ls_variable_gradients)(ls_context *c, ls_tape *tape, ls_tensor *target,
                            ls_variable *const *v, size_t n, ls_tensor **grads)
{
    if (n > 0 && (v == NULL || grads == NULL)) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "gradient: %s is NULL",
                              v == NULL ? "the list of variables" : "grads");
        return;
    }
    lsi_tape_key_gradients(c, tape, target, (const void *const *)v, n, grads);
}

void ls_tape_watch_variable(ls_context *c, ls_tape *tape, ls_variable *v)
{
    if (usable(c, v, "watch")) {
        lsi_tape_watch_key(c, tape, v);
    }
}
