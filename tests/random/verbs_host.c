/* Statements in cross-replica context: runs, reductions of values, updates. */
#include "random_machine.h"

static void run_nothing(place *at, const statement *s)
{
    (void)at;
    (void)s;
}

/* ---- what replicas run ---- */

/* The structure a replica returns: its last tensors. */
static ls_value *returned_tensors(place *at, int64_t n)
{
    ls_tensor *last[4];
    size_t used = 0;

    for (size_t i = at->ntensors; i > 0 && used < (size_t)n && used < 4; i--) {
        last[used++] = at->tensors[i - 1].t;
    }
    return used == 1 ? ls_value_of(at->c, last[0]) : ls_value_of_all(at->c, last, used);
}

/* Sets the random states of replicas back to the start, as runs continue from them. */
static void begin_drawing(place *at)
{
    const ls_random_state start = {7, (uint64_t)at->id, 0};
    ls_error err = LS_ERROR_INIT;

    if (ls_context_set_random_state(at->c, &start, &err) != LS_OK) {
        complain(at->m, "random state: %s", err.message);
    }
}

static ls_value *replica_body(ls_context *c, ls_value *args, void *user)
{
    machine *m = user;
    const int id = ls_replica_id(c);
    place *at = &m->replica[id];
    const program *p = m->p;
    int64_t n = 0;

    *at = (place){.m = m, .c = c, .id = id, .count = ls_replica_count(c)};
    at->at = (int)m->begin - 1;
    if (m->runs == 1) {
        begin_drawing(at);
    }
    at->differ = (int)(number(&p->statements[m->begin - 1], "differ") & 1);
    for (size_t i = 0; i < ls_value_size(args); i++) {
        keep(at, ls_value_at(c, args, i), 0);
    }
    for (size_t i = m->begin; i < m->end; i++) {
        run_statement(at, i);
    }
    if (m->end < p->count && strcmp(p->statements[m->end].verb->name, "end") == 0) {
        n = number(&p->statements[m->end], "ret");
    }
    return n == 0 ? NULL : returned_tensors(at, n);
}

/* A value with one tensor per replica; `differ` 0: equal, 2: of different lengths. */
static ls_value *per_replica(machine *m, ls_dtype dtype, const ls_shape *shape,
                             int64_t differ, int64_t seed)
{
    ls_value *parts[MOST_REPLICAS] = {NULL}, *out = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_status st = LS_OK;

    for (int i = 0; i < m->local && st == LS_OK; i++) {
        const int id = m->first + i;
        ls_shape mine = *shape;
        ls_tensor *t;

        if (differ >= 2 && mine.ndim > 0) {
            mine.dims[0] += id;
        }
        t = host_tensor(m, dtype, &mine, seed + (differ != 0 ? id : 0));
        st = ls_value_tensor(t, &parts[i], &err);
        ls_tensor_release(t);
    }
    if (st == LS_OK) {
        st = ls_value_per_replica(parts, (size_t)m->local, &out, &err);
    }
    if (st != LS_OK) {
        complain(m, "a value per replica cannot be made: %s", err.message);
    }
    for (int i = 0; i < m->local; i++) {
        ls_value_release(parts[i]);
    }
    return out;
}

/* The arguments: tensors that differ as the statement says. */
static ls_value *run_arguments(machine *m, const statement *s)
{
    const int64_t n = number(s, "args") % 4, seed = number(s, "seed");
    const ls_shape shapes[] = {LS_SHAPE(4, 3), LS_SHAPE(3), LS_SHAPE(3, 4)};
    ls_value *items[3] = {NULL}, *out = NULL;
    ls_error err = LS_ERROR_INIT;

    for (int64_t i = 0; i < n; i++) {
        items[i] = per_replica(m, LS_F32, &shapes[i], number(s, "differ"), seed + 10 * i);
    }
    if (n > 0 && ls_value_tuple(items, (size_t)n, &out, &err) != LS_OK) {
        complain(m, "arguments cannot be made: %s", err.message);
    }
    for (int64_t i = 0; i < n; i++) {
        ls_value_release(items[i]);
    }
    return out;
}

/* The next batch of a distributed dataset as the arguments; NULL: there is none. */
static ls_value *next_batch(place *at, const statement *s)
{
    machine *m = at->m;
    ls_error err = LS_ERROR_INIT;
    ls_value *v = NULL, *out = NULL;

    if (m->ndistributed == 0) {
        return NULL;
    }
    const size_t i = (uint64_t)number(s, "from") % m->ndistributed;
    const ls_status st = ls_dist_iterator_next(m->distributed[i].it, &v, &err);

    ended(at, st, &err);
    if (st != LS_OK) {
        return NULL;
    }
    if (ls_value_kind_of(v) == LS_VALUE_TUPLE) {
        return v;
    }
    if (ls_value_tuple(&v, 1, &out, &err) != LS_OK) {
        complain(m, "a batch cannot be wrapped: %s", err.message);
    }
    ls_value_release(v);
    return out;
}

/*
 * What a run returns has a part for each replica, unless it may have been merged: the
 * result of a merge function is one value for all replicas.
 */
static bool has_own_parts(const machine *m, const ls_value *out)
{
    bool merged = false;

    for (size_t i = m->begin; i < m->end; i++) {
        const char *name = m->p->statements[i].verb->name;

        merged =
            merged || strcmp(name, "merge") == 0 || strcmp(name, "replica_update") == 0;
    }
    return !merged && ls_value_kind_of(out) != LS_VALUE_NONE;
}

static void run_run(place *at, const statement *s)
{
    machine *m = at->m;
    ls_run_options o = LS_RUN_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    ls_value *args = NULL, *out = NULL;
    ls_status st;

    if (number(s, "from") != 0) {
        args = next_batch(at, s);
    }
    if (args == NULL) {
        args = run_arguments(m, s);
    }
    o.sequential = number(s, "sequential") == 1;
    m->runs++;
    st = ls_strategy_run_with(m->s, replica_body, args, m, &o, &out, &err);
    ls_value_release(args);
    for (int i = m->first; i < m->first + m->local; i++) {
        // After a failure the replicas may have stopped at any statement.
        if ((st == LS_OK && !atomic_load(&m->racing)) || m->replicas == 1) {
            journal_append(&at->log, &m->replica[i].log);
        }
        journal_free(&m->replica[i].log);
        m->replica[i].left = false;
    }
    if (m->replicas > 1 && st != LS_OK) {
        if (err.message[0] == '\0' || (st == LS_INTERNAL && !m->odd)) {
            complain(m, "statement %d: the run fails with %s \"%s\"", at->at + 1,
                     ls_status_name(st), err.message);
        }
        if (!m->loose) {
            const entry failed = {.kind = STATUS,
                                  .statement = at->at,
                                  .replica = -1,
                                  .code = st,
                                  .bytes = strlen(err.message),
                                  .unsettled = true};

            journal_put(&at->log, failed, err.message);
        }
        m->loose = true;
        m->failures++;
        return;
    }
    ended(at, st, &err);
    m->loose = m->loose || atomic_load(&m->racing);
    for (size_t i = 0; i < m->nvariables; i++) {
        m->layout = m->layout || (m->odd && atomic_load(&m->variables[i].apart));
    }
    if (st == LS_OK && out != NULL) {
        show_value(at, out, INFINITY);
        give_value(at, out, has_own_parts(m, out));
    }
}

/* ---- values outside of replicas ---- */

static void run_values(place *at, const statement *s)
{
    const ls_shape shape = shape_of(s);

    give_value(at,
               per_replica(at->m, dtype_of(number(s, "dtype")), &shape,
                           number(s, "differ"), number(s, "seed")),
               true);
}

/*
 * Adds a result of the host; takes its address, because the call that sets it is another
 * argument.
 */
static void note_result(place *at, ls_status st, const ls_error *err,
                        ls_value *const *out)
{
    ended(at, st, err);
    if (st == LS_OK) {
        show_value(at, *out, INFINITY);
        give_value(at, *out, false);
    }
}

static void run_reduce(place *at, const statement *s)
{
    ls_value *v = value_at(at, number(s, "x")), *out = NULL;
    const int64_t axis = number(s, "axis");
    ls_error err = LS_ERROR_INIT;

    if (v != NULL) {
        note_result(at,
                    ls_strategy_reduce(at->m->s, (ls_reduce)number(s, "op"), v,
                                       axis == 0 ? LS_NO_AXIS : (int)axis - 1, &out,
                                       &err),
                    &err, &out);
    }
}

static void run_gather(place *at, const statement *s)
{
    ls_value *v = value_at(at, number(s, "x")), *out = NULL;
    ls_error err = LS_ERROR_INIT;

    if (v != NULL) {
        note_result(at,
                    ls_strategy_gather(at->m->s, v, (int)number(s, "along"), &out, &err),
                    &err, &out);
    }
}

static void run_local(place *at, const statement *s)
{
    ls_value *v = value_at(at, number(s, "x")), *out = NULL;
    ls_error err = LS_ERROR_INIT;

    if (v != NULL) {
        const ls_status st = ls_strategy_local_results(at->m->s, v, &out, &err);

        ended(at, st, &err);
        if (st == LS_OK) {
            show_parts(at, out, INFINITY);
            give_value(at, out, false);
        }
    }
}

/* The destination of a reduction: a variable, a value, a device. */
static ls_value *destination(place *at, int64_t k)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;
    const variable *v = variable_at(at, k);

    if (k % 3 == 0 && v != NULL) {
        return ls_value_variable(v->v, &out, &err) == LS_OK ? out : NULL;
    }
    if (k % 3 == 1) {
        return ls_value_retain(value_at(at, k));
    }
    // A worker of one replica has no CPU:1.
    return ls_value_string((ls_string){at->m->workers > 0 ? "CPU:0" : "CPU:1", 5}, &out,
                           &err) == LS_OK
               ? out
               : NULL;
}

static void run_reduce_to(place *at, const statement *s)
{
    ls_value *v = value_at(at, number(s, "x")), *out = NULL;
    ls_value *to = destination(at, number(s, "to"));
    ls_error err = LS_ERROR_INIT;

    if (v != NULL && to != NULL) {
        note_result(at,
                    ls_strategy_reduce_to(at->m->s, (ls_reduce)number(s, "op"), v, to,
                                          NULL, &out, &err),
                    &err, &out);
    }
    ls_value_release(to);
}

static void run_batch_reduce_to(place *at, const statement *s)
{
    ls_value *v[2] = {value_at(at, number(s, "x")), value_at(at, number(s, "y"))};
    ls_value *to[2] = {destination(at, number(s, "to")), destination(at, number(s, "x"))};
    ls_value *out[2] = {NULL, NULL};
    ls_error err = LS_ERROR_INIT;

    if (v[0] != NULL && v[1] != NULL && to[0] != NULL && to[1] != NULL) {
        const ls_status st = ls_strategy_batch_reduce_to(
            at->m->s, (ls_reduce)number(s, "op"), v, to, 2, NULL, out, &err);

        note_result(at, st, &err, &out[0]);
        note_result(at, st, &err, &out[1]);
    }
    ls_value_release(to[0]);
    ls_value_release(to[1]);
}

static void run_broadcast_to(place *at, const statement *s)
{
    const ls_shape shape = LS_SHAPE(2, 3);
    ls_tensor *t = host_tensor(at->m, LS_F32, &shape, number(s, "seed"));
    ls_value *v = NULL, *out = NULL, *to = destination(at, number(s, "to"));
    ls_error err = LS_ERROR_INIT;

    if (to != NULL && ls_value_tensor(t, &v, &err) == LS_OK) {
        note_result(at, ls_strategy_broadcast_to(at->m->s, v, to, &out, &err), &err,
                    &out);
    }
    ls_value_release(v);
    ls_value_release(to);
    ls_tensor_release(t);
}

static void run_cross(place *at, const statement *s)
{
    ls_value *v = value_at(at, number(s, "x")), *out = NULL;
    ls_value *to = destination(at, number(s, "to"));
    ls_cross_device *x = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_status st;

    if (at->m->workers > 0) { // it combines the values of one process only
        ls_value_release(to);
        return;
    }
    switch (number(s, "kind")) {
    case 0:
        st = ls_reduction_to_one_device_create(NULL, &x, &err);
        break;
    case 1:
        st = ls_hierarchical_copy_create((int)number(s, "packs") - 1, &x, &err);
        break;
    default:
        st = ls_nccl_all_reduce_create((int)number(s, "packs"), &x, &err);
        break;
    }
    ended(at, st, &err);
    if (st == LS_OK && v != NULL && to != NULL) {
        note_result(at,
                    ls_cross_device_reduce(x, (ls_reduce)number(s, "op"), v, to, NULL,
                                           &out, &err),
                    &err, &out);
    }
    ls_cross_device_release(x);
    ls_value_release(to);
}

static ls_value *change_component(ls_context *c, ls_variable *component, ls_value *args,
                                  void *user)
{
    ls_tensor *x = ls_value_as_tensor(args);

    (void)user;
    return x == NULL ? NULL : ls_value_of(c, ls_assign_add(c, component, x));
}

static void run_update(place *at, const statement *s)
{
    variable *v = variable_at(at, number(s, "v"));
    ls_value *args = NULL, *out = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_shape shape;
    ls_tensor *t;

    if (v == NULL) {
        return;
    }
    shape = ls_variable_shape(v->v);
    if (number(s, "each") == 1) {
        // A variable of no strategy takes the first local component.
        at->m->layout = at->m->layout || ls_variable_strategy(v->v) != at->m->s;
        args = per_replica(at->m, ls_variable_dtype(v->v), &shape, 1, number(s, "seed"));
    } else {
        t = host_tensor(at->m, ls_variable_dtype(v->v), &shape, number(s, "seed"));
        if (ls_value_tensor(t, &args, &err) != LS_OK) {
            args = NULL;
        }
        ls_tensor_release(t);
    }
    note_result(at,
                ls_strategy_update(at->m->s, v->v, change_component, args, NULL,
                                   number(s, "group") == 1 || at->m->workers > 0, &out,
                                   &err),
                &err, &out);
    ls_value_release(args);
}

const verb verbs_host[] = {
    {"setup", "replicas:4 kind:7", run_nothing, IN_HOST, {0, 0, 0, 0}},
    {"run", "args:4 differ from sequential:2 seed", run_run, BLOCK, {0, 0, 0, 0}},
    {"end", "ret:4", run_nothing, BLOCK, {0, 0, 0, 0}},
    {"values", "dtype rank d0 d1 d2 differ seed", run_values, IN_HOST, {0, 2, 0, 3}},
    {"reduce", "x op:2 axis", run_reduce, IN_HOST, {0, 2, 0, 3}},
    {"gather", "x along", run_gather, IN_HOST, {0, 2, 0, 2}},
    {"local_results", "x", run_local, IN_HOST, {0, 1, 0, 1}},
    {"reduce_to", "x op:2 to:6", run_reduce_to, IN_HOST, {0, 2, 0, 2}},
    {"batch_reduce_to", "x y op:2 to:6", run_batch_reduce_to, IN_HOST, {0, 1, 0, 1}},
    {"broadcast_to", "to:6 seed", run_broadcast_to, IN_HOST, {0, 1, 0, 1}},
    {"cross_device", "kind:3 packs:4 x op:2 to:6", run_cross, IN_HOST, {0, 2, 0, 2}},
    {"update", "v each group:2 seed", run_update, IN_HOST, {0, 2, 0, 1}},
};
const size_t count_host = LSI_COUNT_OF(verbs_host);
