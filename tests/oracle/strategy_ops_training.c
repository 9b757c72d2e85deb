/* Operators: losses, optimizers and metrics. */
#include "strategy_machine.h"
#include "train_optimizer.h"

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

static ls_value *op_average_loss(const scene *s, json_t *e)
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

static ls_value *op_regularization_loss(const scene *s, json_t *e)
{
    ls_tensor *t = machine_eval_tensor(s, json_array_get(e, 1));

    return t == NULL ? NULL : machine_of_tensor(s, ls_scale_regularization_loss(s->c, t));
}

/* ---- optimizers ---- */

static ls_value *op_optimizer(const scene *s, json_t *e)
{
    const train_optimizer_maker make =
        train_optimizer_named(json_string_value(json_array_get(e, 1)));
    ls_error err = LS_ERROR_INIT;
    ls_optimizer *made = NULL;
    ls_value *out;

    if (make == NULL) {
        return machine_wrong(s, "no optimizer is called so");
    }
    if (make(json_array_get(e, 2), s->m->keras3, &made, &err) != LS_OK) {
        return machine_fail(s, &err);
    }
    out = machine_of_thing(s, &(thing){.kind = THING_OPTIMIZER, .optimizer = made});
    ls_optimizer_release(made);
    return out;
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

static ls_value *op_apply(const scene *s, json_t *e)
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

static ls_value *op_iterations(const scene *s, json_t *e)
{
    const thing *o = machine_eval_thing(s, json_array_get(e, 1), THING_OPTIMIZER);

    return o == NULL
               ? NULL
               : machine_of_tensor(
                     s, ls_constant_i64(s->c, ls_optimizer_iterations(o->optimizer)));
}

/* ---- metrics ---- */

static ls_value *op_metric(const scene *s, json_t *e)
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

static ls_value *op_metric_add(const scene *s, json_t *e)
{
    const thing *m = machine_eval_thing(s, json_array_get(e, 1), THING_METRIC);
    ls_tensor *t = m == NULL ? NULL : machine_eval_tensor(s, json_array_get(e, 2));

    if (t == NULL) {
        return NULL;
    }
    ls_metric_add(s->c, m->metric, t, NULL);
    return machine_done(s);
}

static ls_value *op_metric_result(const scene *s, json_t *e)
{
    const thing *m = machine_eval_thing(s, json_array_get(e, 1), THING_METRIC);

    return m == NULL ? NULL : machine_of_tensor(s, ls_metric_result(s->c, m->metric));
}

const operation machine_training[] = {
    {"average_loss", op_average_loss, 1, 2},
    {"regularization_loss", op_regularization_loss, 1, 1},
    {"optimizer", op_optimizer, 2, 2},
    {"apply", op_apply, 2, 2},
    {"iterations", op_iterations, 1, 1},
    {"metric", op_metric, 1, 1},
    {"metric_add", op_metric_add, 2, 2},
    {"metric_result", op_metric_result, 1, 1},
    {NULL, NULL, 0, 0},
};
