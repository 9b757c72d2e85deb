/* Statements of optimizers and metrics. */
#include "random_machine.h"

static ls_optimizer_shared shared_of(const statement *s)
{
    ls_optimizer_shared o = LS_OPTIMIZER_SHARED_INIT;
    const int64_t clip = number(s, "clip");

    o.clipvalue = clip == 1 ? 0.5 : 0;
    o.clipnorm = clip == 2 ? 0.7 : 0;
    o.global_clipnorm = clip == 3 ? 0.9 : 0;
    if (clip == 4) { // one more than allowed
        o.clipvalue = o.clipnorm = 1;
    }
    o.weight_decay = number(s, "decay") == 1 ? 0.01 : 0;
    o.keras3 = number(s, "keras") == 1;
    return o;
}

static ls_status make_optimizer(const statement *s, ls_optimizer **out, ls_error *err)
{
    const ls_optimizer_shared shared = shared_of(s);
    const bool more = number(s, "more") == 1;
    ls_sgd_options sgd = LS_SGD_OPTIONS_INIT;
    ls_adam_options adam = LS_ADAM_OPTIONS_INIT;
    ls_adamw_options adamw = LS_ADAMW_OPTIONS_INIT;
    ls_rmsprop_options rmsprop = LS_RMSPROP_OPTIONS_INIT;
    ls_adagrad_options adagrad = LS_ADAGRAD_OPTIONS_INIT;

    switch (number(s, "kind")) {
    case 0:
        sgd.shared = shared;
        sgd.momentum = number(s, "momentum") == 1 ? 0.9 : 0;
        sgd.nesterov = more;
        return ls_sgd_create(&sgd, out, err);
    case 1:
        adam.shared = shared;
        adam.amsgrad = more;
        return ls_adam_create(&adam, out, err);
    case 2:
        adamw.shared = shared;
        adamw.amsgrad = more;
        return ls_adamw_create(&adamw, out, err);
    case 3:
        rmsprop.shared = shared;
        rmsprop.momentum = number(s, "momentum") == 1 ? 0.5 : 0;
        rmsprop.centered = more;
        return ls_rmsprop_create(&rmsprop, out, err);
    default:
        adagrad.shared = shared;
        return ls_adagrad_create(&adagrad, out, err);
    }
}

static void run_create(place *at, const statement *s)
{
    machine *m = at->m;
    ls_error err = LS_ERROR_INIT;
    ls_optimizer *o = NULL;
    ls_status st;

    if (m->noptimizers == MOST_OPTIMIZERS) {
        return;
    }
    st = ls_scope_enter(m->s, &err);
    if (st == LS_OK) {
        st = make_optimizer(s, &o, &err);
        ls_scope_exit(m->s);
    }
    ended(at, st, &err);
    if (st == LS_OK) {
        m->optimizers[m->noptimizers].o = o;
        atomic_init(&m->optimizers[m->noptimizers].doubt, 0);
        m->noptimizers++;
    }
}

static optimizer *optimizer_at(place *at, int64_t k)
{
    machine *m = at->m;

    return m->noptimizers == 0 ? NULL : &m->optimizers[(uint64_t)k % m->noptimizers];
}

/* Called before a step whose gradients may differ by `error`. */
static void note_step(optimizer *o, variable *v, double error)
{
    if (error != 0 || atomic_load(&v->doubt) == 2) {
        atomic_store(&o->doubt, 2);
    }
    if (atomic_load(&o->doubt) == 2) {
        atomic_store(&v->doubt, 2);
    } else if (atomic_load(&v->doubt) == 0) {
        atomic_store(&v->doubt, 1);
    }
}

/* The k-th floating variable, counted from the v-th on; NULL: there are not so many. */
static variable *float_variable(place *at, int64_t v, int64_t k)
{
    for (size_t i = 0; i < at->m->nvariables; i++) {
        variable *w = variable_at(at, v + (int64_t)i);

        if (w == NULL) {
            return NULL;
        }
        if (op_epsilon(ls_variable_dtype(w->v)) != 0 && k-- == 0) {
            return w;
        }
    }
    return NULL;
}

/* A sparse gradient for a variable: two of its rows, perhaps the same. */
static ls_tensor *sparse_gradient(place *at, const variable *v, int64_t seed)
{
    ls_shape shape = ls_variable_shape(v->v), rows = shape;
    const ls_shape two = LS_SHAPE(2);
    uint64_t random = (uint64_t)seed;
    sig_input in = {.dtype = LS_I64, .shape = two, .whole = true};
    ls_error err = LS_ERROR_INIT;
    ls_tensor *out = NULL, *values, *indices;

    if (shape.ndim == 0 || shape.dims[0] == 0 || ls_variable_dtype(v->v) == LS_STRING) {
        return NULL; // there are no such slices
    }
    rows.dims[0] = 2;
    in.hi = (double)shape.dims[0];
    values = host_tensor(at->m, ls_variable_dtype(v->v), &rows, seed);
    indices = sig_tensor(at->c->device, &in, &random);
    if (ls_tensor_create_slices(values, indices, shape, &out, &err) != LS_OK) {
        complain(at->m, "statement %d: slices: %s", at->at + 1, err.message);
    }
    ls_tensor_release(values);
    ls_tensor_release(indices);
    return ls_adopt(at->c, out);
}

static variable *chosen(place *at, const statement *s, int64_t first, int64_t i)
{
    return number(s, "wild") != 0 ? variable_at(at, first + i)
                                  : float_variable(at, first, i);
}

/* The odd replica passes variables of which one differs from the others'. */
static bool differently_chosen(place *at, const statement *s, int64_t n)
{
    const int64_t v = number(s, "v");

    for (int64_t i = 0; i < n; i++) {
        if (chosen(at, s, v, i) != chosen(at, s, v + 1, i)) {
            return true;
        }
    }
    return false;
}

static void run_apply(place *at, const statement *s)
{
    optimizer *o = optimizer_at(at, number(s, "o"));
    const int64_t n = 1 + number(s, "n"), first = number(s, "v") + is_odd(at, s);
    const int64_t missing = number(s, "missing");
    ls_tensor *grads[3] = {NULL};
    ls_variable *vars[3] = {NULL};
    size_t used = 0;

    if (o == NULL || lsi_failed(at->c)) {
        return;
    }
    for (int64_t i = 0; i < n && i < 3; i++) {
        variable *v = chosen(at, s, first, i);
        ls_shape shape;

        if (v == NULL || !may_write(at, v->v, true)) {
            break;
        }
        shape = ls_variable_shape(v->v);
        vars[used] = v->v;
        if (number(s, "sparse") == i + 1) {
            grads[used] = sparse_gradient(at, v, number(s, "seed"));
            note_step(o, v, 0);
        } else if (missing != i + 1 || (n == 1 && number(s, "wild") == 0)) {
            const held h = like_at(at, number(s, "t"), ls_variable_dtype(v->v), &shape,
                                   number(s, "seed") + i);

            grads[used] = h.t;
            note_step(o, v, h.error);
        }
        used++;
    }
    ls_optimizer_apply(at->c, o->o, grads, vars, used);
    if (number(s, "odd") > 0 && at->count > 1 && used > 0 &&
        differently_chosen(at, s, (int64_t)used) &&
        ls_context_status(at->c, NULL) == LS_OK) {
        complain(at->m, "statement %d: replicas update different variables", at->at + 1);
    }
}

static void run_minimize(place *at, const statement *s)
{
    optimizer *o = optimizer_at(at, number(s, "o"));
    held loss = float_at(at, number(s, "t"), 1);
    variable *v = float_variable(at, number(s, "v") + is_odd(at, s), 0);

    if (o == NULL || v == NULL || at->ntapes == 0 || lsi_failed(at->c) ||
        !may_write(at, v->v, true)) {
        return;
    }
    open_tape *tape = &at->tapes[at->ntapes - 1];
    if (tape->spent && !tape->persistent) {
        return;
    }
    tape->spent = true;
    note_step(o, v, INFINITY);
    if (number(s, "wild") == 0) { // one that depends on the variable
        ls_tensor *x = ls_read(at->c, v->v);

        loss.t = ls_sum(at->c, ls_square(at->c, x), NULL, 0, false);
    }
    ls_optimizer_minimize(at->c, o->o, tape->tape, loss.t, &v->v, 1);
}

static void run_slot(place *at, const statement *s)
{
    static const char *const names[] = {"momentum", "velocity", "velocity_hat",
                                        "average_gradient", "accumulator"};
    const optimizer *o = optimizer_at(at, number(s, "o"));
    const variable *v = variable_at(at, number(s, "v"));
    ls_error err = LS_ERROR_INIT;
    ls_tensor *t = NULL;

    for (size_t i = 0; o != NULL && v != NULL && i < LSI_COUNT_OF(names); i++) {
        ls_variable *slot = ls_optimizer_slot(o->o, v->v, names[i]);

        if (slot == NULL) {
            continue;
        }
        const ls_status st = ls_variable_value(slot, &t, &err);
        ended(at, st, &err);
        if (st == LS_OK) {
            const double near =
                2000 * LSI_MAX(op_epsilon(LS_F32), op_epsilon(ls_tensor_dtype(t))) *
                LSI_MAX(1.0, largest_of(t));

            show(at, t, atomic_load(&o->doubt) == 0 ? near : INFINITY);
            ls_tensor_release(t);
        }
    }
    if (o != NULL && number(s, "slower") == 1) {
        ls_optimizer_set_learning_rate(o->o, ls_optimizer_learning_rate(o->o) / 2);
    }
}

/* ---- metrics ---- */

static void run_metric(place *at, const statement *s)
{
    machine *m = at->m;
    ls_error err = LS_ERROR_INIT;
    ls_status st;

    (void)s;
    if (m->nmetrics == MOST_METRICS) {
        return;
    }
    st = ls_scope_enter(m->s, &err);
    if (st == LS_OK) {
        st = ls_metric_mean_create(NULL, &m->metrics[m->nmetrics], &err);
        ls_scope_exit(m->s);
    }
    ended(at, st, &err);
    m->nmetrics += st == LS_OK;
}

static void run_metric_add(place *at, const statement *s)
{
    const held h = float_at(at, number(s, "t"), number(s, "seed"));
    machine *m = at->m;
    ls_metric *metric;

    if (m->nmetrics == 0 || h.t == NULL) {
        return;
    }
    metric = m->metrics[(uint64_t)number(s, "m") % m->nmetrics];
    switch (number(s, "how")) {
    case 0:
        ls_metric_add(at->c, metric, h.t, NULL);
        break;
    case 1:
        ls_metric_add(at->c, metric, h.t, h.t);
        break;
    case 2:
        ls_metric_add(at->c, metric, h.t, ls_constant_f32(at->c, 0.5F));
        break;
    default:
        keep(at, ls_metric_result(at->c, metric), INFINITY);
        break;
    }
}

static void run_metric_reset(place *at, const statement *s)
{
    machine *m = at->m;
    ls_error err = LS_ERROR_INIT;

    if (m->nmetrics > 0) {
        ended(at,
              ls_metric_reset(m->metrics[(uint64_t)number(s, "m") % m->nmetrics], &err),
              &err);
    }
}

const verb verbs_optimizer[] = {
    {"opt",
     "kind:5 clip decay:2 keras:2 momentum:2 more:2",
     run_create,
     IN_HOST,
     {0, 5, 0, 3}},
    {"apply", "o v n:3 t missing sparse wild seed odd", run_apply, IN_STEP, {0, 9, 0, 4}},
    {"minimize", "o v t wild odd", run_minimize, IN_STEP, {0, 5, 0, 2}},
    {"slot", "o v slower:2", run_slot, IN_HOST, {0, 3, 0, 1}},
    {"metric", "", run_metric, IN_HOST, {0, 2, 0, 1}},
    {"metric_add", "m t how:4 seed", run_metric_add, IN_STEP, {0, 2, 0, 2}},
    {"metric_reset", "m", run_metric_reset, IN_HOST, {0, 1, 0, 1}},
};
const size_t count_optimizer = LSI_COUNT_OF(verbs_optimizer);
