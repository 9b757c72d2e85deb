/* Tests of metrics on one replica and on two. */
#include "model/model.h"

#include "lockstep/metric.h"
#include "ls_test.h"

#define NUMBERS(...) ((const float[]){__VA_ARGS__})

LST_TEST(a_mean_is_over_rows_with_their_weights)
{
    ls_context *c = NULL;
    ls_metric *m = NULL;

    LST_OK(ls_metric_mean_create(NULL, &m, NULL));
    LST_OK(ls_context_open(NULL, NULL, &c, NULL));
    LST_CHECK(strcmp(ls_metric_name(m), "mean") == 0);
    LST_CHECK(ls_item(c, ls_metric_result(c, m)) == 0.0); // nothing was added
    ls_metric_add(c, m, ls_constant(c, LS_F32, LS_SHAPE(2, 2), NUMBERS(1, 2, 3, 6)),
                  NULL);
    LST_CHECK(ls_item(c, ls_metric_result(c, m)) == 3.0);
    ls_metric_add(c, m, ls_constant_f32(c, 8), ls_constant_f32(c, 2)); // twice 8
    LST_CHECK(ls_item(c, ls_metric_result(c, m)) == 5.5);
    LST_OK(ls_context_finish(c, NULL));
    LST_OK(ls_metric_reset(m, NULL));
    ls_metric_add(c, m, ls_constant_i64(c, 7), NULL); // values of any dtype
    LST_CHECK(ls_item(c, ls_metric_result(c, m)) == 7.0);
    LST_OK(ls_context_finish(c, NULL));
    LST_CHECK(ls_metric_result(c, NULL) == NULL);
    LST_CHECK(ls_context_finish(c, NULL) == LS_INVALID_ARGUMENT);
    LST_CHECK(ls_metric_reset(NULL, NULL) == LS_INVALID_ARGUMENT);
    LST_CHECK(ls_metric_mean_create("x", NULL, NULL) == LS_INVALID_ARGUMENT);
    ls_metric_release(m);
    ls_metric_release(NULL);
    ls_context_close(c);
}

/* The state of Keras 3 after one update; values and weights are 1, 2, ... */
static const struct weight_case {
    int64_t vdim;
    int64_t v[3];
    int64_t wdim; // -1: none
    int64_t w[3];
    double total, count;
} weight_cases[] = {
    {1, {2}, 0, {0}, 1.5, 1},
    {1, {2}, 1, {1}, 3, 2},
    {1, {2}, 1, {2}, 5, 3},
    {2, {2, 2}, 1, {2}, 8.5, 3},
    {2, {2, 2}, 2, {2, 1}, 8.5, 3},
    {2, {2, 2}, 0, {0}, 2.5, 1},
    {2, {2, 2}, 2, {1, 2}, 8, 3},
    {2, {2, 2}, 1, {1}, 5, 2},
    {1, {3}, 2, {3, 1}, 14, 6},
    {0, {0}, 1, {1}, 1, 1},
    {2, {2, 2}, 2, {2, 2}, 15, 5},
    {3, {2, 2, 2}, 1, {2}, 15.5, 3},
    {3, {2, 2, 2}, 2, {2, 2}, 27.5, 5},
    {2, {2, 2}, -1, {0}, 5, 2},
    {1, {0}, 0, {0}, 0, 0},
    {2, {2, 0}, 1, {2}, 0, 0},
    {3, {2, 2, 2}, -1, {0}, 9, 2},
};

LST_TEST(total_and_count_are_those_of_keras_for_every_shape_of_weights)
{
    static const float from_one[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    ls_context *c = NULL;

    LST_OK(ls_context_open(NULL, NULL, &c, NULL));
    for (size_t i = 0; i < LSI_COUNT_OF(weight_cases); i++) {
        const struct weight_case *k = &weight_cases[i];
        ls_metric *m = NULL;
        ls_tensor *w =
            k->wdim < 0
                ? NULL
                : ls_constant(c, LS_F32, ls_shape_of((size_t)k->wdim, k->w), from_one);

        LST_OK(ls_metric_mean_create(NULL, &m, NULL));
        ls_metric_add(
            c, m, ls_constant(c, LS_F32, ls_shape_of((size_t)k->vdim, k->v), from_one),
            w);
        LST_CHECK(ls_item(c, ls_read(c, ls_metric_variable(m, 0))) == k->total);
        LST_CHECK(ls_item(c, ls_read(c, ls_metric_variable(m, 1))) == k->count);
        LST_OK(ls_context_finish(c, NULL));
        ls_metric_release(m);
    }
    ls_context_close(c);
}

LST_TEST(the_state_is_two_variables_that_are_summed_when_read)
{
    static const char *const names[] = {"total", "count"};
    ls_metric *m = NULL;

    LST_OK(ls_metric_mean_create("accuracy", &m, NULL));
    LST_CHECK(strcmp(ls_metric_name(m), "accuracy") == 0);
    for (size_t i = 0; i < 2; i++) {
        const ls_variable *v = ls_metric_variable(m, i);

        LST_CHECK(strncmp(ls_variable_name(v), names[i], 5) == 0);
        LST_CHECK(ls_variable_synchronization(v) == LS_SYNC_ON_READ);
        LST_CHECK(ls_variable_aggregation(v) == LS_AGGREGATE_SUM);
        LST_CHECK(!ls_variable_trainable(v) && ls_variable_dtype(v) == LS_F32);
    }
    LST_CHECK(ls_metric_variable(m, 2) == NULL);
    LST_CHECK(ls_metric_retain(m) == m);
    ls_metric_release(m);
    ls_metric_release(m);
}

static ls_value *add_to_metric(ls_context *c, ls_value *args, void *user)
{
    (void)args;
    if (ls_replica_id(c) == 0) {
        ls_metric_add(c, user, ls_constant_f32(c, 1), NULL);
        ls_metric_add(c, user, ls_constant_f32(c, 2), NULL);
    } else {
        ls_metric_add(c, user, ls_constant_f32(c, 6), NULL);
    }
    return NULL;
}

static ls_value *result_for_all(ls_context *cross, ls_strategy *s, ls_value *args,
                                void *user)
{
    (void)s;
    (void)args;
    return ls_value_of(cross, ls_metric_result(cross, user));
}

static ls_value *ask_in_merge(ls_context *c, ls_value *args, void *user)
{
    (void)args;
    return ls_merge_call(c, result_for_all, NULL, user);
}

LST_TEST(s116_a_mean_is_over_all_replicas_in_the_scope_and_in_a_merge)
{
    ls_runtime_options ropts = LS_RUNTIME_OPTIONS_INIT;
    ls_strategy_options opts = LS_STRATEGY_OPTIONS_INIT;
    ls_strategy *s = NULL;
    ls_metric *m = NULL;
    ls_context *c = NULL;
    ls_value *out = NULL;

    ropts.logical_cpus = 2;
    ropts.threads = 1;
    LST_OK(ls_runtime_create(&ropts, &opts.runtime, NULL));
    LST_OK(ls_mirrored_create(NULL, &opts, &s, NULL));
    LST_OK(ls_scope_enter(s, NULL));
    LST_OK(ls_metric_mean_create(NULL, &m, NULL));
    ls_scope_exit(s);
    LST_OK(ls_strategy_run(s, add_to_metric, NULL, m, NULL, NULL));
    LST_OK(ls_context_open(ls_runtime_device(opts.runtime, 0), NULL, &c, NULL));
    LST_OK(ls_scope_enter(s, NULL));
    LST_CHECK(ls_item(c, ls_metric_result(c, m)) == 3.0);
    ls_scope_exit(s);
    LST_OK(ls_context_finish(c, NULL));
    LST_OK(ls_strategy_run(s, ask_in_merge, NULL, m, &out, NULL));
    // equal on both replicas: a plain tensor
    const ls_tensor *t = ls_value_as_tensor(out);
    LST_CHECK(t != NULL && lsi_element(t, 0) == 3.0);
    ls_value_release(out);
    LST_OK(ls_metric_reset(m, NULL));
    LST_CHECK(ls_item(c, ls_metric_result(c, m)) == 0.0);
    ls_context_close(c);
    ls_metric_release(m);
    ls_strategy_release(s);
    ls_runtime_release(opts.runtime);
}

LST_MAIN(LST_CASE(a_mean_is_over_rows_with_their_weights),
         LST_CASE(total_and_count_are_those_of_keras_for_every_shape_of_weights),
         LST_CASE(the_state_is_two_variables_that_are_summed_when_read),
         LST_CASE(s116_a_mean_is_over_all_replicas_in_the_scope_and_in_a_merge))
