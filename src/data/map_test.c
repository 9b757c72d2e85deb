/* map, parallel_map and filter: order, failures, parallel calls, saving. */
#include "data/data_test.h"
#include "lockstep/replica.h"

static ls_value *square(ls_context *c, ls_value *x, void *user)
{
    ls_tensor *t = ls_value_as_tensor(x);

    (void)user;
    return ls_value_of(c, (ls_mul)(c, t, t));
}

/* Odd elements fail, with LS_OUT_OF_RANGE if there is a user. */
static ls_value *even_only(ls_context *c, ls_value *x, void *user)
{
    const int64_t i = *(const int64_t *)ls_tensor_data(ls_value_as_tensor(x));

    if (i % 2 == 1) {
        (void)(ls_context_fail)(c, user != NULL ? LS_OUT_OF_RANGE : LS_UNAVAILABLE,
                                "%d is odd", (int)i);
        return NULL;
    }
    return x;
}

static ls_value *nothing(ls_context *c, ls_value *x, void *user)
{
    (void)c;
    (void)x;
    (void)user;
    return NULL;
}

static ls_value *twice(ls_context *c, ls_value *x, void *user)
{
    ls_tensor *t = ls_value_as_tensor(x);
    ls_tensor *both[2] = {t, t};

    (void)user;
    return ls_value_of_all(c, both, 2);
}

static ls_value *below_five(ls_context *c, ls_value *x, void *user)
{
    const int64_t i = *(const int64_t *)ls_tensor_data(ls_value_as_tensor(x));
    ls_value *v = NULL;

    (void)user;
    LST_OK(ls_value_bool(i < 5, &v, NULL));
    return ls_value_adopt(c, v);
}

/* Waits until *user calls are running at once. */
struct crowd {
    lsi_mutex lock;
    lsi_cond more;
    int here, most, want;
};

static ls_value *meet(ls_context *c, ls_value *x, void *user)
{
    struct crowd *crowd = user;
    const lsi_deadline late = lsi_deadline_in_ms(20000);

    lsi_mutex_lock(&crowd->lock);
    crowd->here++;
    crowd->most = LSI_MAX(crowd->most, crowd->here);
    lsi_cond_broadcast(&crowd->more);
    while (crowd->most < crowd->want && lsi_cond_wait(&crowd->more, &crowd->lock, late)) {
    }
    crowd->here--;
    if (crowd->most < crowd->want) {
        (void)(ls_context_fail)(c, LS_DEADLINE_EXCEEDED, "no other call began");
    }
    lsi_mutex_unlock(&crowd->lock);
    return x;
}

/*
 * The consumer itself makes the call for 0, which waits until the call for 1 begins on a
 * thread; that one waits until the call for 4 begins, so 2 and 3 are finished before 1.
 */
static ls_value *late_one(ls_context *c, ls_value *x, void *user)
{
    struct crowd *crowd = user;
    const int64_t i = *(const int64_t *)ls_tensor_data(ls_value_as_tensor(x));
    const lsi_deadline late = lsi_deadline_in_ms(20000);

    (void)c;
    lsi_mutex_lock(&crowd->lock);
    crowd->most = LSI_MAX(crowd->most, (int)i);
    lsi_cond_broadcast(&crowd->more);
    while (i < 2 && crowd->most < (i == 0 ? 1 : 4) &&
           lsi_cond_wait(&crowd->more, &crowd->lock, late)) {
    }
    lsi_mutex_unlock(&crowd->lock);
    if (i == 1) {
        lsi_sleep_ns(30000000); // time for a consumer that wrongly takes the others first
    }
    return x;
}

static ls_dataset *map_of(ls_dataset *d, ls_map_fn fn, void *user, int parallel,
                          bool unordered)
{
    ls_map_options o = LS_MAP_OPTIONS_INIT;

    o.parallel = parallel;
    o.unordered = unordered;
    return ls_dataset_map(d, fn, user, &o);
}

static const int at_once[] = {0, 1, 2, 3, 7, LS_AUTOTUNE};

LST_TEST(a_map_gives_one_element_for_each_in_their_order)
{
    for (size_t i = 0; i < LSI_COUNT_OF(at_once); i++) {
        LST_CHECK(lst_gives(map_of(lst_range(12), square, NULL, at_once[i], false),
                            "0 1 4 9 16 25 36 49 64 81 100 121"));
    }
    LST_CHECK(
        lst_gives(map_of(lst_range(3), twice, NULL, 0, false), "(0,0) (1,1) (2,2)"));
}

LST_TEST(a_failed_call_is_the_failure_of_its_element_and_the_next_goes_on)
{
    for (size_t i = 0; i < LSI_COUNT_OF(at_once); i++) {
        LST_CHECK(lst_gives(map_of(lst_range(5), even_only, NULL, at_once[i], false),
                            "0 !UNAVAILABLE 2 !UNAVAILABLE 4"));
    }
}

LST_TEST(a_function_cannot_end_a_dataset)
{
    int user = 0;

    for (size_t i = 0; i < LSI_COUNT_OF(at_once); i++) {
        LST_CHECK(lst_gives(map_of(lst_range(3), even_only, &user, at_once[i], false),
                            "0 !INVALID_ARGUMENT 2"));
    }
    LST_CHECK(
        lst_gives(map_of(lst_range(1), nothing, NULL, 0, false), "!INVALID_ARGUMENT"));
}

LST_TEST(failures_of_the_input_keep_their_place_in_a_parallel_map)
{
    ls_dataset *d = map_of(lst_range(6), even_only, NULL, 0, false);

    LST_CHECK(lst_gives(map_of(d, square, NULL, 4, false),
                        "0 !UNAVAILABLE 4 !UNAVAILABLE 16 !UNAVAILABLE"));
}

LST_TEST(an_unordered_map_gives_every_element_once)
{
    ls_dataset *d = map_of(lst_range(500), square, NULL, 4, true);
    ls_iterator *it = NULL;
    ls_value *v = NULL;
    int seen[500] = {0};
    int n = 0;

    LST_OK(ls_dataset_iterate(d, &it, NULL));
    while (ls_iterator_next(it, &v, NULL) == LS_OK) {
        const int64_t x = *(const int64_t *)ls_tensor_data(ls_value_as_tensor(v));
        const int root = (int)lround(sqrt((double)x));

        LST_CHECK(root >= 0 && root < 500 && (int64_t)root * root == x);
        seen[root]++;
        n++;
        ls_value_release(v);
    }
    LST_CHECK(n == 500);
    for (int i = 0; i < 500; i++) {
        LST_CHECK(seen[i] == 1);
    }
    ls_iterator_release(it);
    ls_dataset_release(d);
}

LST_TEST(calls_go_on_at_once)
{
    struct crowd crowd = {.want = 2};

    lsi_mutex_init(&crowd.lock);
    lsi_cond_init(&crowd.more);
    // one of them is the consumer
    LST_CHECK(lst_gives(map_of(lst_range(8), meet, &crowd, 4, false), "0 1 2 3 4 5 6 7"));
    LST_CHECK(crowd.most >= 2);
    lsi_cond_destroy(&crowd.more);
    lsi_mutex_destroy(&crowd.lock);
}

LST_TEST(what_is_done_early_waits_for_its_turn)
{
    struct crowd crowd = {.most = lsi_input_threads_count(lsi_runtime_input_threads(
                                      lsi_runtime_default())) > 1
                                      ? 0
                                      : 4}; // a single thread: no waiting

    lsi_mutex_init(&crowd.lock);
    lsi_cond_init(&crowd.more);
    LST_CHECK(
        lst_gives(map_of(lst_range(8), late_one, &crowd, 2, false), "0 1 2 3 4 5 6 7"));
    lsi_cond_destroy(&crowd.more);
    lsi_mutex_destroy(&crowd.lock);
}

LST_TEST(an_iterator_of_a_parallel_map_may_be_left_anywhere)
{
    for (int k = 0; k < 20; k++) {
        ls_dataset *d =
            ls_dataset_repeat(map_of(lst_range(7), square, NULL, 3, false), -1);
        lst_text t = {{0}, 0};
        ls_iterator *it = NULL;

        LST_OK(ls_dataset_iterate(d, &it, NULL));
        lst_put_rest(&t, it, k);
        ls_iterator_release(it);
        ls_dataset_release(d);
    }
}

LST_TEST(parallel_maps_stand_above_each_other)
{
    ls_dataset *d = lst_range(40);

    for (int i = 0; i < 8; i++) { // more of them than there are threads
        d = ls_dataset_prefetch(map_of(d, even_only, NULL, 3, false), 2);
        d = ls_dataset_ignore_errors(d);
    }
    LST_CHECK(lst_gives(d, "0 2 4 6 8 10 12 14 16 18 20 22 24 26 28 30 32 34 36 38"));
}

LST_TEST(a_declared_spec_is_the_spec_and_is_enforced)
{
    ls_map_options o = LS_MAP_OPTIONS_INIT;
    ls_dataset *d = NULL;

    LST_OK(ls_spec_tensor(LS_F32, 0, NULL, &o.spec, NULL));
    d = ls_dataset_map(lst_range(2), square, NULL, &o);
    LST_CHECK(ls_spec_equal(ls_dataset_spec(d), o.spec));
    LST_CHECK(ls_dataset_cardinality(d) == 2);
    LST_CHECK(lst_gives(d, "!INVALID_ARGUMENT !INVALID_ARGUMENT"));
    ls_spec_release(o.spec);
}

LST_TEST(wrong_arguments_of_a_map_are_refused)
{
    LST_CHECK(lst_code(map_of(lst_range(2), NULL, NULL, 0, false)) ==
              LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(map_of(lst_range(2), square, NULL, -2, false)) ==
              LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(map_of(ls_dataset_range(0, 1, 0), square, NULL, 0, false)) ==
              LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(ls_dataset_filter(lst_range(2), NULL, NULL)) ==
              LS_INVALID_ARGUMENT);
}

LST_TEST(a_filter_keeps_what_its_predicate_says)
{
    ls_dataset *d = ls_dataset_filter(lst_range(9), below_five, NULL);

    LST_CHECK(ls_dataset_cardinality(d) == LS_UNKNOWN_SIZE);
    LST_CHECK(lst_gives(d, "0 1 2 3 4"));
    LST_CHECK(lst_gives(ls_dataset_filter(lst_range(2), square, NULL),
                        "!INVALID_ARGUMENT !INVALID_ARGUMENT"));
    LST_CHECK(lst_gives(ls_dataset_filter(lst_range(2), twice, NULL),
                        "!INVALID_ARGUMENT !INVALID_ARGUMENT"));
}

static ls_dataset *serial(void)
{
    return ls_dataset_shuffle(map_of(lst_range(7), square, NULL, 0, false), 3, 5);
}

static ls_dataset *parallel(void)
{
    return ls_dataset_repeat(
        map_of(ls_dataset_shuffle(lst_range(7), 3, 5), square, NULL, 3, false), 2);
}

static ls_dataset *failing(void)
{
    return map_of(map_of(lst_range(9), even_only, NULL, 0, false), even_only, NULL, 2,
                  false);
}

static ls_dataset *filtered(void)
{
    return ls_dataset_filter(ls_dataset_repeat(lst_range(7), 2), below_five, NULL);
}

LST_TEST(maps_and_filters_continue_where_they_were_saved)
{
    LST_SAVES(serial);
    LST_SAVES(parallel);
    LST_SAVES(failing);
    LST_SAVES(filtered);
}

LST_TEST(a_stateful_map_is_not_saved)
{
    ls_map_options o = LS_MAP_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    ls_iterator *it = NULL;
    ls_value *state = NULL;
    ls_dataset *d = NULL;

    o.stateful = true;
    d = ls_dataset_map(lst_range(2), square, NULL, &o);
    LST_OK(ls_dataset_iterate(d, &it, NULL));
    LST_FAILS(ls_iterator_save(it, &state, &err), LS_FAILED_PRECONDITION, err, "map");
    ls_iterator_release(it);
    ls_dataset_release(d);
}

static ls_status walk(ls_error *err)
{
    return lst_read(map_of(lst_range(6), square, NULL, 2, false), 6, err);
}

LST_TEST(no_allocation_that_fails_in_a_parallel_map_leaks_or_hangs)
{
    lst_every_allocation(walk);
}

LST_MAIN(LST_CASE(a_map_gives_one_element_for_each_in_their_order),
         LST_CASE(a_failed_call_is_the_failure_of_its_element_and_the_next_goes_on),
         LST_CASE(a_function_cannot_end_a_dataset),
         LST_CASE(failures_of_the_input_keep_their_place_in_a_parallel_map),
         LST_CASE(an_unordered_map_gives_every_element_once),
         LST_CASE(calls_go_on_at_once), LST_CASE(what_is_done_early_waits_for_its_turn),
         LST_CASE(an_iterator_of_a_parallel_map_may_be_left_anywhere),
         LST_CASE(parallel_maps_stand_above_each_other),
         LST_CASE(a_declared_spec_is_the_spec_and_is_enforced),
         LST_CASE(wrong_arguments_of_a_map_are_refused),
         LST_CASE(a_filter_keeps_what_its_predicate_says),
         LST_CASE(maps_and_filters_continue_where_they_were_saved),
         LST_CASE(a_stateful_map_is_not_saved),
         LST_CASE(no_allocation_that_fails_in_a_parallel_map_leaks_or_hangs))
