/* batch, unbatch, rebatch and legacy_rebatch. */
#include "data/data_test.h"

LST_TEST(a_batch_that_must_be_full_leaves_the_rest_out)
{
    LST_CHECK(lst_gives(ls_dataset_batch_exact(lst_range(5), 2), "[0 1] [2 3]"));
    LST_CHECK(lst_gives(ls_dataset_batch(lst_range(5), 2), "[0 1] [2 3] [4]"));
    LST_CHECK(lst_gives(ls_dataset_batch_exact(lst_range(1), 2), ""));
}

LST_TEST(D92_a_batch_of_unequal_elements_fails_and_the_next_one_goes_on)
{
    ls_dataset *d = ls_dataset_batch(lst_uneven_batches(), 2);
    ls_iterator *it = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_CHECK(lst_gives(d, "[[0 1] [2 3]] !INVALID_ARGUMENT [[2 3]]"));
    d = ls_dataset_skip(ls_dataset_batch(lst_uneven_batches(), 2), 1);
    LST_OK(ls_dataset_iterate(d, &it, &err));
    LST_FAILS(ls_iterator_next(it, &v, &err), LS_INVALID_ARGUMENT, err,
              "component 0 is int64 (3,) in the first element and int64 (2,)");
    ls_iterator_release(it);
    ls_dataset_release(d);
}

static ls_value *strings(size_t n, const char *const *s)
{
    ls_string items[8];
    ls_tensor *t = NULL;
    ls_value *v = NULL;

    for (size_t i = 0; i < n; i++) {
        items[i] = (ls_string){s[i], strlen(s[i])};
    }
    LST_OK(ls_tensor_create(NULL, LS_STRING, LS_SHAPE((int64_t)n), n > 0 ? items : NULL,
                            &t, NULL));
    LST_OK(ls_value_tensor(t, &v, NULL));
    ls_tensor_release(t);
    return v;
}
#define STRINGS(...)                                                                     \
    strings(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *),                      \
            (const char *[]){__VA_ARGS__})

LST_TEST(strings_of_a_batch_outlive_the_elements_they_came_from)
{
    ls_dataset *d = lst_slices(lst_pair(STRINGS("a", "", "ccc"), LST_INTS(1, 2, 3)));
    ls_dataset *shuffled = ls_dataset_shuffle(ls_dataset_retain(d), 3, 1);

    LST_CHECK(lst_spec_is(d, "(string (), int64 ())"));
    LST_CHECK(lst_gives(ls_dataset_batch(d, 2), "([a ],[1 2]) ([ccc],[3])"));
    LST_CHECK(
        lst_gives(ls_dataset_batch(ls_dataset_unbatch(ls_dataset_batch(shuffled, 2)), 3),
                  "([ ccc a],[2 3 1])"));
}

LST_TEST(dicts_go_through_batch_unbatch_and_zip_by_sorted_keys)
{
    ls_value *items[] = {LST_INTS(1, 2, 3), LST_INTS(4, 5, 6)}, *dict = NULL;
    ls_dataset *d = NULL;

    LST_OK(ls_value_dict((const char *[]){"b", "a"}, items, 2, &dict, NULL));
    ls_value_release(items[0]);
    ls_value_release(items[1]);
    d = lst_slices(dict);
    LST_CHECK(lst_spec_is(d, "{'a': int64 (), 'b': int64 ()}"));
    d = ls_dataset_enumerate(ls_dataset_unbatch(ls_dataset_batch(d, 2)), 10);
    LST_CHECK(lst_gives(ls_dataset_batch(d, 2),
                        "([10 11],{a:[4 5],b:[1 2]}) ([12],{a:[6],b:[3]})"));
}

static ls_dataset *fours(int64_t n)
{
    return ls_dataset_batch(lst_range(n), 4);
}

static ls_dataset *rebatch(ls_dataset *d, size_t n, const int64_t *sizes, bool exact)
{
    return ls_dataset_rebatch(d, sizes, n, exact);
}
#define REBATCH(d, exact, ...)                                                           \
    rebatch(d, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                 \
            (const int64_t[]){__VA_ARGS__}, exact)

LST_TEST(D25_rebatch_takes_sizes_in_turn_and_zero_asks_for_nothing)
{
    LST_CHECK(lst_gives(REBATCH(fours(8), false, 1, 1, 1, 1, 0),
                        "[0] [1] [2] [3] [] [4] [5] [6] [7] []"));
    LST_CHECK(lst_gives(REBATCH(fours(8), false, 0, 1),
                        "[] [0] [] [1] [] [2] [] [3] [] [4] [] [5] [] [6] [] [7] []"));
    LST_CHECK(lst_code(REBATCH(fours(8), false, -1)) == LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(REBATCH(lst_range(8), false, 2)) == LS_INVALID_ARGUMENT);
}

LST_TEST(D26_rebatch_gives_a_short_batch_at_the_end_unless_it_is_dropped)
{
    ls_dataset *d = ls_dataset_batch_exact(lst_range(12), 4);

    LST_CHECK(lst_gives(REBATCH(fours(5), false, 2, 2), "[0 1] [2 3] [4]"));
    LST_CHECK(lst_gives(REBATCH(fours(5), true, 2, 2), "[0 1] [2 3]"));
    LST_CHECK(lst_gives(REBATCH(fours(12), false, 6), "[0 1 2 3 4 5] [6 7 8 9 10 11]"));
    d = REBATCH(d, false, 2);
    LST_CHECK(lst_spec_is(d, "int64 (2,)"));
    d = REBATCH(d, false, 3);
    LST_CHECK(lst_spec_is(d, "int64 (None,)"));
    LST_CHECK(lst_gives(d, "[0 1 2] [3 4 5] [6 7 8] [9 10 11]"));
    LST_CHECK(lst_gives(REBATCH(ls_dataset_batch(lst_uneven_batches(), 1), false, 2),
                        "[[0 1] [2 3]] !FAILED_PRECONDITION [[2 3]]"));
}

LST_TEST(legacy_rebatch_cuts_every_batch_into_as_many_pieces)
{
    ls_dataset *d = lsi_dataset_legacy_rebatch(fours(6), 3);

    LST_CHECK(lst_spec_is(d, "int64 (None,)"));
    LST_CHECK(lst_gives(d, "[0 1] [2 3] [] [4] [5] []"));
    LST_CHECK(lst_gives(lsi_dataset_legacy_rebatch(ls_dataset_batch(lst_range(9), 9), 4),
                        "[0 1 2] [3 4 5] [6 7 8] []"));
    d = lsi_dataset_legacy_rebatch(ls_dataset_batch_exact(lst_range(4), 4), 2);
    LST_CHECK(lst_spec_is(d, "int64 (2,)"));
    LST_CHECK(lst_gives(d, "[0 1] [2 3]"));
    LST_CHECK(lst_code(lsi_dataset_legacy_rebatch(lst_range(3), 2)) ==
              LS_INVALID_ARGUMENT);
}

LST_MAIN(LST_CASE(a_batch_that_must_be_full_leaves_the_rest_out),
         LST_CASE(D92_a_batch_of_unequal_elements_fails_and_the_next_one_goes_on),
         LST_CASE(strings_of_a_batch_outlive_the_elements_they_came_from),
         LST_CASE(dicts_go_through_batch_unbatch_and_zip_by_sorted_keys),
         LST_CASE(D25_rebatch_takes_sizes_in_turn_and_zero_asks_for_nothing),
         LST_CASE(D26_rebatch_gives_a_short_batch_at_the_end_unless_it_is_dropped),
         LST_CASE(legacy_rebatch_cuts_every_batch_into_as_many_pieces))
