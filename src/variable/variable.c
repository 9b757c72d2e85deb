/* Variables: making, keeping, asking. */
#include "variable/variable.h"

#include <stdio.h>
#include <string.h>

static size_t bytes_of(const ls_variable *v)
{
    return (size_t)v->count * ls_dtype_size(v->dtype);
}

/*
 * The elements of `value` in memory of the device; NULL: err says why. Strings are
 * elements that point at bytes: both stand in one buffer, which is never written again.
 */
static lsi_buffer *copy_of(const ls_tensor *value, ls_device *device, ls_error *err)
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
    ls_variable *v = lsi_alloc(1, sizeof *v);
    ls_error e = LS_ERROR_INIT;
    ls_status st = LS_OK;

    if (v == NULL) {
        return lsi_fail_memory(err, "a variable", sizeof *v);
    }
    atomic_init(&v->refs, 1);
    v->dtype = (ls_dtype)value->dtype;
    v->shape = ls_tensor_shape(value);
    v->count = value->count;
    v->synchronization = opts->synchronization;
    v->aggregation = opts->aggregation;
    v->strict = opts->strict;
    v->trainable = !opts->not_trainable &&
                   (opts->trainable || opts->synchronization != LS_SYNC_ON_READ);
    v->device = device;
    v->runtime = ls_runtime_retain(device->runtime);
    v->name = lsi_strdup(name);
    if (v->name == NULL) {
        st = lsi_fail_memory(err, "a variable", strlen(name));
    } else {
        v->buffer =
            shared != NULL ? lsi_buffer_retain(shared) : copy_of(value, device, &e);
        st = v->buffer != NULL ? LS_OK : lsi_fail_again(err, &e);
    }
    if (st != LS_OK) {
        ls_variable_release(v);
        return st;
    }
    *out = v;
    return LS_OK;
}

/* ---- creation: creators first, the strategy last ---- */

struct ls_creator_next {
    struct lsi_scope *creator; // NULL: the strategy's turn
    lsi_copy_maker make;       // a copy, not a variable: who makes it at the end
    void *arg;
};

static ls_status create_here(const ls_tensor *value, const ls_variable_options *opts,
                             ls_variable **out, ls_error *err)
{
    ls_strategy *s = ls_current_strategy();
    ls_variable_options named = *opts;
    char *name;
    ls_status st;

    if (lsi_scope_mixed()) {
        return lsi_fail_kind(err, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                             "variable: mixing different strategies: the scope of the "
                             "default one is open below that of %s",
                             s->ops->name);
    }
    name = lsi_scoped_name(opts->name != NULL ? opts->name : "Variable");
    if (name == NULL) {
        return lsi_fail_memory(err, "a name", 1);
    }
    named.name = name;
    st = s->ops->create_variable != NULL
             ? s->ops->create_variable(s, value, &named, out, err)
             : lsi_create_plain(s, value, &named, out, err);
    lsi_free(name);
    return st;
}

ls_status ls_creator_call(const ls_creator_next *next, const ls_tensor *value,
                          const ls_variable_options *opts, ls_variable **out,
                          ls_error *err)
{
    static const ls_variable_options defaults = LS_VARIABLE_OPTIONS_INIT;

    if (value == NULL || out == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "variable: %s is NULL",
                        value == NULL ? "the initial value" : "out");
    }
    if (opts == NULL) {
        opts = &defaults;
    }
    if (opts->struct_size < sizeof *opts) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "variable: start the options from LS_VARIABLE_OPTIONS_INIT");
    }
    if (next != NULL && next->creator != NULL) {
        const ls_creator_next rest = {lsi_creator_outer(next->creator), next->make,
                                      next->arg};
        void *user = NULL;
        ls_creator_fn fn = lsi_creator_fn(next->creator, &user);

        return fn(&rest, value, opts, user, out, err);
    }
    if (next != NULL && next->make != NULL) {
        return next->make(next->arg, value, opts, out, err);
    }
    return create_here(value, opts, out, err);
}

ls_status lsi_creator_copy(const ls_tensor *value, const ls_variable_options *opts,
                           lsi_copy_maker make, void *arg, ls_variable **out,
                           ls_error *err)
{
    const ls_creator_next first = {lsi_scope_creator_outside(), make, arg};

    return ls_creator_call(&first, value, opts, out, err);
}

ls_status ls_variable_create(const ls_tensor *value, const ls_variable_options *opts,
                             ls_variable **out, ls_error *err)
{
    const ls_creator_next first = {lsi_scope_creator(), NULL, NULL};

    return ls_creator_call(&first, value, opts, out, err);
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
    for (int i = 0; i < v->components; i++) {
        if (v->component[i] != NULL) {
            v->component[i]->container = NULL; // somebody may hold the copy alone
            ls_variable_release(v->component[i]);
        }
    }
    lsi_free(v->component);
    if (v->kind == LSI_AGGREGATING) {
        lsi_mutex_destroy(&v->lock);
    }
    lsi_buffer_release(v->buffer);
    ls_runtime_release(v->runtime);
    ls_strategy_release(v->strategy);
    lsi_free(v->name);
    lsi_free(v);
}

/* ---- asking ---- */

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
    return v->kind == LSI_PLAIN ? 1 : (size_t)v->components;
}

ls_variable *ls_variable_component(const ls_variable *v, size_t i)
{
    if (v == NULL) {
        return NULL;
    }
    if (v->kind == LSI_PLAIN) {
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

/* ---- writing the elements of a plain one ---- */

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

ls_tensor *lsi_variable_peek(ls_context *c, ls_variable *v)
{
    ls_tensor *t = lsi_context_struct(c);

    if (t == NULL) {
        return ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for a tensor");
    }
    lsi_tensor_init_over(t, v->buffer, v->dtype, &v->shape);
    return t;
}

/* Makes `t`, a new value computed in this step, the variable's. */
static ls_tensor *take(ls_context *c, ls_variable *v, ls_tensor *t)
{
    ls_error e = LS_ERROR_INIT;
    lsi_write w;

    t = lsi_dense(c, t);
    if (t == NULL) {
        return NULL;
    }
    if (v->dtype == LS_STRING) { // whatever they point at: it may be anybody's
        lsi_buffer *copy = copy_of(t, v->device, &e);

        if (copy == NULL) {
            return lsi_context_error(c, &e);
        }
        lsi_buffer_release(v->buffer);
        v->buffer = copy;
        return lsi_variable_peek(c, v);
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
    return lsi_failed(c) ? NULL : lsi_variable_peek(c, v);
}

static const char *const assign_names[] = {"assign", "assign_add", "assign_sub"};

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
                              assign_names[op]);
        return false;
    }
    if (dtype == v->dtype && ls_shape_equal(&shape, &v->shape)) {
        return true;
    }
    (void)lsi_fail_kind(&e, LS_INVALID_ARGUMENT,
                        op != LS_ASSIGN && dtype == v->dtype ? LS_KIND_OP : LS_KIND_VALUE,
                        "%s: the variable '%s' is %s %s, the value is %s %s",
                        assign_names[op], v->name, ls_dtype_name(v->dtype),
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
    c->recording = 0; // an assignment is no part of a gradient
    if (op != LS_ASSIGN) {
        ls_tensor *now = lsi_variable_peek(c, v);

        t = op == LS_ASSIGN_ADD ? (ls_add)(c, now, t) : (ls_sub)(c, now, t);
    }
    t = t != NULL ? take(c, v, t) : NULL;
    c->recording = recording;
    return t;
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
    if (lsi_failed(c)) {
        return;
    }
    if (v == NULL) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "watch: the variable is NULL");
        return;
    }
    lsi_tape_watch_key(c, tape, v);
}
