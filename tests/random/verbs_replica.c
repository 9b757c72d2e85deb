/* Statements that replicas do together, and the ways in which one of them fails. */
#include "random_machine.h"

/* The bound on the difference of a sum over replicas, from that of its terms. */
static double sum_error(const held *h)
{
    return h->error != 0 || h->t == NULL
               ? INFINITY
               : 64 * op_epsilon(ls_tensor_dtype(h->t)) * LSI_MAX(1.0, largest_of(h->t)) *
                     MOST_REPLICAS;
}

/* Any tensor of the pool, or a new one. */
static held any_at(place *at, int64_t k, int64_t seed)
{
    const held *h = tensor_at(at, k);

    return h != NULL ? *h : float_at(at, k, seed);
}

static void run_all_reduce(place *at, const statement *s)
{
    const held h = any_at(at, number(s, "t") + is_odd(at, s), number(s, "seed"));
    ls_tensor *t = ls_all_reduce(at->c, (ls_reduce)number(s, "op"), h.t);

    keep(at, t, h.t == NULL || lsi_failed(at->c) ? INFINITY : sum_error(&h));
}

static void run_all_gather(place *at, const statement *s)
{
    const held h = any_at(at, number(s, "t") + is_odd(at, s), number(s, "seed"));
    ls_tensor *t = ls_all_gather(at->c, h.t, (int)number(s, "along"));

    // Replicas may have chosen tensors with larger bounds.
    keep(at, t, h.error != 0 || at->m->odd ? INFINITY : 0);
}

static ls_communication_options options_of(const place *at, const statement *s)
{
    static const char *const algorithms[] = {NULL,   NULL,           "direct",   "tree",
                                             "ring", "hierarchical", "none such"};
    ls_communication_options o = LS_COMMUNICATION_OPTIONS_INIT;
    const int64_t k = number(s, "how");

    o.implementation = (ls_communication)(k % 3);
    o.bytes_per_pack = k % 5 == 4 ? 16 : 0;
    o.algorithm = algorithms[(uint64_t)number(s, "by") % LSI_COUNT_OF(algorithms)];
    if (at->m->workers > 0 && o.algorithm != NULL && strcmp(o.algorithm, "ring") == 0) {
        o.algorithm = NULL; // the order of its additions depends on the number of workers
    }
    return o;
}

/* Two tensors, and sometimes a literal, as one structure. */
static ls_value *structure(place *at, const statement *s, bool *doubtful)
{
    const held a = any_at(at, number(s, "t") + is_odd(at, s), number(s, "seed"));
    const held b = any_at(at, number(s, "t2"), number(s, "seed") + 1);

    *doubtful = a.error != 0 || b.error != 0;
    if (number(s, "alone") == 1) {
        return ls_value_of(at->c, a.t);
    }
    return ls_value_of_all(at->c, (ls_tensor *[]){a.t, b.t}, 2);
}

/* Shows the leaves; `pool`: and adds them to the pool. */
static void take_all(place *at, ls_value *v, bool pool, double error)
{
    if (v == NULL) {
        return;
    }
    if (ls_value_is_leaf(v) && !pool) {
        show(at, ls_value_to_tensor(at->c, v), error);
        return;
    }
    if (ls_value_is_leaf(v)) {
        keep(at, ls_value_to_tensor(at->c, v), error);
        return;
    }
    for (size_t i = 0; i < ls_value_size(v); i++) {
        take_all(at, ls_value_child(v, i), pool, error);
    }
}

static void keep_all(place *at, ls_value *v, double error)
{
    take_all(at, v, true, error);
}

/*
 * The result of a merge function is one value for all replicas of a process, which other
 * calls take for one of each worker: where workers are compared it is not in the pool.
 */
static void keep_merged(place *at, ls_value *v)
{
    take_all(at, v, at->m->workers == 0, INFINITY);
}

static void run_all_reduce_value(place *at, const statement *s)
{
    const ls_communication_options o = options_of(at, s);
    bool doubtful;
    ls_value *v = structure(at, s, &doubtful);

    keep_all(at, ls_all_reduce_value(at->c, (ls_reduce)number(s, "op"), v, &o), INFINITY);
}

static void run_all_gather_value(place *at, const statement *s)
{
    const ls_communication_options o = options_of(at, s);
    bool doubtful;
    ls_value *v = structure(at, s, &doubtful);

    keep_all(at, ls_all_gather_value(at->c, v, (int)number(s, "along"), &o),
             doubtful || at->m->odd ? INFINITY : 0);
}

/* ---- merging ---- */

struct merging {
    place *at;
    const statement *s;
};

static ls_value *add_one(ls_context *c, ls_variable *component, ls_value *args,
                         void *user)
{
    const ls_shape shape = ls_variable_shape(component);
    ls_tensor *x = ls_value_as_tensor(args);

    (void)user;
    if (x == NULL) {
        x = ls_constant(c, ls_variable_dtype(component), shape, NULL);
    }
    return ls_value_of(c, ls_assign_add(c, component, x));
}

/* Makes the step fail with the failure of a call outside of it. */
static ls_value *adopt_result(ls_context *c, ls_status st, const ls_error *err,
                              ls_value *v)
{
    if (st != LS_OK) {
        (void)ls_context_fail(c, st, "%s", err->message);
        return NULL;
    }
    return ls_value_adopt(c, v);
}

static ls_value *merge_variable(ls_context *cross, ls_strategy *s, ls_value *args,
                                const struct merging *m, variable *v)
{
    const ls_shape shape = ls_variable_shape(v->v);
    ls_error err = LS_ERROR_INIT;
    ls_value *dest = NULL, *out = NULL;
    ls_status st;

    switch (number(m->s, "fn")) {
    case 4:
        return ls_value_of(cross, ls_read(cross, v->v));
    case 5:
        return ls_value_of(
            cross, ls_assign(cross, v->v,
                             ls_constant(cross, ls_variable_dtype(v->v), shape, NULL)));
    case 6:
        st = ls_strategy_update(s, v->v, add_one, args, NULL, true, &out, &err);
        return adopt_result(cross, st, &err, out);
    default:
        st = ls_value_variable(v->v, &dest, &err);
        if (st == LS_OK) {
            st = ls_strategy_reduce_to(s, LS_MEAN, args, dest, NULL, &out, &err);
        }
        ls_value_release(dest);
        return adopt_result(cross, st, &err, out);
    }
}

static ls_value *merge_function(ls_context *cross, ls_strategy *s, ls_value *args,
                                void *user)
{
    const struct merging *m = user;
    variable *v = variable_at(m->at, number(m->s, "v"));
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;
    ls_status st;

    if (v != NULL && !m->at->m->odd && atomic_load(&v->apart)) {
        v = NULL;
    }
    switch (number(m->s, "fn")) {
    case 0:
        return args;
    case 1:
        st = ls_strategy_reduce(s, LS_SUM, args, LS_NO_AXIS, &out, &err);
        return adopt_result(cross, st, &err, out);
    case 2:
        st = ls_strategy_gather(s, args, (int)number(m->s, "along"), &out, &err);
        return adopt_result(cross, st, &err, out);
    case 3:
        (void)ls_context_fail(cross, LS_UNAVAILABLE, "the merge function gives up");
        return NULL;
    default:
        return v == NULL ? NULL : merge_variable(cross, s, args, m, v);
    }
}

static void run_merge(place *at, const statement *s)
{
    const held h = any_at(at, number(s, "t") + is_odd(at, s), number(s, "seed"));
    struct merging m = {at, s};
    variable *v = variable_at(at, number(s, "v"));

    if (v != NULL && (number(s, "fn") == 6 || h.error != 0)) {
        atomic_store(&v->doubt, 2);
    }
    keep_merged(at, ls_merge_call(at->c, merge_function, ls_value_of(at->c, h.t), &m));
}

static void run_update(place *at, const statement *s)
{
    variable *v = variable_at(at, number(s, "v") + is_odd(at, s));
    ls_shape shape;
    held h;

    if (v == NULL || !may_write(at, v->v, false)) {
        return;
    }
    shape = ls_variable_shape(v->v);
    h = like_at(at, number(s, "t"), ls_variable_dtype(v->v), &shape, number(s, "seed"));
    atomic_store(&v->doubt, 2);
    note_apart(at, v);
    keep_merged(at,
                ls_replica_update(at->c, v->v, add_one, ls_value_of(at->c, h.t), NULL));
}

/* ---- losses ---- */

static void run_loss(place *at, const statement *s)
{
    const held h = float_at(at, number(s, "t"), number(s, "seed"));
    const int64_t batch[] = {LS_BATCH_OF_REPLICAS, 8, 0, 3};

    if (number(s, "how") == 4) {
        keep(at, ls_scale_regularization_loss(at->c, h.t), INFINITY);
    } else {
        keep(at,
             ls_average_loss(at->c, h.t, number(s, "weighted") == 1 ? h.t : NULL,
                             number(s, "wild") != 0 ? -3 : batch[number(s, "how") % 4]),
             INFINITY);
    }
}

/* ---- one replica that does something else ---- */

static void run_fail(place *at, const statement *s)
{
    if (is_odd(at, s) || at->count == 1) {
        (void)ls_context_fail(at->c, LS_DATA_LOSS, "replica %d gives up", at->id);
    }
}

static void run_leave(place *at, const statement *s)
{
    if (is_odd(at, s)) {
        at->left = true;
    }
}

static void run_id(place *at, const statement *s)
{
    (void)s;
    keep(at, ls_replica_id_tensor(at->c), 0);
}

const verb verbs_replica[] = {
    {"all_reduce", "op:2 t seed odd", run_all_reduce, IN_STEP, {1, 5, 1, 4}},
    {"all_gather", "t along seed odd", run_all_gather, IN_STEP, {1, 3, 1, 3}},
    {"all_reduce_value",
     "op:2 t t2 how:15 by alone:2 seed odd",
     run_all_reduce_value,
     IN_STEP,
     {0, 3, 0, 3}},
    {"all_gather_value",
     "t t2 along how:15 by alone:2 seed odd",
     run_all_gather_value,
     IN_STEP,
     {0, 2, 0, 2}},
    {"merge", "fn v t along seed odd", run_merge, IN_STEP, {0, 5, 0, 4}},
    {"replica_update", "v t seed odd", run_update, IN_STEP, {0, 2, 0, 2}},
    {"loss", "t how:5 weighted:2 wild seed", run_loss, IN_STEP, {1, 3, 0, 2}},
    {"fail", "odd", run_fail, IN_STEP, {0, 0, 0, 0}},
    {"leave", "odd", run_leave, IN_STEP, {0, 0, 0, 0}},
    {"replica_id", "", run_id, IN_STEP, {0, 1, 1, 1}},
};
const size_t count_replica = LSI_COUNT_OF(verbs_replica);
