/* Tests of ls_optimizer_build(): names, first values, what it refuses, and memory. */
#include "optim_test.h"
#include "replica/replica_test.h"

enum { VARS = 3, SIZE = 4 };

struct setting {
    mirror m;
    ls_variable *v[VARS]; // the last one is plain
    ls_optimizer *o;
};

static ls_variable *named_variable(const char *name, ls_dtype dtype)
{
    ls_variable_options opts = LS_VARIABLE_OPTIONS_INIT;
    ls_tensor *t = NULL;
    ls_variable *v = NULL;

    opts.name = name;
    LST_OK(ls_tensor_create(NULL, dtype, LS_SHAPE(SIZE), NULL, &t, NULL));
    LST_OK(ls_variable_create(t, &opts, &v, NULL));
    ls_tensor_release(t);
    return v;
}

static void open_setting(struct setting *s, ls_optimizer *o)
{
    *s = (struct setting){.m = mirror_of(2, false), .o = o};
    LST_OK(ls_scope_enter(s->m.s, NULL));
    s->v[0] = named_variable("dense/kernel", LS_F32);
    s->v[1] = named_variable("bias", LS_F64);
    ls_scope_exit(s->m.s);
    s->v[2] = named_variable("plain", LS_F16);
}

static void close_setting(struct setting *s)
{
    for (int i = 0; i < VARS; i++) {
        ls_variable_release(s->v[i]);
    }
    ls_optimizer_release(s->o);
    mirror_end(&s->m);
}

static ls_optimizer *adam(void)
{
    static const recipe r = {"AdamW", 0, false, true, false, LS_OPTIMIZER_SHARED_INIT};

    return make_optimizer(&r);
}

static const char *name_of(const ls_optimizer *o, const ls_variable *v, const char *slot)
{
    const char *name = ls_variable_name(ls_optimizer_slot(o, v, slot));

    return name == NULL ? "" : name;
}

LST_TEST(slots_are_made_once_with_the_names_of_keras)
{
    struct setting s;
    const ls_variable *first;

    open_setting(&s, adam());
    LST_OK(ls_optimizer_build(s.o, s.v, 2, NULL)); // in default mode
    first = ls_optimizer_slot(s.o, s.v[0], "momentum");
    LST_CHECK(first != NULL && ls_variable_components(first) == 2);
    LST_CHECK(!ls_variable_trainable(first));
    LST_CHECK(ls_optimizer_slot(s.o, s.v[2], "momentum") == NULL);
    LST_OK(ls_scope_enter(s.m.s, NULL));
    LST_OK(ls_optimizer_build(s.o, s.v, VARS, NULL)); // in cross-replica context
    ls_scope_exit(s.m.s);
    LST_CHECK(ls_optimizer_slot(s.o, s.v[0], "momentum") == first);
    LST_CHECK(strcmp(name_of(s.o, s.v[0], "momentum"), "adamw/dense_kernel_momentum") ==
              0);
    LST_CHECK(strcmp(name_of(s.o, s.v[1], "velocity"), "adamw/bias_velocity") == 0);
    LST_CHECK(strcmp(name_of(s.o, s.v[2], "velocity_hat"), "adamw/plain_velocity_hat") ==
              0);
    LST_CHECK(ls_variable_components(ls_optimizer_slot(s.o, s.v[2], "velocity")) == 1);
    LST_CHECK(ls_optimizer_iterations(s.o) == 0);
    LST_OK(ls_optimizer_build(s.o, NULL, 0, NULL));
    close_setting(&s);
}

LST_TEST(slots_begin_with_the_number_of_the_optimizer)
{
    static const recipe recipes[] = {
        {"Adagrad", 0, false, false, false, LS_OPTIMIZER_SHARED_INIT},
        {"SGD", 0.5, false, false, false, LS_OPTIMIZER_SHARED_INIT},
    };
    static const char *const slots[] = {"accumulator", "momentum"};
    static const char *const names[] = {"adagrad/bias_accumulator", "SGD/bias_momentum"};

    for (size_t i = 0; i < LSI_COUNT_OF(recipes); i++) {
        struct setting s;

        open_setting(&s, make_optimizer(&recipes[i]));
        LST_OK(ls_optimizer_build(s.o, s.v, VARS, NULL));
        LST_CHECK(strcmp(name_of(s.o, s.v[1], slots[i]), names[i]) == 0);
        for (int k = 0; k < VARS; k++) {
            LST_CHECK(lst_near(at(ls_optimizer_slot(s.o, s.v[k], slots[i]), SIZE - 1),
                               i == 0 ? 0.1 : 0, 1e-3, 0));
        }
        close_setting(&s);
    }
}

LST_TEST(a_step_uses_the_slots_that_were_built)
{
    const double ones[SIZE] = {1, 1, 1, 1};
    struct setting s;
    ls_context *c = NULL;
    const ls_variable *built;
    ls_tensor *g;

    open_setting(&s, adam());
    LST_OK(ls_optimizer_build(s.o, s.v, 1, NULL));
    built = ls_optimizer_slot(s.o, s.v[0], "momentum");
    LST_OK(ls_context_open(NULL, NULL, &c, NULL));
    g = tensor_of(NULL, LS_F32, LS_SHAPE(SIZE), ones, SIZE);
    ls_optimizer_apply(c, s.o, &g, s.v, 1);
    LST_OK(ls_context_finish(c, NULL));
    LST_CHECK(ls_optimizer_slot(s.o, s.v[0], "momentum") == built);
    LST_CHECK(at(ls_optimizer_slot(s.o, s.v[0], "momentum"), 0) != 0);
    ls_tensor_release(g);
    ls_context_close(c);
    close_setting(&s);
}

/* ---- what is refused ---- */

static ls_value *build_in_replica(ls_context *c, ls_value *args, void *user)
{
    const struct setting *s = user;
    ls_error e = LS_ERROR_INIT;

    (void)c;
    (void)args;
    LST_FAILS(ls_optimizer_build(s->o, s->v, VARS, &e), LS_FAILED_PRECONDITION, e,
              "outside of replica functions");
    LST_CHECK(e.kind == LS_KIND_RUNTIME);
    return NULL;
}

LST_TEST(what_cannot_be_built_is_refused)
{
    struct setting s;
    ls_error e = LS_ERROR_INIT;
    ls_variable *bad[] = {NULL, NULL};

    open_setting(&s, adam());
    bad[0] = s.v[0];
    LST_FAILS(ls_optimizer_build(NULL, s.v, 1, &e), LS_INVALID_ARGUMENT, e, "NULL");
    LST_FAILS(ls_optimizer_build(s.o, NULL, 1, &e), LS_INVALID_ARGUMENT, e, "list");
    LST_FAILS(ls_optimizer_build(s.o, bad, 2, &e), LS_INVALID_ARGUMENT, e, "variable 1");
    bad[1] = named_variable("count", LS_I32);
    LST_FAILS(ls_optimizer_build(s.o, bad, 2, &e), LS_INVALID_ARGUMENT, e, "'count'");
    LST_OK(ls_strategy_run(s.m.s, build_in_replica, NULL, &s, NULL, NULL));
    LST_CHECK(ls_optimizer_slot(s.o, s.v[0], "momentum") == NULL);
    ls_variable_release(bad[1]);
    close_setting(&s);
}

/* ---- memory ---- */

enum { MANY = 40 }; // more than the list has room for at first

static struct {
    ls_optimizer *o;
    ls_variable *v[MANY];
} starved;

static ls_status build_many(ls_error *err)
{
    const ls_status st = ls_optimizer_build(starved.o, starved.v, MANY, err);

    for (int i = 0; i < MANY; i++) {
        const bool there = i < 2 || st == LS_OK;

        LST_CHECK((ls_optimizer_slot(starved.o, starved.v[i], "velocity") != NULL) ==
                  there);
    }
    return st;
}

LST_TEST(a_build_that_fails_has_made_nothing)
{
    starved.o = adam();
    for (int i = 0; i < MANY; i++) {
        starved.v[i] = named_variable("v", LS_F32);
    }
    LST_OK(ls_optimizer_build(starved.o, starved.v, 2, NULL));
    lst_every_allocation(build_many);
    for (int i = 0; i < MANY; i++) {
        ls_variable_release(starved.v[i]);
    }
    ls_optimizer_release(starved.o);
}

LST_MAIN(LST_CASE(slots_are_made_once_with_the_names_of_keras),
         LST_CASE(slots_begin_with_the_number_of_the_optimizer),
         LST_CASE(a_step_uses_the_slots_that_were_built),
         LST_CASE(what_cannot_be_built_is_refused),
         LST_CASE(a_build_that_fails_has_made_nothing))
