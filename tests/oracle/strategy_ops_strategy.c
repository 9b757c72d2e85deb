/* Operators: what a strategy does (run, make values, reduce, gather, update). */
#include "strategy_machine.h"

#include <string.h>

bool machine_reduce_op(const scene *s, json_t *name, ls_reduce *out)
{
    const char *text = json_string_value(name);
    ls_error err = LS_ERROR_INIT;

    if (text == NULL) {
        (void)machine_wrong(s, "a reduction has a name");
        return false;
    }
    if (ls_reduce_from_name(text, out, &err) != LS_OK) {
        (void)machine_fail(s, &err);
        return false;
    }
    return true;
}

ls_value *machine_destination(const scene *s, json_t *e)
{
    json_t *device = json_is_object(e) ? json_object_get(e, "device") : NULL;
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;
    items names = {0};

    if (device == NULL) {
        return machine_eval(s, e);
    }
    if (json_is_string(device)) {
        return machine_of_text(s, json_string_value(device));
    }
    for (; names.n < json_array_size(device) && names.n < MACHINE_MAX_ITEMS; names.n++) {
        const char *name = json_string_value(json_array_get(device, names.n));

        names.v[names.n] = machine_of_text(s, name == NULL ? "" : name);
        if (names.v[names.n] == NULL) {
            return NULL;
        }
    }
    return machine_give(s, ls_value_list(names.v, names.n, &out, &err), &out, &err);
}

/* ---- run ---- */

static bool read_items(const scene *s, const ls_value *v, size_t from, items *out)
{
    const size_t n = ls_value_size(v);

    if (from + n > MACHINE_MAX_ITEMS) {
        (void)machine_wrong(s, "%zu arguments are too many", n);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        out->v[from + i] = ls_value_child(v, i);
    }
    out->n = from + n;
    return true;
}

static ls_value *on_replica(ls_context *c, ls_value *args, void *user)
{
    const closure *k = user;
    const scene s = {k->m, c, k->fn->where, true};
    const ls_value *positional = k->kwargs ? ls_value_child(args, 0) : args;
    items given;

    if (!read_items(&s, positional, 0, &given)) {
        return NULL;
    }
    return machine_call(&s, k->fn, &given, k->kwargs ? ls_value_child(args, 1) : NULL);
}

/* The arguments of a run as one value: (positional), or (positional, keywords). */
static ls_value *run_arguments(const scene *s, json_t *e, bool *keywords)
{
    json_t *positional = json_array_get(e, 3), *kwargs = json_array_get(e, 4);
    items args;

    *keywords = kwargs != NULL && !json_is_null(kwargs);
    if (positional != NULL && !json_is_array(positional)) {
        return machine_eval(
            s, positional); // not a list: an error that the library must report
    }
    if (!machine_eval_all(s, positional, 0, &args)) {
        return NULL;
    }
    ls_value *v = machine_tuple(s, &args);

    if (v == NULL || !*keywords) {
        return v;
    }
    items both = {2, {v, machine_eval(s, kwargs)}};

    return both.v[1] == NULL ? NULL : machine_tuple(s, &both);
}

static ls_value *op_run(const scene *s, json_t *e)
{
    ls_strategy *of = machine_eval_strategy(s, json_array_get(e, 1));
    closure k = {s->m, NULL, false};
    ls_error err = LS_ERROR_INIT;
    ls_value *args, *out = NULL;

    if (of == NULL) {
        return NULL;
    }
    k.fn = machine_eval_thing(s, json_array_get(e, 2), THING_FUNCTION);
    args = k.fn == NULL ? NULL : run_arguments(s, e, &k.kwargs);
    if (args == NULL) {
        return NULL;
    }
    return machine_give(s, ls_strategy_run(of, on_replica, args, &k, &out, &err), &out,
                        &err);
}

/* ---- values made by one call per replica ---- */
struct maker {
    const scene *s;
    json_t *e;       /* one expression per replica, from number 2 on */
    const thing *fn; /* or a function of (id, n) */
};

/* Evaluated on the replica's device, in the caller's context. */
static ls_status make_there(const ls_value_context *vc, void *user, ls_value **out,
                            ls_error *err)
{
    const struct maker *k = user;
    scene there = *k->s;
    ls_status st = ls_context_open(vc->device, NULL, &there.c, err);
    json_t *mine = json_array_get(k->e, (size_t)vc->replica_id + 2);

    if (st != LS_OK) {
        return st;
    }
    *out = mine == NULL
               ? machine_wrong(&there, "no expression for replica %d", vc->replica_id)
               : machine_eval(&there, mine);
    st = ls_context_finish(there.c, err);
    if (st == LS_OK) {
        (void)ls_value_retain(*out);
    }
    ls_context_close(there.c);
    return st;
}

static ls_value *op_values(const scene *s, json_t *e)
{
    ls_strategy *of = machine_eval_strategy(s, json_array_get(e, 1));
    struct maker k = {s, e, NULL};
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;

    if (of == NULL) {
        return NULL;
    }
    return machine_give(s, ls_strategy_values(of, make_there, &k, &out, &err), &out,
                        &err);
}

static ls_status make_by_function(const ls_value_context *vc, void *user, ls_value **out,
                                  ls_error *err)
{
    const struct maker *k = user;
    items args = {
        2, {machine_of_int(k->s, vc->replica_id), machine_of_int(k->s, vc->replicas)}};

    *out = args.v[0] == NULL || args.v[1] == NULL
               ? NULL
               : machine_call(k->s, k->fn, &args, NULL);
    (void)ls_value_retain(*out);
    return ls_context_status(k->s->c, err);
}

static ls_value *op_values_from_function(const scene *s, json_t *e)
{
    ls_strategy *of = machine_eval_strategy(s, json_array_get(e, 1));
    struct maker k = {s, NULL, NULL};
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;

    if (of != NULL) {
        k.fn = machine_eval_thing(s, json_array_get(e, 2), THING_FUNCTION);
    }
    if (k.fn == NULL) {
        return NULL;
    }
    return machine_give(s, ls_strategy_values(of, make_by_function, &k, &out, &err), &out,
                        &err);
}

/* ---- reducing and gathering ---- */

static ls_value *op_reduce(const scene *s, json_t *e)
{
    ls_strategy *of = machine_eval_strategy(s, json_array_get(e, 1));
    const json_t *axis = json_array_get(e, 4);
    int axes[LS_MAX_DIMS];
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL, *v = NULL;
    ls_reduce op;
    ls_status st;

    if (of == NULL || !machine_reduce_op(s, json_array_get(e, 2), &op) ||
        (v = machine_eval(s, json_array_get(e, 3))) == NULL) {
        return NULL;
    }
    if (json_is_array(axis)) {
        size_t n = 0;

        for (; n < json_array_size(axis) && n < LS_MAX_DIMS; n++) {
            axes[n] = (int)json_integer_value(json_array_get(axis, n));
        }
        st = ls_strategy_reduce_axes(of, op, v, axes, n, &out, &err);
    } else {
        const int one =
            json_is_integer(axis) ? (int)json_integer_value(axis) : LS_NO_AXIS;

        st = ls_strategy_reduce(of, op, v, one, &out, &err);
    }
    return machine_give(s, st, &out, &err);
}

/* The strategy and the value of an operator that takes these two first. */
static ls_value *eval_pair(const scene *s, json_t *e, ls_strategy **of)
{
    *of = machine_eval_strategy(s, json_array_get(e, 1));
    return *of == NULL ? NULL : machine_eval(s, json_array_get(e, 2));
}

static ls_value *op_gather(const scene *s, json_t *e)
{
    ls_strategy *of;
    ls_value *v = eval_pair(s, e, &of), *out = NULL;
    const int axis = (int)json_integer_value(json_array_get(e, 3));
    ls_error err = LS_ERROR_INIT;

    return v == NULL
               ? NULL
               : machine_give(s, ls_strategy_gather(of, v, axis, &out, &err), &out, &err);
}

static ls_value *op_local_results(const scene *s, json_t *e)
{
    ls_strategy *of;
    ls_value *v = eval_pair(s, e, &of), *out = NULL;
    ls_error err = LS_ERROR_INIT;

    return v == NULL ? NULL
                     : machine_give(s, ls_strategy_local_results(of, v, &out, &err), &out,
                                    &err);
}

static ls_value *op_value_container(const scene *s, json_t *e)
{
    ls_strategy *of;
    ls_value *v = eval_pair(s, e, &of), *out = NULL;
    ls_error err = LS_ERROR_INIT;

    return v == NULL ? NULL
                     : machine_give(s, ls_strategy_value_container(of, v, &out, &err),
                                    &out, &err);
}

static ls_value *op_read_var(const scene *s, json_t *e)
{
    ls_strategy *of = machine_eval_strategy(s, json_array_get(e, 1));
    ls_variable *v = of == NULL ? NULL : machine_eval_variable(s, json_array_get(e, 2));
    ls_error err = LS_ERROR_INIT;
    ls_tensor *t = NULL;

    return v == NULL ? NULL
                     : machine_of_taken(s, ls_strategy_read_variable(of, v, &t, &err), &t,
                                        &err);
}

static ls_value *op_reduce_to(const scene *s, json_t *e)
{
    ls_strategy *of = machine_eval_strategy(s, json_array_get(e, 1));
    ls_error err = LS_ERROR_INIT;
    ls_value *v = NULL, *to = NULL, *out = NULL;
    ls_reduce op;

    if (of == NULL || !machine_reduce_op(s, json_array_get(e, 2), &op) ||
        (v = machine_eval(s, json_array_get(e, 3))) == NULL ||
        (to = machine_destination(s, json_array_get(e, 4))) == NULL) {
        return NULL;
    }
    return machine_give(s, ls_strategy_reduce_to(of, op, v, to, NULL, &out, &err), &out,
                        &err);
}

static ls_value *op_batch_reduce_to(const scene *s, json_t *e)
{
    ls_strategy *of = machine_eval_strategy(s, json_array_get(e, 1));
    json_t *pairs = json_array_get(e, 3);
    items from = {0}, to = {0}, out = {0};
    ls_error err = LS_ERROR_INIT;
    ls_value *all = NULL;
    ls_reduce op;

    if (of == NULL || !machine_reduce_op(s, json_array_get(e, 2), &op)) {
        return NULL;
    }
    for (; from.n < json_array_size(pairs) && from.n < MACHINE_MAX_ITEMS; from.n++) {
        json_t *pair = json_array_get(pairs, from.n);

        from.v[from.n] = machine_eval(s, json_array_get(pair, 0));
        to.v[from.n] = from.v[from.n] == NULL
                           ? NULL
                           : machine_destination(s, json_array_get(pair, 1));
        if (to.v[from.n] == NULL) {
            return NULL;
        }
    }
    if (ls_strategy_batch_reduce_to(of, op, from.v, to.v, from.n, NULL, out.v, &err) !=
        LS_OK) {
        return machine_fail(s, &err);
    }
    for (; out.n < from.n; out.n++) {
        (void)machine_give(s, LS_OK, &out.v[out.n], &err);
    }
    if (ls_context_status(s->c, NULL) != LS_OK) {
        return NULL;
    }
    return machine_give(s, ls_value_list(out.v, out.n, &all, &err), &all, &err);
}

static ls_value *op_broadcast_to(const scene *s, json_t *e)
{
    ls_strategy *of;
    ls_value *v = eval_pair(s, e, &of), *out = NULL;
    ls_value *to = v == NULL ? NULL : machine_destination(s, json_array_get(e, 3));
    ls_error err = LS_ERROR_INIT;

    return to == NULL ? NULL
                      : machine_give(s, ls_strategy_broadcast_to(of, v, to, &out, &err),
                                     &out, &err);
}

/* ---- update ---- */

ls_value *machine_update(ls_context *c, ls_variable *component, ls_value *args,
                         void *user)
{
    const closure *k = user;
    const scene s = {k->m, c, k->fn->where, false};
    items given;

    given.v[0] = machine_of_variable(&s, component);
    if (given.v[0] == NULL || !read_items(&s, args, 1, &given)) {
        return NULL;
    }
    return machine_call(&s, k->fn, &given, NULL);
}

static ls_value *op_update(const scene *s, json_t *e)
{
    ls_strategy *of = machine_eval_strategy(s, json_array_get(e, 1));
    ls_variable *v = of == NULL ? NULL : machine_eval_variable(s, json_array_get(e, 2));
    closure k = {s->m, NULL, false};
    ls_error err = LS_ERROR_INIT;
    ls_value *tuple, *out = NULL;
    items args;

    if (v == NULL) {
        return NULL;
    }
    k.fn = machine_eval_thing(s, json_array_get(e, 3), THING_FUNCTION);
    if (k.fn == NULL || !machine_eval_all(s, json_array_get(e, 4), 0, &args)) {
        return NULL;
    }
    tuple = machine_tuple(s, &args);
    if (tuple == NULL) {
        return NULL;
    }
    const bool group = !json_is_false(json_array_get(e, 5));

    return machine_give(
        s, ls_strategy_update(of, v, machine_update, tuple, &k, group, &out, &err), &out,
        &err);
}

static ls_value *op_mirrored(const scene *s, json_t *e)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;
    items args;

    if (!machine_eval_all(s, e, 1, &args)) {
        return NULL;
    }
    return machine_give(s, ls_value_mirrored(args.v, args.n, &out, &err), &out, &err);
}

const operation machine_strategies[] = {
    {"run", op_run, 2, 4},
    {"values", op_values, 1, 0},
    {"values_from_function", op_values_from_function, 2, 2},
    {"reduce", op_reduce, 4, 4},
    {"gather", op_gather, 3, 3},
    {"local_results", op_local_results, 2, 2},
    {"value_container", op_value_container, 2, 2},
    {"read_var", op_read_var, 2, 2},
    {"reduce_to", op_reduce_to, 4, 4},
    {"batch_reduce_to", op_batch_reduce_to, 3, 3},
    {"broadcast_to", op_broadcast_to, 3, 3},
    {"update", op_update, 3, 5},
    {"mirrored", op_mirrored, 1, 0},
    {NULL, NULL, 0, 0},
};
