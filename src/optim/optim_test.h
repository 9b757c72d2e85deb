/* Helpers for the tests of optimizers: the formulas of Keras, computed in double. */
#ifndef OPTIM_TEST_H
#define OPTIM_TEST_H
#include "ls_test.h"
#include "optim/optim.h"

typedef struct recipe {
    const char *kind;
    double momentum;
    bool nesterov, amsgrad, centered;
    ls_optimizer_shared shared;
} recipe;

enum { LST_MOST = 64 };
#define LST_RATE 0.1 /* the learning rate of every recipe */

/* One variable and its slots a, b and c, whose meaning depends on the formula. */
typedef struct state {
    double w[LST_MOST], a[LST_MOST], b[LST_MOST], c[LST_MOST];
} state;

static inline ls_optimizer *make_optimizer(const recipe *r)
{
    ls_sgd_options sgd = LS_SGD_OPTIONS_INIT;
    ls_adam_options adam = LS_ADAM_OPTIONS_INIT;
    ls_adamw_options adamw = LS_ADAMW_OPTIONS_INIT;
    ls_rmsprop_options rmsprop = LS_RMSPROP_OPTIONS_INIT;
    ls_adagrad_options adagrad = LS_ADAGRAD_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    ls_optimizer *o = NULL;

    sgd.learning_rate = adam.learning_rate = adamw.learning_rate = LST_RATE;
    rmsprop.learning_rate = adagrad.learning_rate = LST_RATE;
    sgd.shared = adam.shared = adamw.shared = r->shared;
    rmsprop.shared = adagrad.shared = r->shared;
    sgd.momentum = rmsprop.momentum = r->momentum;
    sgd.nesterov = r->nesterov;
    adam.amsgrad = adamw.amsgrad = r->amsgrad;
    rmsprop.centered = r->centered;
    if (strcmp(r->kind, "SGD") == 0) {
        LST_OK(ls_sgd_create(&sgd, &o, &err));
    } else if (strcmp(r->kind, "Adam") == 0) {
        LST_OK(ls_adam_create(&adam, &o, &err));
    } else if (strcmp(r->kind, "AdamW") == 0) {
        LST_OK(ls_adamw_create(&adamw, &o, &err));
    } else if (strcmp(r->kind, "RMSprop") == 0) {
        LST_OK(ls_rmsprop_create(&rmsprop, &o, &err));
    } else {
        LST_OK(ls_adagrad_create(&adagrad, &o, &err));
    }
    if (o == NULL) {
        abort(); // all further checks would be meaningless
    }
    LST_CHECK(strcmp(ls_optimizer_name(o), r->kind) == 0);
    return o;
}

static inline void sgd_formula(const recipe *r, state *s, int i, double g)
{
    s->a[i] = r->momentum * s->a[i] - LST_RATE * g;
    s->w[i] += r->nesterov ? r->momentum * s->a[i] - LST_RATE * g : s->a[i];
}

static inline void adam_formula(const recipe *r, state *s, int i, double g, double g2,
                                int t)
{
    const double alpha = LST_RATE * sqrt(1 - pow(0.999, t)) / (1 - pow(0.9, t));

    s->a[i] += (g - s->a[i]) * (1 - 0.9);
    s->b[i] += (g2 - s->b[i]) * (1 - 0.999);
    s->c[i] = fmax(s->c[i], s->b[i]);
    s->w[i] -= s->a[i] * alpha / (sqrt(r->amsgrad ? s->c[i] : s->b[i]) + 1e-7);
}

static inline void rmsprop_formula(const recipe *r, state *s, int i, double g, double g2)
{
    double variance;

    s->a[i] = 0.9 * s->a[i] + (1 - 0.9) * g2;
    s->b[i] = 0.9 * s->b[i] + (1 - 0.9) * g;
    variance = r->centered ? s->a[i] - s->b[i] * s->b[i] : s->a[i];
    s->c[i] = r->momentum * s->c[i] + LST_RATE * g / sqrt(variance + 1e-7);
    s->w[i] -= s->c[i];
}

static inline void adagrad_formula(state *s, int i, double g, double g2)
{
    s->a[i] += g2;
    s->w[i] -= LST_RATE * g / sqrt(0.1 + s->a[i] + 1e-7);
}

/* Step t with gradient g and g2 as its squares (NULL: the squares of g). */
static inline void follow_formula(const recipe *r, state *s, const double *g,
                                  const double *g2, int n, int t)
{
    for (int i = 0; i < n; i++) {
        const double square = g2 == NULL ? g[i] * g[i] : g2[i];

        s->w[i] -= s->w[i] * r->shared.weight_decay * LST_RATE;
        if (strcmp(r->kind, "SGD") == 0) {
            sgd_formula(r, s, i, g[i]);
        } else if (strcmp(r->kind, "RMSprop") == 0) {
            rmsprop_formula(r, s, i, g[i], square);
        } else if (strcmp(r->kind, "Adagrad") == 0) {
            adagrad_formula(s, i, g[i], square);
        } else {
            adam_formula(r, s, i, g[i], square, t);
        }
    }
}

static inline ls_tensor *tensor_of(ls_device *dev, ls_dtype dtype, ls_shape shape,
                                   const double *from, int n)
{
    ls_error err = LS_ERROR_INIT;
    ls_tensor *t = NULL;
    float f[LST_MOST];

    for (int i = 0; i < n; i++) {
        f[i] = (float)from[i];
    }
    LST_OK(ls_tensor_create(dev, dtype, shape,
                            dtype == LS_F32 ? (const void *)f : (const void *)from, &t,
                            &err));
    return t;
}

static inline ls_variable *variable_of(ls_device *dev, ls_dtype dtype, ls_shape shape,
                                       const double *from, int n)
{
    ls_error err = LS_ERROR_INIT;
    ls_tensor *t = tensor_of(dev, dtype, shape, from, n);
    ls_variable *v = NULL;

    LST_OK(ls_variable_create(t, NULL, &v, &err));
    ls_tensor_release(t);
    return v;
}

/* Element i of the current value; NaN if there is none. */
static inline double at(ls_variable *v, int i)
{
    ls_tensor *t = NULL;
    double x = (double)NAN;

    if (v != NULL && ls_variable_value(v, &t, NULL) == LS_OK) {
        x = lsi_element(t, i);
    }
    ls_tensor_release(t);
    return x;
}
#endif
