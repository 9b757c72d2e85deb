/* Operators: variables (creating, writing, reading, properties, checkpoints). */
#include "strategy_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- making ---- */

static ls_status read_options(const json_t *o, ls_variable_options *out, ls_error *err)
{
    const char *sync = json_string_value(json_object_get(o, "sync"));
    const char *agg = json_string_value(json_object_get(o, "agg"));
    const json_t *trainable = json_object_get(o, "trainable");
    ls_status st = LS_OK;

    *out = (ls_variable_options)LS_VARIABLE_OPTIONS_INIT;
    out->name = json_string_value(json_object_get(o, "name"));
    out->trainable = json_is_true(trainable);
    out->not_trainable = json_is_false(trainable);
    if (sync != NULL) {
        st = ls_synchronization_from_name(sync, &out->synchronization, err);
    }
    if (st == LS_OK && agg != NULL) {
        st = ls_aggregation_from_name(agg, &out->aggregation, err);
    }
    return st;
}

static ls_tensor *initial_value(const scene *s, json_t *e, const char *dtype_name)
{
    ls_value *v = machine_eval(s, e);
    ls_dtype dtype;

    if (v == NULL) {
        return NULL;
    }
    if (dtype_name == NULL || !machine_is_literal(v)) {
        return machine_tensor(s, v);
    }
    if (!ls_dtype_from_name(dtype_name, &dtype)) {
        (void)machine_wrong(s, "no dtype is called %s", dtype_name);
        return NULL;
    }
    return machine_literal(s, v, dtype);
}

static ls_value *op_var(const scene *s, json_t *e)
{
    const json_t *o = json_array_get(e, 2);
    const char *dtype = json_string_value(json_object_get(o, "dtype"));
    ls_tensor *value = initial_value(s, json_array_get(e, 1), dtype);
    ls_variable_options opts;
    ls_error err = LS_ERROR_INIT;
    ls_variable *v = NULL;
    ls_value *out;

    if (value == NULL) {
        return NULL;
    }
    if (read_options(o, &opts, &err) != LS_OK ||
        ls_variable_create(value, &opts, &v, &err) != LS_OK) {
        return machine_fail(s, &err);
    }
    out = machine_of_variable(s, v);
    ls_variable_release(v);
    return out;
}

/* ---- writing ---- */

static ls_value *assign_by(const scene *s, json_t *e, ls_assign_op op)
{
    ls_variable *v = machine_eval_variable(s, json_array_get(e, 1));
    ls_value *value = v == NULL ? NULL : machine_eval(s, json_array_get(e, 2));
    const json_t *read = json_object_get(json_array_get(e, 3), "read_value");

    if (value == NULL) {
        return NULL;
    }
    (void)ls_variable_assign(s->c, v, op, value, json_is_false(read));
    return machine_done(s);
}

static ls_value *op_assign(const scene *s, json_t *e)
{
    return assign_by(s, e, LS_ASSIGN);
}

static ls_value *op_assign_add(const scene *s, json_t *e)
{
    return assign_by(s, e, LS_ASSIGN_ADD);
}

static ls_value *op_assign_sub(const scene *s, json_t *e)
{
    return assign_by(s, e, LS_ASSIGN_SUB);
}

/* One row serves all seven: the operator's name says which. */
static ls_value *op_scatter(const scene *s, json_t *e)
{
    static const struct {
        const char *name;
        ls_scatter_op op;
    } ops[] = {{"scatter_update", LS_SCATTER_UPDATE}, {"scatter_add", LS_SCATTER_ADD},
               {"scatter_sub", LS_SCATTER_SUB},       {"scatter_mul", LS_SCATTER_MUL},
               {"scatter_div", LS_SCATTER_DIV},       {"scatter_min", LS_SCATTER_MIN},
               {"scatter_max", LS_SCATTER_MAX}};
    const char *name = json_string_value(json_array_get(e, 0));
    ls_variable *v = machine_eval_variable(s, json_array_get(e, 1));
    const ls_tensor *sparse =
        v == NULL ? NULL : machine_eval_tensor(s, json_array_get(e, 2));
    const ls_tensor *values = NULL, *indices = NULL;

    if (sparse == NULL) {
        return NULL;
    }
    if (!ls_tensor_slices(sparse, &values, &indices)) {
        return machine_wrong(s, "%s takes slices", name);
    }
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        if (strcmp(ops[i].name, name) == 0) {
            // The parts are borrowed from a tensor that the machine keeps.
            (void)ls_variable_scatter(s->c, v, ops[i].op, (ls_tensor *)(uintptr_t)indices,
                                      (ls_tensor *)(uintptr_t)values);
        }
    }
    return machine_done(s);
}

/* ---- reading ---- */

static ls_value *op_read(const scene *s, json_t *e)
{
    ls_variable *v = machine_eval_variable(s, json_array_get(e, 1));

    return v == NULL ? NULL : machine_of_tensor(s, ls_read(s->c, v));
}

static ls_value *op_copies(const scene *s, json_t *e)
{
    ls_variable *v = machine_eval_variable(s, json_array_get(e, 1));
    items out = {0};

    if (v == NULL) {
        return NULL;
    }
    for (; out.n < ls_variable_components(v) && out.n < MACHINE_MAX_ITEMS; out.n++) {
        ls_error err = LS_ERROR_INIT;
        ls_tensor *t = NULL;
        const ls_status st = ls_variable_value(ls_variable_component(v, out.n), &t, &err);

        out.v[out.n] = machine_of_taken(s, st, &t, &err);
        if (out.v[out.n] == NULL) {
            return NULL;
        }
    }
    return machine_tuple(s, &out);
}

static ls_value *op_set_copies(const scene *s, json_t *e)
{
    ls_variable *v = machine_eval_variable(s, json_array_get(e, 1));
    items args;

    if (v == NULL || !machine_eval_all(s, e, 2, &args)) {
        return NULL;
    }
    for (size_t i = 0; i < args.n && i < ls_variable_components(v); i++) {
        ls_error err = LS_ERROR_INIT;
        const ls_tensor *t = machine_tensor(s, args.v[i]);

        if (t == NULL) {
            return NULL;
        }
        if (ls_variable_set(ls_variable_component(v, i), t, &err) != LS_OK) {
            return machine_fail(s, &err);
        }
    }
    return machine_done(s);
}

static ls_value *op_copies_equal(const scene *s, json_t *e)
{
    const ls_value *all = op_copies(s, e);
    bool equal = true;

    if (all == NULL) {
        return NULL;
    }
    for (size_t i = 1; i < ls_value_size(all); i++) {
        json_t *a = machine_encode(s->m, ls_value_child(all, 0));
        json_t *b = machine_encode(s->m, ls_value_child(all, i));

        equal = equal && a != NULL && json_equal(a, b);
        json_decref(a);
        json_decref(b);
    }
    return machine_of_bool(s, equal);
}

/* ---- properties ---- */

/* TensorFlow names a variable by its first output. */
static ls_value *name_of(const scene *s, const ls_variable *v)
{
    char name[300];

    (void)snprintf(name, sizeof name, "%s:0", ls_variable_name(v));
    return machine_of_text(s, name);
}

static ls_value *of_components(const scene *s, const ls_variable *v, bool names)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *list_value = NULL;
    items out = {0};

    for (; out.n < ls_variable_components(v) && out.n < MACHINE_MAX_ITEMS; out.n++) {
        const ls_variable *copy = ls_variable_component(v, out.n);

        out.v[out.n] = names
                           ? name_of(s, copy)
                           : machine_of_text(s, ls_device_name(ls_variable_device(copy)));
        if (out.v[out.n] == NULL) {
            return NULL;
        }
    }
    return machine_give(s, ls_value_list(out.v, out.n, &list_value, &err), &list_value,
                        &err);
}

static ls_value *shape_of(const scene *s, const ls_variable *v)
{
    const ls_shape shape = ls_variable_shape(v);
    ls_error err = LS_ERROR_INIT;
    ls_value *list_value = NULL;
    items out = {0};

    for (; out.n < (size_t)shape.ndim; out.n++) {
        out.v[out.n] = machine_of_int(s, shape.dims[out.n]);
        if (out.v[out.n] == NULL) {
            return NULL;
        }
    }
    return machine_give(s, ls_value_list(out.v, out.n, &list_value, &err), &list_value,
                        &err);
}

static ls_value *op_property(const scene *s, json_t *e)
{
    const ls_variable *v = machine_eval_variable(s, json_array_get(e, 1));
    const char *what = json_string_value(json_array_get(e, 2));

    if (v == NULL || what == NULL) {
        return NULL;
    }
    if (strcmp(what, "names") == 0 || strcmp(what, "devices") == 0) {
        return of_components(s, v, what[0] == 'n');
    }
    if (strcmp(what, "name") == 0) {
        return name_of(s, v);
    }
    if (strcmp(what, "dtype") == 0) {
        return machine_of_text(s, ls_dtype_name(ls_variable_dtype(v)));
    }
    if (strcmp(what, "shape") == 0) {
        return shape_of(s, v);
    }
    if (strcmp(what, "trainable") == 0) {
        return machine_of_bool(s, ls_variable_trainable(v));
    }
    if (strcmp(what, "sync") == 0) {
        return machine_of_text(s,
                               ls_synchronization_name(ls_variable_synchronization(v)));
    }
    return strcmp(what, "agg") == 0
               ? machine_of_text(s, ls_aggregation_name(ls_variable_aggregation(v)))
               : machine_wrong(s, "a variable has no %s", what);
}

/* value(): like read_value(), but a mirrored variable is used as an operand. */
static ls_value *op_value(const scene *s, json_t *e)
{
    ls_variable *v = machine_eval_variable(s, json_array_get(e, 1));

    if (v == NULL) {
        return NULL;
    }
    return machine_of_tensor(s, ls_variable_synchronization(v) == LS_SYNC_ON_READ
                                    ? ls_read(s->c, v)
                                    : ls_variable_as_tensor(s->c, v));
}

static ls_value *op_created_in_scope(const scene *s, json_t *e)
{
    const ls_strategy *of = machine_eval_strategy(s, json_array_get(e, 1));
    const ls_variable *v =
        of == NULL ? NULL : machine_eval_variable(s, json_array_get(e, 2));

    return v == NULL ? NULL : machine_of_bool(s, ls_strategy_created(of, v));
}

/* ---- checkpoints ---- */

static saved *find_saved(const scene *s, const char *file, const char *key)
{
    for (size_t i = s->m->checkpoints.n; i-- > 0;) {
        saved *k = s->m->checkpoints.items[i];

        if (strcmp(k->file, file) == 0 && strcmp(k->key, key) == 0) {
            return k;
        }
    }
    (void)machine_wrong(s, "%s of the checkpoint %s was not saved", key, file);
    return NULL;
}

static ls_value *op_save(const scene *s, json_t *e)
{
    const char *file = json_string_value(json_array_get(e, 1)), *key;
    json_t *expression;

    json_object_foreach(json_array_get(e, 2), key, expression)
    {
        ls_variable *v = machine_eval_variable(s, expression);
        ls_error err = LS_ERROR_INIT;
        saved *k = v == NULL ? NULL : calloc(1, sizeof *k);

        if (v == NULL) {
            return NULL;
        }
        if (k == NULL || !list_add(&s->m->checkpoints, k)) {
            free(k);
            return machine_wrong(s, "out of memory");
        }
        k->file = file;
        k->key = key;
        if (ls_variable_save(v, &k->tensor, &err) != LS_OK) {
            return machine_fail(s, &err);
        }
    }
    return machine_done(s);
}

static ls_value *op_restore(const scene *s, json_t *e)
{
    const char *file = json_string_value(json_array_get(e, 1)), *key;
    json_t *expression;

    json_object_foreach(json_array_get(e, 2), key, expression)
    {
        ls_variable *v = machine_eval_variable(s, expression);
        const saved *k = v == NULL ? NULL : find_saved(s, file, key);
        ls_error err = LS_ERROR_INIT;

        if (k == NULL) {
            return NULL;
        }
        if (ls_variable_restore(v, k->tensor, &err) != LS_OK) {
            return machine_fail(s, &err);
        }
    }
    return machine_done(s);
}

static ls_value *op_saved_tensor(const scene *s, json_t *e)
{
    const saved *k = find_saved(s, json_string_value(json_array_get(e, 1)),
                                json_string_value(json_array_get(e, 2)));

    return k == NULL ? NULL : machine_of_tensor(s, k->tensor);
}

const operation machine_variables[] = {
    {"created_in_scope", op_created_in_scope, 2, 2},
    {"var", op_var, 1, 2},
    {"assign", op_assign, 2, 3},
    {"assign_add", op_assign_add, 2, 3},
    {"assign_sub", op_assign_sub, 2, 3},
    {"scatter_add", op_scatter, 2, 2},
    {"scatter_sub", op_scatter, 2, 2},
    {"scatter_mul", op_scatter, 2, 2},
    {"scatter_div", op_scatter, 2, 2},
    {"scatter_min", op_scatter, 2, 2},
    {"scatter_max", op_scatter, 2, 2},
    {"scatter_update", op_scatter, 2, 2},
    {"read", op_read, 1, 1},
    {"value", op_value, 1, 1},
    {"copies", op_copies, 1, 1},
    {"set_copies", op_set_copies, 2, 0},
    {"copies_equal", op_copies_equal, 1, 1},
    {"property", op_property, 2, 2},
    {"save", op_save, 2, 2},
    {"restore", op_restore, 2, 2},
    {"saved", op_saved_tensor, 2, 2},
    {NULL, NULL, 0, 0},
};
