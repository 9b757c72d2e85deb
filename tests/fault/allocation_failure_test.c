/*
 * Creating objects and training steps, with each allocation on the way failing in turn.
 */
#include "lockstep/ext/op.h"
#include "lockstep/lockstep.h"
#include "ls_test.h"
#include "small_model.h"

static ls_status make_runtime(ls_runtime **rt, int devices, ls_error *err)
{
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;

    opts.logical_cpus = devices;
    opts.threads = 2;
    return ls_runtime_create(&opts, rt, err);
}

static ls_status runtime(ls_error *err)
{
    ls_runtime *rt = NULL;
    const ls_status st = make_runtime(&rt, 3, err);

    LST_CHECK((st == LS_OK) == (rt != NULL)); // a failure touches no output
    ls_runtime_release(rt);
    return st;
}

static ls_status pinned_runtime(ls_error *err)
{
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_runtime *rt = NULL;
    ls_status st;

    opts.pin = true;
    opts.isa = "baseline";
    st = ls_runtime_create(&opts, &rt, err);
    LST_CHECK((st == LS_OK) == (rt != NULL));
    ls_runtime_release(rt);
    return st;
}

static ls_status tensor(ls_error *err)
{
    static const float data[300] = {1};
    ls_runtime *rt = NULL;
    ls_tensor *small = NULL, *large = NULL;
    ls_status st = make_runtime(&rt, 1, err);

    if (st == LS_OK) {
        st = ls_tensor_create(ls_runtime_device(rt, 0), LS_F32, LS_SHAPE(3), data, &small,
                              err);
    }
    if (st == LS_OK) {
        st = ls_tensor_create(ls_runtime_device(rt, 0), LS_F32, LS_SHAPE(3, 100), data,
                              &large, err);
        LST_CHECK((st == LS_OK) == (large != NULL));
    }
    ls_runtime_release(rt); // the tensors keep what they need
    ls_tensor_release(small);
    ls_tensor_release(large);
    return st;
}

static ls_status strings(ls_error *err)
{
    static const ls_string words[2] = {{"one", 3}, {"two and more", 12}};
    ls_runtime *rt = NULL;
    ls_tensor *t = NULL;
    ls_status st = make_runtime(&rt, 1, err);

    if (st == LS_OK) {
        st = ls_tensor_create(ls_runtime_device(rt, 0), LS_STRING, LS_SHAPE(2), words, &t,
                              err);
        LST_CHECK((st == LS_OK) == (t != NULL));
    }
    ls_tensor_release(t);
    ls_runtime_release(rt);
    return st;
}

static void count_done(void *user)
{
    ++*(int *)user;
}

static ls_status wrapped_tensor(ls_error *err)
{
    static const float data[300] = {1};
    ls_runtime *rt = NULL;
    ls_tensor *t = NULL;
    int done = 0;
    ls_status st = make_runtime(&rt, 1, err);

    if (st == LS_OK) {
        st = ls_tensor_wrap(ls_runtime_device(rt, 0), LS_F32, LS_SHAPE(300), data,
                            count_done, &done, &t, err);
        LST_CHECK(done == 0); // not called on failure, nor while the tensor lives
    }
    ls_tensor_release(t);
    LST_CHECK(done == (st == LS_OK && t != NULL));
    ls_runtime_release(rt);
    return st;
}

static ls_status context(ls_error *err)
{
    ls_runtime *rt = NULL;
    ls_context *c = NULL;
    ls_status st = make_runtime(&rt, 1, err);

    if (st == LS_OK) {
        st = ls_context_open(ls_runtime_device(rt, 0), NULL, &c, err);
        LST_CHECK((st == LS_OK) == (c != NULL));
    }
    ls_runtime_release(rt);
    ls_context_close(c);
    return st;
}

static ls_status variable(ls_error *err)
{
    ls_variable_options opts = LS_VARIABLE_OPTIONS_INIT;
    ls_runtime *rt = NULL;
    ls_tensor *t = NULL;
    ls_variable *v = NULL;
    ls_status st = make_runtime(&rt, 1, err);

    opts.name = "kernel";
    if (st == LS_OK) {
        st = ls_tensor_create(ls_runtime_device(rt, 0), LS_F32, LS_SHAPE(30, 40), NULL,
                              &t, err);
    }
    if (st == LS_OK) {
        st = ls_variable_create(t, &opts, &v, err);
        LST_CHECK((st == LS_OK) == (v != NULL));
    }
    ls_tensor_release(t);
    ls_runtime_release(rt);
    ls_variable_release(v);
    return st;
}

static ls_status sgd(ls_error *err)
{
    ls_optimizer *o = NULL;
    const ls_status st = ls_sgd_create(NULL, &o, err);

    LST_CHECK((st == LS_OK) == (o != NULL));
    ls_optimizer_release(o);
    return st;
}

static ls_status adam(ls_error *err)
{
    ls_optimizer *o = NULL;
    const ls_status st = ls_adam_create(NULL, &o, err);

    LST_CHECK((st == LS_OK) == (o != NULL));
    ls_optimizer_release(o);
    return st;
}

static ls_status values(ls_error *err)
{
    static const char *const keys[2] = {"a", "b"};
    ls_value *leaves[2] = {NULL, NULL}, *dict = NULL, *flat = NULL;
    ls_status st = ls_value_int(3, &leaves[0], err);

    if (st == LS_OK) {
        st = ls_value_string((ls_string){"text", 4}, &leaves[1], err);
    }
    if (st == LS_OK) {
        st = ls_value_dict(keys, leaves, 2, &dict, err);
    }
    if (st == LS_OK) {
        st = ls_value_flatten(dict, &flat, err);
    }
    ls_value_release(flat);
    ls_value_release(dict);
    ls_value_release(leaves[0]);
    ls_value_release(leaves[1]);
    return st;
}

/* A tape and a recorded step: many operations, a second derivative, a sparse gradient. */
static ls_status recorded_step(ls_error *err)
{
    static const int32_t rows[3] = {0, 2, 0};
    ls_runtime *rt = NULL;
    ls_context *c = NULL;
    ls_status st = make_runtime(&rt, 1, err);

    if (st == LS_OK) {
        st = ls_context_open(ls_runtime_device(rt, 0), NULL, &c, err);
    }
    ls_runtime_release(rt);
    if (st != LS_OK) {
        return st;
    }
    ls_tensor *x = ls_constant(c, LS_F32, LS_SHAPE(20, 30), NULL);
    ls_tensor *i = ls_constant(c, LS_I32, LS_SHAPE(3), rows);
    ls_tape *outer = ls_tape_open(c, NULL);
    ls_tape_watch(c, outer, x);
    ls_tape *inner = ls_tape_open(c, NULL);
    ls_tape_watch(c, inner, x);
    ls_tensor *y = ls_tanh(c, ls_matmul_t(c, x, x, true, false));
    ls_tensor *z = ls_concat(c, (ls_tensor *[]){y, ls_gather(c, x, i, 0)}, 2, 0);
    ls_tensor *loss = ls_mean(c, ls_softmax(c, z), NULL, 0, false);
    ls_tensor *g = ls_gradient(c, inner, loss, x);
    (void)ls_gradient(c, outer, ls_square(c, g), x);
    st = ls_context_finish(c, err);
    ls_context_close(c);
    return st;
}

#define SURVIVES(name)                                                                   \
    LST_TEST(making_##name##_survives_every_failing_allocation)                          \
    {                                                                                    \
        lst_every_allocation(name);                                                      \
    }
SURVIVES(runtime)
SURVIVES(pinned_runtime)
SURVIVES(tensor)
SURVIVES(strings)
SURVIVES(wrapped_tensor)
SURVIVES(context)
SURVIVES(variable)
SURVIVES(sgd)
SURVIVES(adam)
SURVIVES(values)
SURVIVES(recorded_step)

/*
 * A step without memory fails with its line; one that could do without has the right
 * loss.
 */
static void check_step(ls_status st, const ls_error *err, double loss, double first)
{
    if (st == LS_OK) {
        LST_CHECK(lst_near(loss, first, 1e-6, 0));
        return;
    }
    LST_CHECK(st == LS_RESOURCE_EXHAUSTED);
    LST_CHECK(strstr(err->file, "small_model.c") != NULL);
    LST_CHECK(err->message[0] != '\0');
}

/* After the failure the model trains as before. */
static void check_learning(small_model *m, double first)
{
    ls_error err = LS_ERROR_INIT;
    double loss = NAN;

    LST_OK(small_model_step(m, &loss, &err));
    LST_CHECK(loss > 0 && loss <= first + 1e-6); // never worse than at the start
    for (int i = 0; i < 30; i++) {
        LST_OK(small_model_step(m, &loss, &err));
    }
    LST_CHECK(loss < first - 0.01);
}

/*
 * Fails the n-th allocation of a step; true: the step has so many. The model must work
 * afterwards.
 */
static bool step_without(int64_t n, double first)
{
    small_model m;
    ls_error err = LS_ERROR_INIT;
    double loss = 0;
    int64_t counted;
    ls_status st;

    LST_OK(small_model_create(&m, 1, &err));
    (void)lsi_alloc_fail_at(n);
    st = small_model_step(&m, &loss, &err);
    counted = lsi_alloc_fail_at(0);
    check_step(st, &err, loss, first);
    check_learning(&m, first);
    small_model_release(&m);
    return counted >= n;
}

LST_TEST(a_training_step_without_memory_fails_and_the_next_one_works)
{
    small_model m;
    ls_error err = LS_ERROR_INIT;
    double first = 0;
    int64_t n = 1;

    LST_OK(small_model_create(&m, 1, &err));
    LST_OK(small_model_step(&m, &first, &err));
    small_model_release(&m);
    while (n < 1000 && step_without(n, first)) {
        n++;
    }
    LST_CHECK(n > 10 && n < 1000); // a first step allocates, and not without end
}

LST_MAIN(LST_CASE(making_runtime_survives_every_failing_allocation),
         LST_CASE(making_pinned_runtime_survives_every_failing_allocation),
         LST_CASE(making_tensor_survives_every_failing_allocation),
         LST_CASE(making_strings_survives_every_failing_allocation),
         LST_CASE(making_wrapped_tensor_survives_every_failing_allocation),
         LST_CASE(making_context_survives_every_failing_allocation),
         LST_CASE(making_variable_survives_every_failing_allocation),
         LST_CASE(making_sgd_survives_every_failing_allocation),
         LST_CASE(making_adam_survives_every_failing_allocation),
         LST_CASE(making_values_survives_every_failing_allocation),
         LST_CASE(making_recorded_step_survives_every_failing_allocation),
         LST_CASE(a_training_step_without_memory_fails_and_the_next_one_works))
