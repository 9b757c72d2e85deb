/* What a variable is worth, by where it is asked. */
#include "variable/variable.h"

ls_variable *lsi_variable_here(ls_variable *v, const char *what, ls_error *err)
{
    const lsi_mode *now = lsi_mode_now();
    const int id = lsi_update_id();
    int index;

    if (v->kind == LSI_PLAIN) {
        return v;
    }
    if (now == NULL || now->strategy->ops->kind == LSI_DEFAULT) {
        return v->kind == LSI_AGGREGATING ? v->component[0] : NULL;
    }
    if (now->strategy != v->strategy) {
        (void)lsi_wrong_strategy(v->strategy, what, err);
        return NULL;
    }
    if (v->kind == LSI_AGGREGATING) {
        return v->component[0];
    }
    if (now->cross && id < 0) {
        return NULL;
    }
    index = id >= 0 ? id : lsi_replica_of(now->context)->index;
    return v->component[index < v->components ? index : 0];
}

/* The copy on the device of the scope, else the first. */
static ls_variable *nearest(ls_variable *v)
{
    const ls_device *device = lsi_scope_device();

    for (int i = 0; device != NULL && i < v->components; i++) {
        if (v->component[i]->device == device) {
            return v->component[i];
        }
    }
    return v->component[0];
}

/* Bools and strings can be kept in copies, but have no sum. */
static bool can_combine(ls_context *c, const ls_variable *v)
{
    ls_error e = LS_ERROR_INIT;

    if (lsi_dtype_is_number(v->dtype)) {
        return true;
    }
    (void)lsi_fail_kind(&e, LS_INVALID_ARGUMENT, LS_KIND_OP,
                        "read: '%s' is %s with the aggregation %s, and %s cannot be "
                        "added up; read a component, or use ONLY_FIRST_REPLICA",
                        v->name, ls_dtype_name(v->dtype),
                        ls_aggregation_name(v->aggregation), ls_dtype_name(v->dtype));
    (void)lsi_context_error(c, &e);
    return false;
}

/* Sum or mean of the copies, in the order of the tree. */
static ls_tensor *combine(ls_context *c, ls_variable *v)
{
    enum { FEW = 16 };
    const void *few[FEW];
    const int n = v->components;
    const void **from;
    ls_tensor *out;

    if (!can_combine(c, v)) {
        return NULL;
    }
    out = lsi_context_tensor(c, v->dtype, &v->shape);
    from = n <= FEW ? few : lsi_alloc((size_t)n, sizeof(void *));
    if (from == NULL) {
        return ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for %s", v->name);
    }
    for (int i = 0; i < n; i++) {
        from[i] = v->component[i]->buffer->data;
    }
    if (out != NULL && v->count > 0) {
        lsi_reduce_tree(v->aggregation == LS_AGGREGATE_MEAN ? LS_MEAN : LS_SUM, from, n,
                        out->data, (size_t)v->count, v->dtype);
    }
    if (from != few) {
        lsi_free(from);
    }
    return out;
}

ls_tensor *lsi_variable_aggregate(ls_context *c, ls_variable *v)
{
    ls_error e = LS_ERROR_INIT;

    if (v->kind == LSI_PLAIN) {
        return lsi_variable_peek(c, v);
    }
    if (v->kind != LSI_SYNC_ON_READ) {
        return lsi_variable_peek(c, nearest(v));
    }
    switch (v->aggregation) {
    case LS_AGGREGATE_SUM:
    case LS_AGGREGATE_MEAN:
        return combine(c, v);
    case LS_AGGREGATE_ONLY_FIRST_REPLICA:
        return lsi_variable_peek(c, v->component[0]);
    case LS_AGGREGATE_NONE:
        break;
    }
    (void)lsi_fail_kind(&e, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                        "read: '%s' is ON_READ without an aggregation: outside of "
                        "replicas its copies are no one value; read a component",
                        v->name);
    return lsi_context_error(c, &e);
}

static ls_tensor *noted(ls_context *c, ls_variable *v, ls_tensor *t)
{
    if (t != NULL) {
        lsi_tape_note_read(c, v, v->trainable, t);
    }
    return lsi_failed(c) ? NULL : t;
}

/* Reads a distributed variable; `operand`: in arithmetic, else by its name. */
static ls_tensor *read_distributed(ls_context *c, ls_variable *v, bool operand)
{
    const lsi_mode *now = lsi_mode_now();
    ls_error e = LS_ERROR_INIT;
    ls_variable *here = lsi_variable_here(v, "read", &e);

    if (e.code != LS_OK && !(operand && v->kind == LSI_MIRRORED_VARIABLE)) {
        return lsi_context_error(c, &e);
    }
    if (here == NULL) {
        return noted(c, v, lsi_variable_aggregate(c, v));
    }
    if (v->kind == LSI_SYNC_ON_READ && now != NULL && !now->cross && lsi_sync_on_read()) {
        if (!operand) {
            (void)lsi_fail_kind(&e, LS_UNIMPLEMENTED, LS_KIND_RUNTIME,
                                "read: '%s' is added up inside of sync_on_read; use it "
                                "as an operand (ls_variable_as_tensor)",
                                v->name);
            return lsi_context_error(c, &e);
        }
        if (v->aggregation == LS_AGGREGATE_ONLY_FIRST_REPLICA) {
            return lsi_variable_peek(c, v->component[0]);
        }
        return (ls_all_reduce)(c, v->aggregation == LS_AGGREGATE_MEAN ? LS_MEAN : LS_SUM,
                               noted(c, v, lsi_variable_peek(c, here)));
    }
    if (v->kind == LSI_AGGREGATING) { // another replica may be writing a row of it
        ls_tensor *t;

        lsi_mutex_lock(&v->lock);
        t = lsi_variable_peek(c, here);
        lsi_mutex_unlock(&v->lock);
        return noted(c, v, t);
    }
    return noted(c, v, lsi_variable_peek(c, here));
}

static bool usable(ls_context *c, const ls_variable *v)
{
    if (!lsi_failed(c) && v == NULL) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "read: the variable is NULL");
    }
    return !lsi_failed(c);
}

ls_tensor *(ls_read)(ls_context *c, ls_variable *v)
{
    if (!usable(c, v)) {
        return NULL;
    }
    return v->kind == LSI_PLAIN ? noted(c, v, lsi_variable_peek(c, v))
                                : read_distributed(c, v, false);
}

ls_tensor *(ls_variable_as_tensor)(ls_context *c, ls_variable *v)
{
    if (!usable(c, v)) {
        return NULL;
    }
    return v->kind == LSI_PLAIN ? noted(c, v, lsi_variable_peek(c, v))
                                : read_distributed(c, v, true);
}

/*
 * The tape needs the shape of the variable alone, so nothing holds the value once the
 * rows are copied: whoever updates them in this step can do it in place.
 */
ls_tensor *(ls_variable_gather)(ls_context *c, ls_variable *v, ls_tensor *indices)
{
    ls_tensor *whole = (ls_read)(c, v); // nobody else knows it
    ls_tensor *rows = whole != NULL ? (ls_gather)(c, whole, indices, 0) : NULL;

    if (whole != NULL && whole->buffer != NULL) {
        lsi_buffer_release(whole->buffer);
        whole->buffer = NULL;
        whole->data = NULL;
    }
    return rows;
}

/* ---- outside of any step ---- */

/* A context for one call; the step's failure is the call's. */
static ls_status in_context(ls_variable *v, ls_tensor *(*fn)(ls_context *, ls_variable *),
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
    if (v->kind != LSI_PLAIN) {
        return in_context(v, (ls_read), out, err);
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
    if (v->kind != LSI_PLAIN && v->kind != LSI_SYNC_ON_READ) {
        v = v->component[0];
    }
    return in_context(v, lsi_variable_aggregate, out, err);
}
