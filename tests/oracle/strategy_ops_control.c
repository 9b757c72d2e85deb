/* Operators: structures, names, functions, threads, text, merging and selecting. */
#include "strategy_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ls_value *op_tuple_of(const scene *s, json_t *e)
{
    items args;

    return machine_eval_all(s, e, 1, &args) ? machine_tuple(s, &args) : NULL;
}

static ls_value *op_list_of(const scene *s, json_t *e)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;
    items args;

    if (!machine_eval_all(s, e, 1, &args)) {
        return NULL;
    }
    return machine_give(s, ls_value_list(args.v, args.n, &out, &err), &out, &err);
}

static ls_value *op_dict_of(const scene *s, json_t *e)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;
    const char *keys[MACHINE_MAX_ITEMS];
    items args = {0};
    const char *key;
    json_t *value;

    json_object_foreach(json_array_get(e, 1), key, value)
    {
        if (args.n == MACHINE_MAX_ITEMS) {
            return machine_wrong(s, "the dict has too many keys");
        }
        keys[args.n] = key;
        args.v[args.n] = machine_eval(s, value);
        if (args.v[args.n++] == NULL) {
            return NULL;
        }
    }
    return machine_give(s, ls_value_dict(keys, args.v, args.n, &out, &err), &out, &err);
}

static ls_value *op_at(const scene *s, json_t *e)
{
    const ls_value *v = machine_eval(s, json_array_get(e, 1));
    const json_t *key = json_array_get(e, 2);
    ls_value *found;

    if (v == NULL) {
        return NULL;
    }
    if (json_is_string(key)) {
        found = ls_value_find(v, json_string_value(key));
    } else {
        const json_int_t i = json_integer_value(key);
        const size_t back = i < 0 ? ls_value_size(v) : 0;

        found = ls_value_is_leaf(v) ? NULL : ls_value_child(v, back + (size_t)i);
    }
    return found == NULL ? machine_wrong(s, "there is nothing at that place") : found;
}

static ls_value *op_seq(const scene *s, json_t *e)
{
    items args;

    return machine_eval_all(s, e, 1, &args) ? args.v[args.n - 1] : NULL;
}

static ls_value *op_let(const scene *s, json_t *e)
{
    const char *name = json_string_value(json_array_get(e, 1));
    ls_value *v = machine_eval(s, json_array_get(e, 2));

    if (v == NULL || name == NULL || !machine_bind(s, name, v)) {
        return NULL;
    }
    return v;
}

static ls_value *op_fn(const scene *s, json_t *e)
{
    return machine_of_thing(s, &(thing){.kind = THING_FUNCTION,
                                        .params = json_array_get(e, 1),
                                        .body = json_array_get(e, 2),
                                        .where = s->f});
}

static ls_value *op_by_id(const scene *s, json_t *e)
{
    const ls_context *c = ls_replica_context();
    json_t *mine = json_array_get(e, c == NULL ? SIZE_MAX : (size_t)ls_replica_id(c) + 1);

    return mine == NULL ? machine_wrong(s, "no expression for this replica")
                        : machine_eval(s, mine);
}

static ls_value *op_by_worker(const scene *s, json_t *e)
{
    json_t *mine = json_array_get(e, (size_t)s->m->worker + 1);

    return mine == NULL ? machine_wrong(s, "no expression for worker %d", s->m->worker)
                        : machine_eval(s, mine);
}

static ls_value *op_fail_as_told(const scene *s, json_t *e)
{
    const char *code = json_string_value(json_array_get(e, 1));
    const char *text = json_string_value(json_array_get(e, 2));

    for (ls_status st = LS_CANCELLED; st <= LS_UNAUTHENTICATED; st++) {
        if (code != NULL && strcmp(ls_status_name(st), code) == 0) {
            (void)ls_context_fail(s->c, st, "%s", text == NULL ? "" : text);
            return NULL;
        }
    }
    return machine_wrong(s, "no code is called so");
}

static ls_value *op_same(const scene *s, json_t *e)
{
    const ls_value *a = machine_eval(s, json_array_get(e, 1));
    const ls_value *b = a == NULL ? NULL : machine_eval(s, json_array_get(e, 2));

    return b == NULL ? NULL : machine_of_bool(s, ls_value_same(a, b));
}

/* ---- together: one thread per expression ---- */
struct voice {
    machine *m;
    frame *outer;
    json_t *e;
    ls_value *value;
    ls_status status;
    ls_error err;
    pthread_t thread;
};

static void *eval_on_thread(void *arg)
{
    struct voice *v = arg;
    frame own = {v->outer, NULL}; // a `let` in this thread binds a name for it alone
    scene s = {v->m, NULL, &own, false};

    v->status = ls_context_open(v->m->device, NULL, &s.c, &v->err);
    if (v->status == LS_OK) {
        v->value = machine_eval(&s, v->e);
        v->status = ls_context_finish(s.c, &v->err);
    }
    ls_context_close(s.c);
    for (binding *b = own.first; b != NULL;) {
        binding *next = b->next;

        free(b);
        b = next;
    }
    return NULL;
}

static ls_value *op_together(const scene *s, json_t *e)
{
    struct voice voices[MACHINE_MAX_ITEMS];
    const size_t n = json_array_size(e) - 1;
    size_t started = 0;
    items args = {n, {0}};
    bool ok = n <= MACHINE_MAX_ITEMS;

    for (; ok && started < n; started += ok ? 1 : 0) {
        struct voice *v = &voices[started];

        *v = (struct voice){.m = s->m,
                            .outer = s->f,
                            .e = json_array_get(e, started + 1),
                            .err = LS_ERROR_INIT};
        ok = pthread_create(&v->thread, NULL, eval_on_thread, v) == 0;
    }
    for (size_t i = 0; i < started; i++) {
        (void)pthread_join(voices[i].thread, NULL);
        args.v[i] = voices[i].value;
    }
    if (!ok) {
        return machine_wrong(s, "no thread could be started for every expression");
    }
    for (size_t i = 0; i < n; i++) {
        if (voices[i].status != LS_OK) {
            return machine_fail(s, &voices[i].err);
        }
    }
    return machine_tuple(s, &args);
}

/* ---- text ---- */
static ls_value *op_text(const scene *s, json_t *e)
{
    const char *t = json_string_value(json_array_get(e, 1));

    return t == NULL ? machine_wrong(s, "a text is a string") : machine_of_text(s, t);
}

static ls_value *op_concat_text(const scene *s, json_t *e)
{
    const ls_value *a = machine_eval(s, json_array_get(e, 1));
    const ls_value *b = a == NULL ? NULL : machine_eval(s, json_array_get(e, 2));
    ls_string head, tail;
    ls_value *out;

    if (b == NULL) {
        return NULL;
    }
    if (!ls_value_as_string(a, &head) || !ls_value_as_string(b, &tail)) {
        return machine_wrong(s, "only texts are joined");
    }
    const size_t room = head.len + tail.len + 1;
    char *joined = malloc(room);

    if (joined == NULL) {
        return machine_wrong(s, "out of memory");
    }
    (void)snprintf(joined, room, "%.*s%.*s", (int)head.len, head.ptr, (int)tail.len,
                   tail.ptr);
    out = machine_of_text(s, joined);
    free(joined);
    return out;
}

/* Python prints a variable alike by str() and repr(). */
static size_t print_value(ls_value *v, bool repr, char *buf, size_t size)
{
    ls_variable *variable = ls_value_as_variable(v);

    if (variable != NULL) {
        return ls_variable_text(variable, buf, size);
    }
    return repr ? ls_value_repr(v, buf, size) : ls_value_text(v, buf, size);
}

static ls_value *text_of_value(const scene *s, json_t *e, bool repr)
{
    ls_value *v = machine_eval(s, json_array_get(e, 1));
    char *buf;
    ls_value *out;

    if (v == NULL) {
        return NULL;
    }
    const size_t size = print_value(v, repr, NULL, 0) + 1;

    buf = malloc(size);
    if (buf == NULL) {
        return machine_wrong(s, "out of memory");
    }
    (void)print_value(v, repr, buf, size);
    out = machine_of_text(s, buf);
    free(buf);
    return out;
}

static ls_value *op_str(const scene *s, json_t *e)
{
    return text_of_value(s, e, false);
}

static ls_value *op_repr(const scene *s, json_t *e)
{
    return text_of_value(s, e, true);
}

/* ---- merging and selecting ---- */

static ls_value *op_regroup(const scene *s, json_t *e)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;
    items args;

    if (!machine_eval_all(s, e, 1, &args)) {
        return NULL;
    }
    return machine_give(s, ls_value_regroup(args.v, args.n, NULL, &out, &err), &out,
                        &err);
}

static ls_value *op_select_replica(const scene *s, json_t *e)
{
    const size_t i = (size_t)json_integer_value(json_array_get(e, 1));
    ls_value *v = machine_eval(s, json_array_get(e, 2)), *out = NULL;
    ls_error err = LS_ERROR_INIT;

    return v == NULL ? NULL
                     : machine_give(s, ls_value_select(v, i, &out, &err), &out, &err);
}

static ls_value *op_select_replica_mirrored(const scene *s, json_t *e)
{
    const size_t i = (size_t)json_integer_value(json_array_get(e, 1));
    ls_value *v = machine_eval(s, json_array_get(e, 2)), *out = NULL;
    ls_error err = LS_ERROR_INIT;

    return v == NULL
               ? NULL
               : machine_give(s, ls_value_select_mirrored(v, i, &out, &err), &out, &err);
}

const operation machine_control[] = {
    {"tuple", op_tuple_of, 0, 0},
    {"list", op_list_of, 0, 0},
    {"dict", op_dict_of, 1, 1},
    {"at", op_at, 2, 2},
    {"seq", op_seq, 1, 0},
    {"let", op_let, 2, 2},
    {"fn", op_fn, 2, 2},
    {"by_id", op_by_id, 1, 0},
    {"by_worker", op_by_worker, 1, 0},
    {"raise", op_fail_as_told, 2, 2},
    {"same", op_same, 2, 2},
    {"together", op_together, 1, 0},
    {"text", op_text, 1, 1},
    {"concat_text", op_concat_text, 2, 2},
    {"str", op_str, 1, 1},
    {"repr", op_repr, 1, 1},
    {"regroup", op_regroup, 1, 0},
    {"select_replica", op_select_replica, 2, 2},
    {"select_replica_mirrored", op_select_replica_mirrored, 2, 2},
    {NULL, NULL, 0, 0},
};
