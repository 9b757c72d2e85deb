/* Statements of variables: reading, assigning, scattering, saving and restoring. */
#include "random_machine.h"

/* The bound on the difference of a value read from a variable. */
static double read_error(const variable *v, const ls_tensor *t)
{
    const int doubt = atomic_load(&v->doubt);

    if (doubt == 0 || t == NULL) {
        return 0;
    }
    return doubt == 1
               ? 2000 * LSI_MAX(op_epsilon(LS_F32), op_epsilon(ls_tensor_dtype(t))) *
                     LSI_MAX(1.0, largest_of(t))
               : INFINITY;
}

/* Called before a value that may differ by `error` is written. */
static void write_error(variable *v, double error)
{
    if (error != 0) {
        atomic_store(&v->doubt, 2);
    }
}

static void run_create(place *at, const statement *s)
{
    machine *m = at->m;
    const ls_shape shape = shape_of(s);
    ls_variable_options o = LS_VARIABLE_OPTIONS_INIT;
    const int64_t flags = number(s, "flags");
    ls_error err = LS_ERROR_INIT;
    ls_variable *v = NULL;
    const bool outside = number(s, "outside") == 1;
    ls_dtype dtype = dtype_of(number(s, "dtype"));
    ls_status st = LS_OK;
    ls_tensor *t;

    if (m->nvariables == MOST_VARIABLES) {
        return;
    }
    if (m->workers > 0 && dtype == LS_STRING) {
        dtype = LS_I64; // strings are not sent to other workers
    }
    t = host_tensor(m, dtype, &shape, number(s, "seed"));
    o.synchronization = (ls_synchronization)number(s, "sync");
    o.aggregation = (ls_aggregation)number(s, "agg");
    if (m->workers > 0 && o.aggregation == LS_AGGREGATE_ONLY_FIRST_REPLICA) {
        o.aggregation = LS_AGGREGATE_MEAN; // each worker would take its own first replica
    }
    o.not_trainable = (flags & 1) != 0;
    o.trainable = (flags & 2) != 0;
    o.strict = (flags & 4) != 0;
    if (!outside) {
        st = ls_scope_enter(m->s, &err);
    }
    if (st == LS_OK) {
        st = ls_variable_create(t, &o, &v, &err);
        if (!outside) {
            ls_scope_exit(m->s);
        }
    }
    ended(at, st, &err);
    if (st == LS_OK) {
        m->variables[m->nvariables].v = v;
        atomic_init(&m->variables[m->nvariables].doubt, 0);
        atomic_init(&m->variables[m->nvariables].apart, false);
        m->nvariables++;
    }
    ls_tensor_release(t);
}

static variable *chosen(place *at, const statement *s)
{
    return variable_at(at, number(s, "v") + is_odd(at, s));
}

static void keep_read(place *at, variable *v, ls_tensor *t)
{
    const double error = read_error(v, t);

    if (t == NULL) {
        return;
    }
    keep(at, t, error);
    if (at->ntensors > 0 && at->tensors[at->ntensors - 1].t == t) {
        at->tensors[at->ntensors - 1].watched =
            at->ntapes > 0 && ls_variable_trainable(v->v);
    }
    for (size_t i = 0; i < at->ntapes && error != 0; i++) {
        at->tapes[i].growth = INFINITY;
    }
}

static void run_read(place *at, const statement *s)
{
    variable *v = chosen(at, s);
    ls_tensor *t;

    if (v == NULL) {
        return;
    }
    t = number(s, "how") == 1 ? ls_variable_as_tensor(at->c, v->v) : ls_read(at->c, v->v);
    keep_read(at, v, t);
}

static void run_watch_variable(place *at, const statement *s)
{
    variable *v = chosen(at, s);

    if (v != NULL && at->ntapes > 0) {
        ls_tape_watch_variable(at->c, at->tapes[0].tape, v->v);
    }
}

/* After a value of another dtype or shape was assigned: the step must have failed. */
static void must_refuse(place *at, const ls_tensor *t, ls_dtype dtype,
                        const ls_shape *shape)
{
    const ls_shape have = ls_tensor_shape(t);

    if ((ls_tensor_dtype(t) != dtype || !ls_shape_equal(&have, shape)) &&
        ls_context_status(at->c, NULL) == LS_OK) {
        complain(at->m, "statement %d: a value of another dtype or shape is taken",
                 at->at + 1);
    }
}

static void run_assign(place *at, const statement *s)
{
    variable *v = chosen(at, s);
    ls_shape shape;
    ls_tensor *t;
    held h;

    if (v == NULL || !may_write(at, v->v, true)) {
        return;
    }
    shape = ls_variable_shape(v->v);
    h = like_at(at, number(s, "t"), ls_variable_dtype(v->v), &shape, number(s, "seed"));
    write_error(v, h.error);
    if (number(s, "how") == 0) {
        t = ls_assign(at->c, v->v, h.t);
    } else if (number(s, "how") == 1) {
        t = ls_assign_add(at->c, v->v, h.t);
    } else {
        t = ls_assign_sub(at->c, v->v, h.t);
    }
    if (h.t != NULL) {
        must_refuse(at, h.t, ls_variable_dtype(v->v), &shape);
    }
    keep_read(at, v, t);
}

/* A literal, a tensor, a variable, as a leaf. */
static ls_value *leaf(place *at, const statement *s, const variable *v)
{
    const int64_t what = number(s, "what"), x = number(s, "seed") % 5;
    const ls_shape shape = ls_variable_shape(v->v);
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;
    ls_status st;

    switch (what) {
    case 0:
        st = ls_value_float((double)x / 2, &out, &err);
        break;
    case 1:
        st = ls_value_int(x - 2, &out, &err);
        break;
    case 2:
        st = ls_value_bool(x > 2, &out, &err);
        break;
    case 3:
        st = ls_value_variable(variable_at(at, number(s, "t"))->v, &out, &err);
        break;
    default:
        return ls_value_of(at->c,
                           fresh(at, ls_variable_dtype(v->v), &shape, number(s, "seed")));
    }
    return st == LS_OK ? ls_value_adopt(at->c, out) : NULL;
}

static void run_assign_leaf(place *at, const statement *s)
{
    variable *v = chosen(at, s);
    ls_value *x;
    ls_tensor *t;

    if (v == NULL || !may_write(at, v->v, true)) {
        return;
    }
    if (at->m->workers > 0 && at->host && number(s, "what") == 3) {
        return; // an ON_READ variable is read again for each copy that is written
    }
    if (number(s, "what") == 3) {
        atomic_store(&v->doubt, 2); // the bound of the other variable may be larger
    }
    x = leaf(at, s, v);
    if (x == NULL) {
        return;
    }
    t = ls_variable_assign(at->c, v->v, (ls_assign_op)number(s, "how"), x,
                           number(s, "silent") == 1);
    keep_read(at, v, t);
}

/* A variable whose rows can be changed, unless the statement is to fail. */
static variable *scattered(place *at, const statement *s)
{
    for (int64_t i = 0; number(s, "wrong") == 0 && i < (int64_t)at->m->nvariables; i++) {
        variable *v = variable_at(at, number(s, "v") + is_odd(at, s) + i);

        if (v == NULL) {
            return NULL;
        }
        const ls_dtype dtype = ls_variable_dtype(v->v);
        const ls_aggregation a = ls_variable_aggregation(v->v);

        if ((dtype == LS_F32 || dtype == LS_F64 || dtype == LS_I32 || dtype == LS_I64) &&
            ls_variable_shape(v->v).ndim > 0 &&
            ls_variable_synchronization(v->v) != LS_SYNC_ON_READ &&
            (a == LS_AGGREGATE_ONLY_FIRST_REPLICA || number(s, "op") <= 4)) {
            return v;
        }
    }
    return chosen(at, s);
}

/* Indices and updates for rows of `v`; `wrong` says which part does not fit. */
static void run_scatter(place *at, const statement *s)
{
    variable *v = scattered(at, s);
    const int64_t wrong = number(s, "wrong"), bent = wrong + (is_odd(at, s) ? 2 : 0);
    ls_shape shape, indices, updates, wanted;
    sig_input in = {.whole = true};
    uint64_t random = (uint64_t)number(s, "seed");
    ls_tensor *index;
    ls_tensor *t;
    held h;

    if (v == NULL || lsi_failed(at->c) || !may_write(at, v->v, false)) {
        return;
    }
    shape = ls_variable_shape(v->v);
    indices.ndim = (int)number(s, "rank") % 3;
    indices.dims[0] = number(s, "d0");
    indices.dims[1] = number(s, "d1");
    updates = indices;
    for (int i = 1; i < shape.ndim && updates.ndim < LS_MAX_DIMS; i++) {
        updates.dims[updates.ndim++] = shape.dims[i];
    }
    wanted = updates;
    if (bent == 2 && updates.ndim > 0) {
        updates.dims[updates.ndim - 1] += 1 + 40 * number(s, "far"); // other rows
    } else if (bent == 3) {
        updates.ndim += updates.ndim < LS_MAX_DIMS;
        updates.dims[updates.ndim - 1] = 2;
    }
    in.dtype = wrong == 4 ? LS_F32 : number(s, "wide") == 1 ? LS_I64 : LS_I32;
    in.shape = indices;
    in.lo = wrong == 1 ? -3 : 0;
    in.hi = (shape.ndim == 0 ? 1 : (double)shape.dims[0]) + (wrong == 1 ? 3 : 0);
    index = ls_adopt(at->c, sig_tensor(at->c->device, &in, &random));
    h = like_at(at, number(s, "t"), ls_variable_dtype(v->v), &updates, number(s, "seed"));
    write_error(v, h.error);
    t = ls_variable_scatter(at->c, v->v, (ls_scatter_op)number(s, "op"), index, h.t);
    if (h.t != NULL) {
        must_refuse(at, h.t, ls_variable_dtype(v->v), &wanted);
    }
    keep_read(at, v, t);
}

/* ---- outside of steps ---- */

static void show_components(place *at, const variable *v)
{
    for (size_t i = 0; i < ls_variable_components(v->v); i++) {
        ls_error err = LS_ERROR_INIT;
        ls_tensor *t = NULL;
        const ls_status st = ls_variable_value(ls_variable_component(v->v, i), &t, &err);

        at->part = at->m->workers > 0 && ls_strategy_created(at->m->s, v->v)
                       ? at->m->first + (int)i + 1
                       : 0;
        ended(at, st, &err);
        if (st == LS_OK) {
            show(at, t, read_error(v, t));
            ls_tensor_release(t);
        }
        at->part = 0;
    }
}

static void run_value(place *at, const statement *s)
{
    const variable *v = variable_at(at, number(s, "v"));
    ls_error err = LS_ERROR_INIT;
    ls_tensor *t = NULL;
    ls_status st;

    if (v == NULL) {
        return;
    }
    if (number(s, "how") == 0) {
        st = ls_variable_value(v->v, &t, &err);
    } else if (number(s, "how") == 1) {
        st = ls_strategy_read_variable(at->m->s, v->v, &t, &err);
    } else {
        show_components(at, v);
        return;
    }
    ended(at, st, &err);
    if (st == LS_OK) {
        show(at, t, read_error(v, t));
        ls_tensor_release(t);
    }
}

static void run_set(place *at, const statement *s)
{
    variable *v = variable_at(at, number(s, "v"));
    ls_error err = LS_ERROR_INIT;
    ls_shape shape;
    ls_tensor *t;

    if (v == NULL) {
        return;
    }
    shape = ls_variable_shape(v->v);
    if (number(s, "wild") != 0) {
        shape.ndim = (shape.ndim + 1) % 4;
        shape.dims[shape.ndim] = 2;
    }
    t = host_tensor(at->m, ls_variable_dtype(v->v), &shape, number(s, "seed"));
    const ls_status st = ls_variable_set(v->v, t, &err);
    ended(at, st, &err);
    ls_tensor_release(t);
}

/* Saves a variable and restores the same or another one. */
static void run_save(place *at, const statement *s)
{
    const variable *v = variable_at(at, number(s, "v"));
    variable *w = number(s, "wild") != 0 ? variable_at(at, number(s, "w"))
                                         : variable_at(at, number(s, "v"));
    ls_error err = LS_ERROR_INIT;
    ls_tensor *t = NULL;
    ls_status st;

    if (v == NULL) {
        return;
    }
    st = ls_variable_save(v->v, &t, &err);
    ended(at, st, &err);
    if (st != LS_OK) {
        return;
    }
    show(at, t, read_error(v, t));
    write_error(w, atomic_load(&v->doubt));
    st = ls_variable_restore(w->v, t, &err);
    ended(at, st, &err);
    ls_tensor_release(t);
    if (st == LS_OK) {
        show_components(at, w);
    }
}

static void run_clone(place *at, const statement *s)
{
    machine *m = at->m;
    const variable *v = variable_at(at, number(s, "v"));
    ls_error err = LS_ERROR_INIT;
    ls_variable *copy = NULL;
    ls_status st;
    char text[4000];

    if (v == NULL || m->nvariables == MOST_VARIABLES) {
        return;
    }
    (void)ls_variable_text(v->v, text, (size_t)number(s, "seed") % sizeof text);
    st = ls_variable_clone(v->v, &copy, &err);
    ended(at, st, &err);
    if (st == LS_OK) {
        m->variables[m->nvariables].v = copy;
        atomic_init(&m->variables[m->nvariables].doubt, 2);
        atomic_init(&m->variables[m->nvariables].apart, false);
        m->nvariables++;
    }
}

const verb verbs_variable[] = {
    {"var",
     "dtype rank d0 d1 d2 sync agg flags:8 outside seed",
     run_create,
     IN_HOST,
     {2, 9, 0, 6}},
    {"read", "v how:2 odd", run_read, IN_STEP, {4, 10, 1, 6}},
    {"watch_variable", "v", run_watch_variable, IN_STEP, {1, 1, 0, 1}},
    {"assign", "v t how:3 seed odd", run_assign, IN_STEP, {1, 7, 1, 5}},
    {"assign_leaf",
     "v t how:3 what:5 silent:2 seed odd",
     run_assign_leaf,
     IN_STEP,
     {1, 4, 0, 3}},
    {"scatter",
     "v t op:7 rank d0 d1 wide:2 wrong far:2 seed odd",
     run_scatter,
     IN_STEP,
     {1, 5, 0, 3}},
    {"value", "v how:3", run_value, IN_HOST, {1, 7, 0, 5}},
    {"set", "v wild seed", run_set, IN_HOST, {0, 2, 0, 2}},
    {"save", "v w wild", run_save, IN_HOST, {0, 3, 0, 2}},
    {"clone", "v seed", run_clone, IN_HOST, {0, 1, 0, 1}},
};
const size_t count_variable = LSI_COUNT_OF(verbs_variable);
