/* Tests of creator scopes inside and outside of a strategy's scope. */
#include "replica_test.h"

/* The calls of creators, each as one letter and the name. */
struct call_log {
    char text[400];
    const ls_tensor *instead; /* the initial value to use; NULL: the requested one */
    ls_variable *foreign;     /* returned instead of a new copy; NULL: none */
};

struct creator {
    char letter;
    struct call_log *diary;
};

static ls_status log_call(const ls_creator_next *next, const ls_tensor *value,
                          const ls_variable_options *opts, void *user, ls_variable **out,
                          ls_error *err)
{
    const struct creator *k = user;
    struct call_log *d = k->diary;
    const size_t at = strlen(d->text);

    (void)snprintf(d->text + at, sizeof d->text - at, "%c:%s ", k->letter, opts->name);
    if (d->foreign != NULL) {
        *out = ls_variable_retain(d->foreign);
        return LS_OK;
    }
    return ls_creator_call(next, d->instead != NULL ? d->instead : value, opts, out, err);
}

static ls_tensor *scalar_of(double x)
{
    const float f = (float)x;
    ls_tensor *t = NULL;

    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SCALAR, &f, &t, NULL));
    return t;
}

static ls_variable *create_named(const ls_tensor *t, const char *name, ls_status want)
{
    ls_variable_options vo = LS_VARIABLE_OPTIONS_INIT;
    ls_variable *v = NULL;
    ls_error e = LS_ERROR_INIT;

    vo.name = name;
    LST_CHECK(ls_variable_create(t, &vo, &v, &e) == want);
    return v;
}

static ls_strategy *strategy_of(const char *kind, ls_runtime *rt)
{
    ls_strategy_options so = LS_STRATEGY_OPTIONS_INIT;
    ls_strategy *s = NULL;
    ls_error e = LS_ERROR_INIT;

    so.runtime = rt;
    if (strcmp(kind, "one device") == 0) {
        LST_OK(ls_one_device_create("CPU:1", &so, &s, &e));
    } else if (strcmp(kind, "central") == 0) {
        LST_OK(ls_central_storage_create("CPU:0,CPU:1", NULL, &so, &s, &e));
    } else {
        LST_OK(ls_mirrored_create(NULL, &so, &s, &e));
    }
    return s;
}

LST_TEST(a_creator_outside_of_the_scope_is_called_for_each_copy_one_inside_once)
{
    static const struct {
        const char *kind, *want;
    } rows[] = {{"mirrored", "a:q b:q c:q b:q/replica_1 c:q/replica_1 "},
                {"central", "a:q b:q c:q "},
                {"one device", "a:q b:q c:q "}};
    mirror m = mirror_of(2, false);
    ls_tensor *t = scalar_of(1);
    ls_error e = LS_ERROR_INIT;

    for (size_t i = 0; i < LSI_COUNT_OF(rows); i++) {
        struct call_log d = {{0}, NULL, NULL};
        struct creator a = {'a', &d}, b = {'b', &d}, c = {'c', &d};
        ls_strategy *s = strategy_of(rows[i].kind, m.rt);

        LST_OK(ls_creator_scope_enter(log_call, &c, &e));
        LST_OK(ls_creator_scope_enter(log_call, &b, &e));
        LST_OK(ls_scope_enter(s, &e));
        LST_OK(ls_creator_scope_enter(log_call, &a, &e));
        ls_variable_release(create_named(t, "q", LS_OK));
        LST_OK(ls_creator_scope_exit(&e));
        ls_scope_exit(s);
        LST_CHECK(strcmp(d.text, rows[i].want) == 0);
        LST_OK(ls_creator_scope_exit(&e));
        LST_OK(ls_creator_scope_exit(&e));
        ls_strategy_release(s);
    }
    ls_tensor_release(t);
    mirror_end(&m);
}

static ls_value *creates_in_replica(ls_context *c, ls_value *args, void *user)
{
    ls_variable_options vo = LS_VARIABLE_OPTIONS_INIT;
    ls_variable *v = NULL;
    ls_error e = LS_ERROR_INIT;

    (void)c;
    (void)args;
    vo.name = "inner";
    LST_OK(ls_variable_create(user, &vo, &v, &e));
    ls_variable_release(v);
    return NULL;
}

LST_TEST(a_creator_outside_of_a_run_is_called_for_each_copy_that_replicas_make)
{
    mirror m = mirror_of(3, false);
    struct call_log d = {{0}, NULL, NULL};
    struct creator a = {'a', &d};
    ls_tensor *t = scalar_of(1);
    ls_error e = LS_ERROR_INIT;

    LST_OK(ls_creator_scope_enter(log_call, &a, &e));
    LST_OK(ls_strategy_run(m.s, creates_in_replica, NULL, t, NULL, &e));
    LST_OK(ls_creator_scope_exit(&e));
    LST_CHECK(strcmp(d.text, "a:inner a:inner/replica_1 a:inner/replica_2 ") == 0);
    ls_tensor_release(t);
    mirror_end(&m);
}

LST_TEST(what_a_creator_outside_begins_with_is_what_all_copies_hold)
{
    mirror m = mirror_of(2, false);
    ls_tensor *t = scalar_of(1), *five = scalar_of(5), *copy = NULL;
    struct call_log d = {{0}, five, NULL};
    struct creator a = {'a', &d};
    ls_error e = LS_ERROR_INIT;
    float x = 0;

    LST_OK(ls_creator_scope_enter(log_call, &a, &e));
    LST_OK(ls_scope_enter(m.s, &e));
    ls_variable *v = create_named(t, "q", LS_OK);
    ls_scope_exit(m.s);
    LST_OK(ls_creator_scope_exit(&e));
    for (size_t i = 0; i < 2; i++) {
        LST_OK(ls_variable_value(ls_variable_component(v, i), &copy, &e));
        LST_OK(ls_tensor_read(copy, &x, sizeof x, &e));
        LST_CHECK(x == 5);
        ls_tensor_release(copy);
    }
    ls_variable_release(v);
    ls_tensor_release(t);
    ls_tensor_release(five);
    mirror_end(&m);
}

LST_TEST(a_creator_outside_that_hands_out_something_else_is_refused)
{
    mirror m = mirror_of(2, false);
    struct call_log d = {{0}, NULL, NULL};
    struct creator a = {'a', &d};
    ls_tensor *t = scalar_of(1);
    ls_error e = LS_ERROR_INIT;

    LST_OK(ls_scope_enter(m.s, &e));
    d.foreign = create_named(t, "mirrored", LS_OK);
    ls_scope_exit(m.s);
    LST_OK(ls_creator_scope_enter(log_call, &a, &e));
    LST_OK(ls_scope_enter(m.s, &e));
    (void)create_named(t, "q", LS_INVALID_ARGUMENT);
    ls_scope_exit(m.s);
    LST_OK(ls_creator_scope_exit(&e));
    ls_variable_release(d.foreign);
    ls_tensor_release(t);
    mirror_end(&m);
}

static ls_status creates_nothing(const ls_creator_next *next, const ls_tensor *value,
                                 const ls_variable_options *opts, void *user,
                                 ls_variable **out, ls_error *err)
{
    (void)next;
    (void)value;
    (void)opts;
    (void)user;
    (void)out;
    (void)err;
    return LS_OK;
}

LST_TEST(a_creator_outside_that_succeeds_without_a_variable_is_refused)
{
    mirror m = mirror_of(2, false);
    ls_tensor *t = scalar_of(1);
    ls_error e = LS_ERROR_INIT;

    LST_OK(ls_creator_scope_enter(creates_nothing, NULL, &e));
    LST_OK(ls_scope_enter(m.s, &e));
    (void)create_named(t, "q", LS_INVALID_ARGUMENT);
    ls_scope_exit(m.s);
    LST_OK(ls_creator_scope_exit(&e));
    ls_tensor_release(t);
    mirror_end(&m);
}

LST_MAIN(LST_CASE(a_creator_outside_of_the_scope_is_called_for_each_copy_one_inside_once),
         LST_CASE(a_creator_outside_of_a_run_is_called_for_each_copy_that_replicas_make),
         LST_CASE(what_a_creator_outside_begins_with_is_what_all_copies_hold),
         LST_CASE(a_creator_outside_that_hands_out_something_else_is_refused),
         LST_CASE(a_creator_outside_that_succeeds_without_a_variable_is_refused))
