/*
 * ls_optimizer_apply() and _minimize() for every optimizer: checks, the order of the
 * parts of a step, and queries.
 */
#include "optim/optim.h"

#include <math.h>
#include <stdio.h>

bool lsi_within(double x, double low, double high)
{
    return x >= low && x <= high && !isinf(x);
}

ls_status lsi_optimizer_options(const char *name, const char *init, bool fits,
                                ls_optimizer **out, ls_error *err)
{
    if (out == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "%s: out is NULL", name);
    }
    if (!fits) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "%s: start the options from %s",
                        name, init);
    }
    return LS_OK;
}

static ls_status check_shared(const char *name, const ls_optimizer_shared *s,
                              ls_error *err)
{
    const struct {
        const char *name;
        double value;
    } all[] = {{"weight_decay", s->weight_decay},
               {"clipvalue", s->clipvalue},
               {"clipnorm", s->clipnorm},
               {"global_clipnorm", s->global_clipnorm}};
    int clips = 0;

    for (size_t i = 0; i < LSI_COUNT_OF(all); i++) {
        if (!lsi_within(all[i].value, 0, HUGE_VAL)) {
            return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                 "%s: %s %g is not a number of 0 (none) or more", name,
                                 all[i].name, all[i].value);
        }
        clips += i > 0 && all[i].value > 0;
    }
    if (clips > 1) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "%s: only one of clipnorm, clipvalue and global_clipnorm "
                             "can be set; they are %g, %g and %g",
                             name, s->clipnorm, s->clipvalue, s->global_clipnorm);
    }
    return LS_OK;
}

ls_status lsi_optimizer_new(const char *name, const lsi_optim_ops *ops,
                            double learning_rate, const ls_optimizer_shared *shared,
                            ls_optimizer **out, ls_error *err)
{
    ls_optimizer *o;
    ls_status st;

    if (!lsi_within(learning_rate, 0, HUGE_VAL)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "%s: the learning rate %g is not a number of 0 or more",
                             name, learning_rate);
    }
    st = check_shared(name, shared, err);
    if (st != LS_OK) {
        return st;
    }
    o = lsi_alloc(1, sizeof *o);
    if (o == NULL) {
        return lsi_fail_memory(err, name, sizeof *o);
    }
    atomic_init(&o->refs, 1);
    o->name = name;
    o->ops = ops;
    while (o->slot_count < LSI_MAX_SLOTS && ops->slots[o->slot_count] != NULL) {
        o->slot_count++;
    }
    o->learning_rate = learning_rate;
    o->shared = *shared;
    o->make_slot = lsi_slot_like;
    *out = o;
    return LS_OK;
}

ls_optimizer *ls_optimizer_retain(ls_optimizer *o)
{
    if (o != NULL) {
        atomic_fetch_add(&o->refs, 1);
    }
    return o;
}

void ls_optimizer_release(ls_optimizer *o)
{
    if (o == NULL || atomic_fetch_sub(&o->refs, 1) != 1) {
        return;
    }
    lsi_optimizer_free_slots(o);
    lsi_free(o);
}

static bool gradient_fits(const ls_variable *v, const ls_tensor *g)
{
    const ls_shape shape = ls_tensor_shape(g);

    return lsi_dtype_is_float(v->dtype) && g->dtype == (uint8_t)v->dtype &&
           ls_shape_equal(&shape, &v->shape);
}

/* Logs once which variables have no gradient, as Keras does: usually it is a mistake. */
static void warn_of_missing(ls_optimizer *o, ls_tensor *const *grads,
                            ls_variable *const *vars, size_t n, size_t missing)
{
    enum { NAMED = 8 }; // a log line has limited length
    char names[600] = "";
    size_t length = 0, named = 0;

    if (atomic_exchange(&o->warned, true)) {
        return;
    }
    for (size_t i = 0; i < n && named < NAMED; i++) {
        if (grads[i] == NULL) {
            const int more = snprintf(names + length, sizeof names - length, "%s'%.64s'",
                                      named > 0 ? ", " : "", vars[i]->name);

            length += more > 0 ? (size_t)more : 0;
            named++;
        }
    }
    lsi_log(LS_LOG_WARNING,
            "%s: %zu of %zu variables have no gradient and stay as they are: %s%s; does "
            "the loss depend on them?",
            o->name, missing, n, names, missing > named ? ", ..." : "");
}

bool lsi_optimizer_check(ls_context *c, ls_optimizer *o, ls_tensor *const *grads,
                         ls_variable *const *vars, size_t n)
{
    size_t given = 0;
    char shape[128];

    for (size_t i = 0; i < n; i++) {
        if (vars[i] == NULL) {
            (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "%s: variable %zu is NULL",
                                  o->name, i);
            return false;
        }
        if (grads[i] != NULL && !gradient_fits(vars[i], grads[i])) {
            (void)ls_context_fail(c, LS_INVALID_ARGUMENT,
                                  "%s: the variable '%s' is %s %s, its gradient %s",
                                  o->name, vars[i]->name, ls_dtype_name(vars[i]->dtype),
                                  ls_shape_text(&vars[i]->shape, shape, sizeof shape),
                                  lsi_text_of(grads[i]).s);
            return false;
        }
        given += grads[i] != NULL;
    }
    if (given == 0) {
        ls_error e = LS_ERROR_INIT;

        (void)lsi_fail_kind(&e, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                            "%s: no variable has a gradient: is the loss computed from "
                            "them while the tape is open?",
                            o->name);
        (void)lsi_context_error(c, &e);
    } else if (given < n && !atomic_load_explicit(&o->warned, memory_order_relaxed)) {
        warn_of_missing(o, grads, vars, n, n - given);
    }
    return given > 0;
}

void lsi_optimizer_prepare(const ls_optimizer *o, lsi_optimizer_turn *turn)
{
    turn->t = o->iterations + 1;
    turn->rate = o->learning_rate;
    turn->alpha = turn->rate;
    turn->alpha32 = (float)turn->rate;
    if (o->ops->prepare != NULL) {
        o->ops->prepare(o, turn);
    }
}

void lsi_optimizer_advance(ls_optimizer *o)
{
    o->iterations++;
}

/* True in replica context or where no strategy is current; else fails the context. */
static bool may_apply_here(ls_context *c, const ls_optimizer *o)
{
    ls_error e = LS_ERROR_INIT;

    if (!ls_has_strategy() || !ls_in_cross_replica_context()) {
        return true;
    }
    (void)lsi_fail_kind(&e, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                        "%s: gradients are applied inside of replica functions, not in "
                        "cross-replica context; call it in the function of "
                        "ls_strategy_run()",
                        o->name);
    (void)lsi_context_error(c, &e);
    return false;
}

void(ls_optimizer_apply)(ls_context *c, ls_optimizer *o, ls_tensor *const *grads,
                         ls_variable *const *vars, size_t n)
{
    const lsi_gradients from = {.given = true, .grads = grads};

    if (lsi_failed(c)) {
        return;
    }
    if (o == NULL || (n > 0 && (grads == NULL || vars == NULL))) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "optimizer: %s is NULL",
                              o == NULL       ? "it"
                              : grads == NULL ? "the list of gradients"
                                              : "the list of variables");
        return;
    }
    if (may_apply_here(c, o)) {
        lsi_optimizer_step(c, o, &from, vars, n);
    }
}

void(ls_optimizer_minimize)(ls_context *c, ls_optimizer *o, ls_tape *tape,
                            ls_tensor *loss, ls_variable *const *vars, size_t n)
{
    const lsi_gradients from = {.tape = tape, .loss = loss};

    if (lsi_failed(c)) {
        return;
    }
    if (o == NULL || (n > 0 && vars == NULL)) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "optimizer: %s is NULL",
                              o == NULL ? "it" : "the list of variables");
        return;
    }
    if (may_apply_here(c, o)) {
        lsi_optimizer_step(c, o, &from, vars, n);
    }
}

double ls_optimizer_learning_rate(const ls_optimizer *o)
{
    return o != NULL ? o->learning_rate : 0;
}

void ls_optimizer_set_learning_rate(ls_optimizer *o, double rate)
{
    if (o != NULL) {
        o->learning_rate = rate;
    }
}

int64_t ls_optimizer_iterations(const ls_optimizer *o)
{
    return o != NULL ? o->iterations : 0;
}

const char *ls_optimizer_name(const ls_optimizer *o)
{
    return o != NULL ? o->name : NULL;
}
