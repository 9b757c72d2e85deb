/* Keras' formulas, written out once more in double precision. */
#include "lockstep/op.h"
#include "lockstep/optimizer.h"
#include "ls_test.h"

enum { N = 37, STEPS = 5 };

static ls_variable *variable(ls_dtype dtype, const double *from)
{
    ls_variable *v = NULL;
    ls_tensor *t = NULL;
    ls_error err = LS_ERROR_INIT;
    float f[N];

    for (int i = 0; i < N; i++) {
        f[i] = (float)from[i];
    }
    LST_OK(ls_tensor_create(NULL, dtype, LS_SHAPE(N),
                            dtype == LS_F32 ? (const void *)f : (const void *)from, &t,
                            &err));
    LST_OK(ls_variable_create(t, NULL, &v, &err));
    ls_tensor_release(t);
    return v;
}

static ls_tensor *gradient(ls_context *c, ls_dtype dtype, const double *from)
{
    float f[N];

    for (int i = 0; i < N; i++) {
        f[i] = (float)from[i];
    }
    return ls_constant(c, dtype, LS_SHAPE(N),
                       dtype == LS_F32 ? (const void *)f : (const void *)from);
}

struct state {
    double w[N], m[N], v[N], hat[N];
};

typedef void (*formula)(struct state *s, const double *g, int t);

static void sgd(struct state *s, const double *g, int t)
{
    (void)t;
    for (int i = 0; i < N; i++) {
        s->w[i] -= 0.1 * g[i];
    }
}

static void momentum(struct state *s, const double *g, int t)
{
    (void)t;
    for (int i = 0; i < N; i++) {
        s->m[i] = 0.9 * s->m[i] - 0.1 * g[i];
        s->w[i] += s->m[i];
    }
}

static void nesterov(struct state *s, const double *g, int t)
{
    (void)t;
    for (int i = 0; i < N; i++) {
        s->m[i] = 0.9 * s->m[i] - 0.1 * g[i];
        s->w[i] += 0.9 * s->m[i] - 0.1 * g[i];
    }
}

static void adam_step(struct state *s, const double *g, int t, bool amsgrad)
{
    const double alpha = 0.1 * sqrt(1 - pow(0.999, t)) / (1 - pow(0.9, t));

    for (int i = 0; i < N; i++) {
        s->m[i] += (g[i] - s->m[i]) * (1 - 0.9);
        s->v[i] += (g[i] * g[i] - s->v[i]) * (1 - 0.999);
        s->hat[i] = fmax(s->hat[i], s->v[i]);
        s->w[i] -= s->m[i] * alpha / (sqrt(amsgrad ? s->hat[i] : s->v[i]) + 1e-7);
    }
}

static void adam(struct state *s, const double *g, int t)
{
    adam_step(s, g, t, false);
}

static void amsgrad(struct state *s, const double *g, int t)
{
    adam_step(s, g, t, true);
}

static void follow(ls_optimizer *o, formula f, ls_dtype dtype)
{
    uint64_t random = 7;
    struct state s = {{0}, {0}, {0}, {0}};
    ls_context *c = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_variable *v;
    double g[N], got[N];
    float small[N];

    LST_OK(ls_context_open(NULL, &c, &err));
    for (int i = 0; i < N; i++) {
        s.w[i] = (double)lst_random_f32(&random, -1, 1);
    }
    v = variable(dtype, s.w);
    for (int t = 1; t <= STEPS; t++) {
        ls_tensor *grad;

        for (int i = 0; i < N; i++) {
            g[i] = (double)lst_random_f32(&random, -1, 1);
        }
        (void)ls_read(c, v); // a reader makes the update take new memory
        grad = gradient(c, dtype, g);
        ls_optimizer_apply(c, o, &grad, &v, 1);
        LST_OK(ls_context_finish(c, &err));
        f(&s, g, t);
    }
    if (dtype == LS_F32) {
        LST_OK(ls_tensor_read(ls_read(c, v), small, sizeof small, &err));
    } else {
        LST_OK(ls_tensor_read(ls_read(c, v), got, sizeof got, &err));
    }
    for (int i = 0; i < N; i++) { // Adam's alpha is float32 in Keras: 1e-4 on the step
        LST_CHECK(lst_near(dtype == LS_F32 ? (double)small[i] : got[i], s.w[i], 0, 1e-4));
    }
    LST_CHECK(ls_optimizer_iterations(o) == STEPS);
    ls_variable_release(v);
    ls_context_close(c);
    ls_optimizer_release(o);
}

static ls_optimizer *make_sgd(double mu, bool nest)
{
    ls_sgd_options opts = LS_SGD_OPTIONS_INIT;
    ls_optimizer *o = NULL;
    ls_error err = LS_ERROR_INIT;

    opts.learning_rate = 0.1;
    opts.momentum = mu;
    opts.nesterov = nest;
    LST_OK(ls_sgd_create(&opts, &o, &err));
    return o;
}

static ls_optimizer *make_adam(bool ams)
{
    ls_adam_options opts = LS_ADAM_OPTIONS_INIT;
    ls_optimizer *o = NULL;
    ls_error err = LS_ERROR_INIT;

    opts.learning_rate = 0.1;
    opts.amsgrad = ams;
    LST_OK(ls_adam_create(&opts, &o, &err));
    return o;
}

LST_TEST(sgd_follows_keras)
{
    for (int i = 0; i < 2; i++) {
        const ls_dtype d = i == 0 ? LS_F32 : LS_F64;

        follow(make_sgd(0, false), sgd, d);
        follow(make_sgd(0.9, false), momentum, d);
        follow(make_sgd(0.9, true), nesterov, d);
    }
}

LST_TEST(adam_follows_keras)
{
    for (int i = 0; i < 2; i++) {
        const ls_dtype d = i == 0 ? LS_F32 : LS_F64;

        follow(make_adam(false), adam, d);
        follow(make_adam(true), amsgrad, d);
    }
}

LST_TEST(a_missing_gradient_leaves_its_variable_alone)
{
    const double zero[N] = {0}, one[N] = {1};
    ls_context *c = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_optimizer *o = make_adam(false);
    ls_variable *v[2] = {variable(LS_F32, one), variable(LS_F32, one)};
    ls_tensor *g[2] = {NULL, NULL};

    LST_OK(ls_context_open(NULL, &c, &err));
    g[1] = gradient(c, LS_F32, one);
    ls_optimizer_apply(c, o, g, v, 2);
    LST_CHECK(((const float *)ls_tensor_data(ls_read(c, v[0])))[0] == 1);
    LST_CHECK(((const float *)ls_tensor_data(ls_read(c, v[1])))[0] < 1);
    LST_CHECK(ls_optimizer_slot(o, v[1], "velocity") != NULL);
    LST_CHECK(ls_optimizer_slot(o, v[0], "velocity") == NULL);
    LST_CHECK(ls_optimizer_slot(o, v[1], "speed") == NULL);
    LST_OK(ls_context_finish(c, &err));
    g[1] = NULL;
    ls_optimizer_apply(c, o, g, v, 2);
    LST_FAILS(ls_context_finish(c, &err), LS_INVALID_ARGUMENT, err, "no variable has");
    g[0] = ls_constant(c, LS_F32, LS_SHAPE(2), zero);
    ls_optimizer_apply(c, o, g, v, 2);
    LST_FAILS(ls_context_finish(c, &err), LS_INVALID_ARGUMENT, err, "'Variable'");
    ls_variable_release(v[0]);
    ls_variable_release(v[1]);
    ls_optimizer_release(o);
    ls_context_close(c);
}

LST_TEST(minimize_walks_downhill)
{
    double w[N];
    ls_context *c = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_optimizer *o = make_sgd(0, false);
    ls_variable *v;
    double first = 0, last = 0;

    for (int i = 0; i < N; i++) {
        w[i] = i;
    }
    v = variable(LS_F32, w);
    LST_OK(ls_context_open(NULL, &c, &err));
    for (int step = 0; step < 100; step++) {
        ls_tape *tape = ls_tape_open(c, NULL);
        ls_tensor *loss = ls_sum(c, ls_square(c, ls_read(c, v)), NULL, 0, false);

        ls_optimizer_minimize(c, o, tape, loss, &v, 1);
        last = ls_item(c, loss);
        first = step == 0 ? last : first;
        LST_OK(ls_context_finish(c, &err));
    }
    LST_CHECK(first > 100 && last < 1e-6);
    ls_variable_release(v);
    ls_optimizer_release(o);
    ls_context_close(c);
}

LST_TEST(nonsense_options_are_refused)
{
    ls_sgd_options s = LS_SGD_OPTIONS_INIT;
    ls_adam_options a = LS_ADAM_OPTIONS_INIT;
    ls_optimizer *o = NULL;
    ls_error err = LS_ERROR_INIT;

    s.learning_rate = (double)NAN;
    LST_FAILS(ls_sgd_create(&s, &o, &err), LS_INVALID_ARGUMENT, err, "nan");
    s.learning_rate = 1;
    s.momentum = 2;
    LST_FAILS(ls_sgd_create(&s, &o, &err), LS_INVALID_ARGUMENT, err, "momentum 2");
    a.beta1 = 1;
    LST_FAILS(ls_adam_create(&a, &o, &err), LS_INVALID_ARGUMENT, err, "beta1 1");
    a.struct_size = 3;
    LST_FAILS(ls_adam_create(&a, &o, &err), LS_INVALID_ARGUMENT, err, "_INIT");
    LST_FAILS(ls_adam_create(NULL, NULL, &err), LS_INVALID_ARGUMENT, err, "out");
    LST_CHECK(o == NULL);
}

LST_MAIN(LST_CASE(sgd_follows_keras), LST_CASE(adam_follows_keras),
         LST_CASE(a_missing_gradient_leaves_its_variable_alone),
         LST_CASE(minimize_walks_downhill), LST_CASE(nonsense_options_are_refused))
