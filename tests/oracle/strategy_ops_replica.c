/* Operators: what replicas do together. */
#include "strategy_machine.h"

#include <string.h>

/* Keeps a value of the context beyond its step; NULL without a failure is none. */
static ls_value *keep_value(const scene *s, ls_value *v)
{
    const ls_error none = LS_ERROR_INIT;

    if (v == NULL) {
        return machine_done(s);
    }
    (void)ls_value_retain(v);
    return machine_give(s, LS_OK, &v, &none);
}

ls_status machine_options(json_t *o, ls_communication_options *out, ls_error *err)
{
    const char *name = json_string_value(json_object_get(o, "implementation"));
    const json_t *bytes = json_object_get(o, "bytes_per_pack");
    const json_t *timeout = json_object_get(o, "timeout_seconds");
    ls_status st = LS_OK;

    *out = (ls_communication_options)LS_COMMUNICATION_OPTIONS_INIT;
    if (json_is_integer(bytes)) {
        out->bytes_per_pack = json_integer_value(bytes);
    }
    if (json_is_number(timeout)) {
        out->timeout_seconds = json_number_value(timeout);
    }
    if (name != NULL) {
        st = ls_communication_from_name(name, &out->implementation, err);
    }
    return st == LS_OK ? ls_communication_check(out, err) : st;
}

static ls_value *op_all_reduce(const scene *s, json_t *e)
{
    json_t *given = json_array_get(e, 3);
    ls_communication_options opts = LS_COMMUNICATION_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    ls_reduce op;
    ls_value *v;

    if (json_is_object(given) && machine_options(given, &opts, &err) != LS_OK) {
        return machine_fail(s, &err);
    }
    if (!machine_reduce_op(s, json_array_get(e, 1), &op) ||
        (v = machine_eval(s, json_array_get(e, 2))) == NULL) {
        return NULL;
    }
    return keep_value(
        s, ls_all_reduce_value(s->c, op, v, json_is_object(given) ? &opts : NULL));
}

static ls_value *op_all_gather(const scene *s, json_t *e)
{
    ls_value *v = machine_eval(s, json_array_get(e, 1));
    const int axis = (int)json_integer_value(json_array_get(e, 2));

    return v == NULL ? NULL : keep_value(s, ls_all_gather_value(s->c, v, axis, NULL));
}

/* ---- merging ---- */

static ls_value *call_merge_function(ls_context *cross, ls_strategy *strategy,
                                     ls_value *args, void *user)
{
    const closure *k = user;
    const scene s = {k->m, cross, k->fn->where, false};
    items given = {1, {machine_of_strategy(&s, strategy)}};

    if (given.v[0] == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < ls_value_size(args) && given.n < MACHINE_MAX_ITEMS; i++) {
        given.v[given.n++] = ls_value_child(args, i);
    }
    return machine_call(&s, k->fn, &given, NULL);
}

/* Merges on the context `on` by the function and arguments from number `from` on. */
static ls_value *merge_on(const scene *s, ls_context *on, json_t *e, size_t from)
{
    closure k = {s->m, NULL, false};
    ls_value *tuple;
    items args;

    k.fn = machine_eval_thing(s, json_array_get(e, from), THING_FUNCTION);
    if (k.fn == NULL || !machine_eval_all(s, e, from + 1, &args)) {
        return NULL;
    }
    tuple = machine_tuple(s, &args);
    return tuple == NULL
               ? NULL
               : keep_value(s, ls_merge_call(on, call_merge_function, tuple, &k));
}

static ls_value *op_merge_call(const scene *s, json_t *e)
{
    return merge_on(s, s->c, e, 1);
}

static ls_value *op_merge_call_of(const scene *s, json_t *e)
{
    const thing *t = machine_eval_thing(s, json_array_get(e, 1), THING_CONTEXT);
    ls_error err = LS_ERROR_INIT;
    ls_value *result;

    if (t == NULL) {
        return NULL;
    }
    result = merge_on(s, t->context, e, 2);
    // Outside of replicas, the context of a finished run keeps the failure.
    if (t->context != s->c && !ls_has_strategy() &&
        ls_context_status(t->context, &err) != LS_OK) {
        (void)ls_context_fail_with(s->c, &err);
    }
    return result;
}

static ls_value *op_ctx_update(const scene *s, json_t *e)
{
    ls_variable *v = machine_eval_variable(s, json_array_get(e, 1));
    closure k = {s->m, NULL, false};
    ls_value *tuple;
    items args;

    if (v == NULL) {
        return NULL;
    }
    k.fn = machine_eval_thing(s, json_array_get(e, 2), THING_FUNCTION);
    if (k.fn == NULL || !machine_eval_all(s, json_array_get(e, 3), 0, &args)) {
        return NULL;
    }
    tuple = machine_tuple(s, &args);
    return tuple == NULL
               ? NULL
               : keep_value(s, ls_replica_update(s->c, v, machine_update, tuple, &k));
}

const operation machine_replicas[] = {
    {"all_reduce", op_all_reduce, 2, 3}, {"all_gather", op_all_gather, 2, 2},
    {"merge_call", op_merge_call, 1, 0}, {"merge_call_of", op_merge_call_of, 2, 0},
    {"ctx_update", op_ctx_update, 2, 3}, {NULL, NULL, 0, 0},
};
