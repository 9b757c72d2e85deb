/* Tests of central storage: one copy of a variable for all replicas. */
#include "replica/replica_test.h"

struct write {
    ls_variable *v;
    ls_assign_op op;
};

/* A strategy of three replicas. */
struct central {
    ls_runtime *rt;
    ls_strategy *s;
};

static struct central central_open(void)
{
    ls_runtime_options ro = LS_RUNTIME_OPTIONS_INIT;
    ls_strategy_options so = LS_STRATEGY_OPTIONS_INIT;
    struct central c = {NULL, NULL};

    ro.logical_cpus = 3;
    LST_OK(ls_runtime_create(&ro, &c.rt, NULL));
    so.runtime = c.rt;
    LST_OK(ls_central_storage_create("CPU:0,CPU:1,CPU:2", NULL, &so, &c.s, NULL));
    return c;
}

static void central_close(struct central *c)
{
    ls_strategy_release(c->s);
    ls_runtime_release(c->rt);
}

/* An int32 of 1. */
static ls_variable *one_in(const struct central *c, ls_aggregation aggregation)
{
    const int32_t one = 1;
    ls_variable_options vo = LS_VARIABLE_OPTIONS_INIT;
    ls_tensor *t = NULL;
    ls_variable *v = NULL;

    vo.aggregation = aggregation;
    LST_OK(
        ls_tensor_create(ls_runtime_device(c->rt, 0), LS_I32, LS_SCALAR, &one, &t, NULL));
    LST_OK(ls_scope_enter(c->s, NULL));
    LST_OK(ls_variable_create(t, &vo, &v, NULL));
    ls_scope_exit(c->s);
    ls_tensor_release(t);
    return v;
}

static ls_value *assigns_two(ls_context *c, ls_value *args, void *user)
{
    const struct write *w = user;
    ls_value *two = NULL;

    (void)args;
    if (ls_value_int(2, &two, NULL) != LS_OK) {
        return NULL;
    }
    return ls_value_of(c,
                       ls_variable_assign(c, w->v, w->op, ls_value_adopt(c, two), false));
}

LST_TEST(a_run_returns_the_result_of_an_assignment_as_one_value)
{
    static const ls_aggregation kinds[] = {LS_AGGREGATE_MEAN,
                                           LS_AGGREGATE_ONLY_FIRST_REPLICA};
    static const double want[] = {
        [LS_ASSIGN] = 2, [LS_ASSIGN_ADD] = 4, [LS_ASSIGN_SUB] = 2};
    struct central c = central_open();
    ls_error e = LS_ERROR_INIT;

    for (size_t k = 0; k < LSI_COUNT_OF(kinds); k++) {
        struct write w = {one_in(&c, kinds[k]), LS_ASSIGN};

        for (; w.op <= LS_ASSIGN_SUB; w.op++) {
            ls_value *out = NULL, *local = NULL;

            LST_OK(ls_strategy_run(c.s, assigns_two, NULL, &w, &out, &e));
            LST_CHECK(ls_value_kind_of(out) == LS_VALUE_TENSOR);
            LST_CHECK(number_at(out, 0) == want[w.op]);
            LST_OK(ls_strategy_local_results(c.s, out, &local, &e));
            LST_CHECK(ls_value_size(local) == 1);
            ls_value_release(local);
            ls_value_release(out);
        }
        ls_variable_release(w.v);
    }
    central_close(&c);
}

/* Replica 1, or all of them, write 0.5 to a variable of integers. */
static ls_value *assigns_a_half(ls_context *c, ls_value *args, void *user)
{
    const struct write *w = user;
    const bool wrong = w->op == LS_ASSIGN || ls_replica_id(c) == 1;

    (void)args;
    (void)ls_assign(c, w->v, wrong ? ls_constant_f32(c, 0.5F) : ls_constant_i32(c, 3));
    return NULL;
}

LST_TEST(a_value_of_another_dtype_is_refused_not_narrowed)
{
    static const ls_aggregation kinds[] = {LS_AGGREGATE_SUM, LS_AGGREGATE_MEAN,
                                           LS_AGGREGATE_ONLY_FIRST_REPLICA};
    struct central c = central_open();
    ls_error e = LS_ERROR_INIT;

    for (size_t k = 0; k < LSI_COUNT_OF(kinds); k++) {
        struct write w = {one_in(&c, kinds[k]), LS_ASSIGN};

        for (; w.op <= LS_ASSIGN_ADD; w.op++) {
            LST_FAILS(ls_strategy_run(c.s, assigns_a_half, NULL, &w, NULL, &e),
                      LS_INVALID_ARGUMENT, e, "int32 (), the value is float32 ()");
        }
        ls_variable_release(w.v);
    }
    central_close(&c);
}

LST_MAIN(LST_CASE(a_run_returns_the_result_of_an_assignment_as_one_value),
         LST_CASE(a_value_of_another_dtype_is_refused_not_narrowed))
