/* choose and sample: which of several datasets gives the next element. */
#include "data/data_test.h"

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

LST_TEST(a_sample_of_many_gives_every_element_once)
{
    enum { INPUTS = 37 };
    ls_dataset *ds[INPUTS], *d = NULL;
    double weights[INPUTS];
    ls_iterator *it = NULL;
    int64_t seen[INPUTS] = {0}, n = 0;
    ls_status st = LS_OK;

    for (int i = 0; i < INPUTS; i++) {
        ds[i] = ls_dataset_range(1000 * i, 1000 * i + i % 5, 1);
        weights[i] = i % 3 == 0 ? 1e-9 : 1.0 + i;
    }
    d = ls_dataset_sample(ds, INPUTS, weights, (const int64_t[]){7}, false);
    LST_OK(ls_dataset_iterate(d, &it, NULL));
    while (st == LS_OK) {
        ls_value *v = NULL;

        st = ls_iterator_next(it, &v, NULL);
        if (st == LS_OK) {
            const int64_t x = *(const int64_t *)ls_tensor_data(ls_value_as_tensor(v));

            LST_CHECK(x % 1000 == seen[x / 1000]++); // each input in its own order
            n++;
        }
        ls_value_release(v);
    }
    LST_CHECK(st == LS_OUT_OF_RANGE && n == 7 * 10 + 0 + 1);
    ls_iterator_release(it);
    ls_dataset_release(d);
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

LST_TEST(choices_and_samples_continue_where_they_were_saved)
{
    LST_SAVES(saved_choice);
    LST_SAVES(saved_sample);
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

LST_MAIN(LST_CASE(D91_choices_pick_and_stop_or_go_on_where_one_is_over),
         LST_CASE(choices_are_int64_scalars_and_there_is_something_to_choose),
         LST_CASE(a_sample_draws_by_weight_and_loses_nothing),
         LST_CASE(a_sample_has_the_same_picks_each_epoch),
         LST_CASE(a_weight_of_zero_leaves_a_dataset_out),
         LST_CASE(a_sample_of_many_gives_every_element_once),
         LST_CASE(choices_and_samples_continue_where_they_were_saved),
         LST_CASE(picks_that_nobody_seeded_go_on_after_a_restore))
