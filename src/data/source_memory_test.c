/* Sources in memory: a range, slices and tensors. */
#include "data/data_test.h"

LST_TEST(a_range_counts_up_and_down)
{
    LST_CHECK(lst_gives(ls_dataset_range(2, 10, 3), "2 5 8"));
    LST_CHECK(lst_gives(ls_dataset_range(10, 5, -2), "10 8 6"));
    LST_CHECK(lst_gives(ls_dataset_range(5, 2, 1), ""));
    LST_CHECK(
        lst_gives(ls_dataset_range(INT64_MAX - 1, INT64_MAX, 5), "9223372036854775806"));
    LST_CHECK(lst_gives(ls_dataset_batch(lst_range(130), 129),
                        "[0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 "
                        "24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 "
                        "45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 "
                        "66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84 85 86 "
                        "87 88 89 90 91 92 93 94 95 96 97 98 99 100 101 102 103 104 105 "
                        "106 107 108 109 110 111 112 113 114 115 116 117 118 119 120 121 "
                        "122 123 124 125 126 127 128] [129]"));
}

LST_TEST(a_list_given_to_a_source_is_one_tensor)
{
    ls_value *list = NULL, *a = LST_INTS(1, 2), *b = LST_INTS(3, 4);

    LST_OK(ls_value_list((ls_value *[]){a, b}, 2, &list, NULL));
    LST_CHECK(lst_gives(ls_dataset_slices(list), "[1 2] [3 4]"));
    LST_CHECK(lst_gives(ls_dataset_tensors(list), "[[1 2] [3 4]]"));
    ls_value_release(list);
    ls_value_release(a);
    ls_value_release(b);
}

LST_MAIN(LST_CASE(a_range_counts_up_and_down),
         LST_CASE(a_list_given_to_a_source_is_one_tensor))
