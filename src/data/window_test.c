/* window, choose, sample and unique. */
#include "data/data_test.h"

LST_TEST(D89_windows_are_spans_of_the_input)
{
    LST_CHECK(lst_gives(ls_dataset_window(lst_range(7), 3, 3, 1, false),
                        "<0 1 2> <3 4 5> <6>"));
    LST_CHECK(lst_gives(ls_dataset_window(lst_range(7), 3, 1, 2, true),
                        "<0 2 4> <1 3 5> <2 4 6>"));
    LST_CHECK(lst_gives(ls_dataset_window(lst_range(7), 3, 2, 2, false),
                        "<0 2 4> <2 4 6> <4 6> <6>"));
    LST_CHECK(lst_gives(ls_dataset_window(lst_range(5), 2, 3, 1, false), "<0 1> <3 4>"));
    LST_CHECK(lst_gives(ls_dataset_window(lst_range(5), 2, 3, 1, true), "<0 1> <3 4>"));
    LST_CHECK(lst_gives(ls_dataset_window(lst_range(5), 2, 10, 1, false), "<0 1>"));
    LST_CHECK(lst_gives(ls_dataset_window(lst_range(0), 2, 2, 1, false), ""));
    LST_CHECK(lst_gives(ls_dataset_window(lst_range(3), INT64_MAX, 1, 1, true), ""));
    LST_CHECK(lst_gives(ls_dataset_window(lst_range(40), 33, 7, 1, true),
                        "<0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 "
                        "24 25 26 27 28 29 30 31 32> <7 8 9 10 11 12 13 14 15 16 17 18 "
                        "19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 "
                        "39>"));
}

LST_TEST(a_window_of_components_is_a_dataset_of_each)
{
    ls_dataset *d =
        ls_dataset_window(ls_dataset_enumerate(lst_range(3), 7), 2, 2, 1, false);

    LST_CHECK(ls_spec_kind_of(ls_spec_child(ls_dataset_spec(d), 1)) == LS_SPEC_DATASET);
    LST_CHECK(lst_gives(d, "(<7 8>,<0 1>) (<9>,<2>)"));
    d = ls_dataset_window(lst_range(5), 2, 2, 1, false);
    LST_CHECK(lst_gives(ls_dataset_window(d, 2, 2, 1, false), "<<0 1> <2 3>> <<4>>"));
}

LST_TEST(windows_are_counted)
{
    static const struct {
        int64_t n, size, shift, stride;
        bool drop;
        int64_t want;
    } cases[] = {{5, 2, 2, 1, false, 3}, {5, 2, 2, 1, true, 2},  {7, 3, 1, 2, true, 3},
                 {7, 3, 2, 2, false, 4}, {4, 3, 1, 2, true, 0},  {0, 3, 1, 1, false, 0},
                 {5, 2, 3, 1, false, 2}, {5, 2, 10, 1, false, 1}};

    for (size_t i = 0; i < LSI_COUNT_OF(cases); i++) {
        ls_dataset *d = ls_dataset_window(lst_range(cases[i].n), cases[i].size,
                                          cases[i].shift, cases[i].stride, cases[i].drop);

        LST_CHECK(ls_dataset_cardinality(d) == cases[i].want);
        ls_dataset_release(d);
    }
    LST_CHECK(lst_code(ls_dataset_window(lst_range(2), 0, 1, 1, false)) ==
              LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(ls_dataset_window(lst_range(2), 1, 0, 1, false)) ==
              LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(ls_dataset_window(lst_range(2), 1, 1, 0, false)) ==
              LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(ls_dataset_window(lst_range(2), INT64_MAX, 1, 2, false)) ==
              LS_INVALID_ARGUMENT);
}

/* ---- choose ---- */

static ls_dataset *chosen(ls_value *choices, bool stop)
{
    ls_dataset *ds[] = {ls_dataset_range(0, 2, 1), ls_dataset_range(10, 15, 1)};

    return ls_dataset_choose(ds, 2, lst_slices(choices), stop);
}

LST_TEST(D91_choices_pick_and_stop_or_go_on_where_one_is_over)
{
    LST_CHECK(lst_gives(chosen(LST_INTS(0, 1, 0, 1, 0, 1), true), "0 10 1 11"));
    LST_CHECK(lst_gives(chosen(LST_INTS(0, 1, 0, 1, 0, 1), false), "0 10 1 11 12"));
    LST_CHECK(lst_gives(chosen(LST_INTS(1, 2, 1, -1, 0), false),
                        "10 !INVALID_ARGUMENT 11 !INVALID_ARGUMENT 0"));
    LST_CHECK(lst_gives(chosen(LST_INTS(0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 2), false),
                        "0 1 10 11 12 13 14"));
}

LST_TEST(choices_are_int64_scalars_and_there_is_something_to_choose)
{
    ls_dataset *ds[] = {lst_range(2), lst_range(3)};

    LST_CHECK(lst_code(ls_dataset_choose(ds, 2, ls_dataset_batch(lst_range(2), 2),
                                         true)) == LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(ls_dataset_choose(NULL, 0, lst_range(2), true)) ==
              LS_INVALID_ARGUMENT);
    ds[0] = lst_range(2);
    ds[1] = ls_dataset_enumerate(lst_range(2), 0);
    LST_CHECK(lst_code(ls_dataset_choose(ds, 2, lst_range(2), true)) ==
              LS_INVALID_ARGUMENT);
    ds[0] = lst_range(2);
    ds[1] = ls_dataset_repeat(lst_range(2), -1);
    ds[0] = ls_dataset_choose(ds, 2, lst_range(2), true);
    LST_CHECK(ls_dataset_cardinality(ds[0]) == LS_INFINITE);
    ls_dataset_release(ds[0]);
}

/* ---- sample ---- */

static ls_dataset *sampled(const double *weights, int64_t n, const int64_t *seed)
{
    ls_dataset *ds[] = {ls_dataset_range(0, n, 1), ls_dataset_range(1000, 1000 + n, 1),
                        ls_dataset_range(2000, 2000 + n, 1)};

    return ls_dataset_sample(ds, 3, weights, seed, false);
}

/* How often each of three was drawn in the first `calls` elements. */
static void tally(ls_dataset *d, int calls, int seen[3])
{
    ls_iterator *it = NULL;
    ls_value *v = NULL;

    LST_OK(ls_dataset_iterate(d, &it, NULL));
    for (int i = 0; i < calls && ls_iterator_next(it, &v, NULL) == LS_OK; i++) {
        const int64_t x = *(const int64_t *)ls_tensor_data(ls_value_as_tensor(v));

        LST_CHECK(x % 1000 == seen[x / 1000]); // each in its own order
        seen[x / 1000]++;
        ls_value_release(v);
    }
    ls_iterator_release(it);
    ls_dataset_release(d);
}

LST_TEST(a_sample_draws_by_weight_and_loses_nothing)
{
    static const double weights[] = {0.5, 0.3, 0.2};
    const int64_t seed = 11;
    int seen[3] = {0, 0, 0}, all[3] = {0, 0, 0};

    tally(sampled(weights, 900, &seed), 900, seen);
    LST_CHECK(abs(seen[0] - 450) < 75 && abs(seen[1] - 270) < 75); // five deviations
    LST_CHECK(seen[0] + seen[1] + seen[2] == 900);
    tally(sampled(NULL, 40, &seed), 1000, all);
    LST_CHECK(all[0] == 40 && all[1] == 40 && all[2] == 40);
}

LST_TEST(a_sample_has_the_same_picks_each_epoch)
{
    ls_dataset *d = ls_dataset_take(sampled(NULL, 9, NULL), 8);
    lst_text one = {{0}, 0};

    lst_put_events(&one, d, 60);
    LST_CHECK(lst_gives(d, one.s));
}

LST_TEST(a_weight_of_zero_leaves_a_dataset_out)
{
    static const double one[] = {0, 1, 0}, none[] = {0, 0, 0}, bad[] = {1, -1, 1};
    static const double nan[] = {1, (double)NAN, 1};
    ls_dataset *d = sampled(one, 3, NULL);

    LST_CHECK(strcmp(ls_dataset_kind(d), "range") == 0);
    LST_CHECK(lst_gives(d, "1000 1001 1002"));
    LST_CHECK(lst_code(sampled(none, 3, NULL)) == LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(sampled(bad, 3, NULL)) == LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(sampled(nan, 3, NULL)) == LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(ls_dataset_sample(NULL, 0, NULL, NULL, false)) ==
              LS_INVALID_ARGUMENT);
}

/* ---- unique ---- */

static ls_dataset *strings(void)
{
    static const ls_string s[] = {{"b", 1}, {"", 0}, {"b", 1}, {"bb", 2}, {"", 0}};
    ls_tensor *t = NULL;
    ls_value *v = NULL;

    LST_OK(ls_tensor_create(NULL, LS_STRING, LS_SHAPE(5), s, &t, NULL));
    LST_OK(ls_value_tensor(t, &v, NULL));
    ls_tensor_release(t);
    return lst_slices(v);
}

LST_TEST(unique_gives_the_first_of_equal_elements)
{
    ls_dataset *d = ls_dataset_concatenate(lst_range(500), lst_range(503));

    LST_CHECK(lst_gives(ls_dataset_unique(lst_slices(LST_INTS(3, 1, 3, 2, 1, 3, 0))),
                        "3 1 2 0"));
    LST_CHECK(
        lst_gives(ls_dataset_skip(ls_dataset_unique(d), 498), "498 499 500 501 502"));
    LST_CHECK(lst_gives(ls_dataset_unique(strings()), "b  bb"));
    d = ls_dataset_concatenate(ls_dataset_batch(lst_range(3), 2),
                               ls_dataset_batch(lst_range(2), 2));
    LST_CHECK(lst_gives(ls_dataset_unique(d), "[0 1] [2]"));
}

LST_TEST(unique_takes_one_component_of_integers_or_strings)
{
    ls_tensor *t = NULL;
    ls_value *v = NULL;

    LST_CHECK(lst_code(ls_dataset_unique(ls_dataset_enumerate(lst_range(2), 0))) ==
              LS_INVALID_ARGUMENT);
    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(2), NULL, &t, NULL));
    LST_OK(ls_value_tensor(t, &v, NULL));
    ls_tensor_release(t);
    LST_CHECK(lst_code(ls_dataset_unique(lst_slices(v))) == LS_INVALID_ARGUMENT);
}

/* ---- saving ---- */

static ls_dataset *saved_window(void)
{
    return ls_dataset_window(ls_dataset_shuffle(lst_range(9), 4, 7), 3, 2, 2, false);
}

static ls_dataset *saved_gaps(void)
{
    return ls_dataset_window(ls_dataset_enumerate(lst_range(13), 0), 2, 5, 1, false);
}

static ls_dataset *saved_choice(void)
{
    ls_dataset *ds[] = {ls_dataset_shuffle(lst_range(3), 3, 5),
                        ls_dataset_repeat(ls_dataset_shuffle(lst_range(9), 3, 6), 2)};
    ls_dataset *choices = ls_dataset_repeat(ls_dataset_range(0, 2, 1), -1);

    return ls_dataset_choose(ds, 2, choices, false);
}

static ls_dataset *saved_sample(void)
{
    const int64_t seed = 4;

    return ls_dataset_repeat(sampled(NULL, 4, &seed), 2);
}

static ls_dataset *saved_drawn(void)
{
    return sampled(NULL, 5, NULL);
}

static ls_dataset *saved_unique(void)
{
    return ls_dataset_unique(
        ls_dataset_shuffle(ls_dataset_repeat(lst_range(7), 3), 9, 3));
}

LST_TEST(windows_choices_and_sets_continue_where_they_were_saved)
{
    LST_SAVES(saved_window);
    LST_SAVES(saved_gaps);
    LST_SAVES(saved_choice);
    LST_SAVES(saved_sample);
    LST_SAVES(saved_unique);
}

LST_TEST(picks_that_nobody_seeded_go_on_after_a_restore)
{
    ls_dataset *a = saved_drawn(), *b = saved_drawn();
    ls_iterator *from = NULL, *to = NULL;
    lst_text whole = {{0}, 0}, rest = {{0}, 0};
    ls_value *state = NULL;

    LST_OK(ls_dataset_iterate(a, &from, NULL));
    LST_OK(ls_dataset_iterate(b, &to, NULL));
    LST_CHECK(lst_put_next(&whole, from));
    LST_OK(ls_iterator_save(from, &state, NULL));
    LST_OK(ls_iterator_restore(to, state, NULL));
    rest = whole;
    lst_put_rest(&whole, from, 60);
    lst_put_rest(&rest, to, 60);
    LST_CHECK(lst_same(&rest, whole.s));
    LST_CHECK(lst_epoch(b, whole.s)); // later passes too
    ls_value_release(state);
    ls_iterator_release(from);
    ls_iterator_release(to);
    ls_dataset_release(a);
    ls_dataset_release(b);
}

LST_MAIN(LST_CASE(D89_windows_are_spans_of_the_input),
         LST_CASE(a_window_of_components_is_a_dataset_of_each),
         LST_CASE(windows_are_counted),
         LST_CASE(D91_choices_pick_and_stop_or_go_on_where_one_is_over),
         LST_CASE(choices_are_int64_scalars_and_there_is_something_to_choose),
         LST_CASE(a_sample_draws_by_weight_and_loses_nothing),
         LST_CASE(a_sample_has_the_same_picks_each_epoch),
         LST_CASE(a_weight_of_zero_leaves_a_dataset_out),
         LST_CASE(unique_gives_the_first_of_equal_elements),
         LST_CASE(unique_takes_one_component_of_integers_or_strings),
         LST_CASE(windows_choices_and_sets_continue_where_they_were_saved),
         LST_CASE(picks_that_nobody_seeded_go_on_after_a_restore))
