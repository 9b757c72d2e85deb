/* Tests of each optimizer against its formula, and of what all have in common. */
#include "optim_test.h"

enum { N = 37, STEPS = 5 };

static const recipe RECIPES[] = {
    {"SGD", 0, false, false, false, LS_OPTIMIZER_SHARED_INIT},
    {"SGD", 0.9, false, false, false, LS_OPTIMIZER_SHARED_INIT},
    {"SGD", 0.9, true, false, false, LS_OPTIMIZER_SHARED_INIT},
    {"SGD", 0.9, true, false, false, {.weight_decay = 0.2}},
    {"Adam", 0, false, false, false, LS_OPTIMIZER_SHARED_INIT},
    {"Adam", 0, false, true, false, LS_OPTIMIZER_SHARED_INIT},
    {"Adam", 0, false, true, false, {.weight_decay = 0.2}},
    {"AdamW", 0, false, false, false, LS_OPTIMIZER_SHARED_INIT},
    {"AdamW", 0, false, false, false, {.weight_decay = 0.2}},
    {"AdamW", 0, false, true, false, {.weight_decay = 0.2}},
    {"RMSprop", 0, false, false, false, LS_OPTIMIZER_SHARED_INIT},
    {"RMSprop", 0.5, false, false, false, LS_OPTIMIZER_SHARED_INIT},
    {"RMSprop", 0, false, false, true, LS_OPTIMIZER_SHARED_INIT},
    {"RMSprop", 0.5, false, false, true, {.weight_decay = 0.2}},
    {"Adagrad", 0, false, false, false, LS_OPTIMIZER_SHARED_INIT},
    {"Adagrad", 0, false, false, false, {.weight_decay = 0.2}},
};

static void take_steps(const recipe *r, ls_dtype dtype)
{
    // Keras computes powers in float32
    const double tolerance = dtype == LS_F32 ? 1e-4 : 1e-12;
    uint64_t random = 7;
    state s = {{0}, {0}, {0}, {0}};
    ls_context *c = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_optimizer *o = make_optimizer(r);
    ls_variable *v;

    LST_OK(ls_context_open(NULL, NULL, &c, &err));
    for (int i = 0; i < N; i++) {
        s.w[i] = (double)lst_random_f32(&random, -1, 1);
    }
    v = variable_of(NULL, dtype, LS_SHAPE(N), s.w, N);
    for (int t = 1; t <= STEPS; t++) {
        double g[N];
        ls_tensor *grad;

        for (int i = 0; i < N; i++) {
            g[i] = (double)lst_random_f32(&random, -1, 1);
        }
        (void)(ls_read)(c, v); // a held value makes the update use a new buffer
        grad = tensor_of(NULL, dtype, LS_SHAPE(N), g, N);
        (ls_optimizer_apply)(c, o, &grad, &v, 1);
        LST_OK(ls_context_finish(c, &err));
        ls_tensor_release(grad);
        follow_formula(r, &s, g, NULL, N, t);
        LST_CHECK(ls_optimizer_iterations(o) == t);
    }
    for (int i = 0; i < N; i++) {
        LST_CHECK(lst_near(at(v, i), s.w[i], 0, tolerance));
    }
    ls_variable_release(v);
    ls_context_close(c);
    ls_optimizer_release(o);
}

LST_TEST(five_steps_of_each_optimizer_follow_keras_in_float32)
{
    for (size_t i = 0; i < LSI_COUNT_OF(RECIPES); i++) {
        take_steps(&RECIPES[i], LS_F32);
    }
}

LST_TEST(five_steps_of_each_optimizer_follow_keras_in_float64)
{
    for (size_t i = 0; i < LSI_COUNT_OF(RECIPES); i++) {
        take_steps(&RECIPES[i], LS_F64);
    }
}

/* One step from 1 by the gradient 0.5, in half precision. */
static void take_half_step(const recipe *r, ls_dtype dtype)
{
    const double one[1] = {1}, half[1] = {0.5};
    ls_context *c = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_optimizer *o = make_optimizer(r);
    state s = {{1}, {0}, {0}, {0}};
    ls_tensor *w = tensor_of(NULL, LS_F32, LS_SHAPE(1), one, 1);
    ls_tensor *g = tensor_of(NULL, LS_F32, LS_SHAPE(1), half, 1), *cast;
    ls_variable *v = NULL;

    LST_OK(ls_context_open(NULL, NULL, &c, &err));
    LST_OK(ls_variable_create((ls_cast)(c, w, dtype), NULL, &v, &err));
    cast = (ls_cast)(c, g, dtype);
    (ls_optimizer_apply)(c, o, &cast, &v, 1);
    LST_OK(ls_context_finish(c, &err));
    follow_formula(r, &s, half, NULL, 1, 1);
    LST_CHECK(s.w[0] < 0.99);
    LST_CHECK(lst_near(at(v, 0), s.w[0], 0, dtype == LS_F16 ? 4e-3 : 2e-2));
    ls_tensor_release(w);
    ls_tensor_release(g);
    ls_variable_release(v);
    ls_context_close(c);
    ls_optimizer_release(o);
}

LST_TEST(half_precision_follows_as_far_as_it_can)
{
    for (size_t i = 0; i < LSI_COUNT_OF(RECIPES); i++) {
        take_half_step(&RECIPES[i], LS_F16);
        take_half_step(&RECIPES[i], LS_BF16);
    }
}

static const double ONES[N] = {1, 1, 1};

LST_TEST(a_missing_gradient_leaves_its_variable_alone)
{
    static const recipe r = {"AdamW", 0, false, false, false, {.weight_decay = 0.2}};
    ls_context *c = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_optimizer *o = make_optimizer(&r);
    ls_variable *v[2] = {variable_of(NULL, LS_F32, LS_SHAPE(N), ONES, N),
                         variable_of(NULL, LS_F32, LS_SHAPE(N), ONES, N)};
    ls_tensor *g[2] = {NULL, NULL};

    LST_OK(ls_context_open(NULL, NULL, &c, &err));
    g[1] = (ls_constant)(c, LS_F32, LS_SHAPE(N), NULL);
    (ls_optimizer_apply)(c, o, g, v, 2);
    LST_CHECK(at(v[0], 0) == 1); // it does not decay either
    LST_CHECK(at(v[1], 0) < 1);
    LST_CHECK(ls_optimizer_slot(o, v[1], "velocity") != NULL);
    LST_CHECK(ls_optimizer_slot(o, v[0], "velocity") == NULL);
    LST_CHECK(ls_optimizer_slot(o, v[1], "speed") == NULL);
    LST_OK(ls_context_finish(c, &err));
    g[1] = NULL;
    (ls_optimizer_apply)(c, o, g, v, 2);
    LST_FAILS(ls_context_finish(c, &err), LS_INVALID_ARGUMENT, err, "no variable has");
    g[0] = (ls_constant)(c, LS_F32, LS_SHAPE(2), NULL);
    (ls_optimizer_apply)(c, o, g, v, 2);
    LST_FAILS(ls_context_finish(c, &err), LS_INVALID_ARGUMENT, err, "'Variable'");
    g[0] = (ls_constant)(c, LS_F32, LS_SHAPE(N, 1), NULL);
    (ls_optimizer_apply)(c, o, g, v, 2);
    LST_FAILS(ls_context_finish(c, &err), LS_INVALID_ARGUMENT, err, "(37, 1)");
    LST_CHECK(ls_optimizer_iterations(o) == 1); // failed steps do not count
    ls_variable_release(v[0]);
    ls_variable_release(v[1]);
    ls_optimizer_release(o);
    ls_context_close(c);
}

LST_TEST(minimize_lowers_the_loss)
{
    double w[N];
    ls_context *c = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_optimizer *o = make_optimizer(&RECIPES[0]);
    ls_variable *v;
    double first = 0, last = 0;

    for (int i = 0; i < N; i++) {
        w[i] = i;
    }
    v = variable_of(NULL, LS_F32, LS_SHAPE(N), w, N);
    LST_OK(ls_context_open(NULL, NULL, &c, &err));
    for (int step_in_runtime = 0; step_in_runtime < 100; step_in_runtime++) {
        ls_tape *tape = ls_tape_open(c, NULL);
        ls_tensor *loss = (ls_sum)(c, (ls_square)(c, (ls_read)(c, v)), NULL, 0, false);

        (ls_optimizer_minimize)(c, o, tape, loss, &v, 1);
        last = (ls_item)(c, loss);
        first = step_in_runtime == 0 ? last : first;
        LST_OK(ls_context_finish(c, &err));
    }
    LST_CHECK(first > 100 && last < 1e-6);
    (ls_optimizer_minimize)(c, o, NULL, NULL, NULL, 1);
    LST_FAILS(ls_context_finish(c, &err), LS_INVALID_ARGUMENT, err, "NULL");
    ls_variable_release(v);
    ls_optimizer_release(o);
    ls_context_close(c);
}

/* Applies the gradient `g` of float32 `times` times to a variable of ones. */
static ls_variable *apply_often(ls_optimizer *o, const double *g, int times)
{
    ls_context *c = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_variable *v = variable_of(NULL, LS_F32, LS_SHAPE(N), ONES, N);
    ls_tensor *grad = tensor_of(NULL, LS_F32, LS_SHAPE(N), g, N);

    LST_OK(ls_context_open(NULL, NULL, &c, &err));
    for (int i = 0; i < times; i++) {
        (ls_optimizer_apply)(c, o, &grad, &v, 1);
        LST_OK(ls_context_finish(c, &err));
    }
    ls_tensor_release(grad);
    ls_context_close(c);
    return v;
}

LST_TEST(a_steady_gradient_does_not_make_centered_rmsprop_nan)
{
    static const recipe r = {"RMSprop", 0, false, false, true, LS_OPTIMIZER_SHARED_INIT};
    ls_optimizer *o = make_optimizer(&r);
    double g[N];
    ls_variable *v;

    for (int i = 0; i < N; i++) {
        g[i] = 100.0 + 7.3 * i;
    }
    v = apply_often(o, g, 400); // by then v - a a is rounding error only
    for (int i = 0; i < N; i++) {
        LST_CHECK(isfinite(at(v, i)));
    }
    ls_variable_release(v);
    ls_optimizer_release(o);
}

LST_TEST(slots_have_keras_names_and_first_values)
{
    static const struct {
        recipe r;
        const char *slots[3];
    } cases[] = {
        {{"SGD", 0.9, false, false, false, LS_OPTIMIZER_SHARED_INIT}, {"momentum"}},
        {{"AdamW", 0, false, true, false, LS_OPTIMIZER_SHARED_INIT},
         {"momentum", "velocity", "velocity_hat"}},
        {{"RMSprop", 0.9, false, false, true, LS_OPTIMIZER_SHARED_INIT},
         {"velocity", "momentum", "average_gradient"}},
        {{"RMSprop", 0, false, false, true, LS_OPTIMIZER_SHARED_INIT},
         {"velocity", "average_gradient"}},
    };
    static const recipe adagrad = {"Adagrad", 0,     false,
                                   false,     false, LS_OPTIMIZER_SHARED_INIT};
    const double zero[N] = {0};
    ls_optimizer *o;
    ls_variable *v;

    for (size_t i = 0; i < LSI_COUNT_OF(cases); i++) {
        o = make_optimizer(&cases[i].r);
        v = apply_often(o, zero, 1);
        for (int k = 0; k < 3 && cases[i].slots[k] != NULL; k++) {
            LST_CHECK(at(ls_optimizer_slot(o, v, cases[i].slots[k]), N - 1) == 0);
        }
        ls_variable_release(v);
        ls_optimizer_release(o);
    }
    o = make_optimizer(&adagrad);
    v = apply_often(o, zero, 2);
    LST_CHECK(lst_near(at(ls_optimizer_slot(o, v, "accumulator"), N - 1), 0.1, 0, 1e-8));
    LST_CHECK(at(v, 0) == 1);
    ls_variable_release(v);
    ls_optimizer_release(o);
}

LST_TEST(the_learning_rate_is_that_of_the_step)
{
    ls_optimizer *o = make_optimizer(&RECIPES[0]);
    ls_variable *v;

    LST_CHECK(ls_optimizer_learning_rate(o) == LST_RATE);
    ls_optimizer_set_learning_rate(o, 0.5);
    LST_CHECK(ls_optimizer_learning_rate(o) == 0.5);
    v = apply_often(o, ONES, 1);
    LST_CHECK(at(v, 0) == 0.5);
    ls_variable_release(v);
    ls_optimizer_release(o);
}

LST_TEST(nonsense_options_are_refused)
{
    ls_sgd_options s = LS_SGD_OPTIONS_INIT;
    ls_adam_options a = LS_ADAM_OPTIONS_INIT;
    ls_adamw_options w = LS_ADAMW_OPTIONS_INIT;
    ls_rmsprop_options r = LS_RMSPROP_OPTIONS_INIT;
    ls_adagrad_options g = LS_ADAGRAD_OPTIONS_INIT;
    ls_optimizer *o = NULL;
    ls_error err = LS_ERROR_INIT;

    s.learning_rate = (double)NAN;
    LST_FAILS(ls_sgd_create(&s, &o, &err), LS_INVALID_ARGUMENT, err, "nan");
    s.learning_rate = 1;
    s.momentum = 2;
    LST_FAILS(ls_sgd_create(&s, &o, &err), LS_INVALID_ARGUMENT, err, "momentum 2");
    a.beta1 = 1;
    LST_FAILS(ls_adam_create(&a, &o, &err), LS_INVALID_ARGUMENT, err, "Adam: beta1 1");
    a.struct_size = 3;
    LST_FAILS(ls_adam_create(&a, &o, &err), LS_INVALID_ARGUMENT, err,
              "ADAM_OPTIONS_INIT");
    w.beta2 = -0.5;
    LST_FAILS(ls_adamw_create(&w, &o, &err), LS_INVALID_ARGUMENT, err,
              "AdamW: beta1 0.9");
    w.struct_size = 3;
    LST_FAILS(ls_adamw_create(&w, &o, &err), LS_INVALID_ARGUMENT, err, "ADAMW_OPTIONS");
    r.rho = 1.5;
    LST_FAILS(ls_rmsprop_create(&r, &o, &err), LS_INVALID_ARGUMENT, err, "rho 1.5");
    r.rho = 0.9;
    r.momentum = (double)INFINITY;
    LST_FAILS(ls_rmsprop_create(&r, &o, &err), LS_INVALID_ARGUMENT, err, "momentum inf");
    r.momentum = 0;
    r.epsilon = -1;
    LST_FAILS(ls_rmsprop_create(&r, &o, &err), LS_INVALID_ARGUMENT, err, "epsilon -1");
    r.struct_size = 3;
    LST_FAILS(ls_rmsprop_create(&r, &o, &err), LS_INVALID_ARGUMENT, err, "_INIT");
    g.initial_accumulator_value = -0.1;
    LST_FAILS(ls_adagrad_create(&g, &o, &err), LS_INVALID_ARGUMENT, err, "value -0.1");
    g.initial_accumulator_value = 0;
    g.epsilon = (double)NAN;
    LST_FAILS(ls_adagrad_create(&g, &o, &err), LS_INVALID_ARGUMENT, err, "epsilon nan");
    g.struct_size = 3;
    LST_FAILS(ls_adagrad_create(&g, &o, &err), LS_INVALID_ARGUMENT, err, "_INIT");
    LST_FAILS(ls_adam_create(NULL, NULL, &err), LS_INVALID_ARGUMENT, err, "out");
    LST_FAILS(ls_adamw_create(NULL, NULL, &err), LS_INVALID_ARGUMENT, err, "out");
    LST_FAILS(ls_rmsprop_create(NULL, NULL, &err), LS_INVALID_ARGUMENT, err, "out");
    LST_FAILS(ls_adagrad_create(NULL, NULL, &err), LS_INVALID_ARGUMENT, err, "out");
    LST_CHECK(o == NULL);
}

LST_TEST(nonsense_that_all_share_is_refused)
{
    ls_rmsprop_options r = LS_RMSPROP_OPTIONS_INIT;
    ls_optimizer *o = NULL;
    ls_error err = LS_ERROR_INIT;

    r.shared.weight_decay = -1;
    LST_FAILS(ls_rmsprop_create(&r, &o, &err), LS_INVALID_ARGUMENT, err,
              "weight_decay -1");
    r.shared.weight_decay = 0;
    r.shared.clipvalue = (double)NAN;
    LST_FAILS(ls_rmsprop_create(&r, &o, &err), LS_INVALID_ARGUMENT, err, "clipvalue nan");
    r.shared.clipvalue = 2;
    r.shared.clipnorm = 3;
    LST_FAILS(ls_rmsprop_create(&r, &o, &err), LS_INVALID_ARGUMENT, err, "3, 2 and 0");
    LST_CHECK(err.kind == LS_KIND_VALUE);
    r.shared.clipvalue = 0;
    r.shared.global_clipnorm = 1;
    LST_FAILS(ls_rmsprop_create(&r, &o, &err), LS_INVALID_ARGUMENT, err, "only one of");
    LST_CHECK(o == NULL);
}

/* A whole step on a runtime of its own, while the old value is held. */
static ls_status step_in_runtime(const recipe *r, ls_error *err)
{
    static const double ones[LST_MOST] = {1, 1, 1, 1};
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_runtime *rt = NULL;
    ls_context *c = NULL;
    ls_variable *v = NULL;
    ls_tensor *t = NULL, *held = NULL, *slot = NULL, *now = NULL;
    ls_optimizer *o = NULL;
    ls_rmsprop_options ropts = LS_RMSPROP_OPTIONS_INIT;
    ls_status st;

    opts.threads = 1;
    ropts.momentum = r->momentum;
    ropts.centered = r->centered;
    ropts.shared = r->shared;
    st = ls_runtime_create(&opts, &rt, err);
    if (st == LS_OK) {
        st = ls_context_open(ls_runtime_device(rt, 0), NULL, &c, err);
    }
    if (st == LS_OK) {
        st = ls_tensor_create(ls_runtime_device(rt, 0), LS_F64, LS_SHAPE(LST_MOST), ones,
                              &t, err);
    }
    if (st == LS_OK) {
        st = ls_variable_create(t, NULL, &v, err);
    }
    if (st == LS_OK) {
        st = ls_rmsprop_create(&ropts, &o, err);
    }
    for (int i = 0; i < 2 && st == LS_OK; i++) {
        (ls_optimizer_apply)(c, o, &t, &v, 1);
        st = ls_context_finish(c, err);
        LST_CHECK(ls_optimizer_iterations(o) == i + (st == LS_OK));
        if (st == LS_OK && i == 0) { // the next update must use a new buffer
            st = ls_variable_value(v, &held, err);
        }
        if (st == LS_OK && i == 0) {
            st = ls_variable_value(ls_optimizer_slot(o, v, "velocity"), &slot, err);
        }
    }
    if (st == LS_OK) {
        st = ls_variable_value(v, &now, err);
    }
    LST_CHECK(st != LS_OK || lsi_element(held, 0) > lsi_element(now, 0));
    ls_tensor_release(now);
    ls_tensor_release(held);
    ls_tensor_release(slot);
    ls_tensor_release(t);
    ls_optimizer_release(o);
    ls_variable_release(v);
    ls_context_close(c);
    ls_runtime_release(rt);
    return st;
}

static ls_status step_that_clips(ls_error *err)
{
    static const recipe r = {"RMSprop", 0.5,  false,
                             false,     true, {.weight_decay = 0.1, .clipnorm = 1}};

    return step_in_runtime(&r, err);
}

static ls_status step_that_clips_all(ls_error *err)
{
    static const recipe r = {"RMSprop", 0, false, false, false, {.global_clipnorm = 1}};

    return step_in_runtime(&r, err);
}

LST_TEST(a_step_survives_the_failure_of_any_allocation)
{
    lst_every_allocation(step_that_clips);
    lst_every_allocation(step_that_clips_all);
}

struct lines {
    int count;
    char last[512];
};

static void keep_line(ls_log_level level, const char *line, void *user)
{
    struct lines *l = user;

    LST_CHECK(level == LS_LOG_WARNING);
    l->count++;
    (void)snprintf(l->last, sizeof l->last, "%s", line);
}

LST_TEST(variables_without_a_gradient_are_named_once)
{
    enum { MANY = 12 };
    struct lines l = {0, ""};
    ls_context *c = NULL;
    ls_optimizer *o = NULL;
    ls_variable *v[MANY] = {NULL};
    ls_tensor *grads[MANY] = {NULL}, *zero = NULL;

    LST_OK(ls_context_open(NULL, NULL, &c, NULL));
    LST_OK(ls_sgd_create(NULL, &o, NULL));
    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(2), NULL, &zero, NULL));
    for (int i = 0; i < MANY; i++) {
        ls_variable_options opts = LS_VARIABLE_OPTIONS_INIT;
        char name[] = "v?";

        name[1] = (char)('a' + i);
        opts.name = name;
        LST_OK(ls_variable_create(zero, &opts, &v[i], NULL));
    }
    ls_log_set(LS_LOG_WARNING, keep_line, &l);
    grads[0] = zero;
    grads[1] = zero;
    (ls_optimizer_apply)(c, o, grads, v, 2);
    LST_CHECK(l.count == 0);
    for (int t = 0; t < 3; t++) {
        (ls_optimizer_apply)(c, o, grads, v, 4);
    }
    LST_CHECK(l.count == 1);
    LST_CHECK(strstr(l.last, "2 of 4") != NULL && strstr(l.last, "'vc', 'vd'") != NULL);
    ls_optimizer_release(o);
    LST_OK(ls_sgd_create(NULL, &o, NULL));
    (ls_optimizer_apply)(c, o, grads, v, MANY); // too many to name all
    LST_CHECK(l.count == 2 && strstr(l.last, "'vj', ...") != NULL);
    ls_log_set(LS_LOG_WARNING, NULL, NULL);
    LST_OK(ls_context_finish(c, NULL));
    for (int i = 0; i < MANY; i++) {
        ls_variable_release(v[i]);
    }
    ls_tensor_release(zero);
    ls_optimizer_release(o);
    ls_context_close(c);
}

LST_TEST(slots_are_found_whatever_the_order_of_the_variables)
{
    enum { MANY = 1000 };
    static ls_variable *v[MANY], *turned[MANY];
    static ls_tensor *grads[MANY];
    ls_context *c = NULL;
    ls_optimizer *o = NULL;
    ls_tensor *one = NULL;

    LST_OK(ls_context_open(NULL, NULL, &c, NULL));
    LST_OK(ls_adam_create(NULL, &o, NULL));
    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(1), (const float[]){1}, &one, NULL));
    for (int i = 0; i < MANY; i++) {
        LST_OK(ls_variable_create(one, NULL, &v[i], NULL));
        grads[i] = one;
    }
    LST_CHECK(ls_optimizer_slot(o, v[0], "momentum") == NULL);
    for (int i = 0; i < MANY; i++) {
        turned[i] = v[(i * 7 + 3) % MANY];
    }
    (ls_optimizer_apply)(c, o, grads, v, MANY / 2);
    (ls_optimizer_apply)(c, o, grads, turned, MANY);
    LST_OK(ls_context_finish(c, NULL));
    for (int i = 0; i < MANY; i++) { // each slot has seen the steps of its own variable
        ls_variable *m = ls_optimizer_slot(o, v[i], "momentum");

        LST_CHECK(lst_near(at(m, 0), i < MANY / 2 ? 0.19 : 0.1, 1e-6, 0));
        LST_CHECK(i == 0 || m != ls_optimizer_slot(o, v[i - 1], "momentum"));
    }
    for (int i = 0; i < MANY; i++) {
        ls_variable_release(v[i]);
    }
    ls_tensor_release(one);
    ls_optimizer_release(o);
    ls_context_close(c);
}

LST_MAIN(LST_CASE(variables_without_a_gradient_are_named_once),
         LST_CASE(slots_are_found_whatever_the_order_of_the_variables),
         LST_CASE(five_steps_of_each_optimizer_follow_keras_in_float32),
         LST_CASE(five_steps_of_each_optimizer_follow_keras_in_float64),
         LST_CASE(half_precision_follows_as_far_as_it_can),
         LST_CASE(a_missing_gradient_leaves_its_variable_alone),
         LST_CASE(minimize_lowers_the_loss),
         LST_CASE(a_steady_gradient_does_not_make_centered_rmsprop_nan),
         LST_CASE(slots_have_keras_names_and_first_values),
         LST_CASE(the_learning_rate_is_that_of_the_step),
         LST_CASE(nonsense_options_are_refused),
         LST_CASE(nonsense_that_all_share_is_refused),
         LST_CASE(a_step_survives_the_failure_of_any_allocation))
