/* window: spans of the input as datasets. */
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

static ls_dataset *saved_window(void)
{
    return ls_dataset_window(ls_dataset_shuffle(lst_range(9), 4, 7), 3, 2, 2, false);
}

static ls_dataset *saved_gaps(void)
{
    return ls_dataset_window(ls_dataset_enumerate(lst_range(13), 0), 2, 5, 1, false);
}

LST_TEST(windows_continue_where_they_were_saved)
{
    LST_SAVES(saved_window);
    LST_SAVES(saved_gaps);
}

LST_MAIN(LST_CASE(D89_windows_are_spans_of_the_input),
         LST_CASE(a_window_of_components_is_a_dataset_of_each),
         LST_CASE(windows_are_counted), LST_CASE(windows_continue_where_they_were_saved))
