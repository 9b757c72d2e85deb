/*
 * The machine of the suite `strategy`: names, functions, things, expressions, and the
 * objects of a case.
 */
#include "strategy_machine.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool list_add(list *l, void *item)
{
    if (l->n == l->room) {
        const size_t room = l->room == 0 ? 16 : 2 * l->room;
        void **grown = realloc(l->items, room * sizeof *grown);

        if (grown == NULL) {
            return false;
        }
        l->items = grown;
        l->room = room;
    }
    l->items[l->n++] = item;
    return true;
}

/* Adds under the lock: replicas call this concurrently. */
static bool add_shared(machine *m, list *l, void *item)
{
    (void)pthread_mutex_lock(&m->lock);
    const bool added = list_add(l, item);
    (void)pthread_mutex_unlock(&m->lock);
    return added;
}

ls_value *machine_fail(const scene *s, const ls_error *err)
{
    (void)ls_context_fail_with(s->c, err);
    return NULL;
}

ls_value *machine_wrong(const scene *s, const char *fmt, ...)
{
    char text[300];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    (void)ls_context_fail(s->c, LS_INTERNAL, "the oracle program: %s", text);
    return NULL;
}

ls_value *machine_give(const scene *s, ls_status st, ls_value **out, const ls_error *err)
{
    ls_error problem = LS_ERROR_INIT;

    if (st != LS_OK) {
        return machine_fail(s, err);
    }
    if (*out == NULL && ls_value_none(out, &problem) != LS_OK) {
        return machine_fail(s, &problem);
    }
    if (!add_shared(s->m, &s->m->kept, *out)) {
        ls_value_release(*out);
        return machine_wrong(s, "out of memory");
    }
    return *out;
}

ls_value *machine_done(const scene *s)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;

    if (ls_context_status(s->c, NULL) != LS_OK) {
        return NULL;
    }
    return machine_give(s, ls_value_none(&out, &err), &out, &err);
}

ls_value *machine_of_tensor(const scene *s, ls_tensor *t)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;

    if (t == NULL) {
        return NULL;
    }
    return machine_give(s, ls_value_tensor(t, &out, &err), &out, &err);
}

ls_value *machine_of_taken(const scene *s, ls_status st, ls_tensor **t,
                           const ls_error *err)
{
    ls_value *v = st == LS_OK ? machine_of_tensor(s, *t) : machine_fail(s, err);

    ls_tensor_release(*t);
    return v;
}

ls_value *machine_of_text(const scene *s, const char *text)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;
    const ls_string string = {text, strlen(text)};

    return machine_give(s, ls_value_string(string, &out, &err), &out, &err);
}

ls_value *machine_of_int(const scene *s, int64_t x)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;

    return machine_give(s, ls_value_int(x, &out, &err), &out, &err);
}

ls_value *machine_of_bool(const scene *s, bool x)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;

    return machine_give(s, ls_value_bool(x, &out, &err), &out, &err);
}

ls_value *machine_of_variable(const scene *s, ls_variable *v)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;

    return machine_give(s, ls_value_variable(v, &out, &err), &out, &err);
}

ls_value *machine_tuple(const scene *s, const items *args)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;

    return machine_give(s, ls_value_tuple(args->v, args->n, &out, &err), &out, &err);
}

/* ---- things ---- */

/* A thing as a string: a zero byte, then its number. */
struct ticket {
    unsigned char zero;
    unsigned char number[sizeof(size_t)];
};

static ls_value *of_number(const scene *s, size_t number)
{
    struct ticket ticket = {0, {0}};
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;

    memcpy(ticket.number, &number, sizeof number);
    const ls_string string = {(const char *)&ticket, sizeof ticket};

    return machine_give(s, ls_value_string(string, &out, &err), &out, &err);
}

thing *machine_thing(machine *m, const ls_value *v)
{
    ls_string string = {NULL, 0};
    size_t number = 0;
    thing *t = NULL;

    if (!ls_value_as_string(v, &string) || string.len != sizeof(struct ticket) ||
        string.ptr[0] != '\0') {
        return NULL;
    }
    memcpy(&number, string.ptr + offsetof(struct ticket, number), sizeof number);
    (void)pthread_mutex_lock(&m->lock);
    if (number < m->things.n) {
        t = m->things.items[number];
    }
    (void)pthread_mutex_unlock(&m->lock);
    return t;
}

static void free_thing(thing *t)
{
    ls_strategy_release(t->strategy);
    ls_optimizer_release(t->optimizer);
    ls_metric_release(t->metric);
    free(t);
}

ls_value *machine_of_thing(const scene *s, const thing *t)
{
    machine *m = s->m;
    thing *copy = malloc(sizeof *copy);
    size_t number;

    if (copy == NULL) {
        return machine_wrong(s, "out of memory");
    }
    *copy = *t;
    (void)ls_strategy_retain(copy->strategy);
    (void)ls_optimizer_retain(copy->optimizer);
    (void)ls_metric_retain(copy->metric);
    (void)pthread_mutex_lock(&m->lock);
    number = m->things.n;
    const bool added = list_add(&m->things, copy);
    (void)pthread_mutex_unlock(&m->lock);
    if (!added) {
        free_thing(copy);
        return machine_wrong(s, "out of memory");
    }
    return of_number(s, number);
}

/* Each strategy is one thing, so that `same` compares strategies. */
ls_value *machine_of_strategy(const scene *s, ls_strategy *strategy)
{
    machine *m = s->m;
    size_t number = SIZE_MAX;

    (void)pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->things.n && number == SIZE_MAX; i++) {
        const thing *t = m->things.items[i];

        if (t->kind == THING_STRATEGY && t->strategy == strategy) {
            number = i;
        }
    }
    (void)pthread_mutex_unlock(&m->lock);
    if (number != SIZE_MAX) {
        return of_number(s, number);
    }
    return machine_of_thing(s, &(thing){.kind = THING_STRATEGY, .strategy = strategy});
}

thing *machine_eval_thing(const scene *s, json_t *e, thing_kind kind)
{
    static const char *const names[] = {"function", "strategy",  "scope", "creator scope",
                                        "context",  "optimizer", "metric"};
    ls_value *v = machine_eval(s, e);
    thing *t = v == NULL ? NULL : machine_thing(s->m, v);

    if (v != NULL && (t == NULL || t->kind != kind)) {
        (void)machine_wrong(s, "a %s is needed", names[kind]);
        return NULL;
    }
    return t;
}

ls_strategy *machine_eval_strategy(const scene *s, json_t *e)
{
    const thing *t = machine_eval_thing(s, e, THING_STRATEGY);

    return t == NULL ? NULL : t->strategy;
}

ls_variable *machine_eval_variable(const scene *s, json_t *e)
{
    ls_value *v = machine_eval(s, e);
    ls_variable *variable = v == NULL ? NULL : ls_value_as_variable(v);

    if (v != NULL && variable == NULL) {
        ls_error err = LS_ERROR_INIT;

        err.code = LS_INVALID_ARGUMENT;
        err.kind = LS_KIND_VALUE;
        (void)snprintf(err.message, sizeof err.message, "a %s is no variable",
                       ls_value_kind_name(ls_value_kind_of(v)));
        (void)machine_fail(s, &err);
    }
    return variable;
}

ls_tensor *machine_eval_tensor(const scene *s, json_t *e)
{
    ls_value *v = machine_eval(s, e);

    return v == NULL ? NULL : machine_tensor(s, v);
}

const char *machine_label(machine *m, const void *object)
{
    for (size_t i = 0; i < m->labels.n; i++) {
        const binding *b = m->labels.items[i];
        const thing *t = machine_thing(m, b->value);

        if (ls_value_as_variable(b->value) == object ||
            (t != NULL && t->strategy == object)) {
            return b->name;
        }
    }
    return NULL;
}

/* ---- names and functions ---- */

static binding *make_binding(const char *name, ls_value *value)
{
    binding *b = malloc(sizeof *b);

    if (b != NULL) {
        *b = (binding){name, value, NULL};
    }
    return b;
}

/* Answers name variables and strategies by what they were bound to first. */
static bool add_label(const scene *s, const char *name, ls_value *value)
{
    const thing *t = machine_thing(s->m, value);
    binding *b;

    if (ls_value_as_variable(value) == NULL && (t == NULL || t->kind != THING_STRATEGY)) {
        return true;
    }
    b = make_binding(name, value);
    if (b == NULL || !list_add(&s->m->labels, b)) {
        free(b);
        return false;
    }
    return true;
}

bool machine_bind(const scene *s, const char *name, ls_value *value)
{
    binding *b = make_binding(name, value);

    if (b == NULL || (s->f == s->m->top && !add_label(s, name, value))) {
        free(b);
        (void)machine_wrong(s, "out of memory");
        return false;
    }
    b->next = s->f->first;
    s->f->first = b;
    return true;
}

static void free_frame(frame *f)
{
    for (binding *b = f->first; b != NULL;) {
        binding *next = b->next;

        free(b);
        b = next;
    }
    free(f);
}

static frame *make_frame(machine *m, frame *outer)
{
    frame *f = calloc(1, sizeof *f);

    if (f == NULL || !add_shared(m, &m->frames, f)) {
        free(f);
        return NULL;
    }
    f->outer = outer;
    return f;
}

ls_value *machine_call(const scene *s, const thing *fn, const items *args,
                       const ls_value *kwargs)
{
    scene inside = *s;
    size_t i;
    json_t *name;

    inside.f = make_frame(s->m, fn->where);
    if (inside.f == NULL) {
        return machine_wrong(s, "out of memory");
    }
    json_array_foreach(fn->params, i, name)
    {
        const char *text = json_string_value(name);
        ls_value *v = i < args->n ? args->v[i] : ls_value_find(kwargs, text);

        if (v == NULL) {
            return machine_wrong(s, "the function's argument %s is missing", text);
        }
        if (!machine_bind(&inside, text, v)) {
            return NULL;
        }
    }
    return machine_eval(&inside, fn->body);
}

static ls_value *look_up(const scene *s, const char *name)
{
    for (const frame *f = s->f; f != NULL; f = f->outer) {
        for (const binding *b = f->first; b != NULL; b = b->next) {
            if (strcmp(b->name, name) == 0) {
                return b->value;
            }
        }
    }
    return machine_wrong(s, "nothing is called %s", name);
}

/* ---- expressions ---- */

static const operation *find_operation(const char *name)
{
    static const operation *const tables[] = {
        machine_control,    machine_tensors,      machine_contexts,
        machine_strategies, machine_replicas,     machine_variables,
        machine_training,   machine_cross_device, machine_cluster};

    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        for (const operation *o = tables[i]; o->name != NULL; o++) {
            if (strcmp(o->name, name) == 0) {
                return o;
            }
        }
    }
    return NULL;
}

static ls_value *run_operation(const scene *s, json_t *e)
{
    const char *name = json_string_value(json_array_get(e, 0));
    const operation *o = name == NULL ? NULL : find_operation(name);

    if (o == NULL) {
        return machine_wrong(s, "no operator is called %s", name == NULL ? "so" : name);
    }
    const size_t given = json_array_size(e) - 1;

    if (given < o->least || (o->most != 0 && given > o->most)) {
        return machine_wrong(s, "%s takes no %zu arguments", name, given);
    }
    ls_value *v = o->run(s, e);

    if (v == NULL && ls_context_status(s->c, NULL) == LS_OK) {
        return machine_wrong(s, "%s gave nothing and no failure", name);
    }
    return v;
}

static ls_value *eval_literal(const scene *s, const json_t *e)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;

    if (json_is_integer(e)) {
        return machine_of_int(s, json_integer_value(e));
    }
    if (json_is_real(e)) {
        return machine_give(s, ls_value_float(json_real_value(e), &out, &err), &out,
                            &err);
    }
    return json_is_boolean(e) ? machine_of_bool(s, json_is_true(e)) : machine_done(s);
}

ls_value *machine_eval(const scene *s, json_t *e)
{
    if (json_is_string(e)) {
        return look_up(s, json_string_value(e));
    }
    if (json_is_object(e)) {
        return machine_of_tensor(s, machine_constant(s, e));
    }
    return json_is_array(e) ? run_operation(s, e) : eval_literal(s, e);
}

bool machine_eval_all(const scene *s, json_t *array, size_t from, items *out)
{
    const size_t size = json_array_size(array);

    out->n = size > from ? size - from : 0;
    if (out->n > MACHINE_MAX_ITEMS) {
        (void)machine_wrong(s, "%zu arguments are too many", out->n);
        return false;
    }
    for (size_t i = 0; i < out->n; i++) {
        out->v[i] = machine_eval(s, json_array_get(array, from + i));
        if (out->v[i] == NULL) {
            return false;
        }
    }
    return true;
}

/* ---- a case ---- */

bool machine_open(machine *m, ls_strategy *strategy, ls_device *device, int worker,
                  bool keras3, ls_error *err)
{
    bool ok;

    *m = (machine){.device = device, .worker = worker, .keras3 = keras3};
    if (pthread_mutex_init(&m->lock, NULL) != 0) {
        (void)snprintf(err->message, sizeof err->message, "no lock can be made");
        return false;
    }
    ok = ls_context_open(device, NULL, &m->c, err) == LS_OK &&
         (m->top = make_frame(m, NULL)) != NULL;
    if (ok) {
        const scene s = {m, m->c, m->top, false};
        ls_value *def = machine_of_strategy(&s, ls_default_strategy());
        ls_value *own = machine_of_strategy(&s, strategy);

        ok = def != NULL && own != NULL && machine_bind(&s, "DEF", def) &&
             machine_bind(&s, "S", own);
        if (!ok && ls_context_finish(m->c, err) == LS_OK) {
            err->code = LS_INTERNAL;
        }
    }
    if (!ok) {
        (void)machine_close(m);
    }
    return ok;
}

json_t *machine_answer(machine *m, json_t *step)
{
    const scene s = {m, m->c, m->top, false};
    const char *op = json_string_value(json_array_get(step, 0));
    ls_error err = LS_ERROR_INIT;
    const ls_value *v = machine_eval(&s, step);

    if (ls_context_finish(m->c, &err) != LS_OK) {
        return machine_encode_error(&err);
    }
    return op != NULL && strcmp(op, "let") == 0 ? json_null() : machine_encode(m, v);
}

/* Exits the scopes as a Python program ends its `with` blocks: innermost first. */
static bool leave_scopes(const machine *m)
{
    for (size_t i = m->entered.n; i-- > 0;) {
        const thing *t = m->entered.items[i];

        if ((t->kind == THING_SCOPE ? ls_scope_try_exit(t->strategy, NULL)
                                    : ls_creator_scope_exit(NULL)) != LS_OK) {
            return false;
        }
    }
    return ls_set_strategy(NULL, NULL) == LS_OK && !ls_has_strategy();
}

bool machine_close(machine *m)
{
    const bool left = leave_scopes(m);

    for (size_t i = 0; i < m->checkpoints.n; i++) {
        saved *k = m->checkpoints.items[i];

        ls_tensor_release(k->tensor);
        free(k);
    }
    for (size_t i = 0; i < m->labels.n; i++) {
        free(m->labels.items[i]);
    }
    for (size_t i = 0; i < m->frames.n; i++) {
        free_frame(m->frames.items[i]);
    }
    for (size_t i = 0; i < m->kept.n; i++) {
        ls_value_release(m->kept.items[i]);
    }
    ls_context_close(m->c);
    for (size_t i = 0; i < m->things.n; i++) {
        free_thing(m->things.items[i]);
    }
    list *const all[] = {&m->kept,   &m->things,      &m->frames,
                         &m->labels, &m->checkpoints, &m->entered};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]->items);
    }
    (void)pthread_mutex_destroy(&m->lock);
    return left;
}
