/* Statements of the gradient tape. */
#include "random_machine.h"

/* A tape that can still compute gradients; any tape if the statement is to fail. */
static open_tape *usable_tape(place *at, const statement *s)
{
    const size_t first = (uint64_t)number(s, "tape") % MOST_TAPES;

    if (at->ntapes == 0) {
        return NULL;
    }
    for (size_t i = 0; i < at->ntapes; i++) {
        open_tape *t = &at->tapes[(first + i) % at->ntapes];

        if (number(s, "wild") != 0 || t->persistent || !t->spent) {
            return t;
        }
    }
    return NULL;
}

static void run_open(place *at, const statement *s)
{
    ls_tape_options o = LS_TAPE_OPTIONS_INIT;
    const int64_t flags = number(s, "flags");
    ls_tape *tape;

    if (at->ntapes == MOST_TAPES) {
        return;
    }
    o.persistent = (flags & 1) != 0;
    o.ignore_variables = flags == 3;
    tape = ls_tape_open(at->c, &o);
    if (tape != NULL) {
        at->tapes[at->ntapes++] = (open_tape){tape, o.persistent, false, 1};
    }
}

static void run_watch(place *at, const statement *s)
{
    open_tape *tape = usable_tape(at, s);
    const held h = float_at(at, number(s, "t"), number(s, "seed"));

    if (tape == NULL || h.t == NULL) {
        return;
    }
    ls_tape_watch(at->c, tape->tape, h.t);
    if (h.error != 0) {
        tape->growth = INFINITY; // the values that are differentiated differ already
    }
    for (size_t i = 0; i < at->ntensors; i++) {
        if (at->tensors[i].t == h.t) {
            at->tensors[i].watched = true;
            return;
        }
    }
    keep(at, h.t, 0);
    if (at->ntensors > 0) {
        at->tensors[at->ntensors - 1].watched = true;
    }
}

/* The k-th floating tensor that is watched, else any floating one. */
static ls_tensor *watched_at(place *at, int64_t k)
{
    for (size_t i = 0; k >= 0 && i < at->ntensors; i++) {
        const held *h = tensor_at(at, k + (int64_t)i);

        if (h->watched) {
            return h->t;
        }
    }
    return float_at(at, k, k).t;
}

static double gradient_error(const open_tape *tape, const ls_tensor *g)
{
    return g == NULL || !isfinite(tape->growth)
               ? INFINITY
               : 10000 * op_epsilon(ls_tensor_dtype(g)) *
                     LSI_MAX(tape->growth * tape->growth, largest_of(g));
}

static void run_gradient(place *at, const statement *s)
{
    open_tape *tape = usable_tape(at, s);
    ls_tensor *target = float_at(at, number(s, "t"), 1).t;
    ls_tensor *g;

    if (tape == NULL || target == NULL) {
        return;
    }
    tape->spent = true;
    g = ls_gradient(at->c, tape->tape, target, watched_at(at, number(s, "from")));
    keep(at, g, gradient_error(tape, g));
}

static void run_gradients(place *at, const statement *s)
{
    open_tape *tape = usable_tape(at, s);
    const held first = float_at(at, number(s, "t"), 1);
    const held second = float_at(at, number(s, "t2"), 1);
    ls_tensor *targets[2] = {first.t, second.t}, *out[2] = {NULL}, *grads[2] = {NULL};
    ls_tensor *sources[2] = {watched_at(at, number(s, "from")),
                             watched_at(at, number(s, "from2"))};
    const bool given = number(s, "given") == 1;

    if (tape == NULL || targets[0] == NULL || targets[1] == NULL) {
        return;
    }
    for (size_t i = 0; given && i < 2; i++) {
        const ls_shape shape = ls_tensor_shape(targets[i]);

        out[i] = fresh(at, ls_tensor_dtype(targets[i]), &shape, number(s, "seed"));
    }
    tape->spent = true;
    tape->growth *= given ? 2 : 1;
    ls_gradients(at->c, tape->tape, targets, given ? out : NULL, 2, sources, 2, grads);
    for (size_t i = 0; i < 2 && !lsi_failed(at->c); i++) {
        keep(at, grads[i], gradient_error(tape, grads[i]));
    }
}

static void run_variable_gradients(place *at, const statement *s)
{
    open_tape *tape = usable_tape(at, s);
    ls_tensor *target = float_at(at, number(s, "t"), 1).t, *grads[2] = {NULL};
    variable *v = variable_at(at, number(s, "v"));
    variable *w = variable_at(at, number(s, "w"));

    if (tape == NULL || target == NULL || v == NULL) {
        return;
    }
    tape->spent = true;
    ls_variable_gradients(at->c, tape->tape, target, (ls_variable *[]){v->v, w->v}, 2,
                          grads);
    for (size_t i = 0; i < 2 && !lsi_failed(at->c); i++) {
        keep(at, grads[i], gradient_error(tape, grads[i]));
    }
}

static void run_other(place *at, const statement *s)
{
    open_tape *tape = usable_tape(at, s);

    if (tape == NULL) {
        return;
    }
    switch (number(s, "how")) {
    case 0:
        ls_tape_stop(at->c, tape->tape);
        break;
    case 1:
        ls_tape_resume(at->c, tape->tape);
        break;
    case 2:
        ls_tape_reset(at->c, tape->tape);
        tape->spent = false;
        tape->growth = INFINITY;
        break;
    default:
        ls_tape_close(at->c, tape->tape);
        *tape = at->tapes[--at->ntapes];
        break;
    }
}

const verb verbs_tape[] = {
    {"tape", "flags:4", run_open, IN_STEP, {7, 7, 0, 5}},
    {"watch", "tape:3 t seed", run_watch, IN_STEP, {8, 2, 0, 3}},
    {"gradient", "tape:3 t from wild", run_gradient, IN_STEP, {8, 3, 0, 3}},
    {"gradients",
     "tape:3 t t2 from from2 given:2 wild seed",
     run_gradients,
     IN_STEP,
     {5, 2, 0, 3}},
    {"variable_gradients",
     "tape:3 t v w wild",
     run_variable_gradients,
     IN_STEP,
     {2, 4, 0, 2}},
    {"tape_other", "tape:3 how:4 wild", run_other, IN_STEP, {3, 1, 0, 1}},
};
const size_t count_tape = LSI_COUNT_OF(verbs_tape);
