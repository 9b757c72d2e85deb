/* Tests of distributed iterators, partial batches, specs, and compat.v1 iterators. */
#include "input_test.h"

/* Runs a function's dataset on `workers` workers; the text is what each one reads. */
struct function_case {
    ls_input_fn fn;
    int ahead;
    bool optional;
};

/* All steps, by the form that returns whether there is a value. */
static void drain_optional(in_text *t, ls_dist_iterator *it, int replicas)
{
    bool has = true;

    for (int i = 0; i < IN_STEPS && has; i++) {
        ls_error err = LS_ERROR_INIT;
        ls_value *v = NULL;

        LST_OK(ls_dist_iterator_next_optional(it, &has, &v, &err));
        if (has) {
            in_put_step(t, v, replicas);
        }
        ls_value_release(v);
    }
    in_put(t, has ? "..." : "none");
}

static void from_function(in_worker *me)
{
    const struct function_case *c = me->arg;
    ls_dist_dataset *dd = NULL;
    ls_dist_iterator *it = NULL;
    ls_error err = LS_ERROR_INIT;

    me->opts.per_replica_buffer = c->ahead;
    LST_OK(
        ls_strategy_distribute_from_function(me->s, c->fn, NULL, &me->opts, &dd, &err));
    LST_OK(ls_dist_iterate(dd, &it, &err));
    if (c->optional) {
        drain_optional(&me->text, it, me->replicas);
    } else {
        in_drain(&me->text, it, me->replicas, 8);
    }
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);
}

static void check_function(ls_input_fn fn, bool optional, int workers, int replicas,
                           const char *const *want, lst_place at)
{
    for (int ahead = -1; ahead <= 2; ahead++) {
        const struct function_case c = {fn, ahead, optional};
        static in_worker ws[IN_WORKERS];

        in_run(workers, replicas, from_function, &c, ws);
        for (int w = 0; w < workers; w++) {
            in_same(ws[w].text.text, want[w], at);
        }
    }
}
#define CHECK_FUNCTION(fn, optional, workers, replicas, ...)                             \
    check_function(fn, optional, workers, replicas, (const char *const[]){__VA_ARGS__},  \
                   LST_HERE)

static ls_dataset *d5(const ls_input_context *ic, void *user)
{
    int64_t each = 0;
    ls_error err = LS_ERROR_INIT;

    (void)user;
    LST_OK(ls_input_context_batch(ic, 4, &each, &err));
    return ls_dataset_prefetch(
        ls_dataset_batch(ls_dataset_unbatch(ls_dataset_batch(in_range(8), 4)), each), 2);
}

LST_TEST(d5_a_function_makes_batches_for_replicas)
{
    CHECK_FUNCTION(d5, false, 1, 2, "[0 1],[2 3] | [4 5],[6 7] | end");
}

static ls_dataset *d9(const ls_input_context *ic, void *user)
{
    const float one = 1;
    int64_t each = 0;
    ls_tensor *t = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;

    (void)user;
    LST_OK(ls_input_context_batch(ic, 8, &each, &err));
    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(1, 1), &one, &t, &err));
    LST_OK(ls_value_tensor(t, &v, &err));
    ls_dataset *d = ls_dataset_batch(ls_dataset_repeat(ls_dataset_tensors(v), -1), each);
    ls_value_release(v);
    ls_tensor_release(t);
    return ls_dataset_shard(d, ic->pipelines, ic->pipeline_id);
}

LST_TEST(d9_a_dataset_without_an_end)
{
    in_machine m = in_machine_of(2);
    ls_dist_dataset *dd = NULL;
    ls_error err = LS_ERROR_INIT;
    bool wrapped = false;
    static const char ones[] = "[[[1]][[1]][[1]][[1]]],[[[1]][[1]][[1]][[1]]] | ";
    in_text want = {{0}, 0};

    for (int i = 0; i < 8; i++) {
        in_put(&want, "%s", ones);
    }
    in_put(&want, "...");
    CHECK_FUNCTION(d9, false, 1, 2, want.text);
    LST_OK(ls_strategy_distribute_from_function(m.s, d9, NULL, NULL, &dd, &err));
    const ls_spec *spec = ls_dist_spec(dd, &wrapped);
    LST_CHECK(wrapped && ls_dist_cardinality(dd) == LS_INFINITE);
    LST_CHECK(ls_spec_ndim(spec) == 3 && ls_spec_dim(spec, 0) == -1 &&
              ls_spec_dim(spec, 1) == 1 && ls_spec_dim(spec, 2) == 1);
    ls_dist_dataset_release(dd);
    in_machine_end(&m);
}

static ls_dataset *nine_by_two(const ls_input_context *ic, void *user)
{
    (void)ic;
    (void)user;
    return ls_dataset_batch(in_range(9), 2);
}

static ls_dataset *ten_by_two_exact(const ls_input_context *ic, void *user)
{
    (void)ic;
    (void)user;
    return ls_dataset_batch_exact(in_range(10), 2);
}

static ls_dataset *eight_or_nine(const ls_input_context *ic, void *user)
{
    (void)user;
    return ls_dataset_batch(in_range(8 + ic->pipeline_id), 2);
}

static ls_dataset *no_batch(const ls_input_context *ic, void *user)
{
    (void)ic;
    (void)user;
    return ls_dataset_batch(in_range(0), 2);
}

/* A cardinality of 0: next_optional returns no value without reading. */
static ls_dataset *said_to_be_empty(const ls_input_context *ic, void *user)
{
    (void)ic;
    (void)user;
    return ls_dataset_assert_cardinality(ls_dataset_batch(in_range(4), 2), 0);
}

LST_TEST(d68_to_d70_the_end_comes_for_all_at_once)
{
    CHECK_FUNCTION(nine_by_two, false, 1, 2, "[0 1],[2 3] | [4 5],[6 7] | [8],[] | end");
    CHECK_FUNCTION(nine_by_two, true, 1, 2, "[0 1],[2 3] | [4 5],[6 7] | [8],[] | none");
    CHECK_FUNCTION(ten_by_two_exact, false, 1, 2, "[0 1],[2 3] | [4 5],[6 7] | end");
    CHECK_FUNCTION(ten_by_two_exact, true, 1, 2,
                   "[0 1],[2 3] | [4 5],[6 7] | [8 9],[] | none");
    CHECK_FUNCTION(eight_or_nine, false, 2, 1, "[0 1] | [2 3] | [4 5] | [6 7] | [] | end",
                   "[0 1] | [2 3] | [4 5] | [6 7] | [8] | end");
    CHECK_FUNCTION(no_batch, true, 1, 2, "none");
    CHECK_FUNCTION(said_to_be_empty, true, 1, 2, "none");
    CHECK_FUNCTION(no_batch, true, 2, 2, "none", "none");
}

static void empty_is(ls_dtype dtype, int ndim, const int64_t *dims, ls_shape want)
{
    ls_spec *s = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_spec_tensor(dtype, ndim, dims, &s, &err));
    LST_OK(lsi_empty_value(s, NULL, &v, &err));
    const ls_shape have = ls_tensor_shape(ls_value_as_tensor(v));
    LST_CHECK(ls_shape_equal(&have, &want));
    LST_CHECK(ls_tensor_dtype(ls_value_as_tensor(v)) == dtype);
    ls_value_release(v);
    ls_spec_release(s);
}

LST_TEST(d71_empty_batches_keep_rank_and_inner_sizes)
{
    empty_is(LS_F32, 2, (const int64_t[]){-1, 3}, LS_SHAPE(0, 3));
    empty_is(LS_F32, 3, (const int64_t[]){-1, -1, 2}, LS_SHAPE(0, 0, 2));
    empty_is(LS_I64, 2, (const int64_t[]){4, 3}, LS_SHAPE(0, 3));
    empty_is(LS_STRING, 1, (const int64_t[]){-1}, LS_SHAPE(0));
    empty_is(LS_I64, 0, NULL, LS_SCALAR);
    empty_is(LS_STRING, 0, NULL, LS_SCALAR);
    empty_is(LS_I64, -1, NULL, LS_SHAPE(0));
}

LST_TEST(empty_batches_keep_the_structure)
{
    const int64_t rows[] = {-1, 2};
    const char *keys[] = {"a", "b"};
    ls_spec *leaf = NULL, *sparse = NULL, *dict = NULL, *both = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;
    in_text t = {{0}, 0};

    LST_OK(ls_spec_tensor(LS_I64, 2, rows, &leaf, &err));
    LST_OK(ls_spec_sparse(LS_F32, 2, (const int64_t[]){-1, 5}, &sparse, &err));
    LST_OK(ls_spec_dict(keys, (ls_spec *[]){leaf, sparse}, 2, &dict, &err));
    LST_OK(ls_spec_tuple((ls_spec *[]){dict, leaf}, 2, &both, &err));
    LST_OK(lsi_empty_value(both, NULL, &v, &err));
    in_put_value(&t, v);
    in_same(t.text, "(([0x2],([0x2],[],[0 5])),[0x2])", LST_HERE);
    ls_value_release(v);
    ls_spec_release(leaf);
    ls_spec_release(sparse);
    ls_spec_release(dict);
    ls_spec_release(both);
}

/* A map without a declared spec. */
static ls_value *pairs(ls_context *c, ls_value *x, void *user)
{
    ls_tensor *t = ls_value_as_tensor(x);
    ls_tensor *const both[] = {t, t};

    (void)user;
    return ls_value_of(c, ls_stack(c, both, 2, -1));
}

static ls_dataset *unspecified(void)
{
    return ls_dataset_map(ls_dataset_batch(in_range(3), 2), pairs, NULL, NULL);
}

static ls_dataset *unspecified_function(const ls_input_context *ic, void *user)
{
    (void)ic;
    (void)user;
    return unspecified();
}

LST_TEST(empty_batches_look_like_an_element_if_no_spec_was_given)
{
    CHECK_FUNCTION(unspecified_function, false, 1, 3, "[[0 0][1 1]],[[2 2]],[0x2] | end");
}

static ls_dataset *nothing_on_one(const ls_input_context *ic, void *user)
{
    (void)user;
    return ls_dataset_map(ls_dataset_batch(in_range(ic->pipeline_id == 1 ? 0 : 3), 2),
                          pairs, NULL, NULL);
}

LST_TEST(a_worker_that_cannot_know_its_elements_says_so)
{
    CHECK_FUNCTION(nothing_on_one, false, 2, 1, "INVALID_ARGUMENT", "INVALID_ARGUMENT");
}

static ls_value *ask_inside(ls_context *c, ls_value *args, void *user)
{
    ls_dist_iterator *it = user;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;

    (void)args;
    LST_FAILS(ls_dist_iterator_next(it, &v, &err), LS_INVALID_ARGUMENT, err, "outside");
    LST_CHECK(v == NULL);
    return ls_value_of(c, ls_constant_i64(c, 0));
}

LST_TEST(d72_not_inside_of_replicas_and_not_after_the_end)
{
    in_machine m = in_machine_of(2);
    ls_dist_dataset *dd = NULL;
    ls_dist_iterator *it = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_dataset *d = ls_dataset_batch(in_range(4), 4);
    bool has = true;

    LST_OK(ls_strategy_distribute(m.s, d, NULL, &dd, &err));
    LST_OK(ls_dist_iterate(dd, &it, &err));
    LST_OK(ls_strategy_run(m.s, ask_inside, NULL, it, NULL, &err));
    LST_OK(ls_dist_iterator_next(it, &v, &err));
    ls_value_release(v);
    v = NULL;
    for (int i = 0; i < 3; i++) {
        LST_FAILS(ls_dist_iterator_next(it, &v, &err), LS_OUT_OF_RANGE, err, "end");
    }
    LST_OK(ls_dist_iterator_next_optional(it, &has, &v, &err));
    LST_CHECK(!has && v == NULL);
    LST_FAILS(ls_dist_iterator_next(it, NULL, &err), LS_INVALID_ARGUMENT, err, "NULL");
    LST_FAILS(ls_dist_iterator_next(NULL, &v, &err), LS_INVALID_ARGUMENT, err, "NULL");
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);
    ls_dataset_release(d);
    in_machine_end(&m);
}

static void put_spec(in_worker *me)
{
    ls_dataset *d = ls_dataset_retain((ls_dataset *)(uintptr_t)me->arg);
    ls_dist_dataset *dd = NULL;
    ls_error err = LS_ERROR_INIT;
    bool wrapped = false;

    LST_OK(ls_strategy_distribute(me->s, d, &me->opts, &dd, &err));
    const ls_spec *s = ls_dist_spec(dd, &wrapped);
    in_put(&me->text, "%s(", ls_dtype_name(ls_spec_dtype(s)));
    for (int i = 0; i < ls_spec_ndim(s); i++) {
        in_put(&me->text, i > 0 ? ",%lld" : "%lld", (long long)ls_spec_dim(s, i));
    }
    in_put(&me->text, ")%s", wrapped ? " wrapped" : "");
    ls_dist_dataset_release(dd);
    ls_dataset_release(d);
}

/*
 * The spec of a part, and whether values are wrapped, as "int64(-1) wrapped", on every
 * worker. Takes ownership of `d`.
 */
static void spec_is(ls_dataset *d, int workers, int replicas, const char *want,
                    lst_place at)
{
    static in_worker ws[IN_WORKERS];

    in_run(workers, replicas, put_spec, d, ws);
    for (int w = 0; w < workers; w++) {
        in_same(ws[w].text.text, want, at);
    }
    ls_dataset_release(d);
}

static ls_dataset *eight_rows(void)
{
    ls_tensor *t = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(8, 10), NULL, &t, &err));
    LST_OK(ls_value_tensor(t, &v, &err));
    ls_dataset *d = ls_dataset_batch_exact(ls_dataset_slices(v), 8);
    ls_value_release(v);
    ls_tensor_release(t);
    return d;
}

LST_TEST(d73_d74_the_spec_of_a_part)
{
    spec_is(ls_dataset_batch(in_range(10), 2), 1, 2, "int64(-1) wrapped", LST_HERE);
    spec_is(ls_dataset_batch_exact(in_range(10), 4), 1, 2, "int64(2) wrapped", LST_HERE);
    spec_is(ls_dataset_batch_exact(in_range(10), 4), 1, 3, "int64(-1) wrapped", LST_HERE);
    spec_is(ls_dataset_batch(in_range(10), 4), 1, 1, "int64(-1)", LST_HERE);
    spec_is(eight_rows(), 2, 1, "float32(-1,10) wrapped", LST_HERE);
    spec_is(ls_dataset_repeat(eight_rows(), -1), 2, 1, "float32(4,10) wrapped", LST_HERE);
}

/* Two epochs over one distributed dataset. */
static void epochs_of(ls_dataset *d, in_text *one, in_text *two)
{
    in_machine m = in_machine_of(2);
    ls_dist_dataset *dd = NULL;
    ls_error err = LS_ERROR_INIT;
    in_text *texts[] = {one, two};

    LST_OK(ls_strategy_distribute(m.s, d, NULL, &dd, &err));
    for (int e = 0; e < 2; e++) {
        ls_dist_iterator *it = NULL;

        *texts[e] = (in_text){{0}, 0};
        LST_OK(ls_dist_iterate(dd, &it, &err));
        in_drain(texts[e], it, 2, IN_STEPS);
        ls_dist_iterator_release(it);
    }
    ls_dist_dataset_release(dd);
    ls_dataset_release(d);
    in_machine_end(&m);
}

LST_TEST(d75_iterating_again_is_a_new_epoch)
{
    static in_text one, two;
    const int64_t seed = 1;

    epochs_of(ls_dataset_batch(
                  ls_dataset_cache(ls_dataset_shuffle_with(in_range(16), 16, NULL, false),
                                   NULL),
                  4),
              &one, &two);
    LST_CHECK(strcmp(one.text, two.text) == 0);
    epochs_of(ls_dataset_batch(ls_dataset_shuffle_with(in_range(12), 12, NULL, true), 4),
              &one, &two);
    LST_CHECK(strcmp(one.text, two.text) == 0);
    epochs_of(
        ls_dataset_batch(ls_dataset_shuffle_with(in_range(10), 10, &seed, false), 4),
        &one, &two);
    LST_CHECK(strcmp(one.text, two.text) != 0);
}

LST_TEST(distributing_leaves_the_dataset_alone)
{
    in_machine m = in_machine_of(2);
    ls_dataset *d = ls_dataset_batch(ls_dataset_shuffle(in_range(6), 6, 42), 6);
    static in_text before, after;
    ls_dist_dataset *dd = NULL;
    ls_dist_iterator *it = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_dataset *same = ls_dataset_batch(ls_dataset_shuffle(in_range(6), 6, 42), 6);
    in_text used = {{0}, 0};

    LST_OK(ls_strategy_distribute(m.s, d, NULL, &dd, &err));
    LST_OK(ls_dist_iterate(dd, &it, &err));
    in_drain(&used, it, 2, IN_STEPS);
    in_drain_plain(&after, d); // the distributed dataset has its own shuffle
    in_drain_plain(&before, same);
    LST_CHECK(strcmp(before.text, after.text) == 0);
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);
    ls_dataset_release(d);
    ls_dataset_release(same);
    in_machine_end(&m);
}

LST_MAIN(LST_CASE(d5_a_function_makes_batches_for_replicas),
         LST_CASE(d9_a_dataset_without_an_end),
         LST_CASE(d68_to_d70_the_end_comes_for_all_at_once),
         LST_CASE(d71_empty_batches_keep_rank_and_inner_sizes),
         LST_CASE(empty_batches_keep_the_structure),
         LST_CASE(empty_batches_look_like_an_element_if_no_spec_was_given),
         LST_CASE(a_worker_that_cannot_know_its_elements_says_so),
         LST_CASE(d72_not_inside_of_replicas_and_not_after_the_end),
         LST_CASE(d73_d74_the_spec_of_a_part),
         LST_CASE(d75_iterating_again_is_a_new_epoch),
         LST_CASE(distributing_leaves_the_dataset_alone))
