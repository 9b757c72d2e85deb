/* Losses, optimizers and metrics. */
#include "strategy_machine.h"

#include <string.h>

/* ---- losses ---- */

static ls_tensor *eval_weight(const scene *s, json_t *e, const ls_tensor *losses)
{
    ls_value *v = machine_eval(s, e);

    if (v == NULL) {
        return NULL;
    }
    return machine_is_literal(v) ? machine_literal(s, v, ls_tensor_dtype(losses))
                                 : machine_tensor(s, v);
}

static ls_value *average_loss(const scene *s, json_t *e)
{
    json_t *o = json_array_get(e, 2);
    json_t *weight = json_object_get(o, "weight"), *global = json_object_get(o, "global");
    ls_tensor *losses = machine_eval_tensor(s, json_array_get(e, 1)), *weights = NULL;
    ls_value *batch;

    if (losses == NULL ||
        (weight != NULL && (weights = eval_weight(s, weight, losses)) == NULL)) {
        return NULL;
    }
    if (global == NULL) {
        return machine_of_tensor(
            s, ls_average_loss(s->c, losses, weights, LS_BATCH_OF_REPLICAS));
    }
    batch = machine_eval(s, global);
    return batch == NULL ? NULL
                         : machine_of_tensor(
                               s, ls_average_loss_value(s->c, losses, weights, batch));
}

static ls_value *regularization_loss(const scene *s, json_t *e)
{
    ls_tensor *t = machine_eval_tensor(s, json_array_get(e, 1));

    return t == NULL ? NULL : machine_of_tensor(s, ls_scale_regularization_loss(s->c, t));
}

/* ---- optimizers ---- */

static double number_or(const json_t *o, const char *name, double otherwise)
{
    const json_t *n = json_object_get(o, name);

    return json_is_number(n) ? json_number_value(n) : otherwise;
}

static void read_shared(const json_t *o, bool keras3, ls_optimizer_shared *out)
{
    out->weight_decay = number_or(o, "weight_decay", out->weight_decay);
    out->clipvalue = number_or(o, "clipvalue", 0);
    out->clipnorm = number_or(o, "clipnorm", 0);
    out->global_clipnorm = number_or(o, "global_clipnorm", 0);
    out->keras3 = keras3;
}

static ls_status make_sgd(const json_t *o, bool keras3, ls_optimizer **out, ls_error *err)
{
    ls_sgd_options k = LS_SGD_OPTIONS_INIT;

    k.learning_rate = number_or(o, "learning_rate", k.learning_rate);
    k.momentum = number_or(o, "momentum", k.momentum);
    k.nesterov = json_is_true(json_object_get(o, "nesterov"));
    read_shared(o, keras3, &k.shared);
    return ls_sgd_create(&k, out, err);
}

static ls_status make_adam(const json_t *o, bool keras3, ls_optimizer **out,
                           ls_error *err)
{
    ls_adam_options k = LS_ADAM_OPTIONS_INIT;

    k.learning_rate = number_or(o, "learning_rate", k.learning_rate);
    k.beta1 = number_or(o, "beta_1", k.beta1);
    k.beta2 = number_or(o, "beta_2", k.beta2);
    k.epsilon = number_or(o, "epsilon", k.epsilon);
    k.amsgrad = json_is_true(json_object_get(o, "amsgrad"));
    read_shared(o, keras3, &k.shared);
    return ls_adam_create(&k, out, err);
}

static ls_status make_adamw(const json_t *o, bool keras3, ls_optimizer **out,
                            ls_error *err)
{
    ls_adamw_options k = LS_ADAMW_OPTIONS_INIT;

    k.learning_rate = number_or(o, "learning_rate", k.learning_rate);
    k.beta1 = number_or(o, "beta_1", k.beta1);
    k.beta2 = number_or(o, "beta_2", k.beta2);
    k.epsilon = number_or(o, "epsilon", k.epsilon);
    k.amsgrad = json_is_true(json_object_get(o, "amsgrad"));
    read_shared(o, keras3, &k.shared);
    return ls_adamw_create(&k, out, err);
}

static ls_status make_rmsprop(const json_t *o, bool keras3, ls_optimizer **out,
                              ls_error *err)
{
    ls_rmsprop_options k = LS_RMSPROP_OPTIONS_INIT;

    k.learning_rate = number_or(o, "learning_rate", k.learning_rate);
    k.rho = number_or(o, "rho", k.rho);
    k.momentum = number_or(o, "momentum", k.momentum);
    k.epsilon = number_or(o, "epsilon", k.epsilon);
    k.centered = json_is_true(json_object_get(o, "centered"));
    read_shared(o, keras3, &k.shared);
    return ls_rmsprop_create(&k, out, err);
}

static ls_status make_adagrad(const json_t *o, bool keras3, ls_optimizer **out,
                              ls_error *err)
{
    ls_adagrad_options k = LS_ADAGRAD_OPTIONS_INIT;

    k.learning_rate = number_or(o, "learning_rate", k.learning_rate);
    k.initial_accumulator_value =
        number_or(o, "initial_accumulator_value", k.initial_accumulator_value);
    k.epsilon = number_or(o, "epsilon", k.epsilon);
    read_shared(o, keras3, &k.shared);
    return ls_adagrad_create(&k, out, err);
}

static ls_value *optimizer(const scene *s, json_t *e)
{
    static const struct {
        const char *kind;
        ls_status (*make)(const json_t *o, bool keras3, ls_optimizer **out,
                          ls_error *err);
    } kinds[] = {{"SGD", make_sgd},         {"v1.GradientDescentOptimizer", make_sgd},
                 {"Adam", make_adam},       {"AdamW", make_adamw},
                 {"RMSprop", make_rmsprop}, {"Adagrad", make_adagrad}};
    const char *kind = json_string_value(json_array_get(e, 1));
    ls_error err = LS_ERROR_INIT;
    ls_optimizer *made = NULL;
    ls_value *out;

    for (size_t i = 0; kind != NULL && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].kind, kind) != 0) {
            continue;
        }
        if (kinds[i].make(json_array_get(e, 2), s->m->keras3, &made, &err) != LS_OK) {
            return machine_fail(s, &err);
        }
        out = machine_of_thing(s, &(thing){.kind = THING_OPTIMIZER, .optimizer = made});
        ls_optimizer_release(made);
        return out;
    }
    return machine_wrong(s, "no optimizer is called so");
}

/* Slices without a dense shape are rows of the variable they belong to. */
static ls_tensor *fit_rows(const scene *s, ls_tensor *g, const ls_variable *v)
{
    const ls_tensor *values = NULL, *indices = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_tensor *out = NULL;

    if (g == NULL || !ls_tensor_slices(g, &values, &indices) ||
        ls_tensor_dim(g, 0) != MACHINE_NO_ROWS) {
        return g;
    }
    if (ls_tensor_create_slices((ls_tensor *)(uintptr_t)values,
                                (ls_tensor *)(uintptr_t)indices, ls_variable_shape(v),
                                &out, &err) != LS_OK) {
        (void)machine_fail(s, &err);
        return NULL;
    }
    return ls_adopt(s->c, out);
}

static ls_value *apply(const scene *s, json_t *e)
{
    const thing *o = machine_eval_thing(s, json_array_get(e, 1), THING_OPTIMIZER);
    json_t *pairs = json_array_get(e, 2);
    const size_t n = json_array_size(pairs);
    ls_tensor *grads[MACHINE_MAX_ITEMS];
    ls_variable *vars[MACHINE_MAX_ITEMS];

    if (o == NULL) {
        return NULL;
    }
    if (n > MACHINE_MAX_ITEMS) {
        return machine_wrong(s, "%zu gradients are too many", n);
    }
    for (size_t i = 0; i < n; i++) {
        json_t *pair = json_array_get(pairs, i);
        ls_value *g = machine_eval(s, json_array_get(pair, 0));
        const bool missing = ls_value_kind_of(g) == LS_VALUE_NONE;

        vars[i] = g == NULL ? NULL : machine_eval_variable(s, json_array_get(pair, 1));
        if (vars[i] == NULL) {
            return NULL;
        }
        grads[i] = missing ? NULL : fit_rows(s, machine_tensor(s, g), vars[i]);
        if (grads[i] == NULL && !missing) {
            return NULL;
        }
    }
    ls_optimizer_apply(s->c, o->optimizer, grads, vars, n);
    return machine_done(s);
}

static ls_value *iterations(const scene *s, json_t *e)
{
    const thing *o = machine_eval_thing(s, json_array_get(e, 1), THING_OPTIMIZER);

    return o == NULL
               ? NULL
               : machine_of_tensor(
                     s, ls_constant_i64(s->c, ls_optimizer_iterations(o->optimizer)));
}

/* ---- metrics ---- */

static ls_value *metric(const scene *s, json_t *e)
{
    const char *kind = json_string_value(json_array_get(e, 1));
    ls_error err = LS_ERROR_INIT;
    ls_metric *made = NULL;
    ls_value *out;

    if (kind == NULL || strcmp(kind, "Mean") != 0) {
        return machine_wrong(s, "no metric is called so");
    }
    if (ls_metric_mean_create(NULL, &made, &err) != LS_OK) {
        return machine_fail(s, &err);
    }
    out = machine_of_thing(s, &(thing){.kind = THING_METRIC, .metric = made});
    ls_metric_release(made);
    return out;
}

static ls_value *metric_add(const scene *s, json_t *e)
{
    const thing *m = machine_eval_thing(s, json_array_get(e, 1), THING_METRIC);
    ls_tensor *t = m == NULL ? NULL : machine_eval_tensor(s, json_array_get(e, 2));

    if (t == NULL) {
        return NULL;
    }
    ls_metric_add(s->c, m->metric, t, NULL);
    return machine_done(s);
}

static ls_value *metric_result(const scene *s, json_t *e)
{
    const thing *m = machine_eval_thing(s, json_array_get(e, 1), THING_METRIC);

    return m == NULL ? NULL : machine_of_tensor(s, ls_metric_result(s->c, m->metric));
}

const operation machine_training[] = {
    {"average_loss", average_loss, 1, 2},
    {"regularization_loss", regularization_loss, 1, 1},
    {"optimizer", optimizer, 2, 2},
    {"apply", apply, 2, 2},
    {"iterations", iterations, 1, 1},
    {"metric", metric, 1, 1},
    {"metric_add", metric_add, 2, 2},
    {"metric_result", metric_result, 1, 1},
    {NULL, NULL, 0, 0},
};
