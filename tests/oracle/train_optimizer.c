/* Creates an optimizer from the arguments that a line gives. */
#include "train_optimizer.h"

#include <string.h>

static void read_number(const json_t *given, const char *name, double *out)
{
    const json_t *n = json_object_get(given, name);

    if (json_is_number(n)) {
        *out = json_number_value(n);
    }
}

static bool flag(const json_t *given, const char *name)
{
    return json_is_true(json_object_get(given, name));
}

/* The arguments that all optimizers have. */
static void read_common(const json_t *given, bool keras3, double *learning_rate,
                        ls_optimizer_shared *out)
{
    read_number(given, "learning_rate", learning_rate);
    read_number(given, "weight_decay", &out->weight_decay);
    read_number(given, "clipvalue", &out->clipvalue);
    read_number(given, "clipnorm", &out->clipnorm);
    read_number(given, "global_clipnorm", &out->global_clipnorm);
    out->keras3 = keras3;
}

static ls_status make_sgd(const json_t *given, bool keras3, ls_optimizer **out,
                          ls_error *err)
{
    ls_sgd_options o = LS_SGD_OPTIONS_INIT;

    read_number(given, "momentum", &o.momentum);
    o.nesterov = flag(given, "nesterov");
    read_common(given, keras3, &o.learning_rate, &o.shared);
    return ls_sgd_create(&o, out, err);
}

/* The arguments that Adam and AdamW have. */
static void read_moments(const json_t *given, double *beta1, double *beta2,
                         double *epsilon, bool *amsgrad)
{
    read_number(given, "beta_1", beta1);
    read_number(given, "beta_2", beta2);
    read_number(given, "epsilon", epsilon);
    *amsgrad = flag(given, "amsgrad");
}

static ls_status make_adam(const json_t *given, bool keras3, ls_optimizer **out,
                           ls_error *err)
{
    ls_adam_options o = LS_ADAM_OPTIONS_INIT;

    read_moments(given, &o.beta1, &o.beta2, &o.epsilon, &o.amsgrad);
    read_common(given, keras3, &o.learning_rate, &o.shared);
    return ls_adam_create(&o, out, err);
}

static ls_status make_adamw(const json_t *given, bool keras3, ls_optimizer **out,
                            ls_error *err)
{
    ls_adamw_options o = LS_ADAMW_OPTIONS_INIT;

    read_moments(given, &o.beta1, &o.beta2, &o.epsilon, &o.amsgrad);
    read_common(given, keras3, &o.learning_rate, &o.shared);
    return ls_adamw_create(&o, out, err);
}

static ls_status make_rmsprop(const json_t *given, bool keras3, ls_optimizer **out,
                              ls_error *err)
{
    ls_rmsprop_options o = LS_RMSPROP_OPTIONS_INIT;

    read_number(given, "rho", &o.rho);
    read_number(given, "momentum", &o.momentum);
    read_number(given, "epsilon", &o.epsilon);
    o.centered = flag(given, "centered");
    read_common(given, keras3, &o.learning_rate, &o.shared);
    return ls_rmsprop_create(&o, out, err);
}

static ls_status make_adagrad(const json_t *given, bool keras3, ls_optimizer **out,
                              ls_error *err)
{
    ls_adagrad_options o = LS_ADAGRAD_OPTIONS_INIT;

    read_number(given, "initial_accumulator_value", &o.initial_accumulator_value);
    read_number(given, "epsilon", &o.epsilon);
    read_common(given, keras3, &o.learning_rate, &o.shared);
    return ls_adagrad_create(&o, out, err);
}

train_optimizer_maker train_optimizer_named(const char *kind)
{
    static const struct {
        const char *kind;
        train_optimizer_maker make;
    } kinds[] = {{"SGD", make_sgd},         {"v1.GradientDescentOptimizer", make_sgd},
                 {"Adam", make_adam},       {"AdamW", make_adamw},
                 {"RMSprop", make_rmsprop}, {"Adagrad", make_adagrad}};

    for (size_t i = 0; kind != NULL && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kind, kinds[i].kind) == 0) {
            return kinds[i].make;
        }
    }
    return NULL;
}
